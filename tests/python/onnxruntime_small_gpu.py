# SPDX-License-Identifier: Apache-2.0
"""A worker on a simulated GPU of little memory: onnxruntime_small_gpu.py SESSIONS RUNS [OPTION=VALUE].
Makes sessions of one model, whose runs need 16 MiB of scratch memory each, and runs them in turn, with
that run option; then allocates 12 MiB, and prints "done"."""
import sys

import numpy as np
from onnx import TensorProto, helper

from onnxruntime_plugin import device, model_of, onnxruntime, session

SIZE = 2048
MODEL = model_of(
    [helper.make_node("MatMul", ["x", "v"], ["a"]), helper.make_node("Sin", ["a"], ["b"]),
     helper.make_node("MatMul", ["b", "w"], ["y"])],
    {"x": (TensorProto.FLOAT, ["n", 64])}, {"y": (TensorProto.FLOAT, ["n", 4])},
    {"v": np.ones((64, SIZE), np.float32), "w": np.ones((SIZE, 4), np.float32)})

if __name__ == "__main__":
    sessions = [session(MODEL) for _ in range(int(sys.argv[1]))]
    x = np.full((SIZE, 64), 0.01, np.float32)
    want = np.full((SIZE, 4), SIZE * np.sin(np.float32(0.64)), np.float32)
    options = onnxruntime.RunOptions()
    for argument in sys.argv[3:]:
        options.add_run_config_entry(*argument.split("="))
    for _ in range(int(sys.argv[2])):
        for made in sessions:
            np.testing.assert_allclose(made.run(None, {"x": x}, options)[0], want, rtol=1e-3)
    print("ran")
    device()
    onnxruntime.OrtValue.ortvalue_from_numpy(np.zeros(12 << 20, np.uint8), "gpu", 0, 0x10DE)
    print("done")
