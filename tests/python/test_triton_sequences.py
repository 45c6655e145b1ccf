# SPDX-License-Identifier: Apache-2.0
"""Sequences in a real Triton Inference Server: a recurrent model whose state the server keeps
between requests, told by control inputs where a sequence begins."""
import concurrent.futures

import numpy as np
import onnx
import onnx.helper as oh
import pytest

import ingot_command
import triton_server
from triton_server import Refused

FLOAT = onnx.TensorProto.FLOAT
INPUTS, HIDDEN, STEPS, CHUNKS = 6, 5, 4, 5
CONTROLS = """
  control_input [
    { name: "start" control [{ kind: CONTROL_SEQUENCE_START fp32_false_true: [0, 1] }] }%s
  ]
  state [{ input_name: "h" output_name: "h_next" data_type: TYPE_FP32 dims: [5] %s}]"""
READY = '\n    ,{ name: "ready" control [{ kind: CONTROL_SEQUENCE_READY bool_false_true: [false, true] }] }'
ZEROS = 'initial_state: [{ name: "zeros" data_type: TYPE_FP32 dims: [5] zero_data: true }] '
STRATEGIES = {
    "direct": "max_batch_size: 3\nsequence_batching {\n  direct { }" + CONTROLS % (READY, "") + "\n}",
    "oldest": ("max_batch_size: 4\nsequence_batching {\n  oldest { max_candidate_sequences: 4 "
               "max_queue_delay_microseconds: 2000 }" + CONTROLS % ("", ZEROS) + "\n}"),
}


def gru(path, with_ready):
    """y[n, t, 5] and h_next[n, 5] of a GRU over x[n, t, 6] from h[n, 5], or from zeros in rows that
    start; `ready` is 0 in rows that are no request, and then takes their state to 0."""
    random = np.random.default_rng(7)
    weights = {"w": random.standard_normal((1, 3 * HIDDEN, INPUTS)),
               "r": random.standard_normal((1, 3 * HIDDEN, HIDDEN)),
               "b": random.standard_normal((1, 6 * HIDDEN))}
    constants = [onnx.numpy_helper.from_array(v.astype(np.float32), k) for k, v in weights.items()]
    constants += [onnx.numpy_helper.from_array(np.ones((1, 1), np.float32), "one"),
                  onnx.numpy_helper.from_array(np.array([0], np.int64), "zero")]
    nodes = [oh.make_node("Sub", ["one", "start"], ["goes_on"]),
             oh.make_node("Mul", ["h", "goes_on"], ["kept"])]
    inputs = [oh.make_tensor_value_info("x", FLOAT, ["n", "t", INPUTS]),
              oh.make_tensor_value_info("h", FLOAT, ["n", HIDDEN]),
              oh.make_tensor_value_info("start", FLOAT, ["n", 1])]
    if with_ready:
        inputs.append(oh.make_tensor_value_info("ready", onnx.TensorProto.BOOL, ["n", 1]))
        nodes += [oh.make_node("Cast", ["ready"], ["is_ready"], to=FLOAT),
                  oh.make_node("Mul", ["kept", "is_ready"], ["first"])]
    else:
        nodes.append(oh.make_node("Identity", ["kept"], ["first"]))
    nodes += [oh.make_node("Unsqueeze", ["first", "zero"], ["initial"]),
              oh.make_node("Transpose", ["x"], ["steps"], perm=[1, 0, 2]),
              oh.make_node("GRU", ["steps", "w", "r", "b", "", "initial"], ["all", "last"],
                           hidden_size=HIDDEN),
              oh.make_node("Squeeze", ["all", "direction"], ["by_step"]),
              oh.make_node("Transpose", ["by_step"], ["y"], perm=[1, 0, 2]),
              oh.make_node("Squeeze", ["last", "zero"], ["h_next"])]
    constants.append(onnx.numpy_helper.from_array(np.array([1], np.int64), "direction"))
    graph = oh.make_graph(nodes, "g", inputs,
                          [oh.make_tensor_value_info("y", FLOAT, ["n", "t", HIDDEN]),
                           oh.make_tensor_value_info("h_next", FLOAT, ["n", HIDDEN])], constants)
    model = oh.make_model(graph, opset_imports=[oh.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, path)
    return path


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


def stream(server, model, sequence, x):
    """The outputs of a sequence that comes in chunks, one behind another."""
    chunks = np.split(x, CHUNKS, axis=1)
    return np.concatenate([
        server.infer(model, {"x": chunk}, ["y"],
                     parameters={"sequence_id": sequence, "sequence_start": i == 0,
                                 "sequence_end": i == len(chunks) - 1})["y"]
        for i, chunk in enumerate(chunks)], axis=1)


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
