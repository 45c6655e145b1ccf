// SPDX-License-Identifier: Apache-2.0
#include "api/tensorrt/network/formats.h"

#include "api/tensorrt/convert.h"

#include <algorithm>
#include <array>

namespace ingot::api {

namespace {

// Indexed by TensorFormat.
constexpr std::array<std::string_view, 13> names = {
    "chw",    "chw2", "hwc8",       "chw4",     "chw16", "chw32", "dhwc8",
    "cdhw32", "hwc",  "dla_linear", "dla_hwc4", "hwc16", "dhwc"};
static_assert(names.size() == static_cast<size_t>(nv::EnumMax<nv::TensorFormat>()));

} // namespace

nv::TensorFormat tensor_format_of(const IoFormat& f) {
    const auto* it = std::find(names.begin(), names.end(), f.name);
    return static_cast<nv::TensorFormat>(it - names.begin());
}

std::vector<const IoFormat*> formats_of(nv::TensorFormats mask, std::string_view what) {
    constexpr nv::TensorFormats all = (1U << names.size()) - 1;
    require(mask != 0 && (mask & ~all) == 0, ErrorCode::InvalidArgument, what, " allows formats ",
            mask, ", which are no set of TensorFormat bits: expected 1 to ", all,
            ", with bit i for format i");
    std::vector<const IoFormat*> out;
    for (size_t i = 0; i < names.size(); ++i) {
        if ((mask & (1U << i)) != 0) {
            out.push_back(find_io_format(names[i]));
        }
    }
    return out;
}

std::string format_text(const IoFormat& f, DType t) {
    std::string_view type = name_of(data_type_of(t));
    if (f.is_row_major()) {
        return str(type, ", row major");
    }
    if (!f.last) {
        return str(type, ", vectors of ", f.vector, " channels, row major (", f.api_name, ")");
    }
    return str(type, ", channels innermost",
               f.pads() ? str(", padded to a multiple of ", f.vector) : "", " (", f.api_name, ")");
}

} // namespace ingot::api
