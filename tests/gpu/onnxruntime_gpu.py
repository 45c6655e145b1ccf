#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime with Ingot's execution provider on a GPU: whole models against ONNX Runtime's CPU
provider, memory of the device bound, compiled models, many sessions. Prints JSON; exit code 1 where
something is wrong. With INGOT_SIMULATED_GPU=1 the GPU is simulated.

  onnxruntime_gpu.py LIBRARY [MODEL...]
  onnxruntime_gpu.py LIBRARY --make-contexts FOLDER [MODEL...]   compiles models, on a machine without a GPU
  onnxruntime_gpu.py LIBRARY --contexts FOLDER [MODEL...]        runs what was compiled there
"""
import json
import os
import pathlib
import statistics
import sys
import tempfile
import time

import numpy as np
import onnxruntime

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "python"))
from models import MODELS, model_file  # noqa: E402

NAME = "NvTensorRTRTXExecutionProvider"
LIMIT = 1e-2  # of the output's range: f32 products round their operands to TF32
VENDOR = 0x10DE
SIMULATED = os.environ.get("INGOT_SIMULATED_GPU") == "1"


def register(library):
    os.environ["INGOT_ALLOW_CPU"] = "0"
    onnxruntime.register_execution_provider_library(NAME, str(pathlib.Path(library).resolve()))
    found = [d for d in onnxruntime.get_ep_devices() if d.ep_name == NAME]
    if not found:
        sys.exit("onnxruntime_gpu.py: the provider offers no device")
    return found[0]


def options_for(device, entries=None, options=None):
    made = onnxruntime.SessionOptions()
    made.log_severity_level = 3
    made.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    for key, value in (entries or {}).items():
        made.add_session_config_entry(key, value)
    made.add_provider_for_devices([device], options or {})
    return made


def session(device, path, **options):
    return onnxruntime.InferenceSession(str(path), options_for(device, options=options),
                                        enable_fallback=False)


def worst_error(got, want):
    """The largest difference, of the range of what is wanted."""
    worst = 0.0
    for a, b in zip(got, want):
        if a.shape != b.shape or a.dtype != b.dtype:
            return float("inf")
        if b.size:
            span = max(float(b.max()) - float(b.min()), 1e-12)
            error = np.abs(a.astype(np.float64) - b.astype(np.float64)).max() / span
            worst = max(worst, float(error) if np.isfinite(error) else float("inf"))
    return worst


def bound(made, feeds, outputs):
    """A binding of device memory, and its outputs, which are filled with -1 first."""
    binding = made.io_binding()
    for name, array in feeds.items():
        binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy(
            np.ascontiguousarray(array), "gpu", 0, VENDOR))
    values = {}
    for info, array in zip(made.get_outputs(), outputs):
        values[info.name] = onnxruntime.OrtValue.ortvalue_from_numpy(
            np.full_like(array, -1), "gpu", 0, VENDOR)
        binding.bind_ortvalue_output(info.name, values[info.name])
    return binding, values


def median_us(run, times):
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        taken.append((time.perf_counter() - start) * 1e6)
    return round(statistics.median(taken), 1)


def check_model(device, name, folder, times):
    report, path = {}, model_file(name)
    start = time.perf_counter()
    made = session(device, path)
    report["session_s"] = round(time.perf_counter() - start, 3)
    cpu = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    for dims in MODELS[name].checks:
        feeds = MODELS[name].make_inputs(dims)
        want = cpu.run(None, feeds)
        shape = " ".join(f"{k}={v}" for k, v in dims.items())
        start = time.perf_counter()
        got = made.run(None, feeds)
        report.setdefault("first_run_s", round(time.perf_counter() - start, 3))
        report[f"error {shape}"] = worst_error(got, want)
        binding, values = bound(made, feeds, want)
        for _ in range(3):  # the third replays a recorded graph
            made.run_with_iobinding(binding)
        report[f"bound error {shape}"] = worst_error([v.numpy() for v in values.values()], want)
        report[f"bound us {shape}"] = median_us(lambda b=binding: made.run_with_iobinding(b), times)
    target = folder / f"{name}_ctx.onnx"
    start = time.perf_counter()
    onnxruntime.ModelCompiler(options_for(device), str(path), embed_compiled_data_into_model=False
                              ).compile_to_file(str(target))
    report["compile_s"] = round(time.perf_counter() - start, 3)
    start = time.perf_counter()
    loaded = session(device, target)
    got = loaded.run(None, feeds)
    report["context_first_output_s"] = round(time.perf_counter() - start, 3)
    report["context error"] = worst_error(got, want)
    good = all(v <= LIMIT for k, v in report.items() if "error" in k)
    return good, report


def run_options(graph):
    made = onnxruntime.RunOptions()
    made.add_run_config_entry("gpu_graph_id", str(graph))
    return made


def check_graphs(device, name):
    """Graph ids, runs without a graph, and shapes and addresses that alternate give the same results."""
    path, report = model_file(name), {}
    made = session(device, path, enable_cuda_graph="1", ingot_max_graphs="2")
    cpu = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    worst = 0.0
    for turn in range(3):
        for graph in (0, 1, -1, 2):
            for dims in MODELS[name].checks:
                feeds = MODELS[name].make_inputs(dims)
                want = cpu.run(None, feeds)
                binding, values = bound(made, feeds, want)  # new addresses each time
                for _ in range(3 if turn == 0 else 1):
                    made.run_with_iobinding(binding, run_options(graph))
                worst = max(worst, worst_error([v.numpy() for v in values.values()], want))
    report["error"] = worst
    return worst <= LIMIT, report


def check_idle_sessions(device, name):
    """Bytes of device memory that one session holds, and four of the same model, after a run each: the
    weights are there once."""
    feeds = MODELS[name].make_inputs(MODELS[name].checks[0])
    before, taken, kept, path = free_bytes(), [], [], model_file(name)
    for _ in range(4):
        kept.append(session(device, path))
        kept[-1].run(None, feeds)
        now = free_bytes()
        taken.append(None if now is None else before - now)
    weights = path.with_suffix(".data").stat().st_size
    good = None in taken or taken[-1] - taken[0] < weights
    return good, {"weights": weights} | {f"{i + 1} sessions": t for i, t in enumerate(taken)}


def check_memory(device, name, sessions):
    """Sessions made and closed leave no memory of the device behind."""
    path, used = model_file(name), []
    feeds = MODELS[name].make_inputs(MODELS[name].checks[0])
    for i in range(sessions):
        session(device, path).run(None, feeds)
        if i in (sessions // 2, sessions - 1):
            used.append(free_bytes())
    if None in used:
        return True, {"sessions": sessions, "leak": "not known"}
    return used[0] - used[1] <= 8 << 20, {"sessions": sessions, "lost_bytes": used[0] - used[1]}


def free_bytes():
    if SIMULATED:
        return None
    try:
        import torch
        return torch.cuda.mem_get_info()[0]
    except (ImportError, RuntimeError):
        return None


def make_contexts(library, folder, names):
    """FOLDER/MODEL_ctx.onnx with their engines, made for a virtual GPU."""
    onnxruntime.register_execution_provider_library("contexts.virtual", str(pathlib.Path(library).resolve()))
    device, = [d for d in onnxruntime.get_ep_devices()
               if d.ep_name == NAME and d.device.metadata.get("is_virtual") == "1"]
    folder.mkdir(parents=True, exist_ok=True)
    report = {}
    for name in names or sorted(MODELS):
        target = folder / f"{name}_ctx.onnx"
        try:
            onnxruntime.ModelCompiler(options_for(device), str(model_file(name)),
                                      embed_compiled_data_into_model=False).compile_to_file(str(target))
            report[name] = {"bytes": sum(p.stat().st_size for p in folder.glob(f"{name}_ctx*"))}
        except Exception as e:  # pylint: disable=broad-except
            report[name] = {"failed": str(e)[-800:]}
    print(json.dumps(report))
    return 1 if any("failed" in r for r in report.values()) else 0


def run_contexts(device, folder, names):
    """Those of make_contexts(), against ONNX Runtime's CPU provider on the models themselves."""
    report = {}
    for name in names or sorted(p.name[:-len("_ctx.onnx")] for p in folder.glob("*_ctx.onnx")):
        try:
            made = session(device, folder / f"{name}_ctx.onnx")
            cpu = onnxruntime.InferenceSession(str(model_file(name)), providers=["CPUExecutionProvider"])
            report[name] = {"error": max(worst_error(made.run(None, feeds), cpu.run(None, feeds))
                                         for feeds in map(MODELS[name].make_inputs, MODELS[name].checks))}
        except Exception as e:  # pylint: disable=broad-except
            report[name] = {"failed": str(e)[-800:]}
    good = bool(report) and all(r.get("error", LIMIT + 1) <= LIMIT for r in report.values())
    print(json.dumps(report | {"good": good}))
    return 0 if good else 1


def main():
    library, *names = sys.argv[1:]
    if names[:1] == ["--make-contexts"]:
        return make_contexts(library, pathlib.Path(names[1]), names[2:])
    device = register(library)
    if names[:1] == ["--contexts"]:
        return run_contexts(device, pathlib.Path(names[1]), names[2:])
    report = {"onnxruntime": onnxruntime.__version__, "device": dict(device.ep_metadata),
              "vendor": device.device.vendor, "hardware": dict(device.device.metadata)}
    good = True
    with tempfile.TemporaryDirectory() as folder:
        for name in names or ["resnet50", "bert_base_dynamo", "mobilenet_v3_large"]:
            try:
                fine, report[name] = check_model(device, name, pathlib.Path(folder),
                                                 3 if SIMULATED else 200)
            except Exception as e:  # pylint: disable=broad-except
                fine, report[name] = False, {"failed": str(e)[-800:]}
            good = good and fine
    last = (names or ["mobilenet_v3_large"])[-1]
    for part, check in (("memory", lambda: check_memory(device, last, 20)),
                        ("graphs", lambda: check_graphs(device, last)),
                        ("idle sessions", lambda: check_idle_sessions(device, last))):
        try:
            fine, report[part] = check()
        except Exception as e:  # pylint: disable=broad-except
            fine, report[part] = False, {"failed": str(e)[-800:]}
        good = good and fine
    report["good"] = good
    print(json.dumps(report))
    return 0 if report["good"] else 1


if __name__ == "__main__":
    sys.exit(main())
