#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds the test of each option, attribute, run option and message of the execution provider for ONNX
Runtime, and writes docs/onnxruntime_tests.md.

  onnxruntime_tests.py [--write]      without: prints what has no test; exit code 1 if the page is old

A test counts for a name that its text holds, and for a message of which it expects 16 characters in a
row; the options without a test of their own are in the tests that read the plugin's table of options."""
import argparse
import ast
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "onnxruntime_tests.md"
PLUGIN = ROOT / "plugins" / "onnxruntime"
LEAST = 12  # characters of a part of a message that is looked at
SAME = 16  # characters in a row that a test expects of it
STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')


def python_tests():
    """{test: its texts, decorators included} of tests/python/test_onnxruntime_*.py."""
    found = {}
    for path in sorted((ROOT / "tests" / "python").glob("test_onnxruntime_*.py")):
        for node in ast.parse(path.read_text()).body:
            if not isinstance(node, ast.FunctionDef) or not node.name.startswith("test_"):
                continue
            texts = [n.value for part in [node, *node.decorator_list] for n in ast.walk(part)
                     if isinstance(n, ast.Constant) and isinstance(n.value, str)]
            texts += [k.arg for n in ast.walk(node) if isinstance(n, ast.Call) for k in n.keywords if k.arg]
            found[f"{path.name}::{node.name}"] = texts
    return found


def cpp_tests():
    """The same of tests/onnxruntime/*.cpp."""
    found = {}
    for path in sorted((ROOT / "tests" / "onnxruntime").glob("*_test.cpp")):
        parts = re.split(r"^TEST(?:_F)?\((\w+), (\w+)\)", path.read_text(), flags=re.M)
        for suite, name, body in zip(parts[1::3], parts[2::3], parts[3::3]):
            found[f"{suite}.{name}"] = literals(body)
    return found


def literals(text):
    """String literals of C++, adjacent ones joined."""
    joined = re.sub(r'"\s*\n\s*"', "", text)
    return [m[1].replace('\\"', '"').replace("\\n", "\n") for m in STRING.finditer(joined)]


def calls(text):
    """Arguments of every call of require(), fail(), bad_value() and invalid()."""
    for m in re.finditer(r"\b(?:require|fail|bad_value|invalid)\(", text):
        depth, at, quoted = 1, m.end(), False
        while depth:
            c = text[at]
            if quoted:
                at += c == "\\"
                quoted = c != '"'
            elif c == '"':
                quoted = True
            else:
                depth += (c == "(") - (c == ")")
            at += 1
        yield text[m.end():at - 1]


def messages():
    """{file: lists of the literal parts} of messages that a user can see."""
    found = {}
    for path in sorted(PLUGIN.glob("*.cpp")):
        for arguments in calls(path.read_text()):
            parts = [t for t in literals(arguments) if len(t) >= LEAST and " " in t]
            if parts and "ErrorCode::Internal" not in arguments:
                found.setdefault(path.name, []).append(parts)
    return found


def expects(texts, parts):
    """Whether a test's texts have a piece of the message."""
    pieces = [p for t in texts for p in re.split(r"\.\*|\n", t.replace("\\", "")) if len(p) >= LEAST]
    for part in parts:
        size = min(SAME, len(part))
        windows = {part[i:i + size] for i in range(len(part) - size + 1)}
        if any(p[i:i + size] in windows for p in pieces for i in range(len(p) - size + 1)):
            return True
    return False


def first_test(tests, accept):
    return next((name for name, texts in tests.items() if accept(texts)), "")


def named(tests, name):
    pattern = re.compile(rf"(?<![\w.]){re.escape(name)}(?!\w)")
    return first_test(tests, lambda texts: any(pattern.search(t) for t in texts))


def names_in(file, pattern):
    return sorted(set(re.findall(pattern, (PLUGIN / file).read_text())))


def options():
    return re.findall(r"INGOT_EP_OPTION\(\w+, (\w+),", (PLUGIN / "options.def").read_text())


# All options are in tests that read options.def.
OF_EVERY_OPTION = "test_onnxruntime_options.py::test_every_option_is_accepted_with_its_default"


def sections():
    """[(title, [(name, test)])]; "" where there is none."""
    tests = python_tests()
    both = tests | cpp_tests()
    run = names_in("run_settings.cpp", r'"((?:nv_profile_|gpu_graph_|cuda_graph_|memory\.)\w+)"')
    session = [n for n in names_in("options.cpp", r'"((?:ep|session)\.[\w.]+\w)"') if not n.endswith("_")]
    attributes = names_in("context.cpp", r'a\.(?:text|integer)\("(\w+)"')
    rows = [
        ("Options", [(n, named(tests, n) or OF_EVERY_OPTION) for n in options()]),
        ("Options of a session that the provider reads", [(n, named(tests, n)) for n in session]),
        ("Options of a run", [(n, named(tests, n)) for n in run]),
        ("Dynamic options", [(n, named(tests, n)) for n in ("ep.dynamic.workload_type",
                                                            "nv_weight_streaming_budget")]),
        ("Attributes of a compiled part", [(n, named(tests, n)) for n in attributes])]
    texts = [(" … ".join(parts), first_test(both, lambda t, p=parts: expects(t, p)))
             for lists in messages().values() for parts in lists]
    return rows + [("Messages", list(dict(texts).items()))]


def page():
    lines = ["# Tests of the ONNX Runtime execution provider", "",
             "Written by `tools/onnxruntime_tests.py --write`: a test for each name and message of the plugin.", ""]
    for title, rows in sections():
        lines += [f"## {title}", "", "| | test |", "|---|---|"]
        for name, test in rows:
            shown = name.replace("|", "\\|").replace("\n", " ")
            where, _, function = test.partition("::")
            lines.append(f"| `{shown}` | {f'{where}: `{function}`' if function else where or '—'} |")
        lines.append("")
    return "\n".join(lines)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--write", action="store_true", help="write docs/onnxruntime_tests.md")
    if parser.parse_args(arguments).write:
        PAGE.write_text(page())
    for title, rows in sections():
        missing = [name for name, test in rows if not test]
        print(f"{title}: {len(rows)}, without a test: {len(missing)}")
        for name in missing:
            print(f"    {name}")
    return 0 if PAGE.is_file() and PAGE.read_text() == page() else 1


if __name__ == "__main__":
    sys.exit(main())
