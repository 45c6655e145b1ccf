#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The GPU tests and figures of the backend of Triton Inference Server, on a machine that can neither build nor fetch:
pack it where the tree is built, run it there. Server, backend, perf_analyzer, models and scripts are in one archive.

  triton_packed.py pack --out FOLDER          FOLDER/triton.tar.xz, in parts p.aa, p.ab ... if it is above 60 MB
  triton_packed.py run --archive FOLDER --out DIR [--parts a,b] [--limit 300] [--rehearse]

`pack` needs './dev setup' (the server) and a build of ingot, triton_ingot, ingot_shared and ingot_cpu_onednn; the
package perf-analyzer is fetched, or named by --perf-analyzer. `run` needs Python with numpy, onnx and pytest. Each
part has a limit of its own and none goes on after --limit seconds; after each, DIR/triton_gpu.json has all that is
known. --rehearse runs on emulated GPUs and on the CPU, and proves nothing about speed. Parts, in this order:
"""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PERF_ANALYZER = "perf-analyzer==2.60.0"
MODELS = ("bert_base_dynamo", "resnet50", "mobilenet_v3_large")
LIBRARIES = ("libingot.so", "libingot_cpu.so", "libtriton_ingot.so")
PRELOADED = ("tests/gpu/programs/count_graphs.c", "tests/onnxruntime/programs/no_nvrtc.c")
STUB = "3.12"  # the Python of the other machine, in which PyTorch is
WHOLE, PART = 60_000_000, 36_000_000
FUNCTIONAL = "digits,states,cuda_shared_memory,device_bytes,recordings,short_memory,kernel_caches"
GPU, SPEED, PEER = "tests/gpu/triton_gpu.py", "bench/triton_speed.py", "bench/triton_torch.py"
PARTS = {  # name: (limit in seconds, what it is, command)
    "functions": (90, "answers, sequences, CUDA shared memory, recordings, caches; weights are filled meanwhile",
                  [GPU, "--parts", FUNCTIONAL]),
    "times": (75, "the backend's own time by the latency of ingot bench; goal 1.10", [GPU, "--parts", "times"]),
    "second": (130, "p99 of a served model while another is loaded; goal 1.5", [SPEED, "--rows", "second"]),
    "host_copies": (25, "ways of a request's body to the GPU", ["build/host_copies"]),
    "lost_devices": (60, "ten illegal accesses, a run without end", [GPU, "--parts", "lost_devices"]),
    "two_gpus": (40, "instances on two GPUs, where there are two", [GPU, "--parts", "two_gpus"]),
    "loads": (175, "a thousand loads and unloads", [GPU, "--parts", "loads"]),
    "speed": (200, "the other rows", [SPEED, "--rows", "client,tail,ready,memory"]),
    "throughput": (60, "64 clients", [SPEED, "--rows", "throughput", "--instances", "2", "--delays", "2000"]),
    "torch": (280, "torch.compile in the python backend of the same server; goal 1.5", [PEER]),
}


def copy_tree(target):
    """The scripts and their data, where they are in the tree."""
    for pattern in ("tests/gpu/*.py", "tests/gpu/programs/*.*", "tests/onnxruntime/programs/*.c", "tests/python/*.py",
                    "bench/triton*.py", "bench/ray_speed.py", "examples/digits/*"):
        for file in sorted(ROOT.glob(pattern)):
            (target / file.relative_to(ROOT)).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, target / file.relative_to(ROOT))
    sys.path.insert(0, str(ROOT / "tests" / "python"))
    from models import shared_models
    source = shared_models()
    (target / "shared/models/architectures").mkdir(parents=True)
    shutil.copy(source / "fill_weights.py", target / "shared/models")
    for name in MODELS:
        for suffix in (".onnx", ".weights.json"):
            shutil.copy(source / "architectures" / f"{name}{suffix}", target / "shared/models/architectures")


def copy_programs(build, target):
    """The compiled part: the command and its libraries without symbols, the benchmark, the preloads, an engine with code
    that the Python package has to make."""
    (target / "build").mkdir()
    for name in ("ingot", *LIBRARIES):
        subprocess.run(["strip", "-o", target / "build" / name, build / name], check=True)
    subprocess.run(["g++", "-O2", "-march=x86-64-v3", "-std=c++20", f"-I{ROOT / 'src'}", ROOT / "bench/host_copies.cpp",
                    build / "libingot_base.a", "-ldl", "-pthread", "-o", target / "build/host_copies"], check=True)
    for source in PRELOADED:
        subprocess.run(["cc", "-shared", "-fPIC", "-o", (target / source).with_suffix(".so"), ROOT / source, "-ldl"],
                       check=True)
    subprocess.run([sys.executable, ROOT / GPU, "--make-faulty", target / "faulty.engine"], check=True,
                   env=os.environ | {"INGOT_PYTHON_PATH": str(build / "python"), "INGOT": str(build / "ingot")})


def copy_server(target, wheel):
    """The server without the Python libraries that it brings, and the program that makes the load."""
    source = ROOT / ".deps" / "triton"
    server = target / ".deps/triton/pytriton/tritonserver"
    shutil.copytree(source / "nvidia_pytriton.libs", target / ".deps/triton/nvidia_pytriton.libs",
                    ignore=shutil.ignore_patterns("libpython3*"))
    for folder in ("bin", "backends", f"python_backend_stubs/{STUB}"):
        shutil.copytree(source / "pytriton/tritonserver" / folder, server / folder)
    unpacked = target / "wheel"
    subprocess.run([sys.executable, "-m", "zipfile", "-e", wheel, unpacked], check=True)
    (program,) = [path for path in unpacked.rglob("perf_analyzer") if path.is_file()]
    shutil.copy(program, target / "build/perf_analyzer")
    (target / "build/perf_analyzer").chmod(0o755)
    shutil.rmtree(unpacked)


def fetch_perf_analyzer(folder):
    subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps",
                    "--only-binary", ":all:", "--python-version", STUB, "--platform", "manylinux_2_38_x86_64",
                    "-d", folder, PERF_ANALYZER], check=True)
    return next(pathlib.Path(folder).glob("perf_analyzer-*.whl"))


def pack(a):
    a.out.mkdir(parents=True, exist_ok=True)
    for old in (*a.out.glob("p.*"), a.out / "triton.tar.xz"):
        old.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as text:
        folder = pathlib.Path(text)
        target = folder / "ingot"
        target.mkdir()
        copy_tree(target)
        copy_programs(a.build, target)
        copy_server(target, a.perf_analyzer or fetch_perf_analyzer(folder))
        archive = a.out / "triton.tar.xz"
        with archive.open("wb") as out:
            tar = subprocess.Popen(["tar", "-C", folder, "-c", "ingot"], stdout=subprocess.PIPE)
            subprocess.run(["xz", "-9"], stdin=tar.stdout, stdout=out, check=True)
            if tar.wait() != 0:
                raise RuntimeError("tar failed")
    files = [archive]
    if archive.stat().st_size > WHOLE:
        subprocess.run(["split", "-b", str(PART), archive, a.out / "p."], check=True)
        archive.unlink()
        files = sorted(a.out.glob("p.*"))
    for file in files:
        print(file, file.stat().st_size)
    shutil.copy(__file__, a.out)  # all that `run` needs beside the archive


class Joined:
    """The parts of an archive as one file to read."""

    def __init__(self, files):
        self.files = [path.open("rb") for path in files]

    def read(self, size=-1):
        data = b""
        while self.files and not data:
            data = self.files[0].read(size)
            if not data:
                self.files.pop(0).close()
        return data


def unpack(archive, folder):
    files = sorted(archive.glob("p.??")) or [archive / "triton.tar.xz"]
    with tarfile.open(fileobj=Joined(files), mode="r|xz") as tar:
        tar.extractall(folder, **({"filter": "tar"} if hasattr(tarfile, "tar_filter") else {}))
    return folder / "ingot"


def results_of(text, file):
    """The findings of a part: its file, else its last line of JSON, else each line '<name> <JSON>' of one that was cut."""
    if file.is_file():
        return json.loads(file.read_text(encoding="utf-8"))
    lines = text.splitlines()
    for found in ([text], lines[-1:]):
        try:
            return json.loads(found[0])
        except (ValueError, IndexError):
            pass
    found = {}
    for line in lines:
        name, _, rest = line.partition(" ")
        try:
            found[name] = json.loads(rest)
        except ValueError:
            pass
    return found


def command_of(name, a, tree, file):
    command = list(PARTS[name][2])
    if command[0].startswith("build/"):
        return [tree / command[0]]
    command[0] = tree / command[0]
    if name in ("second", "speed", "throughput", "torch"):
        analyzer = tree / "tests/gpu/programs/perf_analyzer.py" if a.rehearse else tree / "build/perf_analyzer"
        command += ["--perf-analyzer", analyzer, "--out", file]
        command += ["--seconds", "2", *(["--rehearse"] if name == "torch" else ["--device", "cpu"])] if a.rehearse else []
        command += ["--server-cores", "10"] if (os.cpu_count() or 1) >= 16 else []
    else:
        command += ["--rehearse", "--loads", "32"] if a.rehearse else ["--capability", a.capability]
        command += ["--faulty-engine", tree / "faulty.engine"]
    return [sys.executable, *command]


def start(command, tree, out):
    environment = {"INGOT_EMULATED_CUDA": str(ROOT / "build/tests/emulated_cuda"),  # of rehearsals
                   "INGOT_TRITON_CLIENT": str(ROOT / ".deps/triton/client/bin/python")} | os.environ
    environment |= {"INGOT_SHARED": str(tree / "shared"), "INGOT": str(tree / "build/ingot"), "PYTHONUNBUFFERED": "1"}
    return subprocess.Popen(list(map(str, command)), env=environment, cwd=tree, stdout=out, stderr=subprocess.STDOUT,
                            start_new_session=True)


def fill_weights(tree):
    """A process for each model, which writes it into the cache that all parts share."""
    call = "import sys; sys.path.insert(0, 'tests/python'); import models; models.model_file(sys.argv[1])"
    return [start([sys.executable, "-c", call, name], tree, None) for name in MODELS]


def run_part(name, a, tree, left):
    limit = min(PARTS[name][0] * a.patience, left)
    begin, file = time.monotonic(), tree / f"{name}.json"
    with (tree / f"{name}.txt").open("w+", encoding="utf-8") as out:
        child = start(command_of(name, a, tree, file), tree, out)
        try:
            code = child.wait(timeout=limit)
        except subprocess.TimeoutExpired:
            code = f"ended at its limit of {limit:.0f} s"
        end_session(child.pid)
        child.wait()
        out.seek(0)
        text = out.read()
    found = {"exit": code, "seconds": round(time.monotonic() - begin, 1), "results": results_of(text, file)}
    if code != 0:
        found["tail"] = text[-2000:]
    return found


def end_session(session):
    """Ends what a part has left behind, its servers above all: each is a process of that session."""
    for status in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text(encoding="utf-8", errors="replace").rsplit(")", 1)[1].split()
            if int(fields[3]) == session:
                os.kill(int(status.parent.name), 9)
        except (OSError, IndexError):
            pass  # it has ended meanwhile


def capability():
    done = subprocess.run(["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"], text=True,
                          capture_output=True, check=True)
    return done.stdout.split()[0].replace(".", "")


def run(a):
    begin = time.monotonic()
    a.out.mkdir(parents=True, exist_ok=True)
    report = {"good": True, "parts": {}}
    with tempfile.TemporaryDirectory() as folder:
        tree = unpack(a.archive, pathlib.Path(folder))
        report["unpacking_seconds"] = round(time.monotonic() - begin, 1)
        a.capability = a.capability or ("80" if a.rehearse else capability())
        filling = fill_weights(tree)
        for name in a.parts:
            if PARTS[name][2][0] in (SPEED, PEER) or name == "times":
                for child in filling:
                    child.wait()
            left = a.limit - (time.monotonic() - begin)
            found = run_part(name, a, tree, left) if left > 10 else {"exit": "not started: no time is left"}
            report["parts"][name] = found
            report["good"] = report["good"] and found["exit"] == 0
            print(name, json.dumps(found), flush=True)
            (a.out / "triton_gpu.json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
        for child in filling:
            child.wait()
    print("good" if report["good"] else "NOT good", round(time.monotonic() - begin, 1), "s")
    return 0 if report["good"] else 1


def parts(text):
    chosen = text.split(",")
    unknown = sorted(set(chosen) - set(PARTS))
    if unknown:
        raise argparse.ArgumentTypeError(f"no parts {unknown}; there are {', '.join(PARTS)}")
    return chosen


def main():
    table = "\n".join(f"  {name:14}{what} ({limit} s at most)" for name, (limit, what, _) in PARTS.items())
    p = argparse.ArgumentParser(description=__doc__ + table, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = p.add_subparsers(required=True)
    one = commands.add_parser("pack")
    one.set_defaults(call=pack)
    one.add_argument("--out", type=pathlib.Path, required=True)
    one.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    one.add_argument("--perf-analyzer", type=pathlib.Path, help=f"the wheel of {PERF_ANALYZER}")
    one = commands.add_parser("run")
    one.set_defaults(call=run)
    one.add_argument("--archive", type=pathlib.Path, required=True, help="the folder that pack has written")
    one.add_argument("--out", type=pathlib.Path, required=True)
    one.add_argument("--parts", type=parts, default=list(PARTS))
    one.add_argument("--limit", type=float, default=300, help="seconds for everything")
    one.add_argument("--patience", type=float, default=1, help="by which the limits of parts are multiplied")
    one.add_argument("--capability", help="of GPU 0: 90 for 9.0; else nvidia-smi is asked")
    one.add_argument("--rehearse", action="store_true")
    a = p.parse_args()
    return a.call(a)


if __name__ == "__main__":
    sys.exit(main())
