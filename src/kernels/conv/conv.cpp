// SPDX-License-Identifier: Apache-2.0
// conv, with its epilogue map: channels innermost on both sides, for any number of spatial axes.
#include "base/error.h"
#include "kernels/common/expr_text.h"
#include "kernels/contraction/cost.h"
#include "kernels/contraction/simt.h"
#include "kernels/conv/algorithms.h"
#include "kernels/conv/conv_halo.h"
#include "kernels/conv/conv_stream.h"
#include "kernels/conv/row_families.h"
#include "kernels/conv/window_runs.h"
#include "kernels/gemm/gemm.h"
#include "ops/ops.h"

#include <algorithm>
#include <utility>

namespace ingot::kernels {

namespace {

struct ConvSimt : NoParameters {
    static constexpr std::string_view pattern = "conv_simt";
};
struct ConvMma : MmaSplit {
    static constexpr std::string_view pattern = "conv_mma_{bm}x{bn}_s{splits}";
};

bool depthwise_node(const Group& group) {
    const Node& n = group.first();
    const Dims& x = group.graph.type(n.inputs[0]).dims;
    const Dims& w = group.graph.type(n.inputs[1]).dims;
    int64_t groups = n.as<ops::Conv>().groups;
    return groups > 1 && x[1].is_const(groups) && w[0].is_const(groups);
}

std::optional<std::string> refuse(const Group& group) {
    const Node& n = group.first();
    if (!n.is(ops::conv_def)) {
        return "no conv";
    }
    int rank = group.graph.type(n.inputs[0]).rank();
    if (rank < 3 || rank > 5) {
        return str("an input of rank ", rank);
    }
    return refuse_contraction(group);
}

/// The case of conv_stem.cuh, which reads its input in any layout.
bool few_channels(const Group& group) {
    const Node& n = group.first();
    const Type& x = group.graph.type(n.inputs[0]);
    const Dims& w = group.graph.type(n.inputs[1]).dims;
    const auto& conv = n.as<ops::Conv>();
    bool few = false;
    for (int64_t c = 1; c <= 4; ++c) {
        few = few || x.dims[1].is_const(c);
    }
    bool beside = true; // windows are adjacent
    for (size_t i = 0; i < conv.strides.size(); ++i) {
        beside = beside && w[i + 2].is_const(conv.strides[i]);
    }
    return few && !beside && conv.groups == 1 && x.rank() == 4 &&
           (narrow_result(x.dtype) || x.dtype == DType::F32);
}

void layout(LayoutArgs& args) {
    const Node& n = args.group.first();
    auto x = static_cast<size_t>(args.group.input_index(n.inputs[0]));
    auto w = static_cast<size_t>(args.group.input_index(n.inputs[1]));
    Order order = plan::channels_last(args.in[x].rank());
    if (args.in[x].strides[1] != 1 && !few_channels(args.group)) {
        args.want[x] = order;
    }
    args.order[0] = order;
    if (x == w) {
        return;
    }
    args.want[w] = order;
    if (depthwise_node(args.group)) {
        // Kernel positions, then channels.
        Order taps;
        for (int i = 2; i < args.in[w].rank(); ++i) {
            taps.push_back(i);
        }
        taps.push_back(1);
        taps.push_back(0);
        args.want[w] = taps;
    } else if (few_channels(args.group)) {
        args.want[w] = {2, 3, 1, 0};
    }
}

// --- tactics

/// The farthest coordinate of a window along an axis.
int64_t far_position(const WindowArg& w, size_t i) {
    return w.in[i] + w.low[i] + w.kernel[i] * w.dilation[i] + w.stride[i] * w.out[i];
}

/// Positions along the last two axes are kept in 16 bits, those along the first one in 32.
constexpr int64_t most_positions = 30000;
constexpr int64_t most_slices = int64_t{1} << 30;

bool fits_mma(const ConvShape& s, const Contraction& c) {
    int64_t far = s.x.view.offset;
    for (size_t i = 0; i < s.x.view.shape.size(); ++i) {
        far += std::abs((s.x.view.shape[i] - 1) * s.x.view.strides[i]);
    }
    bool small = far_position(s.window, 0) < most_slices;
    for (size_t i = 1; i < 3; ++i) {
        small = small && far_position(s.window, i) < most_positions;
    }
    return small && far < (int64_t{1} << 30) && c.n() * c.columns.b[0] < (int64_t{1} << 32) &&
           c.k() < (int64_t{1} << 30) && c.m() < (int64_t{1} << 31);
}

/// The same convolution; the only axis of a long line is the first one.
ConvShape with_long_line(const ConvShape& s) {
    const WindowArg& w = s.window;
    bool line = far_position(w, 2) >= most_positions;
    for (size_t i = 0; i < 2; ++i) {
        line = line && w.in[i] == 1 && w.out[i] == 1 && w.kernel[i] == 1 && w.low[i] == 0;
    }
    if (!line) {
        return s;
    }
    ConvShape turned = s;
    WindowArg& t = turned.window;
    for (auto* axes : {&t.in, &t.out, &t.kernel, &t.stride, &t.dilation, &t.low, &t.step}) {
        std::swap((*axes)[0], (*axes)[2]);
    }
    return turned;
}

/// Bytes that one copy takes: `copy_bytes`.
struct Alignment {
    int x = 0;
    int w = 0;
};

Alignment alignment_of(const ConvShape& s, const Contraction& c) {
    const WindowArg& w = s.window;
    Alignment a;
    a.x = copy_bytes(s.x.dtype, [&](int64_t n) {
        return w.step_c == 1 && w.channels % n == 0 && s.x.view.offset % n == 0 &&
               c.batch.a[0] % n == 0 && w.step_n % n == 0 &&
               all_multiples({w.step[0], w.step[1]}, n) &&
               (w.step[2] % n == 0 ||
                (w.kernel[2] == 1 && w.low[2] == 0 && w.stride[2] * w.step[2] % n == 0));
    });
    a.w = copy_bytes(s.w.dtype, [&](int64_t n) {
        return c.depth.b[0] == 1 && c.columns.b[0] % n == 0 && c.batch.b[0] % n == 0 &&
               s.w.view.offset % n == 0;
    });
    return a;
}

/// The same convolution whose taps along the last axis count as channels, where that lets more
/// bytes be copied at once: pixels lie side by side and nothing is padded along that axis.
ConvShape with_dense_taps(const ConvShape& s) {
    const WindowArg& w = s.window;
    bool dense = w.step_c == 1 && w.step[2] == w.channels && w.dilation[2] == 1;
    bool inside =
        w.low[2] == 0 && (w.out[2] - 1) * w.stride[2] + w.kernel[2] <= w.in[2] && s.groups == 1;
    if (!dense || !inside) {
        return s;
    }
    ConvShape merged = s;
    merged.window.channels *= w.kernel[2];
    merged.window.kernel[2] = 1;
    Contraction c = window_contraction(s);
    return alignment_of(merged, c).x > alignment_of(s, c).x ? merged : s;
}

double bytes_moved(const ConvShape& s, const Contraction& c) {
    auto bytes = [](const Operand& o) {
        return static_cast<double>(o.view.count()) * bit_width(o.dtype) / 8;
    };
    (void)c;
    return bytes(s.x) + bytes(s.w) + bytes(s.out);
}

void add_mma(std::vector<Tactic>& out, const ConvShape& given, const Problem& p) {
    ConvShape s = with_long_line(with_dense_taps(given));
    Contraction c = window_contraction(s);
    if (!mma_runs(s.x.dtype, s.w.dtype, p.tf32, p.arch) || !fits_mma(s, c) || c.k() == 0) {
        return;
    }
    Alignment a = alignment_of(s, c);
    double slow = copy_factor(a.x) * copy_factor(a.w);
    bool narrow = a.x < 16 || a.w < 16;
    for (const MmaTile& t : mma_tiles()) {
        // Larger warp tiles would spill.
        int most = a.x == 0 ? 1024 : narrow || takes_registers(s.x.dtype) ? 2048 : 4096;
        most = s.x.dtype == DType::F8E4M3 ? std::min(most, 1024) : most;
        most = far_position(s.window, 0) >= most_positions ? std::min(most, 2048) : most;
        if (t.wm * t.wn > most) {
            continue;
        }
        int64_t steps = div_up(c.k(), t.bk * 8 / bit_width(s.x.dtype));
        for (int split : split_choices(steps, t.bm)) {
            double us = 1.1 * slow *
                        mma_cost_us(t, {c.batches(), c.m(), c.n(), c.k()}, split, s.x.dtype,
                                    bytes_moved(s, c), p.arch);
            us += epilogue_of_bytes_us(c, p.arch);
            out.push_back(make_tactic(ConvMma{{t.bm, t.bn, split}}, us));
        }
    }
}

std::vector<Tactic> pointwise_tactics(const ConvShape& s, const Problem& p) {
    std::vector<Tactic> all = gemm_tactics(pointwise_contraction(s), p);
    if (!p.batch_invariant) {
        add_wgmma_conv(all, s, p.arch, p.tf32);
        std::stable_sort(all.begin(), all.end(), cheaper);
    }
    return all;
}

std::vector<Tactic> tactics(const Problem& p) {
    ConvShape s = conv_shape(p);
    if (!s.depthwise() && s.pointwise()) {
        return pointwise_tactics(s, p);
    }
    std::vector<Tactic> all;
    if (s.depthwise()) {
        add_depthwise(all, s, p.arch);
        if (p.batch_invariant) {
            // All depthwise algorithms add up a window in the same order, but only strips skip
            // padding.
            const Algorithm* first = all[0].algorithm;
            std::erase_if(all, [first](const Tactic& t) { return t.algorithm != first; });
            return all;
        }
    } else if (s.out.view.count() > 0) {
        if (!p.batch_invariant) {
            add_wgmma_conv(all, s, p.arch, p.tf32);
            add_halo_conv(all, s, p.arch);
            add_stream_conv(all, s, p.arch);
            add_stem_conv(all, s, p.arch, p.tf32);
        }
        if (std::optional<ConvShape> rows = windows_as_rows(s)) {
            std::vector<Tactic> products = gemm_tactics(pointwise_contraction(*rows), p);
            all.insert(all.end(), products.begin(), products.end());
        } else {
            add_mma(all, s, p);
        }
    }
    std::stable_sort(all.begin(), all.end(), cheaper);
    if (p.batch_invariant) {
        drop_splits<ConvMma>(all);
        if (!all.empty()) {
            return all;
        }
    }
    all.push_back(make_tactic(ConvSimt{}, simt_cost_us(window_contraction(s), p.arch)));
    return all;
}

// --- launches

Emitted emit_simt_conv(const ConvShape& s) {
    Contraction c = window_contraction(s);
    StoreText t = store_text(c, 1);
    Launch l;
    bool results_adjoin = c.columns.b[0] == 1 && c.depth.b[0] != 1;
    l.program.uses = {"types", "math"};
    l.program.defines =
        str("#define TA ", c_type(s.x.dtype), "\n#define TB ", c_type(s.w.dtype), "\n", t.defines,
            "#define BN 64\n#define A_ROWS ", s.window.step_c == 1 ? 0 : 1, "\n#define B_COLUMNS ",
            results_adjoin ? 1 : 0, "\n");
    l.program.body = simt_body(t) + std::string(device_file("window"));
    l.program.family = "conv_simt";
    l.entry = "conv_simt";
    l.grid = {c.batches() * div_up(c.m(), simt_tile) * div_up(c.n(), simt_tile), 1, 1};
    l.shared = simt_shared(c);
    l.args.pointer(s.x).pointer(s.w).pointer(s.out);
    add_window(l.args, s.window);
    add_geometry(l.args, c);
    add_operands(l.args, c);
    Emitted e;
    e.launches.push_back(std::move(l));
    return e;
}

Emitted emit_mma_conv(const ConvShape& given, const Arch& arch, const ConvMma& parameters,
                      int variant) {
    ConvShape s = with_long_line(with_dense_taps(given));
    const MmaTile& tile = parameters.tile();
    int splits = parameters.splits;
    Contraction c = generalised(window_contraction(s), variant & variant_rows);
    Alignment a = alignment_of(s, c);
    int vector = vector_columns(c) ? 8 : 1;
    StoreText t = store_text(c, vector);
    Launch l;
    l.program.uses = {"types", "math"};
    l.program.defines =
        str(mma_defines(tile, s.x.dtype, arch, false), t.defines, "#define A_ALIGNED ", a.x,
            "\n#define B_ALIGNED ", a.w, "\n#define SPATIAL ",
            s.window.in[0] > 1 || s.window.low[0] > 0 || s.window.kernel[0] > 1 ? 3 : 2, "\n");
    l.program.body = mma_body(t, s.x.dtype) + std::string(device_file("window"));
    l.program.family = "conv_mma";
    l.entry = "conv_mma";
    set_mma_blocks(l, c, tile, splits, arch);
    l.args.pointer(s.x).pointer(s.w).pointer(s.out);
    add_split_args(l.args, splits, arch);
    add_window(l.args, s.window);
    add_geometry(l.args, c);
    add_operands(l.args, c);
    return with_split_sum(std::move(l), c, vector, splits, arch);
}

Emitted emit(const Problem& p, const Tactic& t) {
    ConvShape s = conv_shape(p);
    if (s.out.view.count() == 0) {
        return {};
    }
    if (const auto* mma = t.as<ConvMma>()) {
        return emit_mma_conv(s, p.arch, *mma, t.variant);
    }
    if (const auto* wgmma = t.as<ConvWgmma>()) {
        return emit_wgmma_conv(s, p.arch, *wgmma, t.variant);
    }
    if (const auto* halo = t.as<ConvHalo>()) {
        return emit_halo_conv(s, p.arch, *halo, t.variant);
    }
    if (const auto* stream = t.as<ConvStream>()) {
        return emit_stream_conv(s, p.arch, *stream, t.variant);
    }
    if (const auto* depthwise = t.as<ConvDepthwise>()) {
        return emit_depthwise(s, *depthwise);
    }
    if (const auto* strip = t.as<ConvStrip>()) {
        return emit_strip(s, *strip);
    }
    if (const auto* stem = t.as<ConvStem>()) {
        return emit_stem_conv(s, p.arch, *stem);
    }
    return t.is<ConvSimt>()
               ? emit_simt_conv(s)
               : emit_gemm(pointwise_contraction(windows_as_rows(s).value_or(s)), p.arch, t);
}

const Family rows[] = {{.name = "conv",
                        .refuse = refuse,
                        .layout = layout,
                        .tactics = tactics,
                        .emit = emit,
                        .strided_results = true,
                        .takes_groups = true,
                        .variants = contraction_variants},
                       {.name = "depthwise_product",
                        .refuse = refuse_depthwise_product,
                        .layout = depthwise_product_layout,
                        .tactics = depthwise_product_tactics,
                        .emit = emit_depthwise_product,
                        .strided_results = true,
                        .takes_groups = true},
                       {.name = "mapped_conv",
                        .refuse = refuse_mapped_conv,
                        .layout = mapped_conv_layout,
                        .tactics = mapped_conv_tactics,
                        .emit = emit_mapped_conv,
                        .strided_results = true,
                        .takes_groups = true}};

} // namespace

extern const FamilyTable conv_families;
const FamilyTable conv_families = rows;

} // namespace ingot::kernels
