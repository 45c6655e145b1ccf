// SPDX-License-Identifier: Apache-2.0
// The host side of depthwise_product.cuh. A group is a depthwise convolution, a map of its result
// if there is one, a pointwise convolution of that, and a map again if there is one.
#include "kernels/conv/depthwise_product.h"

#include "base/error.h"
#include "kernels/common/expr_text.h"
#include "kernels/contraction/cost.h"
#include "kernels/conv/algorithms.h"
#include "ops/ops.h"

#include <algorithm>
#include <cmath>

namespace ingot::kernels {

namespace {

constexpr int64_t vector = 8; // channels of an aligned access
constexpr int threads = 128;
/// More results are made of several blocks, each of which makes the channels anew.
constexpr int64_t most_results = 320;
/// Windows whose elements a thread has on the way at once, and channels in shared memory.
constexpr int64_t most_taps = 9;
constexpr int64_t most_channels = 512;
/// Elements between the convolutions, the images of a batch of unknown size counted once. Where
/// there are more, two launches are as fast or faster: both fill the GPU.
constexpr int64_t most_elements = int64_t{1} << 18;
/// That the map between reads, by channel.
constexpr size_t most_operands = 4;

/// Shared memory that a block has on every GPU from 8.0 on.
constexpr int64_t most_shared = int64_t{96} * 1024;

/// The parameters: a block makes bm positions x bn columns.
struct DepthwiseProduct {
    static constexpr std::string_view pattern = "depthwise_product_{bm}x{bn}";
    int bm = 16, bn = 64;
    template <class Self, class F>
    static void fields(Self& self, F&& field) {
        field("bm", self.bm);
        field("bn", self.bn);
    }
};
constexpr DepthwiseProduct tiles[] = {{4, 64},  {4, 128}, {8, 64},   {8, 128}, {16, 64}, {16, 128},
                                      {32, 32}, {32, 64}, {32, 128}, {64, 32}, {64, 64}};

/// `struct Pair` of depthwise_product.cuh.
struct PairArg {
    uint64_t by_eights = 0;
    int64_t step_n = 0, step_h = 0;
    int32_t step_w = 0, tap_step = 0, weight_step = 0;
    int32_t in_h = 0, in_w = 0, out_h = 0, out_w = 0, stride_h = 0, stride_w = 0, dilation_h = 0,
            dilation_w = 0, low_h = 0, low_w = 0;
    int32_t channels = 0, eights = 0, pitch = 0;
    int32_t blocks_n = 0, constant = 0;
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

bool is_pointwise(const Group& group, const Node& n) {
    const Dims& w = group.graph.type(n.inputs[1]).dims;
    const auto& a = n.as<ops::Conv>();
    bool one = a.groups == 1;
    for (size_t i = 0; i < a.strides.size(); ++i) {
        one = one && w[i + 2].is_const(1) && a.strides[i] == 1 && a.low[i].is_const(0) &&
              a.high[i].is_const(0);
    }
    return one;
}

/// Whether an operand of the first map differs by channel alone.
bool is_by_channel(const Dims& dims, int rank) {
    for (int i = 0; i < static_cast<int>(dims.size()); ++i) {
        int axis = i + rank - static_cast<int>(dims.size());
        if (axis != 1 && !dims[static_cast<size_t>(i)].is_const(1)) {
            return false;
        }
    }
    return true;
}

std::optional<std::string> refuse_first(const Group& group, size_t second) {
    const Graph& g = group.graph;
    const Node& n = group.first();
    const Type& x = g.type(n.inputs[0]);
    const Dims& w = g.type(n.inputs[1]).dims;
    int64_t groups = n.as<ops::Conv>().groups;
    if (x.rank() != 4 || !narrow_result(x.dtype)) {
        return "no pictures of 16-bit floats";
    }
    if (!x.dims[1].is_const(groups) || !w[0].is_const(groups) || groups % vector != 0 ||
        groups > most_channels) {
        return "no depthwise convolution of whole vectors of channels";
    }
    std::optional<int64_t> height = w[2].as_const();
    std::optional<int64_t> width = w[3].as_const();
    if (!height || !width || *height * *width > most_taps) {
        return "a large window";
    }
    int64_t elements = 1;
    for (const Dim& d : g.type(n.outputs[0]).dims) {
        elements *= std::min(d.as_const().value_or(1), most_elements);
        if (elements > most_elements) {
            return "many elements between the convolutions";
        }
    }
    Value made = n.outputs[0];
    if (second == 2) {
        const Node& map = group.nodes[1];
        if (!map.is(map_def) || map.inputs.size() > most_operands + 1) {
            return "no map of few operands between the convolutions";
        }
        for (Value v : map.inputs) {
            const Type& t = g.type(v);
            bool by_channel = is_float(t.dtype) && bit_width(t.dtype) <= 32 &&
                              bit_width(t.dtype) >= 16 && is_by_channel(t.dims, x.rank());
            if (v != made && !by_channel) {
                return "an operand between the convolutions that differs by position";
            }
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
    const Graph& g = group.graph;
    const Node& n = group.nodes[*second];
    const Type& w = g.type(n.inputs[1]);
    std::optional<int64_t> results = w.dims[0].as_const();
    bool reads = n.inputs[0] == group.nodes[*second - 1].outputs[0] && n.inputs[1] != n.inputs[0];
    if (!reads || !is_pointwise(group, n) || w.dtype != g.type(n.inputs[0]).dtype || !results ||
        *results > most_results) {
        return "no pointwise convolution of few results behind";
    }
    Group rest{g, group.nodes.subspan(*second), group.inputs, group.outputs};
    return refuse_contraction(rest);
}

namespace {

bool has_vectors(const View& x) {
    bool whole = x.strides[1] == 1 && x.offset % vector == 0;
    for (size_t i : {0, 2, 3}) {
        whole = whole && x.strides[i] % vector == 0;
    }
    return whole;
}

} // namespace

void depthwise_product_layout(LayoutArgs& args) {
    auto index = [&args](Value v) { return static_cast<size_t>(args.group.input_index(v)); };
    const Node& first = args.group.first();
    const Node& second = args.group.nodes[*second_conv(args.group)];
    size_t x = index(first.inputs[0]);
    if (!has_vectors(args.in[x])) {
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
    Value between = p.group.nodes[at - 1].outputs[0];
    std::vector<Value> inputs = {between};
    inputs.insert(inputs.end(), p.group.inputs.begin(), p.group.inputs.end());
    Operand made;
    made.dtype = p.group.graph.type(between).dtype;
    made.buffer = missing_operand;
    made.view =
        plan::dense(eval(p.group.graph.type(between).dims, p.symbols), plan::channels_last(4));
    std::vector<Operand> in = {made};
    in.insert(in.end(), p.in.begin(), p.in.end());
    std::vector<const std::byte*> constants = {nullptr};
    constants.insert(constants.end(), p.constants.begin(), p.constants.end());
    Group before{p.group.graph, p.group.nodes.first(at), p.group.inputs,
                 std::span(inputs).first(1)};
    Group behind{p.group.graph, p.group.nodes.subspan(at), inputs, p.group.outputs};
    Problem one{before, p.symbols, p.in, std::span(in).first(1), p.constants, p.arch};
    Problem other{behind, p.symbols, in, p.out, constants, p.arch};
    Both b;
    b.first = conv_shape(one);
    b.second = conv_shape(other);
    b.product = pointwise_contraction(b.second);
    b.constant = b.first.w_constant && b.second.w_constant;
    for (const Operand& o : b.first.epilogue.operands) {
        for (size_t i = 0; i < p.in.size(); ++i) {
            b.constant = b.constant && (p.in[i].buffer != o.buffer || p.constants[i] != nullptr);
        }
    }
    return b;
}

int64_t eights_of(const Both& b) {
    return round_up(b.first.channels, 2 * vector) / vector;
}

int64_t shared_bytes(const Both& b, const DepthwiseProduct& t) {
    int64_t operands = static_cast<int64_t>(b.first.epilogue.operands.size());
    int64_t kept = b.first.channels * (2 * b.first.taps() + 4 * operands) + int64_t{16} * t.bm;
    int64_t pitch = eights_of(b) * vector + vector;
    return kept + std::max(2 * pitch * (t.bm + t.bn), int64_t{4} * t.bm * (t.bn + 8));
}

double cost_us(const Both& b, const DepthwiseProduct& t, const Arch& arch) {
    auto steps = static_cast<double>(eights_of(b)) / 2;
    int64_t blocks = div_up(b.product.m(), t.bm) * div_up(b.product.n(), t.bn);
    double on_sm = std::ceil(static_cast<double>(blocks) / arch.sms);
    double resident = std::floor(std::min(static_cast<double>(arch.threads_per_sm) / threads / 2,
                                          static_cast<double>(arch.shared_per_sm) /
                                              static_cast<double>(shared_bytes(b, t) + 1024)));
    // Instructions of a thread: windows, the map behind them, products, the end.
    double share = static_cast<double>(t.bm * eights_of(b)) / threads; // of a thread, in windows
    double rows = std::ceil(share);
    double middle = 30.0 * static_cast<double>(b.first.taps()) + 60 +
                    8 * static_cast<double>(b.first.epilogue.body.code.size());
    double products = steps * (8 + t.bm * t.bn / 512.0 * 3);
    double end =
        60 + t.bm * t.bn / 128.0 * (4 + static_cast<double>(b.second.epilogue.body.code.size()));
    double loads = static_cast<double>(t.bn * eights_of(b)) / threads * 12;
    double others = 200 + products + end + loads;
    constexpr double wait_clocks = 1500; // for arguments, weights and the first windows
    double rounds = std::ceil(on_sm / std::max(1.0, resident));
    double chain = rounds * (wait_clocks + 350 * (rows - 1) + 1.5 * (others + rows * middle));
    double issue = on_sm * (others + share * middle) * 1.3; // four warps on four schedulers
    constexpr double begin_clocks = 500;                    // later blocks of an SM start later
    double begins = begin_clocks * (std::min({on_sm, std::max(1.0, resident), 4.0}) - 1);
    auto bytes = [](const Operand& o) {
        return static_cast<double>(o.view.count()) * bit_width(o.dtype) / 8;
    };
    double dram = (bytes(b.first.x) + bytes(b.second.out)) / (arch.dram_gbs * 0.8e3);
    double clocks = std::max(chain, issue) + 0.3 * issue + begins;
    return 0.7 + std::max(clocks / (arch.clock_ghz * 1e3), dram + 0.5);
}

} // namespace

std::vector<Tactic> depthwise_product_tactics(const Problem& p) {
    Both b = both_of(p);
    std::vector<Tactic> all;
    for (const DepthwiseProduct& t : tiles) {
        bool wide = t.bn > 64 && b.second.results <= 64;
        if (shared_bytes(b, t) <= most_shared && !wide) {
            all.push_back(make_tactic(t, cost_us(b, t, p.arch)));
        }
    }
    std::stable_sort(all.begin(), all.end(), cheaper);
    if (p.batch_invariant && !all.empty()) {
        all.resize(1); // every tile adds up in the same order
    }
    return all;
}

namespace {

PairArg pair_arg(const Both& b, const DepthwiseProduct& t) {
    const WindowArg& w = b.first.window;
    auto narrow_int = [](int64_t v) { return static_cast<int32_t>(v); };
    PairArg a;
    int64_t eights = eights_of(b);
    a.by_eights = static_cast<uint64_t>(div_up(int64_t{1} << 32, eights));
    a.step_n = w.step_n;
    a.step_h = w.step[1];
    a.step_w = narrow_int(w.step[2]);
    a.tap_step = narrow_int(b.first.tap_step);
    a.weight_step = narrow_int(b.second.w.view.strides[0]);
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
    a.channels = narrow_int(b.first.channels);
    a.eights = narrow_int(eights);
    a.pitch = narrow_int(eights * vector + vector);
    a.blocks_n = narrow_int(div_up(b.product.n(), t.bn));
    a.constant = b.constant ? 1 : 0;
    return a;
}

/// The map between the convolutions: its parameters, how its operands are loaded, and its text.
struct MiddleText {
    std::string defines, function;
};

MiddleText middle_text(const Epilogue& e, std::string_view others) {
    std::string params;
    std::string pass;
    std::string loads;
    std::string call = "mid_of(sum";
    std::string takes = "float a";
    std::vector<std::string> inputs = {"a"};
    for (size_t i = 0; i < e.operands.size(); ++i) {
        std::string_view type = c_type(e.operands[i].dtype);
        append(params, str(", const ", type, "* __restrict__ mid", i, ", i32 mid_step", i));
        append(pass, str(", mid", i, ", mid_step", i));
        append(loads, str("kept.operands[", i, " * d.channels + c] = widen(mid", i, "[c * mid_step",
                          i, "]);"));
        append(call, str(", e[", i, " * d.channels + i]"));
        append(takes, str(", float e", i));
        inputs.push_back(str("e", i));
    }
    ExprText t = expr_text(e.body, inputs, "v", narrow_result(e.type));
    std::string_view file = fast_math_file(t);
    MiddleText m;
    m.defines = str("#define MIDDLE_PARAMS ", params, "\n#define MIDDLE_PASS ", pass,
                    "\n#define LOAD_MIDDLE ", loads, "\n#define MID_OF(sum) ", call,
                    ")\n#define OPERANDS ", e.operands.size(), "\n");
    bool is_there = !file.empty() && others.find(file) != std::string_view::npos;
    m.function = str(is_there ? "" : file, "DEVICE float mid_of(", takes, ") {\n", t.statements,
                     "return (float)(", t.result, ");\n}\n");
    return m;
}

} // namespace

Emitted emit_depthwise_product(const Problem& p, const Tactic& tactic) {
    const auto& t = *tactic.as<DepthwiseProduct>();
    Both b = both_of(p);
    if (b.second.out.view.count() == 0) {
        return {};
    }
    const Contraction& c = b.product;
    StoreText text = store_text(c, vector_columns(c) ? 8 : 1);
    MiddleText middle = middle_text(b.first.epilogue, text.functions);
    Launch l;
    l.program.uses = {"types", "math"};
    l.program.defines =
        str("#define IN ", c_type(b.first.x.dtype), "\n#define MMA(c, a, b0, b1) ",
            b.first.x.dtype == DType::F16 ? "mma_f16" : "mma_bf16", "((float*)(c), a, b0, b1)\n",
            "#define BM ", t.bm, "\n#define BN ", t.bn, "\n#define KH ", b.first.window.kernel[1],
            "\n#define KW ", b.first.window.kernel[2], "\n#define EARLY 1\n", text.defines,
            middle.defines);
    l.program.body =
        str(device_file("contract"), text.functions, middle.function, text.store_tile());
    l.program.family = "depthwise_product";
    l.entry = "depthwise_product";
    l.block = threads;
    l.shared = shared_bytes(b, t);
    l.grid = {div_up(c.m(), t.bm) * div_up(c.n(), t.bn), 1, 1};
    l.args.pointer(b.first.x).pointer(b.first.w).pointer(b.second.w).pointer(b.second.out);
    l.args.value(pair_arg(b, t));
    for (const Operand& o : b.first.epilogue.operands) {
        l.args.pointer(o).i32(o.view.strides[1]);
    }
    add_geometry(l.args, c);
    add_operands(l.args, c);
    Emitted e;
    e.launches.push_back(std::move(l));
    return e;
}

} // namespace ingot::kernels
