# SPDX-License-Identifier: Apache-2.0
"""Runs the ingot command for tests and benchmarks, and parses its output."""
import os
import pathlib
import re
import subprocess

import numpy as np

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
DIGITS = REPOSITORY / "examples" / "digits"


def binary():
    """The command under test: $INGOT, else build/ingot of this clone."""
    path = pathlib.Path(os.environ.get("INGOT") or REPOSITORY / "build" / "ingot")
    if not path.is_file():
        raise FileNotFoundError(f"no ingot command at {path}: run './dev build', or set INGOT")
    return path


def call(*arguments, timeout=600):
    """Runs the command; a failure raises with its whole output."""
    command = [str(binary()), *map(str, arguments)]
    # Lines on stderr are not part of a JSON text.
    apart = subprocess.PIPE if "--json" in arguments else subprocess.STDOUT
    done = subprocess.run(command, text=True, timeout=timeout, stdout=subprocess.PIPE, stderr=apart)
    if done.returncode != 0:
        raise RuntimeError(f"exit code {done.returncode} of {' '.join(command)}\n{done.stdout}{done.stderr or ''}")
    return done.stdout


def fails(*arguments):
    """Exit code and output of a call that must fail, and not by a crash."""
    done = subprocess.run([str(binary()), *map(str, arguments)], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=120, stdin=subprocess.DEVNULL)
    assert done.returncode not in (0, -6, -11), done.stdout
    return done.returncode, done.stdout


def build(model, engine, options=()):
    call("build", model, "-o", engine, *options)


def run(engine, inputs, folder, device="cpu", extra=()):
    """Runs an engine on arrays; all goes through .npy files in `folder`."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    options = []
    for name, array in inputs.items():
        np.save(folder / f"input_{name}.npy", array)
        options += ["--input", f"{name}={folder / f'input_{name}.npy'}"]
    results = folder / "outputs"
    call("run", engine, *options, "--save-outputs", results, "--device", device, *extra)
    return {path.stem: np.load(path) for path in sorted(results.glob("*.npy"))}


def median_latency(text):
    """The median latency in ms, out of a performance summary."""
    found = re.search(r"^.*\bLatency: min = .*?, median = ([0-9.eE+-]+) ms", text, re.MULTILINE)
    if not found:
        raise RuntimeError(f"no latency in what ingot printed:\n{text}")
    return float(found.group(1))
