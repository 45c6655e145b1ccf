# SPDX-License-Identifier: Apache-2.0
"""A worker that makes, runs and closes sessions, for test_onnxruntime_endurance.py.

  onnxruntime_sessions.py cache FOLDER FIRST LAST   sessions FIRST to LAST of three models, their kernels kept in
                                                    FOLDER; prints the number of each that is done
  onnxruntime_sessions.py many WARM COUNT           prints the MB of anonymous memory that COUNT sessions after WARM
                                                    others have left behind
"""
import ctypes
import gc
import pathlib
import sys

import numpy as np
from onnx import TensorProto, helper

from onnxruntime_plugin import model_of, session

X = np.random.default_rng(1).standard_normal((3, 16)).astype(np.float32)


def weights(seed):
    return np.random.default_rng(seed).standard_normal((16, 24)).astype(np.float32)


def model(seed):
    """y = Relu(x W)"""
    return model_of([helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Relu", ["a"], ["y"])],
                    {"x": (TensorProto.FLOAT, ["n", 16])}, {"y": (TensorProto.FLOAT, ["n", 24])},
                    {"w": weights(seed)})


def check(made, seed):
    got, = made.run(None, {"x": X})
    np.testing.assert_allclose(got, np.maximum(X @ weights(seed), 0), rtol=1e-4, atol=1e-4)


def cached(folder, first, last):
    models = [model(seed) for seed in range(3)]
    for number in range(int(first), int(last)):
        check(session(models[number % 3], {"nv_runtime_cache_path": folder}), number % 3)
        print(number, flush=True)


def anonymous_mb():
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return int([line for line in lines if line.startswith("RssAnon")][0].split()[1]) / 1024


def many(warm, count):
    models = [model(seed) for seed in range(3)]
    for number in range(int(warm) + int(count)):
        if number == int(warm):
            before = anonymous_mb()
        check(session(models[number % 3]), number % 3)
    print(anonymous_mb() - before)


if __name__ == "__main__":
    {"cache": cached, "many": many}[sys.argv[1]](*sys.argv[2:])
