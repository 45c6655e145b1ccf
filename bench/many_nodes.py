#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The cost of a node to `ingot build`: chains of small nodes, whose kernels and weights cost nothing.

  many_nodes.py --out FILE.json [--nodes 20000,200000,1000000] [--rounds 3]

A row has the least user and system seconds of the rounds, the peak of resident memory in MB, and both by node.
With valgrind, the instructions by node of a build of 20,000 nodes too, which no other load moves.
"""
import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "tests" / "python"), str(HERE)]
import numpy as np  # noqa: E402
import onnx  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

import ingot_command  # noqa: E402
from ray_speed import machine  # noqa: E402

OPERATORS = ["Add", "Mul", "Relu", "Sub", "Tanh"]
CONSTANTS = 7


def chain(path, count):
    """A model of `count` nodes, each over the result of the one before and every second one over a constant."""
    nodes, source = [], "x"
    for i in range(count):
        kind, result = OPERATORS[i % len(OPERATORS)], f"t{i}" if i + 1 < count else "y"
        operands = [source] if kind in ("Relu", "Tanh") else [source, f"c{i % CONSTANTS}"]
        nodes.append(helper.make_node(kind, operands, [result], name=f"n{i}"))
        source = result
    random = np.random.default_rng(0)
    graph = helper.make_graph(nodes, "chain", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [8])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, [8])],
                              [numpy_helper.from_array(random.random(8, np.float32), f"c{i}") for i in range(CONSTANTS)])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


# A child's peak of memory begins with that of its parent: a small one.
MEASURE = """
import os, subprocess, sys
child = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, used = os.wait4(child.pid, 0)
print(used.ru_utime + used.ru_stime, used.ru_maxrss)
sys.exit(os.waitstatus_to_exitcode(status))
"""


def built(model, engine):
    """(CPU seconds, peak MB) of one build."""
    told = subprocess.run([sys.executable, "-S", "-c", MEASURE, ingot_command.binary(), "build", model, "-o", engine],
                          capture_output=True, text=True, check=True).stdout
    seconds, kilobytes = told.split()
    return float(seconds), float(kilobytes) / 1e3


def instructions(folder, count=20_000):
    """Instructions of a build, by node."""
    chain(folder / "counted.onnx", count)
    told = subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder / 'out'}", ingot_command.binary(),
                           "build", folder / "counted.onnx", "-o", folder / "engine"],
                          capture_output=True, text=True, check=True).stderr
    return int(re.search(r"refs:\s+([\d,]+)", told)[1].replace(",", "")) / count


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True)
    parser.add_argument("--nodes", default="20000,200000,1000000")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    found = machine() | {"rows": {}}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for count in map(int, arguments.nodes.split(",")):
            chain(folder / "m.onnx", count)
            rounds = [built(folder / "m.onnx", folder / "m.engine") for _ in range(arguments.rounds)]
            seconds, megabytes = min(s for s, _ in rounds), max(m for _, m in rounds)
            found["rows"][count] = {"cpu_seconds": seconds, "peak_mb": megabytes, "us_by_node": 1e6 * seconds / count,
                                    "bytes_by_node": 1e6 * megabytes / count}
            print(f"{count:>9} nodes: {seconds:7.2f} s of CPU, {megabytes:7.0f} MB", flush=True)
        if shutil.which("valgrind"):
            found["instructions_by_node"] = instructions(folder)
            print(f"{found['instructions_by_node']:.0f} instructions by node")
    pathlib.Path(arguments.out).write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
