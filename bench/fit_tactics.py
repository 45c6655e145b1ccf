#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Corrections of the cost model, fitted to the times that tactic_choice.py has measured.

  fit_tactics.py FILE.json [--out FIT.json] [--least 8]

An algorithm of a family (a tactic's name without its numbers) gets two coefficients: time = scale * (predicted + overhead), in
us. First least squares on logarithms, then a search that changes one coefficient at a time while the regret of the family falls.
Regret is the time of the tactic chosen over that of the fastest candidate. Half of the problems, by a hash of their text, are
fitted; the other half alone shows what the fit is worth. The 13 cases are left out. Algorithms with fewer than LEAST candidates
keep the model's prediction. FILE.json holds predictions as a whole, so the fit says which algorithm is off and by how much,
not which term of its formula.
"""
import argparse
import hashlib
import json
import math
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from gpu_cases import median  # noqa: E402
from tactic_choice import at_share  # noqa: E402

AS_MODELLED = (1.0, 0.0)
OVERHEADS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
STEPS = (0.5, 0.7, 0.85, 0.95, 1.05, 1.15, 1.4, 2.0)


def algorithm(tactic):
    return re.sub(r"\d+", "#", tactic)


def is_fitted(problem):
    return hashlib.sha256(problem["problem"].encode()).digest()[0] % 2 == 0


def corrected(candidate, coefficients):
    scale, overhead = coefficients.get(algorithm(candidate["tactic"]), AS_MODELLED)
    return scale * (candidate["expected_us"] + overhead)


def regret(problem, coefficients):
    """The first of equals is chosen, as by the tactics' order."""
    chosen = min(problem["candidates"], key=lambda c: corrected(c, coefficients))
    return chosen["us"] / min(c["us"] for c in problem["candidates"])


def loss(problems, coefficients):
    """The mean logarithm of the regret, which no single problem rules."""
    return sum(math.log(regret(p, coefficients)) for p in problems) / len(problems)


def by_logarithms(rows):
    """Scale and overhead with the least squares of log(time) - log(prediction)."""
    best = None
    for overhead in OVERHEADS:
        logs = [math.log(r["us"] / (r["expected_us"] + overhead)) for r in rows]
        mean = sum(logs) / len(logs)
        squares = sum((x - mean) ** 2 for x in logs)
        if best is None or squares < best[0]:
            best = (squares, math.exp(mean), overhead)
    return best[1:]


def neighbours(scale, overhead):
    yield from ((scale * step, overhead) for step in STEPS)
    yield from ((scale, other) for other in OVERHEADS if other != overhead)


def by_search(problems, coefficients):
    """Changes one coefficient at a time until none lowers the loss."""
    now = loss(problems, coefficients)
    moved = True
    while moved:
        moved = False
        for name in sorted(coefficients):
            for tried in neighbours(*coefficients[name]):
                then = {**coefficients, name: tried}
                if (value := loss(problems, then)) < now - 1e-9:
                    coefficients, now, moved = then, value, True
    return coefficients


def fit(problems, least):
    """Coefficients of the algorithms of one family; none where the model is as good."""
    rows = {}
    for candidate in (c for p in problems for c in p["candidates"]):
        rows.setdefault(algorithm(candidate["tactic"]), []).append(candidate)
    enough = {name: r for name, r in rows.items() if len(r) >= least}
    starts = [{name: AS_MODELLED for name in enough}, {name: by_logarithms(r) for name, r in enough.items()}]
    if not enough:
        return {}
    best = min((by_search(problems, start) for start in starts), key=lambda c: loss(problems, c))
    return best if loss(problems, best) < loss(problems, {}) - 1e-9 else {}


def usable(result):
    """Problems outside the 13 cases that have a choice and times above 0."""
    return [p for p in result["problems"] if not p["case"] and len(p["candidates"]) > 1
            and all(c["us"] > 0 and c["expected_us"] > 0 for c in p["candidates"])]


def fit_all(problems, least):
    fitted = [p for p in problems if is_fitted(p)]
    return {f: fit([p for p in fitted if p["family"] == f], least) for f in sorted({p["family"] for p in fitted})}


def table(problems, coefficients):
    lines = []
    for title, part in (("fitted", [p for p in problems if is_fitted(p)]), ("held out", [p for p in problems if not is_fitted(p)])):
        for family in [*sorted({p["family"] for p in part}), "all"] if part else []:
            own = [p for p in part if family in (p["family"], "all")]
            cells = []
            for name, of in (("old", lambda p: {}), ("new", lambda p: coefficients.get(p["family"], {}))):
                r = [regret(p, of(p)) for p in own]
                cells.append(f"{name} median {median(r):.3f}  p90 {at_share(r, 0.9):.3f}  worst {max(r):.3f}")
            lines.append(f"{title:9} {family:20} {len(own):5}  {'   '.join(cells)}")
    for family, own in coefficients.items():
        lines += [f"{family} {name}: {scale:.3f} * (predicted + {overhead:g} us)" for name, (scale, overhead) in sorted(own.items())]
    return "\n".join(lines)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("times", help="what tactic_choice.py --out has written")
    p.add_argument("--out", help="writes the coefficients as JSON")
    p.add_argument("--least", type=int, default=8, help="candidates that an algorithm needs to be fitted")
    a = p.parse_args()
    problems = usable(json.loads(pathlib.Path(a.times).read_text()))
    if not problems:
        sys.exit(f"{a.times}: no problem outside the 13 cases has two candidates with times: run tactic_choice.py longer")
    coefficients = fit_all(problems, a.least)
    print(table(problems, coefficients))
    if a.out:
        pathlib.Path(a.out).write_text(json.dumps(coefficients, indent=1) + "\n")


if __name__ == "__main__":
    main()
