#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A compiler launcher that makes CMake's unity sources compile (cmake/units.cmake).

  compile_unit.py COMMAND...      runs the compiler's command; its exit code

A unity source includes several sources, whose local names may collide. In its place one file is
compiled that holds their texts with unique local names (tools/tidy_batch.py). Sources that do not fit
together are compiled in halves, down to each alone, so that errors are those of the source itself;
the objects are joined. Any other command runs as it is.
"""
import os
import pathlib
import re
import subprocess
import sys

import tidy_batch

INCLUDED = re.compile(r'^#include "(.+)"$', re.MULTILINE)


def value_after(command, option):
    return command[command.index(option) + 1]


def with_values(command, **values):
    """The command with other values behind options: c=PATH stands behind -c."""
    out = list(command)
    for option, value in values.items():
        out[out.index("-" + option) + 1] = str(value)
    return out


def sources_in(source):
    """The sources that a unity source includes; none for any other source."""
    if source.parent.name != "Unity" or not source.name.startswith("unity_"):
        return []
    return [pathlib.Path(name) for name in INCLUDED.findall(source.read_text(encoding="utf-8"))]


def sources_of(command):
    """The sources of a command that compiles a unity source; none for any other command."""
    if not {"-c", "-o", "-MF"} <= set(command):
        return []
    return sources_in(pathlib.Path(value_after(command, "-c")))


def unit_text(sources):
    """The sources in one text; messages and __FILE__ name them as if each was compiled alone."""
    texts = {source: source.read_text(encoding="utf-8") for source in sources}
    out = ""
    for number, source in enumerate(tidy_batch.in_order(texts)):
        out += f'#line 1 "{os.path.relpath(source)}"\n' + tidy_batch.renamed(texts[source], number)
    return out


def parts_of(sources):
    """The sources in parts in which no name that stays as it is stands twice at file scope."""
    texts = {source: source.read_text(encoding="utf-8") for source in sources}
    parts = []  # of names and sources
    for source in tidy_batch.in_order(texts):
        names = tidy_batch.own_names(texts[source])[1]
        part = next((part for part in parts if names.isdisjoint(part[0])), None)
        if part is None:
            parts.append((set(names), [source]))
        else:
            part[0].update(names)
            part[1].append(source)
    return [part for _, part in parts]


class Unit:
    """One command of CMake's; its parts, compiled so far."""

    def __init__(self, command):
        self.command = command
        self.out = value_after(command, "-o")
        self.rule = pathlib.Path(value_after(command, "-MF"))
        self.objects = []
        self.read = [value_after(command, "-c")]  # what the object depends on

    def run(self, source, folders, **how):
        """Compiles a file into a part; the finished process."""
        number = len(self.objects)
        part, part_rule = f"{self.out}.part{number}.o", pathlib.Path(f"{self.rule}.part{number}")
        command = with_values(self.command, c=source, o=part, MF=part_rule)
        done = subprocess.run([*command, *folders], check=False, **how)
        if done.returncode == 0:
            self.objects.append(part)
            self.read.append(part_rule.read_text(encoding="utf-8").split(":", 1)[1].strip())
        return done

    def compile(self, sources):
        """Compiles the sources together if they can be, else in halves; the exit code."""
        if len(sources) == 1:
            return self.run(sources[0], []).returncode
        text = pathlib.Path(f"{self.out}.part{len(self.objects)}.cpp")
        text.write_text(unit_text(sources), encoding="utf-8")
        done = self.run(text, sorted({f"-iquote{source.parent}" for source in sources}),
                        capture_output=True, encoding="utf-8", errors="replace")
        if done.returncode == 0:
            self.read += [str(source) for source in sources]
            sys.stderr.write(done.stdout + done.stderr)
            return 0
        first = next((line for line in done.stderr.splitlines() if "error:" in line), "no message")
        print(f"{text}: its {len(sources)} sources are compiled in halves: {first}",
              file=sys.stderr)
        middle = len(sources) // 2
        return self.compile(sources[:middle]) | self.compile(sources[middle:])

    def join(self):
        """Makes one object, and the rule that says what it was made from; the exit code."""
        self.rule.write_text(f"{self.out}: " + " \\\n ".join(self.read) + "\n", encoding="utf-8")
        if len(self.objects) == 1:
            os.replace(self.objects[0], self.out)
            return 0
        code = subprocess.run(["ld", "-r", "-o", self.out, *self.objects], check=False).returncode
        for part in self.objects:
            os.remove(part)
        return code


def main():
    command = sys.argv[1:]
    sources = sources_of(command)
    if not sources:
        os.execvp(command[0], command)
    unit = Unit(command)
    code = max(unit.compile(part) for part in parts_of(sources))
    return code or unit.join()


if __name__ == "__main__":
    sys.exit(main())
