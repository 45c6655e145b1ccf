#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The backend of Triton Inference Server on a GPU, in the real server: answers, batches, CUDA shared
memory, and its own time beside 'ingot bench'. Prints JSON in its last line.

  triton_gpu.py [--rehearse]    on the CPU, without what needs a GPU
"""
import argparse
import base64
import concurrent.futures
import ctypes
import json
import pathlib
import re
import sys
import tempfile
import traceback

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT / "tests" / "python")]
import ingot_command  # noqa: E402
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
    return {"server_ms": sum(parts.values()), "bench_latency_ms": latency,
            "ratio": sum(parts.values()) / latency, **parts}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--rehearse", action="store_true")
    a = p.parse_args()
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
            report["not_tested"] = ["CUDA shared memory: it needs a GPU"]
        else:
            shared, report["cuda_shared_memory"] = use_shared_memory(server, images)
            good = good and shared
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
