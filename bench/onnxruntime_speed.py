#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Speed and memory of the execution provider in ONNX Runtime, each figure beside what it is compared with.

  onnxruntime_speed.py [--seconds 340] [--rows a,b] [--models a,b] [--out FILE]   measure
  onnxruntime_speed.py --pack FILE.tar.xz      for a machine that has only this tree: the stripped binaries and the
                                               graphs; measure there with --packed FILE.tar.xz

Rows of any machine are measured on the CPU device: compile, capability, host_memory, first_output, context_load, threads.
Rows of a GPU: enqueue, synchronised, first_output, context_load, idle_sessions, table. Each measurement is a
process of its own; what fails or finds no time says so and stops nothing else. Results go to
bench/results/onnxruntime_DEVICE.json, after each row; a table is printed last.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import platform
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path[:0] = [str(HERE), str(ROOT / "tests" / "python")]
from cpu_models import cpu_name  # noqa: E402
from gpu_cases import CASES  # noqa: E402
import models as architectures  # noqa: E402

BINARIES = ("ingot", "libingot.so", "libingot_cpu.so", "libingot_onnxruntime.so")
TABLE_MODELS = ("resnet50", "bert_base_dynamo", "sd15_unet", "llama32_1b_decode")
GPU_ROWS = ("enqueue", "synchronised", "first_output", "context_load", "idle_sessions", "table")
CPU_ROWS = ("compile", "capability", "host_memory", "first_output", "context_load", "threads")


class Late(Exception):
    """The time that was given is over."""


class Bench:
    """Where programs and models are, and how long there is time."""

    def __init__(self, build, folder, seconds, gpu):
        self.build, self.folder, self.gpu = pathlib.Path(build).resolve(), folder, gpu
        self.end = time.monotonic() + seconds
        capi = pathlib.Path(__import__("onnxruntime").__file__).parent / "capi"
        self.environment = {**os.environ, "INGOT_ALLOW_CPU": "0" if gpu else "1",
                            "INGOT_ONNXRUNTIME": str(self.build / "libingot_onnxruntime.so"),
                            "INGOT_ORT_LIBRARY": str(next(capi.glob("libonnxruntime.so*")))}
        self.environment.pop("INGOT_RUNTIME_CACHE", None)

    def call(self, *words, limit=240, cores=None, cold=False):
        """All that a program prints; `cold`: with an empty cache of kernels."""
        left = self.end - time.monotonic()
        if left < 5:
            raise Late("no time was left")
        pin = ["taskset", "-c", ",".join(map(str, cores))] if cores and shutil.which("taskset") else []
        with tempfile.TemporaryDirectory() as empty:
            environment = self.environment | ({"XDG_CACHE_HOME": empty} if cold else {})
            done = subprocess.run([*pin, *map(str, words)], text=True, stdout=subprocess.PIPE, cwd=self.folder,
                                  stderr=subprocess.STDOUT, timeout=min(left, limit), env=environment, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{pathlib.Path(str(words[0])).name}: exit code {done.returncode}: {done.stdout[-600:]}")
        return done.stdout

    def timed(self, *words, **more):
        """Seconds that a program takes, and of the CPU."""
        def used():
            u = resource.getrusage(resource.RUSAGE_CHILDREN)
            return u.ru_utime + u.ru_stime
        before, start = used(), time.perf_counter()
        self.call(*words, **more)
        return time.perf_counter() - start, used() - before

    def child(self, measurement, limit=240, cores=None, cold=False, **arguments):
        text = self.call(sys.executable, HERE / "onnxruntime_child.py", measurement, json.dumps(arguments, default=str),
                         limit=limit, cores=cores, cold=cold)
        return json.loads(text.strip().splitlines()[-1])

    def program(self, source):
        """A C++ program, compiled where it runs."""
        out = self.folder / pathlib.Path(source).stem
        if not out.exists():
            self.call("g++", "-std=c++17", "-O2", f"-I{ROOT / 'include'}", f"-I{(ROOT / source).parent}",
                      ROOT / source, "-o", out, "-ldl")
        return out

    def context(self, name):
        """The compiled model and its engine, made once."""
        out = self.folder / f"{name}_ctx.onnx"
        if not out.exists():
            self.child("compiled", model=architectures.model_file(name), out=out)
        return out, self.folder / f"{name}_ctx_0.engine"


def weights_of(path):
    """Bytes of a model's file and of its weights beside it."""
    return sum(p.stat().st_size for p in (path, path.with_suffix(".data")) if p.exists())


def rounds(path):
    """How often a load is repeated: large models once."""
    return 3 if weights_of(path) < 1e9 else 1


def sizes(name):
    """The shapes of a case: {input: shape}; inputs that the case does not name have their benchmark's."""
    model, given, _ = CASES[name]
    spec = architectures.MODELS[model]
    return {i: given[i][1] if i in given else s.resolve(spec.bench) for i, s in spec.inputs.items()}


def in_words(shapes, separator):
    return [f"{name}{separator}{'x'.join(map(str, shape))}" for name, shape in shapes.items()]


def median_of(text, field):
    """The median of a line of `ingot bench`, in microseconds."""
    return float(re.search(rf"\] {field}: min = .*?, median = ([0-9.eE+-]+) ms", text)[1]) * 1e3


def row(value, limit, unit, **more):
    return {"value": round(value, 4), "limit": round(limit, 4), "unit": unit, "holds": value <= limit, **more}


# --- rows ----------------------------------------------------------------------------------------

def beside(pairs, limit, what):
    """A row of (seconds, CPU seconds) of the provider and of what it is compared with, in turns: the wall's ratio,
    with the CPU's, which other work on the machine changes less."""
    def middle(i):
        return statistics.median(a[i] / b[i] for a, b in pairs)
    return row(middle(0), limit, what, cpu_ratio=round(middle(1), 4),
               seconds=[[round(s, 3) for s in (a[0], b[0])] for a, b in pairs],
               cpu_seconds=[[round(s, 3) for s in (a[1], b[1])] for a, b in pairs])


def remove(files):
    for file in files:
        file.unlink()


def compile_row(bench, names, report):
    """CompileModel beside `ingot build`, on two cores, in turns."""
    cores = sorted(os.sched_getaffinity(0))[:2]
    for name in names:
        path, pairs = architectures.model_file(name), []
        for _ in range(5):
            # Memory that a removed file has freed is faster to write than memory that was never used: both get such.
            remove(bench.folder.glob("own.engine"))
            own = bench.timed(bench.build / "ingot", "build", path, "-o", bench.folder / "own.engine", cores=cores)
            remove(bench.folder.glob("turn_*"))
            ours = bench.child("compiled", cores=cores, model=path, out=bench.folder / f"turn_{name}.onnx")
            pairs.append(((ours["seconds"], ours["cpu_seconds"]), own))
        report[name] = beside(pairs, 1.25, "of ingot build")


def capability_row(bench, _, report):
    counts, found = (10000, 20000), {}
    for _ in range(3):
        text = bench.call(sys.executable, HERE / "onnxruntime_child.py", "capability", json.dumps({"counts": counts}))
        for count in counts:
            ms = int(re.search(rf"claimed 0 of {count} nodes in (\d+) ms of CPU time", text)[1])
            found[count] = min(found.get(count, ms), ms)
    report["10,000 nodes"] = row(found[10000] / 1e3, 1, "s")
    report["20,000 beside 10,000"] = row(found[20000] / max(found[10000], 1), 2.3, "times")


def host_memory_row(bench, names, report):
    import onnx
    for name in names:
        path = architectures.model_file(name)
        weights = weights_of(path) / 2**20
        forms = {"external data": (path, weights + 400)}
        if weights < 1900:
            inside = bench.folder / f"{name}_inside.onnx"
            onnx.save(onnx.load(str(path)), str(inside))
            forms["inside the model"] = (inside, 2 * weights + 400)
        for form, (file, limit) in forms.items():
            m = bench.child("host_memory", model=file)
            report[f"{name}, {form}"] = row(m["peak_mb"] - m["before_mb"], limit, "MB while made",
                                            weights_mb=round(weights, 1), **{k: round(v, 1) for k, v in m.items()})
            if bench.gpu:
                report[f"{name}, {form}, afterwards"] = row(m["after_mb"] - m["before_mb"], 600, "MB")


def context_load_row(bench, names, report):
    """A compiled model to its first output, warm cache of kernels, beside the model itself with an empty one."""
    for name in names:
        path = architectures.model_file(name)
        target, engine = bench.context(name)
        cache = bench.folder / f"cache_{name}"
        options = {"nv_runtime_cache_path": str(cache)} if bench.gpu else {}
        bench.child("first_output", name=name, model=target, options=options)  # fills the cache
        pairs = []
        for _ in range(rounds(path)):
            loaded = bench.child("first_output", name=name, model=target, options=options)
            plain = bench.child("first_output", name=name, model=path, cold=True)
            pairs.append((loaded["output_s"], plain["output_s"]))
        rate = bench.child("read_rate", files=[str(target), str(engine)])
        seconds = statistics.median(a for a, _ in pairs)
        if weights_of(path) > 20e6:
            report[f"{name}, of the model's time"] = row(
                statistics.median(a / b for a, b in pairs), 0.2, "times", seconds=[[round(s, 3) for s in p] for p in pairs])
        report[name] = row(seconds, 0.3 + rate["seconds"], "s", reading_s=round(rate["seconds"], 3),
                           megabytes=round(rate["bytes"] / 1e6, 1))


def threads_row(bench, names, report):
    for name in names[:1]:
        m = bench.child("runs_of_threads", name=name, model=architectures.model_file(name), threads=8, seconds=5, rounds=3)
        ratio = statistics.median(a / b for a, b in zip(m["ours"], m["theirs"]))
        report[name] = {"value": round(ratio, 3), "limit": 0.9, "unit": "of the CPU provider's runs a second",
                        "holds": ratio >= 0.9, "runs_per_s": {k: [round(v, 2) for v in r] for k, r in m.items()}}


def timed_case(bench, case):
    """Microseconds of the provider and of `ingot bench` on the same engine, in turns. Both run it 600 times: the
    clocks of a GPU fall when its tensor cores are busy for seconds."""
    model, shapes = CASES[case][0], sizes(case)
    target, engine = bench.context(model)
    ours, own = [], []
    for _ in range(2):
        ours.append(json.loads(bench.call(bench.program("bench/onnxruntime_enqueue.cpp"), target, 200,
                                          *in_words(shapes, "="))))  # three runs each
        own.append(bench.call(bench.build / "ingot", "bench", engine, "--iterations", 600, "--duration", 0, "--warmUp",
                              0, "--device", "cuda" if bench.gpu else "cpu",
                              f"--shapes={','.join(in_words(shapes, ':'))}"))
    result = {k: min(o[k] for o in ours) for k in ours[0]}
    result["own_us"] = min(median_of(t, "GPU Compute Time") for t in own)
    result["own_enqueue_us"] = min(median_of(t, "Enqueue Time") for t in own)
    return result


def enqueue_row(bench, _, report):
    for case in ("resnet50_b1", "bert_s128_b1"):
        m = timed_case(bench, case)
        report[case] = row(m["cpu_us"] - m["own_enqueue_us"], 8, "us beyond ingot's enqueue", **m)


def synchronised_row(bench, names, report):
    for case, (model, *_) in CASES.items():
        if model not in names:
            continue
        try:
            m = timed_case(bench, case)
        except (RuntimeError, subprocess.TimeoutExpired) as e:
            report[case] = {"failed": str(e)[-500:]}
            continue
        report[case] = row(m["waiting_us"], m["own_us"] + max(0.02 * m["own_us"], 15), "us", **m)


def first_output_row(bench, names, report):
    """From the ONNX file to the first output, with no cache, beside `ingot run` of the same file, in turns."""
    for name in names:
        path, spec, pairs = architectures.model_file(name), architectures.MODELS[name], []
        for _ in range(rounds(path)):
            own = bench.timed(bench.build / "ingot", "run", path, f"--shapes={spec.shapes(spec.bench)}", "--device",
                              "cuda" if bench.gpu else "cpu", cold=True)
            ours = bench.child("first_output", name=name, model=path, cold=True)
            pairs.append(((ours["from_registration_s"], ours["cpu_s"]), own))
        report[name] = beside(pairs, 1.15, "of ingot run")


def idle_sessions_row(bench, names, report):
    for name in names:
        path = architectures.model_file(name)
        spec = architectures.MODELS[name]
        text = bench.call(bench.build / "ingot", "bench", bench.context(name)[1], "--iterations", 2, "--duration", 0,
                          "--device", "cuda", f"--shapes={spec.shapes(spec.bench)}")
        scratch = float(re.search(r"device memory size: ([0-9.eE+-]+) MiB", text)[1])
        taken = bench.child("idle_sessions", name=name, model=path, count=4)["taken_mb"]
        weights = weights_of(path) / 2**20
        report[name] = row(taken[-1], 4 * weights + 1.1 * scratch, "MB", weights_mb=round(weights, 1),
                           scratch_mb=round(scratch, 1), taken_mb=[round(t, 1) for t in taken],
                           beyond_the_first_mb=round(taken[-1] - taken[0], 1))


def table_row(bench, names, report):
    """The four times that the sample prints."""
    for name in names:
        folder = bench.folder / f"table_{name}"
        folder.mkdir(exist_ok=True)
        try:
            text = bench.call(bench.program("examples/ep_context/sample.cpp"), architectures.model_file(name),
                              folder / "ctx.onnx", limit=120)
        except (RuntimeError, subprocess.TimeoutExpired) as e:
            report[name] = {"failed": str(e)[-500:]}
            continue
        times = re.findall(r"> (.+): ([0-9.e+-]+) sec", text)
        report[name] = {"seconds": {what: float(s) for what, s in times}}
        shutil.rmtree(folder)


ROWS = {"compile": compile_row, "capability": capability_row, "host_memory": host_memory_row,
        "context_load": context_load_row, "threads": threads_row, "enqueue": enqueue_row,
        "synchronised": synchronised_row, "first_output": first_output_row, "idle_sessions": idle_sessions_row,
        "table": table_row}


# --- all -----------------------------------------------------------------------------------------

def pack(file, build, names, folder):
    """Stripped binaries and the graphs of the models, to be carried to another machine."""
    (folder / "shared" / "models" / "architectures").mkdir(parents=True, exist_ok=True)
    for name in BINARIES:
        subprocess.run(["strip", "-o", folder / name, pathlib.Path(build) / name], check=True)
    source = architectures.shared_models()
    shutil.copy(source / "fill_weights.py", folder / "shared" / "models")
    for name in names:
        for suffix in (".onnx", ".weights.json"):
            shutil.copy(source / "architectures" / f"{name}{suffix}", folder / "shared" / "models" / "architectures")
    with tarfile.open(file, "w:xz") as archive:
        archive.add(folder, arcname=".")
    print(f"{file.stat().st_size / 2**20:.1f} MiB in {file}")


def unpack(file, folder):
    """Unpacks the file of pack(); models take their graphs from there."""
    with tarfile.open(file) as archive:
        archive.extractall(folder)
    os.environ["INGOT_SHARED"] = str(folder / "shared")
    return folder


def gpu_name():
    try:
        done = subprocess.run(["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"], capture_output=True,
                              text=True, check=False)
    except FileNotFoundError:
        return ""
    return done.stdout.strip().splitlines()[0] if done.returncode == 0 and done.stdout.strip() else ""


def prepare(bench, names, cores):
    """Weights and compiled models, side by side: nothing of it is timed."""
    def one(name):
        try:
            architectures.model_file(name)
            if bench.gpu:
                bench.context(name)
        except Exception as e:  # pylint: disable=broad-except
            return f"{name}: {e}"
        return None
    with concurrent.futures.ThreadPoolExecutor(max(1, min(cores, len(names)))) as pool:
        return [problem for problem in pool.map(one, names) if problem]


def lines_of(rows):
    for name, entries in rows.items():
        for what, entry in entries.items():
            if "value" in entry:
                yield (f"{name:<14} {'holds' if entry['holds'] else 'MISSES':<7} {what:<40} {entry['value']:>10.4g} "
                       f"(limit {entry['limit']:.4g}) {entry['unit']}")
            else:
                yield f"{name:<14} {what:<48} {entry.get('seconds') or 'FAILED ' + entry['failed'][-200:].strip()}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=340)
    parser.add_argument("--rows", default="")
    parser.add_argument("--models", default="")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--pack", type=pathlib.Path)
    parser.add_argument("--packed", type=pathlib.Path)
    options = parser.parse_args()
    gpu = gpu_name()
    chosen = options.models.split(",") if options.models else \
        [*TABLE_MODELS, "mobilenet_v3_large", "vit_b_16_dynamo"] if gpu or options.pack else ["resnet50", "bert_base_dynamo"]
    if options.pack:
        with tempfile.TemporaryDirectory() as folder:
            pack(options.pack, options.build, chosen, pathlib.Path(folder))
        return
    report = {"device": gpu or cpu_name(), "onnxruntime": __import__("onnxruntime").__version__,
              "host": platform.platform(), "cores": len(os.sched_getaffinity(0)), "rows": {}}
    out = options.out or HERE / "results" / f"onnxruntime_{re.sub('[^a-z0-9]+', '_', report['device'].lower())}.json"
    with tempfile.TemporaryDirectory() as folder:
        if options.packed:
            options.build = unpack(options.packed, pathlib.Path(folder) / "packed")
        bench = Bench(options.build, pathlib.Path(folder), options.seconds, bool(gpu))
        report["problems"] = prepare(bench, chosen, report["cores"])
        for name in options.rows.split(",") if options.rows else GPU_ROWS if gpu else CPU_ROWS:
            start, entries = time.monotonic(), report["rows"].setdefault(name, {})
            try:
                ROWS[name](bench, chosen, entries)
            except Exception as e:  # pylint: disable=broad-except
                entries["the rest"] = {"failed": f"{type(e).__name__}: {str(e)[-800:]}"}
            print(f"{name}: {time.monotonic() - start:.0f} s", flush=True)
            out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    print(report["device"], f"ONNX Runtime {report['onnxruntime']}", *report["problems"], sep="\n")
    print("\n".join(lines_of(report["rows"])))


if __name__ == "__main__":
    main()
