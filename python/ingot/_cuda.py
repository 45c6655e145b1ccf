# SPDX-License-Identifier: Apache-2.0
"""The few functions of the CUDA driver that ingot.compile() needs for arrays in host memory, by
ctypes: device memory in the order of a stream, copies, waiting; and where pip puts NVRTC."""
import contextlib
import ctypes
import functools
import glob
import importlib.util
import os
import typing
from collections.abc import Iterator

HOST_TO_DEVICE = "cuMemcpyHtoDAsync_v2"
DEVICE_TO_HOST = "cuMemcpyDtoHAsync_v2"


def tell_where_nvrtc_is() -> None:
    """Points the library to the compiler in the package nvidia-cuda-nvrtc, which PyTorch
    installs too, unless INGOT_NVRTC names one. Without either, the library tries those of the
    machine."""
    nvidia = importlib.util.find_spec("nvidia")
    for folder in (nvidia.submodule_search_locations or []) if nvidia else []:
        for path in sorted(glob.glob(f"{glob.escape(folder)}/*/lib/libnvrtc.so.1[23]"), reverse=True):
            os.environ.setdefault("INGOT_NVRTC", path)


@functools.lru_cache(maxsize=1)
def _driver() -> ctypes.CDLL:
    return ctypes.CDLL("libcuda.so.1")


def _call(name: str, *arguments: typing.Any) -> None:
    code = getattr(_driver(), name)(*arguments)
    if code != 0:
        text = ctypes.c_char_p()
        _driver().cuGetErrorString(code, ctypes.byref(text))
        raise RuntimeError(f"{name}: {(text.value or b'unknown error').decode()}")


@functools.lru_cache(maxsize=None)
def _primary_context(device: int) -> ctypes.c_void_p:
    context = ctypes.c_void_p()
    _call("cuInit", 0)
    _call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    return context


@contextlib.contextmanager
def current(device: int | None) -> Iterator[None]:
    """Makes the context that all libraries share the current one; does nothing for None."""
    if device is None:
        yield
        return
    _call("cuCtxPushCurrent_v2", _primary_context(device))
    try:
        yield
    finally:
        _call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))


class Memory:
    """Bytes of device memory, freed in the order of the stream on which they were allocated."""

    def __init__(self, size: int, device: int, stream: int) -> None:
        self.size, self.device, self.stream, self.address = size, device, stream, 0
        pointer = ctypes.c_uint64()
        with current(device):
            _call("cuMemAllocAsync", ctypes.byref(pointer), ctypes.c_size_t(max(size, 1)),
                  ctypes.c_void_p(stream))
        self.address = pointer.value

    def __del__(self) -> None:
        if self.address:
            with current(self.device):
                _driver().cuMemFreeAsync(ctypes.c_uint64(self.address),
                                         ctypes.c_void_p(self.stream))


def copy(kind: str, destination: int, source: int, size: int, stream: int) -> None:
    """Queues a copy of `size` bytes between addresses."""
    if size == 0:
        return
    device, host = ctypes.c_uint64, ctypes.c_void_p
    ends = ((device(destination), host(source)) if kind == HOST_TO_DEVICE else
            (host(destination), device(source)))
    _call(kind, *ends, ctypes.c_size_t(size), ctypes.c_void_p(stream))


def synchronize(stream: int) -> None:
    _call("cuStreamSynchronize", ctypes.c_void_p(stream))
