# SPDX-License-Identifier: Apache-2.0
"""bench/tactic_choice.py on sessions and times that are made up."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
import tactic_choice  # noqa: E402


def line(problem, *rows):
    return {"problem": problem, "layer": "l", "candidates": [{"tactic": t, "expected_ns": e, "ns": n} for t, e, n in rows]}


class FakeSession:
    """Each new size times one problem."""

    def __init__(self, lines):
        self.lines, self.given = lines, {}

    def set(self, key, value):
        self.given[key] = value

    def run(self):
        if self.given["x"] == 3:
            raise RuntimeError("no memory")
        self.lines.append(line(f"gemm x{self.given['x']}", ("a", 1000, 3000), ("b", 2000, 2000)))


def test_problems_belong_to_the_size_that_first_had_them_and_failures_are_kept():
    lines, reports = [], []

    def open_session(model, kind):
        if model == "broken":
            raise RuntimeError("no engine")
        return FakeSession(lines)

    todo = [("m", "f16", {"x": ("f", (n,))}, n == 1) for n in (1, 2, 3)] + [("broken", "f16", {"x": ("f", (1,))}, False)] * 2
    problems, failed = tactic_choice.collect(todo, open_session, lambda m, k, s: {"x": s["x"][1][0]}, lambda: lines,
                                             lambda: 1, lambda *a: reports.append(a))
    assert [(p["problem"], p["case"], p["ratio"]) for p in problems] == [("gemm x1", True, 1.5), ("gemm x2", False, 1.5)]
    assert [f["why"] for f in failed] == ["no memory", "no engine"]
    assert len(reports) == 4


def test_the_run_stops_when_time_is_up():
    lines, left = [], iter([2, 1, 0])
    todo = [("m", "f16", {"x": ("f", (n,))}, False) for n in (1, 2, 4)]
    problems, _ = tactic_choice.collect(todo, lambda m, k: FakeSession(lines), lambda m, k, s: {"x": s["x"][1][0]}, lambda: lines,
                                        lambda: next(left), lambda *a: None)
    assert len(problems) == 2


def test_sizes_of_the_cases_come_first_and_once():
    todo = tactic_choice.work(tactic_choice.MODELS, ["f16", "f32"], 1, lambda model: model != "swin_t")
    flags = [case for *_, case in todo]
    assert flags == sorted(flags, reverse=True) and sum(flags) == 12
    keys = [(m, json.dumps(s)) for m, _, s, case in todo if case]
    assert not set(keys) & {(m, json.dumps(s)) for m, _, s, case in todo if not case}
    assert todo == tactic_choice.work(tactic_choice.MODELS, ["f16", "f32"], 1, lambda model: model != "swin_t")
    assert todo != tactic_choice.work(tactic_choice.MODELS, ["f16", "f32"], 2, lambda model: model != "swin_t")


def test_a_line_that_is_still_written_is_left_for_later(tmp_path):
    path = tmp_path / "a.jsonl"
    assert tactic_choice.read_lines(path) == []
    path.write_text('{"a": 1}\n{"a"')
    assert tactic_choice.read_lines(path) == [{"a": 1}]


def test_the_summary_leaves_out_the_cases():
    problems = [tactic_choice.problem_of(line("gemm 1", ("a", 1000, 3000), ("b", 2000, 2000)), case=True),
                tactic_choice.problem_of(line("conv 1", ("a", 2000, 2000), ("b", 1000, 4000)), case=False),
                tactic_choice.problem_of(line("gemm 2", ("a", 1000, 1000), ("b", 2000, 2000)), case=False)]
    text = tactic_choice.summary({"problems": problems, "failed": [{"model": "m", "type": "f16", "sizes": {}, "why": "no memory"}]})
    assert text.splitlines()[0] == "2 problems outside the 13 cases, 1 in them"
    assert "conv                         1  median 2.000  p90 2.000  worst 2.000" in text
    assert "2.000  b instead of a: conv 1" in text and "1 could not run" in text and "gemm 1" not in text
