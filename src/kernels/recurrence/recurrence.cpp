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

constexpr int64_t most_tiles = 3; // of a warp at once, times `columns`: the text grows with them
constexpr int64_t columns_of_a_tile = 8;

/// `struct Recurrent` of recurrence.cuh.
struct RecurrentArg {
    int32_t steps, batch, hidden, directions, groups, reversed, early, begin, blocks;
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

/// A launch: a cluster of `blocks` blocks of `warps` warps has 8 * `columns` sequences.
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
/// A launch for each step, of as many blocks of four warps as hidden elements need.
struct Steps {
    static constexpr std::string_view pattern = "steps_n{columns}";
    int columns = 1;
    template <class Self, class F>
    static void fields(Self& self, F&& field) {
        field("columns", self.columns);
    }
};

/// The parameters and their consequences.
struct Split {
    bool apart = false; // a launch is a step
    int64_t blocks = 1, warps = 4, columns = 1;
    int64_t tiles = 1;          // of a warp
    int64_t held = 0, kept = 0; // chunks of a tile's rows in registers and in shared memory
    int64_t groups = 1;
    int64_t shared = 0;

    int64_t bytes_kept() const { return kept * tiles * warps * bytes_of_a_chunk; }
    static constexpr int64_t bytes_of_a_chunk = 1024; // of a tile: 16 rows of 64 bytes
};

/// Registers of a thread: those of a tile's sums, inputs of two steps and states, and those left
/// for tiles and weights by what ptxas takes beside them.
int64_t registers_of_a_tile(const Layer& l, int64_t columns) {
    return (8 + 2 * l.a.gates() + 2) * columns;
}
int64_t free_registers(const Layer& l, int64_t warps) {
    constexpr int64_t registers_of_an_sm = 65536;
    return std::min<int64_t>(registers_of_an_sm / (32 * warps), 255) - (l.exact ? 88 : 72);
}

void hold_weights(const Layer& l, Split& s, const Arch& arch) {
    int64_t states = 2 * columns_of_a_tile * s.columns * ((l.chunks() * 64) | 64) + 16;
    if (l.vector() >= 4) { // others would need too much text
        constexpr int64_t registers_of_a_chunk = 8;
        int64_t left = free_registers(l, s.warps) - s.tiles * registers_of_a_tile(l, s.columns);
        int64_t most = (l.vector() == 16 ? 12 : 8) / s.tiles; // loads of which are text
        most = s.apart ? l.chunks() : std::min(most, l.chunks());
        s.held = std::clamp<int64_t>(left / (registers_of_a_chunk * s.tiles), 0, most);
    }
    if (!s.apart) {
        int64_t room = (arch.shared_per_block - states) / (s.tiles * s.warps * s.bytes_of_a_chunk);
        s.kept = std::clamp<int64_t>(room, 0, l.chunks() - s.held);
    }
    s.shared = states + s.bytes_kept();
    s.groups = div_up(l.batch, columns_of_a_tile * s.columns);
}

/// nullopt where a warp would have more tiles than registers.
std::optional<Split> split_of(const Layer& l, const Cells& c, const Arch& arch) {
    Split s{false, c.blocks, c.warps, c.columns};
    s.tiles = div_up(l.tiles(), s.blocks * s.warps);
    int64_t few = std::max<int64_t>(1, most_tiles / s.columns / (l.exact ? 2 : 1));
    few = s.warps > 8 ? 1 : few; // more spill registers
    bool fits = s.tiles * registers_of_a_tile(l, s.columns) <= free_registers(l, s.warps);
    if (s.tiles > few || (s.tiles > 1 && !fits)) {
        return std::nullopt;
    }
    hold_weights(l, s, arch);
    return s.shared <= arch.shared_per_block ? std::optional(s) : std::nullopt;
}

Split split_of(const Layer& l, const Steps& steps, const Arch& arch) {
    Split s{true, 1, 4, steps.columns};
    s.blocks = div_up(l.tiles(), s.warps);
    hold_weights(l, s, arch);
    return s;
}

double cost_us(const Layer& l, const Split& s, const Arch& arch) {
    double clocks_per_us = arch.clock_ghz * 1000;
    double tiles = static_cast<double>(s.tiles * s.columns);
    int64_t products = 2 * l.chunks() * (l.exact ? 4 : 1) * div_up(s.warps, 4);
    constexpr double clocks_of_a_product = 12; // of a quarter of an SM
    constexpr double clocks_of_functions = 60; // beyond those of the first tile
    double step = tiles * static_cast<double>(products) * clocks_of_a_product +
                  (tiles - 1) * clocks_of_functions;
    auto bytes = [&](int64_t chunks) {
        return static_cast<double>(chunks * s.tiles * s.warps * s.bytes_of_a_chunk);
    };
    // Measured: 20 bytes a clock where an SM reads weights in each step.
    constexpr double bytes_per_clock = 20;
    constexpr double bytes_per_clock_shared = 80;
    int64_t blocks = l.a.directions() * s.groups * s.blocks;
    auto waves = static_cast<double>(div_up(blocks, arch.sms));
    if (s.apart) {
        // All weights held are read again for each step, beside the step before.
        constexpr double launch = 2.8;
        double read = waves * bytes(l.chunks() - s.held / 2) / bytes_per_clock;
        return static_cast<double>(l.steps) * (launch + (waves * step + read) / clocks_per_us);
    }
    // A step: inputs and states that are waited for, the chain of sums, functions, storing states.
    step += s.blocks > 1 ? 1100 : 1000;
    step += bytes(s.kept) / bytes_per_clock_shared;
    step += bytes(l.chunks() - s.held - s.kept) / bytes_per_clock;
    double first = bytes(s.held + s.kept) / bytes_per_clock;
    return 3 + waves * (first + static_cast<double>(l.steps) * step) / clocks_per_us;
}

std::vector<Tactic> tactics(const Problem& p) {
    Layer l = layer_of(p);
    std::vector<Tactic> list;
    for (int columns : {1, 2, 4}) {
        if (columns > 1 && l.batch <= columns_of_a_tile * columns / 2) {
            break;
        }
        Steps steps{columns};
        list.push_back(make_tactic(steps, cost_us(l, split_of(l, steps, p.arch), p.arch)));
        for (int blocks = 1; blocks <= (p.arch.has_cluster() ? 8 : 1) && columns < 4; blocks *= 2) {
            for (int warps : {4, 8, 16}) {
                Cells c{blocks, warps, columns};
                std::optional<Split> s = split_of(l, c, p.arch);
                // Half of the blocks would do for fewer tiles.
                if (s && (blocks == 1 || 2 * l.tiles() > s->blocks * s->warps * s->tiles)) {
                    list.push_back(make_tactic(c, cost_us(l, *s, p.arch)));
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

/// The program and the launch of all steps, or of the first one.
Launch launch_of(const Layer& l, const Split& s) {
    const auto& a = l.a;
    int kind = l.exact ? 2 : l.t == DType::F32 ? 1 : 0;
    Defines d;
    d.add("T", c_type(l.t)).add("KIND", kind).add("IS_BF16", l.t == DType::BF16 ? 1 : 0);
    d.add("CELL", a.cell == "lstm" ? 2 : a.cell == "gru" ? 1 : 0);
    d.add("CHUNKS", l.chunks()).add("HELD", s.held).add("KEPT", s.kept).add("TILES", s.tiles);
    d.add("COLUMNS", s.columns).add("APART", s.apart ? 1 : 0).add("BLOCKS", s.apart ? 1 : s.blocks);
    d.add("THREADS", s.warps * 32).add("VECTOR", l.vector());
    d.add("LENGTHS", a.lengths ? 1 : 0).add("PEEPHOLES", a.peepholes ? 1 : 0);
    d.add("INPUT_FORGET", a.input_forget ? 1 : 0);
    Launch out;
    out.program = {{"types", "math"}, d.text(), "recurrence", functions(l)};
    out.entry = "recurrence";
    out.block = static_cast<int>(s.warps * 32);
    out.grid[0] = a.directions() * s.groups * s.blocks;
    out.cluster = s.apart ? 1 : static_cast<int>(s.blocks);
    out.shared = s.shared;
    return out;
}

Args args_of(const Problem& p, const Layer& l, const Split& s, int64_t begin) {
    const auto& a = l.a;
    Args args;
    auto optional = [&args](bool given, const Operand& o) {
        given ? args.pointer(o) : args.null();
    };
    args.pointer(l.x).pointer(l.r).pointer(l.h);
    optional(a.has_cell_state(), l.c);
    optional(a.reset_after, l.reset_bias);
    optional(a.peepholes, l.peepholes);
    optional(a.lengths, l.lengths);
    args.pointer(p.out[0]);
    optional(a.has_cell_state(), p.out[1]);
    args.pointer(p.out.back());
    if (s.apart) {
        args.scratch(0);
    } else {
        args.null();
    }
    auto narrow = [](int64_t v) { return static_cast<int32_t>(v); };
    int64_t reversed = 0;
    for (size_t i = 0; i < a.reversed.size(); ++i) {
        reversed |= a.reversed[i] != 0 ? int64_t{1} << i : 0;
    }
    args.value(RecurrentArg{narrow(l.steps), narrow(l.batch), narrow(l.hidden),
                            narrow(a.directions()), narrow(s.groups), narrow(reversed),
                            l.constant_weights ? 1 : 0, narrow(begin), narrow(s.blocks)});
    return args;
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
    if (const auto* steps = t.as<Steps>()) {
        Split s = split_of(l, *steps, p.arch);
        Launch one = launch_of(l, s);
        for (int64_t step = 0; step < std::max<int64_t>(l.steps, 1); ++step) {
            one.args = args_of(p, l, s, step);
            out.launches.push_back(one);
        }
        constexpr int64_t buffers = 3; // h of even and of odd steps, c
        out.scratch = buffers * l.a.directions() * l.batch * l.hidden * 4;
        return out;
    }
    const auto* c = t.as<Cells>();
    std::optional<Split> s = c != nullptr ? split_of(l, *c, p.arch) : std::nullopt;
    CHECK(s, "recurrence has no tactic ", t.name);
    Launch all = launch_of(l, *s);
    all.args = args_of(p, l, *s, 0);
    out.launches.push_back(std::move(all));
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
    if (!hidden.is_const() || hidden.value() < 1) {
        return str(hidden, " hidden elements are no known number");
    }
    if (a.cell == "gru" && !a.reset_after) {
        return "a step has two products";
    }
    // Measured: 6 us a step for 1,024 elements, whose tiles are a quarter full; a loop takes 4.9.
    constexpr int64_t most_plain = 512;
    if (a.cell == "rnn" && hidden.value() > most_plain) {
        return str("a plain cell has ", hidden, " hidden elements, more than ", most_plain);
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
