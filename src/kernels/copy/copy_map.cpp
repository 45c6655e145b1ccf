// SPDX-License-Identifier: Apache-2.0
// Copies as identity maps over elements of the same width.
#include "kernels/copy/copy.h"
#include "kernels/copy/movement.h"
#include "kernels/pointwise/map_job.h"

namespace ingot::kernels {

namespace {

/// Packed elements as bytes, where pairs are adjacent in both.
void join_pairs(Operand& from, Operand& to) {
    const Shape& sizes = to.view.shape;
    size_t axis = sizes.size();
    bool even = from.view.offset % 2 == 0 && to.view.offset % 2 == 0;
    for (size_t n = 0; n < sizes.size(); ++n) {
        int64_t a = from.view.strides[n];
        int64_t b = to.view.strides[n];
        if (a == 1 && b == 1 && sizes[n] % 2 == 0) {
            axis = n;
        } else {
            even = even && (sizes[n] == 1 || (a % 2 == 0 && b % 2 == 0));
        }
    }
    if (!even || axis == sizes.size()) {
        return;
    }
    for (Operand* o : {&from, &to}) {
        for (size_t n = 0; n < sizes.size(); ++n) {
            o->view.strides[n] = n == axis ? 1 : o->view.strides[n] / 2;
        }
        o->view.shape[axis] /= 2;
        o->view.offset /= 2;
        o->dtype = DType::U8;
    }
}

} // namespace

Emitted emit_copy(const Operand& from, const Operand& to, const Arch&) {
    Operand a = from;
    Operand b = to;
    a.view = broadcasted(a.view, b.view.shape);
    a.dtype = raw_dtype(from.dtype);
    b.dtype = raw_dtype(to.dtype);
    // Packed elements are copied as bytes where possible.
    if (is_packed(a.dtype) && plan::is_dense(a.view) && plan::is_dense(b.view) &&
        a.view.offset % 2 == 0 && b.view.offset % 2 == 0 && b.view.count() % 2 == 0) {
        a.view = *reshaped(a.view, {b.view.count()});
        b.view = *reshaped(b.view, {b.view.count()});
    }
    if (is_packed(a.dtype)) {
        join_pairs(a, b);
    }
    Expr same;
    same.in(0, a.dtype);
    return emit_map({same, std::span(&a, 1), b, "copy"});
}

} // namespace ingot::kernels
