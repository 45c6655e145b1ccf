// SPDX-License-Identifier: Apache-2.0
// The views: reshape, permute, broadcast, slice, window, bitcast.
#include "base/checked.h"
#include "base/error.h"
#include "ops/op_table.h"
#include "ops/primitives.h"

#include <cstring>
#include <numeric>

namespace ingot {

namespace {

const Type& only(std::span<const Type> in, std::string_view op) {
    require(in.size() == 1, ErrorCode::InvalidModel, op, " takes 1 input, got ", in.size());
    return in[0];
}

// Copies elements: out[i] = in[offset + sum(strides[d] * coordinate d of i)].
void gather_strided(const Tensor& in, Tensor& out, int64_t offset, const Shape& strides) {
    int64_t n = out.count();
    bool packed = is_packed(in.dtype());
    auto width = static_cast<size_t>(bit_width(in.dtype()) / 8);
    const Shape& shape = out.shape();
    Shape at(shape.size(), 0);
    const std::byte* from = in.bytes().data();
    std::byte* to = out.mutable_bytes().data();
    for (int64_t i = 0; i < n; ++i) {
        if (packed) {
            in.dtype() == DType::F4E2M1 ? out.set_f64(i, in.get_f64(offset))
                                        : out.set_i64(i, in.get_i64(offset));
        } else {
            std::memcpy(to + static_cast<size_t>(i) * width,
                        from + static_cast<size_t>(offset) * width, width);
        }
        for (size_t d = shape.size(); d-- > 0;) {
            offset += strides[d];
            if (++at[d] < shape[d]) {
                break;
            }
            offset -= strides[d] * shape[d];
            at[d] = 0;
        }
    }
}

std::vector<Type> infer_reshape(const Reshape& a, std::span<const Type> in) {
    const Type& t = only(in, "reshape");
    Dim have = product(t.dims);
    Dim want = product(a.dims);
    require(!(have - want).is_const() || have == want, ErrorCode::InvalidModel, "cannot reshape ",
            t.dims, " (", have, " elements) to ", a.dims, " (", want, ")");
    return {{t.dtype, a.dims}};
}

HostRef as_shape(const HostRef& h, const Type& t) {
    auto shape = as_const(t.dims);
    if (h == nullptr || !shape) {
        return nullptr;
    }
    auto r = std::make_shared<HostValue>(*h);
    r->shape = *shape;
    return r;
}

std::vector<Type> infer_permute(const Permute& a, std::span<const Type> in) {
    const Type& t = only(in, "permute");
    require(a.perm.size() == t.dims.size(), ErrorCode::InvalidModel, "permutation ", a.perm,
            " does not fit rank ", t.rank());
    std::vector<int64_t> seen = normalize_axes(a.perm, t.rank());
    Type out{t.dtype, {}};
    for (int64_t p : a.perm) {
        require(p >= 0, ErrorCode::InvalidModel, "permutation ", a.perm, " has a negative axis");
        out.dims.push_back(t.dims[static_cast<size_t>(p)]);
    }
    return {out};
}

void eval_permute(const Permute& a, EvalArgs& e) {
    Shape own = strides_of(e.in[0].shape());
    Shape strides;
    for (int64_t p : a.perm) {
        strides.push_back(own[static_cast<size_t>(p)]);
    }
    gather_strided(e.in[0], e.out[0], 0, strides);
}

std::vector<Type> infer_broadcast(const Broadcast& a, std::span<const Type> in) {
    const Type& t = only(in, "broadcast");
    require(t.dims.size() <= a.dims.size(), ErrorCode::InvalidModel, "cannot broadcast ", t.dims,
            " to ", a.dims, ": the rank shrinks");
    size_t shift = a.dims.size() - t.dims.size();
    for (size_t i = 0; i < t.dims.size(); ++i) {
        const Dim& have = t.dims[i];
        const Dim& want = a.dims[shift + i];
        require(!have.is_const() || have.is_const(1) || !want.is_const() || have == want,
                ErrorCode::InvalidModel, "cannot broadcast ", t.dims, " to ", a.dims, ": size ",
                have, " is neither 1 nor ", want);
    }
    return {{t.dtype, a.dims}};
}

void eval_broadcast(const Broadcast&, EvalArgs& e) {
    const Tensor& x = e.in[0];
    const Shape& out = e.out[0].shape();
    Shape own = strides_of(x.shape());
    Shape strides(out.size(), 0);
    size_t shift = out.size() - own.size();
    for (size_t i = 0; i < own.size(); ++i) {
        int64_t have = x.shape()[i];
        require(have == 1 || have == out[shift + i], ErrorCode::InvalidArgument,
                "cannot broadcast ", x.shape(), " to ", out, ": size ", have, " is neither 1 nor ",
                out[shift + i]);
        strides[shift + i] = have == 1 ? 0 : own[i];
    }
    gather_strided(x, e.out[0], 0, strides);
}

// Known elements read through other strides: the symbolic form of gather_strided.
HostRef host_strided(const HostValue& in, const Shape& shape, int64_t offset,
                     const Shape& strides) {
    int64_t count = count_of(shape);
    if (count > 1024) {
        return nullptr;
    }
    auto r = std::make_shared<HostValue>();
    r->shape = shape;
    for (int64_t i = 0; i < count; ++i) {
        int64_t rest = i;
        int64_t at = offset;
        for (size_t d = shape.size(); d-- > 0;) {
            at += rest % shape[d] * strides[d];
            rest /= shape[d];
        }
        r->elements.push_back(in.elements[static_cast<size_t>(at)]);
    }
    return r;
}

std::vector<HostRef> host_broadcast(std::span<const HostRef> in, std::span<const Type> out) {
    auto shape = as_const(out[0].dims);
    if (in[0] == nullptr || !shape) {
        return {};
    }
    Shape own = strides_of(in[0]->shape);
    Shape strides(shape->size(), 0);
    for (size_t d = 0; d < own.size(); ++d) {
        strides[shape->size() - own.size() + d] = in[0]->shape[d] == 1 ? 0 : own[d];
    }
    return {host_strided(*in[0], *shape, 0, strides)};
}

struct Range {
    int64_t start;
    int64_t size;
    int64_t step;
};

void check_slice(size_t axis, Range r, int64_t limit, ErrorCode code) {
    require(lies_within(r.start, r.size, r.step, limit), code, "slice of axis ", axis, " of size ",
            limit, ": start ", r.start, ", size ", r.size, ", step ", r.step, " leaves the axis");
}

// The stride of an axis taken in steps, in elements of memory; 0 for a single element, where the
// product might overflow.
int64_t stride_of_steps(int64_t stride, int64_t step, int64_t size) {
    return size > 1 ? stride * step : 0;
}

std::vector<Type> infer_slice(const Slice& a, std::span<const Type> in) {
    const Type& t = only(in, "slice");
    size_t rank = t.dims.size();
    require(a.starts.size() == rank && a.sizes.size() == rank && a.steps.size() == rank,
            ErrorCode::InvalidModel, "slice of rank ", rank,
            " needs as many starts, sizes and steps, got ", a.starts.size(), ", ", a.sizes.size(),
            ", ", a.steps.size());
    for (size_t i = 0; i < rank; ++i) {
        require(a.steps[i] != 0, ErrorCode::InvalidModel, "slice step of axis ", i, " is 0");
        if (a.starts[i].is_const() && a.sizes[i].is_const() && t.dims[i].is_const() &&
            a.sizes[i].value() != 0) {
            check_slice(i, {a.starts[i].value(), a.sizes[i].value(), a.steps[i]}, t.dims[i].value(),
                        ErrorCode::InvalidModel);
        }
    }
    return {{t.dtype, a.sizes}};
}

void eval_slice(const Slice& a, EvalArgs& e) {
    const Shape& shape = e.in[0].shape();
    Shape own = strides_of(shape);
    Shape strides;
    int64_t offset = 0;
    for (size_t i = 0; i < own.size(); ++i) {
        int64_t first = e.dim(a.starts[i]);
        int64_t size = e.out[0].shape()[i];
        if (e.out[0].count() == 0) {
            return;
        }
        check_slice(i, {first, size, a.steps[i]}, shape[i], ErrorCode::InvalidArgument);
        offset += first * own[i];
        strides.push_back(stride_of_steps(own[i], a.steps[i], size));
    }
    gather_strided(e.in[0], e.out[0], offset, strides);
}

std::vector<HostRef> host_slice(const Slice& a, std::span<const HostRef> in,
                                std::span<const Type> out) {
    auto shape = as_const(out[0].dims);
    auto starts = as_const(a.starts);
    if (in[0] == nullptr || !shape || !starts) {
        return {};
    }
    Shape strides = strides_of(in[0]->shape);
    int64_t offset = 0;
    for (size_t d = 0; d < strides.size(); ++d) {
        check_slice(d, {(*starts)[d], (*shape)[d], a.steps[d]}, in[0]->shape[d],
                    ErrorCode::InvalidModel);
        offset += (*shape)[d] == 0 ? 0 : (*starts)[d] * strides[d];
        strides[d] = stride_of_steps(strides[d], a.steps[d], (*shape)[d]);
    }
    return {host_strided(*in[0], *shape, offset, strides)};
}

std::vector<Type> infer_window(const Window& a, std::span<const Type> in) {
    const Type& t = only(in, "window");
    size_t n = a.axes.size();
    require(a.sizes.size() == n && a.strides.size() == n && a.dilations.size() == n,
            ErrorCode::InvalidModel, "window over ", n,
            " axes needs as many sizes, strides, dilations, got ", a.sizes.size(), ", ",
            a.strides.size(), ", ", a.dilations.size());
    normalize_axes(a.axes, t.rank());
    Type out = t;
    for (size_t i = 0; i < n; ++i) {
        require(a.axes[i] >= 0 && a.sizes[i] > 0 && a.strides[i] > 0 && a.dilations[i] > 0 &&
                    a.sizes[i] < (1LL << 31) && a.dilations[i] < (1LL << 31),
                ErrorCode::InvalidModel, "window size ", a.sizes[i], ", stride ", a.strides[i],
                ", dilation ", a.dilations[i], ": all must be positive");
        Dim& d = out.dims[static_cast<size_t>(a.axes[i])];
        int64_t span = a.dilations[i] * (a.sizes[i] - 1) + 1;
        require(!d.is_const() || d.value() >= span, ErrorCode::InvalidModel, "a window that spans ",
                span, " elements does not fit into size ", d, " of axis ", a.axes[i]);
        d = floor_div(d - Dim(span), a.strides[i]) + Dim(1);
    }
    out.dims.insert(out.dims.end(), a.sizes.begin(), a.sizes.end());
    return {out};
}

void eval_window(const Window& a, EvalArgs& e) {
    Shape strides = strides_of(e.in[0].shape());
    Shape own = strides;
    for (size_t i = 0; i < a.axes.size(); ++i) {
        auto axis = static_cast<size_t>(a.axes[i]);
        strides[axis] = stride_of_steps(own[axis], a.strides[i], e.out[0].shape()[axis]);
        strides.push_back(stride_of_steps(own[axis], a.dilations[i], a.sizes[i]));
    }
    gather_strided(e.in[0], e.out[0], 0, strides);
}

std::vector<Type> infer_bitcast(const Bitcast& a, std::span<const Type> in) {
    Type t = only(in, "bitcast");
    int from = bit_width(t.dtype);
    int to = bit_width(a.dtype);
    if (from != to) {
        require(!t.dims.empty(), ErrorCode::InvalidModel, "bitcast of a scalar ", t.dtype, " to ",
                a.dtype, " changes its width");
        Dim bits = t.dims.back() * Dim(from);
        Dim count = floor_div(bits, to);
        require(!bits.is_const() || bits == count * Dim(to), ErrorCode::InvalidModel, "bitcast of ",
                t, " to ", a.dtype, ": ", bits, " bits do not divide into elements of ", to);
        t.dims.back() = count;
    }
    t.dtype = a.dtype;
    return {t};
}

} // namespace

const OpDef reshape_def = primitive<Reshape>(
    "reshape", {Rounding::Moves, InHalf::AsOperands, like_result},
    [](const Reshape& a, std::span<const Type> in) { return infer_reshape(a, in); },
    [](const Reshape&, EvalArgs& e) {
        const Shape& to = e.out[0].shape();
        require(count_of(to) == e.in[0].count(), ErrorCode::InvalidArgument, "cannot reshape ",
                e.in[0].shape(), " (", e.in[0].count(), " elements) to ", to, " (", count_of(to),
                ")");
        e.out[0] = e.in[0].reshaped(to);
    },
    [](const Reshape&, std::span<const HostRef> in, std::span<const Type> out) {
        return std::vector<HostRef>{as_shape(in[0], out[0])};
    });

const OpDef permute_def = primitive<Permute>(
    "permute", {Rounding::Moves, InHalf::AsOperands, like_result},
    [](const Permute& a, std::span<const Type> in) { return infer_permute(a, in); },
    [](const Permute& a, EvalArgs& e) { eval_permute(a, e); },
    [](const Permute& a, std::span<const HostRef> in, std::span<const Type>) {
        if (in[0] == nullptr) {
            return std::vector<HostRef>{};
        }
        Shape own = strides_of(in[0]->shape);
        Shape shape;
        Shape strides;
        for (int64_t p : a.perm) {
            shape.push_back(in[0]->shape[static_cast<size_t>(p)]);
            strides.push_back(own[static_cast<size_t>(p)]);
        }
        return std::vector<HostRef>{host_strided(*in[0], shape, 0, strides)};
    });

const OpDef broadcast_def = primitive<Broadcast>(
    "broadcast", {Rounding::Moves, InHalf::AsOperands, like_result},
    [](const Broadcast& a, std::span<const Type> in) { return infer_broadcast(a, in); },
    [](const Broadcast& a, EvalArgs& e) { eval_broadcast(a, e); },
    [](const Broadcast&, std::span<const HostRef> in, std::span<const Type> out) {
        return host_broadcast(in, out);
    });

const OpDef slice_def = primitive<Slice>(
    "slice", {Rounding::Moves, InHalf::AsOperands, like_result},
    [](const Slice& a, std::span<const Type> in) { return infer_slice(a, in); },
    [](const Slice& a, EvalArgs& e) { eval_slice(a, e); },
    [](const Slice& a, std::span<const HostRef> in, std::span<const Type> out) {
        return host_slice(a, in, out);
    });

const OpDef window_def = primitive<Window>(
    "window", {Rounding::Moves, InHalf::AsOperands, like_result},
    [](const Window& a, std::span<const Type> in) { return infer_window(a, in); },
    [](const Window& a, EvalArgs& e) { eval_window(a, e); });

const OpDef bitcast_def = primitive<Bitcast>(
    "bitcast", {Rounding::Matters, InHalf::AsOperands, own_types},
    [](const Bitcast& a, std::span<const Type> in) { return infer_bitcast(a, in); },
    [](const Bitcast& a, EvalArgs& e) {
        const Tensor& x = e.in[0];
        e.out[0] = Tensor::empty(a.dtype, e.out[0].shape());
        std::memcpy(e.out[0].mutable_bytes().data(), x.bytes().data(),
                    std::min(x.bytes().size(), e.out[0].bytes().size()));
    });

extern const OpTable views_ops;
static const OpDef* const list[] = {&reshape_def, &permute_def, &broadcast_def,
                                    &slice_def,   &window_def,  &bitcast_def};
const OpTable views_ops = list;

} // namespace ingot
