#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ingot's backend on the CPU beside ONNX Runtime in the python backend of the same Triton Inference Server.

  triton_cpu.py --out FILE.json [--models small,mobilenet_v3_large,bert_base_dynamo] [--clients 1,4,16] [--seconds S]
                [--rounds N] [--threads N] [--python-packages FOLDER]

Both serve the same model with the same batching; rounds of load go to one and then to the other, so that whatever else
the machine does meets both. A row has requests a second, the latency's median and 99th percentile and the server's
processor time a request of each, and the medians of the rounds' ratios; docs/serving.md says what is aimed at. The
server's python backend needs numpy 1 (under numpy 2 its outputs are empty): FOLDER has it, else it is fetched into a
folder of this run's own.
"""
import argparse
import http.client
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "tests" / "python"), str(HERE)]
import numpy as np  # noqa: E402
import onnxruntime  # noqa: E402

import triton_server  # noqa: E402
import triton_speed  # noqa: E402
from ray_speed import ROWS, agree, load, machine  # noqa: E402
from triton_python import add_python_backend, add_source, configuration_of, parameter  # noqa: E402
from triton_speed import BERT, MOBILENET, SMALL  # noqa: E402

NUMPY = "numpy==1.26.4"
BATCHING = f"max_batch_size: {ROWS}\ndynamic_batching {{ }}\ninstance_group {{ kind: KIND_CPU count: 1 }}\n"


def fetch_numpy(folder):
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps",
                    "--no-compile", "--target", folder, NUMPY], check=True)
    return folder


class Side:
    """One of the two models: requests over a connection a thread."""

    def __init__(self, server, prefix):
        self.server, self.prefix, self.own = server, prefix, threading.local()

    def infer(self, model, inputs):
        parts = [np.ascontiguousarray(array).tobytes() for array in inputs.values()]
        head = json.dumps({"inputs": [
            {"name": name, "datatype": triton_server.NAMES[array.dtype], "shape": list(array.shape),
             "parameters": {"binary_data_size": len(part)}} for (name, array), part in zip(inputs.items(), parts)],
            "parameters": {"binary_data_output": True}}).encode()
        if not hasattr(self.own, "client"):
            self.own.client = http.client.HTTPConnection("127.0.0.1", self.server.http, timeout=120)
        self.own.client.request("POST", f"/v2/models/{self.prefix}_{model}/infer", head + b"".join(parts),
                                {"Inference-Header-Content-Length": str(len(head))})
        answer = self.own.client.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{self.prefix} {model}: {answer.status} {body[:300]!r}")
        length = at = int(answer.headers["Inference-Header-Content-Length"])
        results = {}
        for output in json.loads(body[:length])["outputs"]:
            size = output["parameters"]["binary_data_size"]
            results[output["name"]] = np.frombuffer(
                body[at:at + size], triton_server.TYPES[output["datatype"]]).reshape(output["shape"])
            at += size
        return results


def add_models(server, bench, model, packages, threads):
    """The same model for both backends, loaded."""
    server.add(f"ingot_{model}", bench.engine(model, ROWS), BATCHING + parameter("threads", threads))
    server.load(f"ingot_{model}")
    tensors = configuration_of(server, f"ingot_{model}")
    source = bench.model(model)
    server.add(f"onnxruntime_{model}", source,
               'backend: "python"\n' + BATCHING + tensors + parameter("threads", threads), file_name="model.onnx")
    version = server.repository / f"onnxruntime_{model}" / "1"
    for data in source.parent.glob(source.stem + ".*"):  # weights beside the model; a link would lead out of the folder
        if data.suffix != ".onnx":
            shutil.copy(data, version)
    add_source(server, f"onnxruntime_{model}", HERE / "triton_python_model.py", [packages])
    server.load(f"onnxruntime_{model}")


def cpu_seconds(server):
    """The processor time of the server and its children since they began."""
    pids = [server.process.pid]
    for task in pathlib.Path(f"/proc/{pids[0]}/task").iterdir():
        pids += map(int, (task / "children").read_text(encoding="ascii").split())
    ticks = 0
    for pid in pids:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def timed(server, side, model, clients, seconds):
    """The figures of a load, with the processor time of the server for each request, which other programs of the machine
    change less than the rest."""
    before = cpu_seconds(server)
    start = time.perf_counter()
    found = load(side, model, clients, seconds)
    requests = found["a_second"] * (time.perf_counter() - start)
    return found | {"cpu_ms": 1e3 * (cpu_seconds(server) - before) / requests}


def row(server, sides, model, clients, options):
    rounds = [{name: timed(server, side, model, clients, options.seconds) for name, side in sides.items()}
              for _ in range(options.rounds)]
    middle = {name: {key: statistics.median(one[name][key] for one in rounds) for key in rounds[0][name]}
              for name in sides}

    def ratios(key, over, under):
        return [one[over][key] / one[under][key] for one in rounds]
    throughput = ratios("a_second", "ingot", "onnxruntime")
    return {**middle, "throughput_ratio": statistics.median(throughput), "ratios": throughput,
            "p99_ratio": statistics.median(ratios("p99_ms", "ingot", "onnxruntime")),
            "cpu_ratio": statistics.median(ratios("cpu_ms", "onnxruntime", "ingot")), "load_after": os.getloadavg()[0]}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--out", type=pathlib.Path, required=True)
    p.add_argument("--models", type=lambda text: text.split(","), default=[SMALL, MOBILENET, BERT])
    p.add_argument("--clients", type=lambda text: [int(n) for n in text.split(",")], default=[1, 4, 16])
    p.add_argument("--seconds", type=float, default=4, help="of each round of each side")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--threads", type=int, default=0, help="of a model; 0: those that each side chooses")
    p.add_argument("--python-packages", type=pathlib.Path, help=f"a folder with {NUMPY}")
    options = p.parse_args()
    report = {**machine(), "onnxruntime": onnxruntime.__version__, "threads": options.threads,
              "rounds": options.rounds, "seconds_of_a_round": options.seconds, "rows": {}}
    with tempfile.TemporaryDirectory() as text:
        folder = pathlib.Path(text)
        packages = options.python_packages or fetch_numpy(folder / "packages")
        bench = triton_speed.Bench(argparse.Namespace(device="cpu", server_cores=0), folder)
        server = triton_server.Server(folder / "server")
        server.environment = add_python_backend(server)
        with server:
            ours, theirs = Side(server, "ingot"), Side(server, "onnxruntime")
            for model in options.models:
                add_models(server, bench, model, packages, options.threads)
                if not agree(ours, theirs, model):
                    raise RuntimeError(f"the answers of {model} differ")
                for clients in options.clients:
                    found = report["rows"][f"{model}_{clients}"] = row(
                        server, {"ingot": ours, "onnxruntime": theirs}, model, clients, options)
                    print(model, clients, json.dumps(found), flush=True)
                    options.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
                for prefix in ("ingot", "onnxruntime"):
                    server.unload(f"{prefix}_{model}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
