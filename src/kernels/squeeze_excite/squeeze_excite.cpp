// SPDX-License-Identifier: Apache-2.0
// Family squeeze_excite: means of channels, two layers and the scaling, with a map behind it: in
// one launch where the shared memory of a cluster holds an image, else in two.
#include "ops/squeeze_excite.h"

#include "base/error.h"
#include "kernels/common/expr_text.h"
#include "kernels/reduce/reduce_rows.h"

#include <algorithm>
#include <array>

namespace ingot::kernels {

namespace {

constexpr int64_t most_hidden = 1024;
constexpr int64_t most_columns = 256; // of a slice: at most one per thread of a block
constexpr int64_t most_operands = 3;
constexpr int64_t blocks_per_sm = 4;
constexpr int64_t many_bytes = 48 << 10; // of shared memory: blocks of 512 threads
constexpr int64_t read_parts = 4096;     // floats that each block of the second launch adds up

/// `struct Excite` of squeeze_excite.cuh.
struct ExciteArg {
    int64_t image;
    int32_t channels, hidden, vectors, columns, pixels, part, slices, blocks, given;
    int32_t w1_at, w2_at, data_at, early;
    float share;
    int32_t kinds[4];
};

/// The broadcast of a map's operand against the result.
enum Kind { OneElement = 0, OnePerChannel = 1, Whole = 2 };

std::optional<Kind> kind_of(const Dims& operand, const Dims& result) {
    if (operand == result) {
        return Whole;
    }
    Dims ones(operand.size(), 1);
    if (operand == ones) {
        return OneElement;
    }
    size_t behind = result.size() - 1; // axes from the channels on
    if (operand.size() >= behind) {
        ones[operand.size() - behind] = result[1];
    }
    return operand == ones ? std::optional(OnePerChannel) : std::nullopt;
}

struct Shapes {
    Operand x, w1, b1, w2, b2;
    int64_t images = 0, channels = 0, hidden = 0, pixels = 0;
    int64_t vector = 1; // elements of x and the result per access, at most 16 bytes of either
    int64_t bytes = 2;  // of an element
    bool early = false;

    int64_t vectors() const { return channels / vector; }
};

Shapes shapes_of(const Problem& p) {
    const Node& n = p.group.first();
    Shapes s;
    s.x = p.operand(n.inputs[0]);
    s.w1 = p.operand(n.inputs[1]);
    s.b1 = p.operand(n.inputs[2]);
    s.w2 = p.operand(n.inputs[3]);
    s.b2 = p.operand(n.inputs[4]);
    const Shape& shape = s.x.view.shape;
    s.images = shape[0];
    s.channels = shape[1];
    s.hidden = s.w1.view.shape[0];
    s.pixels = 1;
    for (size_t i = 2; i < shape.size(); ++i) {
        s.pixels *= shape[i];
    }
    s.bytes = bytes_of(s.x.dtype);
    s.vector = 16 / std::max(s.bytes, bytes_of(p.out[0].dtype));
    for (int64_t m :
         {s.channels, s.x.view.offset, p.out[0].view.offset, s.w1.view.offset, s.w2.view.offset}) {
        while (m % s.vector != 0) {
            s.vector /= 2;
        }
    }
    s.early = true;
    for (size_t i = 1; i < n.inputs.size(); ++i) {
        auto at = static_cast<size_t>(p.group.input_index(n.inputs[i]));
        s.early = s.early && p.constants[at] != nullptr;
    }
    return s;
}

/// The split of an image in one launch, and the layout of shared memory.
struct Cut {
    int phase = 0;
    int64_t slices = 1;
    int64_t part = 1; // pixels of a block
    int64_t columns = 1;
    int64_t blocks = 1;  // of an image
    bool weights = true; // in shared memory
    int64_t weights_at = 0, weight_bytes = 0, data_at = 0, shared = 0;

    double moved(const Shapes& s) const { // bytes of a block
        int64_t line = round_up(columns * s.vector * s.bytes, 32);
        int64_t pixels = part * (phase == 0 ? 2 : 1) + (phase == 2 ? part : 0);
        int64_t layers = phase == 0 ? 2 : 1;
        return static_cast<double>(line * (pixels + layers * s.hidden));
    }
    double sums(const Shapes& s) const { // multiplications of a block
        int64_t lines = part * (phase == 0 ? 2 : 1) + s.hidden * (phase == 0 ? 2 : 1);
        return static_cast<double>(lines * columns * s.vector);
    }
};

Cut cut_of(const Shapes& s, int phase, int64_t slices, int64_t part, bool weights) {
    Cut c;
    c.phase = phase;
    c.columns = div_up(s.vectors(), slices);
    c.slices = div_up(s.vectors(), c.columns);
    c.part = part;
    c.blocks = c.slices * div_up(s.pixels, std::max<int64_t>(part, 1));
    c.weights = weights;
    int64_t most = round_up(s.hidden, 4);
    int64_t width = round_up(c.columns * s.vector, 4);
    int64_t floats = most + 9 * width;
    if (phase != 1) {
        floats += most + width + (phase == 0 ? c.blocks * most : 0);
    }
    c.weights_at = floats * 4;
    c.weight_bytes = round_up(s.hidden * c.columns * s.vector * s.bytes, 16);
    c.data_at = c.weights_at + (weights ? c.weight_bytes * (phase == 0 ? 2 : 1) : 0);
    c.shared = c.data_at + part * (c.columns | 1) * s.vector * s.bytes;
    return c;
}

constexpr double moved_per_clock = 28; // bytes of an SM with L2, where all of them move some
constexpr double alone_per_clock = 44; // where few do
constexpr double in_cluster = 1.5;     // clusters take that much longer
constexpr double sums_per_clock = 128;

double cut_us(const Shapes& s, const Cut& c, const Arch& arch) {
    int64_t blocks = s.images * c.blocks;
    double rate = 2 * blocks > arch.sms ? moved_per_clock : alone_per_clock;
    rate /= c.phase == 0 && c.blocks > 1 ? in_cluster : 1;
    double clocks = c.moved(s) / rate + c.sums(s) / sums_per_clock;
    double sm = static_cast<double>(div_up(blocks, arch.sms)) * clocks / (arch.clock_ghz * 1000);
    double slow = c.weights ? 0 : 0.8; // weights that are waited for
    return std::max(sm, static_cast<double>(blocks) * c.moved(s) / (arch.dram_gbs * 1000)) + slow;
}

struct OneLaunch : NoParameters {
    static constexpr std::string_view pattern = "cluster";
};
struct TwoLaunches : NoParameters {
    static constexpr std::string_view pattern = "slices";
};

/// The blocks of an image are a cluster; nullopt where they do not fit.
struct OneCut {
    Cut cut;
    double us = 0;
};
std::optional<OneCut> one_launch(const Shapes& s, const Arch& arch) {
    std::optional<OneCut> best;
    for (int64_t blocks = 1; blocks <= (arch.has_cluster() ? 8 : 1); blocks *= 2) {
        for (int64_t slices = 1; slices <= blocks; slices *= 2) {
            int64_t part = div_up(s.pixels, blocks / slices);
            Cut c = cut_of(s, 0, slices, part, true);
            if (c.shared > arch.shared_per_block) {
                c = cut_of(s, 0, slices, part, false);
            }
            if (c.shared > arch.shared_per_block || c.columns > most_columns ||
                c.blocks != blocks) {
                continue;
            }
            double us = 3 + (blocks > 1 ? 0.7 : 0) + cut_us(s, c, arch);
            if (!best || us < best->us) {
                best = {c, us};
            }
        }
    }
    return best;
}

struct TwoCuts {
    Cut first, last;
    double us = 0;
};
TwoCuts two_launches(const Shapes& s, const Arch& arch) {
    constexpr int64_t slice_bytes = 128; // of a pixel, at least
    int64_t shared = arch.shared_per_sm / blocks_per_sm - 1024;
    int64_t columns = div_up(slice_bytes, s.vector * s.bytes);
    int64_t slices = std::max<int64_t>(1, s.vectors() / columns);
    // Few large slices if there are enough pixels.
    int64_t lines = std::max<int64_t>(s.images, 1);
    while (slices > 1 && lines * div_up(s.pixels, 64) * slices > int64_t{2} * arch.sms &&
           div_up(s.vectors(), (slices + 1) / 2) <= most_columns / 4) {
        slices = (slices + 1) / 2;
    }
    slices = cut_of(s, 1, slices, 1, true).slices;
    bool weights = cut_of(s, 2, slices, 0, true).shared < shared / 2;
    int64_t empty = cut_of(s, 2, slices, 0, weights).shared; // as much as the first launch at least
    int64_t row = cut_of(s, 2, slices, 1, weights).shared - empty;
    int64_t room = std::max<int64_t>(1, (shared - empty) / row);
    int64_t given = std::clamp<int64_t>(read_parts / s.hidden, 16, 128);
    int64_t wanted = std::clamp<int64_t>(int64_t{2} * arch.sms / (lines * slices), 1,
                                         std::max<int64_t>(1, given / slices));
    int64_t part = std::clamp<int64_t>(div_up(s.pixels, wanted), 1, room);
    int64_t second = std::max<int64_t>(1, blocks_per_sm * arch.sms / (lines * slices));
    second = std::clamp<int64_t>(div_up(s.pixels, second), std::min<int64_t>(16, room), room);
    TwoCuts c{cut_of(s, 1, slices, part, weights), cut_of(s, 2, slices, second, weights)};
    double parts = static_cast<double>(c.first.blocks * s.hidden * 4);
    c.us = 7.0 + cut_us(s, c.first, arch) + cut_us(s, c.last, arch) +
           parts / (moved_per_clock * arch.clock_ghz * 1000);
    return c;
}

/// The sizes by which an image is split.
Shapes cut_shapes(const Problem& p) {
    Shapes s = shapes_of(p);
    s.images = p.batch_invariant ? 1 : s.images; // the split decides the order of sums
    return s;
}

std::vector<Tactic> tactics(const Problem& p) {
    Shapes s = cut_shapes(p);
    std::vector<Tactic> list{make_tactic(TwoLaunches{}, two_launches(s, p.arch).us)};
    if (std::optional<OneCut> one = one_launch(s, p.arch)) {
        list.push_back(make_tactic(OneLaunch{}, one->us));
    }
    std::stable_sort(list.begin(), list.end(), cheaper);
    if (p.batch_invariant) {
        list.resize(1);
    }
    return list;
}

class Emitter {
public:
    explicit Emitter(const Problem& p)
        : p_(p), s_(shapes_of(p)), epilogue_(make_row_epilogue(p, 0)) {}

    const Shapes& shapes() const { return s_; }

    Launch launch(const Cut& c, int64_t given) const {
        Launch l;
        Defines d;
        d.add("PHASE", c.phase).add("T", c_type(s_.x.dtype)).add("V", s_.vector);
        d.add("CLUSTER", c.phase == 0 && p_.arch.has_cluster() ? 1 : 0);
        d.add("NE", c.phase == 1 ? size_t{0} : epilogue_.operands.size());
        l.program = {{"types", "math"},
                     d.text(),
                     "squeeze_excite",
                     c.phase == 1 ? std::string() : functions() + epilogue_.text};
        l.entry = c.phase == 1 ? "excite_parts" : "squeeze_excite";
        l.block = c.shared > many_bytes ? 512 : 256;
        l.grid[0] = s_.images * c.blocks;
        l.cluster = c.phase == 0 ? static_cast<int>(c.blocks) : 1;
        l.shared = c.shared;
        l.args.pointer(s_.x);
        if (c.phase == 1) {
            l.args.pointer(s_.w1).scratch(0).value(arg(c, given));
            return l;
        }
        l.args.pointer(p_.out[0]).pointer(s_.w1).pointer(s_.b1).pointer(s_.w2).pointer(s_.b2);
        if (c.phase == 2) {
            l.args.scratch(0);
        } else {
            l.args.null();
        }
        l.args.value(arg(c, given));
        epilogue_.pass(l.args);
        return l;
    }

private:
    std::string functions() const {
        const auto& a = p_.group.first().as<ops::SqueezeExcite>();
        std::string text;
        for (const auto& [name, body] : {std::pair("act1", &a.act), {"act2", &a.gate}}) {
            std::array in{std::string("x")};
            ExprText t = expr_text(*body, in);
            text += str("DEVICE float ", name, "(float x) {\n", t.statements, "return ", t.result,
                        ";\n}\n");
        }
        return text;
    }

    ExciteArg arg(const Cut& c, int64_t given) const {
        auto narrow = [](int64_t v) { return static_cast<int32_t>(v); };
        ExciteArg a{};
        a.image = s_.pixels * s_.channels;
        a.channels = narrow(s_.channels);
        a.hidden = narrow(s_.hidden);
        a.vectors = narrow(s_.vectors());
        a.columns = narrow(c.columns);
        a.pixels = narrow(s_.pixels);
        a.part = narrow(c.part);
        a.slices = narrow(c.slices);
        a.blocks = narrow(c.blocks);
        a.given = narrow(given);
        if (c.weights) {
            a.w1_at = narrow(c.phase == 2 ? 0 : c.weights_at);
            a.w2_at = narrow(c.phase == 1 ? 0 : c.data_at - c.weight_bytes);
        }
        a.data_at = narrow(c.data_at);
        a.early = s_.early ? 1 : 0;
        a.share = 1.0F / static_cast<float>(s_.pixels);
        const Graph& g = p_.group.graph;
        if (epilogue_.map != nullptr) {
            size_t k = 0;
            for (Value v : epilogue_.map->inputs) {
                if (v != p_.group.first().outputs[0]) {
                    a.kinds[k++] = *kind_of(g.type(v).dims, g.type(p_.group.outputs[0]).dims);
                }
            }
        }
        return a;
    }

    const Problem& p_;
    Shapes s_;
    RowEpilogue epilogue_;
};

Emitted emit(const Problem& p, const Tactic& t) {
    Emitter e(p);
    const Shapes& s = e.shapes();
    Emitted out;
    if (s.images == 0 || s.pixels == 0) {
        return out;
    }
    require(s.pixels <= INT32_MAX / 2, ErrorCode::Unsupported, "squeeze_excite of images of ",
            s.pixels, " pixels, at most ", INT32_MAX / 2, " are supported");
    if (t.is<OneLaunch>()) {
        std::optional<OneCut> one = one_launch(cut_shapes(p), p.arch);
        CHECK(one, "an image does not fit a cluster");
        out.launches.push_back(e.launch(one->cut, 0));
        return out;
    }
    TwoCuts two = two_launches(cut_shapes(p), p.arch);
    out.launches.push_back(e.launch(two.first, 0));
    out.scratch = s.images * s.hidden * two.first.blocks * 4;
    out.launches.push_back(e.launch(two.last, two.first.blocks));
    return out;
}

std::optional<std::string> refuse(const Group& group) {
    const Graph& g = group.graph;
    const Node& n = group.first();
    if (!n.is(ops::squeeze_excite_def)) {
        return "not squeeze_excite";
    }
    const Type& x = g.type(n.inputs[0]);
    if (x.dtype != DType::F16 && x.dtype != DType::BF16 && x.dtype != DType::F32) {
        return str("elements are ", x.dtype);
    }
    const Dims& w = g.type(n.inputs[1]).dims;
    if (!w[0].is_const() || !w[1].is_const() || w[0].value() < 1 || w[1].value() < 1 ||
        w[0].value() > most_hidden) {
        return str("weights ", w, " are not of known sizes, of at most ", most_hidden, " results");
    }
    // Measured: 80 us for 1,536 by 768, which products of their own read with all SMs.
    constexpr int64_t most_weights = int64_t{1} << 18;
    if (w[0].value() * w[1].value() > most_weights) {
        return str("weights ", w, " are more than ", most_weights);
    }
    if (auto why = refuse_rows(group)) {
        return why;
    }
    if (group.nodes.size() == 1) {
        return std::nullopt;
    }
    int64_t operands = 0;
    for (Value v : group.nodes[1].inputs) {
        bool main = v == n.outputs[0];
        operands += main ? 0 : 1;
        if (!main && !kind_of(g.type(v).dims, x.dims)) {
            return str("the map reads ", g.type(v).dims, " beside ", x.dims);
        }
    }
    bool few = operands <= most_operands;
    return few ? std::nullopt : std::optional<std::string>("the map reads many operands");
}

/// Channels innermost, in w2 too; all else dense.
void layout(LayoutArgs& args) {
    const Node& n = args.group.first();
    const Graph& g = args.group.graph;
    const int rank = static_cast<int>(g.type(n.inputs[0]).dims.size());
    for (size_t i = 0; i < args.want.size(); ++i) {
        Value v = args.group.inputs[i];
        bool whole = g.type(v).dims == g.type(n.inputs[0]).dims;
        args.want[i] = whole ? plan::channels_last(rank) : plan::row_major(args.in[i].rank());
    }
    args.want[static_cast<size_t>(args.group.input_index(n.inputs[3]))] = Order{1, 0};
    args.order[0] = plan::channels_last(rank);
}

Family family() {
    Family f{};
    f.name = "squeeze_excite";
    f.refuse = refuse;
    f.layout = layout;
    f.tactics = tactics;
    f.emit = emit;
    f.takes_groups = true;
    return f;
}

const Family rows[] = {family()};

} // namespace

extern const FamilyTable squeeze_excite_families;
const FamilyTable squeeze_excite_families = rows;

} // namespace ingot::kernels
