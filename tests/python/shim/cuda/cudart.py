# SPDX-License-Identifier: Apache-2.0
"""The functions of cuda.cudart that programs of the tests use: those of libcudart where there is a
GPU, host memory where there is none. Results are tuples that start with an error code, as there."""
import ctypes
import enum
import glob


class cudaMemcpyKind(enum.IntEnum):
    cudaMemcpyHostToHost = 0
    cudaMemcpyHostToDevice = 1
    cudaMemcpyDeviceToHost = 2
    cudaMemcpyDeviceToDevice = 3
    cudaMemcpyDefault = 4


class cudaError_t(enum.IntEnum):
    cudaSuccess = 0
    cudaErrorInvalidValue = 1
    cudaErrorMemoryAllocation = 2


def _open_runtime():
    """libcudart of a machine with a GPU, or None."""
    if not glob.glob("/dev/nvidia[0-9]*"):
        return None
    names = ["libcudart.so", "libcudart.so.13", "libcudart.so.12",
             *glob.glob("/usr/local/cuda*/lib64/libcudart.so*")]
    for name in names:
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        count = ctypes.c_int()
        if library.cudaGetDeviceCount(ctypes.byref(count)) == 0 and count.value > 0:
            return library
    return None


_runtime = _open_runtime()
_host = {}  # address: the memory that stands for device memory


def cudaMalloc(size):
    if _runtime is not None:
        address = ctypes.c_void_p()
        code = _runtime.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(int(size)))
        return cudaError_t(code), address.value or 0
    buffer = (ctypes.c_char * (int(size) + 256))()
    address = (ctypes.addressof(buffer) + 255) // 256 * 256
    _host[address] = buffer
    return cudaError_t.cudaSuccess, address


def cudaFree(address):
    if _runtime is not None:
        return (_runtime.cudaFree(ctypes.c_void_p(int(address))),)
    found = _host.pop(int(address), None)
    ok = found is not None or int(address) == 0
    return (cudaError_t.cudaSuccess if ok else cudaError_t.cudaErrorInvalidValue,)


def cudaMemcpy(destination, source, size, kind):
    if _runtime is not None:
        return (_runtime.cudaMemcpy(ctypes.c_void_p(int(destination)), ctypes.c_void_p(int(source)),
                                    ctypes.c_size_t(int(size)), int(kind)),)
    ctypes.memmove(int(destination), int(source), int(size))
    return (cudaError_t.cudaSuccess,)


def cudaDeviceSynchronize():
    return (_runtime.cudaDeviceSynchronize() if _runtime is not None else cudaError_t.cudaSuccess,)


def cudaStreamCreate():
    if _runtime is None:
        return cudaError_t.cudaSuccess, 0
    stream = ctypes.c_void_p()
    return cudaError_t(_runtime.cudaStreamCreate(ctypes.byref(stream))), stream.value


def cudaStreamSynchronize(stream):
    if _runtime is None:
        return (cudaError_t.cudaSuccess,)
    return (_runtime.cudaStreamSynchronize(ctypes.c_void_p(int(stream))),)


def outstanding():
    """How many allocations of host memory have not been freed."""
    return len(_host)
