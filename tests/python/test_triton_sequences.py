# SPDX-License-Identifier: Apache-2.0
"""Sequences in a real Triton Inference Server: a recurrent model whose state the server keeps
between requests, told by control inputs where a sequence begins."""
import concurrent.futures

import numpy as np
import pytest

import ingot_command
import models
import triton_server
from recurrent import (CHUNKS, HIDDEN, INPUTS, SPEECH, SPEECH_CONFIG, STEPS, STRATEGIES, gru, speech_by_chunks,
                       stream)
from triton_server import Refused

@pytest.fixture(scope="module")
def engines(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gru")
    out = {}
    for strategy in STRATEGIES:
        out[strategy] = folder / f"{strategy}.engine"
        ingot_command.build(gru(folder / f"{strategy}.onnx", strategy == "direct"), out[strategy])
    return out


@pytest.fixture(scope="module")
def server(tmp_path_factory, engines):
    triton_server.needed()
    with triton_server.Server(tmp_path_factory.mktemp("triton")) as running:
        for strategy, config in STRATEGIES.items():
            running.add(strategy, engines[strategy], config)
            running.load(strategy)
        yield running


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_chunks_of_a_sequence_give_what_the_whole_gives(server, engines, strategy, tmp_path):
    random = np.random.default_rng(11)
    count = 3
    x = random.standard_normal((count, STEPS * CHUNKS, INPUTS)).astype(np.float32)
    whole = {"x": x, "h": np.zeros((count, HIDDEN), np.float32), "start": np.ones((count, 1), np.float32)}
    if strategy == "direct":
        whole["ready"] = np.ones((count, 1), np.bool_)
    expected = ingot_command.run(engines[strategy], whole, tmp_path)["y"]
    for turn in range(2):  # the second time, sequences of the same numbers begin anew
        with concurrent.futures.ThreadPoolExecutor(count) as pool:
            got = list(pool.map(lambda i: stream(server, strategy, 100 + i, x[i:i + 1]), range(count)))
        np.testing.assert_allclose(np.concatenate(got), expected, rtol=1e-5, atol=1e-6,
                                   err_msg=f"turn {turn}")


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_clients_neither_send_nor_get_what_belongs_to_the_server(server, strategy):
    config = server.config(strategy)
    assert [t["name"] for t in config["input"]] == ["x"]
    assert [t["name"] for t in config["output"]] == ["y"]
    if strategy == "direct":  # a fraction gets through the backend, which adds the tensors
        assert config["sequence_batching"]["direct"]["minimum_slot_utilization"] == 0.5


def test_a_request_without_a_sequence_is_refused(server):
    with pytest.raises(Refused) as refused:
        server.infer("oldest", {"x": np.zeros((1, STEPS, INPUTS), np.float32)}, ["y"])
    assert refused.value.status == 400
    assert "must specify a non-zero or non-empty correlation ID" in refused.value.text


def test_a_state_of_another_size_is_refused_at_load(server, engines):
    server.add("wrong", engines["oldest"], STRATEGIES["oldest"].replace("dims: [5]", "dims: [4]"))
    with pytest.raises(Refused) as refused:
        server.load("wrong")
    assert ("state input 'h': shape [-1,4] is configured (the first size are the rows of a batch), the "
            "engine has [-1,5]") in refused.value.text


def test_the_speech_model_keeps_its_states(server, tmp_path):
    """Sequences that begin one after the other, so that batches hold chunks of several places."""
    if models.shared_models() is None:
        pytest.skip("no shared/models: the speech model was NOT served")
    import onnxruntime
    model = speech_by_chunks(models.model_file("speech_lstm_gru"), tmp_path / "speech.onnx")
    engine = tmp_path / "speech.engine"
    ingot_command.build(model, engine)
    server.add("speech", engine, SPEECH_CONFIG)
    server.load("speech")
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    random = np.random.default_rng(5)
    count, steps = 3, 7
    x = random.standard_normal((count, steps * CHUNKS, 80)).astype(np.float32)
    names = ["y", *(f"{state}_next" for state in SPEECH)]
    zeros = {state: np.zeros((count, size), np.float32) for state, size in SPEECH.items()}
    states, expected = zeros, []
    for chunk in np.split(x, CHUNKS, axis=1):
        y, *following = session.run(names, {"x": chunk, **states})
        states = dict(zip(SPEECH, following))
        expected.append(y)
    without = session.run(["y"], {"x": x[:, -steps:], **zeros})[0]
    assert np.abs(without - expected[-1]).max() > 1e-2  # else the states say nothing
    expected = np.concatenate(expected, axis=1)
    for turn in range(2):  # the second time, sequences of the same numbers begin anew
        with concurrent.futures.ThreadPoolExecutor(count) as pool:
            got = list(pool.map(lambda i: stream(server, "speech", 200 + i, x[i:i + 1]), range(count)))
        np.testing.assert_allclose(np.concatenate(got), expected, rtol=1e-3, atol=1e-4, err_msg=f"turn {turn}")
    config = server.config("speech")
    assert [t["name"] for t in config["input"]] == ["x"]
    assert [t["name"] for t in config["output"]] == ["y"]
