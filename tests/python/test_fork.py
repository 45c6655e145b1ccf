# SPDX-License-Identifier: Apache-2.0
"""Python's multiprocessing: children compute with what the parent had made (fork), or by themselves."""
import multiprocessing

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from shim import package

package.find()

import ingot  # noqa: E402

SIZE = 512  # products of this size are shared among threads
MODEL = None


def make_model():
    weights = np.random.default_rng(3).standard_normal((SIZE, SIZE)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Relu", ["h"], ["y"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [SIZE, SIZE])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [SIZE, SIZE])], [numpy_helper.from_array(weights, "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return ingot.compile(model, device="cpu"), weights


def compute(seed):
    """The largest error of one product."""
    global MODEL
    if MODEL is None:
        MODEL = make_model()
    run, weights = MODEL
    x = np.random.default_rng(seed).standard_normal((SIZE, SIZE)).astype(np.float32)
    result = run(x)
    result = np.asarray(result[0] if isinstance(result, (list, tuple)) else result)
    return float(np.abs(result - np.maximum(x @ weights, 0)).max())


def in_child(seed, pipe):
    pipe.send(compute(seed))


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(method):
    global MODEL
    MODEL = None
    assert compute(0) < 1e-2  # the parent has its threads
    context = multiprocessing.get_context(method)
    children = []
    for seed in range(1, 5):
        receive, send = context.Pipe(duplex=False)
        child = context.Process(target=in_child, args=(seed, send))
        child.start()
        children.append((child, receive))
    for child, receive in children:
        assert receive.poll(120), f"a child of {method} hangs"
        assert receive.recv() < 1e-2
        child.join(60)
        assert child.exitcode == 0
    assert compute(9) < 1e-2


def test_a_child_that_ends_as_a_program():
    """With the interpreter's whole end, which destroys what the parent had made."""
    script = """
import os, sys
sys.path.insert(0, sys.argv[1])
import test_fork
assert test_fork.compute(0) < 1e-2
child = os.fork()
assert test_fork.compute(1) < 1e-2
if child:
    assert os.waitpid(child, 0)[1] == 0
    print("both have ended")
"""
    import pathlib
    import subprocess
    import sys
    done = subprocess.run([sys.executable, "-c", script, str(pathlib.Path(__file__).parent)], text=True, timeout=120,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    assert done.returncode == 0 and "both have ended" in done.stdout, done.stdout
