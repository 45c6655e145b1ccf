#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ingot beside PyTorch on one GPU: each case of the target table in one process per case.

  gpu_cases.py --models DIR --peers TORCH_PEERS.PY --out FILE.json [--cases a,b] [--modes eager,compile]

DIR has NAME.onnx with weights (fill_weights.py). Ours, PyTorch eager under a CUDA graph, and
torch.compile under a CUDA graph take turns; the medians of the GPU's milliseconds are compared.
Each case's inputs are random. --type is that of inputs, outputs and computation: f16, bf16 (whose inputs
and outputs are f32, since numpy has none), or f32, whose products both sides compute as TF32. The time to the first result is taken in
fresh processes on --cores cores, with an empty and with a warm runtime cache, from the call that loads
the engine to the output on the host; creating the CUDA context is shown apart. The error is ours against the f32 engine without TF32, relative to the
range of the first output. --prepare N works on N cases at once beforehand, untimed: engines and what torch.compile
keeps are made side by side. FILE.json keeps what it has of other cases; FILE.md is a table of it. Needs libingot_bench.so and ingot in BUILD (--build, default build).
"""
import argparse
import concurrent.futures
import ctypes
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

CASES = {
    # name: (model, inputs: {name: (dtype, shape, low, high)}, name among the peers)
    "resnet50_b1": ("resnet50", {"input": ("f", (1, 3, 224, 224))}, "resnet50 b1"),
    "resnet50_b32": ("resnet50", {"input": ("f", (32, 3, 224, 224))}, "resnet50 b32"),
    "mobilenet_v3_b1": ("mobilenet_v3_large", {"input": ("f", (1, 3, 224, 224))}, "mobilenet_v3 b1"),
    "efficientnet_b0_b1": ("efficientnet_b0", {"input": ("f", (1, 3, 224, 224))}, "efficientnet_b0 b1"),
    "swin_t_b1": ("swin_t", {"input": ("f", (1, 3, 224, 224))}, "swin_t b1"),
    "vit_b_16_b1": ("vit_b_16_dynamo", {"input": ("f", (1, 3, 224, 224))}, "vit_b_16 b1"),
    "vit_b_16_b32": ("vit_b_16_dynamo", {"input": ("f", (32, 3, 224, 224))}, "vit_b_16 b32"),
    "bert_s128_b1": ("bert_base_dynamo", {"input_ids": ("i", (1, 128)), "attention_mask": ("1", (1, 128))}, "bert_base b1 s128"),
    "bert_s128_b32": ("bert_base_dynamo", {"input_ids": ("i", (32, 128)), "attention_mask": ("1", (32, 128))}, "bert_base b32 s128"),
    "bert_s384_b1": ("bert_base_dynamo", {"input_ids": ("i", (1, 384)), "attention_mask": ("1", (1, 384))}, "bert_base b1 s384"),
    "bert_s384_b32": ("bert_base_dynamo", {"input_ids": ("i", (32, 384)), "attention_mask": ("1", (32, 384))}, "bert_base b32 s384"),
    "sd15_unet_b2": ("sd15_unet", {"sample": ("f", (2, 4, 64, 64)), "timestep": ("t", (2,)), "context": ("f", (2, 77, 768))}, "sd15_unet b2"),
    "llama32_1b_decode": ("llama32_1b_decode", {"past_k": ("f", (16, 1, 8, 512, 64)), "past_v": ("f", (16, 1, 8, 512, 64))}, "llama1b decode"),
}


def library(build):
    lib = ctypes.CDLL(str(pathlib.Path(build).resolve() / "libingot_bench.so"))
    lib.ingot_bench_error.restype = ctypes.c_char_p
    lib.ingot_bench_profile.restype = ctypes.c_char_p
    return lib


class Session:
    """An engine on the GPU; inputs are numpy arrays."""

    def __init__(self, lib, engine, options=""):
        self.lib = lib
        self.handle = ctypes.c_void_p()
        self.check(lib.ingot_bench_open(str(engine).encode(), options.encode(), ctypes.byref(self.handle)))

    def check(self, code):
        if code:
            raise RuntimeError(self.lib.ingot_bench_error().decode())

    def set(self, name, array):
        import numpy as np
        array = np.ascontiguousarray(array)
        shape = (ctypes.c_int64 * array.ndim)(*array.shape)
        self.check(self.lib.ingot_bench_input(self.handle, name.encode(), array.ctypes.data_as(ctypes.c_void_p), shape, array.ndim))

    def run(self):
        self.check(self.lib.ingot_bench_run(self.handle))

    def output(self, index=0):
        import numpy as np
        total = ctypes.c_int64()
        self.check(self.lib.ingot_bench_output(self.handle, index, None, ctypes.c_int64(0), ctypes.byref(total)))
        out = np.empty(total.value, np.float32)
        self.check(self.lib.ingot_bench_output(self.handle, index, out.ctypes.data_as(ctypes.c_void_p), total, ctypes.byref(total)))
        return out

    def time(self, runs):
        compute, enqueue = (ctypes.c_double * runs)(), (ctypes.c_double * runs)()
        self.check(self.lib.ingot_bench_time(self.handle, runs, compute, enqueue))
        return list(compute), list(enqueue)

    def profile(self, runs=10):
        text = self.lib.ingot_bench_profile(self.handle, runs)
        return [line.split("\t") for line in (text or b"").decode().splitlines()]

    def close(self):
        self.lib.ingot_bench_close(self.handle)


def make_inputs(spec, model):
    import numpy as np
    import onnx
    rng = np.random.default_rng(7)
    graph = onnx.load(str(model), load_external_data=False).graph
    types = {i.name: i.type.tensor_type for i in graph.input}
    made = {}
    for name, t in types.items():
        dtype = onnx.helper.tensor_dtype_to_np_dtype(t.elem_type)
        kind, shape = spec.get(name, ("?", None))
        if shape is None:
            shape = tuple(max(d.dim_value, 1) for d in t.shape.dim)
            kind = "i" if dtype.kind == "i" else "f"
        if kind == "f":
            made[name] = rng.standard_normal(shape).astype(dtype)
        elif kind == "1":
            made[name] = np.ones(shape, dtype)
        elif kind == "t":
            made[name] = np.full(shape, 500, dtype)
        else:
            made[name] = rng.integers(0, 1000, shape).astype(dtype)
    return made


def as_type(inputs, kind):
    import numpy as np
    narrow = np.float16 if kind == "f16" else np.float32
    return {k: v.astype(narrow) if v.dtype == np.float32 else v for k, v in inputs.items()}


def build_engines(name, a):
    """The engines of a case's model, of --type and f32, built once, and the seconds that building took."""
    model = CASES[name][0]
    onnx_path = pathlib.Path(a.models) / f"{model}.onnx"
    engines, seconds = {}, {}
    halves = ["--fp16", "--inputIOFormats=fp16:chw", "--outputIOFormats=fp16:chw"]
    flags_of = {"f16": halves, "bf16": ["--bf16"], "f32": []}
    for kind in dict.fromkeys((a.type,) if a.no_check else (a.type, "f32")):
        flags = flags_of[kind]
        engines[kind] = pathlib.Path(a.models) / f"{model}.{kind}.engine"
        if not engines[kind].exists():
            start = time.time()
            done = subprocess.run([pathlib.Path(a.build) / "ingot", "build", onnx_path, "-o", engines[kind], *flags], capture_output=True, text=True)
            if done.returncode:
                raise RuntimeError(done.stderr[-500:])
            seconds[f"aot_{kind}_s"] = round(time.time() - start, 2)
    return engines, seconds


def first_result(name, a):
    """Seconds to the CUDA context, and from the engine's path to its first output, in this process."""
    model, spec, _ = CASES[name]
    engine = build_engines(name, a)[0][a.type]
    inputs = as_type(make_inputs(spec, pathlib.Path(a.models) / f"{model}.onnx"), a.type)
    lib = library(a.build)
    start = time.time()
    driver, device, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), ctypes.c_void_p()
    for code in (driver.cuInit(0), driver.cuDeviceGet(ctypes.byref(device), 0),
                 driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)):
        if code:
            raise RuntimeError(f"the driver says {code}")
    opened = time.time()
    session = Session(lib, engine, a.options)
    for key, value in inputs.items():
        session.set(key, value)
    session.run()
    session.output()
    return {"context_s": round(opened - start, 3), "first_s": round(time.time() - opened, 3)}


def first_results(name, a, flags):
    """By an empty and by a warm runtime cache, in a fresh process each."""
    with tempfile.TemporaryDirectory() as cache:
        env = {**os.environ, "INGOT_RUNTIME_CACHE": cache, "CUDA_CACHE_DISABLE": "1"}
        cores = f"0-{a.cores - 1}"
        out = {}
        for kind in ("empty", "warm"):
            done = subprocess.run(["taskset", "-c", cores, sys.executable, __file__, "--first", "--cases", name, *flags],
                                  capture_output=True, text=True, env=env)
            lines = [l for l in done.stdout.splitlines() if l.startswith("RESULT ")]
            if not lines:
                return {"first_failed": done.stderr[-400:]}
            made = json.loads(lines[-1][7:])
            out[f"first_{kind}_s"] = made["first_s"]
            out["context_s"] = made["context_s"]
        return {**out, "first_cores": a.cores}


def median(values):
    values = sorted(values)
    return values[len(values) // 2]


def peer_case(path, wanted):
    """(maker, arguments, channels_last) of one case of torch_peers.py, whose own runs are left out."""
    text = pathlib.Path(path).read_text().replace("def case(", "def unused_case(")
    found = {}

    def case(name, make, args, cl=False):
        found[name] = (make, args, cl)

    sys.path.insert(0, str(pathlib.Path(path).parent))
    saved, sys.argv = sys.argv, ["torch_peers.py", "0"]
    scope = {"case": case, "__file__": str(path), "__name__": "peers"}
    exec(compile(text, str(path), "exec"), scope)
    sys.argv = saved
    return found[wanted]


class Peer:
    """A function under a CUDA graph."""

    def __init__(self, f, args):
        import torch
        self.torch = torch
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream), torch.no_grad():
            for _ in range(5):
                f(*args)
        torch.cuda.current_stream().wait_stream(stream)
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        with torch.no_grad(), torch.cuda.graph(self.graph):
            f(*args)

    def time(self, runs):
        times = []
        for _ in range(runs):
            a, b = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
            a.record()
            self.graph.replay()
            b.record()
            b.synchronize()
            times.append(a.elapsed_time(b))
        return times


def run_case(name, a):
    model, spec, peer_name = CASES[name]
    onnx_path = pathlib.Path(a.models) / f"{model}.onnx"
    engines, seconds = build_engines(name, a)
    result = {"case": name, "type": a.type, **seconds}
    inputs = make_inputs(spec, onnx_path)
    given = as_type(inputs, a.type)
    lib = library(a.build)
    ours = Session(lib, engines[a.type], a.options)
    for key, value in given.items():
        ours.set(key, value)
    ours.run()
    for _ in range(3):
        ours.run()
    if not a.no_check:
        import numpy as np
        reference = Session(lib, engines["f32"], "notf32 nograph")
        for key, value in inputs.items():  # the same numbers
            reference.set(key, given[key].astype(value.dtype))
        reference.run()
        want, got = reference.output(), ours.output()
        reference.close()
        result["error"] = float(np.abs(got - want).max() / max(want.max() - want.min(), 1e-12))
    peers = {}
    modes = [m for m in a.modes.split(",") if m]
    if modes:
        import torch
        torch.backends.cudnn.benchmark = True
        torch.backends.cuda.matmul.allow_tf32 = True
        make, args, channels_last = peer_case(a.peers, peer_name)
        torch.manual_seed(0)
        torch.backends.cudnn.allow_tf32 = True
        m = make().to("cuda", {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}[a.type]).eval()
        args = tuple(x.to(next(m.parameters()).dtype) if x.is_floating_point() else x for x in args)
        if channels_last:
            m = m.to(memory_format=torch.channels_last)
            args = tuple(x.to(memory_format=torch.channels_last) if x.dim() == 4 else x for x in args)
        if "eager" in modes:
            peers["eager"] = Peer(m, args)
        if "compile" in modes:
            start = time.time()
            c = torch.compile(m, mode=a.compile_mode)
            with torch.no_grad():
                c(*args)
                torch.cuda.synchronize()
            result["compile_ready_s"] = round(time.time() - start, 1)
            peers["compile"] = Peer(c, args)
    times = {key: [] for key in ("ours", *peers)}
    enqueue = []
    for _ in range(a.rounds):
        compute, queued = ours.time(20)
        times["ours"] += compute[2:]
        enqueue += queued[2:]
        for key, peer in peers.items():
            times[key] += peer.time(20)[2:]
    for key, values in times.items():
        result[f"{key}_ms"] = round(median(values), 4)
    result["enqueue_us"] = round(median(enqueue) * 1000, 1)
    profile = ours.profile(20)
    result["kernels"] = len(profile)
    result["kernel_sum_ms"] = round(sum(float(line[0]) for line in profile), 4)
    if a.profile:
        pathlib.Path(a.profile).mkdir(parents=True, exist_ok=True)
        (pathlib.Path(a.profile) / f"{name}.tsv").write_text("\n".join("\t".join(line) for line in profile) + "\n")
    import torch
    result["device"] = torch.cuda.get_device_name(0)
    return result


COLUMNS = (("case", "case", ""), ("ours_ms", "ours ms", ".3f"), ("eager_ms", "eager ms", ".3f"), ("compile_ms", "compile ms", ".3f"),
           ("of_eager", "of eager", ".2f"), ("of_compile", "of compile", ".2f"), ("kernels", "kernels", "d"),
           ("kernel_sum_ms", "kernels alone ms", ".3f"), ("enqueue_us", "enqueue us", ".1f"),
           ("first_empty_s", "first result s", ".2f"), ("first_warm_s", "warm cache s", ".2f"))


def table(results):
    """Markdown. "kernels alone": the sum of their times one by one, which is more than a replayed graph of them takes."""
    devices = ", ".join(sorted({r["device"] for r in results if "device" in r}))
    types = ", ".join(sorted({r.get("type", "f16") for r in results})).replace("f32", "f32 as TF32")
    lines = [f"Device: {devices}. Computed in {types}; medians; eager and compile are PyTorch's under CUDA graphs in the process that times "
             "ours.", "", "| " + " | ".join(title for _, title, _ in COLUMNS) + " |", "|---" * len(COLUMNS) + "|"]
    for r in results:
        for peer in ("eager", "compile"):
            if f"{peer}_ms" in r:
                r = r | {f"of_{peer}": r["ours_ms"] / r[f"{peer}_ms"]}
        cells = [format(r[key], form) if key in r else "" for key, _, form in COLUMNS]
        lines.append("| " + " | ".join(cells) + (f" | {r['failed']}" if "failed" in r else " |"))
    return "\n".join(lines) + "\n"


def write(path, results):
    """JSON, and a table beside it. Entries of other cases stay in the file, so that cases can be
    spread over runs."""
    path = pathlib.Path(path)
    done = {r["case"]: r for r in (json.loads(path.read_text()) if path.exists() else [])}
    done |= {r["case"]: r for r in results}
    ordered = [done[name] for name in CASES if name in done]
    path.write_text(json.dumps(ordered, indent=1) + "\n")
    path.with_suffix(".md").write_text(table(ordered))


def case_command(name, a, **changed):
    """The command of one case in a process of its own, and its flags."""
    given = {**vars(a), **changed}
    flags = [f for key, value in given.items() if key not in ("one", "first", "cases", "out", "no_check", "prepare")
             for f in (f"--{key.replace('_', '-')}", str(value))]
    flags += ["--no-check"] if given["no_check"] else []
    return [sys.executable, __file__, "--one", "--cases", name, *flags], flags


def prepare(names, a):
    """Makes engines, and compiles the peers into PyTorch's cache, `a.prepare` cases at once."""
    with concurrent.futures.ThreadPoolExecutor(a.prepare) as pool:
        for done in pool.map(lambda n: subprocess.run(case_command(n, a, rounds=1, profile="")[0], capture_output=True), names):
            if done.returncode:
                print(done.stderr.decode()[-300:], flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--models", required=True)
    p.add_argument("--peers", default="")
    p.add_argument("--build", default="build")
    p.add_argument("--out", default="")
    p.add_argument("--cases", default=",".join(CASES))
    p.add_argument("--type", default="f16", choices=("f16", "bf16", "f32"))
    p.add_argument("--modes", default="eager,compile")
    p.add_argument("--compile-mode", default="max-autotune-no-cudagraphs")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--options", default="")
    p.add_argument("--profile", default="")
    p.add_argument("--no-check", action="store_true")
    p.add_argument("--prepare", type=int, default=0, metavar="N")
    p.add_argument("--cores", type=int, default=4, help="for the time to the first result; 0: leave it out")
    p.add_argument("--one", action="store_true", help="run the one case in this process")
    p.add_argument("--first", action="store_true", help="time its first result in this process")
    a = p.parse_args()
    if a.first:
        print("RESULT " + json.dumps(first_result(a.cases, a)))
        return 0
    if a.one:
        print("RESULT " + json.dumps(run_case(a.cases, a)))
        return 0
    if a.prepare:
        prepare(a.cases.split(","), a)
    results = []
    for name in a.cases.split(","):
        command, flags = case_command(name, a)
        done = subprocess.run(command, capture_output=True, text=True, env=os.environ)
        lines = [l for l in done.stdout.splitlines() if l.startswith("RESULT ")]
        r = json.loads(lines[-1][7:]) if lines else {"case": name, "failed": (done.stderr or done.stdout)[-600:]}
        if lines and a.cores:
            r.update(first_results(name, a, flags))
        results.append(r)
        print(json.dumps(r), flush=True)
        if a.out:
            write(a.out, results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
