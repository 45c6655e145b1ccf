// SPDX-License-Identifier: Apache-2.0
// byte_functions: a map that rounds to bytes reads the bytes that it is a function of, past the
// maps and reshapes between: an activation of several quantised operators is one table then.
#include "backends/cpu/numbers.h"
#include "ir/rewrite.h"
#include "lower/lowering.h"
#include "lower/map_builder.h"
#include "ops/ops.h"

#include <algorithm>
#include <map>

namespace ingot::plan {

namespace {

constexpr size_t most_instructions = 1000;

class ByteFunctions {
public:
    std::optional<Values> operator()(Rewriter& r, const Node& n, std::span<const Value> in) {
        const Type& type = r.from().type(n.outputs[0]);
        if (!n.is(map_def) || !is_byte(type.dtype)) {
            return std::nullopt;
        }
        Graph& g = r.out();
        const Dims dims = r.mapped(type.dims);
        Value from = common_source(g, in, dims);
        auto is_direct = [&](Value v) { return v == from || cpu::number(g, v) != nullptr; };
        if (!from.valid() || std::all_of(in.begin(), in.end(), is_direct)) {
            return std::nullopt;
        }
        Value bytes = g.type(from).dims == dims ? from : ops::reshape(g, from, dims);
        MapBuilder b{g, {}, {}};
        std::map<uint32_t, int> done = {{from.id, b.input(bytes)}};
        const auto& map = n.as<Map>();
        int result = inlined(b, map, in, done);
        if (result < 0 || static_cast<size_t>(result) + 1 != b.body.code.size()) {
            return std::nullopt; // too long, or a shared earlier instruction
        }
        return Values{g.add1(map_def, Map{b.body, map.dtype}, b.inputs)};
    }

private:
    /// The bytes that a value of the new graph is a function of, element by element: the earliest
    /// ones; invalid where there are none.
    Value source(const Graph& g, Value v) {
        if (auto known = sources_.find(v.id); known != sources_.end()) {
            return known->second;
        }
        const Node* p = g.producer(v);
        Value from;
        if (p != nullptr && p->is(map_def)) {
            from = common_source(g, p->inputs, g.type(v).dims);
        } else if (p != nullptr && p->is(reshape_def)) {
            from = source(g, p->inputs[0]);
        }
        if (!from.valid() && is_byte(g.type(v).dtype)) {
            from = v;
        }
        return sources_[v.id] = from;
    }

    /// The bytes that all operands of a map follow from; invalid where one does not, or where one
    /// is repeated along an axis.
    Value common_source(const Graph& g, std::span<const Value> operands, const Dims& dims) {
        Value from;
        for (Value v : operands) {
            if (cpu::number(g, v) != nullptr) {
                continue;
            }
            Value other = g.type(v).dims == dims ? source(g, v) : Value{};
            if (!other.valid() || (from.valid() && from != other)) {
                return {};
            }
            from = other;
        }
        return from;
    }

    /// The instruction of a map's result, or -1 where the expression gets too long. `done`: those
    /// of values that the expression has.
    int inlined(MapBuilder& b, const Map& map, std::span<const Value> operands,
                std::map<uint32_t, int>& done) {
        std::vector<int> at;
        for (Value v : operands) {
            at.push_back(instruction(b, v, done));
            if (at.back() < 0) {
                return -1;
            }
        }
        return b.body.code.size() + map.body.code.size() > most_instructions
                   ? -1
                   : b.inline_map(map, at);
    }

    int instruction(MapBuilder& b, Value v, std::map<uint32_t, int>& done) {
        if (auto known = done.find(v.id); known != done.end()) {
            return known->second;
        }
        if (const Tensor* t = cpu::number(b.g, v)) {
            return done[v.id] = cpu::add_number(b.body, *t);
        }
        const Node& p = *b.g.producer(v);
        return done[v.id] = p.is(map_def) ? inlined(b, p.as<Map>(), p.inputs, done)
                                          : instruction(b, p.inputs[0], done);
    }

    std::map<uint32_t, Value> sources_; // by values of the new graph
};

} // namespace

Pass byte_functions(const KernelSet&) {
    return {
        .name = "byte_functions",
        .summary = "maps that round to bytes read the bytes that they are functions of",
        .run = [](const Graph& g,
                  const PassOptions&) { return dead_code(rewrite(g, ByteFunctions())); },
        .structural = true,
    };
}

} // namespace ingot::plan
