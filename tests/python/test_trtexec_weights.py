# SPDX-License-Identifier: Apache-2.0
"""trtexec's flags of weights: refits and weight streaming."""
import json

import onnx
import pytest
from onnx import TensorProto, numpy_helper

from trtexec_command import DIGITS, NUMBER, QUICK, has_lines, lines_of, run


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
