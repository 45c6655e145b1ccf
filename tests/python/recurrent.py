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


SPEECH = {"h0": 256, "c0": 256, "h1": 256, "c1": 256, "g": 128}  # states of the speech model, with their sizes
SPEECH_CONFIG = """max_batch_size: 4
sequence_batching {
  oldest { max_candidate_sequences: 4 max_queue_delay_microseconds: 2000 }
  max_sequence_idle_microseconds: 60000000
  state [%s]
}""" % ",".join(
    f'{{ input_name: "{name}" output_name: "{name}_next" data_type: TYPE_FP32 dims: [{size}] '
    f'initial_state: [{{ name: "zeros" data_type: TYPE_FP32 dims: [{size}] zero_data: true }}] }}'
    for name, size in SPEECH.items())


def speech_by_chunks(source, path):
    """The speech model (two LSTMs of both directions, a GRU) for sound that comes in chunks: what the
    forward directions and the GRU know is an input and an output; backward directions begin anew in each
    chunk."""
    model = onnx.load(source)
    graph, nodes = model.graph, []

    def add(op, inputs, output, **attributes):
        nodes.append(oh.make_node(op, inputs, [output], **attributes))
        return output

    for name, values in (("first", [0]), ("second", [1]), ("two", [2])):
        graph.initializer.append(onnx.numpy_helper.from_array(np.array(values, np.int64), name))
    graph.initializer.append(onnx.numpy_helper.from_array(np.array(0, np.int64), "forward"))

    def carry(state, zeros, both_directions):
        """The initial value of a layer's state, from the input of that name."""
        one = add("Unsqueeze", [state, "first"], f"{state}_in")
        if not both_directions:
            return one
        backward = add("Slice", [zeros, "second", "two", "first"], f"{state}_backward")
        return add("Concat", [one, backward], f"{state}_initial", axis=0)

    lstms = 0
    for node in graph.node:
        if node.op_type == "LSTM":
            states = [f"h{lstms}", f"c{lstms}"]
            lstms += 1
        else:
            states = ["g"] if node.op_type == "GRU" else []
        for i, state in enumerate(states):
            node.input[5 + i] = carry(state, node.input[5 + i], node.op_type == "LSTM")
        nodes.append(node)
        if states:
            del node.output[1:]
            node.output.extend(f"{state}_last" for state in states)
        for state in states:
            add("Gather", [f"{state}_last", "forward"], f"{state}_next", axis=0)
    del graph.node[:]
    graph.node.extend(nodes)
    for state, size in SPEECH.items():
        graph.input.append(oh.make_tensor_value_info(state, FLOAT, ["batch", size]))
        graph.output.append(oh.make_tensor_value_info(f"{state}_next", FLOAT, ["batch", size]))
    onnx.checker.check_model(model)
    onnx.save(model, path)
    return path
