# SPDX-License-Identifier: Apache-2.0
"""The scripts under examples/ work as described, on their models and pictures."""
import importlib.util
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

import ingot_command as ingot
from models import REPOSITORY, ort_session, shared_models
from shim import package

EXAMPLES = REPOSITORY / "examples"
needs_models = pytest.mark.skipif(
    shared_models() is None,
    reason="no shared/models beside the clone (set INGOT_SHARED): the example was NOT run")


def run_example(script, *options):
    command = [sys.executable, EXAMPLES / script, "--ingot", ingot.binary(), *options]
    done = subprocess.run([str(part) for part in command], text=True, timeout=600,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout
    return done.stdout


def load_example(script):
    spec = importlib.util.spec_from_file_location("example", EXAMPLES / script)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_digits_demo():
    text = run_example("digits/demo.py")
    reached = float(re.search(r"accuracy on 360 held-out digits: ([0-9.]+)%", text).group(1))
    stated = float(re.search(r"([0-9.]+) %", (EXAMPLES / "digits/README.md").read_text()).group(1))
    assert reached == stated
    assert "=== Performance summary ===" in text
    assert ingot.median_latency(text) > 0


@needs_models
def test_finds_the_face():
    faces = load_example("faces/faces.py")
    models = shared_models() / "pretrained"
    scores, boxes = faces.run_model(ingot.binary(), models / "ultraface_rfb_320.onnx",
                                    models / "kimono.jpg")
    kept = faces.best_boxes(scores, boxes, 0.7)
    assert len(kept) == 1
    assert scores[kept[0]] > 0.99
    known = np.array([[0.486, 0.169, 0.533, 0.252]])
    assert faces.overlap(boxes[kept[0]], known)[0] > 0.9


@needs_models
def test_finds_the_face_in_int8_by_every_algorithm(tmp_path):
    text = run_example("faces/faces.py", "--int8", "--out", tmp_path / "faces.png")
    for algorithm in load_example("faces/faces.py").ALGORITHMS:
        assert f"int8 by {algorithm}: 1 of 1 faces" in text
        score = re.search(rf"int8 by {algorithm}: face: score ([0-9.]+) at", text).group(1)
        assert float(score) > 0.98


@needs_models
def test_draws_the_face(tmp_path):
    assert "1 faces drawn" in run_example("faces/faces.py", "--out", tmp_path / "faces.png")
    drawn = np.asarray(Image.open(tmp_path / "faces.png"))
    original = np.asarray(Image.open(shared_models() / "pretrained" / "kimono.jpg").convert("RGB"))
    assert drawn.shape == original.shape
    assert 0 < (drawn != original).any(axis=-1).mean() < 0.02


@needs_models
def test_paints_what_onnxruntime_paints(tmp_path):
    run_example("painting/painting.py", "--out", tmp_path / "painting.png")
    painting = np.asarray(Image.open(tmp_path / "painting.png"), np.float32)
    models = shared_models() / "pretrained"
    picture = Image.open(models / "cat.png").convert("RGB").resize((224, 224), Image.BILINEAR)
    pixels = np.asarray(picture, np.float16).transpose(2, 0, 1)[None]
    expected = ort_session(models / "starry_night_fp16.onnx").run(None, {"0": pixels})[0][0]
    expected = np.clip(expected.astype(np.float32), 0, 255).transpose(1, 2, 0)
    # How a picture is shrunk to 224x224 is a matter of taste, and brush strokes move with
    # it; the photograph itself is 56 away from the painting.
    assert np.abs(painting - expected).mean() < 25


@needs_models
def test_classifies_as_recorded():
    assert "largest difference" in run_example("imagenet/imagenet.py")


def test_nan_is_no_recorded_score():
    agree = load_example("imagenet/imagenet.py").agree
    recorded = np.array([[1, 5, 2]], np.float32)
    assert agree(recorded + 0.001, recorded) and not agree(recorded[:, ::-1] * 2, recorded)
    for k in range(3):
        scores = recorded.copy()
        scores[0, k] = np.nan
        assert not agree(scores, recorded) and not agree(scores, scores)


def recognised(text):
    """How many of the 360 digits."""
    return int(re.search(r"(\d+) of 360 digits recognised", text).group(1))


def run_python_example(folder, script, *options):
    package.find()
    done = subprocess.run([sys.executable, EXAMPLES / "python" / script, *options], cwd=folder,
                          env=os.environ | {"PYTHONPATH": package.python_path()}, text=True,
                          timeout=300, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_python_classifies_digits(tmp_path):
    assert recognised(run_python_example(tmp_path, "classify.py")) > 350


def test_python_builds_from_yaml(tmp_path):
    (tmp_path / "examples").symlink_to(EXAMPLES)
    said = run_python_example(tmp_path, "from_yaml.py", "examples/python/tensorrt.yaml")
    assert said.startswith("<ingot.CompiledModel image: FLOAT[-1, 1, 8, 8]")
    assert (tmp_path / "digits.engine").exists()


@pytest.mark.parametrize("cuda", [False, True])
def test_cpp_classifies_digits(tmp_path, prefix, cuda):
    """With CUDA, if present, it compiles; it runs on the available device."""
    configure = ["cmake", "-S", EXAMPLES / "cpp", "-B", tmp_path, f"-DCMAKE_PREFIX_PATH={prefix}",
                 "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror",
                 "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON",
                 f"-DCMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit={'OFF' if cuda else 'ON'}"]
    done = subprocess.run(list(map(str, configure)), text=True, capture_output=True, check=True)
    if cuda and "WITH_CUDA" not in (tmp_path / "compile_commands.json").read_text():
        pytest.skip(f"CUDA's toolkit is not here: {done.stderr}")
    subprocess.run(["cmake", "--build", tmp_path], check=True, stdout=subprocess.DEVNULL)
    said = subprocess.run([tmp_path / "classify", EXAMPLES / "digits"], text=True, check=True,
                          capture_output=True).stdout
    assert recognised(said) > 350
