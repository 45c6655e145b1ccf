# SPDX-License-Identifier: Apache-2.0
"""Faults of a GPU under the real Triton Inference Server: kernels that lose the device or never end, caches of
kernels that cannot be used, no compiler."""
import os
import pathlib
import subprocess
import sys
import time

import numpy as np

import ingot_command
import serving_models
import triton_server

DIGITS = ingot_command.DIGITS
ON_GPU = "instance_group { kind: KIND_GPU }\n"
TRUST = "--backend-config=ingot,allow-engine-code=true"
NO_COMPILER = ("kernels have to be compiled for GPU 0, and nothing here can: install NVRTC 13 or 12 where the server runs, or "
               "name it in INGOT_NVRTC, or let the engine bring its kernels: 'ingot build --computeCapabilities={}' with "
               "--backend-config=ingot,trusted-keys=FILE or allow-engine-code=true")
NO_MEMORY = "503 IExecutionContext::enqueueV3: the allocator of output 'y' gave no memory for 419430400000 bytes"
MOST_ROWS, LARGE_ROW = 2 ** 20, 100_000  # 400 GB of output, which no GPU has
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


def make_faulty_engine(path):
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


def shorten_memory(r, server):
    """A run for which the GPU has no memory is answered with 503; smaller ones and other models go on."""
    engine = r.folder / "widened.engine"
    ingot_command.build(serving_models.widened(r.folder / "widened.onnx", LARGE_ROW, ("n", "m")), engine)
    server.add("widened", engine, "instance_group { kind: KIND_GPU gpus: [0] }\n")
    server.add("beside", r.digits(8), ON_GPU)
    for name in ("widened", "beside"):
        server.load(name)
    expected = server.infer("beside", {"image": r.images[:8]})["scores"]
    values = {"texts": [], "small_are_right": [], "others_are_right": []}
    for _ in range(3):
        try:
            server.infer("widened", {"x": np.zeros((1, MOST_ROWS, 1), np.float32)})
        except triton_server.Refused as refused:
            values["texts"].append(f"{refused.status} {refused.text}")
        x = np.arange(1, 4, dtype=np.float32).reshape(1, 3, 1)
        y = server.infer("widened", {"x": x})["y"]
        values["small_are_right"].append(bool(np.array_equal(y, np.repeat(x, LARGE_ROW, 2))))
        got = server.infer("beside", {"image": r.images[:8]})["scores"]
        values["others_are_right"].append(bool(np.allclose(got, expected, rtol=1e-3, atol=1e-3)))
    return (values["texts"] == [NO_MEMORY] * 3 and all(values["small_are_right"] + values["others_are_right"])), values


def outcome_of(server, value):
    """(status, text) of a request."""
    try:
        server.infer("faulty", {"x": np.array([[value]], np.float32)})
        return 200, ""
    except triton_server.Refused as refused:
        return refused.status, refused.text
    except OSError as closed:
        return "closed", str(closed)


def lose_devices(r, times):
    """An illegal access ends the server with 86, a run without end with 87; it is started again."""
    values = {"statuses": [], "exit_codes": [], "seconds_to_exit": [], "seconds_to_ready": []}
    server = r.server("faulty", [TRUST])
    server.add("faulty", r.faulty_engine(),
               ON_GPU + 'parameters { key: "hang_timeout_ms" value: { string_value: "1000" } }\n')
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
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k,mode=755", "tmpfs", folder], check=False, capture_output=True)
    return folder if done.returncode == 0 else None


def scores_of(r, name, engine, images, cache, options=(), preloaded=()):
    """The scores of one request to a server of its own, or the text that refuses the load."""
    with r.server(name, options, cache, preloaded) as server:
        server.add("digits", engine, "instance_group { kind: KIND_GPU gpus: [0] }\n")
        try:
            server.load("digits")
        except triton_server.Refused as refused:
            return refused.text
        return server.infer("digits", {"image": images})["scores"]


def spoil_caches(r, images):
    """Kernel caches that are absent, damaged, full or read-only cost nothing but themselves; without a compiler an engine
    serves if it brings its kernels, else the load says so."""
    folder = r.folder
    engines = {"jit": folder / "cached.engine", "ahead": folder / "ahead.engine"}
    for name, engine in engines.items():
        ahead = [f"--computeCapabilities={r.capability}"] if name == "ahead" else []
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
        got = scores_of(r, state, engines["jit"], images, place)
        expected = got if expected is None else expected
        values[state] = got if isinstance(got, str) else bool(np.allclose(got, expected, rtol=1e-3, atol=1e-3))
    if places["full"] is not None:
        subprocess.run(["umount", places["full"]], check=False)
    away = [r.library(ingot_command.REPOSITORY / "tests" / "onnxruntime" / "programs" / "no_nvrtc.c")]
    for state, engine, options in (("no_compiler", "jit", []), ("no_compiler_ahead", "ahead", [TRUST])):
        got = scores_of(r, state, engines[engine], images, "none", options, away)
        values[state] = got if isinstance(got, str) else bool(np.allclose(got, expected, rtol=1e-3, atol=1e-3))
    values["no_compiler"] = NO_COMPILER.format(r.capability) in str(values["no_compiler"]) or values["no_compiler"]
    return all(v is True or str(v).startswith("not tested: ") for v in values.values()), values
