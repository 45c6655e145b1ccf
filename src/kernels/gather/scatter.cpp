// SPDX-License-Identifier: Apache-2.0
// scatter: the result starts as a copy of x (no copy where it shares x's memory, by the plan or by
// the caller's choice), then rows are combined. Sums and products of narrow floats stay in f32
// until the end. With few indices each block reads all of them and owns rows; with many there is a
// thread per update.
#include "kernels/gather/scatter.h"

#include "kernels/common/expr_text.h"
#include "kernels/copy/copy.h"
#include "kernels/pointwise/map_job.h"
#include "kernels/reduce/reduce_rows.h"
#include "ops/primitives.h"

#include <algorithm>
#include <array>
#include <bit>

namespace ingot::kernels {

namespace {

/// Launches so far, and scratch memory in use.
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
    /// `o`, or a copy of it where the result will overwrite it.
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

/// The elements of a row in a kernel: parameters behind its own, and
///   void rest_offsets(u32 r, i64* at REST_PARAMS)
/// where at[v] becomes the offset of element r in view v.
struct RestText {
    std::string text;
    IndexText split{{1}, false};
    int64_t rest = 1;
    std::vector<Shape> strides; // of the merged axes, by view

    explicit RestText(std::span<const Operand* const> operands) {
        std::vector<View> views;
        for (const Operand* o : operands) {
            View v = o->view;
            v.shape.erase(v.shape.begin());
            v.strides.erase(v.strides.begin());
            views.push_back(std::move(v));
        }
        rest = views[0].count();
        plan::LoopNest nest = plan::merged_loops(views, plan::stride_order(views[0]));
        if (nest.sizes.empty()) {
            nest.sizes = {1};
            nest.strides.assign(views.size(), Shape{1});
        }
        strides = nest.strides;
        split = IndexText(nest.sizes, false);
        std::string params;
        std::string names;
        for (const IndexText::Number& n : split.numbers()) {
            append(params, str(", u32 ", n.name));
            append(names, str(", ", n.name));
        }
        std::vector<std::string> x;
        for (size_t k = 0; k < nest.sizes.size(); ++k) {
            x.push_back(str("x", k));
        }
        std::string offsets;
        for (size_t v = 0; v < views.size(); ++v) {
            std::vector<std::string> steps;
            for (size_t k = 0; k < nest.sizes.size(); ++k) {
                steps.push_back(str("s", v, "_", k));
                append(params, str(", i64 ", steps.back()));
                append(names, str(", ", steps.back()));
            }
            append(offsets, str("at[", v, "] = ", offset_text("i64", x, steps), ";\n"));
        }
        text = str("#define REST_PARAMS ", params, "\n#define REST_ARGS ", names,
                   "\nDEVICE void rest_offsets(u32 r, i64* at REST_PARAMS) {\n", split.split("r"),
                   offsets, "}\n");
    }
    void pass(Args& args) const {
        for (const IndexText::Number& n : split.numbers()) {
            args.value(static_cast<uint32_t>(n.value));
        }
        for (const Shape& view : strides) {
            for (int64_t s : view) {
                args.i64(s);
            }
        }
    }
};

std::string types_text(const Operand& y, const Operand& updates, const Operand& indices) {
    return str("typedef ", c_type(updates.dtype), " T;\ntypedef ", c_type(y.dtype), " A;\ntypedef ",
               c_type(indices.dtype), " Index;\n");
}

void combine_rows(Work& work, const std::string& fn, const Operand& y, const Operand& updates,
                  const Operand& indices) {
    RestText text(std::array{&y, &updates});
    int64_t rest = text.rest;
    int64_t m = indices.view.count();
    int64_t n = y.view.shape[0];
    auto lanes_log2 = static_cast<uint32_t>(
        std::bit_width(static_cast<uint64_t>(std::min<int64_t>(rest, 256)) - 1));
    int64_t chunks = blocks_for(rest, int64_t{1} << lanes_log2);
    // Every block reads all indices, so many indices get fewer blocks.
    int64_t blocks = int64_t{work.arch.sms} * (m > (1 << 16) ? 2 : 8);
    int64_t parts = std::clamp<int64_t>(blocks / chunks, 1, std::min(std::max<int64_t>(n, 1), m));

    Launch l;
    l.args.pointer(y).pointer(updates).pointer(indices).error_word();
    l.args.i32(m).i32(n).i32(rest);
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
    int64_t updates, rows, rest, y_row, u_row, x_row, step;
    int32_t bits;
};

constexpr int64_t least_indices = 2048; // for a thread for each element of the updates

/// The forms for a function and dtype.
enum class ManyForm { None, Last, Combined, Summed };

ManyForm many_form(const std::string& fn, DType t, int64_t m, int64_t updates) {
    if (m < least_indices || m >= int64_t{1} << 31) {
        return ManyForm::None;
    }
    bool whole = is_integer(t) && bit_width(t) >= 32;
    return fn == "none"                                                   ? ManyForm::Last
           : whole && fn != "mul"                                         ? ManyForm::Combined
           : t == DType::F32 && fn == "add" && updates < int64_t{1} << 31 ? ManyForm::Summed
                                                                          : ManyForm::None;
}

bool same_place(const Operand& a, const Operand& b) {
    return a.buffer == b.buffer && a.view == b.view;
}

/// Scatters with one thread per element of the updates.
class ManyScatter {
public:
    ManyScatter(Work& work, const Operand& y, const Operand& x, const Operand& updates,
                const Operand& indices)
        : work_(work), y_(y), x_(x), updates_(updates), indices_(indices),
          text_(std::array{&y, &updates, &x}) {
        int64_t m = indices.view.count();
        int64_t rest = text_.rest;
        arg_ = {m * rest,
                y.view.shape[0],
                rest,
                y.view.strides[0],
                updates.view.strides[0],
                x.view.strides[0],
                indices.view.strides[0],
                61 - static_cast<int32_t>(std::bit_width(static_cast<uint64_t>(m)))};
        wide_ = std::max(arg_.updates, elements()) >= int64_t{1} << 31;
    }

    void run(ManyForm form, const std::string& fn) {
        if (form == ManyForm::Last) {
            last_wins();
        } else if (form == ManyForm::Summed) {
            sum_floats();
        } else {
            combine(fn);
        }
    }

private:
    void last_wins() {
        // Few updates of many rows, in place: reads only these rows.
        bool sparse = same_place(x_, y_) && arg_.rows > 4 * indices_.view.count();
        bool payload = !sparse && arg_.rest == 1 && bit_width(y_.dtype) <= 32;
        int64_t last = take(arg_.rows * (payload ? 8 : 4));
        clear(last, work_.out.scratch);
        std::string defines =
            str("#define SPARSE ", sparse ? 1 : 0, "\n#define PAYLOAD ", payload ? 1 : 0, "\n");
        for (int step : {1, 2}) {
            if (step == 2 && !sparse) {
                Launch l = launch("scatter_last", step, elements(), 1024, defines);
                l.args.pointer(y_).pointer(x_).pointer(updates_).scratch(last);
                push(std::move(l));
                break;
            }
            int64_t threads = step == 1 ? indices_.view.count() : arg_.updates;
            Launch l = launch("scatter_many", step, threads, 256, defines);
            l.args.pointer(y_).pointer(updates_).pointer(indices_).scratch(last).error_word();
            push(std::move(l));
        }
    }
    void combine(const std::string& fn) {
        std::string_view type = y_.dtype == DType::I64 ? "i64" : c_type(y_.dtype);
        std::string_view natural = bit_width(y_.dtype) == 64 ? "u64" : "u32";
        std::string call =
            fn == "add" ? str("atomicAdd((", natural, "*)(p), (", natural, ")(u))")
                        : str(fn == "min" ? "atomicMin" : "atomicMax", "((", type, "*)(p), u)");
        Launch l =
            launch("scatter_many", 3, arg_.updates, 256, str("#define COMBINE(p, u) ", call, "\n"));
        l.args.pointer(y_).pointer(updates_).pointer(indices_).null().error_word();
        push(std::move(l));
    }
    void sum_floats() {
        int64_t head = take(256);
        int64_t sums = take(elements() * 8);
        int64_t flags = take(div_up(elements(), 32) * 4);
        clear(head, work_.out.scratch);
        int64_t tops = take(elements() * 4);
        int64_t list = take(arg_.updates * 4);
        Launch largest = launch("scatter_largest", 4, arg_.updates, 2048);
        largest.args.pointer(updates_).scratch(head);
        push(std::move(largest));
        for (int step : {5, 6, 7}) {
            if (step == 6) {
                Launch l = launch("scatter_finish", 6, elements(), 1024);
                l.args.pointer(y_).pointer(x_).scratch(head).scratch(sums).scratch(flags);
                l.args.scratch(tops);
                push(std::move(l));
                continue;
            }
            Launch l = launch("scatter_sums", step, arg_.updates, 256);
            l.args.pointer(updates_).pointer(indices_).scratch(head).scratch(sums).scratch(flags);
            l.args.scratch(tops).scratch(list).error_word();
            push(std::move(l));
        }
        int64_t most = int64_t{2048} * work_.arch.sms; // threads of the rare steps
        Launch listed = launch("scatter_listed", 8, std::min(most, arg_.updates), 256);
        listed.args.pointer(updates_).pointer(indices_).scratch(head).scratch(sums).scratch(tops);
        listed.args.scratch(list);
        push(std::move(listed));
        Launch last =
            launch("scatter_finish_flagged", 9, std::min(most, div_up(elements(), 32)), 256);
        last.args.pointer(y_).scratch(head).scratch(sums).scratch(flags).scratch(tops);
        push(std::move(last));
    }

    int64_t elements() const { return arg_.rows * arg_.rest; }
    int64_t take(int64_t bytes) {
        int64_t at = work_.out.scratch;
        work_.out.scratch += div_up(bytes, 256) * 256;
        return at;
    }
    void clear(int64_t from, int64_t to) {
        int64_t words = (to - from) / 8;
        Launch l;
        l.program = {{"types", "math"}, "#define STEP 0\n", "scatter_many", {}};
        l.entry = "scatter_clear";
        l.grid = {blocks_for(words, 1024), 1, 1};
        l.args.scratch(from).i64(words);
        work_.out.launches.push_back(std::move(l));
    }
    Launch launch(const char* entry, int step, int64_t n, int64_t a_block,
                  const std::string& defines = {}) const {
        Launch l;
        l.program.uses = {"types", "math", "loops", "strided", "scatter_rows"};
        l.program.defines =
            str("#define STEP ", step, "\n#define ONE ", arg_.rest == 1 ? 1 : 0, "\ntypedef ",
                wide_ ? "u64" : "u32", " I;\n", defines, types_text(y_, updates_, indices_));
        l.program.body = text_.text;
        l.program.family = step >= 4 ? "scatter_sums" : "scatter_many";
        l.entry = entry;
        l.grid = {blocks_for(n, a_block), 1, 1};
        return l;
    }
    void push(Launch l) {
        l.args.value(arg_);
        text_.pass(l.args);
        work_.out.launches.push_back(std::move(l));
    }

    Work& work_;
    Operand y_, x_, updates_, indices_;
    RestText text_;
    ManyArg arg_{};
    bool wide_ = false;
};

} // namespace

std::optional<std::string> refuse_scatter(const Group& group) {
    return group.nodes.size() == 1 ? std::nullopt : std::optional<std::string>("not a single node");
}

/// Launches that make y what x is, where they do not share memory.
void start_as(Work& work, const Operand& x, const Operand& y) {
    if (same_place(x, y)) {
        return;
    }
    int64_t vector = 16 * 8 / bit_width(y.dtype); // elements
    bool alike = x.dtype == y.dtype && x.view == y.view && plan::is_dense(y.view) &&
                 y.view.count() % vector == 0 && y.view.offset % vector == 0;
    if (!alike) {
        work.copy(x, y);
        return;
    }
    int64_t count = y.view.count() / vector;
    Launch l;
    l.args.pointer(x).pointer(y).i64(count);
    l.program = {{"types", "math"}, "", "scatter_start", {}};
    l.entry = "scatter_start";
    l.grid = {std::min(div_up(count, 256), int64_t{work.arch.sms} * 8), 1, 1};
    work.out.launches.push_back(std::move(l));
}

/// Whether rows [1..] of `o` are dense vectors of `vector` elements.
bool has_vector_rows(const Operand& o, int64_t vector) {
    View row = o.view;
    row.shape.erase(row.shape.begin());
    row.strides.erase(row.strides.begin());
    row.offset = 0;
    return plan::is_dense(row) && row.count() % vector == 0 && o.view.offset % vector == 0 &&
           o.view.strides[0] % vector == 0;
}

/// Few rows of a dense result in one launch; false where its kernel does not take them.
bool place_rows(Work& work, const Operand& x, const Operand& y, const Operand& updates,
                const Operand& indices) {
    constexpr int64_t most_rows = 128; // of scatter_placed.cuh
    int64_t m = indices.view.count();
    int64_t vector = 16 * 8 / bit_width(y.dtype); // elements
    int64_t vectors = y.view.count() / std::max<int64_t>(y.view.shape[0], 1) / vector;
    bool alike = x.view == y.view && x.dtype == y.dtype && updates.dtype == y.dtype &&
                 plan::is_dense(y.view) && y.view.count() / vector < int64_t{1} << 31;
    if (!alike || m > most_rows || vectors == 0 || !has_vector_rows(y, vector) ||
        !has_vector_rows(updates, vector)) {
        return false;
    }
    int64_t rows = y.view.shape[0];
    Launch l;
    l.args.pointer(x).pointer(y).pointer(updates).pointer(indices).error_word();
    l.args.i32(m).value(static_cast<uint32_t>(rows)).value(static_cast<uint32_t>(vectors));
    l.args.i64(updates.view.strides[0] / vector).i64(indices.view.strides[0]);
    std::string index = str("typedef ", c_type(indices.dtype), " Index;\n");
    l.program = {{"types", "math"}, index, "scatter_placed", {}};
    l.entry = "scatter_placed";
    l.grid = {std::min(div_up(rows * vectors, 256), int64_t{work.arch.sms} * 8), 1, 1};
    work.out.launches.push_back(std::move(l));
    return true;
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
        start_as(work, x, out);
        return work.out;
    }
    Operand indices = work.apart(p.operand(node.inputs[1]), out);
    Operand updates = work.apart(p.operand(node.inputs[2]), out);
    Operand y = out;
    Operand from = x; // where y's elements are before
    if (wide) {
        y = from = work.scratch(DType::F32, out.view.shape);
        work.convert(x, y);
    }
    if (fn == "none") { // moved without arithmetic
        for (Operand* o : {&y, &from, &updates}) {
            o->dtype = raw_dtype(o->dtype);
        }
    }
    ManyForm form = many_form(fn, y.dtype, indices.view.count(), updates.view.count());
    if (fn == "none" && form == ManyForm::None && place_rows(work, from, y, updates, indices)) {
        return work.out;
    }
    bool reads_x = form == ManyForm::Last || form == ManyForm::Summed;
    if (!reads_x) {
        start_as(work, from, y);
    }
    if (form == ManyForm::None) {
        combine_rows(work, fn, y, updates, indices);
    } else {
        ManyScatter(work, y, from, updates, indices).run(form, fn);
    }
    if (wide) {
        work.convert(y, out);
    }
    return work.out;
}

} // namespace ingot::kernels
