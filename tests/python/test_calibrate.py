# SPDX-License-Identifier: Apache-2.0
"""ingot calibrate: thresholds against the published formulas, caches and models of int8 it writes,
accuracy, and its error messages."""
import re
import subprocess

import numpy as np
import onnx
import onnxruntime
import PIL.Image
import pytest
from onnx import helper, numpy_helper

import calibration_formulas as formulas
import ingot_command as ingot
import models
from calibrated import fixture_digits, integer_products, read_cache  # noqa: F401
from small_models import model_file, value

DIGITS = ingot.DIGITS
HISTOGRAMS = 200
SIZE = 4000


def fails(*arguments):
    done = subprocess.run([str(ingot.binary()), *map(str, arguments)], text=True, timeout=120,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 1, done.stdout
    return done.stdout


def activations(i):
    """Values in the manner of activations: of several distributions and magnitudes."""
    rng = np.random.default_rng(i)
    kind = i % 10
    x = {0: lambda: rng.standard_normal(SIZE), 1: lambda: rng.laplace(size=SIZE),
         2: lambda: np.maximum(rng.standard_normal(SIZE), 0), 3: lambda: rng.exponential(size=SIZE),
         4: lambda: rng.standard_t(2, SIZE), 5: lambda: rng.uniform(-1, 1, SIZE),
         6: lambda: rng.standard_normal(SIZE) * (rng.random(SIZE) < 0.02),
         7: lambda: np.concatenate([rng.standard_normal(SIZE - 3), [40, -60, 55]]),
         8: lambda: rng.gamma(0.3, size=SIZE), 9: lambda: rng.lognormal(0, 1.5, SIZE)}[kind]()
    return (x * 10.0 ** rng.integers(-6, 7)).astype(np.float32)


@pytest.fixture(name="histograms", scope="module")
def fixture_histograms(tmp_path_factory):
    """A model with a tensor for each histogram, its samples, and the histograms."""
    folder = tmp_path_factory.mktemp("histograms")
    rows = np.stack([activations(i) for i in range(HISTOGRAMS)])
    parts = [f"t{i}" for i in range(HISTOGRAMS)]
    model_file(folder / "m.onnx", [helper.make_node("Split", ["x", "sizes"], parts, axis=1)],
         [value("x", ["n", HISTOGRAMS, SIZE // 4])],
         [value(p, ["n", 1, SIZE // 4]) for p in parts],
         [numpy_helper.from_array(np.ones(HISTOGRAMS, np.int64), "sizes")])
    (folder / "data").mkdir()
    for k in range(4):  # the batches reach different magnitudes
        np.save(folder / "data" / f"{k}.npy", rows[None, :, k::4])
    return folder, [formulas.histogram(r) for r in rows]


@pytest.mark.parametrize("algorithm", ["entropy2", "entropy", "percentile", "mse"])
def test_thresholds_equal_the_published_formulas(histograms, algorithm):
    folder, expected = histograms
    cache = folder / f"{algorithm}.cache"
    ingot.call("calibrate", folder / "m.onnx", "--data", folder / "data", "--algorithm", algorithm,
               "-o", cache)
    _, scales = read_cache(cache)
    formula = getattr(formulas, algorithm)
    for i, (counts, width) in enumerate(expected):
        largest = np.float64(np.abs(activations(i)).max())
        threshold = formula(counts, width)
        wanted = np.float32(min(threshold, largest) / 127) if threshold > 0 \
            else np.float32(largest / 127)
        assert scales[f"t{i}"] == wanted, f"histogram {i}: {scales[f't{i}'] * 127} {threshold}"


def test_minmax_and_legacy(histograms):
    folder, expected = histograms
    for algorithm, extra in (("minmax", ()),
                             ("legacy", ("--quantile=0.98", "--regressionCutoff=0.3"))):
        cache = folder / f"{algorithm}.cache"
        ingot.call("calibrate", folder / "m.onnx", "--data", folder / "data", "--algorithm",
                   algorithm, *extra, "-o", cache)
        header, scales = read_cache(cache)
        assert header == {"minmax": "MinMaxCalibration", "legacy": "LegacyCalibration"}[algorithm]
        for i, (counts, width) in enumerate(expected):
            largest = np.float64(np.abs(activations(i)).max())
            threshold = largest if algorithm == "minmax" else \
                max(formulas.percentile(counts, width, 98), 0.3 * (len(counts) * width))
            assert scales[f"t{i}"] == np.float32(min(threshold, largest) / 127)


def test_the_order_of_batches_does_not_matter(histograms, tmp_path):
    folder, _ = histograms
    (tmp_path / "data").mkdir()
    for k in range(4):
        (tmp_path / "data" / f"{3 - k}.npy").write_bytes((folder / "data" / f"{k}.npy").read_bytes())
    for name, data in (("a", folder / "data"), ("b", tmp_path / "data")):
        ingot.call("calibrate", folder / "m.onnx", "--data", data, "-o", tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


# --- models

@pytest.mark.parametrize("algorithm", ["entropy2", "entropy", "minmax", "percentile", "mse"])
def test_digits_keep_their_accuracy(digits, tmp_path, algorithm):
    images = np.load(DIGITS / "held_out_images.npy")
    labels = np.load(DIGITS / "held_out_labels.npy")
    cache = tmp_path / "digits.cache"
    ingot.call("calibrate", DIGITS / "digits.onnx", "--data", digits, "--algorithm", algorithm,
               "-o", cache)
    ingot.build(DIGITS / "digits.onnx", tmp_path / "f.engine")
    ingot.build(DIGITS / "digits.onnx", tmp_path / "q.engine",
                ["--int8", f"--calib={cache}", "--optShapes=image:4x1x8x8",
                 "--minShapes=image:1x1x8x8", "--maxShapes=image:400x1x8x8"])
    scores = {k: ingot.run(tmp_path / f"{k}.engine", {"image": images}, tmp_path / k)["scores"]
              for k in "fq"}
    right = {k: np.mean(s.argmax(1) == labels) for k, s in scores.items()}
    assert right["q"] >= right["f"] - 0.01
    assert 0 < np.abs(scores["q"] - scores["f"]).max() <= 0.1 * np.ptp(scores["f"])
    # Max pooling, twice, reads int8 too.
    assert integer_products(tmp_path / "q.engine") == (3, 0, 0)


def onnxruntime_run(model, feeds):
    """Results without fusions, from the nodes alone."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(model), options,
                                           providers=["CPUExecutionProvider"])
    return session.run(None, feeds)[0]


def test_written_model_runs_the_same_in_onnxruntime(digits, tmp_path):
    model = tmp_path / "q.onnx"
    text = ingot.call("calibrate", DIGITS / "digits.onnx", "--data", digits, "-o", model)
    assert "3 products of int8" in text
    onnx.checker.check_model(str(model), full_check=True)
    written = onnx.load(str(model))
    scales = {t.name: numpy_helper.to_array(t) for t in written.graph.initializer}
    # The last product reads int8 and a step of its weight away is what rounding may differ by.
    last = [n for n in written.graph.node if n.op_type == "Gemm"][0]
    producer = {o: n for n in written.graph.node for o in n.output}
    weight = producer[last.input[1]]
    x = producer[last.input[0]]
    x = producer[x.input[0]] if x.op_type == "Flatten" else x
    quantum = float(scales[x.input[1]]) * np.abs(
        scales[weight.input[0]] * scales[weight.input[1]].reshape(-1, 1)).max()
    images = np.load(DIGITS / "held_out_images.npy")
    ours = ingot.run(model, {"image": images}, tmp_path / "run")["scores"]
    assert np.abs(ours - onnxruntime_run(model, {"image": images})).max() <= quantum * 1.01


def test_cache_and_model_say_the_same(digits, tmp_path):
    cache, model = tmp_path / "c", tmp_path / "q.onnx"
    for target in (cache, model):
        ingot.call("calibrate", DIGITS / "digits.onnx", "--data", digits, "-o", target)
    ingot.build(model, tmp_path / "a.engine")
    ingot.build(DIGITS / "digits.onnx", tmp_path / "b.engine", ["--int8", f"--calib={cache}"])
    images = np.load(DIGITS / "held_out_images.npy")[:20]
    runs = [ingot.run(tmp_path / f"{k}.engine", {"image": images}, tmp_path / k)["scores"]
            for k in "ab"]
    assert np.array_equal(*runs)


def test_compare_lists_the_layers_of_a_quantised_model(digits, tmp_path):
    model = tmp_path / "q.onnx"
    ingot.call("calibrate", DIGITS / "digits.onnx", "--data", digits, "-o", model)
    np.save(tmp_path / "x.npy", np.load(DIGITS / "held_out_images.npy")[:8])
    text = ingot.call("compare", model, "--layers", "--input", f"image={tmp_path / 'x.npy'}",
                      "--rtol=0.01")
    references = text.split("against ")[1:]
    assert [r.split()[0] for r in references] == ["ONNX", "float64"]
    for r in references:
        if "not run" not in r.splitlines()[0]:
            layers = re.findall(r"ok +layer (\S+) \(node '[^']*', \S+\): max error", r)
            # Bytes where the CPU convolves them, else their floats.
            rounded = {re.sub("_(Quantize|Dequantize)Linear$", "", layer) for layer in layers}
            assert {"relu1", "relu2"} <= rounded, text
    assert text.endswith("agrees\n")


@pytest.mark.parametrize("name,least", [("resnet50", 0.99), ("mobilenet_v3_large", 0.99)])
def test_shared_models_compare_by_layer(name, least, tmp_path):
    if models.shared_models() is None:
        pytest.skip("no shared/models: set INGOT_SHARED to the shared folder")
    path = models.model_file(name)
    (tmp_path / "data").mkdir()
    rng = np.random.default_rng(0)
    pictures = [models.make_pictures(rng, (1, 3, 224, 224)) for _ in range(5)]
    for i, picture in enumerate(pictures[:4]):
        np.save(tmp_path / "data" / f"{i}.npy", picture)
    np.save(tmp_path / "x.npy", pictures[4])
    cache = tmp_path / "cache"
    ingot.call("calibrate", path, "--data", tmp_path / "data", "--algorithm", "minmax", "-o", cache)
    engine = tmp_path / "q.engine"
    ingot.build(path, engine, ["--int8", f"--calib={cache}", "--optShapes=input:1x3x224x224"])
    integer, floating, left = integer_products(engine)
    assert integer >= 54 and floating == 0
    assert left <= 2 * integer  # what pooling and residuals read, no weights
    done = subprocess.run(
        [str(ingot.binary()), "compare", str(path), "--int8", f"--calib={cache}", "--layers",
         "--input", f"input={tmp_path / 'x.npy'}", "--rtol=0.25"],
        text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300)
    layers = re.findall(r"(?:ok|FAIL) +layer (.*): max error ([0-9.e+-]+) \(([0-9.e+-]+) of",
                        done.stdout)
    assert len(layers) >= 40, done.stdout + done.stderr
    assert done.returncode == 0, done.stdout
    float_run = ingot.run(path, {"input": pictures[4]}, tmp_path / "f")["output"].ravel()
    int8_run = ingot.run(engine, {"input": pictures[4]}, tmp_path / "q")["output"].ravel()
    cosine = float_run @ int8_run / np.linalg.norm(float_run) / np.linalg.norm(int8_run)
    assert cosine >= least


# --- samples

def conv_model(path, dims):
    rng = np.random.default_rng(1)
    weight = numpy_helper.from_array(rng.standard_normal((4, 3, 3, 3)).astype(np.float32), "w")
    return model_file(path, [helper.make_node("Conv", ["x", "w"], ["y"])], [value("x", dims)],
                [value("y", [dims[0], 4, "h", "w"])], [weight])


def test_pictures_are_read_as_run_reads_them(tmp_path):
    (tmp_path / "data").mkdir()
    rng = np.random.default_rng(3)
    pixels = [rng.integers(0, 256, (16, 20, 3), np.uint8) for _ in range(3)]
    for i, p in enumerate(pixels):
        PIL.Image.fromarray(p).save(tmp_path / "data" / f"{i}.png")
    model = conv_model(tmp_path / "m.onnx", ["n", 3, 16, 20])
    ingot.call("calibrate", model, "--data", tmp_path / "data", "--mean=100,110,120", "--std=50",
               "--algorithm=minmax", "-o", tmp_path / "c")
    expected = np.abs((np.stack(pixels).astype(np.float64) - [100, 110, 120]) / 50).max() / 127
    assert read_cache(tmp_path / "c")[1]["x"] == pytest.approx(expected, rel=1e-6)


def test_fixed_batches_are_filled_up(tmp_path):
    (tmp_path / "data").mkdir()
    for i in range(3):
        np.save(tmp_path / "data" / f"{i}.npy", np.full((3, 8, 8), i + 1, np.float32))
    model = conv_model(tmp_path / "m.onnx", [2, 3, 8, 8])
    text = ingot.call("calibrate", model, "--data", tmp_path / "data", "--algorithm=minmax",
                      "-o", tmp_path / "c")
    assert "2 batches" in text
    assert read_cache(tmp_path / "c")[1]["x"] == np.float32(3 / 127)
    text = ingot.call("calibrate", model, "--data", tmp_path / "data", "--algorithm=minmax",
                      "--batches=1", "-o", tmp_path / "c")
    assert "1 batches" in text
    assert read_cache(tmp_path / "c")[1]["x"] == np.float32(2 / 127)


def two_inputs(path):
    return model_file(path, [helper.make_node("Add", ["a", "b"], ["y"])],
                [value("a", ["n", 4]), value("b", ["n", 4])], [value("y", ["n", 4])])


def test_several_inputs_have_folders(tmp_path):
    for name, scale in (("a", 1), ("b", 10)):
        (tmp_path / "data" / name).mkdir(parents=True)
        for i in range(2):
            np.save(tmp_path / "data" / name / f"{i}.npy", np.full((3, 4), scale * (i + 1), np.float32))
    ingot.call("calibrate", two_inputs(tmp_path / "m.onnx"), "--data", tmp_path / "data",
               "--algorithm=minmax", "-o", tmp_path / "c")
    assert read_cache(tmp_path / "c")[1] == {
        name: np.float32(x / 127) for name, x in (("a", 2), ("b", 20), ("y", 22))}


def test_errors_say_what_to_do(tmp_path, digits):
    model = DIGITS / "digits.onnx"
    empty = tmp_path / "empty"
    empty.mkdir()
    (tmp_path / "narrow").mkdir()
    np.save(tmp_path / "narrow" / "0.npy", np.zeros((1, 7, 8), np.float32))
    (tmp_path / "doubles").mkdir()
    np.save(tmp_path / "doubles" / "0.npy", np.zeros((1, 8, 8)))
    (tmp_path / "pictures").mkdir()
    PIL.Image.new("RGB", (8, 8)).save(tmp_path / "pictures" / "0.png")
    dynamic = conv_model(tmp_path / "dynamic.onnx", ["n", 3, "h", "w"])
    both = two_inputs(tmp_path / "two.onnx")
    for name in "ab":
        (tmp_path / "pairs" / name).mkdir(parents=True)
        np.save(tmp_path / "pairs" / name / "0.npy", np.ones((1, 4), np.float32))
    quantised = tmp_path / "q.onnx"
    ingot.call("calibrate", model, "--data", digits, "-o", quantised)
    out = ["-o", tmp_path / "c"]
    cases = [
        ([model, "--data", digits], "say where to write the result with -o"),
        ([model, *out], "say where the samples are with --data DIR"),
        ([model, "--data", tmp_path / "nowhere", *out], "expected a folder of samples"),
        ([model, "--data", empty, *out], "no .npy, .png or .jpg file for input 'image'"),
        ([model, "--data", tmp_path / "narrow", *out],
         r"0.npy has shape \[1,1,7,8\], input 'image' is f32\[.*,1,8,8\]"),
        ([model, "--data", tmp_path / "doubles", *out], "0.npy holds f64, input 'image' is f32"),
        ([model, "--data", digits, "--algorithm=kl", *out],
         "there is no calibration algorithm 'kl': expected entropy2"),
        ([model, "--data", digits, "--shapes=img:1x1x8x8", *out], "there is no input 'img'"),
        ([dynamic, "--data", tmp_path / "pictures", *out], "give --shapes x:1x3x224x224"),
        ([both, "--data", digits, *out], "a: the model has inputs a, b: expected a folder"),
        ([both, "--data", tmp_path / "pairs", "-o", tmp_path / "q2.onnx"],
         "nothing would become int8: there is no convolution or matrix product"),
        ([quantised, "--data", digits, *out], "quantises or dequantises: the model has its scales"),
    ]
    for arguments, expected in cases:
        text = fails("calibrate", *arguments)
        assert re.search(expected, text), f"{arguments}\n{text}"
    text = fails("build", model, "--int8", "-o", tmp_path / "x.engine")
    assert "INT8 needs the ranges of tensors" in text
    text = ingot.call("build", model, "--int8", "--int8WithoutCalibration", "-o", tmp_path / "x.engine")
    assert "guessed from random inputs" in text
    (tmp_path / "bad.cache").write_text("nonsense")
    text = fails("build", model, "--int8", f"--calib={tmp_path / 'bad.cache'}", "-o", tmp_path / "x")
    assert "bad.cache, line 1: expected TRT-<version>-<algorithm>" in text
