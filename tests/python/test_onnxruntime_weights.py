# SPDX-License-Identifier: Apache-2.0
"""Weights in files beside the model: mapped, not copied; the values are those that ONNX Runtime has."""
import re

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from onnxruntime_plugin import SIMULATED, model_of, onnxruntime, session, session_options

ROWS, COLUMNS = 2048, 1024
WEIGHT_MB = ROWS * COLUMNS * 4 / 2**20


def weights(seed):
    return np.random.default_rng(seed).standard_normal((ROWS, COLUMNS)).astype(np.float32)


def check_runs(made, w):
    x = np.random.default_rng(9).standard_normal((3, ROWS)).astype(np.float32)
    want = x.astype(np.float64) @ w.astype(np.float64)
    np.testing.assert_allclose(made.run(None, {"x": x})[0], want, rtol=0, atol=2e-3)


@pytest.fixture(name="source")
def fixture_source(tmp_path):
    made = model_of([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": (TensorProto.FLOAT, ["n", ROWS])},
                    {"y": (TensorProto.FLOAT, ["n", COLUMNS])}, {"w": weights(1)})
    path = tmp_path / "a model" / "model.onnx"
    path.parent.mkdir()
    onnx.save(made, path, save_as_external_data=True, location="sub_model.data", size_threshold=0)
    return path


@pytest.mark.parametrize("relative", [False, True], ids=["absolute", "relative"])
def test_file_may_be_removed_and_replaced_once_the_session_is_made(source, relative, monkeypatch):
    if relative:
        monkeypatch.chdir(source.parent)
    made = session(source.name if relative else source)
    data = source.parent / "sub_model.data"
    data.unlink()
    data.write_bytes(b"\xff" * (ROWS * COLUMNS * 4))
    check_runs(made, weights(1))


def test_values_that_the_application_gives_are_taken(source):
    """The same name, the same file, other bytes in the middle only."""
    w = weights(1)
    w[ROWS // 2] = 7
    options = session_options()
    options.add_external_initializers(["w"], [onnxruntime.OrtValue.ortvalue_from_numpy(w)])
    check_runs(onnxruntime.InferenceSession(str(source), options, enable_fallback=False), w)


def test_files_that_the_application_has_in_memory_are_taken(source):
    w = weights(1)
    w[ROWS // 2] = 7
    options = session_options()
    options.add_external_initializers_from_files_in_memory(["sub_model.data"], [w], [w.nbytes])
    check_runs(onnxruntime.InferenceSession(str(source), options, enable_fallback=False), w)


def test_linked_file_is_read_too(source, tmp_path):
    """ONNX Runtime has checked the link; the bytes are copied from it then."""
    data = source.parent / "sub_model.data"
    data.rename(source.parent / "real.data")
    data.symlink_to(source.parent / "real.data")
    try:
        onnxruntime.InferenceSession(str(source), providers=["CPUExecutionProvider"])
    except Exception:  # pylint: disable=broad-except
        pytest.skip("this ONNX Runtime follows no links: NOT tested")
    check_runs(session(source), weights(1))


@pytest.mark.skipif(SIMULATED, reason="weights are copied to a GPU")
def test_weights_are_mapped(source):
    made = session(source)
    check_runs(made, weights(1))
    with open("/proc/self/maps", encoding="utf-8") as maps:
        mapped = [line for line in maps if line.rstrip().endswith("sub_model.data")]
    assert mapped
    sizes = [int(end, 16) - int(begin, 16) for line in mapped
             for begin, end in [re.match(r"([0-9a-f]+)-([0-9a-f]+)", line).groups()]]
    assert max(sizes) >= WEIGHT_MB * 2**20
