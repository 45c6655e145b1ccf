// SPDX-License-Identifier: Apache-2.0
// scatter: the result starts as a copy of x (nothing where it lies in x's place), then rows are
// combined. Sums and products of narrow floats are kept in f32 until the end. With few indices each
// block reads all of them and owns rows; with many there is a thread for each update.
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

/// What both forms of kernel know of the elements of a row: parameters behind their own.
struct RestText {
    std::string text; // REST_PARAMS, REST_ARGS and rest_offsets
    IndexText split;
    ScatterShape shape;

    RestText(const Operand& y, const Operand& updates)
        : split({1}, false), shape(scatter_shape(y, updates)) {
        const ScatterShape& s = shape;
        split = IndexText(s.sizes, false);
        std::string params = split.params();
        std::string names;
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
            }
        }
        text = str("#define REST_PARAMS ", params, "\n#define REST_ARGS ", names,
                   "\nDEVICE void rest_offsets(u32 r, i64& yo, i64& uo REST_PARAMS) {\n",
                   split.split("r"), "yo = ", offset_text("i64", x, strides[0]),
                   ";\nuo = ", offset_text("i64", x, strides[1]), ";\n}\n");
    }
    void pass(Args& args) const {
        split.add(args);
        for (size_t k = 0; k < shape.sizes.size(); ++k) {
            args.i64(shape.y[k]).i64(shape.updates[k]);
        }
    }
};

std::string types_text(const Operand& y, const Operand& updates, const Operand& indices) {
    return str("typedef ", c_type(updates.dtype), " T;\ntypedef ", c_type(y.dtype), " A;\ntypedef ",
               c_type(indices.dtype), " Index;\n");
}

void combine_rows(Work& work, const std::string& fn, const Operand& y, const Operand& updates,
                  const Operand& indices) {
    RestText text(y, updates);
    const ScatterShape& s = text.shape;
    int64_t m = indices.view.count();
    int64_t n = y.view.shape[0];
    auto lanes_log2 = static_cast<uint32_t>(
        std::bit_width(static_cast<uint64_t>(std::min<int64_t>(s.rest, 256)) - 1));
    int64_t chunks = blocks_for(s.rest, int64_t{1} << lanes_log2);
    // Every block reads all indices, so there are fewer blocks where these are many.
    int64_t blocks = int64_t{work.arch.sms} * (m > (1 << 16) ? 2 : 8);
    int64_t parts = std::clamp<int64_t>(blocks / chunks, 1, std::min(std::max<int64_t>(n, 1), m));

    Launch l;
    l.args.pointer(y).pointer(updates).pointer(indices).error_word();
    l.args.i32(m).i32(n).i32(s.rest);
    l.args.i64(y.view.strides[0]).i64(updates.view.strides[0]).i64(indices.view.strides[0]);
    l.args.i32(parts).value(lanes_log2);
    text.pass(l.args);
    l.program.uses = {"types", "math", "strided"};
    l.program.defines = types_text(y, updates, indices) + combine_text(fn, y.dtype);
    l.program.body = text.text;
    l.program.family = "scatter";
    l.entry = "scatter";
    l.shared = int64_t{2 * 1024 + 8} * 4;
    l.grid = {parts * chunks, 1, 1};
    work.out.launches.push_back(std::move(l));
}

/// `struct Many` of scatter_many.cuh.
struct ManyArg {
    int64_t updates, rows, rest, y_row, u_row, step;
    int32_t bits;
};

/// Scatters by a thread for each element of the updates.
class ManyScatter {
public:
    ManyScatter(Work& work, const Operand& y, const Operand& updates, const Operand& indices)
        : work_(work), y_(y), updates_(updates), indices_(indices), text_(y, updates) {
        int64_t m = indices.view.count();
        int64_t rest = text_.shape.rest;
        arg_ = {m * rest,
                y.view.shape[0],
                rest,
                y.view.strides[0],
                updates.view.strides[0],
                indices.view.strides[0],
                61 - static_cast<int32_t>(std::bit_width(static_cast<uint64_t>(m)))};
        wide_ = std::max(arg_.updates, arg_.rows * rest) >= int64_t{1} << 31;
    }

    void last_wins() {
        int64_t words = reserve(arg_.rows * 4);
        run("scatter_many", 1, arg_.updates, words, words);
        run("scatter_many", 2, arg_.updates, words, words);
    }
    void combine(const std::string& fn) {
        std::string_view type = y_.dtype == DType::I64 ? "i64" : c_type(y_.dtype);
        combine_ = fn == "add"
                       ? str("atomicAdd((", bit_width(y_.dtype) == 64 ? "u64" : "u32", "*)(p), (",
                             bit_width(y_.dtype) == 64 ? "u64" : "u32", ")(u))")
                       : str(fn == "min" ? "atomicMin" : "atomicMax", "((", type, "*)(p), u)");
        run("scatter_many", 3, arg_.updates, 0, 0);
    }
    void sum_floats() {
        int64_t top = reserve(arg_.rows * arg_.rest * 4);
        int64_t sums = reserve(arg_.rows * arg_.rest * 8);
        run("scatter_many", 4, arg_.updates, top, sums);
        run("scatter_many", 5, arg_.updates, top, sums);
        Launch l = launch("scatter_finish", 6, arg_.rows * arg_.rest);
        l.args.pointer(y_).scratch(top).scratch(sums).value(arg_);
        text_.pass(l.args);
        work_.out.launches.push_back(std::move(l));
    }

private:
    /// Scratch memory that is cleared first.
    int64_t reserve(int64_t bytes) {
        int64_t at = work_.out.scratch;
        int64_t words = (bytes + 7) / 8;
        work_.out.scratch += (bytes + 255) / 256 * 256;
        Launch l = launch("scatter_clear", 0, words);
        l.args.scratch(at).i64(words);
        work_.out.launches.push_back(std::move(l));
        return at;
    }
    Launch launch(const char* entry, int step, int64_t threads) const {
        Launch l;
        l.program.uses = {"types", "math", "loops", "strided"};
        l.program.defines =
            str("#define STEP ", step, "\ntypedef ", wide_ ? "u64" : "u32", " I;\n");
        if (step > 0) {
            l.program.defines += types_text(y_, updates_, indices_);
            l.program.body = text_.text;
        }
        if (step == 3) {
            append(l.program.defines, str("#define COMBINE(p, u) ", combine_, "\n"));
        }
        l.program.family = "scatter_many";
        l.entry = entry;
        l.grid = {blocks_for(threads), 1, 1};
        return l;
    }
    void run(const char* entry, int step, int64_t threads, int64_t words, int64_t sums) {
        Launch l = launch(entry, step, threads);
        l.args.pointer(y_).pointer(updates_).pointer(indices_).scratch(words).scratch(sums);
        l.args.error_word().value(arg_);
        text_.pass(l.args);
        work_.out.launches.push_back(std::move(l));
    }

    Work& work_;
    Operand y_, updates_, indices_;
    RestText text_;
    ManyArg arg_{};
    bool wide_ = false;
    std::string combine_;
};

/// Scatters with so many indices that not every block should read all of them; false where the form
/// does not exist for the function and dtype.
bool scatter_many(Work& work, const std::string& fn, const Operand& y, const Operand& updates,
                  const Operand& indices) {
    constexpr int64_t least = 2048;
    int64_t m = indices.view.count();
    if (m < least || m >= int64_t{1} << 31) {
        return false;
    }
    if (fn == "none") {
        ManyScatter(work, y, updates, indices).last_wins();
        return true;
    }
    bool whole = is_integer(y.dtype) && bit_width(y.dtype) >= 32;
    if (whole && fn != "mul") {
        ManyScatter(work, y, updates, indices).combine(fn);
        return true;
    }
    if (y.dtype == DType::F32 && fn == "add") {
        ManyScatter(work, y, updates, indices).sum_floats();
        return true;
    }
    return false;
}

bool same_place(const Operand& a, const Operand& b) {
    return a.buffer == b.buffer && a.view == b.view;
}

} // namespace

std::optional<std::string> refuse_scatter(const Group& group) {
    return group.nodes.size() == 1 ? std::nullopt : std::optional<std::string>("not a single node");
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
    if (!scatter_many(work, fn, y, updates, indices)) {
        combine_rows(work, fn, y, updates, indices);
    }
    if (wide) {
        work.convert(y, out);
    }
    return work.out;
}

} // namespace ingot::kernels
