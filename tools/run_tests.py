#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The stages of `./dev test`, each timed; a failing one does not stop the others.

  run_tests.py [STAGE...]     all stages but tsan, or those named; exit code 1 when anything failed

Rows of stages run concurrently, since few stages keep two cores busy; how far each stage is shows
every half minute, its output when it ends. Each stage's whole output is in build/logs/STAGE.log. The
last line counts what the stages counted: one for a build, a check or a fuzz target, and every case
of the C++ and Python tests.
"""
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree

import cold_cache
import fuzz

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = ROOT / "build"
FUZZ_BUILD = BUILD / "fuzz"
TSAN_BUILD = BUILD / "tsan"
LOGS = BUILD / "logs"
SHOWN_LINES = 80  # of the log of a failed stage
GOOD_LINES = 6  # of a passed one
SHOWN_WORDS = 24  # of a command
FAILURE_LINES = 25  # of a failed C++ test
CORES = len(os.sched_getaffinity(0))
NOT_XML = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
PROGRESS_SECONDS = 30
PROGRESS_COLUMNS = 100
HANG_SECONDS = 6 * 3600  # a test program that runs longer hangs; no slow machine comes near it


@dataclasses.dataclass
class Counts:
    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped


def short_form(command):
    """A command's line for a log: of many words, the first ones and how many follow."""
    shown = list(map(str, command))
    if len(shown) > SHOWN_WORDS:
        shown[SHOWN_WORDS:] = [f"... ({len(shown) - SHOWN_WORDS} more)"]
    return " ".join(shown)


def run(log, command, **options):
    """Runs a command into `log`; its exit code."""
    print("$", short_form(command), file=log, flush=True)
    return subprocess.run(list(map(str, command)), stdout=log, stderr=subprocess.STDOUT, cwd=ROOT,
                          check=False, **options).returncode


def one(code):
    return Counts(passed=int(code == 0), failed=int(code != 0))


def junit_counts(path):
    """Counts of a JUnit file, as pytest and GoogleTest write it: a message may hold any bytes."""
    text = path.read_text(encoding="utf-8", errors="replace")
    total = Counts()
    try:
        root = xml.etree.ElementTree.fromstring(NOT_XML.sub("?", text))
    except xml.etree.ElementTree.ParseError as error:
        print(f"{path} is no report: {error}; its program counts as one failure", flush=True)
        return Counts(failed=1)
    for case in root.iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            total.failed += 1
        elif case.find("skipped") is not None or case.get("status") == "notrun":
            total.skipped += 1
        else:
            total.passed += 1
    return total


def configure(log, preset, folder, *options):
    if all((folder / name).is_file() for name in ("build.ninja", "compile_commands.json")):
        return 0
    return run(log, ["cmake", "--preset", preset, *options])


def stage_setup(log):
    """Installs the packages that compiling does not need: most Python packages, NVRTC."""
    return one(run(log, [ROOT / "dev", "setup"]))


def stage_build(log):
    code = (configure(log, "dev", BUILD, *cold_cache.options()) or
            run(log, ["ninja", "-C", BUILD, "-j", CORES, "-k", "0"]))
    return one(code)


def stage_format(log):
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "--", "*.cpp", "*.h",
                             "*.cuh"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    sources = [name for name in listed.splitlines() if (ROOT / name).is_file()]
    return one(run(log, ["clang-format-14", "--dry-run", "-Werror", *sources]))


def stage_tree(log):
    return one(run(log, [sys.executable, "tools/check_tree.py"]))


def failures_of(name, text):
    """From ctest's output: the lines of a program's failed tests; of one that died, the last."""
    ending = r" +Start +\d+: |\d+% tests passed"
    found = re.search(rf"Test +#\d+: {re.escape(name)} .*\n((?:(?!{ending}).*\n)*)", text)
    lines = found[1].splitlines() if found else []
    failed, test = [], []
    for line in lines:
        test = [] if line.startswith("[ RUN ") else test
        test.append(line)
        if line.startswith("[  FAILED  ]") and test[0].startswith("[ RUN "):
            failed += test[:FAILURE_LINES] + ["..."] * (len(test) > FAILURE_LINES)
            test = [line]
    ended = any(line.startswith("[==========] ") and " ran. " in line for line in lines)
    return failed if failed and ended else failed + lines[-FAILURE_LINES:]


def stage_ctest(log):
    """All GoogleTest programs; a failure that is missing in the report counts as well."""
    reports = BUILD / "reports" / "ctest"
    shutil.rmtree(reports, ignore_errors=True)
    reports.mkdir(parents=True)
    code = run(log, ["ctest", "--test-dir", BUILD, "--output-on-failure", "--timeout", HANG_SECONDS,
                     "--no-tests=error"], env=os.environ | {"GTEST_OUTPUT": f"xml:{reports}/"})
    counts = {path.stem: junit_counts(path) for path in reports.glob("*.xml")}
    log.flush()
    text = pathlib.Path(log.name).read_text(encoding="utf-8", errors="replace")
    total = Counts()
    # The list at the end of ctest's output: "  8 - passes (Failed)".
    for name in re.findall(r"^\t? *\d+ - (\S+) \((?!Disabled|Skipped)", text, re.MULTILINE):
        if counts.get(f"test_{name}", Counts()).failed == 0:
            total.failed += 1
        print(f"\n{name}:", *failures_of(name, text), sep="\n", file=log, flush=True)
    for one_program in counts.values():
        total.add(one_program)
    if code != 0 and total.failed == 0:
        total.failed = 1
    return total


def run_pytest(log, name, *which):
    report = BUILD / "reports" / f"{name}.xml"
    report.unlink(missing_ok=True)
    code = run(log, [sys.executable, "-m", "pytest", "-q", "-ra", "--color=no", "-p",
                     "no:cacheprovider", f"--junitxml={report}", *which])
    total = junit_counts(report) if report.is_file() else Counts()
    if code != 0 and total.failed == 0:
        total.failed = 1
    return total


# Tests of servers, which mostly wait for other processes.
SERVING_TESTS = ("test_kubernetes*.py", "test_ray_*.py", "test_serve*.py", "test_triton_*.py")


def stage_pytest(log):
    """All Python tests but those of the stage 'serving'."""
    return run_pytest(log, "pytest", "tests", *(f"--ignore-glob=*/{name}" for name in SERVING_TESTS))


def stage_serving(log):
    folder = ROOT / "tests" / "python"
    return run_pytest(log, "serving", *sorted(path for name in SERVING_TESTS
                                              for path in folder.glob(name)))


# Tests of the CPU backend's loops, which depend on the machine's instruction sets.
ISA_TESTS = {
    "test_backends_cpu": "*",
    "test_ops": "*OpCases.*",
    "test_conformance": "*EveryCaseIsAsListed/engine",
}
# oneDNN's names of limits, and the CPU flags (of /proc/cpuinfo) that each needs.
ISA_LEVELS = {
    "SSE41": {"sse4_1"},
    "AVX2": {"avx2", "fma", "f16c"},
    "AVX2_VNNI": {"avx2", "fma", "f16c", "avx_vnni"},
    "AVX512_CORE": {"avx512f", "avx512bw", "avx512vl", "avx512dq"},
    "AVX512_CORE_VNNI": {"avx512f", "avx512bw", "avx512vl", "avx512dq", "avx512_vnni"},
    "AVX512_CORE_AMX": {"avx512_vnni", "avx512_bf16", "amx_tile", "amx_int8", "amx_bf16"},
}


def isa_levels():
    """The levels of this machine, lowest first."""
    flags = re.search(r"^flags\s*:(.*)$", pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8"),
                      re.MULTILINE)
    has = set(flags.group(1).split()) if flags else set()
    return [level for level, needed in ISA_LEVELS.items() if needed <= has]


def stage_isa(log):
    """Tests of the CPU backend as on every lesser CPU: limits oneDNN and own loops in turn."""
    reports = BUILD / "reports" / "isa"
    shutil.rmtree(reports, ignore_errors=True)
    total = Counts()
    said = []
    suite = BUILD / "onnx_suite"
    if not suite.is_dir() and run(log, [sys.executable, "tests/conformance/export_suite.py", suite]):
        return Counts(failed=1)
    for level in isa_levels():
        at_level = Counts()
        for name, wanted in ISA_TESTS.items():
            report = reports / f"{level}_{name}.xml"
            code = run(log, [BUILD / "tests" / name, f"--gtest_filter={wanted}",
                             f"--gtest_output=xml:{report}"],
                       env=os.environ | {"ONEDNN_MAX_CPU_ISA": level,
                                         "INGOT_SUITE": str(suite)})
            counts = junit_counts(report) if report.is_file() else Counts()
            counts.failed += int(code != 0 and counts.failed == 0)
            at_level.add(counts)
        said.append(f"{level}: {at_level.passed} passed, {at_level.failed} failed, "
                    f"{at_level.skipped} skipped")
        total.add(at_level)
    print(*said, sep="\n", file=log, flush=True)
    return total


def fuzz_one(target, seconds):
    """Runs one target; its new inputs and crashes stay below build/fuzz."""
    line = fuzz.command(target, seconds, FUZZ_BUILD / "corpus" / target.name,
                        FUZZ_BUILD / "artifacts" / target.name)
    with open(LOGS / f"{target.name}.log", "w", encoding="utf-8") as log:
        return target.name, run(log, line, env=fuzz.ASAN | os.environ)


def stage_fuzz(log):
    sources = sorted((ROOT / "tests" / "fuzz").glob("fuzz_*.cpp"))
    names = [source.stem for source in sources]
    beside = max(CORES // 2, 1)  # for the other stages
    code = configure(log, "fuzz", FUZZ_BUILD) or run(log, ["ninja", "-C", FUZZ_BUILD, "-j", beside,
                                                               *names])
    if code != 0:
        return Counts(failed=max(len(names), 1))
    total = Counts()
    seconds = int(os.environ.get("FUZZ_SECONDS", "30"))
    targets = [FUZZ_BUILD / "tests" / name for name in names]
    with concurrent.futures.ThreadPoolExecutor(beside) as pool:
        for name, code in pool.map(lambda target: fuzz_one(target, seconds), targets):
            total.add(one(code))
            text = (LOGS / f"{name}.log").read_text(encoding="utf-8", errors="replace")
            print(f"{name}: {fuzz.runs_of(text)} runs,",
                  "clean" if code == 0 else "FAILED", file=log, flush=True)
            if code != 0:
                print(*text.splitlines()[-50:], sep="\n", file=log, flush=True)
    return total


# Tests with threads.
TSAN_TESTS = {
    "test_threads": "*",
    "test_lean": "LeanThreads.*",
    "test_base": "thread_pool.*:Log.*:Interrupt.*",
    "test_plan": "RuntimeCache.*:CacheInMemory.*:TimingCache.*",
    "test_engine": "*Contexts.*",
    "test_onnxruntime": "SessionThreads.*:ScratchPool.*",
    "test_backends_cuda": "ProgramCache.*:Tuner.*:Specialise.*:Streams.*",
    "test_triton": "-TritonEmulated.*:*FailingAllocations*:*AThousandLoads*",  # which count or fail allocations
}


def stage_tsan(log):
    """Tests of threads under ThreadSanitizer, test_threads in several orders."""
    code = configure(log, "tsan", TSAN_BUILD) or run(log, ["ninja", "-C", TSAN_BUILD, "-j", CORES,
                                                               *TSAN_TESTS])
    if code != 0:
        return Counts(failed=len(TSAN_TESTS))
    reports = BUILD / "reports" / "tsan"
    shutil.rmtree(reports, ignore_errors=True)
    total = Counts()
    for name, wanted in TSAN_TESTS.items():
        seeds = int(os.environ.get("TSAN_SEEDS", "5")) if name == "test_threads" else 1
        for seed in range(1, seeds + 1):
            report = reports / f"{name}_{seed}.xml"
            code = run(log, [TSAN_BUILD / "tests" / name, f"--gtest_filter={wanted}",
                             f"--gtest_output=xml:{report}"],
                       env=os.environ | {"INGOT_THREADS_SEED": str(seed),
                                         "TSAN_OPTIONS": "second_deadlock_stack=1"})
            counts = junit_counts(report) if report.is_file() else Counts()
            counts.failed += int(code != 0 and counts.failed == 0)  # a race fails the program
            total.add(counts)
    return total


def stage_tidy(log):
    if not (BUILD / "compile_commands.json").is_file():
        print("there is no build: run the stage 'build' first", file=log)
        return Counts(failed=1)
    return one(run(log, [sys.executable, "tools/tidy.py", BUILD]))


STAGES = {"setup": stage_setup, "build": stage_build, "format": stage_format, "tree": stage_tree,
          "ctest": stage_ctest, "isa": stage_isa, "pytest": stage_pytest, "serving": stage_serving, "fuzz": stage_fuzz,
          "tidy": stage_tidy, "tsan": stage_tsan}
WHEN_NAMED = {"tsan"}  # compiles everything once more
# Stages of a row follow each other, in this order, and after those they need.
ROWS = (("build", "ctest", "isa"), ("setup", "format", "tree", "fuzz", "tidy", "tsan"),
        ("serving", "pytest"))
NEEDS = {"ctest": {"build", "setup"}, "isa": {"build", "setup"}, "pytest": {"build", "setup"},
         "serving": {"build", "setup"}, "tidy": {"build"}}


@dataclasses.dataclass
class Result:
    counts: Counts
    seconds: float  # on the clock; other stages may have run at the same time
    cpu_seconds: float


def run_here(name):
    """One stage in this process; its counts as JSON in LOGS/STAGE.json."""
    with open(LOGS / f"{name}.log", "w", encoding="utf-8") as log:
        try:
            counts = STAGES[name](log)
        except Exception as error:  # a stage that cannot start is a failure, not the end
            print(f"{type(error).__name__}: {error}", file=log, flush=True)
            counts = Counts(failed=1)
    (LOGS / f"{name}.json").write_text(json.dumps(dataclasses.asdict(counts)), encoding="utf-8")
    return 0


def run_stage(name, printing):
    """Runs one stage in a process of its own, which measures its CPU time."""
    report = LOGS / f"{name}.json"
    report.unlink(missing_ok=True)
    with printing:
        print(f"-- {name} begins", flush=True)
    start = time.monotonic()
    child = subprocess.Popen([sys.executable, __file__, "--here", name])
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    counts = Counts(failed=1)
    if report.is_file():
        counts = Counts(**json.loads(report.read_text(encoding="utf-8")))
    result = Result(counts, time.monotonic() - start, used.ru_utime + used.ru_stime)
    show(name, result, printing)
    return result


def show(name, result, printing):
    path = LOGS / f"{name}.log"
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else "no log"
    lines = text.splitlines()
    failed = result.counts.failed
    shown = lines[-SHOWN_LINES:] if failed else lines[-GOOD_LINES:]
    with printing:
        print(f"\n== {name}{': FAILED' if failed else ''}")
        if len(shown) < len(lines):
            print(f"... all of it is in {path.relative_to(ROOT)}")
        print(*shown, sep="\n")
        print(f"== {name} ends after {result.seconds:.0f} s\n", flush=True)


def last_line(path):
    """The last line of a log that may still grow."""
    with open(path, "rb") as log:
        log.seek(max(path.stat().st_size - 4096, 0))
        lines = log.read().decode("utf-8", errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def tell_progress(running, ended, printing):
    """Until all has ended: each running stage's seconds and the last line of its log."""
    while not ended.wait(PROGRESS_SECONDS):
        for name, start in list(running.items()):
            path = LOGS / f"{name}.log"
            line = last_line(path) if path.is_file() else ""
            with printing:
                print(f"-- {name}, {time.monotonic() - start:.0f} s: {line[:PROGRESS_COLUMNS]}",
                      flush=True)


def run_all(names):
    """Name -> Result, in the order of STAGES."""
    done = {name: threading.Event() for name in names}
    results, running = {}, {}
    printing = threading.Lock()
    ended = threading.Event()

    def run_row(row):
        for name in row:
            try:
                for needed in NEEDS.get(name, set()) & done.keys():
                    done[needed].wait()
                running[name] = time.monotonic()
                results[name] = run_stage(name, printing)
            finally:
                running.pop(name, None)
                done[name].set()

    rows = [[name for name in row if name in names] for row in ROWS]
    with concurrent.futures.ThreadPoolExecutor(len(rows) + 1) as pool:
        progress = pool.submit(tell_progress, running, ended, printing)
        try:
            for job in [pool.submit(run_row, row) for row in rows]:
                job.result()
        finally:
            ended.set()
        progress.result()
    return {name: results[name] for name in STAGES if name in results}


def summary(results, seconds):
    """The table; the exit code."""
    total = Counts()
    print(f"\n{'stage':<10}{'seconds':>9}{'cpu':>9}{'passed':>9}{'failed':>9}{'skipped':>9}")
    for name, r in results.items():
        total.add(r.counts)
        print(f"{name:<10}{r.seconds:>9.1f}{r.cpu_seconds:>9.1f}{r.counts.passed:>9}"
              f"{r.counts.failed:>9}{r.counts.skipped:>9}")
    cpu = sum(r.cpu_seconds for r in results.values())
    print(f"{'all':<10}{seconds:>9.1f}{cpu:>9.1f}{total.passed:>9}{total.failed:>9}"
          f"{total.skipped:>9}\n")
    skipped = f", {total.skipped} skipped" if total.skipped else ""
    print(f"{total.passed} passed, {total.failed} failed{skipped}", flush=True)
    return 1 if total.failed else 0


def main():
    LOGS.mkdir(parents=True, exist_ok=True)
    if sys.argv[1:2] == ["--here"]:
        return run_here(sys.argv[2])
    names = sys.argv[1:] or [name for name in STAGES if name not in WHEN_NAMED]
    unknown = [name for name in names if name not in STAGES]
    if unknown:
        sys.exit(f"unknown stage '{unknown[0]}'; there are: {' '.join(STAGES)}")
    start = time.monotonic()
    results = run_all(names)
    return summary(results, time.monotonic() - start)


if __name__ == "__main__":
    sys.exit(main())
