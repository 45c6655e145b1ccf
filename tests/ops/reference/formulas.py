# SPDX-License-Identifier: Apache-2.0
"""The composites by their definitions, element by element in float64 and without a library:
independent of src/ops, which does not use this file. Attributes have the ops' names; arrays are
float64 or int64."""
import itertools
import math

import numpy as np


def windows(size, taps, strides, dilations, low):
    """For each position: the source indices of its taps along each axis, some of them outside."""
    for at in np.ndindex(*size):
        yield at, [[i * s - lo + k * d for k in range(n)]
                   for i, n, s, d, lo in zip(at, taps, strides, dilations, low)]


def positions(size, taps, strides, dilations, low, high):
    return [(n + lo + hi - (k - 1) * d - 1) // s + 1
            for n, k, s, d, lo, hi in zip(size, taps, strides, dilations, low, high)]


def inside(index, size):
    return all(0 <= i < n for i, n in zip(index, size))


def conv(x, w, strides, dilations, low, high, groups):
    taps, size = w.shape[2:], x.shape[2:]
    out_size = positions(size, taps, strides, dilations, low, high)
    y = np.zeros([x.shape[0], w.shape[0], *out_size], x.dtype)
    each = w.shape[0] // groups
    for at, sources in windows(out_size, taps, strides, dilations, low):
        for tap in np.ndindex(*taps):
            source = tuple(s[k] for s, k in zip(sources, tap))
            if not inside(source, size):
                continue
            for o in range(w.shape[0]):
                for c in range(w.shape[1]):
                    channel = (o // each) * w.shape[1] + c
                    y[(slice(None), o, *at)] += x[(slice(None), channel, *source)] * w[(o, c, *tap)]
    return y


def conv_transpose(x, w, strides, dilations, low, high, groups):
    """Adds each element of x, times the kernel, to the results from which conv would read it."""
    taps, size = w.shape[2:], x.shape[2:]
    out_size = [(n - 1) * s + (k - 1) * d + 1 - lo - hi
                for n, k, s, d, lo, hi in zip(size, taps, strides, dilations, low, high)]
    y = np.zeros([x.shape[0], w.shape[1] * groups, *out_size], x.dtype)
    each = w.shape[0] // groups
    for at, targets in windows(size, taps, strides, dilations, low):
        for tap in np.ndindex(*taps):
            target = tuple(t[k] for t, k in zip(targets, tap))
            if not inside(target, out_size):
                continue
            for c in range(w.shape[0]):
                for o in range(w.shape[1]):
                    channel = (c // each) * w.shape[1] + o
                    y[(slice(None), channel, *target)] += x[(slice(None), c, *at)] * w[(c, o, *tap)]
    return y


def pool(x, fn, sizes, strides, dilations, low, high, extra, count_padding=False):
    size = x.shape[2:]
    out_size = positions(size, sizes, strides, dilations, low, [h + e for h, e in zip(high, extra)])
    y = np.zeros([*x.shape[:2], *out_size], x.dtype)
    for at, sources in windows(out_size, sizes, strides, dilations, low):
        taps = list(itertools.product(*sources))
        seen = [x[(slice(None), slice(None), *t)] for t in taps if inside(t, size)]
        if fn == "max":
            y[(slice(None), slice(None), *at)] = np.max(seen, axis=0)
            continue
        padded = [all(-lo <= i < n + hi for i, n, lo, hi in zip(t, size, low, high)) for t in taps]
        count = sum(padded) if count_padding else len(seen)
        y[(slice(None), slice(None), *at)] = sum(seen) / count
    return y


def softmax(x, axis, log=False):
    e = np.exp(x - x.max(axis, keepdims=True))
    y = e / e.sum(axis, keepdims=True)
    return x - x.max(axis, keepdims=True) - np.log(e.sum(axis, keepdims=True)) if log else y


def layer_norm(x, scale, bias=0.0, axis=-1, epsilon=1e-5, rms=False):
    axes = tuple(range(axis % x.ndim, x.ndim))
    centred = x if rms else x - x.mean(axes, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(axes, keepdims=True) + epsilon) * scale + bias


def row_moments(x, chunk=32):
    parts = x.reshape(*x.shape[:-1], -1, chunk)
    mean = parts.mean(-1)
    return np.stack([mean, ((parts - mean[..., None]) ** 2).sum(-1)], -1)


def moment_norm(x, moments, epsilon=1e-5):
    """By the law of total variance."""
    means, squares = moments[..., 0], moments[..., 1]
    mean = means.mean(-1, keepdims=True)
    size = x.shape[-1] // means.shape[-1]
    variance = squares.sum(-1, keepdims=True) / x.shape[-1] + ((means - mean) ** 2).sum(-1, keepdims=True) * size / x.shape[-1]
    return (x - mean) / np.sqrt(variance + epsilon)


def group_norm(x, scale, bias, groups=1, epsilon=1e-5):
    parts = np.split(x, groups, axis=1)
    axes = tuple(range(1, x.ndim))
    y = [(p - p.mean(axes, keepdims=True)) / np.sqrt(p.var(axes, keepdims=True) + epsilon) for p in parts]
    channel = (-1,) + (1,) * (x.ndim - 2)
    return np.concatenate(y, axis=1) * scale.reshape(channel) + bias.reshape(channel)


def gelu(x, tanh=False):
    if tanh:
        return x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3))) / 2
    return x * np.array([math.erfc(-v / math.sqrt(2)) for v in x.flat]).reshape(x.shape) / 2


def topk(x, k, axis, largest=True):
    """Among equals, the lower index comes first."""
    rows = np.moveaxis(x, axis, -1)
    at = np.zeros([*rows.shape[:-1], k], np.int64)
    for i in np.ndindex(*rows.shape[:-1]):
        row = rows[i]
        at[i] = sorted(range(len(row)), key=lambda j, row=row: -row[j] if largest else row[j])[:k]
    return (np.moveaxis(np.take_along_axis(rows, at, -1), -1, axis), np.moveaxis(at, -1, axis))


def roll(x, axes, shifts):
    for axis, shift in zip(axes, shifts):
        n = x.shape[axis]
        x = np.take(x, [(i - shift) % n for i in range(n)], axis)
    return x


def rope(x, cos, sin, interleaved=False):
    half = x.shape[-1] // 2
    y = np.zeros_like(x)
    for i in range(half):
        a, b = (2 * i, 2 * i + 1) if interleaved else (i, i + half)
        turn = (x[..., a] + 1j * x[..., b]) * (cos + 1j * sin)[..., i]
        y[..., a], y[..., b] = turn.real, turn.imag
    return y


def attention(q, k, v, mask=None, scale=1.0, softcap=0.0, causal=False, offset=0):
    (batch, heads, queries, _), keys = q.shape, k.shape[2]
    each = heads // k.shape[1]
    y = np.zeros([batch, heads, queries, v.shape[3]])
    for b, h, s in np.ndindex(batch, heads, queries):
        scores = k[b, h // each] @ q[b, h, s] * scale
        scores = softcap * np.tanh(scores / softcap) if softcap else scores
        if mask is not None:
            row = np.broadcast_to(mask, [batch, heads, queries, keys])[b, h, s]
            scores = np.where(row, scores, -np.inf) if row.dtype == bool else scores + row
        if causal:
            scores = np.where(np.arange(keys) <= s + offset, scores, -np.inf)
        seen = scores > -np.inf
        if seen.any():
            y[b, h, s] = softmax(scores[seen], 0) @ v[b, h // each][seen]
    return y


def squeeze_excite(x, w1, b1, w2, b2, act, gate):
    hidden = act(x.mean(tuple(range(2, x.ndim))) @ w1.T + b1)
    factor = gate(hidden @ w2.T + b2)
    return x * factor.reshape(*factor.shape, *([1] * (x.ndim - 2)))


def recurrence(x, r, h, *rest, cell, reversed_, gate, candidate=None, output=None, reset_after=False,
               input_forget=False, peepholes=False, lengths=False):
    """Step by step and sequence by sequence; gates in ONNX's order."""
    rest = list(rest)
    c = rest.pop(0).copy() if cell == "lstm" else None
    bias = rest.pop(0) if reset_after else None
    peep = rest.pop(0) if peepholes else np.zeros((len(r), 1, 3 * h.shape[2]))
    steps, batch = x.shape[:2]
    length = np.clip(rest.pop(0).astype(int), 0, steps) if lengths else [steps] * batch
    h, n, gates = h.copy(), h.shape[2], r.shape[1] // h.shape[2]
    y = np.zeros((steps, len(r), batch, n))
    for d, b in np.ndindex(len(r), batch):
        for t in range(length[b]):
            at = length[b] - 1 - t if reversed_[d] else t
            own = np.split(x[at, b, d * gates * n:(d + 1) * gates * n], gates)
            by_h = np.split(r[d] @ h[d, b], gates)
            if cell == "rnn":
                h[d, b] = gate(own[0] + by_h[0])
            elif cell == "gru":
                z, reset = gate(own[0] + by_h[0]), gate(own[1] + by_h[1])
                inner = reset * (by_h[2] + bias[d, 0]) if reset_after else r[d, 2 * n:] @ (reset * h[d, b])
                h[d, b] = (1 - z) * candidate(own[2] + inner) + z * h[d, b]
            else:
                pi, po, pf = np.split(peep[d, 0], 3)
                i = gate(own[0] + by_h[0] + pi * c[d, b])
                f = 1 - i if input_forget else gate(own[2] + by_h[2] + pf * c[d, b])
                c[d, b] = f * c[d, b] + i * candidate(own[3] + by_h[3])
                h[d, b] = gate(own[1] + by_h[1] + po * c[d, b]) * output(c[d, b])
            y[at, d, b] = h[d, b]
    return (h, c, y) if cell == "lstm" else (h, y)


def spread(p, shape, axis, block):
    """A scale or zero point for each element of an array of that shape."""
    if block:
        return np.take(p, [i // block for i in range(shape[axis])], axis)
    if p.size == 1:
        return np.full(shape, p.reshape(-1)[0])
    ahead = [1] * len(shape)
    ahead[axis] = p.size
    return np.broadcast_to(p.reshape(ahead), shape)


def quantize(x, scale, zero=None, axis=1, block=0, limits=None):
    """limits: of the integer type; without them only the cast remains."""
    y = x / spread(scale, x.shape, axis, block)
    y = np.rint(y) if limits else y
    y = y if zero is None else y + spread(zero, x.shape, axis, block)
    return np.clip(y, *limits) if limits else y


def dequantize(x, scale, zero=None, axis=1, block=0):
    steps = x if zero is None else x - spread(zero, x.shape, axis, block)
    return steps * spread(scale, x.shape, axis, block)


def source_coordinate(coordinates, i, scale, size, out_size, roi):
    full = size * scale
    if coordinates == "asymmetric":
        return i / scale
    if coordinates == "align_corners":
        return 0.0 if full == 1 else i * (size - 1) / (full - 1)
    if coordinates == "tf_half_pixel_for_nn":
        return (i + 0.5) / scale
    if coordinates == "tf_crop_and_resize":
        start, end = roi
        step = 0.5 * (end - start) if full == 1 else i * (end - start) / (full - 1)
        return (start + step) * (size - 1)
    centre = (i + 0.5) / scale - 0.5
    if coordinates == "pytorch_half_pixel":
        return 0.0 if full == 1 else centre
    if coordinates == "half_pixel_symmetric":
        return centre + size / 2 * (1 - out_size / full)
    assert coordinates == "half_pixel"
    return centre


def nearest_index(rule, at):
    down, rest = math.floor(at), at - math.floor(at)
    up = {"floor": False, "ceil": rest > 0, "round_prefer_floor": rest > 0.5, "round_prefer_ceil": rest >= 0.5}
    return down + up[rule]


def kernel(mode, distance, a):
    d = abs(distance)
    if mode == "linear":
        return max(0.0, 1 - d)
    if d <= 1:
        return (a + 2) * d ** 3 - (a + 3) * d ** 2 + 1
    return a * (d ** 3 - 5 * d ** 2 + 8 * d - 4) if d < 2 else 0.0


def neighbours(mode, at, size, squeeze, cubic, exclude_outside):
    """The weights of the elements, some of them outside, for the value at a coordinate."""
    reach = math.ceil(2 / squeeze) + 1
    places = range(math.floor(at) - reach, math.floor(at) + reach + 1)
    weights = {p: kernel(mode, (p - at) * squeeze, cubic) for p in places if not exclude_outside or 0 <= p < size}
    total = sum(weights.values()) if exclude_outside or squeeze < 1 else 1.0
    return {p: w / total for p, w in weights.items() if w}


def resize(x, axes, sizes, scales=(), mode="nearest", coordinates="half_pixel", nearest="round_prefer_floor", roi=(),
           cubic=-0.75, extrapolation=0.0, antialias=False, exclude_outside=False):
    for entry, axis in enumerate(axes):
        size, out_size = x.shape[axis], sizes[entry]
        scale = (scales[entry] if len(scales) else 0) or out_size / size
        region = (roi[entry], roi[len(axes) + entry]) if len(roi) else None
        rows = []
        for i in range(out_size):
            at = source_coordinate(coordinates, i, scale, size, out_size, region)
            if mode == "nearest":
                row = np.take(x, min(max(nearest_index(nearest, at), 0), size - 1), axis)
            else:
                weights = neighbours(mode, at, size, min(scale, 1.0) if antialias else 1.0, cubic, exclude_outside)
                row = sum(np.take(x, min(max(p, 0), size - 1), axis) * w for p, w in weights.items())
            if coordinates == "tf_crop_and_resize" and not 0 <= at <= size - 1:
                row = np.full_like(row, extrapolation)
            rows.append(row)
        x = np.stack(rows, axis)
    return x


def folded(at, low, high):
    """at, mirrored at low and high until it lies between them."""
    while high > low and not low <= at <= high:
        at = 2 * low - at if at < low else 2 * high - at
    return at if high > low else low


def sampled(x, at, padding, align):
    """The elements [C] of x [C,sizes...] at whole positions."""
    at = np.asarray(at, dtype=float)
    for d, size in enumerate(x.shape[1:]):
        if padding == "reflection":
            at[d] = folded(at[d], *((0, size - 1) if align else (-0.5, size - 0.5)))
        elif padding == "zeros" and not 0 <= at[d] <= size - 1:
            return np.zeros(x.shape[0])
        at[d] = np.clip(at[d], 0, size - 1)
    return x[(slice(None), *at.astype(int))]


def sample_weight(d, mode):
    return max(0, 1 - abs(d)) if mode == "linear" else cubic(d, -0.75)


def cubic(d, a):
    d = abs(d)
    if d > 2:
        return 0
    return a * (d**3 - 5 * d**2 + 8 * d - 4) if d > 1 else (a + 2) * d**3 - (a + 3) * d**2 + 1


def grid_sample(x, grid, mode, padding, align):
    sizes = x.shape[2:]
    y = np.zeros((*x.shape[:2], *grid.shape[1:-1]))
    for n, *place in np.ndindex(grid.shape[:-1]):
        at = []
        for coordinate, size in zip(grid[(n, *place)][::-1], sizes):
            p = (coordinate + 1) / 2 * (size - 1) if align else ((coordinate + 1) * size - 1) / 2
            if padding == "reflection" and mode == "linear":
                p = folded(p, *((0, size - 1) if align else (-0.5, size - 0.5)))
            at.append(np.clip(p, 0, size - 1) if padding != "zeros" and mode == "linear" else p)
        reach = {"nearest": [0], "linear": [0, 1], "cubic": [-1, 0, 1, 2]}[mode]
        for offsets in np.ndindex(*[len(reach)] * len(sizes)):
            near = [np.rint(p) if mode == "nearest" else np.floor(p) + reach[o] for p, o in zip(at, offsets)]
            weight = 1 if mode == "nearest" else np.prod([sample_weight(p - q, mode) for p, q in zip(at, near)])
            y[(n, slice(None), *place)] += weight * sampled(x[n], near, padding, align)
    return y
