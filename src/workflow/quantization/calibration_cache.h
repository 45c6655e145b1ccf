// SPDX-License-Identifier: Apache-2.0
// The text that TensorRT keeps calibration in: a line `TRT-<version>-<algorithm>`, then one line
// `tensor name: 3c010a14` a tensor, the bits of its scale (threshold / 127) as an f32 in hex. Read
// is what TensorRT reads, and what became of its files on other systems and by hand.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ingot {

struct CalibrationCache {
    std::string version = "8601";                  // as the first line has it, without '-'
    std::string algorithm = "EntropyCalibration2"; // the same
    /// Finite, no name twice; 0: the tensor was zero throughout, its range is not known.
    std::vector<std::pair<std::string, float>> scales;

    /// Null when the tensor is not there.
    const float* find(std::string_view tensor) const;
};

/// Lines may end in \r\n or be empty, hex digits may be of either case and need no leading zeros.
/// A tensor that stands there twice with the same scale counts once. Errors: InvalidArgument with
/// `where`, line, got and expected.
CalibrationCache parse_calibration_cache(std::string_view text, std::string_view where);
/// Errors: Io, which says how a cache is made where there is none, and the above with the path.
CalibrationCache read_calibration_cache(const std::string& path);
/// In the order of `scales`, as TensorRT writes it: what such a text was parsed from, it prints as
/// it was, but for lines that stood there twice. Errors: InvalidArgument for names with a line
/// break and scales that could not be read back.
std::string print_calibration_cache(const CalibrationCache& cache);
/// Whole or not at all.
void write_calibration_cache(const CalibrationCache& cache, const std::string& path);

} // namespace ingot
