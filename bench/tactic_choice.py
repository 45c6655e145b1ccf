#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The cost model's first choice of a tactic beside the fastest candidate, on one GPU, over many problems.

  tactic_choice.py --models DIR --out FILE.json [--seconds 420] [--seed 1] [--types f16,f32] [--build build]
  tactic_choice.py --out FILE.json --summary

A problem is a group of nodes with its operands' types, shapes and strides. DIR has NAME.onnx with weights
(fill_weights.py). The 13 cases of gpu_cases.py run first: their problems are left out of the summary. Then models,
types and sizes follow in random order until time is up. Candidates and times are those of --tune=full: alone, with
inputs as an earlier kernel leaves them and the L2 cache flushed, the median of nine runs taken in turns, without a graph. A replayed
graph with dependent launches hides part of a kernel's start, so ratios of short kernels are those of the kernel
alone. FILE.jsonl beside FILE.json has a problem a line, so that nothing is lost when the run is stopped.
Needs libingot_bench.so and ingot in BUILD.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import random
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from gpu_cases import CASES, Session, as_type, library, make_inputs, median  # noqa: E402

BATCHES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48)
HALVES = ["--fp16", "--inputIOFormats=fp16:chw", "--outputIOFormats=fp16:chw"]


def images(size=224):
    return [{"input": ("f", (b, 3, size, size))} for b in BATCHES]


def tokens(lengths, mask=False, batches=(1, 2, 4, 8, 16)):
    return [{"input_ids": ("i", (b, n)), **({"attention_mask": ("1", (b, n))} if mask else {})} for b in batches for n in lengths]


def decoding(layers, heads, batches=(1, 2, 4, 8), lengths=(64, 256, 1000)):
    past = [(b, n, ("f", (layers, b, heads, n, 64))) for b in batches for n in lengths]
    return [{"input_ids": ("i", (b, 1)), "position_ids": ("1", (b, 1)), "past_k": p, "past_v": p} for b, n, p in past]


MODELS = {
    **{name: images() for name in ("resnet50", "resnet50_dynamo", "mobilenet_v3_large", "efficientnet_b0", "densenet121", "swin_t", "vit_b_16_dynamo")},
    "inception_v3": images(299),
    "deeplabv3_mobilenet": [{"input": ("f", (b, 3, h, w))} for b in (1, 2, 4, 8) for h, w in ((224, 224), (320, 480), (512, 512), (384, 256))],
    "bert_base": tokens((32, 64, 100, 200, 256, 512), mask=True),
    "bert_base_dynamo": tokens((32, 64, 100, 200, 256, 512), mask=True),
    "gpt2_small": tokens((1, 16, 77, 128, 300, 512)),
    "llama_tiny_prefill": tokens((1, 16, 77, 128, 300, 512)),
    "llama_tiny_decode": decoding(8, 4),
    "llama32_1b_decode": decoding(16, 8),
    "speech_lstm_gru": [{"x": ("f", (b, n, 80))} for b in (1, 2, 8, 16) for n in (20, 50, 100)],
    "sd15_unet": [{"sample": ("f", (b, 4, h, w)), "timestep": ("t", (b,)), "context": ("f", (b, 77, 768))}
                  for b, h, w in ((1, 64, 64), (1, 32, 32), (4, 32, 32), (2, 48, 64), (1, 96, 96), (4, 64, 64))],
}


def work(models, types, seed, present):
    """(model, type, sizes, whether it is one of the 13 cases), the cases first; without sizes of the cases' models
    in the rest. `present(model)`: whether there is a file."""
    cases = [(model, "f16", spec, True) for model, spec, _ in CASES.values()]
    taken = {(model, json.dumps(spec)) for model, _, spec, _ in cases}
    rest = [(model, t, spec, False) for model, specs in models.items() for spec in specs for t in types
            if (model, json.dumps(spec)) not in taken]
    random.Random(seed).shuffle(rest)
    return [w for w in cases + rest if present(w[0])]


def build_engine(a, model, kind):
    onnx_path = pathlib.Path(a.models) / f"{model}.onnx"
    engine = onnx_path.with_suffix(f".{kind}.engine")
    if engine.exists():
        return None
    # Under another name until it is complete: the run may be stopped at any time.
    part = engine.with_suffix(".part")
    done = subprocess.run([pathlib.Path(a.build) / "ingot", "build", onnx_path, "-o", part, *(HALVES if kind == "f16" else [])],
                          capture_output=True, text=True)
    if done.returncode:
        return done.stderr[-300:] or f"ingot build ended with {done.returncode}"
    os.replace(part, engine)
    return None


def read_lines(path):
    """The complete lines of a file that may still be written."""
    text = pathlib.Path(path).read_text() if pathlib.Path(path).exists() else ""
    return [json.loads(line) for line in text.split("\n")[:-1] if line]


def problem_of(line, **more):
    rows = [{"tactic": c["tactic"], "expected_us": c["expected_ns"] / 1e3, "us": c["ns"] / 1e3} for c in line["candidates"]]
    chosen = min(rows, key=lambda r: r["expected_us"])
    best = min(rows, key=lambda r: r["us"])
    return {"problem": line["problem"], "family": line["problem"].split(" ", 1)[0], **more, "candidates": rows,
            "chosen": chosen["tactic"], "best": best["tactic"], "ratio": round(chosen["us"] / best["us"], 4)}


def at_share(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(share * len(values)))]


def summary(result):
    counted = [p for p in result["problems"] if not p["case"]]
    lines = [f"{len(counted)} problems outside the 13 cases, {len(result['problems']) - len(counted)} in them"]
    families = sorted({p["family"] for p in counted})
    for name in [*families, "all"] if counted else []:
        ratios = [p["ratio"] for p in counted if name in (p["family"], "all")]
        lines.append(f"{name:24} {len(ratios):5}  median {median(ratios):.3f}  p90 {at_share(ratios, 0.9):.3f}  worst {max(ratios):.3f}")
    for p in sorted(counted, key=lambda p: -p["ratio"])[:10]:
        lines.append(f"{p['ratio']:.3f}  {p['chosen']} instead of {p['best']}: {p['problem'][:150]}")
    failed = result["failed"]
    lines += [f"{len(failed)} could not run"] + [f"  {f['model']} {f['type']} {f['sizes']}: {f['why'][:200]}" for f in failed[:10]]
    return "\n".join(lines)


def collect(todo, open_session, inputs_of, lines_of, left_s, report):
    """Times what `todo` (see work) needs until `left_s()` is 0. `open_session(model, type)` has set and run; `lines_of()`
    gives all problems that were timed so far. Returns problems and failures."""
    sessions, problems, failed = {}, [], []
    for n, (model, kind, sizes, case) in enumerate(todo):
        if left_s() <= 0:
            break
        shapes = {k: list(v[1]) for k, v in sizes.items()}
        try:
            if (model, kind) not in sessions:
                sessions[model, kind] = None
                sessions[model, kind] = open_session(model, kind)
            session = sessions[model, kind]
            if session is None:
                continue  # it is among the failures
            for key, value in inputs_of(model, kind, sizes).items():
                session.set(key, value)
            session.run()
        except Exception as e:
            failed.append({"model": model, "type": kind, "sizes": shapes, "case": case, "why": str(e)})
        for line in lines_of()[len(problems):]:
            problems.append(problem_of(line, model=model, type=kind, sizes=shapes, case=case))
        report(n + 1, problems, failed)
    return problems, failed


def run(a):
    start = time.time()
    lines = pathlib.Path(a.out).with_suffix(".jsonl").resolve()
    lines.unlink(missing_ok=True)
    todo = work(MODELS, a.types.split(","), a.seed, lambda model: (pathlib.Path(a.models) / f"{model}.onnx").exists())
    wanted = list(dict.fromkeys((model, kind) for model, kind, _, _ in todo))
    lib = library(a.build)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        built = {key: pool.submit(build_engine, a, *key) for key in wanted}

        def open_session(model, kind):
            if why := built[model, kind].result():
                raise RuntimeError(why)
            return Session(lib, pathlib.Path(a.models) / f"{model}.{kind}.engine", f"tune={lines}")

        def inputs_of(model, kind, sizes):
            made = make_inputs(sizes, pathlib.Path(a.models) / f"{model}.onnx")
            return as_type(made, "f16") if kind == "f16" else made

        def report(done, problems, failed):
            result = {"seed": a.seed, "seconds": round(time.time() - start, 1), "problems": problems, "failed": failed}
            pathlib.Path(a.out).with_suffix(".part").write_text(json.dumps(result))
            os.replace(pathlib.Path(a.out).with_suffix(".part"), a.out)
            print(f"{time.time() - start:5.0f} s  {done} of {len(todo)} sizes, {len(problems)} problems, {len(failed)} failed", flush=True)

        collect(todo, open_session, inputs_of, lambda: read_lines(lines), lambda: a.seconds - (time.time() - start), report)
        pool.shutdown(cancel_futures=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--models")
    p.add_argument("--out", required=True)
    p.add_argument("--seconds", type=float, default=420)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--types", default="f16,f32")
    p.add_argument("--build", default="build")
    p.add_argument("--summary", action="store_true", help="only prints the summary of FILE.json")
    a = p.parse_args()
    if not a.summary:
        if a.models is None:
            p.error("--models is missing: the folder with NAME.onnx")
        run(a)
    print(summary(json.loads(pathlib.Path(a.out).read_text())))


if __name__ == "__main__":
    main()
