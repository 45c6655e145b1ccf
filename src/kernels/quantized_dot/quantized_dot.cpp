// SPDX-License-Identifier: Apache-2.0
// quantized_dot, with its epilogue map: products with a weight that is read as stored, in 4 or 8
// bits, and dequantised in registers.
#include "base/error.h"
#include "kernels/common/expr_text.h"
#include "kernels/contraction/cost.h"
#include "kernels/contraction/heads.h"
#include "kernels/contraction/mma.h"
#include "kernels/contraction/simt.h"
#include "kernels/gemv/gemv_rows.h"
#include "kernels/quantized_dot/tiles.h"
#include "ops/ops.h"

#include <algorithm>

namespace ingot::kernels {

namespace {

struct QuantGemv {
    static constexpr std::string_view pattern = "quant_gemv_s{share}";
    int share = 1; // warps that share the depth of a column
    template <class Self, class F>
    static void fields(Self& self, F&& field) {
        field("share", self.share);
    }
};
struct QuantMma : MmaSplit {
    static constexpr std::string_view pattern = "quant_mma_{bm}x{bn}_s{splits}";
};
struct QuantSimt : NoParameters {
    static constexpr std::string_view pattern = "quant_simt";
};
struct QuantPipelined : TileShare {
    static constexpr std::string_view pattern = "quant_pipelined_s{share}_b{blocks_per_sm}";
};
/// The same, with rows that every block normalises.
struct NormedQuant : TileShare {
    static constexpr std::string_view pattern = "normed_quant_pipelined_s{share}_b{blocks_per_sm}";
};

constexpr int64_t depth_unit = 16; // elements of the depth per read

int64_t contracted(const ops::QuantizedDot& a) {
    return a.b_contract[0];
}

Parameter parameter_of(const Problem& p, Value v, const ops::QuantizedDot& a) {
    Parameter out{p.operand(v)};
    out.constant = p.constants[static_cast<size_t>(p.group.input_index(v))] != nullptr;
    const View& view = out.operand.view;
    if (a.block > 0 && view.rank() == 2) {
        out.column_step = view.strides[static_cast<size_t>(1 - contracted(a))];
        out.block_step = view.strides[static_cast<size_t>(contracted(a))];
    } else if (view.count() > 1) {
        bool along_depth = a.axis == contracted(a);
        (along_depth ? out.block_step : out.column_step) = view.strides[0];
    }
    return out;
}

QuantShape shape_of(const Problem& p) {
    const Node& n = p.group.first();
    const auto& a = n.as<ops::QuantizedDot>();
    QuantShape s;
    s.c = contraction_of(p, Dot{{}, {}, a.a_contract, a.b_contract, a.dtype});
    s.scale = parameter_of(p, n.inputs[2], a);
    if (n.inputs.size() == 4) {
        s.zero = parameter_of(p, n.inputs[3], a);
    }
    bool by_element = s.scale.block_step != 0 || (s.zero && s.zero->block_step != 0);
    s.block = a.block > 0 ? a.block : by_element ? 1 : std::max<int64_t>(s.c.k(), 1);
    return s;
}

// --- tactics

bool all_aligned(const Operand& o, const Shape& strides, int64_t n) {
    return o.view.offset % n == 0 && all_multiples(strides, n);
}

/// Whether both sides can be read in groups.
bool grouped(const QuantShape& s) {
    const Contraction& c = s.c;
    int64_t q = 128 / 8; // bytes of 8-bit groups; those of 4 bits are half as long
    return c.m() > 0 && c.k() > 0 && c.k() % depth_unit == 0 && s.block % depth_unit == 0 &&
           c.depth.rank() == 1 && c.depth.a[0] == 1 && c.depth.b[0] == 1 &&
           all_aligned(c.a, c.rows.a, 128 / bit_width(c.a.dtype)) &&
           all_aligned(c.b, c.columns.b, q) && c.columns.rank() == least_width(c);
}

int columns_of(const Contraction& c) {
    return gemv_rows(c) >= 4 ? 2 : 4;
}

double gemv_cost_us(const Contraction& c, int share, const Arch& arch) {
    int rows = gemv_rows(c);
    auto k = static_cast<double>(c.k());
    auto blocks = static_cast<double>(div_up(c.n(), columns_of(c))) * share / 8;
    double busy = std::min<double>(arch.sms, std::max(blocks, 1.0));
    double rounds = std::max(1.0, k / (512.0 * share));
    double waves = std::max(1.0, blocks / (arch.sms * 4.0));
    // Instructions per weight: about three to widen it, one per row.
    double work =
        (3.5 + rows) * static_cast<double>(c.n()) * k / (busy * 128) / (arch.clock_ghz * 1e3 * 0.8);
    double us = std::max({waves * rounds * 0.5, traffic_bytes(c) / (arch.dram_gbs * 0.9e3), work});
    return 0.7 + 1.6 + us;
}

bool fits_tile(const MmaTile& t, DType type) {
    // Larger warp tiles would spill.
    return t.wm * t.wn <= (type == DType::F32 ? 1024 : 2048);
}

void add_mma(std::vector<Tactic>& out, const Contraction& c, const Arch& arch) {
    DType type = c.a.dtype;
    for (const MmaTile& t : mma_tiles()) {
        if (!fits_tile(t, type)) {
            continue;
        }
        int64_t depth = t.bk * 8 / bit_width(type);
        for (int split : split_choices(div_up(c.k(), depth), t.bm)) {
            // Filling shared memory takes about four instructions per element.
            double blocks = static_cast<double>(div_up(c.m(), t.bm) * div_up(c.n(), t.bn));
            double fill = 4.0 * blocks * t.bn * static_cast<double>(c.k()) /
                          (std::min<double>(arch.sms, blocks * split) * 128) /
                          (arch.clock_ghz * 1e3);
            double us = fill + mma_cost_us(t, {1, c.m(), c.n(), c.k()}, split, type,
                                           traffic_bytes(c), arch);
            out.push_back(make_tactic(QuantMma{{t.bm, t.bn, split}}, us));
        }
    }
}

// --- launches

void add_weights(Args& args, const QuantShape& s) {
    args.pointer(s.c.a).pointer(s.c.b).pointer(s.scale.operand);
    if (s.zero) {
        args.pointer(s.zero->operand);
    } else {
        args.null();
    }
    args.pointer(s.c.out);
}

/// `struct Blocks` of quant_weights.cuh.
void add_blocks(Args& args, const QuantShape& s) {
    struct Blocks {
        int64_t block, scale_n, scale_k, zero_n, zero_k;
    };
    args.value(Blocks{s.block, s.scale.column_step, s.scale.block_step,
                      s.zero ? s.zero->column_step : 0, s.zero ? s.zero->block_step : 0});
}

Emitted emit_gemv(const QuantShape& s, int share) {
    const Contraction& c = s.c;
    int rows = gemv_rows(c);
    int columns = columns_of(c);
    StoreText t = store_text(c, least_width(c));
    Launch l;
    l.program.uses = {"types", "math"};
    l.program.defines = str("#define TA ", c_type(c.a.dtype), "\n#define MR ", rows,
                            "\n#define NR ", columns, "\n", quant_defines(s), t.defines);
    l.program.body = str(device_file("contract"), t.functions, device_file("gemv_core"),
                         t.paired ? device_file("pair_gemv") : "", device_file("quant_weights"));
    l.program.family = "quant_gemv";
    l.entry = "quant_gemv";
    l.grid = {div_up(c.n(), int64_t{8} / share * columns), 1, 1};
    l.shared = int64_t{8} * rows * columns * 4;
    add_weights(l.args, s);
    l.args.i32(share);
    add_blocks(l.args, s);
    add_geometry(l.args, c);
    add_operands(l.args, c);
    Emitted e;
    e.launches.push_back(std::move(l));
    return e;
}

Emitted emit_mma(const QuantShape& s, const Arch& arch, const QuantMma& parameters) {
    const Contraction& c = s.c;
    const MmaTile& tile = parameters.tile();
    int splits = parameters.splits;
    int vector = store_width(c);
    StoreText t = store_text(c, vector);
    Launch l;
    l.program.uses = {"types", "math"};
    l.program.defines = str(mma_defines(tile, c.a.dtype, arch, false), quant_defines(s), t.defines);
    l.program.body = mma_body(t, c.a.dtype) + std::string(device_file("quant_weights"));
    l.program.family = "quant_mma";
    l.entry = "quant_mma";
    set_mma_blocks(l, c, tile, splits, arch);
    add_weights(l.args, s);
    add_split_args(l.args, splits, arch);
    add_blocks(l.args, s);
    add_geometry(l.args, c);
    add_operands(l.args, c);
    return with_split_sum(std::move(l), c, vector, splits, arch);
}

Emitted emit_simt(const QuantShape& s) {
    const Contraction& c = s.c;
    StoreText t = store_text(c, least_width(c));
    Launch l;
    l.program.uses = {"types", "math"};
    l.program.defines = str("#define TA ", c_type(c.a.dtype), "\n", quant_defines(s), t.defines,
                            "#define BN 64\n#define A_ROWS 0\n#define B_COLUMNS ",
                            c.columns.b[0] == 1 && c.depth.b[0] != 1 ? 1 : 0, "\n");
    l.program.body = simt_body(t) + std::string(device_file("quant_weights"));
    l.program.family = "quant_simt";
    l.entry = "quant_simt";
    l.grid = {div_up(c.m(), simt_tile) * div_up(c.n(), simt_tile), 1, 1};
    l.shared = simt_shared(c);
    add_weights(l.args, s);
    add_blocks(l.args, s);
    add_geometry(l.args, c);
    add_operands(l.args, c);
    Emitted e;
    e.launches.push_back(std::move(l));
    return e;
}

bool is_computed_in_f32(DType t) {
    return t == DType::F32 || t == DType::F16 || t == DType::BF16;
}

std::optional<std::string> refuse(const Group& group) {
    const Node& n = group.first();
    if (!n.is(ops::quantized_dot_def)) {
        return "no quantized_dot";
    }
    const auto& a = n.as<ops::QuantizedDot>();
    const Type& x = group.graph.type(n.inputs[0]);
    const Type& q = group.graph.type(n.inputs[1]);
    bool known = q.dtype == DType::I8 || q.dtype == DType::U8 || q.dtype == DType::I4 ||
                 q.dtype == DType::U4 || q.dtype == DType::F8E4M3 || q.dtype == DType::F8E5M2;
    if (!known || !is_computed_in_f32(x.dtype) ||
        !is_computed_in_f32(group.graph.type(n.inputs[2]).dtype)) {
        return str("elements of ", q.dtype, " for ", x.dtype);
    }
    if (q.rank() != 2 || a.b_contract.size() != 1) {
        return str("a quantised operand of rank ", q.rank());
    }
    if (a.block > 0 && normalize_axis(a.axis, 2) != contracted(a)) {
        return "blocks of columns";
    }
    return has_halves(group) ? refuse_halves(group) : refuse_contraction(group, n.inputs[1]);
}

void layout(LayoutArgs& args) {
    const Node& n = args.group.first();
    const auto& a = n.as<ops::QuantizedDot>();
    auto x = static_cast<size_t>(args.group.input_index(n.inputs[0]));
    auto q = static_cast<size_t>(args.group.input_index(n.inputs[1]));
    const View& view = args.in[x];
    auto depth = static_cast<size_t>(a.a_contract[0]);
    if (view.strides[depth] != 1) {
        Order order;
        for (int i = 0; i < view.rank(); ++i) {
            if (i != a.a_contract[0]) {
                order.push_back(i);
            }
        }
        order.push_back(static_cast<int>(depth));
        args.want[x] = order;
    }
    // Blocks of columns side by side, for TMA in products of few rows.
    const Type& type = args.group.graph.type(n.inputs[0]);
    for (size_t i = 2; i < n.inputs.size() && bit_width(type.dtype) == 16; ++i) {
        auto at = static_cast<size_t>(args.group.input_index(n.inputs[i]));
        auto columns = static_cast<size_t>(1 - contracted(a));
        if (a.block > 0 && args.in[at].rank() == 2 && args.in[at].strides[columns] != 1) {
            args.want[at] = {static_cast<int>(contracted(a)), static_cast<int>(columns)};
        }
    }
    bool packed = is_packed(args.group.graph.type(n.inputs[1]).dtype);
    if (!packed && args.in[q].strides[static_cast<size_t>(contracted(a))] != 1) {
        args.want[q] = {static_cast<int>(1 - contracted(a)), static_cast<int>(contracted(a))};
    }
}

std::vector<Tactic> tactics(const Problem& p) {
    QuantShape s = shape_of(p);
    std::vector<Tactic> all;
    if (!s.c.empty() && !p.batch_invariant) {
        add_tile_tactics<QuantPipelined>(all, s, nullptr, p.arch);
    }
    if (!s.c.empty() && grouped(s)) {
        for (int share : {1, 2, 4, 8}) {
            if (s.c.m() <= most_gemv_rows && !p.batch_invariant) {
                all.push_back(make_tactic(QuantGemv{share}, gemv_cost_us(s.c, share, p.arch)));
            }
        }
        if (s.c.a.dtype != DType::F32 || p.tf32) {
            add_mma(all, s.c, p.arch);
        }
    }
    std::stable_sort(all.begin(), all.end(), cheaper);
    if (p.batch_invariant) {
        drop_splits<QuantMma>(all);
        if (!all.empty()) {
            return all;
        }
    }
    all.push_back(make_tactic(QuantSimt{}, simt_cost_us(s.c, p.arch)));
    return all;
}

Emitted emit(const Problem& p, const Tactic& t) {
    QuantShape s = shape_of(p);
    if (s.c.empty()) {
        return {};
    }
    constexpr int64_t most = int64_t{1} << 31;
    require(s.c.m() < most && s.c.n() < most && s.c.k() < most, ErrorCode::Unsupported,
            "a product of ", s.c.m(), " x ", s.c.n(), " x ", s.c.k(), " has an extent beyond 2^31");
    if (const auto* pipelined = t.as<QuantPipelined>()) {
        return emit_tiles(s, nullptr, *pipelined, p.arch);
    }
    if (const auto* gemv = t.as<QuantGemv>()) {
        return emit_gemv(s, gemv->share);
    }
    if (const auto* mma = t.as<QuantMma>()) {
        return emit_mma(s, p.arch, *mma);
    }
    CHECK(t.is<QuantSimt>(), "no product with a quantised weight by ", t.name);
    return emit_simt(s);
}

void add_inside(std::vector<Tactic>& out, const Problem& product, const RowNorm& norm) {
    QuantShape s = shape_of(product);
    if (!s.c.empty()) {
        add_tile_tactics<NormedQuant>(out, s, &norm, product.arch);
    }
}

std::optional<Emitted> emit_inside(const Problem& product, const RowNorm& norm, const Tactic& t) {
    const auto* tiles = t.as<NormedQuant>();
    return tiles == nullptr
               ? std::nullopt
               : std::optional(emit_tiles(shape_of(product), &norm, *tiles, product.arch));
}

constexpr NormedProduct products = {.refuse = refuse,
                                    .layout = layout,
                                    .tactics = tactics,
                                    .emit = emit,
                                    .add_inside = add_inside,
                                    .emit_inside = emit_inside};

/// The product that stores heads; nullopt where none does.
std::optional<QuantShape> shape_of_heads(const Problem& product, const WithHeads& heads) {
    QuantShape s = shape_of(product);
    std::optional<Contraction> c = heads(s.c);
    if (!c) {
        return std::nullopt;
    }
    s.c = std::move(*c);
    return s;
}

void add_heads_inside(std::vector<Tactic>& out, const Problem& product, const RowNorm* norm,
                      const WithHeads& heads) {
    if (std::optional<QuantShape> s = shape_of_heads(product, heads)) {
        norm == nullptr ? add_tile_tactics<QuantPipelined>(out, *s, nullptr, product.arch)
                        : add_tile_tactics<NormedQuant>(out, *s, norm, product.arch);
    }
}

Emitted emit_heads_inside(const Problem& product, const RowNorm* norm, const WithHeads& heads,
                          const Tactic& t) {
    QuantShape s = *shape_of_heads(product, heads);
    const auto* normed = t.as<NormedQuant>();
    return normed != nullptr ? emit_tiles(s, norm, *normed, product.arch)
                             : emit_tiles(s, nullptr, *t.as<QuantPipelined>(), product.arch);
}

constexpr HeadsProduct heads_products = {
    .product = products, .add_inside = add_heads_inside, .emit_inside = emit_heads_inside};

const Family rows[] = {
    {.name = "quantized_dot",
     .refuse = [](const Group& group) { return refuse_with_norm(group, products); },
     .layout = [](LayoutArgs& args) { layout_with_norm(args, products); },
     .tactics = [](const Problem& p) { return tactics_with_norm(p, products); },
     .emit = [](const Problem& p, const Tactic& t) { return emit_with_norm(p, t, products); },
     .strided_results = true,
     .takes_groups = true},
    {.name = "quantized_dot_of_heads",
     .refuse = [](const Group& group) { return refuse_heads(group, heads_products); },
     .layout = [](LayoutArgs& args) { layout_heads(args, heads_products); },
     .tactics = [](const Problem& p) { return heads_tactics(p, heads_products); },
     .emit = [](const Problem& p, const Tactic& t) { return emit_heads(p, t, heads_products); },
     .strided_results = true,
     .takes_groups = true}};

} // namespace

std::string quant_defines(const QuantShape& s) {
    DType q = s.c.b.dtype;
    int kind = q == DType::F8E4M3 ? 2 : q == DType::F8E5M2 ? 3 : is_signed(q) ? 1 : 0;
    return str("#define Q_BITS ", bit_width(q), "\n#define Q_KIND ", kind, "\n#define SCALE ",
               c_type(s.scale.operand.dtype), "\n#define PAIRED ", s.c.paired() ? 1 : 0,
               "\n#define HEAD_PAIRS ", head_pairs(s.c), "\n#define HAS_ZERO ", s.zero ? 1 : 0,
               "\n#define ZERO ", s.zero ? c_type(s.zero->operand.dtype) : "u8", "\n");
}

extern const FamilyTable quantized_dot_families;
const FamilyTable quantized_dot_families = rows;

} // namespace ingot::kernels
