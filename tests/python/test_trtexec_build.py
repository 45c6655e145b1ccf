# SPDX-License-Identifier: Apache-2.0
"""trtexec's flags of builds: types, shapes, int8, kernels ahead of time."""
import json
import re

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import ingot_command as ingot
from trtexec_command import (  # noqa: F401
    DIGITS, NUMBER, QUICK, calibration_cache, has_lines, lines_of, run, small_network, fixture_engine)


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
