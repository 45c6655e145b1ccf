# SPDX-License-Identifier: Apache-2.0
"""bench/timeline.py on timelines with known phases."""
import json
import pathlib
import subprocess
import sys

import pytest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "bench" / "timeline.py"
sys.path.insert(0, str(SCRIPT.parent))
import timeline  # noqa: E402  (the standard library has none of this name)


def launch(blocks, **more):
    """`blocks`: (sm, start, arrive, ready, main, end) of each."""
    names = ("sm", "start", "arrive", "ready", "main", "end")
    return {"step": "s", "tactic": "t", "kernel": "k", "grid": [len(blocks), 1, 1], "threads": 128, "shared": 0, "cluster": 1,
            **dict(zip(names, map(list, zip(*blocks)))), **more}


TWO = [
    launch([(0, 0, 10, 20, 500, 1000), (1, 5, 15, 25, 520, 900)], tactic="first"),
    # starts while the first ends; its second block waits for a place on the SM of its first
    launch([(0, 700, 800, 1100, 1600, 2000), (0, 2000, 2010, 2020, 2600, 3000)], tactic="second"),
    launch([(2, 4000, 4010, 4100, -1, 5000)], tactic="first"),
]


def test_phases_add_up_to_the_whole_time():
    rows = timeline.summary(TWO)
    assert [r["step_ns"] for r in rows] == [1000, 2000, 2000]
    assert sum(r["step_ns"] for r in rows) == 5000
    for r in rows:
        assert r["gap"] + r["ready"] + r["main"] + r["tail"] == r["step_ns"]


def test_overlap_gap_and_places():
    first, second, third = timeline.summary(TWO)
    assert (first["ready"], first["main"], first["tail"]) == (25, 495, 480)
    assert (second["overlap"], second["gap"], second["ready"], second["main"]) == (300, 0, 1020, 580)
    assert (first["sms"], first["per_sm"], first["waves"]) == (2, 1, 1)
    assert (second["sms"], second["per_sm"], second["waves"]) == (1, 2, 2)
    assert (third["overlap"], third["gap"], third["main"]) == (-1000, 1000, 0)


def test_sums_by_tactic():
    by = timeline.sums(timeline.summary(TWO))
    assert list(by) == ["all launches", "first", "second"]
    assert by["first"] == {"launches": 2, "gap": 1000, "ready": 125, "main": 495, "tail": 1380, "step": 3000}
    assert by["all launches"]["step"] == 5000


@pytest.mark.parametrize("launches, lines", [("none", 5), ("1-1", 7), ("", 9)])
def test_the_command_prints_the_launches_asked_for(tmp_path, launches, lines):
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"device": "a GPU", "replay": 4, "launches": TWO}))
    made = subprocess.run([sys.executable, SCRIPT, path, f"--launches={launches}", f"--json={tmp_path / 's.json'}"],
                          capture_output=True, text=True, check=True)
    assert made.stdout.startswith("a GPU, replay 4: 3 launches, 5.00 us\n")
    assert len(made.stdout.splitlines()) == lines
    assert len(json.loads((tmp_path / "s.json").read_text())["launches"]) == 3


def test_a_file_without_launches_is_named(tmp_path):
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"device": "a GPU", "replay": 1, "launches": []}))
    made = subprocess.run([sys.executable, SCRIPT, path], capture_output=True, text=True)
    assert (made.returncode, made.stderr) == (1, f"{path} has no launches\n")
