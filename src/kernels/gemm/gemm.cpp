// SPDX-License-Identifier: Apache-2.0
// dot, with the map that follows it: batched matrix products of any layout.
#include "base/error.h"
#include "kernels/contraction/mma.h"
#include "kernels/contraction/tactics.h"
#include "kernels/gemm/normed.h"
#include "kernels/quantized_dot/quant_shape.h"
#include "kernels/gemv/gemv.h"
#include "ops/primitives.h"

#include <algorithm>
#include <numeric>

namespace ingot::kernels {

std::vector<Tactic> contraction_tactics(const Contraction& c, const Problem& p) {
    std::vector<Tactic> all;
    if (!c.empty()) {
        if (!p.batch_invariant) {
            add_gemv_tactics(all, c, p.arch);
            add_tile_tactics(all, tile_shape(c), nullptr, static_cast<int>(Way::Tiles),
                             "gemv_tiles_s", p.arch);
            add_wgmma_tactics(all, c, p.arch, p.tf32);
            add_short_tactic(all, c, p.arch);
        }
        add_mma_tactics(all, c, p.arch, p.tf32);
    }
    if (p.batch_invariant) {
        std::erase_if(all, [](const Tactic& t) { return t.p[2] > 1; });
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const Tactic& a, const Tactic& b) { return a.cost_us < b.cost_us; });
    if (all.empty() || !p.batch_invariant) {
        all.push_back(simt_tactic(c, p.arch));
    }
    return all;
}

Emitted emit_contraction(const Contraction& c, const Arch& arch, const Tactic& t) {
    switch (static_cast<Way>(t.p[0])) {
    case Way::Mma:
        return emit_mma(generalised(c, t.p[variant_place] & variant_rows), arch, t);
    case Way::Wgmma:
        return emit_wgmma(c, arch, t);
    case Way::Gemv:
        return emit_gemv(c, t);
    case Way::Ring:
        return emit_ring(c, t, arch);
    case Way::Short:
        return emit_short(c);
    case Way::Tiles:
        return emit_tiles(tile_shape(c), nullptr, t, arch);
    case Way::NormedRing: // of groups that begin with a norm
    case Way::NormedTiles:
    case Way::Simt:
        break;
    }
    return emit_simt(c);
}

namespace {

std::optional<std::string> refuse(const Group& group) {
    if (has_norm(group)) {
        return refuse_normed(group, refuse);
    }
    if (!group.first().is(dot_def)) {
        return "no dot";
    }
    if (!has_halves(group)) {
        return refuse_finish(group);
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

/// Batch, then free axes, then depth.
Order depth_inside(int rank, const std::vector<int64_t>& batch,
                   const std::vector<int64_t>& contract) {
    Order order;
    for (const auto& axes : {batch, free_axes(rank, batch, contract), contract}) {
        for (int64_t a : axes) {
            order.push_back(static_cast<int>(a));
        }
    }
    return order;
}

/// Tensor cores want the depth innermost; 16-bit activations may have the columns there instead.
/// An operand of rank 2 at most is taken for a weight, which is packed once.
void layout(LayoutArgs& args) {
    if (has_norm(args.group)) {
        layout_normed(args, layout);
        return;
    }
    const Node& n = args.group.first();
    const auto& d = n.as<Dot>();
    DType type = args.group.graph.type(n.inputs[0]).dtype;
    bool tensor_cores = mma_type(type, args.group.graph.type(n.inputs[1]).dtype, true);
    if (!tensor_cores) {
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
    // Rows of the result lie as those of a do, so that both are walked as one axis.
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
    bool as_it_lies = bit_width(type) == 16 && vb.rank() > 2 && d.b_contract.size() == 1 &&
                      innermost(vb, columns);
    if (!innermost(vb, d.b_contract) && !as_it_lies) {
        args.want[b] = depth_inside(vb.rank(), d.b_batch, d.b_contract);
    }
}

std::vector<Tactic> tactics(const Problem& p) {
    return has_norm(p.group) ? normed_tactics(p) : contraction_tactics(contraction_of(p), p);
}

Emitted emit(const Problem& p, const Tactic& t) {
    return has_norm(p.group) ? emit_normed(p, t) : emit_contraction(contraction_of(p), p.arch, t);
}

const Family rows[] = {{.name = "dot",
                        .refuse = refuse,
                        .layout = layout,
                        .tactics = tactics,
                        .emit = emit,
                        .strided_results = true,
                        .takes_groups = true,
                        .variants = contraction_variants}};

} // namespace

extern const FamilyTable gemm_families;
const FamilyTable gemm_families = rows;

} // namespace ingot::kernels
