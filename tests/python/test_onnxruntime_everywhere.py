# SPDX-License-Identifier: Apache-2.0
"""The tests of the execution provider once more: on the simulated GPU, and on the oldest release of
onnxruntime that it serves, which ONNXRUNTIME_OLDEST names, a folder as `pip install --target` makes
it; .deps/onnxruntime-1.24.1 without it."""
import os
import pathlib
import subprocess
import sys

import pytest

from onnxruntime_plugin import REPOSITORY, SIMULATED, library

TESTS = [f"test_onnxruntime_{part}.py"
         for part in ("run", "context", "weightless", "options", "memory", "trust", "module")]
OLDEST = pathlib.Path(os.environ.get("ONNXRUNTIME_OLDEST")
                      or REPOSITORY / ".deps" / "onnxruntime-1.24.1")

if SIMULATED:
    pytest.skip("these are the repeated tests: they are NOT repeated again", allow_module_level=True)


def repeat(tests, **variables):
    library()
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests],
                          cwd=pathlib.Path(__file__).parent, env={**os.environ, **variables}, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout[-6000:]


def test_on_the_simulated_gpu():
    repeat(TESTS[:-1], INGOT_SIMULATED_GPU="1")


@pytest.mark.skipif(not OLDEST.is_dir(), reason=f"no {OLDEST}: pip install --no-deps --target {OLDEST} "
                                                "onnxruntime==1.24.1; that release was NOT tested")
@pytest.mark.parametrize("simulated", ["0", "1"])
def test_on_the_oldest_release(simulated):
    tests = TESTS[:-1] if simulated == "1" else TESTS
    repeat(tests, INGOT_SIMULATED_GPU=simulated, PYTHONPATH=str(OLDEST))
