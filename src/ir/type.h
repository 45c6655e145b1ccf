// SPDX-License-Identifier: Apache-2.0
// Type: element type and symbolic shape of a value. Rank is always known.
#pragma once

#include "base/dtype.h"
#include "ir/dim.h"

namespace ingot {

struct Type {
    DType dtype = DType::F32;
    Dims dims;

    int rank() const { return static_cast<int>(dims.size()); }
    bool operator==(const Type&) const = default;
};
/// "f32[N,3,224,224]"; a scalar prints as "f32[]".
std::string to_text(const Type& t);
/// Inverse of to_text. Errors: InvalidArgument.
Type parse_type(std::string_view text);

/// Maps a possibly negative axis to [0, rank); throws InvalidModel naming axis and rank otherwise.
int64_t normalize_axis(int64_t axis, int64_t rank);
/// The same for a list; also refuses an axis named twice.
std::vector<int64_t> normalize_axes(const std::vector<int64_t>& axes, int64_t rank);

} // namespace ingot
