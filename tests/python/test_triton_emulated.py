# SPDX-License-Identifier: Apache-2.0
"""The script of the server's tests on GPUs, tests/gpu/triton_gpu.py, rehearsed: the real Triton Inference Server with two
emulated GPUs, on which the kernels of the engines run."""
import json
import subprocess
import sys

import pytest

import ingot_command
import triton_server

LOADS = 80
PARTS = ("digits", "states", "cuda_shared_memory", "device_bytes", "recordings", "two_gpus", "times", "kernel_caches",
         "short_memory", "lost_devices", "loads")


@pytest.fixture(scope="module")
def report():
    triton_server.needed()
    triton_server.emulated_gpus()
    script = ingot_command.REPOSITORY / "tests" / "gpu" / "triton_gpu.py"
    done = subprocess.run([sys.executable, script, "--rehearse", f"--loads={LOADS}"], text=True, timeout=600,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    found = json.loads(done.stdout.splitlines()[-1])
    assert set(found) == {"good", *PARTS} and found["good"] == (done.returncode == 0), done.stdout
    return found


@pytest.mark.parametrize("part", PARTS)
def test_a_part_holds(report, part):
    assert report[part]["good"], json.dumps(report[part], indent=1)


def test_only_times_are_left_to_a_real_gpu(report):
    assert [part for part in PARTS if "not_tested" in json.dumps(report[part])] == ["times"]


def test_a_lost_device_is_answered_and_ends_its_server(report):
    lost = report["lost_devices"]
    assert lost["statuses"] == [[200, 500]] * 3 and lost["exit_codes"] == [86, 86, 87]


def test_models_that_cannot_be_loaded_say_why(report):
    assert report["loads"]["texts"] == [
        "N load failed for model 'cutN': version N is at UNAVAILABLE state: Invalid argument: model 'cutN' version N: file "
        "'model.engine': IRuntime::deserializeCudaEngine: the file has N bytes, its header says N; it is truncated, copy it "
        "again;\n",
        "N load failed for model 'largeN': version N is at UNAVAILABLE state: Unavailable: instance 'largeN_N_N': "
        "IExecutionContext::enqueueVN: the allocator of output 'y' gave no memory for N bytes;\n"]
