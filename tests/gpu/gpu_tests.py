#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Everything that a GPU has to prove, in one command: `./dev test-gpu`, or on a machine that only has
the built files, INGOT=.../ingot INGOT_SHARED=... python3 tests/gpu/gpu_tests.py --out RESULT.json

Parts (all of them, or those of --parts=a,b):
  conformance   the ONNX backend suite with TF32 off, each case three times bit-equal, against the
                second column of tests/onnx/status.txt
  models        every architecture in f32, TF32, f16 and with the kernels of compute capability 8.0,
                against the CPU in f32; f16 may be off by 1e-2 of the range, or by twice what the
                model is off whose every operator rounds to f16, as PyTorch's half does
  tactics       every family's tests on the device: every tactic that can run there, those of other
                architectures included, also under 99 KB of shared memory
  replay        a thousand replays of recorded graphs with changing inputs, against plain launches
  shapes        a hundred random shapes of a profile ask for no new kernel
  threads       contexts in threads give the bits of one thread
  processes     two processes on one empty cache; a third compiles nothing; a cache that cannot be
                written costs nothing but itself
  ahead         an engine with kernels compiled ahead compiles none when it runs, and gives the same bits
  memory        a limit on memory names what is needed and what fits; other shared-memory caps agree
  api           the tests of TensorRT's API on the device, in memory that kernels and tests share
  collectives   NCCL between the GPUs of the machine: every operation, reduction and type, in graphs of
                the caller's too. It needs two GPUs and libnccl.so.2 (INGOT_NCCL), and says so else
  python        the Python package on the device: arrays of other libraries, the guide's listings, Polygraphy,
                fifty processes that lose the device
  memcheck      compute-sanitizer's four tools over tests of every family
Alone, when all others have ended, since they compare times or the device's free memory:
  onnxruntime   the execution provider in stock ONNX Runtime: models, bound memory, compiled models
  triton        the backend in a real Triton Inference Server (INGOT_TRITON, else .deps/triton): one file on
                GPU and CPU, batches, CUDA shared memory, the backend's time beside `ingot bench`
  profile       the layers' times add up to the run's
  priority      a frame loop beside inference: inference that gives way, by its options or the caller's
                stream, loses at most 1 % of the frames that urgent inference loses
Each has a time limit and fails by itself. Programs are looked for beside the ingot command and in its
folder tests/.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import sys
import time

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT / "tests" / "python")]
import ingot_command as ingot  # noqa: E402
from gpu_report import Report  # noqa: E402
from gpu_runner import Failed, Runner, gtest, summary, together, what_failed  # noqa: E402
from models import MODELS, model_file, shared_models  # noqa: E402

F32_LIMIT = 1e-3  # of the output's range, TF32 off
F16_LIMIT = 1e-2  # of the output's range, for TF32 and f16
F16_LARGEST = 6e4
# Models whose engines the parts beside `models` use, in f16.
REPLAYED = ("resnet50", "bert_base_dynamo", "llama_tiny_decode", "speech_lstm_gru")
RESHAPED = ("resnet50", "bert_base_dynamo", "llama_tiny_decode")
# Tests of test_kernels that are not about a device.
HOST_TESTS = "Emulator*:Harness.*:Nvrtc.*:ExprText.*:Coverage.EveryPrimitiveAndDType"
# Small tests of every family, for tools that slow kernels down a hundredfold.
CHECKED = ("Gemm.OddExtents:Gemm.SplitDepth:Gemm.Bias:Gemm.EndingsOfSingles:Conv.Stem:Conv.StemAsTf32:"
           "Conv.Groups:Conv.Depthwise:Attention.Causal:Attention.WarpgroupSingles:Softmax.HiddenElements:LayerNorm.Forms:GroupNorm.Forms:"
           "Pointwise.TransposesThroughTiles:Pointwise.ContiguousVectorsAndATail:"
           "Copy.PermutesEveryWidth:Pad.EveryMode:Gather.ScalarIndexAndTable:"
           "Scatter.EveryFunctionInOrder:Scan.Forms:Sort.ShortAndLongRows:TopK.Forms:"
           "Reduce.FewLongRowsAreSplit:ArgReduce.Forms:Pool.RowMajorAndChannelsLast:"
           "NonZero.*:Nms.NothingIsLeftOrAskedFor:Iota.*:Concat.*:Random.*:Rope.OddShapes:"
           "Gemv.BytesOfEitherSign:QuantizedDot.OddExtents:Resize.NearestRounding:Loops.*")
# racecheck lets no warp pass a wait for its cluster before all warps of the block are there. Warps that load
# wait last, so that a product whose steps do not all fit into the stages does not end under it.
RACED = CHECKED.replace("Gemm.SplitDepth:", "Gemm.SplitDepthWithinTheStages:")
# Tests of test_api that need the emulator.
EMULATED_API = "*MemoryLimits*:RuntimeCacheOnAGpu*:TimingCache*"
PYTHON_TESTS = ("test_python_gpu.py", "test_trt_spec.py", "test_trt_lifetimes.py", "test_trt_refit.py",
                "test_trt_values.py", "test_trt_callbacks.py", "test_python_compile.py",
                "test_polygraphy.py", "test_lost_gpu.py")
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")


def conformance(r):
    suite = r.a.suite or os.environ.get("INGOT_SUITE") or ingot.binary().parent / "onnx_suite"
    if not pathlib.Path(suite, "cases.txt").is_file():
        raise Failed(f"no suite at {suite}: tests/conformance/export_suite.py writes it (--suite)")
    shards = max(1, min(8, r.a.jobs // 2))
    way = "engine" if r.a.rehearse else "gpu"

    def shard(i):
        code, text, seconds = r.run(
            [r.program("test_conformance"), f"--gtest_filter=*/{way}"],
            {"INGOT_SUITE": str(suite), "INGOT_SHARD": f"{i}/{shards}",
             "INGOT_STATUS": str(ROOT / "tests" / "onnx" / "status.txt"),
             "INGOT_STATUS_OUT": str(r.folder / f"status.{i}")}, 300)
        counts = re.search(r"(\d+) pass, (\d+) refused, (\d+) fail", text)
        values = {"exit": code, "seconds": seconds}
        values |= dict(zip(("pass", "refused", "fail"), map(int, counts.groups()))) if counts else {}
        if code != 0 or not counts:
            values["failures"] = what_failed(text)
        return code == 0 and bool(counts), values
    outcomes = together(shard, list(range(shards)))
    good, values = summary(outcomes)
    report = {key: sum(v.get(key, 0) for v in values.values()) for key in ("pass", "refused", "fail")}
    report["failures"] = [f for v in values.values() for f in v.get("failures", v.get("error", []))]
    if r.a.status_out:
        lines = sorted(line for i in range(shards)
                       for line in (r.folder / f"status.{i}").read_text().splitlines())
        head = [l for l in (ROOT / "tests" / "onnx" / "status.txt").read_text().splitlines()
                if l.startswith("#")]
        pathlib.Path(r.a.status_out).write_text("\n".join(head + lines) + "\n")
    return good, report


def error_of(got, want):
    """The largest difference, of the range of what is wanted."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return float("inf")
    if not want.size:
        return 0.0
    span = float(want.max() - want.min())
    error = np.abs(got.astype(np.float64) - want.astype(np.float64)).max() / max(span, 1e-12)
    return float(error) if np.isfinite(error) else float("inf")


def twin_error(name, inputs, want):
    """How far the model is off when every operator stores f16 and computes in f32; None if unknown."""
    try:
        import onnx
        import onnxruntime
        from onnxruntime.transformers.float16 import convert_float_to_float16
        path = model_file(name)
        if path.with_suffix(".data").stat().st_size > 1_900_000_000:
            return None  # more than protobuf holds
        half = convert_float_to_float16(onnx.load(str(path)), keep_io_types=True,
                                        disable_shape_infer=True, op_block_list=[],
                                        force_fp16_initializers=True)
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 3
        session = onnxruntime.InferenceSession(half.SerializeToString(), options,
                                               providers=["CPUExecutionProvider"])
        names = [o.name for o in session.get_outputs()]
        made = dict(zip(names, session.run(names, inputs)))
        return max(error_of(made[n].astype(want[n].dtype), want[n]) for n in want)
    except Exception as e:  # pylint: disable=broad-except
        print(f"{name}: no f16 twin: {e}"[:300], flush=True)
        return None


def one_model(r, name):
    model, device = MODELS[name], "cpu" if r.a.rehearse else "cuda"
    report, good = {}, True
    start = time.time()
    engines = {p: r.engine(name, p) for p in ("f32", "f16")}
    report["build_s"] = round(time.time() - start, 1)

    def outputs(engine, inputs, kind, where, *options):
        folder = r.folder / f"{name}.{kind}.files"
        folder.mkdir(exist_ok=True)
        arguments = []
        for key, array in inputs.items():
            np.save(folder / f"input_{key}.npy", array)
            arguments += ["--input", f"{key}={folder / f'input_{key}.npy'}"]
        r.ingot("run", engine, *arguments, "--save-outputs", folder / "outputs", "--device", where,
                *options)
        made = {p.stem: np.load(p) for p in sorted((folder / "outputs").glob("*.npy"))}
        shutil.rmtree(folder)
        return made
    for dims in model.checks:
        full = model.make_inputs(dims)
        full_want = outputs(engines["f32"], full, "cpu", "cpu", "--threads=4")
        half = model.make_inputs(dims, largest=F16_LARGEST)  # what f16 can hold
        same = all(np.array_equal(half[k], full[k]) for k in full)
        half_want = full_want if same else outputs(engines["f32"], half, "cpu", "cpu", "--threads=4")
        ways = {"f32": ("f32", "--noTF32"), "tf32": ("f32",), "f16": ("f16",),
                "f16_arch80": ("f16", "--arch=80")}
        for kind, (precision, *options) in ways.items():
            inputs, want = (full, full_want) if precision == "f32" else (half, half_want)
            got = outputs(engines[precision], inputs, kind, device, *options)
            error = max(error_of(got[n], want[n]) for n in want)
            shape = " ".join(f"{k}={v}" for k, v in dims.items())
            report[f"{kind} {shape}"] = error
            limit = F32_LIMIT if kind == "f32" else F16_LIMIT
            if error > limit and precision == "f16":
                twin = report[f"f16_twin {shape}"] = (report.get(f"f16_twin {shape}") or
                                                      twin_error(name, inputs, want))
                limit = max(limit, 2 * (twin or 0))
            good = good and error <= limit
            if model.top1 and kind == "f32":
                good = good and bool((got[model.top1].argmax(-1) == want[model.top1].argmax(-1)).all())
    report["seconds"] = round(time.time() - start, 1)
    if name not in REPLAYED + RESHAPED:
        for path in engines.values():
            path.unlink()
    return good, report


def models(r):
    chosen = r.a.models.split(",") if r.a.models else list(MODELS)
    unknown = sorted(set(chosen) - set(MODELS))
    if unknown:
        raise Failed(f"no models {unknown}; there are {', '.join(MODELS)}")
    order = sorted(chosen, key=lambda n: -weight_count(n))  # the largest take the longest
    outcomes = together(lambda n: one_model(r, n), order)
    good, report = summary(outcomes)
    report = {n: {"good": outcomes[n][0], **report[n]} for n in order}
    return good, report


def weight_count(name):
    spec = shared_models() / "architectures" / f"{name}.weights.json"
    return sum(int(np.prod(w["shape"])) for w in json.loads(spec.read_text()).values())


def over_models(pattern, names, limit=240, at_once=None):
    def part(r):
        chosen = [n for n in names if n in (r.a.models.split(",") if r.a.models else names)] or names
        return summary(together(
            lambda n: gtest(r, "test_gpu", f"*{pattern}*", engine_for(r, n), limit),
            ["digits"] if r.a.rehearse else chosen, at_once))
    return part


def engine_for(r, name, kind="f16"):
    """The environment of test_gpu: the engine (a small one of its own in a rehearsal) and the
    number of replays."""
    if r.a.rehearse:
        return {"INGOT_GPU_ENGINES": ""}
    return {"INGOT_GPU_ENGINES": str(r.engine(name, kind)), "INGOT_REPLAYS": str(r.a.replays)}


def tactics(r):
    shards = max(1, min(8, r.a.jobs // 2))
    outcomes = together(
        lambda i: gtest(r, "test_kernels", f"{r.a.tests}-{HOST_TESTS}",
                        {"GTEST_TOTAL_SHARDS": str(shards), "GTEST_SHARD_INDEX": str(i),
                         "INGOT_TEST_GPU": "emulated" if r.a.rehearse else "1"}, 360, True),
        list(range(shards)))
    good, values = summary(outcomes)
    tests = sum(v.get("tests", 0) - v.get("skipped", 0) for v in values.values())
    failures = [f for v in values.values()
                for f in v.get("failures", [v["error"]] if "error" in v else [])]
    return good and tests > 0, {"tests": tests, "failures": failures,
                                "seconds": [v.get("seconds", 0) for v in values.values()]}


def processes(r):
    cache = r.folder / "shared_cache"

    def once(name):
        folder = "/proc/ingot/kernels" if name == "unwritable" else cache
        return gtest(r, "test_gpu", "*RunsOnce*",
                     {**engine_for(r, REPLAYED[0], "open"), "INGOT_RUNTIME_CACHE": str(folder)})
    outcomes = together(once, ["first", "second", "unwritable"])
    outcomes["third"] = once("third")
    good, values = summary(outcomes)
    runs = {k: next((w for n, w in v.items() if n.startswith("once.")), {})
            for k, v in values.items()}
    bits = {run.get("bits") for run in runs.values()}
    good = good and len(bits) == 1 and None not in bits
    if not r.a.rehearse:
        good = good and runs["third"].get("compiled") == 0
        found = r.ingot("cache", "verify", f"--runtimeCacheDir={cache}")[-300:]
        values["verify"] = found.replace(str(cache), "the cache").strip()
    return good, values


def ahead(r):
    model = ROOT / "examples" / "digits" / "digits.onnx"
    images = r.folder / "images.npy"
    np.save(images, np.load(model.parent / "held_out_images.npy")[:8].astype(np.float32))
    digits = re.search(r"compute capability (\d+)\.(\d+)", device_name(r)).groups()
    values, outputs = {}, []
    for kind, options in (("jit", []), ("ahead", [f"--computeCapabilities={''.join(digits)}"])):
        engine, cache, out = (r.folder / f"digits.{kind}{end}" for end in ("", ".cache", ".out"))
        r.ingot("build", model, "-o", engine, "--optShapes=image:8x1x8x8", *options)
        # The engine is another process' work and unsigned: its kernels load only where that is allowed.
        r.ingot("run", engine, "--device=cuda", "--allowEngineCode", f"--runtimeCacheDir={cache}",
                f"--input=image={images}", f"--save-outputs={out}")
        values[f"compiled_{kind}"] = len([f for f in cache.rglob("*") if f.is_file()])
        outputs.append(np.load(out / "scores.npy").tobytes())
    return values["compiled_jit"] > 0 and values["compiled_ahead"] == 0 and len(set(outputs)) == 1, values


def api(r):
    emulated = ":RuntimeCacheOnAGpu*" if r.a.rehearse else f":{EMULATED_API}"
    only = "*DebugTensors*/Gpu" if r.a.rehearse else "*Gpu"
    return gtest(r, "test_api", f"{only}-*MemoryBalance*:*FailingAllocations*{emulated}", {"INGOT_RUNTIME_CACHE": ""})


def collectives(r):
    good, values = gtest(r, "test_gpu", "TwoGpus.*", {}, may_be_empty=True)
    if values["skipped"]:
        print("collectives: THERE ARE NO TWO GPUS WITH AN NCCL HERE (INGOT_NCCL): NOT checked", flush=True)
        values["not_tested"] = ["two GPUs and libnccl.so.2"]
    return good, values


def python(r):
    folder = pathlib.Path(os.environ.get("INGOT_PYTHON_PATH") or ingot.binary().parent / "python")
    if not list((folder / "ingot").glob("_ingot*.so")):
        raise Failed(f"no Python package in {folder}: INGOT_PYTHON_PATH names where one was installed")
    code, text, _ = r.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider",
         *(ROOT / "tests" / "python" / name for name in PYTHON_TESTS)],
        {**r.gpu(), "INGOT_PYTHON_PATH": str(folder)})
    counts = {kind: int(n) for n, kind in re.findall(r"(\d+) (passed|failed|skipped|errors?)\b", text)}
    skipped = re.findall(r"^.*: Skipped: (.*)$", text, re.MULTILINE)
    values = {**counts, "not_tested": skipped}
    if code != 0:
        values["failures"] = re.findall(r"^(?:FAILED|ERROR) (.*)$", text, re.MULTILINE) or text[-600:]
    return code == 0 and counts.get("passed", 0) > 0, values


def memcheck(r):
    tool = next((p for p in (shutil.which("compute-sanitizer"),
                             "/usr/local/cuda/bin/compute-sanitizer",
                             "/opt/cuda/bin/compute-sanitizer") if p and os.path.exists(p)), None)
    if tool is None:
        print("memcheck: THERE IS NO compute-sanitizer HERE: memory and races were NOT checked",
              flush=True)
        return False, {"absent": "compute-sanitizer was not found: nothing was checked"}
    pattern = r.a.tests if r.a.tests != "*" else CHECKED

    def checked(kind, tests, limit):
        code, text, seconds = r.run(
            [tool, "--tool", kind, "--error-exitcode", "86", "--print-limit", "5",
             r.program("test_kernels"), f"--gtest_filter={tests}"],
            {**r.gpu(), "INGOT_TEST_ARCHS": "own",
             "INGOT_TEST_UNINITIALISED": "1" if kind == "initcheck" else "0"}, limit)
        errors = re.findall(r"^========= ERROR SUMMARY: (.*)$|^========= RACECHECK SUMMARY: (.*)$",
                            text, re.MULTILINE)
        ran = re.search(r"^\[==========\] (\d+) tests? from .* ran", text, re.MULTILINE)
        values = {"exit": code, "seconds": seconds, "tests": int(ran.group(1)) if ran else 0,
                  "summary": [a or b for a, b in errors]}
        good = code == 0 and bool(ran) and bool(errors)
        if not good:
            values["output"] = re.findall(r"^=========.*$", text, re.MULTILINE)[:40] or text[-800:]
        return good, values

    def races():
        """Each test alone: one that does not end hides no others."""
        raced = RACED if pattern == CHECKED else pattern
        text = r.run([r.program("test_kernels"), f"--gtest_filter={raced}", "--gtest_list_tests"])[1]
        outcomes = together(lambda test: checked("racecheck", test, 240), names_of(text))
        wrong = {test: values for test, (good, values) in outcomes.items() if not good}
        return bool(outcomes) and not wrong, {"tests": len(outcomes), "wrong": wrong,
                                              "seconds": max(v.get("seconds", 0) for _, v in outcomes.values())}
    return summary(together(lambda kind: races() if kind == "racecheck" else checked(kind, pattern, 360),
                            list(TOOLS)))


def names_of(text):
    """The tests that --gtest_list_tests prints."""
    names, suite = [], ""
    for line in text.splitlines():
        word = line.split("#")[0].strip()
        if line.startswith("  ") and suite.endswith("."):
            names.append(suite + word)
        elif not line.startswith(" "):
            suite = word
    return names


def priority(r):
    good, values = gtest(r, "test_gpu", "FramesBesideInference.*", {}, may_be_empty=r.a.rehearse)
    if r.a.rehearse:
        values["not_tested"] = ["frames beside inference: they need a GPU"]
    return good, values


def onnxruntime(r):
    """The execution provider, in a process of its own; rehearsed on the simulated GPU."""
    names = (r.a.models.split(",") if r.a.models else
             ["resnet50", "bert_base_dynamo", "llama_tiny_decode", "mobilenet_v3_large"])
    library = os.environ.get("INGOT_ONNXRUNTIME") or r.program("libingot_onnxruntime.so")
    code, text, seconds = r.run([sys.executable, HERE / "onnxruntime_gpu.py", library, *names],
                                {"INGOT_SIMULATED_GPU": "1" if r.a.rehearse else "0"})
    lines = [line for line in text.splitlines() if line.startswith("{")]
    report = json.loads(lines[-1]) if lines else {"error": text[-800:]}
    return code == 0, {**report, "seconds": seconds}


def triton(r):
    """The backend in a real Triton Inference Server; without one this says so and fails nothing."""
    how = ["--rehearse"] if r.a.rehearse else ["--capability", "".join(
        re.search(r"compute capability (\d+)\.(\d+)", device_name(r)).groups())]
    code, text, seconds = r.run([sys.executable, HERE / "triton_gpu.py", *how])
    lines = [line for line in text.splitlines() if line.startswith("{")]
    report = json.loads(lines[-1]) if lines else {"error": text[-800:]}
    if "absent" in report:
        print(f"triton: {report['absent']}: NOT checked", flush=True)
    return code == 0, {**report, "seconds": seconds}


# In the order in which they start; those of ALONE run when all others are done.
PARTS = {
    "models": models,
    "conformance": conformance,
    "tactics": tactics,
    "replay": over_models("ReplaysGiveTheBitsOfLaunches", REPLAYED),
    "shapes": over_models("ShapesOfAProfileCompileNothing", RESHAPED),
    "threads": over_models("ThreadsGiveTheBitsOfOneThread", REPLAYED),
    "processes": processes,
    "memory": over_models("MemoryThatRunsOutIsNamed*:*OtherTacticsAgree", REPLAYED),
    "ahead": ahead,
    "api": api,
    "collectives": collectives,
    "python": python,
    "memcheck": memcheck,
    "onnxruntime": onnxruntime,
    "triton": triton,
    "profile": over_models("LayersAddUpToTheRun", REPLAYED, at_once=1),
    "priority": priority,
}
ALONE = ("onnxruntime", "triton", "profile", "priority")


def device_name(r):
    if r.a.rehearse:
        return "rehearsal: CPU and emulator"
    text = r.ingot("bench", ROOT / "examples" / "digits" / "digits.onnx", "--device", "cuda",
                   "--duration=0.1")
    return re.search(r"Device: (.*)", text).group(1)


def run_part(r, part, report):
    start = time.time()
    try:
        good, values = PARTS[part](r)
    except Exception as e:  # pylint: disable=broad-except
        good, values = False, {"error": f"{type(e).__name__}: {e}"[-800:]}
    report.add(part, bool(good), values, round(time.time() - start, 1))
    return bool(good)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("more_parts", nargs="*", metavar="part", help=f"of {', '.join(PARTS)}")
    p.add_argument("--parts", default="", help="the same, joined by commas")
    p.add_argument("--out", default="", help="JSON file")
    p.add_argument("--limit", type=float, default=560, help="seconds for everything")
    p.add_argument("--jobs", type=int, default=os.cpu_count() or 4, help="programs at once")
    p.add_argument("--suite", default="", help="folder of the ONNX backend suite")
    p.add_argument("--status-out", default="", help="writes the status list as it is here")
    p.add_argument("--models", default="", help="only these models")
    p.add_argument("--tests", default="*", help="only these tests of families (a GoogleTest filter)")
    p.add_argument("--replays", type=int, default=1000)
    p.add_argument("--work", default="", help="where engines are kept meanwhile (20 GB for all models)")
    p.add_argument("--rehearse", action="store_true",
                   help="CPU and emulator instead of a GPU: tests this script, not Ingot")
    a = p.parse_args()
    chosen = [*a.more_parts, *(part for part in a.parts.split(",") if part)] or list(PARTS)
    unknown = [part for part in chosen if part not in PARTS]
    if unknown:
        p.error(f"no parts {unknown}; there are {', '.join(PARTS)}")
    r = Runner(a)
    good = True
    try:
        report = Report(device_name(r), a.out)
        side_by_side = [part for part in PARTS if part in chosen and part not in ALONE]
        with concurrent.futures.ThreadPoolExecutor(max_workers=max(1, len(side_by_side))) as pool:
            good = all(list(pool.map(lambda part: run_part(r, part, report), side_by_side)))
        for part in ALONE:
            good = (part not in chosen or run_part(r, part, report)) and good
        report.table()
    finally:
        shutil.rmtree(r.folder, ignore_errors=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
