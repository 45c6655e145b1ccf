# SPDX-License-Identifier: Apache-2.0
"""The rows of tools/mutations.py follow the sources: a stale row would notice nothing."""
import importlib.util
import pathlib

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools" / "mutations.py"


def load():
    spec = importlib.util.spec_from_file_location("mutations", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_each_row_finds_its_text_and_its_tests():
    tool = load()
    assert tool.stale_rows(tool.ROWS) == []


def test_stale_rows_are_named():
    tool = load()
    source, old, new, program, tests = next(row for row in tool.ROWS if not row[4].startswith("*"))
    assert tool.stale_rows([(source, "no such text", new, program, tests)]) == [
        f"{source}: this text does not occur once: 'no such text'"]
    assert tool.stale_rows([(source, old, new, program, "Nobody.NamedItSo")]) == [
        f"{source}: {program} has no test Nobody.NamedItSo"]
