# SPDX-License-Identifier: Apache-2.0
"""Writes tests/ops/reference.case: for every composite op, and dot of 8-bit floats, small inputs and results, by numpy in
float64 from the definitions (reference/formulas.py), compared with ONNX's reference evaluator where
that has the op. No part of Ingot runs. A test compares the file with this script's output, byte by
byte.

  make_reference_cases.py [FILE]      (- for standard output)
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from reference import case, quantized_cases, resize_cases, row_cases, sample_cases, spatial_cases  # noqa: E402

HEADER = """\
# Composites, with results from an independent source: numpy in float64, and ONNX's reference evaluator.
# Written by make_reference_cases.py: change that, not this.
"""


def text():
    case.CASES.clear()
    for family in (spatial_cases, row_cases, quantized_cases, resize_cases, sample_cases):
        family.add()
    return HEADER + "".join(case.CASES)


def main():
    target = sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).with_name("reference.case")
    if target == "-":
        sys.stdout.write(text())
    else:
        pathlib.Path(target).write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    main()
