# SPDX-License-Identifier: Apache-2.0
"""The published formulas of calibration thresholds, in NumPy: for tests that compare Ingot's."""
import functools

import numpy as np

BINS = 2048
LEVELS = 128
FIRST = 128  # the first candidate


def histogram(x):
    """Magnitudes in bins over [0, power of two above the largest), up to the last that is filled,
    and the width of a bin."""
    magnitudes = np.abs(x.astype(np.float64)).ravel()
    reach = 2.0 ** np.frexp(magnitudes.max())[1]
    counts, _ = np.histogram(magnitudes, bins=BINS, range=(0, reach))
    return counts[:np.flatnonzero(counts)[-1] + 1], reach / BINS


@functools.lru_cache(maxsize=None)
def level_of_bins(i):
    """Which of 128 equal parts of [0, i) each of i bins begins in."""
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


def entropy2(counts, width):
    """S. Migacz, GTC 2017."""
    return (np.argmin(divergences(counts)) + FIRST + 0.5) * width


def entropy(counts, width):
    """NVIDIA's pytorch-quantization: bin 0 counts as bin 1 does, the last of equal candidates."""
    bins = counts.copy()
    bins[0] = bins[1]
    costs = divergences(bins)
    return (len(costs) - 1 - np.argmin(costs[::-1]) + FIRST) * width


def percentile(counts, width, share=99.99):
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
