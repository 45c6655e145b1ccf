// SPDX-License-Identifier: Apache-2.0
// Family attention. Tactics: "mma" (f16 and bf16, head sizes that are multiples of 8 up to 256, q,
// k and v with contiguous heads and 16-byte rows, which packed QKV buffers have), and "simt" for
// everything. Query heads that share keys are rows of one tile; where there are few tiles, blocks
// share the keys and a second kernel merges their sums in order.
#include "base/error.h"
#include "kernels/common/expr_text.h"
#include "kernels/reduce/rows.h"
#include "ops/ops.h"

#include <algorithm>

namespace ingot::kernels {

namespace {

/// `struct Attn` of attention_common.cuh.
struct AttnArg {
    int64_t q[4], k[4], v[4], o[4], m[4];
    double scale, softcap;
    int32_t groups, share, queries, keys, depth, values, causal, offset, splits, part;
};

struct Shape4 {
    AttnArg arg{};
    Operand q, k, v, mask;
    bool has_mask = false;
    int64_t batch = 0;
    int64_t rows = 0; // of a group
    DType dtype = DType::F32;
};

void copy_strides(int64_t* to, const View& v) {
    std::copy_n(v.strides.begin(), 4, to);
}

int32_t small(int64_t v) {
    require(v >= 0 && v < (int64_t{1} << 30), ErrorCode::Unsupported, "attention over a size of ",
            v, ", at most 2^30 is supported");
    return static_cast<int32_t>(v);
}

void set_mask(Shape4& s, const Problem& p) {
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
}

Shape4 shape_of(const Problem& p) {
    Shape4 s;
    const Node& n = p.group.first();
    const auto& a = n.as<ops::Attention>();
    s.q = p.operand(n.inputs[0]);
    s.k = p.operand(n.inputs[1]);
    s.v = p.operand(n.inputs[2]);
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
    copy_strides(s.arg.o, p.out[0].view);
    set_mask(s, p);
    return s;
}

/// Rows of 16-byte vectors: the innermost axis is contiguous, all else divides by 8.
bool by_vectors(const View& v, int64_t unit) {
    bool ok = v.offset % unit == 0 && (v.strides[3] == 1 || v.shape[3] == 1);
    for (size_t i = 0; i < 3; ++i) {
        ok = ok && (v.shape[i] == 1 || v.strides[i] % unit == 0);
    }
    return ok;
}

bool takes_mma(const Problem& p, const Shape4& s) {
    return (s.dtype == DType::F16 || s.dtype == DType::BF16) && s.arg.depth == s.arg.values &&
           s.arg.depth % 8 == 0 && s.arg.depth > 0 && s.arg.depth <= 256 &&
           by_vectors(s.q.view, 8) && by_vectors(s.k.view, 8) && by_vectors(s.v.view, 8) &&
           by_vectors(p.out[0].view, 2);
}

/// Parts of the keys, so that the GPU is full; each of at least `least`.
int64_t splits_of(const Problem& p, const Shape4& s, int64_t blocks, int64_t least) {
    if (blocks >= p.arch.sms || s.arg.keys < 2 * least) {
        return 1;
    }
    return std::min({div_up(2 * p.arch.sms, std::max<int64_t>(blocks, 1)),
                     div_up(s.arg.keys, least), int64_t{64}});
}

int64_t mma_shared(int64_t d, int64_t bm, int64_t bn) {
    return (bm + 4 * bn) * (div_up(d, 16) * 16) * 2;
}

Tactic mma_tactic(const Problem& p, const Shape4& s, int64_t mi, int64_t warps) {
    int64_t bm = 16 * mi * warps;
    int64_t bn = s.arg.depth > 128 ? 32 : 64;
    int64_t blocks = div_up(s.rows, bm) * s.arg.groups * s.batch;
    int64_t splits = splits_of(p, s, blocks, 256);
    Tactic t;
    t.name = str("mma_", bm, "x", bn);
    t.p = {1, static_cast<int>(mi), static_cast<int>(warps), static_cast<int>(bn),
           static_cast<int>(splits)};
    double waves = static_cast<double>(div_up(blocks * splits, int64_t{2} * p.arch.sms));
    double flop =
        4.0 * static_cast<double>(bm) * s.arg.keys / static_cast<double>(splits) * s.arg.depth * 2;
    double rate = p.arch.mma_per_clock * p.arch.clock_ghz * 1000 * (mi == 2 ? 0.33 : 0.27);
    t.cost_us = 2.5 + waves * flop / rate + (splits > 1 ? 2.5 : 0);
    return t;
}

int64_t row_padding(const Shape4& s) {
    return s.arg.depth % 4 == 0 ? 4 : 1;
}

/// Keys, values and weights of one step in shared memory.
int64_t staged_elements(const Shape4& s, int64_t rq, int64_t epl) {
    return 32 * (s.arg.depth + row_padding(s)) + 32 * 32 * epl + 8 * 32 * rq;
}

Tactic simt_tactic(const Problem& p, const Shape4& s) {
    int64_t wide = s.dtype == DType::F64 ? 8 : 4;
    int64_t limit = std::min<int64_t>(p.arch.shared_per_block, 99 << 10);
    int64_t epl = 1;
    while (epl < (wide == 8 ? 4 : 8) && epl * 32 < s.arg.values) {
        epl *= 2;
    }
    int64_t full = div_up(s.rows, 64) * s.arg.groups * s.batch; // blocks with 8 rows a warp
    int64_t rq = epl == 4 && full >= p.arch.sms ? 8 : s.rows >= 16 ? 4 : 1;
    auto q_bytes = [&] { return 8 * rq * s.arg.depth * wide; };
    if (q_bytes() > limit / 2) {
        rq = 1;
    }
    int64_t key_bytes = staged_elements(s, rq, epl) * wide;
    int64_t keys = q_bytes() + key_bytes <= limit ? 1 : 0;
    require(q_bytes() <= limit, ErrorCode::Unsupported, "attention with heads of ", s.arg.depth,
            " elements, at most ", limit / (8 * wide), " are supported");
    int64_t blocks = div_up(s.rows, 8 * rq) * s.arg.groups * s.batch;
    int64_t splits = splits_of(p, s, blocks, 256);
    Tactic t;
    t.name = "simt";
    t.p = {0, static_cast<int>(rq), static_cast<int>(epl), static_cast<int>(keys),
           static_cast<int>(splits)};
    double flop = 4.0 * static_cast<double>(s.rows) * s.arg.groups * static_cast<double>(s.batch) *
                  s.arg.keys * s.arg.depth;
    t.cost_us = 3 + flop / (p.arch.sms * 64.0 * p.arch.clock_ghz * 1000);
    return t;
}

std::vector<Tactic> tactics(const Problem& p) {
    Shape4 s = shape_of(p);
    std::vector<Tactic> list;
    if (takes_mma(p, s)) {
        for (auto [mi, warps] : {std::pair{2, 4}, std::pair{1, 4}, std::pair{1, 2}}) {
            int64_t bm = int64_t{16} * mi * warps;
            bool fits =
                mma_shared(s.arg.depth, bm, s.arg.depth > 128 ? 32 : 64) <= p.arch.shared_per_block;
            if (fits && (mi == 1 || s.arg.depth <= 64)) {
                list.push_back(mma_tactic(p, s, mi, warps));
            }
        }
        std::stable_sort(list.begin(), list.end(),
                         [](const Tactic& a, const Tactic& b) { return a.cost_us < b.cost_us; });
    }
    list.push_back(simt_tactic(p, s));
    return list;
}

void add_mask(Defines& d, const Shape4& s) {
    d.add("MASK", !s.has_mask ? 0 : s.mask.dtype == DType::Bool ? 1 : 2);
    d.add("M", s.has_mask ? c_type(s.mask.dtype) : std::string_view("bool"));
}

Launch mma_launch(const Shape4& s, const Tactic& t) {
    Launch l;
    Defines d;
    d.add("DH", s.arg.depth).add("MI", t.p[1]).add("NW", t.p[2]).add("BN", t.p[3]);
    add_mask(d, s);
    d.add("CAP", s.arg.softcap > 0 ? 1 : s.arg.scale <= 0 ? 2 : 0);
    d.add("QREG", s.arg.depth <= 128 ? 1 : 0).add("SPLIT", s.arg.splits > 1 ? 1 : 0);
    bool half = s.dtype == DType::F16;
    d.add("MMA", half ? "mma_f16" : "mma_bf16").add("PACK", half ? "pack_f16" : "pack_bf16");
    l.program = {{"types", "attention_common"}, d.text(), "attention_mma", {}};
    l.entry = "attention_mma";
    int64_t bm = int64_t{16} * t.p[1] * t.p[2];
    l.block = 32 * t.p[2];
    l.shared = mma_shared(s.arg.depth, bm, t.p[3]);
    l.grid = {div_up(s.rows, bm), int64_t{s.arg.groups} * s.arg.splits, s.batch};
    return l;
}

Launch simt_launch(const Shape4& s, const Tactic& t, int form) {
    Launch l;
    Defines d;
    bool wide = s.dtype == DType::F64;
    d.add("FORM", form).add("T", c_type(s.dtype)).add("C", wide ? "double" : "float");
    add_mask(d, s);
    bool simt = form == 0;
    d.add("RQ", simt ? t.p[1] : 1).add("EPL", simt ? t.p[2] : 1).add("KEYS", simt ? t.p[3] : 0);
    d.add("FOURS", simt && t.p[3] != 0 && s.arg.depth % 4 == 0 ? 1 : 0);
    d.add("PAD", row_padding(s)).add("SPLIT", s.arg.splits > 1 ? 1 : 0);
    l.program = {{"types", "math", "loops", "attention_common"}, d.text(), "attention_simt", {}};
    l.entry = form == 0 ? "attention_simt" : "attention_merge";
    int64_t keys = t.p[3] != 0 ? staged_elements(s, t.p[1], t.p[2]) : 0;
    l.shared = simt ? (8 * int64_t{t.p[1]} * s.arg.depth + keys) * (wide ? 8 : 4) : 0;
    l.grid = {div_up(s.rows, 8 * int64_t{t.p[1]}), int64_t{s.arg.groups} * s.arg.splits, s.batch};
    return l;
}

Emitted emit(const Problem& p, const Tactic& t) {
    Shape4 s = shape_of(p);
    Emitted out;
    if (p.out[0].view.count() == 0) {
        return out;
    }
    bool mma = t.p[0] == 1;
    int64_t unit = mma ? t.p[3] : 32;
    int64_t part = std::max<int64_t>(1, div_up(div_up(s.arg.keys, t.p[4]), unit)) * unit;
    s.arg.part = static_cast<int32_t>(part);
    s.arg.splits = static_cast<int32_t>(std::max<int64_t>(1, div_up(s.arg.keys, part)));
    int64_t columns = mma ? 1 : div_up(s.arg.values, 32 * int64_t{t.p[2]});
    Launch l = mma ? mma_launch(s, t) : simt_launch(s, t, 0);
    l.grid[2] *= columns;
    require(l.grid[1] <= max_grid_y && l.grid[2] <= max_grid_y, ErrorCode::Unsupported,
            "attention of ", s.q.view.shape, ": batches and heads are at most ", max_grid_y);
    l.args.pointer(s.q).pointer(s.k).pointer(s.v);
    if (s.has_mask) {
        l.args.pointer(s.mask);
    } else {
        l.args.null();
    }
    l.args.pointer(p.out[0]);
    if (s.arg.splits > 1) {
        l.args.scratch(0);
    } else {
        l.args.null();
    }
    l.args.value(s.arg);
    if (!mma) {
        l.args.i32(columns);
    }
    out.launches.push_back(std::move(l));
    if (s.arg.splits > 1) {
        int64_t count = s.batch * s.arg.groups * s.rows;
        out.scratch = count * s.arg.splits * (s.arg.values + 2) * (s.dtype == DType::F64 ? 8 : 4);
        Launch m = simt_launch(s, t, 1);
        m.grid = {div_up(count, 8), 1, 1};
        m.args.scratch(0).pointer(p.out[0]).value(s.arg).i64(count);
        out.launches.push_back(std::move(m));
    }
    return out;
}

std::optional<std::string> refuse(const Group& group) {
    if (group.nodes.size() > 1) {
        return "more than one node";
    }
    const Node& n = group.first();
    for (size_t i = 0; i < n.inputs.size(); ++i) {
        DType t = group.graph.type(n.inputs[i]).dtype;
        if (!(is_float(t) && !is_packed(t)) && !(i == 3 && t == DType::Bool)) {
            return str("elements are ", t);
        }
    }
    return std::nullopt;
}

/// Results lie as the queries do, so that heads can be joined again without a copy.
void layout(LayoutArgs& args) {
    auto q = static_cast<size_t>(args.group.input_index(args.group.first().inputs[0]));
    Order order = plan::stride_order(args.in[q]);
    if (order.size() == 4 && order.back() == 3) {
        args.order[0] = order;
    }
}

const Family rows[] = {{.name = "attention",
                        .refuse = refuse,
                        .layout = layout,
                        .tactics = tactics,
                        .emit = emit,
                        .strided_results = true}};

} // namespace

extern const FamilyTable attention_families;
const FamilyTable attention_families = rows;

} // namespace ingot::kernels
