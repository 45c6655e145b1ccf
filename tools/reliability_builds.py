# SPDX-License-Identifier: Apache-2.0
"""The row of docs/reliability.md on builds that are repeated in other environments: the same bytes."""
import ctypes
import os
import pathlib
import subprocess

import numpy
import onnx
from onnx import helper, numpy_helper

TITLE = ("models are built again in another folder, with other threads, locale, time zone, user, umask, addresses, malloc, "
         "and less of the CPU: the same bytes")
LIMIT_S = 120
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


def build(place, model, index):
    """The engine's bytes, or the error's text, of the index-th environment."""
    folder = place.folder / ("here", "a folder of another name", "ä ö")[index % 3]
    folder.mkdir(exist_ok=True)
    folder.chmod(0o777)
    engine = folder / f"{index}.engine"
    variables = {"PATH": "/usr/bin:/bin", "HOME": str((place.folder, folder)[index % 2]), **ENVIRONMENTS[index % len(ENVIRONMENTS)]}
    done = subprocess.run([place.ingot, "build", str(model), "-o", str(engine), f"--threads={1 + index % 5}"],
                          env=variables, preexec_fn=lambda: settle(index), cwd=(folder, "/")[index % 2], timeout=LIMIT_S,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    try:
        return engine.read_bytes() if done.returncode == 0 else None, done.stdout.decode(errors="replace")
    finally:
        engine.unlink(missing_ok=True)


def rows(place, models, every):
    """Each model is built as often as there are environments, or more."""
    models = [pathlib.Path(m) for m in models]
    models += [folded_model(place.folder / f"folded_{t.__name__}.onnx", t) for t in (numpy.float32, numpy.float64, numpy.float16)]
    for folder in (place.folder, *place.folder.parents):  # another user reads them
        if folder.stat().st_uid == os.geteuid() and folder != pathlib.Path("/"):
            folder.chmod(folder.stat().st_mode | 0o011)
    bad, builds = [], 0
    for model in models:
        first, _ = build(place, model, 0)
        for index in range(max(len(ENVIRONMENTS), 120 // every // len(models))):
            data, text = build(place, model, index)
            builds += 1
            if data is None or data != first:
                bad.append(f"{model.name}, build {index}: {'other bytes' if data else text[-200:]}")
    return [(TITLE, builds, 0, bad)]
