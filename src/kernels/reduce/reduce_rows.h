// SPDX-License-Identifier: Apache-2.0
// The host side that row families share: nests of loops for kernels, the map that may follow the
// main node of a group, and the text of defines.
#pragma once

#include "base/integers.h"
#include "base/text.h"
#include "kernels/family.h"

#include <string>
#include <vector>

namespace ingot::kernels {

constexpr int max_axes = 8;
constexpr int max_views = 8;

/// `struct Nest` of loops.cuh. Unused axes have size 1 and stride 0.
struct NestArg {
    int64_t count = 1;
    int64_t sizes[max_axes];
    int64_t strides[max_views][max_axes];
};
struct Nest {
    int axes = 1; // at least 1
    int views = 0;
    NestArg arg;
};
/// Merged loops over views of one shape, the axes ordered as in `order`. Errors: Unsupported for
/// more than 8 axes or 8 views.
Nest make_nest(std::span<const View> views, const Order& order);

/// `struct Inner` of reduce.cuh: one view.
struct InnerArg {
    int64_t count = 1;
    int64_t sizes[max_axes];
    int64_t strides[max_axes];
};
InnerArg inner_of(const Nest& n);

/// The view without some of its axes, or with these only.
View without_axes(const View& v, std::span<const int64_t> axes);
View only_axes(const View& v, std::span<const int64_t> axes);

/// The largest vector of at most 16 bytes that divides the offset and all given strides and sizes;
/// at most `most` elements.
int vector_width(const Operand& o, std::span<const int64_t> multiples, int most = 16);

/// "#define NAME value
/// " lines, in the order of the calls.
class Defines {
public:
    template <class T>
    Defines& add(std::string_view name, const T& value) {
        text_ += str("#define ", name, " ", value, "\n");
        return *this;
    }
    const std::string& text() const { return text_; }

private:
    std::string text_;
};

/// The map after the main node, as a device function
///   OUT epilogue(R value, const i64* at EPI_PARAMS)
/// where at[first + k] is the offset of operand k. Kernels declare EPI_PARAMS after their own
/// parameters and pass EPI_PASS.
struct RowEpilogue {
    const Node* map = nullptr;
    std::vector<Operand> operands;
    std::string text; // defines and the function

    void pass(Args& a) const {
        for (const Operand& o : operands) {
            a.pointer(o);
        }
    }
};
/// `first`: index into `at` of the first operand's offset; `main`: the main node's index in the
/// group.
RowEpilogue make_row_epilogue(const Problem& p, int first, size_t main = 0);
/// As plan::refuse_epilogue, for unpacked element types and few operands.
std::optional<std::string> refuse_rows(const Group& group);

/// The limit of a grid along y and z.
constexpr int64_t max_grid_y = 65535;
inline int64_t bytes_of(DType t) {
    return bit_width(t) / 8;
}

} // namespace ingot::kernels
