# SPDX-License-Identifier: Apache-2.0
"""ingot.config: fields and defaults, YAML, checks, building and loading."""
import numpy as np
import pytest

from shim import package

package.find()
pydantic = pytest.importorskip("pydantic")

from ingot.config import BuildConfig, InferenceConfig  # noqa: E402

MODEL = package.DIGITS / "digits.onnx"
SHAPES = {"min_shape": (1, 1, 8, 8), "opt_shape": (4, 1, 8, 8), "max_shape": (8, 1, 8, 8)}


def config(**fields):
    return BuildConfig(**({"onnx_path": str(MODEL), "engine_path": "digits.engine"} | fields))


def test_defaults():
    made = config()
    assert made.fp16 and not made.int8 and made.calibration_cache is None
    assert (made.max_workspace_gb, made.max_batch_size) == (4, 1)
    assert made.min_shape == made.opt_shape == made.max_shape == (1, 3, 640, 640)
    assert InferenceConfig(engine_path="x").device_id == 0
    assert InferenceConfig(engine_path="x").priority == "normal"


def test_yaml(tmp_path):
    path = tmp_path / "tensorrt.yaml"
    path.write_text("tensorrt:\n  onnx_path: a.onnx\n  engine_path: a.engine\n  fp16: true\n"
                    "  int8: false\n  max_workspace_gb: 4\n  max_batch_size: 8\n"
                    "  min_shape: [1, 3, 640, 640]\n  opt_shape: [8, 3, 640, 640]\n"
                    "  max_shape: [32, 3, 640, 640]\n")
    read = BuildConfig.from_yaml(path)
    assert read.max_shape == (32, 3, 640, 640) and read.max_batch_size == 8
    read.to_yaml(tmp_path / "again.yaml", section=None)
    assert BuildConfig.from_yaml(tmp_path / "again.yaml", section=None) == read
    with pytest.raises(KeyError, match="there is no section 'other'"):
        BuildConfig.from_yaml(path, section="other")


@pytest.mark.parametrize("fields, text", [
    ({"max_workspace_gb": 0}, "greater than or equal to 1"),
    ({"max_workspace_gb": 33}, "less than or equal to 32"),
    ({"max_batch_size": 0}, "greater than or equal to 1"),
    ({"min_shape": (1, 3)}, "different ranks"),
    ({"min_shape": (2, 3, 640, 640)}, "0 <= min <= opt <= max"),
    ({"fp_16": True}, "Extra inputs are not permitted"),
])
def test_checks(fields, text):
    with pytest.raises(pydantic.ValidationError, match=text):
        config(**fields)


def test_configurations_are_frozen():
    with pytest.raises(pydantic.ValidationError, match="frozen"):
        config().fp16 = False


def test_build_and_load(tmp_path):
    made = config(engine_path=str(tmp_path / "digits.engine"), fp16=False, **SHAPES)
    images = np.load(package.DIGITS / "held_out_images.npy").astype(np.float32)[:8]
    built = made.build(device="cpu")
    loaded = InferenceConfig(engine_path=made.engine_path, priority="low").load()
    np.testing.assert_allclose(loaded(images), built(images), rtol=1e-3, atol=1e-3)
    with pytest.raises(ValueError, match="is refused"):
        built(np.zeros((9, 1, 8, 8), np.float32))
    assert loaded._context().get_runtime_config().priority == "low"
    assert built._context().get_runtime_config().priority == "normal"


def test_priorities_are_three():
    with pytest.raises(pydantic.ValidationError, match="'low', 'normal' or 'high'"):
        InferenceConfig(engine_path="x", priority="urgent")
