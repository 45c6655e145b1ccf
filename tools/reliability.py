#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Breaks what surrounds Ingot, many times, and counts how it ends; writes the table of
docs/reliability.md.

  reliability.py [--build DIR] [--every N] [--only TEXT ...] [--write]
      N: only each N-th injection; TEXT: only the tests of classes that have one of these in their
      title, the page's other rows stay; --write: the page

It breaks the command, and runs the tests that break parts of Ingot (tools/reliability_tests.py),
which tell how many injections they made. A case is bad when the process crashes or hangs, when it
fails without an error's text, when it says success and the result is another, or when a file is
neither what it was nor the whole new one. Nothing bad: exit code 0."""
import argparse
import concurrent.futures
import errno
import pathlib
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time

import numpy

import reliability_builds
import reliability_tests

ROOT = pathlib.Path(__file__).resolve().parents[1]
MODEL = ROOT / "examples" / "digits" / "digits.onnx"
PAGE = ROOT / "docs" / "reliability.md"
ERRNOS = [errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.ENOMEM, errno.EMFILE]
LIMIT_S = 60


class Surroundings:
    """A folder, the command, and the library that breaks calls."""

    def __init__(self, build, folder):
        self.ingot = build / "ingot"
        self.folder = pathlib.Path(folder)
        self.shim = self.folder / "fault_shim.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", self.shim, ROOT / "tests" / "faults" / "fault_shim.c"],
                       check=True)

    def samples(self):
        """Pictures to calibrate with."""
        folder = self.folder / "samples"
        folder.mkdir(exist_ok=True)
        for index, picture in enumerate(numpy.load(MODEL.parent / "held_out_images.npy")[:4]):
            numpy.save(folder / f"{index}.npy", picture[None])
        return folder

    def run(self, arguments, at=None, error=None, memory=None):
        """Exit code (negative: signal; None: it hung), and what was printed."""
        variables = {"PATH": "/usr/bin:/bin", "HOME": str(self.folder)}
        if at is not None:
            variables |= {"LD_PRELOAD": str(self.shim), "INGOT_FAULT_AT": str(at),
                          "INGOT_FAULT_LOG": str(self.folder / "calls"), "INGOT_FAULT_ERRNO": str(error)}

        def limit():
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            if memory is not None:
                resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        try:
            done = subprocess.run([self.ingot, *arguments], env=variables, preexec_fn=limit, timeout=LIMIT_S,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        except subprocess.TimeoutExpired:
            return None, "it hangs"
        return done.returncode, done.stdout.decode(errors="replace")

    def kill_after(self, arguments, seconds):
        """Kills the command then, where it has not ended; whether it was killed."""
        process = subprocess.Popen([self.ingot, *arguments], env={"PATH": "/usr/bin:/bin", "HOME": str(self.folder)},
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(seconds)
        process.kill()
        return process.wait() == -signal.SIGKILL

    def calls(self, arguments):
        """How many calls the program makes."""
        code, text = self.run(arguments, at=0, error=errno.EIO)
        if code != 0:
            raise RuntimeError(f"{arguments} fails undisturbed: {text}")
        return int((self.folder / "calls").read_text())


class Scenario:
    """One command line with the file that it writes, if any."""

    def __init__(self, place, name, arguments, output=None):
        self.place, self.name, self.arguments, self.output = place, name, [str(a) for a in arguments], output
        self.good = None
        code, text = place.run(self.arguments)
        if code != 0:
            raise RuntimeError(f"{name}: {text}")
        if output is not None:
            self.good = output.read_bytes()

    def prepare(self):
        if self.output is not None:
            self.output.write_bytes(b"what was there before")

    def fault(self, code, text, killed=False):
        """The fault in how it ended; "" for none."""
        if code is None or (code < 0 and not killed):
            return f"ended by {code}: {text[-200:]}"
        if code > 1:
            return f"exit code {code}"
        if code == 1 and "error" not in text:
            return f"no error's text: {text[-200:]}"
        if self.output is None:
            return ""
        found = self.output.read_bytes()
        if code == 0 and found != self.good:
            return "success, with another result"
        if found not in (self.good, b"what was there before"):
            return "the file is neither old nor new"
        left = [p.name for p in self.output.parent.iterdir() if p.name.startswith(self.output.name + ".")]
        return f"left behind: {left}" if left and not killed else ""


def scenarios(place):
    engine = place.folder / "in.engine"
    code, text = place.run(["build", str(MODEL), "-o", str(engine)])
    if code != 0:
        raise RuntimeError(text)
    key = place.folder / "key.pem"
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", key], check=True, capture_output=True)
    out = place.folder / "out"
    out.mkdir(exist_ok=True)
    return [
        Scenario(place, "build", ["build", MODEL, "-o", out / "e.engine"], out / "e.engine"),
        Scenario(place, "slim", ["slim", MODEL, "-o", out / "m.onnx"], out / "m.onnx"),
        Scenario(place, "quantize", ["quantize", "--int8", MODEL, "-o", out / "q.onnx"], out / "q.onnx"),
        Scenario(place, "calibrate", ["calibrate", MODEL, "--device=cpu", "--noCpuLibrary", "--data", place.samples(),
                                      "-o", out / "c.cache"], out / "c.cache"),
        Scenario(place, "sign", ["sign", engine, "--key", key, "-o", out / "s.engine"], out / "s.engine"),
        Scenario(place, "run", ["run", engine, "--device=cpu"]),
        Scenario(place, "inspect", ["inspect", engine, "--json"]),
        Scenario(place, "check", ["check", MODEL]),
    ]


def system_calls(scenario, every):
    """Rows: every call fails with each errno; every call kills."""
    count = scenario.place.calls(scenario.arguments)
    rows = []
    for title, errors in (("fails", ERRNOS), ("is killed at", ["kill"])):
        bad, injections, refused = [], 0, 0
        for index in range(0, count * len(errors), every):
            at, error = index // len(errors) + 1, errors[index % len(errors)]
            scenario.prepare()
            code, text = scenario.place.run(scenario.arguments, at=at, error=error)
            injections += 1
            refused += code != 0
            fault = scenario.fault(code, text, killed=error == "kill")
            if fault:
                bad.append(f"call {at}, {error if error == 'kill' else errno.errorcode[error]}: {fault}")
        what = f"each call on files and memory {title}" if title == "fails" else f"the process {title} each call"
        names = " (" + ", ".join(errno.errorcode[e] for e in errors) + ")" if title == "fails" else ""
        rows.append((f"`ingot {scenario.name}`: {what}{names}", injections, refused, bad))
    return rows


def little_memory(scenario, every):
    bad, refused, limits = [], 0, range(8 << 20, 136 << 20, 1 << 20)[::every]
    for memory in limits:
        scenario.prepare()
        code, text = scenario.place.run(scenario.arguments, memory=memory)
        refused += code != 0
        # Below some size the loader itself finds no room for the program: 127.
        fault = "" if code == 127 or (code == -11 and memory < 32 << 20) else scenario.fault(code, text)
        if fault:
            bad.append(f"{memory >> 20} MiB: {fault}")
    return [(f"`ingot {scenario.name}` with 8 to 135 MiB of address space", len(limits), refused, bad)]


def random_kills(scenario, every):
    """Killed at any moment, the command leaves the old file or the whole new one."""
    begin = time.monotonic()
    scenario.place.run(scenario.arguments)
    whole = time.monotonic() - begin
    draws, bad, killed, kills = random.Random(17), [], 0, 1000 // every
    for _ in range(kills):
        scenario.prepare()
        killed += scenario.place.kill_after(scenario.arguments, draws.uniform(0, whole))
        fault = scenario.fault(0 if scenario.output.read_bytes() == scenario.good else -9, "", killed=True)
        if fault:
            bad.append(fault)
    return [(f"`ingot {scenario.name}` is killed at a random moment", kills, killed, bad)]


def printed(row):
    name, injections, refused, bad = row
    return f"| {name} | {injections:,} | {refused:,} | {len(bad)} |"


def page(rows, every):
    lines = ["# What breaks, and how Ingot ends", "",
             "Written by `tools/reliability.py --write`: it breaks what surrounds the command, one thing at a time, runs the tests that "
             "break parts", "of Ingot, and counts. A case is bad when the process crashes or hangs, fails without an error's text, "
             "says success with another", "result, or leaves a file that is neither what it was nor the whole new one.", ""]
    if every > 1:
        lines += [f"Of the injections each {every}th was made.", ""]
    lines += ["| class | injections | ended early | bad |", "|---|---:|---:|---:|"]
    lines += [printed(row) for row in rows]
    lines += ["", "Ended early: the command or call said what is wrong, or was killed; where it did not, the result was right. "
              "CI makes a part of", "these injections in every run; fuzz targets (`tests/fuzz`), ThreadSanitizer and CUDA's "
              "memory checker (`tests/gpu`) count by themselves.", ""]
    return "\n".join(lines)


def replaced(rows, text):
    """The page with these rows of tests in place of its own, in the order of the classes; rows of
    classes that there are no longer go."""
    lines = text.splitlines(keepends=True)
    table = [i for i, line in enumerate(lines) if line.startswith("| ")][1:]
    titles = [c.title for c in reliability_tests.CLASSES]
    before = {line.split(" | ")[0][2:]: line for line in lines[table[0]:table[-1] + 1]}
    made = {row[0]: printed(row) + "\n" for row in rows}
    own = [line for title, line in before.items() if title.startswith("`ingot ") or title in reliability_builds.TITLES]
    tests = [made.get(title) or before.get(title) for title in titles]
    return "".join([*lines[:table[0]], *own, *filter(None, tests), *lines[table[-1] + 1:]])


def command_rows(place, every):
    rows = []
    for scenario in scenarios(place):
        rows += system_calls(scenario, every) + little_memory(scenario, every)
        if scenario.name in ("build", "sign"):
            rows += random_kills(scenario, every)
    rows += reliability_builds.rows(place, [MODEL], every)
    return rows + reliability_builds.host_rows(place, [MODEL]) + reliability_builds.cpu_rows(place, [MODEL])


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build", help="the folder with the command")
    parser.add_argument("--every", type=int, default=1, help="only each N-th injection")
    parser.add_argument("--only", nargs="+", default=[], metavar="TEXT", help="only classes of tests with this in their title")
    parser.add_argument("--write", action="store_true", help="write docs/reliability.md")
    o = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        place = Surroundings(o.build.resolve(), folder)
        with concurrent.futures.ThreadPoolExecutor() as pool:
            tests = pool.submit(reliability_tests.rows, place.ingot.parent, place.folder, o.every == 1, o.only)
            rows = (command_rows(place, o.every) if not o.only else []) + tests.result()
    for name, injections, refused, bad in rows:
        print(f"{len(bad)} bad of {injections}, {refused} ended early: {name}")
        for fault in bad[:5]:
            print(f"    {fault}")
    if o.write:
        PAGE.write_text(page(rows, o.every) if not o.only else replaced(rows, PAGE.read_text()))
    return 1 if any(row[-1] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
