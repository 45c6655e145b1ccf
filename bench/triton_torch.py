#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ingot's backend on a GPU beside torch.compile in the python backend of the same Triton Inference Server.

  triton_torch.py --perf-analyzer FILE --out FILE.json [--models resnet50,bert_base_dynamo,mobilenet_v3_large]
                  [--clients 1,64] [--seconds S] [--rounds N] [--mode default] [--rehearse]

Both serve the same architecture in 16 bits with inputs and outputs of 32, batched by the server in the same way. PyTorch's
buckets are compiled one by one and recorded as CUDA graphs; it has one instance, and two as another model, since each is a
process of its own, and the better of the two counts. Weights are random on both sides and not the same, so that shapes of
answers are compared and values are not. Rounds of load take turns; a row has requests a second, the latency's median and
99th percentile of each, and the median ratio; docs/serving.md says what is aimed at. PyTorch needs this Python's shared
library for the backend's stub. --rehearse runs a small model, uncompiled, on the CPU.
"""
import argparse
import concurrent.futures
import json
import pathlib
import statistics
import sys
import tempfile
import time
import traceback

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "tests" / "python"), str(HERE)]
import numpy as np  # noqa: E402

import triton_server  # noqa: E402
from triton_python import add_python_backend, add_source, configuration_of, parameter, python_library  # noqa: E402
from triton_speed import BERT, MOBILENET, RESNET, SHAPES, SMALL, Bench  # noqa: E402

ROWS = 32
PEERS = {"torch1": 1, "torch2": 2}  # name: instances
BATCHING = f"max_batch_size: {ROWS}\ndynamic_batching {{ max_queue_delay_microseconds: 500 }}\n"


def inputs_of(model, rows):
    kind = np.int64 if model == BERT else np.float32
    return {name: np.ones((rows, *sizes), kind) for name, sizes in SHAPES[model].items()}


def add_models(server, bench, model, options):
    """The architecture for both backends; PyTorch's is not loaded yet."""
    server.add(f"ingot_{model}", bench.engine(model, ROWS), BATCHING + bench.group(2))
    server.load(f"ingot_{model}")
    parameters = {"model": model, "device": options.device, "mode": options.mode, "buckets": options.buckets,
                  "python": sys.executable}
    for name, instances in PEERS.items():
        server.add(f"{name}_{model}", HERE / "triton_torch_model.py",
                   'backend: "python"\n' + BATCHING + bench.group(instances) + configuration_of(server, f"ingot_{model}")
                   + "".join(parameter(*one) for one in parameters.items()), file_name="model.py")
        add_source(server, f"{name}_{model}", HERE / "triton_torch_model.py")


def load_timed(server, name):
    begin = time.monotonic()
    server.call(f"/v2/repository/models/{name}/load", b"{}", timeout=600)
    return round(time.monotonic() - begin, 1)


def same_shapes(server, model, peer):
    """Both give finite answers of the same names, shapes and types, in a full batch and in one that is padded."""
    for rows in (ROWS, 3):
        ours, theirs = (server.infer(f"{side}_{model}", inputs_of(model, rows)) for side in ("ingot", peer))
        for name in ours.keys() | theirs.keys():
            if ours[name].shape != theirs[name].shape or ours[name].dtype != theirs[name].dtype:
                raise RuntimeError(f"{model}: '{name}' is {ours[name].dtype}{ours[name].shape} and "
                                   f"{theirs[name].dtype}{theirs[name].shape}")
            if not np.isfinite(theirs[name]).all() or not theirs[name].any():
                raise RuntimeError(f"{model}: '{name}' of PyTorch is not finite, or zero")
            if model == SMALL and not np.allclose(ours[name], theirs[name]):  # its weights are the same
                raise RuntimeError(f"{model}: '{name}' differs")


def row(bench, server, model, clients, options):
    sides = ("ingot", *PEERS)
    rounds = [{side: bench.load(server, f"{side}_{model}", concurrency_range=clients) for side in sides}
              for _ in range(options.rounds)]
    found = {side: dict(zip(("a_second", "p50_ms", "p99_ms"),
                            (statistics.median(one[side][i] for one in rounds) for i in range(3)))) for side in sides}
    best = max(PEERS, key=lambda side: found[side]["a_second"])
    ratios = [one["ingot"][0] / one[best][0] for one in rounds]
    return found | {"better_peer": best, "throughput_ratio": statistics.median(ratios), "ratios": ratios,
                    "p99_ratio": statistics.median(one["ingot"][2] / one[best][2] for one in rounds)}


def compare(bench, server, options, report):
    import torch
    report |= {"torch": torch.__version__, "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None}
    for model in options.models:
        add_models(server, bench, model, options)
    with concurrent.futures.ThreadPoolExecutor() as pool:  # compiling takes most of the time
        pending = {model: {peer: pool.submit(load_timed, server, f"{peer}_{model}") for peer in PEERS}
                   for model in options.models}
    for model, loads in pending.items():
        try:
            report["rows"][model] = {"ready_s": {peer: done.result() for peer, done in loads.items()}}
            for peer in PEERS:
                same_shapes(server, model, peer)
            for clients in options.clients:
                found = report["rows"][model][f"clients_{clients}"] = row(bench, server, model, clients, options)
                print(model, clients, json.dumps(found), flush=True)
        except Exception:  # one model is not another's
            report["rows"].setdefault(model, {})["error"] = traceback.format_exc()[-1500:]
            report["good"] = False
        options.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--perf-analyzer", required=True)
    p.add_argument("--out", type=pathlib.Path, required=True)
    p.add_argument("--models", type=lambda text: text.split(","), default=[RESNET, BERT, MOBILENET])
    p.add_argument("--clients", type=lambda text: [int(n) for n in text.split(",")], default=[1, 64])
    p.add_argument("--seconds", type=float, default=2, help="of each round of each side")
    p.add_argument("--rounds", type=int, default=2)
    p.add_argument("--mode", default="default", help="of torch.compile")
    p.add_argument("--buckets", default=f"[1, 8, 16, {ROWS}]", help="of PyTorch")
    p.add_argument("--server-cores", type=int, default=0)
    p.add_argument("--rehearse", action="store_true")
    options = p.parse_args()
    options.device = "cpu" if options.rehearse else "cuda"
    options.models = [SMALL] if options.rehearse else options.models
    report = {"mode": options.mode, "buckets": options.buckets, "python": sys.version.split()[0], "good": True, "rows": {}}
    if python_library() is None:
        report |= {"good": False, "error": "this Python has no shared library, which the python backend's stub needs"}
    with tempfile.TemporaryDirectory() as text:
        bench = Bench(options, pathlib.Path(text))
        server = bench.server()
        server.environment = add_python_backend(server)
        server.options = ["--log-verbose=0", "--backend-config=python,shm-default-byte-size=67108864"]
        try:
            with server:
                compare(bench, server, options, report)
        except Exception:
            report |= {"good": False, "error": traceback.format_exc()[-1500:]}
        if not report["good"]:
            report["log"] = server.said()[-3000:]
    options.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return 0 if report["good"] else 1


if __name__ == "__main__":
    sys.exit(main())
