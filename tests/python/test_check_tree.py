# SPDX-License-Identifier: Apache-2.0
"""tools/check_tree.py finds each kind of violation, and none in a clean tree."""
import pathlib
import subprocess
import sys

import pytest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "tools" / "check_tree.py"
sys.path.insert(0, str(SCRIPT.parent))
from check_tree import list_files, read_kernels, read_rooms  # noqa: E402

LICENCE = "SPDX-License-Identifier: Apache-2.0"
CPP = f"// {LICENCE}\n"
PY = f"# {LICENCE}\n"


def check(root, files):
    """(exit code, output lines) of the script over a tree of these files."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    done = subprocess.run([sys.executable, str(SCRIPT), str(root)], capture_output=True, text=True,
                          check=False)
    assert not done.stderr
    return done.returncode, done.stdout.splitlines()


def include(name):
    return f'{CPP}#include "{name}"\n'


def test_a_clean_tree_passes(tmp_path):
    code, lines = check(tmp_path, {
        "CMakeLists.txt": PY,
        "src/base/a.h": CPP + "#include <vector>\n#include <sys/stat.h>\n",
        "src/ir/b.cpp": CPP + '#include "base/a.h"\n#include "ir/b.h"\n',
        "src/passes/c.cpp": include("ops/ops.h"),
        "src/engine/d.cpp": include("plan/backend.h"),
        "src/api/i.cpp": include("backends/backends.h"),
        "src/kernels/family.cpp": include("kernels/family.h"),
        "src/kernels/gemm/i.cpp": include("kernels/family.h") + '#include "kernels/gemm/i.h"\n'
                                  '#include "kernels/common/text.h"\n#include "kernels/gemv/gemv.h"\n',
        "src/backends/cpu/e.cpp": CPP + '#include "backends/cpu/e.h"\n#include "plan/plan.h"\n',
        "tools/ingot/f.cpp": CPP + '#include "workflow/build.h"\n#include "common.h"\n',
        "include/NvX.h": include("NvInferVersion.h") + '#include "ingot/engine.h"\n',
        "src/api/h.cpp": include("NvInfer.h") + '#include "workflow/build.h"\n',
        "plugins/triton/j.cpp": include("plugins/triton/j.h") + '#include "plugins/common/gpu.h"\n'
                                '#include "base/error.h"\n#include "NvInfer.h"\n#include "j.def"\n'
                                '#include "ingot_onnxruntime.h"\n#include "triton/core/tritonbackend.h"\n',
        "tests/base/g.cpp": include("engine/anything.h") + "// /" + "tmp/x\n",
        "README.md": "a path such as /" + "home/you is fine here\n",
        "build/generated.cpp": "no licence, but not ours",
        "build-x/generated.cpp": "no licence, but not ours",
    })
    assert (code, lines) == (0, ["0 violations, 0 warnings"])


@pytest.mark.parametrize("path, included", [
    ("src/base/x.h", "ir/graph.h"),
    ("src/ir/x.cpp", "ops/ops.h"),
    ("src/ops/x.cpp", "onnx/model.h"),
    ("src/ops/x.cpp", "passes/pipeline.h"),
    ("src/onnx/ops/x.cpp", "passes/pipeline.h"),
    ("src/onnx/x.cpp", "kernels/kernel.h"),
    ("src/passes/x.cpp", "onnx/model.h"),
    ("src/plan/x.h", "passes/pipeline.h"),
    ("src/plan/x.cpp", "run/runner.h"),
    ("src/lower/x.cpp", "run/runner.h"),
    ("src/run/x.cpp", "lower/lowering.h"),
    ("src/slim/x.cpp", "workflow/build.h"),
    ("src/cache/x.cpp", "plan/backend.h"),
    ("src/passes/x.cpp", "plan/kernel.h"),
    ("src/kernels/common/x.cpp", "kernels/contraction/contraction.h"),
    ("src/kernels/contraction/x.cpp", "kernels/gemm/gemm.h"),
    ("src/kernels/gemv/x.h", "kernels/quantized_dot/tiles.h"),
    ("src/kernels/quantized_dot/x.cpp", "kernels/gemm/gemm.h"),
    ("src/kernels/gemm/x.cpp", "kernels/conv/conv_shape.h"),
    ("src/kernels/conv/x.cpp", "kernels/gemv/gemv.h"),
    ("src/kernels/pointwise/x.cpp", "kernels/reduce/reduce_rows.h"),
    ("src/kernels/family.h", "kernels/common/text.h"),
    ("src/backends/cpu/x.cpp", "engine/engine.h"),
    ("src/backends/cpu/x.cpp", "backends/cuda/driver.h"),
    ("src/backends/cuda/x.cpp", "backends/cpu/kernel.h"),
    ("src/engine/x.cpp", "onnx/importer.h"),
    ("src/engine/x.cpp", "backends/cpu/kernel.h"),
    ("src/workflow/x.cpp", "backends/cpu/kernel.h"),
    ("src/engine/x.cpp", "backends/backends.h"),
    ("src/api/x.cpp", "backends/cuda/backend.h"),
    ("src/api/x.cpp", "kernels/arch.h"),
    ("src/workflow/x.cpp", "../tools/x.h"),
    ("tools/ingot/x.cpp", "backends/cpu/kernel.h"),
    ("include/NvX.h", "base/error.h"),
    ("include/ingot/x.h", "x.h"),
    ("src/engine/x.cpp", "NvInfer.h"),
    ("src/workflow/x.h", "ingot/network.h"),
    ("plugins/triton/x.cpp", "engine/engine.h"),
    ("plugins/onnxruntime/x.h", "onnx/model.h"),
    ("plugins/onnxruntime/x.cpp", "ops/ops.h"),
    ("plugins/common/x.h", "api/options.h"),
    ("plugins/triton/x.cpp", "plugins/onnxruntime/host.h"),
    ("plugins/common/x.h", "plugins/triton/host.h"),
    ("src/api/x.cpp", "plugins/common/gpu.h"),
    ("tools/ingot/x.cpp", "plugins/triton/host.h"),
])
def test_includes_go_one_way(tmp_path, path, included):
    code, lines = check(tmp_path, {path: include(included)})
    assert code == 1
    assert lines[0].startswith(f"{path}:2: ") and f'may not include "{included}"' in lines[0]


@pytest.mark.parametrize("path, line, included", [
    ("src/ir/x.cpp", "#include <ops/ops.h>", "ops/ops.h"),
    ("src/engine/x.h", "# include <NvInfer.h>", "NvInfer.h"),
    ("src/kernels/gemv/x.cpp", "#include <kernels/gemm/gemm.h> // why", "kernels/gemm/gemm.h"),
    ("plugins/triton/x.cpp", "#include <engine/engine.h>", "engine/engine.h"),
    ("src/ir/x.def", '#include "ops/ops.h"', "ops/ops.h"),
    ("src/backends/cpu/simd/x.inl", '#include "backends/cuda/driver.h"', "backends/cuda/driver.h"),
    ("src/base/x.cpp", '#/**/include "../ir/graph.h"', "../ir/graph.h"),
    ("src/base/x.cpp", '#include/**/"ir/graph.h"', "ir/graph.h"),
    ("src/ir/x.cpp", "#include <../src/ops/ops.h>", "../src/ops/ops.h"),
    ("src/ir/x.cpp", '#include "base/../ops/ops.h"', "base/../ops/ops.h"),
    ("src/ir/x.cpp", '#include "./../ops/ops.h"', "./../ops/ops.h"),
    ("tools/ingot/x.cpp", '#include "../../src/plan/plan.h"', "../../src/plan/plan.h"),
])
def test_no_spelling_hides_an_include(tmp_path, path, line, included):
    code, lines = check(tmp_path, {path: f"{CPP}{line}\n"})
    assert code == 1
    assert lines[0].startswith(f"{path}:2: ") and f'may not include "{included}"' in lines[0]


@pytest.mark.parametrize("line", ["#include HEADER", "#  include OPS(ops)"])
def test_an_include_names_its_header(tmp_path, line):
    assert check(tmp_path, {"tests/ir/x.cpp": f"{CPP}{line}\n"})[0] == 0
    code, lines = check(tmp_path, {"src/ir/x.cpp": f"{CPP}{line}\n"})
    assert code == 1
    assert lines[0] == ("src/ir/x.cpp:2: the header of an include stands in a macro, where the "
                        "table of ARCHITECTURE.md cannot be checked: name the header")


def test_rooms_are_those_of_the_table():
    rooms = read_rooms(
        "| `src/base` | errors | |\n| `src/ir` | graphs | |\n| `src/ops` | ops | ir |\n"
        "| `tools` | the command | ops, base |\n")
    assert rooms == {"base": set(), "ir": set(), "ops": {"ir"}, "tools": {"ops", "ir", "base"}}


def test_a_row_names_rows_above_it():
    with pytest.raises(SystemExit, match="the row of ir names ops, which no row above it has"):
        read_rooms("| `src/ir` | graphs | ops |\n| `src/ops` | ops | |\n")


def test_folders_of_kernels_are_those_of_the_sentence():
    rooms = read_kernels("Other: a.\nKernels: common; pointwise; rope,\ncopy: pointwise; roll: pointwise, copy.\n")
    assert rooms == {"common": set(), "pointwise": set(), "rope": {"pointwise"}, "copy": {"pointwise"},
                     "roll": {"pointwise", "copy"}}


@pytest.mark.parametrize("text, message", [
    ("Kernels: gemm: gemv; gemv.", "src/kernels/gemm includes gemv, which no clause before its own has"),
    ("Kernels: gemv; gemm, conv: gemm.", "src/kernels/gemm includes gemm, which no clause before its own has"),
    ("Kernels: gemv; gemm: gemv; gemv.", "src/kernels/gemv stands twice before a colon"),
    ("| `src/kernels` | families | |", "no sentence 'Kernels: folder; folder, folder: folders it includes; "),
])
def test_folders_of_kernels_include_one_way(text, message):
    with pytest.raises(SystemExit) as refused:
        read_kernels(text)
    assert str(refused.value).startswith(f"ARCHITECTURE.md: {message}")


def test_each_folder_of_kernels_that_is_named_exists():
    root = SCRIPT.parents[1]
    folders = {path.parts[2] for path in list_files(root)
               if path.parts[:2] == ("src", "kernels") and len(path.parts) > 3}
    assert folders == set(read_kernels((root / "ARCHITECTURE.md").read_text()))


def test_a_new_folder_of_src_needs_a_row(tmp_path):
    code, lines = check(tmp_path, {"src/misc/x.h": CPP})
    assert code == 1 and "src/misc has no row" in lines[0]


def test_a_new_family_needs_a_place(tmp_path):
    code, lines = check(tmp_path, {"src/kernels/misc/misc.cpp": CPP, "src/kernels/arch.h": CPP})
    assert code == 1 and len(lines) == 2
    assert lines[0].startswith("src/kernels/misc/misc.cpp: src/kernels/misc has no place")


@pytest.mark.parametrize("name", ["src/ir/x.cpp", "src/ir/x.h", "src/kernels/gemm/x.cuh",
                                  "tools/x.py"])
def test_long_files_fail(tmp_path, name):
    head = PY if name.endswith(".py") else CPP
    code, lines = check(tmp_path, {name: head + "\n" * 800})
    assert code == 1 and lines[0] == f"{name}: 801 lines, at most 800 are allowed: split it"


def test_rather_long_files_warn(tmp_path):
    code, lines = check(tmp_path, {"src/ir/x.cpp": CPP + "\n" * 500,
                                   "src/ir/y.cpp": CPP + "\n" * 499,
                                   "src/ir/table.def": CPP + "\n" * 2000})
    assert code == 0
    assert [line for line in lines if line.startswith("warning")] == [
        "warning: src/ir/x.cpp: 501 lines; above 500 a file should be split"]


@pytest.mark.parametrize("name", ["src/ir/x.cpp", "src/ir/x.def", "tools/x.py", "tests/ir/x.cpp",
                                  "cmake/x.cmake", "tests/CMakeLists.txt", "dev", ".ci/run"])
def test_the_licence_line_is_needed(tmp_path, name):
    code, lines = check(tmp_path, {name: "\n" * 3 + LICENCE + "\n"})
    assert code == 1 and lines[0].startswith(f"{name}: no line 'SPDX")


@pytest.mark.parametrize("folder", ["wo" + "rk", "ho" + "me", "ro" + "ot", "tm" + "p"])
def test_paths_of_one_machine_fail(tmp_path, folder):
    code, lines = check(tmp_path, {"src/ir/x.cpp": f'{CPP}auto p = "/{folder}/somebody/models";\n'})
    assert code == 1 and lines[0].startswith("src/ir/x.cpp:2: absolute path of one machine")


@pytest.mark.parametrize("note", ["TO" + "DO", "FIX" + "ME"])
def test_notes_to_self_fail(tmp_path, note):
    for name in ("src/ir/x.cpp", "tests/ir/y.cpp"):
        code, lines = check(tmp_path, {name: f"{CPP}// {note}: later\n"})
        assert code == 1 and any(f"{name}:2: note to self" in line for line in lines)


def test_kernels_begin_with_the_mark_of_timelines(tmp_path):
    head = f"{CPP}DEVICE void f() {{\n}}\n"
    good = "KERNEL void __launch_bounds__(256)\n    good(int* x) {\n    begin_kernel();\n    *x = 1;\n}\n"
    bad = good.replace("    begin_kernel();\n", "")
    code, lines = check(tmp_path, {"src/kernels/gemm/x.cuh": head + good + bad})
    assert code == 1
    assert lines[0] == "src/kernels/gemm/x.cuh:9: a kernel's first statement is begin_kernel();"
    assert len(lines) == 2


def test_rules_of_slim_read_operands_that_may_be_missing(tmp_path):
    text = f"{CPP}auto& x = node.inputs[1];\n"
    code, lines = check(tmp_path, {"src/slim/x.cpp": text, "src/slim/onnx_node.cpp": text,
                                   "src/onnx/x.cpp": text})
    assert code == 1 and len(lines) == 2
    assert lines[0].startswith("src/slim/x.cpp:2: an operand that may be missing")


def test_using_namespace_stays_out_of_headers(tmp_path):
    text = f"{CPP}    using namespace std;\n"
    code, lines = check(tmp_path, {"src/ir/x.h": text, "src/ir/x.cpp": text})
    assert code == 1 and len(lines) == 2
    assert lines[0].startswith("src/ir/x.h:2: 'using namespace' in a header")


def test_files_that_git_ignores_do_not_count(tmp_path):
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    code, lines = check(tmp_path, {".gitignore": "ignored/\n", "ignored/x.cpp": "no licence",
                                   "src/ir/x.cpp": "no licence"})
    assert code == 1
    assert lines == [f"src/ir/x.cpp: no line '{LICENCE}' among the first three",
                     "1 violations, 0 warnings"]


def test_subjects_of_commits_are_short(tmp_path):
    def git(*arguments):
        subprocess.run(["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b",
                        *arguments], check=True)
    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "s" * 70)
    assert check(tmp_path, {})[0] == 0
    git("commit", "-q", "--allow-empty", "-m", "s" * 71)
    code, lines = check(tmp_path, {})
    assert code == 1 and "its subject has 71 characters, at most 70 are allowed" in lines[0]


ASSERTS = """
void helper(int x) { EXPECT_EQ(x, 1); }
template <class T> void through(const T& x, const Options& o = {}) { helper(x); }
#define KEEPS(x) { helper(x); }
TEST(A, Directly) { ASSERT_TRUE(f()) << "why"; }
TEST_F(A, ByAFunction) { through(3); }
TEST_P(A, ByAMacro) { KEEPS(4) }
TEST(A, ByAnException) { try { f(); FAIL(); } catch (const Error&) {} }
TEST(A, ByALambda) { auto expect = [&](int x) { EXPECT_EQ(x, 2); }; expect(2); }
TEST(A, OrIsSkipped) { if (!f()) { GTEST_SKIP() << "no device"; } EXPECT_TRUE(g()); }
TEST(A, LeavesInTheMiddle) { EXPECT_TRUE(g()); if (!f()) { return; } EXPECT_TRUE(h()); }
"""


@pytest.mark.parametrize("text, message", [
    ("TEST(A, Runs) { run(graph()); }", "A.Runs asserts nothing: no product can make it fail"),
    ('TEST(A, Says) { f("EXPECT_TRUE(x)"); } // EXPECT_TRUE(y)', "A.Says asserts nothing: no product can make it fail"),
    ("void reads(int x) { try { f(x); } catch (const Error&) {} }\nTEST_F(A, Swallows) { reads(1); }",
     "A.Swallows asserts nothing: no product can make it fail"),
    ("TEST_P(A, Leaves) { if (GetParam()) { return; } EXPECT_TRUE(g()); }",
     "A.Leaves returns before it asserts anything: GTEST_SKIP() << why"),
    ("TEST(A, Skips) { if (f()) { GTEST_SKIP(); } EXPECT_TRUE(g()); }",
     "A.Skips is skipped without a word: GTEST_SKIP() << why"),
])
def test_a_test_of_cpp_can_fail(tmp_path, text, message):
    assert check(tmp_path, {"tests/ir/good_test.cpp": CPP + ASSERTS})[0] == 0
    code, lines = check(tmp_path, {"tests/ir/x_test.cpp": f"{CPP}{text}\n"})
    assert code == 1 and len(lines) == 2
    assert lines[0].startswith("tests/ir/x_test.cpp:") and lines[0].endswith(message)


@pytest.mark.parametrize("line, name", [
    ("from test_cli import fails", "test_cli"), ("import test_cli", "test_cli"), ("import test_cli as cli", "test_cli"),
    ("from tests.python.test_cli import fails", "tests.python.test_cli"), ("from . import test_cli", "test_cli"),
    ("def late():\n    from test_cli import fails\n    assert fails()", "test_cli"),
])
def test_no_file_imports_a_file_with_tests(tmp_path, line, name):
    code, lines = check(tmp_path, {"tests/python/more.py": f"# SPDX-License-Identifier: Apache-2.0\n{line}\n"})
    number = 3 if line.startswith("def") else 2
    assert code == 1 and lines[0] == (f"tests/python/more.py:{number}: imports {name}, a file with tests: what both use "
                                      "belongs in a module without tests")
    shared = "import ingot_command\nfrom ingot_command import test_name\nfrom testing import test_value\n"
    code, lines = check(tmp_path, {"tests/python/more.py": f"# SPDX-License-Identifier: Apache-2.0\n{shared}"})
    assert code == 0, lines


@pytest.mark.parametrize("text, message", [
    ("def test_runs(tmp_path):\n    run(tmp_path)\n", "test_runs asserts nothing: no product can make it fail"),
    ("def run():\n    return 1\n\n\ndef test_runs():\n    run()\n", "test_runs asserts nothing: no product can make it fail"),
    ("def test_skips():\n    pytest.skip()\n    assert run()\n", "pytest.skip() without a reason"),
])
def test_a_test_of_python_can_fail(tmp_path, text, message):
    good = """
def helper():
    assert run()


def test_directly():
    assert run()


def test_by_a_function():
    helper()


def test_by_an_exception():
    with pytest.raises(ValueError):
        run()


def test_by_an_exit_code():
    subprocess.run(["a"], check=True)


def test_or_is_skipped():
    pytest.skip("no device")
    assert run()
"""
    assert check(tmp_path, {"tests/python/test_good.py": PY + good})[0] == 0
    code, lines = check(tmp_path, {"tests/python/test_x.py": PY + text})
    assert code == 1 and len(lines) == 2
    assert lines[0].startswith("tests/python/test_x.py:") and lines[0].endswith(message)


@pytest.mark.parametrize("name, text, word", [
    ("src/base/a.cpp", "// What follows is read once.\n", "What"),
    ("src/base/a.cpp", "int a; // Who reads it waits.\n", "Who"),
    ("src/base/a.h", "/// Sizes, in order. Of a scalar there are none.\n", "Of"),
    ("src/base/a.h", "/// Sizes, in order.\n/// Of a scalar there are none.\n", "Of"),
    ("src/kernels/gemm/a.cuh", "// Whoever comes last adds.\n", "Whoever"),
    ("tools/a.py", '"""What the script prints."""\n', "What"),
    ("tools/a.py", "x = 1  # Whatever it is\n", "Whatever"),
    ("docs/a.md", "# A page\n\nWhat is here counts.\n", "What"),
    ("docs/a.md", "Files are read. Who writes them\nwaits.\n", "Who"),
    ("docs/a.md", "They are few:\n\n- **What is new** comes first\n", "What"),
])
def test_sentences_without_a_subject(tmp_path, name, text, word):
    head = "" if name.endswith(".md") else PY if name.endswith(".py") else CPP
    code, lines = check(tmp_path, {name: head + text})
    assert code == 1 and len(lines) == 2
    assert f"a sentence begins with '{word}': give it a subject" in lines[0]


def test_sentences_with_a_subject(tmp_path):
    code, lines = check(tmp_path, {
        "src/base/a.cpp": CPP + '/// The sizes of a tensor, and\n/// Of the kernel. A reader knows what\n// is\n'
                                'auto s = "http://x What is this";\nauto t = "// What now";\n',
        "docs/a.md": "# What a page\n\nIt says\nWhat is in it.\n\n| What | Who |\n\n```\nWhat is code\n```\n",
        "tools/a.py": PY + 'x = "# What"\n'})
    assert (code, lines) == (0, ["0 violations, 0 warnings"])


def test_names_that_were_replaced(tmp_path):
    code, lines = check(tmp_path, {"src/base/a.cpp": CPP + "// Loads by the copy " + "engine.\n"
                                                           "struct Engine" + "Facts;\n"})
    assert code == 1
    assert lines[0].endswith("a.cpp:2: 'copy " + "engine' is called TMA here")
    assert lines[1].endswith("a.cpp:3: 'Engine" + "Facts' is called BuildSettings here")
