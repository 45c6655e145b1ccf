// SPDX-License-Identifier: Apache-2.0
// map: a scalar expression applied to every element of its broadcast inputs.
#include "base/error.h"
#include "ir/expr_math.h"
#include "ops/eval_util.h"
#include "ops/op_table.h"
#include "ops/primitives.h"
#include "ops/support/map_contents.h"

#include <algorithm>
#include <array>
#include <bit>

namespace ingot {

namespace {

constexpr int64_t block = 256;
struct Lane { // values of one instruction for a block of elements
    std::array<double, block> f;
    std::array<int64_t, block> i;
};

template <class T, class S>
void number_block(ExprOp op, const S* x, const S* y, S* r, int64_t n) {
    using namespace expr_math;
    switch (op) {
#define INGOT_EXPR(Name, text, arity, kind, rounding, identity, cpp, device)                       \
    case ExprOp::Name:                                                                             \
        if constexpr (ExprKind::kind == ExprKind::Arith ||                                         \
                      (ExprKind::kind == ExprKind::Float && is_fp<T>) ||                           \
                      (ExprKind::kind == ExprKind::Bits && !is_fp<T>)) {                           \
            for (int64_t k = 0; k < n; ++k) {                                                      \
                [[maybe_unused]] auto a = static_cast<T>(x[k]);                                    \
                [[maybe_unused]] auto b = static_cast<T>(y[k]);                                    \
                r[k] = static_cast<S>(static_cast<T>(cpp));                                        \
            }                                                                                      \
        }                                                                                          \
        break;
#include "ir/expr.def"
#undef INGOT_EXPR
    default:
        break;
    }
}

template <class T, class S>
void test_block(ExprOp op, const S* x, const S* y, int64_t* r, int64_t n) {
    using namespace expr_math;
    switch (op) {
#define INGOT_EXPR(Name, text, arity, kind, rounding, identity, cpp, device)                       \
    case ExprOp::Name:                                                                             \
        if constexpr (ExprKind::kind == ExprKind::Compare ||                                       \
                      (ExprKind::kind == ExprKind::Classify && is_fp<T>)) {                        \
            for (int64_t k = 0; k < n; ++k) {                                                      \
                [[maybe_unused]] auto a = static_cast<T>(x[k]);                                    \
                [[maybe_unused]] auto b = static_cast<T>(y[k]);                                    \
                r[k] = (cpp) ? 1 : 0;                                                              \
            }                                                                                      \
        }                                                                                          \
        break;
#include "ir/expr.def"
#undef INGOT_EXPR
    default:
        break;
    }
}

void bool_block(ExprOp op, const int64_t* x, const int64_t* y, int64_t* r, int64_t n) {
    if (op == ExprOp::Not) {
        for (int64_t k = 0; k < n; ++k) {
            r[k] = x[k] == 0 ? 1 : 0;
        }
        return;
    }
    number_block<int64_t>(op, x, y, r, n);
    for (int64_t k = 0; k < n; ++k) {
        r[k] = r[k] != 0 ? 1 : 0;
    }
}

/// Whether the last bit of the C library's function depends on the CPU, as exp's does where
/// there is FMA. Those for long double are the same everywhere, and so are constants in engines.
bool differs_by_cpu(ExprOp op) {
    bool exact = op == ExprOp::Sqrt; // correctly rounded, which twice rounded is not
    return (kind(op) == ExprKind::Float && !exact) || op == ExprOp::Pow;
}

void apply_block(const ExprInstr& c, DType type, const Lane& a, const Lane& b, Lane& r, int64_t n) {
    bool test = kind(c.op) == ExprKind::Compare || kind(c.op) == ExprKind::Classify;
    if (is_float(type) && !test && differs_by_cpu(c.op)) {
        number_block<long double>(c.op, a.f.data(), b.f.data(), r.f.data(), n);
        for (size_t k = 0; type == DType::F32 && k < static_cast<size_t>(n); ++k) {
            r.f[k] = static_cast<float>(r.f[k]);
        }
        return;
    }
    if (type == DType::F32) {
        return test ? test_block<float>(c.op, a.f.data(), b.f.data(), r.i.data(), n)
                    : number_block<float>(c.op, a.f.data(), b.f.data(), r.f.data(), n);
    }
    if (type == DType::F64) {
        return test ? test_block<double>(c.op, a.f.data(), b.f.data(), r.i.data(), n)
                    : number_block<double>(c.op, a.f.data(), b.f.data(), r.f.data(), n);
    }
    if (test) {
        return is_signed(type) ? test_block<int64_t>(c.op, a.i.data(), b.i.data(), r.i.data(), n)
                               : test_block<uint64_t>(c.op, a.i.data(), b.i.data(), r.i.data(), n);
    }
    if (type == DType::Bool) {
        return bool_block(c.op, a.i.data(), b.i.data(), r.i.data(), n);
    }
    is_signed(type) ? number_block<int64_t>(c.op, a.i.data(), b.i.data(), r.i.data(), n)
                    : number_block<uint64_t>(c.op, a.i.data(), b.i.data(), r.i.data(), n);
    for (int64_t k = 0; k < n; ++k) {
        r.i[static_cast<size_t>(k)] = wrap_integer(r.i[static_cast<size_t>(k)], type);
    }
}

// Reads elements of one input in the order of the broadcast result.
class Reader {
public:
    Reader(const Tensor& t, const Shape& out) : t_(t) {
        Shape own = strides_of(t.shape());
        size_t shift = out.size() - own.size();
        add_axis(1, 0);
        for (size_t i = 0; i < out.size(); ++i) {
            bool repeats = i < shift || t.shape()[i - shift] == 1;
            add_axis(out[i], repeats ? 0 : own[i - shift]);
        }
        at_.assign(shape_.size(), 0);
    }

    void fill(Lane& lane, int64_t n) {
        for (int64_t k = 0; k < n;) {
            int64_t run = std::min(n - k, shape_.back() - at_.back());
            auto first = static_cast<size_t>(k);
            auto count = static_cast<size_t>(run);
            is_float(t_.dtype()) ? read_run(std::span(lane.f).subspan(first, count))
                                 : read_run(std::span(lane.i).subspan(first, count));
            advance(run);
            k += run;
        }
    }

private:
    // Axes along which elements follow each other as along the last one are part of it.
    void add_axis(int64_t size, int64_t stride) {
        if (size == 1 && !shape_.empty()) {
            return;
        }
        if (!shape_.empty() && (shape_.back() == 1 || strides_.back() == stride * size)) {
            shape_.back() *= size;
            strides_.back() = stride;
            return;
        }
        shape_.push_back(size);
        strides_.push_back(stride);
    }

    // Along the last axis, where elements follow each other or are one.
    template <class W>
    void read_run(std::span<W> out) {
        bool one = strides_.back() == 0;
        eval_util::read(t_, offset_, one ? out.first(1) : out);
        if (one) {
            std::fill(out.begin() + 1, out.end(), out[0]);
        }
    }

    void advance(int64_t n) {
        offset_ += strides_.back() * n;
        at_.back() += n;
        for (size_t d = shape_.size() - 1; at_[d] == shape_[d] && d > 0; --d) {
            offset_ += strides_[d - 1] - strides_[d] * shape_[d];
            at_[d] = 0;
            ++at_[d - 1];
        }
    }

    const Tensor& t_;
    Shape shape_, strides_, at_;
    int64_t offset_ = 0;
};

void eval_instr(const Expr& e, size_t index, std::vector<Lane>& lanes, std::vector<Reader>& readers,
                int64_t n) {
    const ExprInstr& c = e.code[index];
    Lane& r = lanes[index];
    auto arg = [&](size_t k) -> const Lane& { return lanes[static_cast<size_t>(c.args[k])]; };
    switch (c.op) {
    case ExprOp::In:
        return readers[static_cast<size_t>(c.args[0])].fill(r, n);
    case ExprOp::Const:
        r.f.fill(is_float(c.type) ? std::bit_cast<double>(c.imm) : 0);
        r.i.fill(c.imm);
        return;
    case ExprOp::Cast: {
        DType from = e.code[static_cast<size_t>(c.args[0])].type;
        for (size_t k = 0; k < static_cast<size_t>(n); ++k) {
            Scalar s = cast_scalar({arg(0).f[k], arg(0).i[k]}, from, c.to, c.imm != 0);
            r.f[k] = s.f;
            r.i[k] = s.i;
        }
        return;
    }
    case ExprOp::Select:
        for (size_t k = 0; k < static_cast<size_t>(n); ++k) {
            const Lane& from = arg(arg(0).i[k] != 0 ? 1 : 2);
            r.f[k] = from.f[k];
            r.i[k] = from.i[k];
        }
        return;
    default:
        apply_block(c, e.code[static_cast<size_t>(c.args[0])].type, arg(0),
                    arg(arity(c.op) > 1 ? 1 : 0), r, n);
    }
}

std::vector<Type> infer_map(const Map& a, std::span<const Type> in) {
    std::vector<DType> dtypes;
    dtypes.reserve(in.size());
    Dims dims = in.empty() ? Dims() : in[0].dims;
    for (const Type& t : in) {
        dtypes.push_back(t.dtype);
        if (t.dims == dims) {
            continue;
        }
        auto both = broadcast(dims, t.dims);
        require(both.has_value(), ErrorCode::InvalidModel, "shapes ", dims, " and ", t.dims,
                " do not broadcast");
        dims = std::move(*both);
    }
    verify(a.body, dtypes);
    require(a.body.input_count() <= static_cast<int>(in.size()), ErrorCode::InvalidModel,
            "map uses ", a.body.input_count(), " inputs, got ", in.size());
    require(a.body.type() == compute_type(a.dtype), ErrorCode::InvalidModel, "map computes ",
            a.body.type(), ", which is not stored as ", a.dtype);
    std::vector<Type> out;
    out.push_back({a.dtype, std::move(dims)});
    return out;
}

/// Results of a type of computation, from element `start` on.
void store(const Lane& r, DType type, Tensor& out, int64_t start, int64_t n) {
    auto count = static_cast<size_t>(n);
    bool narrows = out.dtype() == DType::F32 || out.dtype() == DType::F16;
    if (type == DType::F32 && narrows) { // they are floats, which are narrowed faster
        std::array<float, block> floats;
        std::transform(r.f.begin(), r.f.begin() + n, floats.begin(),
                       [](double x) { return static_cast<float>(x); });
        return eval_util::write(std::span<const float>(floats).first(count), start, out);
    }
    for (size_t k = 0; k < count; ++k) {
        int64_t at = start + static_cast<int64_t>(k);
        is_float(out.dtype()) ? out.set_f64(at, r.f[k]) : out.set_i64(at, r.i[k]);
    }
}

void eval_map(const Map& a, EvalArgs& e) {
    Tensor& out = e.out[0];
    std::vector<Reader> readers;
    readers.reserve(e.in.size());
    for (const Tensor& t : e.in) {
        for (size_t i = 1; i <= t.shape().size(); ++i) {
            int64_t have = t.shape()[t.shape().size() - i];
            int64_t want = out.shape()[out.shape().size() - i];
            require(have == want || have == 1, ErrorCode::InvalidArgument, "shape ", t.shape(),
                    " does not broadcast to ", out.shape());
        }
        readers.emplace_back(t, out.shape());
    }
    std::vector<Lane> lanes(a.body.code.size());
    for (int64_t start = 0; start < out.count(); start += block) {
        int64_t n = std::min(block, out.count() - start);
        for (size_t k = 0; k < a.body.code.size(); ++k) {
            eval_instr(a.body, k, lanes, readers, n);
        }
        store(lanes.back(), a.body.type(), out, start, n);
    }
}

} // namespace

const OpDef map_def = primitive<Map>(
    "map",
    {[](const Node& n) {
         return is_smooth(n.as<Map>().body) ? Rounding::Smooth : Rounding::Matters;
     },
     InHalf::AsOperands, any_type},
    [](const Map& a, std::span<const Type> in) { return infer_map(a, in); },
    [](const Map& a, EvalArgs& e) { eval_map(a, e); },
    [](const Map& a, std::span<const HostRef> in, std::span<const Type> out) {
        return host_map(a, in, out);
    });

extern const OpTable map_ops;
static const OpDef* const list[] = {&map_def};
const OpTable map_ops = list;

} // namespace ingot
