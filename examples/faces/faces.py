#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds faces in a photograph with Ultraface and draws boxes around them.

The command reads the picture, resizes it to the model's 320x240 and scales it to (x - 127) / 128;
what is left to do is to drop boxes that overlap a better one. Needs numpy and pillow.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from PIL import Image, ImageDraw

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
SHARED = pathlib.Path(os.environ.get("INGOT_SHARED") or REPOSITORY.parent / "shared")


def call(*command):
    if subprocess.run([str(part) for part in command]).returncode != 0:
        sys.exit("the ingot command failed: see above")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("picture", nargs="?", type=pathlib.Path, help="default: kimono.jpg")
    parser.add_argument("--ingot", type=pathlib.Path, default=REPOSITORY / "build" / "ingot")
    parser.add_argument("--models", type=pathlib.Path, default=SHARED / "models" / "pretrained",
                        help="folder of ultraface_rfb_320.onnx (default: %(default)s)")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("faces.png"))
    parser.add_argument("--threshold", type=float, default=0.7, help="least score of a face")
    return parser.parse_args()


def run_model(ingot, model, picture):
    """(scores [4420] of being a face, boxes [4420,4] as x1 y1 x2 y2 in fractions)."""
    with tempfile.TemporaryDirectory() as folder:
        call(ingot, "run", model, "--input", f"input={picture}", "--mean", "127",
             "--std", "128", "--save-outputs", folder)
        outputs = pathlib.Path(folder)
        return np.load(outputs / "scores.npy")[0, :, 1], np.load(outputs / "boxes.npy")[0]


def overlap(box, boxes):
    """Intersection over union of one box with each of several."""
    low, high = np.maximum(box[:2], boxes[:, :2]), np.minimum(box[2:], boxes[:, 2:])
    shared = np.clip(high - low, 0, None).prod(axis=1)
    areas = (boxes[:, 2:] - boxes[:, :2]).prod(axis=1)
    return shared / ((box[2:] - box[:2]).prod() + areas - shared)


def best_boxes(scores, boxes, threshold, most_overlap=0.3):
    """Indices of the boxes to keep, best first: none overlaps a better one by much."""
    order = np.argsort(-scores, kind="stable")
    order = order[scores[order] >= threshold]
    kept = []
    while len(order):
        first, order = order[0], order[1:]
        kept.append(first)
        order = order[overlap(boxes[first], boxes[order]) <= most_overlap]
    return kept


def draw(picture, scores, boxes, out):
    image = Image.open(picture).convert("RGB")
    pen = ImageDraw.Draw(image)
    width = max(2, image.width // 300)
    for score, box in zip(scores, boxes):
        corners = (box.reshape(2, 2) * image.size).ravel().tolist()
        pen.rectangle(corners, outline=(0, 255, 0), width=width)
        pen.text((corners[0], corners[1] - 4 * width), f"{score:.3f}", anchor="ls",
                 fill=(0, 255, 0), font_size=8 * width)
    image.save(out)


def main():
    args = parse_arguments()
    picture = args.picture or args.models / "kimono.jpg"
    scores, boxes = run_model(args.ingot, args.models / "ultraface_rfb_320.onnx", picture)
    kept = best_boxes(scores, boxes, args.threshold)
    for index in kept:
        print(f"face: score {scores[index]:.3f} at ({' '.join(f'{x:.3f}' for x in boxes[index])})")
    draw(picture, scores[kept], boxes[kept], args.out)
    print(f"{len(kept)} faces drawn into {args.out}")


if __name__ == "__main__":
    main()
