# SPDX-License-Identifier: Apache-2.0
"""Blocks of random models (random_builder.py) that have weights or windows: convolutions, pooling, resizing,
normalisations, products, attention, recurrent cells."""
import numpy as np

from random_builder import FLOAT, INT64, LAST, require


def gated(b, x):
    return b.add(b.pick("Relu", "Tanh", "Sigmoid"), [x])


def batch_norm(b, x):
    shape = b.shape(x)
    require(len(shape) >= 2)
    return normalized_batch(b, x, shape[1])


def normalized_batch(b, x, channels):
    return b.add("BatchNormalization", [x, b.weights(channels), b.weights(channels, scale=0.2),
                                        b.weights(channels, scale=0.2), b.positive(channels)])


def padding(b, kernel, dilations):
    """Attributes of a convolution's padding."""
    rank = len(kernel)
    kind = b.pick("pads", "pads", "same", "SAME_UPPER", "SAME_LOWER", "VALID")
    if kind == "pads":
        return {"pads": [b.integer(0, 3) for _ in range(2 * rank)]}
    if kind == "same":
        return {"pads": [d * (k - 1) // 2 for d, k in zip(dilations, kernel)] * 2}
    require(kind == "VALID" or max(dilations) == 1)  # else ONNX Runtime refuses
    return {"auto_pad": kind}


def convolution(b, x):
    """Plain, grouped, depthwise or dilated, with or without bias and batch normalisation."""
    shape = b.shape(x)
    require(len(shape) in (3, 4, 5))
    rank, channels = len(shape) - 2, shape[1]
    group = b.pick(1, 1, 1, channels, *(n for n in (2, 4) if channels % n == 0))
    filters = group * b.integer(1, 9) if group > 1 else b.pick(1, 3, 8, 16, 17, 24, 32)
    kernel = [b.pick(1, 1, 2, 3, 3, 5, 7) for _ in range(rank)] if b.chance(0.3) else [b.pick(1, 3, 3, 5, 7)] * rank
    strides = [b.pick(1, 1, 2, 3)] * rank if b.chance(0.7) else [b.pick(1, 2) for _ in range(rank)]
    dilations = [b.pick(1, 1, 1, 2)] * rank
    inputs = [x, b.filters(filters, channels // group, *kernel)]
    if b.chance(0.6):
        inputs.append(b.weights(filters, scale=0.3))
    y = b.add("Conv", inputs, kernel_shape=kernel, strides=strides, dilations=dilations, group=group,
              **padding(b, kernel, dilations))
    return normalized_batch(b, y, filters) if b.chance(0.4) else y


def transposed_convolution(b, x):
    shape = b.shape(x)
    require(len(shape) in (3, 4) and max(shape[2:]) <= 20)
    rank, channels = len(shape) - 2, shape[1]
    group = b.pick(1, 1, channels, *(n for n in (2,) if channels % n == 0))
    filters, kernel, stride = b.integer(1, 9), b.pick(1, 2, 3, 4, 5), b.pick(1, 2, 3)
    attributes = {"kernel_shape": [kernel] * rank, "strides": [stride] * rank, "group": group,
                  "dilations": [b.pick(1, 1, 2)] * rank}
    if b.chance(0.6):
        attributes["pads"] = [b.integer(0, min(kernel, 2)) for _ in range(2 * rank)]
    if b.chance(0.5):
        attributes["output_padding"] = [b.integer(0, stride)] * rank
    inputs = [x, b.weights(channels, filters, *[kernel] * rank, scale=0.3)]
    if b.chance(0.5):
        inputs.append(b.weights(filters * group, scale=0.3))
    return b.add("ConvTranspose", inputs, **attributes)


def pooling(b, x):
    """ONNX Runtime departs from ONNX where SAME_UPPER or SAME_LOWER meets a stride above the kernel (the padding would
    be negative): such a pooling would have no reference."""
    shape = b.shape(x)
    require(len(shape) in (3, 4, 5))
    rank = len(shape) - 2
    operator = b.pick("MaxPool", "MaxPool", "AveragePool", "AveragePool", "LpPool", "GlobalAveragePool", "GlobalMaxPool")
    if operator.startswith("Global"):
        return b.add(operator, [x])
    kernel = [b.pick(1, 2, 3, 3, 5) for _ in range(rank)]
    strides = [b.pick(1, 2, 3) for _ in range(rank)]
    attributes, pads, dilations = {}, [0] * 2 * rank, [1] * rank
    auto_pad = b.pick("NOTSET", "NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")
    if auto_pad == "NOTSET":
        pads = [b.integer(0, (kernel[i % rank] + 1) // 2) for i in range(2 * rank)]
        attributes = {"pads": pads}
        if operator != "LpPool" and b.chance(0.4):
            attributes["ceil_mode"] = 1
        if operator == "MaxPool" and b.chance(0.3):
            dilations = [b.pick(1, 2)] * rank
            attributes["dilations"] = dilations
    else:
        attributes = {"auto_pad": auto_pad}
    if auto_pad.startswith("SAME"):
        require(all(s <= k for s, k in zip(strides, kernel)))
    else:
        require(all(shape[2 + i] + pads[i] + pads[rank + i] > dilations[i] * (kernel[i] - 1) for i in range(rank)))
    if operator == "AveragePool":
        attributes["count_include_pad"] = b.integer(0, 2)
    if operator == "LpPool":
        attributes["p"] = b.pick(1, 2, 3)
    return b.add(operator, [x], kernel_shape=kernel, strides=strides, **attributes)


def resize(b, x):
    """ONNX Runtime departs from ONNX where scales give lengths that are not whole, for align_corners and
    pytorch_half_pixel: it takes the rounded length, ONNX the fraction. Nearest rows are those at coordinates that are
    exact: rounding cannot jump."""
    shape = b.shape(x)
    require(len(shape) in (3, 4, 5) and max(shape[2:]) <= 24)
    mode = b.pick("nearest", "linear", "linear", "cubic" if len(shape) == 4 else "linear")
    transform = b.pick("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel")
    attributes = {"mode": mode, "coordinate_transformation_mode": transform}
    factor = b.pick(2.0, 0.5) if mode == "nearest" else b.pick(2.0, 1.5, 0.5, 3.0, 0.7)
    lengths = [int(n * factor) for n in shape[2:]]
    is_whole = all(n * factor == length for n, length in zip(shape[2:], lengths))
    require(min(lengths) > 0)
    if mode == "nearest":
        require(transform != "align_corners" and is_whole)
        attributes["nearest_mode"] = b.pick("round_prefer_floor", "floor", "ceil", "round_prefer_ceil")
    if mode == "cubic":
        attributes["cubic_coeff_a"] = b.pick(-0.5, -0.75)
        attributes["exclude_outside"] = b.pick(0, 0, 1)
    if b.opset >= 18 and mode != "nearest" and len(shape) == 4 and b.chance(0.4):
        attributes["antialias"] = 1
    if b.chance(0.5):
        require(is_whole or transform in ("half_pixel", "asymmetric"))
        sizes = [b.constant(np.array([1, 1] + [factor] * len(lengths), np.float32))]
    else:
        sizes = ["", b.int64(*shape[:2], *lengths)]
    return b.add("Resize", [x, "", *sizes], **attributes)


def product(b, x):
    """A linear layer: Gemm, or MatMul with Add."""
    shape = b.shape(x)
    require(shape)
    size = b.pick(1, 4, 8, 12, 16, 33, 64)
    if len(shape) == 2 and b.chance(0.5):
        return gemm(b, x, size)
    weights = b.matrix(shape[-1], size)
    if b.chance(0.2):
        weights = b.add("Transpose", [b.filters(size, shape[-1])], perm=[1, 0])
    y = b.add("MatMul", [x, weights])
    if b.chance(0.4):
        return y
    bias = b.weights(size, scale=0.3)
    return b.add("Add", b.pick([y, bias], [bias, y]))


def gemm(b, x, size):
    rows, columns = b.shape(x)
    turns_x, turns_weights = b.chance(0.3) and not b.dynamic, b.chance(0.5)
    depth = rows if turns_x else columns
    inputs = [x, b.filters(size, depth) if turns_weights else b.matrix(depth, size)]
    if b.chance(0.7):
        inputs.append(b.weights(*b.pick((size,), (1, size), (1,)), scale=0.3))
    return b.add("Gemm", inputs, alpha=b.pick(1.0, 0.5), beta=b.pick(1.0, 2.0), transA=int(turns_x),
                 transB=int(turns_weights))


def product_with_itself(b, x):
    shape = b.shape(x)
    require(len(shape) >= 2 and np.prod(shape) <= 20000)
    axes = list(range(len(shape)))
    turned = b.add("Transpose", [x], perm=[*axes[:-2], axes[-1], axes[-2]])
    y = b.add("MatMul", b.pick([x, turned], [turned, x]))
    return b.add("Mul", [y, b.scalar(1 / np.sqrt(shape[-1]))])


def layer_norm(b, x):
    """As an operator since opset 17, and in parts."""
    shape = b.shape(x)
    require(len(shape) >= 2)
    if b.opset >= 17 and b.chance(0.5):
        axis = b.pick(-1, -1, -2)
        inputs = [x, b.weights(*shape[axis:])]
        if b.chance(0.7):
            inputs.append(b.weights(*shape[axis:], scale=0.3))
        return b.add("LayerNormalization", inputs, axis=axis, epsilon=1e-5)
    difference = b.add("Sub", [x, b.reduce("ReduceMean", x, [-1])])
    square = b.add("Mul", [difference, difference]) if b.chance(0.5) else b.add("Pow", [difference, b.scalar(2)])
    y = b.add("Div", [difference, root_of_mean(b, square)])
    y = b.add("Mul", [y, b.weights(shape[-1])])
    return b.add("Add", [y, b.weights(shape[-1], scale=0.3)]) if b.chance(0.7) else y


def root_of_mean(b, square):
    return b.add("Sqrt", [b.add("Add", [b.reduce("ReduceMean", square, [-1]), b.scalar(1e-5)])])


def rms_norm(b, x):
    shape = b.shape(x)
    require(len(shape) >= 2)
    root = root_of_mean(b, b.add("Pow", [x, b.scalar(2)]))
    y = b.add("Mul", [x, b.add("Reciprocal", [root])]) if b.chance(0.5) else b.add("Div", [x, root])
    weights = b.weights(shape[-1])
    return b.add("Mul", b.pick([weights, y], [y, weights]))


def channel_norm(b, x):
    """Normalisations of channels or groups of them, and across channels."""
    shape = b.shape(x)
    require(len(shape) in (3, 4) and np.prod(shape[2:]) > 1)
    groups = b.pick(2, 4)
    kind = b.pick("instance", "group", "group in parts", "local response")
    if kind == "instance":
        return b.add("InstanceNormalization", [x, b.weights(shape[1]), b.weights(shape[1], scale=0.3)])
    require(len(shape) == 4)
    if kind == "local response":
        return b.add("LRN", [x], size=b.pick(1, 3, 5), alpha=0.01, beta=0.75, bias=1.0)
    require(shape[1] % groups == 0)
    if kind == "group":
        require(b.opset >= 21)
        return b.add("GroupNormalization", [x, b.weights(shape[1]), b.weights(shape[1], scale=0.3)], num_groups=groups)
    ones, zeros = b.constant(np.ones(groups, np.float32)), b.constant(np.zeros(groups, np.float32))
    y = b.add("InstanceNormalization", [b.add("Reshape", [x, b.int64(0, groups, -1)]), ones, zeros])
    y = b.add("Reshape", [y, b.int64(b.batch(shape[0]), *shape[1:])])
    y = b.add("Mul", [y, b.weights(shape[1], 1, 1)])
    return b.add("Add", [y, b.weights(shape[1], 1, 1, scale=0.3)])


def lp_norm(b, x):
    shape = b.shape(x)
    require(shape)
    return b.add("LpNormalization", [x], axis=b.integer(0, len(shape)), p=b.pick(1, 2))


def softmax(b, x):
    shape = b.shape(x)
    require(shape)
    return b.add(b.pick("Softmax", "Softmax", "LogSoftmax"), [x], axis=b.integer(-len(shape), len(shape)))


def masked(b, scores, batch, heads, length):
    """Scores of attention behind a mask as exporters write them, or behind a bias."""
    kind = b.pick("none", "causal sum", "causal selection", "bias", "keys")
    if kind == "causal sum":
        hidden = np.full((length, length), b.pick(-1e4, -1e9, -3.4e38), np.float32)
        return b.add("Add", [scores, b.constant(np.triu(hidden, 1))])
    if kind == "causal selection":
        seen = b.constant(np.tril(np.ones((1, 1, length, length), bool)))
        return b.add("Where", [seen, scores, b.scalar(b.pick(-1e9, -np.inf))])
    if kind == "bias":
        return b.add("Add", [scores, b.weights(1, heads, length, length)])
    if kind == "keys":
        mask = b.input((batch, length), INT64, lambda random, shape: np.int64(
            np.arange(shape[1])[None] < random.integers(1, shape[1] + 1, size=(shape[0], 1))))
        seen = b.add("Cast", [b.add("Unsqueeze", [mask, b.int64(1, 2)])], to=FLOAT)
        hidden = b.add("Mul", [b.add("Sub", [b.scalar(1), seen]), b.scalar(-10000)])
        return b.add("Add", [scores, hidden])
    return scores


def attention(b, x):
    """With a residual; keys and values may have one head for all queries."""
    shape = b.shape(x)
    require(len(shape) == 3 and shape[1] <= 80)
    batch, length, width = shape
    heads, size = b.pick(1, 2, 4), b.pick(8, 12, 16)
    key_heads = b.pick(heads, heads, 1)

    def heads_of(count):
        y = b.add("MatMul", [x, b.matrix(width, count * size)])
        if b.chance(0.5):
            y = b.add("Add", [y, b.weights(count * size, scale=0.3)])
        y = b.add("Reshape", [y, b.int64(0, b.batch(length), count, size)])
        y = b.add("Transpose", [y], perm=[0, 2, 1, 3])
        if count == heads:
            return y
        y = b.add("Expand", [b.add("Unsqueeze", [y, b.int64(2)]), b.int64(1, 1, heads // count, 1, 1)])
        return b.add("Reshape", [y, b.int64(0, heads, -1, size)])

    queries, keys, values = heads_of(heads), heads_of(key_heads), heads_of(key_heads)
    keys = b.add("Transpose", [keys], perm=[0, 1, 3, 2])
    place, scale = b.pick("queries", "both", "scores", "division"), 1 / np.sqrt(size)
    if place == "queries":
        queries = b.add("Mul", [queries, b.scalar(scale)])
    if place == "both":
        queries, keys = (b.add("Mul", [y, b.scalar(np.sqrt(scale))]) for y in (queries, keys))
    scores = b.add("MatMul", [queries, keys])
    if place == "scores":
        scores = b.add("Mul", [scores, b.scalar(scale)])
    if place == "division":
        scores = b.add("Div", [scores, b.scalar(1 / scale)])
    shares = b.add("Softmax", [masked(b, scores, batch, heads, length)], axis=-1)
    y = b.add("Transpose", [b.add("MatMul", [shares, values])], perm=[0, 2, 1, 3])
    y = b.add("Reshape", [y, b.int64(0, b.batch(length), heads * size)])
    return b.add("Add", [x, b.add("MatMul", [y, b.matrix(heads * size, width)])])


def rotary_embedding(b, x):
    shape = b.shape(x)
    require(len(shape) == 4 and shape[3] % 2 == 0)
    length, size = shape[2:]
    angles = np.outer(np.arange(length), 1 / 10000 ** (np.arange(0, size, 2) / size))
    angles = np.concatenate([angles, angles], -1)[None, None].astype(np.float32)
    first = b.add("Slice", [x, b.int64(0), b.int64(size // 2), b.int64(3)])
    second = b.add("Slice", [x, b.int64(size // 2), b.int64(LAST), b.int64(3)])
    turned = b.add("Concat", [b.add("Neg", [second]), first], axis=-1)
    return b.add("Add", [b.add("Mul", [x, b.constant(np.cos(angles))]), b.add("Mul", [turned, b.constant(np.sin(angles))])])


def recurrent(b, x):
    shape = b.shape(x)
    require(len(shape) == 3 and shape[0] <= 40)
    operator, gates = b.pick(("LSTM", 4), ("GRU", 3), ("RNN", 1))
    size, direction = b.pick(3, 8, 16), b.pick("forward", "reverse", "bidirectional")
    count = 2 if direction == "bidirectional" else 1
    inputs = [x, b.weights(count, gates * size, shape[2], scale=0.3), b.weights(count, gates * size, size, scale=0.3)]
    inputs.append(b.weights(count, 2 * gates * size, scale=0.3) if b.chance(0.7) else "")
    if not b.dynamic:
        lengths = b.random.integers(1, shape[0] + 1, size=shape[1]).astype(np.int32)
        inputs.append(b.constant(lengths) if b.chance(0.3) else "")
        if b.chance(0.4):
            inputs += [b.weights(count, shape[1], size, scale=0.5) for _ in range(2 if operator == "LSTM" else 1)]
    while inputs[-1] == "":
        inputs.pop()
    attributes = {"linear_before_reset": b.integer(0, 2)} if operator == "GRU" else {}
    if b.chance(0.2):
        attributes["clip"] = 0.6
    results = b.add(operator, inputs, 3 if operator == "LSTM" else 2, hidden_size=size, direction=direction, **attributes)
    form = b.pick("all", "turned", "squeezed", "last")
    if form == "last":
        return results[1]
    if form == "turned":
        return b.add("Transpose", [results[0]], perm=[0, 2, 1, 3])
    return b.add("Squeeze", [results[0], b.int64(1)]) if form == "squeezed" and count == 1 else results[0]


def einsum(b, x):
    shape = b.shape(x)
    require(len(shape) in (2, 3, 4))
    if len(shape) == 2:
        return b.add("Einsum", [x], equation="ij->ji")
    if len(shape) == 3:
        weights, equations = b.matrix(shape[2], 5), ("bij,jk->bik", "bij,jk->bki", "abc,cd->abd")
    else:
        weights, equations = b.weights(shape[1], shape[3], 4, scale=0.2), ("bhid,hdk->bhik", "bhwc,hck->bwk")
    return b.add("Einsum", [x, weights], equation=b.pick(*equations))


def squeeze_excite(b, x):
    shape = b.shape(x)
    require(len(shape) == 4)
    channels, fewer = shape[1], max(1, shape[1] // 4)
    y = b.add("GlobalAveragePool", [x]) if b.chance(0.5) else b.reduce("ReduceMean", x, [2, 3])
    y = b.add("Relu", [b.add("Conv", [y, b.filters(fewer, channels, 1, 1), b.weights(fewer, scale=0.3)])])
    y = b.add("Conv", [y, b.filters(channels, fewer, 1, 1), b.weights(channels, scale=0.3)])
    return b.add("Mul", [x, b.add(b.pick("Sigmoid", "HardSigmoid"), [y])])


def windows(b, x):
    """Pictures with their channels last, rolled and cut into square windows."""
    shape = b.shape(x)
    require(len(shape) == 4)
    batch, height, width, channels = shape
    size = b.pick(2, 3, 4)
    require(height % size == 0 and width % size == 0)
    shift = b.integer(1, size)
    if b.chance(0.5):
        for axis in (1, 2):
            rest = b.add("Slice", [x, b.int64(shift), b.int64(LAST), b.int64(axis)])
            x = b.add("Concat", [rest, b.add("Slice", [x, b.int64(0), b.int64(shift), b.int64(axis)])], axis=axis)
    parts = b.int64(b.batch(batch), height // size, size, width // size, size, channels)
    y = b.add("Transpose", [b.add("Reshape", [x, parts])], perm=[0, 1, 3, 2, 4, 5])
    return b.add("Reshape", [y, b.int64(-1, size * size, channels)])


def branches(b, x):
    """Convolutions of one input whose results are added, as networks are trained (RepVGG, MobileOne)."""
    shape = b.shape(x)
    require(len(shape) == 4)
    channels = shape[1]
    group, stride = b.pick(1, 1, channels), b.pick(1, 1, 2)
    filters = channels if group > 1 or b.chance(0.6) else b.pick(8, 16, 24)
    parts = []
    for _ in range(b.integer(2, 5)):
        kernel = b.pick(1, 3, 3, 5)
        inputs = [x, b.filters(filters, channels // group, kernel, kernel)]
        if b.chance(0.5):
            inputs.append(b.weights(filters, scale=0.3))
        parts.append(b.add("Conv", inputs, kernel_shape=[kernel] * 2, strides=[stride] * 2, group=group,
                           pads=[kernel // 2] * 4))
    if stride == 1 and filters == channels and b.chance(0.5):
        parts.append(x if b.chance(0.5) else normalized_batch(b, x, channels))
    y = parts[0]
    for part in parts[1:]:
        y = b.add("Add", b.pick([y, part], [part, y]))
    return gated(b, y) if b.chance(0.5) else y


def separable(b, x):
    """Depthwise, perhaps with a multiplier, then pointwise; perhaps with what lies between them added."""
    shape = b.shape(x)
    require(len(shape) == 4)
    channels = shape[1] * b.pick(1, 1, 2)
    stride = b.pick(1, 2)
    y = b.add("Conv", [x, b.filters(channels, 1, 3, 3)], kernel_shape=[3, 3], strides=[stride] * 2, group=shape[1],
              pads=[1] * 4)
    y = b.add("Relu", [y]) if b.chance(0.7) else y
    again = b.chance(0.4)
    filters = channels if again else b.pick(8, 12, 24)
    z = b.add("Conv", [y, b.filters(filters, channels, 1, 1), b.weights(filters, scale=0.3)], kernel_shape=[1, 1])
    return b.add("Add", [z, y]) if again else z


def token_mixing(b, x):
    """Linear layers along the tokens of a sequence, as in MLP-Mixer."""
    shape = b.shape(x)
    require(len(shape) == 3)
    tokens, hidden = shape[1], b.pick(4, 10, 24)
    y = b.add("Transpose", [x], perm=[0, 2, 1])
    y = b.add("Add", [b.add("MatMul", [y, b.matrix(tokens, hidden)]), b.weights(hidden, scale=0.3)])
    y = b.add("MatMul", [gated(b, y), b.matrix(hidden, tokens)])
    y = b.add("Add", [y, b.weights(tokens, scale=0.3)]) if b.chance(0.5) else y
    y = b.add("Transpose", [y], perm=[0, 2, 1])
    return b.add(b.pick("Add", "Mul"), b.pick([x, y], [y, x]))


def heads_of_few_biases(b, x):
    """Products of one input side by side, of which some have a bias (Whisper's and Swin's keys have none)."""
    shape = b.shape(x)
    require(len(shape) in (2, 3))
    parts = []
    for _ in range(3):
        size = b.pick(8, 20, 36)
        y = b.add("MatMul", [x, b.matrix(shape[-1], size)])
        parts.append(b.add("Add", [y, b.weights(size, scale=0.3)]) if b.chance(0.6) else y)
    return b.add("Concat", parts, axis=-1)


def pixel_shuffle(b, x):
    """Channels become pixels, after a convolution, in torch's nodes or by the operator."""
    shape = b.shape(x)
    require(len(shape) == 4)
    factor, colours = b.pick(2, 3), b.pick(1, 3, 8)
    filters = colours * factor * factor
    y = b.add("Conv", [x, b.filters(filters, shape[1], 3, 3), b.weights(filters, scale=0.3)], kernel_shape=[3, 3],
              pads=[1] * 4)
    if b.chance(0.4):
        return b.add("DepthToSpace", [y], blocksize=factor, mode=b.pick("CRD", "DCR"))
    batch, _, height, width = shape
    y = b.add("Reshape", [y, b.int64(b.batch(batch), colours, factor, factor, height, width)])
    y = b.add("Transpose", [y], perm=[0, 1, 4, 2, 5, 3])
    return b.add("Reshape", [y, b.int64(b.batch(batch), colours, height * factor, width * factor)])


def norm_of_channels(b, x):
    """A layer norm of the channels of pictures, or of a sum, written out."""
    shape = b.shape(x)
    require(len(shape) >= 3)
    x = b.add("Add", [x, b.weights(shape[1], *[1] * (len(shape) - 2), scale=0.5)]) if b.chance(0.5) else x
    difference = b.add("Sub", [x, b.reduce("ReduceMean", x, [1])])
    variance = b.reduce("ReduceMean", b.add("Pow", [difference, b.scalar(2)]), [1])
    y = b.add("Div", [difference, b.add("Sqrt", [b.add("Add", [variance, b.scalar(1e-5)])])])
    parameters = (shape[1], *[1] * (len(shape) - 2))
    y = b.add("Mul", [b.weights(*parameters), y])
    return b.add("Add", [y, b.weights(*parameters, scale=0.3)]) if b.chance(0.6) else y


LAYERS = [convolution, convolution, convolution, batch_norm, transposed_convolution, pooling, pooling, resize, product,
          product, product_with_itself, layer_norm, layer_norm, rms_norm, channel_norm, channel_norm, lp_norm, softmax,
          attention, attention, rotary_embedding, recurrent, einsum, squeeze_excite, windows, branches, separable,
          token_mixing, heads_of_few_biases, pixel_shuffle, norm_of_channels]
