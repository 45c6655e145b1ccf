#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time and peak memory of `ingot build` for every architecture of shared/models.

Peak memory is the kernel's count of the largest resident set, pages of mapped files included; it
may be 1.5 times the model's files plus 300 MB. Results go to bench/results/aot.json when all models
are measured, else to --out alone.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "python"))
import ingot_command as ingot  # noqa: E402
from cpu_models import cpu_name  # noqa: E402
from models import MODELS, cache_folder, model_file  # noqa: E402

LIMITS_S = {"resnet50": 3.0, "resnet50_dynamo": 3.0, "bert_base": 6.0, "bert_base_dynamo": 6.0}


def build_once(model, path, engine):
    """(seconds, peak MB) of one build, in a process of its own."""
    command = [str(ingot.binary()), "build", str(path), "-o", str(engine)]
    with tempfile.TemporaryFile("w+") as log:
        start = time.perf_counter()
        process = subprocess.Popen(command + model.profile_options(), stdout=log, stderr=log)
        # The child's count starts at this interpreter's size, which is below any that matters here.
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            log.seek(0)
            sys.exit(f"exit code {process.returncode} of {' '.join(command)}\n{log.read()}")
    return seconds, usage.ru_maxrss * 1024 / 1e6


def measure(model, folder, repeats):
    path = model_file(model.name)
    engine = folder / f"{model.name}.engine"
    runs = [build_once(model, path, engine) for _ in range(repeats)]
    model_mb = sum(p.stat().st_size for p in (path, path.with_suffix(".data"))) / 1e6
    seconds, peak = statistics.median(run[0] for run in runs), max(run[1] for run in runs)
    row = {"model": model.name, "model_mb": round(model_mb, 1), "seconds": round(seconds, 3),
           "limit_seconds": LIMITS_S.get(model.name), "peak_mb": round(peak, 1),
           "limit_peak_mb": round(1.5 * model_mb + 300, 1),
           "engine_mb": round(engine.stat().st_size / 1e6, 1)}
    row["within_limits"] = (peak <= row["limit_peak_mb"]
                            and seconds <= (row["limit_seconds"] or float("inf")))
    engine.unlink()
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=f"default: all of {' '.join(MODELS)}")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=pathlib.Path)
    args = parser.parse_args()
    unknown = sorted(set(args.names) - set(MODELS))
    if unknown:
        parser.error(f"unknown {' '.join(unknown)}; known: {' '.join(MODELS)}")
    out = args.out or (None if args.names else HERE / "results" / "aot.json")
    cores = len(os.sched_getaffinity(0))
    result = {"device": f"{cpu_name()}, {cores} cores", "ingot": ingot.call("--version").strip(),
              "repeats": args.repeats, "models": []}
    cache_folder().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache_folder()) as folder:
        for name in args.names or MODELS:
            row = measure(MODELS[name], pathlib.Path(folder), args.repeats)
            result["models"].append(row)
            print(f"{name:20} {row['model_mb']:8.1f} MB   {row['seconds']:7.2f} s   peak "
                  f"{row['peak_mb']:8.1f} MB of {row['limit_peak_mb']:8.1f} allowed"
                  f"{'' if row['within_limits'] else '   ABOVE THE LIMIT'}", flush=True)
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(result, indent=1) + "\n")
        print(f"written to {out}")
    sys.exit(0 if all(row["within_limits"] for row in result["models"]) else "above a limit")


if __name__ == "__main__":
    main()
