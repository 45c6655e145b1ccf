# SPDX-License-Identifier: Apache-2.0
"""A real Triton Inference Server with Ingot's backend when something goes wrong: broken versions,
wrong requests, a device that is lost, a run that does not end."""
import re
import shutil
import subprocess
import threading
import time

import numpy as np
import pytest

import ingot_command
import triton_server
from serving_models import looping, picking, rows, scaled
from triton_server import Refused

END_SECONDS = 30  # in which a process that is to end has ended


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    triton_server.needed()
    folder = tmp_path_factory.mktemp("models")
    return {"double": scaled(folder / "double.onnx", 2), "triple": scaled(folder / "triple.onnx", 3),
            "loop": looping(folder / "loop.onnx"), "pick": picking(folder / "pick.onnx")}


@pytest.fixture(scope="module")
def server(tmp_path_factory, models):
    folder = tmp_path_factory.mktemp("triton")
    names = ("ingot", "tensorrt", "onnxruntime")
    with triton_server.Server(folder, names) as running:
        yield running


def test_repositories_of_other_backends_are_served_unchanged(server, models, tmp_path):
    engine = tmp_path / "double.engine"
    ingot_command.build(models["double"], engine)
    server.add("of_tensorrt", engine, """platform: "tensorrt_plan"
max_batch_size: 8
input [{ name: "x" data_type: TYPE_FP32 dims: [4] }]
output [{ name: "y" data_type: TYPE_FP32 dims: [4] }]
instance_group [{ count: 2 kind: KIND_CPU }]
dynamic_batching { max_queue_delay_microseconds: 100 }
optimization { cuda { graphs: true } }
parameters { key: "execution_context_allocation_strategy" value: { string_value: "STATIC" } }
""", file_name="model.plan")
    server.add("of_onnxruntime", models["double"], """platform: "onnxruntime_onnx"
max_batch_size: 8
optimization { graph { level: 1 } execution_accelerators { gpu_execution_accelerator: [
  { name: "tensorrt" parameters { key: "precision_mode" value: "FP32" }
    parameters { key: "trt_engine_cache_enable" value: "1" } }] } }
parameters { key: "intra_op_thread_count" value: { string_value: "1" } }
""", file_name="model.onnx")
    server.add("bare", models["double"], None, file_name="model.onnx")  # no configuration at all
    for name in ("of_tensorrt", "of_onnxruntime", "bare"):
        server.load(name)
        for count in (1, 3):
            np.testing.assert_array_equal(server.infer(name, {"x": rows(count)})["y"],
                                          2 * rows(count))
    assert server.config("bare")["backend"] == "onnxruntime"
    assert ("parameter of the accelerator 'tensorrt' 'trt_engine_cache_enable' has no effect: a "
            "model is built in seconds") in server.said()


def test_a_request_with_a_wrong_value_fails_alone(server, models):
    server.add("pick", models["pick"], "", file_name="model.onnx")
    server.load("pick")
    np.testing.assert_array_equal(
        server.infer("pick", {"i": np.array([[2], [0]], np.int64)})["y"].ravel(), [30, 10])
    with pytest.raises(Refused) as refused:
        server.infer("pick", {"i": np.array([[7]], np.int64)})
    assert refused.value.status in (400, 500)
    np.testing.assert_array_equal(
        server.infer("pick", {"i": np.array([[1]], np.int64)})["y"].ravel(), [20])


def of_format(data, number):
    """An engine's bytes with another number of its format."""
    return data[:8] + bytes([number]) + data[9:]


@pytest.mark.parametrize("change, text", [
    (lambda data: b"", "model.engine"), (lambda data: b"no engine" * 50, "model.engine"),
    (lambda data: data[:-40], "model.engine"),
    (lambda data: b"ptrt" + data, "it is a plan of NVIDIA's TensorRT, which runs there alone"),
    (lambda data: of_format(data, 99), "engine format 99"), (lambda data: of_format(data, 0), "engine format 0")],
    ids=["empty", "foreign", "truncated", "of TensorRT", "newer", "older"])
def test_a_broken_version_leaves_the_old_one_serving(server, models, tmp_path, change, text):
    engine = tmp_path / "double.engine"
    ingot_command.build(models["double"], engine)
    server.add("kept", engine, file_name="model.engine")
    server.load("kept")
    broken = tmp_path / "broken.engine"
    broken.write_bytes(change(engine.read_bytes()))
    server.add("kept", broken, version=2, file_name="model.engine")
    with pytest.raises(Refused) as refused:
        server.load("kept")
    assert text in refused.value.text and str(server.repository) not in refused.value.text
    np.testing.assert_array_equal(server.infer("kept", {"x": rows(2)})["y"], 2 * rows(2))
    assert server.answers("/v2/models/kept/ready")
    shutil.rmtree(server.repository / "kept")
    server.unload("kept")


def test_a_new_version_loses_no_request(server, models):
    server.add("versions", models["double"], "", file_name="model.onnx")
    server.load("versions")
    stop = threading.Event()
    seen, failed = set(), []

    def ask(count):
        x = rows(count)
        while not stop.is_set():
            try:
                y = server.infer("versions", {"x": x})["y"]
                seen.add(round(float(y[0, 0] / x[0, 0])))
                np.testing.assert_allclose(y, x * round(float(y[0, 0] / x[0, 0])), rtol=1e-6)
            except Exception as error:  # whatever it is, a request was lost
                failed.append(error)

    threads = [threading.Thread(target=ask, args=(count,)) for count in (1, 2, 3)]
    for one in threads:
        one.start()

    def wait_for(factor):
        end = time.monotonic() + END_SECONDS
        while factor not in seen and time.monotonic() < end:
            time.sleep(0.05)

    wait_for(2)
    server.add("versions", models["triple"], "", version=2, file_name="model.onnx")
    server.load("versions")
    wait_for(3)
    stop.set()
    for one in threads:
        one.join()
    assert not failed and seen >= {2, 3}


def test_metrics_count_runs_and_padding(server, models):
    server.add("counted", models["double"], 'max_batch_size: 8 parameters { key: "buckets" '
               'value: { string_value: "4,8" } }', file_name="model.onnx")
    server.load("counted")
    server.infer("counted", {"x": rows(3)})
    said = server.metrics()
    assert 'ingot_runs{model="counted",version="1"} 1' in said
    assert 'ingot_padded_rows{model="counted",version="1"} 1' in said
    assert 'ingot_unprepared_shapes{model="counted",version="1"} 0' in said
    assert 'ingot_device_lost{model="counted",version="1"} 0' in said
    assert 'ingot_device_bytes{model="counted",version="1"} 0' in said  # it runs on the CPU
    preparing = re.search(r'ingot_preparing_seconds\{model="counted",version="1"\} ([0-9.e+-]+)', said)
    assert float(preparing.group(1)) > 0


def test_a_thousand_loads_half_of_them_failing_give_memory_back(server, models, tmp_path):
    """Models are unloaded some time after their load: an unload that overtakes the server's loader thread crashes it,
    with a backend that does nothing too."""
    engine, cut = tmp_path / "double.engine", tmp_path / "cut.engine"
    ingot_command.build(models["double"], engine)
    cut.write_bytes(engine.read_bytes()[:-40])
    names = [f"again{i}" for i in range(10)]
    for name in names:
        server.add(name, engine, file_name="model.engine")
        server.add(f"cut_{name}", cut, file_name="model.engine")

    def resident():
        status = open(f"/proc/{server.process.pid}/status", encoding="ascii").read()
        return int(status.split("VmRSS:")[1].split()[0])

    loads = failed = 0
    while loads < 1000:
        if loads == 200:
            before = resident()
        for name in names:
            server.load(name)
        for name in names:
            with pytest.raises(Refused, match="it is truncated, copy it again"):
                server.load(f"cut_{name}")
            failed += 1
        for name in names:
            server.unload(name)
        end = time.monotonic() + END_SECONDS
        while any(server.answers(f"/v2/models/{name}/ready") for name in names) and time.monotonic() < end:
            time.sleep(0.005)
        loads += 2 * len(names)
    print(f"{loads} loads, {failed} of them failing: {resident() - before} KiB more than after 200")
    assert failed == 500 and resident() < before + 2 * 1024  # KiB


def test_a_lost_device_ends_the_server_with_86(models, tmp_path):
    library = tmp_path / "lost_device.so"
    source = ingot_command.REPOSITORY / "tests" / "triton" / "programs" / "lost_device.c"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    lost = tmp_path / "lost"
    with triton_server.Server(tmp_path / "server", environment={
            "LD_PRELOAD": str(library), "INGOT_LOST": str(lost)}) as server:
        server.add("pick", models["pick"], "", file_name="model.onnx")
        server.add("double", models["double"], "", file_name="model.onnx")
        server.load("pick")
        server.load("double")
        with pytest.raises(Refused):  # an error that is none of the device's
            server.infer("pick", {"i": np.array([[7]], np.int64)})
        np.testing.assert_array_equal(server.infer("double", {"x": rows(1)})["y"], 2 * rows(1))
        lost.touch()
        with pytest.raises(Refused) as refused:
            server.infer("pick", {"i": np.array([[7]], np.int64)})
        assert refused.value.status == 500
        with pytest.raises((Refused, OSError)) as later:
            server.infer("double", {"x": rows(1)})
        if isinstance(later.value, Refused):  # else the process has ended already
            assert later.value.status == 503
            assert "the device is lost: cuStreamSynchronize: an illegal address" in later.value.text
        assert server.process.wait(timeout=END_SECONDS) == 86
        assert "this process ends with exit code 86" in server.said()
        lost.unlink()
        server.start()  # as a supervisor would
        server.load("double")
        np.testing.assert_array_equal(server.infer("double", {"x": rows(1)})["y"], 2 * rows(1))


def test_a_run_that_does_not_end_ends_the_server_with_87(models, tmp_path):
    with triton_server.Server(tmp_path / "server") as server:
        server.add("loop", models["loop"], 'parameters { key: "hang_timeout_ms" value: '
                   '{ string_value: "1000" } }', file_name="model.onnx")
        server.load("loop")
        few = {"count": np.array([3], np.int64), "x": np.zeros(2, np.float32)}
        np.testing.assert_array_equal(server.infer("loop", few)["y"], [3, 3])
        endless = few | {"count": np.array([2**62], np.int64)}
        with pytest.raises(Refused, match="a run has not ended after 1000 ms") as refused:
            server.infer("loop", endless)
        assert refused.value.status == 500  # which no proxy sends to another server
        assert server.process.wait(timeout=END_SECONDS) == 87
        assert "a run has not ended after 1000 ms" in server.said()


def test_the_second_load_of_an_onnx_model_builds_nothing(models, tmp_path):
    """The engine is kept beside the compiled kernels; a damaged one is built again."""
    kept = "the engine of 'model.onnx' is the one kept in "
    with triton_server.Server(tmp_path / "server", environment={"INGOT_RUNTIME_CACHE": str(tmp_path / "cache")}) as running:
        running.add("m", models["double"], "", file_name="model.onnx")
        for loads in range(4):
            if loads == 3:
                [engine] = (tmp_path / "cache" / "built").glob("*.engine")
                engine.write_bytes(engine.read_bytes()[:-1] + b"!")
            running.load("m")
            assert running.said().count(kept) == min(loads, 2)
            x = rows(3)
            np.testing.assert_array_equal(running.infer("m", {"x": x})["y"], 2 * x)
            running.unload("m")
        assert "is damaged; the model is built again" in running.said()
