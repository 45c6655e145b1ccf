# SPDX-License-Identifier: Apache-2.0
"""The ONNX suite in ONNX Runtime with Ingot's provider: every case that Ingot passes and that ONNX
Runtime can load runs whole on the provider, once as it is, and once with its constants as inputs."""
import os
import pathlib

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

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
        np.array(array, order="C").view(BYTES[tensor.data_type]), tensor.data_type)


def compare(got, tensor, rtol, atol):
    want = numpy_helper.to_array(tensor)
    assert got.shape == want.shape and got.dtype == want.dtype, (got.shape, got.dtype, want.shape,
                                                                 want.dtype)
    if got.dtype.kind in "iub":
        np.testing.assert_array_equal(got, want)
    else:
        np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol=rtol, atol=atol)


FLOATS = {TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16}
# The provider's answer where integers are inputs too that decide how many dimensions a result has, such
# as axes: only as constants are these known before a run.
STRUCTURE = "fallback to CPU EP has been explicitly disabled"


def constants(graph, types):
    """{name: tensor} of initializers, and of Constant nodes of the main graph that hold one tensor."""
    found = {t.name: t for t in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant" and not node.domain and node.attribute[0].name == "value":
            found[node.output[0]] = node.attribute[0].t
    return {name: t for name, t in found.items()
            if t.data_type != TensorProto.STRING and (types is None or t.data_type in types)}


def open_constants(model, types):
    """Turns the model's constants of these types into inputs. Returns their values by name."""
    found, graph = constants(model.graph, types), model.graph
    kept_nodes = [n for n in graph.node if not (n.op_type == "Constant" and n.output[0] in found)]
    kept = [t for t in graph.initializer if t.name not in found]
    outputs = {v.name for v in graph.output}
    if not found or outputs & set(found) or not kept_nodes:
        return {}
    present = {v.name for v in graph.input}
    graph.input.extend(helper.make_tensor_value_info(name, t.data_type, t.dims)
                       for name, t in found.items() if name not in present)
    del graph.node[:], graph.initializer[:]
    graph.node.extend(kept_nodes)
    graph.initializer.extend(kept)
    return found


def run_open(folder, rtol, atol, scratch):
    """run_case() with all constants as inputs, or where that is too much, those of real numbers."""
    try:
        return run_case(folder, rtol, atol, scratch, True, None)
    except Exception as e:
        if STRUCTURE not in str(e):
            raise
    return run_case(folder, rtol, atol, scratch, True, FLOATS)


def run_case(folder, rtol, atol, scratch=None, opens=False, types=None):
    """"" when it passed; else why ONNX Runtime or its Python cannot tell. `opens`: constants of `types`
    (None: all) are inputs, in a model that is written to `scratch`."""
    model = onnx.load(folder / "model.onnx")
    data = folder / "test_data_set_0"
    if (data / "note.txt").exists():
        return "values that are no tensors"
    # Weights that are inputs too have no file.
    inputs = {v.name: read(path) for v, path in (
        (v, data / f"input_{i}.pb") for i, v in enumerate(model.graph.input)) if path.exists()}
    wanted = [read(data / f"output_{i}.pb") for i in range(len(model.graph.output))]
    if opens:
        values = open_constants(model, types)
        if not values:
            return "it has no such constants"
        inputs.update(values)
        onnx.save(model, scratch)
    types = {v.type.tensor_type.elem_type for v in [*model.graph.input, *model.graph.output]}
    if types & {TensorProto.INT4, TensorProto.UINT4, TensorProto.FLOAT4E2M1}:
        return "Python cannot hand over types of 4 bits"
    path = str(scratch if opens else folder / "model.onnx")
    try:
        quiet = onnxruntime.SessionOptions()
        quiet.log_severity_level = 4
        reference = onnxruntime.InferenceSession(path, quiet, providers=["CPUExecutionProvider"])
    except Exception as e:
        if "Load model" in str(e) or "INVALID_GRAPH" in str(e):
            return "ONNX Runtime cannot load it"
        reference = None  # its CPU provider has no kernel: ours may
    made = session(path)
    feeds = {v.name: value(inputs[v.name]) for v in made.get_inputs()}
    assert len(feeds) == len(inputs), (sorted(feeds), sorted(inputs))
    for got, want in zip(made.run_with_ort_values(None, feeds), wanted):
        if want.data_type in BYTES:
            return "Python cannot read results of this type"
        compare(got.numpy(), want, rtol, atol)
    del reference
    return ""


def run_all(run):
    """How many cases passed, and the failed ones; prints what was not run and why."""
    passed, excepted, failed = 0, {}, []
    for name, rtol, atol, folder in passing_cases():
        try:
            reason = run(folder, max(rtol, 1e-3), max(atol, 1e-5))
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
    return passed, failed


def test_every_case_that_ingot_passes_runs_whole():
    passed, failed = run_all(run_case)
    assert not failed, "\n".join(failed)
    assert passed > 1400


def test_every_case_runs_whole_with_its_constants_as_inputs(tmp_path):
    passed, failed = run_all(lambda *case: run_open(*case, tmp_path / "open.onnx"))
    assert not failed, "\n".join(failed)
    assert passed > 300
