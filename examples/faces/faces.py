#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds faces in a photograph with Ultraface and draws boxes around them.

The command reads the picture, resizes it to the model's 320x240 and scales it to (x - 127) / 128;
what is left to do is to drop boxes that overlap a better one. Needs numpy and pillow.

With --int8 the model is calibrated on crops of the picture, by each algorithm that is named (all of
them if none is), and finds the faces in int8.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from PIL import Image, ImageDraw

ALGORITHMS = ("entropy2", "entropy", "minmax", "percentile", "legacy", "mse")
PREPROCESSING = ("--mean", "127", "--std", "128")
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
    parser.add_argument("--int8", nargs="*", choices=ALGORITHMS, metavar="ALGORITHM",
                        help=f"calibrate and run in int8: {', '.join(ALGORITHMS)} (default: all)")
    return parser.parse_args()


def run_model(ingot, model, picture):
    """(scores [4420] of being a face, boxes [4420,4] as x1 y1 x2 y2 in fractions)."""
    with tempfile.TemporaryDirectory() as folder:
        call(ingot, "run", model, "--input", f"input={picture}", *PREPROCESSING,
             "--save-outputs", folder)
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


def save_crops(picture, folder, count=40):
    """Samples for calibration: the picture from near and far, each the same anywhere."""
    image = Image.open(picture).convert("RGB")
    rng = np.random.default_rng(0)
    for i in range(count):
        share = rng.uniform(0.4, 1)
        size = np.maximum((np.array(image.size) * share).astype(int), 1)
        left, top = (int(x) for x in rng.integers(0, np.array(image.size) - size + 1))
        crop = image.crop((left, top, left + int(size[0]), top + int(size[1])))
        crop.resize((320, 240), Image.BILINEAR).save(folder / f"{i:02}.png")


def quantise(ingot, model, samples, algorithm, folder):
    """An engine of the model that computes in int8."""
    cache, engine = folder / f"{algorithm}.cache", folder / f"{algorithm}.engine"
    call(ingot, "calibrate", model, "--data", samples, "--algorithm", algorithm, *PREPROCESSING,
         "-o", cache)
    call(ingot, "build", model, "--int8", f"--calib={cache}", "-o", engine)
    return engine


def find_faces(args, model, picture, title=""):
    """Prints the faces; returns their scores and boxes."""
    scores, boxes = run_model(args.ingot, model, picture)
    kept = best_boxes(scores, boxes, args.threshold)
    for index in kept:
        print(f"{title}face: score {scores[index]:.3f} at "
              f"({' '.join(f'{x:.3f}' for x in boxes[index])})")
    return scores[kept], boxes[kept]


def main():
    args = parse_arguments()
    picture = args.picture or args.models / "kimono.jpg"
    model = args.models / "ultraface_rfb_320.onnx"
    scores, boxes = find_faces(args, model, picture)
    if args.int8 is not None:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "samples").mkdir()
            save_crops(picture, folder / "samples")
            for algorithm in args.int8 or ALGORITHMS:
                engine = quantise(args.ingot, model, folder / "samples", algorithm, folder)
                found, _ = find_faces(args, engine, picture, f"int8 by {algorithm}: ")
                print(f"int8 by {algorithm}: {len(found)} of {len(scores)} faces")
    draw(picture, scores, boxes, args.out)
    print(f"{len(scores)} faces drawn into {args.out}")


if __name__ == "__main__":
    main()
