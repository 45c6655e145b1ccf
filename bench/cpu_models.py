#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Latency of ingot on the CPU beside ONNX Runtime's: every architecture of shared/models in f32.

Both get the same inputs, shapes and cores, in turns over several rounds of one process; the figure
of a round is its median, that of a model the median of the rounds' ratios. Results go to
bench/results/cpu_models.json when all models are measured, else to --out alone.
"""
import argparse
import gc
import json
import math
import os
import pathlib
import statistics
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "python"))
import ingot_command as ingot  # noqa: E402
from models import MODELS, cache_folder, model_file, ort_session  # noqa: E402

LIMITS = {"resnet50": 1.5, "bert_base": 1.5}
LIMIT_OF_EACH = 4.0
LIMIT_OF_GEOMETRIC_MEAN = 2.0


def cpu_name():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown"


def time_ingot(engine, model, inputs, seconds):
    """Median latency in ms of one round, the process and its loading not counted."""
    files = ",".join(f"{name}:{path}" for name, path in inputs.items())
    return ingot.median_latency(ingot.call(
        "bench", f"--loadEngine={engine}", f"--shapes={model.shapes(model.bench)}",
        f"--loadInputs={files}", "--warmUp=500", f"--duration={seconds:g}", "--iterations=3",
        "--device", "cpu"))


def time_ort(session, inputs, seconds):
    """Median latency in ms of one round."""
    warm_until = time.perf_counter() + 0.5
    session.run(None, inputs)
    while time.perf_counter() < warm_until:
        session.run(None, inputs)
    times = []
    start = time.perf_counter()
    while len(times) < 3 or time.perf_counter() - start < seconds:
        begin = time.perf_counter()
        session.run(None, inputs)
        times.append((time.perf_counter() - begin) * 1e3)
    return statistics.median(times)


def measure(model, folder, rounds, seconds, threads):
    path = model_file(model.name)
    engine = folder / f"{model.name}.engine"
    ingot.build(path, engine, model.profile_options())
    arrays = model.make_inputs(model.bench)
    files = {}
    for name, array in arrays.items():
        files[name] = folder / f"{model.name}.{name}.bin"
        files[name].write_bytes(array.tobytes())
    session = ort_session(path, threads)
    ours, theirs = [], []
    for turn in range(rounds):
        timers = [lambda: ours.append(time_ingot(engine, model, files, seconds)),
                  lambda: theirs.append(time_ort(session, arrays, seconds))]
        for timer in timers[::1 if turn % 2 == 0 else -1]:
            timer()
    engine.unlink()
    ratio = statistics.median(a / b for a, b in zip(ours, theirs))
    limit = LIMITS.get(model.name, LIMIT_OF_EACH)
    return {"model": model.name, "shapes": model.shapes(model.bench),
            "ingot_ms": round(statistics.median(ours), 3),
            "onnxruntime_ms": round(statistics.median(theirs), 3), "ratio": round(ratio, 3),
            "limit": limit, "within_limit": ratio <= limit,
            "ingot_rounds_ms": [round(t, 3) for t in ours],
            "onnxruntime_rounds_ms": [round(t, 3) for t in theirs]}


def describe(threads, rounds):
    import onnxruntime
    return {"device": f"{cpu_name()}, {threads} threads", "ingot": ingot.call("--version").strip(),
            "onnxruntime": onnxruntime.__version__, "precision": "f32", "rounds": rounds}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=f"default: all of {' '.join(MODELS)}")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each round")
    parser.add_argument("--threads", type=int, help="cores both may use (default: all)")
    parser.add_argument("--out", type=pathlib.Path)
    args = parser.parse_args()
    unknown = sorted(set(args.names) - set(MODELS))
    if unknown:
        parser.error(f"unknown {' '.join(unknown)}; known: {' '.join(MODELS)}")
    if not args.names and args.out is None:
        args.out = HERE / "results" / "cpu_models.json"
    return args


def main():
    args = parse_arguments()
    cores = sorted(os.sched_getaffinity(0))[:args.threads]
    os.sched_setaffinity(0, cores)  # the ingot process inherits it
    result = describe(len(cores), args.rounds) | {"models": []}
    cache_folder().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache_folder()) as folder:
        for name in args.names or MODELS:
            row = measure(MODELS[name], pathlib.Path(folder), args.rounds, args.seconds, len(cores))
            gc.collect()
            result["models"].append(row)
            print(f"{name:20} ingot {row['ingot_ms']:10.2f} ms   onnxruntime "
                  f"{row['onnxruntime_ms']:10.2f} ms   ratio {row['ratio']:.2f}"
                  f"{'' if row['within_limit'] else '   ABOVE ' + str(row['limit'])}", flush=True)
    mean = math.exp(statistics.fmean(math.log(row["ratio"]) for row in result["models"]))
    result["geometric_mean"] = round(mean, 3)
    print(f"geometric mean of the ratios: {mean:.2f} (limit {LIMIT_OF_GEOMETRIC_MEAN})")
    if args.out is not None:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(json.dumps(result, indent=1) + "\n")
        print(f"written to {args.out}")
    within = all(row["within_limit"] for row in result["models"])
    sys.exit(0 if within and mean <= LIMIT_OF_GEOMETRIC_MEAN else "above a limit: see there")


if __name__ == "__main__":
    main()
