// SPDX-License-Identifier: Apache-2.0
// Family gather: gather (a copy of rows selected by indices: one vector per thread) and scatter.
#include "kernels/common/expr_text.h"
#include "kernels/copy/unpacked.h"
#include "kernels/gather/scatter.h"
#include "kernels/pointwise/index_text.h"
#include "ops/primitives.h"

#include <algorithm>
#include <numeric>

namespace ingot::kernels {

namespace {

/// Loops over the result, with the index and source row of each element.
struct GatherLoops {
    Shape sizes;
    Shape out, x, index; // strides; without x's indexed axis
    int64_t row = 0;     // x's stride along the indexed axis
    int64_t size = 0;    // and its size
    bool wide = false;
    int64_t vector = 1;
};

GatherLoops gather_loops(const Problem& p) {
    auto axis = static_cast<size_t>(p.group.first().as<Gather>().axis);
    const View& x = p.operand(p.group.first().inputs[0]).view;
    const View& index = p.operand(p.group.first().inputs[1]).view;
    View from{p.out[0].view.shape, Shape(p.out[0].view.shape.size(), 0), x.offset};
    View rows{p.out[0].view.shape, Shape(p.out[0].view.shape.size(), 0), index.offset};
    for (size_t n = 0; n < from.shape.size(); ++n) {
        if (n < axis) {
            from.strides[n] = x.strides[n];
        } else if (n < axis + index.shape.size()) {
            rows.strides[n] = index.strides[n - axis];
        } else {
            from.strides[n] = x.strides[n + 1 - index.shape.size()];
        }
    }
    const View views[] = {p.out[0].view, from, rows};
    plan::LoopNest nest = plan::merged_loops(views, plan::stride_order(p.out[0].view));
    if (nest.sizes.empty()) {
        nest = {{1}, {{1}, {0}, {0}}};
    }
    GatherLoops l{nest.sizes,      nest.strides[0], nest.strides[1],
                  nest.strides[2], x.strides[axis], x.shape[axis]};
    constexpr int64_t most = int64_t{1} << 30;
    l.wide = std::max({span_of(x), span_of(index), span_of(p.out[0].view),
                       p.out[0].view.count()}) >= most;
    bool contiguous = l.out.back() == 1 && l.x.back() == 1 && l.index.back() == 0;
    int64_t common =
        std::gcd(std::gcd(x.offset, p.out[0].view.offset), std::gcd(l.row, l.sizes.back()));
    for (size_t n = 0; n + 1 < l.sizes.size(); ++n) {
        common = std::gcd(common, std::gcd(l.out[n], l.x[n]));
    }
    l.vector = contiguous ? 128 / bit_width(p.out[0].dtype) : 1;
    while (common % l.vector != 0) {
        l.vector /= 2;
    }
    return l;
}

/// The kernel's parameters, and the offsets for coordinates x0...
struct GatherText {
    explicit GatherText(bool wide) : parameters(wide) {}
    Signature parameters;
    std::string out, x, index;
};

GatherText gather_text(const Problem& p, const GatherLoops& l, const IndexText& split, int64_t n,
                       int64_t scale) {
    const Operand& x = p.operand(p.group.first().inputs[0]);
    const Operand& index = p.operand(p.group.first().inputs[1]);
    GatherText t(l.wide);
    std::string type(is_packed(x.dtype) ? "u8" : c_type(raw_dtype(x.dtype)));
    t.parameters.pointer(type + "*", "y", p.out[0]).pointer(str("const ", type, "*"), "x", x);
    t.parameters.pointer(str("const ", c_type(index.dtype), "*"), "indices", index);
    t.parameters.error_word("error").size("n", n).index("size", l.size).index("row", l.row);
    split.add(t.parameters);
    auto offset = [&](const Shape& strides, std::string_view stem) {
        std::vector<std::string> coordinates;
        std::vector<std::string> names;
        for (size_t k = 0; k < strides.size(); ++k) {
            bool last = k + 1 == strides.size();
            coordinates.push_back(last && scale > 1 ? str("x", k, " * ", scale) : str("x", k));
            names.push_back(str(stem, k));
            t.parameters.index(names.back(), strides[k]);
        }
        return offset_text("I", coordinates, names);
    };
    t.out = offset(l.out, "o");
    t.x = offset(l.x, "f");
    t.index = offset(l.index, "i");
    return t;
}

Launch gather_vectors(const Problem& p, const GatherLoops& l) {
    std::string type(c_type(raw_dtype(p.out[0].dtype)));
    Shape sizes = l.sizes;
    sizes.back() /= l.vector;
    IndexText split(sizes, l.wide);
    int64_t n = p.out[0].view.count() / l.vector;
    GatherText t = gather_text(p, l, split, n, l.vector);
    std::string text = str("grid_wait();\nconst ", split.type(), " i = (", split.type(), ")",
                           block_number, " * 256u + threadIdx.x;\nif (i >= n) return;\n",
                           split.split("i"), "const i64 at = (i64)indices[", t.index,
                           "];\nif (at < 0 || at >= (i64)size) { *error = 1; return; }\n", type,
                           " r[", l.vector, "];\nload_pack<", type, ", ", l.vector, ">(r, x + (",
                           t.x, " + (I)at * row));\nend_main_loop();\nstore_pack<", type, ", ",
                           l.vector, ">(y + (", t.out, "), r);\n");
    Launch out = std::move(t.parameters).launch("gather", std::move(text));
    out.grid = {blocks_for(n), 1, 1};
    return out;
}

/// Packed elements: a thread makes one byte of the dense result.
Launch gather_nibbles(const Problem& p, const GatherLoops& l) {
    IndexText split(l.sizes, l.wide);
    int64_t n = p.out[0].view.count();
    GatherText t = gather_text(p, l, split, n, 1);
    std::string text =
        str("grid_wait();\nconst ", split.type(), " b = (", split.type(), ")", block_number,
            " * 256u + threadIdx.x;\nif (b * 2 >= n) return;\nu32 byte = 0;\n"
            "#pragma unroll\nfor (int k = 0; k < 2; ++k) {\nconst ",
            split.type(), " i = b * 2 + k;\nif (i < n) {\n", split.split("i"),
            "const i64 at = (i64)indices[", t.index,
            "];\nif (at < 0 || at >= (i64)size) { *error = 1; return; }\n"
            "byte |= (u32)load_nibble<U4>(x, ",
            t.x, " + (I)at * row).bits << (4 * k);\n}\n}\nend_main_loop();\ny[b] = (u8)byte;\n");
    Launch out = std::move(t.parameters).launch("gather", std::move(text));
    out.grid = {blocks_for((n + 1) / 2), 1, 1};
    return out;
}

std::optional<std::string> refuse_gather(const Group& group) {
    return group.nodes.size() == 1 ? std::nullopt : std::optional<std::string>("not a single node");
}

Emitted emit_gather(const Problem& p, const Tactic&) {
    Emitted out;
    if (p.out[0].view.count() == 0) {
        return out;
    }
    GatherLoops l = gather_loops(p);
    Launch launch = is_packed(p.out[0].dtype) ? gather_nibbles(p, l) : gather_vectors(p, l);
    launch.program.defines = l.wide ? "typedef i64 I;\n" : "typedef i32 I;\n";
    out.launches.push_back(std::move(launch));
    return out;
}

struct ByRows : NoParameters {
    static constexpr std::string_view pattern = "rows";
};

std::vector<Tactic> one_tactic(const Problem& p) {
    double bytes = 0;
    for (const Operand& o : p.in) {
        bytes += static_cast<double>(byte_size(o.dtype, o.view.count()));
    }
    auto result = static_cast<double>(byte_size(p.out[0].dtype, p.out[0].view.count()));
    return {make_tactic(ByRows{},
                        2 + (std::min(bytes, 2 * result) + result) / (p.arch.dram_gbs * 1e3))};
}

const Family families[] = {{.name = "gather",
                            .refuse = refuse_gather,
                            .layout = plan::any_strides,
                            .tactics = one_tactic,
                            .emit = emit_gather},
                           {.name = "scatter",
                            .refuse = refuse_scatter,
                            .layout = plan::any_strides,
                            .tactics = one_tactic,
                            .emit = emit_any<emit_scatter>,
                            .strided_results = true,
                            .in_place = true}};

} // namespace

extern const FamilyTable gather_families;
const FamilyTable gather_families = families;

} // namespace ingot::kernels
