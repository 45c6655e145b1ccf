// SPDX-License-Identifier: Apache-2.0
// The statistics of a tensor in calibration, and the published methods that choose a threshold from
// them. A threshold T is the largest magnitude that is not clipped: int8 steps are T / 127.
#pragma once

#include "ir/tensor.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ingot {

/// Magnitudes |x| counted in equal bins over [0, range), where range is the power of two just above
/// the largest one: a larger magnitude doubles the range and merges bins in pairs, so that the
/// counts do not depend on the order of the tensors. NaN and infinity are not counted.
class CalibrationHistogram {
public:
    static constexpr size_t bin_count = 2048;

    /// Any float type.
    void add(const Tensor& t);
    /// Counts up to the bin of the largest magnitude; empty before the first add().
    std::span<const uint64_t> counts() const;
    double bin_width() const;
    double largest() const { return largest_; }
    /// The number of NaN and infinite elements.
    uint64_t skipped() const { return skipped_; }

    /// The whole state as bytes, and back. nullopt for bytes of another length or invalid ones.
    std::string bytes() const;
    static std::optional<CalibrationHistogram> from_bytes(std::string_view bytes);

private:
    template <class Get>
    void add_values(int64_t count, const Get& get);
    void reach(double magnitude);

    std::vector<uint64_t> bins_;
    int exponent_ = 0; // the range is 2^exponent_; no magnitude above 0 yet: largest_ is 0
    double largest_ = 0;
    uint64_t skipped_ = 0;
};

enum class CalibrationMethod {
    /// The entropy method of S. Migacz (GTC 2017, s7310), on a histogram whose first bin is
    /// discarded, as NVIDIA documents for TensorRT (MLPerf Inference, calibration): zeros after a
    /// ReLU, and noise, would dominate it. For each i from 128 on: P is the bins [0, i) with all
    /// mass beyond them in the last, Q its reduction to 128 levels; chooses the first i with the
    /// least relative entropy. T is the middle of bin i, or more: see without_costly_clipping.
    Entropy2,
    /// The same as NVIDIA's pytorch-quantization computes it: bin 0 gets the count of bin 1; the
    /// last i among equal ones; T is the lower edge of bin i, or more, as for Entropy2.
    Entropy,
    MinMax,
    /// The lower edge of the first bin at which the cumulative share of magnitudes reaches the
    /// percentile.
    Percentile,
    /// A quantile in [0, 1], computed as Percentile, but at least `cutoff` of the range.
    Legacy,
    /// Among the middles of bins from 128 on, the first with the least squared error over the
    /// middles of all bins, weighted by their counts.
    Mse,
};
/// "entropy2", "entropy", "minmax", "percentile", "legacy", "mse".
std::string_view name(CalibrationMethod m);
/// Errors: InvalidArgument with the known names.
CalibrationMethod calibration_method(std::string_view name);

struct CalibrationOptions {
    CalibrationMethod method = CalibrationMethod::Entropy2;
    double percentile = 99.999; // 0 to 100
    double quantile = 0.99999;  // Legacy: 0 to 1
    double cutoff = 0;          // Legacy: share of the range, 0 to 1
};
/// Throws InvalidArgument for numbers out of their ranges.
void check_options(const CalibrationOptions& options);

/// The smallest threshold from `threshold` on, in steps of a bin, whose squared error does not
/// exceed that of the whole range. The error is that of clipping, with a bin's elements at its
/// middle, plus that of rounding, step^2 / 12 for each element that is neither clipped nor in bin
/// 0. Relative entropy hardly depends on the distance of clipped values; when rare large values
/// carry the result (a face in a picture), this error does.
double without_costly_clipping(std::span<const uint64_t> counts, double bin_width,
                               double threshold);

/// The threshold for equal bins that begin at 0. Without a candidate (fewer than 129 bins), and for
/// MinMax, the upper edge of the last bin. Computes in doubles, sums from the first bin to the
/// last.
double calibration_threshold(std::span<const uint64_t> counts, double bin_width,
                             const CalibrationOptions& options);

} // namespace ingot
