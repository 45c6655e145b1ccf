# SPDX-License-Identifier: Apache-2.0
"""libtriton_ingot.so in a real Triton Inference Server, on the CPU."""
import os
import re
import shutil
import signal
import subprocess
import time

import numpy as np
import pytest

import ingot_command
import serving_models
import triton_server
from serving_models import DIGITS
from triton_server import Refused


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    triton_server.needed()
    with triton_server.Server(tmp_path_factory.mktemp("triton")) as running:
        yield running


@pytest.fixture(scope="module")
def digits(server, digits_engine):
    server.add("digits", digits_engine)
    server.load("digits")
    return np.load(DIGITS / "held_out_images.npy")


@pytest.mark.parametrize("protocol", ["http", "grpc"])
@pytest.mark.usefixtures("digits")
def test_the_official_client_gets_what_the_engine_computes(server, digits_engine, protocol, tmp_path):
    serving_models.check_digits(server, digits_engine, protocol, tmp_path)


def test_the_configuration_is_completed_from_the_engine(server, digits):
    config = server.config("digits")
    assert config["max_batch_size"] == 4  # the server's default, since nothing bounds the engine
    assert "dynamic_batching" in config
    assert [(t["name"], t["data_type"], t["dims"]) for t in config["input"]] == [
        ("image", "TYPE_FP32", [1, 8, 8])]
    assert [(t["name"], t["data_type"], t["dims"]) for t in config["output"]] == [
        ("scores", "TYPE_FP32", [10])]


def test_a_wrong_configuration_is_refused_by_name(server, digits_engine):
    server.add("wrong", digits_engine, """max_batch_size: 8
input [{ name: "image" data_type: TYPE_FP16 dims: [1, 8, 8] }]
output [{ name: "scores" data_type: TYPE_FP32 dims: [10] }]""")
    with pytest.raises(Refused) as refused:
        server.load("wrong")
    assert ("input 'image': data_type TYPE_FP16 is configured, the engine has TYPE_FP32"
            in refused.value.text)


@pytest.mark.parametrize("kind", ["model", "engine"])
def test_requests_may_leave_optional_inputs_out(server, kind, tmp_path):
    file = serving_models.with_defaults(tmp_path / "model.onnx")
    config = """max_batch_size: 0
        input [{ name: "x" data_type: TYPE_FP32 dims: [2] },
                { name: "scale" data_type: TYPE_FP32 dims: [1] optional: true },
                { name: "shift" data_type: TYPE_FP32 dims: [2] optional: true }]
        output [{ name: "y" data_type: TYPE_FP32 dims: [2] }]"""
    if kind == "engine":  # which the configuration is completed from
        ingot_command.call("build", str(file), "--optionalInputs=scale,shift", "-o", str(tmp_path / "model.engine"))
        file, config = tmp_path / "model.engine", ""
    name = f"optional_{kind}"
    server.add(name, file, config)
    server.load(name)
    assert [t["optional"] for t in server.config(name)["input"]] == [False, True, True]
    x = {"x": np.array([1, 2], np.float32)}
    scale = {"scale": np.array([5], np.float32)}
    shift = {"shift": np.array([1, 1], np.float32)}
    for inputs, expected in ((x, [13, 26]), (x | scale, [15, 30]), (shift | x, [4, 7]), (x | shift | scale, [6, 11]),
                             (x, [13, 26])):
        assert server.infer(name, inputs)["y"].tolist() == expected
    with pytest.raises(Refused) as refused:
        server.infer(name, scale)
    assert refused.value.status == 400


def test_an_optional_input_without_a_default_is_refused(server, digits_engine):
    server.add("no_default", digits_engine, """max_batch_size: 0
input [{ name: "image" data_type: TYPE_FP32 dims: [1, 1, 8, 8] optional: true }]
output [{ name: "scores" data_type: TYPE_FP32 dims: [1, 10] }]""")
    with pytest.raises(Refused) as refused:
        server.load("no_default")
    assert ("input 'image' has optional, and the engine has no default for it: build it with 'ingot build "
            "--optionalInputs=image'" in refused.value.text)


def test_the_listing_of_the_document_serves_digits(tmp_path):
    """docs/serving.md to the letter; tritonserver gets free ports beside what the listing says."""
    triton_server.needed()
    text = (ingot_command.REPOSITORY / "docs" / "serving.md").read_text(encoding="utf-8")
    listing = re.search(r"```sh\n(.*?)```", text, re.DOTALL).group(1)
    build = ingot_command.binary().parent
    installed = tmp_path / "prefix" / "lib"  # as cmake --install lays it out
    backend = installed / "ingot" / "backends" / "ingot"
    backend.mkdir(parents=True)
    shutil.copy(build / "libtriton_ingot.so", backend)
    for library in ("libingot.so", "libingot_cpu.so"):
        (installed / library).symlink_to(build / library)
    shutil.copy(DIGITS / "digits.onnx", tmp_path)
    http, grpc, metrics = triton_server.free_ports(3)
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "ingot").symlink_to(ingot_command.binary())
    (programs / "tritonserver").write_text(
        f'#!/bin/sh\nexec "{triton_server.SERVER}" "$@" --http-port={http} --grpc-port={grpc} '
        f"--grpc-address=127.0.0.1 --metrics-port={metrics} --metrics-address=127.0.0.1\n")
    (programs / "tritonserver").chmod(0o755)
    log = tmp_path / "log"
    with open(log, "wb") as output:
        process = subprocess.Popen(
            ["bash", "-e", "-c", listing.replace("PREFIX", str(tmp_path / "prefix"))],
            cwd=tmp_path, stdout=output, stderr=output, start_new_session=True,
            env=os.environ | {"PATH": f"{programs}:{os.environ['PATH']}"})
    try:
        running = triton_server.Server(tmp_path / "unused")
        running.http = http
        end = time.monotonic() + triton_server.START_SECONDS
        while not running.answers("/v2/models/digits/ready"):
            assert process.poll() is None and time.monotonic() < end, log.read_text()
            time.sleep(0.05)
        images = np.load(DIGITS / "held_out_images.npy")[:40]
        scores = np.concatenate([running.infer("digits", {"image": images[at:at + 4]})["scores"]
                                 for at in range(0, 40, 4)])
        labels = np.load(DIGITS / "held_out_labels.npy")[:40]
        assert np.mean(np.argmax(scores, axis=1) == labels) > 0.9
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(timeout=60)
