#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The whole way, once: builds an engine from digits.onnx, runs it on handwritten digits that it was
not trained on, shows pictures beside predictions, then measures the speed. Needs numpy alone."""
import argparse
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
SHADES = " .:-=+*#%@"
SHOWN = 6


def call(*command, since=""):
    """Runs a command and shows it with what it prints, indented, from the line with `since` on."""
    command = [str(part) for part in command]
    print(f"$ {' '.join(command)}", flush=True)
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    found = done.stdout.find(since) if done.returncode == 0 else 0
    start = done.stdout.rfind("\n", 0, max(found, 0)) + 1
    for line in done.stdout[start:].splitlines():
        print(f"    {line}")
    if done.returncode != 0:
        sys.exit(f"demo: the command above failed with exit code {done.returncode}")
    print(flush=True)


def as_text(picture):
    """The rows of an 8x8 picture in 0..1, two characters a pixel."""
    levels = np.clip(picture * len(SHADES), 0, len(SHADES) - 1).astype(int)
    return ["".join(SHADES[level] * 2 for level in row) for row in levels]


def show(images, predictions, labels):
    """Some pictures side by side, each above what the network says and what was written."""
    for line in zip(*(as_text(image[0]) for image in images)):
        print("   ".join(line).rstrip())
    said = (f"says {p}, is {l}" + ("" if p == l else " (!)") for p, l in zip(predictions, labels))
    print("   ".join(f"{text:^16}" for text in said) + "\n")


def choose(correct):
    """A handful to show: the first ones, and a mistake in the last place if there is one."""
    chosen = np.arange(min(SHOWN, len(correct)))
    mistakes = np.flatnonzero(~correct)
    if len(mistakes) and mistakes[0] not in chosen:
        chosen[-1] = mistakes[0]
    return chosen


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ingot", type=pathlib.Path, default=HERE.parents[1] / "build" / "ingot",
                        help="the ingot command (default: %(default)s)")
    ingot = parser.parse_args().ingot
    if not ingot.is_file():
        sys.exit(f"demo: no ingot command at {ingot}: run './dev build', or give --ingot PATH")
    images = np.load(HERE / "held_out_images.npy")
    labels = np.load(HERE / "held_out_labels.npy")
    with tempfile.TemporaryDirectory() as folder:
        engine = pathlib.Path(folder) / "digits.engine"
        call(ingot, "build", HERE / "digits.onnx", "-o", engine, "--minShapes=image:1x1x8x8",
             "--optShapes=image:1x1x8x8", f"--maxShapes=image:{len(images)}x1x8x8")
        call(ingot, "run", engine, "--input", f"image={HERE / 'held_out_images.npy'}",
             "--save-outputs", folder)
        scores = np.load(pathlib.Path(folder) / "scores.npy")
        correct = scores.argmax(axis=1) == labels
        chosen = choose(correct)
        show(images[chosen], scores[chosen].argmax(axis=1), labels[chosen])
        print(f"accuracy on {len(labels)} held-out digits: {correct.mean():.2%}\n")
        call(ingot, "bench", f"--loadEngine={engine}", "--shapes=image:1x1x8x8", "--duration=1",
             since="=== Performance summary ===")


if __name__ == "__main__":
    main()
