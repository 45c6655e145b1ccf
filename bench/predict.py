#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Predicted times of the 13 cases of gpu_cases.py, f16, on GPUs that need not be here.

  predict.py --models DIR [--cases a,b] [--for 8.0,8.9,10.0,12.0] [--build build] [--out FILE.json]

DIR has NAME.onnx with weights (fill_weights.py), and gets the engines. Plans come from `ingot inspect --kernels --for`. A
time is the sum over layers in ms, one after the other: launches that overlap in a replayed graph make it shorter. Its basis:
the share of the sum that the kernels' cost models predict (model), the rest being bounds by bytes and operations (roofline).
Layers without either are counted and add nothing. Each GPU's figures are printed as the model uses them.
"""
import argparse
import json
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from gpu_cases import CASES  # noqa: E402

# The GPU of which kernels/arch.cpp has the figures.
GPUS = {"8.0": "A100", "8.6": "RTX 3090", "8.9": "RTX 4090", "9.0": "H100", "10.0": "B200", "12.0": "RTX 5090"}
HALVES = ["--fp16", "--inputIOFormats=fp16:chw", "--outputIOFormats=fp16:chw"]


def ingot(a, *arguments):
    done = subprocess.run([pathlib.Path(a.build) / "ingot", *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip()[-300:] or f"ingot {arguments[0]} ended with {done.returncode}")
    return done.stdout


def shapes_of(sizes):
    return ",".join(f"{name}:{'x'.join(map(str, spec[1]))}" for name, spec in sizes.items())


def prediction(report):
    """ms, the share of them that is by model, and the number of layers without a time."""
    by = {}
    for layer in report["layers"]:
        if layer["timeUs"] is not None:
            by[layer["timeBasis"]] = by.get(layer["timeBasis"], 0.0) + layer["timeUs"]
    if strange := set(by) - {"model", "roofline"}:
        raise ValueError(f"times of a GPU that is not here are by {', '.join(sorted(strange))}, expected model or roofline")
    total = sum(by.values())
    return {"ms": total / 1e3, "model_share": by.get("model", 0.0) / total if total else 0.0,
            "untimed": sum(layer["timeUs"] is None for layer in report["layers"])}


def figures(name, report):
    f = report["figures"]
    return (f"{name}: {f['sms']} SMs at {f['clockGhz']:g} GHz, {f['bytesPerSecond'] / 1e9:.0f} GB/s, "
            f"{f['f16ProductFlops'] / 1e12:.0f} TFLOP/s in f16 products")


def cell(p):
    return f"{p['ms']:.3f} ({p['model_share']:.0%} model" + (f", {p['untimed']} layers without a time)" if p["untimed"] else ")")


def table(result):
    names = list(result["figures"])
    lines = ["ms, sum over layers (basis; the rest is roofline)"] + list(result["figures"].values())
    lines += ["| case | " + " | ".join(names) + " |", "|---|" + "---|" * len(names)]
    lines += [f"| {case} | " + " | ".join(cell(row[n]) for n in names) + " |" for case, row in result["cases"].items()]
    return "\n".join(lines + [f"{case} failed: {why}" for case, why in result["failed"].items()])


def predict(a, case, targets, result):
    model, sizes, _ = CASES[case]
    onnx_path = pathlib.Path(a.models) / f"{model}.onnx"
    if not onnx_path.exists():
        raise RuntimeError(f"{onnx_path} is missing: fill_weights.py writes it")
    engine = onnx_path.with_suffix(".f16.engine")
    if not engine.exists():
        ingot(a, "build", onnx_path, "-o", engine, *HALVES)
    row = {}
    for target in targets:
        report = json.loads(ingot(a, "inspect", engine, "--kernels", "--json", "--for", target, f"--shapes={shapes_of(sizes)}"))
        row[GPUS[target]] = prediction(report)
        result["figures"].setdefault(GPUS[target], figures(GPUS[target], report))
    result["cases"][case] = row


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--models", required=True)
    p.add_argument("--cases", default=",".join(CASES))
    p.add_argument("--for", dest="targets", default="8.0,8.9,10.0,12.0")
    p.add_argument("--build", default="build")
    p.add_argument("--out")
    a = p.parse_args()
    cases, targets = a.cases.split(","), a.targets.split(",")
    for name, given, known in (("--cases", cases, CASES), ("--for", targets, GPUS)):
        if unknown := [g for g in given if g not in known]:
            p.error(f"{name}: there is no {', '.join(unknown)}, expected some of {', '.join(known)}")
    result = {"figures": {}, "cases": {}, "failed": {}}
    for case in cases:
        try:
            predict(a, case, targets, result)
        except (RuntimeError, ValueError) as e:
            result["failed"][case] = str(e)
    print(table(result))
    if a.out:
        pathlib.Path(a.out).write_text(json.dumps(result, indent=1) + "\n")
    sys.exit(1 if result["failed"] else 0)


if __name__ == "__main__":
    main()
