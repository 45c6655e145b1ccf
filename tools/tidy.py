#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""clang-tidy over the sources of a configured and built folder; clean results are remembered.

  tidy.py BUILD [PATH...]     all of src and tools, or the sources named; exit code 1 on findings

A source counts as clean for as long as it, every header of the repository that it includes, its
flags and .clang-tidy stay the same: BUILD/tidy holds a file named by the hash of all these.
Sources are checked in batches (tools/tidy_batch.py), which takes a fifth of the time. A finding
counts only if it also occurs in the source alone, which is checked again for it.
"""
import concurrent.futures
import dataclasses
import functools
import hashlib
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading

import compile_unit
import tidy_batch

ROOT = pathlib.Path(__file__).resolve().parents[1]
PROGRAM = "clang-tidy-14"
# The path-sensitive checks double the time: they run where external bytes are parsed.
ANALYZED = ("src/base/", "src/onnx/", "src/engine/")
NOT_ANALYZED = ("src/onnx/ops/",)
ANALYZER = "-*,clang-analyzer-*,-clang-analyzer-optin.performance.Padding"
BATCH = 24
# Flags of g++ alone, and of units of sources (cmake/units.cmake).
NOT_CLANGS = ("-Winvalid-pch", "-Wno-shadow", "-Wno-subobject-linkage")


@functools.cache
def file_hash(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


def dependencies(build):
    """Object file -> files of the repository that it was compiled from, as ninja recorded them."""
    text = subprocess.run(["ninja", "-C", str(build), "-t", "deps"], capture_output=True, text=True,
                          check=True).stdout
    result, current = {}, None
    for line in text.splitlines():
        if line.startswith("    ") and current is not None:
            path = (build / line.strip()).resolve()
            if path.is_relative_to(ROOT):
                current.append(path)
        elif ": #deps" in line:
            current = result.setdefault(line.split(":", 1)[0], [])
    return result


def object_of(entry):
    """The object file of a compile command."""
    found = re.search(r" -o (\S+)", entry["command"])
    return found.group(1) if found else ""


def key_of(flags, files, settings):
    parts = [settings, *flags, *(f"{path} {file_hash(path)}" for path in sorted(files))]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def flags_of(entry):
    """A compile command without its input and output and what only g++ reads."""
    words = shlex.split(entry["command"])
    out = []
    for word in words[1:]:
        after = out[-1] if out else ""
        if after in ("-o", "-c"):
            out.pop()
        elif after == "-include" and word.endswith("cmake_pch.hxx"):
            out.pop()
        elif word not in NOT_CLANGS:
            out.append(word)
    return out


def sources_of(entry):
    """The sources that a compile command compiles: several of a unit."""
    source = pathlib.Path(entry["directory"], entry["file"]).resolve()
    return [path.resolve() for path in compile_unit.sources_in(source)] or [source]


def is_analyzed(source):
    name = str(source.relative_to(ROOT))
    return name.startswith(ANALYZED) and not name.startswith(NOT_ANALYZED)


def run_tidy(path, flags, *options):
    command = [PROGRAM, "--quiet", *options, str(path), "--", *flags]
    done = subprocess.run(command, cwd=ROOT, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    lines = [line for line in done.stdout.splitlines() if not line.endswith("warnings generated.")]
    return done.returncode == 0, "\n".join(lines)


@dataclasses.dataclass
class Task:
    """A source to check; tasks with equal flags may share a batch."""

    source: pathlib.Path
    flags: list
    headers: list
    key: pathlib.Path
    analyze: bool = False


class Report:
    """Findings of all threads."""

    def __init__(self):
        self.lock = threading.Lock()
        self.bad = set()
        self.alone = 0
        self.said = set()

    def clean(self, tasks):
        for task in tasks:
            task.key.touch()

    def found(self, task, text):
        with self.lock:
            self.bad.add(task.source)
            begin = r"^(?=/[^:\n]+:\d+:\d+: (?:error|warning): )"
            # a header's findings are printed once
            for block in re.split(begin, text, flags=re.MULTILINE):
                if block.strip() and block not in self.said:
                    self.said.add(block)
                    print(block.rstrip("\n"), flush=True)


def check_alone(task, report):
    options = [f"--checks={ANALYZER}"] if task.analyze else []
    good, text = run_tidy(task.source, task.flags, *options)
    with report.lock:
        report.alone += not task.analyze
    if good:
        report.clean([task])
    else:
        report.found(task, text)
    return good


def check_batch(tasks, folder, report):
    """Checks the tasks in batches, then those with findings alone."""
    while len(tasks) > 1:
        batch = tidy_batch.Batch([task.source for task in tasks])
        path = folder / f"batch_{threading.get_ident()}.cpp"
        path.write_text(batch.text, encoding="utf-8")
        places = sorted({f"-iquote{task.source.parent}" for task in tasks})
        good, text = run_tidy(path, [*tasks[0].flags, *places])
        path.unlink()
        if good:
            report.clean(tasks)
            return
        findings = batch.findings(path, text)
        named = {finding.source for finding in findings}
        headers = {pathlib.Path(finding.path) for finding in findings if finding.source is None}
        suspects = [task for task in tasks
                    if task.source in named or headers.intersection(task.headers)]
        if not suspects:
            break
        rest = [task for task in tasks if task not in suspects]
        for task in suspects:
            check_alone(task, report)
        if not any(finding.is_error for finding in findings):
            report.clean(rest)
            return
        tasks = rest
    for task in tasks:
        check_alone(task, report)


def wanted(source, chosen):
    if chosen:
        return any(source.is_relative_to(path) for path in chosen)
    return any(source.is_relative_to(ROOT / folder) for folder in ("src", "tools"))


def tasks_of(build, chosen, cache):
    """All requested sources, and those not known to be clean."""
    version = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True, check=True)
    settings = version.stdout + file_hash(ROOT / ".clang-tidy")
    files = dependencies(build)
    tasks, seen = [], set()
    for entry in json.loads((build / "compile_commands.json").read_text()):
        headers = files.get(object_of(entry))
        flags = flags_of(entry)
        for source in sources_of(entry):
            if not wanted(source, chosen) or source in seen:
                continue
            seen.add(source)
            if headers is None:
                sys.exit(f"{source} is not compiled yet in {build}: its headers are unknown")
            for analyze in [False, True] if is_analyzed(source) else [False]:
                key = key_of(flags, [*headers, source], settings + (ANALYZER if analyze else ""))
                tasks.append(Task(source, flags, headers, cache / key, analyze))
    return tasks, [task for task in tasks if not task.key.is_file()]


def batches_of(tasks):
    """Neighbours with equal flags, in parts of equal size."""
    groups = {}
    for task in sorted(tasks, key=lambda task: task.source):
        groups.setdefault(tuple(task.flags), []).append(task)
    for group in groups.values():
        count = -(-len(group) // BATCH)
        for i in range(count):
            yield group[len(group) * i // count:len(group) * (i + 1) // count]


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    chosen = [pathlib.Path(name).resolve() for name in sys.argv[2:]]
    cache = build / "tidy"
    cache.mkdir(exist_ok=True)
    tasks, work = tasks_of(build, chosen, cache)
    report = Report()
    threads = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory(dir=cache) as name, \
            concurrent.futures.ThreadPoolExecutor(threads) as pool:
        folder = pathlib.Path(name)
        shutil.copy(ROOT / ".clang-tidy", folder)  # the build need not lie below the root
        jobs = [pool.submit(check_alone, task, report) for task in work if task.analyze]
        jobs += [pool.submit(check_batch, batch, folder, report)
                 for batch in batches_of([task for task in work if not task.analyze])]
        for job in concurrent.futures.as_completed(jobs):
            job.result()
    sources = {task.source for task in tasks}
    fresh = {task.source for task in work}
    print(f"{len(sources) - len(report.bad)} sources clean ({len(sources - fresh)} known before, "
          f"{report.alone} looked at alone), {len(report.bad)} with findings")
    return 1 if report.bad else 0


if __name__ == "__main__":
    sys.exit(main())
