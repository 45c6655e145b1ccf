# SPDX-License-Identifier: Apache-2.0
"""A kernel that accesses memory which is not its own loses the GPU to its process: every later call gives
the same typed error, the process ends, and the device works for the next one. On a machine with a wheel:
INGOT_PYTHON_PATH=SITE python3 -m pytest tests/python/test_lost_gpu.py"""
import concurrent.futures
import glob
import json
import os
import re
import subprocess
import sys

import pytest

import lost_gpu
from shim import package

if not glob.glob("/dev/nvidia[0-9]*"):
    pytest.skip("there is no GPU here: illegal accesses of kernels were NOT tested", allow_module_level=True)
package.find()

PROCESSES = 50


@pytest.fixture(name="engine", scope="module")
def fixture_engine(tmp_path_factory):
    path = tmp_path_factory.mktemp("lost") / "faulty.engine"
    call(path, "build")
    return path


def call(path, *arguments):
    """The output of lost_gpu.py, which has to end by itself."""
    command = [sys.executable, lost_gpu.__file__, arguments[0], path, *map(str, arguments[1:])]
    done = subprocess.run(command, text=True, timeout=120, capture_output=True, check=False,
                          env=os.environ | {"PYTHONPATH": package.python_path(),
                                            "INGOT_RUNTIME_CACHE": str(path.parent / "cache")})
    assert done.returncode == 0, f"exit code {done.returncode}: {done.stderr[-2000:]}"
    return done.stdout


def look(fault, text):
    """Checks what one process saw; the CUDA error that it names."""
    seen = json.loads(text.splitlines()[-1])
    assert seen["result"] == [2, 4, 6, 8]
    sound, first, *later = seen["steps"]
    assert sound["ok"] and sound["device_error"] is None and not sound["errors"], sound
    number = re.search(r"CUDA_ERROR_\w+, (\d+)", first["device_error"])
    assert number, first
    assert int(number[1]) in ((716,) if fault == len(lost_gpu.FAULTS) else (700, 717)), first
    code = first["errors"][0][0]
    for step in seen["steps"][1:]:
        assert not step["ok"], step
        assert step["device_error"] == first["device_error"], step
        assert step["errors"] and all(each[0] == code for each in step["errors"]), step
        assert any(number[0] in text and "unusable in this process" in text for text in step["logged"]), step
    for step in later:
        assert any("since an earlier failure" in text for text in step["logged"]), step
    return number[0], code


def test_each_later_call_gives_the_same_error_and_the_process_ends(engine):
    faults = [i % len(lost_gpu.FAULTS) + 1 for i in range(PROCESSES)]
    with concurrent.futures.ThreadPoolExecutor(min(8, os.cpu_count())) as pool:
        texts = list(pool.map(lambda fault: call(engine, "run", fault), faults))
    found = [look(fault, text) for fault, text in zip(faults, texts)]
    print(f"{len(found)} illegal accesses: {sorted(set(found))}")
    assert len(found) == PROCESSES
