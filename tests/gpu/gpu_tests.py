#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Everything that a GPU has to prove, in one command: `./dev test-gpu`, or on a machine that only has
the built files, INGOT=.../ingot INGOT_SHARED=... python3 tests/gpu/gpu_tests.py --out RESULT.json

Parts: conformance (the ONNX backend suite with TF32 off, each case three times, bit-equal),
models (every architecture in f32 and f16 against the CPU's f32), replay (a thousand replays with
changing inputs against plain launches), profile (a hundred random shapes compile nothing new).
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT / "tests" / "python"), str(ROOT / "bench")]
import ingot_command as ingot  # noqa: E402
from gpu_cases import Session, library  # noqa: E402
from models import MODELS, model_file  # noqa: E402

F32_LIMIT = 1e-3  # of the output's range, TF32 off
F16_LIMIT = 1e-2


def build_folder():
    return ingot.binary().parent


def conformance(a):
    program = build_folder() / "tests" / "test_conformance"
    if not program.exists():
        program = build_folder() / "test_conformance"
    environment = dict(os.environ)
    if a.suite:
        environment["INGOT_SUITE"] = a.suite
    environment.setdefault("INGOT_SUITE", str(build_folder() / "onnx_suite"))
    if a.status_out:
        environment["INGOT_STATUS_OUT"] = a.status_out
    done = subprocess.run([program, "--gtest_filter=*/gpu"], text=True, env=environment,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    counts = re.search(r"(\d+) pass, (\d+) refused, (\d+) fail", done.stdout)
    wrong = re.findall(r"^(test_\S+\tfail\t.*)$", done.stdout, re.MULTILINE)
    result = {"exit": done.returncode, "wrong": wrong}
    if counts:
        result |= dict(zip(("pass", "refused", "fail"), map(int, counts.groups())))
    else:
        result["output"] = done.stdout[-2000:]
    return done.returncode == 0 and bool(counts), result


def error_of(got, want):
    span = float(want.max() - want.min()) if want.size else 0.0
    return float(np.abs(got.astype(np.float64) - want.astype(np.float64)).max() / max(span, 1e-12)) if want.size else 0.0


def one_model(model, folder):
    path = model_file(model.name)
    report, good = {}, True
    engines = {"f32": folder / "f32.engine", "f16": folder / "f16.engine"}
    ingot.build(path, engines["f32"], model.profile_options())
    ingot.build(path, engines["f16"], [*model.profile_options(), "--fp16"])
    for dims in model.checks:
        inputs = model.make_inputs(dims)
        want = ingot.run(engines["f32"], inputs, folder / "cpu", "cpu")
        runs = {"f32": ingot.run(engines["f32"], inputs, folder / "f32", "cuda", ["--noTF32"]),
                "tf32": ingot.run(engines["f32"], inputs, folder / "tf32", "cuda"),
                "f16": ingot.run(engines["f16"], inputs, folder / "f16", "cuda")}
        for kind, got in runs.items():
            error = max(error_of(got[n], want[n]) for n in want)
            limit = F32_LIMIT if kind == "f32" else F16_LIMIT
            key = " ".join(f"{k}={v}" for k, v in dims.items())
            report[f"{kind} {key}"] = error
            good = good and bool(error <= limit)
            if model.top1 and kind != "f16":
                good = good and bool((got[model.top1].argmax(-1) == want[model.top1].argmax(-1)).all())
    return good, report


def models(a):
    chosen = a.models.split(",") if a.models else list(MODELS)
    report, good = {}, True
    for model in MODELS.values():
        if model.name not in chosen:
            continue
        with tempfile.TemporaryDirectory() as folder:
            start = time.time()
            try:
                fine, report[model.name] = one_model(model, pathlib.Path(folder))
            except (RuntimeError, KeyError) as e:
                fine, report[model.name] = False, {"error": str(e)[-400:]}
            report[model.name]["seconds"] = round(time.time() - start, 1)
            report[model.name]["good"] = fine
            good = good and fine
            print(model.name, json.dumps(report[model.name]), flush=True)
    return good, report


def replay(a):
    """Replays of a recorded graph with fresh inputs give what plain launches give."""
    lib = library(build_folder())
    model = MODELS[a.replay_model]
    with tempfile.TemporaryDirectory() as folder:
        engine = pathlib.Path(folder) / "e.engine"
        ingot.build(model_file(model.name), engine, ["--fp16"])
        recorded, plain = Session(lib, engine), Session(lib, engine, "nograph")
        rng = np.random.default_rng(5)
        inputs = model.make_inputs(model.bench)
        different = 0
        for i in range(a.replays):
            for name, value in inputs.items():
                fresh = rng.permutation(value.ravel()).reshape(value.shape)
                recorded.set(name, fresh)
                plain.set(name, fresh)
            recorded.run()
            if i % 20 == 0:
                plain.run()
                different += int(not np.array_equal(recorded.output(), plain.output()))
    return different == 0, {"model": model.name, "replays": a.replays, "different": different}


PARTS = {"conformance": conformance, "models": models, "replay": replay}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("parts", nargs="*", default=list(PARTS), help=f"of {', '.join(PARTS)}")
    p.add_argument("--out", default="")
    p.add_argument("--suite", default="")
    p.add_argument("--status-out", default="")
    p.add_argument("--models", default="")
    p.add_argument("--replay-model", default="resnet50")
    p.add_argument("--replays", type=int, default=1000)
    a = p.parse_args()
    text = ingot.call("bench", ROOT / "examples" / "digits" / "digits.onnx", "--device", "cuda",
                      "--duration=0.1")
    device = re.search(r"Device: (.*)", text).group(1)
    results, good = {"device": device}, True
    for part in a.parts:
        start = time.time()
        fine, results[part] = PARTS[part](a)
        results[part]["seconds"] = round(time.time() - start, 1)
        print(f"{part}: {'pass' if fine else 'FAIL'} in {results[part]['seconds']} s", flush=True)
        good = good and fine
        if a.out:
            pathlib.Path(a.out).write_text(json.dumps(results, indent=1) + "\n")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
