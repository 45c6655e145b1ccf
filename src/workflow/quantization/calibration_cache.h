// SPDX-License-Identifier: Apache-2.0
// TensorRT's calibration cache: a line `TRT-<version>-<algorithm>`, then per tensor a line `tensor
// name: 3c010a14`, the bits of its scale (threshold / 127) as an f32 in hex. Accepts everything
// TensorRT accepts, and files changed by other systems or by hand.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ingot {

struct CalibrationCache {
    std::string version = "8601";                  // from the first line, without '-'
    std::string algorithm = "EntropyCalibration2"; // the same
    /// Finite, unique names; 0: the tensor was always zero, its range is unknown.
    std::vector<std::pair<std::string, float>> scales;

    /// Null when absent.
    const float* find(std::string_view tensor) const;
};

/// Lines may end in \r\n or be empty; hex digits may be of either case and need no leading zeros. A
/// duplicate tensor with the same scale is ignored. Errors: InvalidArgument with `where`, line, got
/// and expected.
CalibrationCache parse_calibration_cache(std::string_view text, std::string_view where);
/// Errors: Io, which for a missing file says how to make one, and the above with the path.
CalibrationCache read_calibration_cache(const std::string& path);
/// In the order of `scales`, in TensorRT's format: printing a parsed text reproduces it, except for
/// duplicate lines. Errors: InvalidArgument for names with a line break and scales that could not
/// be read back.
std::string print_calibration_cache(const CalibrationCache& cache);
/// Whole or not at all.
void write_calibration_cache(const CalibrationCache& cache, const std::string& path);

} // namespace ingot
