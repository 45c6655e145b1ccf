# SPDX-License-Identifier: Apache-2.0
"""Results of gpu_tests.py: JSON while it runs, a table at its end."""
import json
import pathlib
import threading


class Report:
    """Results so far, in a file that is rewritten whenever a part ends."""

    def __init__(self, device, path):
        self.results, self.path, self.lock = {"device": device}, path, threading.Lock()

    def add(self, part, good, values, seconds):
        with self.lock:
            self.results[part] = {"good": good, "part_seconds": seconds, **values}
            print(f"{part}: {'pass' if good else 'FAIL'} in {seconds} s", flush=True)
            if self.path:
                pathlib.Path(self.path).write_text(json.dumps(self.results, indent=1) + "\n")

    def table(self):
        print(f"\n{self.results['device']}")
        for part, values in self.results.items():
            if part != "device":
                print(f"  {part:12s} {'pass' if values['good'] else 'FAIL'} "
                      f"{values['part_seconds']:7.1f} s  {one_line(part, values)}")


def one_line(part, values):
    if part == "conformance":
        return f"{values.get('pass', 0)} pass, {values.get('refused', 0)} refused, {values.get('fail', 0)} fail"
    if part == "models":
        bad = [n for n, v in values.items() if isinstance(v, dict) and not v.get("good", True)]
        return f"{sum(isinstance(v, dict) for v in values.values())} models" + (f", wrong: {', '.join(bad)}" if bad else "")
    if part == "tactics":
        return f"{values.get('tests', 0)} tests, {len(values.get('failures', []))} failures"
    if "absent" in values or "error" in values:
        return str(values.get("absent") or values.get("error"))[:100]
    lines = [f"{n}: {pair_text(w)}" for v in values.values() if isinstance(v, dict)
             for n, w in v.items() if isinstance(w, dict)]
    wrong = [n for n, v in values.items() if isinstance(v, dict) and ("failures" in v or "output" in v or isinstance(v.get("error"), str))]
    return (f"wrong: {', '.join(map(str, wrong))}; " if wrong else "") + "; ".join(lines)[:300]


def pair_text(values):
    return " ".join(f"{k}={v:.4g}" if isinstance(v, float) else f"{k}={v}" for k, v in values.items())
