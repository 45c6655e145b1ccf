// SPDX-License-Identifier: Apache-2.0
#include "ir/sample_graphs.h"

#include "base/text.h"
#include "ops/collective.h"
#include "ops/plugin.h"
#include "ops/refusal.h"

#include <limits>
#include <numeric>

namespace ingot::test {

using namespace ops;

namespace {

Dim n() {
    return Dim::symbol("N");
}

Tensor ramp(DType t, Shape shape) {
    Tensor out = Tensor::empty(t, std::move(shape));
    for (int64_t i = 0; i < out.count(); ++i) {
        out.set_f64(i, static_cast<double>(i % 13) / 4 - 1);
    }
    return out;
}

// Constants of every dtype, also with values that are hard to print.
void add_constants(Graph& g) {
    for (int i = 0; i < dtype_count; ++i) {
        auto t = static_cast<DType>(i);
        Tensor x = Tensor::zeros(t, {3});
        for (int64_t k = 0; k < 3; ++k) {
            is_float(t) ? x.set_f64(k, static_cast<double>(k) * 0.3) : x.set_i64(k, k * 77);
        }
        Value v = constant(g, x);
        g.set_value_name(v, str("c_", t));
        g.add_output(str("constant ", t), v);
    }
    Tensor odd = Tensor::zeros(DType::F32, {4});
    odd.set_f64(0, std::numeric_limits<double>::quiet_NaN());
    odd.set_f64(1, -0.0);
    odd.set_f64(2, std::numeric_limits<double>::infinity());
    odd.set_f64(3, 1e-42);
    g.add_output("odd", constant(g, odd));
    g.add_output("large", constant(g, ramp(DType::F32, {5, 7})));
}

void add_dynamic(Graph& g, Value x) {
    Dim count = g.fresh_symbol();
    Value where = g.add1(nonzero_def, NonZero{count}, {x});
    g.add_output("where", where);
    Dims bound = dims_from(g, reduce(g, "max", where, {1}), false);
    g.add_output("iota", iota(g, DType::I64, {bound[0] + Dim(1)}, 0));
    Value boxes = constant(g, ramp(DType::F32, {1, 6, 4}));
    Value scores = constant(g, ramp(DType::F32, {1, 2, 6}));
    std::vector<Value> in = {boxes, scores, scalar(g, DType::I64, 3), scalar(g, DType::F32, 0.5),
                             scalar(g, DType::F32, 0)};
    g.add_output("nms", g.add1(nms_def, Nms{true, g.fresh_symbol()}, in));
}

} // namespace

Graph primitives_graph() {
    Graph g("prim itives");
    Value x = g.add_input("x", {DType::F32, {n(), 4, 6}});
    Value q = g.add_input("input 1:0", {DType::U8, {8}});
    Value sizes = g.add_input("sizes", {DType::I64, {2}});
    auto host = std::make_shared<HostValue>();
    host->shape = {2};
    host->elements = {HostElement{n(), 1}, std::nullopt};
    g.set_host(sizes, host);
    add_constants(g);
    g.set_origin("a \"node\"");
    Value a = add(g, mul(g, x, 2), unary(g, ExprOp::Tanh, x));
    Value r = reshape(g, a, {n() * Dim(4), 6});
    g.add_output("r", permute(g, r, {1, 0}));
    g.add_output("b", broadcast_to(g, x, {3, n(), 4, 6}));
    g.add_output("s", slice(g, reverse(g, x, 2), 1, 1, 2));
    g.add_output("w", window(g, x, Window{{1}, {2}, {1}, {2}}));
    g.add_output("cast", bitcast(g, q, DType::U4));
    g.add_output("p", pad(g, x, {0, 1, 0}, {n(), 0, 2}, 1.5));
    Value parts[] = {x, a};
    Value c = concat(g, parts, 1);
    g.add_output("g", gather(g, c, i64_list(g, {3, 0}), 1));
    Value flat = flatten(g, x);
    g.add_output("sc",
                 scatter(g, flat, i64_list(g, {1, 1}), constant(g, ramp(DType::F32, {2})), "add"));
    g.add_output("sum", reduce_mean(g, x, {1, 2}, true));
    g.add_output("arg", arg_reduce(g, "min", x, -1, true));
    g.add_output("scan", scan(g, Scan{"prod", 1, true, true}, x));
    Values sorted = sort(g, x, 2, true);
    g.add_output("sorted", sorted[0]);
    g.add_output("order", sorted[1]);
    g.add_output("dot", matmul(g, x, permute(g, a, {0, 2, 1})));
    g.add_output("random", g.add1(random_def, Random{"normal", 1, 2, DType::F16, {n(), 2}, 7}, {}));
    g.add_output("refusal", refusal(g, {DType::F32, {n(), 2}}, "a \"text\""));
    g.add_output("size", dims_tensor(g, {n(), floor_div(n(), 2), max(n(), Dim(5))}));
    add_dynamic(g, x);
    return g;
}

Graph composites_graph() {
    Graph g("composites");
    Value x = g.add_input("x", {DType::F32, {n(), 4, 8, 8}});
    g.set_origin("conv1");
    Conv cv{{2, 1}, {1, 1}, {1, 0}, {1, 0}, 2, DType::F32};
    Value y = conv(g, cv, x, constant(g, ramp(DType::F32, {6, 2, 3, 3})));
    ConvTranspose ct{{2, 2}, {1, 1}, {0, 0}, {1, 1}, 1};
    y = conv_transpose(g, ct, y, constant(g, ramp(DType::F32, {6, 4, 2, 2})));
    g.add_output("conv", y);
    Pool p{"average", {2, 2}, {2, 2}, {1, 1}, {1, 1}, {0, 0}, {0, 1}, false};
    g.add_output("pool", pool(g, p, x));
    g.add_output("softmax", softmax(g, x, 1, true));
    Value eight = constant(g, ramp(DType::F32, {8}));
    g.add_output("ln", layer_norm(g, LayerNorm{-1, 1e-6, false}, x, eight, eight));
    Value four = constant(g, ramp(DType::F32, {4}));
    g.add_output("gn", group_norm(g, GroupNorm{2, 1e-3}, x, four, four));
    g.add_output("gelu", gelu(g, x, true));
    Values top = topk(g, TopK{3, 3, false}, x);
    g.add_output("top", top[0]);
    g.add_output("where", top[1]);
    Value scale = scalar(g, DType::F32, 0.25);
    Value quantised =
        quantize(g, Quantize{1, 0, DType::U8, true}, x, scale, scalar_i64(g, DType::U8, 128));
    g.add_output("dq", dequantize(g, Dequantize{1, 0, DType::F32}, quantised, scale,
                                  scalar_i64(g, DType::U8, 128)));
    g.add_output("attention", attention(g, Attention{0.5, 0, true, 0}, x, x, x));
    Value angle = constant(g, ramp(DType::F32, {8, 4}));
    Resize r;
    r.axes = {2, 3};
    r.sizes = {16, n()};
    r.mode = "cubic";
    g.add_output("resize", resize(g, r, x));
    g.add_output("rope", rope(g, Rope{true}, x, angle, angle));
    return g;
}

Graph control_graph() {
    Graph g("control");
    Value flag = g.add_input("flag", {DType::Bool, {}});
    Value x = g.add_input("x", {DType::F32, {n(), 3}});
    Graph then_body = g.sibling("then");
    then_body.add_output("", exp(then_body, then_body.add_input("x", g.type(x))));
    Graph else_body = g.sibling("else");
    Value e = else_body.add_input("x", g.type(x));
    Value twice[] = {e, e};
    else_body.add_output("", concat(else_body, twice, 0));
    If choice{std::make_shared<const Graph>(std::move(then_body)),
              std::make_shared<const Graph>(std::move(else_body)),
              {g.fresh_symbol()}};
    Value chosen = g.add1(if_def, choice, {flag, x});
    g.add_output("chosen", chosen);

    Graph body = g.sibling("body");
    Value step = body.add_input("step", {DType::I64, {}});
    Value go_on = body.add_input("go_on", {DType::Bool, {}});
    Value state = body.add_input("state", g.type(x));
    body.add_output("", go_on);
    body.add_output("", add(body, state, cast(body, step, DType::F32)));
    body.add_output("", reduce_sum(body, state, {1}));
    Loop loop{std::make_shared<const Graph>(std::move(body)), 1, g.fresh_symbol(), {}};
    std::vector<Value> in = {scalar_i64(g, DType::I64, 4), scalar_i64(g, DType::Bool, 1), x};
    Values out = g.add(loop_def, loop, in);
    g.add_output("state", out[0]);
    g.add_output("rows", out[1]);

    Graph inner = g.sibling("pointwise");
    inner.add_output("", mul(inner, inner.add_input("", g.type(x)), 3));
    g.add_output("fused",
                 g.add1(fused_def,
                        Fused{"pointwise", std::make_shared<const Graph>(std::move(inner))}, {x}));
    return g;
}

/// A plugin with fields, a data-dependent size and a shape input; a kernel in source text.
static Graph custom_graph() {
    Graph g("custom");
    Value x = g.add_input("x", parse_type("f32[N,4]"));
    Plugin p;
    p.name = "Filter";
    p.version = "1";
    p.space = "a.b";
    std::vector<std::byte> bytes(200, std::byte{7});
    PluginFieldView fields[] = {{"weights", 1, 3, std::span(bytes).first(12)},
                                {"table", 8, 100, std::span(bytes).first(100)},
                                {"", 6, 0, {}}};
    set_plugin_fields(p, fields);
    p.dtypes = {"f32", "i64"};
    p.ranks = {2, 0};
    Dim count = g.fresh_symbol();
    p.sizes = {count, Dim(4)};
    p.symbols = {count};
    p.size_results = {1};
    p.most = {Dim::symbol("N")};
    p.shape_ranks = {1, 0};
    p.shape_values = {2, Dim::symbol("N") + Dim(1), 5, 1, -1};
    p.workspace = 64;
    Values filtered = g.add(plugin_def, p, std::array{x});
    SourceKernel k{"Rows",
                   "extern \"C\" __global__ void rows(...) {}\n",
                   "rows",
                   "T[n, m] -> T[n], int32[2 * n]",
                   "n, float(alpha)",
                   "n + shift",
                   "32, 2",
                   "",
                   "n",
                   {"shift"},
                   {3},
                   {"alpha"},
                   {0.5}};
    Values rows = g.add(cuda_source_def, k, std::array{filtered[0]});
    Collective c{"reduce_scatter", "avg", 2, {5, 3}, -1};
    g.add_output("part", ops::collective(g, c, g.add_input("all", parse_type("f16[2*N,3]"))));
    g.add_output("count", filtered[1]);
    g.add_output("rows", rows[0]);
    g.add_output("pairs", rows[1]);
    return g;
}

std::vector<Graph> sample_graphs() {
    return {primitives_graph(), composites_graph(), control_graph(), custom_graph()};
}

} // namespace ingot::test
