# SPDX-License-Identifier: Apache-2.0
"""Devices of the provider: none by default, the CPU and virtual GPUs on request."""
import pathlib

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from onnxruntime_plugin import REPOSITORY, library, model_of, onnxruntime
from onnxruntime_process import clean_environment, run_process

STATE = onnxruntime.capi.onnxruntime_pybind11_state

PRELUDE = """
import numpy as np, onnx, onnxruntime, sys
name = "NvTensorRTRTXExecutionProvider"
def register(path, registered=name):
    onnxruntime.register_execution_provider_library(registered, path)
    return {d.device.type.name: d for d in onnxruntime.get_ep_devices() if d.ep_name == name}
def options(device, **values):
    made = onnxruntime.SessionOptions()
    made.log_severity_level = 3
    made.add_provider_for_devices([device], values)
    return made
def session(path, *arguments, **values):
    return onnxruntime.InferenceSession(path, options(*arguments, **values), enable_fallback=False)
x = np.array([[-1.0, 2.0]], np.float32)
"""


def run(folder, text, **variables):
    environment = clean_environment()
    nvrtc = REPOSITORY / ".deps" / "nvrtc" / "lib" / "libnvrtc.so.13"
    if nvrtc.exists():
        environment["INGOT_NVRTC"] = str(nvrtc)
    return run_process(folder, PRELUDE + f"path = {str(library())!r}\n", text, environment | variables)


@pytest.fixture
def folder(tmp_path):
    for name, rows in (("open", "n"), ("closed", 1)):
        onnx.save(model_of([helper.make_node("MatMul", ["x", "w"], ["r"]),
                            helper.make_node("Relu", ["r"], ["y"])],
                           {"x": (TensorProto.FLOAT, [rows, 2])}, {"y": (TensorProto.FLOAT, [rows, 2])},
                           {"w": np.array([[1, 0], [0, 2]], np.float32)}), tmp_path / f"{name}.onnx")
    return tmp_path


def test_the_cpu_is_offered_only_when_it_is_asked_for(folder):
    assert "CPU" not in run(folder, "print(sorted(register(path)))")
    run(folder, """
        devices = register(path)
        assert devices["CPU"].ep_options == {"device_id": "0"}
        assert session("open.onnx", devices["CPU"]).run(None, {"x": x})[0].tolist() == [[0.0, 4.0]]
    """, INGOT_ALLOW_CPU="1")


def test_virtual_gpu_is_compiled_for_without_a_driver(folder):
    if not (REPOSITORY / ".deps" / "nvrtc").exists():
        pytest.skip("no NVRTC in .deps: compiling for a GPU that is not here was NOT tested")
    run(folder, """
        devices = register(path)
        onnxruntime.ModelCompiler(options(devices["GPU"], nv_target_sm="sm90,sm120"),
                                  "closed.onnx").compile_to_file("c.onnx")
        node = onnx.load("c.onnx").graph.node[0]
        found = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        assert found["hardware_architecture"] == b"sm90,sm120", found
        said = {p.key: p.value for p in onnx.load("c.onnx").metadata_props}
        assert said["ep_compatibility_info." + name] == "ingot engines=1 kernels=sm90,sm120", said
        # ONNX Runtime 1.32 and later say beside it that engines are files of their own.
        assert said.get("external_dependencies", "ep_context_binary") == "ep_context_binary", said
        assert len(said) <= 2, said
        assert session("c.onnx", devices["CPU"]).run(None, {"x": x})[0].tolist() == [[0.0, 4.0]]
        onnxruntime.ModelCompiler(options(devices["GPU"], nv_target_sm="sm90"),
                                  "open.onnx").compile_to_file("o.onnx")
        assert session("o.onnx", devices["CPU"]).run(None, {"x": x})[0].tolist() == [[0.0, 4.0]]
        for model in ("closed.onnx", "c.onnx"):
            text = message(lambda: session(model, devices["GPU"]).run(None, {"x": x}))
            assert "the session's GPU is virtual: models can be compiled for it" in text, text
    """, INGOT_VIRTUAL_GPU="1", INGOT_ALLOW_CPU="1")


def test_registration_that_ends_in_virtual_offers_one(folder):
    run(folder, """
        devices = register(path, "some.virtual")
        assert devices["GPU"].device.metadata["is_virtual"] == "1"
    """)


def test_a_session_runs_on_one_device(folder):
    run(folder, """
        devices = register(path)
        made = onnxruntime.SessionOptions()
        made.add_provider_for_devices([devices["GPU"], devices["CPU"]], {})
        text = message(lambda: onnxruntime.InferenceSession("open.onnx", made, enable_fallback=False))
        assert "the session names 2 devices (virtual GPU, the CPU), expected 1" in text, text
    """, INGOT_VIRTUAL_GPU="1", INGOT_ALLOW_CPU="1")


def test_switch_that_is_no_bool_fails_the_registration(folder):
    run(folder, """
        text = message(lambda: register(path))
        assert 'Failed to parse provider option "INGOT_ALLOW_CPU": got "maybe"' in text, text
    """, INGOT_ALLOW_CPU="maybe")


@pytest.mark.skipif(not hasattr(STATE, "get_hardware_device_ep_incompatibility_details"),
                    reason="this onnxruntime does not ask from Python why a device is not offered: that "
                           "was NOT tested")
def test_why_a_device_is_not_offered(folder):
    run(folder, """
        register(path)
        from onnxruntime.capi import onnxruntime_pybind11_state as state
        cpu = [d.device for d in onnxruntime.get_ep_devices() if d.device.type.name == "CPU"][0]
        details = state.get_hardware_device_ep_incompatibility_details(name, cpu)
        assert details["reasons_bitmask"] == 2, details
        assert "the device is no NVIDIA GPU; the CPU is offered when it is asked for" in details["notes"]
    """)


@pytest.mark.skipif(not hasattr(STATE, "get_hardware_device_ep_incompatibility_details"),
                    reason="this onnxruntime does not ask from Python why a device is not offered: that "
                           "was NOT tested")
@pytest.mark.parametrize("driver, reason, text", [
    ("old_cuda", 1, "NVIDIA's driver is too old: it has no cu"),
    ("failing_cuda", 1, "NVIDIA's driver does not start: unknown error (999)"),
    ("none", 4, "NVIDIA's driver is not installed: "),
])
def test_driver_that_cannot_be_used_is_named_and_registering_goes_on(folder, driver, reason, text):
    place = REPOSITORY / "build" / "tests" / driver
    if driver != "none" and not place.is_dir():
        pytest.skip(f"no {place}: an unusable driver was NOT tested ('ninja test_api' builds it)")
    if driver == "none" and pathlib.Path("/dev/nvidiactl").exists():
        pytest.skip("this machine has a driver: its lack was NOT tested")
    run(folder, f"""
        devices = register(path)
        from onnxruntime.capi import onnxruntime_pybind11_state as state
        details = state.get_hardware_device_ep_incompatibility_details(name, devices["GPU"].device)
        assert details["reasons_bitmask"] == {reason}, details
        assert {text!r} in details["notes"], details
        assert "install NVIDIA's driver for CUDA 12 or newer" in details["notes"], details
        assert session("open.onnx", devices["CPU"]).run(None, {{"x": x}})[0].tolist() == [[0.0, 4.0]]
    """, INGOT_VIRTUAL_GPU="1", INGOT_ALLOW_CPU="1", LD_LIBRARY_PATH=str(place))
