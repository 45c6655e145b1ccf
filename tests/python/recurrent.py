# SPDX-License-Identifier: Apache-2.0
"""A recurrent model whose state a server keeps, for tests of sequences."""
import numpy as np
import onnx
import onnx.helper as oh

FLOAT = onnx.TensorProto.FLOAT
INPUTS, HIDDEN, STEPS, CHUNKS = 6, 5, 4, 5
CONTROLS = """
  max_sequence_idle_microseconds: 60000000  # by default a sequence is forgotten after a second
  control_input [
    { name: "start" control [{ kind: CONTROL_SEQUENCE_START fp32_false_true: [0, 1] }] }%s
  ]
  state [{ input_name: "h" output_name: "h_next" data_type: TYPE_FP32 dims: [5] %s}]"""
READY = '\n    ,{ name: "ready" control [{ kind: CONTROL_SEQUENCE_READY bool_false_true: [false, true] }] }'
ZEROS = 'initial_state: [{ name: "zeros" data_type: TYPE_FP32 dims: [5] zero_data: true }] '
STRATEGIES = {
    "direct": "max_batch_size: 3\nsequence_batching {\n  direct { minimum_slot_utilization: 0.5 "
               "max_queue_delay_microseconds: 2000 }" + CONTROLS % (READY, "") + "\n}",
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
    constants += [onnx.numpy_helper.from_array(np.zeros((1, 1), np.float32), "nothing"),
                  onnx.numpy_helper.from_array(np.array([0], np.int64), "zero")]
    # The server leaves the state of a row that starts, or is no request, as memory was: not to be multiplied.
    nodes = [oh.make_node("Cast", ["start"], ["starts"], to=onnx.TensorProto.BOOL),
             oh.make_node("Where", ["starts", "nothing", "h"], ["kept"])]
    inputs = [oh.make_tensor_value_info("x", FLOAT, ["n", "t", INPUTS]),
              oh.make_tensor_value_info("h", FLOAT, ["n", HIDDEN]),
              oh.make_tensor_value_info("start", FLOAT, ["n", 1])]
    if with_ready:
        inputs.append(oh.make_tensor_value_info("ready", onnx.TensorProto.BOOL, ["n", 1]))
        nodes.append(oh.make_node("Where", ["ready", "kept", "nothing"], ["first"]))
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


def stream(server, model, sequence, x):
    """The outputs of a sequence that comes in chunks, one behind another."""
    chunks = np.split(x, CHUNKS, axis=1)
    return np.concatenate([
        server.infer(model, {"x": chunk}, ["y"],
                     parameters={"sequence_id": sequence, "sequence_start": i == 0,
                                 "sequence_end": i == len(chunks) - 1})["y"]
        for i, chunk in enumerate(chunks)], axis=1)
