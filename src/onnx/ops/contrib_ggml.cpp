// SPDX-License-Identifier: Apache-2.0
// GatherPacked of com.microsoft: rows of a table in the block formats of GGML, by whose numbers the
// operator names them. Rows are looked up in bytes, and then widened.
#include "base/error.h"
#include "onnx/ops/support/inputs.h"
#include "onnx/ops/support/spatial.h"

#include <array>

namespace ingot::onnx {

namespace {

// The bytes of blocks, u8 [rows,blocks,bytes].
struct Blocks {
    ingot::Graph& g;
    Value v;

    Value bytes(int64_t at, int64_t count) const { return ops::slice(g, v, 2, at, count); }
    // An f16 in f32, [rows,blocks,1].
    Value half(int64_t at) const {
        return ops::cast(g, ops::bitcast(g, bytes(at, 2), DType::F16), DType::F32);
    }
    // x as [rows,blocks,inner...].
    Value shaped(Value x, const Dims& inner) const {
        Dims d = {ops::dims(g, v)[0], ops::dims(g, v)[1]};
        d.insert(d.end(), inner.begin(), inner.end());
        return ops::reshape(g, x, d);
    }
};

// Fields of bytes: moved right by each of `shifts`, which broadcast to `bytes`, and masked.
Value fields(ingot::Graph& g, Value bytes, Shape shape, const std::vector<uint8_t>& shifts,
             int64_t mask) {
    Value by = ops::constant(
        g, ingot::Tensor::of(DType::U8, std::move(shape), std::span<const uint8_t>(shifts)));
    Value low = ops::binary(g, ExprOp::Shr, bytes, by);
    return ops::binary(g, ExprOp::And, low, ops::scalar_i64(g, DType::U8, mask));
}

Value number(ingot::Graph& g, Value v) {
    return ops::cast(g, v, DType::F32);
}

// low + 2^bits * high
Value joined(ingot::Graph& g, Value low, Value high, int64_t bits) {
    high = ops::binary(g, ExprOp::Shl, high, ops::scalar_i64(g, DType::U8, bits));
    return ops::binary(g, ExprOp::Or, low, high);
}

// Halves of `count` bytes each: all low halves, then all high ones.
Value halves(const Blocks& b, int64_t at, int64_t parts, int64_t count) {
    Value x = b.shaped(b.bytes(at, parts * count), {parts, 1, count});
    return fields(b.g, x, {2, 1}, {0, 4}, 15);
}

Value q4_0(const Blocks& b) {
    Value q = b.shaped(halves(b, 2, 1, 16), {32});
    return ops::mul(b.g, ops::sub(b.g, number(b.g, q), 8.0), b.half(0));
}

Value q5_0(const Blocks& b) {
    Value high = fields(b.g, b.shaped(b.bytes(2, 4), {4, 1}), {8}, {0, 1, 2, 3, 4, 5, 6, 7}, 1);
    Value q = joined(b.g, b.shaped(halves(b, 6, 1, 16), {32}), b.shaped(high, {32}), 4);
    return ops::mul(b.g, ops::sub(b.g, number(b.g, q), 16.0), b.half(0));
}

Value q8_0(const Blocks& b) {
    return ops::mul(b.g, number(b.g, ops::bitcast(b.g, b.bytes(2, 32), DType::I8)), b.half(0));
}

// Scale, then offset, of each of 8 parts: 6 bits each in 12 bytes.
std::array<Value, 2> six_bits(const Blocks& b, int64_t at) {
    ingot::Graph& g = b.g;
    auto four = [&](int64_t i) { return b.bytes(at + 4 * i, 4); };
    auto top = [&](int64_t i) { return fields(g, four(i), {1}, {6}, 3); };
    std::array<Value, 2> out;
    for (size_t i = 0; i < 2; ++i) {
        Value low = fields(g, four(2), {1}, {static_cast<uint8_t>(4 * i)}, 15);
        Values parts = {fields(g, four(static_cast<int64_t>(i)), {1}, {0}, 63),
                        joined(g, low, top(static_cast<int64_t>(i)), 4)};
        out.at(i) = b.shaped(number(g, ops::concat(g, parts, 2)), {8, 1});
    }
    return out;
}

Value q5_k(const Blocks& b) {
    ingot::Graph& g = b.g;
    Value high = fields(g, b.shaped(b.bytes(16, 32), {1, 32}), {8, 1}, {0, 1, 2, 3, 4, 5, 6, 7}, 1);
    Value q = joined(g, b.shaped(halves(b, 48, 4, 32), {8, 32}), high, 4);
    std::array<Value, 2> each = six_bits(b, 4);
    Value scale = ops::mul(g, each[0], b.shaped(b.half(0), {1, 1}));
    Value offset = ops::mul(g, each[1], b.shaped(b.half(2), {1, 1}));
    return ops::sub(g, ops::mul(g, number(g, q), scale), offset);
}

Value q6_k(const Blocks& b) {
    ingot::Graph& g = b.g;
    Value low = fields(g, b.shaped(b.bytes(0, 128), {2, 1, 64}), {2, 1}, {0, 4}, 15);
    Value high = fields(g, b.shaped(b.bytes(128, 64), {2, 1, 32}), {4, 1}, {0, 2, 4, 6}, 3);
    Value q = joined(g, b.shaped(low, {16, 16}), b.shaped(high, {16, 16}), 4);
    Value scale = number(g, ops::bitcast(g, b.bytes(192, 16), DType::I8));
    scale = ops::mul(g, b.shaped(scale, {16, 1}), b.shaped(b.half(208), {1, 1}));
    return ops::mul(g, ops::sub(g, number(g, q), 32.0), scale);
}

// Numbers of 4 bits that are not evenly spaced.
Value uneven(ingot::Graph& g, Value q) {
    constexpr std::array<float, 16> table = {-127, -104, -83, -65, -49, -35, -22, -10,
                                             1,    13,   25,  38,  53,  69,  89,  113};
    Value values =
        ops::constant(g, ingot::Tensor::of(DType::F32, {16}, std::span<const float>(table)));
    return ops::gather(g, values, ops::cast(g, q, DType::I32), 0);
}

Value iq4_nl(const Blocks& b) {
    return ops::mul(b.g, uneven(b.g, b.shaped(halves(b, 2, 1, 16), {32})), b.half(0));
}

Value iq4_xs(const Blocks& b) {
    ingot::Graph& g = b.g;
    Value low = fields(g, b.shaped(b.bytes(4, 4), {4, 1}), {2}, {0, 4}, 15);
    Value high = fields(g, b.shaped(b.bytes(2, 2), {2, 1}), {4}, {0, 2, 4, 6}, 3);
    Value scale = number(g, joined(g, b.shaped(low, {8, 1}), b.shaped(high, {8, 1}), 4));
    scale = ops::mul(g, ops::sub(g, scale, 32.0), b.shaped(b.half(0), {1, 1}));
    return ops::mul(g, uneven(g, b.shaped(halves(b, 8, 8, 16), {8, 32})), scale);
}

struct Format {
    int64_t number;
    int64_t elements; // of a block
    int64_t bytes;
    Value (*widen)(const Blocks& b); // null for floats
    DType floats = DType::F32;
};
constexpr std::array<Format, 10> formats = {{
    {0, 1, 4, nullptr, DType::F32},
    {1, 1, 2, nullptr, DType::F16},
    {2, 32, 18, q4_0},
    {6, 32, 22, q5_0},
    {8, 32, 34, q8_0},
    {13, 256, 176, q5_k},
    {14, 256, 210, q6_k},
    {20, 32, 18, iq4_nl},
    {23, 256, 136, iq4_xs},
    {30, 1, 2, nullptr, DType::BF16},
}};

const Format& format_of(const NodeContext& c) {
    int64_t number = c.i("packed_type");
    for (const Format& f : formats) {
        if (f.number == number) {
            return f;
        }
    }
    c.refuse(RefusalKind::Attribute, "attribute 'packed_type' is ", number,
             "; only floats (0, 1, 30), Q4_0 (2), Q5_0 (6), Q8_0 (8), Q5_K (13), Q6_K (14), IQ4_NL "
             "(20) and IQ4_XS (23) of GGML are supported");
}

// (data: u8 [vocabulary,bytes], indices); an index out of range reads row 0.
Values gather_packed(NodeContext& c) {
    ingot::Graph& g = c.g;
    const Format& f = format_of(c);
    int64_t k = positive(c, "K");
    c.ensure(k % f.elements == 0, "attribute 'K' is ", k, ", expected a multiple of ", f.elements);
    int64_t blocks = k / f.elements;
    c.ensure(c.rank(0) == 2 && c.dtype(0) == DType::U8 &&
                 (!c.dim(0, 1).is_const() || c.dim(0, 1).is_const(blocks * f.bytes)),
             "data is ", c.type(0), ", expected rows of ", blocks * f.bytes, " bytes");
    DType t = dtype_attribute(c, "output_dtype", DType::BF16);
    Value inside =
        ops::binary(g, ExprOp::And, ops::logical_not(g, ops::binary(g, ExprOp::Lt, c.in(1), 0.0)),
                    ops::less(g, c.in(1), ops::dim_scalar(g, c.dim(0, 0), c.dtype(1))));
    Value index = ops::select(g, inside, c.in(1), ops::scalar(g, c.dtype(1), 0));
    Value rows = ops::gather(g, c.in(0), index, 0);
    Dims out = c.type(1).dims;
    const Dim count = product(out);
    out.emplace_back(k);
    rows = ops::reshape(g, rows, {count, Dim(blocks), Dim(f.bytes)});
    Value y = f.widen != nullptr ? f.widen({g, rows}) : ops::bitcast(g, rows, f.floats);
    return {ops::cast(g, ops::reshape(g, y, out), t)};
}

const ImporterRow rows[] = {
    {"com.microsoft", "GatherPacked", 1, gather_packed, no_shapes},
};

} // namespace

extern const ImporterTable contrib_ggml_importers;
const ImporterTable contrib_ggml_importers = rows;

} // namespace ingot::onnx
