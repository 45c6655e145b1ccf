# SPDX-License-Identifier: Apache-2.0
"""Shapes that a real Triton Inference Server passes on, on the CPU and on an emulated GPU: sizes that are an input's values,
tensors without elements, and outputs that nobody asks for."""
import json

import numpy as np
import onnx
import onnx.helper as oh
import pytest

import serving_models
import triton_server
from triton_server import Refused

FLOAT, INT64 = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64


def reshaped(path):
    """y = x[n] in the shape that the input `shape` says, and its double."""
    two = onnx.numpy_helper.from_array(np.array([2], np.float32), "two")
    return serving_models.save(
        path, [oh.make_node("Reshape", ["x", "shape"], ["y"], allowzero=1), oh.make_node("Mul", ["y", "two"], ["twice"])],
        [oh.make_tensor_value_info("x", FLOAT, ["n"]), oh.make_tensor_value_info("shape", INT64, [2])],
        [oh.make_tensor_value_info("y", FLOAT, ["a", "b"]), oh.make_tensor_value_info("twice", FLOAT, ["a", "b"])], [two])


@pytest.fixture(scope="module", params=["KIND_CPU", "KIND_GPU"])
def server(tmp_path_factory, request):
    triton_server.needed()
    folder = tmp_path_factory.mktemp("shapes")
    with triton_server.server_on(request.param, folder) as running:
        running.add("reshaped", reshaped(folder / "reshaped.onnx"), f"instance_group [{{ kind: {request.param} }}]\n",
                    file_name="model.onnx")
        running.load("reshaped")
        yield running


@pytest.mark.parametrize("shape", [(3, 4), (12, 1), (2, 6)])
def test_an_inputs_values_are_sizes(server, shape):
    x = np.arange(np.prod(shape), dtype=np.float32)
    got = server.infer("reshaped", {"x": x, "shape": np.array(shape, np.int64)})
    np.testing.assert_array_equal(got["y"], x.reshape(shape))
    np.testing.assert_array_equal(got["twice"], 2 * x.reshape(shape))


def test_sizes_that_do_not_fit_fail_their_request_alone(server):
    x = np.arange(12, dtype=np.float32)
    with pytest.raises(Refused) as refused:
        server.infer("reshaped", {"x": x, "shape": np.array([5, 5], np.int64)})
    assert refused.value.status == 400 and "[5,5]" in refused.value.text, refused.value.text
    got = server.infer("reshaped", {"x": x, "shape": np.array([3, 4], np.int64)}, outputs=["y"])
    assert list(got) == ["y"] and np.array_equal(got["y"], x.reshape(3, 4))


def outputs_of(server, model, **inputs):
    """{name: (shape, elements)} of a request in JSON: of binary tensors the server takes none without elements."""
    tensors = [{"name": name, "datatype": triton_server.NAMES[array.dtype], "shape": list(array.shape),
                "data": array.ravel().tolist()} for name, array in inputs.items()]
    answer = json.loads(server.call(f"/v2/models/{model}/infer", json.dumps({"inputs": tensors}).encode())[0])
    return {output["name"]: (output["shape"], output["data"]) for output in answer["outputs"]}


@pytest.mark.parametrize("shape", [[0, 5], [4, 0]])
def test_tensors_without_elements_come_back(server, shape):
    got = outputs_of(server, "reshaped", x=np.zeros(0, np.float32), shape=np.array(shape, np.int64))
    assert got == {"y": (shape, []), "twice": (shape, [])}
