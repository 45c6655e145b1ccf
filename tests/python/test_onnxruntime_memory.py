# SPDX-License-Identifier: Apache-2.0
"""Memory of a GPU: IO binding, mixed graphs, copies. Runs on the simulated GPU, whose memory
faults on any access from outside; test_onnxruntime_everywhere.py starts it so."""
import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest
from onnx import TensorProto, helper

from onnxruntime_plugin import (RELEASE, SIMULATED, device, model_of, on_cpu, onnxruntime, session)

FLOAT = TensorProto.FLOAT
VENDOR = 0x10DE

pytestmark = pytest.mark.skipif(not SIMULATED, reason="INGOT_SIMULATED_GPU is not 1: memory of a GPU "
                                                      "was NOT tested here")


def on_device(array):
    device()
    return onnxruntime.OrtValue.ortvalue_from_numpy(array, "gpu", 0, VENDOR)


def model():
    return model_of([helper.make_node("Mul", ["x", "x"], ["s"]), helper.make_node("Add", ["s", "b"], ["y"])],
                    {"x": (FLOAT, ["n", 3]), "b": (FLOAT, [3])}, {"y": (FLOAT, ["n", 3])})


def test_values_go_to_the_device_and_back():
    for array in (np.arange(6, dtype=np.float32).reshape(2, 3), np.zeros((0, 4), np.int64),
                  np.array(5, np.float64), np.array([True, False])):
        value = on_device(array)
        assert value.device_name().lower() in ("cuda", "gpu")
        got = value.numpy()
        assert got.dtype == array.dtype and got.shape == array.shape
        np.testing.assert_array_equal(got, array)


def test_bound_inputs_and_outputs_stay_where_they_are():
    made = session(model())
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    inputs = {"x": on_device(x), "b": on_device(np.ones(3, np.float32))}
    output = on_device(np.full((4, 3), -1, np.float32))
    binding = made.io_binding()
    for name, value in inputs.items():
        binding.bind_ortvalue_input(name, value)
    binding.bind_ortvalue_output("y", output)
    for factor in (1, 2):
        inputs["x"].update_inplace(x * np.float32(factor))
        made.run_with_iobinding(binding)
        assert binding.get_outputs()[0].data_ptr() == output.data_ptr()
        np.testing.assert_array_equal(output.numpy(), (x * factor) ** 2 + 1)


def test_addresses_as_torch_gives_them():
    made = session(model())
    x, b = np.ones((2, 3), np.float32), np.ones(3, np.float32)
    values = {"x": on_device(x), "b": on_device(b), "y": on_device(np.zeros((2, 3), np.float32))}
    binding = made.io_binding()
    for name in ("x", "b"):
        binding.bind_input(name, "cuda", 0, np.float32, values[name].shape(), values[name].data_ptr())
    binding.bind_output("y", "cuda", 0, np.float32, [2, 3], values["y"].data_ptr())
    made.run_with_iobinding(binding)
    np.testing.assert_array_equal(values["y"].numpy(), np.full((2, 3), 2, np.float32))


def test_output_bound_over_its_input_is_updated_in_place():
    made = session(model_of([helper.make_node("Add", ["past", "x"], ["s"]),
                             helper.make_node("Relu", ["s"], ["present"])],
                            {"past": (FLOAT, [4]), "x": (FLOAT, [4])}, {"present": (FLOAT, [4])}))
    cache = on_device(np.zeros(4, np.float32))
    x = on_device(np.array([1, 2, 3, 4], np.float32))
    binding = made.io_binding()
    binding.bind_ortvalue_input("past", cache)
    binding.bind_ortvalue_input("x", x)
    binding.bind_ortvalue_output("present", cache)
    for step in (1, 2, 3):
        made.run_with_iobinding(binding)
        np.testing.assert_array_equal(cache.numpy(), np.array([1, 2, 3, 4], np.float32) * step)


def mixed():
    """Softmax is left to the CPU; values cross both ways, a scalar and one without elements too."""
    return model_of(
        [helper.make_node("MatMul", ["x", "w"], ["a"]), helper.make_node("Relu", ["a"], ["b"]),
         helper.make_node("ReduceMax", ["b"], ["m"], keepdims=0),
         helper.make_node("Softmax", ["b"], ["s"]),
         helper.make_node("Unsqueeze", ["m", "zero"], ["m1"]),
         helper.make_node("Softmax", ["m1"], ["ms"]),
         helper.make_node("Mul", ["s", "m"], ["c"]), helper.make_node("Add", ["c", "ms"], ["y"])],
        {"x": (FLOAT, ["n", 8])}, {"y": (FLOAT, ["n", 8]), "m": (FLOAT, [])},
        {"w": np.eye(8, dtype=np.float32) * 2, "zero": np.array([0])})


@pytest.mark.parametrize("rows", [1, 5])
def test_mixed_graphs_get_correct_copies(rows):
    made = session(mixed(), {"nv_op_types_to_exclude": "Softmax"}, whole=False)
    x = np.random.default_rng(1).standard_normal((rows, 8)).astype(np.float32)
    for _ in range(3):
        for got, want in zip(made.run(None, {"x": x}), on_cpu(mixed(), {"x": x})):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_mixed_graph_of_tensors_without_elements():
    empty = model_of([helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Neg", ["a"], ["b"]),
                      helper.make_node("Softmax", ["b"], ["c"]), helper.make_node("Abs", ["c"], ["d"]),
                      helper.make_node("Neg", ["d"], ["y"])],
                     {"x": (FLOAT, ["n", 8])}, {"y": (FLOAT, ["n", 8])})
    made = session(empty, {"nv_op_types_to_exclude": "Softmax"}, whole=False)
    for rows in (0, 3, 0):
        x = np.ones((rows, 8), np.float32)
        np.testing.assert_allclose(made.run(None, {"x": x})[0], on_cpu(empty, {"x": x})[0])


def test_sessions_that_are_made_and_closed_leave_no_device_memory():
    held = on_device(np.zeros(64 << 20, np.uint8))  # of 2 GiB
    for _ in range(60):
        made = session(model())
        value = on_device(np.zeros((32 << 20) // 4, np.float32))
        made.run(None, {"x": np.ones((1000, 3), np.float32), "b": np.ones(3, np.float32)})
        del made, value
    assert held.shape() == [64 << 20]


# --- scratch memory ---

def on_small_gpu(mib, sessions, runs, *option):
    """The output of a worker on a GPU of so much memory."""
    done = subprocess.run(
        [sys.executable, "onnxruntime_small_gpu.py", str(sessions), str(runs), *option],
        cwd=pathlib.Path(__file__).parent, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env={**os.environ, "INGOT_SIMULATED_GPU_MEMORY": str(mib << 20)})
    return done.stdout


def test_sessions_share_one_scratch_memory():
    assert on_small_gpu(36, 4, 2).endswith("done\n")  # 64 MiB if each had its own


def test_too_little_device_memory_is_an_error_and_says_for_what():
    text = on_small_gpu(12, 1, 1)
    assert "running the subgraph of " in text and "scratch memory for a run" in text, text
    needed = re.search(r"the simulated GPU has no (\d+) bytes left", text)
    assert needed and 16 << 20 <= int(needed[1]) < 17 << 20, text  # 16 MiB and what the chosen tactics need


def test_scratch_memory_of_earlier_runs_goes_to_tensors_that_need_it():
    assert on_small_gpu(24, 1, 2).endswith("done\n")  # 16 MiB are kept, and 12 are asked for


@pytest.mark.skipif(RELEASE < (1, 25), reason="onnxruntime before 1.25 shrinks no memory of providers: that "
                                              "was NOT tested")
def test_runs_that_give_their_memory_back_are_right():
    assert on_small_gpu(24, 2, 3, "memory.enable_memory_arena_shrinkage=gpu:0").endswith("done\n")


# --- streams ---

@pytest.mark.skipif(not hasattr(onnxruntime.OrtEpDevice, "create_sync_stream"),
                    reason="this onnxruntime makes no streams from Python: user_compute_stream was NOT "
                           "tested")
def test_runs_go_to_the_applications_stream():
    stream = device().create_sync_stream()
    for text in (str(stream.get_handle()), hex(stream.get_handle())):
        made = session(model(), {"user_compute_stream": text, "has_user_compute_stream": "1"})
        x = np.full((2, 3), 3, np.float32)
        for _ in range(2):
            np.testing.assert_array_equal(made.run(None, {"x": x, "b": x[0]})[0], x * x + 3)


def test_stream_of_another_context_is_refused():
    with pytest.raises(Exception, match="user_compute_stream belongs to another context than the "
                                        "simulated GPU's"):
        session(model(), {"user_compute_stream": "0x1000"})
