# SPDX-License-Identifier: Apache-2.0
"""tools/compile_unit.py compiles sources together that do not know of each other."""
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import tidy  # noqa: E402

LAUNCHER = ROOT / "tools" / "compile_unit.py"
MAIN = '#include <cstdio>\nint f0();\nint f1();\nint f2();\n' \
       'int main() { std::printf("%d %d %d", f0(), f1(), f2()); }\n'


def source(number, more=""):
    """Each has the same local names."""
    return f"""#include "shared.h"
namespace demo {{
namespace {{
constexpr int limit = {number};
int helper(int a) {{
    return shared(a) + limit;
}}
{more}
}} // namespace
}} // namespace demo
int f{number}() {{
    return demo::helper(10);
}}
"""


def unity(folder, texts):
    """A unity source as CMake writes it."""
    (folder / "shared.h").write_text("#pragma once\ninline int shared(int a) { return a; }\n")
    for number, text in enumerate(texts):
        (folder / f"part{number}.cpp").write_text(text)
    (folder / "Unity").mkdir()
    path = folder / "Unity" / "unity_0_cxx.cxx"
    path.write_text("".join(f'#include "{folder}/part{number}.cpp"\n' for number in range(len(texts))))
    return path


def compiled(folder, texts):
    """The launcher's finished process; its object is unit.o."""
    command = [sys.executable, LAUNCHER, "g++", "-MD", "-MF", "unit.d", "-o", "unit.o", "-c", unity(folder, texts)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False,
                          env=os.environ | {"LC_ALL": "C"})


def output(folder):
    (folder / "main.cpp").write_text(MAIN)
    subprocess.run(["g++", "main.cpp", "unit.o", "-o", "main"], cwd=folder, check=True)
    return subprocess.run([folder / "main"], capture_output=True, text=True, check=True).stdout


def named_in_rule(folder):
    return {pathlib.Path(name).name for name in (folder / "unit.d").read_text().replace("\\\n", " ").split()[1:]}


def test_equal_local_names_do_not_collide(tmp_path):
    done = compiled(tmp_path, [source(number) for number in range(3)])
    assert (done.returncode, done.stderr) == (0, "")
    assert output(tmp_path) == "10 11 12"
    assert {"part0.cpp", "part1.cpp", "part2.cpp", "shared.h", "unity_0_cxx.cxx"} <= named_in_rule(tmp_path)


def test_what_does_not_fit_together_is_compiled_in_halves(tmp_path):
    clash = "}} struct Other {{ {} value; }}; namespace {{"
    done = compiled(tmp_path, [source(0, clash.format("int")), source(1), source(2, clash.format("long"))])
    assert done.returncode == 0, done.stderr
    assert "its 3 sources are compiled in halves" in done.stderr and "redefinition" in done.stderr
    assert output(tmp_path) == "10 11 12"
    assert {"part0.cpp", "part1.cpp", "part2.cpp", "shared.h"} <= named_in_rule(tmp_path)


def test_a_fault_is_told_of_the_source_itself(tmp_path):
    done = compiled(tmp_path, [source(0), source(1, "int wrong = limit + nothing;"), source(2)])
    assert done.returncode != 0
    assert f"{tmp_path}/part1.cpp:8:21: error: 'nothing' was not declared" in done.stderr
    assert not (tmp_path / "unit.o").exists()


def test_other_commands_run_as_they_are(tmp_path):
    done = subprocess.run([sys.executable, LAUNCHER, "sh", "-c", "echo out; exit 3"], capture_output=True, text=True,
                          cwd=tmp_path, check=False)
    assert (done.returncode, done.stdout) == (3, "out\n")


def test_clang_tidy_reads_the_sources_of_a_unit(tmp_path):
    path = unity(tmp_path, [source(0), source(1)])
    entry = {"directory": str(tmp_path), "file": str(path),
             "command": f"g++ -Wshadow -Wno-shadow -Wno-subobject-linkage -o unit.o -c {path}"}
    assert tidy.sources_of(entry) == [tmp_path / "part0.cpp", tmp_path / "part1.cpp"]
    assert "-Wshadow" in tidy.flags_of(entry) and "-Wno-shadow" not in tidy.flags_of(entry)
    assert "-Wno-subobject-linkage" not in tidy.flags_of(entry)
