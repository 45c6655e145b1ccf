// SPDX-License-Identifier: Apache-2.0
#include "kernels/conv/mapped_rows.h"

#include "kernels/common/expr_text.h"
#include "kernels/contraction/store_text.h"
#include "ops/ops.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ingot::kernels {

namespace {

constexpr int warp_size = 32;
constexpr int warp_rows = 16;    // of a matrix instruction
constexpr int warp_columns = 16; // that a warp reads at once
/// That the map reads, by channel.
constexpr size_t most_operands = 4;

} // namespace

RowWarps::RowWarps(const RowTile& t, int threads) {
    int warps = threads / warp_size;
    m = std::max(1, t.bm / warp_rows);
    n = std::min(t.bn / warp_columns, warps / m);
    k = warps / (m * n);
}

std::vector<RowTile> suited_tiles(std::vector<RowTile> tiles, int threads, int64_t results,
                                  bool invariant) {
    std::erase_if(tiles, [results](const RowTile& t) { return t.bn > 64 && results <= 64; });
    if (invariant && !tiles.empty()) {
        // Two sums if a tile has them, then as few as possible; many tiles have two.
        auto rank = [threads](const RowTile& t) {
            int sums = RowWarps(t, threads).sums(t);
            return sums == 1 ? std::numeric_limits<int>::max() : sums;
        };
        int best = std::numeric_limits<int>::max();
        for (const RowTile& t : tiles) {
            best = std::min(best, rank(t));
        }
        std::erase_if(tiles, [&](const RowTile& t) { return rank(t) != best; });
    }
    return tiles;
}

// --- groups

std::optional<std::string> refuse_pictures(const Type& x, const Dims& made, int64_t most) {
    if (x.rank() != 4 || !narrow_result(x.dtype)) {
        return "no pictures of 16-bit floats";
    }
    int64_t elements = 1;
    for (const Dim& d : made) {
        elements *= std::min(d.as_const().value_or(1), most);
        if (elements > most) {
            return "many elements before the pointwise convolution";
        }
    }
    return std::nullopt;
}

namespace {

/// Whether an operand of a map of pictures differs by channel alone.
bool is_by_channel(const Type& t) {
    constexpr int rank = 4;
    for (int i = 0; i < t.rank(); ++i) {
        if (i + rank - t.rank() != 1 && !t.dims[static_cast<size_t>(i)].is_const(1)) {
            return false;
        }
    }
    return is_float(t.dtype) && bit_width(t.dtype) <= 32 && bit_width(t.dtype) >= 16;
}

bool is_pointwise(const Graph& g, const Node& n) {
    const Dims& w = g.type(n.inputs[1]).dims;
    const auto& a = n.as<ops::Conv>();
    bool one = a.groups == 1;
    for (size_t i = 0; i < a.strides.size(); ++i) {
        one = one && w[i + 2].is_const(1) && a.strides[i] == 1 && a.low[i].is_const(0) &&
              a.high[i].is_const(0);
    }
    return one;
}

} // namespace

std::optional<std::string> refuse_channel_map(const Graph& g, const Node& map, Value main) {
    if (!map.is(map_def) || map.inputs.size() > most_operands + 1) {
        return "no map of few operands before the pointwise convolution";
    }
    bool by_channel = std::all_of(map.inputs.begin(), map.inputs.end(),
                                  [&](Value v) { return v == main || is_by_channel(g.type(v)); });
    return by_channel ? std::nullopt
                      : std::optional<std::string>("an operand of the map differs by position");
}

namespace {

/// Whether a result of the nodes before `at` is read by more than the first operand of that one: it
/// is nowhere in memory.
bool is_read_again(const Group& group, size_t at) {
    for (size_t i = at; i < group.nodes.size(); ++i) {
        for (size_t k = i == at ? 1 : 0; k < group.nodes[i].inputs.size(); ++k) {
            for (size_t before = 0; before < at; ++before) {
                if (group.nodes[before].outputs[0] == group.nodes[i].inputs[k]) {
                    return true;
                }
            }
        }
    }
    return false;
}

} // namespace

std::optional<std::string> refuse_pointwise(const Group& group, size_t at, int64_t most) {
    const Graph& g = group.graph;
    const Node& n = group.nodes[at];
    Value made = group.nodes[at - 1].outputs[0];
    if (!n.is(ops::conv_def) || n.inputs[0] != made || n.inputs[1] == made) {
        return "no convolution behind that reads it";
    }
    const Type& w = g.type(n.inputs[1]);
    std::optional<int64_t> results = w.dims[0].as_const();
    if (!is_pointwise(g, n) || w.dtype != g.type(made).dtype || !results || *results > most) {
        return "no pointwise convolution of few results behind";
    }
    if (is_read_again(group, at)) {
        return "another reader of what comes before the pointwise convolution";
    }
    Group rest{g, group.nodes.subspan(at), group.inputs, group.outputs};
    return refuse_contraction(rest);
}

bool has_row_vectors(const View& x) {
    bool whole = x.strides[1] == 1 && x.offset % row_vector == 0;
    for (size_t i : {0, 2, 3}) {
        whole = whole && x.strides[i] % row_vector == 0;
    }
    return whole;
}

// --- problems

ConvShape shape_behind(const Problem& p, size_t at, const Operand& between) {
    std::vector<Value> inputs = {p.group.nodes[at - 1].outputs[0]};
    inputs.insert(inputs.end(), p.group.inputs.begin(), p.group.inputs.end());
    std::vector<Operand> in = {between};
    in.insert(in.end(), p.in.begin(), p.in.end());
    std::vector<const std::byte*> constants = {nullptr};
    constants.insert(constants.end(), p.constants.begin(), p.constants.end());
    Group behind{p.group.graph, p.group.nodes.subspan(at), inputs, p.group.outputs};
    return conv_shape({behind, p.symbols, in, p.out, constants, p.arch});
}

bool has_constants(const Epilogue& e, const Problem& p) {
    return std::all_of(e.operands.begin(), e.operands.end(), [&p](const Operand& o) {
        for (size_t i = 0; i < p.in.size(); ++i) {
            if (p.in[i].buffer == o.buffer && p.constants[i] == nullptr) {
                return false;
            }
        }
        return true;
    });
}

int64_t row_eights(int64_t channels) {
    return round_up(channels, row_step) / row_vector;
}

namespace {

/// Rows begin in different banks.
int64_t row_pitch(int64_t channels) {
    return row_eights(channels) * row_vector + row_vector;
}

} // namespace

int64_t row_bytes(int64_t channels, const RowTile& t, int threads) {
    int64_t sums = int64_t{4} * RowWarps(t, threads).k * t.bm * (t.bn + 8);
    return std::max(2 * row_pitch(channels) * (t.bm + t.bn), sums);
}

RowsArg rows_arg(const ConvShape& s, const RowTile& t, bool constant) {
    auto narrow_int = [](int64_t v) { return static_cast<int32_t>(v); };
    int64_t eights = row_eights(s.channels);
    RowsArg a;
    a.by_eights = static_cast<uint64_t>(div_up(int64_t{1} << 32, eights));
    a.weight_step = narrow_int(s.w.view.strides[0]);
    a.channels = narrow_int(s.channels);
    a.eights = narrow_int(eights);
    a.pitch = narrow_int(row_pitch(s.channels));
    a.blocks_n = narrow_int(div_up(s.results, t.bn));
    a.constant = constant ? 1 : 0;
    return a;
}

// --- launches

namespace {

/// The map: its parameters, how its operands are loaded, and its text.
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
        append(loads, str("LOAD_OPERAND(", i, ", mid", i, ", mid_step", i, ") "));
        append(call, str(", OPERAND(", i, ")"));
        append(takes, str(", float e", i));
        inputs.push_back(str("e", i));
    }
    ExprText t = expr_text(e.body, inputs, "v",
                           narrow_result(e.type) ? Functions::Fast : Functions::Precise);
    MiddleText m;
    m.defines = str("#define MIDDLE_PARAMS ", params, "\n#define MIDDLE_PASS ", pass,
                    "\n#define LOAD_MIDDLE ", loads, "\n#define MID_OF(sum) ", call,
                    ")\n#define OPERANDS ", e.operands.size(), "\n");
    m.function = str(device_files(t, others), "DEVICE float mid_of(", takes, ") {\n", t.statements,
                     "return (float)(", t.result, ");\n}\n");
    return m;
}

} // namespace

Launch rows_launch(const Epilogue& map, const Contraction& c, const RowTile& t, int threads) {
    StoreText text = store_text(c, vector_columns(c) ? 8 : 1);
    MiddleText middle = middle_text(map, text.functions);
    std::string_view suffix = c.a.dtype == DType::F16 ? "f16" : "bf16";
    Launch l;
    l.program.uses = {"types", "math"};
    l.program.defines =
        str("#define THREADS ", threads, "\n#define IN ", c_type(c.a.dtype),
            "\n#define MMA(c, a, b0, b1) mma_", suffix,
            "((float*)(c), a, b0, b1)\n#define PACK(x, y) pack_", suffix, "(x, y)\n#define BM ",
            t.bm, "\n#define BN ", t.bn, "\n#define EARLY 1\n", text.defines, middle.defines);
    l.program.body = str(device_file("contract"), text.functions, middle.function,
                         text.store_tile(), device_file("mapped_rows"));
    l.block = threads;
    l.grid = {div_up(c.m(), t.bm) * div_up(c.n(), t.bn), 1, 1};
    return l;
}

void add_row_operands(Args& args, const Epilogue& map, const Contraction& c) {
    for (const Operand& o : map.operands) {
        args.pointer(o).i32(o.view.strides[1]);
    }
    add_geometry(args, c);
    add_operands(args, c);
}

// --- costs

double row_cost_us(const RowWork& w, const Arch& arch) {
    double on_sm = std::ceil(static_cast<double>(w.blocks) / arch.sms);
    double resident =
        std::max(1.0, std::floor(std::min(static_cast<double>(arch.threads_per_sm) / w.threads / 2,
                                          static_cast<double>(arch.shared_per_sm) /
                                              static_cast<double>(w.shared + 1024))));
    double chain = std::ceil(on_sm / resident) * w.chain;
    double issue = on_sm * w.issue;
    constexpr double begin_clocks = 500; // later blocks of an SM start later
    double begins = begin_clocks * (std::min({on_sm, resident, 4.0}) - 1);
    double clocks = std::max(chain, issue) + 0.3 * issue + begins;
    double dram = w.bytes / (arch.dram_gbs * 0.8e3);
    return 0.7 + std::max(clocks / (arch.clock_ghz * 1e3), dram + 0.5);
}

double end_instructions(const Epilogue& e, const RowTile& t, int threads) {
    int parts = RowWarps(t, threads).k;
    return 60 + static_cast<double>(t.bm * t.bn) / threads *
                    (3 + parts + static_cast<double>(e.body.code.size()));
}

double bytes_of(const Operand& o) {
    return static_cast<double>(o.view.count()) * bit_width(o.dtype) / 8;
}

} // namespace ingot::kernels
