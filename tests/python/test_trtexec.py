# SPDX-License-Identifier: Apache-2.0
"""trtexec's command line: its flags, what it prints, the files it writes, and its errors."""
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import ingot_command as ingot
from trtexec_flags import ALREADY, IGNORED, SHOWN, USERS_LINES, WORKS, WRONG

DIGITS = ingot.REPOSITORY / "examples" / "digits" / "digits.onnx"
QUICK = ("--iterations=2", "--duration=0", "--warmUp=0")
STAMP = r"\[\d\d/\d\d/\d{4}-\d\d:\d\d:\d\d\]"
NUMBER = r"[0-9.e+-]+"


def command(name="trtexec"):
    """The command under test by another name: a link beside it."""
    return ingot.binary().parent / name


def run(*arguments, name="trtexec", folder=None, code=0, **variables):
    """Output and errors of one call on the CPU, in the order in which they were printed."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("INGOT_")}
    environment |= {"INGOT_DEVICE": "cpu", **variables}
    done = subprocess.run([command(name), *map(str, arguments)], text=True, stdout=subprocess.PIPE, cwd=folder,
                          stderr=subprocess.STDOUT, timeout=300, stdin=subprocess.DEVNULL, env=environment, check=False)
    assert done.returncode == code, done.stdout
    return done.stdout


def lines_of(text, severity):
    """The texts of all lines of a severity: I, W, E or V."""
    return re.findall(rf"^{STAMP} \[{severity}\] (.*)$", text, re.MULTILINE)


def has_lines(text, patterns):
    for pattern in patterns:
        assert re.search(rf"^{STAMP} \[I\] {pattern}$", text, re.MULTILINE), f"no line {pattern!r} in\n{text}"


def small_network(path, dims):
    """A convolution, a mean and a product of matrices on an input of NCHW."""
    rng = np.random.default_rng(0)
    weights = [numpy_helper.from_array(rng.standard_normal(s).astype(np.float32) * 0.2, n)
               for n, s in (("kernel", (4, 3, 3, 3)), ("matrix", (4, 5)))]
    nodes = [helper.make_node("Conv", ["input", "kernel"], ["features"], strides=[32, 32], name="conv"),
             helper.make_node("Relu", ["features"], ["positive"], name="relu"),
             helper.make_node("GlobalAveragePool", ["positive"], ["pooled"], name="pool"),
             helper.make_node("Flatten", ["pooled"], ["flat"], name="flatten"),
             helper.make_node("MatMul", ["flat", "matrix"], ["output"], name="classify")]
    graph = helper.make_graph(nodes, "small", [helper.make_tensor_value_info("input", TensorProto.FLOAT, dims)],
                              [helper.make_tensor_value_info("output", TensorProto.FLOAT, [dims[0], 5])], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), str(path))


def calibration_cache(path):
    scales = {"input": 0.02, "features": 0.03, "positive": 0.03, "pooled": 0.01, "flat": 0.01, "output": 0.01}
    text = "".join(f"{name}: {struct.pack('>f', scale).hex()}\n" for name, scale in scales.items())
    path.write_text("TRT-8601-EntropyCalibration2\n" + text)


@pytest.fixture(name="engine", scope="module")
def fixture_engine(tmp_path_factory):
    path = tmp_path_factory.mktemp("trtexec") / "digits.engine"
    run(f"--onnx={DIGITS}", f"--saveEngine={path}", "--minShapes=image:1x1x8x8", "--optShapes=image:4x1x8x8",
        "--maxShapes=image:9x1x8x8", "--skipInference")
    return path


@pytest.mark.parametrize("line", USERS_LINES)
def test_lines_of_users_run_as_they_stand(line, tmp_path):
    (tmp_path / "models").mkdir()
    shapes = "Shapes=" in line
    small_network(tmp_path / "model.onnx", ["batch", 3, "height", "width"] if shapes else [1, 3, 64, 64])
    shutil.copy(tmp_path / "model.onnx", tmp_path / "models" / "model.onnx")
    calibration_cache(tmp_path / "calibration_cache.bin")
    environment = {**os.environ, "PATH": f"{command().parent}:{os.environ['PATH']}", "INGOT_DURATION": "0"}
    if "--loadEngine" in line:
        run("--onnx=model.onnx", "--saveEngine=models/model.engine", "--skipInference", folder=tmp_path)
    done = subprocess.run(line.replace(" --", " \\\n    --"), shell=True, cwd=tmp_path, env=environment, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=600, check=False)
    assert done.returncode == 0, done.stdout
    assert f"&&&& PASSED TensorRT.trtexec [TensorRT v110100] # {line}\n" in done.stdout
    assert re.search(rf"Throughput: {NUMBER} qps", done.stdout)
    saved = re.search(r"--saveEngine=(\S+)", line)
    assert not saved or (tmp_path / saved.group(1)).read_bytes()[:5] == b"INGOT"
    if "--int8" in line:
        assert "Precision: FP32+INT8" in done.stdout
        operators = ingot.call("inspect", tmp_path / saved.group(1))
        assert re.search(r"^ +\d+ quantize$", operators, re.MULTILINE), operators


def test_the_lines_of_users_are_those_of_the_workflow():
    shared = pathlib.Path(os.environ.get("INGOT_SHARED") or ingot.REPOSITORY.parent / "shared")
    documents = list((shared / "spec").glob("003*"))
    if not documents:
        pytest.skip(f"no description of the workflow in {shared}")
    text = documents[0].read_text().replace("\\\n", " ")
    found = [" ".join(line.split()) for line in re.findall(r"trtexec +--[^\"\n]*", text)]
    assert found == USERS_LINES


@pytest.fixture(name="folder", scope="module")
def fixture_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("flags")
    np.save(folder / "image.npy", np.zeros((1, 1, 8, 8), np.float32))
    shutil.copy(DIGITS, folder / "model.onnx")
    return folder


@pytest.mark.parametrize("flag", WORKS)
def test_flags_that_work(flag, engine, folder):
    model = ["--loadEngine", engine] if flag in ("--getPlanVersionOnly", "--timeDeserialize") else ["--onnx", DIGITS]
    name = flag.split("=")[0]
    quick = [q for q in QUICK if not q.startswith(name + "=")]
    def behind_options(*flags):
        for path in folder.iterdir():
            if path.name not in ("image.npy", "model.onnx"):
                path.unlink()
        text = run(*model, *flags, folder=folder)
        assert "&&&& PASSED" in text
        return text[max(text.find("=== Device Information ==="), 0):], {path.name for path in folder.iterdir()}

    text, files = behind_options(*quick, flag)
    told = [line for line in lines_of(text, "[IW]") if re.match(rf"{name}\S* (is ignored|changes nothing)", line)]
    assert not told
    if flag in SHOWN:
        plain, before = behind_options(*(() if flag == "--getPlanVersionOnly" else QUICK))
        proof = SHOWN[flag]
        if proof.startswith("file:"):
            assert proof[5:] in files - before
        else:
            assert re.search(proof, text, re.MULTILINE), text
            assert not re.search(proof, plain, re.MULTILINE), "a run without the flag says so too"


@pytest.mark.parametrize("flag", ALREADY + IGNORED)
def test_flags_without_effect_say_why(flag, folder):
    text = run("--onnx", DIGITS, *QUICK, flag, folder=folder)
    severity, words = ("I", "changes nothing: ") if flag in ALREADY else ("W", "is ignored: ")
    name = re.escape(re.sub(r"(:.*|(?<!memPoolSize)=.*)", "", flag))
    told = [line for line in lines_of(text, severity) if re.match(rf"{name} {words}\S.*", line)]
    assert len(told) == 1 and "&&&& PASSED" in text, text


def test_every_flag_of_the_table_is_tested():
    text = run("--help")
    listed = {f for line in text.splitlines() if line.startswith("  -")
              for f in re.findall(r"--?[A-Za-z][\w-]*", line.split("  ")[1])}
    tested = {flag.split("=")[0] for flag in WORKS + ALREADY + IGNORED}
    tested |= {flag.split("=")[0] for line in USERS_LINES for flag in line.split()[1:]}
    elsewhere = {"-o", "--output", "-h", "--help", "--version", "--useGpu", "--useGPU", "--computeCapabilities",
                 "--loadRefOutputs", "--refPair", "--staticPlugins", "--plugins", "--dynamicPlugins",
                 "--setPluginsToSerialize", "--leanDLLPath"}
    own = {"--disablePass", "--seed", "--cpuThreads", "--verify", "--noVerifyWeights", "--timeout", "--noCpuLibrary",
           "--forceTactic", "--arch", "--memoryLimit", "--nvtx", "--runtimeCacheDir", "--tune", "--tuneBudget",
           "--specialisation", "--priority"}
    assert listed - tested - elsewhere - own == set()
    assert (tested | elsewhere | own) - listed == set()


@pytest.mark.parametrize("flag", ["--disablePass=raise_gelu", "--seed=3", "--cpuThreads=1", "--verify", "--noVerifyWeights",
                                  "--timeout=100",
                                  "--noCpuLibrary", "--forceTactic=a", "--arch=80", "--memoryLimit=1000000000",
                                  "--nvtx", "--runtimeCacheDir=none", "--tune=off", "--tuneBudget=10",
                                  "--specialisation=none", "--priority=low"])
def test_flags_of_our_own(flag):
    assert "&&&& PASSED" in run("--onnx", DIGITS, *QUICK, flag)


@pytest.mark.parametrize("flag, message", [
    ("--disablePass=raise_gelo", "there is no pass 'raise_gelo', did you mean 'raise_gelu'?"),
    ("--seed=many", "--seed=many: expected a whole number"),
    ("--cpuThreads=many", "--cpuThreads=many: expected a whole number"),
    ("--verify=yes", "--verify=yes: expected no value: this is a flag"),
    ("--timeout=soon", "--timeout=soon: expected a number"),
    ("--noCpuLibrary=yes", "--noCpuLibrary=yes: expected no value: this is a flag"),
    ("--arch=nine", "--arch=nine: expected a whole number"),
    ("--memoryLimit=-1", "--memoryLimit=-1: expected 0 or more"),
    ("--nvtx=yes", "--nvtx=yes: expected no value: this is a flag"),
    ("--tune=sometimes", "--tune=sometimes: expected off, background or full"),
    ("--tuneBudget=-1", "--tuneBudget=-1: expected 0 or more"),
    ("--specialisation=soon", "--specialisation=soon: expected lazy, eager or none"),
    ("--priority=urgent", "--priority=urgent: expected low, normal or high"),
])
def test_flags_of_our_own_are_looked_at(flag, message):
    errors = lines_of(run("--onnx", DIGITS, *QUICK, flag, code=1), "E")
    assert len(errors) == 1 and errors[0].endswith(message), errors


@pytest.mark.parametrize(("arguments", "message"), WRONG)
def test_errors(arguments, message, tmp_path):
    text = run(*(a.replace("DIGITS", str(DIGITS)) for a in arguments), folder=tmp_path, code=1, INGOT_DURATION="0")
    errors = lines_of(text, "E")
    assert len(errors) == 1 and errors[0].replace(f"{DIGITS}: ", "").endswith(message), text
    assert "&&&& RUNNING" in text and "&&&& FAILED" in text and "PASSED" not in text


def test_int8_without_calibration_is_refused_unless_asked_for(tmp_path):
    text = run(f"--onnx={DIGITS}", "--int8", code=1)
    assert "INT8 needs the ranges of tensors: give a calibration cache" in lines_of(text, "E")[0]
    text = run(f"--onnx={DIGITS}", "--int8", "--int8WithoutCalibration", *QUICK)
    assert any("results will be poor" in line for line in lines_of(text, "W"))
    text = run(f"--onnx={DIGITS}", "--int8", f"--calib={tmp_path}/none", code=1)
    assert "there is no such calibration cache" in lines_of(text, "E")[0]


def test_int8_takes_models_that_quantise_themselves(tmp_path):
    scale = [numpy_helper.from_array(np.float32(0.1), "scale"), numpy_helper.from_array(np.int8(0), "zero")]
    nodes = [helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"]),
             helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["y"])]
    io = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [4]) for n in "xy"]
    graph = helper.make_graph(nodes, "g", io[:1], io[1:], scale)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), str(tmp_path / "q.onnx"))
    text = run(f"--onnx={tmp_path}/q.onnx", "--int8", *QUICK)
    assert "--int8: the model's own QuantizeLinear and DequantizeLinear nodes are used" in lines_of(text, "I")


def test_banner_names_and_exit_codes(engine):
    arguments = [f"--loadEngine={engine}", *QUICK]
    text = run(*arguments)
    line = f"TensorRT.trtexec [TensorRT v110100] # trtexec {' '.join(arguments)}\n"
    assert text.startswith(f"&&&& RUNNING {line}") and text.endswith(f"&&&& PASSED {line}")
    text = run(*arguments, name="tensorrt_rtx")
    assert text.startswith(f"&&&& RUNNING TensorRT.trtexec [TensorRT v10600] # tensorrt_rtx {' '.join(arguments)}\n")
    text = run("trtexec", *arguments, name="ingot")
    assert text.startswith(f"&&&& RUNNING {line}")
    assert all("&&&& PASSED" in run(flag) for flag in ("--help", "-h", "--version"))
    text = run("--loadEngine", engine, "--nothing", code=1)
    assert text.splitlines()[-1].startswith("&&&& FAILED TensorRT.trtexec [TensorRT v110100] # trtexec --loadEngine ")
    assert "--onnx=FILE" in run("--help")


def test_every_line_has_stamp_and_severity(engine):
    text = run(f"--loadEngine={engine}", "--dumpProfile", "--dumpLayerInfo", "--dumpOutput", "--verbose",
               "--useDLACore=0", *QUICK)
    for line in text.splitlines()[1:-1]:
        assert re.match(rf"{STAMP} \[[IWEV]\] ", line), line


def test_sections_of_options(tmp_path):
    small_network(tmp_path / "model.onnx", ["batch", 3, 64, 64])
    text = run("--onnx=model.onnx", "--saveEngine=e.engine", "--fp16", "--minShapes=input:1x3x64x64",
               "--optShapes=input:2x3x64x64", "--maxShapes=input:4x3x64x64", "--memPoolSize=tacticSharedMem:48K",
               "--avgRuns=3", "--percentile=50", "--shapes=input:3x3x64x64", "--exportTimes=t.json", *QUICK,
               folder=tmp_path)
    has_lines(text, [
        "=== Model Options ===", "Format: ONNX", "Model: model.onnx", "Output:", "=== Build Options ===",
        "Memory Pools: workspace: default, dlaSRAM: default, dlaLocalDRAM: default, dlaGlobalDRAM: default, "
        r"tacticSharedMem: 0\.046875 MiB", "avgTiming: 8", r"Precision: FP32\+FP16", "Calibration: ", "Refit: Disabled",
        "Save engine: e.engine", "Load engine: ", "Profiling verbosity: 0", "timingCacheMode: local",
        r"Input\(s\)s format: fp32:CHW", r"Output\(s\)s format: fp32:CHW",
        r"Input build shape \(profile 0\): input=1x3x64x64\+2x3x64x64\+4x3x64x64", "=== System Options ===",
        "Device: cpu", "=== Inference Options ===", "Batch: Explicit", "Input inference shape : input=3x3x64x64",
        "Iterations: 2", r"Duration: 0s \(\+ 0ms warm up\)", "Sleep time: 0ms", "Idle time: 0ms",
        "Inference Streams: 1", "Data transfers: Disabled", "CUDA Graph: Enabled", "Optimization Profile Index: 0",
        "Inputs:", "=== Reporting Options ===", "Verbose: Disabled", "Averages: 3 inferences", "Percentiles: 50",
        "Dump output: Disabled", "Profile: Disabled", "Export timing to JSON file: t.json",
        "=== Device Information ===", "Selected Device: .+",
        "Set shape of input tensor input for optimization profile 0 to: MIN=1x3x64x64 OPT=2x3x64x64 MAX=4x3x64x64",
        rf"Finished parsing network model\. Parse time: {NUMBER}", rf"Engine built in {NUMBER} sec\.",
        rf"Created engine with size: {NUMBER} MiB", rf"Engine deserialized in {NUMBER} sec\."])
    loaded = run("--loadEngine=e.engine", "--fp16", *QUICK, folder=tmp_path)
    chosen = run("--onnx=model.onnx", "--optShapes=input:2x3x64x64", "--maxShapes=input:4x3x64x64", "--skipInference",
                 folder=tmp_path)
    has_lines(chosen, ["Input inference shape : input=2x3x64x64"])
    has_lines(loaded, [r"Format: \*", "Model: ", "=== System Options ==="])
    assert "=== Build Options ===" not in loaded
    assert "--fp16 has no effect with --loadEngine: that was decided when the engine was built" in lines_of(loaded, "W")


def test_performance_summary(engine):
    text = run(f"--loadEngine={engine}", "--iterations=30", "--duration=0", "--warmUp=1", "--percentile=50,99")
    fields = rf"min = {NUMBER} ms, max = {NUMBER} ms, mean = {NUMBER} ms, median = {NUMBER} ms, " \
             rf"percentile\(50%\) = {NUMBER} ms, percentile\(99%\) = {NUMBER} ms"
    has_lines(text, [
        "Using random values for input image", rf"Created execution context with device memory size: {NUMBER} MiB",
        "Starting inference", rf"Warmup completed \d+ queries over {NUMBER} ms",
        rf"Timing trace has 30 queries over {NUMBER} s", "=== Trace details ===", "Trace averages of 10 runs:",
        rf"Average on 10 runs - GPU latency: {NUMBER} ms - Host latency: {NUMBER} ms \(enqueue {NUMBER} ms\)",
        "=== Performance summary ===", rf"Throughput: {NUMBER} qps", f"Latency: {fields}", f"Enqueue Time: {fields}",
        f"H2D Latency: {fields}", f"GPU Compute Time: {fields}", f"D2H Latency: {fields}",
        rf"Total Host Walltime: {NUMBER} s", rf"Total GPU Compute Time: {NUMBER} s"])
    assert len(re.findall("Average on 10 runs", text)) == 3


def test_json_exports(engine, tmp_path):
    text = run(f"--loadEngine={engine}", "--iterations=12", "--duration=0", "--warmUp=0", "--exportTimes=times.json",
               "--exportOutput=output.json", "--exportProfile=profile.json", "--exportLayerInfo=layers.json",
               "--dumpProfile", folder=tmp_path)
    times = json.loads((tmp_path / "times.json").read_text())
    assert len(times) == 12
    for t in times:
        assert list(t) == ["startEnqMs", "endEnqMs", "startH2dMs", "endH2dMs", "startComputeMs", "endComputeMs",
                           "startD2hMs", "endD2hMs", "h2dMs", "computeMs", "d2hMs", "latencyMs"]
        assert abs(t["latencyMs"] - t["h2dMs"] - t["computeMs"] - t["d2hMs"]) < 1e-6
    profile = json.loads((tmp_path / "profile.json").read_text())
    assert profile[0]["count"] == 12 and abs(sum(p["percentage"] for p in profile[1:]) - 100) < 0.1
    assert all(set(p) == {"name", "timeMs", "averageMs", "medianMs", "percentage"} for p in profile[1:])
    rows = re.findall(rf"^{STAMP} \[I\] +[\d.]+ +[\d.]+ +[\d.]+ +[\d.]+   (.+)$", text, re.MULTILINE)
    assert rows[-1] == "Total" and set(rows[:-1]) <= {p["name"] for p in profile[1:]}
    assert re.search(r"\[I\]    Time\(ms\)     Avg.\(ms\)   Median\(ms\)   Time\(%\)   Layer\n", text)
    output = json.loads((tmp_path / "output.json").read_text())
    assert [(o["name"], o["dimensions"], len(o["values"])) for o in output] == [("scores", "4x10", 40)]
    layers = json.loads((tmp_path / "layers.json").read_text())
    assert layers["I/O Tensors"] == ["image", "scores"] and all(isinstance(n, str) for n in layers["Layers"])


def test_layer_information(tmp_path):
    path = tmp_path / "detailed.engine"
    text = run(f"--onnx={DIGITS}", f"--saveEngine={path}", "--profilingVerbosity=detailed", "--dumpLayerInfo",
               f"--exportLayerInfo={tmp_path}/layers.json", "--skipInference")
    assert "Skipped inference phase since --skipInference is added." in lines_of(text, "I")
    lines = lines_of(text, "I")
    layers = json.loads((tmp_path / "layers.json").read_text())["Layers"]
    shown = lines[lines.index("Layers:") + 1:][:len(layers)]
    assert lines[lines.index("Layers:") - 1] == "Layer Information:" and "Bindings:" in lines
    for line, layer in zip(shown, layers):
        assert set(layer) == {"Name", "LayerType", "Inputs", "Outputs", "ParameterType", "TacticName", "StreamId",
                              "Metadata"}
        assert f"LayerType: {layer['LayerType']}" in line
        for operand in layer["Inputs"] + layer["Outputs"]:
            assert list(operand) == ["Name", "Dimensions", "Format/Datatype"]
            assert all(isinstance(d, int) for d in operand["Dimensions"])
    read, written = ([operand["Name"] for layer in layers for operand in layer[side]] for side in ("Inputs", "Outputs"))
    assert "image" in read and "scores" in written and len(set(written)) == len(written)
    assert "Name:" not in run(f"--onnx={DIGITS}", "--dumpLayerInfo", *QUICK)
    none = run(f"--onnx={DIGITS}", "--dumpLayerInfo", "--profilingVerbosity=none", *QUICK)
    assert "--profilingVerbosity=none leaves out what is known of layers" in lines_of(none, "W")


def test_profiles_and_shapes(tmp_path):
    path = tmp_path / "two.engine"
    text = run(f"--onnx={DIGITS}", f"--saveEngine={path}", "--profile=0", "--minShapes=image:1x1x8x8",
               "--optShapes=image:2x1x8x8", "--maxShapes=image:3x1x8x8", "--profile=1", "--minShapes=image:10x1x8x8",
               "--optShapes=image:12x1x8x8", "--maxShapes=image:20x1x8x8", "--dumpOptimizationProfile", *QUICK)
    has_lines(text, [r"Model input image \(profile 0\): min=1x1x8x8, opt=2x1x8x8, max=3x1x8x8",
                     r"Model input image \(profile 1\): min=10x1x8x8, opt=12x1x8x8, max=20x1x8x8"])

    def batch(*options):
        run(f"--loadEngine={path}", "--exportOutput=out.json", *QUICK, *options, folder=tmp_path)
        return json.loads((tmp_path / "out.json").read_text())[0]["dimensions"]

    assert batch() == "2x10" and batch("--useProfile=1") == "12x10" and batch("--shapes=image:15x1x8x8") == "15x10"
    errors = lines_of(run(f"--loadEngine={path}", "--shapes=image:5x1x8x8", *QUICK, code=1), "E")
    assert "outside the engine's profile" in errors[0]
    errors = lines_of(run(f"--loadEngine={path}", "--useProfile=2", *QUICK, code=1), "E")
    assert errors == ["--useProfile=2: the engine has 2 profiles"]
    text = run(f"--onnx={DIGITS}", *QUICK)
    assert "Dynamic dimensions required for input: image, but no shapes were provided. Automatically overriding " \
           "shape to: 1x1x8x8" in lines_of(text, "W")
    fixed = run(f"--onnx={DIGITS}", "--shapes=image:3x1x8x8", "--dumpOptimizationProfile", *QUICK)
    has_lines(fixed, [r"Model input image \(profile 0\): min=3x1x8x8, opt=3x1x8x8, max=3x1x8x8"])


def test_inputs_outputs_and_raw_files(engine, tmp_path):
    image = np.random.default_rng(1).random((2, 1, 8, 8), np.float32)
    image.tofile(tmp_path / "image.bin")
    np.save(tmp_path / "image.npy", image)
    outputs = []
    for spec in ("--loadInputs=image:image.bin --shapes=image:2x1x8x8", "--loadInputs='image':image.npy"):
        text = run(f"--loadEngine={engine}", "--dumpOutput", "--dumpRawBindingsToFile", "--exportOutput=out.json",
                   *spec.split(), *QUICK, folder=tmp_path)
        lines = lines_of(text, "I")
        assert "Using random values" not in text
        at = lines.index("Output Tensors:")
        assert lines[at + 1] == "scores: (2x10)"
        values = np.array(json.loads((tmp_path / "out.json").read_text())[0]["values"], np.float32).reshape(2, 10)
        assert np.allclose(np.array(lines[at + 2].split(), np.float32).reshape(2, 10), values, rtol=1e-5, atol=1e-5)
        raw = np.fromfile(tmp_path / "scores.output.2.10.Float.raw", np.float32).reshape(2, 10)
        assert np.array_equal(raw, values)
        assert np.array_equal(np.fromfile(tmp_path / "image.input.2.1.8.8.Float.raw", np.float32), image.ravel())
        outputs.append(values)
    assert np.array_equal(outputs[0], outputs[1])
    expected = ingot.run(engine, {"image": image}, tmp_path / "run")["scores"]
    assert np.allclose(outputs[0], expected, rtol=1e-5, atol=1e-6)


def test_values_of_inputs_that_are_shapes(tmp_path):
    graph = helper.make_graph(
        [helper.make_node("Reshape", ["x", "sizes"], ["y"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"]),
         helper.make_tensor_value_info("sizes", TensorProto.INT64, [2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["a", "b"])])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), str(tmp_path / "m.onnx"))

    def dimensions(*options):
        text = run(*options, "--exportOutput=out.json", *QUICK, folder=tmp_path)
        assert "Using random values for input x" in text and "random values for input sizes" not in text
        return json.loads((tmp_path / "out.json").read_text())[0]["dimensions"]

    assert dimensions("--onnx=m.onnx", "--shapes=x:12,sizes:3x4", "--saveEngine=e.engine") == "3x4"
    assert dimensions("--loadEngine=e.engine", "--shapes=x:12,sizes:6x2") == "6x2"
    assert dimensions("--onnx=m.onnx", "--minShapes=x:1,sizes:1x1", "--optShapes=x:6,sizes:2x3",
                      "--maxShapes=x:100,sizes:10x10", "--dumpOptimizationProfile") == "2x3"


def test_expected_outputs(engine, tmp_path):
    rng = np.random.default_rng(2)
    for i in range(2):
        image = rng.random((2, 1, 8, 8), np.float32)
        np.save(tmp_path / f"in{i}.npy", image)
        scores = ingot.run(engine, {"image": image}, tmp_path / f"run{i}")["scores"]
        np.save(tmp_path / f"ref{i}.npy", scores)
        scores.tofile(tmp_path / f"ref{i}.bin")
        np.save(tmp_path / f"off{i}.npy", scores + 0.25)
    base = [f"--loadEngine={engine}", *QUICK, "--accuracyThreshold=0.001"]
    for algorithm in ("l0", "l1", "l2", "lInf", "cos"):
        text = run(*base, f"--accuracyAlgorithm={algorithm}", "--loadInputs=image:in0.npy",
                   "--loadRefOutputs=scores:ref0.bin", folder=tmp_path)
        has_lines(text, [rf"Accuracy loss for tensor scores of pair 0 \({algorithm}\): {NUMBER}"])
    pairs = [f"--refPair={i} --loadInputs=image:in{i}.npy --loadRefOutputs=scores:ref{i}.npy" for i in range(2)]
    text = run(*base, *" ".join(pairs).split(), folder=tmp_path)
    has_lines(text, [rf"Accuracy loss for tensor scores of pair {i} \(l0\): 0" for i in range(2)])
    text = run(*base, "--accuracyAlgorithm=lInf", "--loadInputs=image:in0.npy", "--loadRefOutputs=scores:off0.npy",
               folder=tmp_path, code=1)
    assert re.fullmatch("outputs differ from the expected ones by more than --accuracyThreshold=0.001: scores of pair 0 "
                        r"by 0\.25\d*", lines_of(text, "E")[0])
    swapped = run(*base, "--accuracyAlgorithm=l1", "--loadInputs=image:in0.npy", "--loadRefOutputs=scores:ref1.npy",
                  folder=tmp_path, code=1)
    assert "&&&& FAILED" in swapped
    errors = lines_of(run(*base, "--loadInputs=image:in0.npy", "--loadRefOutputs=score:ref0.npy", folder=tmp_path,
                          code=1), "E")
    assert errors == ["--loadRefOutputs: there is no output 'score'; outputs: scores"]


def test_debug_tensors(tmp_path):
    small_network(tmp_path / "model.onnx", [2, 3, 64, 64])
    text = run("--onnx=model.onnx", "--saveDebugTensors=pooled:pooled.npy,output:output.bin,nothing:n.npy",
               "--saveAllDebugTensors=summary,numpy,raw,string", "--markDebug=output", "--exportOutput=out.json", *QUICK,
               folder=tmp_path)
    values = np.array(json.loads((tmp_path / "out.json").read_text())[0]["values"], np.float32).reshape(2, 5)
    assert all(np.array_equal(np.fromfile(tmp_path / n, np.float32), values.ravel()) for n in ("output.bin", "output.raw"))
    assert np.array_equal(np.load(tmp_path / "output.npy"), values)
    assert np.load(tmp_path / "pooled.npy").shape == (2, 4, 1, 1)
    assert (tmp_path / "output.txt").read_text().startswith("output: (2x5)\n")
    assert any(line.startswith("Debug tensor output f32 2x5: min ") for line in lines_of(text, "I"))
    assert not (tmp_path / "n.npy").exists()
    assert any(line.startswith("debug tensor 'nothing' does not occur") for line in lines_of(text, "W"))


def test_marked_tensors_survive_fusion(tmp_path):
    """A tensor inside a fused layer is saved when it was marked, else it does not exist; it is
    no output."""
    small_network(tmp_path / "model.onnx", [2, 3, 64, 64])
    save = "--saveDebugTensors=features:inner.npy"
    text = run("--onnx=model.onnx", save, *QUICK, folder=tmp_path)
    assert any(line.startswith("debug tensor 'features' does not occur") for line in lines_of(text, "W"))
    text = run("--onnx=model.onnx", save, "--markDebug=features","--saveEngine=marked.engine",
               "--exportOutput=out.json", *QUICK, folder=tmp_path)
    values = np.load(tmp_path / "inner.npy")
    assert values.ndim == 4 and values.min() < 0 < values.max()
    assert [output["name"] for output in json.loads((tmp_path / "out.json").read_text())] == ["output"]
    (tmp_path / "inner.npy").unlink()
    run("--loadEngine=marked.engine", save, *QUICK, folder=tmp_path)
    assert np.array_equal(np.load(tmp_path / "inner.npy"), values)


def test_streams_run_at_once(engine, tmp_path):
    text = run(f"--loadEngine={engine}", "--infStreams=3", "--threads", "--iterations=20", "--duration=0",
               "--warmUp=0", "--exportTimes=times.json", folder=tmp_path)
    assert len(lines_of(text, "I")) and text.count("Created execution context with device memory size") == 3
    times = json.loads((tmp_path / "times.json").read_text())
    assert len(times) == 60 and "Timing trace has 60 queries" in text
    starts = [t["startEnqMs"] for t in times]
    assert starts == sorted(starts)
    assert any(line.startswith("* 3 streams ran at once") for line in lines_of(text, "W"))


def test_precision_flags(tmp_path):
    text = run(f"--onnx={DIGITS}", "--fp16", "--bf16", *QUICK)
    assert "--bf16 has no effect beside --fp16: one type of half precision is used" in lines_of(text, "W")
    text = run(f"--onnx={DIGITS}", "--stronglyTyped", "--fp16", *QUICK)
    assert "precision flags have no effect with --stronglyTyped: the model's own types hold" in lines_of(text, "W")
    has_lines(text, ["Precision: Strongly Typed"])
    has_lines(run(f"--onnx={DIGITS}", "--best", *QUICK), [r"Precision: FP32\+FP16"])
    small_network(tmp_path / "model.onnx", [1, 3, 64, 64])
    calibration_cache(tmp_path / "cache")
    for flags in (["--best"], ["--fp16", "--int8"]):
        text = run("--onnx=model.onnx", *flags, "--calib=cache", *QUICK, folder=tmp_path)
        has_lines(text, [r"Precision: FP32\+FP16\+INT8", "Calibration: cache"])
    text = run("--onnx=model.onnx", "--calib=cache", *QUICK, folder=tmp_path)
    assert "--calib has no effect without --int8" in lines_of(text, "W")
    has_lines(run(f"--onnx={DIGITS}", *QUICK), ["TF32 is enabled by default. Add --noTF32 flag to further improve "
                                                "accuracy with some performance cost."])


def test_types_of_inputs_and_outputs(tmp_path):
    run(f"--onnx={DIGITS}", "--inputIOFormats=fp16:chw", "--outputIOFormats=fp16:chw", "--dumpRawBindingsToFile",
        "--shapes=image:2x1x8x8", *QUICK, folder=tmp_path)
    assert (tmp_path / "image.input.2.1.8.8.Half.raw").stat().st_size == 2 * 64 * 2
    assert (tmp_path / "scores.output.2.10.Half.raw").stat().st_size == 2 * 10 * 2


def test_version_of_plans_and_deserialisation(engine):
    text = run(f"--loadEngine={engine}", "--getPlanVersionOnly")
    assert re.search(r"\[I\] Plan was created with TensorRT version 11\.1\.0\.0 \(Ingot \d+\.\d+\.\d+\)\n", text)
    assert "Throughput" not in text
    text = run(f"--loadEngine={engine}", "--timeDeserialize")
    has_lines(text, ["Begin deserialization warmup...", "Begin deserialization engine timing...",
                     f"First deserialization time = {NUMBER} milliseconds",
                     rf"Total deserialization time = {NUMBER} milliseconds in 20 iterations, average time = {NUMBER} "
                     rf"milliseconds, first time = {NUMBER} milliseconds\.", f"Deserialization Bandwidth = {NUMBER} GB/s"])
    assert "Throughput" not in text
    errors = lines_of(run(f"--loadEngine={DIGITS}", "--getPlanVersionOnly", code=1), "E")
    assert errors and str(DIGITS) in errors[0]


def test_an_engine_is_no_model_and_a_model_no_engine(engine):
    errors = lines_of(run(f"--onnx={engine}", *QUICK, code=1), "E")
    assert errors == [f"{engine} is an engine, not an ONNX model: give it as --loadEngine={engine}"]
    assert lines_of(run(f"--loadEngine={DIGITS}", *QUICK, code=1), "E")


def test_kernels_ahead_of_time(tmp_path):
    compiler = ingot.REPOSITORY / ".deps" / "nvrtc" / "lib"
    if not compiler.is_dir():
        pytest.skip("no NVRTC in .deps")
    small_network(tmp_path / "model.onnx", [1, 3, 64, 64])
    text = run("--onnx=model.onnx", "--saveEngine=e.engine", "--computeCapabilities=75,90", "--useGpu", "--skipInference",
               folder=tmp_path)
    has_lines(text, [r"Compiled [1-9]\d* kernels ahead of time"])
    assert "--computeCapabilities: 75 is left out, kernels exist from 80 on" in lines_of(text, "W")
    assert "--useGpu is ignored: there is no GPU here whose kernels could be compiled ahead" in lines_of(text, "W")
    plain = run("--onnx=model.onnx", "--saveEngine=p.engine", "--skipInference", folder=tmp_path)
    assert "kernels ahead" not in plain
    assert (tmp_path / "e.engine").stat().st_size > (tmp_path / "p.engine").stat().st_size


def test_environment_fills_in(engine):
    text = run(f"--loadEngine={engine}", INGOT_ITERATIONS="3", INGOT_DURATION="0", INGOT_WARM_UP="0")
    assert "Timing trace has 3 queries" in text
    text = run(f"--loadEngine={engine}", "--duration=0", INGOT_ITERATIONS="x", code=1)
    assert lines_of(text, "E") == ["INGOT_ITERATIONS=x: expected a whole number"]
    text = run(f"--loadEngine={engine}", "--iterations=4", "--duration=0", INGOT_ITERATIONS="3")
    assert "Timing trace has 4 queries" in text


def test_warnings_go_to_stderr_and_the_rest_to_stdout(engine):
    done = subprocess.run([command(), f"--loadEngine={engine}", "--useDLACore=0", "--device=cpu", *QUICK], text=True,
                          capture_output=True, timeout=120, check=True)
    assert "[W] --useDLACore is ignored: Ingot runs on GPUs and CPUs, not on a DLA" in done.stderr
    assert "[W]" not in done.stdout and "[I]" not in done.stderr and "&&&&" not in done.stderr


def test_time_limit_stops_it(engine):
    text = run(f"--loadEngine={engine}", "--duration=-1", "--timeout=0.3", "--warmUp=0", code=130)
    assert lines_of(text, "E") == ["stopped after the time limit of 300 ms"] and "&&&& FAILED" in text


def outputs_of(path):
    return [output["values"] for output in json.loads(path.read_text())]


def test_engines_without_weights_are_refitted_from_a_model(tmp_path):
    whole, bare = tmp_path / "whole.engine", tmp_path / "bare.engine"
    run("--onnx", DIGITS, f"--saveEngine={whole}", "--skipInference", "--refit")
    text = run("--onnx", DIGITS, f"--saveEngine={bare}", *QUICK, "--stripWeights")
    has_lines(text, ["Refit: Disabled", "Strip weights: Enabled", "=== Performance summary ==="])
    weights = sum(i.raw_data.__len__() or 4 * len(i.float_data) for i in onnx.load(DIGITS).graph.initializer)
    assert bare.stat().st_size < whole.stat().st_size - weights * 0.7
    text = run("--loadEngine", bare, code=1)
    assert lines_of(text, "E") == [f"{bare}: the engine has no weights, so nothing can run: give those of its model by "
                                   "--refitFromOnnx=FILE, or --skipInference to leave running out"]
    assert "&&&& FAILED" in text and "&&&& PASSED" in run("--loadEngine", bare, "--skipInference")
    full, again = tmp_path / "full.json", tmp_path / "again.json"
    run("--loadEngine", whole, *QUICK, f"--exportOutput={full}")
    text = run("--loadEngine", bare, f"--refitFromOnnx={DIGITS}", *QUICK, f"--exportOutput={again}", "--dumpRefit",
               "--timeRefit")
    has_lines(text, [f"Engine refitted in {NUMBER} sec.", "=== Refittable weights ===", "conv1.weight: f32.*",
                     f"Total refit time = {NUMBER} milliseconds in 3 iterations, average time = {NUMBER} milliseconds."])
    assert outputs_of(full) == outputs_of(again)


def test_other_weights_give_other_results(tmp_path):
    model = onnx.load(DIGITS)
    for initializer in model.graph.initializer:
        if initializer.data_type == TensorProto.FLOAT:
            initializer.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(initializer) * 2, initializer.name))
    other = tmp_path / "other.onnx"
    onnx.save(model, other)
    engine, built, refitted = tmp_path / "e.engine", tmp_path / "built.json", tmp_path / "refitted.json"
    run("--onnx", DIGITS, f"--saveEngine={engine}", "--skipInference", "--stripAllWeights")
    run("--onnx", other, *QUICK, f"--exportOutput={built}")
    run("--loadEngine", engine, f"--refitFromOnnx={other}", *QUICK, f"--exportOutput={refitted}")
    assert outputs_of(built) == outputs_of(refitted)


@pytest.mark.parametrize("budget", ["-1", "0", "50%", "1000", "2K", "1M"])
def test_weight_streaming_budgets(budget):
    text = run("--onnx", DIGITS, *QUICK, "--allowWeightStreaming", f"--weightStreamingBudget={budget}")
    has_lines(text, ["Weight Streaming: Enabled", "Weight streaming: the weights lie in the memory of the host.*"])
