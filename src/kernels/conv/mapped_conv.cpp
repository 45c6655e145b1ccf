// SPDX-License-Identifier: Apache-2.0
// The host side of mapped_conv.cuh. A group is a map of pictures, whose other operands differ by
// channel alone, a pointwise convolution of that, and a map again if there is one.
#include "kernels/common/expr_text.h"
#include "kernels/conv/apart.h"
#include "kernels/conv/mapped_rows.h"
#include "kernels/conv/row_families.h"
#include "ops/ops.h"

#include <algorithm>
#include <cmath>

namespace ingot::kernels {

namespace {

constexpr int threads = 256;
/// More results are made of several blocks, each of which maps the channels anew; where there are
/// many weights besides, such blocks have few positions, or take too long.
constexpr int64_t most_results = 512;
constexpr int64_t most_weights = int64_t{1} << 17;
/// A thread copies channels of one vector alone, and rows lie in shared memory whole.
constexpr int64_t most_channels = 1024;
/// Elements of the map. Where there are more, two launches are as fast or faster: both fill the
/// GPU. The images of a batch of unknown size count once here, and all where it is known.
constexpr int64_t most_elements = int64_t{1} << 18;

struct MappedConv : RowTile {
    static constexpr std::string_view pattern = "mapped_conv_{bm}x{bn}";
};
constexpr RowTile tiles[] = {{16, 32},  {8, 16},  {8, 32},  {8, 64},   {8, 128}, {16, 16}, {16, 64},
                             {16, 128}, {32, 32}, {32, 64}, {32, 128}, {64, 32}, {64, 64}};

/// The map's operand of its result's type: the pictures.
std::optional<Value> pictures_of(const Group& group) {
    const Node& map = group.first();
    const Graph& g = group.graph;
    for (Value v : map.inputs) {
        if (g.type(v) == g.type(map.outputs[0])) {
            return v;
        }
    }
    return std::nullopt;
}

} // namespace

std::optional<std::string> refuse_mapped_conv(const Group& group) {
    if (!group.first().is(map_def) || group.nodes.size() < 2) {
        return "no map before a convolution";
    }
    std::optional<Value> x = pictures_of(group);
    if (!x) {
        return "no operand of the map's type";
    }
    const Type& t = group.graph.type(*x);
    if (std::optional<std::string> why = refuse_pictures(t, t.dims, most_elements)) {
        return why;
    }
    std::optional<int64_t> channels = t.dims[1].as_const();
    if (!channels || *channels == 0 || *channels % row_vector != 0 || *channels > most_channels) {
        return "no whole vectors of few channels";
    }
    if (std::optional<std::string> why = refuse_channel_map(group.graph, group.first(), *x)) {
        return why;
    }
    return refuse_pointwise(group, 1, std::min(most_results, most_weights / *channels));
}

void mapped_conv_layout(LayoutArgs& args) {
    auto index = [&args](Value v) { return static_cast<size_t>(args.group.input_index(v)); };
    size_t x = index(*pictures_of(args.group));
    if (!has_row_vectors(args.in[x])) {
        args.want[x] = plan::channels_last(4);
    }
    args.want[index(args.group.nodes[1].inputs[1])] = plan::channels_last(4);
    args.order[0] = plan::channels_last(4);
}

namespace {

/// The convolution of x itself, and the map that comes between.
struct Mapped {
    ConvShape conv;
    Contraction product;
    Epilogue map;
    bool constant = false; // weights and the map's operands
};

/// The map as a function of x and its other operands, in this order.
Epilogue map_of(const Problem& p, Value x) {
    const Node& n = p.group.first();
    Epilogue e;
    e.type = p.operand(x).dtype;
    e.body = n.as<Map>().body;
    std::vector<int> inputs;
    for (Value v : n.inputs) {
        inputs.push_back(0);
        if (v != x) {
            Operand o = p.operand(v);
            o.view = plan::broadcasted(o.view, p.operand(x).view.shape);
            e.operands.push_back(std::move(o));
            inputs.back() = static_cast<int>(e.operands.size());
        }
    }
    for (ExprInstr& i : e.body.code) {
        if (i.op == ExprOp::In) {
            i.args[0] = inputs[static_cast<size_t>(i.args[0])];
        }
    }
    return e;
}

Mapped mapped_of(const Problem& p) {
    Value x = *pictures_of(p.group);
    Mapped m;
    m.conv = shape_behind(p, 1, p.operand(x));
    m.product = pointwise_contraction(m.conv);
    m.map = map_of(p, x);
    m.constant = m.conv.w_constant && has_constants(m.map, p);
    return m;
}

int64_t shared_bytes(const Mapped& m, const RowTile& t) {
    return int64_t{8} * t.bm + row_bytes(m.conv.channels, t, threads);
}

double cost_us(const Mapped& m, const RowTile& t, const Arch& arch) {
    auto eights = static_cast<double>(row_eights(m.conv.channels));
    RowWarps warps(t, threads);
    // Instructions of a thread: copies, the map, products, the end.
    double rows = std::ceil(t.bm / std::floor(threads / eights)); // of a thread, each a vector
    double share = t.bm * eights / threads;
    double middle = 40 + 8.0 * (2 + instructions_of(m.map.body, true));
    double products = eights / 2 / warps.k * (8 + t.bn / (4.0 * warps.n));
    double loads = t.bn * eights / threads * 12;
    double others = 250 + products + end_instructions(m.conv.epilogue, t, threads) + loads;
    // The SM's part of L2's bandwidth. Weights come while the launch before ends.
    constexpr double wait_clocks = 1500, bytes_per_clock = 32, hidden_clocks = 1500;
    double x_clocks = t.bm * eights * 16 / bytes_per_clock;
    double weight_clocks = t.bn * eights * 16 / bytes_per_clock;
    RowWork w;
    w.blocks = div_up(m.product.m(), t.bm) * div_up(m.product.n(), t.bn);
    w.shared = shared_bytes(m, t);
    w.threads = threads;
    w.chain = wait_clocks + x_clocks + std::max(0.0, weight_clocks - hidden_clocks) +
              1.5 * (others + rows * middle);
    // Eight warps on four schedulers.
    w.issue = std::max(2 * 1.3 * (others + share * middle), x_clocks + weight_clocks);
    w.bytes = bytes_of(m.conv.x) + bytes_of(m.conv.out);
    return row_cost_us(w, arch);
}

} // namespace

std::vector<Tactic> mapped_conv_tactics(const Problem& p) {
    Mapped m = mapped_of(p);
    return with_apart(row_tactics<MappedConv>(
                          tiles, threads, m.conv.results, p.batch_invariant,
                          p.arch.shared_per_block,
                          [&m](const RowTile& t) { return shared_bytes(m, t); },
                          [&](const RowTile& t) { return cost_us(m, t, p.arch); }),
                      p, 1, most_elements);
}

Emitted emit_mapped_conv(const Problem& p, const Tactic& tactic) {
    if (is_apart(tactic)) {
        return emit_apart(p, 1, tactic);
    }
    const auto& t = *tactic.as<MappedConv>();
    Mapped m = mapped_of(p);
    if (m.conv.out.view.count() == 0) {
        return {};
    }
    Launch l = rows_launch(m.map, m.product, t, threads);
    l.program.family = "mapped_conv";
    l.entry = "mapped_conv";
    l.shared = shared_bytes(m, t);
    l.args.pointer(m.conv.x)
        .pointer(m.conv.w)
        .pointer(m.conv.out)
        .value(rows_arg(m.conv, t, m.constant));
    add_row_operands(l.args, m.map, m.product);
    Emitted e;
    e.launches.push_back(std::move(l));
    return e;
}

} // namespace ingot::kernels
