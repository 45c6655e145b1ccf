# SPDX-License-Identifier: Apache-2.0
"""grid_sample: modes, paddings and corners, over one to three axes."""
from . import formulas
from .case import Given, by_onnx, case


def grid_sample(x, grid, mode="linear", padding="zeros", align=False, compare=True, **options):
    def onnx(x, grid):
        return by_onnx("GridSample", [x.astype(float), grid.astype(float)], mode=mode, padding_mode=padding,
                       align_corners=int(align))
    # The evaluator of ONNX 1.23 moves cubic positions inside first, as PyTorch and ONNX Runtime do not.
    clamped = mode == "cubic" and padding != "zeros"
    case("grid_sample", {"mode": mode, "padding": padding, "align_corners": align}, [x, grid],
         lambda x, grid: formulas.grid_sample(x, grid, mode, padding, align),
         onnx=onnx if compare and not clamped else None, **options)


def all_modes():
    beyond = {"span": (-2, 2)}
    for mode in ("linear", "nearest", "cubic"):
        for padding in ("zeros", "border", "reflection"):
            for align in (False, True):
                grid_sample(Given("f32", [1, 2, 3, 4]), Given("f32", [1, 2, 3, 2], **beyond), mode, padding, align)
                # ONNX's evaluator has no cubic interpolation of one axis or of three.
                grid_sample(Given("f32", [2, 1, 5]), Given("f32", [2, 4, 1], **beyond), mode, padding, align,
                            compare=False)
                grid_sample(Given("f32", [1, 2, 2, 3, 2]), Given("f32", [1, 1, 2, 2, 3], **beyond), mode, padding, align,
                            compare=mode != "cubic")
        for dtype in ("f16", "bf16"):
            grid_sample(Given(dtype, [1, 2, 3, 3]), Given("f32", [1, 2, 2, 2], **beyond), mode, tol=1e-2)
        grid_sample(Given("f64", [1, 1, 3, 3]), Given("f64", [1, 3, 1, 2], **beyond), mode, tol=1e-9)


def add():
    all_modes()
    grid_sample(Given("f32", ["N", "C", "H", 3]), Given("f32", ["N", "P", 2, 2], span=(-2, 2)),
                symbols={"N": 2, "C": 2, "H": 4, "P": 3})
    grid_sample(Given("f16", [1, 2, 3, 3]), Given("f16", [1, 2, 2, 2], span=(-2, 2)), tol=1e-2)
    grid_sample(Given("u8", [1, 2, 3, 3]), Given("f32", [1, 2, 2, 2], span=(-1, 1)), "nearest")
    grid_sample(Given("f32", [1, 2, 1, 1]), Given("f32", [1, 2, 2, 2], span=(-9, 9)), "linear", "reflection", True,
                compare=False)  # an axis of one element: the evaluator divides by 0
