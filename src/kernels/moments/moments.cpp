// SPDX-License-Identifier: Apache-2.0
// Families row_moments and moment_norm: statistics of the chunks of 16-bit rows, and the norm that
// takes them, each in a launch of its own: what a product does that has no tactic with them. The
// norm finds the moments itself where none are stored.
// Traffic: every operand and the result once.
#include "base/error.h"
#include "kernels/common/expr_text.h"
#include "kernels/common/stored_moments.h"
#include "kernels/reduce/reduce_rows.h"
#include "ops/row_moments.h"

#include <algorithm>

namespace ingot::kernels {

namespace {

constexpr int64_t chunk = 32; // moment_chunk of chunk_moments.cuh
constexpr int64_t vector = 8;

std::optional<std::string> refuse_rows_of(const Group& group, Value x, Value moments) {
    const Type& t = group.graph.type(x);
    const Dims& m = group.graph.type(moments).dims;
    if (group.nodes.size() != 1) {
        return "more than one node";
    }
    if (bit_width(t.dtype) != 16) {
        return str("rows of ", t.dtype, ", expected floats of 16 bits");
    }
    auto size = t.dims.back().as_const();
    auto chunks = m[m.size() - 2].as_const();
    return size && chunks && *size == *chunks * chunk
               ? std::nullopt
               : std::optional(str("chunks other than ", chunk, " elements"));
}

/// Rows of x, the moments, and of the result if it has them.
struct MomentRows {
    Nest rows;
    Operand x, moments;
    int64_t chunks = 0;
    bool whole = true; // vectors are aligned

    int64_t x_step() const { return x.view.strides.back(); }
    int64_t chunk_step() const { return moments.view.strides.rbegin()[1]; }
    int64_t part_step() const { return moments.view.strides.back(); }
};

bool has_vectors(const View& v) {
    return v.strides.back() == 1 && v.offset % vector == 0 &&
           std::all_of(v.strides.begin(), v.strides.end() - 1,
                       [](int64_t s) { return s % vector == 0; });
}

MomentRows moment_rows(const Operand& x, const Operand& moments, const Operand* out) {
    MomentRows r;
    r.x = x;
    r.moments = moments;
    r.chunks = moments.view.shape.rbegin()[1];
    int64_t last = x.view.rank() - 1;
    std::vector<int64_t> ends = {last, last + 1};
    std::vector<View> views = {without_axes(x.view, std::span(ends).first(1)),
                               without_axes(moments.view, ends)};
    r.whole = has_vectors(x.view);
    if (out != nullptr) {
        views.push_back(without_axes(out->view, std::span(ends).first(1)));
        r.whole = r.whole && has_vectors(out->view);
    }
    r.rows = make_nest(views, plan::stride_order(views[0]));
    return r;
}

Defines defines_of(const MomentRows& r) {
    Defines d;
    d.add("T", c_type(r.x.dtype)).add("KR", r.rows.axes).add("WHOLE", r.whole ? 1 : 0);
    return d;
}

Launch launch_of(const Defines& d, std::string_view family) {
    Launch l;
    l.program = {{"types", "math", "loops", "chunk_moments"}, d.text(), family, ""};
    l.entry = family;
    return l;
}

struct Rows : NoParameters {
    static constexpr std::string_view pattern = "rows";
};

std::vector<Tactic> tactics(const Problem& p) {
    double bytes = 0;
    for (std::span<const Operand> all : {p.in, p.out}) {
        for (const Operand& o : all) {
            bytes += static_cast<double>(byte_size(o.dtype, o.view.count()));
        }
    }
    return {make_tactic(Rows{}, 2.2 + bytes / (p.arch.dram_gbs * 1e3))};
}

Emitted emit_row_moments(const Problem& p, const Tactic&) {
    Emitted e;
    MomentRows r = moment_rows(p.in[0], p.out[0], nullptr);
    int64_t count = r.rows.arg.count * r.chunks;
    if (count > 0) {
        Launch l = launch_of(defines_of(r), "row_moments");
        l.grid = {div_up(count, 64), 1, 1};
        l.args.pointer(r.x).pointer(r.moments).value(r.rows.arg).i64(r.chunks);
        l.args.i64(r.x_step()).i64(r.chunk_step()).i64(r.part_step());
        e.launches.push_back(std::move(l));
    }
    return e;
}

Emitted emit_moment_norm(const Problem& p, const Tactic&) {
    Emitted e;
    const Node& n = p.group.first();
    MomentRows r = moment_rows(p.operand(n.inputs[0]), p.operand(n.inputs[1]), p.out.data());
    if (r.rows.arg.count > 0) {
        Defines d = defines_of(r);
        bool stored = are_stored(r.moments, p.batch_invariant);
        d.add("VECTORS", stored ? 0 : div_up(r.x.view.shape.back(), 32 * vector));
        Launch l = launch_of(d, "moment_norm");
        l.grid = {div_up(r.rows.arg.count, 8), 1, 1};
        l.args.pointer(r.x).pointer(r.moments).pointer(p.out[0]).value(r.rows.arg).i64(r.chunks);
        l.args.i64(r.x_step()).i64(r.chunk_step()).i64(r.part_step());
        l.args.i64(p.out[0].view.strides.back()).f32(n.as<ops::MomentNorm>().epsilon);
        e.launches.push_back(std::move(l));
    }
    return e;
}

void layout(LayoutArgs&) {}

const Family families[] = {{.name = "row_moments",
                            .refuse =
                                [](const Group& group) {
                                    const Node& n = group.first();
                                    return refuse_rows_of(group, n.inputs[0], n.outputs[0]);
                                },
                            .layout = layout,
                            .tactics = tactics,
                            .emit = emit_row_moments,
                            .strided_results = true},
                           {.name = "moment_norm",
                            .refuse =
                                [](const Group& group) {
                                    const Node& n = group.first();
                                    return refuse_rows_of(group, n.inputs[0], n.inputs[1]);
                                },
                            .layout = layout,
                            .tactics = tactics,
                            .emit = emit_moment_norm,
                            .strided_results = true}};

} // namespace

extern const FamilyTable moments_families;
const FamilyTable moments_families = families;

} // namespace ingot::kernels
