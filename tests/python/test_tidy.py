# SPDX-License-Identifier: Apache-2.0
"""tools/tidy.py checks many sources at once: it must find the same faults as in each source
alone."""
import pathlib
import shutil
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import tidy  # noqa: E402
import tidy_batch  # noqa: E402

pytestmark = pytest.mark.skipif(shutil.which(tidy.PROGRAM) is None,
                                reason=f"no {tidy.PROGRAM}: its batches were NOT tested")
FLAGS = ["-std=c++20", "-Wall", "-Wextra", "-Wshadow"]

# Names that every source has for itself, and a local of the name that another has at file scope.
CLEAN = """
#include "shared.h"
#define TWICE(x) (2 * (x))
namespace demo {
namespace {
struct Part {
    int rows = 0;
};
constexpr int limit = 3;
const Part list[] = {{.rows = 1}, {.rows = 2}};
int helper(int limits) {
    return TWICE(limits) + limit;
}
} // namespace
static int rows_of(const Part& p) {
    return p.rows;
}
int clean_NUMBER() {
    int total = 0;
    for (const Part& part : list) {
        total += helper(rows_of(part));
    }
    return total;
}
} // namespace demo
"""
HEADER = """
#pragma once
namespace demo {
inline int shared_value() { return 1; }
}
"""
FAULTS = {
    "clang-diagnostic-unused-function": "static int unused(int a) { return a; }",
    "clang-diagnostic-unused-const-variable": "static const int unused = 3;",
    "clang-diagnostic-shadow": "int outer(int a) { { int a = 3; return a; } }",
    "readability-identifier-naming": "static int BadName(int a) { return a; }\n"
                                     "int user(int a) { return BadName(a); }",
    "readability-braces-around-statements": "int f(int a) { if (a > 1) return 2; return a; }",
    "modernize-use-nullptr": "int* g() { return 0; }",
    "bugprone-integer-division": "double h(int a, int b) { return a / b; }",
    "cppcoreguidelines-avoid-non-const-global-variables": "int counter = 0;",
    "performance-unnecessary-value-param": "struct Big { Big(const Big&); int v[99]; };\n"
                                           "int i(Big b) { return b.v[0]; }",
    "google-explicit-constructor": "struct J { J(int a) : v(a) {} int v; };",
    "modernize-use-using": "typedef int Number;\nNumber k() { return 1; }",
}


def look_at(folder, texts, header=HEADER):
    """The failing sources, and their messages."""
    source_folder = folder / "src"
    source_folder.mkdir()
    shutil.copy(ROOT / ".clang-tidy", folder)
    (source_folder / "shared.h").write_text(header)
    tasks = []
    for number, text in enumerate(texts):
        path = source_folder / f"part{number}.cpp"
        path.write_text(text)
        tasks.append(tidy.Task(path, FLAGS, [source_folder / "shared.h"], folder / f"key{number}"))
    report = tidy.Report()
    tidy.check_batch(tasks, folder, report)
    assert {task.source for task in tasks if not task.key.is_file()} == report.bad
    return sorted(path.name for path in report.bad), report


def clean(count):
    return [CLEAN.replace("NUMBER", str(number)) for number in range(count)]


def test_sources_with_equal_names_share_a_batch(tmp_path):
    bad, report = look_at(tmp_path, clean(3))
    assert bad == []
    assert report.alone == 0


def test_every_fault_is_found(tmp_path):
    faulty = [f"namespace demo {{\n{fault}\n}} // namespace demo\n" for fault in FAULTS.values()]
    bad, report = look_at(tmp_path, clean(2) + faulty)
    assert bad == sorted(f"part{2 + i}.cpp" for i in range(len(FAULTS)))
    said = "".join(report.said)
    assert [check for check in FAULTS if f"[{check}," not in said and f"[{check}]" not in said] == []


def test_faults_of_headers_are_found(tmp_path):
    bad, report = look_at(tmp_path, clean(2), HEADER.replace("shared_value()", "SharedValue()"))
    assert bad == ["part0.cpp", "part1.cpp"]
    assert len([text for text in report.said if "shared.h" in text.split(":")[0]]) == 1


def test_what_does_not_fit_together_is_looked_at_alone(tmp_path):
    first = clean(1)[0] + "namespace demo { struct Other { int a; }; }\n"
    second = clean(2)[1] + "namespace demo { struct Other { long b; }; }\n"
    bad, report = look_at(tmp_path, [first, second])
    assert bad == []
    assert report.alone > 0


def test_own_names_are_those_at_file_scope():
    text = CLEAN + "namespace demo {\nconst int known = 1;\nint known_too();\n}\n"
    names, members = tidy_batch.own_names(text)
    assert names == {"Part", "limit", "list", "helper", "rows_of"}
    assert members == set()
    changed = tidy_batch.renamed(text, 7)
    assert "p.rows" in changed and "rows_of_u7(part)" in changed and "PartU7& p" in changed
    assert changed.count("\n") == text.count("\n") + 1  # one macro is undefined at the end


def test_names_that_also_mean_other_things_stay():
    text = "namespace demo {\nnamespace {\nclass Part {\npublic:\n    int rows() const { return 1; }\n};\n" \
           "int rows(const Part& p) {\n    return p.rows();\n}\nusing demo::half;\nint half(Part p) {\n" \
           "    return half(p.rows());\n}\n} // namespace\n} // namespace demo\n"
    names, unclear = tidy_batch.own_names(text)
    assert names == {"Part", "rows", "half"}
    assert unclear == {"rows", "half"}
    overload = "bool half(int part) {\n    return half(Part(part)) != 0;\n}\n} // namespace demo\n"
    text_of_both = text.replace("using demo::half;\n", "").replace("} // namespace demo\n", overload)
    assert tidy_batch.own_names(text_of_both) == ({"Part", "rows", "half"}, {"rows", "half"})
    constructor = tidy_batch.renamed(text.replace("using demo::half;", "Part::Part() = default;"), 3)
    assert "PartU3::PartU3() = default;" in constructor
