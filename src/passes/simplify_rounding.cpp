// SPDX-License-Identifier: Apache-2.0
// Rules for halves that exporters widen before an op and round behind it.
#include "ops/ops.h"
#include "passes/simplify.h"

#include <algorithm>

namespace ingot::passes {

namespace {

// Whether the map only widens or rounds its operand.
bool converts(const Node& n) {
    const auto& code = n.as<Map>().body.code;
    return n.inputs.size() == 1 && code.size() == 1 && code[0].type == DType::F32;
}

// Ops that have their first operand's type, and compute with halves as they do in f32.
bool widens_halves(const Node& n) {
    return n.is(ops::layer_norm_def) || n.is(ops::group_norm_def) || n.is(ops::softmax_def) ||
           n.is(ops::rope_def);
}

// Whether all that a map does with operand i is to round it to `t` first.
bool rounds_at_once(const Map& m, size_t i, DType t) {
    const auto& code = m.body.code;
    auto reads = [&](int at) {
        const ExprInstr& c = code[static_cast<size_t>(at)];
        return c.op == ExprOp::In && c.args[0] == static_cast<int>(i);
    };
    if (code.size() == 1) {
        return m.dtype == t && reads(0);
    }
    return std::all_of(code.begin(), code.end(), [&](const ExprInstr& c) {
        bool rounds = c.op == ExprOp::Cast && c.to == t && c.imm == 0;
        for (int k = 0; k < arity(c.op); ++k) {
            if (reads(c.args[static_cast<size_t>(k)]) && !rounds) {
                return false;
            }
        }
        return true;
    });
}

// Permutes that lead to a value, the last one first.
using Permutes = std::vector<Permute>;

// The value before them; where `alone`, nothing else reads what they make.
Value before_permutes(const Site& s, Value v, bool alone, Permutes& found) {
    const Graph& g = s.g_const();
    for (const Node* n = g.producer(v);
         n != nullptr && n->is(permute_def) && (!alone || s.uses(v) == 1); n = g.producer(v)) {
        found.push_back(n->as<Permute>());
        v = n->inputs[0];
    }
    return v;
}

Value permuted(Graph& g, Value v, const Permutes& by) {
    for (auto n = by.rbegin(); n != by.rend(); ++n) {
        v = ops::permute(g, v, n->perm);
    }
    return v;
}

// Halves that are widened before such an op and rounded behind it: what the op itself does.
std::optional<Values> round_inside(Site& s) {
    for (size_t i = 0; i < s.input_count(); ++i) {
        const Graph& g = s.g_const();
        Permutes behind;
        Permutes ahead;
        Value made = before_permutes(s, s.in(i), true, behind);
        const Node* n = g.producer(made);
        if (n == nullptr || !widens_halves(*n) || s.uses(made) != 1) {
            continue;
        }
        const Node* before = g.producer(before_permutes(s, n->inputs[0], false, ahead));
        if (before == nullptr || !before->is(map_def) || !converts(*before)) {
            continue;
        }
        DType half = g.type(before->inputs[0]).dtype;
        if (!is_half(half) || !rounds_at_once(s.as<Map>(), i, half)) {
            continue;
        }
        const OpDef& def = *n->def;
        std::shared_ptr<const void> attrs = n->attrs;
        Values operands = n->inputs;
        operands[0] = permuted(s.g(), before->inputs[0], ahead); // adds nodes: n may move
        Values in(s.inputs().begin(), s.inputs().end());
        in[i] = permuted(s.g(), s.g().add(def, attrs, operands)[0], behind);
        bool alone = s.as<Map>().body.code.size() == 1;
        return alone ? Values{in[i]}
                     : Values{ops::map(s.g(), s.as<Map>().body, s.as<Map>().dtype, in)};
    }
    return std::nullopt;
}

} // namespace

Rules rounding_rules() {
    static const RuleRow rows[] = {{&map_def, round_inside}};
    return rows;
}

} // namespace ingot::passes
