// SPDX-License-Identifier: Apache-2.0
// The host side of depthwise_product.cuh. A group is a depthwise convolution, a map of its result
// if there is one, a pointwise convolution of that, and a map again if there is one.
#include "base/error.h"
#include "kernels/conv/apart.h"
#include "kernels/conv/mapped_rows.h"
#include "kernels/conv/row_families.h"
#include "ops/ops.h"

#include <algorithm>
#include <cmath>

namespace ingot::kernels {

namespace {

constexpr int threads = 128;
/// More results are made of several blocks, each of which makes the channels anew.
constexpr int64_t most_results = 320;
/// Windows whose elements a thread has on the way at once, and channels in shared memory.
constexpr int64_t most_taps = 9;
constexpr int64_t most_channels = 512;
/// Elements between the convolutions. Where there are more, two launches are as fast or faster:
/// both fill the GPU. The images of a batch of unknown size count once here, and all where it is
/// known.
constexpr int64_t most_elements = int64_t{1} << 18;
/// Shared memory that a block has on every GPU from 8.0 on.
constexpr int64_t most_shared = int64_t{96} * 1024;

struct DepthwiseProduct : RowTile {
    static constexpr std::string_view pattern = "depthwise_product_{bm}x{bn}";
};
constexpr RowTile tiles[] = {{4, 64},  {4, 128}, {8, 64},   {8, 128}, {16, 64}, {16, 128},
                             {32, 32}, {32, 64}, {32, 128}, {64, 32}, {64, 64}};

/// `struct Pair` of depthwise_product.cuh.
struct PairArg {
    RowsArg rows;
    int64_t step_n = 0, step_h = 0;
    int32_t step_w = 0, tap_step = 0;
    int32_t in_h = 0, in_w = 0, out_h = 0, out_w = 0, stride_h = 0, stride_w = 0, dilation_h = 0,
            dilation_w = 0, low_h = 0, low_w = 0;
};

/// Where the second convolution stands among the group's nodes, if it is such a group.
std::optional<size_t> second_conv(const Group& group) {
    for (size_t i = 1; i < std::min<size_t>(group.nodes.size(), 3); ++i) {
        if (group.nodes[i].is(ops::conv_def)) {
            return i;
        }
    }
    return std::nullopt;
}

std::optional<std::string> refuse_first(const Group& group, size_t second) {
    const Graph& g = group.graph;
    const Node& n = group.first();
    const Type& x = g.type(n.inputs[0]);
    const Dims& w = g.type(n.inputs[1]).dims;
    int64_t groups = n.as<ops::Conv>().groups;
    if (std::optional<std::string> why =
            refuse_pictures(x, g.type(n.outputs[0]).dims, most_elements)) {
        return why;
    }
    if (!x.dims[1].is_const(groups) || !w[0].is_const(groups) || groups % row_vector != 0 ||
        groups > most_channels) {
        return "no depthwise convolution of whole vectors of channels";
    }
    std::optional<int64_t> height = w[2].as_const();
    std::optional<int64_t> width = w[3].as_const();
    if (!height || !width || *height * *width > most_taps) {
        return "a large window";
    }
    Value made = n.outputs[0];
    if (second == 2) {
        const Node& map = group.nodes[1];
        if (std::optional<std::string> why = refuse_channel_map(g, map, made)) {
            return why;
        }
        made = map.outputs[0];
    }
    const Type& middle = g.type(made);
    bool same = middle.dtype == x.dtype && g.type(n.inputs[1]).dtype == x.dtype &&
                middle.dims == g.type(n.outputs[0]).dims;
    return same ? std::nullopt : std::optional<std::string>("other types between");
}

} // namespace

std::optional<std::string> refuse_depthwise_product(const Group& group) {
    std::optional<size_t> second =
        group.first().is(ops::conv_def) ? second_conv(group) : std::nullopt;
    if (!second) {
        return "no two convolutions";
    }
    if (std::optional<std::string> why = refuse_first(group, *second)) {
        return why;
    }
    return refuse_pointwise(group, *second, most_results);
}

void depthwise_product_layout(LayoutArgs& args) {
    auto index = [&args](Value v) { return static_cast<size_t>(args.group.input_index(v)); };
    const Node& first = args.group.first();
    const Node& second = args.group.nodes[*second_conv(args.group)];
    size_t x = index(first.inputs[0]);
    if (!has_row_vectors(args.in[x])) {
        args.want[x] = plan::channels_last(4);
    }
    args.want[index(first.inputs[1])] = Order{2, 3, 1, 0};
    args.want[index(second.inputs[1])] = plan::channels_last(4);
    args.order[0] = plan::channels_last(4);
}

namespace {

/// Both convolutions as problems of their own, between which lies a tensor that nobody writes.
struct Both {
    ConvShape first, second;
    Contraction product;
    bool constant = true; // weights, and the operands between
};

Both both_of(const Problem& p) {
    size_t at = *second_conv(p.group);
    const Graph& g = p.group.graph;
    Value between = p.group.nodes[at - 1].outputs[0];
    Operand made;
    made.dtype = g.type(between).dtype;
    made.buffer = missing_operand;
    made.view = plan::dense(eval(g.type(between).dims, p.symbols), plan::channels_last(4));
    Group before{g, p.group.nodes.first(at), p.group.inputs, std::span(&between, 1)};
    Both b;
    b.first = conv_shape({before, p.symbols, p.in, std::span(&made, 1), p.constants, p.arch});
    b.second = shape_behind(p, at, made);
    b.product = pointwise_contraction(b.second);
    b.constant = b.first.w_constant && b.second.w_constant && has_constants(b.first.epilogue, p);
    return b;
}

int64_t shared_bytes(const Both& b, const RowTile& t) {
    int64_t operands = static_cast<int64_t>(b.first.epilogue.operands.size());
    int64_t kept = b.first.channels * (2 * b.first.taps() + 4 * operands) + int64_t{16} * t.bm;
    return kept + row_bytes(b.first.channels, t, threads);
}

double cost_us(const Both& b, const RowTile& t, const Arch& arch) {
    auto eights = static_cast<double>(row_eights(b.first.channels));
    // Instructions of a thread: windows, the map behind them, products, the end.
    double share = t.bm * eights / threads; // of a thread, in windows
    double rows = std::ceil(share);
    double middle = 30.0 * static_cast<double>(b.first.taps()) + 60 +
                    8 * static_cast<double>(b.first.epilogue.body.code.size());
    double products = eights / 2 * (8 + t.bm * t.bn / 512.0 * 3);
    double loads = t.bn * eights / threads * 12;
    double others = 200 + products + end_instructions(b.second.epilogue, t, threads) + loads;
    constexpr double wait_clocks = 1500; // for arguments, weights and the first windows
    RowWork w;
    w.blocks = div_up(b.product.m(), t.bm) * div_up(b.product.n(), t.bn);
    w.shared = shared_bytes(b, t);
    w.threads = threads;
    w.chain = wait_clocks + 350 * (rows - 1) + 1.5 * (others + rows * middle);
    w.issue = (others + share * middle) * 1.3; // four warps on four schedulers
    w.bytes = bytes_of(b.first.x) + bytes_of(b.second.out);
    return row_cost_us(w, arch);
}

} // namespace

std::vector<Tactic> depthwise_product_tactics(const Problem& p) {
    Both b = both_of(p);
    return with_apart(row_tactics<DepthwiseProduct>(
                          tiles, threads, b.second.results, p.batch_invariant, most_shared,
                          [&b](const RowTile& t) { return shared_bytes(b, t); },
                          [&](const RowTile& t) { return cost_us(b, t, p.arch); }),
                      p, *second_conv(p.group), most_elements);
}

namespace {

PairArg pair_arg(const Both& b, const RowTile& t) {
    const WindowArg& w = b.first.window;
    auto narrow_int = [](int64_t v) { return static_cast<int32_t>(v); };
    PairArg a;
    a.rows = rows_arg(b.second, t, b.constant);
    a.step_n = w.step_n;
    a.step_h = w.step[1];
    a.step_w = narrow_int(w.step[2]);
    a.tap_step = narrow_int(b.first.tap_step);
    a.in_h = narrow_int(w.in[1]);
    a.in_w = narrow_int(w.in[2]);
    a.out_h = narrow_int(w.out[1]);
    a.out_w = narrow_int(w.out[2]);
    a.stride_h = narrow_int(w.stride[1]);
    a.stride_w = narrow_int(w.stride[2]);
    a.dilation_h = narrow_int(w.dilation[1]);
    a.dilation_w = narrow_int(w.dilation[2]);
    a.low_h = narrow_int(w.low[1]);
    a.low_w = narrow_int(w.low[2]);
    return a;
}

} // namespace

Emitted emit_depthwise_product(const Problem& p, const Tactic& tactic) {
    if (is_apart(tactic)) {
        return emit_apart(p, *second_conv(p.group), tactic);
    }
    const auto& t = *tactic.as<DepthwiseProduct>();
    Both b = both_of(p);
    if (b.second.out.view.count() == 0) {
        return {};
    }
    Launch l = rows_launch(b.first.epilogue, b.product, t, threads);
    append(l.program.defines, str("#define KH ", b.first.window.kernel[1], "\n#define KW ",
                                  b.first.window.kernel[2], "\n"));
    l.program.family = "depthwise_product";
    l.entry = "depthwise_product";
    l.shared = shared_bytes(b, t);
    l.args.pointer(b.first.x).pointer(b.first.w).pointer(b.second.w).pointer(b.second.out);
    l.args.value(pair_arg(b, t));
    add_row_operands(l.args, b.first.epilogue, b.product);
    Emitted e;
    e.launches.push_back(std::move(l));
    return e;
}

} // namespace ingot::kernels
