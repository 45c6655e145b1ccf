# SPDX-License-Identifier: Apache-2.0
"""Calibration thresholds in NumPy, from NVIDIA's publications, for comparison with Ingot's.

The entropy method is the pseudocode of "8-bit inference with TensorRT" (S. Migacz, GTC 2017, s7310)
and, for how TensorRT differs from it, NVIDIA's description of its quantisation for MLPerf Inference:
the first bin of the histogram is discarded immediately after it has been built.
"""
import functools

import numpy as np

BINS = 2048
LEVELS = 128
FIRST = 128  # the first candidate
FEW = 2048  # elements: fewer are no distribution


def histogram(x):
    """Magnitudes in bins over [0, power of two above the largest), up to the last that is filled,
    and the width of a bin."""
    magnitudes = np.abs(x.astype(np.float64)).ravel()
    reach = 2.0 ** np.frexp(magnitudes.max())[1]
    counts, _ = np.histogram(magnitudes, bins=BINS, range=(0, reach))
    return counts[:np.flatnonzero(counts)[-1] + 1], reach / BINS


@functools.lru_cache(maxsize=None)
def level_of_bins(i):
    """The index of the 128 equal parts of [0, i) in which each of i bins begins."""
    return np.digitize(np.arange(i), np.linspace(0, i, LEVELS + 1)) - 1


def divergence(bins, i):
    """KL(P || Q): P has the mass beyond bin i in its last bin, Q is P's 128 levels without it."""
    inside = bins[:i].astype(np.float64)
    filled = inside != 0
    reference = inside.copy()
    reference[-1] += bins[i:].sum()
    level = level_of_bins(i)
    mass = np.bincount(level, weights=inside, minlength=LEVELS)
    share = mass / np.maximum(np.bincount(level, weights=filled, minlength=LEVELS), 1)
    reduced = np.where(filled, share[level], 0)
    if reduced.sum() == 0:
        return np.inf
    reference /= reference.sum()
    reduced /= reduced.sum()
    where = reference > 0
    if np.any(reduced[where] == 0):
        return np.inf
    return np.sum(reference[where] * np.log(reference[where] / reduced[where]))


def divergences(bins):
    return np.array([divergence(bins, i) for i in range(FIRST, len(bins) + 1)])


def published_entropy2(counts, width):
    """TensorRT's entropy calibration as NVIDIA publishes it: the first bin is discarded."""
    bins = counts.copy()
    bins[0] = 0
    return (np.argmin(divergences(bins)) + FIRST + 0.5) * width


def published_entropy(counts, width):
    """NVIDIA's pytorch-quantization: bin 0 counts as bin 1 does, the last of equal candidates."""
    bins = counts.copy()
    bins[0] = bins[1]
    costs = divergences(bins)
    return (len(costs) - 1 - np.argmin(costs[::-1]) + FIRST) * width


def slide_entropy2(values):
    """The slides' pseudocode, line by line, on the magnitudes themselves; no bin is shared with the
    code above."""
    magnitudes = np.abs(values.astype(np.float64)).ravel()
    width = 2.0 ** np.frexp(magnitudes.max())[1] / BINS
    bins = [0] * (int(magnitudes.max() / width) + 1)
    for m in magnitudes:
        bins[int(m / width)] += 1
    bins[0] = 0
    best, least = None, np.inf
    for i in range(FIRST, len(bins) + 1):
        p = np.array(bins[:i], np.float64)
        outliers = sum(bins[i:])
        p[i - 1] += outliers
        q = np.zeros(i)
        levels = [[] for _ in range(LEVELS)]
        for j in range(i):
            levels[j * LEVELS // i].append(j)
        for members in levels:
            held = [j for j in members if bins[j] != 0]
            for j in held:
                q[j] = sum(bins[k] for k in members) / len(held)
        if q.sum() == 0 or np.any((p > 0) & (q == 0)):
            continue
        p, q = p / p.sum(), q / q.sum()
        cost = sum(a * np.log(a / b) for a, b in zip(p, q) if a > 0)
        if cost < least - 1e-12:
            best, least = i, cost
    return (best + 0.5) * width


def without_costly_clipping(counts, width, threshold):
    """At least `threshold`: the first, bin by bin, that loses no more (squared error of clipping,
    and step^2 / 12 of rounding what is not zero) than the whole range does."""
    middles = (np.arange(len(counts)) + 0.5) * width
    counts = counts.astype(np.float64).copy()
    counts[0] = 0

    def cost(t):
        beyond = np.maximum(middles - t, 0)
        return (counts * beyond ** 2).sum() + counts[beyond == 0].sum() * (t / 127) ** 2 / 12
    reach = len(counts) * width
    most = cost(reach)
    while threshold < reach and cost(threshold) > most:
        threshold += width
    return min(threshold, reach)


def by_entropy(published):
    def threshold(counts, width):
        if counts[1:].sum() < FEW or len(counts) <= FIRST:
            return len(counts) * width
        return without_costly_clipping(counts, width, published(counts, width))
    return threshold


entropy2 = by_entropy(published_entropy2)
entropy = by_entropy(published_entropy)


def percentile(counts, width, share=99.999):
    cdf = np.cumsum(counts / counts.sum())
    return np.searchsorted(cdf, share / 100) * width


def mse(counts, width):
    centers = (np.arange(len(counts)) + 0.5) * width
    costs = []
    for i in range(FIRST, len(counts)):
        step = centers[i] / 127
        rounded = np.minimum(np.rint(centers / step), 127) * step
        costs.append(np.mean((rounded - centers) ** 2 * counts))
    return centers[np.argmin(costs) + FIRST]
