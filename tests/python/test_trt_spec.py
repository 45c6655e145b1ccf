# SPDX-License-Identifier: Apache-2.0
"""The Python listings of the TensorRT guide (spec/003 in the shared folder), run as they
stand there: `import tensorrt` is the alias, `cuda.cudart` the shim."""
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tomllib
import types

import numpy as np
import onnx
import pytest
from onnx import helper

from shim import package

package.find()

import tensorrt as trt  # noqa: E402
from cuda import cudart  # noqa: E402

SHARED = pathlib.Path(os.environ.get("INGOT_SHARED") or
                      pathlib.Path(__file__).resolve().parents[3] / "shared")
TEXTS = sorted(SHARED.glob("spec/003_*.txt"))
if not TEXTS:
    pytest.skip(f"no spec/003_*.txt in {SHARED}: the listings were NOT run",
                allow_module_level=True)
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", TEXTS[0].read_text(), re.DOTALL)
LISTINGS = [text for kind, text in BLOCKS if kind == "python"]


def listing(word):
    """The one listing that defines a name."""
    found = [text for text in LISTINGS if re.search(rf"^(def|class) {word}\b", text, re.MULTILINE)]
    assert len(found) == 1, f"{len(found)} listings define {word}"
    return found[0]


def run_listing(text, name, **names):
    """Executes a listing as a module."""
    module = types.ModuleType(name)
    module.__dict__.update(names)
    sys.modules[name] = module
    exec(compile(text, name, "exec"), module.__dict__)
    return module


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("listing_")]:
        del sys.modules[name]


def picture_model(path, batch, side=16, channels=3):
    """A small network on pictures, as the guide's models are; the weights are fixed."""
    rng = np.random.default_rng(11)
    weights = {"w1": rng.standard_normal((8, channels, 3, 3)), "w2": rng.standard_normal((8, 5))}
    nodes = [
        helper.make_node("Conv", ["input", "w1"], ["a"], pads=[1, 1, 1, 1], strides=[2, 2]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("GlobalAveragePool", ["b"], ["c"]),
        helper.make_node("Flatten", ["c"], ["d"]),
        helper.make_node("MatMul", ["d", "w2"], ["output"]),
    ]
    float32 = onnx.TensorProto.FLOAT
    height = side if isinstance(batch, int) else "height"
    width = side if isinstance(batch, int) else "width"
    graph = helper.make_graph(
        nodes, "pictures",
        [helper.make_tensor_value_info("input", float32, [batch, channels, height, width])],
        [helper.make_tensor_value_info("output", float32, [batch, 5])],
        [onnx.numpy_helper.from_array(v.astype(np.float32), k) for k, v in weights.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path)


def reference(path, array):
    import onnxruntime
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(None, {"input": array})[0]


def pictures(count, side=16):
    return np.random.default_rng(5).standard_normal((count, 3, side, side)).astype(np.float32)


def test_every_python_listing_has_a_test():
    names = ["build_engine", "build_engine_dynamic", "TensorRTInference", "create_tensorrt_session",
             "ImageCalibrator", "TensorRTBuildConfig", "compare_backends"]
    assert len(LISTINGS) == len(names)
    assert {listing(name) for name in names} == set(LISTINGS)


def test_basic_builder_and_inference(folder):
    picture_model("model.onnx", 2)
    builder = run_listing(listing("build_engine"), "listing_builder")
    inference = run_listing(listing("TensorRTInference"), "listing_inference")
    for fp16, tolerance in ((False, 1e-4), (True, 3e-2)):
        builder.build_engine("model.onnx", "model.engine", fp16=fp16)
        before = cudart.outstanding()
        session = inference.TensorRTInference("model.engine")
        values = pictures(2)
        result = session.predict(values)
        np.testing.assert_allclose(result, reference("model.onnx", values), tolerance, tolerance)
        del session
        assert cudart.outstanding() == before


def test_basic_builder_reports_what_is_wrong(folder):
    builder = run_listing(listing("build_engine"), "listing_builder")
    pathlib.Path("broken.onnx").write_bytes(b"this is no model")
    with pytest.raises(RuntimeError, match="Failed to parse ONNX model: broken.onnx"):
        builder.build_engine("broken.onnx", "broken.engine")
    assert not pathlib.Path("broken.engine").exists()


def test_dynamic_shape_builder(folder):
    picture_model("model.onnx", "batch")
    module = run_listing(listing("build_engine_dynamic"), "listing_dynamic")
    module.build_engine_dynamic("model.onnx", "model.engine", fp16=False, min_shape=(1, 3, 8, 8),
                                opt_shape=(4, 3, 16, 16), max_shape=(8, 3, 32, 32))
    runtime = trt.Runtime(trt.Logger(trt.Logger.ERROR))
    engine = runtime.deserialize_cuda_engine(pathlib.Path("model.engine").read_bytes())
    assert engine.get_tensor_profile_shape("input", 0) == [(1, 3, 8, 8), (4, 3, 16, 16),
                                                           (8, 3, 32, 32)]
    context = engine.create_execution_context()
    assert not context.set_input_shape("input", (9, 3, 16, 16))
    for count, side in ((1, 8), (8, 32), (3, 17)):
        values = pictures(count, side)
        assert context.set_input_shape("input", values.shape)
        result = np.empty(context.get_tensor_shape("output"), np.float32)
        assert result.shape == (count, 5)
        copies = [cudart.cudaMalloc(array.nbytes)[1] for array in (values, result)]
        cudart.cudaMemcpy(copies[0], values.ctypes.data, values.nbytes,
                          cudart.cudaMemcpyKind.cudaMemcpyHostToDevice)
        context.set_tensor_address("input", copies[0])
        context.set_tensor_address("output", copies[1])
        assert context.execute_async_v3(0)
        cudart.cudaMemcpy(result.ctypes.data, copies[1], result.nbytes,
                          cudart.cudaMemcpyKind.cudaMemcpyDeviceToHost)
        np.testing.assert_allclose(result, reference("model.onnx", values), 1e-4, 1e-4)
        for copy in copies:
            cudart.cudaFree(copy)


def test_calibrator(folder):
    """The listing uses cudart without importing it: it follows one that does."""
    module = run_listing(listing("ImageCalibrator"), "listing_calibrator", cudart=cudart)
    picture_model("model.onnx", 4)
    images = list(pictures(12))
    calibrator = module.ImageCalibrator(images, batch_size=4, cache_file="calibration.cache")
    data = build_int8("model.onnx", calibrator)
    cache = pathlib.Path("calibration.cache").read_text()
    assert cache.startswith("TRT-") and "EntropyCalibration2" in cache.splitlines()[0]
    assert calibrator.current_index == 12

    again = module.ImageCalibrator(images, batch_size=4, cache_file="calibration.cache")
    assert build_int8("model.onnx", again) is not None
    assert again.current_index == 0  # the cache was read
    pathlib.Path("model.engine").write_bytes(data)
    inference = run_listing(listing("TensorRTInference"), "listing_inference")
    values = np.stack(images[:4])
    result = inference.TensorRTInference("model.engine").predict(values)
    expected = reference("model.onnx", values)
    assert np.abs(result - expected).max() < 0.1 * np.abs(expected).max()


def build_int8(path, calibrator):
    logger = trt.Logger(trt.Logger.ERROR)
    builder = trt.Builder(logger)
    network = builder.create_network(1 << int(trt.NetworkDefinitionCreationFlag.EXPLICIT_BATCH))
    assert trt.OnnxParser(network, logger).parse_from_file(path)
    config = builder.create_builder_config()
    config.set_flag(trt.BuilderFlag.INT8)
    config.int8_calibrator = calibrator
    return builder.build_serialized_network(network, config)


OUR_FIELDS = {"priority"}  # of the configurations, which the document does not have


def test_configuration(folder):
    yaml = pytest.importorskip("yaml")
    module = run_listing(listing("TensorRTBuildConfig"), "listing_config")
    from ingot.config import BuildConfig, InferenceConfig
    for theirs, ours in ((module.TensorRTBuildConfig, BuildConfig),
                         (module.TensorRTInferenceConfig, InferenceConfig)):
        fields = {name: (field.default, field.annotation, field.is_required())
                  for name, field in ours.model_fields.items() if name not in OUR_FIELDS}
        assert fields == {name: (field.default, field.annotation, field.is_required())
                          for name, field in theirs.model_fields.items()}
    text, = [text for kind, text in BLOCKS if kind == "yaml"]
    pathlib.Path("tensorrt.yaml").write_text(text)
    content = yaml.safe_load(text)["tensorrt"]
    assert (BuildConfig.from_yaml("tensorrt.yaml").model_dump()
            == module.TensorRTBuildConfig(**content).model_dump())


class Sessions:
    """Replaces onnxruntime.InferenceSession: records the request and its result."""

    def __init__(self, kind):
        self.kind, self.asked, self.made = kind, [], []

    def __call__(self, path, providers):
        self.asked.append(providers)
        self.made.append(self.kind(path, providers=providers))
        return self.made[-1]


def under_options(path, options, values):
    """The model's result by Ingot, built under the options of ONNX Runtime's TensorRT provider."""
    import tensorrt as trt
    logger = trt.Logger(trt.Logger.ERROR)
    builder = trt.Builder(logger)
    network = builder.create_network()
    assert trt.OnnxParser(network, logger).parse_from_file(path)
    config = builder.create_builder_config()
    if options["trt_fp16_enable"]:
        config.set_flag(trt.BuilderFlag.FP16)
    if "trt_max_workspace_size" in options:
        config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, options["trt_max_workspace_size"])
    runtime = trt.Runtime(logger)
    runtime.set_device(package.CPU, options.get("device_id", 0))
    context = runtime.deserialize_cuda_engine(
        builder.build_serialized_network(network, config)).create_execution_context()
    result = np.full((len(values), 5), np.nan, np.float32)
    context.set_tensor_address("input", values.ctypes.data)
    context.set_tensor_address("output", result.ctypes.data)
    assert context.execute_async_v3(0)
    return result


def test_onnxruntime_listings_run_on_the_providers_that_there_are(folder, monkeypatch):
    """The listings ask for TensorRT first; ONNX Runtime has its CPU provider here, and goes on with it.
    Ingot, built under the options that the listings give to TensorRT's, agrees with the session."""
    import onnxruntime
    picture_model("model.onnx", 2)
    sessions = Sessions(onnxruntime.InferenceSession)
    monkeypatch.setattr(onnxruntime, "InferenceSession", sessions)
    values = pictures(2)
    create = run_listing(listing("create_tensorrt_session"), "listing_ort").create_tensorrt_session
    for fp16 in (False, True):
        session = create("model.onnx", fp16=fp16)
        name, options = sessions.asked[-1][0]
        assert name == "TensorrtExecutionProvider" and options["trt_fp16_enable"] is fp16
        expected = session.run(None, {"input": values})[0]
        tolerance = 3e-2 if fp16 else 1e-4
        np.testing.assert_allclose(under_options("model.onnx", options, values), expected, tolerance,
                                   tolerance)
    module = run_listing(listing("compare_backends"), "listing_compare")
    module.compare_backends("model.onnx", (2, 3, 16, 16), num_warmup=1, num_runs=3)
    wanted = [[one if isinstance(one, str) else one[0] for one in asked] for asked in sessions.asked]
    assert wanted[2:] == [["CUDAExecutionProvider", "CPUExecutionProvider"],
                          ["TensorrtExecutionProvider", "CUDAExecutionProvider", "CPUExecutionProvider"]]
    there = onnxruntime.get_available_providers()
    assert [session.get_providers() for session in sessions.made] == [
        [name for name in names if name in there] for names in wanted]


def block(kind):
    """The only block of a kind."""
    found, = [text for name, text in BLOCKS if name == kind]
    return found


def test_every_block_has_a_test():
    kinds = [kind for kind, _ in BLOCKS]
    assert {kind: kinds.count(kind) for kind in kinds} == {
        "bash": 5, "python": 7, "yaml": 1, "toml": 1, "dockerfile": 1}


def test_lines_of_shell_are_trtexec_or_tested_here():
    """test_trtexec.py runs trtexec's; test_wheel.py runs the installations."""
    lines = [line for kind, text in BLOCKS if kind == "bash"
             for line in text.replace("\\\n", " ").splitlines()
             if line.strip() and not line.startswith("#")]
    others = [line for line in lines if not line.startswith("trtexec ")]
    assert others == ["pip install tensorrt", 'python -c "import tensorrt; print(tensorrt.__version__)"']
    python, *arguments = shlex.split(others[1])
    assert python == "python"
    said = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=True,
                          env=os.environ | {"PYTHONPATH": str(package.folder())}).stdout
    assert said == "11.1.0.0\n"


def test_the_guides_configuration_builds_and_runs(folder):
    """Its YAML unchanged, on a model of the input that it describes."""
    from ingot.config import BuildConfig, InferenceConfig
    pathlib.Path("models").mkdir()
    picture_model("models/model.onnx", "batch")
    pathlib.Path("tensorrt.yaml").write_text(block("yaml"))
    config = BuildConfig.from_yaml("tensorrt.yaml")
    config.build(device="cpu")
    model = InferenceConfig(engine_path=config.engine_path).load()
    shapes = model.engine.get_tensor_profile_shape("input", 0)
    assert shapes == [(1, 3, 640, 640), (8, 3, 640, 640), (32, 3, 640, 640)]
    values = pictures(1, 640)
    np.testing.assert_allclose(model(values), reference("models/model.onnx", values), 3e-2, 3e-2)


def test_pixi_has_the_guides_tasks():
    """The same names; the same flags of trtexec, with the shapes of the digits model."""
    def tasks(text):
        found = tomllib.loads(text)["tasks"]
        return {name: task if isinstance(task, dict) else {"cmd": task}
                for name, task in found.items()}

    def flags(task):
        return [re.sub(r"=.*", "", word) for word in shlex.split(task["cmd"])
                if word.startswith("--")]

    theirs = tasks(block("toml"))
    ours = tasks((package.REPOSITORY / "pixi.toml").read_text(encoding="utf-8"))
    assert theirs.keys() <= ours.keys() and len(theirs) == 5
    for name, task in theirs.items():
        assert ours[name].get("depends-on") == task.get("depends-on")
        if name.startswith("trt-"):
            assert ours[name]["cmd"].split()[0] == task["cmd"].split()[0] == "trtexec"
            assert flags(ours[name]) == flags(task)


def test_the_dockerfile_does_what_the_guides_does():
    """A base with the runtime, dependencies, the model, the program, one command to start it."""
    def instructions(text):
        text = re.sub(r"^#.*\n", "", text, flags=re.MULTILINE)
        return [line.split()[0] for line in text.splitlines() if line.strip()]

    theirs = instructions(block("dockerfile"))
    ours = instructions((package.REPOSITORY / "Dockerfile").read_text(encoding="utf-8"))
    last = ours[len(ours) - 1 - ours[::-1].index("FROM"):]
    assert theirs == ["FROM", "WORKDIR", "COPY", "RUN", "COPY", "COPY", "ENTRYPOINT"] == last
