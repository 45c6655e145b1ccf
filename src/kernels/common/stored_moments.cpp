// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/stored_moments.h"

#include <algorithm>

namespace ingot::kernels {

bool are_stored(const plan::Operand& moments, bool batch_invariant) {
    constexpr int64_t most_rows = 1024;
    const Shape& shape = moments.view.shape;
    int64_t of_a_row = std::max<int64_t>(1, shape.rbegin()[0] * shape.rbegin()[1]);
    return !batch_invariant && moments.view.count() <= most_rows * of_a_row;
}

} // namespace ingot::kernels
