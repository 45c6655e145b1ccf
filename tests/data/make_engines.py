# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/engines: small engines of this release's format, which later releases must load. A
release that changes the format adds files with its number and leaves these as they are.

  make_engines.py INGOT      the command, as built from a release
"""
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FORMAT = 1
FOLDER = pathlib.Path(__file__).parent / "engines"
# By what is special of each.
KINDS = {
    "plain": [],
    "profiles": ["--minShapes=x:1x8", "--optShapes=x:2x8", "--maxShapes=x:16x8"],
    "refit": ["--refit"],
    "half": ["--fp16"],
    "formats": ["--inputIOFormats=fp16:chw", "--outputIOFormats=fp16:chw"],
    "kernels": ["--computeCapabilities=80", "--optShapes=x:2x8", "--minShapes=x:1x8", "--maxShapes=x:16x8"],
    "signed": [],
}
# The engine "signed" has it, and nothing else.
PRIVATE_KEY = """-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIKHlIqcNUhzxHaDQlHVCxDzt007vlsSTC2uS5+J6q2AS
-----END PRIVATE KEY-----
"""


def weights():
    """w: [8, 4], b: [4], exact in half precision."""
    return np.arange(32, dtype=np.float32).reshape(8, 4) / 4 - 3, np.array([1, -2, 0.5, 0], np.float32)


def model():
    """y = max(x w + b, 0) for x of [n, 8]."""
    w, b = weights()
    graph = helper.make_graph(
        [helper.make_node("Gemm", ["x", "w", "b"], ["h"]), helper.make_node("Relu", ["h"], ["y"])], "golden",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 4])],
        [numpy_helper.from_array(w, "w"), numpy_helper.from_array(b, "b")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def main():
    ingot = sys.argv[1]
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        onnx.save(model(), f"{folder}/m.onnx")
        pathlib.Path(folder, "key").write_text(PRIVATE_KEY)
        for kind, options in KINDS.items():
            made = FOLDER / f"format{FORMAT}_{kind}.engine"
            subprocess.run([ingot, "build", f"{folder}/m.onnx", "-o", made, *options], check=True)
            if kind == "signed":
                subprocess.run([ingot, "sign", made, "--key", f"{folder}/key"], check=True)


if __name__ == "__main__":
    main()
