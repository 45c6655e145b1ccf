#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The backend of Triton Inference Server on a GPU, in the real server: answers, batches, CUDA shared
memory, and its own time beside 'ingot bench'. Prints JSON in its last line.

  triton_gpu.py [--rehearse]    on the CPU, without what needs a GPU
  triton_gpu.py --make-faulty FILE    only writes the engine whose runs lose the device
"""
import argparse
import base64
import concurrent.futures
import ctypes
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import traceback

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT / "tests" / "python")]
import ingot_command  # noqa: E402
import recurrent  # noqa: E402
import triton_server  # noqa: E402
from models import model_file, shared_models  # noqa: E402

DIGITS = ROOT / "examples" / "digits"
TIMED = {  # name: (inputs, reach of backend time by latency of `ingot bench`)
    "resnet50": {"input": np.zeros((1, 3, 224, 224), np.float32)},
    "mobilenet_v3_large": {"input": np.zeros((1, 3, 224, 224), np.float32)},
    "bert_base_dynamo": {"input_ids": np.ones((1, 128), np.int64), "attention_mask": np.ones((1, 128), np.int64)},
}


class DeviceArray:
    """Memory of GPU 0 that another process may open. Needs libcuda.so.1."""

    cuda = None

    def __init__(self, array):
        if DeviceArray.cuda is None:
            DeviceArray.cuda = ctypes.CDLL("libcuda.so.1")
            context, device = ctypes.c_void_p(), ctypes.c_int()
            self.call("cuInit", 0)
            self.call("cuDeviceGet", ctypes.byref(device), 0)
            self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
            self.call("cuCtxSetCurrent", context)
        self.bytes = array.nbytes
        self.address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(self.address), ctypes.c_size_t(self.bytes))
        self.call("cuMemcpyHtoD_v2", self.address, array.ctypes.data_as(ctypes.c_void_p),
                  ctypes.c_size_t(self.bytes))

    def call(self, name, *arguments):
        code = getattr(DeviceArray.cuda, name)(*arguments)
        if code != 0:
            raise RuntimeError(f"{name}: {code}")

    def handle(self):
        handle = (ctypes.c_char * 64)()
        self.call("cuIpcGetMemHandle", ctypes.byref(handle), self.address)
        return base64.b64encode(bytes(handle)).decode()

    def read(self, like):
        out = np.empty_like(like)
        self.call("cuMemcpyDtoH_v2", out.ctypes.data_as(ctypes.c_void_p), self.address,
                  ctypes.c_size_t(out.nbytes))
        return out


def group(kind, count=1):
    return f"instance_group {{ kind: {kind} count: {count} }}\n"


def serve_digits(server, folder, kind):
    """One engine file on GPU and CPU, in batches of many clients."""
    engine = folder / "digits.engine"
    ingot_command.build(DIGITS / "digits.onnx", engine, [
        f"--{size}Shapes=image:{rows}x1x8x8" for size, rows in (("min", 1), ("opt", 8), ("max", 32))])
    images = np.load(DIGITS / "held_out_images.npy")[:256].astype(np.float32)
    expected = ingot_command.run(engine, {"image": images[:32]}, folder / "alone")["scores"]
    server.add("chosen", engine)  # no instance_group: the server asks the backend
    server.add("gpu", engine, group(kind, 2) + "dynamic_batching { max_queue_delay_microseconds: 2000 }\n")
    server.add("cpu", engine, group("KIND_CPU"))
    error = {}
    for name in ("chosen", "gpu", "cpu"):
        server.load(name)
        got = server.infer(name, {"image": images[:32]})["scores"]
        error[name] = float(np.abs(got - expected).max() / np.abs(expected).max())
    labels = np.load(DIGITS / "held_out_labels.npy")[:256]

    def classify(i):
        return int(np.argmax(server.infer("gpu", {"image": images[i:i + 1]})["scores"]))

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        right = float(np.mean(np.array(list(pool.map(classify, range(256)))) == labels))
    chosen = re.search(r"instance 'chosen_\S+' is ready on (GPU 0|the CPU),", server.said()).group(1)
    runs = float(re.search(r'ingot_runs\{model="gpu",version="1"\} (\S+)', server.metrics()).group(1))
    values = {"error": error, "held_out_right": right, "runs_of_256_requests": runs, "chosen_device": chosen}
    is_chosen = chosen == ("the CPU" if kind == "KIND_CPU" else "GPU 0")
    return is_chosen and max(error.values()) < 1e-3 and right > 0.9 and runs < 256, values


def keep_states(server, folder, kind):
    """The state of a sequence stays on the GPU between requests."""
    engine = folder / "recurrent.engine"
    ingot_command.build(recurrent.gru(folder / "recurrent.onnx", False), engine)
    x = np.random.default_rng(3).standard_normal((1, recurrent.STEPS * recurrent.CHUNKS, recurrent.INPUTS))
    x = x.astype(np.float32)
    expected = ingot_command.run(engine, {"x": x, "h": np.zeros((1, recurrent.HIDDEN), np.float32),
                                          "start": np.ones((1, 1), np.float32)}, folder / "whole")["y"]
    server.add("recurrent", engine, group(kind) + recurrent.STRATEGIES["oldest"])
    server.load("recurrent")
    error = float(np.abs(recurrent.stream(server, "recurrent", 5, x) - expected).max())
    return error < 1e-3, {"error": error}


def count_bytes(server, kind):
    """A loaded model holds memory of the GPU, and an unloaded one gives all of it back."""
    pattern = r'ingot_device_bytes\{model="gpu",version="1"\} (\S+)'
    loaded = float(re.search(pattern, server.metrics()).group(1))
    server.unload("gpu")
    end = time.monotonic() + 10
    while (left := re.search(pattern, server.metrics())) and float(left.group(1)) and time.monotonic() < end:
        time.sleep(0.05)
    gone = left is None or float(left.group(1)) == 0
    return gone and (loaded > 0) == (kind == "KIND_GPU"), {"loaded": loaded, "given_back": gone}


def use_shared_memory(server, images):
    """Input and output in memory of the GPU that this process owns."""
    expected = server.infer("gpu", {"image": images})["scores"]
    regions = {"in": DeviceArray(images), "out": DeviceArray(np.zeros_like(expected))}
    for name, memory in regions.items():
        server.call(f"/v2/cudasharedmemory/region/{name}/register", json.dumps(
            {"raw_handle": {"b64": memory.handle()}, "device_id": 0, "byte_size": memory.bytes}).encode())
    for _ in range(20):
        server.call("/v2/models/gpu/infer", json.dumps({
            "inputs": [{"name": "image", "datatype": "FP32", "shape": list(images.shape), "parameters": {
                "shared_memory_region": "in", "shared_memory_byte_size": images.nbytes}}],
            "outputs": [{"name": "scores", "parameters": {
                "shared_memory_region": "out", "shared_memory_byte_size": expected.nbytes}}]}).encode())
    got = regions["out"].read(expected)
    server.call("/v2/cudasharedmemory/unregister", b"{}")
    return bool(np.array_equal(got, expected)), {"equal_to_the_host's": bool(np.array_equal(got, expected))}


KERNEL = """
extern "C" __global__ void row(const float* x, float* y, long long n) {
    long long i = blockIdx.x * 32LL + threadIdx.x;
    if (i < n) {
        if (x[i] < -1)
            *(volatile float*)16 = 1; // nobody's memory
        while (x[i] < 0 && ((const volatile float*)x)[i] < 0) {
        }
        y[i] = 2 * x[i];
    }
}"""


def faulty_engine(path):
    """y = 2 x; below -1 an element loses the device, between -1 and 0 the run does not end."""
    sys.path.insert(0, os.environ.get("INGOT_PYTHON_PATH") or str(ingot_command.binary().parent / "python"))
    import ingot
    builder = ingot.Builder(ingot.Logger(ingot.Logger.ERROR))
    network = builder.create_network()
    x = network.add_input("x", ingot.float32, (-1, 1))
    layer = network.add_cuda_source_layer([x], "Row", KERNEL, "row", "float32[n, 1] -> float32[n, 1]",
                                          grid="ceil_div(n, 32)", block="32", arguments="n")
    layer.get_output(0).name = "y"
    network.mark_output(layer.get_output(0))
    path.write_bytes(bytes(builder.build_serialized_network(network, builder.create_builder_config())))


def outcome_of(server, value):
    """(status, text) of a request."""
    try:
        server.infer("faulty", {"x": np.array([[value]], np.float32)})
        return 200, ""
    except triton_server.Refused as refused:
        return refused.status, refused.text
    except OSError as closed:
        return "closed", str(closed)


def lose_devices(engine, folder, times):
    """An illegal access ends the server with 86, a run without end with 87; it is started again."""
    values = {"statuses": [], "exit_codes": [], "seconds_to_exit": [], "seconds_to_ready": []}
    server = triton_server.Server(folder / "faulty", options=["--backend-config=ingot,allow-engine-code=true"])
    server.add("faulty", engine, group("KIND_GPU") + 'parameters { key: "hang_timeout_ms" value: { string_value: "1000" } }\n')
    for i in range(times):
        start = time.monotonic()
        server.start()
        server.load("faulty")
        values["seconds_to_ready"].append(round(time.monotonic() - start, 2))
        fault = -0.5 if i == times - 1 else -2.0
        fine, (status, text) = outcome_of(server, 1.0), outcome_of(server, fault)
        values["statuses"].append([fine[0], status])
        start = time.monotonic()
        values["exit_codes"].append(server.process.wait(timeout=30))
        values["seconds_to_exit"].append(round(time.monotonic() - start, 2))
    values["text_of_the_hang"] = text
    good = (values["exit_codes"] == [86] * (times - 1) + [87] and values["statuses"] == [[200, 500]] * times
            and text == "faulty version 1: a run has not ended after 1000 ms (parameter hang_timeout_ms)")
    return good, values


def spoil(folder):
    """Changes every kernel of a cache: flipped, cut, empty, foreign."""
    for i, path in enumerate(path for path in sorted(folder.rglob("*")) if path.is_file()):
        data = path.read_bytes() or b"?"
        middle = len(data) // 2
        flipped = data[:middle] + bytes([data[middle] ^ 255]) + data[middle + 1:]
        path.write_bytes([flipped, data[:middle], b"", b"no kernel"][i % 4])


def small_disk(folder):
    """A folder of 16 KiB; None where it cannot be mounted."""
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", folder], check=False, capture_output=True)
    return folder if done.returncode == 0 else None


def served_with(folder, engine, kind, images, environment, options=()):
    """The scores of one request to a server of its own, or the text that refuses the load."""
    with triton_server.Server(folder, environment=environment, options=options) as server:
        server.add("digits", engine, group(kind))
        try:
            server.load("digits")
        except triton_server.Refused as refused:
            return refused.text
        return server.infer("digits", {"image": images})["scores"]


def spoil_caches(folder, kind, images, capability):
    """Kernel caches that are absent, damaged, full or read-only cost nothing but themselves; without a compiler an engine
    serves if it brings its kernels, else the load says so."""
    engines = {"jit": folder / "cached.engine", "ahead": folder / "ahead.engine"}
    for name, engine in engines.items():
        ahead = [f"--computeCapabilities={capability}"] if name == "ahead" else []
        ingot_command.build(DIGITS / "digits.onnx", engine, [*ahead, *(
            f"--{size}Shapes=image:{rows}x1x8x8" for size, rows in (("min", 1), ("opt", 8), ("max", 8)))])
    cache, values = folder / "not" / "there", {}
    places = {"absent": cache, "kept": cache, "damaged": cache, "whole_again": cache,
              "read_only": pathlib.Path("/proc/ingot/kernels"), "full": small_disk(folder / "small")}
    expected = None
    for state, place in places.items():
        if place is None:
            values[state] = "not tested: no file system can be mounted"
            continue
        if state == "damaged":
            spoil(cache)
        got = served_with(folder / state, engines["jit"], kind, images, {"INGOT_RUNTIME_CACHE": str(place)})
        expected = got if expected is None else expected
        values[state] = got if isinstance(got, str) else bool(np.allclose(got, expected, rtol=1e-3, atol=1e-3))
    if places["full"] is not None:
        subprocess.run(["umount", places["full"]], check=False)
    away = {"INGOT_RUNTIME_CACHE": "none", "INGOT_NVRTC": "/nowhere/libnvrtc.so.13"}
    trust = ["--backend-config=ingot,allow-engine-code=true"]
    for state, engine, options in (("no_compiler", "jit", []), ("no_compiler_ahead", "ahead", trust)):
        got = served_with(folder / state, engines[engine], kind, images, away, options)
        values[state] = got if isinstance(got, str) else bool(np.allclose(got, expected, rtol=1e-3, atol=1e-3))
    if values["no_compiler"] is True:
        values["no_compiler"] = "not tested: a compiler was found in another place"
    elif "kernels have to be compiled for GPU 0, and nothing here can" in str(values["no_compiler"]):
        values["no_compiler"] = True
    return all(v is True or str(v).startswith("not tested: ") for v in values.values()), values


def statistics(server, name):
    answer = json.loads(server.call(f"/v2/models/{name}/stats")[0])["model_stats"][0]["inference_stats"]
    return {k: (int(v["count"]), int(v["ns"])) for k, v in answer.items()}


def time_model(server, folder, name, inputs, kind, device):
    """The backend's own time of a request, as the server counts it, beside `ingot bench`."""
    model = model_file(name)
    engine = folder / f"{name}.engine"
    shapes = ",".join(f"{n}:{'x'.join(map(str, a.shape))}" for n, a in inputs.items())
    ingot_command.build(model, engine, [
        "--fp16", *(f"--{size}Shapes={shapes}" for size in ("min", "opt", "max"))])
    server.add(name, engine, group(kind) + "max_batch_size: 0\n")
    server.load(name)
    for _ in range(60):
        server.infer(name, inputs)
    before = statistics(server, name)
    for _ in range(300):
        server.infer(name, inputs)
    after = statistics(server, name)
    server.unload(name)
    parts = {k: (after[k][1] - before[k][1]) / (after[k][0] - before[k][0]) * 1e-6
             for k in ("compute_input", "compute_infer", "compute_output")}
    text = ingot_command.call("bench", engine, f"--device={device}", "--duration=2")
    latency = ingot_command.median_latency(text)
    # A request comes to a GPU and cores that have just been idle.
    text = ingot_command.call("bench", engine, f"--device={device}", "--duration=2", "--idleTime=1")
    idle = ingot_command.median_latency(text)
    return {"server_ms": sum(parts.values()), "bench_latency_ms": latency, "ratio": sum(parts.values()) / latency,
            "bench_idle_latency_ms": idle, "ratio_idle": sum(parts.values()) / idle, **parts}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--rehearse", action="store_true")
    p.add_argument("--capability", default="90", help="of GPU 0: 90 for 9.0")
    p.add_argument("--faulty-engine", help="made by --make-faulty where the Python package is")
    p.add_argument("--make-faulty", metavar="FILE")
    a = p.parse_args()
    if a.make_faulty:
        faulty_engine(pathlib.Path(a.make_faulty))
        return 0
    kind, device = ("KIND_CPU", "cpu") if a.rehearse else ("KIND_GPU", "cuda")
    if not triton_server.SERVER.is_file():
        print(json.dumps({"good": True, "absent": f"THERE IS NO TRITON INFERENCE SERVER AT {triton_server.SERVER}"}))
        return 0
    report, good = {}, True
    with tempfile.TemporaryDirectory() as work, \
            triton_server.Server(pathlib.Path(work) / "server") as server:
        folder = pathlib.Path(work)
        good, report["digits"] = serve_digits(server, folder, kind)
        images = np.load(DIGITS / "held_out_images.npy")[:8].astype(np.float32)
        if a.rehearse:
            report["not_tested"] = ["CUDA shared memory, lost devices: they need a GPU"]
            cached, report["kernel_caches"] = spoil_caches(folder, kind, images, a.capability)
            good = good and cached
        else:
            faulty = pathlib.Path(a.faulty_engine or folder / "faulty.engine")
            if not a.faulty_engine:
                faulty_engine(faulty)
            lost, report["lost_devices"] = lose_devices(faulty, folder, 11)
            good = good and lost
            shared, report["cuda_shared_memory"] = use_shared_memory(server, images)
            good = good and shared
            cached, report["kernel_caches"] = spoil_caches(folder, kind, images, a.capability)
            good = good and cached
        for part, run in (("states", lambda: keep_states(server, folder, kind)),
                          ("device_bytes", lambda: count_bytes(server, kind))):
            right, report[part] = run()
            good = good and right
        for name, inputs in TIMED.items():
            if shared_models() is not None and not a.rehearse:
                report[name] = time_model(server, folder, name, inputs, kind, device)
    print(json.dumps({"good": good, **report}))
    return 0 if good else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Exception:  # pylint: disable=broad-except
        print(json.dumps({"good": False, "error": traceback.format_exc()[-1500:]}))
        sys.exit(1)
