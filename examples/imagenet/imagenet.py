#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Classifies with an 8-bit MobileNetV2 (Q/DQ) and compares with scores that were recorded with it.

Rounding of ties may differ by one step a layer, so scores agree within two steps of the output's
quantisation, 0.31. The exit code says whether they do. Needs numpy and onnx.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from onnx import TensorProto, numpy_helper

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
SHARED = pathlib.Path(os.environ.get("INGOT_SHARED") or REPOSITORY.parent / "shared")
TOLERANCE = 0.31


def call(*command):
    if subprocess.run([str(part) for part in command]).returncode != 0:
        sys.exit("the ingot command failed: see above")


def read_tensor(path):
    return numpy_helper.to_array(TensorProto.FromString(path.read_bytes()))


def agree(scores, recorded):
    """Whether all scores are near and the best is the same; NaN is near nothing."""
    near = (np.abs(scores - recorded) <= TOLERANCE).all()
    return bool(near and (scores.argmax(axis=1) == recorded.argmax(axis=1)).all())


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ingot", type=pathlib.Path, default=REPOSITORY / "build" / "ingot")
    parser.add_argument("--models", type=pathlib.Path, default=SHARED / "models" / "pretrained",
                        help="folder of mobilenetv2_qdq.onnx (default: %(default)s)")
    args = parser.parse_args()
    recorded = read_tensor(args.models / "mobilenetv2_qdq_output_0.pb")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        np.save(folder / "image.npy", read_tensor(args.models / "mobilenetv2_qdq_input_0.pb"))
        call(args.ingot, "run", args.models / "mobilenetv2_qdq.onnx", "--input",
             f"image={folder / 'image.npy'}", "--save-outputs", folder)
        scores = np.load(folder / "scores.npy")
    for label, values in (("ingot", scores), ("recorded", recorded)):
        best = np.argsort(-values[0], kind="stable")[:5]
        print(f"{label:>8}: " + "  ".join(f"class {i} {values[0, i]:.2f}" for i in best))
    print(f"largest difference of a score: {np.abs(scores - recorded).max():.3f} "
          f"(allowed: {TOLERANCE})")
    if not agree(scores, recorded):
        sys.exit("the scores do not agree with the recorded ones")


if __name__ == "__main__":
    main()
