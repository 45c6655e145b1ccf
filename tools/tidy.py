#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""clang-tidy over the sources of a configured and built folder; clean results are remembered.

  tidy.py BUILD [PATH...]     all of src and tools, or the sources named; exit code 1 on findings

A source counts as clean for as long as it, every header of the repository that it includes, its
flags and .clang-tidy stay the same: BUILD/tidy holds a file named by the hash of all these.
"""
import concurrent.futures
import functools
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PROGRAM = "clang-tidy-14"
# The path-sensitive checks double the time: they run where bytes from outside are handled.
ANALYZED = ("src/base/", "src/onnx/", "src/engine/")
NOT_ANALYZED = ("src/onnx/ops/",)
ANALYZER = "clang-analyzer-*,-clang-analyzer-optin.performance.Padding"


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


def key_of(entry, files, settings):
    parts = [settings, entry["command"], *(f"{path} {file_hash(path)}" for path in sorted(files))]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def extra_checks(source):
    name = str(source.relative_to(ROOT))
    analyzed = name.startswith(ANALYZED) and not name.startswith(NOT_ANALYZED)
    return [f"--checks={ANALYZER}"] if analyzed else []


def run_tidy(build, source):
    command = [PROGRAM, "-p", str(build), "--quiet", *extra_checks(source), str(source)]
    done = subprocess.run(command, cwd=ROOT, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    lines = [line for line in done.stdout.splitlines() if not line.endswith("warnings generated.")]
    return done.returncode == 0, "\n".join(lines)


def wanted(source, chosen):
    if chosen:
        return any(source.is_relative_to(path) for path in chosen)
    return any(source.is_relative_to(ROOT / folder) for folder in ("src", "tools"))


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    chosen = [pathlib.Path(name).resolve() for name in sys.argv[2:]]
    cache = build / "tidy"
    cache.mkdir(exist_ok=True)
    version = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True, check=True)
    settings = version.stdout + file_hash(ROOT / ".clang-tidy")
    files = dependencies(build)
    work = {}
    clean = 0
    for entry in json.loads((build / "compile_commands.json").read_text()):
        source = pathlib.Path(entry["directory"], entry["file"]).resolve()
        if not wanted(source, chosen) or source in work:
            continue
        headers = files.get(object_of(entry))
        if headers is None:
            sys.exit(f"{source} is not compiled yet in {build}: its headers are unknown")
        key = key_of(entry, [*headers, source],
                     "\n".join([settings, *extra_checks(source)]))
        if (cache / key).is_file():
            clean += 1
        else:
            work[source] = key
    bad = 0
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        jobs = {pool.submit(run_tidy, build, source): source for source in work}
        for job in concurrent.futures.as_completed(jobs):
            good, text = job.result()
            if good:
                (cache / work[jobs[job]]).touch()
            else:
                bad += 1
                print(text, flush=True)
    print(f"{clean + len(work) - bad} sources clean ({clean} known before), {bad} with findings")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
