# SPDX-License-Identifier: Apache-2.0
"""INT8 through the TensorRT names: a calibrator gives the scales of `ingot calibrate` for the
same samples, and the engine computes in int8 like that of `ingot build --int8 --calib`."""
import numpy as np
import pytest

import ingot_command as ingot
from shim import package
from calibrated import fixture_digits, integer_products, read_cache  # noqa: F401
from ingot_command import DIGITS

package.find()

import tensorrt as trt  # noqa: E402

MODEL = str(DIGITS / "digits.onnx")


def samples():
    return np.load(DIGITS / "held_out_images.npy")[:64]


def calibrator(kind, batch, cache=b""):
    class Calibrator(getattr(trt, kind)):
        def __init__(self):
            super().__init__()
            self.images = np.ascontiguousarray(samples())
            self.at = 0
            self.cache = cache

        def get_batch_size(self):
            return batch

        def get_batch(self, names):
            assert names == ["image"]
            if self.at == len(self.images):
                return None
            part = self.images[self.at:self.at + batch]
            self.at += batch
            return [part.ctypes.data]

        def read_calibration_cache(self):
            return self.cache or None

        def write_calibration_cache(self, written):
            self.cache = bytes(written)

    return Calibrator()


def build(made, *flags, before=None):
    builder = trt.Builder(trt.Logger(trt.Logger.ERROR))
    network = builder.create_network(0)
    parser = trt.OnnxParser(network, builder.logger)
    assert parser.parse_from_file(MODEL)
    config = builder.create_builder_config()
    config.set_device(package.CPU)
    for flag in (trt.BuilderFlag.INT8, *flags):
        config.set_flag(flag)
    profile = builder.create_optimization_profile()
    profile.set_shape("image", (1, 1, 8, 8), (4, 1, 8, 8), (400, 1, 8, 8))
    config.add_optimization_profile(profile)
    config.int8_calibrator = made
    if before is not None:
        before(network, config)
    return builder.build_serialized_network(network, config)


@pytest.mark.parametrize("kind,algorithm", [("IInt8EntropyCalibrator2", "entropy2"),
                                            ("IInt8EntropyCalibrator", "entropy"),
                                            ("IInt8MinMaxCalibrator", "minmax"),
                                            ("IInt8MseCalibrator", "mse")])
def test_a_calibrator_gives_what_the_command_gives(digits, tmp_path, kind, algorithm):
    ingot.call("calibrate", MODEL, "--data", digits, "--algorithm", algorithm, "-o",
               tmp_path / "theirs")
    made = calibrator(kind, 16)
    engine = build(made)
    assert made.at == 64
    (tmp_path / "ours").write_bytes(made.cache)
    (head, ours), (other, theirs) = (read_cache(tmp_path / k) for k in ("ours", "theirs"))
    assert head == other
    common = set(ours) & set(theirs)
    assert "image" in common and "scores" in common and len(common) >= 5
    for name in common:
        assert ours[name] == pytest.approx(theirs[name], rel=1e-5), name
    (tmp_path / "q.engine").write_bytes(engine)
    assert integer_products(tmp_path / "q.engine") == (3, 0, 0)
    images = np.load(DIGITS / "held_out_images.npy")
    labels = np.load(DIGITS / "held_out_labels.npy")
    scores = ingot.run(tmp_path / "q.engine", {"image": images}, tmp_path / "run")["scores"]
    assert np.mean(scores.argmax(1) == labels) > 0.9


def test_a_cache_of_the_command_is_read(digits, tmp_path):
    ingot.call("calibrate", MODEL, "--data", digits, "-o", tmp_path / "cache")
    made = calibrator("IInt8EntropyCalibrator2", 16, (tmp_path / "cache").read_bytes())
    (tmp_path / "q.engine").write_bytes(build(made))
    assert made.at == 0
    assert integer_products(tmp_path / "q.engine") == (3, 0, 0)


def test_layers_can_be_kept_in_floats_and_ranges_be_set(tmp_path):
    def keep(network, config):
        config.set_flag(trt.BuilderFlag.OBEY_PRECISION_CONSTRAINTS)
        for layer in network:
            if layer.type == trt.LayerType.MATRIX_MULTIPLY:
                layer.precision = trt.float32
                layer.set_output_type(0, trt.float32)

    (tmp_path / "a.engine").write_bytes(
        build(calibrator("IInt8MinMaxCalibrator", 16), trt.BuilderFlag.FP16, before=keep))
    assert integer_products(tmp_path / "a.engine")[:2] == (2, 1)

    def ranges(network, config):
        config.int8_calibrator = None
        network.get_input(0).dynamic_range = (-1.0, 1.0)
        for layer in network:
            layer.get_output(0).dynamic_range = (-8.0, 8.0)

    (tmp_path / "b.engine").write_bytes(build(None, before=ranges))
    assert integer_products(tmp_path / "b.engine")[:2] == (3, 0)


class Pointer:
    """In the form of views of device memory in Polygraphy and CuPy."""

    def __init__(self, array):
        self.ptr = array.ctypes.data


class Device:
    """In the form of allocations of PyCUDA and cuda-python."""

    def __init__(self, array):
        self.address = array.ctypes.data

    def __int__(self):
        return self.address


class Tensor:
    """In the form of tensors of PyTorch."""

    def __init__(self, array):
        self.array = array

    def data_ptr(self):
        return self.array.ctypes.data


@pytest.mark.parametrize("view", [Pointer, Device, Tensor, lambda array: array])
def test_a_calibrator_gives_objects_with_addresses(view):
    plain, other = calibrator("IInt8MinMaxCalibrator", 16), calibrator("IInt8MinMaxCalibrator", 16)
    addresses = type(other).get_batch
    # The array lives no longer than the list that get_batch() returns.
    def get_batch(self, names):
        found = addresses(self, names)
        return found and [view(np.copy(self.images[self.at - 16:self.at]))]
    type(other).get_batch = get_batch
    if view in (Pointer, Device):  # which keep nothing alive
        type(other).get_batch = lambda self, names: (
            (found := addresses(self, names)) and [view(self.images[self.at - 16:self.at])])
    assert build(plain) is not None and build(other) is not None
    assert plain.cache == other.cache and len(plain.cache) > 100


@pytest.mark.parametrize("got,told", [("12", "'12'"), (3.5j, "3.5j"), (object, "<class 'object'>")])
def test_what_is_no_address_is_refused(got, told):
    made = calibrator("IInt8MinMaxCalibrator", 16)
    type(made).get_batch = lambda self, names: [got]
    with pytest.raises(TypeError) as raised:
        build(made)
    assert str(raised.value) == f"expected an address, as an integer, or an array that has one; got {told}"


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, lambda b: np.frombuffer(b, np.uint8)])
def test_caches_are_buffers(kind):
    """Polygraphy's calibrator calls tobytes() on its argument; read may return any buffer."""
    seen = []
    made = calibrator("IInt8EntropyCalibrator2", 16)
    type(made).write_calibration_cache = lambda self, cache: seen.append(cache)
    assert build(made) is not None
    assert isinstance(seen[0], memoryview)
    text = seen[0].tobytes()
    assert text.startswith(b"TRT-") and bytes(seen[0]) == text and len(seen[0]) == len(text)
    again = calibrator("IInt8EntropyCalibrator2", 16, text)
    type(again).read_calibration_cache = lambda self: kind(text)
    assert build(again) is not None and again.at == 0


@pytest.mark.parametrize("theirs", [True, False])
def test_histograms_of_a_legacy_calibrator(theirs):
    """With the arguments that TensorRT has, and without."""
    made = calibrator("IInt8LegacyCalibrator", 16)
    kept = []
    made.quantile, made.regression_cutoff = 0.999, 0.0
    if theirs:
        type(made).read_histogram_cache = lambda self, length: kept[0] if kept else None
        type(made).write_histogram_cache = lambda self, ptr, length: kept.append(bytes(ptr[:length]))
    else:
        type(made).read_histogram_cache = lambda self: kept[0] if kept else None
        type(made).write_histogram_cache = lambda self, cache: kept.append(cache.tobytes())
    assert build(made) is not None and made.at == 64 and len(kept) == 1
    first, made.cache, made.at = made.cache, b"", 0
    assert build(made) is not None and made.at == 0 and made.cache == first
