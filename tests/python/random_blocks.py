# SPDX-License-Identifier: Apache-2.0
"""Blocks of random models (random_builder.py) without weights: elementwise functions, moved and selected elements,
reductions, control flow, quantisation. Rounding must not jump, since CPUs round differently: comparisons select between
values that meet there, and indices, integers and codes come from exact values."""
import numpy as np
from onnx import TensorProto, helper

from random_builder import BOOL, FLOAT, GRID, INT64, require
from random_layers import gated

FUNCTIONS = ("Relu", "Sigmoid", "Tanh", "LeakyRelu", "Elu", "HardSigmoid", "Softplus", "Selu", "Abs", "Neg", "Erf", "Celu",
             "Softsign", "Sin")


def function(b, x):
    return b.add(b.pick(*FUNCTIONS), [x])


def silu(b, x):
    return b.add("Mul", [x, b.add("Sigmoid", [x])])


def gelu(b, x):
    erf = b.add("Erf", [b.add("Div", [x, b.scalar(np.sqrt(2))])])
    return b.add("Mul", [b.add("Mul", [x, b.add("Add", [erf, b.scalar(1)])]), b.scalar(0.5)])


def gelu_by_tanh(b, x):
    cube = b.add("Mul", [b.add("Pow", [x, b.scalar(3)]), b.scalar(0.044715)])
    t = b.add("Tanh", [b.add("Mul", [b.add("Add", [x, cube]), b.scalar(0.7978845608)])])
    return b.add("Mul", [b.add("Mul", [x, b.scalar(0.5)]), b.add("Add", [t, b.scalar(1)])])


def mish(b, x):
    return b.add("Mul", [x, b.add("Tanh", [b.add("Softplus", [x])])])


def hard_swish(b, x):
    if b.opset >= 14 and b.chance(0.5):
        return b.add("HardSwish", [x])
    clipped = b.add("Clip", [b.add("Add", [x, b.scalar(3)]), b.scalar(0), b.scalar(6)])
    return b.add("Div", [b.add("Mul", [x, clipped]), b.scalar(6)])


def prelu(b, x):
    shape = b.shape(x)
    require(shape)
    slopes = [shape[1]] + [1] * (len(shape) - 2) if len(shape) > 1 else [1]
    return b.add("PRelu", [x, b.weights(*slopes, scale=0.3)])


def clip(b, x):
    low, high = b.pick(("", b.scalar(0.7)), (b.scalar(-0.5), ""), (b.scalar(0), b.scalar(6)))
    return b.add("Clip", [x, low, high])


def bounded_exp(b, x):
    return b.add("Exp", [b.add("Clip", [x, "", b.scalar(2)])])


def root(b, x):
    """Away from zero, where a root is steep."""
    return b.add("Sqrt", [b.add("Add", [b.add("Abs", [x]), b.scalar(0.1)])])


def activation(b, x):
    return b.pick(function, function, function, silu, gelu, gelu_by_tanh, mish, hard_swish, prelu, clip, bounded_exp, root)(b, x)


def binary(b, x):
    """With weights that are broadcast, or with another function of the same value."""
    shape = b.shape(x)
    kept = [int(n) if b.chance(0.5) else 1 for n in shape]
    if b.dynamic and kept:
        kept[0] = 1
    y = b.weights(*kept[b.integer(0, len(kept) + 1):]) if b.chance(0.8) else gated(b, x)
    operator = b.pick("Add", "Sub", "Mul", "Max", "Min", "Div", "Pow", "Mean", "Sum")
    if operator == "Pow":
        base = b.add("Add", [b.add("Abs", [x]), b.scalar(0.1)])
        return b.add("Pow", [base, b.scalar(b.pick(0.5, 2, 1.5, -1, 3))])
    if operator in ("Mean", "Sum"):
        return b.add(operator, [x, y, x])
    first, second = b.pick((x, y), (y, x))
    if operator == "Div":
        second = b.add("Add", [b.add("Abs", [second]), b.scalar(0.5)])
    return b.add(operator, [first, second])


def selection(b, x):
    """By a comparison where both sides are equal or zero at the jump, or by a mask."""
    kind = b.pick("larger", "positive", "factor", "mask")
    if kind == "larger":
        y = gated(b, x)
        return b.add("Where", [b.add(b.pick("Greater", "Less", "GreaterOrEqual", "LessOrEqual"), [x, y]), x, y])
    if kind == "positive":
        positive = b.add(b.pick("Greater", "GreaterOrEqual"), [x, b.scalar(0)])
        return b.add("Where", [positive, x, b.add("Mul", [x, b.scalar(0.2)])])
    if kind == "factor":
        return b.add("Mul", [x, b.add("Cast", [b.add("Less", [x, b.scalar(0)])], to=FLOAT)])
    mask = b.input(b.shape(x), BOOL, lambda random, shape: random.random(shape) < 0.6)
    if b.chance(0.5):
        mask = b.add("Not", [mask])
    return b.add("Where", [mask, x, b.scalar(0.3)])


def pad(b, x):
    shape = b.shape(x)
    require(shape)
    mode = b.pick("constant", "constant", "reflect", "edge")
    before, after = [0] * len(shape), [0] * len(shape)
    for axis, length in enumerate(shape):
        if b.chance(0.5):
            limit = min(3, length) if mode == "reflect" else 3
            before[axis], after[axis] = b.integer(0, limit), b.integer(0, limit)
            if mode == "constant" and length > 2 and b.chance(0.2):
                before[axis] = -1
    value = [b.scalar(0.25)] if mode == "constant" and b.chance(0.5) else []
    return b.add("Pad", [x, b.int64(*before, *after), *value], mode=mode)


def slices(b, x):
    shape = b.shape(x)
    require(shape)
    axis = b.integer(0, len(shape))
    length = shape[axis]
    require(length > 1)
    start = b.integer(0, length - 1)
    bounds = start, b.integer(start + 1, length + 1), b.pick(1, 1, 2)
    first, last, step = b.pick(bounds, bounds, bounds, (-1, -2**31, -1))
    return b.add("Slice", [x, b.int64(first), b.int64(last), b.int64(b.pick(axis, axis - len(shape))), b.int64(step)])


def concat(b, x):
    shape = b.shape(x)
    require(shape)
    axis = b.integer(0, len(shape))
    parts = [x, b.pick(activation, lambda b, x: x, lambda b, x: b.weights(*shape))(b, x)]
    if b.chance(0.3):
        parts.append(activation(b, x))
    if b.chance(0.5):
        parts.reverse()
    return b.add("Concat", parts, axis=b.pick(axis, axis - len(shape)))


def split(b, x):
    """Halves that are joined again, or parts that change places."""
    shape = b.shape(x)
    axes = [axis for axis, length in enumerate(shape) if length % 2 == 0]
    require(axes)
    axis = b.pick(*axes)
    if b.chance(0.3):
        size = b.integer(1, shape[axis])
        first, second = b.add("Split", [x, b.int64(size, shape[axis] - size)], 2, axis=axis)
        return b.add("Concat", b.pick([gated(b, second), first], [first, gated(b, second)]), axis=axis)
    first, second = b.add("Split", [x], 2, axis=axis, **({"num_outputs": 2} if b.opset >= 18 else {}))
    joined = b.pick("gate", "turn", "Concat", "Add", "Mul")
    if joined == "gate":
        return b.add("Mul", [first, b.add("Sigmoid", [second])])
    if joined == "turn":
        return b.add("Concat", [b.add("Neg", [second]), first], axis=axis)
    return b.add(joined, [second, first], **({"axis": axis} if joined == "Concat" else {}))


def channel_shuffle(b, x):
    shape = b.shape(x)
    require(len(shape) == 4)
    batch, channels, height, width = shape
    groups = b.pick(2, 3, 4)
    require(channels % groups == 0)
    y = b.add("Reshape", [x, b.int64(b.batch(batch), groups, channels // groups, height, width)])
    y = b.add("Transpose", [y], perm=[0, 2, 1, 3, 4])
    return b.add("Reshape", [y, b.int64(b.batch(batch), channels, height, width)])


def depth_and_space(b, x):
    shape = b.shape(x)
    require(len(shape) == 4)
    if shape[1] % 4 == 0 and b.chance(0.5):
        return b.add("DepthToSpace", [x], blocksize=2, mode=b.pick("DCR", "CRD"))
    require(shape[2] % 2 == 0 and shape[3] % 2 == 0)
    return b.add("SpaceToDepth", [x], blocksize=2)


def transpose(b, x):
    rank = len(b.shape(x))
    require(rank >= 2)
    return b.add("Transpose", [x], perm=[int(axis) for axis in b.random.permutation(rank)])


def reshape(b, x):
    """Flattened, with sizes that are kept or left open, with a new axis, with the last one split, or by a shape that is
    computed."""
    shape = b.shape(x)
    require(shape)
    kind = b.pick("flatten", "open", "kept", "axis", "split", "computed")
    if kind == "flatten":
        return b.add("Flatten", [x], axis=b.integer(0, len(shape) + 1))
    if kind == "open":
        return b.add("Reshape", [x, b.int64(0 if b.dynamic else shape[0], -1)])
    if kind == "axis":
        return b.add("Unsqueeze", [x, b.int64(b.integer(0, len(shape) + 1))])
    if kind == "split":
        parts = b.pick(2, 3, 4, 8)
        require(shape[-1] % parts == 0)
        return b.add("Reshape", [x, b.int64(*[0] * (len(shape) - 1), parts, shape[-1] // parts)])
    require(len(shape) >= 3)
    if kind == "kept":
        return b.add("Reshape", [x, b.int64(0, 0, -1)])
    first = b.add("Gather", [b.add("Shape", [x]), b.constant(np.int64(0))], axis=0)
    sizes = b.add("Concat", [b.add("Unsqueeze", [first, b.int64(0)]), b.int64(-1), b.int64(shape[-1])], axis=0)
    return b.add("Reshape", [x, sizes])


def repeat(b, x):
    shape = b.shape(x)
    require(shape and len(shape) <= 4 and np.prod(shape) <= 5000)
    kind = b.pick("Tile", "Expand", "heads")
    if kind == "Tile":
        return b.add("Tile", [x, b.int64(*(b.pick(1, 1, 2) for _ in shape))])
    if kind == "heads" and len(shape) == 4:
        y = b.add("Expand", [b.add("Unsqueeze", [x, b.int64(2)]), b.int64(1, 1, 3, 1, 1)])
        return b.add("Reshape", [y, b.int64(b.batch(shape[0]), shape[1] * 3, *shape[2:])])
    return b.add("Expand", [x, b.int64(b.pick(1, 2), *[1] * len(shape))])


def reduction(b, x):
    shape = b.shape(x)
    require(shape)
    operator = b.pick("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceL2", "ReduceL1", "ReduceLogSumExp",
                      "ReduceSumSquare", "ReduceProd")
    axes = [int(axis) for axis in b.random.permutation(len(shape))[:b.integer(1, len(shape) + 1)]]
    count = int(np.prod([shape[axis] for axis in axes]))
    require(operator != "ReduceProd" or count <= 16)
    y = b.reduce(operator, x, [b.pick(axis, axis - len(shape)) for axis in axes], keepdims=b.integer(0, 2))
    is_sum = operator in ("ReduceSum", "ReduceSumSquare", "ReduceL1")
    return b.add("Mul", [y, b.scalar(1 / count)]) if is_sum else y


def along_axis(b, x):
    shape = b.shape(x)
    require(shape)
    axis = b.integer(0, len(shape))
    kind = b.pick("sum", "triangle", "largest", "sorted")
    if kind == "sum":
        y = b.add("CumSum", [x, b.constant(np.int64(axis))], exclusive=b.integer(0, 2), reverse=b.integer(0, 2))
        return b.add("Mul", [y, b.scalar(1 / shape[axis])])
    if kind == "triangle":
        require(len(shape) >= 2 and b.opset >= 14)
        return b.add("Trilu", [x, b.constant(np.int64(b.pick(-1, 0, 1, 2)))], upper=b.integer(0, 2))
    if kind == "largest":  # the element, which two indices near a tie share
        return b.add("GatherElements", [x, b.add(b.pick("ArgMax", "ArgMin"), [x], axis=axis, keepdims=1)], axis=axis)
    count = b.int64(b.integer(1, shape[axis] + 1))
    return b.add("TopK", [x, count], 2, axis=axis, largest=b.integer(0, 2))[0]


def chosen(b, x):
    """Rows at the largest of scores that are an input, so that they have no ties; or these rows' indices alone."""
    shape = b.shape(x)
    require(shape)
    axis = b.integer(min(1, len(shape) - 1), len(shape))
    scores = b.input((2, shape[axis]), values=lambda random, shape: np.stack(
        [random.permutation(shape[1]) for _ in range(shape[0])]).astype(np.float32))
    kind = b.pick("best", "first", "table")
    if kind == "table":
        best = b.add("ArgMax", [scores], axis=1, keepdims=0, select_last_index=b.integer(0, 2))
        ends = b.constant(np.array([-0.5, 1.5], np.float32))
        return b.add("OneHot", [best, b.constant(np.int64(shape[axis])), ends], axis=b.pick(-1, 0))
    if kind == "best":
        indices = b.add(b.pick("ArgMax", "ArgMin"), [scores], axis=1, keepdims=b.integer(0, 2))
    else:
        indices = b.add("TopK", [scores, b.int64(b.integer(1, shape[axis] + 1))], 2, axis=1, largest=b.integer(0, 2))[1]
    return b.add("Gather", [x, indices], axis=axis)


def gather(b, x):
    shape = b.shape(x)
    require(shape)
    axis = b.integer(0, len(shape))
    length = shape[axis]
    kind = b.pick("constant", "constant", "input", "elements", "nd")
    if kind == "input":
        indices = b.input((3,), INT64, lambda random, shape: random.integers(-length, length, size=shape))
        return b.add("Gather", [x, indices], axis=axis)
    if kind == "elements":
        require(not b.dynamic)
        size = [*shape[:axis], b.integer(1, 5), *shape[axis + 1:]]
        return b.add("GatherElements", [x, b.constant(b.random.integers(-length, length, size=size))], axis=axis)
    if kind == "nd":
        lengths = [1 if b.dynamic and i == 0 else n for i, n in enumerate(shape[:b.integer(1, len(shape) + 1)])]
        return b.add("GatherND", [x, b.constant(np.stack([b.random.integers(0, n, size=3) for n in lengths], 1))])
    size = b.pick((), (1,), (3,), (2, 2))
    indices = b.random.integers(-length, length, size=size)
    return b.add("Gather", [x, b.constant(np.asarray(indices, b.pick(np.int64, np.int32)))], axis=axis)


def scatter(b, x):
    """Where elements may meet, they are added, multiplied or compared; others have places of their own."""
    shape = b.shape(x)
    require(shape and not b.dynamic)
    if b.chance(0.4):
        count = min(2, shape[0])
        rows = b.random.permutation(shape[0])[:count].reshape(count, 1)
        return b.add("ScatterND", [x, b.constant(rows), b.weights(count, *shape[1:])])
    axis = b.integer(0, len(shape))
    size = [*shape[:axis], min(2, shape[axis]), *shape[axis + 1:]]
    reduction = b.pick("none", "add", "mul", "max") if b.opset >= 18 else b.pick("none", "add") if b.opset >= 16 else "none"
    if reduction == "none":
        indices = np.argsort(b.random.random(size=shape), axis=axis).take(range(size[axis]), axis=axis)
    else:
        indices = b.random.integers(-shape[axis], shape[axis], size=size)
    return b.add("ScatterElements", [x, b.constant(indices), b.weights(*size)], axis=axis,
                 **({"reduction": reduction} if b.opset >= 16 else {}))


def graph(name, nodes, inputs, outputs):
    """The body of a control flow; inputs and outputs are (name, element type, shape)."""
    return helper.make_graph(nodes, name, *([helper.make_tensor_value_info(*value) for value in values]
                                            for values in (inputs, outputs)))


def branches(b, x):
    """The condition is an input: computed from floats it could change with their rounding."""
    condition, first, second = b.input((), BOOL, lambda random, shape: np.array(random.random() < 0.5)), b.name(), b.name()
    return b.add("If", [condition],
                 then_branch=graph("then", [helper.make_node("Relu", [x], [first])], [], [(first, FLOAT, None)]),
                 else_branch=graph("else", [helper.make_node("Tanh", [x], [second])], [], [(second, FLOAT, None)]))


def loop(b, x):
    turn, go, going, before, after, mean = (b.name() for _ in range(6))
    body = graph("body", [helper.make_node("Identity", [go], [going]), helper.make_node("Tanh", [before], [after]),
                          helper.make_node("ReduceMean", [after], [mean], keepdims=0)],
                 [(turn, INT64, []), (go, BOOL, []), (before, FLOAT, None)],
                 [(going, BOOL, []), (after, FLOAT, None), (mean, FLOAT, [])])
    result = b.add("Loop", [b.constant(np.int64(3)), "", x], 2, body=body)[0]
    b.types[result] = b.types[x]  # shape inference does not look into a loop
    return result


def scan(b, x):
    shape = b.shape(x)
    require(len(shape) >= 2 and shape[0] <= 12 and not b.dynamic)
    before, row, after, result = (b.name() for _ in range(4))
    body = graph("body", [helper.make_node("Add", [before, row], [after]), helper.make_node("Tanh", [after], [result])],
                 [(before, FLOAT, shape[1:]), (row, FLOAT, shape[1:])],
                 [(after, FLOAT, shape[1:]), (result, FLOAT, shape[1:])])
    return b.add("Scan", [b.weights(*shape[1:], scale=0.5), x], 2, body=body, num_scan_inputs=1)[1]


def exact(b, x):
    require(x in b.exact)
    return b.shape(x)


def rounded(b, x):
    """Integers of exact values, and functions that jump."""
    exact(b, x)
    kind = b.pick("Round", "Floor", "Ceil", "Sign", "cast", "integers", "comparison")
    y = b.add("Mul", [x, b.scalar(16)])
    if kind == "cast":
        element = b.pick("INT32", "INT64", "INT8", "UINT8", "INT16", "BOOL", "DOUBLE")
        y = b.add("Abs", [y]) if element == "UINT8" else y
        y = b.add("Cast", [b.add("Cast", [y], to=TensorProto.DataType.Value(element))], to=FLOAT)
    elif kind == "integers":
        y = b.add("Cast", [y], to=TensorProto.INT32)
        operators = ("Mod", "Div") + (("BitwiseAnd", "BitwiseOr", "BitwiseXor") if b.opset >= 18 else ())
        y = b.add("Cast", [b.add(b.pick(*operators), [y, b.constant(np.int32(b.pick(3, 7, -5)))])], to=FLOAT)
    elif kind == "comparison":
        sides = b.add("Greater", [y, b.scalar(2)]), b.add("Less", [x, b.scalar(0.5)])
        return b.add("Where", [b.add(b.pick("And", "Or", "Xor"), sides), x, b.scalar(0.25)])
    else:
        y = b.add(kind, [y])
    return b.add("Mul", [y, b.scalar(0.0625)])


def codes(b, x):
    """Quantised and back, by tensor or by channel."""
    shape = exact(b, x)
    by_channel = {"axis": 1} if len(shape) >= 2 and b.chance(0.4) else {}
    if by_channel:
        scale = b.constant(GRID * 2.0 ** b.random.integers(-1, 2, size=shape[1]).astype(np.float32))
        zero = b.constant(np.zeros(shape[1], np.int8))
    else:
        scale, zero = b.constant(GRID), b.constant(b.pick(np.uint8(128), np.uint8(100), np.int8(0), np.int8(3)))
    quantized = b.add("QuantizeLinear", [x, scale, zero], **by_channel)
    y = b.add("DequantizeLinear", [quantized, scale, zero], **by_channel)
    if not by_channel:
        b.exact.add(y)
    return y


def quantized_weights(b, *shape, axis):
    """Weights in int8 with scales by channel that are powers of two."""
    scales = 2.0 ** b.random.integers(-8, -6, size=shape[axis])
    return b.add("DequantizeLinear", [b.constant(b.random.integers(-127, 128, size=shape).astype(np.int8)),
                                      b.constant(scales.astype(np.float32)),
                                      b.constant(np.zeros(shape[axis], np.int8))], axis=axis)


def between_codes(b, *shape):
    """A bias that keeps sums of products off the middle between two codes, with room for rounding."""
    steps = b.random.integers(-8, 9, size=shape).astype(np.float32)
    return b.constant(steps * GRID + np.float32(2.0**-14))


def quantized_layer(b, x):
    """A product or convolution whose operands are codes."""
    shape = exact(b, x)
    x = codes(b, x)
    require(x in b.exact)
    if len(shape) == 4 and b.chance(0.7):
        filters, group = b.pick((4, 1), (8, 1), (16, 1), (shape[1], shape[1]))
        weights = quantized_weights(b, filters, shape[1] // group, 3, 3, axis=0)
        y = b.add("Conv", [x, weights, between_codes(b, filters)], pads=[1, 1, 1, 1], group=group)
        if b.chance(0.6):
            y = b.add("Relu", [y])
    else:
        require(len(shape) >= 2)
        size = b.pick(5, 8, 16)
        y = b.add("MatMul", [x, quantized_weights(b, shape[-1], size, axis=1)])
        y = b.add("Add", [y, between_codes(b, size)])
    if b.chance(0.4):
        return y
    scale, zero = b.constant(GRID * b.pick(1, 2, 4)), b.constant(b.pick(np.uint8(128), np.uint8(100), np.int8(0), np.int8(3)))
    return b.add("DequantizeLinear", [b.add("QuantizeLinear", [y, scale, zero]), scale, zero])


def dynamic_codes(b, x):
    """The scale that an input's range gives is the grid. Without VNNI, ONNX Runtime adds two products of bytes in 16 bits,
    which holds those of weights of 7 bits."""
    shape = exact(b, x)
    require(x == b.inputs[0][0] and len(shape) >= 2)
    quantized, scale, zero = b.add("DynamicQuantizeLinear", [x], 3)
    if b.chance(0.4):
        return b.add("DequantizeLinear", [quantized, scale, zero])
    weights = b.constant(b.random.integers(-64, 65, size=(shape[-1], b.pick(5, 8, 16))).astype(np.int8))
    zeros = [b.constant(np.int8(3))] if b.chance(0.5) else []
    y = b.add("Cast", [b.add("MatMulInteger", [quantized, weights, zero, *zeros])], to=FLOAT)
    return b.add("Mul", [y, b.add("Mul", [scale, b.scalar(0.01)])])


OTHER = [activation, activation, activation, binary, binary, selection, pad, slices, concat, concat, split, channel_shuffle,
         depth_and_space, transpose, reshape, reshape, repeat, reduction, along_axis, chosen, gather, gather, scatter,
         branches, loop, scan]
QUANTIZED = [rounded, codes, quantized_layer, quantized_layer, dynamic_codes]
