// SPDX-License-Identifier: Apache-2.0
// if, loop and fused: the ops that run body graphs. A body shares the symbols of the outer graph;
// the values it reads from there are its inputs.
#include "base/interrupt.h"
#include "ops/eval_util.h"
#include "ops/op_table.h"
#include "ops/primitives.h"

#include <algorithm>

namespace ingot {

using eval_util::byte_elements;
using eval_util::byte_target;
using eval_util::deliver;
using eval_util::may_agree;
using eval_util::require_scalar;
using eval_util::store_bytes;

namespace {

std::vector<Type> result_types(const Graph& g) {
    std::vector<Type> out;
    for (Value v : g.outputs()) {
        out.push_back(g.type(v));
    }
    return out;
}

void check_body(std::string_view what, const GraphRef& body, std::span<const Type> in) {
    require(body != nullptr, ErrorCode::InvalidModel, what, " is missing");
    require(body->inputs().size() == in.size(), ErrorCode::InvalidModel, what, " takes ",
            body->inputs().size(), " inputs, got ", in.size());
    for (size_t i = 0; i < in.size(); ++i) {
        const Type& want = body->type(body->inputs()[i]);
        bool fits = want.dtype == in[i].dtype && want.rank() == in[i].rank();
        for (size_t d = 0; fits && d < in[i].dims.size(); ++d) {
            fits = may_agree(want.dims[d], in[i].dims[d]);
        }
        require(fits, ErrorCode::InvalidModel, what, ": input ", i, " is ", in[i], ", expected ",
                want);
    }
}

void check_symbols(std::string_view op, const Dims& symbols) {
    for (const Dim& d : symbols) {
        require(!d.symbol_name().empty(), ErrorCode::InvalidModel, op, ": symbol ", d,
                " is not the name of a size");
    }
}

// --- if ----------------------------------------------------------------------------------------

// `symbols` names every size of every result: a symbol bound at run time, or the size that both
// branches share. This form survives a rewrite that makes the branches' sizes equal.
std::vector<Type> named_results(const If& a, std::vector<Type> l, std::span<const Type> r) {
    size_t at = 0;
    for (size_t i = 0; i < l.size(); ++i) {
        for (size_t d = 0; d < l[i].dims.size(); ++d) {
            const Dim& size = a.symbols[at++];
            bool same = l[i].dims[d] == size && r[i].dims[d] == size;
            require(same || !size.symbol_name().empty(), ErrorCode::InvalidModel, "if: axis ", d,
                    " of result ", i, " is ", l[i].dims[d], " or ", r[i].dims[d], ", expected ",
                    size);
            l[i].dims[d] = size;
        }
    }
    return l;
}

// `symbols` names the sizes that differ, in order.
std::vector<Type> merged_results(const If& a, std::vector<Type> l, std::span<const Type> r) {
    check_symbols("if", a.symbols);
    size_t used = 0;
    for (size_t i = 0; i < l.size(); ++i) {
        for (size_t d = 0; d < l[i].dims.size(); ++d) {
            if (l[i].dims[d] != r[i].dims[d]) {
                require(used < a.symbols.size(), ErrorCode::InvalidModel, "if: axis ", d,
                        " of result ", i, " is ", l[i].dims[d], " or ", r[i].dims[d],
                        ", which needs symbol ", used, ", got ", a.symbols.size(), " symbols");
                l[i].dims[d] = a.symbols[used++];
            }
        }
    }
    require(used == a.symbols.size(), ErrorCode::InvalidModel, "if: got ", a.symbols.size(),
            " symbols, but the branches differ in ", used, " sizes");
    return l;
}

std::vector<Type> infer_if(const If& a, std::span<const Type> in) {
    require(!in.empty(), ErrorCode::InvalidModel, "if: got no inputs, expected a condition");
    require_scalar("if", "the condition", in[0], DType::Bool);
    check_body("if: the then branch", a.then_body, in.subspan(1));
    check_body("if: the else branch", a.else_body, in.subspan(1));
    std::vector<Type> l = result_types(*a.then_body);
    std::vector<Type> r = result_types(*a.else_body);
    require(l.size() == r.size(), ErrorCode::InvalidModel, "if: the then branch has ", l.size(),
            " results, the else branch ", r.size());
    size_t sizes = 0;
    for (size_t i = 0; i < l.size(); ++i) {
        require(l[i].dtype == r[i].dtype && l[i].rank() == r[i].rank(), ErrorCode::InvalidModel,
                "if: result ", i, " is ", l[i], " in the then branch and ", r[i],
                " in the else branch, expected one dtype and rank");
        sizes += l[i].dims.size();
    }
    return a.symbols.size() == sizes ? named_results(a, l, r) : merged_results(a, l, r);
}

void run_body(EvalArgs& e, const Graph& body, std::span<const Tensor> in, std::string_view op) {
    std::vector<Tensor> results = e.run(body, in);
    for (size_t i = 0; i < results.size(); ++i) {
        deliver(e, i, results[i], op);
    }
}

// --- loop --------------------------------------------------------------------------------------

struct LoopParts {
    const Graph& body;
    size_t carried;
    size_t scanned;
    /// Carried values start at this input of node and body; their results follow the condition's.
    static constexpr size_t first_input = 2;
    static constexpr size_t first_result = 1;
};

LoopParts parts_of(const Loop& a) {
    auto carried = static_cast<size_t>(a.carried);
    return {*a.body, carried, a.body->outputs().size() - 1 - carried};
}

void check_loop(const Loop& a, std::span<const Type> in) {
    require(in.size() >= 2, ErrorCode::InvalidModel, "loop: got ", in.size(),
            " inputs, expected trip count and condition first");
    require_scalar("loop", "the trip count", in[0], DType::I64);
    require_scalar("loop", "the condition", in[1], DType::Bool);
    require(a.carried >= 0 && static_cast<size_t>(a.carried) + 2 <= in.size(),
            ErrorCode::InvalidModel, "loop: ", a.carried, " carried values do not fit ", in.size(),
            " inputs");
    check_body("loop: the body", a.body, in);
    check_symbols("loop", a.symbols);
    size_t results = a.body->outputs().size();
    require(results >= 1 + static_cast<size_t>(a.carried), ErrorCode::InvalidModel,
            "loop: the body has ", results, " results, expected at least ", a.carried + 1,
            " (the condition and the carried values)");
    require_scalar("loop", "the body's condition", a.body->type(a.body->outputs()[0]), DType::Bool);
}

// The type of a carried value is the body's input type: each of its sizes is either invariant or a
// fresh symbol.
Type carried_type(const Loop& a, size_t i) {
    LoopParts p = parts_of(a);
    const Type& before = p.body.type(p.body.inputs()[LoopParts::first_input + i]);
    const Type& after = p.body.type(p.body.outputs()[LoopParts::first_result + i]);
    require(after.dtype == before.dtype && after.rank() == before.rank(), ErrorCode::InvalidModel,
            "loop: carried value ", i, " goes into the body as ", before, " and comes out as ",
            after, ", expected one dtype and rank");
    for (size_t d = 0; d < before.dims.size(); ++d) {
        const Dim& size = before.dims[d];
        bool free = std::find(a.symbols.begin(), a.symbols.end(), size) != a.symbols.end();
        require(free || after.dims[d] == size, ErrorCode::InvalidModel, "loop: axis ", d,
                " of carried value ", i, " goes into the body as ", size, " and comes out as ",
                after.dims[d], ", expected a fresh symbol in the body's input type");
    }
    return before;
}

std::vector<Type> infer_loop(const Loop& a, std::span<const Type> in) {
    check_loop(a, in);
    LoopParts p = parts_of(a);
    std::vector<Type> out;
    for (size_t i = 0; i < p.carried; ++i) {
        out.push_back(carried_type(a, i));
    }
    for (size_t i = 0; i < p.scanned; ++i) {
        Type t = p.body.type(p.body.outputs()[LoopParts::first_result + p.carried + i]);
        t.dims.insert(t.dims.begin(), a.count);
        out.push_back(std::move(t));
    }
    return out;
}

// The shape of one scanned element when no iteration ran.
Shape shape_of_none(const Type& t, const Symbols& known) {
    Shape out;
    for (const Dim& d : t.dims) {
        std::set<std::string, std::less<>> names;
        d.collect_symbols(names);
        Symbols all = known;
        for (const std::string& n : names) {
            all.emplace(n, 0);
        }
        out.push_back(std::max<int64_t>(d.eval(all), 0));
    }
    return out;
}

// Element i of the result is rows[i].
Tensor stack(const std::vector<Tensor>& rows, size_t result) {
    Shape shape = rows.front().shape();
    for (size_t i = 1; i < rows.size(); ++i) {
        require(rows[i].shape() == shape, ErrorCode::InvalidArgument, "loop: scanned result ",
                result, " has shape ", rows[i].shape(), " in iteration ", i, ", expected ", shape,
                " as in iteration 0");
    }
    shape.insert(shape.begin(), static_cast<int64_t>(rows.size()));
    Tensor out = Tensor::empty(rows.front().dtype(), shape);
    Tensor moved = byte_target(out);
    std::byte* to = moved.mutable_bytes().data();
    for (const Tensor& row : rows) {
        Tensor from = byte_elements(row);
        if (!from.bytes().empty()) {
            std::memcpy(to, from.bytes().data(), from.bytes().size());
        }
        to += from.bytes().size();
    }
    store_bytes(moved, out);
    return out;
}

// Symbols of the outer graph and those of carried types, from their initial values.
Symbols symbols_before(const LoopParts& p, const EvalArgs& e) {
    Symbols out = e.symbols;
    for (size_t i = LoopParts::first_input; i < LoopParts::first_input + p.carried; ++i) {
        const Dims& dims = p.body.type(p.body.inputs()[i]).dims;
        for (size_t d = 0; d < dims.size(); ++d) {
            if (!dims[d].symbol_name().empty()) {
                out.emplace(std::string(dims[d].symbol_name()), e.in[i].shape()[d]);
            }
        }
    }
    return out;
}

void deliver_scanned(const Loop& a, EvalArgs& e, std::span<const std::vector<Tensor>> rows) {
    LoopParts p = parts_of(a);
    for (size_t i = 0; i < p.scanned; ++i) {
        if (!rows[i].empty()) {
            deliver(e, p.carried + i, stack(rows[i], i), "loop");
            continue;
        }
        const Type& t = p.body.type(p.body.outputs()[LoopParts::first_result + p.carried + i]);
        Shape shape = shape_of_none(t, symbols_before(p, e));
        shape.insert(shape.begin(), 0);
        deliver(e, p.carried + i, Tensor::zeros(t.dtype, shape), "loop");
    }
}

void eval_loop(const Loop& a, EvalArgs& e) {
    LoopParts p = parts_of(a);
    int64_t trips = e.in[0].get_i64(0);
    bool go_on = e.in[1].get_i64(0) != 0;
    std::vector<Tensor> state(e.in.begin(), e.in.end());
    std::vector<std::vector<Tensor>> rows(p.scanned);
    int64_t count = 0;
    for (; count < trips && go_on; ++count) {
        check_interrupt();
        state[0] = Tensor::scalar_i64(DType::I64, count);
        state[1] = Tensor::scalar_i64(DType::Bool, go_on ? 1 : 0);
        std::vector<Tensor> results = e.run(p.body, state);
        go_on = results[0].get_i64(0) != 0;
        for (size_t i = 0; i < p.carried; ++i) {
            state[LoopParts::first_input + i] = results[LoopParts::first_result + i];
        }
        for (size_t i = 0; i < p.scanned; ++i) {
            rows[i].push_back(results[LoopParts::first_result + p.carried + i]);
        }
    }
    for (size_t i = 0; i < p.carried; ++i) {
        deliver(e, i, state[LoopParts::first_input + i], "loop");
    }
    deliver_scanned(a, e, rows);
}

} // namespace

const OpDef if_def = primitive<If>(
    "if", {Rounding::Matters, InHalf::Unchanged, like_result},
    [](const If& a, std::span<const Type> in) { return infer_if(a, in); },
    [](const If& a, EvalArgs& e) {
        run_body(e, e.in[0].get_i64(0) != 0 ? *a.then_body : *a.else_body, e.in.subspan(1), "if");
    });

const OpDef loop_def = primitive<Loop>(
    "loop", {Rounding::Matters, InHalf::Unchanged, like_result},
    [](const Loop& a, std::span<const Type> in) { return infer_loop(a, in); },
    [](const Loop& a, EvalArgs& e) { eval_loop(a, e); });

const OpDef fused_def = primitive<Fused>(
    "fused", {Rounding::Matters, InHalf::Unchanged, like_result},
    [](const Fused& a, std::span<const Type> in) {
        check_body("fused: the body", a.body, in);
        return result_types(*a.body);
    },
    [](const Fused& a, EvalArgs& e) { run_body(e, *a.body, e.in, "fused"); });

extern const OpTable control_ops;
static const OpDef* const list[] = {&if_def, &loop_def, &fused_def};
const OpTable control_ops = list;

} // namespace ingot
