// SPDX-License-Identifier: Apache-2.0
// Family attention. Tactics: "att_wgmma" (9.0; f16 and bf16; f32 up to 64),
// "att_mma" (f16 and bf16) and "att_tf32" (f32, up to 160), head sizes up to 256, all for q, k and
// v with contiguous heads in rows of whole 16 bytes (without wgmma also of 8 and 4 bytes), which
// packed QKV buffers have, and values of another size than keys; and "simt" for all problems. Query
// heads that share keys are rows of one tile. With few tiles, blocks split the keys; then a cluster
// exchanges its sums, or a second kernel merges them, in order. A map behind it that rounds to
// bytes is part of the kernel that stores results.
#include "base/error.h"
#include "kernels/attention/byte_results.h"

#include <algorithm>

namespace ingot::kernels {

namespace attention {

namespace {

void copy_strides(int64_t* to, const View& v) {
    std::copy_n(v.strides.begin(), 4, to);
}

int32_t small(int64_t v) {
    require(v >= 0 && v < (int64_t{1} << 30), ErrorCode::Unsupported, "attention over a size of ",
            v, ", at most 2^30 is supported");
    return static_cast<int32_t>(v);
}

void set_mask(Heads& s, const Problem& p) {
    const Node& n = p.group.first();
    s.has_mask = n.inputs.size() > 3;
    if (!s.has_mask) {
        return;
    }
    s.mask = p.operand(n.inputs[3]);
    const Shape& q = s.q.view.shape;
    Shape full{q[0], q[1], q[2], s.k.view.shape[2]};
    const Shape& m = s.mask.view.shape;
    for (size_t i = 0; i < m.size(); ++i) {
        require(m.size() <= 4 && (m[i] == 1 || m[i] == full[i + 4 - m.size()]),
                ErrorCode::InvalidArgument, "attention: mask of shape ", m,
                " does not broadcast to ", full);
    }
    s.mask.view = plan::broadcasted(s.mask.view, full);
    copy_strides(s.arg.m, s.mask.view);
    s.mask_of_keys =
        (s.arg.queries == 1 || s.arg.m[2] == 0) && (s.arg.share == 1 || s.arg.m[1] == 0);
}

} // namespace

int64_t Heads::blocks(int64_t tile_rows) const {
    return div_up(rows, tile_rows) * arg.groups * batch;
}

Heads heads_of(const Problem& p) {
    Heads s;
    const Node& n = p.group.first();
    const auto& a = n.as<ops::Attention>();
    s.q = p.operand(n.inputs[0]);
    s.k = p.operand(n.inputs[1]);
    s.v = p.operand(n.inputs[2]);
    s.out = p.out[0];
    set_byte_map(s, p);
    const Shape& q = s.q.view.shape;
    const Shape& k = s.k.view.shape;
    const Shape& v = s.v.view.shape;
    require(k[0] == q[0] && k[3] == q[3] && v[0] == k[0] && v[1] == k[1] && v[2] == k[2] &&
                k[1] > 0 && q[1] % k[1] == 0,
            ErrorCode::InvalidArgument, "attention of ", q, ", ", k, " and ", v,
            ": the shapes do not fit");
    s.dtype = s.q.dtype;
    s.batch = q[0];
    s.arg.scale = a.scale;
    s.arg.softcap = a.softcap;
    s.arg.groups = small(k[1]);
    s.arg.share = small(q[1] / k[1]);
    s.arg.queries = small(q[2]);
    s.arg.keys = small(k[2]);
    s.arg.depth = small(q[3]);
    s.arg.values = small(v[3]);
    s.arg.causal = a.causal ? 1 : 0;
    int64_t offset = a.causal ? a.offset.eval(p.symbols) : 0;
    s.arg.offset = static_cast<int32_t>(std::clamp<int64_t>(offset, -(1 << 30), 1 << 30));
    s.rows = small(q[1] / k[1] * q[2]);
    copy_strides(s.arg.q, s.q.view);
    copy_strides(s.arg.k, s.k.view);
    copy_strides(s.arg.v, s.v.view);
    copy_strides(s.arg.o, s.out.view);
    set_mask(s, p);
    return s;
}

bool by_vectors(const View& v, int64_t unit) {
    bool ok = v.offset % unit == 0 && (v.strides[3] == 1 || v.shape[3] == 1);
    for (size_t i = 0; i < 3; ++i) {
        ok = ok && (v.shape[i] == 1 || v.strides[i] % unit == 0);
    }
    return ok;
}

int64_t splits_of(const Problem& p, const Heads& s, int64_t blocks, int64_t least) {
    if (p.batch_invariant || blocks >= p.arch.sms || s.arg.keys < 2 * least) {
        return 1;
    }
    return std::min({div_up(int64_t{2} * p.arch.sms, std::max<int64_t>(blocks, 1)),
                     div_up(s.arg.keys, least), int64_t{64}});
}

void add_mask(Defines& d, const Heads& s) {
    d.add("MASK", !s.has_mask ? 0 : s.mask.dtype == DType::Bool ? 1 : 2);
    d.add("M", s.has_mask ? c_type(s.mask.dtype) : std::string_view("bool"));
}

void add_softmax(Defines& d, const Heads& s, bool fma_exp) {
    add_mask(d, s);
    d.add("STAGED", s.has_mask && s.mask_of_keys ? 1 : 0);
    d.add("CAP", s.arg.softcap > 0 ? 1 : s.arg.scale <= 0 ? 2 : 0);
    d.add("SPLIT", s.arg.splits > 1 ? 1 : 0).add("FMA_EXP", fma_exp ? 1 : 0);
}

void add_arguments(Launch& l, const Heads& s) {
    if (s.has_mask) {
        l.args.pointer(s.mask);
    } else {
        l.args.null();
    }
    l.args.pointer(s.out);
    if (s.arg.splits > 1) {
        l.args.scratch(0);
    } else {
        l.args.null();
    }
    l.args.value(s.arg);
}

namespace {

std::vector<Tactic> tactics(const Problem& p) {
    Heads s = heads_of(p);
    std::vector<Tactic> list;
    if (p.batch_invariant) {
        add_mma_tactics(list, p, s);
        list.erase(list.begin(), list.end() - std::min<std::ptrdiff_t>(1, std::ssize(list)));
        return list.empty() ? std::vector<Tactic>{simt_tactic(p, s)} : list;
    }
    add_wgmma_tactics(list, p, s);
    add_mma_tactics(list, p, s);
    list.push_back(simt_tactic(p, s));
    std::stable_sort(list.begin(), list.end(), cheaper);
    return list;
}

Schedule schedule_of(const Problem& p, const Heads& s, const Tactic& t) {
    for (auto* of_algorithm : {wgmma_schedule, mma_schedule, simt_schedule}) {
        if (std::optional<Schedule> schedule = of_algorithm(p, s, t)) {
            return std::move(*schedule);
        }
    }
    fail(ErrorCode::Internal, "no attention by ", t.name);
}

Emitted emit(const Problem& p, const Tactic& t) {
    Heads s = heads_of(p);
    Emitted out;
    if (p.out[0].view.count() == 0) {
        return out;
    }
    Schedule how = schedule_of(p, s, t);
    int64_t unit = how.cluster > 1 ? 8 : how.keys;
    int64_t part =
        std::max<int64_t>(1, div_up(div_up(s.arg.keys, how.cluster * how.splits), unit)) * unit;
    s.arg.part = static_cast<int32_t>(part);
    s.arg.splits =
        how.cluster > 1 ? 1 : static_cast<int32_t>(std::max<int64_t>(1, div_up(s.arg.keys, part)));
    Launch l = how.launch(s);
    require(l.grid[1] <= max_grid_y && l.grid[2] <= max_grid_y, ErrorCode::Unsupported,
            "attention of ", s.q.view.shape, ": batches and heads are at most ", max_grid_y);
    out.launches.push_back(std::move(l));
    if (s.arg.splits > 1) {
        int64_t count = s.batch * s.arg.groups * s.rows;
        out.scratch = count * s.arg.splits * (s.arg.values + 2) * (s.dtype == DType::F64 ? 8 : 4);
        out.launches.push_back(merge_launch(s, count));
    }
    return out;
}

/// Whether matrix instructions may take keys and values of two widths; F64 has none to gain.
bool on_matrix_instructions(const Type& q, const Dim& values) {
    std::optional<int64_t> depth = q.dims[3].as_const(), width = values.as_const();
    int64_t most = q.dtype == DType::F32 ? 160 : is_half(q.dtype) ? 256 : 0;
    bool fits = depth && width && *depth % 2 == 0 && *width % 2 == 0 && *depth > 0 && *width > 0 &&
                std::max(*depth, *width) <= most;
    return fits || q.dtype == DType::F64;
}

std::optional<std::string> refuse(const Group& group) {
    const Node& n = group.first();
    if (group.nodes.size() > 1) {
        if (std::optional<std::string> reason = refuse_map(group)) {
            return reason;
        }
    }
    // Measured: 148 us for 4 heads of 16 queries and keys with 1,024 elements, by plain loops.
    constexpr int64_t most_depth = 256;
    std::optional<int64_t> depth = group.graph.type(n.inputs[0]).dims[3].as_const();
    if (depth && *depth > most_depth && group.graph.type(n.inputs[0]).dtype != DType::F64) {
        return str("heads of ", *depth, " elements, more than ", most_depth);
    }
    // Measured: 44 us for 4 heads of 256 queries and keys of 16 and values of 128 elements, by
    // plain loops.
    constexpr int64_t most_scores = 4096;
    const Type& q = group.graph.type(n.inputs[0]);
    const Dims& v = group.graph.type(n.inputs[2]).dims;
    int64_t scores =
        q.dims[2].as_const().value_or(most_scores) * v[2].as_const().value_or(most_scores);
    if (!(q.dims[3] == v[3]) && scores >= most_scores && !on_matrix_instructions(q, v[3])) {
        return str("keys of ", q.dims[3], " and values of ", v[3], " elements, for many queries");
    }
    for (size_t i = 0; i < n.inputs.size(); ++i) {
        DType t = group.graph.type(n.inputs[i]).dtype;
        if (!(is_float(t) && !is_packed(t)) && !(i == 3 && t == DType::Bool)) {
            return str("elements are ", t);
        }
    }
    return std::nullopt;
}

/// Results have the layout of the queries, so that heads can be joined again without a copy.
/// Kernels for matrix instructions take heads whose elements follow each other.
void layout(LayoutArgs& args) {
    const Node& n = args.group.first();
    for (size_t i = 0; i < 3; ++i) {
        auto at = static_cast<size_t>(args.group.input_index(n.inputs[i]));
        const View& v = args.in[at];
        if (v.strides[3] != 1 && v.shape[3] > 1) {
            args.want[at] = plan::row_major(4);
        }
    }
    auto q = static_cast<size_t>(args.group.input_index(n.inputs[0]));
    Order order = plan::stride_order(args.in[q]);
    if (order.size() == 4 && order.back() == 3) {
        args.order[0] = order;
    }
}

} // namespace

} // namespace attention

namespace {

const Family families[] = {{.name = "attention",
                            .refuse = attention::refuse,
                            .layout = attention::layout,
                            .tactics = attention::tactics,
                            .emit = attention::emit,
                            .strided_results = true,
                            .takes_groups = true}};

} // namespace

extern const FamilyTable attention_families;
const FamilyTable attention_families = families;

} // namespace ingot::kernels
