// SPDX-License-Identifier: Apache-2.0
#include "workflow/compare/first_wrong.h"

#include "base/text.h"

#include <algorithm>

namespace ingot {

namespace {

bool is_right(const TensorDifference& d) {
    return d.within;
}

/// Whether the result is right in the end, so that the tolerances alone refuse it as written.
bool ends_right(const TensorDifference& written, std::span<const TensorDifference> outputs) {
    return std::any_of(outputs.begin(), outputs.end(), [&](const TensorDifference& o) {
        return o.name == written.name && o.within;
    });
}

} // namespace

std::string first_wrong(std::span<const TensorDifference> layers,
                        std::span<const TensorDifference> outputs,
                        std::span<const TensorDifference> written) {
    const TensorDifference* first = nullptr;
    const char* kind = "layer";
    for (const TensorDifference& d : layers) {
        if (!d.within && (first == nullptr || d.step < first->step)) {
            first = &d;
        }
    }
    for (const TensorDifference& d : written) {
        if (!d.within && !ends_right(d, outputs) && (first == nullptr || d.step < first->step)) {
            first = &d;
            kind = "output";
        }
    }
    if (first != nullptr) {
        return str("first wrong: ", kind, " ", first->place(), ", ",
                   first->problem.empty() ? first->wrong_text() : first->problem);
    }
    return std::all_of(outputs.begin(), outputs.end(), is_right)
               ? std::string()
               : "every layer was right when it was written: something overwrote one later, or a "
                 "value that is not listed is wrong";
}

} // namespace ingot
