# SPDX-License-Identifier: Apache-2.0
"""Requests and responses of the Open Inference Protocol v2 over HTTP, with JSON and binary tensors.
Statuses and texts are those of Triton Inference Server."""
import dataclasses
import json
import typing
import zlib

import numpy as np
import rapidjson  # type: ignore[import-untyped, import-not-found, unused-ignore]

from ingot.ray import _tensors
from ingot.ray._errors import Refused
from ingot.ray._tensors import Array, Arrays

HEADER_LENGTH = "Inference-Header-Content-Length"
MOST_BYTES = 1 << 26  # of an unpacked body
_SOURCES = ("data", "binary_data_size", "shared_memory_region")


@dataclasses.dataclass
class Request:
    inputs: Arrays
    id: str = ""
    outputs: dict[str, bool] = dataclasses.field(default_factory=dict)  # name: whether in binary
    binary: bool = False  # outputs that are not named


def unpack(body: bytes, coding: str) -> bytes:
    """The body that Content-Encoding names. A body that is cut short, or none, gives its beginning.
    Errors: Refused."""
    if coding not in ("gzip", "deflate"):
        return body
    unpacked = b""
    try:
        unpacked = zlib.decompressobj(zlib.MAX_WBITS | 32).decompress(body, MOST_BYTES + 1)
    except zlib.error:
        pass
    if len(unpacked) > MOST_BYTES:
        raise Refused("INVALID_ARG", f"the request has more than {MOST_BYTES} bytes when it is unpacked")
    return unpacked


def read(body: bytes, header_length: str | None, model: str) -> Request:
    """Errors: Refused."""
    length = len(body)
    if header_length is not None:
        length = _number(header_length)
        if not 0 <= length <= len(body):
            raise Refused("INVALID_ARG", f"inference header size should be in range (0, {len(body)}), got: {length}")
    if length == 0:
        return Request({_tensors.RAW: np.frombuffer(body, np.uint8)})
    header = _parse(body[:length])
    request = Request({}, _text(header, "id") if _has(header, "id") else "")
    parameters = _member(header, "parameters")
    request.binary = _get(parameters, "binary_data_output") is True
    rest = memoryview(body)[length:]
    for entry in _list(header, "inputs"):
        name, array, rest = _input(entry, rest, model)
        if name in request.inputs:
            raise Refused("INVALID_ARG", f"input '{name}' already exists in request", True)
        request.inputs[name] = array
    if rest:
        raise Refused("INVALID_ARG", f"unexpected additional input data for model '{model}'")
    for entry in _list(header, "outputs") if _has(header, "outputs") else []:
        parameters = _member(entry, "parameters")
        for key in ("classification", "shared_memory_region"):
            if _get(parameters, key) is not None:
                raise Refused("UNSUPPORTED", f"parameter '{key}' of an output is not supported by this server")
        request.outputs[_text(entry, "name")] = _get(parameters, "binary_data", request.binary) is True
    return request


def write(model: str, version: str, request: Request, outputs: Arrays) -> tuple[bytes, dict[str, str]]:
    """The body of a response and its headers."""
    entries: list[dict[str, typing.Any]] = []
    parts: list[bytes] = []
    for name, array in outputs.items():
        entry: dict[str, typing.Any] = {"name": name, "datatype": _tensors.type_name(array),
                                        "shape": list(array.shape)}
        if request.outputs.get(name, request.binary):
            parts.append(np.ascontiguousarray(array).tobytes())
            entry["parameters"] = {"binary_data_size": len(parts[-1])}
        elif entry["datatype"] in ("FP16", "BF16"):
            raise Refused("INVALID_ARG", f"sending {entry['datatype']} data via JSON is not supported. Please use the "
                                         f"binary data format for output {name}")
        else:
            entry["data"] = array.ravel().tolist()
        entries.append(entry)
    head = json.dumps(({"id": request.id} if request.id else {})
                      | {"model_name": model, "model_version": version, "outputs": entries},
                      separators=(",", ":")).encode()
    if not parts:
        return head, {"Content-Type": "application/json"}
    return head + b"".join(parts), {"Content-Type": "application/octet-stream", HEADER_LENGTH: str(len(head))}


def _number(text: str) -> int:
    """The number that a text begins with, else 0."""
    sign = text[:1] == "-"
    digits = text[1:] if sign else text
    end = next((i for i, c in enumerate(digits) if c not in "0123456789"), len(digits))
    found = int(digits[:end][:18] or "0")
    return -found if sign else found


def _parse(data: bytes) -> typing.Any:
    try:
        return rapidjson.loads(data, number_mode=rapidjson.NM_NATIVE)
    except (RecursionError, rapidjson.JSONDecodeError) as error:
        place, _, text = str(error).partition(": ")
        raise Refused("INTERNAL", f"failed to parse the request JSON buffer: {text} at {place.split()[-1]}"
                      ) from None
    except UnicodeDecodeError:
        raise Refused("INTERNAL", "failed to parse the request JSON buffer: The document is empty. at 0"
                      ) from None


def _has(of: typing.Any, key: str) -> bool:
    return isinstance(of, dict) and key in of


def _get(of: typing.Any, key: str, otherwise: typing.Any = None) -> typing.Any:
    return of[key] if isinstance(of, dict) and key in of else otherwise


def _member(of: typing.Any, key: str) -> typing.Any:
    return _get(of, key, {})


def _wrong(key: str, text: str) -> Refused:
    return Refused("INTERNAL", f"Unable to parse '{key}': {text}")


def _present(of: typing.Any, key: str) -> typing.Any:
    if not _has(of, key):
        raise _wrong(key, f"attempt to access non-existing object member '{key}'")
    return of[key]


def _text(of: typing.Any, key: str) -> str:
    found = _present(of, key)
    if not isinstance(found, str):
        raise _wrong(key, "attempt to access JSON non-string as string")
    return found


def _list(of: typing.Any, key: str) -> list[typing.Any]:
    found = _present(of, key)
    if not isinstance(found, list):
        raise _wrong(key, "attempt to access JSON non-array as array")
    return found


def _unsigned(key: str, found: typing.Any) -> int:
    if isinstance(found, bool) or not isinstance(found, int) or found < 0:
        raise _wrong(key, "attempt to access JSON non-unsigned-integer as unsigned-integer")
    return int(found)


def _input(entry: typing.Any, rest: memoryview, model: str) -> tuple[str, Array, memoryview]:
    """Name, array, and the bytes of later inputs."""
    parameters = _member(entry, "parameters")
    found = [key for key in _SOURCES if _has(entry if key == "data" else parameters, key)]
    if len(found) != 1:
        told = "set " + " ".join(f"'{key}'" for key in found) if found else "no field is set"
        raise Refused("INVALID_ARG", "Input must set only one of the following fields: 'data', 'binary_data_size' in "
                                     "'parameters', 'shared_memory_region' in 'parameters'. But " + told)
    name = _text(entry, "name")
    shape = [_unsigned("shape", size) for size in _list(entry, "shape")]
    datatype = _text(entry, "datatype")
    try:
        kind = _tensors.numpy_type(datatype)
    except KeyError:
        raise Refused("INVALID_ARG", f"invalid datatype for input {name}") from None
    if found[0] == "shared_memory_region":
        raise Refused("UNSUPPORTED", f"input '{name}' is in shared memory, which a cluster does not have: send it "
                                     "in the request")
    if found[0] == "data":
        return name, _elements(name, datatype, kind, shape, _list(entry, "data")), rest
    size = _unsigned("binary_data_size", parameters["binary_data_size"])
    if size > len(rest):
        raise Refused("INVALID_ARG", f"unexpected size for input '{name}', expecting {size - len(rest)} additional "
                                     f"bytes for model '{model}'")
    return name, Sized(datatype, shape, rest[:size]).array(name, model), rest[size:]


@dataclasses.dataclass
class Sized:
    """Bytes that a request says are a tensor."""
    datatype: str
    shape: list[int]
    data: memoryview

    def array(self, name: str, model: str) -> Array:
        expected = _tensors.count_of(self.shape) * _tensors.numpy_type(self.datatype).itemsize
        if self.datatype != "BYTES" and len(self.data) != expected:
            raise Refused("INVALID_ARG", f"input byte size mismatch for input '{name}' for model '{model}'. Expected "
                                         f"{expected}, got {len(self.data)}", True)
        return _tensors.from_bytes(f"input '{name}'", self.datatype, self.shape, self.data)


# Kinds of numpy's types -> what JSON has for them.
_JSON: dict[str, tuple[typing.Any, str]] = {
    "f": ((int, float), "non-number as double"), "i": (int, "non-signed-integer as signed-integer"),
    "u": (int, "non-unsigned-integer as unsigned-integer"), "b": (bool, "non-boolean as boolean"),
    "O": (str, "non-string as string")}


def _elements(name: str, datatype: str, kind: np.dtype[typing.Any], shape: list[int],
              data: list[typing.Any]) -> Array:
    if datatype in ("FP16", "BF16"):
        raise Refused("INVALID_ARG", f"receiving {datatype} data via JSON is not supported. Please use the binary "
                                     f"data format for input {name}")
    flat: list[typing.Any] = []
    _flatten(data, flat)
    wanted, text = _JSON[kind.kind]
    for element in flat:
        if not isinstance(element, wanted) or (isinstance(element, bool) and kind.kind != "b"):
            raise _wrong("data", f"attempt to access JSON {text}")
    if len(flat) != _tensors.count_of(shape):
        raise _wrong("data", "Shape does not match true shape of 'data' field")
    try:
        values = [element.encode() for element in flat] if kind.kind == "O" else flat
        return np.array(values, kind).reshape(shape)
    except OverflowError:
        raise _wrong("data", f"a number does not fit {datatype}") from None


def _flatten(data: list[typing.Any], flat: list[typing.Any]) -> None:
    if not any(isinstance(element, list) for element in data):
        flat.extend(data)
        return
    for element in data:
        if isinstance(element, list):
            _flatten(element, flat)
        else:
            flat.append(element)
