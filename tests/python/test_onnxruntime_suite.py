# SPDX-License-Identifier: Apache-2.0
"""The ONNX suite in ONNX Runtime with Ingot's provider: every case that Ingot passes and that ONNX
Runtime can load runs whole on the provider."""
import os
import pathlib

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper

from onnxruntime_plugin import REPOSITORY, onnxruntime, session

SUITE = pathlib.Path(os.environ.get("INGOT_SUITE") or REPOSITORY / "build" / "onnx_suite")
# Random numbers: only the suite's own reference has these.
RANDOM = "bernoulli"
# Types that numpy lacks are passed as bytes, with their type; results come back so.
BYTES = {TensorProto.BFLOAT16: np.uint16, TensorProto.FLOAT8E4M3FN: np.uint8,
         TensorProto.FLOAT8E5M2: np.uint8}

if not (SUITE / "cases.txt").is_file():
    pytest.skip(f"no ONNX suite at {SUITE}: the provider was NOT tested on it (./dev test makes it; "
                "INGOT_SUITE names another place)", allow_module_level=True)


def passing_cases():
    lines = (REPOSITORY / "tests" / "onnx" / "status.txt").read_text().splitlines()
    passing = {line.split("\t")[0] for line in lines
               if not line.startswith("#") and line.split("\t")[1:2] == ["pass"]}
    for line in (SUITE / "cases.txt").read_text().splitlines():
        name, _, rtol, atol, path = line.split("\t")
        if name in passing and RANDOM not in name:
            yield name, float(rtol), float(atol), SUITE / path


def read(path):
    tensor = TensorProto()
    tensor.ParseFromString(path.read_bytes())
    return tensor


def value(tensor):
    array = numpy_helper.to_array(tensor)
    if tensor.data_type not in BYTES:
        return onnxruntime.OrtValue.ortvalue_from_numpy(array)
    return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(
        np.ascontiguousarray(array).view(BYTES[tensor.data_type]), tensor.data_type)


def compare(got, tensor, rtol, atol):
    want = numpy_helper.to_array(tensor)
    assert got.shape == want.shape and got.dtype == want.dtype, (got.shape, got.dtype, want.shape,
                                                                 want.dtype)
    if got.dtype.kind in "iub":
        np.testing.assert_array_equal(got, want)
    else:
        np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol=rtol, atol=atol)


def run_case(folder, rtol, atol):
    """"" when it passed; else why ONNX Runtime or its Python cannot tell."""
    model = onnx.load(folder / "model.onnx")
    data = folder / "test_data_set_0"
    if (data / "note.txt").exists():
        return "values that are no tensors"
    types = {v.type.tensor_type.elem_type for v in [*model.graph.input, *model.graph.output]}
    if types & {TensorProto.INT4, TensorProto.UINT4, TensorProto.FLOAT4E2M1}:
        return "Python cannot hand over types of 4 bits"
    try:
        quiet = onnxruntime.SessionOptions()
        quiet.log_severity_level = 4
        reference = onnxruntime.InferenceSession(str(folder / "model.onnx"), quiet,
                                                 providers=["CPUExecutionProvider"])
    except Exception as e:
        if "Load model" in str(e) or "INVALID_GRAPH" in str(e):
            return "ONNX Runtime cannot load it"
        reference = None  # its CPU provider has no kernel: ours may
    made = session(folder / "model.onnx")
    # Weights that are inputs too have no file.
    inputs = {v.name: read(path) for v, path in (
        (v, data / f"input_{i}.pb") for i, v in enumerate(model.graph.input)) if path.exists()}
    wanted = [read(data / f"output_{i}.pb") for i in range(len(model.graph.output))]
    feeds = {v.name: value(inputs[v.name]) for v in made.get_inputs()}
    assert len(feeds) == len(inputs), (sorted(feeds), sorted(inputs))
    for got, want in zip(made.run_with_ort_values(None, feeds), wanted):
        if want.data_type in BYTES:
            return "Python cannot read results of this type"
        compare(got.numpy(), want, rtol, atol)
    del reference
    return ""


def test_every_case_that_ingot_passes_runs_whole():
    passed, excepted, failed = 0, {}, []
    for name, rtol, atol, folder in passing_cases():
        try:
            reason = run_case(folder, max(rtol, 1e-3), max(atol, 1e-5))
        except Exception as e:
            text = str(e)
            if "Could not find an implementation" in text or "Type Error" in text:
                reason = "ONNX Runtime refuses it before it asks providers"
            else:
                failed.append(f"{name}: {text[:300]}")
                continue
        if reason:
            excepted.setdefault(reason, []).append(name)
        else:
            passed += 1
    print(f"{passed} cases pass whole on the provider")
    for reason, names in excepted.items():
        print(f"{len(names)} not run: {reason}")
    assert not failed, "\n".join(failed)
    assert passed > 1400
