# SPDX-License-Identifier: Apache-2.0
"""The rows of docs/reliability.md on builds that are repeated in other environments and on other hosts: the same bytes."""
import ctypes
import os
import pathlib
import shutil
import subprocess
import sys

import numpy
import onnx
from onnx import helper, numpy_helper

TITLE = ("models are built again in another folder, with other threads, locale, time zone, user, umask, addresses, malloc, "
         "and less of the CPU: the same bytes")
HOST_TITLE = ("models are built on other hosts, with a name, root folder, users, processes, network and kernel's release of their "
              "own: the same bytes")
CPU_TITLE = "models are built on other CPUs, which are emulated: the same bytes"
TITLES = (TITLE, HOST_TITLE, CPU_TITLE)
LIMIT_S = 120
OTHER_HOST = pathlib.Path(__file__).with_name("other_host.sh")
NAMESPACES = ("unshare", "--user", "--map-root-user", "--mount", "--uts", "--ipc", "--net", "--pid", "--fork", "--kill-child")
HOSTS = ("elsewhere", "build-42.example.org")
EMULATORS = ("qemu-x86_64", "qemu-x86_64-static")
CPUS = ("Nehalem", "Haswell", "EPYC")  # of two makers, with and without AVX2
NO_RANDOM_ADDRESSES = 0x0040000  # of personality(2)
NOBODY = 65534
# glibc and our own code choose other loops without these instructions.
LESSER_CPU = {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX512F,-AVX2,-AVX,-FMA,-FMA4,-ERMS,-BMI2,-SSE4_2"}
ENVIRONMENTS = (
    {"LC_ALL": "tr_TR.UTF-8", "LANG": "tr_TR.UTF-8", "TZ": "Asia/Kathmandu"},
    {"ONEDNN_MAX_CPU_ISA": "SSE41"},
    {"ONEDNN_MAX_CPU_ISA": "AVX2"},
    LESSER_CPU,
    LESSER_CPU | {"ONEDNN_MAX_CPU_ISA": "SSE41", "LC_ALL": "C"},
    {"MALLOC_PERTURB_": "165", "MALLOC_ARENA_MAX": "1"},
    {"MALLOC_PERTURB_": "90", "MALLOC_MMAP_THRESHOLD_": "64", "MALLOC_TOP_PAD_": "0"},
    {"USER": "someone", "LOGNAME": "someone", "HOSTNAME": "elsewhere", "SOURCE_DATE_EPOCH": "1"},
)
UNARY = ("Exp", "Log", "Sin", "Cos", "Tanh", "Erf", "Sigmoid", "Sqrt", "Softplus", "Atan", "Sinh", "Acosh")


def folded_model(path, dtype):
    """Functions, sums and a resize of constants, which the build computes."""
    values = numpy.random.default_rng(23).uniform(1.0, 5.0, (16, 48)).astype(dtype)
    kept = [numpy_helper.from_array(values, "v"), numpy_helper.from_array(values.T.copy(), "t"),
            numpy_helper.from_array(numpy.array([1, 1, 2.5, 1.5], numpy.float32), "scales"),
            numpy_helper.from_array(values.reshape(1, 1, 16, 48), "picture")]
    nodes = [helper.make_node(name, ["v"], [name]) for name in UNARY]
    nodes += [helper.make_node("MatMul", ["v", "t"], ["square"]), helper.make_node("Pow", ["v", "v"], ["power"]),
              helper.make_node("Softmax", ["v"], ["shares"], axis=1),
              helper.make_node("Resize", ["picture", "", "scales"], ["larger"], mode="cubic")]
    outputs = []
    for name in (*UNARY, "square", "power", "shares", "larger"):
        nodes.append(helper.make_node("Add", [name, "x"], [f"{name}_and_x"]))
        outputs.append(helper.make_tensor_value_info(f"{name}_and_x", helper.np_dtype_to_tensor_dtype(values.dtype), None))
    x = helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(values.dtype), [1])
    graph = helper.make_graph(nodes, "folded", [x], outputs, kept)
    onnx.save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)]), path)
    return path


def settle(index):
    """Gives the process that will build its umask, user, addresses and CPUs, by the index of the build."""
    os.umask((0o022, 0o077, 0o000)[index % 3])
    if index % 4 == 1:
        ctypes.CDLL(None).personality(NO_RANDOM_ADDRESSES)
    if index % 5 == 2:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    if index % 6 == 3 and os.geteuid() == 0:
        os.setuid(NOBODY)


def built(command, engine, variables, **options):
    """The engine's bytes, or None, and the text of a build."""
    done = subprocess.run(command, env=variables, timeout=LIMIT_S, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                          **options)
    try:
        return engine.read_bytes() if done.returncode == 0 else None, done.stdout.decode(errors="replace")
    finally:
        engine.unlink(missing_ok=True)


def build(place, model, index):
    """A build in the index-th environment."""
    folder = place.folder / ("here", "a folder of another name", "ä ö")[index % 3]
    folder.mkdir(exist_ok=True)
    folder.chmod(0o777)
    engine = folder / f"{index}.engine"
    variables = {"PATH": "/usr/bin:/bin", "HOME": str((place.folder, folder)[index % 2]), **ENVIRONMENTS[index % len(ENVIRONMENTS)]}
    return built([place.ingot, "build", str(model), "-o", str(engine), f"--threads={1 + index % 5}"], engine, variables,
                 preexec_fn=lambda: settle(index), cwd=(folder, "/")[index % 2])


def on_host(place, model, name, release=()):
    """A build on another host."""
    root, out = place.folder / "root", place.folder / "out"
    root.mkdir(exist_ok=True)
    out.mkdir(exist_ok=True)
    return built([*NAMESPACES, "sh", OTHER_HOST, root, name, place.ingot.parent, model.parent, out, *release,
                  "/opt/ingot", "build", f"/models/{model.name}", "-o", "/out/engine"], out / "engine", {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})


def no_hosts():
    """Why no other host can be had here; empty: one can."""
    if shutil.which("unshare") is None:
        return "there is no unshare (util-linux)"
    done = subprocess.run([*NAMESPACES, "sh", "-c", "echo other > /proc/sys/kernel/hostname && mount -t tmpfs none /mnt"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return "" if done.returncode == 0 else f"namespaces cannot be made: {done.stdout.decode(errors='replace').strip()}"


def emulator():
    return next(filter(None, map(shutil.which, EMULATORS)), None)


def differing(what, first, made):
    data, text = made
    return [] if data is not None and data == first else [f"{what}: {'other bytes' if data else text[-200:]}"]


def compared(place, models, others):
    """Builds each model here and in each of `others`, a name and a function that builds a model there. Returns the number of
    builds, of failures that are allowed (none), and what differs from the build here."""
    bad, builds = [], 0
    for model in all_models(place, models):
        first, _ = build(place, model, 0)
        for name, made in others:
            bad += differing(f"{model.name} on {name}", first, made(model))
            builds += 1
    return builds, 0, bad


def host_rows(place, models):
    """The row of other hosts; where none can be had it is left out, and says so."""
    if why := no_hosts():
        print(f"not counted: {HOST_TITLE}: {why}", file=sys.stderr)
        return []
    others = [(name, lambda model, n=name, r=release: on_host(place, model, n, r))
              for name in HOSTS for release in ((), ("setarch", "--uname-2.6"))]
    return [(HOST_TITLE, *compared(place, models, others))]


def on_cpu(place, model, cpu):
    """A build on another CPU."""
    engine = place.folder / "emulated.engine"
    return built([emulator(), "-cpu", cpu, place.ingot, "build", model, "-o", engine], engine,
                 {"PATH": "/usr/bin:/bin", "HOME": str(place.folder)})


def cpu_rows(place, models):
    """The row of other CPUs; where none can be emulated it is left out, and says so."""
    if emulator() is None:
        print(f"not counted: {CPU_TITLE}: there is no {EMULATORS[0]} (qemu-user)", file=sys.stderr)
        return []
    others = [(cpu, lambda model, c=cpu: on_cpu(place, model, c)) for cpu in CPUS]
    return [(CPU_TITLE, *compared(place, models, others))]


def all_models(place, models):
    folded = [folded_model(place.folder / f"folded_{t.__name__}.onnx", t) for t in (numpy.float32, numpy.float64, numpy.float16)]
    return [pathlib.Path(m) for m in models] + folded


def rows(place, models, every):
    """Each model is built as often as there are environments, or more."""
    models = all_models(place, models)
    for folder in (place.folder, *place.folder.parents):  # another user reads them
        if folder.stat().st_uid == os.geteuid() and folder != pathlib.Path("/"):
            folder.chmod(folder.stat().st_mode | 0o011)
    bad, builds = [], 0
    for model in models:
        first, _ = build(place, model, 0)
        for index in range(max(len(ENVIRONMENTS), 120 // every // len(models))):
            bad += differing(f"{model.name}, build {index}", first, build(place, model, index))
            builds += 1
    return [(TITLE, builds, 0, bad)]
