// SPDX-License-Identifier: Apache-2.0
// Canonical epilogues: those that differ only in the number of addends share a program.
#include "kernels/contraction/epilogue.h"

#include "kernels/common/expr_text.h"
#include "ops/primitives.h"
#include "plan/epilogue.h"

#include <algorithm>

namespace ingot::kernels {

std::optional<std::string> refuse_contraction(const Group& group, Value quantised) {
    std::optional<std::string> why = plan::refuse_packed(group, quantised);
    return why ? why : plan::refuse_epilogue(group);
}

bool has_halves(const Group& group) {
    return group.nodes.size() == 4 && group.nodes[1].is(slice_def) && group.nodes[2].is(slice_def);
}

std::optional<std::string> refuse_halves(const Group& group) {
    const Graph& g = group.graph;
    Value main = group.nodes[0].outputs[0];
    const Node& map = group.nodes[3];
    const Dims& whole = g.type(main).dims;
    const Dims& half = g.type(group.nodes[1].outputs[0]).dims;
    if (!map.is(map_def) || group.outputs.size() != 1 || group.outputs[0] != map.outputs[0] ||
        g.type(map.outputs[0]).dims != half) {
        return "the node after the halves is not a map of their shape";
    }
    if (whole.empty() || !whole.back().is_const() || whole.back() != half.back() + half.back()) {
        return "no halves of the last axis";
    }
    for (size_t i : {1, 2}) {
        const Node& n = group.nodes[i];
        const auto& s = n.as<Slice>();
        Dims starts(whole.size(), Dim(0));
        starts.back() = i == 1 ? Dim(0) : half.back();
        Dims sizes = whole;
        sizes.back() = half.back();
        if (n.inputs[0] != main || s.starts != starts || s.sizes != sizes || s.steps.back() != 1) {
            return "no halves of the last axis";
        }
    }
    bool reads_whole = std::find(map.inputs.begin(), map.inputs.end(), main) != map.inputs.end();
    for (Value v : map.inputs) {
        if (reads_whole || is_packed(g.type(v).dtype)) {
            return reads_whole ? "the map reads the whole too" : "4-bit elements";
        }
    }
    return is_packed(g.type(map.outputs[0]).dtype) ? std::optional<std::string>("4-bit elements")
                                                   : std::nullopt;
}

namespace {

/// The addends at the beginning of `e`, whose input i is the sum where `is_sum[i]`.
struct Chain {
    std::vector<int> addends; // instructions
    std::vector<bool> taken;  // by the chain, the sum included
    int end = -1;             // its last instruction
};

Chain chain_of(const Expr& e, const std::vector<bool>& is_sum) {
    Chain c;
    c.taken.assign(e.code.size(), false);
    std::vector<int> uses = plan::uses_of(e);
    auto is_input = [&](int n, bool sum) {
        const ExprInstr& i = e.code[static_cast<size_t>(n)];
        return i.op == ExprOp::In && is_sum[static_cast<size_t>(i.args[0])] == sum;
    };
    int count = static_cast<int>(e.code.size());
    for (int n = 0; n < count; ++n) {
        if (is_input(n, true)) {
            if (c.end >= 0) { // the addend occurs twice
                return {{}, std::vector<bool>(e.code.size(), false), -1};
            }
            c.end = n;
        }
    }
    if (c.end < 0) {
        return c;
    }
    c.taken[static_cast<size_t>(c.end)] = true;
    for (int n = c.end + 1; n < count; ++n) {
        const ExprInstr& i = e.code[static_cast<size_t>(n)];
        bool first = i.args[0] == c.end;
        int other = first ? i.args[1] : i.args[0];
        if (i.op != ExprOp::Add || !is_float(i.type) || (!first && i.args[1] != c.end) ||
            uses[static_cast<size_t>(c.end)] != 1 || other == c.end || !is_input(other, false) ||
            uses[static_cast<size_t>(other)] != 1) {
            continue;
        }
        c.addends.push_back(other);
        c.taken[static_cast<size_t>(other)] = true;
        c.taken[static_cast<size_t>(n)] = true;
        c.end = n;
    }
    return c;
}

/// sum + addend + addend ..., in the types of these operands; returns the last instruction.
int begin_body(Expr& out, DType sum, const std::vector<Operand>& operands, size_t addends) {
    int at = out.in(0, sum);
    for (size_t i = 0; i < addends; ++i) {
        at = out.op(ExprOp::Add, at, out.in(static_cast<int>(i) + 1, operands[i].dtype));
    }
    return at;
}

/// Appends the instructions of `e` that are not taken. `at`: the new index of each taken one;
/// `inputs`: inputs of the new body, by input of `e`.
void append_rest(Expr& out, const Expr& e, const std::vector<bool>& taken, std::vector<int> at,
                 const std::vector<int>& inputs) {
    if (taken.back()) {
        return;
    }
    for (size_t n = 0; n < e.code.size(); ++n) {
        if (taken[n]) {
            continue;
        }
        ExprInstr c = e.code[n];
        if (c.op == ExprOp::In) {
            c.args[0] = inputs[static_cast<size_t>(c.args[0])];
        }
        for (int k = 0; k < plan::argument_count(c); ++k) {
            auto& arg = c.args[static_cast<size_t>(k)];
            arg = at[static_cast<size_t>(arg)];
        }
        at[n] = static_cast<int>(out.code.size());
        out.code.push_back(c);
    }
}

/// The operands of a map besides the sum: the addends first.
void add_map(Epilogue& f, const Problem& p, const Node& map, Value sum) {
    const Expr& e = map.as<Map>().body;
    std::vector<bool> is_sum;
    for (Value v : map.inputs) {
        is_sum.push_back(v == sum);
    }
    Chain chain = chain_of(e, is_sum);
    std::vector<Value> values;
    auto add = [&](Value v) {
        if (std::find(values.begin(), values.end(), v) == values.end()) {
            values.push_back(v);
        }
    };
    for (int n : chain.addends) {
        add(map.inputs[static_cast<size_t>(e.code[static_cast<size_t>(n)].args[0])]);
    }
    f.addends = values.size();
    if (f.addends != chain.addends.size()) { // one of them twice
        chain = {{}, std::vector<bool>(e.code.size(), false), -1};
        f.addends = 0;
    }
    for (Value v : map.inputs) {
        if (v != sum) {
            add(v);
        }
    }
    for (Value v : values) {
        Operand o = p.operand(v);
        o.view = plan::broadcasted(o.view, p.out[0].view.shape);
        f.operands.push_back(std::move(o));
    }
    std::vector<int> inputs;
    for (Value v : map.inputs) {
        inputs.push_back(v == sum ? 0
                                  : static_cast<int>(std::find(values.begin(), values.end(), v) -
                                                     values.begin()) +
                                        1);
    }
    f.body.code.clear();
    std::vector<int> at(e.code.size(), 0);
    if (chain.end >= 0) {
        at[static_cast<size_t>(chain.end)] = begin_body(f.body, f.sum_type, f.operands, f.addends);
    }
    append_rest(f.body, e, chain.taken, std::move(at), inputs);
}

/// The operands of a map besides the two sums.
void add_pair_map(Epilogue& f, const Problem& p) {
    const Node& map = p.group.nodes[3];
    const Expr& e = map.as<Map>().body;
    f.sums = 2;
    Values values = {p.group.nodes[1].outputs[0], p.group.nodes[2].outputs[0]};
    std::vector<int> inputs;
    for (Value v : map.inputs) {
        auto at = std::find(values.begin(), values.end(), v);
        inputs.push_back(static_cast<int>(at - values.begin()));
        if (at == values.end()) {
            values.push_back(v);
            Operand o = p.operand(v);
            o.view = plan::broadcasted(o.view, p.out[0].view.shape);
            f.operands.push_back(std::move(o));
        }
    }
    std::vector<bool> taken(e.code.size(), false);
    append_rest(f.body, e, taken, std::vector<int>(e.code.size(), 0), inputs);
}

} // namespace

Epilogue epilogue_of(const Problem& p) {
    Epilogue f;
    Value sum = p.group.nodes[0].outputs[0];
    f.sum_type = p.group.graph.type(sum).dtype;
    f.type = p.out[0].dtype;
    bool rounded = p.tf32 && p.group.graph.type(p.group.nodes[0].inputs[0]).dtype == DType::F32;
    if (has_halves(p.group)) {
        add_pair_map(f, p);
    } else {
        f.body.in(0, f.sum_type);
        if (p.group.nodes.size() > 1) {
            add_map(f, p, p.group.nodes[1], sum);
        }
    }
    f.quick =
        narrow_result(f.type) || ends_by_rounding(f.body) || (rounded && f.type == DType::F32);
    return f;
}

void add_missing_addend(Epilogue& f) {
    Operand o;
    o.dtype = f.type;
    o.buffer = missing_operand;
    f.operands.insert(f.operands.begin() + static_cast<ptrdiff_t>(f.addends), o);
    Expr body;
    int end = begin_body(body, f.sum_type, f.operands, f.addends + 1);
    std::vector<int> at(f.body.code.size(), 0);
    std::vector<bool> taken(f.body.code.size(), false);
    for (size_t n = 0; n <= 2 * f.addends; ++n) {
        taken[n] = true;
    }
    at[2 * f.addends] = end;
    std::vector<int> inputs;
    for (size_t i = 0; i <= f.operands.size(); ++i) {
        inputs.push_back(static_cast<int>(i <= f.addends ? i : i + 1));
    }
    append_rest(body, f.body, taken, std::move(at), inputs);
    f.body = std::move(body);
    ++f.addends;
}

int value_instructions(const Epilogue& f) {
    auto widened = static_cast<int>(f.operands.size());
    return widened + instructions_of(f.body, f.quick);
}

std::string value_text(const Epilogue& f, bool unrounded) {
    bool two = f.sums == 2;
    std::string params = two ? ", ACC other" : "";
    std::vector<std::string> inputs = {"a"};
    if (two) {
        inputs.emplace_back("b");
    }
    for (size_t i = 0; i < f.operands.size(); ++i) {
        append(params, str(", ", c_type(f.operands[i].dtype), " e", i));
        inputs.push_back(str("widen(e", i, ")"));
    }
    std::string_view type = compute_c_type(f.sum_type);
    std::string wrapped = is_float(f.sum_type) ? "" : str("(", c_type(f.sum_type), ")");
    std::string second = two ? str(type, " b = (", type, ")", wrapped, "other;\n") : "";
    bool rounded = unrounded || narrow_result(f.type);
    ExprText t = expr_text(f.body, inputs, "v", f.quick ? Functions::Fast : Functions::Precise,
                           rounded ? std::optional(f.type) : std::nullopt);
    return str(device_files(t), "DEVICE ", unrounded ? "float" : "OUT", " value_of(ACC sum", params,
               ") {\n", type, " a = (", type, ")", wrapped, "sum;\n", second, t.statements,
               "return ", unrounded ? "(float)(" : "narrow<OUT>(", t.result, ");\n}\n");
}

} // namespace ingot::kernels
