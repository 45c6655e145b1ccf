#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Loses a GPU: a kernel of an engine accesses memory that is not its own. Prints, as JSON, which errors
that call and all later ones gave.

  lost_gpu.py build FILE          writes the engine; needs no GPU
  lost_gpu.py run FILE FAULT      FAULT: a number of FAULTS
"""
import ctypes
import json
import pathlib
import sys

FAULTS = ("write to the first page", "read far before the input", "write far before the output",
          "write behind all memory", "misaligned write")
KERNEL = """
extern "C" __global__ void row(const float* x, float* y, long long n) {
    long long i = blockIdx.x * 32LL + threadIdx.x;
    if (i >= n)
        return;
    float v = x[i];
    if (v == -1)
        *(volatile float*)16 = 1;
    if (v == -2)
        v = ((const volatile float*)x)[-(1LL << 40)];
    if (v == -3)
        ((volatile float*)y)[-(1LL << 40)] = 1;
    if (v == -4)
        *(volatile float*)((1ULL << 47) - 64) = 1;
    if (v == -5)
        *(volatile float*)((volatile char*)y + 1) = 1;
    y[i] = 2 * v;
}"""


def build(path):
    import ingot
    builder = ingot.Builder(ingot.Logger(ingot.Logger.ERROR))
    network = builder.create_network()
    x = network.add_input("x", ingot.float32, (4,))
    layer = network.add_cuda_source_layer([x], "Row", KERNEL, "row", "float32[n] -> float32[n]",
                                          grid="ceil_div(n, 32)", block="32", arguments="n")
    layer.get_output(0).name = "y"
    network.mark_output(layer.get_output(0))
    path.write_bytes(bytes(builder.build_serialized_network(network, builder.create_builder_config())))


class Memory:
    """16 bytes of GPU 0, in its primary context."""

    cuda = None

    def __init__(self):
        if Memory.cuda is None:
            Memory.cuda = ctypes.CDLL("libcuda.so.1")
            context, device = ctypes.c_void_p(), ctypes.c_int()
            self.call("cuInit", 0)
            self.call("cuDeviceGet", ctypes.byref(device), 0)
            self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
            self.call("cuCtxSetCurrent", context)
        self.address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(self.address), ctypes.c_size_t(16))

    def call(self, name, *arguments):
        code = getattr(Memory.cuda, name)(*arguments)
        if code != 0:
            raise RuntimeError(f"{name}: {code}")

    def write(self, *values):
        self.call("cuMemcpyHtoD_v2", self.address, (ctypes.c_float * 4)(*values), ctypes.c_size_t(16))

    def read(self):
        values = (ctypes.c_float * 4)()
        self.call("cuMemcpyDtoH_v2", values, self.address, ctypes.c_size_t(16))
        return list(values)


def run(path, fault):
    import ingot

    class Recorder(ingot.IErrorRecorder):
        def __init__(self):
            super().__init__()
            self.all = []

        def num_errors(self):
            return len(self.all)

        def get_error_code(self, index):
            return self.all[index][0]

        def get_error_desc(self, index):
            return self.all[index][1]

        def has_overflowed(self):
            return False

        def clear(self):
            self.all.clear()

        def report_error(self, code, desc):
            self.all.append((code, desc))
            return False

    class Logger(ingot.ILogger):
        """Keeps the errors whole: a recorder's texts end after 127 characters, as TensorRT says."""

        def __init__(self):
            super().__init__()
            self.all = []

        def log(self, severity, text):
            if severity <= ingot.Logger.ERROR:
                self.all.append(text)

    recorder, logger = Recorder(), Logger()
    runtime = ingot.Runtime(logger)
    runtime.engine_host_code_allowed = True
    runtime.error_recorder = recorder
    blob = path.read_bytes()
    x, y = Memory(), Memory()
    steps = []

    def step(name, action):
        """Makes a call, and notes its result and the errors that it reported."""
        recorder.clear()
        logger.all.clear()
        result = action()
        steps.append({"call": name, "ok": bool(result), "device_error": engine.device_error,
                      "errors": [[code.name, text] for code, text in recorder.all], "logged": list(logger.all)})
        return result

    def execute(context):
        return lambda: context.execute_v2([x.address.value, y.address.value])

    engine, other = (runtime.deserialize_cuda_engine(blob) for _ in range(2))
    context, second, others = engine.create_execution_context(), engine.create_execution_context(), other.create_execution_context()
    x.write(1, 2, 3, 4)
    step("sound run", execute(context))
    result = y.read()
    x.write(1, -fault, 3, 4)
    step("faulty run", execute(context))
    step("same context", execute(context))
    step("second context", execute(second))
    step("other engine's context", execute(others))
    step("enqueue", lambda: context.set_tensor_address("x", x.address.value) and
         context.set_tensor_address("y", y.address.value) and context.execute_async_v3(0))
    step("new context", lambda: (made := engine.create_execution_context()) and execute(made)())
    step("new engine", lambda: (made := runtime.deserialize_cuda_engine(blob)) and
         (new := made.create_execution_context()) and execute(new)())
    step("same context again", execute(context))
    print(json.dumps({"result": result, "steps": steps}))


if __name__ == "__main__":
    if sys.argv[1] == "build":
        build(pathlib.Path(sys.argv[2]))
    else:
        run(pathlib.Path(sys.argv[2]), int(sys.argv[3]))
