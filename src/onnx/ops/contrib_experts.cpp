// SPDX-License-Identifier: Apache-2.0
// Mixtures of experts of com.microsoft: MoE, QMoE, whose matrices are of 2, 4 or 8 bits, and the
// router MoEGroupRouter. Inputs are rows of tokens; a router's logits choose k experts for each.
#include "onnx/ops/support/experts.h"
#include "onnx/ops/support/gates.h"
#include "onnx/ops/support/spatial.h"

#include <limits>

namespace ingot::onnx {

namespace {

// --- routing

/// The experts of each token, i64 [T,k], and their weights, f32 [T,k].
struct Routes {
    Value experts;
    Value weights;
};

/// x[t, at[t,j]] of x [T,E].
Value picked(ingot::Graph& g, Value x, Value at) {
    Dims d = ops::dims(g, x);
    Value row = ops::mul(g, ops::iota(g, DType::I64, {d[0], 1}, 0), ops::dim_scalar(g, d[1]));
    return ops::gather(g, ops::reshape(g, x, {d[0] * d[1]}), ops::add(g, at, row), 0);
}

/// bool [T,E]: whether at [T,k] names the column.
Value named(ingot::Graph& g, Value at, const Dim& columns) {
    Value column = ops::iota(g, DType::I64, {columns}, 0);
    Value equal = ops::equal(g, ops::unsqueeze(g, at, {2}), column);
    return ops::reduce_max(g, equal, {1});
}

/// Weights divided by their sum; 0 where that is 0.
Value normalised(ingot::Graph& g, Value w) {
    Value sum = ops::reduce_sum(g, w, {1}, true);
    Value zero = ops::scalar(g, DType::F32, 0);
    Value by = ops::div(g, w, sum);
    return ops::select(g, ops::equal(g, sum, zero), zero, by);
}

/// One choice of SparseMixer (arXiv:2310.00811, as Phi-3.5 MoE uses it without noise): the largest
/// of `scores`; its weight is the softmax over those within 2 % of it, relative to `all`.
Routes sparse_choice(ingot::Graph& g, Value scores, Value all, const Dim& count) {
    constexpr double threshold = 2 * 0.01;
    Values top = ops::topk(g, {1, 1, true}, scores);
    Value factor = ops::binary(g, ExprOp::Max, ops::unary(g, ExprOp::Abs, all), top[0]);
    Value far = ops::div(g, ops::sub(g, top[0], all), factor);
    far = ops::less(g, ops::scalar(g, DType::F32, threshold), far);
    double lowest = -std::numeric_limits<double>::infinity();
    Value hidden = ops::full(g, DType::F32, {ops::dims(g, scores)[0], count}, lowest);
    Value softmax = ops::softmax(g, ops::select(g, far, hidden, scores), 1);
    return {top[1], picked(g, softmax, top[1])};
}

Routes sparse_mixer(ingot::Graph& g, Value logits) {
    Dim count = ops::dims(g, logits)[1];
    Routes first = sparse_choice(g, logits, logits, count);
    double lowest = -std::numeric_limits<double>::infinity();
    Value hidden = ops::full(g, DType::F32, ops::dims(g, logits), lowest);
    Value others = ops::select(g, named(g, first.experts, count), hidden, logits);
    Routes second = sparse_choice(g, others, logits, count);
    return {ops::concat(g, std::array{first.experts, second.experts}, 1),
            ops::concat(g, std::array{first.weights, second.weights}, 1)};
}

/// Routes by the logits of input 1. `weights`, where valid, are given instead of their softmax.
/// QMoE without normalize_routing_weights: ONNX Runtime's CPU kernel normalises all the same, its
/// CUDA kernel does not; this follows the definition.
Routes routes(NodeContext& c, const Dim& tokens, Value weights) {
    ingot::Graph& g = c.g;
    c.ensure(c.rank(1) == 2, "router_probs is ", c.type(1), ", expected [tokens,experts]");
    const Dim& count = c.dim(1, 1);
    int64_t k = positive(c, "k", 1);
    c.ensure(!count.is_const() || k <= count.value(), "attribute 'k' is ", k, ", and there are ",
             count, " experts");
    Value logits = ops::reshape(g, ops::widen(g, c.in(1)), {tokens, count});
    if (c.i("use_sparse_mixer", 0) != 0) {
        c.ensure(k == 2, "attribute 'k' is ", k, "; use_sparse_mixer chooses 2");
        c.ensure(!weights.valid(), "use_sparse_mixer is set and router_weights are given");
        return sparse_mixer(g, logits);
    }
    Routes r;
    if (weights.valid()) {
        r.experts = ops::topk(g, {k, 1, true}, logits)[1];
        r.weights = picked(g, ops::reshape(g, ops::widen(g, weights), {tokens, count}), r.experts);
    } else {
        Values top = ops::topk(g, {k, 1, true}, ops::softmax(g, logits, 1));
        r = {top[1], top[0]};
    }
    if (c.i("normalize_routing_weights", 0) != 0) {
        r.weights = normalised(g, r.weights);
    }
    return r;
}

// --- activations

/// Where gate and up lie in the result of the first product.
enum class Gated { No, Interleaved, Halves, Apart };

struct Form {
    std::string activation;
    Gated gated = Gated::No;
    double alpha = 1, beta = 0;
    double limit = std::numeric_limits<double>::infinity();
    bool limits_activated = false;
};

/// The attributes of activations; `apart`: the third matrices are given.
Form form_of(const NodeContext& c, bool apart) {
    Form f;
    f.activation = c.s("activation_type", "relu");
    bool glu = f.activation == "swiglu" || f.activation == "geglu";
    bool plain = f.activation == "relu" || f.activation == "gelu" || f.activation == "silu" ||
                 f.activation == "identity" || f.activation == "relu2";
    if (!glu && !plain) {
        c.refuse(RefusalKind::Attribute, "attribute 'activation_type' is '", f.activation,
                 "'; only relu, relu2, gelu, silu, identity, swiglu and geglu are supported");
    }
    int64_t fusion = c.i("swiglu_fusion", 0);
    c.ensure(fusion >= 0 && fusion <= 2, "attribute 'swiglu_fusion' is ", fusion,
             ", expected 0, 1 or 2");
    bool fused = glu && fusion != 0;
    c.ensure(!glu || fused != apart, "activation_type ", f.activation, " with swiglu_fusion ",
             fusion, ": gate and up are ", apart ? "both in fc1 and in fc3" : "in no input",
             ", expected in fc1 (swiglu_fusion 1 or 2) or in fc1 and fc3 (0)");
    f.gated = apart         ? Gated::Apart
              : !fused      ? Gated::No
              : fusion == 1 ? Gated::Interleaved
                            : Gated::Halves;
    f.alpha = c.f("activation_alpha", 1);
    f.beta = c.f("activation_beta", 0);
    f.limit = c.f("swiglu_limit", f.limit);
    f.limits_activated = c.i("swiglu_limit_after_activation", 0) != 0;
    return f;
}

Value plain_activation(ingot::Graph& g, const std::string& name, Value x) {
    if (name == "identity") {
        return x;
    }
    if (name == "gelu" || name == "geglu") {
        return ops::gelu(g, x, true);
    }
    if (name == "silu") {
        return silu(g, x);
    }
    Value y = ops::maximum(g, x, 0.0);
    return name == "relu2" ? ops::mul(g, y, y) : y;
}

/// gate * sigmoid(alpha * gate) * (up + beta), clamped.
Value swiglu(ingot::Graph& g, const Form& f, Value gate, Value up) {
    bool limited = f.limit < std::numeric_limits<double>::infinity();
    if (limited) {
        gate = f.limits_activated ? gate : ops::minimum(g, gate, f.limit);
        up = ops::maximum(g, ops::minimum(g, up, f.limit), -f.limit);
    }
    Value activated = silu(g, gate, f.alpha);
    activated = limited && f.limits_activated ? ops::minimum(g, activated, f.limit) : activated;
    return ops::mul(g, activated, f.beta == 0 ? up : ops::add(g, up, f.beta));
}

/// From the first product [T,S,N] and the third, where there is one: [T,S,I].
Value activated(NodeContext& c, const Form& f, Value first, Value third) {
    ingot::Graph& g = c.g;
    DType t = g.type(first).dtype;
    Value gate = ops::widen(g, first);
    if (f.gated == Gated::No) {
        return ops::cast(g, plain_activation(g, f.activation, gate), t);
    }
    Value up = third.valid() ? ops::widen(g, third) : Value{};
    Dims d = ops::dims(g, first);
    if (!up.valid()) {
        c.ensure(!d[2].is_const() || d[2].value() % 2 == 0, "fc1 has ", d[2],
                 " rows an expert, expected gate and up, an even number");
        Dim half = floor_div(d[2], 2);
        bool pairs = f.gated == Gated::Interleaved;
        Value both =
            ops::reshape(g, gate, pairs ? Dims{d[0], d[1], half, 2} : Dims{d[0], d[1], 2, half});
        int64_t axis = pairs ? 3 : 2;
        up = ops::squeeze(g, ops::slice(g, both, axis, 1, 1), {axis});
        gate = ops::squeeze(g, ops::slice(g, both, axis, 0, 1), {axis});
    }
    Value y = f.activation == "swiglu" ? swiglu(g, f, gate, up)
                                       : ops::mul(g, plain_activation(g, f.activation, gate), up);
    return ops::cast(g, y, t);
}

// --- the layer

struct Layer {
    ExpertWeights first, second, third; // third.v may be invalid
    Value router_weights;
};

Values mixture(NodeContext& c, const Layer& l) {
    ingot::Graph& g = c.g;
    c.ensure(c.rank(0) == 2 || c.rank(0) == 3, "input is ", c.type(0),
             ", expected [tokens,hidden] or [batch,sequence,hidden]");
    for (const ExpertWeights* w : {&l.first, &l.second, &l.third}) {
        c.ensure(!w->v.valid() || g.type(w->v).rank() == 3, "the experts' weights are ",
                 w->v.valid() ? str(g.type(w->v)) : "", ", expected rank 3");
    }
    Dims d = c.type(0).dims;
    Dim tokens = c.rank(0) == 2 ? d[0] : d[0] * d[1];
    Form form = form_of(c, l.third.v.valid());
    Routes r = routes(c, tokens, l.router_weights);
    ChosenExperts chosen = chosen_experts(g, r.experts, r.weights, ops::dims(g, l.first.v)[0]);
    Value x = ops::reshape(g, c.in(0), {tokens, d.back()});
    Value first = product_of_each(g, x, l.first, chosen);
    Value third = l.third.v.valid() ? product_of_each(g, x, l.third, chosen) : Value{};
    Value h = activated(c, form, first, third);
    return {ops::reshape(g, product_of_all(g, h, l.second, chosen), d)};
}

// (input, router_probs, fc1, its bias, fc2, its bias, fc3, its bias)
Values moe(NodeContext& c) {
    Layer l;
    l.first = {c.in(2), c.optional(3)};
    l.second = {c.in(4), c.optional(5)};
    l.third = {c.optional(6), c.optional(7)};
    return mixture(c, l);
}

constexpr const char* layout_of_another =
    "weights in the layout of one execution provider's kernels are not supported; export them with "
    "weights_prepacked=0, or for the CPU or WebGPU";

/// Three consecutive inputs: weights, scales and biases.
ExpertWeights quantised(const NodeContext& c, int at, int zero, const char* bits_attribute) {
    ExpertWeights w{c.optional(at), c.optional(at + 2)};
    if (!w.v.valid()) {
        return w;
    }
    w.bits = c.i(bits_attribute, c.i("expert_weight_bits", 4));
    if (w.bits != 2 && w.bits != 4 && w.bits != 8) {
        c.refuse(RefusalKind::Attribute, "experts have weights of ", w.bits,
                 " bits; only 2, 4 and 8 are supported");
    }
    c.ensure(c.dtype(at) == DType::U8, "input ", at, " is ", c.type(at), ", expected u8");
    w.scale = c.in(at + 1);
    w.zero = c.optional(zero);
    int64_t rank = c.rank(at + 1);
    const Dims& d = c.type(at).dims;
    c.ensure(c.rank(at) == 3 && (rank == 2 || rank == 3), "inputs ", at, " and ", at + 1, " are ",
             c.type(at), " and ", c.type(at + 1),
             ", expected bytes [E,N,K*bits/8] and scales [E,N] or [E,N,K/block_size]");
    if (!d[2].is_const()) {
        c.refuse(RefusalKind::Dynamic, "input ", at, " is ", c.type(at),
                 "; the size of its rows must be known");
    }
    int64_t depth = d[2].value() * 8 / w.bits;
    w.block = rank == 3 ? positive(c, "block_size") : 0;
    bool rows_fit = d[1] == c.dim(at + 1, 1);
    bool blocks_fit =
        rank == 2 || (c.dim(at + 1, 2) == Dim(depth / w.block) && depth % w.block == 0);
    if (!rows_fit || !blocks_fit) {
        c.refuse(RefusalKind::Input, "inputs ", at, " and ", at + 1, " are ", c.type(at), " and ",
                 c.type(at + 1), ", expected a scale for each of ", d[1], " rows",
                 rank == 3 ? str(", and for each ", w.block, " of their ", depth, " elements") : "",
                 ": ", layout_of_another);
    }
    return w;
}

// (input, router_probs, fc1, scales, bias, fc2, ..., fc3, ..., three zero points, router_weights,
//  scales of other quantisations)
Values qmoe(NodeContext& c) {
    std::string kind = c.s("quant_type", "int");
    if (kind != "int") {
        c.refuse(RefusalKind::Attribute, "attribute 'quant_type' is '", kind,
                 "'; only 'int' is supported");
    }
    if (c.i("weights_prepacked", -1) == 1) {
        c.refuse(RefusalKind::Attribute, "attribute 'weights_prepacked' is 1: ", layout_of_another);
    }
    for (int i = 15; i < c.input_count(); ++i) {
        c.ensure(!c.has(i), "input ", i, " is given, which quant_type 'int' does not have");
    }
    Layer l;
    l.first = quantised(c, 2, 11, "fc1_expert_weight_bits");
    l.second = quantised(c, 5, 12, "fc2_expert_weight_bits");
    l.third = quantised(c, 8, 13, "fc3_expert_weight_bits");
    c.ensure(l.first.v.valid() && l.second.v.valid(), "fc1 and fc2 are required");
    l.router_weights = c.optional(14);
    return mixture(c, l);
}

// --- MoEGroupRouter

/// Logits of f32 [T,E]: those of input 0, or its product with the weights of input 2.
Value router_logits(NodeContext& c, const Dim& count) {
    ingot::Graph& g = c.g;
    if (c.has(2)) {
        return ops::dot(g, Dot{{}, {}, {1}, {1}, DType::F32}, c.in(0), c.in(2));
    }
    Dims d = c.type(0).dims;
    c.ensure(!d.empty(), "logits are a scalar, expected [...,experts]");
    d.pop_back();
    return ops::reshape(g, ops::widen(g, c.in(0)), {product(d), count});
}

/// bool [T,E]: the experts of the topk_group groups whose best group_topk scores have the largest
/// sum.
Value in_best_groups(NodeContext& c, Value scores, int64_t count) {
    ingot::Graph& g = c.g;
    int64_t groups = positive(c, "n_group", 1);
    int64_t best = positive(c, "topk_group", 1);
    c.ensure(count % groups == 0 && best <= groups, "attributes 'n_group' and 'topk_group' are ",
             groups, " and ", best, ", and there are ", count, " experts");
    int64_t size = count / groups;
    int64_t summed = std::min(positive(c, "group_topk", 2), size);
    Dim tokens = ops::dims(g, scores)[0];
    Value top = ops::topk(g, {summed, 2, true}, ops::reshape(g, scores, {tokens, groups, size}))[0];
    Value group = ops::topk(g, {best, 1, true}, ops::reduce_sum(g, top, {2}))[1];
    Value chosen = ops::unsqueeze(g, named(g, group, groups), {2});
    return ops::reshape(g, ops::broadcast_to(g, chosen, {tokens, groups, size}), {tokens, count});
}

// (logits, expert_bias, [projection_weight]) -> [router_probs], [selection_scores],
// [router_weights]
Values group_router(NodeContext& c) {
    ingot::Graph& g = c.g;
    c.ensure(c.rank(1) == 1, "expert_bias is ", c.type(1), ", expected [experts]");
    const Dim& experts = c.dim(1, 0);
    if (!experts.is_const()) {
        c.refuse(RefusalKind::Dynamic, "expert_bias is ", c.type(1),
                 "; the number of experts must be known");
    }
    int64_t count = experts.value();
    Value s = ops::unary(g, ExprOp::Sigmoid, router_logits(c, experts));
    Value scores = ops::add(g, s, c.in(1));
    if (!c.wants(0)) {
        return {{}, scores, s};
    }
    c.ensure(!c.wants(1) && !c.wants(2) && !c.has(2),
             "router_probs is a result, and full scores or projection_weight are wanted too");
    int64_t k = positive(c, "top_k");
    c.ensure(k <= count, "attribute 'top_k' is ", k, ", and there are ", count, " experts");
    double lowest = -std::numeric_limits<double>::infinity();
    Value hidden = ops::full(g, DType::F32, ops::dims(g, scores), lowest);
    Value open = ops::select(g, in_best_groups(c, scores, count), scores, hidden);
    Value chosen = named(g, ops::topk(g, {k, 1, true}, open)[1], experts);
    Value log = ops::unary(g, ExprOp::Log, ops::maximum(g, s, 1e-20));
    Value closed = ops::full(g, DType::F32, ops::dims(g, scores), c.f("router_sentinel", -10000));
    return {ops::cast(g, ops::select(g, chosen, log, closed), c.dtype(0)), {}, {}};
}

const ImporterRow rows[] = {
    {"com.microsoft", "MoE", 1, moe, no_shapes},
    {"com.microsoft", "QMoE", 1, qmoe, no_shapes},
    {"com.microsoft", "MoEGroupRouter", 1, group_router, no_shapes},
};

} // namespace

extern const ImporterTable contrib_experts_importers;
const ImporterTable contrib_experts_importers = rows;

} // namespace ingot::onnx
