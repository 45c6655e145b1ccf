# SPDX-License-Identifier: Apache-2.0
"""docs/onnxruntime_tests.md: the test of each option, attribute and message of the execution provider."""
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import onnxruntime_tests as page  # noqa: E402

# Calls that ONNX Runtime does not make, and a state that takes a GPU.
WITHOUT = {"' is missing", "the parser failed", "there is room for  …  factories, expected 1 or more",
           "an allocator is asked for memory that is on no GPU of this provider",
           "a stream is asked for on no GPU of this provider",
           "a stream is asked for on another GPU than the session's",
           "session.fail_on_suboptimal_compiled_model"}


def test_page_is_that_of_the_tests():
    assert page.PAGE.read_text() == page.page(), "run tools/onnxruntime_tests.py --write"


def test_everything_but_these_has_a_test():
    rows = [row for _, rows in page.sections() for row in rows]
    assert {name for name, test in rows if not test} == WITHOUT
    assert len(rows) > 100


def test_what_counts_as_a_test():
    parts = ["input '", "' has size ", ", expected 2 to 8 (profile 0)"]
    assert page.expects([r"in dimension 0, expected 2 to 8 \(profile 0\)"], parts)
    assert not page.expects(["expected 2 to 9, and more"], parts)
    tests = {"a": ["nv_profile"], "b": ["x nv_profile_index y"]}
    assert page.named(tests, "nv_profile_index") == "b" and page.named(tests, "profile") == ""
    assert list(page.calls('f(require(a == ")", B, "x (", y(1)));')) == ['a == ")", B, "x (", y(1)']
    assert page.literals('"a" \n "b", "c\\"d"') == ["ab", 'c"d']
