// SPDX-License-Identifier: Apache-2.0
#include "ops/row_moments.h"

#include "base/error.h"
#include "ops/op_table.h"

#include <array>

namespace ingot::ops {

namespace {

/// The known size of the last axis of floats; `op` names the op in errors.
int64_t row_size(std::string_view op, const Type& t) {
    auto size = t.rank() == 0 ? std::nullopt : t.dims.back().as_const();
    require(is_float(t.dtype) && !is_packed(t.dtype) && size && *size > 0, ErrorCode::InvalidModel,
            op, " of ", t, ": expected floats with a last axis of known size, at least 1");
    return *size;
}

Values expand_row_moments(Graph& g, const RowMoments& a, std::span<const Value> in) {
    require(in.size() == 1, ErrorCode::InvalidModel, "row_moments takes 1 input, got ", in.size());
    const Type t = g.type(in[0]);
    int64_t n = row_size("row_moments", t);
    require(a.chunk > 0 && n % a.chunk == 0, ErrorCode::InvalidModel, "row_moments of ", t,
            " by chunks of ", a.chunk, ": expected a divisor of ", n);
    Dims chunks = t.dims;
    chunks.back() = n / a.chunk;
    chunks.push_back(a.chunk);
    int64_t last = int64_t{t.rank()};
    Value x = reshape(g, widen(g, in[0]), chunks);
    Value mean = reduce_mean(g, x, {last}, true);
    Value away = sub(g, x, mean);
    Value squares = reduce_sum(g, mul(g, away, away), {last}, true);
    std::array parts = {mean, squares};
    return {concat(g, parts, last)};
}

Values expand_moment_norm(Graph& g, const MomentNorm& a, std::span<const Value> in) {
    require(in.size() == 2 || in.size() == 3, ErrorCode::InvalidModel,
            "moment_norm takes 2 or 3 inputs, got ", in.size());
    const Type t = g.type(in[0]);
    require(in.size() == 2 || g.type(in[2]) == t, ErrorCode::InvalidModel, "moment_norm of ", t,
            ": its third operand is ", g.type(in.back()), ", expected the result's type");
    const Type m = g.type(in[1]);
    int64_t n = row_size("moment_norm", t);
    Dims expected = t.dims;
    expected.back() = m.rank() < 2 ? Dim(0) : m.dims[static_cast<size_t>(m.rank()) - 2];
    expected.push_back(2);
    auto chunks = expected[expected.size() - 2].as_const();
    require(is_float(m.dtype) && bit_width(m.dtype) >= 32 && m.dims == expected && chunks &&
                *chunks > 0 && n % *chunks == 0,
            ErrorCode::InvalidModel, "moment_norm of ", t, " with moments ", m,
            ": expected those of row_moments for these rows");
    int64_t last = int64_t{t.rank()} - 1;
    Value x = widen(g, in[0]);
    DType wide = g.type(x).dtype;
    Value moments = cast(g, in[1], wide);
    auto part = [&](int64_t i) {
        return squeeze(g, slice(g, moments, last + 1, i, 1), {last + 1});
    };
    Value means = part(0);
    Value mean = reduce_mean(g, means, {last}, true);
    Value away = sub(g, means, mean);
    const int64_t chunk = n / *chunks;
    Value between =
        mul(g, reduce_sum(g, mul(g, away, away), {last}, true), static_cast<double>(chunk));
    Value squares = add(g, reduce_sum(g, part(1), {last}, true), between);
    Value deviation = sqrt(g, add(g, div(g, squares, static_cast<double>(n)), a.epsilon));
    return {cast(g, div(g, sub(g, x, mean), deviation), t.dtype)};
}

} // namespace

Value row_moments(Graph& g, RowMoments a, Value x) {
    return g.add1(row_moments_def, a, {x});
}

Value moment_norm(Graph& g, MomentNorm a, Value x, Value moments, Value result) {
    Values in = {x, moments};
    if (result.valid()) {
        in.push_back(result);
    }
    return g.add1(moment_norm_def, a, in);
}

const OpDef row_moments_def =
    composite<RowMoments>("row_moments", {Rounding::Smooth, InHalf::Wide, any_type},
                          [](Graph& g, const RowMoments& a, std::span<const Value> in) {
                              return expand_row_moments(g, a, in);
                          });

const OpDef moment_norm_def =
    composite<MomentNorm>("moment_norm", {Rounding::Smooth, InHalf::Narrow, parameters_from(1)},
                          [](Graph& g, const MomentNorm& a, std::span<const Value> in) {
                              return expand_moment_norm(g, a, in);
                          });

} // namespace ingot::ops

namespace ingot {

extern const OpTable row_moments_ops;
static const OpDef* const list[] = {&ops::row_moments_def, &ops::moment_norm_def};
const OpTable row_moments_ops = list;

} // namespace ingot
