# SPDX-License-Identifier: Apache-2.0
"""tests/ops/reference.case is what its generator writes, and the generator sees where its formulas and ONNX's
evaluator differ."""
import pathlib
import sys

import numpy as np
import pytest

OPS = pathlib.Path(__file__).resolve().parents[1] / "ops"
sys.path.insert(0, str(OPS))
import make_reference_cases  # noqa: E402
from reference import case  # noqa: E402


def test_the_file_is_what_the_generator_writes():
    written = (OPS / "reference.case").read_bytes().decode()
    assert make_reference_cases.text() == written, "run tests/ops/make_reference_cases.py and review the diff"


def test_a_formula_that_differs_from_onnx_is_refused():
    given = [case.Given("f32", [2], [1, -1])]
    with pytest.raises(AssertionError, match=r"(?s)op relu \| f32\[2\]:=1,-1\n  result 0 by its formula: "
                                             r"\[1.0, -1.0\]\n  by ONNX's evaluator: \[1.0, 0.0\]"):
        case.case("relu", {}, given, lambda x: x, onnx=lambda x: case.by_onnx("Relu", [x]))


@pytest.mark.parametrize("dtype, values, want", [
    ("bf16", [257, 259, -0.0], [256, 260, -0.0]), ("f16", [2049, 2051, 65519], [2048, 2052, 65504]),
    ("f8e5m2", [1.125, 1.375, 61440], [1, 1.5, np.inf]), ("f4e2m1", [0.25, 5, 7], [0, 4, 6])])
def test_values_are_rounded_to_the_nearest_and_ties_to_even(dtype, values, want):
    got = case.rounded(np.array(values), dtype)
    np.testing.assert_array_equal(got, np.array(want))
    np.testing.assert_array_equal(np.signbit(got), np.signbit(want))
