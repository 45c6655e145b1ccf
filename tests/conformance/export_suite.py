#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the ONNX backend test suite of the installed onnx package as plain files.

  export_suite.py OUT_DIR

OUT_DIR/CASE/model.onnx and OUT_DIR/CASE/test_data_set_K/{input_I,output_I}.pb (TensorProto). A
value that is a sequence, an optional or a map has a line in test_data_set_K/note.txt instead.
OUT_DIR/cases.txt has one line a case, sorted by name, its fields separated by tabs:

  name  kind  rtol  atol  path          (kind: node, simple, pytorch-converted, pytorch-operator)

The suite's own rule: |got - expected| <= atol + rtol * |expected|, dtype and shape equal, and for
bfloat16 outputs an rtol of at least 2^-6. The files are the same on every run; a second run for the
same onnx and numpy does nothing.
"""
import argparse
import hashlib
import pathlib
import random
import shutil
import warnings

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

DATA_KINDS = ("simple", "pytorch-converted", "pytorch-operator")


def make_stamp():
    """The inputs of the files: the packages that make the cases, and this script."""
    script = hashlib.sha256(pathlib.Path(__file__).read_bytes()).hexdigest()
    return f"onnx {onnx.__version__} numpy {np.__version__} script {script}\n"


def load_cases():
    """Every case of the suite. Node cases are computed on import, partly from random numbers."""
    np.random.seed(0)
    random.seed(0)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        from onnx.backend.test.loader import load_model_tests
        cases = list(load_model_tests(kind="node"))
    for kind in DATA_KINDS:
        cases += load_model_tests(kind=kind)
    return sorted(cases, key=lambda c: (c.name, c.kind))


def write_value(folder, stem, value, info):
    """Writes one input or output; returns the note to leave where it is no tensor."""
    what = info.type.WhichOneof("value")
    if what != "tensor_type":
        return f"{stem} {info.name} {what.removesuffix('_type')}"
    if not isinstance(value, TensorProto):
        value = numpy_helper.from_array(np.asarray(value), info.name)
    elif value.name != info.name:
        copy = TensorProto()
        copy.CopyFrom(value)
        copy.name = info.name
        value = copy
    (folder / f"{stem}.pb").write_bytes(value.SerializeToString(deterministic=True))
    return None


def write_generated(case, folder):
    """A case that the onnx package computes."""
    (folder / "model.onnx").write_bytes(case.model.SerializeToString(deterministic=True))
    graph = case.model.graph
    for k, (inputs, outputs) in enumerate(case.data_sets):
        data = folder / f"test_data_set_{k}"
        data.mkdir()
        notes = [write_value(data, f"input_{i}", v, graph.input[i]) for i, v in enumerate(inputs)]
        notes += [write_value(data, f"output_{i}", v, graph.output[i])
                  for i, v in enumerate(outputs)]
        write_notes(data, notes)


def write_stored(case, folder):
    """A case that the onnx package stores as files, where other kinds of values are .pb too."""
    source = pathlib.Path(case.model_dir)
    shutil.copyfile(source / "model.onnx", folder / "model.onnx")
    graph = onnx.load(source / "model.onnx").graph
    given = {t.name for t in graph.initializer}
    infos = {"input": [v for v in graph.input if v.name not in given], "output": graph.output}
    for source_data in sorted(source.glob("test_data_set_*")):
        data = folder / source_data.name
        data.mkdir()
        notes = []
        for pb in sorted(source_data.glob("*.pb")):
            side, index = pb.stem.split("_")
            info = infos[side][int(index)]
            value = None
            if info.type.HasField("tensor_type"):
                value = TensorProto.FromString(pb.read_bytes())
            notes.append(write_value(data, pb.stem, value, info))
        write_notes(data, notes)


def write_notes(data, notes):
    notes = [n for n in notes if n]
    if notes:
        (data / "note.txt").write_text("\n".join(notes) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path, metavar="OUT_DIR")
    out = parser.parse_args().out
    stamp, stamp_file = make_stamp(), out / "stamp.txt"
    if stamp_file.exists() and stamp_file.read_text() == stamp:
        print(f"conformance suite: {out} is up to date")
        return
    out.mkdir(parents=True, exist_ok=True)
    stamp_file.unlink(missing_ok=True)
    lines = []
    for case in load_cases():
        folder = out / case.name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        write_generated(case, folder) if case.model is not None else write_stored(case, folder)
        lines.append(f"{case.name}\t{case.kind}\t{case.rtol:g}\t{case.atol:g}\t{case.name}\n")
    (out / "cases.txt").write_text("".join(lines))
    stamp_file.write_text(stamp)
    print(f"conformance suite: {len(lines)} cases of onnx {onnx.__version__} in {out}")


if __name__ == "__main__":
    main()
