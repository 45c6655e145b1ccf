# SPDX-License-Identifier: Apache-2.0
"""Disk full, read-only and a killed process at each call on files, while a model is compiled and while
the runtime cache is written: the old file stays, or the whole new one is there."""
import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from onnxruntime_plugin import REPOSITORY, library

HERE = pathlib.Path(__file__).parent


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    library()
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler for the library that breaks calls")
    folder = tmp_path_factory.mktemp("faults")
    shim = folder / "fault_shim.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", shim, REPOSITORY / "tests" / "faults" / "fault_shim.c"],
                   check=True)
    done = subprocess.run(
        [sys.executable, "onnxruntime_faults.py", str(folder)], cwd=HERE, text=True, timeout=400,
        env={**os.environ, "LD_PRELOAD": str(shim), "INGOT_SIMULATED_GPU": "0", "OPENBLAS_NUM_THREADS": "1"},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_nothing_is_bad_after_any_fault(rows):
    assert [row["what"] for row in rows] == [
        f"{what}: {way}" for what in ("compiling", "caching")
        for way in ("a call fails", "the process is killed")]
    for row in rows:
        print(row["what"], row["faults"], "faults,", row["refused"], "ended early")
        assert row["bad"] == [], row["what"]
        assert row["faults"] > 5


def test_faults_in_compiling_are_errors_and_those_in_the_cache_are_none(rows):
    compiling, _, caching, _ = rows
    assert compiling["refused"] > 5
    assert caching["refused"] == 0


def test_a_killed_process_is_killed(rows):
    assert all(row["refused"] > 5 for row in rows[1::2])
