// SPDX-License-Identifier: Apache-2.0
// dot, with its epilogue map: batched matrix products of any layout.
#include "kernels/gemm/gemm.h"

#include "base/error.h"
#include "kernels/common/stored_moments.h"
#include "kernels/contraction/heads.h"
#include "kernels/contraction/normed.h"
#include "kernels/contraction/with_moments.h"
#include "kernels/gemm/algorithms.h"
#include "kernels/gemv/gemv.h"
#include "kernels/quantized_dot/tiles.h"
#include "ops/ops.h"
#include "ops/row_moments.h"

#include <algorithm>
#include <numeric>

namespace ingot::kernels {

namespace {

/// Tiles loaded by TMA, of weights of 16 bits.
struct GemvTiles : TileShare {
    static constexpr std::string_view pattern = "gemv_tiles_s{share}_b{blocks_per_sm}";
};
struct NormedGemvTiles : TileShare {
    static constexpr std::string_view pattern = "normed_tiles_s{share}_b{blocks_per_sm}";
};

} // namespace

std::vector<Tactic> gemm_tactics(const Contraction& c, const Problem& p) {
    std::vector<Tactic> all;
    if (!c.empty()) {
        if (!p.batch_invariant) {
            add_gemv_tactics(all, c, p.arch);
            add_tile_tactics<GemvTiles>(all, tile_shape(c), nullptr, p.arch);
            add_wgmma_tactics(all, c, p.arch, p.tf32);
            add_short_tactic(all, c, p.arch);
            add_narrow_tactics(all, c, p.arch);
            add_few_rows_tactic(all, c, p.arch);
        }
        add_mma_tactics(all, c, p.arch, p.tf32);
    }
    if (p.batch_invariant) {
        drop_splits<GemmMma>(all);
    }
    std::stable_sort(all.begin(), all.end(), cheaper);
    if (all.empty() || !p.batch_invariant) {
        all.push_back(simt_tactic(c, p.arch));
    }
    return all;
}

Emitted emit_gemm(const Contraction& c, const Arch& arch, const Tactic& t) {
    if (const auto* mma = t.as<GemmMma>()) {
        return emit_mma(generalised(c, t.variant & variant_rows), arch, *mma);
    }
    if (const auto* wgmma = t.as<GemmWgmma>()) {
        return emit_wgmma(c, arch, *wgmma, t.variant);
    }
    if (const auto* tiles = t.as<GemvTiles>()) {
        return emit_tiles(tile_shape(c), nullptr, *tiles, arch);
    }
    if (t.is<ShortDot>()) {
        return emit_short(c);
    }
    if (const auto* narrow = t.as<NarrowDot>()) {
        return emit_narrow(c, *narrow);
    }
    if (t.is<FewRows>()) {
        return emit_few_rows(c);
    }
    if (std::optional<Emitted> e = emit_gemv(c, arch, t)) {
        return std::move(*e);
    }
    CHECK(t.is<GemmSimt>(), "no product of matrices by ", t.name);
    return emit_simt(c);
}

namespace {

std::optional<std::string> refuse(const Group& group) {
    if (!group.first().is(dot_def)) {
        return "no dot";
    }
    if (!has_halves(group)) {
        return refuse_contraction(group);
    }
    const auto& d = group.first().as<Dot>();
    auto rank = static_cast<size_t>(group.graph.type(group.first().inputs[1]).rank());
    bool columns = rank > d.b_batch.size() + d.b_contract.size();
    bool packed = is_packed(group.graph.type(group.first().inputs[0]).dtype) ||
                  is_packed(group.graph.type(group.first().inputs[1]).dtype);
    return packed     ? std::optional<std::string>("4-bit elements")
           : !columns ? std::optional<std::string>("halves of the rows")
                      : refuse_halves(group);
}

/// Whether the axes can be walked as one with stride 1.
bool innermost(const View& v, const std::vector<int64_t>& axes) {
    int64_t expected = 1;
    for (auto i = axes.size(); i-- > 0;) {
        auto axis = static_cast<size_t>(axes[i]);
        if (v.shape[axis] != 1 && v.strides[axis] != expected) {
            return false;
        }
        expected *= v.shape[axis];
    }
    return true;
}

std::vector<int64_t> free_axes(int rank, const std::vector<int64_t>& batch,
                               const std::vector<int64_t>& contract) {
    std::vector<int64_t> out;
    for (int64_t i = 0; i < rank; ++i) {
        if (std::find(batch.begin(), batch.end(), i) == batch.end() &&
            std::find(contract.begin(), contract.end(), i) == contract.end()) {
            out.push_back(i);
        }
    }
    return out;
}

Order in_order(std::initializer_list<std::vector<int64_t>> groups) {
    Order order;
    for (const auto& axes : groups) {
        for (int64_t a : axes) {
            order.push_back(static_cast<int>(a));
        }
    }
    return order;
}

/// Batch, then free axes, then depth.
Order depth_inside(int rank, const std::vector<int64_t>& batch,
                   const std::vector<int64_t>& contract) {
    return in_order({batch, free_axes(rank, batch, contract), contract});
}

/// The elements of these axes.
int64_t extent(const View& v, const std::vector<int64_t>& axes) {
    return std::accumulate(axes.begin(), axes.end(), int64_t{1}, [&](int64_t all, int64_t axis) {
        return all * v.shape[static_cast<size_t>(axis)];
    });
}

/// Tensor cores want the depth innermost; 16-bit activations, and those that few rows are
/// multiplied with, may have the columns innermost instead. An operand of rank 2 at most is taken
/// for a weight, which is packed once.
void layout(LayoutArgs& args) {
    const Node& n = args.group.first();
    const auto& d = n.as<Dot>();
    DType type = args.group.graph.type(n.inputs[0]).dtype;
    DType type_b = args.group.graph.type(n.inputs[1]).dtype;
    if (!mma_type(type, type_b, true) && !wgmma_types(type, type_b, true)) {
        return;
    }
    auto a = static_cast<size_t>(args.group.input_index(n.inputs[0]));
    auto b = static_cast<size_t>(args.group.input_index(n.inputs[1]));
    if (a == b) {
        return;
    }
    const View& va = args.in[a];
    const View& vb = args.in[b];
    if (!innermost(va, d.a_contract)) {
        args.want[a] = depth_inside(va.rank(), d.a_batch, d.a_contract);
    }
    // Rows of the result have the order of a's, so that both are walked as one axis.
    std::vector<int64_t> rows = free_axes(va.rank(), d.a_batch, d.a_contract);
    if (!args.want[a] && rows.size() > 1) {
        std::vector<size_t> by_stride(rows.size());
        std::iota(by_stride.begin(), by_stride.end(), size_t{0});
        std::stable_sort(by_stride.begin(), by_stride.end(), [&](size_t x, size_t y) {
            return va.strides[static_cast<size_t>(rows[x])] >
                   va.strides[static_cast<size_t>(rows[y])];
        });
        for (size_t i = 0; i < rows.size(); ++i) {
            args.order[0][d.a_batch.size() + i] = static_cast<int>(d.a_batch.size() + by_stride[i]);
        }
    }
    std::vector<int64_t> columns = free_axes(vb.rank(), d.b_batch, d.b_contract);
    bool activations = vb.rank() > 2 && d.b_contract.size() == 1 && !args.is_constant(b);
    bool few = activations && bit_width(type) <= 32 &&
               are_few_rows(extent(va, rows), extent(vb, columns), extent(va, d.a_contract));
    bool as_it_lies = activations && (bit_width(type) == 16 || few) && innermost(vb, columns);
    if (!innermost(vb, d.b_contract) && !as_it_lies) {
        args.want[b] = few ? in_order({d.b_batch, d.b_contract, columns})
                           : depth_inside(vb.rank(), d.b_batch, d.b_contract);
    }
}

void add_inside(std::vector<Tactic>& out, const Problem& product, const RowNorm& norm) {
    Contraction c = contraction_of(product);
    add_normed_gemv_tactics(out, c, norm, product.arch);
    add_tile_tactics<NormedGemvTiles>(out, tile_shape(c), &norm, product.arch);
}

std::optional<Emitted> emit_inside(const Problem& product, const RowNorm& norm, const Tactic& t) {
    if (const auto* tiles = t.as<NormedGemvTiles>()) {
        return emit_tiles(tile_shape(contraction_of(product)), &norm, *tiles, product.arch);
    }
    if (const auto* gemv = t.as<NormedGemv>()) {
        return emit_normed_gemv(contraction_of(product), norm, *gemv, product.arch);
    }
    return std::nullopt;
}

std::vector<Tactic> dot_tactics(const Problem& p) {
    return gemm_tactics(contraction_of(p), p);
}

Emitted emit_dot(const Problem& p, const Tactic& t) {
    return emit_gemm(contraction_of(p), p.arch, t);
}

/// The product of rows that its map normalises; nullopt where those cannot be told from others.
std::optional<Contraction> with_residual(Contraction c, const Operand& rows) {
    const std::vector<Operand>& all = c.epilogue.operands;
    auto same = [&rows](const Operand& o) {
        return o.buffer == rows.buffer && o.view.offset == rows.view.offset;
    };
    auto at = std::find_if(all.begin(), all.end(), same);
    if (std::count_if(all.begin(), all.end(), same) != 1) {
        return std::nullopt;
    }
    c.residual = static_cast<size_t>(at - all.begin());
    return c;
}

void add_residual(std::vector<Tactic>& out, const Problem& product, const RowNorm& norm) {
    if (auto c = with_residual(contraction_of(product), product.in.back())) {
        add_residual_tactics(out, *c, *norm.moments, product.arch);
    }
}

std::optional<Emitted> emit_residual_inside(const Problem& product, const RowNorm& norm,
                                            const Tactic& t) {
    const auto* residual = t.as<GemmResidual>();
    if (residual == nullptr) {
        return std::nullopt;
    }
    Contraction c = *with_residual(contraction_of(product), product.in.back());
    return emit_residual(c, product.arch, *residual, t.variant, norm.epsilon, *norm.moments);
}

constexpr NormedProduct residual_products = {.refuse = refuse,
                                             .layout = layout,
                                             .tactics = dot_tactics,
                                             .emit = emit_dot,
                                             .add_inside = add_residual,
                                             .emit_inside = emit_residual_inside};

Contraction with_moments_of(const Problem& product, const Operand& moments) {
    bool residual = has_residual(product.group);
    Contraction c = residual ? residual_contraction(product) : contraction_of(product);
    c.moments = moments;
    return c;
}

std::vector<char> stores_both(const Problem& product, const Operand& moments,
                              std::span<const Tactic> tactics) {
    Contraction c = with_moments_of(product, moments);
    bool inside = has_residual(product.group) && !reads_left_rows(product);
    std::vector<char> both;
    for (const Tactic& t : tactics) {
        const auto* residual = t.as<GemmResidual>();
        const auto* wgmma = t.as<GemmWgmma>();
        const auto* mma = t.as<GemmMma>();
        bool stores = inside ? residual != nullptr && wgmma_stores_moments(c, *residual)
                             : (wgmma != nullptr && wgmma_stores_moments(c, *wgmma)) ||
                                   (mma != nullptr && mma_stores_moments(c, product.arch, *mma));
        both.push_back(stores ? 1 : 0);
    }
    return both;
}

Emitted emit_both(const Problem& product, const Operand& moments, const Tactic& t) {
    Contraction c = with_moments_of(product, moments);
    const auto* residual = t.as<GemmResidual>();
    if (residual == nullptr) {
        return emit_gemm(c, product.arch, t);
    }
    const Node& norm = product.group.first();
    return emit_residual(*with_residual(std::move(c), product.operand(norm.inputs[0])),
                         product.arch, *residual, t.variant, norm.as<ops::MomentNorm>().epsilon,
                         product.operand(norm.inputs[1]));
}

/// The functions for groups of with_moments.
const NormedProduct& products_of(const Group& group);

constexpr ProductWithMoments with_moments = {
    .refuse =
        [](const Group& group) {
            return has_residual(group) ? refuse_with_norm(group, residual_products) : refuse(group);
        },
    .layout = [](LayoutArgs& args) { layout_with_norm(args, products_of(args.group)); },
    .tactics = [](const Problem& p) { return tactics_with_norm(p, products_of(p.group)); },
    .emit = [](const Problem& p,
               const Tactic& t) { return emit_with_norm(p, t, products_of(p.group)); },
    .stores_both = stores_both,
    .emit_both = emit_both};

constexpr NormedProduct products = {.refuse = refuse,
                                    .layout = layout,
                                    .tactics = dot_tactics,
                                    .emit = emit_dot,
                                    .add_inside = add_inside,
                                    .emit_inside = emit_inside};

const NormedProduct& products_of(const Group& group) {
    return has_residual(group) ? residual_products : products;
}

/// Groups of fuse_norms: the columns of the product's weights sum to zero.
std::optional<std::string> refuse_centred(const Group& group) {
    if (!has_norm(group)) {
        return "no norm";
    }
    const Node& norm = group.first();
    const Type& rows = group.graph.type(norm.inputs[0]);
    if (has_residual(group)) {
        return "a norm that the map behind the product reads";
    }
    bool merged = norm.is(ops::moment_norm_def);
    bool plain = merged || (!norm.as<ops::LayerNorm>().rms && norm.inputs.size() == 2 &&
                            std::ranges::all_of(group.graph.type(norm.inputs[1]).dims,
                                                [](const Dim& d) { return d.is_const(1); }));
    return !plain                       ? std::optional<std::string>("a scale, or a bias")
           : bit_width(rows.dtype) > 16 ? std::optional<std::string>(str("rows of ", rows.dtype))
                                        : refuse_with_norm(group, products);
}

void add_centred(std::vector<Tactic>& out, const Problem& product, const RowNorm& norm) {
    if (norm.moments && are_stored(*norm.moments, product.batch_invariant)) {
        add_merged_tactics(out, contraction_of(product), *norm.moments, product.arch);
    } else {
        add_centred_tactics(out, contraction_of(product), product.arch);
    }
}

std::optional<Emitted> emit_centred_inside(const Problem& product, const RowNorm& norm,
                                           const Tactic& t) {
    if (const auto* merged = t.as<GemmMerged>()) {
        return emit_merged(contraction_of(product), product.arch, *merged, t.variant, norm.epsilon,
                           *norm.moments);
    }
    const auto* centred = t.as<GemmCentred>();
    return centred == nullptr ? std::nullopt
                              : std::optional(emit_centred(contraction_of(product), product.arch,
                                                           *centred, t.variant, norm.epsilon));
}

constexpr NormedProduct centred_products = {.refuse = refuse,
                                            .layout = layout,
                                            .tactics = products.tactics,
                                            .emit = products.emit,
                                            .add_inside = add_centred,
                                            .emit_inside = emit_centred_inside};

void add_heads_inside(std::vector<Tactic>& out, const Problem& product, const RowNorm* norm,
                      const WithHeads& heads) {
    std::optional<Contraction> c = heads(contraction_of(product));
    if (!c) {
        return;
    }
    if (norm == nullptr) {
        add_gemv_tactics(out, *c, product.arch);
        add_tile_tactics<GemvTiles>(out, tile_shape(*c), nullptr, product.arch);
    } else {
        add_normed_gemv_tactics(out, *c, *norm, product.arch);
        add_tile_tactics<NormedGemvTiles>(out, tile_shape(*c), norm, product.arch);
    }
}

Emitted emit_heads_inside(const Problem& product, const RowNorm* norm, const WithHeads& heads,
                          const Tactic& t) {
    Contraction c = *heads(contraction_of(product));
    if (const auto* tiles = t.as<GemvTiles>()) {
        return emit_tiles(tile_shape(c), nullptr, *tiles, product.arch);
    }
    if (const auto* tiles = t.as<NormedGemvTiles>()) {
        return emit_tiles(tile_shape(c), norm, *tiles, product.arch);
    }
    if (const auto* gemv = t.as<NormedGemv>()) {
        return emit_normed_gemv(c, *norm, *gemv, product.arch);
    }
    std::optional<Emitted> e = emit_gemv(c, product.arch, t);
    CHECK(e, "no product that stores heads by ", t.name);
    return std::move(*e);
}

constexpr HeadsProduct heads_products = {
    .product = products, .add_inside = add_heads_inside, .emit_inside = emit_heads_inside};

const Family rows[] = {
    {.name = "dot",
     .refuse =
         [](const Group& group) {
             return has_moments(group) ? refuse_moments(group, with_moments)
                                       : refuse_with_norm(group, products_of(group));
         },
     .layout =
         [](LayoutArgs& args) {
             has_moments(args.group) ? layout_moments(args, with_moments)
                                     : layout_with_norm(args, products_of(args.group));
         },
     .tactics =
         [](const Problem& p) {
             return has_moments(p.group) ? moments_tactics(p, with_moments)
                                         : tactics_with_norm(p, products_of(p.group));
         },
     .emit =
         [](const Problem& p, const Tactic& t) {
             return has_moments(p.group) ? emit_moments(p, t, with_moments)
                                         : emit_with_norm(p, t, products_of(p.group));
         },
     .strided_results = true,
     .aligned_rows = true,
     .takes_groups = true,
     .variants = contraction_variants},
    {.name = "centred_dot",
     .refuse = refuse_centred,
     .layout = [](LayoutArgs& args) { layout_with_norm(args, centred_products); },
     .tactics = [](const Problem& p) { return tactics_with_norm(p, centred_products); },
     .emit = [](const Problem& p,
                const Tactic& t) { return emit_with_norm(p, t, centred_products); },
     .strided_results = true,
     .aligned_rows = true,
     .takes_groups = true,
     .variants = contraction_variants},
    {.name = "dot_of_heads",
     .refuse = [](const Group& group) { return refuse_heads(group, heads_products); },
     .layout = [](LayoutArgs& args) { layout_heads(args, heads_products); },
     .tactics = [](const Problem& p) { return heads_tactics(p, heads_products); },
     .emit = [](const Problem& p, const Tactic& t) { return emit_heads(p, t, heads_products); },
     .strided_results = true,
     .aligned_rows = true,
     .takes_groups = true}};

} // namespace

extern const FamilyTable gemm_families;
const FamilyTable gemm_families = rows;

} // namespace ingot::kernels
