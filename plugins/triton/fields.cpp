// SPDX-License-Identifier: Apache-2.0
#include "plugins/triton/fields.h"

#include "base/error.h"

namespace ingot::triton {

namespace {

constexpr Field rows[] = {
#define FIELD(place, name, verdict, reason) {Place::place, name, Verdict::verdict, reason},
#include "plugins/triton/fields.def"
#undef FIELD
};

const char* words(Place place) {
    return place == Place::Parameter     ? "parameter"
           : place == Place::Accelerator ? "parameter of the accelerator 'tensorrt'"
                                         : "field of optimization";
}

} // namespace

std::span<const Field> fields() {
    return rows;
}

void judge_field(Place place, std::string_view name, std::vector<std::string>& notes) {
    std::vector<std::string> names;
    for (const Field& f : rows) {
        if (f.place != place) {
            continue;
        }
        if (f.name == name) {
            require(f.verdict != Verdict::Refused, ErrorCode::Unsupported, words(place), " '", name,
                    "' is refused: ", f.reason);
            if (f.verdict == Verdict::Accepted) {
                notes.push_back(str(words(place), " '", name, "' has no effect: ", f.reason));
            }
            return;
        }
        names.emplace_back(f.name);
    }
    std::string near = nearest(name, names);
    fail(ErrorCode::InvalidArgument, words(place), " '", name,
         "' is unknown to this backend; docs/serving.md lists those that it knows",
         near.empty() ? std::string() : str("; did you mean '", near, "'?"));
}

} // namespace ingot::triton
