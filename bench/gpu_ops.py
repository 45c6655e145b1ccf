#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Single operators on large problems: Ingot beside PyTorch eager on one GPU, in one process.

  gpu_ops.py --models DIR --out FILE [--cases a,b] [--make]

Every case is an ONNX model of one operator, written to DIR where it is not there yet (which needs the
onnx package; --make does only that). Ours and PyTorch's calls take turns; `ours` and `eager` are
medians of the GPU's milliseconds from the first launch to the last, with the host in between where
the operator needs it; `graph` is PyTorch's call under a CUDA graph, where that can be. `same` says
whether the first results agree. Needs libingot_bench.so and ingot in BUILD (--build).
"""
import argparse
import json
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from gpu_cases import Peer, Session, library, median  # noqa: E402

MILLION = 1 << 20
WORST = 3.0  # of eager: the bar


class Case:
    """`node`: op, inputs {name: array maker}, weights {name: array maker}, attributes; `peer`: a
    function of torch and the inputs on the GPU; `result`: which output is compared. `channels_last`:
    the first input and the result are NHWC, and a SiLU follows."""

    def __init__(self, op, inputs, peer, weights=None, outputs=1, result=0, opset=20, capture=True, channels_last=False, tolerance=1e-3, **attributes):
        self.op, self.inputs, self.peer, self.weights = op, inputs, peer, weights or {}
        self.outputs, self.result, self.opset, self.capture = outputs, result, opset, capture
        self.channels_last, self.tolerance, self.attributes = channels_last, tolerance, attributes


def normal(*shape, dtype="float32"):
    return lambda rng: rng.standard_normal(shape, dtype="float32").astype(dtype)


def sparse(*shape):
    return lambda rng: (rng.random(shape) < 0.5).astype("float32")


def whole(high, *shape):
    return lambda rng: rng.integers(0, high, shape)


def permutation(n):
    return lambda rng: rng.permutation(n).astype("int64")


def given(*values, dtype="int64"):
    def make(rng):
        import numpy
        return numpy.array(values, dtype)
    return make


def boxes(n):
    def make(rng):
        import numpy
        corner, size = rng.random((n, 2)) * 1000, rng.random((n, 2)) * 40 + 2
        return numpy.concatenate([corner, corner + size], 1).astype("float32")[None]
    return make


def lstm_peer(hidden):
    def peer(torch, x, w):
        m = torch.nn.LSTM(hidden, hidden).cuda().eval()
        order = [0, 2, 3, 1]  # ONNX: input, output, forget, cell; PyTorch: input, forget, cell, output

        def rows(v):
            return torch.cat([v.chunk(4)[i] for i in order])
        with torch.no_grad():
            m.weight_ih_l0.copy_(rows(w["W"][0]))
            m.weight_hh_l0.copy_(rows(w["R"][0]))
            m.bias_ih_l0.copy_(rows(w["B"][0].chunk(2)[0]))
            m.bias_hh_l0.copy_(rows(w["B"][0].chunk(2)[1]))
        return lambda: m(x["X"])[0]
    return peer


def lstm(steps, batch, hidden):
    scale = hidden ** -0.5

    def weight(*shape):
        return lambda rng: (rng.random(shape, dtype="float32") * 2 - 1) * scale
    return Case("LSTM", {"X": normal(steps, batch, hidden)}, lstm_peer(hidden),
                weights={"W": weight(1, 4 * hidden, hidden), "R": weight(1, 4 * hidden, hidden), "B": weight(1, 8 * hidden)},
                outputs=1, hidden_size=hidden, tolerance=2e-2)


def nms_peer(torch, x, w):
    try:
        from torchvision.ops import nms
    except ImportError:
        return None
    b, s = x["boxes"][0], x["scores"][0, 0]

    def call():
        keep = nms(b, s, 0.5)
        return torch.stack([torch.zeros_like(keep), torch.zeros_like(keep), keep], 1)
    return call


def group_norm(channels, side):
    def peer(torch, x, w):
        f, v = torch.nn.functional, x["x"].permute(0, 3, 1, 2)
        return lambda: f.silu(f.group_norm(v, 32, w["scale"], w["bias"], 1e-5)).permute(0, 2, 3, 1)
    return Case("GroupNormalization", {"x": normal(2, side, side, channels, dtype="float16")}, peer, channels_last=True,
                weights={"scale": normal(channels, dtype="float16"), "bias": normal(channels, dtype="float16")}, num_groups=32, opset=21, tolerance=2e-2)


def topk(shape, k, axis=-1):
    return Case("TopK", {"x": normal(*shape)}, lambda torch, x, w: lambda: torch.topk(x["x"], k, axis)[0],
                weights={"k": given(k)}, outputs=2, axis=axis)


def sort(shape, axis=-1):
    return Case("TopK", {"x": normal(*shape)}, lambda torch, x, w: lambda: torch.sort(x["x"], axis, descending=True)[0],
                weights={"k": given(shape[axis])}, outputs=2, axis=axis)


def cumsum(shape, axis):
    return Case("CumSum", {"x": normal(*shape)}, lambda torch, x, w: lambda: torch.cumsum(x["x"], axis), weights={"axis": scalar(axis)})


def scalar(value, dtype="int64"):
    def make(rng):
        import numpy
        return numpy.array(value, dtype)
    return make


FOUR = 4 * MILLION
CASES = {
    "sort_4m": sort((FOUR,)),
    "sort_rows": sort((4096, 1024)),
    "topk_4m_k100": topk((FOUR,), 100),
    "topk_4m_k1000": topk((FOUR,), 1000),
    "topk_rows_k100": topk((64, 65536), 100),
    "cumsum_4m": cumsum((FOUR,), 0),
    "cumsum_rows": cumsum((4096, 1024), 1),
    "cumsum_columns": cumsum((4096, 1024), 0),
    "nonzero_4m": Case("NonZero", {"x": sparse(FOUR)}, lambda torch, x, w: lambda: torch.nonzero(x["x"]).T, capture=False),
    "scatter_4m": Case("ScatterElements", {"x": normal(FOUR), "i": permutation(FOUR), "u": normal(FOUR)},
                       lambda torch, x, w: lambda: torch.scatter(x["x"], 0, x["i"], x["u"])),
    "scatter_add_4m": Case("ScatterElements", {"x": normal(FOUR), "i": whole(FOUR, FOUR), "u": normal(FOUR)},
                           lambda torch, x, w: lambda: torch.scatter_add(x["x"], 0, x["i"], x["u"]), reduction="add"),
    "gather_4m": Case("GatherElements", {"x": normal(FOUR), "i": whole(FOUR, FOUR)},
                      lambda torch, x, w: lambda: torch.gather(x["x"], 0, x["i"])),
    "gather_rows": Case("Gather", {"x": normal(50000, 1024), "i": whole(50000, 4096)},
                        lambda torch, x, w: lambda: torch.nn.functional.embedding(x["i"], x["x"])),
    "argmax_4m": Case("ArgMax", {"x": normal(FOUR)}, lambda torch, x, w: lambda: torch.argmax(x["x"], 0, keepdim=True), axis=0),
    "sum_columns": Case("ReduceSum", {"x": normal(4096, 1024)}, lambda torch, x, w: lambda: torch.sum(x["x"], 0, keepdim=True), weights={"axes": given(0)}),
    "nms_20k": Case("NonMaxSuppression", {"boxes": boxes(20000), "scores": lambda rng: rng.random((1, 1, 20000), dtype="float32")}, nms_peer,
                    weights={"most": given(20000), "iou": given(0.5, dtype="float32"), "score": given(0.0, dtype="float32")}, capture=False),
    "resize_linear": Case("Resize", {"x": normal(4, 64, 128, 128)},
                          lambda torch, x, w: lambda: torch.nn.functional.interpolate(x["x"], scale_factor=2, mode="bilinear"),
                          weights={"roi": given(dtype="float32"), "scales": given(1, 1, 2, 2, dtype="float32")}, mode="linear"),
    "group_norm_64": group_norm(320, 64),
    "group_norm_32": group_norm(960, 32),
    "group_norm_8": group_norm(1280, 8),
    "lstm_512_b1": lstm(512, 1, 512),
    "lstm_512_b32": lstm(512, 32, 512),
}


def arrays(makers):
    import numpy
    rng = numpy.random.default_rng(7)
    return {name: make(rng) for name, make in makers.items()}


def write_model(case, path):
    import onnx
    from onnx import helper, numpy_helper
    x = arrays(case.inputs)
    w = arrays(case.weights)
    outputs = [f"y{i}" for i in range(case.outputs)]
    names = [*x, *w]
    nodes = [helper.make_node(case.op, names, outputs, **case.attributes)]
    if case.channels_last:
        nodes = [helper.make_node("Transpose", [names[0]], ["nchw"], perm=[0, 3, 1, 2]),
                 helper.make_node(case.op, ["nchw", *names[1:]], ["normed"], **case.attributes),
                 helper.make_node("Sigmoid", ["normed"], ["gate"]), helper.make_node("Mul", ["normed", "gate"], ["gated"]),
                 helper.make_node("Transpose", ["gated"], outputs, perm=[0, 2, 3, 1])]
    graph = helper.make_graph(
        nodes, path.stem,
        [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for n, v in x.items()],
        [helper.make_empty_tensor_value_info(n) for n in outputs],
        [numpy_helper.from_array(v, n) for n, v in w.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", case.opset)], ir_version=9)
    model = onnx.shape_inference.infer_shapes(model)
    path.write_bytes(model.SerializeToString())


def plain_times(torch, call, runs):
    times = []
    for _ in range(runs):
        a, b = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        a.record()
        call()
        b.record()
        b.synchronize()
        times.append(a.elapsed_time(b))
    return times


def same(torch, case, ours, theirs):
    theirs = theirs.float().flatten().cpu()
    ours = torch.from_numpy(ours)
    if ours.numel() != theirs.numel():
        return f"{ours.numel()} elements, PyTorch has {theirs.numel()}"
    error = float((ours - theirs).abs().max() / max(float(theirs.abs().max()), 1e-12))
    return True if error <= case.tolerance else f"error {error:.2g}"


def run_case(name, a):
    import torch
    case = CASES[name]
    folder, build = pathlib.Path(a.models), pathlib.Path(a.build)
    path, engine = folder / f"{name}.onnx", folder / f"{name}.engine"
    if not path.exists():
        write_model(case, path)
    if not engine.exists():
        done = subprocess.run([build / "ingot", "build", path, "-o", engine], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr[-500:])
    inputs, weights = arrays(case.inputs), arrays(case.weights)
    start = time.time()
    ours = Session(library(build), engine, a.options)
    for key, value in inputs.items():
        ours.set(key, value)
    ours.run()
    result = {"case": name, "first_result_s": round(time.time() - start, 3)}
    for _ in range(2):
        ours.run()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    call = case.peer(torch, {k: torch.from_numpy(v).cuda() for k, v in inputs.items()}, {k: torch.from_numpy(v).cuda() for k, v in weights.items()})
    times = {"ours": [], "eager": [], "graph": []}
    graph = None
    with torch.no_grad():
        if call is not None:
            for _ in range(3):
                theirs = call()
            result["same"] = same(torch, case, ours.output(case.result), theirs)
            if case.capture:
                try:
                    graph = Peer(call, ())
                except RuntimeError as e:
                    result["graph_failed"] = str(e)[:80]
        for _ in range(a.rounds):
            times["ours"] += ours.time(8)[0][1:]
            if call is not None:
                times["eager"] += plain_times(torch, call, 8)[1:]
            if graph is not None:
                times["graph"] += graph.time(8)[1:]
    for key, values in times.items():
        if values:
            result[f"{key}_ms"] = round(median(values), 4)
    if "eager_ms" in result:
        result["of_eager"] = round(result["ours_ms"] / result["eager_ms"], 2)
    profile = ours.profile(5)
    result["steps"] = len(profile)
    if a.profile:
        result["profile"] = [line[:3] for line in profile]
    ours.close()
    result["device"] = torch.cuda.get_device_name(0)
    return result


def table(results):
    lines = [f"{'case':16} {'ours ms':>9} {'eager ms':>9} {'graph ms':>9} {'of eager':>9}  same"]
    for r in results:
        if "failed" in r:
            lines.append(f"{r['case']:16} failed: {r['failed'][:90]}")
            continue
        cells = [f"{r[k]:9.4f}" if k in r else f"{'-':>9}" for k in ("ours_ms", "eager_ms", "graph_ms", "of_eager")]
        late = "  SLOW" if r.get("of_eager", 0) > WORST else ""
        lines.append(f"{r['case']:16} {' '.join(cells)}  {r.get('same', '-')}{late}")
    return "\n".join(lines)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--models", required=True)
    p.add_argument("--build", default="build")
    p.add_argument("--out", default="")
    p.add_argument("--cases", default=",".join(CASES))
    p.add_argument("--rounds", type=int, default=4)
    p.add_argument("--options", default="")
    p.add_argument("--profile", action="store_true", help="the steps of each plan with their times")
    p.add_argument("--make", action="store_true", help="only write the models")
    a = p.parse_args()
    pathlib.Path(a.models).mkdir(parents=True, exist_ok=True)
    results = []
    for name in a.cases.split(","):
        if a.make:
            write_model(CASES[name], pathlib.Path(a.models) / f"{name}.onnx")
            continue
        try:
            results.append(run_case(name, a))
        except Exception as e:  # one case does not end the others
            results.append({"case": name, "failed": f"{type(e).__name__}: {e}"})
        print(json.dumps(results[-1]), flush=True)
        if a.out:
            pathlib.Path(a.out).write_text(json.dumps(results, indent=1) + "\n")
    if results:
        print(table(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
