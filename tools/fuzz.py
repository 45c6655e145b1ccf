#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the fuzz targets for a long time on many cores; prints a line of JSON for each target:
its processes, runs, and crashes.

  fuzz.py [--build DIR] [--minutes N] [--cores K] [--only TARGET ...] [--output DIR]

K processes run at once; targets in HEAVY, whose runs take longest, get more of them. With fewer
cores than targets the time is shared out, so that the whole takes N minutes in any case. Processes of
one target share their new inputs. After a crash, a hang (25 s) or 2 GiB of memory the process begins
again; each such input stays below --output. Nothing found: exit code 0.

DIR needs no source tree beside it: copy the programs DIR/tests/fuzz_*, this file, and tests/fuzz/seeds.
Only fuzz_emulated, which compiles kernels for the host, needs the tree it was built from, and g++."""
import argparse
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
FUZZ = ROOT / "tests" / "fuzz"
HEAVY = {"fuzz_emulated": 3, "fuzz_graph": 3, "fuzz_run": 5, "fuzz_slim": 2}  # shares of the time; the others one
HUNG_S = 25
GRACE_S = 120  # for what a process does after its time: one input that hangs, statistics
# Short stacks and a small quarantine of freed blocks: both else take as long as the targets. Sizes
# that no machine has are refused as `new` refuses them. The caller's own settings win.
ASAN = {"ASAN_OPTIONS": "malloc_context_size=4:quarantine_size_mb=32:allocator_may_return_null=1"}
RUNS = re.compile(r"stat::number_of_executed_units:\s*(\d+)")
AT = re.compile(r"^#(\d+)\s", re.MULTILINE)


def command(target, seconds, found, artifacts):
    """The command line that runs a target; its new inputs go to `found`, its crashes to `artifacts`."""
    for folder in (found, artifacts):
        folder.mkdir(parents=True, exist_ok=True)
    short = target.name.removeprefix("fuzz_")
    seeds = [folder for folder in (FUZZ / "corpus" / target.name, FUZZ / "seeds" / short)
             if folder.is_dir()]
    # Entropic scheduling costs more than the runs of our targets, which have many features.
    return [target, f"-max_total_time={seconds}", f"-timeout={HUNG_S}", "-rss_limit_mb=2048",
            "-entropic=0", "-print_final_stats=1", f"-artifact_prefix={artifacts}/", found, *seeds]


def runs_of(text):
    """How many runs the log of one process tells of; a killed process tells its last milestone."""
    final = RUNS.search(text)
    return int(final.group(1)) if final else max(map(int, AT.findall(text)), default=0)


@dataclasses.dataclass
class Target:
    program: pathlib.Path
    output: pathlib.Path
    processes: int = 0
    seconds: float = 0
    runs: int = 0
    crashes: list = dataclasses.field(default_factory=list)

    @property
    def name(self):
        return self.program.name

    def run(self, seconds):
        """One process after the other until the time is over; what they counted."""
        end, runs, crashes = time.monotonic() + seconds, 0, []
        while (left := round(end - time.monotonic())) > 0:
            with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as log:
                line = command(self.program, left, self.output / "corpus" / self.name,
                               self.output / "artifacts" / self.name)
                try:
                    code = subprocess.run(list(map(str, line)), stdout=log, stderr=subprocess.STDOUT,
                                          timeout=left + GRACE_S, env=ASAN | os.environ,
                                          check=False).returncode
                except subprocess.TimeoutExpired:
                    code = None
                log.seek(0)
                text = log.read()
            runs += runs_of(text)
            if code == 0:
                break
            summary = re.findall(r"^(?:SUMMARY|==\d+==\s*ERROR): .*", text, re.MULTILINE)
            crashes.append(summary[-1] if summary else f"exit code {code}: {text[-500:]}")
            print(f"{self.name}: {crashes[-1]}", file=sys.stderr, flush=True)
            if runs == 0:  # it does not start: no second try
                break
        return runs, crashes

    def row(self):
        return {"target": self.name, "processes": self.processes, "seconds": round(self.seconds),
                "runs": self.runs, "crashes": len(self.crashes), "found": sorted(set(self.crashes)),
                "corpus": sum(1 for _ in (self.output / "corpus" / self.name).iterdir())}


def shares(targets, cores):
    """How many processes each target gets, and which part of the whole time each of them runs."""
    weights = {t.name: HEAVY.get(t.name, 1) for t in targets}
    whole = sum(weights.values())
    counts = {name: max(1, weight * cores // whole) for name, weight in weights.items()}
    spare = cores - sum(counts.values())
    for name in sorted(weights, key=weights.get, reverse=True)[:max(spare, 0)]:
        counts[name] += 1
    return counts, min(1.0, cores / sum(counts.values()))


def fuzz(targets, seconds, cores):
    counts, part = shares(targets, cores)
    with concurrent.futures.ThreadPoolExecutor(cores) as pool:
        futures = {}
        for target in targets:
            target.processes = counts[target.name]
            for _ in range(target.processes):
                futures[pool.submit(target.run, seconds * part)] = target
        for future in concurrent.futures.as_completed(futures):
            target, (runs, crashes) = futures[future], future.result()
            target.runs += runs
            target.crashes += crashes
            target.seconds += seconds * part


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "fuzz",
                        help="the build folder of the preset 'fuzz'")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--cores", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--only", nargs="+", default=[], metavar="TARGET", help="such as fuzz_graph")
    parser.add_argument("--output", type=pathlib.Path,
                        help="where new inputs and crashes go (default: the build folder)")
    o = parser.parse_args(arguments)
    programs = sorted(p for p in (o.build / "tests").glob("fuzz_*")
                      if p.is_file() and os.access(p, os.X_OK))
    unknown = set(o.only) - {p.name for p in programs}
    if unknown or not programs:
        parser.error(f"{o.build / 'tests'} has no program "
                     f"{', '.join(sorted(unknown)) or 'fuzz_*'}; build the preset 'fuzz' first")
    output = (o.output or o.build).resolve()
    targets = [Target(p.resolve(), output) for p in programs if not o.only or p.name in o.only]
    fuzz(targets, o.minutes * 60, o.cores)
    for target in targets:
        print(json.dumps(target.row()), flush=True)
    return 1 if any(t.crashes or t.runs == 0 for t in targets) else 0


if __name__ == "__main__":
    sys.exit(main())
