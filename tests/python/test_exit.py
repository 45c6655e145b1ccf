# SPDX-License-Identifier: Apache-2.0
"""The interpreter's end while daemon threads are inside the library: none of them takes the process down."""
import os
import subprocess
import sys

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from shim import package

package.find()

SCRIPT = """
import sys, threading, time
import numpy as np
import ingot

path, mode = sys.argv[1:3]
model = ingot.compile(path, device="cpu")
x = np.ones((64, 256), np.float32)
started = threading.Event()


class Slow(ingot.ILogger):
    def __init__(self):
        ingot.ILogger.__init__(self)

    def log(self, severity, text):
        time.sleep(0.0005)


slow = Slow()


def once():
    if mode == "run":
        model(x)
    elif mode == "build":
        ingot.compile(path, device="cpu")
    else:
        builder = ingot.Builder(slow)
        network = builder.create_network(0)
        assert ingot.OnnxParser(network, slow).parse_from_file(path)
        builder.build_serialized_network(network, builder.create_builder_config())


def work():
    while True:
        once()
        started.set()


for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
started.wait()
time.sleep(float(sys.argv[3]))
print("the end")
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    weights = np.random.default_rng(1).random((256, 256), np.float32)
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, [64, 256])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
                              [numpy_helper.from_array(weights, "w")])
    path = tmp_path_factory.mktemp("model") / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(path))
    return path


@pytest.mark.parametrize("mode", ["run", "build", "callback"])
def test_daemon_threads_at_the_end(model, mode):
    for wait in (0, 0.003, 0.02):
        done = subprocess.run([sys.executable, "-c", SCRIPT, str(model), mode, str(wait)], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120, check=False,
                              env=os.environ | {"PYTHONPATH": package.python_path()})
        assert done.returncode == 0 and done.stdout == "the end\n", (done.returncode, done.stdout)
