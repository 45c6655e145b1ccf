// SPDX-License-Identifier: Apache-2.0
// reduce: sum, product, minimum or maximum over axes.
#include "ops/eval_util.h"
#include "ops/op_table.h"
#include "ops/primitives.h"

namespace ingot {

using eval_util::combine_identity;
using eval_util::is_index;
using eval_util::read;
using eval_util::require_axis;
using eval_util::require_combine;
using eval_util::require_inputs;
using eval_util::Walk;
using eval_util::with_combine;
using eval_util::with_wide;
using eval_util::write;

namespace {

bool contains(const std::vector<int64_t>& axes, size_t axis) {
    return std::find(axes.begin(), axes.end(), static_cast<int64_t>(axis)) != axes.end();
}

std::vector<Type> infer_reduce(const Reduce& a, std::span<const Type> in) {
    require_inputs("reduce", in, 1);
    const Type& x = in[0];
    require_combine("reduce", a.fn, x);
    for (size_t i = 0; i < a.axes.size(); ++i) {
        require_axis("reduce", a.axes[i], x);
        require(i == 0 || a.axes[i - 1] < a.axes[i], ErrorCode::InvalidModel, "reduce: axes are ",
                a.axes, ", expected ascending ones");
    }
    Type out{x.dtype, {}};
    for (size_t d = 0; d < x.dims.size(); ++d) {
        if (!contains(a.axes, d)) {
            out.dims.push_back(x.dims[d]);
        }
    }
    return {out};
}

// The input as runs of adjacent axes that are all kept or all reduced. `strides` index the result,
// 0 for reduced runs.
struct Runs {
    Shape sizes;
    Shape strides;
};

Runs runs_of(const Shape& shape, const std::vector<int64_t>& axes) {
    Runs r;
    std::vector<bool> reduced;
    for (size_t d = 0; d < shape.size(); ++d) {
        bool gone = contains(axes, d);
        if (!reduced.empty() && reduced.back() == gone) {
            r.sizes.back() *= shape[d];
        } else {
            r.sizes.push_back(shape[d]);
            reduced.push_back(gone);
        }
    }
    r.strides.assign(r.sizes.size(), 0);
    int64_t stride = 1;
    for (size_t d = r.sizes.size(); d-- > 0;) {
        if (!reduced[d]) {
            r.strides[d] = stride;
            stride *= r.sizes[d];
        }
    }
    return r;
}

template <class W, class F>
std::vector<W> reduce_runs(const Tensor& x, Runs r, std::vector<W> results, F combine) {
    int64_t length = r.sizes.back();
    bool keep = r.strides.back() != 0;
    r.sizes.pop_back();
    r.strides.pop_back();
    std::array<W, 1024> buffer;
    int64_t begin = 0;
    for (Walk<1> w(r.sizes, {r.strides}); !w.done(); w.next()) {
        W* to = results.data() + w.offset(0);
        for (int64_t at = 0; at < length;) {
            auto n = static_cast<size_t>(std::min<int64_t>(length - at, 1024));
            read(x, begin, std::span<W>(buffer.data(), n));
            for (size_t i = 0; keep && i < n; ++i) {
                to[i] = combine(to[i], buffer[i]);
            }
            W total = keep ? W() : *to;
            for (size_t i = 0; !keep && i < n; ++i) {
                total = combine(total, buffer[i]);
            }
            if (keep) {
                to += n;
            } else {
                *to = total;
            }
            at += static_cast<int64_t>(n);
            begin += static_cast<int64_t>(n);
        }
    }
    return results;
}

void eval_reduce(const Reduce& a, EvalArgs& e) {
    const Tensor& x = e.in[0];
    Shape shape = x.rank() == 0 ? Shape{1} : x.shape();
    with_wide(x.dtype(), [&](auto tag) {
        using W = typename decltype(tag)::type;
        std::vector<W> out(static_cast<size_t>(e.out[0].count()),
                           combine_identity<W>(a.fn, x.dtype()));
        if (x.count() > 0) {
            with_combine(a.fn, [&](auto combine) {
                out = reduce_runs<W>(x, runs_of(shape, a.axes), std::move(out), combine);
            });
        }
        write(std::span<const W>(out), 0, e.out[0]);
    });
}

Dim combine_dims(const std::string& fn, const Dims& dims) {
    Dim total = fn == "sum" ? Dim(0) : fn == "prod" ? Dim(1) : dims.front();
    for (const Dim& d : dims) {
        total = fn == "sum"    ? total + d
                : fn == "prod" ? total * d
                : fn == "min"  ? min(total, d)
                               : max(total, d);
    }
    return total;
}

std::vector<HostRef> host_reduce(const Reduce& a, const HostRef& in, DType dtype) {
    if (in == nullptr || a.axes.empty()) {
        return {in};
    }
    auto dims = in->dims();
    if (!dims || in->shape.size() != a.axes.size() || !is_index(dtype) ||
        (dims->empty() && a.fn != "sum" && a.fn != "prod")) {
        return {};
    }
    auto r = std::make_shared<HostValue>();
    try {
        r->elements.emplace_back(HostElement{combine_dims(a.fn, *dims), 1});
    } catch (const Error&) {
        return {}; // beyond 64 bits: the run wraps, but a size must not
    }
    auto known = r->elements[0]->numerator.as_const();
    bool wraps = known && dtype == DType::I32 && *known != static_cast<int32_t>(*known);
    return wraps ? std::vector<HostRef>{} : std::vector<HostRef>{r};
}

} // namespace

const OpDef reduce_def = primitive<Reduce>(
    "reduce",
    {Rounding::Smooth,
     [](const Graph&, const Node& n) {
         bool grows = n.as<Reduce>().fn == "sum" || n.as<Reduce>().fn == "prod";
         return grows ? InHalf::Wide : InHalf::AsOperands;
     },
     like_result},
    [](const Reduce& a, std::span<const Type> in) { return infer_reduce(a, in); },
    [](const Reduce& a, EvalArgs& e) { eval_reduce(a, e); },
    [](const Reduce& a, std::span<const HostRef> in, std::span<const Type> out) {
        return host_reduce(a, in[0], out[0].dtype);
    });

extern const OpTable reduce_ops;
static const OpDef* const list[] = {&reduce_def};
const OpTable reduce_ops = list;

} // namespace ingot
