# SPDX-License-Identifier: Apache-2.0
"""Runs trtexec for its tests, and reads its lines; a small network and an engine."""
import os
import re
import struct
import subprocess

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import ingot_command as ingot

DIGITS = ingot.DIGITS / "digits.onnx"
QUICK = ("--iterations=2", "--duration=0", "--warmUp=0")
STAMP = r"\[\d\d/\d\d/\d{4}-\d\d:\d\d:\d\d\]"
NUMBER = r"[0-9.e+-]+"


def command(name="trtexec"):
    """The command under test by another name: a link beside it."""
    return ingot.binary().parent / name


def run(*arguments, name="trtexec", folder=None, code=0, **variables):
    """Output and errors of one call on the CPU, in the order in which they were printed."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("INGOT_")}
    environment |= {"INGOT_DEVICE": "cpu", **variables}
    done = subprocess.run([command(name), *map(str, arguments)], text=True, stdout=subprocess.PIPE, cwd=folder,
                          stderr=subprocess.STDOUT, timeout=300, stdin=subprocess.DEVNULL, env=environment, check=False)
    assert done.returncode == code, done.stdout
    return done.stdout


def lines_of(text, severity):
    """The texts of all lines of a severity: I, W, E or V."""
    return re.findall(rf"^{STAMP} \[{severity}\] (.*)$", text, re.MULTILINE)


def has_lines(text, patterns):
    for pattern in patterns:
        assert re.search(rf"^{STAMP} \[I\] {pattern}$", text, re.MULTILINE), f"no line {pattern!r} in\n{text}"


def small_network(path, dims):
    """A convolution, a mean and a product of matrices on an input of NCHW."""
    rng = np.random.default_rng(0)
    weights = [numpy_helper.from_array(rng.standard_normal(s).astype(np.float32) * 0.2, n)
               for n, s in (("kernel", (4, 3, 3, 3)), ("matrix", (4, 5)))]
    nodes = [helper.make_node("Conv", ["input", "kernel"], ["features"], strides=[32, 32], name="conv"),
             helper.make_node("Relu", ["features"], ["positive"], name="relu"),
             helper.make_node("GlobalAveragePool", ["positive"], ["pooled"], name="pool"),
             helper.make_node("Flatten", ["pooled"], ["flat"], name="flatten"),
             helper.make_node("MatMul", ["flat", "matrix"], ["output"], name="classify")]
    graph = helper.make_graph(nodes, "small", [helper.make_tensor_value_info("input", TensorProto.FLOAT, dims)],
                              [helper.make_tensor_value_info("output", TensorProto.FLOAT, [dims[0], 5])], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), str(path))


def calibration_cache(path):
    scales = {"input": 0.02, "features": 0.03, "positive": 0.03, "pooled": 0.01, "flat": 0.01, "output": 0.01}
    text = "".join(f"{name}: {struct.pack('>f', scale).hex()}\n" for name, scale in scales.items())
    path.write_text("TRT-8601-EntropyCalibration2\n" + text)


@pytest.fixture(name="engine", scope="module")
def fixture_engine(tmp_path_factory):
    path = tmp_path_factory.mktemp("trtexec") / "digits.engine"
    run(f"--onnx={DIGITS}", f"--saveEngine={path}", "--minShapes=image:1x1x8x8", "--optShapes=image:4x1x8x8",
        "--maxShapes=image:9x1x8x8", "--skipInference")
    return path
