// SPDX-License-Identifier: Apache-2.0
// The table of fields that configurations for other backends have (fields.def).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ingot::triton {

enum class Place {
    Parameter,    // parameters { key, value { string_value } }
    Accelerator,  // parameters of the accelerator "tensorrt"
    Optimization, // optimization { ... }
};
enum class Verdict { Honoured, Accepted, Refused };

struct Field {
    Place place;
    const char* name;
    Verdict verdict;
    const char* reason;
};
std::span<const Field> fields();
/// Adds to `notes` what has no meaning here. Errors: Unsupported for what is refused,
/// InvalidArgument for what no row has.
void judge_field(Place place, std::string_view name, std::vector<std::string>& notes);

} // namespace ingot::triton
