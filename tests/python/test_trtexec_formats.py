# SPDX-License-Identifier: Apache-2.0
"""trtexec and inspect: formats of inputs and outputs, from the command line to the bytes of files."""
import json
import re

import numpy as np
import onnx
import pytest

import ingot_command as ingot
from trtexec_command import QUICK, lines_of, run


def picture_filter(path):
    """y = 2x for pictures of 3 channels, exactly what float16 holds."""
    value = onnx.helper.make_tensor_value_info
    float32 = onnx.TensorProto.FLOAT
    graph = onnx.helper.make_graph([onnx.helper.make_node("Add", ["x", "x"], ["y"])], "filter",
                                   [value("x", float32, ["N", 3, 4, 5])], [value("y", float32, ["N", 3, 4, 5])])
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8), path)


# Channels innermost, or in vectors: (formats, the array that pictures are, its type).
LAYOUTS = [
    ("fp16:chw4", lambda x: vectors(x, 4), np.float16),
    ("fp16:chw2", lambda x: vectors(x, 2), np.float16),
    ("chw2+chw32", lambda x: vectors(x, 32), np.float32),
    ("fp16:hwc8", lambda x: pad(x, 8).transpose(0, 2, 3, 1), np.float16),
    ("hwc", lambda x: x.transpose(0, 2, 3, 1), np.float32),
]


def pad(x, multiple):
    return np.pad(x, [(0, 0), (0, -x.shape[1] % multiple), (0, 0), (0, 0)])


def vectors(x, size):
    n, _, h, w = x.shape
    return pad(x, size).reshape(n, -1, size, h, w).transpose(0, 1, 3, 4, 2)


@pytest.mark.parametrize("spec, layout, dtype", LAYOUTS, ids=[name for name, _, _ in LAYOUTS])
@pytest.mark.parametrize("runtime", ["full", "lean"])
def test_formats_of_inputs_and_outputs(tmp_path, spec, layout, dtype, runtime):
    """--loadInputs reads and --dumpRawBindingsToFile writes the bytes in memory; --exportOutput
    is row major."""
    picture_filter(tmp_path / "model.onnx")
    x = np.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5).astype(dtype)
    (tmp_path / "x.bin").write_bytes(np.ascontiguousarray(layout(x)).tobytes())
    run("--onnx=model.onnx", f"--inputIOFormats={spec}", f"--outputIOFormats={spec}", "--saveEngine=model.engine",
        "--skipInference", folder=tmp_path)
    described = ingot.call("inspect", tmp_path / "model.engine")
    name = spec.split(":")[-1].split("+")[-1]
    assert re.search(rf"^  x: f(16|32)\[N,3,4,5\] {name}$", described, re.M)
    described = json.loads(ingot.call("inspect", tmp_path / "model.engine", "--json"))
    assert [t["format"] for t in described["inputs"] + described["outputs"]] == [name, name]
    run("--loadEngine=model.engine", "--loadInputs=x:x.bin", "--shapes=x:2x3x4x5", "--dumpRawBindingsToFile",
        "--exportOutput=out.json", f"--useRuntime={runtime}", *QUICK, folder=tmp_path)
    type_name = "Half" if dtype == np.float16 else "Float"
    raw = (tmp_path / f"y.output.2.3.4.5.{type_name}.raw").read_bytes()
    assert raw == np.ascontiguousarray(layout(2 * x)).tobytes()
    assert (tmp_path / f"x.input.2.3.4.5.{type_name}.raw").read_bytes() == (tmp_path / "x.bin").read_bytes()
    values = json.loads((tmp_path / "out.json").read_text())[0]
    assert values["dimensions"] == "2x3x4x5" and values["values"] == (2 * x).reshape(-1).tolist()
    (tmp_path / "x.bin").write_bytes(b"short")
    errors = lines_of(run("--loadEngine=model.engine", "--loadInputs=x:x.bin", "--shapes=x:2x3x4x5", *QUICK,
                          folder=tmp_path, code=1), "E")
    assert re.search(rf"x.bin has 5 bytes, input 'x' f\d+\[2,3,4,5\] as {name} needs {len(raw)}$", errors[0])
