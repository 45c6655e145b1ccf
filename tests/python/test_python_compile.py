# SPDX-License-Identifier: Apache-2.0
"""ingot.compile() on the digits model: arrays of several libraries, threads, errors; and
ingot.config."""
import threading

import numpy as np
import onnxruntime
import pytest

import serving_models
from shim import package
from small_models import with_shapes_found_at_run_time

package.find()

import ingot  # noqa: E402

MODEL = package.DIGITS / "digits.onnx"
IMAGES = np.load(package.DIGITS / "held_out_images.npy").astype(np.float32)
LABELS = np.load(package.DIGITS / "held_out_labels.npy")


@pytest.fixture(scope="module")
def model():
    return ingot.compile(MODEL, device="cpu")


@pytest.fixture(scope="module")
def expected():
    session = onnxruntime.InferenceSession(MODEL, providers=["CPUExecutionProvider"])
    return session.run(None, {"image": IMAGES})[0]


def test_results_agree_with_onnxruntime(model, expected):
    result = model(IMAGES)
    assert isinstance(result, np.ndarray) and result.dtype == np.float32
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)
    assert (result.argmax(1) == LABELS).mean() > 0.9


@pytest.mark.parametrize("options", [{"fp16": True}, {"bf16": True}])
def test_lower_precision_recognises_digits_too(options):
    model = ingot.compile(MODEL, device="cpu", **options)
    assert (model(IMAGES).argmax(1) == LABELS).mean() > 0.9


def test_an_output_for_an_unknown_library_can_be_taken_more_than_once(monkeypatch):
    from ingot import _arrays

    class HostMemory:
        def __init__(self, size, device, stream):
            self.bytes = np.arange(size, dtype=np.uint8)
            self.address = self.bytes.ctypes.data

    monkeypatch.setattr(_arrays._cuda, "Memory", HostMemory)
    monkeypatch.setattr(_arrays, "CUDA", _arrays.CPU)
    tensor = _arrays.DeviceTensor((2, 3), ingot.uint8, 0, 0)
    first, second = np.from_dlpack(tensor), np.from_dlpack(tensor)
    del tensor
    np.testing.assert_array_equal(first, [[0, 1, 2], [3, 4, 5]])
    assert second.ctypes.data == first.ctypes.data


def test_what_a_model_tells_of_itself(model):
    assert model.device == "cpu" and model.device_error is None
    assert model.inputs == [ingot._compile.TensorSpec("image", (-1, 1, 8, 8), ingot.float32)]
    assert model.outputs[0].name == "scores"
    assert repr(model) == ("<ingot.CompiledModel image: FLOAT[-1, 1, 8, 8] -> scores: "
                           "FLOAT[-1, 10], cpu>")


def test_calls_may_leave_optional_inputs_out(tmp_path):
    path = serving_models.with_defaults(tmp_path / "model.onnx")
    x = np.array([1, 2], np.float32)
    fixed = ingot.compile(path, device="cpu")  # the defaults are constants
    assert [spec.name for spec in fixed.inputs] == ["x"] and fixed.defaults == {}
    saved = tmp_path / "model.engine"
    for model in (ingot.compile(path, device="cpu", optional_inputs=["scale", "shift"], save=saved),
                  ingot.compile(saved, device="cpu")):
        assert {name: value.tolist() for name, value in model.defaults.items()} == {"scale": [3], "shift": [10, 20]}
        assert not model.defaults["shift"].flags.writeable
        assert model(x).tolist() == [13, 26]
        assert model(x, shift=np.zeros(2, np.float32)).tolist() == [3, 6]
        assert model(x, np.array([5], np.float32)).tolist() == [15, 30]
        assert model.find_not_finite(x) == []
        with pytest.raises(TypeError, match="inputs are missing: x"):
            model(scale=np.ones(1, np.float32))
    with pytest.raises(ValueError, match="optional_inputs: they are for ONNX models, and this is an engine"):
        ingot.compile(saved, device="cpu", optional_inputs=["scale"])
    with pytest.raises(ValueError, match="the model cannot be read: .*'x'"):
        ingot.compile(path, device="cpu", optional_inputs=["x"])


def test_bytes_and_protobufs_and_engines_are_models(tmp_path, expected):
    import onnx
    path = tmp_path / "digits.engine"
    for source in (MODEL.read_bytes(), onnx.load(MODEL), str(MODEL)):
        model = ingot.compile(source, device="cpu", save=path)
        np.testing.assert_allclose(model(IMAGES[:3]), expected[:3], rtol=1e-4, atol=1e-4)
    again = ingot.compile(path, device="cpu")
    np.testing.assert_array_equal(again(IMAGES[:3]), model(IMAGES[:3]))
    again.save(tmp_path / "copy.engine")
    assert ingot.compile((tmp_path / "copy.engine").read_bytes(), device="cpu")(IMAGES).shape[1] == 10


def test_rows_have_the_same_bits_in_any_batch_when_that_is_asked_for(tmp_path):
    path = tmp_path / "digits.engine"
    model = ingot.compile(MODEL, device="cpu", batch_invariant=True, save=path)
    np.testing.assert_array_equal(model(IMAGES[:1]), model(IMAGES[:9])[:1])
    assert b"batch_invariant" in path.read_bytes()
    with pytest.raises(ValueError, match="it is for ONNX models, and this is an engine: build it with 'ingot build"):
        ingot.compile(path, device="cpu", batch_invariant=True)


def test_shapes_limit_what_is_taken():
    model = ingot.compile(MODEL, device="cpu", shapes={"image": ((1, 1, 8, 8), (4, 1, 8, 8),
                                                                 (8, 1, 8, 8))})
    assert model(IMAGES[:8]).shape == (8, 10)
    with pytest.raises(ValueError, match=r"input 'image': shape \[9, 1, 8, 8\] is refused: .+"):
        model(IMAGES[:9])
    fixed = ingot.compile(MODEL, device="cpu", shapes={"image": (2, 1, 8, 8)})
    assert fixed(IMAGES[:2]).shape == (2, 10)


class Dlpack:
    """An object of any library with DLPack."""

    def __init__(self, array):
        self.array, self.asked = array, 0

    def __dlpack__(self, **options):
        self.asked += 1
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_dense_inputs_are_not_copied(model):
    seen = []
    context_type = type(model._context())

    class Watch:
        def __init__(self, context):
            self.context = context

        def __getattr__(self, name):
            return getattr(self.context, name)

        def set_tensor_address(self, name, memory):
            seen.append((name, memory))
            return self.context.set_tensor_address(name, memory)

    context = model._context()
    assert isinstance(context, context_type)
    model._local.context = Watch(context)
    try:
        result = model(IMAGES)
        assert seen == [("image", IMAGES.ctypes.data), ("scores", result.ctypes.data)]
        seen.clear()
        tensor = Dlpack(IMAGES)
        result = model(tensor)
        assert seen[0] == ("image", IMAGES.ctypes.data) and tensor.asked == 1
    finally:
        model._local.context = context


def test_inputs_by_name_lists_and_strided_arrays(model, expected):
    np.testing.assert_allclose(model(image=IMAGES[:2]), expected[:2], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(model(IMAGES[::2]), expected[::2], rtol=1e-4, atol=1e-4)
    flipped = Dlpack(IMAGES[:4][::2])
    np.testing.assert_allclose(model(flipped), expected[:4][::2], rtol=1e-4, atol=1e-4)


def test_tensors_of_torch(model, expected):
    torch = pytest.importorskip("torch")
    result = model(torch.from_numpy(IMAGES))
    assert isinstance(result, torch.Tensor)
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-4, atol=1e-4)


def test_every_thread_has_its_own_context(model, expected):
    wrong = []

    def work(start):
        for _ in range(20):
            if not np.allclose(model(IMAGES[start:start + 5]), expected[start:start + 5], 1e-4, 1e-4):
                wrong.append(start)

    threads = [threading.Thread(target=work, args=(5 * i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_outputs_whose_size_depends_on_data():
    model = ingot.compile(with_shapes_found_at_run_time(), device="cpu")
    values = np.array([0, 1, 0, 2, 3, 0], np.float32)
    places, less = model(values)
    np.testing.assert_array_equal(places, [[1, 3, 4]])
    np.testing.assert_array_equal(less, -values)
    places, _ = model(np.zeros(6, np.float32))
    assert places.shape == (1, 0)


NO_FORMAT = ("the engine cannot be loaded: IRuntime::deserializeCudaEngine: engine format 0 (written by "
             "Ingot 0.0.0), this is Ingot 0.1.0, which reads formats 1 to 1; use a newer Ingot or "
             "rebuild the engine")


@pytest.mark.parametrize("call, error, text", [
    (lambda m: m(), TypeError, "inputs are missing: image"),
    (lambda m: m(IMAGES, IMAGES), TypeError, "got 2 inputs, expected 1: image"),
    (lambda m: m(x=IMAGES), TypeError, "there is no input 'x'; there are image"),
    (lambda m: m(IMAGES, image=IMAGES), TypeError, "input 'image' is given twice"),
    (lambda m: m(IMAGES.astype(np.float64)), TypeError,
     "input 'image': got numpy type float64, which the library does not have"),
    (lambda m: m(IMAGES.astype(np.int32)), TypeError, "input 'image': got INT32, expected FLOAT"),
    (lambda m: m(IMAGES[:, 0]), ValueError,
     "input 'image': got shape [360, 8, 8], expected [-1, 1, 8, 8]"),
    (lambda m: m(IMAGES[:, :, :4]), ValueError,
     "input 'image': got shape [360, 1, 4, 8], expected [-1, 1, 8, 8]"),
    (lambda m: m(object()), TypeError, "input 'image': got object, expected a numpy array or an "
     "object with __dlpack__, such as a tensor of torch, CuPy or JAX"),
    (lambda m: m(Dlpack(IMAGES.astype(np.complex64))), TypeError,
     "a DLPack array of code 5 and 64 bits: got a type that the library does not have"),
    (lambda m: ingot.compile("/no/such/model.onnx"), FileNotFoundError,
     "[Errno 2] No such file or directory: '/no/such/model.onnx'"),
    (lambda m: ingot.compile(b"no model"), ValueError,
     "the model cannot be read: not an ONNX model: byte 0: invalid wire type 6 of field 13"),
    (lambda m: ingot.compile(b"INGOT\r\n\x1a" + bytes(100), device="cpu"), RuntimeError, NO_FORMAT),
    (lambda m: ingot.compile(MODEL, device="tpu"), ValueError,
     "device: got 'tpu', expected auto, gpu, cpu, or the ordinal of a GPU"),
    (lambda m: ingot.compile(MODEL, shapes={"y": (1,)}), ValueError,
     "shapes: there is no input 'y'; there are image"),
    (lambda m: ingot.compile(MODEL, shapes={"image": ((1, 1, 8, 8), (2, 1, 8, 8))}), ValueError,
     "shapes['image']: got [(1, 1, 8, 8), (2, 1, 8, 8)], expected a shape or (min, opt, max)"),
    (lambda m: ingot.compile(MODEL, shapes={"image": ((3, 1, 8, 8), (2, 1, 8, 8), (4, 1, 8, 8))}),
     ValueError, "set_shape: input 'image': opt is not valid: sizes are not negative, ranks agree, "
     "and min <= opt <= max"),
    (lambda m: ingot.compile(MODEL, priority="urgent"), ValueError,
     "priority: got 'urgent', expected low, normal, high"),
    (lambda m: ingot.compile(MODEL, threads=0), ValueError, "threads: got 0, expected 1 or more"),
])
def test_misuse(model, call, error, text):
    with pytest.raises(error) as raised:
        call(model)
    assert str(raised.value) == text


@pytest.mark.parametrize("call, text", [
    (lambda: ingot.compile(MODEL, device=63), "device 63 cannot be used: ingot::setDevice: .+"),
    (lambda: ingot.compile(MODEL, int8=True), "the engine could not be built: .*[Cc]alibrat.*"),
])
def test_errors_of_the_library_are_told(call, text, capfd):
    """Whole, and by the exception alone."""
    with pytest.raises(RuntimeError, match=text):
        call()
    said = capfd.readouterr()
    assert not said.out and not said.err


def test_a_run_takes_no_more_threads_than_asked_for(monkeypatch, expected):
    made = []

    class Runtime(ingot.Runtime):
        def __init__(self, logger):
            super().__init__(logger)
            made.append(self)

    monkeypatch.setattr(ingot._ingot, "Runtime", Runtime)
    for threads in (1, 2):
        model = ingot.compile(MODEL, device="cpu", threads=threads)
        assert made[-1].max_threads == threads
        np.testing.assert_allclose(model(IMAGES), expected, rtol=1e-4, atol=1e-4)


def test_contexts_have_the_priority_asked_for(model):
    assert model._context().get_runtime_config().priority == "normal"
    for priority in ("low", "normal", "high"):
        made = ingot.compile(MODEL, device="cpu", priority=priority)
        assert made._context().get_runtime_config().priority == priority
    config = model.engine.create_runtime_config()
    assert config.priority == "normal"
    config.priority = "high"
    assert config.priority == "high"
    with pytest.raises(ValueError, match="priority: got 'urgent', expected low, normal or high"):
        config.priority = "urgent"
    assert config.priority == "high"


def test_the_callers_logger_gets_everything():
    class Logger(ingot.ILogger):
        def __init__(self):
            super().__init__()
            self.said = []

        def log(self, severity, msg):
            self.said.append((severity, msg))

    logger = Logger()
    with pytest.raises(ValueError):
        ingot.compile(b"no model", logger=logger)
    assert any(severity == ingot.ILogger.ERROR for severity, _ in logger.said)
    ingot.compile(MODEL, device="cpu", logger=logger)
    assert any(severity > ingot.ILogger.WARNING for severity, _ in logger.said)


def test_ctrl_c_stops_compile(listens_to_ctrl_c):
    import os
    import signal

    class Press(ingot.IProgressMonitor):
        def phase_start(self, *arguments):
            pass

        def step_complete(self, *arguments):
            os.kill(os.getpid(), signal.SIGINT)
            return True

        def phase_finish(self, *arguments):
            pass

    with pytest.raises(KeyboardInterrupt):
        ingot.compile(MODEL, device="cpu", progress_monitor=Press())
