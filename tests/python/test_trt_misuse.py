# SPDX-License-Identifier: Apache-2.0
"""The Python package: misuse is refused with exact texts: by an exception for impossible
arguments, else by None or False and a message to the error recorder."""
import numpy as np
import pytest

from shim import package

package.find()

import tensorrt as trt  # noqa: E402
from shim.recorder import Recorder  # noqa: E402

F32, I32 = np.float32, np.int32


class World:
    """Objects to misuse; errors go to `recorder`, all words of them to `logger`."""

    def __init__(self):
        class Logger(trt.ILogger):
            messages = []

            def log(self, severity, msg):
                if severity <= trt.ILogger.ERROR:
                    self.messages.append(msg)

        self.logger = Logger()
        self.messages = self.logger.messages
        self.messages.clear()
        self.builder = trt.Builder(self.logger)
        self.network = self.builder.create_network()
        self.x = self.network.add_input("x", trt.float32, (2, 3))
        self.config = self.builder.create_builder_config()

    def input(self, name, *shape, dtype=trt.float32):
        return self.network.add_input(name, dtype, shape)

    def data(self, shape=(2, 3), profile=None):
        network = self.builder.create_network()
        y = network.add_unary(network.add_input("x", trt.float32, shape), trt.UnaryOperation.NEG)
        y.get_output(0).name = "y"
        network.mark_output(y.get_output(0))
        config = self.builder.create_builder_config()
        if profile:
            made = self.builder.create_optimization_profile()
            made.set_shape("x", *profile)
            config.add_optimization_profile(made)
        return self.builder.build_serialized_network(network, config)

    def runtime(self):
        runtime = trt.Runtime(self.logger)
        assert runtime.set_device(package.CPU)
        return runtime

    def engine(self, *arguments):
        return self.runtime().deserialize_cuda_engine(self.data(*arguments))

    def context(self, *arguments):
        return self.engine(*arguments).create_execution_context()

    def dynamic(self):
        return self.context((-1, 3), ((1, 3), (2, 3), (4, 3)))


def other_network(w):
    return w.builder.create_network().add_input("z", trt.float32, (2, 3))


def run_without_addresses(w):
    return w.context().execute_async_v3(0)


def run_without_shape(w):
    context = w.dynamic()
    memory = np.zeros(12, F32)
    context.set_tensor_address("x", memory.ctypes.data)
    context.set_tensor_address("y", memory.ctypes.data)
    return context.execute_async_v3(0)


def refitter(w):
    with pytest.raises(RuntimeError, match="Refitter could not be made: the logger has the reason"):
        trt.Refitter(w.engine(), w.logger)


def build_without_profile_of_all(w):
    w.input("d", -1, 4)
    w.network.mark_output(w.network.get_input(1))
    profile = w.builder.create_optimization_profile()
    w.config.add_optimization_profile(profile)
    return w.builder.build_serialized_network(w.network, w.config)


# name: (call, its result, the message).
REPORTED = {
    "an input of a name that is taken": (
        lambda w: w.input("x", 2),
        None,
        "INetworkDefinition::addInput: the name 'x' is taken by another input or output"),
    "an input without a name": (
        lambda w: w.input("", 2),
        None,
        'INetworkDefinition::addInput: the name of an input is empty'),
    "an input of a size below -1": (
        lambda w: w.input("n", -2, 3),
        None,
        "INetworkDefinition::addInput: input 'n': its shape is [-2,3], expected sizes of "
        '0 or more, or -1'),
    "elementwise of sizes that do not fit": (
        lambda w: w.network.add_elementwise(w.x, w.input("b", 2, 4),
        trt.ElementWiseOperation.SUM),
        None,
        "INetworkDefinition::addElementWise: layer '(Unnamed Layer* 0) [ElementWise]' "
        "(ElementWise): input 1 'b' is f32[2,4], expected dimension 1 to be 3 or 1, as "
        "input 0 'x' is f32[2,3]"),
    "elementwise of two types": (
        lambda w: w.network.add_elementwise(w.x, w.input("b", 2, 3, dtype=trt.int32),
        trt.ElementWiseOperation.SUM),
        None,
        "INetworkDefinition::addElementWise: layer '(Unnamed Layer* 0) [ElementWise]' "
        "(ElementWise): input 1 'b' is i32[2,3], expected f32 as input 0 'x'"),
    "elementwise of two ranks": (
        lambda w: w.network.add_elementwise(w.x, w.input("b", 3), trt.ElementWiseOperation.SUM),
        None,
        "INetworkDefinition::addElementWise: layer '(Unnamed Layer* 0) [ElementWise]' "
        "(ElementWise): input 1 'b' is f32[3], expected as many dimensions as input 0 "
        "'x', which is f32[2,3]"),
    "a tensor of another network": (
        lambda w: w.network.add_softmax(other_network(w)),
        None,
        "INetworkDefinition::addSoftMax: input 0 'z' belongs to another network"),
    "an axis that the tensor does not have": (
        lambda w: w.network.add_reduce(w.x, trt.ReduceOperation.SUM, 1 << 5, False),
        None,
        "INetworkDefinition::addReduce: layer '(Unnamed Layer* 0) [Reduce]' (Reduce): the"
        ' axes name axis 5, but the input has 2 dimensions'),
    "topk over two axes": (
        lambda w: w.network.add_topk(w.x, trt.TopKOperation.MAX, 1, 3),
        None,
        'INetworkDefinition::addTopK: axes are 3, expected exactly one bit'),
    "a convolution of a matrix": (
        lambda w: w.network.add_convolution_nd(w.x, 4, (3, 3), np.ones((4, 3, 3, 3), F32)),
        None,
        "INetworkDefinition::addConvolutionNd: layer '(Unnamed Layer* 0) [Convolution]' "
        "(Convolution): input 0 'x' is f32[2,3], expected 4 dimensions"),
    "a constant of too few weights": (
        lambda w: w.network.add_constant((2, 3), np.ones(5, F32)),
        None,
        'INetworkDefinition::addConstant: the weights have a count of 5, expected 6 for '
        'f32[2,3]'),
    "an equation that is malformed": (
        lambda w: w.network.add_einsum([w.x], "ij->k->"),
        None,
        "INetworkDefinition::addEinsum: the equation 'ij->k->' is malformed, expected one"
        " such as 'ij,jk->ik'"),
    "logical not of floats": (
        lambda w: w.network.add_unary(w.x, trt.UnaryOperation.NOT),
        None,
        "INetworkDefinition::addUnary: layer '(Unnamed Layer* 0) [Unary]' (Unary): input "
        "0 'x' is f32[2,3], expected bool"),
    "joining nothing": (
        lambda w: w.network.add_concatenation([]),
        None,
        'INetworkDefinition::addConcatenation: nbInputs is 0, expected 1 or more'),
    "flags that do not exist": (
        lambda w: w.builder.create_network(1 << 9),
        None,
        'IBuilder::createNetworkV2: the flags 512 have bits that are no '
        'NetworkDefinitionCreationFlag'),
    "no threads": (
        lambda w: setattr(w.builder, "max_threads", 0) or w.builder.max_threads > 0,
        True,
        'IBuilder::setMaxThreads: maxThreads is 0, expected 1 or more'),
    "building without outputs": (
        lambda w: w.builder.build_serialized_network(w.network, w.config),
        None,
        'IBuilder::buildSerializedNetwork: the network has no outputs; mark at least one '
        'tensor with markOutput()'),
    "building without a profile of an input": (
        build_without_profile_of_all,
        None,
        'IBuilder::buildSerializedNetwork: optimisation profile 0 has no shapes for input'
        " 'd', which is [-1,4]"),
    "an optimisation level that does not exist": (
        lambda w: setattr(w.config, "builder_optimization_level", 9) or
        w.config.builder_optimization_level == 3,
        True,
        'IBuilderConfig::setBuilderOptimizationLevel: the level is 9, expected 0 to 5'),
    "bytes that are no engine": (
        lambda w: w.runtime().deserialize_cuda_engine(b"x" * 100),
        None,
        'IRuntime::deserializeCudaEngine: the file is not an Ingot engine: its first '
        "bytes are not the engine magic; build one with 'ingot build'"),
    "an engine that is cut off": (
        lambda w: w.runtime().deserialize_cuda_engine(bytes(w.data())[:-100]),
        None,
        lambda w: "IRuntime::deserializeCudaEngine: the file has {} bytes, its header says {}; it is "
                  "truncated, copy it again".format(w.data().nbytes - 100, w.data().nbytes)),
    "no bytes at all": (
        lambda w: w.runtime().deserialize_cuda_engine(b""),
        None,
        'IRuntime::deserializeCudaEngine: the file has 0 bytes, an engine has at least '
        '64; it is truncated or not an engine'),
    "a refitter of an engine that has no weights to refit": (
        refitter,
        None,
        'createInferRefitter: the engine cannot be refitted: build it with kREFIT, '
        'kREFIT_IDENTICAL, kREFIT_INDIVIDUAL or kSTRIP_PLAN'),
    "the type of an unknown tensor": (
        lambda w: w.engine().get_tensor_dtype("z") == trt.float32,
        True,
        "ICudaEngine::getTensorDataType: there is no input or output 'z', did you mean "
        "'x'?"),
    "the mode of an unknown tensor": (
        lambda w: w.engine().get_tensor_mode("z") == trt.TensorIOMode.NONE,
        True,
        "ICudaEngine::getTensorIOMode: there is no input or output 'z', did you mean 'x'?"),
    "the name of a tensor that is not there": (
        lambda w: w.engine().get_tensor_name(7),
        None,
        'ICudaEngine::getIOTensorName: tensor 7 does not exist, the engine has 2'),
    "a profile that is not there": (
        lambda w: len(w.engine().get_tensor_profile_shape("x", 5)) == 3,
        True,
        'ICudaEngine::getProfileShape: profile 5 does not exist, the engine has 1'),
    "memory of a profile that is not there": (
        lambda w: w.engine().get_device_memory_size_for_profile_v2(5) == -1,
        True,
        'ICudaEngine::getDeviceMemorySizeForProfileV2: profile 5 does not exist, the '
        'engine has 1'),
    "an address of an unknown tensor": (
        lambda w: w.context().set_tensor_address("z", 256),
        False,
        "IExecutionContext::setTensorAddress: there is no input or output 'z', did you "
        "mean 'x'?"),
    "running without addresses": (
        run_without_addresses,
        False,
        "IExecutionContext::enqueueV3: input 'x' has no address"),
    "running without an input shape": (
        run_without_shape,
        False,
        "IExecutionContext::enqueueV3: the shape of input 'x' is not set: call "
        'setInputShape()'),
    "a shape of an unknown input": (
        lambda w: w.dynamic().set_input_shape("z", (2, 3)),
        False,
        "IExecutionContext::setInputShape: there is no input or output 'z', did you mean "
        "'x'?"),
    "a shape outside the profile": (
        lambda w: w.dynamic().set_input_shape("x", (5, 3)),
        False,
        "IExecutionContext::setInputShape: input 'x' with shape 5x3 is outside the "
        "engine's profile: dimension 0 is 5, allowed 1 to 4"),
    "a shape of another rank": (
        lambda w: w.dynamic().set_input_shape("x", (5,)),
        False,
        "IExecutionContext::setInputShape: input 'x' has rank 1 (5), expected rank 2 "
        '[x_0,3]'),
    "a shape that contradicts a static size": (
        lambda w: w.dynamic().set_input_shape("x", (2, 4)),
        False,
        "IExecutionContext::setInputShape: input 'x' dimension 1 is 4, expected 3"),
    "a shape of an output": (
        lambda w: w.dynamic().set_input_shape("y", (2, 3)),
        False,
        "IExecutionContext::setInputShape: 'y' is an output: its shape follows from the "
        "inputs'"),
    "choosing a profile that is not there": (
        lambda w: w.context().set_optimization_profile_async(3, 0),
        False,
        'IExecutionContext::setOptimizationProfileAsync: profile 3 does not exist, the '
        'engine has 1'),
    "an output allocator for an input": (
        lambda w: w.context().set_output_allocator("x", trt.IOutputAllocator()),
        False,
        "IExecutionContext::setOutputAllocator: 'x' is an input"),
    "debugging a tensor that was not marked": (
        lambda w: w.context().set_tensor_debug_state("y", True),
        False,
        "IExecutionContext::setTensorDebugState: tensor 'y' was not marked with "
        'markDebug()'),
    "weights under a name that no layer uses": (
        lambda w: w.network.set_weights_name(np.ones(3, F32), "w"),
        False,
        "INetworkDefinition::setWeightsName: no layer uses the weights for 'w'"),
    "a runtime library that is not there": (
        lambda w: w.runtime().load_runtime("/no/such/library.so"),
        None,
        "IRuntime::loadRuntime: a runtime cannot be loaded: '/no/such/library.so' does not exist or "
        'cannot be read; give the path of a libingot_lean.so'),
    "a model that is no model": (
        lambda w: trt.OnnxParser(w.builder.create_network(), w.logger).parse(b"no model"),
        False,
        'IParser::parse: not an ONNX model: byte 0: invalid wire type 6 of field 13'),
    "a model file that is not there": (
        lambda w: trt.OnnxParser(w.builder.create_network(),
        w.logger).parse_from_file("/no/such.onnx"),
        False,
        "IParser::parseFromFile: cannot open '/no/such.onnx': No such file or directory"),
    "a cache of other bytes": (
        lambda w:
        w.engine().create_runtime_config().create_runtime_cache().deserialize(b"something"),
        False,
        'IRuntimeCache::deserialize: a runtime cache has at least 32 bytes, got 9'),
    "an inspector asked for a layer that is not there": (
        lambda w: w.engine().create_engine_inspector().get_layer_information(99,
        trt.LayerInformationFormat.ONELINE),
        None,
        'IEngineInspector::getLayerInformation: layer 99 does not exist, the engine has 1'),
}


@pytest.mark.parametrize("name", REPORTED)
def test_reported(name):
    call, result, message = REPORTED[name]
    world = World()
    assert call(world) is result
    assert set(world.messages) == {message(world) if callable(message) else message}


def test_the_recorder_gets_code_and_words():
    world, recorder = World(), Recorder()
    world.network.error_recorder = recorder
    assert world.input("x", 2) is None
    assert recorder.errors == [
        (trt.ErrorCodeTRT.INVALID_ARGUMENT,
         "INetworkDefinition::addInput: the name 'x' is taken by another input or output")]
    assert not world.messages


def incompatible(signature, *types):
    """The message for arguments of wrong types."""
    name = signature.split("(")[0]
    return (f"{name}(): incompatible function arguments. The following argument types are supported:"
            f"\n    1. {signature}\n\nInvoked with types: {', '.join(types)}").replace("$", "ingot._ingot.")


BUILDER = "__new__(cls: object, logger: $ILogger) -> $Builder | None"
INPUT = ("add_input(self, name: str, dtype: $DataType, shape: $Dims | collections.abc.Sequence[int]) "
         "-> $ITensor | None")
SOFTMAX = "add_softmax(self, input: $ITensor) -> $ISoftMaxLayer | None"
CONSTANT = ("add_constant(self, shape: $Dims | collections.abc.Sequence[int], weights: $Weights | "
            "numpy.ndarray) -> $IConstantLayer | None")
UNARY = "add_unary(self, input: $ITensor, op: $UnaryOperation) -> $IUnaryLayer | None"
NETWORK = "$INetworkDefinition"
ORDER = "sizes are not negative, ranks agree, and min <= opt <= max"

# Impossible arguments: the exception and its whole text.
RAISED = {
    "a builder without a logger": (
        lambda w: trt.Builder(None), TypeError,
        incompatible(BUILDER, "nanobind.nb_type", "NoneType")),
    "a builder of a string": (
        lambda w: trt.Builder("log"), TypeError,
        incompatible(BUILDER, "nanobind.nb_type", "str")),
    "a shape of text": (
        lambda w: w.input("n", "a"), TypeError,
        incompatible(INPUT, NETWORK, "str", "$DataType", "tuple")),
    "a shape of nine sizes": (
        lambda w: w.input("n", *range(9)), TypeError,
        incompatible(INPUT, NETWORK, "str", "$DataType", "tuple")),
    "a type of text": (
        lambda w: w.input("n", 3, dtype="float32"), TypeError,
        incompatible(INPUT, NETWORK, "str", "str", "tuple")),
    "a number where a tensor belongs": (
        lambda w: w.network.add_softmax(3), TypeError, incompatible(SOFTMAX, NETWORK, "int")),
    "None where a tensor belongs": (
        lambda w: w.network.add_softmax(None), TypeError,
        incompatible(SOFTMAX, NETWORK, "NoneType")),
    "weights of a list": (
        lambda w: w.network.add_constant((2,), [1.0, 2.0]), TypeError,
        incompatible(CONSTANT, NETWORK, "tuple", "list")),
    "an enumeration's number that is none": (
        lambda w: w.network.add_unary(w.x, 99), TypeError,
        incompatible(UNARY, NETWORK, "$ITensor", "int")),
    "an address that is an array": (
        lambda w: w.context().set_tensor_address("x", np.zeros(6, F32)), TypeError,
        incompatible("set_tensor_address(self, name: str, memory: int) -> bool",
                     "$IExecutionContext", "str", "ndarray")),
    "a method that does not exist": (
        lambda w: w.network.add_softmaxx(w.x), AttributeError,
        "'INetworkDefinition' object has no attribute 'add_softmaxx'"),
    "a layer that is not there": (
        lambda w: w.network[3], IndexError, "layer index out of range"),
    "a tensor name that is not there": (
        lambda w: w.engine()[7], IndexError, "tensor index out of range"),
    "an error that is not there": (
        lambda w: trt.OnnxParser(w.network, w.logger).get_error(2), IndexError,
        "get_error: index 2, there are 0 errors"),
    "too few addresses": (
        lambda w: w.context().execute_v2([256]), ValueError,
        "execute_v2: got 1 addresses, expected 2: one for each input and output"),
    "a profile that is out of order": (
        lambda w: w.builder.create_optimization_profile().set_shape("x", (3,), (2,), (4,)),
        ValueError, f"set_shape: input 'x': opt is not valid: {ORDER}"),
    "a negative size in a profile": (
        lambda w: w.builder.create_optimization_profile().set_shape("x", (-1,), (2,), (4,)),
        ValueError, f"set_shape: input 'x': min is not valid: {ORDER}"),
    "a dynamic range that is upside down": (
        lambda w: setattr(w.x, "dynamic_range", (1.0, -1.0)), ValueError,
        "dynamic_range: min must not be greater than max"),
    "an engine that is not bytes": (
        lambda w: w.runtime().deserialize_cuda_engine("text"), TypeError,
        "a bytes-like object is required, not 'str'"),
    "the length of a shape that is none": (
        lambda w: len(w.dynamic().get_tensor_shape("z")), ValueError,
        "there is no shape: the call that gave it has reported an error"),
    "a calibrator without super().__init__()": (
        lambda w: setattr(w.config, "int8_calibrator", Uninitialised()), TypeError,
        incompatible("(self, value: $IInt8Calibrator | None) -> None", "$IBuilderConfig",
                     f"{__name__}.Uninitialised")),
}


class Uninitialised(trt.IInt8EntropyCalibrator2):
    def __init__(self):
        pass


@pytest.mark.parametrize("name", RAISED)
@pytest.mark.filterwarnings("ignore:nanobind")
def test_raised(name):
    call, error, text = RAISED[name]
    with pytest.raises(error) as raised:
        call(World())
    assert str(raised.value) == text


def test_there_are_enough_of_them():
    assert len(REPORTED) + len(RAISED) >= 60
