# SPDX-License-Identifier: Apache-2.0
"""ingot calibrate --fp8: models whose products multiply f8e4m3, against ONNX Runtime on the same models, against the
models in f32 and beside int8; plans for GPUs with and without such products; error messages."""
import os
import pathlib
import re
import subprocess

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import ingot_command as ingot
from small_models import model_file, value

LARGEST = 448  # of f8e4m3
SAMPLES = 6


def weight(rng, name, *shape):
    """As of a trained net: results are about as large as inputs."""
    fan_in = int(np.prod(shape[1:])) if len(shape) == 4 else shape[0]
    return numpy_helper.from_array((rng.standard_normal(shape) / np.sqrt(fan_in)).astype(np.float32), name)


def cnn(path):
    """Convolutions, a residual, pooling and a Gemm; the first convolution has too few channels to gain."""
    rng = np.random.default_rng(1)
    node = helper.make_node
    nodes = [node("Conv", ["x", "w0", "b0"], ["a"], pads=[1, 1, 1, 1]), node("Relu", ["a"], ["a1"]),
             node("MaxPool", ["a1"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
             node("Conv", ["p", "w1"], ["c"], pads=[1, 1, 1, 1]), node("Relu", ["c"], ["c1"]),
             node("Conv", ["c1", "w2"], ["d"], pads=[1, 1, 1, 1]), node("Add", ["d", "p"], ["r"]),
             node("Relu", ["r"], ["r1"]), node("GlobalAveragePool", ["r1"], ["g"]), node("Flatten", ["g"], ["f"]),
             node("Gemm", ["f", "w3", "b3"], ["y"], transB=1)]
    weights = [weight(rng, "w0", 64, 3, 3, 3), numpy_helper.from_array(rng.standard_normal(64).astype(np.float32), "b0"),
               weight(rng, "w1", 64, 64, 3, 3), weight(rng, "w2", 64, 64, 3, 3),
               numpy_helper.from_array((rng.standard_normal((10, 64)) / 8).astype(np.float32), "w3"),
               numpy_helper.from_array(rng.standard_normal(10).astype(np.float32), "b3")]
    return model_file(path, nodes, [value("x", ["n", 3, 16, 16])], [value("y", ["n", 10])], weights)


WIDTH, HEADS = 64, 4


def transformer(path):
    """A pre-norm block of attention and a GELU: six products with weights, all of depth 64 or more."""
    rng = np.random.default_rng(2)
    node = helper.make_node
    ints = [numpy_helper.from_array(np.array([0, 0, HEADS, WIDTH // HEADS], np.int64), "heads"),
            numpy_helper.from_array(np.array([0, 0, WIDTH], np.int64), "rows"),
            numpy_helper.from_array(np.array(0.25, np.float32), "quarter"),
            numpy_helper.from_array(np.array(0.5, np.float32), "half"),
            numpy_helper.from_array(np.array(1, np.float32), "one"),
            numpy_helper.from_array(np.array(np.sqrt(2), np.float32), "root")]
    nodes = [node("LayerNormalization", ["x", "s", "t"], ["h"])]
    for i in "qkv":
        nodes += [node("MatMul", ["h", f"w{i}"], [f"{i}0"]), node("Add", [f"{i}0", f"b{i}"], [f"{i}1"]),
                  node("Reshape", [f"{i}1", "heads"], [f"{i}2"]),
                  node("Transpose", [f"{i}2"], [f"{i}3"], perm=[0, 2, 3, 1] if i == "k" else [0, 2, 1, 3])]
    nodes += [node("MatMul", ["q3", "k3"], ["a0"]), node("Mul", ["a0", "quarter"], ["a1"]),
              node("Softmax", ["a1"], ["a2"]), node("MatMul", ["a2", "v3"], ["a3"]),
              node("Transpose", ["a3"], ["a4"], perm=[0, 2, 1, 3]), node("Reshape", ["a4", "rows"], ["a5"]),
              node("MatMul", ["a5", "wo"], ["o"]), node("Add", ["o", "x"], ["r"]),
              node("LayerNormalization", ["r", "s", "t"], ["n"]), node("MatMul", ["n", "w1"], ["m"]),
              node("Div", ["m", "root"], ["e0"]), node("Erf", ["e0"], ["e1"]), node("Add", ["e1", "one"], ["e2"]),
              node("Mul", ["m", "e2"], ["e3"]), node("Mul", ["e3", "half"], ["u"]),
              node("MatMul", ["u", "w2"], ["z"]), node("Add", ["z", "r"], ["y"])]
    weights = [weight(rng, f"w{i}", WIDTH, WIDTH) for i in "qkvo"]
    weights += [numpy_helper.from_array(rng.standard_normal(WIDTH).astype(np.float32) / 4, f"b{i}") for i in "qkv"]
    weights += [weight(rng, "w1", WIDTH, 4 * WIDTH), weight(rng, "w2", 4 * WIDTH, WIDTH),
                numpy_helper.from_array(rng.uniform(0.5, 1.5, WIDTH).astype(np.float32), "s"),
                numpy_helper.from_array(rng.standard_normal(WIDTH).astype(np.float32) / 4, "t")]
    return model_file(path, nodes, [value("x", ["n", "m", WIDTH])], [value("y", ["n", "m", WIDTH])], weights + ints)


SHAPES = {cnn: (3, 16, 16), transformer: (24, WIDTH)}
PRODUCTS = {cnn: 3, transformer: 6}
FLOATS = {cnn: 1, transformer: 0}  # products with weights that stay in floats


@pytest.fixture(name="made", scope="module", params=[cnn, transformer])
def fixture_made(request, tmp_path_factory):
    """The maker of a model, and a folder with it (f), with fresh samples, and as int8 (i) and f8e4m3 (e)."""
    folder = tmp_path_factory.mktemp(request.param.__name__)
    request.param(folder / "f.onnx")
    (folder / "data").mkdir()
    rng = np.random.default_rng()
    for i in range(SAMPLES):
        np.save(folder / "data" / f"{i}.npy", rng.standard_normal((1, *SHAPES[request.param]), np.float32))
    samples = [folder / "f.onnx", "--data", folder / "data", "--algorithm=minmax", "-o"]
    ingot.call("calibrate", *samples, folder / "i.onnx")
    text = ingot.call("calibrate", folder / "f.onnx", "--data", folder / "data", "--fp8", "-o", folder / "e.onnx")
    return request.param, folder, text


def runs(folder, x, tmp_path, names="fie"):
    return {k: ingot.run(folder / f"{k}.onnx", {"x": x}, tmp_path / k)["y"].astype(np.float64) for k in names}


def error(a, b):
    """Root mean square of the difference, as a part of that of b."""
    return np.sqrt(np.mean((a - b) ** 2) / np.mean(b ** 2))


def session(path, **kwargs):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(path if isinstance(path, bytes) else str(path), options,
                                        providers=["CPUExecutionProvider"], **kwargs)


def test_models_are_valid_and_run_the_same_in_onnxruntime(made, tmp_path):
    maker, folder, text = made
    onnx.checker.check_model(str(folder / "e.onnx"), full_check=True)
    model = onnx.load(str(folder / "e.onnx"))
    assert max(o.version for o in model.opset_import if not o.domain) >= 19
    kinds = [t.data_type for t in model.graph.initializer]
    assert f"{PRODUCTS[maker]} products of f8e4m3" in text
    assert TensorProto.FLOAT8E4M3FN in kinds and TensorProto.INT8 not in kinds
    x = np.random.default_rng().standard_normal((3, *SHAPES[maker]), np.float32)
    ours = ingot.run(folder / "e.onnx", {"x": x}, tmp_path / "e")["y"]
    theirs = session(folder / "e.onnx").run(None, {"x": x})[0]
    # Sums in another order may take the next step of f8e4m3 behind them, here and there.
    assert error(ours, theirs) < 0.01


def test_scales_are_the_largest_magnitude_over_448(made):
    _, folder, _ = made
    model = onnx.load(str(folder / "e.onnx"))
    constants = {t.name: t for t in model.graph.initializer}
    activations = {n.input[0]: n for n in model.graph.node if n.op_type == "QuantizeLinear"}
    # The float tensors of these names, over the samples of the calibration, by ONNX Runtime.
    original = onnx.load(str(folder / "f.onnx"))
    known = {o for n in original.graph.node for o in n.output}
    for name in sorted(known & set(activations)):
        original.graph.output.append(helper.make_empty_tensor_value_info(name))
    watched = [o.name for o in original.graph.output]
    run = session(original.SerializeToString())
    largest = dict.fromkeys(watched, 0.0)
    for file in sorted((folder / "data").iterdir()):
        x = np.load(file)
        for name, result in zip(watched, run.run(None, {"x": x})):
            largest[name] = max(largest[name], float(np.abs(result).max()))
    checked = 0
    for name, node in activations.items():
        zero = constants[node.input[2]]
        assert zero.data_type == TensorProto.FLOAT8E4M3FN and list(zero.dims) == []
        assert not [a for a in node.attribute if a.name == "saturate" and a.i == 0]
        if name in largest:
            scale = numpy_helper.to_array(constants[node.input[1]])
            assert scale == pytest.approx(largest[name] / LARGEST, rel=1e-4), name
            checked += 1
    assert checked >= 2
    weights = [n for n in model.graph.node if n.op_type == "DequantizeLinear" and n.input[0] in constants]
    assert weights
    originals = {t.name: numpy_helper.to_array(t) for t in original.graph.initializer}
    for node in weights:
        (axis,) = [a.i for a in node.attribute if a.name == "axis"]
        q = constants[node.input[0]]
        assert q.data_type == TensorProto.FLOAT8E4M3FN
        steps = np.frombuffer(q.raw_data, ml_dtypes.float8_e4m3fn).reshape(q.dims)
        scale = numpy_helper.to_array(constants[node.input[1]])
        w = originals[node.input[0].removesuffix("_quantized")]
        others = tuple(i for i in range(w.ndim) if i != axis)
        assert np.allclose(scale, np.abs(w).max(axis=others) / LARGEST, rtol=1e-6)
        shape = [-1 if i == axis else 1 for i in range(w.ndim)]
        assert np.array_equal(steps, (w / scale.reshape(shape)).astype(ml_dtypes.float8_e4m3fn))


def test_residuals_stay_floats_unless_convolutions_read_them(made, tmp_path):
    maker, folder, _ = made

    def added(path):
        nodes = onnx.load(str(path)).graph.node
        producer = {o: n.op_type for n in nodes for o in n.output}
        return [producer.get(i) for n in nodes if n.op_type == "Add" for i in n.input]
    if maker is cnn:
        assert "DequantizeLinear" in added(folder / "e.onnx")
        return
    rng = np.random.default_rng(3)
    vectors = [numpy_helper.from_array(np.ones(WIDTH, np.float32), "s")]
    nodes = [helper.make_node("LayerNormalization", ["x", "s"], ["h"]), helper.make_node("Transpose", ["h"], ["t"], perm=[1, 0]),
             helper.make_node("Transpose", ["t"], ["u"], perm=[1, 0]), helper.make_node("MatMul", ["h", "w"], ["m"]),
             helper.make_node("Add", ["m", "h"], ["r"]), helper.make_node("Add", ["r", "u"], ["y"])]
    model_file(tmp_path / "f.onnx", nodes, [value("x", ["n", WIDTH])], [value("y", ["n", WIDTH])],
               vectors + [weight(rng, "w", WIDTH, WIDTH)])
    (tmp_path / "data").mkdir()
    np.save(tmp_path / "data" / "0.npy", rng.standard_normal((3, WIDTH), np.float32))
    ingot.call("calibrate", tmp_path / "f.onnx", "--data", tmp_path / "data", "--fp8", "-o", tmp_path / "e.onnx")
    found = added(tmp_path / "e.onnx")
    assert "DequantizeLinear" not in found and "LayerNormalization" in found
    kinds = [n.op_type for n in onnx.load(str(tmp_path / "e.onnx")).graph.node]
    assert kinds.count("QuantizeLinear") == 1 and kinds.count("DequantizeLinear") == 2


def with_scales(path, out, factor):
    """The model with all scales of activations times a factor."""
    model = onnx.load(str(path))
    names = {n.input[1] for n in model.graph.node if n.op_type == "QuantizeLinear"}
    for t in model.graph.initializer:
        if t.name in names:
            t.CopyFrom(numpy_helper.from_array(np.float32(numpy_helper.to_array(t) * factor), t.name))
    onnx.save(model, str(out))


def test_results_are_near_those_of_f32(made, tmp_path):
    maker, folder, _ = made
    x = np.random.default_rng().standard_normal((4, *SHAPES[maker]), np.float32)
    # f8e4m3 rounds by up to 1/16 and by 0.026 in the root mean square, both factors: 0.037 a product, of which two or three
    # follow each other. int8 rounds by 1/440 of the largest magnitude, which is some four times the root mean square.
    y = runs(folder, x, tmp_path)
    assert 1e-4 < error(y["e"], y["f"]) < 0.08
    assert 1e-4 < error(y["i"], y["f"]) < 0.06
    # Scales too small saturate; scales far too large make small numbers subnormal.
    for factor in (1 / 8, 2 ** 17):
        with_scales(folder / "e.onnx", tmp_path / "wrong.onnx", factor)
        wrong = ingot.run(tmp_path / "wrong.onnx", {"x": x}, tmp_path / "wrong")["y"]
        assert error(wrong, y["f"]) > 2 * error(y["e"], y["f"]), factor
    # A power of two is exact as long as nothing saturates or becomes subnormal.
    with_scales(folder / "e.onnx", tmp_path / "double.onnx", 2)
    double = ingot.run(tmp_path / "double.onnx", {"x": x}, tmp_path / "double")["y"]
    assert error(double, y["f"]) < 0.08


def test_only_gpus_with_such_products_multiply_f8(made):
    maker, folder, _ = made
    for target, has in (("sm_80", False), ("sm_86", False), ("sm_89", True), ("sm_90", True)):
        text = ingot.call("inspect", folder / "e.onnx", f"--for={target}", "--dump-after", "quantized_products")
        types = dict(re.findall(r"(%\w+) = [^\n]* : (\w+)\[", text))
        types.update(re.findall(r"(%\w+): (\w+)\[", text))
        products = re.findall(r"= (?:dot|conv)\((%\w+), (%\w+)\)", text)
        f8 = [p for p in products if [types[v] for v in p] == ["f8e4m3", "f8e4m3"]]
        assert len(f8) == (PRODUCTS[maker] if has else 0), f"{target}\n{text}"


def test_plans_store_what_products_read_as_f8(made):
    """No quantisation has a launch of its own, but for what attention gives and what others read too."""
    maker, folder, _ = made
    shape = "x:4x" + "x".join(map(str, SHAPES[maker]))
    text = ingot.call("inspect", folder / "e.onnx", "--for=sm_90", "--plan", f"--shapes={shape}")
    steps = re.findall(r"^  step \d+: (\w+).*\n +reads (.*)\n +writes (.*)$", text, re.MULTILINE)
    products = [s for s in steps if s[0] in ("dot", "conv") and s[1].count("f8e4m3") >= 2]
    assert products
    maps = [s for s in steps if s[0] == "map" and "f8e4m3" in s[2]]
    assert len(maps) <= {cnn: 2, transformer: 1}[maker], text


@pytest.mark.parametrize("flags", [[], ["--fp16"]])
@pytest.mark.parametrize("name", "ie")
def test_emulated_gpus_give_what_the_cpu_gives(made, name, flags, tmp_path):
    """The lowered and fused graph, with the kernels' own programs on the host."""
    maker, folder, _ = made
    driver = pathlib.Path(os.environ.get("INGOT_EMULATED_CUDA") or ingot.binary().parent / "tests" / "emulated_cuda")
    if not (driver / "libcuda.so.1").is_file():
        pytest.skip(f"no emulated driver in {driver}: run './dev build', or set INGOT_EMULATED_CUDA")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("INGOT_")} | {
        "LD_LIBRARY_PATH": str(driver), "INGOT_NVRTC": str(driver / "libnvrtc.so.13"), "INGOT_RUNTIME_CACHE": "none",
        "INGOT_KEPT": os.environ.get("INGOT_KEPT") or str(pathlib.Path("~/.cache/ingot/emulated").expanduser())}
    x = np.random.default_rng().standard_normal((3, *SHAPES[maker]), np.float32)
    np.save(tmp_path / "x.npy", x)
    ingot.build(folder / f"{name}.onnx", tmp_path / "q.engine", flags)
    subprocess.run([str(ingot.binary()), "run", tmp_path / "q.engine", "--device=cuda", "--input", f"x={tmp_path / 'x.npy'}",
                    "--save-outputs", tmp_path / "gpu"], env=environment, check=True, timeout=300)
    ours = np.load(tmp_path / "gpu" / "y.npy")
    cpu = ingot.run(folder / f"{name}.onnx", {"x": x}, tmp_path / "cpu")["y"]
    original = ingot.run(folder / "f.onnx", {"x": x}, tmp_path / "f")["y"]
    # A number between two steps may take either: in one place, one step. Half precision moves more of them.
    assert error(ours, cpu) < (0.04 if flags else 0.02)
    assert error(ours, original) < 0.08


def fails(*arguments):
    done = subprocess.run([str(ingot.binary()), *map(str, arguments)], text=True, timeout=120,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 1, done.stdout
    return done.stdout


def test_errors_say_what_to_do(tmp_path):
    (tmp_path / "data").mkdir()
    np.save(tmp_path / "data" / "0.npy", np.ones((1, 32), np.float32))
    rng = np.random.default_rng(0)

    def product(name, opset):
        return model_file(tmp_path / name, [helper.make_node("MatMul", ["x", "w"], ["y"])], [value("x", ["n", 32])],
                          [value("y", ["n", 8])], [weight(rng, "w", 32, 8)], opset)
    small, old = product("small.onnx", 17), product("old.onnx", 12)
    ingot.call("calibrate", small, "--data", tmp_path / "data", "-o", tmp_path / "q.onnx")
    data = ["--data", tmp_path / "data", "--fp8", "-o"]
    out = tmp_path / "e.onnx"
    cases = [
        ([small, *data, tmp_path / "cache"],
         "--fp8 writes a model, and '.*cache' does not end with .onnx: a calibration cache has the scales of int8"),
        ([small, *data, out, "--algorithm=entropy2"],
         "--algorithm entropy2 weighs clipping against the steps of int8, which f8e4m3 does not have: --fp8 takes minmax, "
         "percentile or legacy"),
        ([small, *data, out, "--algorithm=mse"], "--algorithm mse weighs clipping"),
        ([small, *data, out], "small.onnx: nothing would become f8e4m3: there is no convolution or matrix product of f32 "
         "with a constant weight whose sums have 64 products or more"),
        ([old, *data, out], "the model has opset 12, this needs opset 19"),
        ([tmp_path / "q.onnx", *data, out], "quantises or dequantises: the model has its scales already"),
    ]
    for arguments, expected in cases:
        text = fails("calibrate", *arguments)
        assert re.search(expected, text), f"{arguments}\n{text}"
    assert not out.exists()


def test_percentiles_clip(tmp_path):
    """Numbers beyond the threshold become the largest one: Q saturates."""
    (tmp_path / "data").mkdir()
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (64, 64)).astype(np.float32)
    x[0, 0] = 100
    np.save(tmp_path / "data" / "0.npy", x)
    model = model_file(tmp_path / "f.onnx", [helper.make_node("MatMul", ["x", "w"], ["y"])], [value("x", ["n", 64])],
                       [value("y", ["n", 64])], [numpy_helper.from_array(np.eye(64, dtype=np.float32), "w")])
    ingot.call("calibrate", model, "--data", tmp_path / "data", "--fp8", "--algorithm=percentile", "--percentile=99.9",
               "-o", tmp_path / "e.onnx")
    e = onnx.load(str(tmp_path / "e.onnx"))
    (q,) = [n for n in e.graph.node if n.op_type == "QuantizeLinear"]
    scale = float(numpy_helper.to_array([t for t in e.graph.initializer if t.name == q.input[1]][0]))
    assert scale * LARGEST < 2
    y = ingot.run(tmp_path / "e.onnx", {"x": x}, tmp_path / "r")["y"]
    assert y[0, 0] == pytest.approx(scale * LARGEST, rel=1e-5)
    assert np.abs(y - x)[1:].max() < 1 / 16
