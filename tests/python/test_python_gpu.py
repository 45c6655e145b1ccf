# SPDX-License-Identifier: Apache-2.0
"""ingot.compile() on a GPU: tensors of torch, CuPy and JAX go in and out without a copy, in the order
of the caller's stream; numpy arrays travel. On a machine that only has a wheel:

  pip install --target SITE dist/ingot-*-cp312-*.whl dist/ingot_tensorrt-*.whl
  INGOT_PYTHON_PATH=SITE python3 -m pytest tests/python/test_python_gpu.py tests/python/test_trt_spec.py
"""
import glob
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from shim import package
from small_models import with_shapes_found_at_run_time

if not glob.glob("/dev/nvidia[0-9]*"):
    pytest.skip("there is no GPU here: ingot.compile() was NOT tested on one",
                allow_module_level=True)
package.find()

import ingot  # noqa: E402

IMAGES = np.load(package.DIGITS / "held_out_images.npy").astype(np.float32)
LABELS = np.load(package.DIGITS / "held_out_labels.npy")


@pytest.fixture(scope="module")
def model():
    return ingot.compile(package.DIGITS / "digits.onnx", device="gpu")


@pytest.fixture(scope="module")
def expected():
    return ingot.compile(package.DIGITS / "digits.onnx", device="cpu")(IMAGES)


class Watch:
    """A context that records the addresses that it was given."""

    def __init__(self, context):
        self.context, self.addresses, self.streams = context, {}, []

    def __getattr__(self, name):
        return getattr(self.context, name)

    def set_tensor_address(self, name, memory):
        self.addresses[name] = memory
        return self.context.set_tensor_address(name, memory)

    def execute_async_v3(self, stream_handle):
        self.streams.append(stream_handle)
        return self.context.execute_async_v3(stream_handle)


@pytest.fixture
def watch(model):
    context = model._context()
    model._local.context = Watch(context)
    yield model._local.context
    model._local.context = context


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-2, atol=1e-2)


def test_numpy(model, expected):
    result = model(IMAGES)
    assert model.device == "gpu" and isinstance(result, np.ndarray)
    close(result, expected)
    assert (result.argmax(1) == LABELS).mean() > 0.95


def test_torch_without_a_copy_on_its_current_stream(model, watch, expected):
    torch = pytest.importorskip("torch")
    x = torch.zeros(IMAGES.shape, device="cuda")
    model(x)  # kernels are there
    stream = torch.cuda.Stream()
    source = torch.from_numpy(IMAGES).pin_memory()
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(200_000_000)  # cycles: the copy is still to come when the run is queued
        x.copy_(source, non_blocking=True)
        result = model(x)
        waiting = not stream.query()
    stream.synchronize()
    assert waiting and watch.streams[-1] == stream.cuda_stream
    assert watch.addresses == {"image": x.data_ptr(), "scores": result.data_ptr()}
    close(result.cpu().numpy(), expected)
    given = model(x, stream=stream)
    assert watch.streams[-1] == stream.cuda_stream
    stream.synchronize()
    close(given.cpu().numpy(), expected)


def test_torch_in_half(expected):
    torch = pytest.importorskip("torch")
    model = ingot.compile(package.DIGITS / "digits.onnx", device="gpu", fp16=True)
    result = model(torch.from_numpy(IMAGES).cuda())
    assert (result.argmax(1).cpu().numpy() == LABELS).mean() > 0.95


def test_cupy_without_a_copy_on_its_current_stream(model, watch, expected):
    cupy = pytest.importorskip("cupy")
    x = cupy.asarray(IMAGES)
    with cupy.cuda.Stream(non_blocking=True) as stream:
        cupy.cuda.get_current_stream().synchronize()
        result = model(x)
        stream.synchronize()
    assert isinstance(result, cupy.ndarray) and watch.streams == [stream.ptr]
    assert watch.addresses == {"image": x.data.ptr, "scores": result.data.ptr}
    close(cupy.asnumpy(result), expected)


def test_jax_without_a_copy(model, watch, expected):
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    jax = pytest.importorskip("jax")
    x = jax.device_put(IMAGES).block_until_ready()
    if x.__dlpack_device__()[0] != 2:
        pytest.skip("JAX has no GPU here")
    result = model(x)
    assert watch.addresses["image"] == x.unsafe_buffer_pointer()
    assert isinstance(result, jax.Array)
    close(np.asarray(result), expected)


def test_threads(model, expected):
    wrong = []

    def work(start):
        for _ in range(20):
            found = model(IMAGES[start:start + 5])
            if not np.allclose(found, expected[start:start + 5], 1e-2, 1e-2):
                wrong.append(start)

    threads = [threading.Thread(target=work, args=(5 * i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_sizes_that_depend_on_data():
    model = ingot.compile(with_shapes_found_at_run_time(), device="gpu")
    values = np.array([0, 1, 0, 2, 3, 0], np.float32)
    places, less = model(values)
    np.testing.assert_array_equal(getattr(places, "numpy", lambda: places)(), [[1, 3, 4]])
    np.testing.assert_array_equal(less, -values)


def test_what_is_wrong_is_said(model):
    with pytest.raises(RuntimeError, match="device 63 cannot be used: ingot::setDevice: .+"):
        ingot.compile(package.DIGITS / "digits.onnx", device=63)
    torch = pytest.importorskip("torch")
    on_cpu = ingot.compile(package.DIGITS / "digits.onnx", device="cpu")
    with pytest.raises(ValueError, match="input 'image': got a tensor in GPU memory, expected one"):
        on_cpu(torch.from_numpy(IMAGES).cuda())


def test_the_example_on_a_gpu(tmp_path):
    pytest.importorskip("cuda.bindings.runtime")
    script = package.REPOSITORY / "examples/python/classify.py"
    done = subprocess.run([sys.executable, script], cwd=tmp_path, text=True, capture_output=True,
                          env=os.environ | {"PYTHONPATH": package.python_path()}, check=False)
    assert done.returncode == 0, done.stderr
    assert "digits recognised on the GPU" in done.stdout
