// SPDX-License-Identifier: Apache-2.0
#include "ir/type.h"

#include "base/error.h"

#include <algorithm>

namespace ingot {

std::string to_text(const Type& t) {
    return str(t.dtype, t.dims);
}

Type parse_type(std::string_view text) {
    size_t open = text.find('[');
    bool closed = open != std::string_view::npos && text.back() == ']';
    auto dtype = closed ? parse_dtype(text.substr(0, open)) : std::nullopt;
    require(dtype.has_value(), ErrorCode::InvalidArgument, "type '", text,
            "': expected an element type and dims, such as f32[N,3]");
    Type t{*dtype, {}};
    std::string_view body = text.substr(open + 1, text.size() - open - 2);
    size_t start = 0;
    int depth = 0;
    for (size_t i = 0; i <= body.size() && !body.empty(); ++i) {
        if (i == body.size() || (body[i] == ',' && depth == 0)) {
            t.dims.push_back(parse_dim(body.substr(start, i - start)));
            start = i + 1;
        } else {
            depth += body[i] == '(' ? 1 : body[i] == ')' ? -1 : 0;
        }
    }
    return t;
}

int64_t normalize_axis(int64_t axis, int64_t rank) {
    require(axis >= -rank && axis < rank, ErrorCode::InvalidModel, "axis ", axis,
            " is outside a tensor of rank ", rank, ", expected ", -rank, " to ", rank - 1);
    return axis < 0 ? axis + rank : axis;
}

std::vector<int64_t> normalize_axes(const std::vector<int64_t>& axes, int64_t rank) {
    std::vector<int64_t> out;
    for (int64_t a : axes) {
        int64_t n = normalize_axis(a, rank);
        require(std::find(out.begin(), out.end(), n) == out.end(), ErrorCode::InvalidModel, "axis ",
                a, " is named twice in ", axes);
        out.push_back(n);
    }
    return out;
}

} // namespace ingot
