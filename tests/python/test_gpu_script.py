# SPDX-License-Identifier: Apache-2.0
"""tests/gpu/gpu_tests.py itself, with the emulator and a small model in place of a GPU: parts
report their results, and a part that fails or times out does not affect the others."""
import json
import subprocess
import sys

import pytest

import ingot_command as ingot

PARTS = "replay,shapes,threads,processes,memory,api,profile,priority"


def test_results_of_several_runs_of_gpu_cases_are_one_table(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(ingot.REPOSITORY / "bench")
    import gpu_cases
    out = tmp_path / "cases.json"
    first = {"case": "resnet50_b1", "ours_ms": 0.5, "eager_ms": 2.0, "kernels": 56, "device": "one"}
    gpu_cases.write(out, [{"case": "swin_t_b1", "failed": "no memory"}, first])
    gpu_cases.write(out, [{"case": "swin_t_b1", "ours_ms": 3.0, "compile_ms": 4.0, "device": "one"}])
    assert [r["case"] for r in json.loads(out.read_text())] == ["resnet50_b1", "swin_t_b1"]
    lines = out.with_suffix(".md").read_text().splitlines()
    assert lines[0].startswith("Device: one.")
    assert lines[-2] == "| resnet50_b1 | 0.500 | 2.000 |  | 0.25 |  | 56 |  |  |  |  |"
    assert lines[-1] == "| swin_t_b1 | 3.000 |  | 4.000 |  | 0.75 |  |  |  |  |  |"


@pytest.fixture(name="rehearse")
def fixture_rehearse(tmp_path):
    if not any((folder / "test_gpu").is_file()
               for folder in (ingot.binary().parent, ingot.binary().parent / "tests")):
        pytest.skip("no test_gpu beside the ingot command: ./dev build makes it")

    def run(*options):
        out = tmp_path / "results.json"
        done = subprocess.run(
            [sys.executable, ingot.REPOSITORY / "tests" / "gpu" / "gpu_tests.py", "--rehearse",
             "--out", out, "--jobs=2", *options], text=True, timeout=300,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.returncode, done.stdout, json.loads(out.read_text())
    return run


def test_parts_report_what_they_did(rehearse):
    code, text, results = rehearse(f"--parts={PARTS}")
    assert code == 0, text
    for part in PARTS.split(","):
        assert results[part]["good"], part
        assert f"  {part}" in text
    assert results["replay"]["digits"]["replay.digits"]["different"] == 0
    assert results["shapes"]["digits"]["shapes.digits"]["new"] == 0
    assert results["priority"]["tests"] == results["priority"]["skipped"] == 2
    assert results["priority"]["not_tested"] == ["frames beside inference: they need a GPU"]
    profile = results["profile"]["digits"]["profile.digits"]
    assert profile["sum_ms"] == pytest.approx(profile["serial_ms"], rel=0.02)


def test_a_part_that_fails_takes_nothing_from_the_others(rehearse, tmp_path):
    code, text, results = rehearse("--parts=conformance,replay", f"--suite={tmp_path}")
    assert code == 1, text
    assert not results["conformance"]["good"] and "no suite" in results["conformance"]["error"]
    assert results["replay"]["good"]


def test_time_that_is_used_up_fails_what_is_left(rehearse):
    code, text, results = rehearse("--parts=threads", "--limit=0")
    assert code == 1, text
    assert "time" in json.dumps(results["threads"])
