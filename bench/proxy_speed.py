#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The cost that `ingot serve` adds to a request: one client over one connection through HAProxy, beside the same worker asked
directly, on the CPU.

  proxy_speed.py --out FILE.json [--models digits,mobilenet_v3_large] [--requests N] [--rounds N]

Rounds alternate between the two ways, so that whatever else the machine does meets both; a row has the medians of all
rounds' medians in ms, and the median of the rounds' ratios. docs/serving.md says what is aimed at.
"""
import argparse
import http.client
import json
import os
import pathlib
import statistics
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "tests" / "python"), str(HERE)]
import numpy as np  # noqa: E402

import ingot_command  # noqa: E402
import serving  # noqa: E402
from models import model_file  # noqa: E402
from ray_speed import machine  # noqa: E402

INPUTS = {"digits": ("image", (1, 1, 8, 8)), "mobilenet_v3_large": ("input", (1, 3, 224, 224))}


def request_of(model):
    """(path, headers, body) of a request of one row."""
    name, shape = INPUTS[model]
    x = np.random.default_rng(7).random(shape, np.float32)
    head = json.dumps({"inputs": [{"name": name, "datatype": "FP32", "shape": list(shape),
                                   "parameters": {"binary_data_size": x.nbytes}}],
                       "parameters": {"binary_data_output": True}}).encode()
    return f"/v2/models/{model}/infer", {"Inference-Header-Content-Length": str(len(head))}, head + x.tobytes()


def median_ms(port, request, count):
    """The median of requests one after the other over one connection."""
    path, headers, body = request
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    found = []
    for _ in range(count):
        start = time.perf_counter()
        client.request("POST", path, body, headers)
        answer = client.getresponse()
        data = answer.read()
        found.append(1e3 * (time.perf_counter() - start))
        if answer.status != 200:
            raise RuntimeError(f"{answer.status} {data[:300]!r}")
    client.close()
    return statistics.median(found)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--out", type=pathlib.Path, required=True)
    p.add_argument("--models", type=lambda text: text.split(","), default=list(INPUTS))
    p.add_argument("--requests", type=int, default=200, help="of each round of each way")
    p.add_argument("--rounds", type=int, default=9)
    options = p.parse_args()
    report = {**machine(), "requests_of_a_round": options.requests, "rounds": options.rounds, "rows": {}}
    with tempfile.TemporaryDirectory() as text:
        folder = pathlib.Path(text)
        repository = folder / "models"
        repository.mkdir()
        for model in options.models:
            file = serving.DIGITS / "digits.onnx" if model == "digits" else model_file(model)
            engine = folder / f"{model}.engine"
            ingot_command.build(file, engine)
            serving.publish(engine, repository, model)
        with serving.Fleet(folder / "fleet", repository, workers=1) as fleet:
            [command] = [c for process, c in serving.children(fleet.process.pid).items()
                         if process == fleet.worker(0)]
            direct = next(int(word.split("=")[1]) for word in command if word.startswith("--http-port="))
            for model in options.models:
                request = request_of(model)
                ways = {"proxy": fleet.http, "direct": direct}
                for port in ways.values():
                    median_ms(port, request, 20)
                rounds = [{way: median_ms(port, request, options.requests) for way, port in ways.items()}
                          for _ in range(options.rounds)]
                ratios = [one["proxy"] / one["direct"] for one in rounds]
                report["rows"][model] = {
                    **{f"{way}_ms": statistics.median(one[way] for one in rounds) for way in ways},
                    "ratio": statistics.median(ratios), "ratios": ratios}
                print(model, json.dumps(report["rows"][model]), flush=True)
    report["load_after"] = os.getloadavg()[0]
    options.out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
