#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ingot on models nobody tuned for, beside ONNX Runtime's CUDA provider and PyTorch, on one GPU.

  gpu_wide.py --work DIR --out FILE.json [--cases a,b] [--build build] [--before build] [--peers ort,eager,compile]

Each case is a model of torchvision, timm, transformers, spandrel, diffusers or others (wide_models.py, domain_models.py, application_models.py) with
random weights, in 16-bit floats, exported here by torch.onnx.export: Ingot and ONNX Runtime get the same file. Ingot replays its own graph; ONNX Runtime runs with
CUDA graphs and bound device memory where the model lets it (`ort_graph` says so), PyTorch eager and torch.compile
(default mode) under a CUDA graph. All cases prepare side by side, each in a process; then they are timed one by one,
the sides taking turns. Figures are medians of the GPU's milliseconds. `error` and `torch_error` are the largest
differences from PyTorch in float32, relative to the range of the output. FILE.md beside FILE.json is a table.
Needs torch, torchvision, timm, transformers, spandrel, diffusers, onnxscript, for some cases ultralytics, monai, segmentation_models_pytorch,
tab_transformer_pytorch and torch_geometric, and onnxruntime-gpu (without it: its column is empty),
and libingot_bench.so and ingot in BUILD.
"""
import argparse
import json
import math
import os
import pathlib
import queue
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from gpu_cases import Peer, Session, library, median  # noqa: E402
from wide_models import CASES, SCRIPTED  # noqa: E402


def first_tensor(out):
    import torch
    while not isinstance(out, torch.Tensor):
        out = next(iter(out.values())) if hasattr(out, "values") else out[0]
    return out


def model_of(name):
    """(the model, one tensor in and one out, in float32 on the GPU; its input in float32)"""
    import torch
    make, spec = CASES[name]
    torch.manual_seed(0)
    (key, (kind, shape)), = spec.items()

    class OneTensor(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = make()
            with torch.no_grad():
                for weights in self.model.parameters():
                    if weights.dim() > 1 and not weights.any():
                        weights.normal_(std=0.02)  # a head of zeros would hide every error

        def forward(self, x):
            return first_tensor(self.model(x) if key == "x" else self.model(**{key: x}))

    x = torch.randn(*shape, device="cuda") if kind == "f" else torch.randint(0, 1000, shape, device="cuda")
    return OneTensor().to("cuda").eval(), x


class OnnxRuntime:
    """A session of the CUDA provider on a stream of PyTorch's, all tensors bound; by a CUDA graph where the model lets it."""

    def __init__(self, path, x, like):
        import numpy as np
        import onnxruntime
        import torch
        if hasattr(onnxruntime, "preload_dlls"):
            onnxruntime.preload_dlls()
        self.torch, self.stream = torch, torch.cuda.Stream()
        self.out = torch.empty_like(like)
        self.x = x
        for graph in (True, False):
            try:
                options = onnxruntime.SessionOptions()
                options.log_severity_level = 3
                provider = {"user_compute_stream": str(self.stream.cuda_stream), "enable_cuda_graph": "1" if graph else "0"}
                self.session = onnxruntime.InferenceSession(str(path), options, providers=[("CUDAExecutionProvider", provider)])
                if self.session.get_providers()[0] != "CUDAExecutionProvider":
                    raise RuntimeError("ONNX Runtime did not take its CUDA provider")
                self.binding = self.session.io_binding()
                for tensor, value, bind in ((x, self.session.get_inputs()[0], self.binding.bind_input),
                                            (self.out, self.session.get_outputs()[0], self.binding.bind_output)):
                    dtype = np.int64 if tensor.dtype == torch.int64 else np.float16
                    bind(value.name, "cuda", 0, dtype, tuple(tensor.shape), tensor.data_ptr())
                for _ in range(3):
                    self.run()
                torch.cuda.synchronize()
                self.graph = graph
                return
            except Exception:
                if not graph:
                    raise

    def run(self):
        self.session.run_with_iobinding(self.binding)

    def time(self, runs):
        times = []
        with self.torch.cuda.stream(self.stream):
            for _ in range(runs):
                a, b = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
                a.record(self.stream)
                self.run()
                b.record(self.stream)
                b.synchronize()
                times.append(a.elapsed_time(b))
        return times


def error_of(got, want):
    return float((got.float() - want).abs().max() / (want.max() - want.min()).clamp_min(1e-12))


def work_on(name, a):
    """One case, in this process: prepares, says READY, waits for a line, times, prints RESULT."""
    import torch
    result, sides = {"case": name, "device": torch.cuda.get_device_name(0)}, {}
    torch.backends.cudnn.benchmark = True
    model, x = model_of(name)
    with torch.no_grad():
        want = model(x).float()
    half = model.half()
    x16 = x.half() if x.is_floating_point() else x
    with torch.no_grad():
        like = half(x16)
    result["torch_error"] = round(error_of(like, want), 6)
    folder = pathlib.Path(a.work)
    path, engine = folder / f"{name}.onnx", folder / f"{name}.engine"
    with torch.no_grad():
        if name in SCRIPTED:
            torch.onnx.export(half, (x16,), str(path), dynamo=False, opset_version=17)
        else:
            torch.onnx.export(half, (x16,), dynamo=True, verbose=False).save(str(path))
    def session(build, engine):
        done = subprocess.run([pathlib.Path(build) / "ingot", "build", path, "-o", engine], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError("ingot build: " + done.stderr[-700:])
        made = Session(library(build), engine, a.options)
        made.set(model_input(path), x16.cpu().numpy())
        return made

    ours = session(a.build, engine)
    start = time.time()
    ours.run()
    got = torch.from_numpy(ours.output()).to("cuda").reshape(want.shape)
    result["first_s"] = round(time.time() - start, 2)
    result["error"] = round(error_of(got, want), 6)
    ours.run()
    sides["ours"] = lambda runs: ours.time(runs)[0]
    if a.before:
        before = session(a.before, folder / f"{name}.before.engine")
        before.run()
        before.run()
        sides["before"] = lambda runs: before.time(runs)[0]
    wanted = a.peers.split(",")

    def side(key, make):
        if key not in wanted:
            return
        try:
            peer = make()
            sides[key] = peer.time
            return peer
        except Exception as e:
            result[f"{key}_failed"] = f"{type(e).__name__}: {e}"[-300:]

    ort = side("ort", lambda: OnnxRuntime(path, x16, like))
    if ort:
        result["ort_graph"] = ort.graph
        result["ort_error"] = round(error_of(ort.out, want), 6)
    side("eager", lambda: Peer(half, (x16,)))
    side("compile", lambda: Peer(torch.compile(half), (x16,)))
    torch.cuda.synchronize()
    print("READY", flush=True)
    sys.stdin.readline()
    times = {key: [] for key in sides}
    for _ in range(a.rounds):
        for key, timed in sides.items():
            times[key] += timed(20)[2:]
    for key, values in times.items():
        result[f"{key}_ms"] = round(median(values), 4)
    profile = ours.profile(10)
    result["kernels"] = len(profile)
    result["slowest"] = sorted(profile, key=lambda line: -float(line[0]))[:6]
    print("RESULT " + json.dumps(result), flush=True)


def model_input(path):
    import onnx
    return onnx.load(str(path), load_external_data=False).graph.input[0].name


class Worker:
    """The process of one case; `lines` has what it prints that concerns us, None at its end."""

    def __init__(self, name, flags, folder):
        self.name, self.lines = name, queue.Queue()
        self.log = open(folder / f"{name}.log", "w+")
        self.child = subprocess.Popen([sys.executable, __file__, "--one", "--cases", name, *flags], text=True,
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log,
                                      env={"TORCHINDUCTOR_COMPILE_THREADS": "2", "OMP_NUM_THREADS": "2", **os.environ})
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        for line in self.child.stdout:
            if line.startswith(("READY", "RESULT ")):
                self.lines.put(line)
        self.lines.put(None)

    def wait(self, seconds):
        try:
            return self.lines.get(timeout=max(seconds, 0.1))
        except queue.Empty:
            return None

    def go(self):
        self.child.stdin.write("go\n")
        self.child.stdin.flush()

    def failure(self):
        self.child.kill()
        self.log.flush()
        self.log.seek(0)
        return {"case": self.name, "failed": self.log.read()[-900:]}


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")


def table(results):
    peers = [p for p in ("before", "ort", "compile", "eager") if any(f"{p}_ms" in r for r in results)]
    lines = ["Device: " + ", ".join(sorted({r["device"] for r in results if "device" in r})) + ". 16-bit floats, medians of GPU milliseconds; "
             "a ratio is the peer's time by ours.", "",
             "| case | ours ms | " + " | ".join(f"{p} ms | ratio" for p in peers) + " | kernels | error | PyTorch's error |",
             "|---" * (5 + 2 * len(peers)) + "|"]
    ratios = {p: [] for p in peers}
    for r in results:
        if "ours_ms" not in r:
            lines.append(f"| {r['case']} | failed: {r.get('failed', '')[-200:]!r} |")
            continue
        cells = [r["case"], f"{r['ours_ms']:.3f}"]
        for p in peers:
            if f"{p}_ms" in r:
                ratios[p].append(r[f"{p}_ms"] / r["ours_ms"])
                cells += [f"{r[f'{p}_ms']:.3f}", f"{ratios[p][-1]:.2f}"]
            else:
                cells += ["", ""]
        lines.append("| " + " | ".join([*cells, str(r["kernels"]), f"{r['error']:.1e}", f"{r['torch_error']:.1e}"]) + " |")
    for p in peers:
        lines.append(f"\nGeometric mean of {p} / ours over {len(ratios[p])}: {geometric_mean(ratios[p]):.2f}")
    return "\n".join(lines) + "\n"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--work", required=True)
    p.add_argument("--build", default="build")
    p.add_argument("--out", default="")
    p.add_argument("--cases", default=",".join(CASES))
    p.add_argument("--peers", default="ort,eager,compile")
    p.add_argument("--before", default="", help="another build of Ingot, timed in turns with --build")
    p.add_argument("--rounds", type=int, default=4)
    p.add_argument("--options", default="")
    p.add_argument("--limit", type=float, default=300, help="seconds until timing starts, with whatever is ready")
    p.add_argument("--one", action="store_true", help="run the one case in this process")
    a = p.parse_args()
    if a.one:
        work_on(a.cases, a)
        return 0
    folder = pathlib.Path(a.work)
    folder.mkdir(parents=True, exist_ok=True)
    flags = [f for key in ("work", "build", "before", "peers", "rounds", "options") for f in (f"--{key}", str(getattr(a, key)))]
    deadline = time.time() + a.limit
    workers = [Worker(name, flags, folder) for name in a.cases.split(",")]
    ready = [(w, w.wait(deadline - time.time())) for w in workers]
    results = [w.failure() for w, line in ready if not line]
    for w, line in ready:
        if line:
            w.go()
            line = w.wait(60)
            results.append(json.loads(line[7:]) if line else w.failure())
    results.sort(key=lambda r: a.cases.split(",").index(r["case"]))
    print(table(results))
    if a.out:
        pathlib.Path(a.out).write_text(json.dumps(results, indent=1) + "\n")
        pathlib.Path(a.out).with_suffix(".md").write_text(table(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
