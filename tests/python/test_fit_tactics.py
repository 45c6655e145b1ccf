# SPDX-License-Identifier: Apache-2.0
"""bench/fit_tactics.py on problems whose true costs are known."""
import json
import pathlib
import random
import subprocess
import sys

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"
sys.path.insert(0, str(BENCH))
import fit_tactics  # noqa: E402


def problems(true, count=200, noise=0.0, seed=1, family="gemm", case=False):
    """Predictions at random; times by the true (scale, overhead) of each algorithm."""
    r, out = random.Random(seed), []
    for i in range(count):
        rows = []
        for name, (scale, overhead) in true.items():
            for tile in (64, 128):
                expected = r.uniform(2, 20)
                rows.append({"tactic": f"{name}_{tile}x{i % 3 + 1}", "expected_us": expected,
                             "us": scale * (expected + overhead) * (1 + r.uniform(-noise, noise))})
        out.append({"problem": f"{family} {i}", "family": family, "case": case, "candidates": rows})
    return out


def worst(given, coefficients):
    return max(fit_tactics.regret(p, coefficients) for p in given)


def test_numbers_of_a_tactic_are_no_part_of_its_algorithm():
    assert fit_tactics.algorithm("wgmma_128x64_s2") == fit_tactics.algorithm("wgmma_64x32_s11") == "wgmma_#x#_s#"
    assert fit_tactics.algorithm("mma_64x32") != fit_tactics.algorithm("wgmma_64x32")


def test_logarithms_find_scale_and_overhead():
    rows = [{"expected_us": x, "us": 3 * (x + 2)} for x in (1, 2, 5, 10)]
    scale, overhead = fit_tactics.by_logarithms(rows)
    assert abs(scale - 3) < 1e-9 and overhead == 2


def test_problems_that_were_not_fitted_gain():
    given = problems({"wgmma": (1, 4), "mma": (2, 0), "simt": (0.7, 1)}, noise=0.02)
    held_out = [p for p in given if not fit_tactics.is_fitted(p)]
    assert 50 < len(held_out) < 150
    coefficients = fit_tactics.fit_all(given, 8)["gemm"]
    assert worst(held_out, {}) > 1.5
    assert worst(held_out, coefficients) < 1.15


def test_a_model_that_is_right_stays():
    assert fit_tactics.fit_all(problems({"wgmma": (1, 0), "mma": (1, 0)}), 8) == {"gemm": {}}


def test_the_fit_never_loses_on_what_it_was_fitted_to():
    for seed in range(5):
        given = problems({"a": (1, 0), "b": (1.1, 1)}, count=40, noise=0.5, seed=seed)
        own = [p for p in given if fit_tactics.is_fitted(p)]
        assert fit_tactics.loss(own, fit_tactics.fit(own, 8)) <= fit_tactics.loss(own, {})


def test_rare_algorithms_keep_the_prediction():
    given = problems({"wgmma": (1, 4), "mma": (2, 0)}, count=60)
    given[0]["candidates"].append({"tactic": "rare_1", "expected_us": 1, "us": 900})
    assert set(fit_tactics.fit(given, 8)) == {"wgmma_#x#", "mma_#x#"}
    assert fit_tactics.fit(given, 1000) == {}


def run(*arguments):
    return subprocess.run([sys.executable, BENCH / "fit_tactics.py", *arguments], capture_output=True, text=True)


def test_the_command_prints_old_and_new_regret_and_leaves_the_cases_out(tmp_path):
    given = problems({"wgmma": (1, 4), "mma": (2, 0)}, count=60) + problems({"x": (9, 9)}, family="conv", case=True)
    (tmp_path / "in.json").write_text(json.dumps({"problems": given, "failed": []}))
    done = run(tmp_path / "in.json", "--out", tmp_path / "fit.json")
    assert done.returncode == 0, done.stderr
    assert "held out  gemm" in done.stdout and "old median" in done.stdout and "new median" in done.stdout
    assert "conv" not in done.stdout
    assert set(json.loads((tmp_path / "fit.json").read_text())["gemm"]) == {"wgmma_#x#", "mma_#x#"}


def test_a_file_without_a_choice_is_refused(tmp_path):
    (tmp_path / "in.json").write_text(json.dumps({"problems": problems({"x": (1, 0)}, case=True), "failed": []}))
    done = run(tmp_path / "in.json")
    assert done.returncode == 1
    assert done.stderr.strip() == f"{tmp_path / 'in.json'}: no problem outside the 13 cases has two candidates with times: run tactic_choice.py longer"
