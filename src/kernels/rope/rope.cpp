// SPDX-License-Identifier: Apache-2.0
// Family rope: rotary embeddings in one pass over x; a thread rotates one vector of pairs. Reads
// and writes any strides, so that it can take heads out of a wider product and write into a cache.
#include "base/error.h"
#include "kernels/common/expr_text.h"
#include "kernels/pointwise/index_text.h"
#include "ops/ops.h"

#include <numeric>

namespace ingot::kernels {

namespace {

/// The first (for interleaved pairs, the even) elements of the last axis.
View first_of_pairs(const View& v, bool interleaved) {
    View half = v;
    half.shape.back() /= 2;
    half.strides.back() *= interleaved ? 2 : 1;
    return half;
}

struct RopeLoops {
    plan::LoopNest nest; // strides of y, x, cos, sin
    int64_t y_pair = 0;  // from the first to the second element of a pair
    int64_t x_pair = 0;
    bool wide = false;
    int64_t vector = 1;
};

RopeLoops rope_loops(const Problem& p) {
    const Node& n = p.group.first();
    bool interleaved = n.as<ops::Rope>().interleaved;
    const View& x = p.operand(n.inputs[0]).view;
    const View& y = p.out[0].view;
    View y_half = first_of_pairs(y, interleaved);
    const View views[] = {y_half, first_of_pairs(x, interleaved),
                          plan::broadcasted(p.operand(n.inputs[1]).view, y_half.shape),
                          plan::broadcasted(p.operand(n.inputs[2]).view, y_half.shape)};
    RopeLoops l;
    plan::Order order(y.shape.size());
    std::iota(order.begin(), order.end(), 0);
    l.nest = plan::merged_loops(views, order);
    if (l.nest.sizes.empty()) {
        l.nest = {{1}, {{1}, {1}, {0}, {0}}};
    }
    int64_t apart = interleaved ? 1 : y_half.shape.back();
    l.y_pair = apart * y.strides.back();
    l.x_pair = apart * x.strides.back();
    constexpr int64_t most = int64_t{1} << 30;
    l.wide = std::max({span_of(x), span_of(y), y.count()}) >= most;
    int64_t common = std::gcd(std::gcd(l.y_pair, l.x_pair), l.nest.sizes.back());
    for (const View& v : views) {
        common = std::gcd(common, v.offset);
    }
    for (const Shape& strides : l.nest.strides) {
        for (size_t a = 0; a + 1 < strides.size(); ++a) {
            common = std::gcd(common, strides[a]);
        }
    }
    bool contiguous = true;
    for (const Shape& strides : l.nest.strides) {
        contiguous = contiguous && strides.back() == 1;
    }
    l.vector = contiguous ? 128 / bit_width(p.out[0].dtype) : 1;
    while (common % l.vector != 0) {
        l.vector /= 2;
    }
    return l;
}

Launch emit_rotation(const Problem& p, const RopeLoops& l) {
    const Node& n = p.group.first();
    const Operand* operands[] = {&p.out[0], &p.operand(n.inputs[0]), &p.operand(n.inputs[1]),
                                 &p.operand(n.inputs[2])};
    const std::string_view names[] = {"y", "x", "cosine", "sine"};
    Shape sizes = l.nest.sizes;
    sizes.back() /= l.vector;
    IndexText split(sizes, l.wide);
    int64_t vectors = p.out[0].view.count() / 2 / l.vector;
    Signature parameters(l.wide);
    for (size_t k = 0; k < 4; ++k) {
        parameters.pointer(str(k > 0 ? "const " : "", c_type(operands[k]->dtype), "*"),
                           std::string(names[k]), *operands[k]);
    }
    split.add_count(parameters, "n", vectors);
    parameters.index("y_pair", l.y_pair).index("x_pair", l.x_pair);
    split.add(parameters);
    std::string offsets;
    for (size_t k = 0; k < 4; ++k) {
        std::vector<std::string> coordinates;
        std::vector<std::string> strides;
        for (size_t a = 0; a < sizes.size(); ++a) {
            bool last = a + 1 == sizes.size();
            coordinates.push_back(last && l.vector > 1 ? str("x", a, " * ", l.vector)
                                                       : str("x", a));
            strides.push_back(str("s", k, "_", a));
            parameters.index(strides.back(), l.nest.strides[k][a]);
        }
        append(offsets,
               str("const I at_", names[k], " = ", offset_text("I", coordinates, strides), ";\n"));
    }
    std::string index(split.type());
    std::string statements =
        str("grid_wait();\nconst ", index, " i = (", index, ")", block_number,
            " * 256u + threadIdx.x;\nif (i >= n) return;\n", split.split("i"), offsets,
            "X a[V], b[V], p[V], q[V];\nW c[V], s[V];\nload_pack<X, V>(a, x + at_x);\n"
            "load_pack<X, V>(b, x + (at_x + x_pair));\nload_pack<W, V>(c, cosine + at_cosine);\n"
            "load_pack<W, V>(s, sine + at_sine);\nend_main_loop();\n#pragma unroll\n"
            "for (int k = 0; k < V; ++k) {\nconst C u = widen(a[k]), v = widen(b[k]);\n"
            "const C cu = (C)widen(c[k]), su = (C)widen(s[k]);\n"
            "p[k] = narrow<X>((C)(u * cu - v * su));\nq[k] = narrow<X>((C)(u * su + v * cu));\n}\n"
            "store_pack<X, V>(y + at_y, p);\nstore_pack<X, V>(y + (at_y + y_pair), q);\n");
    Launch out = std::move(parameters).launch("rope", std::move(statements));
    out.grid = {blocks_for(vectors), 1, 1};
    return out;
}

std::optional<std::string> refuse(const Group& group) {
    const Node& n = group.first();
    if (group.nodes.size() != 1) {
        return "not a single node";
    }
    DType angles = group.graph.type(n.inputs[1]).dtype;
    return angles == group.graph.type(n.inputs[2]).dtype
               ? std::nullopt
               : std::optional<std::string>("cosines and sines of two dtypes");
}

Emitted emit(const Problem& p, const Tactic&) {
    Emitted out;
    if (p.out[0].view.count() == 0) {
        return out;
    }
    RopeLoops l = rope_loops(p);
    Launch launch = emit_rotation(p, l);
    DType x = p.out[0].dtype;
    DType angles = p.operand(p.group.first().inputs[1]).dtype;
    launch.program.defines =
        str("typedef ", l.wide ? "i64" : "i32", " I;\ntypedef ", c_type(x), " X;\ntypedef ",
            c_type(angles), " W;\ntypedef ", c_type(compute_type(x)), " C;\n");
    launch.program.kernel->constants = {{"V", str(l.vector)}};
    out.launches.push_back(std::move(launch));
    return out;
}

struct Pairs : NoParameters {
    static constexpr std::string_view pattern = "pairs";
};

std::vector<Tactic> tactics(const Problem& p) {
    double bytes = 0;
    for (const Operand& o : p.in) {
        bytes += static_cast<double>(byte_size(o.dtype, o.view.count()));
    }
    bytes += static_cast<double>(byte_size(p.out[0].dtype, p.out[0].view.count()));
    return {make_tactic(Pairs{}, 2 + bytes / (p.arch.dram_gbs * 1e3))};
}

const Family families[] = {{.name = "rope",
                            .refuse = refuse,
                            .layout = plan::any_strides,
                            .tactics = tactics,
                            .emit = emit,
                            .strided_results = true}};

} // namespace

extern const FamilyTable rope_families;
const FamilyTable rope_families = families;

} // namespace ingot::kernels
