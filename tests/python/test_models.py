# SPDX-License-Identifier: Apache-2.0
"""Every architecture of shared/models against ONNX Runtime's CPU provider in f32, through an engine
that one process writes and another one loads, at several batch sizes and lengths of one profile."""
import gc
import pathlib
import tempfile

import numpy as np
import pytest

import ingot_command as ingot
from models import MODELS, cache_folder, model_file, ort_session, shared_models

onnxruntime = pytest.importorskip("onnxruntime")

# Relative to the output's range. Sums of 1e4 products in another order differ by about 1e-5 of it
# in f32.
TOLERANCE = 1e-3
# Outputs of two different inputs of a batch differ by at least this, else agreement says little.
SENSITIVITY = 10 * TOLERANCE

pytestmark = pytest.mark.skipif(
    shared_models() is None,
    reason="no shared/models beside the clone (set INGOT_SHARED): the models were NOT compared")


@pytest.fixture(name="folder")
def fixture_folder():
    """A fresh folder beside the weights: engines are large, and /tmp may be memory."""
    cache_folder().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache_folder()) as folder:
        yield pathlib.Path(folder)


def reference_outputs(model, path):
    """ONNX Runtime's outputs for each check; the session is gone when ingot starts."""
    session = ort_session(path, prepack=False)
    names = [output.name for output in session.get_outputs()]
    results = [dict(zip(names, session.run(names, model.make_inputs(dims))))
               for dims in model.checks]
    del session
    gc.collect()
    return results


def compare(name, got, expected):
    assert got.shape == expected.shape, f"{name}: shape {got.shape}, expected {expected.shape}"
    assert got.dtype == expected.dtype, f"{name}: type {got.dtype}, expected {expected.dtype}"
    assert np.isfinite(expected).all(), f"{name}: ONNX Runtime's values are not finite"
    error = np.abs(got.astype(np.float64) - expected).max() / np.ptp(expected)
    assert error <= TOLERANCE, f"{name}: error is {error:.2e} of the range, at most {TOLERANCE:g}"


def assert_sensitive(model, expected, dims):
    """The check itself: the first output of a batch depends on the input."""
    values = next(iter(expected.values()))
    if dims.get("batch", 1) < 2 or values.shape[0] != dims["batch"]:
        return
    difference = np.abs(values[0] - values[1]).max() / np.ptp(values)
    assert difference >= SENSITIVITY, (
        f"{model.name}: outputs of two inputs differ by {difference:.1e} of the range only")


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())
def test_agrees_with_onnxruntime(model, folder):
    path = model_file(model.name)
    references = reference_outputs(model, path)
    engine = folder / f"{model.name}.engine"
    ingot.build(path, engine, model.profile_options())
    for index, (dims, expected) in enumerate(zip(model.checks, references)):
        assert_sensitive(model, expected, dims)
        got = ingot.run(engine, model.make_inputs(dims), folder / str(index))
        assert sorted(got) == sorted(expected), f"outputs {sorted(got)} at {dims}"
        for name, values in expected.items():
            compare(f"{model.name} {dims} {name}", got[name], values)
        if model.top1:
            assert (got[model.top1].argmax(-1) == expected[model.top1].argmax(-1)).all(), (
                f"{model.name} {dims}: the top-1 differs")


@pytest.mark.parametrize("name, dims, told", [
    ("resnet50", {"batch": 5}, ("input", "5", "4")),
    ("bert_base", {"batch": 1, "seq": 600}, ("input_ids", "600", "512")),
])
def test_refuses_shapes_outside_the_profile(name, dims, told, folder):
    """The message names the input, the extent it got and the one allowed."""
    model = MODELS[name]
    engine = folder / f"{name}.engine"
    ingot.build(model_file(name), engine, model.profile_options())
    with pytest.raises(RuntimeError) as failure:
        ingot.run(engine, model.make_inputs(dims), folder)
    message = str(failure.value).splitlines()[-1]
    for word in told:
        assert word in message, f"'{word}' is not in: {message}"
