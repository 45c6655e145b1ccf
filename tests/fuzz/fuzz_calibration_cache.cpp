// SPDX-License-Identifier: Apache-2.0
// Fuzz target: any text is refused, or is a calibration cache that prints to itself.
#include "base/error.h"
#include "workflow/quantization/calibration_cache.h"

#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace ingot;
    std::string_view text(reinterpret_cast<const char*>(data), size);
    try {
        CalibrationCache cache = parse_calibration_cache(text, "cache");
        std::string printed = print_calibration_cache(cache);
        CalibrationCache again = parse_calibration_cache(printed, "printed");
        if (again.scales != cache.scales || print_calibration_cache(again) != printed) {
            std::abort();
        }
    } catch (const Error&) {
    }
    return 0;
}
