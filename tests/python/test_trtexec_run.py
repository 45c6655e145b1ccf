# SPDX-License-Identifier: Apache-2.0
"""trtexec's flags of runs and reports: inputs, expected outputs, debug tensors, exports."""
import json
import re

import numpy as np
import onnx
from onnx import TensorProto, helper

import ingot_command as ingot
from trtexec_command import (  # noqa: F401
    DIGITS, NUMBER, QUICK, STAMP, has_lines, lines_of, run, small_network, fixture_engine)


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
    assert "--profilingVerbosity=none leaves out the details of layers" in lines_of(none, "W")


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
