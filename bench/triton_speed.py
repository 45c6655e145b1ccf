#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ingot's backend in a real Triton Inference Server under load, beside `ingot bench` of the same engines.

  triton_speed.py --perf-analyzer FILE --out FILE.json [--rows a,b] [--seconds S] [--device cuda|cpu]
                  [--model bert_base_dynamo|small] [--instances 1,2] [--delays 0,500,2000] [--server-cores N]

`FILE` is the program of the PyPI package perf-analyzer (2.60.0; it needs glibc 2.38), which makes the load. The server
is found as by the tests (INGOT_TRITON, else .deps/triton), the models are those of shared/models (INGOT_SHARED).
Every row is a ratio of figures taken in this run; docs/serving.md says what is aimed at. With --server-cores the
server has the first N cores and the load the others: on shared cores 64 clients take time from what they measure.
"""
import argparse
import contextlib
import csv
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import traceback
from statistics import median

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "tests" / "python")]
import ingot_command  # noqa: E402
import triton_server  # noqa: E402
from models import model_file  # noqa: E402

BERT, RESNET, MOBILENET = "bert_base_dynamo", "resnet50", "mobilenet_v3_large"
BATCH = 32
QUEUE_DELAY_US = 500
SMALL, WIDE = "small", "wide"  # of this file: little work; little work and BERT's 384 KiB of output a row
SHAPES = {BERT: {"input_ids": (128,), "attention_mask": (128,)}, RESNET: {"input": (3, 224, 224)},
          MOBILENET: {"input": (3, 224, 224)},
          SMALL: {"x": (64,)}, WIDE: {"x": (16,)}}
FINE_BUCKETS = "1,2,4,8,12,16,20,24,28,32"
CLIENTS = 64


@contextlib.contextmanager
def on_cores(cores):
    """Programs started inside run on these cores; empty: on all."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores or before)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def write_product(path, inner, outer):
    """An ONNX model y = relu(x w) of float32 rows."""
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper
    weights = np.full((inner, outer), 1 / inner, np.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Relu", ["p"], ["y"])], "product",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", inner])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", outer])],
        [numpy_helper.from_array(weights, "w")])
    onnx.save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]), path)
    return path


class Bench:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.kind = "KIND_CPU" if options.device == "cpu" else "KIND_GPU"
        self.engines = {}
        self.servers = 0
        cores = sorted(os.sched_getaffinity(0))
        self.server_cores = set(cores[:options.server_cores])
        self.client_cores = set(cores[options.server_cores:]) if options.server_cores else set()

    def model(self, name):
        if name in (SMALL, WIDE):
            inner, outer = (64, 64) if name == SMALL else (16, 128 * 768)
            return write_product(self.folder / f"{name}.onnx", inner, outer)
        return model_file(name)

    def engine(self, name, rows):
        """An engine for 1 to `rows` rows, of 16 bits on a GPU."""
        if (name, rows) not in self.engines:
            precision = ["--fp16"] if self.options.device == "cuda" else []
            path = self.folder / f"{name}_{rows}.engine"
            shapes = {word: ",".join(f"{tensor}:{'x'.join(map(str, (count, *sizes)))}"
                                     for tensor, sizes in SHAPES[name].items())
                      for word, count in (("min", 1), ("opt", rows), ("max", rows))}
            ingot_command.build(self.model(name), path,
                                [*precision, *(f"--{word}Shapes={text}" for word, text in shapes.items())])
            self.engines[name, rows] = path
        return self.engines[name, rows]

    def latency_ms(self, name, rows, transfers=True):
        """The median latency of `ingot bench`, with transfers between host and device, or its computing."""
        shapes = ",".join(f"{tensor}:{'x'.join(map(str, (rows, *sizes)))}"
                          for tensor, sizes in SHAPES[name].items())
        text = ingot_command.call("bench", self.engine(name, rows), f"--device={self.options.device}",
                                  f"--shapes={shapes}", "--duration=2")
        if transfers:
            return ingot_command.median_latency(text)
        return float(re.search(r"\bCompute Time: min = .*?, median = ([0-9.eE+-]+) ms", text).group(1))

    def server(self, environment=None):
        self.servers += 1
        server = triton_server.Server(self.folder / f"server{self.servers}", environment=environment)
        start = server.start

        def start_on_its_cores():
            with on_cores(self.server_cores):
                start()
        server.start = start_on_its_cores
        return server

    def group(self, count):
        return f"instance_group {{ kind: {self.kind} count: {count} }}\n"

    def add_bert(self, server, name, *, batching=True, instances=2):
        scheduler = (f"max_batch_size: {BATCH}\ndynamic_batching {{ max_queue_delay_microseconds: "
                     f"{QUEUE_DELAY_US} }}\n") if batching else "max_batch_size: 1\n"
        server.add(name, self.engine(BERT, BATCH), self.group(instances) + scheduler)

    def load(self, server, model, *, seconds=None, batch=1, **how):
        """(inferences a second, p50 ms, p99 ms) of clients over gRPC with shared memory."""
        out = self.folder / "load.csv"
        out.unlink(missing_ok=True)
        length = int(1000 * (seconds or self.options.seconds) / 3)  # three windows are one measurement
        command = [self.options.perf_analyzer, "-m", model, "-u", f"127.0.0.1:{server.grpc}", "-i", "grpc",
                   "-b", str(batch), "--input-data", "zero", "--shared-memory", "system",
                   "--measurement-interval", str(length), "--max-trials", "3",
                   "--stability-percentage", "999", "--percentile", "99", "-f", str(out)]
        for key, value in how.items():
            command += [f"--{key.replace('_', '-')}", str(value)]
        with on_cores(self.client_cores):
            done = subprocess.run(list(map(str, command)), text=True, capture_output=True, timeout=120)
        if not out.is_file():
            raise RuntimeError(f"{' '.join(map(str, command))}\n{(done.stdout + done.stderr)[-1500:]}")
        row = next(csv.DictReader(out.open(encoding="utf-8")))
        return (float(row["Inferences/Second"]), float(row["p50 latency"]) * 1e-3,
                float(row["p99 latency"]) * 1e-3)


def client_median(bench):
    """The median that a client sees beside the latency with transfers; goal 1.30 for 1 ms and more."""
    out = {}
    for name in (BERT, RESNET):
        with bench.server() as server:
            server.add("m", bench.engine(name, BATCH), bench.group(1) + f"max_batch_size: {BATCH}\n")
            server.load("m")
            _, p50, _ = bench.load(server, "m", batch=BATCH, concurrency_range=1)
        latency = bench.latency_ms(name, BATCH)
        out[name] = {"client_p50_ms": p50, "bench_latency_ms": latency, "ratio": p50 / latency}
    return out


def statistics(server, model):
    """The server's sums of a model: requests, runs, and nanoseconds of each step of requests."""
    found = json.loads(server.call(f"/v2/models/{model}/stats")[0])["model_stats"][0]
    steps = ("success", "queue", "compute_input", "compute_infer", "compute_output")
    return {"rows": found["inference_count"], "runs": found["execution_count"],
            "requests": found["inference_stats"]["success"]["count"],
            **{step: found["inference_stats"][step]["ns"] for step in steps}}


def observed_load(bench, server, model, **how):
    """The load's figures with the server's own view of the same time: the mean batch, and the mean milliseconds
    of a request in each step. What the client waits beyond `success` is the front end's and its own."""
    before = statistics(server, model)
    rate, p50, p99 = bench.load(server, model, **how)
    change = {key: value - before[key] for key, value in statistics(server, model).items()}
    out = {"a_second": rate, "p50_ms": p50, "p99_ms": p99,
           "batch": round(change["rows"] / max(change["runs"], 1), 2)}
    for step in ("success", "queue", "compute_input", "compute_infer", "compute_output"):
        out[f"{step}_ms"] = round(change[step] / max(change["requests"], 1) * 1e-6, 4)
    return out


def loaded(bench, server, name, file, config, **how):
    """The observed load of a model that is there for it alone."""
    server.add(name, file, config)
    server.load(name)
    try:
        return observed_load(bench, server, name, concurrency_range=CLIENTS, **how)
    finally:
        server.unload(name)


def dynamic(delay, buckets=None):
    more = f'parameters {{ key: "buckets" value {{ string_value: "{buckets}" }} }}\n' if buckets else ""
    return f"max_batch_size: {BATCH}\ndynamic_batching {{ max_queue_delay_microseconds: {delay} }}\n" + more


def throughput(bench):
    """64 clients: dynamic batching beside batches of 1 (goal 4) and `ingot bench` (goal 0.80), for each number of
    instances, delay and choice of buckets. The best setting is the row's figure; all are in the report."""
    name, options = bench.options.model, bench.options
    engine = bench.engine(name, BATCH)
    alone = BATCH / (bench.latency_ms(name, BATCH, transfers=False) * 1e-3)
    settings = [(count, delay, buckets) for buckets in (None, FINE_BUCKETS) for count in options.instances
                for delay in options.delays]
    found = []
    with bench.server() as server:
        single = loaded(bench, server, "single", engine, bench.group(2) + "max_batch_size: 1\n")
        print("throughput single", json.dumps(single), flush=True)
        for i, (count, delay, buckets) in enumerate(settings):
            one = loaded(bench, server, f"dynamic{i}", engine, bench.group(count) + dynamic(delay, buckets))
            found.append({"instances": count, "delay_us": delay, "buckets": buckets or "default", **one,
                          "by_batch_1": one["a_second"] / single["a_second"],
                          "by_bench": one["a_second"] / alone})
            print("throughput", json.dumps(found[-1]), flush=True)
    best = max(found, key=lambda one: one["a_second"])
    return {"model": name, "bench_a_second": alone, "single": single, "best": best, "settings": found}


def front_end(bench):
    """64 clients of models with hardly any work: what server and load reach at most, with small answers and with
    answers of BERT's size."""
    out = {}
    with bench.server() as server:
        for name in (SMALL, WIDE):
            out[name] = loaded(bench, server, name, bench.engine(name, BATCH),
                               bench.group(2) + dynamic(QUEUE_DELAY_US))
    return out


def tail(bench):
    """p99 at 70 % of the throughput, arrivals at random, beside 2.5 largest buckets and the delay (goal 1),
    and in the first seconds of a fresh server beside later ones (goal 1.5)."""
    largest = bench.latency_ms(BERT, BATCH, transfers=False)
    with bench.server() as server:
        bench.add_bert(server, "m")
        server.load("m")
        full, _, _ = bench.load(server, "m", concurrency_range=64)
    rate = int(0.7 * full)
    poisson = {"request_rate_range": rate, "request_distribution": "poisson", "max_threads": 16}
    with bench.server() as server:
        bench.add_bert(server, "m")
        server.load("m")
        _, _, fresh = bench.load(server, "m", **poisson)
        _, p50, steady = bench.load(server, "m", **poisson)
    bound = 2.5 * largest + QUEUE_DELAY_US * 1e-3
    return {"rate": rate, "p50_ms": p50, "p99_ms": steady, "bound_ms": bound, "ratio": steady / bound,
            "fresh_p99_ms": fresh, "fresh_by_steady": fresh / steady}


def second_load(bench):
    """p99 of one model while another is loaded, by that before, medians of three turns; goal 1.5. `cold`: again and again,
    its kernels compiled anew; `warm`: its kernels are in the cache; `kept`: and none is unloaded meanwhile."""
    names, out = [f"other{i}" for i in range(8)], {}
    with tempfile.TemporaryDirectory() as cache, \
            bench.server(environment={"INGOT_RUNTIME_CACHE": cache}) as server:
        bench.add_bert(server, "m")
        server.load("m")
        full, _, _ = bench.load(server, "m", concurrency_range=64)
        poisson = {"request_rate_range": int(0.4 * full), "request_distribution": "poisson", "max_threads": 16}
        for name in names:
            server.add(name, bench.engine(RESNET, BATCH), bench.group(1) + f"max_batch_size: {BATCH}\n")
        for way in ("cold", "warm", "kept"):
            alone, beside, loads = [], [], []
            for _ in range(3):
                alone.append(bench.load(server, "m", **poisson)[2])
                with subprocess.Popen([sys.executable, "-c", LOADS, str(server.http), cache,
                                       str(bench.options.seconds), way, *names], stdout=subprocess.PIPE, text=True) as done:
                    beside.append(bench.load(server, "m", **poisson)[2])
                    loads.append(json.loads(done.communicate(timeout=120)[0]))
            out[way] = {"p99_ms": alone, "p99_beside_ms": beside, "loads_s": loads,
                        "ratio": median(beside) / median(alone)}
    return out


LOADS = """
import json, pathlib, shutil, sys, time, urllib.request
port, cache, seconds, way, *names = sys.argv[1:]
def call(what, name):
    urllib.request.urlopen(urllib.request.Request(
        f"http://127.0.0.1:{port}/v2/repository/models/{name}/{what}", data=b"{}"), timeout=60).read()
times, end = [], time.monotonic() + float(seconds)
for i in range(10 ** 6):
    if time.monotonic() > end or way == "kept" and i == len(names):
        break
    if way == "cold":
        for entry in pathlib.Path(cache).iterdir():
            shutil.rmtree(entry, ignore_errors=True) if entry.is_dir() else entry.unlink(missing_ok=True)
    start = time.monotonic()
    call("load", names[i if way == "kept" else 0])
    times.append(round(time.monotonic() - start, 3))
    time.sleep(0.05)  # an unload that overtakes the server's loader thread crashes the server
    if way != "kept":
        call("unload", names[0])
for name in names[:len(times)] if way == "kept" else []:
    call("unload", name)
print(json.dumps(times))
"""


def ready(bench):
    """A fresh server to READY, less the server's own start, beside `ingot run` of the same engine; goal 1.3."""
    out = {}
    for name in (BERT, RESNET):
        engine = bench.engine(name, 1)
        for state in ("cold", "warm"):
            with tempfile.TemporaryDirectory() as cache:
                os.environ["INGOT_RUNTIME_CACHE"] = cache
                try:
                    times = {}
                    for what in ("run", "server"):
                        if state == "warm":
                            ingot_command.call("run", engine, f"--device={bench.options.device}")
                        else:
                            for entry in pathlib.Path(cache).rglob("*"):
                                if entry.is_file():
                                    entry.unlink()
                        server = bench.server()
                        if what == "run":
                            start = time.monotonic()
                            ingot_command.call("run", engine, f"--device={bench.options.device}")
                            times["run_s"] = time.monotonic() - start
                            continue
                        with server:
                            server.add("m", engine, bench.group(1) + "max_batch_size: 0\n")
                            start = time.monotonic()
                            server.load("m")
                            times["ready_s"] = time.monotonic() - start
                finally:
                    del os.environ["INGOT_RUNTIME_CACHE"]
            out[f"{name}_{state}"] = {**times, "ratio": times["ready_s"] / times["run_s"]}
    return out


def memory(bench):
    """Device bytes of 4 instances beside weights once and contexts 4 times."""
    used = {}
    for count in (1, 2, 4):
        with bench.server() as server:
            server.add("m", bench.engine(BERT, BATCH), bench.group(count) + f"max_batch_size: {BATCH}\n")
            server.load("m")
            used[count] = float(re.search(r'ingot_device_bytes\{model="m",version="1"\} (\S+)',
                                          server.metrics()).group(1))
    context = used[2] - used[1]
    expected = used[1] + 3 * context
    return {"bytes": used, "context": context, "weights": used[1] - context,
            "engine_file": bench.engine(BERT, BATCH).stat().st_size,
            "ratio": used[4] / expected if expected else None}


ROWS = {"client": client_median, "front_end": front_end, "throughput": throughput, "tail": tail,
        "second": second_load, "ready": ready, "memory": memory}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--perf-analyzer", required=True)
    p.add_argument("--out", type=pathlib.Path, required=True)
    p.add_argument("--rows", default=",".join(ROWS))
    p.add_argument("--seconds", type=float, default=4, help="of each measurement")
    p.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    numbers = lambda text: [int(n) for n in text.split(",")]  # noqa: E731
    p.add_argument("--model", default=BERT, choices=(BERT, SMALL), help="of the row throughput")
    p.add_argument("--instances", type=numbers, default=[1, 2], help="of the row throughput")
    p.add_argument("--delays", type=numbers, default=[0, 500, 2000], help="of the row throughput, microseconds")
    p.add_argument("--server-cores", type=int, default=0, help="0: server and load share all cores")
    options = p.parse_args()
    report = {"device": options.device, "seconds_of_a_measurement": options.seconds}
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options, pathlib.Path(folder))
        for name in options.rows.split(","):
            try:
                report[name] = ROWS[name](bench)
            except Exception:  # one row is not another's
                report[name] = {"error": traceback.format_exc()[-2000:]}
            print(name, json.dumps(report[name]), flush=True)
            options.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
