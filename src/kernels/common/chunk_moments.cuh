// SPDX-License-Identifier: Apache-2.0
// The moments of 32 adjacent elements: their mean, and the sum of the squares of their distances
// from it. Four adjacent threads find them together, each with 8 elements; all four get them.
constexpr int moment_chunk = 32;
struct Moments {
    float mean, squares;
};
DEVICE Moments chunk_moments(const float* v) {
    float sum = ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7]));
    sum += quad_xor(sum, 1);
    sum += quad_xor(sum, 2);
    Moments m = {sum * (1.0f / moment_chunk), 0.0f};
#pragma unroll
    for (int k = 0; k < 8; k++) {
        float d = v[k] - m.mean;
        m.squares += d * d;
    }
    m.squares += quad_xor(m.squares, 1);
    m.squares += quad_xor(m.squares, 2);
    return m;
}

/// A row's variance, computed from its chunks' moments. Sums are about the first chunk's mean,
/// so that a mean far from 0 costs no digits; they may be those of several threads together.
struct MergedMoments {
    float pivot, sum, squares;
    DEVICE MergedMoments(float pivot_) : pivot(pivot_), sum(0.0f), squares(0.0f) {}
    DEVICE void add(float mean, float chunk_squares) {
        float d = mean - pivot;
        sum += d;
        squares += (float)moment_chunk * d * d + chunk_squares;
    }
    DEVICE float mean(float chunks) const { return pivot + sum / chunks; }
    /// 1 / sqrt(variance + epsilon); NaN where an element is infinite or NaN.
    DEVICE float factor(float chunks, float epsilon) const {
        float share = 1.0f / chunks, away = sum * share;
        float variance = squares * (share / moment_chunk) - away * away;
        float f = 1.0f / ingot_sqrt((variance > 0.0f ? variance : 0.0f) + epsilon);
        return variance == variance ? f : variance;
    }
};
