# SPDX-License-Identifier: Apache-2.0
"""ingot.slim(): an ONNX model made simpler."""
import json
import os
import typing
from collections.abc import Mapping, Sequence

from ingot import _ingot
from ingot._compile import _Log

Shape = Sequence[int]


def _shapes(given: Mapping[str, Shape] | None) -> list[tuple[str, list[int]]]:
    return [(name, [int(size) for size in shape]) for name, shape in (given or {}).items()]


def slim(model: typing.Any, output: str | os.PathLike[str] | None = None, *,
         input_shapes: Mapping[str, Shape] | None = None,
         skip_optimizations: Sequence[str] | None = None, size_threshold: int = 64 << 20,
         mutable_initializer: bool = False, cut_strings: bool = False, save_as_external_data: bool = False,
         model_check: bool = False, shapes: Mapping[str, Shape] | None = None,
         inputs: Mapping[str, str | os.PathLike[str]] | None = None, seed: int = 0,
         atol: float = 1e-5, rtol: float = 1e-3,
         report: dict[str, typing.Any] | None = None) -> typing.Any:
    """Simplifies an ONNX model, as the command `ingot slim` does: folds constants, fuses nodes,
    removes dead and duplicate nodes. Inputs, outputs, opset and results stay.

        slimmed = ingot.slim("model.onnx")                # bytes of the slimmed model
        ingot.slim("model.onnx", "slimmed.onnx")          # into a file
        proto = ingot.slim(onnx.load("model.onnx"))       # an onnx.ModelProto gives one

    model: path of an ONNX file, its bytes, or an onnx.ModelProto. Bytes and protos hold their
        weights; above 2 GB only paths do.
    output: path to write to, whole or not at all; nothing is returned then. It may be the model's.
    input_shapes: {name: sizes}: fixes the sizes of inputs.
    skip_optimizations: rules, or groups of rules, that are left out: constant_folding,
        graph_fusion, dead_node_elimination, subexpression_elimination, weight_tying, ...
    size_threshold: the number of bytes by which a folded constant may exceed its operands.
    mutable_initializer: initializers that are inputs too stay inputs.
    cut_strings: operators at the ends that only make labels of strings are cut off; what they read
        becomes an output. save_as_external_data:
    weights go to a file beside `output`; above 2 GB they always do. model_check: runs the model
    before and after on the CPU on the same inputs and compares the
        outputs: |difference| <= atol + rtol * range of the output. `shapes` ({name: sizes}) and
        `inputs` ({name: path of a .npy, .png or .jpg file}) are of these runs; other inputs are
        random, from `seed`.
    report: a dict that is filled: "before" and "after", each with "operators" by type, "rules" that
        were applied, and how often, and "rounds".

    Threads: any. Errors: FileNotFoundError and OSError; TypeError for other objects; ValueError for
    a model that is not valid, unknown inputs or rules, and outputs that differ.
    """
    data: typing.Any = None
    path = ""
    if isinstance(model, (str, os.PathLike)):
        path = os.fspath(model)
        with open(path, "rb"):  # FileNotFoundError and its like
            pass
    elif hasattr(model, "SerializeToString"):
        data = model.SerializeToString()
    else:
        try:
            data = memoryview(model)
        except TypeError:
            raise TypeError(f"model: got {type(model).__name__}, expected a path, bytes or an "
                            f"onnx.ModelProto") from None
    log = _Log(None)
    target = "" if output is None else os.fspath(output)
    result = _ingot._slim_model(
        data, path, _shapes(input_shapes), list(skip_optimizations or ()), size_threshold,
        mutable_initializer, cut_strings, target, save_as_external_data, model_check, _shapes(shapes),
        [(name, os.fspath(file)) for name, file in (inputs or {}).items()], seed, atol, rtol, log)
    if result is None:
        raise ValueError(f"the model cannot be slimmed: {log.take()}")
    slimmed, told = result
    if report is not None:
        report.clear()
        report.update(json.loads(told))
    if output is not None:
        return None
    if hasattr(model, "SerializeToString"):
        proto = type(model)()
        proto.ParseFromString(slimmed)
        return proto
    return slimmed
