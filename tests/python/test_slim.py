# SPDX-License-Identifier: Apache-2.0
"""ingot slim: its output is valid ONNX, gives the same results in ONNX Runtime, and has no more
operators than that of onnxsim and onnxslim (slim_peers.json has their counts)."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import ingot_command as ingot
from models import MODELS, REPOSITORY, cache_folder, model_file, shared_models
from slim_peers import RESULT, best, count_operators

onnxruntime = pytest.importorskip("onnxruntime")
onnxruntime.set_default_logger_severity(4)  # the suite has models that it refuses: expected

PEERS = json.loads(RESULT.read_text())
# Relative to the largest element, where weights were folded or sums regrouped; f16 has 11 bits.
ROUNDING = {np.dtype(np.float16): 4e-3}
# 3.4 and 6 GB of weights take minutes to write, check and run: unless INGOT_LARGE_MODELS is set,
# their graphs are slimmed and counted, no more. Neither peer takes a model above 2 GB.
LARGE = set() if os.environ.get("INGOT_LARGE_MODELS") else {"sd15_unet", "llama32_1b_decode"}

needs_models = pytest.mark.skipif(
    shared_models() is None,
    reason="no shared/models beside the clone (set INGOT_SHARED): models were NOT slimmed")


def slim(model, result, *options):
    return json.loads(ingot.call("slim", model, "-o", result, "--json", *options))


def session(path):
    """ONNX Runtime without optimisations of its own, which would depend on the operators."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.add_session_config_entry("session.disable_prepacking", "1")
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def compare(name, got, expected, exact):
    assert got.shape == expected.shape and got.dtype == expected.dtype, name
    if exact or got.dtype.kind not in "f":
        assert np.array_equal(got, expected, equal_nan=got.dtype.kind == "f"), f"{name} differs"
    elif got.size:
        finite = expected[np.isfinite(expected)].astype(np.float64)
        scale = np.abs(finite).max() if finite.size else 1.0
        np.testing.assert_allclose(got.astype(np.float64), expected.astype(np.float64), rtol=0,
                                   atol=ROUNDING.get(got.dtype, 1e-5) * scale, err_msg=name)


def described(value):
    """Name, type and sizes; the denotation of a size is not kept."""
    kind = value.type.WhichOneof("value")
    if kind != "tensor_type":
        return value.name, kind
    t = value.type.tensor_type
    return value.name, t.elem_type, [d.dim_param or d.dim_value for d in t.shape.dim]


def check_interface(before, after):
    """Names and types of inputs and outputs stay; initializers are no inputs any more."""
    constants = {t.name for t in before.graph.initializer}
    assert [v.name for v in after.graph.input] == [v.name for v in before.graph.input
                                                   if v.name not in constants]
    assert [described(v) for v in after.graph.output] == [described(v) for v in before.graph.output]


def make_feeds(name, path):
    if name in MODELS:
        return [MODELS[name].make_inputs(dims) for dims in MODELS[name].checks]
    rng = np.random.default_rng(0)
    types = {"tensor(float)": np.float32, "tensor(float16)": np.float16}
    return [{v.name: rng.standard_normal([d if isinstance(d, int) else 2 for d in v.shape])
             .astype(types[v.type]) for v in session(path).get_inputs()}]


def model_path(name):
    if name in MODELS:
        return model_file(name)
    return (REPOSITORY / "examples/digits/digits.onnx" if name == "digits" else
            shared_models() / "pretrained" / f"{name}.onnx")


def model_names():
    pretrained = [] if shared_models() is None else sorted(
        p.stem for p in (shared_models() / "pretrained").glob("*.onnx"))
    return ["digits", *pretrained, *MODELS]


@pytest.fixture(name="folder")
def fixture_folder():
    """A fresh folder beside the weights: slimmed models are large, and /tmp may be memory."""
    cache_folder().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache_folder()) as folder:
        yield pathlib.Path(folder)


@needs_models
@pytest.mark.parametrize("name", sorted(LARGE))
def test_large_model(name):
    report = json.loads(ingot.call("slim", model_file(name), "--inspect", "--json"))
    before, after = (sum(report[when]["operators"].values()) for when in ("before", "after"))
    assert after < before / 2


@needs_models
@pytest.mark.parametrize("name", [name for name in model_names() if name not in LARGE])
def test_model(name, folder):
    path, slimmed = model_path(name), folder / "slim.onnx"
    report = slim(path, slimmed)
    onnx.checker.check_model(str(slimmed))
    before = onnx.load(path, load_external_data=False)
    after = onnx.load(slimmed, load_external_data=False)
    check_interface(before, after)
    count = count_operators(after.graph)
    assert count <= count_operators(before.graph)
    if name in PEERS["models"]:
        assert count <= best(PEERS["models"][name]), f"onnxsim or onnxslim: {PEERS['models'][name]}"
    feeds = make_feeds(name, path)
    original = session(path)
    expected = [original.run(None, feed) for feed in feeds]
    names = [o.name for o in original.get_outputs()]
    del original
    result = session(slimmed)
    for feed, values in zip(feeds, expected):
        for output, got, want in zip(names, result.run(None, feed), values):
            compare(output, got, want, report["exact"])


@needs_models
@pytest.mark.parametrize("name", ["ultraface_rfb_320", "speech_lstm_gru", "swin_t"])
def test_same_bytes_and_idempotent(name, folder):
    files = [folder / f"{i}.onnx" for i in range(3)]
    slim(model_path(name), files[0])
    slim(model_path(name), files[1])
    slim(files[0], files[2])
    assert files[0].read_bytes() == files[1].read_bytes() == files[2].read_bytes()


@needs_models
def test_external_data(folder):
    """--save-as-external-data: the same model, its weights in a file beside it."""
    path = model_path("speech_lstm_gru")
    slim(path, folder / "inside.onnx")
    slim(path, folder / "outside.onnx", "--save-as-external-data")
    assert (folder / "outside.onnx.data").is_file()
    assert (folder / "outside.onnx").stat().st_size < 100_000
    onnx.checker.check_model(str(folder / "outside.onnx"))
    inside, outside = onnx.load(folder / "inside.onnx"), onnx.load(folder / "outside.onnx")
    assert list(inside.graph.node) == list(outside.graph.node)
    for a, b in zip(inside.graph.initializer, outside.graph.initializer):
        assert np.array_equal(numpy_helper.to_array(a), numpy_helper.to_array(b)), a.name


@needs_models
def test_input_shapes(folder):
    """Fixed sizes remove the arithmetic on sizes, and appear in the interface."""
    path = model_path("bert_base")
    free = slim(path, folder / "free.onnx")
    fixed = slim(path, folder / "fixed.onnx", "--input-shapes",
                 "input_ids:2,19,attention_mask:2,19")
    total = [sum(r["after"]["operators"].values()) for r in (free, fixed)]
    assert total[1] < total[0] - 10
    assert "Shape" not in fixed["after"]["operators"]
    feed = MODELS["bert_base"].make_inputs({"batch": 2, "seq": 19})
    for got, want in zip(session(folder / "fixed.onnx").run(None, feed),
                         session(path).run(None, feed)):
        compare("output", got, want, False)


def test_table_and_check(folder):
    text = ingot.call("slim", REPOSITORY / "examples/digits/digits.onnx", "-o",
                      folder / "slim.onnx", "--model-check")
    assert "| operators" in text and "| size" in text and "Slimmed in" in text
    assert text.rstrip().endswith("agrees")


def test_inspect_writes_nothing(folder):
    text = ingot.call("slim", REPOSITORY / "examples/digits/digits.onnx", "--inspect")
    assert "not written" in text
    assert not any(folder.iterdir())


@pytest.mark.parametrize("options, told", [
    ([], "say where to write the result with -o"),
    (["--inspect", "--input-shapes", "picture:1x1x8x8"], "has no input 'picture'"),
    (["--inspect", "--skip-optimizations", "graph_fusio"], "did you mean graph_fusion?"),
])
def test_errors(options, told):
    with pytest.raises(RuntimeError, match=told):
        ingot.call("slim", REPOSITORY / "examples/digits/digits.onnx", *options)


# --- the ONNX backend suite ----------------------------------------------------------------------

# Contents of models that cannot be written back.
NOT_WRITTEN = {"test_ai_onnx_ml_label_encoder_tensor_mapping", "test_if_opt"}
# Transpose and MatMul would be Gemm, but slim leaves operators of opset 6 alone.
OLD_OPSET = {"test_Linear_no_bias"}


@pytest.fixture(name="suite", scope="session")
def fixture_suite():
    folder = pathlib.Path(os.environ.get("INGOT_SUITE") or REPOSITORY / "build" / "onnx_suite")
    subprocess.run([sys.executable, REPOSITORY / "tests/conformance/export_suite.py", folder],
                   check=True, stdout=subprocess.DEVNULL)
    return folder


def load_values(folder, model):
    """The recorded inputs by name; None where one is no tensor."""
    values = {}
    for index, v in enumerate(model.graph.input):
        path = folder / f"input_{index}.pb"
        if not path.is_file():
            return None
        tensor = onnx.TensorProto()
        tensor.ParseFromString(path.read_bytes())
        values[v.name] = numpy_helper.to_array(tensor)
    return values


def runs(path, feed):
    """Results in ONNX Runtime; None where it has no kernel or refuses the model."""
    try:
        return session(path).run(None, feed)
    except Exception:  # many kinds; only success or failure counts
        return None


def check_case(case, slimmed):
    report = slim(case / "model.onnx", slimmed)
    before, after = onnx.load(case / "model.onnx"), onnx.load(slimmed)
    check_interface(before, after)
    try:
        onnx.checker.check_model(before)
    except onnx.checker.ValidationError:
        pass  # a case of the suite that its own checker refuses
    else:
        onnx.checker.check_model(after)
    count = count_operators(after.graph)
    assert count <= count_operators(before.graph)
    if case.name not in OLD_OPSET:
        assert count <= PEERS["suite"].get(case.name, count)
    feed = load_values(case / "test_data_set_0", before)
    expected = None if feed is None else runs(case / "model.onnx", feed)
    if expected is None:
        return False
    got = runs(slimmed, feed)
    assert got is not None, "ONNX Runtime does not run the result"
    for output, a, b in zip(before.graph.output, got, expected):
        if isinstance(b, np.ndarray) and b.dtype != object:
            # Casts that ONNX Runtime puts around f16 operators depend on their neighbours.
            compare(output.name, a, b, report["exact"] and b.dtype != np.float16)
    return True


def test_suite(suite, folder):
    names = [line.split("\t")[0] for line in (suite / "cases.txt").read_text().splitlines()]
    failures, compared = [], 0
    for name in sorted(set(names) - NOT_WRITTEN):
        try:
            compared += check_case(suite / name, folder / "slim.onnx")
        except (AssertionError, RuntimeError, onnx.checker.ValidationError) as e:
            failures.append(f"{name}: {e}")
    assert not failures, "\n".join(failures)
    assert compared > 1000
