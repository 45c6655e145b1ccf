# SPDX-License-Identifier: Apache-2.0
"""Small networks, built and run on the CPU. Import it after package.find()."""
import numpy as np
import tensorrt as trt

from shim import package


class Log(trt.ILogger):
    def __init__(self):
        trt.ILogger.__init__(self)
        self.errors = []

    def log(self, severity, msg):
        if severity <= trt.ILogger.ERROR:
            self.errors.append(msg)

    def take(self):
        text, self.errors = "\n".join(self.errors), []
        return text


LOGGER = Log()


def network_of(*shapes, dtype=trt.float32, flags=0):
    """(builder, network, inputs); sizes of -1 are 1 to 8, 4 expected."""
    builder = trt.Builder(LOGGER)
    network = builder.create_network(flags)
    inputs = [network.add_input(f"x{i}", dtype, shape) for i, shape in enumerate(shapes)]
    return builder, network, inputs


def build(builder, network, outputs):
    for i, tensor in enumerate(outputs):
        tensor.name = f"y{i}"
        network.mark_output(tensor)
    config = builder.create_builder_config()
    profile = builder.create_optimization_profile()
    dynamic = False
    for i in range(network.num_inputs):
        x = network.get_input(i)
        if -1 in tuple(x.shape):
            dynamic = True
            profile.set_shape(x.name, *[[size if n < 0 else n for n in x.shape] for size in (1, 4, 8)])
    if dynamic:
        config.add_optimization_profile(profile)
    blob = builder.build_serialized_network(network, config)
    assert blob is not None, LOGGER.take()
    return bytes(memoryview(blob))


class Memory(trt.IOutputAllocator):
    """For an output with a data-dependent size."""

    def reallocate_output_async(self, tensor_name, memory, size, alignment, stream):
        self.values = np.zeros(max(size, 1) // 4 + 1, np.float32)
        return self.values.ctypes.data

    def notify_shape(self, tensor_name, shape):
        self.shape = tuple(shape)

    def get(self):
        return self.values[:int(np.prod(self.shape))].reshape(self.shape)


def run(blob, inputs, outputs):
    """Fills `outputs`, arrays or Memory."""
    runtime = trt.Runtime(LOGGER)
    runtime.set_device(package.CPU)
    engine = runtime.deserialize_cuda_engine(blob)
    assert engine is not None, LOGGER.take()
    context = engine.create_execution_context()
    for i, x in enumerate(inputs):
        context.set_input_shape(f"x{i}", x.shape)
        context.set_tensor_address(f"x{i}", x.ctypes.data)
    for i, y in enumerate(outputs):
        if isinstance(y, Memory):
            context.set_output_allocator(f"y{i}", y)
        else:
            context.set_tensor_address(f"y{i}", y.ctypes.data)
    assert context.execute_async_v3(0), LOGGER.take()
