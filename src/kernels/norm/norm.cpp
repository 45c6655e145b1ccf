// SPDX-License-Identifier: Apache-2.0
// Family norm: softmax, layer_norm (with rms) and group_norm, each with a map over the result.
// Every problem is rows: an outer nest of loops, and an inner nest that is normalised. Traffic: x
// read once and written once; rows too long for a block's registers are read two or three times.
#include "base/error.h"
#include "kernels/common/expr_text.h"
#include "kernels/norm/group_channels.h"
#include "kernels/norm/group_shape.h"
#include "kernels/norm/group_slices.h"
#include "kernels/reduce/reduce_rows.h"
#include "ops/ops.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

namespace ingot::kernels {

namespace {

/// Rows in registers, by a class of row_classes.
struct Registers {
    static constexpr std::string_view pattern = "registers_{threads}x{per}";
    int threads = 32; // of a row
    int per = 8;      // elements of a thread
    template <class Self, class F>
    static void fields(Self& self, F&& field) {
        field("threads", self.threads);
        field("per", self.per);
    }
};
/// Rows in parts, each in registers, by three launches.
struct Parts : NoParameters {
    static constexpr std::string_view pattern = "parts";
};
/// Rows that are read more than once.
struct Looped : NoParameters {
    static constexpr std::string_view pattern = "looped";
};
/// Rows across adjacent threads.
struct Columns : NoParameters {
    static constexpr std::string_view pattern = "columns";
};

enum Op { SoftmaxOp = 0, LogSoftmaxOp = 1, LayerOp = 2, RmsOp = 3 };

struct Rows {
    Op op = SoftmaxOp;
    double epsilon = 0;
    Nest kept; // views: x, out, [scale, bias,] operands of the map
    Nest row;
    Operand x;
    Operand scale;
    Operand bias;
    bool has_bias = false;
    RowEpilogue epilogue;

    bool affine() const { return op >= LayerOp; }
    bool wide() const { return x.dtype == DType::F64; }
};

/// [N,C,...] as [N,groups,C/groups,...].
View split_channels(const View& v, int64_t groups) {
    View out = v;
    int64_t inner = v.shape[1] / groups;
    out.shape[1] = groups;
    out.strides[1] = v.strides[1] * inner;
    out.shape.insert(out.shape.begin() + 2, inner);
    out.strides.insert(out.strides.begin() + 2, v.strides[1]);
    return out;
}

/// [C], broadcast to [N,C,...].
View per_channel(const View& v, const Shape& shape) {
    View out{shape, Shape(shape.size(), 0), v.offset};
    out.strides[1] = v.shape[0] == 1 ? 0 : v.strides[0];
    return out;
}

std::vector<int64_t> range(int64_t from, int64_t to) {
    std::vector<int64_t> r(static_cast<size_t>(to - from));
    std::iota(r.begin(), r.end(), from);
    return r;
}

void set_affine(Rows& s, const Problem& p) {
    const Node& n = p.group.first();
    s.scale = p.operand(n.inputs[1]);
    s.has_bias = n.inputs.size() > 2;
    s.bias = s.has_bias ? p.operand(n.inputs[2]) : s.scale;
}

Rows rows_of(const Problem& p) {
    Rows s;
    const Node& n = p.group.first();
    s.x = p.operand(n.inputs[0]);
    const Shape& shape = s.x.view.shape;
    int64_t rank = s.x.view.rank();
    std::vector<int64_t> axes;
    int64_t groups = 0;
    if (n.is(ops::softmax_def)) {
        const auto& a = n.as<ops::Softmax>();
        s.op = a.log ? LogSoftmaxOp : SoftmaxOp;
        axes = {normalize_axis(a.axis, rank)};
    } else if (n.is(ops::layer_norm_def)) {
        const auto& a = n.as<ops::LayerNorm>();
        s.op = a.rms ? RmsOp : LayerOp;
        s.epsilon = a.epsilon;
        axes = range(normalize_axis(a.axis, rank), rank);
        set_affine(s, p);
    } else {
        const auto& a = n.as<ops::GroupNorm>();
        s.op = LayerOp;
        s.epsilon = a.epsilon;
        groups = a.groups;
        axes = range(2, rank + 1);
        set_affine(s, p);
        require(groups > 0 && shape[1] % groups == 0, ErrorCode::InvalidArgument, "group_norm of ",
                shape, ": ", shape[1], " channels do not divide into ", groups, " groups");
    }
    s.epilogue = make_row_epilogue(p, s.affine() ? 4 : 2);
    std::vector<View> views{s.x.view, p.out[0].view};
    if (s.affine()) {
        for (const Operand& o : {s.scale, s.bias}) {
            views.push_back(groups > 0 ? per_channel(o.view, shape)
                                       : plan::broadcasted(o.view, shape));
        }
    }
    for (const Operand& o : s.epilogue.operands) {
        views.push_back(plan::broadcasted(o.view, shape));
    }
    std::vector<View> outside;
    std::vector<View> inside;
    for (View& v : views) {
        v = groups > 0 ? split_channels(v, groups) : v;
        outside.push_back(without_axes(v, axes));
        inside.push_back(only_axes(v, axes));
    }
    s.kept = make_nest(outside, plan::stride_order(outside[0]));
    s.row = make_nest(inside, plan::stride_order(inside[0]));
    return s;
}

/// Whether V elements along the row's last axis of view `v` are one load or store.
bool takes_vector(const Rows& s, size_t v, const View& view, int64_t vector) {
    const NestArg& row = s.row.arg;
    auto last = static_cast<size_t>(s.row.axes - 1);
    bool ok =
        row.strides[v][last] == 1 && row.sizes[last] % vector == 0 && view.offset % vector == 0;
    for (size_t k = 0; k < last; ++k) {
        ok = ok && row.strides[v][k] % vector == 0;
    }
    for (size_t k = 0; k < static_cast<size_t>(s.kept.axes); ++k) {
        ok = ok && s.kept.arg.strides[v][k] % vector == 0;
    }
    return ok;
}

enum Form { InRegisters = 0, InLoops = 1, InColumns = 2 }; // FORM of norm_rows.cuh

/// How a tactic runs.
struct Choice {
    Form form = InRegisters;
    int threads = 32; // of a row
    int block = 256;
    int per = 8;
    int vector = 1;
    bool parts = false;
    bool scale_vectors = false;
};

/// Threads and elements per thread that hold a row in registers. Few classes, so that the rows of a
/// model share kernels; unused threads and elements cost next to nothing.
struct RowClass {
    int threads, per;
};
constexpr RowClass row_classes[] = {{8, 8},   {16, 8},  {32, 8},   {32, 24},  {32, 32},
                                    {32, 40}, {256, 8}, {256, 16}, {256, 32}, {512, 32}};
constexpr RowClass wide_row_classes[] = {{32, 8}, {256, 8}, {512, 8}};

std::span<const RowClass> classes_of(const Rows& s) {
    return s.wide() ? std::span<const RowClass>(wide_row_classes)
                    : std::span<const RowClass>(row_classes);
}

Choice looped(const Problem& p, const Rows& s) {
    Choice c;
    c.form = InLoops;
    bool few = p.batch_invariant || s.kept.arg.count < 1024;
    c.block = s.row.arg.count > 16384 && few ? 1024 : 256;
    c.threads = c.block;
    return c;
}

/// With the vectors that a row allows, which decide the elements that a thread adds up: a batch
/// along the innermost axis would have other vectors, or none, than a single row.
Choice vectorized(const Problem& p, const Rows& s) {
    Choice c;
    if (p.batch_invariant) {
        return c;
    }
    for (c.vector = std::min(8, static_cast<int>(16 / bytes_of(s.x.dtype))); c.vector > 1;
         c.vector /= 2) {
        if (takes_vector(s, 0, s.x.view, c.vector) && takes_vector(s, 1, p.out[0].view, c.vector)) {
            break;
        }
    }
    c.scale_vectors = s.affine() && c.vector > 1 && takes_vector(s, 2, s.scale.view, c.vector) &&
                      takes_vector(s, 3, s.bias.view, c.vector);
    return c;
}

/// Microseconds that further waves of blocks add, where blocks do not all run at once.
double waves_us(int64_t blocks, int threads, const Arch& arch) {
    constexpr double wave = 1.7; // measured: a block's latency from load to store
    int64_t at_once = int64_t{arch.sms} * std::max(1, arch.threads_per_sm / threads);
    return wave * static_cast<double>(std::max<int64_t>(0, div_up(blocks, at_once) - 1));
}

double cost_us(const Rows& s, const Choice& c, const Arch& arch) {
    auto n = static_cast<double>(s.row.arg.count);
    double row = 2 * n * static_cast<double>(bytes_of(s.x.dtype));
    int64_t rows = s.kept.arg.count;
    // Elements apart, alone or a few adjacent ones, come with the sector that they lie in.
    constexpr double sector = 24; // measured; 32 by the hardware
    auto last = static_cast<size_t>(s.row.axes - 1);
    int64_t adjacent = s.row.arg.strides[0][last] == 1 ? s.row.arg.sizes[last] : 1;
    double more = std::max(1.0, sector / static_cast<double>(adjacent * bytes_of(s.x.dtype)));
    if (c.form == InLoops) {
        return 3.8 + waves_us(rows, c.block, arch) +
               2 * block_bytes_us(arch, rows, 1.5 * more * row);
    }
    if (c.form == InColumns) {
        // Measured: 0.14 us an element of a thread, of which a warp has one in so many of a row.
        constexpr double element_us = 0.14;
        double warps = c.block / 32.0;
        double chain = element_us * std::ceil(n / warps);
        return 2.5 + std::max(chain, block_bytes_us(arch, div_up(rows, 32), 32 * row));
    }
    if (c.parts) {
        double parts = std::ceil(n / (c.block * c.per));
        auto blocks = static_cast<int64_t>(parts) * rows;
        return 8 + 1.5 * block_bytes_us(arch, blocks, more * row / parts);
    }
    int together = c.block / c.threads;
    double held = static_cast<double>(c.per) * c.threads;
    double idle = std::max(0.0, (held - n) / held);
    // Narrow loads keep fewer bytes in flight.
    double narrow = 16.0 / static_cast<double>(c.vector * bytes_of(s.x.dtype));
    row *= 1 + 0.25 * std::max(0.0, std::log2(narrow));
    // A thread's elements, which come in vectors, are processed one by one, even with few rows.
    // More threads than vectors only take room from other kernels' blocks.
    constexpr double element_us = 0.07;
    double alone = element_us * c.vector * std::ceil(n / (c.vector * c.threads));
    double shared = block_bytes_us(arch, div_up(rows, together), together * row);
    return (c.threads > 32 ? 2.8 : 2.4) + (s.row.axes > 1 ? 0.3 : 0) +
           waves_us(div_up(rows, together), c.block, arch) +
           std::max(alone, shared * (1 + 0.05 * idle));
}

/// Threads of a block of whole warps, each with one row or several.
int warps_block(int64_t rows, int threads, const Arch& arch) {
    int64_t warps = std::clamp<int64_t>(rows * threads / 32 / arch.sms, 1, 8);
    return 32 * static_cast<int>(std::bit_floor(static_cast<uint64_t>(warps)));
}

/// Whether several short rows share a warp: where there are more rows than warps on the GPU. Never
/// in batch-invariant engines, since the number of threads decides the order of sums.
bool shares_warps(const Problem& p, const Rows& s) {
    return !p.batch_invariant &&
           s.kept.arg.count * 32 > int64_t{p.arch.sms} * p.arch.threads_per_sm;
}

/// Text grows with the loads of a thread and their cost: a row chooses between classes only where
/// these are few.
bool short_text(const Rows& s, const Choice& c) {
    return c.vector >= 4 && s.row.axes == 1;
}
bool long_text(const Rows& s, const Choice& c) {
    return (c.vector == 1 && s.row.axes > 1) || s.epilogue.operands.size() > 1;
}

/// nullopt for a tactic of another algorithm.
std::optional<Choice> choice_of(const Problem& p, const Rows& s, const Tactic& t) {
    if (t.is<Looped>()) {
        return looped(p, s);
    }
    Choice c = vectorized(p, s);
    if (t.is<Columns>()) {
        c.form = InColumns;
        c.block = c.threads = s.row.arg.count <= 256 ? 256 : 1024;
        return c;
    }
    if (t.is<Parts>()) {
        c.parts = true;
        c.block = c.threads = 256;
        c.per = s.wide() ? 8 : long_text(s, c) ? 16 : 32;
        return c;
    }
    if (const auto* r = t.as<Registers>()) {
        c.threads = r->threads;
        c.per = r->per;
        c.block = c.threads <= 32 ? warps_block(s.kept.arg.count, c.threads, p.arch) : c.threads;
        return c;
    }
    return std::nullopt;
}

template <class P>
Tactic row_tactic(const Problem& p, const Rows& s, P parameters) {
    Tactic t = make_tactic(parameters, 0);
    t.cost_us = cost_us(s, *choice_of(p, s, t), p.arch);
    return t;
}

void add_row_tactics(std::vector<Tactic>& list, const Problem& p, const Rows& s) {
    int64_t n = s.row.arg.count;
    auto inner = static_cast<size_t>(s.row.axes - 1);
    auto outer = static_cast<size_t>(s.kept.axes - 1);
    Choice c = vectorized(p, s);
    if (s.row.arg.strides[0][inner] != 1 && s.kept.arg.strides[0][outer] == 1 &&
        s.kept.arg.sizes[outer] >= 16 && n <= 65536 && !p.batch_invariant) {
        list.push_back(row_tactic(p, s, Columns{}));
        return;
    }
    for (const RowClass& k : classes_of(s)) {
        bool offered = (list.empty() || short_text(s, c)) && (k.per <= 16 || !long_text(s, c));
        if (n <= int64_t{k.threads} * k.per && offered && (k.threads >= 32 || shares_warps(p, s)) &&
            (k.threads > 32 || k.per != (short_text(s, c) && s.affine() ? 32 : 40))) {
            list.push_back(row_tactic(p, s, Registers{k.threads, k.per}));
        }
    }
    if (list.empty() && s.affine()) {
        Tactic parts = row_tactic(p, s, Parts{});
        Choice how = *choice_of(p, s, parts);
        if (div_up(n, int64_t{how.block} * how.per) <= max_grid_y) {
            list.push_back(std::move(parts));
        }
    }
}

std::vector<Tactic> tactics(const Problem& p) {
    Rows s = rows_of(p);
    std::vector<Tactic> list;
    add_row_tactics(list, p, s);
    list.push_back(row_tactic(p, s, Looped{}));
    if (p.batch_invariant) {
        return {list.front()}; // by the length of a row alone
    }
    std::vector<Tactic> slices = group_slices_tactics(p);
    list.insert(list.end(), slices.begin(), slices.end());
    if (std::optional<Tactic> t = channels_tactic(p); t && slices.empty()) {
        list.push_back(std::move(*t));
    }
    std::stable_sort(list.begin(), list.end(), cheaper);
    return list;
}

std::string defines(const Rows& s, const Choice& c, int form, int parts) {
    Defines d;
    d.add("OP", static_cast<int>(s.op)).add("FORM", form).add("PARTS", parts);
    d.add("T", c_type(s.x.dtype)).add("C", s.wide() ? "double" : "float");
    d.add("S", s.affine() ? c_type(s.scale.dtype) : "float");
    d.add("B", s.affine() ? c_type(s.bias.dtype) : "float");
    d.add("G", c.threads).add("NT", c.threads <= 32 ? 256 : c.block).add("PER", c.per);
    d.add("V", c.vector);
    d.add("SV", c.scale_vectors ? 1 : 0);
    d.add("KR", s.kept.axes).add("LR", s.row.axes).add("NV", s.kept.views);
    return d.text();
}

Args& number(Args& a, const Rows& s, double v) {
    return s.wide() ? a.f64(v) : a.f32(v);
}

Launch main_launch(const Problem& p, const Rows& s, const Choice& c, int parts) {
    Launch l;
    l.program = {{"types", "math", "loops"},
                 defines(s, c, static_cast<int>(c.form), parts),
                 "norm_rows",
                 s.epilogue.text};
    l.entry = "norm_rows";
    l.block = c.block;
    l.args.pointer(s.x).pointer(p.out[0]);
    if (s.affine()) {
        l.args.pointer(s.scale);
    } else {
        l.args.null();
    }
    if (s.has_bias) {
        l.args.pointer(s.bias);
    } else {
        l.args.null();
    }
    number(l.args.value(s.kept.arg).value(s.row.arg), s, s.epsilon);
    return l;
}

/// Statistics of parts, then of rows, then the result.
void emit_parts(const Problem& p, const Rows& s, const Choice& c, Emitted& out) {
    int64_t part = int64_t{c.block} * c.per;
    int64_t rows = s.kept.arg.count;
    int64_t count = div_up(s.row.arg.count, part);
    int64_t width = s.wide() ? 16 : 8;
    int64_t stats = div_up(rows * count * width, 256) * 256;
    out.scratch = stats + rows * width;
    require(count <= max_grid_y, ErrorCode::Unsupported, "a norm over ", s.row.arg.count,
            " elements, at most ", max_grid_y * part, " are supported");
    Launch first = main_launch(p, s, c, 1);
    first.grid = {rows, count, 1};
    first.args.scratch(0);
    s.epilogue.pass(first.args);
    out.launches.push_back(std::move(first));
    Launch merge;
    merge.program = {{"types", "math", "loops"}, defines(s, c, 3, 1), "norm_rows", s.epilogue.text};
    merge.entry = "norm_parts";
    merge.grid = {div_up(rows, 8), 1, 1};
    number(merge.args.scratch(0).scratch(stats).i64(rows).i32(count).i64(part).i64(s.row.arg.count),
           s, s.epsilon);
    out.launches.push_back(std::move(merge));
    Launch last = main_launch(p, s, c, 2);
    last.grid = {rows, count, 1};
    last.args.scratch(stats);
    s.epilogue.pass(last.args);
    out.launches.push_back(std::move(last));
}

Emitted emit(const Problem& p, const Tactic& t) {
    if (t.is<GroupChannels>()) {
        return emit_channels(p);
    }
    if (std::optional<Emitted> e = emit_group_slices(p, t)) {
        return std::move(*e);
    }
    Rows s = rows_of(p);
    std::optional<Choice> choice = choice_of(p, s, t);
    CHECK(choice, "no rows by ", t.name);
    const Choice& c = *choice;
    Emitted out;
    int64_t rows = s.kept.arg.count;
    if (rows == 0 || s.row.arg.count == 0) {
        return out;
    }
    if (c.parts) {
        emit_parts(p, s, c, out);
        return out;
    }
    Launch l = main_launch(p, s, c, 0);
    l.args.null();
    s.epilogue.pass(l.args);
    l.grid[0] = c.form == InColumns ? div_up(rows, 32) : div_up(rows, c.block / c.threads);
    out.launches.push_back(std::move(l));
    return out;
}

/// Whether it scales few long rows by their lengths, as attention between channels does with all
/// pixels of a head. A block a row took 134 us for 40 rows of 65,536 halves on an H200; a sum that
/// is split and a map take 15 by the model of costs. Norms of tokens have lower rank, or short
/// rows.
bool scales_few_long_rows(const Group& group) {
    constexpr int64_t longest = 4096;
    constexpr int64_t most_rows = 512;
    constexpr size_t least_rank = 4;
    const Node& n = group.first();
    const Dims& dims = group.graph.type(n.inputs[0]).dims;
    if (!n.is(ops::layer_norm_def) || dims.size() < least_rank || !n.as<ops::LayerNorm>().rms ||
        normalize_axis(n.as<ops::LayerNorm>().axis, static_cast<int64_t>(dims.size())) + 1 !=
            static_cast<int64_t>(dims.size())) {
        return false;
    }
    int64_t rows = 1;
    for (size_t i = 0; i + 1 < dims.size(); ++i) {
        rows *= dims[i].as_const().value_or(most_rows);
    }
    return rows < most_rows && dims.back().as_const().value_or(0) >= longest;
}

std::optional<std::string> refuse(const Group& group) {
    DType t = group.graph.type(group.first().inputs[0]).dtype;
    if (!is_float(t)) {
        return str("elements are ", t);
    }
    return scales_few_long_rows(group) ? "few long rows are faster by a sum and a map"
                                       : refuse_rows(group);
}

/// Operands in their own layouts; the result in the order of x.
void layout(LayoutArgs& args) {
    auto x = static_cast<size_t>(args.group.input_index(args.group.first().inputs[0]));
    if (auto order = plan::memory_order(args.in[x])) {
        args.order[0] = *order;
    }
}

constexpr Family family(std::string_view name) {
    Family f{};
    f.name = name;
    f.refuse = refuse;
    f.layout = layout;
    f.tactics = tactics;
    f.emit = emit;
    f.strided_results = true;
    f.takes_groups = true;
    return f;
}

const Family rows[] = {family("softmax"), family("layer_norm"), family("group_norm")};

} // namespace

extern const FamilyTable norm_families;
const FamilyTable norm_families = rows;

} // namespace ingot::kernels
