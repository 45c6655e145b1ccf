# SPDX-License-Identifier: Apache-2.0
"""oneDNN's containers get no memory: the process goes on, or ends with an error's text."""
import os
import shutil
import subprocess

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import ingot_command as ingot

LIBRARY = "libingot_cpu.so"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler for the library that refuses memory")
    if not (ingot.binary().parent / LIBRARY).is_file():
        pytest.skip(f"this build has no {LIBRARY}")
    folder = tmp_path_factory.mktemp("memory")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", ingot.REPOSITORY / "tests" / "faults" / "memory_shim.c", "-ldl",
                    "-o", folder / "shim.so"], check=True)
    rng = np.random.default_rng(1)
    weights = [numpy_helper.from_array(rng.normal(size=s).astype(np.float32), n)
               for n, s in (("c", (16, 3, 3, 3)), ("m", (16, 256)))]
    nodes = [helper.make_node("Conv", ["x", "c"], ["a"], pads=[1, 1, 1, 1]), helper.make_node("Relu", ["a"], ["b"]),
             helper.make_node("MaxPool", ["b"], ["d"], kernel_shape=[2, 2], strides=[2, 2]),
             helper.make_node("Transpose", ["d"], ["e"], perm=[0, 2, 3, 1]), helper.make_node("MatMul", ["e", "m"], ["y"])]
    infos = [[helper.make_tensor_value_info(n, TensorProto.FLOAT, s)] for n, s in
             (("x", [2, 3, 32, 32]), ("y", [2, 16, 16, 256]))]
    graph = helper.make_graph(nodes, "g", *infos, weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), folder / "m.onnx")
    ingot.build(folder / "m.onnx", folder / "m.engine")
    return folder


def run(place, first, last=0):
    """The command's exit code, its output and how often the library asked for memory."""
    log = place / "calls.txt"
    log.unlink(missing_ok=True)
    env = {**os.environ, "LD_PRELOAD": str(place / "shim.so"), "INGOT_MEMORY_OF": LIBRARY,
           "INGOT_MEMORY_AT": str(first), "INGOT_MEMORY_LAST": str(last), "INGOT_MEMORY_LOG": str(log)}
    done = subprocess.run([ingot.binary(), "run", place / "m.engine", "--threads", "1", "--device", "cpu"], env=env,
                          text=True, capture_output=True, timeout=300)
    return done.returncode, done.stdout, done.stderr, int(log.read_text()) if log.is_file() else 0


def test_each_request_may_fail_and_all_from_one_on(place):
    code, text, _, calls = run(place, 0)
    result = next(line for line in text.splitlines() if line.startswith("y: "))
    assert code == 0 and "onednn" in text and calls > 500, "oneDNN allocates through the library's operator new"
    survived = 0
    for first in sorted({1, 2, *np.linspace(3, calls, 24, dtype=int).tolist()}):
        for last in (first, 0):
            code, text, errors, _ = run(place, first, last)
            assert code in (0, 1), f"requests {first} to {last or 'the end'}: ended by {code}: {errors}"
            assert code == 0 or "error: " in errors, errors
            assert code == 1 or result in text, f"requests {first} to {last or 'the end'} gave other results"
            survived += code == 0
    assert survived > 20, "most runs are served by the reserve"
