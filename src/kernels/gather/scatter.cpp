// SPDX-License-Identifier: Apache-2.0
// scatter: the result starts as a copy of x (nothing where it lies in x's place), then rows are
// combined. Sums and products of narrow floats are kept in f32 until the end.
#include "kernels/common/expr_text.h"
#include "kernels/copy/copy.h"
#include "kernels/gather/rows.h"
#include "kernels/pointwise/map_job.h"
#include "ops/primitives.h"

#include <algorithm>
#include <bit>

namespace ingot::kernels {

namespace {

/// Launches so far, and scratch memory handed out.
struct Work {
    const Arch& arch;
    Emitted out;

    /// A dense operand in scratch memory.
    Operand scratch(DType t, const Shape& shape) {
        Operand o{t, in_scratch, plan::dense(shape)};
        o.view.offset = out.scratch / (bit_width(t) / 8);
        out.scratch += (byte_size(t, o.view.count()) + 255) / 256 * 256;
        return o;
    }
    void convert(const Operand& from, const Operand& to) {
        Expr e;
        e.cast(e.in(0, from.dtype), to.dtype);
        append(emit_map({e, std::span(&from, 1), to, "scatter_convert"}));
    }
    void copy(const Operand& from, const Operand& to) { append(emit_copy(from, to, arch)); }
    /// `o`, or a copy of it where the result is about to be written over it.
    Operand apart(const Operand& o, const Operand& result) {
        if (o.buffer != result.buffer) {
            return o;
        }
        Operand kept = scratch(o.dtype, o.view.shape);
        copy(o, kept);
        return kept;
    }
    void append(Emitted e) {
        for (Launch& l : e.launches) {
            out.launches.push_back(std::move(l));
        }
    }
};

std::string combine_text(const std::string& fn, DType accumulator) {
    std::string_view c = compute_c_type(accumulator);
    std::string a = str("(", c, ")widen(v)");
    std::string b = str("(", c, ")widen(u)");
    if (fn == "none") {
        return "#define READS false\n#define COMBINE(v, u) (u)\n";
    }
    std::string unsigned_type = accumulator == DType::I64 ? "(u64)" : "(u32)";
    bool wraps = !is_float(accumulator) && bit_width(accumulator) <= 64;
    if (accumulator == DType::U64) {
        unsigned_type = "(u64)";
    }
    std::string cast = wraps ? unsigned_type : "";
    std::string value = fn == "add"   ? str(cast, a, " + ", cast, b)
                        : fn == "mul" ? str(cast, a, " * ", cast, b)
                                      : str("ingot_", fn, "<", c, ">(", a, ", ", b, ")");
    return str("#define READS true\n#define COMBINE(v, u) narrow<A>((", c, ")(", value, "))\n");
}

struct ScatterShape {
    int64_t rest = 1; // elements of a row
    Shape sizes;      // of the row, merged
    Shape y, updates; // strides
};

ScatterShape scatter_shape(const Operand& y, const Operand& updates) {
    View a = y.view;
    View b = updates.view;
    for (View* v : {&a, &b}) {
        v->shape.erase(v->shape.begin());
        v->strides.erase(v->strides.begin());
    }
    ScatterShape s;
    s.rest = a.count();
    const View views[] = {a, b};
    plan::LoopNest nest = plan::merged_loops(views, plan::stride_order(a));
    if (nest.sizes.empty()) {
        nest = {{1}, {{1}, {1}}};
    }
    s.sizes = nest.sizes;
    s.y = nest.strides[0];
    s.updates = nest.strides[1];
    return s;
}

void combine_rows(Work& work, const std::string& fn, const Operand& y, const Operand& updates,
                  const Operand& indices) {
    ScatterShape s = scatter_shape(y, updates);
    int64_t m = indices.view.count();
    int64_t n = y.view.shape[0];
    auto lanes_log2 = static_cast<uint32_t>(
        std::bit_width(static_cast<uint64_t>(std::min<int64_t>(s.rest, 256)) - 1));
    int64_t chunks = blocks_for(s.rest, int64_t{1} << lanes_log2);
    // Every block reads all indices, so there are fewer blocks where these are many.
    int64_t blocks = work.arch.sms * (m > (1 << 16) ? 2 : 8);
    int64_t parts = std::clamp<int64_t>(blocks / chunks, 1, std::min(std::max<int64_t>(n, 1), m));

    IndexText split(s.sizes, false);
    std::string params = split.params();
    std::string names;
    Launch l;
    add_pointer(l.args, y);
    add_pointer(l.args, updates);
    add_pointer(l.args, indices);
    l.args.error_word().i32(m).i32(n).i32(s.rest);
    l.args.i64(y.view.strides[0]).i64(updates.view.strides[0]).i64(indices.view.strides[0]);
    l.args.i32(parts).value(lanes_log2);
    split.add(l.args);
    std::vector<std::string> x;
    std::array<std::vector<std::string>, 2> strides;
    for (size_t k = 0; k < s.sizes.size(); ++k) {
        x.push_back(str("x", k));
        append(names, k == 0 ? std::string() : str(", d", k, ", d", k, "m, d", k, "h"));
    }
    for (size_t k = 0; k < s.sizes.size(); ++k) {
        for (size_t v = 0; v < 2; ++v) {
            strides[v].push_back(str(v == 0 ? "ys" : "us", k));
            append(params, str(", i64 ", strides[v].back()));
            append(names, str(", ", strides[v].back()));
            l.args.i64(v == 0 ? s.y[k] : s.updates[k]);
        }
    }
    l.program.uses = {"types", "math", "strided"};
    l.program.defines =
        str("typedef ", c_type(updates.dtype), " T;\ntypedef ", c_type(y.dtype), " A;\ntypedef ",
            c_type(indices.dtype), " Index;\n", combine_text(fn, y.dtype));
    l.program.body = str("#define REST_PARAMS ", params, "\n#define REST_ARGS ", names,
                         "\nDEVICE void rest_offsets(u32 r, i64& yo, i64& uo REST_PARAMS) {\n",
                         split.split("r"), "yo = ", offset_text("i64", x, strides[0]),
                         ";\nuo = ", offset_text("i64", x, strides[1]), ";\n}\n");
    l.program.family = "scatter";
    l.entry = "scatter";
    l.shared = (2 * 1024 + 8) * 4;
    l.grid = {parts * chunks, 1, 1};
    work.out.launches.push_back(std::move(l));
}

bool same_place(const Operand& a, const Operand& b) {
    return a.buffer == b.buffer && a.view == b.view;
}

} // namespace

std::optional<std::string> refuse_scatter(const Group& group) {
    if (group.nodes.size() != 1 || is_packed(group.graph.type(group.outputs[0]).dtype)) {
        return "scatter of packed types";
    }
    return std::nullopt;
}

Emitted emit_scatter(const Problem& p, const Tactic&) {
    const Node& node = p.group.first();
    const std::string& fn = node.as<Scatter>().fn;
    const Operand& x = p.operand(node.inputs[0]);
    const Operand& out = p.out[0];
    Work work{p.arch, {}};
    if (out.view.count() == 0) {
        return work.out;
    }
    bool nothing = p.operand(node.inputs[1]).view.count() == 0;
    bool wide = (fn == "add" || fn == "mul") && is_float(out.dtype) && bit_width(out.dtype) < 32;
    if (nothing) {
        if (!same_place(x, out)) {
            work.copy(x, out);
        }
        return work.out;
    }
    Operand indices = work.apart(p.operand(node.inputs[1]), out);
    Operand updates = work.apart(p.operand(node.inputs[2]), out);
    Operand y = out;
    if (wide) {
        y = work.scratch(DType::F32, out.view.shape);
        work.convert(x, y);
    } else if (!same_place(x, out)) {
        work.copy(x, y);
    }
    if (fn == "none") { // moved, not computed with
        y.dtype = raw_dtype(y.dtype);
        updates.dtype = raw_dtype(updates.dtype);
    }
    combine_rows(work, fn, y, updates, indices);
    if (wide) {
        work.convert(y, out);
    }
    return work.out;
}

} // namespace ingot::kernels
