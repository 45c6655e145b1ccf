# SPDX-License-Identifier: Apache-2.0
"""Rows of docs/reliability.md that come from tests: each runs in a program of its own and tells in
its report how many injections it made (tests/counts.h); tests that tell nothing count as one."""
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[1]
LIMIT_S = 3600


@dataclasses.dataclass
class Class:
    title: str
    program: str  # of build/tests, or a file of tests/python
    tests: str  # GoogleTest's filter, or pytest's -k
    every_allocation: bool = False
    parts: int = 1  # processes that share the allocations


CLASSES = [
    Class("malformed ONNX files, each with its error", "test_onnx", "*Malformed.GivesItsError/*"),
    Class("40 ONNX models cut at every length", "test_onnx", "SeedModels.EveryPrefix*"),
    Class("an ONNX file cut at every length", "test_onnx", "MalformedSeed.EveryTruncation*"),
    Class("an ONNX file with every bit flipped in turn", "test_onnx", "MalformedSeed.EveryFlippedBit*"),
    Class("sizes that lie or overflow, from models", "test_onnx", "ExternalData.SizesThatLie:Budgets.*"),
    Class("names of external data that lead elsewhere", "test_onnx",
          "ExternalData.Paths*:ExternalData.Symbolic*:ExternalData.Hard*:ExternalData.Special*:ExternalData.Nul*:"
          "ExternalData.Hidden*"),
    Class("external data and links that change places while they are read", "test_base", "*SwapRace.*"),
    Class("files that are written to links, folders, devices, and to names that change meanwhile", "test_base", "Places.*"),
    Class("outputs of commands to links, folders, pipes and devices", "test_output_places.py", "test_"),
    Class("pictures far larger than their files", "test_pictures.py", "test_"),
    Class("models, engines and arrays that lie: memory stays below 64 MiB and twice the file", "test_workflow", "HostileMemory.*"),
    Class("models as deep and long as the limits allow, on a stack of 256 KiB", "test_workflow", "LittleStack.*"),
    Class("an engine cut at every length", "test_engine", "Engine.EveryTruncationIsRefused"),
    Class("an engine with each bit of header and table flipped", "test_engine", "Engine.EveryBitOfHeaderAndTableIsGuarded"),
    Class("an engine with a sampled bit of the rest flipped", "test_engine", "Engine.SampledBitsOfThePayloadAreGuarded"),
    Class("weights with a flipped bit, by every use", "test_engine", "WeightCheck.*"),
    Class("engines of another format, machine or feature, and hostile ones with right checksums", "test_engine",
          "Engine.MalformedFiles*:Engine.HostileSections*:IoFormats.DamagedSections*"),
    Class("unsigned, forged and distrusted engines", "test_engine", "Trust.*"),
    Class("caches of kernels and timings: each call fails (six errors) or kills", "test_cache", "CacheFaults.*"),
    Class("caches that others planted, swapped or damaged", "test_cache",
          "RuntimeCache.Folders*:RuntimeCache.What*:RuntimeCache.Links*:RuntimeCache.Entries*:RuntimeCache.EveryDamaged*"),
    Class("kernels that processes share: each is compiled once", "test_backends_cuda", "CompileOnce.ProcessesShareTheWork"),
    Class("releases that share a folder or a file of kernels: each finds its own", "test_backends_cuda",
          "CompileOnce.ReleasesShare*:CompileOnce.AnotherCompiler*"),
    Class("processes killed while they hold a kernel's lock", "test_backends_cuda", "CompileOnce.LocksOfKilledProcessesAreFree"),
    Class("hostile and odd sizes through the kernels of emulated GPUs, with bounds checked", "test_backends_cuda",
          "HostileRuns.SeedsRunTheirKernels"),
    Class("a CUDA call finds no memory, each in turn", "test_backends_cuda", "Failures.OneRefusalLosesNothing"),
    Class("a CUDA call ends the device, each in turn, with five errors", "test_backends_cuda", "Failures.ADeadDeviceSaysSoAtOnce"),
    Class("device memory that an application's allocator refuses, each in turn", "test_api", "*ContextMemory.TheNthAllocationFails*"),
    Class("each allocation of memory fails: load, run, inspect", "test_api",
          "*FailingAllocations.WhileLoading/Cpu:*FailingAllocations.WhileRunning/Cpu:*FailingAllocations.WhileInspecting/Cpu",
          every_allocation=True),
    Class("each allocation of memory fails: build, parse, loops and conditionals", "test_api",
          "*FailingAllocations.WhileBuilding/Cpu:*FailingAllocations.WhileBuildingLoops*/Cpu:*FailingAllocations.WhileParsing/Cpu",
          every_allocation=True, parts=8),
    Class("allocations of memory fail, sampled: refit, caches, errors, a GPU's runs", "test_api",
          "*FailingAllocations.WhileRefitting*:"
          "*FailingAllocations.OfCaches*:*FailingAllocations.WhileErrors*:"
          "*FailingAllocations.WhileLoading/Gpu:*FailingAllocations.WhileRunning/Gpu"),
    Class("contexts and engines made, run and released: nothing is left", "test_api",
          "*MemoryBalance.TenThousandContexts*:*MemoryBalance.EnginesLeaveNothing*"),
    Class("misuse of the C++ API", "test_api", "*RuntimeMisuse.*:MisuseTest.*:RefitTest.Misuse"),
    Class("misuse of the Python API", "test_trt_misuse.py", "test_"),
    Class("engines of released formats", "test_golden_engines.py", "test_"),
    Class("signatures and keys, by the command and Python", "test_trust.py", "test_"),
    Class("outputs that are not finite", "test_check_finite.py", "test_"),
    Class("forked, spawned and served children of Python", "test_fork.py", "test_"),
]


def google_report(c, build, folder, whole, part):
    """Runs a class or one of its parts: injections, refused, what is bad."""
    report = folder / f"report{part}.json"
    report.unlink(missing_ok=True)
    variables = dict(os.environ)
    if whole:
        variables["INGOT_RELIABILITY"] = "1"
        if c.every_allocation:
            variables["INGOT_EVERY_ALLOCATION"] = f"{part}/{c.parts}"
    done = subprocess.run([build / "tests" / c.program, f"--gtest_filter={c.tests}", f"--gtest_output=json:{report}"],
                          env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT_S, check=False)
    if not report.exists():
        return 1, 0, [f"{c.program} ended by {done.returncode}: {done.stdout[-300:].decode(errors='replace')}"]
    injections, refused, bad = 0, 0, []
    for suite in json.loads(report.read_text())["testsuites"]:
        for test in suite["testsuite"]:
            if test["result"] != "COMPLETED":
                continue
            counted = "injections" in test
            injections += int(test["injections"]) if counted else 1
            refused += int(test["refused"]) if counted else 1
            bad += [f"{test['name']}: {failure['failure'][:300]}" for failure in test.get("failures", [])]
    return injections, refused, bad


def google_row(c, build, folder, whole):
    parts = range(1, (c.parts if whole else 1) + 1)
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        done = list(pool.map(lambda part: google_report(c, build, folder, whole, part), parts))
    return c.title, sum(d[0] for d in done), sum(d[1] for d in done), [fault for d in done for fault in d[2]]


def python_row(c, build, folder):
    report = folder / "report.xml"
    report.unlink(missing_ok=True)
    subprocess.run([sys.executable, "-m", "pytest", "-q", ROOT / "tests" / "python" / c.program, "-k", c.tests,
                    f"--junitxml={report}"], cwd=ROOT, env=dict(os.environ) | {"INGOT": str(build / "ingot")},
                   stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT, timeout=LIMIT_S, check=False)
    if not report.exists():
        return c.title, 1, 0, [f"{c.program} has no report"]
    cases = [case for case in xml.etree.ElementTree.parse(report).getroot().iter("testcase") if case.find("skipped") is None]
    bad = [case.get("name") for case in cases if case.find("failure") is not None or case.find("error") is not None]
    return c.title, len(cases), len(cases) - len(bad), bad


def rows(build, folder, whole, only=()):
    """Rows (title, injections, refused, what is bad) of the classes with one of these in their
    title; a class without a case is bad."""
    made = []
    for c in CLASSES:
        if only and not any(text in c.title for text in only):
            continue
        row = python_row(c, build, folder) if c.program.endswith(".py") else google_row(c, build, folder, whole)
        made.append(row if row[1] > 0 else (*row[:3], ["no test ran"]))
        print(f"{row[1]} injections: {c.title}", flush=True)
    return made
