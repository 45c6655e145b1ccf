// SPDX-License-Identifier: Apache-2.0
// Family recurrence: all steps of a recurrent layer in one launch. Clusters share the hidden
// elements of a few sequences of a direction; rows of the recurrent weights stay in registers where
// they fit.
#include "ops/recurrence.h"

#include "base/error.h"
#include "kernels/common/expr_text.h"
#include "kernels/reduce/reduce_rows.h"

#include <algorithm>
#include <array>

namespace ingot::kernels {

namespace {

// Above it a step reads most weights from L2, which a product over all SMs does as fast.
constexpr int64_t most_hidden = 512;
constexpr int64_t most_tiles = 4; // of a warp at once, times `columns`: the text grows with them
constexpr int64_t columns_of_a_tile = 8;

/// `struct Recurrent` of recurrence.cuh.
struct RecurrentArg {
    int32_t steps, batch, hidden, directions, groups, reversed, early;
};

struct Layer {
    ops::Recurrence a;
    Operand x, r, h, c, reset_bias, peepholes, lengths;
    DType t = DType::F32;
    int64_t steps = 0, batch = 0, hidden = 0;
    bool exact = false; // f32 as it is
    bool constant_weights = false;

    int64_t tiles() const { return div_up(hidden, 4); }
    int64_t bytes() const { return bytes_of(t); }
    int64_t chunks() const { return div_up(hidden * bytes(), 64); }
    /// Bytes of an access to a row of r.
    int64_t vector() const {
        auto divides = [this](int64_t n) {
            return hidden * bytes() % n == 0 && r.view.offset * bytes() % n == 0;
        };
        return divides(16) ? 16 : divides(4) ? 4 : bytes();
    }
};

Layer layer_of(const Problem& p) {
    const Node& n = p.group.first();
    Layer l;
    l.a = n.as<ops::Recurrence>();
    ops::RecurrenceInputs in = ops::recurrence_inputs(l.a, n.inputs);
    auto operand = [&p](Value v) { return v.valid() ? p.operand(v) : Operand{}; };
    l.x = operand(in.x);
    l.r = operand(in.r);
    l.h = operand(in.h);
    l.c = operand(in.c);
    l.reset_bias = operand(in.reset_bias);
    l.peepholes = operand(in.peepholes);
    l.lengths = operand(in.lengths);
    l.t = l.x.dtype;
    l.steps = l.x.view.shape[0];
    l.batch = l.x.view.shape[1];
    l.hidden = l.h.view.shape[2];
    l.exact = l.t == DType::F32 && !p.tf32;
    l.constant_weights = p.constants[static_cast<size_t>(p.group.input_index(in.r))] != nullptr;
    return l;
}

/// A cluster of `blocks` blocks of `warps` warps has 8 * `columns` sequences.
struct Cells {
    static constexpr std::string_view pattern = "cluster{blocks}_w{warps}_n{columns}";
    int blocks = 1, warps = 4, columns = 1;
    template <class Self, class F>
    static void fields(Self& self, F&& field) {
        field("blocks", self.blocks);
        field("warps", self.warps);
        field("columns", self.columns);
    }
};

/// What follows from the parameters.
struct Split {
    int64_t tiles = 1; // of a warp
    int64_t rounds = 1;
    int64_t held = 0; // chunks of a tile's rows in registers
    int64_t groups = 1;
    int64_t pitch = 64, shared = 0;
};

Split split_of(const Layer& l, const Cells& c) {
    Split s;
    // Of a thread's registers: sums, inputs of two steps and states of a tile, weights, and what
    // ptxas takes beside them.
    constexpr int64_t registers_of_an_sm = 65536;
    int64_t all = std::min<int64_t>(registers_of_an_sm / (int64_t{32} * c.warps), 255);
    int64_t of_a_tile = (8 + 2 * l.a.gates() + 2) * c.columns;
    int64_t free = all - (l.exact ? 88 : 64);
    int64_t warps = int64_t{c.blocks} * c.warps;
    int64_t few = std::max<int64_t>(1, most_tiles / c.columns / (l.exact ? 2 : 1));
    int64_t most = std::clamp<int64_t>(free / of_a_tile, 1, few);
    s.tiles = std::min(div_up(l.tiles(), warps), most);
    s.rounds = div_up(l.tiles(), warps * s.tiles);
    s.groups = div_up(l.batch, columns_of_a_tile * c.columns);
    s.pitch = (l.chunks() * 64) | 64;
    int64_t columns = columns_of_a_tile * c.columns;
    s.shared = 2 * columns * s.pitch + 16;
    if (s.rounds > 1) {
        s.shared += round_up(l.hidden, 4) * columns * 8;
    } else if (l.vector() >= 4) { // others would need too much text
        constexpr int64_t registers_of_a_chunk = 8;
        int64_t left = (free - s.tiles * of_a_tile) / (registers_of_a_chunk * s.tiles);
        s.held = std::clamp<int64_t>(left, 0, l.chunks());
    }
    return s;
}

double cost_us(const Layer& l, const Cells& c, const Arch& arch) {
    Split s = split_of(l, c);
    double clocks_per_us = arch.clock_ghz * 1000;
    // A step: waiting for states, the chain of sums, functions, storing states.
    double step = c.blocks > 1 ? 1100 : 450;
    double products = static_cast<double>(s.tiles * s.rounds * c.columns * l.chunks() * 2 *
                                          (l.exact ? 4 : 1) * div_up(c.warps, 4));
    constexpr double clocks_of_a_product = 12; // of a quarter of an SM
    double read = static_cast<double>((l.chunks() - s.held) * s.tiles * s.rounds * c.warps * 1024);
    constexpr double bytes_per_clock = 50; // of L1 and L2
    step += products * clocks_of_a_product + read / bytes_per_clock;
    step += static_cast<double>(s.tiles * s.rounds * c.columns - 1) * 60; // functions
    int64_t blocks = l.a.directions() * s.groups * c.blocks;
    auto waves = static_cast<double>(div_up(blocks, arch.sms));
    double held = static_cast<double>(s.held * s.tiles * c.warps * 1024) / bytes_per_clock;
    return 3 + waves * (held + static_cast<double>(l.steps) * step) / clocks_per_us;
}

std::vector<Tactic> tactics(const Problem& p) {
    Layer l = layer_of(p);
    std::vector<Tactic> list;
    for (int blocks = 1; blocks <= (p.arch.has_cluster() ? 8 : 1); blocks *= 2) {
        for (int warps : {4, 8, 16}) {
            // Each block has a tile: what it expects arrives from all.
            int64_t tiles = split_of(l, {blocks, warps, 1}).tiles;
            bool all_busy = l.tiles() > (int64_t{blocks} * warps - warps) * tiles;
            if (!all_busy) {
                continue;
            }
            for (int columns : {1, 2}) {
                if (columns == 1 || l.batch > columns_of_a_tile) {
                    Cells c{blocks, warps, columns};
                    list.push_back(make_tactic(c, cost_us(l, c, p.arch)));
                }
            }
        }
    }
    std::stable_sort(list.begin(), list.end(), cheaper);
    return list;
}

/// The functions of the layer, and the device files that they call.
std::string functions(const Layer& l) {
    std::string files;
    std::string text;
    Functions kind = l.exact ? Functions::Precise : Functions::Fast;
    for (const auto& [name, body] : {std::pair("gate_of", &l.a.gate),
                                     {"candidate_of", &l.a.candidate},
                                     {"output_of", &l.a.output}}) {
        std::array in{std::string("x")};
        ExprText t = expr_text(*body, in, "v", kind);
        files += device_files(t, files);
        text += str("DEVICE float ", name, "(float x) {\n", t.statements, "return ", t.result,
                    ";\n}\n");
    }
    return files + text;
}

Launch launch_of(const Problem& p, const Layer& l, const Cells& c) {
    Split s = split_of(l, c);
    const auto& a = l.a;
    int kind = l.exact ? 2 : l.t == DType::F32 ? 1 : 0;
    Defines d;
    d.add("T", c_type(l.t)).add("KIND", kind).add("IS_BF16", l.t == DType::BF16 ? 1 : 0);
    d.add("CELL", a.cell == "lstm" ? 2 : a.cell == "gru" ? 1 : 0);
    d.add("CHUNKS", l.chunks()).add("HELD", s.held).add("TILES", s.tiles);
    d.add("ROUNDS", s.rounds).add("COLUMNS", c.columns).add("BLOCKS", c.blocks);
    d.add("THREADS", c.warps * 32).add("VECTOR", l.vector());
    d.add("LENGTHS", a.lengths ? 1 : 0).add("PEEPHOLES", a.peepholes ? 1 : 0);
    d.add("INPUT_FORGET", a.input_forget ? 1 : 0);
    Launch out;
    out.program = {{"types", "math"}, d.text(), "recurrence", functions(l)};
    out.entry = "recurrence";
    out.block = c.warps * 32;
    out.grid[0] = a.directions() * s.groups * c.blocks;
    out.cluster = c.blocks;
    out.shared = s.shared;
    auto optional = [&out](bool given, const Operand& o) {
        given ? out.args.pointer(o) : out.args.null();
    };
    out.args.pointer(l.x).pointer(l.r).pointer(l.h);
    optional(a.has_cell_state(), l.c);
    optional(a.reset_after, l.reset_bias);
    optional(a.peepholes, l.peepholes);
    optional(a.lengths, l.lengths);
    out.args.pointer(p.out[0]);
    optional(a.has_cell_state(), p.out[1]);
    out.args.pointer(p.out.back());
    auto narrow = [](int64_t v) { return static_cast<int32_t>(v); };
    int64_t reversed = 0;
    for (size_t i = 0; i < a.reversed.size(); ++i) {
        reversed |= a.reversed[i] != 0 ? int64_t{1} << i : 0;
    }
    out.args.value(RecurrentArg{narrow(l.steps), narrow(l.batch), narrow(l.hidden),
                                narrow(a.directions()), narrow(s.groups), narrow(reversed),
                                l.constant_weights ? 1 : 0});
    return out;
}

Emitted emit(const Problem& p, const Tactic& t) {
    Layer l = layer_of(p);
    Emitted out;
    if (l.batch == 0) {
        return out;
    }
    require(l.steps <= INT32_MAX / 4 && l.batch <= INT32_MAX / 1024, ErrorCode::Unsupported,
            "recurrence of ", l.steps, " steps of ", l.batch, " sequences, at most ", INT32_MAX / 4,
            " of ", INT32_MAX / 1024, " are supported");
    const Cells* c = t.as<Cells>();
    CHECK(c != nullptr, "recurrence has no tactic ", t.name);
    out.launches.push_back(launch_of(p, l, *c));
    return out;
}

std::optional<std::string> refuse(const Group& group) {
    if (group.nodes.size() != 1 || !group.first().is(ops::recurrence_def)) {
        return "not one recurrence";
    }
    const Node& n = group.first();
    const auto& a = n.as<ops::Recurrence>();
    const Type& x = group.graph.type(n.inputs[0]);
    if (x.dtype != DType::F16 && x.dtype != DType::BF16 && x.dtype != DType::F32) {
        return str("elements are ", x.dtype);
    }
    const Dim& hidden = group.graph.type(n.inputs[2]).dims[2];
    if (!hidden.is_const() || hidden.value() < 1 || hidden.value() > most_hidden) {
        return str(hidden, " hidden elements, at most ", most_hidden, " are supported");
    }
    if (a.cell == "gru" && !a.reset_after) {
        return "a step has two products";
    }
    return std::nullopt;
}

Family family() {
    Family f{};
    f.name = "recurrence";
    f.refuse = refuse;
    f.tactics = tactics;
    f.emit = emit;
    return f;
}

const Family rows[] = {family()};

} // namespace

extern const FamilyTable recurrence_families;
const FamilyTable recurrence_families = rows;

} // namespace ingot::kernels
