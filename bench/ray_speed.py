#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ingot in a real Ray Serve cluster on the CPU, beside ONNX Runtime in the same Ray Serve class.

  ray_speed.py --out FILE.json [--models small,mobilenet_v3_large,bert_base_dynamo] [--clients 1,4,16] [--seconds S]
               [--rounds N] [--threads N]

Two clusters of one node stand side by side; rounds of load go to one and then to the other, so that whatever else the
machine does meets both. A row has requests a second and the latency's median and 99th percentile of each, and the
median over the rounds of the ratios; docs/serving.md says what is aimed at. The front end's own cost is a request's
median latency of one client less the median of the same run by `ingot bench`.
"""
import argparse
import json
import os
import pathlib
import re
import statistics
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "tests" / "python"), str(HERE)]
import numpy as np  # noqa: E402
import onnxruntime  # noqa: E402

import ingot_command  # noqa: E402
import ray_cluster  # noqa: E402
import triton_speed  # noqa: E402
from triton_speed import BERT, MOBILENET, SHAPES, SMALL  # noqa: E402

ROWS = 16
CONFIG = f"""max_batch_size: {ROWS}
instance_group [{{ count: 1 kind: KIND_CPU }}]
dynamic_batching {{ max_queue_delay_microseconds: 1000 }}
parameters {{ key: "threads" value: {{ string_value: "%d" }} }}
"""


class Peer(ray_cluster.Cluster):
    program = HERE / "ray_peer.py"


def packages(folder):
    """A folder for Ray's own Python with the onnxruntime of this one, and nothing else."""
    found = pathlib.Path(onnxruntime.__file__).parent
    for name in ("onnxruntime", "flatbuffers", "packaging"):
        if (found.parent / name).is_dir():
            (folder / name).symlink_to(found.parent / name)
    return folder


def values(model):
    """An input of one row."""
    random = np.random.default_rng(7)
    if model == BERT:
        return {"input_ids": random.integers(0, 30000, (1, 128)),
                "attention_mask": np.ones((1, 128), np.int64)}
    return {name: random.random((1, *sizes), np.float32) for name, sizes in SHAPES[model].items()}


def load(cluster, model, clients, seconds):
    """Requests a second, and the latencies' median and 99th percentile in ms, of clients that ask one by one."""
    inputs = values(model)
    cluster.infer(model, inputs)
    end = time.perf_counter() + seconds
    found, failed = [], []

    def ask():
        try:
            while (start := time.perf_counter()) < end:
                cluster.infer(model, inputs)
                found.append(1e3 * (time.perf_counter() - start))
        except Exception as error:  # whatever it is: the row has no figures then
            failed.append(error)

    threads = [threading.Thread(target=ask) for _ in range(clients)]
    start = time.perf_counter()
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    if failed:
        raise RuntimeError(f"{len(failed)} of {clients} clients failed: {failed[0]!r}")
    return {"a_second": len(found) / (time.perf_counter() - start), "p50_ms": float(np.percentile(found, 50)),
            "p99_ms": float(np.percentile(found, 99))}


def latency_ms(engine, model, threads):
    shapes = ",".join(f"{tensor}:{'x'.join(map(str, (1, *sizes)))}" for tensor, sizes in SHAPES[model].items())
    text = ingot_command.call("bench", engine, "--device=cpu", f"--threads={threads}", f"--shapes={shapes}",
                              "--duration=2")
    return ingot_command.median_latency(text)


def row(ours, theirs, model, clients, options):
    rounds = [{name: load(cluster, model, clients, options.seconds)
               for name, cluster in (("ingot", ours), ("onnxruntime", theirs))} for _ in range(options.rounds)]
    middle = {name: {key: statistics.median(one[name][key] for one in rounds) for key in rounds[0][name]}
              for name in rounds[0]}
    ratios = [one["ingot"]["a_second"] / one["onnxruntime"]["a_second"] for one in rounds]
    return {**middle, "throughput_ratio": statistics.median(ratios), "ratios": ratios,
            "p99_ratio": statistics.median(one["ingot"]["p99_ms"] / one["onnxruntime"]["p99_ms"] for one in rounds)}


def machine():
    text = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    name = re.search(r"^model name\s*: (.*)$", text, re.M)
    return {"cpu": name.group(1) if name else "", "cores": len(os.sched_getaffinity(0)),
            "load_before": os.getloadavg()[0]}


def agree(ours, theirs, model):
    """Whether both give the same answers to one request, to a thousandth of the range."""
    inputs = values(model)
    a, b = ours.infer(model, inputs), theirs.infer(model, inputs)
    return all(float(np.abs(a[name] - b[name]).max()) <= 1e-3 * max(float(np.abs(b[name]).max()), 1.0) for name in b)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--out", type=pathlib.Path, required=True)
    names = lambda text: text.split(",")  # noqa: E731
    p.add_argument("--models", type=names, default=[SMALL, MOBILENET, BERT])
    p.add_argument("--clients", type=lambda text: [int(n) for n in text.split(",")], default=[1, 4, 16])
    p.add_argument("--seconds", type=float, default=4, help="of each round of each side")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--threads", type=int, default=1, help="of a model")
    options = p.parse_args()
    report = {**machine(), "onnxruntime": onnxruntime.__version__, "threads": options.threads, "rounds": options.rounds,
              "seconds_of_a_round": options.seconds, "rows": {}}
    with tempfile.TemporaryDirectory() as text:
        folder = pathlib.Path(text)
        (folder / "packages").mkdir()
        path = ":".join(map(str, (packages(folder / "packages"), ray_cluster.package.folder())))
        ours = ray_cluster.Cluster(folder / "ours")
        theirs = Peer(folder / "theirs", environment={"PYTHONPATH": path})
        bench = triton_speed.Bench(argparse.Namespace(device="cpu", server_cores=0), folder)
        for cluster in (ours, theirs):
            for model in options.models:
                cluster.add(model, bench.engine(model, ROWS), CONFIG % options.threads)
                if cluster is theirs:
                    (cluster.repository / model / "1" / "peer.txt").write_text(str(bench.model(model)))
        with ours, theirs:
            ours.run()
            theirs.do("run_peer", {"repository": str(theirs.repository)})
            for model in options.models:
                if not agree(ours, theirs, model):
                    raise RuntimeError(f"the answers of {model} differ")
                bare = latency_ms(bench.engine(model, ROWS), model, options.threads)
                for clients in options.clients:
                    found = row(ours, theirs, model, clients, options)
                    if clients == 1:
                        found |= {"bench_ms": bare, "front_end_ms": found["ingot"]["p50_ms"] - bare}
                    report["rows"][f"{model}_{clients}"] = found
                    print(model, clients, json.dumps(found), flush=True)
                    options.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
