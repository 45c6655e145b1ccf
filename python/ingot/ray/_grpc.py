# SPDX-License-Identifier: Apache-2.0
"""Requests and responses of Triton's gRPC service."""
import typing

import numpy as np
from tritonclient.grpc import service_pb2  # type: ignore[import-untyped, import-not-found, unused-ignore]

from ingot.ray import _http, _tensors
from ingot.ray._errors import Refused
from ingot.ray._tensors import Array, Arrays

# Ray pickles requests. Generated code names a module after its .proto file, which cannot be imported.
for _message in vars(service_pb2).values():
    if getattr(_message, "DESCRIPTOR", None) is not None:
        _message.__module__ = service_pb2.__name__

# Where a tensor's elements are when they are not in raw_input_contents.
_CONTENTS = {"BOOL": "bool_contents", "INT8": "int_contents", "INT16": "int_contents", "INT32": "int_contents",
             "INT64": "int64_contents", "UINT8": "uint_contents", "UINT16": "uint_contents",
             "UINT32": "uint_contents", "UINT64": "uint64_contents", "FP32": "fp32_contents",
             "FP64": "fp64_contents", "BYTES": "bytes_contents"}


def read(request: typing.Any) -> _http.Request:
    """A ModelInferRequest. Errors: Refused."""
    model, raw = request.model_name, request.raw_input_contents
    if raw and len(raw) != len(request.inputs):
        raise Refused("INVALID_ARG", f"expected tensor data for {len(request.inputs)} inputs but got {len(raw)} sets of "
                                     f"data for model '{model}'")
    found = _http.Request({}, request.id)
    for i, tensor in enumerate(request.inputs):
        if "shared_memory_region" in tensor.parameters:
            raise Refused("UNSUPPORTED", f"input '{tensor.name}' is in shared memory, which a cluster does not have: "
                                         "send it in the request")
        if any(size < 0 for size in tensor.shape):
            raise Refused("INVALID_ARG", f"input '{tensor.name}' has the shape {list(tensor.shape)}: sizes are 0 or "
                                         "more")
        try:
            _tensors.numpy_type(tensor.datatype)
        except KeyError:
            raise Refused("INVALID_ARG", f"invalid datatype for input {tensor.name}") from None
        if tensor.name in found.inputs:
            raise Refused("INVALID_ARG", f"input '{tensor.name}' already exists in request", True)
        found.inputs[tensor.name] = (
            _http.Sized(tensor.datatype, list(tensor.shape), memoryview(raw[i])).array(tensor.name, model)
            if raw else _typed(tensor, model))
    for output in request.outputs:
        for key in ("classification", "shared_memory_region"):
            if key in output.parameters:
                raise Refused("UNSUPPORTED", f"parameter '{key}' of an output is not supported by this server")
        found.outputs[output.name] = True
    return found


def _typed(tensor: typing.Any, model: str) -> Array:
    kind = _tensors.numpy_type(tensor.datatype)
    if tensor.datatype not in _CONTENTS:
        raise Refused("INVALID_ARG", f"{tensor.datatype} data of input '{tensor.name}' has to be in "
                                     "raw_input_contents")
    elements = getattr(tensor.contents, _CONTENTS[tensor.datatype])
    if len(elements) != _tensors.count_of(tensor.shape):
        raise Refused("INVALID_ARG", f"input byte size mismatch for input '{tensor.name}' for model '{model}'. Expected "
                                     f"{_tensors.count_of(tensor.shape) * kind.itemsize}, got "
                                     f"{len(elements) * kind.itemsize}", True)
    try:
        return np.array(list(elements), kind).reshape(tuple(tensor.shape))
    except OverflowError:
        raise Refused("INVALID_ARG", f"input '{tensor.name}' has a number that does not fit {tensor.datatype}"
                      ) from None


def write(model: str, version: str, request: _http.Request, outputs: Arrays) -> typing.Any:
    """A ModelInferResponse."""
    response = service_pb2.ModelInferResponse(model_name=model, model_version=version, id=request.id)
    for name, array in outputs.items():
        response.outputs.add(name=name, datatype=_tensors.type_name(array), shape=array.shape)
        response.raw_output_contents.append(np.ascontiguousarray(array).tobytes())
    return response
