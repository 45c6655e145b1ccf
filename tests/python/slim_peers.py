#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts how many operators onnxsim and onnxslim leave of each model and of each case of the ONNX
backend suite, and writes slim_peers.json, which test_slim.py compares ingot slim with.

  pip install onnxsim==0.8.1 onnxslim==0.1.98    (in an environment of their own, with numpy)
  slim_peers.py SUITE_FOLDER                     (build/onnx_suite; takes half an hour)

The tests themselves need neither package. Cases in which neither takes anything out are left out of the file."""
import importlib.metadata
import json
import pathlib
import subprocess
import sys

import onnx

RESULT = pathlib.Path(__file__).with_name("slim_peers.json")
PEERS = ("onnxsim", "onnxslim")
LARGEST_BYTES = 2 << 30  # neither writes a model above


def count_operators(graph):
    """Nodes of the graph and of its bodies; constants are no work."""
    total = 0
    for node in graph.node:
        total += node.op_type != "Constant"
        for attribute in node.attribute:
            for body in [attribute.g, *attribute.graphs]:
                total += count_operators(body)
    return total


def simplify(peer, path):
    if peer == "onnxslim":
        import onnxslim
        return onnxslim.slim(path)
    import onnxsim
    return onnxsim.simplify(onnx.load(path))[0]


def work(paths):
    """One JSON line for each model; null where a peer fails."""
    for path in paths:
        counts = {"original": count_operators(onnx.load(path, load_external_data=False).graph)}
        for peer in PEERS:
            try:
                model = simplify(peer, path)
                onnx.checker.check_model(model)
                counts[peer] = count_operators(model.graph)
            except Exception:  # an exception of a peer means that it has no result
                counts[peer] = None
        print("\nresult", json.dumps([path, counts]), flush=True)


def measure(paths):
    """Runs `work` in processes of their own, since some models end them."""
    results = {}
    todo = [str(p) for p in paths]
    while todo:
        done = subprocess.run([sys.executable, __file__, "--work", *todo[:200]], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        lines = [line for line in done.stdout.splitlines() if line.startswith("result ")]
        results.update(json.loads(line.removeprefix("result ")) for line in lines)
        if done.returncode != 0:  # the first without a result is to blame
            results[next(path for path in todo if path not in results)] = None
        todo = [path for path in todo if path not in results]
    return results


def best(counts):
    found = [counts[peer] for peer in PEERS if counts and counts[peer] is not None]
    return min(found) if found else None


def main():
    from models import MODELS, REPOSITORY, model_file, shared_models
    suite = pathlib.Path(sys.argv[1])
    names = {str(REPOSITORY / "examples" / "digits" / "digits.onnx"): "digits"}
    for name in MODELS:
        path = model_file(name)
        if path.with_suffix(".data").stat().st_size < LARGEST_BYTES:
            names[str(path)] = name
    for path in sorted((shared_models() / "pretrained").glob("*.onnx")):
        names[str(path)] = path.stem
    models = {names[path]: {p: (counts or {}).get(p) for p in ("original", *PEERS)}
              for path, counts in sorted(measure(names).items())}
    cases = {}
    for path, counts in sorted(measure(sorted(suite.glob("*/model.onnx"))).items()):
        if counts and best(counts) is not None and best(counts) < counts["original"]:
            cases[pathlib.Path(path).parent.name] = best(counts)
    versions = {p: importlib.metadata.version(p) for p in (*PEERS, "onnx")}
    RESULT.write_text(json.dumps({"versions": versions, "models": models, "suite": cases},
                                 indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work(sys.argv[2:])
    else:
        main()
