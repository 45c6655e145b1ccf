# SPDX-License-Identifier: Apache-2.0
"""Requests of different sizes in one batch of a real Triton Inference Server."""
import concurrent.futures
import re

import numpy as np
import onnx
import onnx.helper as oh

import triton_server

FLOAT, INT32, INT64 = onnx.TensorProto.FLOAT, onnx.TensorProto.INT32, onnx.TensorProto.INT64
SUMS = """max_batch_size: 8
input [{ name: "x" data_type: TYPE_FP32 dims: [-1] allow_ragged_batch: true }]
output [{ name: "sum" data_type: TYPE_FP32 dims: [1] }, { name: "squares" data_type: TYPE_FP32 dims: [-1] }]
batch_input [{ kind: BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO target_name: "ends" data_type: TYPE_INT32
               source_input: "x" }]
batch_output [{ target_name: "squares" kind: BATCH_SCATTER_WITH_INPUT_SHAPE source_input: "x" }]
dynamic_batching { max_queue_delay_microseconds: 200000 preferred_batch_size: [6] }"""


def sums(path):
    """sum[n, 1] of the n pieces of x[m] that end at ends[n + 1], and squares[m] of x."""
    constants = [onnx.numpy_helper.from_array(np.array(v, kind), name) for name, v, kind in (
        ("axis", 0, np.int64), ("one", [1], np.int64), ("zero", [0], np.int64), ("last", [-1], np.int64),
        ("most", [2 ** 31 - 1], np.int64), ("none", [0], np.float32))]
    nodes = [oh.make_node("CumSum", ["x", "axis"], ["totals"]),
             oh.make_node("Concat", ["none", "totals"], ["with_zero"], axis=0),
             oh.make_node("Gather", ["with_zero", "ends"], ["at_ends"]),
             oh.make_node("Slice", ["at_ends", "one", "most"], ["after"]),
             oh.make_node("Slice", ["at_ends", "zero", "last"], ["before"]),
             oh.make_node("Sub", ["after", "before"], ["pieces"]),
             oh.make_node("Unsqueeze", ["pieces", "one"], ["sum"]),
             oh.make_node("Mul", ["x", "x"], ["squares"])]
    graph = oh.make_graph(nodes, "g", [oh.make_tensor_value_info("x", FLOAT, ["m"]),
                                       oh.make_tensor_value_info("ends", INT32, ["ends"])],
                          [oh.make_tensor_value_info("sum", FLOAT, ["n", 1]),
                           oh.make_tensor_value_info("squares", FLOAT, ["m"])], constants)
    model = oh.make_model(graph, opset_imports=[oh.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, path)
    return path


def test_requests_of_different_sizes_run_together(tmp_path):
    triton_server.needed()
    random = np.random.default_rng(5)
    requests = [random.integers(-9, 9, (1, size)).astype(np.float32) for size in (1, 7, 3, 300, 2, 11)]
    with triton_server.Server(tmp_path) as server:
        server.add("sums", sums(tmp_path / "sums.onnx"), SUMS, file_name="model.onnx")
        server.load("sums")
        with concurrent.futures.ThreadPoolExecutor(len(requests)) as pool:
            answers = list(pool.map(lambda x: server.infer("sums", {"x": x}), requests))
        for x, answer in zip(requests, answers):
            np.testing.assert_array_equal(answer["sum"], x.sum(axis=1, keepdims=True))
            np.testing.assert_array_equal(answer["squares"], x * x)
        runs = re.search(r'ingot_runs\{model="sums",version="1"\} (\d+)', server.metrics())
        assert int(runs.group(1)) < len(requests)
