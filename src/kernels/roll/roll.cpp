// SPDX-License-Identifier: Apache-2.0
// Family roll: rolls with the reshapes and permutes around them and a map behind them (or such a
// map without a roll), in one pass over the result; a thread makes one vector. Reads and writes any
// strides, so that it can split an image into windows and merge them. Traffic: every operand and
// the result once.
#include "ops/roll.h"

#include "base/error.h"
#include "kernels/common/expr_text.h"
#include "kernels/copy/movement.h"
#include "kernels/roll/walk.h"
#include "ops/primitives.h"

#include <algorithm>
#include <numeric>

namespace ingot::kernels {

namespace {

constexpr size_t most_inputs = 8; // of the map
constexpr size_t most_instructions = 32;

/// Moves in order, each applied to the previous result, and the map that reads the last.
struct Chain {
    std::vector<const Node*> moves;
    const Node* map = nullptr;

    Value source() const { return moves[0]->inputs[0]; }
    Value moved() const { return moves.back()->outputs[0]; }
};

Chain chain_of(const Group& group) {
    Chain c;
    for (const Node& n : group.nodes) {
        if (n.is(map_def)) {
            c.map = &n;
        } else {
            c.moves.push_back(&n);
        }
    }
    return c;
}

std::optional<std::string> refuse_map(const Group& group, const Node& map, Value moved) {
    const auto& inputs = map.inputs;
    if (std::find(inputs.begin(), inputs.end(), moved) == inputs.end() ||
        !(group.graph.type(moved).dims == group.graph.type(map.outputs[0]).dims)) {
        return "the map does not read every element of the roll";
    }
    if (inputs.size() > most_inputs || map.as<Map>().body.code.size() > most_instructions) {
        return str("a map of ", inputs.size(), " operands and ", map.as<Map>().body.code.size(),
                   " instructions, at most ", most_inputs, " and ", most_instructions);
    }
    return std::nullopt;
}

std::optional<std::string> refuse(const Group& group) {
    for (Value v : group.inputs) {
        if (is_packed(group.graph.type(v).dtype)) {
            return "an operand of a packed type";
        }
    }
    Value last;
    bool works = false;
    for (size_t i = 0; i < group.nodes.size(); ++i) {
        const Node& n = group.nodes[i];
        bool maps = n.is(map_def);
        bool moves = n.is(ops::roll_def) || n.is(reshape_def) || n.is(permute_def);
        if (maps ? i == 0 || i + 1 < group.nodes.size() : !moves) {
            return str("a ", n.def->name, " among moves");
        }
        if (!maps && i > 0 && n.inputs[0] != last) {
            return "moves of two values";
        }
        if (maps) {
            if (auto reason = refuse_map(group, n, last)) {
                return reason;
            }
        }
        works = works || maps || n.is(ops::roll_def);
        last = n.outputs[0];
    }
    bool one = works && group.outputs.size() == 1 && group.outputs[0] == last &&
               !is_packed(group.graph.type(last).dtype);
    return one ? std::nullopt : std::optional<std::string>("not one result of a roll or a map");
}

/// A chain of rolls alone keeps the order of its source.
void layout(LayoutArgs& args) {
    Chain c = chain_of(args.group);
    bool rolls_only = std::all_of(c.moves.begin(), c.moves.end(),
                                  [](const Node* n) { return n->is(ops::roll_def); });
    auto source = static_cast<size_t>(args.group.input_index(c.source()));
    if (rolls_only) {
        if (auto order = plan::dense_order(args.in[source])) {
            args.order[0] = *order;
        }
    }
}

Shape shifts_of(const Problem& p, const Node& n) {
    const auto& a = n.as<ops::Roll>();
    Shape shifts = eval(a.shifts, p.symbols);
    for (size_t k = 0; k < shifts.size(); ++k) {
        Dim size = p.group.graph.type(n.inputs[0]).dims[static_cast<size_t>(a.axes[k])];
        int64_t limit = size.eval(p.symbols);
        require(shifts[k] >= 0 && shifts[k] <= limit, ErrorCode::InvalidArgument,
                "roll along axis ", a.axes[k], " of size ", limit, " by ", shifts[k],
                ", expected 0 to ", limit);
    }
    return shifts;
}

Shape shape_before(const Problem& p, const Node& n) {
    return eval(p.group.graph.type(n.inputs[0]).dims, p.symbols);
}

/// An operand other than the source, read at the coordinates of the result.
struct Reading {
    DType dtype = DType::F32;
    const Operand* operand = nullptr;
    View view;
    int inner = -1; // the view's axis along which it is read; -1 for a single element
};

struct RollJob {
    Chain chain;
    DType source_type = DType::F32; // as stored and computed with
    DType result_type = DType::F32;
    std::vector<Reading> readings; // one per operand of the map; the source's is unused
    plan::Order order;             // of the loops
    bool wide = false;
    int64_t vector = 1;
    int along = -1; // axis of the result along which a vector lies
    int inner = -1; // that of the source
};

bool is_aligned(const View& v, int inner, int64_t vector, DType t) {
    int64_t common = v.offset;
    for (size_t n = 0; n < v.shape.size(); ++n) {
        common =
            std::gcd(common, static_cast<int>(n) == inner || v.shape[n] == 1 ? 0 : v.strides[n]);
    }
    return common % std::min<int64_t>(vector, 128 / bit_width(t)) == 0;
}

/// The largest vector that is contiguous in the result, in the source, and in other operands.
void choose_vector(const Problem& p, RollJob& job) {
    const View& y = p.out[0].view;
    const View& x = p.operand(job.chain.source()).view;
    int& axis = job.along;
    for (int a : job.order) {
        axis = y.shape[static_cast<size_t>(a)] == 1 ? axis : a;
    }
    if (axis < 0) {
        return;
    }
    Run run{y.shape, static_cast<size_t>(axis), y.shape[static_cast<size_t>(axis)]};
    for (size_t k = job.chain.moves.size(); k-- > 0;) {
        const Node& n = *job.chain.moves[k];
        if (n.is(reshape_def)) {
            run.reshape(shape_before(p, n));
        } else if (n.is(permute_def)) {
            run.permute(n.as<Permute>().perm);
        } else {
            run.roll(n.as<ops::Roll>().axes, shifts_of(p, n));
        }
    }
    job.inner = static_cast<int>(run.axis);
    bool together = y.strides[static_cast<size_t>(axis)] == 1 && x.strides[run.axis] == 1;
    int narrowest = std::min(bit_width(job.source_type), bit_width(job.result_type));
    for (Reading& r : job.readings) {
        if (r.operand != nullptr) {
            int64_t stride = r.view.strides[static_cast<size_t>(axis)];
            together = together && (stride == 0 || stride == 1);
            r.inner = stride == 1 ? axis : -1;
            narrowest = std::min(narrowest, bit_width(r.dtype));
        }
    }
    auto fits = [&](int64_t v) {
        bool ok = together && run.unit % v == 0 && is_aligned(y, axis, v, job.result_type) &&
                  is_aligned(x, job.inner, v, job.source_type);
        for (const Reading& r : job.readings) {
            ok = ok && (r.inner < 0 || is_aligned(r.view, r.inner, v, r.dtype));
        }
        return ok;
    };
    int64_t v = job.chain.map != nullptr ? 128 / std::max(narrowest, 16) : 128 / narrowest;
    while (v > 1 && !fits(v)) {
        v /= 2;
    }
    job.vector = v;
}

RollJob roll_job(const Problem& p) {
    RollJob job;
    job.chain = chain_of(p.group);
    const Operand& x = p.operand(job.chain.source());
    const View& y = p.out[0].view;
    bool maps = job.chain.map != nullptr;
    job.source_type = maps ? x.dtype : raw_dtype(x.dtype);
    job.result_type = maps ? p.out[0].dtype : raw_dtype(p.out[0].dtype);
    constexpr int64_t most = int64_t{1} << 30;
    job.wide = std::max({y.count(), span_of(x.view), span_of(y)}) >= most;
    for (size_t k = 0; maps && k < job.chain.map->inputs.size(); ++k) {
        Reading r;
        Value v = job.chain.map->inputs[k];
        if (v != job.chain.moved()) {
            r.operand = &p.operand(v);
            r.dtype = r.operand->dtype;
            r.view = plan::broadcasted(r.operand->view, y.shape);
            job.wide = job.wide || span_of(r.view) >= most;
        }
        job.readings.push_back(std::move(r));
    }
    job.order = plan::stride_order(y);
    choose_vector(p, job);
    return job;
}

/// Statements that make `r`, the vector of the result, from `a`, that of the source.
std::string result_text(const RollJob& job) {
    if (job.chain.map == nullptr) {
        return "store_pack<Y, V>(y + at_y, a);\n";
    }
    std::vector<std::string> inputs;
    std::string values;
    for (size_t k = 0; k < job.readings.size(); ++k) {
        const Reading& r = job.readings[k];
        DType t = r.operand != nullptr ? r.dtype : job.source_type;
        inputs.push_back(str("u", k));
        append(values, str("const ", compute_c_type(t), " u", k, " = widen(",
                           r.operand == nullptr ? std::string("a[v]")
                                                : str("q", k, r.inner < 0 ? "[0]" : "[v]"),
                           ");\n"));
    }
    ExprText e = expr_text(job.chain.map->as<Map>().body, inputs);
    return str("Y r[V];\n#pragma unroll\nfor (int v = 0; v < V; ++v) {\n", values, e.statements,
               "r[v] = narrow<Y>((", compute_c_type(job.result_type), ")(", e.result,
               "));\n}\nstore_pack<Y, V>(y + at_y, r);\n");
}

Launch roll_launch(const Problem& p, const RollJob& job) {
    const View& y = p.out[0].view;
    int64_t n = y.count() / job.vector;
    Signature parameters(job.wide);
    parameters.pointer("Y*", "y", p.out[0]).pointer("const X*", "x", p.operand(job.chain.source()));
    for (size_t k = 0; k < job.readings.size(); ++k) {
        if (const Reading& r = job.readings[k]; r.operand != nullptr) {
            parameters.pointer(str("const ", c_type(r.dtype), "*"), str("p", k), *r.operand);
        }
    }
    parameters.size("n", n);
    WalkText walk(parameters);
    walk.begin(y.shape, job.order, job.vector);
    walk.offset("at_y", y, job.vector > 1 ? job.along : -1);
    std::string loads;
    for (size_t k = 0; k < job.readings.size(); ++k) {
        if (const Reading& r = job.readings[k]; r.operand != nullptr) {
            walk.offset(str("at_", k), r.view, job.vector > 1 ? r.inner : -1);
            std::string width = r.inner < 0 ? "1" : "V";
            append(loads,
                   str(c_type(r.dtype), " q", k, "[", width, "];\nload_pack<", c_type(r.dtype),
                       ", ", width, ">(q", k, ", p", k, " + at_", k, ");\n"));
        }
    }
    for (size_t k = job.chain.moves.size(); k-- > 0;) {
        const Node& move = *job.chain.moves[k];
        if (move.is(reshape_def)) {
            walk.reshape(shape_before(p, move));
        } else if (move.is(permute_def)) {
            walk.permute(move.as<Permute>().perm);
        } else {
            walk.roll(move.as<ops::Roll>().axes, shifts_of(p, move));
        }
    }
    walk.offset("at_x", p.operand(job.chain.source()).view, job.vector > 1 ? job.inner : -1);
    std::string index(walk.index_type());
    Launch out =
        std::move(parameters)
            .launch("roll", str("grid_wait();\nconst ", index, " i = (", index, ")", block_number,
                                " * 256u + threadIdx.x;\nif (i >= n) return;\n", walk.body,
                                "X a[V];\nload_pack<X, V>(a, x + at_x);\n", loads,
                                "end_main_loop();\n", result_text(job)));
    out.program.defines =
        str("typedef ", c_type(job.source_type), " X;\ntypedef ", c_type(job.result_type), " Y;\n");
    out.program.kernel->constants = {{"V", str(job.vector)}};
    out.grid = {blocks_for(n), 1, 1};
    return out;
}

Emitted emit(const Problem& p, const Tactic&) {
    Emitted out;
    if (p.out[0].view.count() > 0) {
        out.launches.push_back(roll_launch(p, roll_job(p)));
    }
    return out;
}

struct Generic : NoParameters {
    static constexpr std::string_view pattern = "generic";
};

std::vector<Tactic> tactics(const Problem& p) {
    double bytes = 0;
    for (const Operand& o : p.in) {
        bytes += static_cast<double>(byte_size(o.dtype, o.view.count()));
    }
    bytes += static_cast<double>(byte_size(p.out[0].dtype, p.out[0].view.count()));
    return {make_tactic(Generic{}, 1.5 + bytes / (p.arch.dram_gbs * 1e3))};
}

const Family families[] = {{.name = "roll",
                            .refuse = refuse,
                            .layout = layout,
                            .tactics = tactics,
                            .emit = emit,
                            .strided_results = true,
                            .takes_groups = true}};

} // namespace

extern const FamilyTable roll_families;
const FamilyTable roll_families = families;

} // namespace ingot::kernels
