# SPDX-License-Identifier: Apache-2.0
"""Eight complaints of those who serve TensorRT's engines with Triton Inference Server, each by name, and why there is no cause
for them here: the real server with two emulated GPUs and the CPU, and engine files that nothing fits to a device."""
import re
import sys
import types

import numpy as np
import onnx
import onnx.helper as oh
import pytest

import ingot_command
import serving_models
import triton_server
from triton_server import Refused

sys.path[:0] = [str(ingot_command.REPOSITORY / "tests" / "gpu"), str(ingot_command.REPOSITORY / "tests" / "data")]
import make_engines  # noqa: E402
import triton_faults  # noqa: E402
import triton_gpu  # noqa: E402

GPU, CPU = "instance_group [{ kind: KIND_GPU gpus: [0] }]\n", "instance_group [{ kind: KIND_CPU }]\n"
NAMES = ("ingot", "tensorrt", "onnxruntime")
WIDTH = 1024


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Servers with emulated GPUs, and engines, as the script of the GPU tests has them."""
    triton_server.needed()
    triton_server.emulated_gpus()
    options = types.SimpleNamespace(rehearse=True, loads=0, capability="80", faulty_engine=None)
    return triton_gpu.Run(options, tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def server(run):
    one = run.server("server")
    triton_server.backends(one.backends, NAMES[1:])
    with one as running:
        yield running


def metric(server, name, model):
    return float(re.search(rf'{name}\{{model="{model}",version="1"\}} (\S+)', server.metrics()).group(1))


def test_1_an_engine_for_each_gpu_model(run, server):
    """One file, byte for byte, on a GPU and on the CPU, under each of the backends' names."""
    expected = ingot_command.run(run.digits(8), {"image": run.images[:8]}, run.folder / "expected")["scores"]
    for backend in NAMES:
        for kind, group in (("gpu", GPU), ("cpu", CPU)):
            name = f"{backend}_{kind}"
            server.add(name, run.digits(8), f'backend: "{backend}"\ndefault_model_filename: "digits"\n{group}',
                       file_name="digits")
            server.load(name)
            got = server.infer(name, {"image": run.images[:8]})["scores"]
            np.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-2, err_msg=name)
            assert (server.repository / name / "1" / "digits").read_bytes() == run.digits(8).read_bytes()


@pytest.mark.parametrize("kind", ["plain", "half", "profiles"])
def test_2_the_library_must_match_the_engine_to_the_patch(server, kind):
    """Engines of every released format are served; a newer one is refused with what was found, needed, and to do."""
    engine = make_engines.FOLDER / f"format1_{kind}.engine"
    server.add(f"old_{kind}", engine, CPU, file_name="model.engine")
    server.load(f"old_{kind}")
    x = np.arange(16, dtype=np.float32).reshape(2, 8) / 8 - 1
    w, b = make_engines.weights()
    got = server.infer(f"old_{kind}", {"x": x})["y"]
    np.testing.assert_allclose(got, np.maximum(x @ w + b, 0), rtol=1e-3, atol=1e-3)
    data = engine.read_bytes()
    newer = server.folder / "newer.engine"
    newer.write_bytes(data[:8] + bytes([99]) + data[9:])
    server.add(f"new_{kind}", newer, CPU, file_name="model.engine")
    with pytest.raises(Refused, match=r"engine format 99 \(written by Ingot .*\), this is Ingot .*, which reads formats 1 to 1; "
                                      "use a newer Ingot or rebuild the engine"):
        server.load(f"new_{kind}")


def test_3_after_a_sticky_error_every_request_fails_and_health_stays_green(run):
    """A kernel that writes outside ends the server with 86; the next one serves."""
    good, values = triton_faults.lose_devices(run, 2)
    assert good, values


def test_4_starts_are_slow(run):
    """With kernels kept from an earlier start, a server needs no compiler at all."""
    cache = run.folder / "warm"
    with run.server("first", cache=cache) as first:
        first.add("digits", run.digits(8), GPU)
        first.load("digits")
        expected = first.infer("digits", {"image": run.images[:8]})["scores"]
    away = [run.library(ingot_command.REPOSITORY / "tests" / "onnxruntime" / "programs" / "no_nvrtc.c")]
    with run.server("second", cache=cache, preloaded=away) as second:
        second.add("digits", run.digits(8), GPU)
        second.load("digits")
        got = second.infer("digits", {"image": run.images[:8]})["scores"]
    np.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-2)


def test_5_the_first_request_builds_the_engine(run, server):
    """All batch sizes are prepared before the model is ready: requests prepare nothing."""
    server.add("ready", run.digits(8), GPU)
    server.load("ready")
    before = metric(server, "ingot_preparing_seconds", "ready")
    for rows in range(1, 9):
        server.infer("ready", {"image": run.images[:rows]})
    assert metric(server, "ingot_runs", "ready") == 8
    assert metric(server, "ingot_unprepared_shapes", "ready") == 0
    assert metric(server, "ingot_preparing_seconds", "ready") == before > 0


def test_6_changing_batch_sizes_switch_profiles(run):
    """A request of any size, after any other, is one launch of the graph that its size has, and of nothing else."""
    good, values = triton_gpu.count_recordings(run, None)
    assert good, values


def test_7_memory_grows_with_loads_that_fail(run, server):
    """To the byte on the device, after loads that fail early and late."""
    cut = run.folder / "cut.engine"
    cut.write_bytes(run.digits(8).read_bytes()[:-40])
    large = run.folder / "large.engine"
    ingot_command.build(serving_models.widened(run.folder / "large.onnx", triton_faults.LARGE_ROW), large)
    config = f"{GPU}max_batch_size: {triton_faults.MOST_ROWS}\n" + triton_gpu.buckets(triton_faults.MOST_ROWS)
    server.add("cut", cut, GPU, file_name="model.engine")
    server.add("large", large, config, file_name="model.engine")
    for _ in range(5):
        for name in ("cut", "large"):
            assert triton_gpu.refusal(server, name)
            assert triton_gpu.device_bytes(server, name) == 0


def test_8_every_instance_loads_the_weights_again(run, server):
    """Four instances have the weights once and a context each."""
    weights = onnx.numpy_helper.from_array(np.ones((WIDTH, WIDTH), np.float32), "w")
    model = serving_models.save(run.folder / "wide.onnx", [oh.make_node("MatMul", ["x", "w"], ["y"])],
                                [oh.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n", WIDTH])],
                                [oh.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["n", WIDTH])], [weights])
    used = {}
    for count in (1, 2, 4):
        server.add(f"wide{count}", model, f"max_batch_size: 1\ninstance_group [{{ kind: KIND_GPU gpus: [0] count: {count} }}]\n",
                   file_name="model.onnx")
        server.load(f"wide{count}")
        used[count] = triton_gpu.device_bytes(server, f"wide{count}")
    context = used[2] - used[1]
    assert used[1] > 4 * WIDTH * WIDTH > 4 * context
    assert used[4] == used[1] + 3 * context
