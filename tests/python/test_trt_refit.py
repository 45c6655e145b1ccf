# SPDX-License-Identifier: Apache-2.0
"""The Python package: refitting by name, by role and from a model; engines without weights; weight
streaming."""
import gc

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import serving_models
from shim import package

package.find()

import tensorrt as trt  # noqa: E402


class Logger(trt.ILogger):
    """Keeps errors."""

    def __init__(self):
        super().__init__()
        self.errors = []

    def log(self, severity, msg):
        if severity <= trt.Logger.ERROR:
            self.errors.append(msg)


LOGGER = Logger()
SIZE = 40


def matrices(factor):
    rng = np.random.default_rng(3)
    return [(rng.standard_normal((SIZE, SIZE)) * factor / SIZE).astype(np.float32) for _ in range(2)]


def model(weights):
    nodes = [helper.make_node("MatMul", ["x", "w0"], ["a"], name="first"),
             helper.make_node("Relu", ["a"], ["b"], name="relu"),
             helper.make_node("MatMul", ["b", "w1"], ["y"], name="second")]
    shape = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "two", [shape("x", TensorProto.FLOAT, [3, SIZE])],
                              [shape("y", TensorProto.FLOAT, [3, SIZE])],
                              [numpy_helper.from_array(w, f"w{i}") for i, w in enumerate(weights)])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(made)
    return made.SerializeToString()


def build(data, *flags):
    builder = trt.Builder(LOGGER)
    network = builder.create_network()
    assert trt.OnnxParser(network, LOGGER).parse(data)
    config = builder.create_builder_config()
    for flag in flags:
        config.set_flag(flag)
    return builder.build_serialized_network(network, config)


def engine_of(data):
    runtime = trt.Runtime(LOGGER)
    assert runtime.set_device(2)
    return runtime.deserialize_cuda_engine(data)


def run(context):
    x = (np.arange(3 * SIZE, dtype=np.float32).reshape(3, SIZE) % 7) - 3
    y = np.zeros((3, SIZE), np.float32)
    assert context.set_tensor_address("x", x.ctypes.data)
    assert context.set_tensor_address("y", y.ctypes.data)
    assert context.execute_async_v3(0)
    return y


def result(data):
    return run(engine_of(build(data)).create_execution_context())


OLD, NEW = matrices(1), matrices(2)


def test_named_weights():
    engine = engine_of(build(model(OLD), trt.BuilderFlag.REFIT))
    assert engine.refittable
    context = engine.create_execution_context()
    np.testing.assert_array_equal(run(context), result(model(OLD)))
    refitter = trt.Refitter(engine, LOGGER)
    assert sorted(refitter.get_all_weights()) == ["w0", "w1"]
    assert refitter.get_missing_weights() == []
    assert refitter.get_weights_prototype("w0").size == SIZE * SIZE
    assert refitter.get_weights_prototype("w0").dtype == trt.float32
    for i, w in enumerate(NEW):
        assert refitter.set_named_weights(f"w{i}", w.copy())
    gc.collect()
    assert refitter.refit_cuda_engine()
    np.testing.assert_array_equal(run(context), result(model(NEW)))


def test_layers_and_roles():
    builder = trt.Builder(LOGGER)
    network = builder.create_network()
    x = network.add_input("x", trt.float32, (1, 2, 4, 4))
    kernel = np.ones((3, 2, 3, 3), np.float32)
    conv = network.add_convolution_nd(x, 3, (3, 3), kernel, np.zeros(3, np.float32))
    conv.name = "conv"
    network.mark_output(conv.get_output(0))
    config = builder.create_builder_config()
    config.set_flag(trt.BuilderFlag.REFIT)
    engine = engine_of(builder.build_serialized_network(network, config))
    refitter = trt.Refitter(engine, LOGGER)
    layers, roles = refitter.get_all()
    assert set(zip(layers, roles)) == {("conv", trt.WeightsRole.KERNEL), ("conv", trt.WeightsRole.BIAS)}
    assert refitter.set_weights("conv", trt.WeightsRole.BIAS, np.array([1, 2, 3], np.float32))
    assert not refitter.set_weights("conv", trt.WeightsRole.SHIFT, np.ones(3, np.float32))
    assert refitter.refit_cuda_engine_async(0)
    context = engine.create_execution_context()
    values, out = np.zeros((1, 2, 4, 4), np.float32), np.empty((1, 3, 2, 2), np.float32)
    context.set_tensor_address("x", values.ctypes.data)
    context.set_tensor_address(engine.get_tensor_name(1), out.ctypes.data)
    assert context.execute_async_v3(0)
    np.testing.assert_array_equal(out[0, :, 0, 0], [1, 2, 3])


def test_stripped_engines_take_the_model():
    whole, bare = build(model(OLD), trt.BuilderFlag.REFIT), build(model(OLD), trt.BuilderFlag.STRIP_PLAN)
    assert bare.nbytes < whole.nbytes - 2 * SIZE * SIZE * 4
    engine = engine_of(bare)
    assert engine.get_engine_stat(trt.EngineStat.STRIPPED_WEIGHTS_SIZE) == 2 * SIZE * SIZE * 4
    with pytest.raises(RuntimeError):
        assert engine.create_execution_context() is not None or _raise()
    refitter = trt.Refitter(engine, LOGGER)
    parser = trt.OnnxParserRefitter(refitter, LOGGER)
    assert not parser.refit_from_bytes(model(NEW))
    assert parser.num_errors == 1 and "differ" in LOGGER.errors[-2] + LOGGER.errors[-1]
    parser.clear_errors()
    assert parser.refit_from_bytes(model(OLD))
    np.testing.assert_array_equal(run(engine.create_execution_context()), result(model(OLD)))
    config = engine.create_serialization_config()
    assert not config.get_flag(trt.SerializationFlag.EXCLUDE_WEIGHTS)
    again = engine_of(engine.serialize_with_config(config))
    np.testing.assert_array_equal(run(again.create_execution_context()), result(model(OLD)))


def _raise():
    raise RuntimeError("there is no context")


def test_pieces_of_a_model(tmp_path):
    engine = engine_of(build(model(OLD), trt.BuilderFlag.REFIT))
    parser = trt.OnnxParserRefitter(trt.Refitter(engine, LOGGER), LOGGER)
    assert parser.load_model_proto(model(OLD))
    assert parser.load_initializer("w1", NEW[1].tobytes())
    assert not parser.load_initializer("w9", b"1234")
    assert parser.refit_model_proto()
    np.testing.assert_array_equal(run(engine.create_execution_context()), result(model([OLD[0], NEW[1]])))
    path = tmp_path / "new.onnx"
    path.write_bytes(model(NEW))
    parser.clear_errors()
    assert parser.refit_from_file(path)
    np.testing.assert_array_equal(run(engine.create_execution_context()), result(model(NEW)))


def test_defaults_of_inputs_are_weights_too(tmp_path):
    data = serving_models.with_defaults(tmp_path / "model.onnx").read_bytes()
    builder = trt.Builder(LOGGER)
    network = builder.create_network()
    parser = trt.OnnxParser(network, LOGGER)
    assert parser.set_optional_inputs(["shift"]) and parser.parse(data)
    config = builder.create_builder_config()
    config.set_flag(trt.BuilderFlag.REFIT)
    engine = engine_of(builder.build_serialized_network(network, config))
    before = engine.get_input_default("shift")
    refitter = trt.Refitter(engine, LOGGER)
    assert sorted(refitter.get_all_weights()) == ["scale", "shift"]
    assert refitter.set_named_weights("shift", np.array([1, 2], np.float32))
    assert refitter.refit_cuda_engine()
    del refitter
    gc.collect()
    after = engine.get_input_default("shift")
    assert (before.tolist(), after.tolist()) == ([10, 20], [1, 2]) and not after.flags.writeable
    assert trt.OnnxParserRefitter(trt.Refitter(engine, LOGGER), LOGGER).refit_from_bytes(data)
    assert engine.get_input_default("shift").tolist() == [10, 20]


def test_weight_streaming_on_the_cpu():
    engine = engine_of(build(model(OLD), trt.BuilderFlag.WEIGHT_STREAMING))
    size = engine.streamable_weights_size
    assert size == 2 * SIZE * SIZE * 4
    assert engine.weight_streaming_budget_v2 == size
    assert engine.get_weight_streaming_automatic_budget() == size
    engine.weight_streaming_budget_v2 = 0
    assert engine.weight_streaming_budget_v2 == 0
    assert engine.get_weight_streaming_scratch_memory_size() == 0
    np.testing.assert_array_equal(run(engine.create_execution_context()), result(model(OLD)))
    assert engine_of(build(model(OLD))).streamable_weights_size == 0
