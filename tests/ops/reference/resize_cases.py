# SPDX-License-Identifier: Apache-2.0
"""resize: modes, coordinates and roundings, by sizes and by scales, as attributes and as inputs."""
import numpy as np

from . import formulas
from .case import Given, by_onnx, case, limits

COORDINATES = ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "half_pixel_symmetric",
               "tf_half_pixel_for_nn")
ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


def onnx_resize(x, a):
    """By ONNX; its evaluator has not got tf_half_pixel_for_nn, and takes axes in rising order."""
    order = np.argsort(a["axes"])
    n = len(order)
    attributes = {"axes": [a["axes"][i] for i in order], "mode": a["mode"], "cubic_coeff_a": a["cubic"],
                  "coordinate_transformation_mode": a["coordinates"], "antialias": int(a["antialias"]),
                  "exclude_outside": int(a["exclude_outside"]), "extrapolation_value": float(a["extrapolation"])}
    if a["mode"] == "nearest":
        attributes["nearest_mode"] = a["nearest"]
    roi = np.array([a["roi"][i + part] for part in (0, n) for i in order]) if a["roi"] else None
    by = [None, np.array([a["sizes"][i] for i in order])]
    if a["scales"]:
        by = [np.array([a["scales"][i] for i in order], np.float32), None]
    return by_onnx("Resize", [x, roi, *by], **attributes)


def resize(x, axes, sizes, inputs=(), text=None, exact=None, compare=True, symbols=None, tol=None, **attributes):
    a = {"axes": axes, "sizes": sizes, "scales": [], "mode": "nearest", "coordinates": "half_pixel",
         "nearest": "round_prefer_floor", "roi": [], "cubic": -0.75, "extrapolation": 0, "antialias": False,
         "exclude_outside": False, **attributes}
    whole = limits(x.dtype)

    def stored(y):
        return np.clip(np.rint(y), *whole) if whole else y
    shown = {**a, **(text or {})}
    for name, given in zip(("scales", "roi"), inputs):
        assert list(given.values) == list(a[name])
        shown[name] = []
    # ONNX's evaluator puts a single result at -0.5, its text at 0: the same but for cubic taps.
    single = a["coordinates"] == "pytorch_half_pixel" and a["mode"] == "cubic" and 1 in sizes
    compare = compare and a["coordinates"] != "tf_half_pixel_for_nn" and not single
    case("resize", shown, [x, *inputs], lambda x, *_: stored(formulas.resize(x, **a)),
         exact=a["mode"] == "nearest" if exact is None else exact,
         onnx=(lambda x, *_: [stored(onnx_resize(x, a)[0])]) if compare else None, symbols=symbols, tol=tol)


def nearest():
    for coordinates in COORDINATES:
        for rounding in ROUNDINGS:
            resize(Given("f32", [5]), [0], [8], coordinates=coordinates, nearest=rounding)
        resize(Given("f32", [2, 7]), [1], [3], coordinates=coordinates)
        resize(Given("f32", [3]), [0], [1], coordinates=coordinates, nearest="floor")
        # Whole factors, which some coordinates make a repetition of.
        resize(Given("f32", [1, 2, 3]), [2, 1], [6, 6], coordinates=coordinates, scales=[2, 3], nearest="floor")
        resize(Given("f32", ["N", 2, 3]), [1, 2], [4, 6], coordinates=coordinates, symbols={"N": 2})
    resize(Given("f32", [2, "H", "W"]), [1, 2], [6, 4], text={"sizes": "?[2*H,2*W]"}, scales=[2, 2],
           symbols={"H": 3, "W": 2})
    resize(Given("f32", [1, "H"]), [1], [3], text={"sizes": "?[floordiv(3*H,4)]"}, scales=[0.75], symbols={"H": 5})
    resize(Given("f32", [4], [-0.0, 1, float("nan"), -1]), [0], [8], nearest="ceil", compare=False)
    resize(Given("f32", [2, 4]), [0, 1], [3, 3], nearest="floor", coordinates="asymmetric")
    # Coordinates between two elements: 0.5, 1.5, ...
    for rounding in ROUNDINGS:
        resize(Given("f32", [7]), [0], [3], scales=[0.5], coordinates="half_pixel", nearest=rounding)
        resize(Given("f32", [4]), [0], [8], scales=[2], coordinates="asymmetric", nearest=rounding)
    for dtype in ("f16", "bf16", "i8", "u8", "i64"):
        resize(Given(dtype, [3, 2]), [0, 1], [5, 3], coordinates="asymmetric")
    resize(Given("u4", [4], span=(0, 15)), [0], [6], coordinates="align_corners")


def linear_and_cubic(mode):
    for coordinates in COORDINATES[:5]:
        resize(Given("f32", [5]), [0], [8], mode=mode, coordinates=coordinates)
        resize(Given("f32", [2, 7]), [1], [3], mode=mode, coordinates=coordinates)
        resize(Given("f32", [3, 4]), [1, 0], [1, 5], mode=mode, coordinates=coordinates)
        resize(Given("f32", ["N", "H", 3]), [1, 2], [7, 4], mode=mode, coordinates=coordinates, scales=[1.5, 1.5],
               symbols={"N": 1, "H": 5})
        resize(Given("f32", [6]), [0], [4], mode=mode, coordinates=coordinates, scales=[0.6875])
    resize(Given("f32", [5]), [0], [8], mode=mode, coordinates="tf_half_pixel_for_nn")
    resize(Given("f32", [5]), [0], [9], mode=mode, exclude_outside=True)
    resize(Given("f32", [2, 6]), [0, 1], [3, 4], mode=mode, exclude_outside=True, coordinates="align_corners")
    for sizes, scales in (([3, 3], []), ([8, 9], []), ([3, 2], [0.4375, 0.375])):
        resize(Given("f32", [7, 6]), [0, 1], sizes, scales=scales, mode=mode, antialias=True)
    resize(Given("f32", [7, "W"]), [0, 1], [2, 6], text={"sizes": "?[2,W+1]"}, mode=mode, antialias=True,
           symbols={"W": 5})
    resize(Given("f32", [8]), [0], [3], mode=mode, antialias=True, exclude_outside=True)
    resize(Given("f16", [2, 4]), [0, 1], [3, 7], mode=mode)
    resize(Given("bf16", [6]), [0], [4], mode=mode, antialias=True)
    resize(Given("f64", [5]), [0], [7], mode=mode, tol=1e-9)
    resize(Given("i8", [4], [-128, 127, -128, 127]), [0], [7], mode=mode)
    resize(Given("u8", [4], [0, 255, 255, 0]), [0], [7], mode=mode)
    resize(Given("i8", [5], [0, 1, 2, -1, -2]), [0], [10], mode=mode, coordinates="asymmetric")
    resize(Given("i32", [3], [-1000001, 70000, 999999]), [0], [5], mode=mode, coordinates="align_corners", tol=1)


def regions():
    region = {"coordinates": "tf_crop_and_resize", "extrapolation": 7.5}
    for mode in ("nearest", "linear", "cubic"):
        resize(Given("f32", [5]), [0], [7], roi=[0.25, 0.75], mode=mode, **region)
        resize(Given("f32", [4, 3]), [0, 1], [3, 5], roi=[-0.5, 0.125, 1.25, 2], mode=mode, **region)
        resize(Given("f32", [4, 5]), [1, 0], [2, 1], roi=[0.75, 0.5, 0.25, 1], mode=mode, **region)
        resize(Given("f32", [6]), [0], [4], (Given("f32", [1], [0.75]), Given("f32", [2], [0.125, 1.5])),
               scales=[0.75], roi=[0.125, 1.5], mode=mode, **region)
        resize(Given("f32", [2, 5]), [0, 1], [3, 4], (Given("f32", [2], [1.5, 0.875]),), scales=[1.5, 0.875],
               mode=mode)
        resize(Given("f32", [6]), [0], [3], (Given("f32", [1], [0.5]),), scales=[0.5], mode=mode,
               coordinates="asymmetric")
    for a in (-0.5, 0.25):
        resize(Given("f32", [5]), [0], [8], mode="cubic", cubic=a)
        resize(Given("f32", [9]), [0], [4], mode="cubic", cubic=a, antialias=True)


def add():
    nearest()
    linear_and_cubic("linear")
    linear_and_cubic("cubic")
    regions()
