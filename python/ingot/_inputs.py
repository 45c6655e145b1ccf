# SPDX-License-Identifier: Apache-2.0
"""The inputs of a call: given in their order or by name, on the host."""
import typing
from collections.abc import Mapping, Sequence

from ingot import _arrays, _ingot


def by_name(names: list[str], arrays: Sequence[typing.Any], named: Mapping[str, typing.Any],
            defaults: Mapping[str, typing.Any] | None = None) -> dict[str, typing.Any]:
    """Inputs given in their order or by name, and the defaults of others. Errors: TypeError."""
    if len(arrays) > len(names):
        raise TypeError(f"got {len(arrays)} inputs, expected {len(names)}: {', '.join(names)}")
    values = dict(zip(names, arrays))
    for name, value in named.items():
        if name not in names:
            raise TypeError(f"there is no input '{name}'; there are {', '.join(names)}")
        if name in values:
            raise TypeError(f"input '{name}' is given twice")
        values[name] = value
    for name, value in (defaults or {}).items():
        values.setdefault(name, value)
    missing = [name for name in names if name not in values]
    if missing:
        raise TypeError(f"inputs are missing: {', '.join(missing)}")
    return values


HostValue = tuple[int, _ingot.DataType, tuple[int, ...]]


def host_values(inputs: list[tuple[str, _ingot.DataType]],
                values: Mapping[str, typing.Any]) -> tuple[list[HostValue], list[object]]:
    """Address, type and shape of each input, and arrays to keep meanwhile. Errors: TypeError."""
    given: list[HostValue] = []
    held: list[object] = []
    for name, dtype in inputs:
        array = _arrays.from_any(f"input '{name}'", values[name], 0)
        if array.dtype != dtype:
            raise TypeError(f"input '{name}': got {array.dtype.name}, expected {dtype.name}")
        if array.on_gpu:
            raise TypeError(f"input '{name}': got an array of a GPU, expected one in host memory")
        given.append((array.address, array.dtype, array.shape))
        held.append(array)
    return given, held
