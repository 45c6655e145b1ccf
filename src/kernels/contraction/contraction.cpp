// SPDX-License-Identifier: Apache-2.0
#include "kernels/contraction/contraction.h"

#include "base/error.h"
#include "kernels/common/expr_text.h"
#include "ops/primitives.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace ingot::kernels {

int64_t Loops::count() const {
    int64_t n = 1;
    for (int64_t s : sizes) {
        n *= s;
    }
    return n;
}

void fill(Loops& loops, size_t stored) {
    loops.stored.resize(stored);
    if (loops.sizes.empty()) {
        loops.sizes = {1};
        loops.a = {0};
        loops.b = {0};
        for (Shape& s : loops.stored) {
            s = {0};
        }
    }
}

void merge(Loops& loops) {
    auto pad = [&loops](Shape s) {
        s.resize(loops.sizes.size(), 0);
        return s;
    };
    std::vector<View> views = {{loops.sizes, pad(loops.a)}, {loops.sizes, pad(loops.b)}};
    for (const Shape& s : loops.stored) {
        views.push_back({loops.sizes, pad(s)});
    }
    // In the order in which the operand that has them lies, so that more of them merge.
    const View& leading = loops.a.empty() ? views[1] : views[0];
    plan::LoopNest nest = plan::merged_loops(views, plan::stride_order(leading));
    loops.sizes = nest.sizes;
    loops.a = nest.strides[0];
    loops.b = nest.strides[1];
    for (size_t v = 0; v < loops.stored.size(); ++v) {
        loops.stored[v] = nest.strides[v + 2];
    }
    fill(loops, loops.stored.size());
}

std::optional<std::string> refuse_finish(const Group& group, Value quantised) {
    for (const Node& n : group.nodes) {
        for (const Values* values : {&n.inputs, &n.outputs}) {
            for (Value v : *values) {
                if (is_packed(group.graph.type(v).dtype) && v != quantised) {
                    return "4-bit elements";
                }
            }
        }
    }
    if (group.nodes.size() > 2 || group.outputs.size() != 1) {
        return "more than one node after the main one";
    }
    if (group.nodes.size() == 1) {
        return std::nullopt;
    }
    const Node& map = group.nodes[1];
    if (!map.is(map_def) || group.outputs[0] != map.outputs[0]) {
        return "what follows is not a map";
    }
    const Dims& from = group.graph.type(group.nodes[0].outputs[0]).dims;
    const Type& to = group.graph.type(map.outputs[0]);
    return from == to.dims ? std::nullopt : std::optional(str("the map broadcasts it to ", to));
}

bool has_halves(const Group& group) {
    return group.nodes.size() == 4 && group.nodes[1].is(slice_def) && group.nodes[2].is(slice_def);
}

std::optional<std::string> refuse_halves(const Group& group) {
    const Graph& g = group.graph;
    Value main = group.nodes[0].outputs[0];
    const Node& map = group.nodes[3];
    const Dims& whole = g.type(main).dims;
    const Dims& half = g.type(group.nodes[1].outputs[0]).dims;
    if (!map.is(map_def) || group.outputs.size() != 1 || group.outputs[0] != map.outputs[0] ||
        g.type(map.outputs[0]).dims != half) {
        return "what follows the halves is not a map of their shape";
    }
    if (whole.empty() || !whole.back().is_const() || whole.back() != half.back() + half.back()) {
        return "no halves of the last axis";
    }
    for (size_t i : {1, 2}) {
        const Node& n = group.nodes[i];
        const auto& s = n.as<Slice>();
        Dims starts(whole.size(), Dim(0));
        starts.back() = i == 1 ? Dim(0) : half.back();
        Dims sizes = whole;
        sizes.back() = half.back();
        if (n.inputs[0] != main || s.starts != starts || s.sizes != sizes || s.steps.back() != 1) {
            return "no halves of the last axis";
        }
    }
    bool reads_whole = std::find(map.inputs.begin(), map.inputs.end(), main) != map.inputs.end();
    for (Value v : map.inputs) {
        if (reads_whole || is_packed(g.type(v).dtype)) {
            return reads_whole ? "the map reads the whole too" : "4-bit elements";
        }
    }
    return is_packed(g.type(map.outputs[0]).dtype) ? std::optional<std::string>("4-bit elements")
                                                   : std::nullopt;
}

namespace {

bool contains(const std::vector<int64_t>& axes, int axis) {
    return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

/// Adds the next axis of the result, of which `loops` has `size`.
void add_stored(Loops& loops, const Contraction& c, size_t axis) {
    size_t views = c.finish.operands.size() + 1;
    loops.stored.resize(views);
    loops.stored[0].push_back(c.out.view.strides[axis]);
    for (size_t v = 1; v < views; ++v) {
        loops.stored[v].push_back(c.finish.operands[v - 1].view.strides[axis]);
    }
}

void pair_axes(Loops& loops, const View& a, const View& b, const std::vector<int64_t>& left,
               const std::vector<int64_t>& right) {
    for (size_t i = 0; i < left.size(); ++i) {
        auto l = static_cast<size_t>(left[i]);
        auto r = static_cast<size_t>(right[i]);
        require(a.shape[l] == b.shape[r], ErrorCode::InvalidArgument, "dot of ", a.shape, " and ",
                b.shape, ": axis ", l, " of the first is paired with axis ", r,
                " of the second, but their sizes differ");
        loops.sizes.push_back(a.shape[l]);
        loops.a.push_back(a.strides[l]);
        loops.b.push_back(b.strides[r]);
    }
}

/// Keeps the first half of the last axis; returns how far b's second half is from it.
int64_t halve(Loops& columns) {
    int64_t size = columns.sizes.back() / 2;
    columns.sizes.back() = size;
    return size * columns.b.back();
}

/// Adds an innermost axis along which only b moves.
void append_axis(Loops& loops, int64_t size, int64_t b) {
    loops.sizes.push_back(size);
    loops.a.push_back(0);
    loops.b.push_back(b);
    for (Shape& s : loops.stored) {
        s.push_back(0);
    }
}

} // namespace

Contraction contraction_of(const Problem& p) {
    return contraction_of(p, p.group.first().as<Dot>());
}

Contraction contraction_of(const Problem& p, const Dot& d) {
    const Node& n = p.group.first();
    Contraction c;
    c.a = p.operand(n.inputs[0]);
    c.b = p.operand(n.inputs[1]);
    c.out = p.out[0];
    c.b_constant = p.constants[static_cast<size_t>(p.group.input_index(n.inputs[1]))] != nullptr;
    c.finish = finish_of(p);
    const View& a = c.a.view;
    const View& b = c.b.view;
    size_t axis = 0;
    pair_axes(c.batch, a, b, d.a_batch, d.b_batch);
    for (; axis < d.a_batch.size(); ++axis) {
        add_stored(c.batch, c, axis);
    }
    for (int i = 0; i < a.rank(); ++i) {
        if (!contains(d.a_batch, i) && !contains(d.a_contract, i)) {
            c.rows.sizes.push_back(a.shape[static_cast<size_t>(i)]);
            c.rows.a.push_back(a.strides[static_cast<size_t>(i)]);
            add_stored(c.rows, c, axis++);
        }
    }
    for (int i = 0; i < b.rank(); ++i) {
        if (!contains(d.b_batch, i) && !contains(d.b_contract, i)) {
            c.columns.sizes.push_back(b.shape[static_cast<size_t>(i)]);
            c.columns.b.push_back(b.strides[static_cast<size_t>(i)]);
            add_stored(c.columns, c, axis++);
        }
    }
    int64_t half = c.paired() ? halve(c.columns) : 0;
    pair_axes(c.depth, a, b, d.a_contract, d.b_contract);
    size_t views = c.finish.operands.size() + 1;
    for (Loops* l : {&c.batch, &c.rows, &c.columns, &c.depth}) {
        fill(*l, l == &c.depth ? 0 : views);
        if (l->count() > 0) {
            merge(*l);
        }
    }
    if (c.paired()) {
        append_axis(c.columns, 2, half);
    }
    return c;
}

Contraction swapped(Contraction c) {
    std::swap(c.a, c.b);
    std::swap(c.rows, c.columns);
    c.b_constant = false;
    for (Loops* l : {&c.batch, &c.rows, &c.columns, &c.depth}) {
        std::swap(l->a, l->b);
    }
    return c;
}

std::string_view sum_c_type(DType a, DType b, DType result) {
    if (is_float(a)) {
        return a == DType::F64 ? "double" : "float";
    }
    bool small = bit_width(a) <= 8 && bit_width(b) <= 8;
    return small || bit_width(result) <= 32 ? "u32" : "u64";
}

bool all_multiples(const Shape& strides, int64_t n) {
    return std::all_of(strides.begin(), strides.end(), [n](int64_t s) { return s % n == 0; });
}

int64_t reach(const Loops& loops, const Shape& strides) {
    int64_t sum = 0;
    for (size_t i = 0; i < strides.size(); ++i) {
        if (strides[i] < 0) {
            return -1;
        }
        sum += (loops.sizes[i] - 1) * strides[i];
    }
    return sum;
}

namespace {

constexpr int vector_size = 8;

const Operand& stored_operand(const Contraction& c, size_t v) {
    return v == 0 ? c.out : c.finish.operands[v - 1];
}

/// Results that a thread stores at a time, at most.
int64_t most_results(const Contraction& c) {
    return c.paired() ? vector_size / 2 : vector_size;
}

/// The last axis of the columns along which results are stored.
size_t result_axis(const Contraction& c) {
    return c.columns.sizes.size() - c.finish.sums;
}

/// How far the next result is in view v.
int64_t result_step(const Contraction& c, size_t v) {
    return c.columns.stored[v][result_axis(c)];
}

/// Whether view v has the columns side by side, in aligned vectors.
bool has_vectors(const Contraction& c, size_t v) {
    int64_t n = most_results(c);
    Shape outer = c.columns.stored[v];
    outer.resize(result_axis(c));
    const Operand& o = stored_operand(c, v);
    return result_step(c, v) == 1 && o.view.offset % n == 0 && bit_width(o.dtype) <= 32 &&
           all_multiples(outer, n) && all_multiples(c.rows.stored[v], n) &&
           all_multiples(c.batch.stored[v], n);
}

} // namespace

bool vector_columns(const Contraction& c) {
    return c.columns.sizes[result_axis(c)] % most_results(c) == 0 && has_vectors(c, 0);
}

int store_width(const Contraction& c) {
    return vector_columns(c) ? vector_size : least_width(c);
}

int least_width(const Contraction& c) {
    return static_cast<int>(c.finish.sums);
}

namespace {

/// struct Extras, what the epilogue reads for VEC columns; void read_extras(extras, offsets, ...);
/// void deliver(sums, extras, offsets, ...), and a deliver that does both.
std::string deliver_text(const Contraction& c, int vector) {
    std::string fields;
    std::string reads;
    std::string elements;
    std::string_view count = c.paired() ? "VEC / 2" : "VEC";
    std::string_view sums = c.paired() ? "v[2 * k], v[2 * k + 1]" : "v[k]";
    for (size_t i = 0; i < c.finish.operands.size(); ++i) {
        std::string_view type = c_type(c.finish.operands[i].dtype);
        if (vector == least_width(c) || result_step(c, i + 1) == 0) {
            append(fields, str(type, " e", i, ";\n"));
            append(reads, str("x.e", i, " = x", i, "[at[", i + 1, "]];\n"));
            append(elements, str(", x.e", i));
            continue;
        }
        append(fields, str("Pack<", type, ", ", count, "> e", i, ";\n"));
        append(elements, str(", x.e", i, ".v[k]"));
        if (has_vectors(c, i + 1)) {
            append(reads, str("x.e", i, " = *(const Pack<", type, ", ", count, ">*)(x", i, " + at[",
                              i + 1, "]);\n"));
        } else {
            append(reads, str("#pragma unroll\nfor (int k = 0; k < ", count, "; k++) x.e", i,
                              ".v[k] = x", i, "[at[", i + 1, "] + k * g.cn[", i + 1, "][RN - ",
                              c.finish.sums, "]];\n"));
        }
    }
    return str("struct Extras {\n", fields,
               "};\nDEVICE void read_extras(Extras& x, const i64* at, const Geometry& g "
               "EPI_PARAMS) {\n(void)x, (void)at, (void)g;\n",
               reads,
               "}\nDEVICE void deliver(const ACC* v, const Extras& x, i64 at, const "
               "Geometry& g, OUT* out EPI_PARAMS) {\n(void)x, (void)g;\nPack<OUT, ",
               count, "> r;\n#pragma unroll\nfor (int k = 0; k < ", count,
               "; k++) r.v[k] = value_of(", sums, elements, ");\n*(Pack<OUT, ", count,
               ">*)(out + at) = r;\n}\n"
               "DEVICE void deliver(const ACC* v, const i64* at, const Geometry& g, OUT* out "
               "EPI_PARAMS) {\nExtras x;\nread_extras(x, at, g EPI_PASS);\n"
               "deliver(v, x, at[0], g, out EPI_PASS);\n}\n");
}

/// Of an epilogue with two operands, such as a bias and a residual: both, where they can be copied
/// to shared memory in vectors.
size_t staged_operands(const Contraction& c, int vector) {
    size_t count = c.finish.operands.size();
    bool all = vector == vector_size && count == 2 && !c.paired();
    for (size_t i = 0; all && i < count; ++i) {
        all = bit_width(c.finish.operands[i].dtype) == 16 && c.columns.stored[i + 1].back() != 0 &&
              has_vectors(c, i + 1);
    }
    return all ? count : 0;
}

/// void fetch_extras(slot, bytes between operands, offsets, ...): starts the copies of what
/// read_extras reads; void take_extras(extras, slot, bytes between operands).
std::string staged_text(const Contraction& c) {
    std::string starts;
    std::string reads;
    for (size_t i = 0; i < c.finish.operands.size(); ++i) {
        std::string_view type = c_type(c.finish.operands[i].dtype);
        bool optional = i < c.finish.addends;
        std::string from = str("x", i, " + at[", i + 1, "]");
        append(starts, optional
                           ? str("cp_async16(slot + ", i, " * step, x", i, " != 0 ? (const void*)(",
                                 from, ") : out, x", i, " != 0 ? 16 : 0);\n")
                           : str("cp_async16(slot + ", i, " * step, ", from, ", 16);\n"));
        append(reads,
               str("x.e", i, " = *(const Pack<", type, ", VEC>*)(slot + ", i, " * step);\n"));
    }
    return str(
        "constexpr i64 nowhere = (i64)1 << 62;\nDEVICE void fetch_extras(u32 slot, int step, "
        "const i64* at, const OUT* out EPI_PARAMS) {\n",
        starts, "}\nDEVICE void take_extras(Extras& x, const u8* slot, int step) {\n", reads,
        "}\n");
}

} // namespace

StoreText store_text(const Contraction& c, int vector) {
    const Finish& f = c.finish;
    size_t staged = staged_operands(c, vector);
    StoreText t;
    t.staged = staged > 0;
    t.paired = c.paired();
    t.defines =
        str("#define ACC ", sum_c_type(c.a.dtype, c.b.dtype, f.sum_type), "\n#define OUT ",
            c_type(f.type), "\n#define RB ", c.batch.rank(), "\n#define RM ", c.rows.rank(),
            "\n#define RN ", c.columns.rank(), "\n#define RK ", c.depth.rank(), "\n#define NV ",
            f.operands.size() + 1, "\n#define VEC ", vector, "\n#define STAGED ", staged, "\n");
    std::string params;
    std::string pass;
    for (size_t i = 0; i < f.operands.size(); ++i) {
        params += str(", const ", c_type(f.operands[i].dtype), "* __restrict__ x", i);
        pass += str(", x", i);
    }
    t.defines += str("#define EPI_PARAMS ", params, "\n#define EPI_PASS ", pass, "\n");
    t.functions = value_text(f) + deliver_text(c, vector) + (staged > 0 ? staged_text(c) : "");
    t.functions.insert(0, fast_math_for(t.functions));
    return t;
}

std::string StoreText::store_tile() const {
    return str(device_file("store_tile"), paired ? device_file("pair_store") : "");
}

namespace {

template <size_t N>
void add_array(Args& args, std::span<const int64_t> words) {
    std::array<int64_t, N> a{};
    std::copy(words.begin(), words.end(), a.begin());
    args.value(a);
}

} // namespace

void add_words(Args& args, std::span<const int64_t> words) {
    if (words.size() <= 32) {
        add_array<32>(args, words);
    } else if (words.size() <= 64) {
        add_array<64>(args, words);
    } else if (words.size() <= 128) {
        add_array<128>(args, words);
    } else {
        require(words.size() <= 384, ErrorCode::Unsupported,
                "a contraction's operands have too many axes that cannot be merged");
        add_array<384>(args, words);
    }
}

void add_geometry(Args& args, const Contraction& c) {
    std::vector<int64_t> w = {c.batches(), c.m(), c.n(), c.k()};
    auto add = [&w](const Shape& s) { w.insert(w.end(), s.begin(), s.end()); };
    for (const Loops* l : {&c.batch, &c.rows, &c.columns, &c.depth}) {
        add(l->sizes);
    }
    for (const Shape* s :
         {&c.batch.a, &c.rows.a, &c.depth.a, &c.batch.b, &c.columns.b, &c.depth.b}) {
        add(*s);
    }
    for (const Loops* l : {&c.batch, &c.rows, &c.columns}) {
        for (const Shape& s : l->stored) {
            add(s);
        }
    }
    add_words(args, w);
}

void add_operands(Args& args, const Contraction& c) {
    for (const Operand& o : c.finish.operands) {
        o.buffer == missing_operand ? args.null() : args.pointer(o);
    }
}

} // namespace ingot::kernels
