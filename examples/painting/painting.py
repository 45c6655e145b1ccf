#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Repaints a photograph in the manner of The Starry Night, with a style-transfer model in fp16.

The command reads the picture and resizes it to the model's 224x224; values stay 0 to 255, and so
are those that come back, apart from overshoot. Needs numpy and pillow.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from PIL import Image

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
SHARED = pathlib.Path(os.environ.get("INGOT_SHARED") or REPOSITORY.parent / "shared")


def call(*command):
    if subprocess.run([str(part) for part in command]).returncode != 0:
        sys.exit("the ingot command failed: see above")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("picture", nargs="?", type=pathlib.Path, help="default: cat.png")
    parser.add_argument("--ingot", type=pathlib.Path, default=REPOSITORY / "build" / "ingot")
    parser.add_argument("--models", type=pathlib.Path, default=SHARED / "models" / "pretrained",
                        help="folder of starry_night_fp16.onnx (default: %(default)s)")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("painting.png"))
    args = parser.parse_args()
    picture = args.picture or args.models / "cat.png"
    with tempfile.TemporaryDirectory() as folder:
        call(args.ingot, "run", args.models / "starry_night_fp16.onnx", "--input",
             f"0={picture}", "--save-outputs", folder)
        painting = np.load(pathlib.Path(folder) / "307.npy")[0].astype(np.float32)
    pixels = np.clip(np.rint(painting), 0, 255).astype(np.uint8).transpose(1, 2, 0)
    Image.fromarray(pixels).save(args.out)
    print(f"painted {picture} into {args.out}")


if __name__ == "__main__":
    main()
