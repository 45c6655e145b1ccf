#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints a timeline that `ingot bench --timeline=FILE` wrote: when the blocks of each launch start and end.

  timeline.py FILE.json [--launches FIRST-LAST] [--json SUMMARY.json]

One line a launch, in microseconds from the first start of all:
  start    its first block starts
  over     how long it overlaps the launch before: until that one's last block ends (negative: an idle gap)
  ready    from that end until a thread of its last block has passed the dependency wait (from its own start without an overlap)
  main     from there until its last block has left the main loop
  tail     from there until its last block ends
  step     from the end of the launch before to its own end: these add up to the whole time
  early    how long before the wait ended its median block had already started (what is hidden of launch and prologue)
  sms      multiprocessors used; blocks/SM the most on one; waves: blocks that start after another has ended on the same SM
The sums over the model follow, by phase and by tactic.
"""
import argparse
import collections
import json
import sys


def known(values):
    return [v for v in values if v >= 0]


def summary(launches):
    """A dictionary for each launch, times in ns."""
    rows, before = [], None
    for number, launch in enumerate(launches):
        start, end = min(known(launch["start"])), max(known(launch["end"]))
        waits = known(launch["ready"])
        ready = max(waits) if waits else start
        main = max(known(launch["main"]), default=ready)
        previous = start if before is None else before
        begin = max(previous, start)
        ready = max(ready, begin)
        main = min(max(main, ready), end)
        starts = sorted(known(launch["start"]))
        on_sm = collections.defaultdict(list)
        for sm, s, e in zip(launch["sm"], launch["start"], launch["end"]):
            if sm >= 0:
                on_sm[sm].append((s, e))
        rows.append({
            "number": number, "step": launch["step"], "tactic": launch["tactic"], "kernel": launch["kernel"],
            "blocks": len(starts), "threads": launch["threads"], "shared": launch["shared"], "cluster": launch["cluster"],
            "start": start, "end": end, "overlap": previous - start, "gap": max(start - previous, 0),
            "ready": ready - begin, "main": main - ready, "tail": end - main, "step_ns": end - previous,
            "early": ready - starts[len(starts) // 2],
            "sms": len(on_sm), "per_sm": max(len(v) for v in on_sm.values()),
            "waves": max(waves(v) for v in on_sm.values()),
        })
        before = max(previous, end)
    return rows


def waves(blocks):
    """The most blocks of one SM of which each starts after the one before has ended."""
    count, end = 0, -1
    for s, e in sorted(blocks, key=lambda b: b[1]):
        if s >= end:
            count, end = count + 1, e
    return count


def us(ns):
    return f"{ns / 1000:.2f}"


def table(rows):
    columns = [("start", "start"), ("over", "overlap"), ("ready", "ready"), ("main", "main"), ("tail", "tail"), ("step", "step_ns"),
               ("early", "early")]
    lines = [f"{'':4} " + " ".join(f"{title:>8}" for title, _ in columns) + "  blocks  sms /SM waves shared  tactic, step"]
    for r in rows:
        lines.append(f"{r['number']:4} " + " ".join(f"{us(r[key]):>8}" for _, key in columns)
                     + f" {r['blocks']:7} {r['sms']:4} {r['per_sm']:3} {r['waves']:5} {r['shared']:6}  {r['tactic'] or r['kernel']}, {r['step'][:60]}")
    return "\n".join(lines)


def sums(rows):
    """Times by phase, of the whole and of each tactic, in ns."""
    by = collections.defaultdict(collections.Counter)
    for r in rows:
        for name in ("all launches", r["tactic"] or r["kernel"]):
            by[name].update({"launches": 1, "gap": r["gap"], "ready": r["ready"], "main": r["main"], "tail": r["tail"], "step": r["step_ns"]})
    return dict(sorted(by.items(), key=lambda item: -item[1]["step"]))


def sums_table(by):
    lines = [f"{'launches':>8} {'gap':>8} {'ready':>8} {'main':>8} {'tail':>8} {'sum':>8} {'each':>8}"]
    for name, c in by.items():
        phases = " ".join(f"{us(c[key]):>8}" for key in ("gap", "ready", "main", "tail", "step"))
        lines.append(f"{c['launches']:8} {phases} {us(c['step'] / c['launches']):>8}  {name}")
    return "\n".join(lines)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("file")
    p.add_argument("--launches", default="", help="the range of launches to print, as 10-20; all without it, none with 'none'")
    p.add_argument("--json", default="", help="also writes the rows and sums as JSON")
    a = p.parse_args()
    with open(a.file, encoding="utf-8") as f:
        data = json.load(f)
    rows = summary(data["launches"])
    if not rows:
        print(f"{a.file} has no launches", file=sys.stderr)
        return 1
    print(f"{data['device']}, replay {data['replay']}: {len(rows)} launches, {us(max(r['end'] for r in rows))} us")
    if a.launches != "none":
        first, _, last = a.launches.partition("-")
        print(table(rows[int(first or 0):int(last or len(rows) - 1) + 1]))
    print(sums_table(sums(rows)))
    if a.json:
        with open(a.json, "w", encoding="utf-8") as f:
            json.dump({"device": data["device"], "launches": rows, "sums": sums(rows)}, f, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
