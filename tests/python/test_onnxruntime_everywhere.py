# SPDX-License-Identifier: Apache-2.0
"""The tests of the execution provider once more: on the simulated GPU, on the oldest release of
onnxruntime that it serves, and a few on releases between. './dev setup' puts these into .deps;
ONNXRUNTIME_OLDEST and ONNXRUNTIME_RELEASES name other folders, as `pip install --target` makes them."""
import os
import pathlib
import re
import subprocess
import sys

import pytest

from onnxruntime_plugin import REPOSITORY, SIMULATED, library

TESTS = [f"test_onnxruntime_{part}.py"
         for part in ("run", "context", "weightless", "options", "memory", "trust", "module")]
# Registers, runs, compiles and loads; cut models; run options; the profile.
FEW = ["test_onnxruntime_run.py::test_results_are_right_for_any_size",
       "test_onnxruntime_run.py::test_record_of_the_assignment_names_every_node",
       "test_onnxruntime_context.py::test_external_engine_is_named_after_the_model_and_found_beside_it",
       "test_onnxruntime_context.py::test_weights_of_what_is_left_to_others_stay_in_the_model",
       "test_onnxruntime_options.py::test_graph_ids_choose_graphs_and_minus_one_none",
       "test_onnxruntime_options.py::test_profile_of_onnxruntime_has_the_layers_of_our_runs"]
DEPS = REPOSITORY / ".deps"
RELEASES = re.search(r'^onnxruntime_releases="([^"]*)"', (REPOSITORY / "dev").read_text(), re.M)[1].split()
OLDEST = pathlib.Path(os.environ.get("ONNXRUNTIME_OLDEST") or DEPS / f"onnxruntime-{RELEASES[0]}")
BETWEEN = ([pathlib.Path(p) for p in os.environ.get("ONNXRUNTIME_RELEASES", "").split(":") if p]
           or [DEPS / f"onnxruntime-{r}" for r in RELEASES[1:]])

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


@pytest.mark.skipif(not OLDEST.is_dir(), reason=f"no {OLDEST}: ./dev setup installs it; that release "
                                                "was NOT tested")
@pytest.mark.parametrize("simulated", ["0", "1"])
def test_on_the_oldest_release(simulated):
    tests = TESTS[:-1] if simulated == "1" else TESTS
    repeat(tests, INGOT_SIMULATED_GPU=simulated, PYTHONPATH=str(OLDEST))


@pytest.mark.parametrize("folder", BETWEEN, ids=lambda p: p.name)
def test_on_releases_between(folder):
    if not folder.is_dir():
        pytest.skip(f"no {folder}: ./dev setup installs it; that release was NOT tested")
    repeat(FEW, PYTHONPATH=str(folder))
