# SPDX-License-Identifier: Apache-2.0
"""Sessions on two emulated GPUs, for tests: the plugin and libingot.so as they are shipped, on a
libcuda.so.1 and a libnvrtc.so.13 that run kernels on the host (tests/emulator/programs). The driver is
opened once in a process, so that each test runs its program in one of its own."""
import os
import pathlib
import subprocess

import pytest

from onnxruntime_plugin import REPOSITORY, library
from onnxruntime_process import clean_environment, run_process

PRELUDE = """
import ctypes, gc, json, os, re, threading, time
import numpy as np, onnx, onnxruntime
from onnx import TensorProto, helper
from onnxruntime_plugin import NAME, model_of, on_cpu
cuda = ctypes.CDLL("libcuda.so.1")
for count in ("refused", "graphs", "replays", "launches", "last", "loaded", "used"):
    getattr(cuda, f"ingot_emulated_{count}").restype = ctypes.c_int64
nvrtc = os.path.exists(os.environ["INGOT_NVRTC"]) and ctypes.CDLL(os.environ["INGOT_NVRTC"])
onnxruntime.register_execution_provider_library(NAME, os.environ["PLUGIN"])
devices = [d for d in onnxruntime.get_ep_devices() if d.ep_name == NAME]
def session(model, device=0, **options):
    made = onnxruntime.SessionOptions()
    made.log_severity_level = 3
    made.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    made.add_provider_for_devices([devices[device]], options)
    source = model if isinstance(model, str) else model.SerializeToString()
    return onnxruntime.InferenceSession(source, made, enable_fallback=False)
def value(array, device=0):
    return onnxruntime.OrtValue.ortvalue_from_numpy(array, "gpu", device, 0x10DE)
def model(rows="n", columns=4):
    return model_of([helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Add", ["r", "w"], ["y"])],
                    {"x": (TensorProto.FLOAT, [rows, columns])}, {"y": (TensorProto.FLOAT, [rows, columns])},
                    {"w": np.arange(columns, dtype=np.float32)})
def feeds(rows, columns=4):
    return {"x": np.random.default_rng(rows).normal(size=(rows, columns)).astype(np.float32)}
def bound(made, x, device=0):
    \"\"\"A binding with input and output on the device, and the output.\"\"\"
    y = value(np.zeros_like(x), device)
    binding = made.io_binding()
    binding.bind_ortvalue_input("x", value(x, device))
    binding.bind_ortvalue_output("y", y)
    return binding, y
def check(y, x):
    np.testing.assert_allclose(y.numpy(), np.maximum(x, 0) + np.arange(x.shape[1], dtype=np.float32), 1e-6)
"""


def run(folder, text, nvrtc=True, **variables):
    """Runs the text in a process of its own; returns what it prints. Without `nvrtc` there is no
    compiler of kernels."""
    driver = pathlib.Path(os.environ.get("INGOT_EMULATED_CUDA")
                          or REPOSITORY / "build" / "tests" / "emulated_cuda")
    if not (driver / "libcuda.so.1").is_file():
        pytest.skip(f"no emulated driver in {driver}: run './dev build', or set INGOT_EMULATED_CUDA")
    texts = pathlib.Path(os.environ.get("INGOT_KEPT") or "~/.cache/ingot/emulated").expanduser()
    environment = clean_environment() | {
        "LD_LIBRARY_PATH": str(driver), "PLUGIN": str(library()), "INGOT_RUNTIME_CACHE": "none",
        "XDG_CACHE_HOME": str(folder), "INGOT_KEPT": str(texts), "INGOT_NVRTC": str(driver / "libnvrtc.so.13")}
    if not nvrtc:
        shim = folder / "no_nvrtc.so"
        source = REPOSITORY / "tests" / "onnxruntime" / "programs" / "no_nvrtc.c"
        subprocess.run(["cc", "-shared", "-fPIC", "-o", shim, source, "-ldl"], check=True)
        environment |= {"LD_PRELOAD": str(shim), "INGOT_NVRTC": str(folder / "libnvrtc.so")}
    return run_process(folder, PRELUDE, text, environment | variables)
