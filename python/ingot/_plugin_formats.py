# SPDX-License-Identifier: Apache-2.0
"""Combinations of types and formats that a plugin of ingot.plugin supports."""
from __future__ import annotations

import itertools
from typing import Any, Callable, Iterable

from ingot._ingot import DataType, TensorFormat


class AutoTuneCombination:
    """Types and formats that a plugin supports, one text for each input, then each output:
    "FP32|FP16, FP32|FP16" are both FP32 or both FP16, "FP32*FP16, FP32" are independent. Types
    are FP32, FP16 and the names of DataType; formats those of TensorFormat, by default LINEAR.
    tactics are the plugin's own numbers of implementations, above 0: the build times them."""

    def __init__(self, io_types: str | None = None, layouts: str | None = None,
                 tactics: Iterable[int] | None = None) -> None:
        self.io_types: list[str | None] = [t.strip() for t in io_types.split(",")] if io_types else []
        self.layouts: list[str | None] = []
        if self.io_types:
            texts = [t.strip() for t in (layouts or "LINEAR").split(",")]
            if len(texts) not in (1, len(self.io_types)):
                raise ValueError(f"there are {len(self.io_types)} types and {len(texts)} formats, "
                                 "expected as many, or one format")
            self.layouts += texts * (len(self.io_types) if len(texts) == 1 else 1)
        self._tactics = list(tactics or ())

    def pos(self, pos: int | Iterable[int], io_types: str, layouts: str = "LINEAR") -> None:
        """Types and formats of some inputs and outputs, by index. Errors: ValueError for an
        index that has them already."""
        for i in [pos] if isinstance(pos, int) else pos:
            missing = i + 1 - len(self.io_types)
            self.io_types += [None] * missing
            self.layouts += [None] * missing
            if self.io_types[i] is not None:
                raise ValueError(f"types of position {i} are given already")
            self.io_types[i], self.layouts[i] = io_types, layouts

    def tactics(self, tactics: Iterable[int]) -> None:
        """The plugin's own numbers of implementations, above 0."""
        self._tactics = list(tactics)

    def _expanded(self, count: int) -> list[tuple[tuple[Any, Any], ...]]:
        if len(self.io_types) != count or None in self.io_types:
            raise ValueError(f"the combination {self.io_types} has to give types of {count} inputs and "
                             "outputs")
        types = _choices([_named(t, _type) for t in self.io_types])
        formats = _choices([_named(t, _format) for t in self.layouts])
        return [tuple(zip(t, f)) for t in types for f in formats]


def _type(name: str) -> DataType:
    name = {"FP32": "FLOAT", "FP16": "HALF"}.get(name, name)
    if name not in DataType.__members__:
        raise ValueError(f"there is no data type '{name}'")
    return DataType[name]


def _format(name: str) -> TensorFormat:
    if name not in TensorFormat.__members__:
        raise ValueError(f"there is no format '{name}'")
    return TensorFormat[name]


def _named(text: str | None, kind: Callable[[str], Any]) -> tuple[bool, list[Any]]:
    """The other positions on which the alternatives depend, if any."""
    text = text or ""
    if "|" in text and "*" in text:
        raise ValueError(f"'{text}' has both | and *")
    return "|" in text, [kind(word.strip()) for word in text.replace("*", "|").split("|")]


def _choices(places: list[tuple[bool, list[Any]]]) -> list[tuple[Any, ...]]:
    lengths = {len(options) for depends, options in places if depends}
    if len(lengths) > 1:
        raise ValueError(f"alternatives by | have {sorted(lengths)} entries, expected as many everywhere")
    found: list[tuple[Any, ...]] = []
    for together in range(max(lengths, default=1)):
        found += itertools.product(*[[options[together]] if depends else options
                                     for depends, options in places])
    return found
