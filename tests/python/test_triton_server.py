# SPDX-License-Identifier: Apache-2.0
"""libtriton_ingot.so in a real Triton Inference Server, on the CPU."""
import numpy as np
import pytest

import ingot_command
import triton_server
from triton_server import Refused

DIGITS = ingot_command.REPOSITORY / "examples" / "digits"


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    path = tmp_path_factory.mktemp("digits") / "model.engine"
    ingot_command.build(DIGITS / "digits.onnx", path)
    return path


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    triton_server.needed()
    with triton_server.Server(tmp_path_factory.mktemp("triton")) as running:
        yield running


@pytest.fixture(scope="module")
def digits(server, engine):
    server.add("digits", engine)
    server.load("digits")
    return np.load(DIGITS / "held_out_images.npy")


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_the_official_client_gets_what_the_engine_computes(server, engine, digits, protocol, tmp_path):
    images = digits[:61]
    expected = ingot_command.run(engine, {"image": images}, tmp_path / "alone")["scores"]
    got = triton_server.client(server, protocol, "digits", {"image": images}, tmp_path, calls=40,
                               threads=8)["scores"]
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)
    labels = np.load(DIGITS / "held_out_labels.npy")[:61]
    assert np.mean(np.argmax(got, axis=1) == labels) > 0.9


def test_the_configuration_is_completed_from_the_engine(server, digits):
    config = server.config("digits")
    assert config["max_batch_size"] == 4  # the server's default, since nothing bounds the engine
    assert "dynamic_batching" in config
    assert [(t["name"], t["data_type"], t["dims"]) for t in config["input"]] == [
        ("image", "TYPE_FP32", [1, 8, 8])]
    assert [(t["name"], t["data_type"], t["dims"]) for t in config["output"]] == [
        ("scores", "TYPE_FP32", [10])]


def test_a_wrong_configuration_is_refused_by_name(server, engine):
    server.add("wrong", engine, """max_batch_size: 8
input [{ name: "image" data_type: TYPE_FP16 dims: [1, 8, 8] }]
output [{ name: "scores" data_type: TYPE_FP32 dims: [10] }]""")
    with pytest.raises(Refused) as refused:
        server.load("wrong")
    assert ("input 'image': data_type TYPE_FP16 is configured, the engine has TYPE_FP32"
            in refused.value.text)
