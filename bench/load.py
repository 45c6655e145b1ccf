#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How much longer loading ResNet-50 takes because its weights are compared with their hashes.

A load is deserialize_cuda_engine and create_execution_context on the CPU, which packs the weights: then the
next run computes. Loads with and without the check take turns in one process, so that both meet the same
machine; the figure is the median of the pairs' ratios, and the quartiles tell how far to trust it. CPU time of
all threads is counted beside it. Results go to bench/results/load.json.
"""
import argparse
import json
import os
import pathlib
import statistics
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "python"))
sys.path.insert(0, os.environ.get("INGOT_PYTHON", str(HERE.parent / "build" / "python")))
import ingot as trt  # noqa: E402
import ingot_command  # noqa: E402
from cpu_models import cpu_name  # noqa: E402
from models import MODELS, model_file  # noqa: E402

CPU = 2
LIMIT = 1.05


def load(blob, verify):
    """Seconds by the clock and of all CPUs."""
    runtime = trt.Runtime(trt.Logger(trt.Logger.ERROR))
    runtime.set_device(CPU)
    runtime.set_verify_weights(verify)
    wall, cpu = time.perf_counter(), time.process_time()
    engine = runtime.deserialize_cuda_engine(blob)
    context = engine.create_execution_context()
    spent = time.perf_counter() - wall, time.process_time() - cpu
    assert context is not None
    return spent


def quartiles(values):
    return [round(q, 4) for q in statistics.quantiles(values, n=4)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--out", type=pathlib.Path, default=HERE / "results" / "load.json")
    options = parser.parse_args()
    model = MODELS["resnet50"]
    with tempfile.TemporaryDirectory() as folder:
        engine = pathlib.Path(folder) / "resnet50.engine"
        ingot_command.build(model_file(model.name), engine, model.profile_options())
        blob = engine.read_bytes()
    walls, cpus, plain = [], [], []
    for turn in range(options.rounds + 2):
        pair = {}
        for verify in (True, False) if turn % 2 else (False, True):
            pair[verify] = load(blob, verify)
        if turn >= 2:  # the first ones warm caches
            walls.append(pair[True][0] / pair[False][0])
            cpus.append(pair[True][1] - pair[False][1])
            plain.append(pair[False][0])
    result = {"model": model.name, "megabytes": round(len(blob) / 1e6, 1), "cpu": cpu_name(), "rounds": options.rounds,
              "load_ms": round(statistics.median(plain) * 1e3, 1),
              "ratio": round(statistics.median(walls), 4), "ratio_quartiles": quartiles(walls), "limit": LIMIT,
              "check_cpu_ms": round(statistics.median(cpus) * 1e3, 2),
              "check_gb_per_s_of_a_core": round(len(blob) / 1e9 / max(statistics.median(cpus), 1e-6), 1)}
    options.out.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))
    sys.exit(result["ratio"] > LIMIT)


if __name__ == "__main__":
    main()
