# SPDX-License-Identifier: Apache-2.0
"""tools/fuzz.py with programs that stand for fuzz targets: it counts their runs over several
processes and restarts, and tells what crashed."""
import json
import pathlib
import subprocess
import sys

import pytest

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"
sys.path.insert(0, str(TOOLS))
import fuzz  # noqa: E402

# It runs its time, and tells libFuzzer's statistics.
GOOD = """#!/bin/sh
for word; do case $word in -max_total_time=*) sleep ${word#*=};; esac; done
echo '#3	INITED cov: 1'
echo 'stat::number_of_executed_units: 11'
"""
# It crashes after its 8th run, and is asked to run again until the time is over.
BAD = """#!/bin/sh
sleep 0.4
echo '#2	INITED cov: 1'
echo '#8	NEW    cov: 2'
echo '==7==ERROR: AddressSanitizer: heap-buffer-overflow'
echo 'SUMMARY: AddressSanitizer: heap-buffer-overflow in f'
exit 77
"""
ABSENT = """#!/bin/sh
echo 'error while loading shared libraries'
exit 127
"""


def fuzzed(folder, programs, *arguments):
    (folder / "tests").mkdir()
    for name, text in programs.items():
        (folder / "tests" / name).write_text(text, encoding="utf-8")
        (folder / "tests" / name).chmod(0o755)
    done = subprocess.run([sys.executable, TOOLS / "fuzz.py", "--build", folder, *arguments],
                          capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, {row["target"]: row for row in map(json.loads, done.stdout.splitlines())}


def test_runs_and_crashes_are_counted(tmp_path):
    code, rows = fuzzed(tmp_path, {"fuzz_graph": GOOD, "fuzz_bad": BAD}, "--minutes", "0.05",
                        "--cores", "5", "--output", str(tmp_path / "out"))
    assert code == 1
    good, bad = rows["fuzz_graph"], rows["fuzz_bad"]
    assert (good["processes"], good["runs"], good["crashes"]) == (4, 44, 0)
    assert bad["processes"] == 1
    assert bad["crashes"] >= 2 and bad["runs"] == 8 * bad["crashes"]
    assert bad["found"] == ["SUMMARY: AddressSanitizer: heap-buffer-overflow in f"]
    assert (tmp_path / "out" / "artifacts" / "fuzz_bad").is_dir()


def test_a_program_that_does_not_start_is_bad(tmp_path):
    code, rows = fuzzed(tmp_path, {"fuzz_a": ABSENT, "fuzz_b": GOOD}, "--minutes", "0.02", "--cores", "2")
    assert code == 1
    assert rows["fuzz_a"]["crashes"] == 1
    assert rows["fuzz_a"]["found"] == ["exit code 127: error while loading shared libraries\n"]
    assert rows["fuzz_b"]["crashes"] == 0


def test_good_programs_end_well(tmp_path):
    code, rows = fuzzed(tmp_path, {"fuzz_a": GOOD, "fuzz_b": GOOD}, "--minutes", "0.02", "--only", "fuzz_b")
    assert code == 0
    assert list(rows) == ["fuzz_b"]


def test_a_folder_without_programs_is_told(tmp_path):
    done = subprocess.run([sys.executable, TOOLS / "fuzz.py", "--build", tmp_path], capture_output=True,
                          text=True, check=False)
    assert done.returncode == 2
    assert f"{tmp_path / 'tests'} has no program fuzz_*; build the preset 'fuzz' first" in done.stderr


@pytest.mark.parametrize(("cores", "processes", "part"), [(1, 3, 1 / 3), (3, 3, 1), (6, 6, 1), (16, 16, 1)])
def test_cores_are_shared(tmp_path, cores, processes, part):
    targets = [fuzz.Target(tmp_path / name, tmp_path) for name in ("fuzz_graph", "fuzz_a", "fuzz_b")]
    counts, of_the_time = fuzz.shares(targets, cores)
    assert sum(counts.values()) == processes
    assert counts["fuzz_graph"] == max(counts.values())
    assert of_the_time == pytest.approx(part)
