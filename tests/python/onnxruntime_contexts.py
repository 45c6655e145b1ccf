# SPDX-License-Identifier: Apache-2.0
"""A source model, and compiled models (EPContext) of it."""
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from onnxruntime_plugin import model_of, on_cpu, onnxruntime, session_options

FLOAT = TensorProto.FLOAT


def model(seed=0):
    rng = np.random.default_rng(seed)
    return model_of(
        [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Relu", ["a"], ["r"]),
         helper.make_node("ReduceSum", ["r", "axes"], ["y"], keepdims=0)],
        {"x": (FLOAT, ["n", 64])}, {"y": (FLOAT, ["n"])},
        {"w": rng.standard_normal((64, 300)).astype(np.float32), "axes": np.array([1])})


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "source" / "model.onnx"
    path.parent.mkdir()
    onnx.save(model(), path)
    return path


def compile_to(source, target, embed=False, options=None):
    made = onnxruntime.ModelCompiler(session_options(options), str(source),
                                     embed_compiled_data_into_model=embed)
    target.parent.mkdir(parents=True, exist_ok=True)
    made.compile_to_file(str(target))
    return target


def check_runs(made, seed=0):
    x = np.random.default_rng(5).standard_normal((7, 64)).astype(np.float32)
    got, = made.run(None, {"x": x})
    np.testing.assert_allclose(got, on_cpu(model(seed), {"x": x})[0], rtol=1e-4, atol=1e-4)


def context_nodes(path):
    return [{a.name: helper.get_attribute_value(a) for a in node.attribute}
            for node in onnx.load(str(path)).graph.node if node.op_type == "EPContext"]
