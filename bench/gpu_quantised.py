#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models in f16 beside int8 and f8e4m3, calibrated on random inputs, on one GPU (or as plans of a GPU that is not here).

  gpu_quantised.py --graphs DIR --work DIR [--build build] [--cases bert_s128_b32,vit_b_16_b32,resnet50_b32] [--rounds 3]
  gpu_quantised.py ... --plans sm_90       the launches and predicted times of each plan; needs no GPU

DIR has NAME.onnx and NAME.weights.json: graphs without weights, which are made here (first_results.py says how). Random weights and inputs: times are
those of real ones, accuracy is not. In each round the formats of a case take turns, each in a fresh process; printed are medians of the GPU's
milliseconds, and in how many launches.
"""
import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys

import numpy as np

import first_results

PICTURE = {"input": ("f", (3, 224, 224))}
WORDS = {"input_ids": ("i", (128,)), "attention_mask": ("1", (128,))}
CASES = {  # name: (graph, inputs of one sample, batch)
    "bert_s128_b32": ("bert_base", WORDS, 32),
    "vit_b_16_b32": ("vit_b_16_dynamo", PICTURE, 32),
    "resnet50_b32": ("resnet50", PICTURE, 32),
    "bert_s128_b1": ("bert_base", WORDS, 1),
    "vit_b_16_b1": ("vit_b_16_dynamo", PICTURE, 1),
    "resnet50_b1": ("resnet50", PICTURE, 1),
}
FORMATS = {"f16": None, "int8": [], "fp8": ["--fp8"]}


def call(*arguments):
    done = subprocess.run([str(a) for a in arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, arguments))}\n{done.stdout[-2000:]}")
    return done.stdout


def samples(folder, inputs):
    rng = np.random.default_rng(3)
    for name, (kind, shape) in inputs.items():
        (folder / name if len(inputs) > 1 else folder).mkdir(parents=True, exist_ok=True)
        for i in range(2):
            x = {"f": lambda s: rng.standard_normal((1, *s), np.float32), "i": lambda s: rng.integers(0, 30000, (1, *s)),
                 "1": lambda s: np.ones((1, *s), np.int64)}[kind](shape)
            np.save((folder / name if len(inputs) > 1 else folder) / f"{i}.npy", x)
    return folder


def engine(ingot, a, graph, inputs, form):
    """Made once; its other floats are f16."""
    path = a.work / f"{graph}.{form}.engine"
    if path.exists():
        return path
    model = a.work / f"{graph}.onnx"
    if not model.exists():
        first_results.fill(a.graphs / f"{graph}.onnx", model)
    if FORMATS[form] is not None:
        narrow = a.work / f"{graph}.{form}.onnx"
        print(call(ingot, "calibrate", model, "--data", samples(a.work / f"{graph}.samples", inputs), "--algorithm=minmax",
                   *FORMATS[form], "-o", narrow).strip().splitlines()[-1], flush=True)
        model = narrow
    call(ingot, "build", model, "-o", path, "--fp16")
    return path


def measure(ingot, a, case):
    """By format: the median of the rounds' milliseconds, and the launches."""
    graph, inputs, batch = CASES[case]
    shapes = ",".join(f"{n}:{'x'.join(map(str, (batch, *s)))}" for n, (_, s) in inputs.items())
    engines = {f: engine(ingot, a, graph, inputs, f) for f in a.formats.split(",")}
    times = {f: [] for f in engines}
    launches = {}
    for f, path in engines.items():
        target = [f"--for={a.plans}", "--noCompile"] if a.plans else []
        text = call(ingot, "inspect", path, "--kernels", f"--shapes={shapes}", *target)
        rows = re.findall(r"^ +\d+ +([0-9.]+) +(?:[a-z]+) ", text, re.MULTILINE)
        launches[f] = len(re.findall(r"^ .* \d+ +(?:-|\d+)  \w+$", text, re.MULTILINE))
        if a.plans:
            times[f].append(sum(map(float, rows)) / 1e3)
    for _ in range(0 if a.plans else a.rounds):
        for f, path in engines.items():
            text = call(ingot, "bench", path, f"--shapes={shapes}", "--device=cuda")
            (median,) = re.findall(r"GPU Compute Time:.*?median = ([0-9.]+) ms", text)
            times[f].append(float(median))
    out = {f: {"ms": statistics.median(t), "launches": launches[f]} for f, t in times.items()}
    for f, r in out.items():
        print(f"{case:14} {f:5} {r['ms']:8.3f} ms  {r['launches']:4} launches", flush=True)
    return out


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--graphs", type=pathlib.Path, required=True)
    p.add_argument("--work", type=pathlib.Path, required=True)
    p.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    p.add_argument("--cases", default="bert_s128_b32,vit_b_16_b32,resnet50_b32")
    p.add_argument("--formats", default=",".join(FORMATS))
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--plans", metavar="TARGET")
    p.add_argument("--out", type=pathlib.Path)
    a = p.parse_args()
    a.work.mkdir(parents=True, exist_ok=True)
    ingot = (a.build / "ingot").resolve()
    results, good = {}, True
    for case in a.cases.split(","):
        try:
            results[case] = measure(ingot, a, case)
        except RuntimeError as e:  # the other cases go on
            print(f"{case}: {e}", flush=True)
            good = False
        if a.out:
            a.out.write_text(json.dumps(results, indent=1) + "\n")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
