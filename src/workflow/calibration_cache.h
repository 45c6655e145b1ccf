// SPDX-License-Identifier: Apache-2.0
// The text that TensorRT keeps calibration in: a line `TRT-<version>-<algorithm>`, then one line
// `tensor name: 3c010a14` a tensor, the bits of its scale (threshold / 127) as an f32 in hex.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ingot {

struct CalibrationCache {
    std::string version = "8601";                      // digits
    std::string algorithm = "EntropyCalibration2";     // as the first line has it
    std::vector<std::pair<std::string, float>> scales; // above 0, finite, no name twice

    /// Null when the tensor is not there.
    const float* find(std::string_view tensor) const;
};

/// Errors: InvalidArgument with `where`, line, got and expected. A tensor that stands there twice
/// with the same scale counts once.
CalibrationCache parse_calibration_cache(std::string_view text, std::string_view where);
/// Errors: Io, and the above with the path.
CalibrationCache read_calibration_cache(const std::string& path);
/// In the order of `scales`. What was parsed prints as it was, but for lines that stood there
/// twice and a missing last newline. Errors: InvalidArgument for names with a line break and
/// scales that could not be read back.
std::string print_calibration_cache(const CalibrationCache& cache);
/// Whole or not at all.
void write_calibration_cache(const CalibrationCache& cache, const std::string& path);

} // namespace ingot
