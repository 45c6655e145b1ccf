#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The backend of Triton Inference Server on GPUs, in the real server: answers, batches, CUDA shared memory, states,
lost devices, caches of kernels, a thousand loads, two GPUs, and its own time beside 'ingot bench'. Prints JSON in its
last line.

  triton_gpu.py [--parts a,b] [--faulty-engine FILE] [--capability 90] [--loads 1000]
  triton_gpu.py --rehearse    on two emulated GPUs, without times
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
import triton_faults  # noqa: E402
import triton_server  # noqa: E402
from serving_models import widened  # noqa: E402
from models import model_file, shared_models  # noqa: E402
from triton_faults import LARGE_ROW, MOST_ROWS, ON_GPU  # noqa: E402

DIGITS = ingot_command.DIGITS
TIMED = {  # name: inputs
    "resnet50": {"input": np.zeros((1, 3, 224, 224), np.float32)},
    "mobilenet_v3_large": {"input": np.zeros((1, 3, 224, 224), np.float32)},
    "bert_base_dynamo": {"input_ids": np.ones((1, 128), np.int64), "attention_mask": np.ones((1, 128), np.int64)},
}
MOST_SECONDS = 150  # of a thousand loads


def driver(rehearsed):
    return ctypes.CDLL(str(triton_server.EMULATED / "libcuda.so.1") if rehearsed else "libcuda.so.1")


class DeviceArray:
    """Memory of GPU 0 that another process may open."""

    cuda = None

    def __init__(self, array):
        if DeviceArray.cuda is None:
            DeviceArray.cuda = driver(False)
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
        return bytes(handle)

    def read(self, like):
        out = np.empty_like(like)
        self.call("cuMemcpyDtoH_v2", out.ctypes.data_as(ctypes.c_void_p), self.address,
                  ctypes.c_size_t(out.nbytes))
        return out


class SharedFile:
    """In place of DeviceArray for an emulated GPU (tests/triton/programs/server_cudart.cpp)."""

    def __init__(self, array):
        self.bytes = array.nbytes
        with tempfile.NamedTemporaryFile(dir="/dev/shm", delete=False) as file:
            file.write(array.tobytes())
        self.path = pathlib.Path(file.name)

    def handle(self):
        return os.fsencode(self.path).ljust(64, b"\0")

    def read(self, like):
        data = self.path.read_bytes()
        self.path.unlink()
        return np.frombuffer(data, like.dtype).reshape(like.shape)


def group(count=1, more="kind: KIND_GPU"):
    return f"instance_group {{ {more} count: {count} }}\n"


class Run:
    """The servers and engines of one run of this script."""

    def __init__(self, options, folder):
        self.rehearsed, self.loads = options.rehearse, options.loads
        self.capability = "80" if options.rehearse else options.capability
        self.given_faulty_engine = options.faulty_engine
        self.folder = folder
        self.images = np.load(DIGITS / "held_out_images.npy")[:256].astype(np.float32)

    def library(self, source):
        """A library to preload, made of a C file of tests/; or made before, where there is no compiler."""
        path = source.with_suffix(".so")
        path = path if path.exists() else self.folder / path.name
        if not path.exists():
            subprocess.run(["cc", "-shared", "-fPIC", "-o", path, source, "-ldl"], check=True)
        return path

    def server(self, name, options=(), cache=None, preloaded=()):
        """A server that is not started yet; `cache`: its folder of kernels, "none", or the user's."""
        if self.rehearsed:
            more, environment = triton_server.emulated_gpus(cache or self.folder / "kernels", preloaded)
            options = [*more, *options]
        else:
            environment = {} if cache is None else {"INGOT_RUNTIME_CACHE": str(cache)}
            environment |= {"LD_PRELOAD": ":".join(map(str, preloaded))}
        return triton_server.Server(self.folder / name, options=options, environment=environment)

    def digits(self, most=32):
        """An engine for up to so many rows."""
        path = self.folder / f"digits_{most}.engine"
        if not path.exists():
            ingot_command.build(DIGITS / "digits.onnx", path, [
                f"--{size}Shapes=image:{rows}x1x8x8" for size, rows in (("min", 1), ("opt", 8), ("max", most))])
        return path

    def faulty_engine(self):
        path = pathlib.Path(self.given_faulty_engine or self.folder / "faulty.engine")
        if not path.exists():
            triton_faults.make_faulty_engine(path)
        return path


def error_of(got, expected):
    return float(np.abs(got - expected).max() / np.abs(expected).max())


def serve_digits(r, server):
    """One engine file on GPU and CPU, in batches of many clients."""
    engine = r.digits()
    expected = ingot_command.run(engine, {"image": r.images[:32]}, r.folder / "alone")["scores"]
    server.add("chosen", engine)  # no instance_group: the server asks the backend
    server.add("gpu", engine, group(2) + "dynamic_batching { max_queue_delay_microseconds: 2000 }\n")
    server.add("cpu", engine, group(1, "kind: KIND_CPU"))
    error = {}
    for name in ("chosen", "gpu", "cpu"):
        server.load(name)
        error[name] = error_of(server.infer(name, {"image": r.images[:32]})["scores"], expected)
    labels = np.load(DIGITS / "held_out_labels.npy")[:256]

    def classify(i):
        return int(np.argmax(server.infer("gpu", {"image": r.images[i:i + 1]})["scores"]))

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        right = float(np.mean(np.array(list(pool.map(classify, range(256)))) == labels))
    chosen = re.search(r"instance 'chosen_\S+' is ready on (GPU 0|the CPU),", server.said()).group(1)
    runs = float(re.search(r'ingot_runs\{model="gpu",version="1"\} (\S+)', server.metrics()).group(1))
    values = {"error": error, "held_out_right": right, "runs_of_256_requests": runs, "chosen_device": chosen}
    return chosen == "GPU 0" and max(error.values()) < 1e-3 and right > 0.9 and runs < 256, values


def keep_states(r, server):
    """The state of a sequence stays on the GPU between requests."""
    engine = r.folder / "recurrent.engine"
    ingot_command.build(recurrent.gru(r.folder / "recurrent.onnx", False), engine)
    x = np.random.default_rng(3).standard_normal((1, recurrent.STEPS * recurrent.CHUNKS, recurrent.INPUTS))
    x = x.astype(np.float32)
    expected = ingot_command.run(engine, {"x": x, "h": np.zeros((1, recurrent.HIDDEN), np.float32),
                                          "start": np.ones((1, 1), np.float32)}, r.folder / "whole")["y"]
    server.add("recurrent", engine, ON_GPU + recurrent.STRATEGIES["oldest"])
    server.load("recurrent")
    error = float(np.abs(recurrent.stream(server, "recurrent", 5, x) - expected).max())
    return error < 1e-3, {"error": error}


def device_bytes(server, model):
    """The gauge of a model; 0 where it has none any more."""
    found = re.search(rf'ingot_device_bytes\{{model="{model}",version="1"\}} (\S+)', server.metrics())
    return float(found.group(1)) if found else 0.0


def count_bytes(r, server):
    """A loaded model holds memory of the GPU, and an unloaded one gives all of it back."""
    server.add("counted", r.digits(), group(2))
    server.load("counted")
    loaded = device_bytes(server, "counted")
    server.unload("counted")
    end = time.monotonic() + 10
    while device_bytes(server, "counted") and time.monotonic() < end:
        time.sleep(0.05)
    gone = device_bytes(server, "counted") == 0
    return gone and loaded > 0, {"loaded": loaded, "given_back": gone}


def use_shared_memory(r, server):
    """Input and output in memory of the GPU that this process owns."""
    images = r.images[:8]
    server.add("shared", r.digits(), ON_GPU)
    server.load("shared")
    expected = server.infer("shared", {"image": images})["scores"]
    kind = SharedFile if r.rehearsed else DeviceArray
    regions = {"in": kind(images), "out": kind(np.zeros_like(expected))}
    for name, memory in regions.items():
        server.call(f"/v2/cudasharedmemory/region/{name}/register", json.dumps(
            {"raw_handle": {"b64": base64.b64encode(memory.handle()).decode()}, "device_id": 0,
             "byte_size": memory.bytes}).encode())
    for _ in range(20):
        server.call("/v2/models/shared/infer", json.dumps({
            "inputs": [{"name": "image", "datatype": "FP32", "shape": list(images.shape), "parameters": {
                "shared_memory_region": "in", "shared_memory_byte_size": images.nbytes}}],
            "outputs": [{"name": "scores", "parameters": {
                "shared_memory_region": "out", "shared_memory_byte_size": expected.nbytes}}]}).encode())
    equal = bool(np.array_equal(regions["out"].read(expected), expected))
    server.call("/v2/cudasharedmemory/unregister", b"{}")
    return equal, {"equal_to_the_host's": equal}


def count_recordings(r, _):
    """Each bucket is a graph before the model is ready; in the end a request is one launch of it, and no kernel's."""
    file = r.folder / "counts"
    file.write_bytes(bytes(24))

    def counts():
        return np.frombuffer(file.read_bytes(), np.int64)

    server = r.server("counting", preloaded=[r.library(HERE / "programs" / "count_graphs.c")])
    server.environment["INGOT_COUNTS"] = str(file)
    sizes = (1, 2, 4, 8)
    with server:
        server.add("digits", r.digits(8), "instance_group { kind: KIND_GPU gpus: [0] }\n")
        server.load("digits")
        values = {"graphs_at_ready": int(counts()[0])}
        end, rounds = time.monotonic() + 120, 0
        change = None
        while change != [0, len(sizes), 0] and time.monotonic() < end:  # until all kernels that fit are compiled
            before = counts()
            for rows in sizes:
                server.infer("digits", {"image": r.images[:rows]})
            change, rounds = (counts() - before).tolist(), rounds + 1
    values |= {"rounds": rounds, "graphs_made_launched_and_kernels_of_a_round": change}
    return values["graphs_at_ready"] >= len(sizes) and change == [0, len(sizes), 0], values


def resident_bytes(server):
    status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text(encoding="ascii")
    return 1024 * int(re.search(r"VmRSS:\s+(\d+)", status).group(1))


def refusal(server, name):
    """Why a model cannot be loaded; "" if it can."""
    try:
        server.load(name)
    except triton_server.Refused as refused:
        return f"{refused.status} {refused.text}"
    return ""


def load_often(r, _):
    """A thousand loads, half of them failing: by their file, or because the device has no room. Unloads come some time
    after their loads: one that overtakes the server's loader thread crashes it, whatever the backend."""
    cut = r.folder / "cut.engine"
    cut.write_bytes(r.digits(8).read_bytes()[:-40])
    large = r.folder / "large.engine"
    ingot_command.build(widened(r.folder / "large.onnx", LARGE_ROW), large)
    kinds = {"good": (r.digits(8), ""), "cut": (cut, ""),
             "large": (large, f"max_batch_size: {MOST_ROWS}\n" + buckets(MOST_ROWS))}
    good = [f"good{i}" for i in range(8)]
    failing = [f"{('cut', 'large')[i % 2]}{i}" for i in range(8)]
    values, texts, counts, resident = {"seconds_of_a_good_load": []}, set(), [], []
    server = r.server("loads")
    server.environment["MALLOC_ARENA_MAX"] = "1"  # else the C library takes memory for each thread that is new to it
    with server:
        for name in good + failing:
            engine, config = kinds[name.rstrip("0123456789")]
            server.add(name, engine, "instance_group { kind: KIND_GPU gpus: [0] }\n" + config, file_name="model.engine")
        start = time.monotonic()
        while sum(counts) < r.loads and time.monotonic() - start < MOST_SECONDS:
            begin = time.monotonic()
            for name in good:
                server.load(name)
            values["seconds_of_a_good_load"].append(round((time.monotonic() - begin) / len(good), 4))
            for name in good:
                server.infer(name, {"image": r.images[:1]})
            texts |= {re.sub(r"\d+", "N", refusal(server, name)) for name in failing}
            for name in good:
                server.unload(name)
            while any(server.answers(f"/v2/models/{name}/ready") for name in good):
                time.sleep(0.005)
            counts.append(len(good + failing))
            resident.append(resident_bytes(server))
        def left():
            return sum(device_bytes(server, name) for name in good + failing)
        end = time.monotonic() + 20  # a model that is not ready any more may still be giving back
        while left() != 0 and time.monotonic() < end:
            time.sleep(0.05)
        values["device_bytes_left"] = left()
        values["seconds"] = round(time.monotonic() - start, 1)
    values["seconds_of_a_good_load"] = values["seconds_of_a_good_load"][1::8]
    warm = len(resident) // 5
    values |= {"loads": sum(counts), "texts": sorted(texts), "resident_bytes": resident[warm::8],
               "resident_grown": resident[-1] - resident[warm]}
    return (values["loads"] >= r.loads and values["device_bytes_left"] == 0 and len(texts) == 2
            and (r.loads < 500 or values["resident_grown"] <= 2 << 20)), values  # few loads only warm up


def buckets(text):
    """The parameter of a configuration."""
    return f'parameters {{ key: "buckets" value: {{ string_value: "{text}" }} }}\n'


def use_two_gpus(r, server):
    """Instances on each GPU, on the second alone, and two on each, answer alike."""
    count = ctypes.c_int()
    cuda = driver(r.rehearsed)
    if cuda.cuInit(0) != 0 or cuda.cuDeviceGetCount(ctypes.byref(count)) != 0 or count.value < 2:
        return True, {"not_tested": f"{count.value} GPUs"}
    expected = ingot_command.run(r.digits(), {"image": r.images[:32]}, r.folder / "alone")["scores"]
    groups = {"each": (1, "gpus: [0, 1]"), "second": (1, "gpus: [1]"), "twice": (2, "gpus: [0, 1]")}
    values = {"gpus": count.value}
    for name, (instances, gpus) in groups.items():
        server.add(name, r.digits(), group(instances, f"kind: KIND_GPU {gpus}"))
        server.load(name)
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            answers = pool.map(lambda i: server.infer(name, {"image": r.images[i:i + 1]})["scores"],  # noqa: B023
                               [i % 32 for i in range(128)])
            error = error_of(np.concatenate(list(answers)), np.concatenate([expected] * 4))
        ready = sorted(re.findall(rf"instance '{name}_\S+' is ready on (GPU \d|the CPU),", server.said()))
        values[name] = {"error": error, "ready_on": ready, "device_bytes": device_bytes(server, name)}
    good = (values["each"]["ready_on"] == ["GPU 0", "GPU 1"] and values["second"]["ready_on"] == ["GPU 1"]
            and values["twice"]["ready_on"] == ["GPU 0", "GPU 0", "GPU 1", "GPU 1"]
            and max(values[name]["error"] for name in groups) < 1e-3)
    return good, values


def statistics(server, name):
    answer = json.loads(server.call(f"/v2/models/{name}/stats")[0])["model_stats"][0]["inference_stats"]
    return {k: (int(v["count"]), int(v["ns"])) for k, v in answer.items()}


def time_model(r, server, name):
    """The backend's own time of a request, as the server counts it, beside `ingot bench`."""
    inputs = TIMED[name]
    engine = r.folder / f"{name}.engine"
    shapes = ",".join(f"{n}:{'x'.join(map(str, a.shape))}" for n, a in inputs.items())
    ingot_command.build(model_file(name), engine, [
        "--fp16", *(f"--{size}Shapes={shapes}" for size in ("min", "opt", "max"))])
    server.add(name, engine, ON_GPU + "max_batch_size: 0\n")
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
    text = ingot_command.call("bench", engine, "--device=cuda", "--duration=2")
    latency = ingot_command.median_latency(text)
    # A request comes to a GPU and cores that have just been idle.
    text = ingot_command.call("bench", engine, "--device=cuda", "--duration=2", "--idleTime=1")
    idle = ingot_command.median_latency(text)
    return {"server_ms": sum(parts.values()), "bench_latency_ms": latency, "ratio": sum(parts.values()) / latency,
            "bench_idle_latency_ms": idle, "ratio_idle": sum(parts.values()) / idle, **parts}


def time_models(r, server):
    if r.rehearsed or shared_models() is None:
        return True, {"not_tested": "times need a GPU and shared/models"}
    return True, {name: time_model(r, server, name) for name in TIMED}


PARTS = {
    "digits": serve_digits,
    "states": keep_states,
    "cuda_shared_memory": use_shared_memory,
    "device_bytes": count_bytes,
    "recordings": count_recordings,
    "two_gpus": use_two_gpus,
    "times": time_models,
    "kernel_caches": lambda r, _: triton_faults.spoil_caches(r, r.images[:8]),
    "short_memory": triton_faults.shorten_memory,
    "lost_devices": lambda r, _: triton_faults.lose_devices(r, 3 if r.rehearsed else 11),
    "loads": load_often,
}


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--rehearse", action="store_true")
    p.add_argument("--parts", default=",".join(PARTS))
    p.add_argument("--loads", type=int, default=1000)
    p.add_argument("--capability", default="90", help="of GPU 0: 90 for 9.0")
    p.add_argument("--faulty-engine", help="made by --make-faulty where the Python package is")
    p.add_argument("--make-faulty", metavar="FILE")
    a = p.parse_args()
    if a.make_faulty:
        triton_faults.make_faulty_engine(pathlib.Path(a.make_faulty))
        return 0
    if not triton_server.SERVER.is_file():
        print(json.dumps({"good": True, "absent": f"THERE IS NO TRITON INFERENCE SERVER AT {triton_server.SERVER}"}))
        return 0
    if a.rehearse and not (triton_server.EMULATED / "server_cudart.so").is_file():
        print(json.dumps({"good": True, "absent": f"THERE ARE NO EMULATED GPUS FOR A SERVER IN {triton_server.EMULATED}"}))
        return 0
    report = {}
    with tempfile.TemporaryDirectory() as work:
        r = Run(a, pathlib.Path(work))
        if r.rehearsed:
            os.environ["INGOT_NVRTC"] = str(triton_server.EMULATED / "libnvrtc.so.13")  # of engines with kernels
        with r.server("server") as server:
            for part in a.parts.split(","):
                start = time.monotonic()
                try:
                    right, values = PARTS[part](r, server)
                except Exception:  # pylint: disable=broad-except
                    right, values = False, {"error": traceback.format_exc()[-1500:], "log": server.said()[-1500:]}
                report[part] = {"good": right, **values, "part_seconds": round(time.monotonic() - start, 1)}
                print(part, json.dumps(report[part]), flush=True)
    good = all(values["good"] for values in report.values())
    print(json.dumps({"good": good, **report}))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
