# SPDX-License-Identifier: Apache-2.0
"""bench/predict.py on a small model under the name of a case's."""
import json
import pathlib
import subprocess
import sys

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import ingot_command as ingot

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"
sys.path.insert(0, str(BENCH))
import predict  # noqa: E402


def run(*arguments):
    build = pathlib.Path(ingot.binary()).parent
    return subprocess.run([sys.executable, BENCH / "predict.py", "--build", build, *arguments], capture_output=True, text=True)


@pytest.fixture
def models(tmp_path):
    weights = np.random.default_rng(1).standard_normal((8, 3, 3, 3)).astype(np.float32)
    graph = helper.make_graph([helper.make_node("Conv", ["input", "w"], ["y"])], "g",
                              [helper.make_tensor_value_info("input", TensorProto.FLOAT, ["n", 3, 224, 224])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], [numpy_helper.from_array(weights, "w")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "resnet50.onnx")
    return tmp_path


def test_each_gpu_has_figures_a_time_and_its_basis(models):
    done = run("--models", models, "--cases", "resnet50_b1,resnet50_b32", "--out", models / "p.json")
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads((models / "p.json").read_text())
    assert list(result["figures"]) == ["A100", "RTX 4090", "B200", "RTX 5090"]
    for gpu in result["figures"]:
        one, many = (result["cases"][c][gpu] for c in ("resnet50_b1", "resnet50_b32"))
        assert 0 < one["ms"] < many["ms"], "the sizes of the case are those of the plan"
        assert 0 <= one["model_share"] <= 1
        assert result["figures"][gpu] in done.stdout
    assert "A100: 108 SMs at 1.4 GHz, 1400 GB/s" in done.stdout


def test_a_case_without_its_model_fails_and_the_others_are_printed(models):
    done = run("--models", models, "--cases", "resnet50_b1,swin_t_b1", "--for", "8.9")
    assert done.returncode == 1
    assert "| resnet50_b1 | " in done.stdout
    assert f"swin_t_b1 failed: {models / 'swin_t.onnx'} is missing: fill_weights.py writes it" in done.stdout


def test_unknown_gpus_are_refused(models):
    done = run("--models", models, "--for", "7.5")
    assert done.returncode == 2
    assert "--for: there is no 7.5, expected some of 8.0, 8.6, 8.9, 9.0, 10.0, 12.0" in done.stderr


def test_the_basis_is_counted_by_time():
    layers = [{"timeUs": 3.0, "timeBasis": "model"}, {"timeUs": 1.0, "timeBasis": "roofline"}, {"timeUs": None, "timeBasis": ""}]
    p = predict.prediction({"layers": layers})
    assert p == {"ms": 0.004, "model_share": 0.75, "untimed": 1}
    assert predict.cell(p) == "0.004 (75% model, 1 layers without a time)"
    with pytest.raises(ValueError, match="are by measured, expected model or roofline"):
        predict.prediction({"layers": [{"timeUs": 1.0, "timeBasis": "measured"}]})
