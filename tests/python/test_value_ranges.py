# SPDX-License-Identifier: Apache-2.0
"""Infinities in Python: CompiledModel.find_not_finite(), and samples for ingot.compile(fp16=True)."""
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from shim import package

package.find()

import ingot  # noqa: E402


def model_of(nodes, inputs, outputs, weights=()):
    infos = [[helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in each.items()]
             for each in (inputs, outputs)]
    graph = helper.make_graph(nodes, "g", *infos, [numpy_helper.from_array(np.asarray(w, np.float32), n)
                                                   for n, w in dict(weights).items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return model


class Log(ingot.ILogger):
    def __init__(self):
        super().__init__()
        self.warnings = []

    def log(self, severity, msg):
        if severity == ingot.ILogger.WARNING:
            self.warnings.append(msg)


@pytest.fixture
def logs():
    """y = log(x) w: -inf for 0, and NaN behind it where the weight is 0."""
    nodes = [helper.make_node("Log", ["x"], ["l"], "logarithm"), helper.make_node("MatMul", ["l", "w"], ["y"], "product")]
    model = model_of(nodes, {"x": ["n", 3]}, {"y": ["n", 2]}, {"w": [[1, 1], [0, 1], [1, 0]]})
    return ingot.compile(model, device="cpu")


def test_finite_values_are_reported_as_none(logs):
    assert logs.find_not_finite(np.ones((2, 3), np.float32)) == []


def test_the_first_layer_that_is_not_finite_and_the_first_nan_are_found(logs):
    x = np.ones((4, 3), np.float32)
    x[2, 1] = x[3, 1] = 0
    first, nan = logs.find_not_finite(x=x)
    assert (first.layer, first.value, first.index, first.shape, first.count, first.arises) == (
        "'logarithm'", "-inf", (2, 1), (4, 3), 2, True)
    assert first.text == ("'logarithm' (map) gives -inf at [2,1] of f32[4,3]; 2 of its elements are not finite, and all "
                          "that it reads is finite")
    assert (nan.layer, nan.value, nan.index, nan.shape) == ("'product'", "nan", (2, 0), (4, 2)) and not nan.arises


def test_inputs_that_do_not_fit_are_refused(logs):
    with pytest.raises(TypeError, match=r"inputs are missing: x"):
        logs.find_not_finite()
    with pytest.raises(TypeError, match=r"input 'x': got INT32, expected FLOAT"):
        logs.find_not_finite(np.ones((1, 3), np.int32))
    with pytest.raises(RuntimeError, match="the run failed: ingot::findNotFinite: input 'x' dimension 1 is 4, expected 3"):
        logs.find_not_finite(np.ones((1, 4), np.float32))


HEAT = 2e4


@pytest.fixture
def hot():
    """A product near 10^5 in front of another one; the result is near 10^3."""
    rng = np.random.default_rng(1)
    weights = {"up_w": rng.uniform(1, 2, (8, 8)) * HEAT, "down_w": rng.uniform(1, 2, (8, 4)) * 1e-3}
    nodes = [helper.make_node("Sigmoid", ["x"], ["soft"], "soft"),
             helper.make_node("MatMul", ["soft", "up_w"], ["hot"], "up"),
             helper.make_node("MatMul", ["hot", "down_w"], ["y"], "down")]
    return model_of(nodes, {"x": ["n", 8]}, {"y": ["n", 4]}, weights)


def ranges_of(model, samples):
    log = Log()
    ingot.compile(model, device="cpu", fp16=True, samples=samples, logger=log)
    return [w for w in log.warnings if w.startswith("fp16: ")]


def test_layers_that_overflow_with_a_sample_are_named(hot):
    hot_run = np.full((3, 8), 0.5, np.float32)
    warnings = ranges_of(hot, [hot_run])
    assert len(warnings) == 1
    assert warnings[0].startswith("fp16: layers keep f32 where values pass 65504, the largest number of f16: 'up' reaches 1.")
    assert "e+05" in warnings[0]


def test_samples_of_several_runs_count_together(hot):
    cold = np.full((2, 8), -20, np.float32)
    assert ranges_of(hot, [cold]) == [] and ranges_of(hot, []) == []
    one, two = ranges_of(hot, [cold, {"x": -cold}])[0], ranges_of(hot, [[-cold]])[0]
    assert one == two and "'up' reaches" in one


def test_samples_that_do_not_fit_are_refused(hot):
    cases = [([{"z": np.ones((1, 8), np.float32)}], TypeError, r"samples\[0\]: there is no input 'z'; there are x"),
             ([np.ones((1, 8), np.float32), np.ones((1, 8))], TypeError, r"samples\[1\]: "),
             (np.ones((1, 8), np.float32), TypeError, "samples: got ndarray, expected a list of runs"),
             ([np.ones((1, 7), np.float32)], RuntimeError, "sample 0: input 'x' dimension 1 is 7, expected 8")]
    for samples, kind, text in cases:
        with pytest.raises(kind, match=text):
            ingot.compile(hot, device="cpu", fp16=True, samples=samples)
    with pytest.raises(ValueError, match="they show a build with fp16=True where numbers overflow; got fp16=False"):
        ingot.compile(hot, device="cpu", samples=[np.ones((1, 8), np.float32)])
