// SPDX-License-Identifier: Apache-2.0
// Random numbers. A node without a seed derives one from the name of its result, so that a model
// always gives the same numbers and two nodes give different ones.
#include "onnx/ops/support/inputs.h"

#include <bit>

namespace ingot::onnx {

namespace {

int64_t seed_of(const NodeContext& c) {
    if (c.has_attribute("seed")) {
        return std::bit_cast<int32_t>(static_cast<float>(c.f("seed", 0)));
    }
    const std::string& name = c.node.outputs.empty() ? c.node.name : c.node.outputs[0];
    uint64_t hash = 0xcbf29ce484222325ULL; // FNV-1a
    for (char ch : name) {
        hash = (hash ^ static_cast<uint8_t>(ch)) * 0x100000001b3ULL;
    }
    return static_cast<int64_t>(hash >> 1);
}

Value random_tensor(NodeContext& c, bool normal, DType t, const Dims& dims) {
    Random r;
    r.kind = normal ? "normal" : "uniform";
    r.a = normal ? c.f("mean", 0) : c.f("low", 0);
    r.b = normal ? c.f("scale", 1) : c.f("high", 1);
    r.dtype = t;
    r.dims = dims;
    r.seed = seed_of(c);
    return c.g.add1(random_def, std::move(r), {});
}

template <bool normal>
Values random(NodeContext& c) {
    std::vector<int64_t> shape = c.ints("shape");
    for (int64_t d : shape) {
        c.ensure(d >= 0, "attribute 'shape' is ", shape);
    }
    return {random_tensor(c, normal, dtype_attribute(c, "dtype", DType::F32),
                          Dims(shape.begin(), shape.end()))};
}

template <bool normal>
Values random_like(NodeContext& c) {
    DType t = dtype_attribute(c, "dtype", c.dtype(0));
    return {random_tensor(c, normal, t, c.type(0).dims)};
}

// Uniform numbers in [0, 1) in x's compute type.
Value chances(NodeContext& c, DType t, const Dims& dims) {
    Random r;
    r.dtype = t;
    r.dims = dims;
    r.seed = seed_of(c);
    return c.g.add1(random_def, std::move(r), {});
}

Values bernoulli(NodeContext& c) {
    Value p = ops::widen(c.g, c.in(0));
    Value u = chances(c, c.g.type(p).dtype, c.type(0).dims);
    return {ops::cast(c.g, ops::less(c.g, u, p), dtype_attribute(c, "dtype", c.dtype(0)))};
}

// The first class whose cumulative probability is above a uniform number.
Values multinomial(NodeContext& c) {
    ingot::Graph& g = c.g;
    c.ensure(c.rank(0) == 2, "input 0 is ", c.type(0), ", expected [batch, classes]");
    int64_t samples = c.i("sample_size", 1);
    c.ensure(samples >= 0, "attribute 'sample_size' is ", samples);
    const Dims dims = c.type(0).dims;
    Value p = ops::softmax(g, ops::widen(g, c.in(0)), -1);
    Value cumulative = ops::unsqueeze(g, ops::scan(g, Scan{"sum", 1, false, false}, p), {1});
    Value u = chances(c, g.type(p).dtype, {dims[0], Dim(samples), Dim(1)});
    Value passed = ops::binary(g, ExprOp::Le, cumulative, u);
    Value index = ops::reduce_sum(g, ops::cast(g, passed, DType::I64), {2});
    Value last = ops::dim_scalar(g, dims[1] - Dim(1)); // used when rounding leaves the sum below 1
    return {ops::cast(g, ops::minimum(g, index, last), dtype_attribute(c, "dtype", DType::I32))};
}

const ImporterRow rows[] = {
    {"", "RandomNormal", 1, random<true>, no_shapes},
    {"", "RandomUniform", 1, random<false>, no_shapes},
    {"", "RandomNormalLike", 1, random_like<true>, no_shapes},
    {"", "RandomUniformLike", 1, random_like<false>, no_shapes},
    {"", "Bernoulli", 15, bernoulli, no_shapes},
    {"", "Multinomial", 7, multinomial, no_shapes},
};

} // namespace

extern const ImporterTable random_importers;
const ImporterTable random_importers = rows;

} // namespace ingot::onnx
