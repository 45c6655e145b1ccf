#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Recognises handwritten digits through TensorRT's Python API: parses an ONNX model, builds an
engine with a profile, runs it. On a GPU it needs the package cuda-python; without one, numpy alone.
ingot.compile() does the same in one line: see docs/python.md."""
import pathlib
import sys

import ingot as trt
import numpy as np

DIGITS = pathlib.Path(__file__).resolve().parents[1] / "digits"


def build(path, batch):
    """The engine of an ONNX model for 1 to `batch` pictures at once, as bytes."""
    logger = trt.Logger(trt.Logger.WARNING)
    builder = trt.Builder(logger)
    network = builder.create_network()
    parser = trt.OnnxParser(network, logger)
    if not parser.parse_from_file(str(path)):
        sys.exit("\n".join(str(parser.get_error(i)) for i in range(parser.num_errors)))
    profile = builder.create_optimization_profile()
    profile.set_shape("image", (1, 1, 8, 8), (batch, 1, 8, 8), (batch, 1, 8, 8))
    config = builder.create_builder_config()
    config.add_optimization_profile(profile)
    plan = builder.build_serialized_network(network, config)
    if plan is None:
        sys.exit("the engine could not be built: the reason stands above")
    return plan


class OnHost:
    """Memory where the CPU runs engines: that of numpy arrays."""

    def bind(self, context, **arrays):
        for name, array in arrays.items():
            context.set_tensor_address(name, array.ctypes.data)

    def fetch(self, name, array):
        pass


class OnGpu:
    """Memory of the GPU, for as many bytes as arrays have."""

    def __init__(self):
        from cuda.bindings import runtime
        self.cuda, self.addresses = runtime, {}

    def bind(self, context, **arrays):
        for name, array in arrays.items():
            _, address = self.cuda.cudaMalloc(array.nbytes)
            self.cuda.cudaMemcpy(address, array.ctypes.data, array.nbytes,
                                 self.cuda.cudaMemcpyKind.cudaMemcpyHostToDevice)
            self.addresses[name] = address
            context.set_tensor_address(name, address)

    def fetch(self, name, array):
        self.cuda.cudaMemcpy(array.ctypes.data, self.addresses[name], array.nbytes,
                             self.cuda.cudaMemcpyKind.cudaMemcpyDeviceToHost)


def run(engine, images):
    """Scores of pictures, one row each."""
    context = engine.create_execution_context()
    context.set_input_shape("image", images.shape)
    scores = np.empty(context.get_tensor_shape("scores"), np.float32)
    memory = OnGpu() if engine.device == "gpu" else OnHost()
    memory.bind(context, image=images, scores=scores)
    if not context.execute_async_v3(0):
        sys.exit("the run failed: the reason stands above")
    memory.fetch("scores", scores)
    return scores


def main():
    images = np.load(DIGITS / "held_out_images.npy").astype(np.float32)
    labels = np.load(DIGITS / "held_out_labels.npy")
    plan = build(DIGITS / "digits.onnx", len(images))
    engine = trt.Runtime(trt.Logger(trt.Logger.WARNING)).deserialize_cuda_engine(plan)
    correct = run(engine, images).argmax(axis=1) == labels
    print(f"{correct.sum()} of {len(labels)} digits recognised on the {engine.device.upper()}")


if __name__ == "__main__":
    main()
