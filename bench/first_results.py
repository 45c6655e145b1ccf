#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times to the first result of several builds of Ingot, in turns on one GPU.

  first_results.py --graphs DIR --builds before=DIR,after=DIR --work DIR [--cases a,b] [--rounds N]

The graphs are those of gpu_cases.py's cases without their weights (NAME.onnx, NAME.weights.json), which are made here: a pattern of the given
deviation, so that gigabytes take seconds. The first build's `ingot` makes the engines in f16. Each time is that of a fresh process, from the call
that loads the engine to the output on the host, on --cores cores, with an empty and with a warm runtime cache; creating the CUDA context is left
out. In the process with the warm cache the replayed run is timed too. The table has medians; "bits" says whether the builds' first outputs were equal.
--trace prints the phases of one cold start of the last build. --replays-only leaves first results out: only replayed runs are timed.
"""
import argparse
import concurrent.futures
import ctypes
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import gpu_cases


def fill(graph, out):
    """The model with weights of its own: slices of one block of normal numbers, scaled."""
    import numpy as np
    import onnx
    model = onnx.load(str(graph), load_external_data=False)
    spec = json.loads(graph.with_suffix(".weights.json").read_text())
    block = np.random.default_rng(1).standard_normal(1 << 22, dtype=np.float32)
    offset = 0
    with open(out.with_suffix(".data"), "wb") as data:
        for n, tensor in enumerate(t for t in model.graph.initializer if t.name in spec):
            s = spec[tensor.name]
            count = int(np.prod(s["shape"]))
            first = n * 7919 % (len(block) // 2)  # tensors of one shape differ
            start = data.tell()
            left = count
            while left > 0:
                part = block[first:][:left]
                data.write(np.clip(part * s["std"] + s["mean"], s["min"], s["max"]).astype(s["dtype"]).tobytes())
                left -= len(part)
                first = 0
            del tensor.external_data[:]
            for key, value in (("location", out.with_suffix(".data").name), ("offset", str(start)), ("length", str(data.tell() - start))):
                entry = tensor.external_data.add()
                entry.key, entry.value = key, value
            offset = data.tell()
            data.seek(-(-offset // 4096) * 4096)
        data.truncate(max(offset, 1))
    out.write_bytes(model.SerializeToString())


def make_engine(model, a):
    work = pathlib.Path(a.work)
    onnx_path, engine = work / f"{model}.onnx", work / f"{model}.engine"
    if not engine.exists():
        fill(pathlib.Path(a.graphs) / f"{model}.onnx", onnx_path)
        ingot = pathlib.Path(a.builds[0][1]) / "ingot"
        halves = ["--fp16", "--inputIOFormats=fp16:chw", "--outputIOFormats=fp16:chw"]
        done = subprocess.run([ingot, "build", onnx_path, "-o", engine, *halves], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr[-500:])
        onnx_path.with_suffix(".data").unlink()


def write_inputs(name, a):
    import numpy as np
    model, spec, _ = gpu_cases.CASES[name]
    work = pathlib.Path(a.work)
    onnx_path = work / f"{model}.onnx"
    inputs = gpu_cases.as_type(gpu_cases.make_inputs(spec, onnx_path), "f16")
    for key, value in inputs.items():
        np.save(work / f"{name}.{key}.npy", value)


def measure(name, a):
    """One first result, in this process."""
    import numpy as np
    work = pathlib.Path(a.work)
    inputs = {p.name[len(name) + 1:-4]: np.load(p) for p in work.glob(f"{name}.*.npy")}
    engine = work / f"{gpu_cases.CASES[name][0]}.engine"
    lib = gpu_cases.library(a.one)
    driver, device, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), ctypes.c_void_p()
    for code in (driver.cuInit(0), driver.cuDeviceGet(ctypes.byref(device), 0), driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)):
        if code:
            raise RuntimeError(f"the driver says {code}")
    if a.trace:
        lib.ingot_bench_start_trace()
    start = time.time()
    session = gpu_cases.Session(lib, engine)
    opened = time.time()
    for key, value in inputs.items():
        session.set(key, value)
    session.run()
    output = session.output()
    out = {"first_s": time.time() - start, "open_s": opened - start, "bits": hashlib.sha256(output.tobytes()).hexdigest()[:16]}
    if a.trace:
        lib.ingot_bench_trace.restype = ctypes.c_char_p
        out["trace"] = lib.ingot_bench_trace().decode()
    if a.repeats:
        out["ms"] = gpu_cases.median(session.time(a.repeats + 10)[0][10:])
    return out


def in_fresh_process(name, build, cache, a, repeats=0, trace=False):
    env = {**os.environ, "INGOT_RUNTIME_CACHE": cache, "CUDA_CACHE_DISABLE": "1"}
    done = subprocess.run(["taskset", "-c", f"0-{a.cores - 1}", sys.executable, __file__, "--one", build, "--cases", name, "--work", a.work,
                           "--repeats", str(repeats), *(["--trace"] if trace else [])], capture_output=True, text=True, env=env)
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    if not lines:
        raise RuntimeError(f"{name}, {build}: {done.stderr[-400:]}")
    return json.loads(lines[-1][7:])


def run_case(name, a):
    """By build: the times of each round."""
    all_times = {label: {"empty": [], "warm": [], "open": [], "ms": [], "bits": set()} for label, _ in a.builds}
    for turn in range(a.rounds):
        for label, build in a.builds if turn % 2 == 0 else reversed(a.builds):
            times = all_times[label]
            if a.replays_only:
                cold = warm = in_fresh_process(name, build, str(pathlib.Path(a.work) / f"cache.{label}"), a, repeats=a.repeats)
            else:
                with tempfile.TemporaryDirectory() as cache:
                    cold = in_fresh_process(name, build, cache, a)
                    warm = in_fresh_process(name, build, cache, a, repeats=a.repeats)
                times["empty"].append(cold["first_s"])
                times["warm"].append(warm["first_s"])
                times["open"].append(cold["open_s"])
            times["ms"].append(warm["ms"])
            times["bits"] |= {cold["bits"], warm["bits"]}
    return all_times


def print_trace(name, a):
    with tempfile.TemporaryDirectory() as cache:
        trace = in_fresh_process(name, a.builds[-1][1], cache, a, trace=True)["trace"]
    for line in trace.splitlines():
        phase, detail, thread, start, end = line.split("\t")
        print(f"  {float(start):8.1f} {float(end) - float(start):8.1f} ms  thread {thread:>2}  {phase} {detail[:60]}")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--graphs")
    p.add_argument("--builds", default="", help="label=folder,... with ingot and libingot_bench.so")
    p.add_argument("--work", required=True)
    p.add_argument("--cases", default="resnet50_b1,bert_s128_b1,vit_b_16_b1,sd15_unet_b2,llama32_1b_decode")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--repeats", type=int, default=60, help="replayed runs that are timed")
    p.add_argument("--cores", type=int, default=8)
    p.add_argument("--replays-only", action="store_true")
    p.add_argument("--trace", action="store_true")
    p.add_argument("--out", default="")
    p.add_argument("--one", default="", help="time one first result of this build in this process")
    a = p.parse_args()
    if a.one:
        print("RESULT " + json.dumps(measure(a.cases, a)))
        return 0
    a.builds = [tuple(b.split("=", 1)) for b in a.builds.split(",")]
    pathlib.Path(a.work).mkdir(parents=True, exist_ok=True)
    start = time.time()
    names = a.cases.split(",")
    models = sorted({gpu_cases.CASES[name][0] for name in names})
    with concurrent.futures.ProcessPoolExecutor(len(names)) as pool:
        list(pool.map(make_engine, models, [a] * len(models)))
        list(pool.map(write_inputs, names, [a] * len(names)))
    print(f"engines made in {time.time() - start:.0f} s", flush=True)
    labels = [label for label, _ in a.builds]
    columns = {"empty": ("empty s", ".3f"), "warm": ("warm s", ".3f"), "open": ("opening s", ".3f"), "ms": ("replay ms", ".4f")}
    if a.replays_only:
        columns = {"ms": columns["ms"]}
    print("| case | " + " | ".join(f"{title} {label}" for title, _ in columns.values() for label in labels) + " | bits |")
    print("|---" * (len(columns) * len(labels) + 2) + "|")
    results = {}
    for name in names:
        try:
            r = run_case(name, a)
        except RuntimeError as e:
            print(f"| {name} | {e} |", flush=True)
            continue
        results[name] = {label: {k: sorted(v) for k, v in times.items()} for label, times in r.items()}
        cells = [format(gpu_cases.median(r[label][key]), form)
                 for key, (_, form) in columns.items() for label in labels]
        bits = len(set.union(*(r[label]["bits"] for label in labels)))
        print(f"| {name} | " + " | ".join(cells) + (" | equal |" if bits == 1 else f" | {bits} different |"), flush=True)
    if a.out:
        pathlib.Path(a.out).write_text(json.dumps(results, indent=1) + "\n")
    if a.trace:
        for name in names:
            print(f"{name}, empty cache, {labels[-1]}:", flush=True)
            print_trace(name, a)
    print(f"{time.time() - start:.0f} s in all")
    return 0


if __name__ == "__main__":
    sys.exit(main())
