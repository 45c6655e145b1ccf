// SPDX-License-Identifier: Apache-2.0
#include "ops/evaluator.h"

#include "base/error.h"
#include "base/interrupt.h"
#include "ir/rewrite.h"
#include "ops/primitives.h"

#include <algorithm>
#include <array>
#include <bit>

namespace ingot {

namespace {

// Solves dim == size for its one unbound symbol when dim is linear in it.
bool solve(const Dim& dim, int64_t size, Symbols& symbols) {
    std::set<std::string, std::less<>> names;
    dim.collect_symbols(names);
    std::string unknown;
    for (const std::string& n : names) {
        if (!symbols.contains(n)) {
            if (!unknown.empty()) {
                return false;
            }
            unknown = n;
        }
    }
    if (unknown.empty()) {
        return true;
    }
    Symbols trial = symbols;
    trial[unknown] = 0;
    int64_t at0 = dim.eval(trial);
    trial[unknown] = 1;
    int64_t slope = dim.eval(trial) - at0;
    if (slope == 0 || (size - at0) % slope != 0) {
        return false;
    }
    symbols[unknown] = (size - at0) / slope;
    return true;
}

} // namespace

void bind_symbols(const Dims& dims, const Shape& shape, Symbols& symbols, std::string_view what) {
    require(dims.size() == shape.size(), ErrorCode::InvalidArgument, what, " has rank ",
            shape.size(), " ", shape, ", expected rank ", dims.size(), " ", dims);
    for (size_t i = 0; i < dims.size(); ++i) {
        std::string_view name = dims[i].symbol_name();
        if (!name.empty()) {
            symbols.emplace(std::string(name), shape[i]);
        }
    }
    for (size_t i = 0; i < dims.size(); ++i) {
        if (solve(dims[i], shape[i], symbols)) {
            auto want = dims[i].try_eval(symbols);
            require(want == shape[i], ErrorCode::InvalidArgument, what, " dimension ", i, " is ",
                    shape[i], ", expected ", want.value_or(-1),
                    dims[i].is_const() ? std::string() : str(" (", dims[i], ")"));
        }
    }
}

namespace {

class Runner {
public:
    Runner(const EvalOptions& options, Symbols symbols)
        : options_(options), symbols_(std::move(symbols)),
          run_([this](const Graph& body, std::span<const Tensor> in) {
              EvalOptions inner;
              return Runner(inner, symbols_).run(body, in, "body input");
          }) {}

    std::vector<Tensor> run(const Graph& g, std::span<const Tensor> inputs, std::string_view what) {
        require(inputs.size() == g.inputs().size(), ErrorCode::InvalidArgument, "graph '", g.name(),
                "' takes ", g.inputs().size(), " inputs, got ", inputs.size());
        std::vector<Tensor> values(g.value_count());
        for (size_t i = 0; i < inputs.size(); ++i) {
            Value v = g.inputs()[i];
            const Type& t = g.type(v);
            std::string place = str(what, " '", g.value_name(v), "'");
            require(inputs[i].dtype() == t.dtype, ErrorCode::InvalidArgument, place, " is ",
                    inputs[i].dtype(), ", expected ", t.dtype);
            bind_symbols(t.dims, inputs[i].shape(), symbols_, place);
            values[v.id] = inputs[i];
        }
        std::vector<uint32_t> uses = use_counts(g);
        for (const Node& n : g.nodes()) {
            check_interrupt();
            run_node(g, n, values);
            for (Value v : n.inputs) {
                if (--uses[v.id] == 0) {
                    values[v.id] = Tensor();
                }
            }
        }
        std::vector<Tensor> out;
        for (Value v : g.outputs()) {
            out.push_back(values[v.id]);
        }
        return out;
    }

private:
    void run_node(const Graph& g, const Node& n, std::vector<Tensor>& values) {
        std::vector<Tensor> in;
        for (Value v : n.inputs) {
            in.push_back(values[v.id]);
        }
        std::vector<Tensor> out(n.outputs.size());
        with_place(
            [&] {
                return str(n.name.empty() ? "" : str("node '", n.name, "', "), "op ", n.def->name);
            },
            [&] {
                n.def->is_composite() ? run_composite(g, n, in, out) : run_primitive(g, n, in, out);
            });
        for (size_t i = 0; i < out.size(); ++i) {
            const Type& t = g.type(n.outputs[i]);
            bind_symbols(t.dims, out[i].shape(), symbols_, str("result ", i, " of ", n.def->name));
            if (options_.replace) {
                out[i] = options_.replace(n, std::move(out[i]));
            }
            if (options_.observe) {
                options_.observe(n.outputs[i], out[i]);
            }
            values[n.outputs[i].id] = std::move(out[i]);
        }
    }

    void run_primitive(const Graph& g, const Node& n, std::span<const Tensor> in,
                       std::span<Tensor> out) {
        if (!n.is(constant_def) && !n.is(if_def) && !n.is(loop_def) && !n.is(fused_def)) {
            for (size_t i = 0; i < out.size(); ++i) {
                const Type& t = g.type(n.outputs[i]);
                Shape shape;
                for (const Dim& d : t.dims) {
                    auto v = d.try_eval(symbols_);
                    if (!v) {
                        break;
                    }
                    shape.push_back(*v);
                }
                if (shape.size() == t.dims.size()) {
                    out[i] = Tensor::empty(t.dtype, std::move(shape));
                }
            }
        }
        require(
            n.def->eval != nullptr, ErrorCode::Unsupported, "'", n.def->name,
            "' has no reference evaluation: it is the application's code, or an exchange between "
            "GPUs");
        EvalArgs args{in, out, symbols_, run_};
        n.def->eval(n.attrs.get(), args);
        if (n.is(tensor_to_dims_def)) {
            const Dims& names = n.as<TensorToDims>().symbols;
            for (size_t i = 0; i < names.size(); ++i) {
                symbols_[std::string(names[i].symbol_name())] =
                    in[0].get_i64(static_cast<int64_t>(i));
            }
        }
    }

    void run_composite(const Graph& g, const Node& n, std::span<const Tensor> in,
                       std::span<Tensor> out) {
        Graph body = g.sibling(std::string(n.def->name));
        Values inputs;
        for (Value v : n.inputs) {
            inputs.push_back(body.add_input({}, g.type(v)));
        }
        Values results = n.def->expand(body, n.attrs.get(), inputs);
        for (Value v : results) {
            body.add_output({}, v);
        }
        EvalOptions inner;
        std::vector<Tensor> r = Runner(inner, symbols_).run(body, in, "input");
        std::move(r.begin(), r.end(), out.begin());
    }

    const EvalOptions& options_;
    Symbols symbols_;
    std::function<std::vector<Tensor>(const Graph&, std::span<const Tensor>)> run_;
};

// --- promotion to f64 ---------------------------------------------------------------------------

DType promoted(DType t) {
    return t == DType::F32 || t == DType::F16 || t == DType::BF16 ? DType::F64 : t;
}

bool tiny_float(DType t) {
    return is_float(t) && promoted(t) != DType::F64;
}

Tensor promoted(const Tensor& t) {
    if (promoted(t.dtype()) == t.dtype()) {
        return t;
    }
    Tensor r = Tensor::empty(DType::F64, t.shape());
    for (int64_t i = 0; i < t.count(); ++i) {
        r.set_f64(i, t.get_f64(i));
    }
    return r;
}

// Rewrites one map: everything in f64; fp8 and fp4 operands and results keep their rounding.
Map promoted(const Map& m, std::span<const DType> inputs) {
    Map out;
    out.dtype = promoted(m.dtype);
    std::vector<int> at(m.body.code.size());
    for (size_t n = 0; n < at.size(); ++n) {
        const ExprInstr& c = m.body.code[n];
        auto arg = [&](size_t k) { return at[static_cast<size_t>(c.args[k])]; };
        switch (c.op) {
        case ExprOp::In: {
            DType stored = inputs[static_cast<size_t>(c.args[0])];
            at[n] = out.body.in(c.args[0], promoted(stored));
            at[n] = tiny_float(stored) ? out.body.cast(at[n], DType::F64) : at[n];
            break;
        }
        case ExprOp::Const:
            at[n] = is_float(c.type)
                        ? out.body.constant(promoted(c.type), std::bit_cast<double>(c.imm))
                        : out.body.constant_i64(c.type, c.imm);
            break;
        case ExprOp::Cast:
            at[n] = out.body.cast(arg(0), promoted(c.to), c.imm != 0);
            at[n] = tiny_float(c.to) ? out.body.cast(at[n], DType::F64) : at[n];
            break;
        case ExprOp::Select:
            at[n] = out.body.select(arg(0), arg(1), arg(2));
            break;
        default:
            at[n] = out.body.op(c.op, arg(0), arity(c.op) > 1 ? arg(1) : -1);
        }
    }
    int result = tiny_float(m.dtype) ? out.body.cast(at.back(), m.dtype, true) : at.back();
    if (result + 1 != static_cast<int>(out.body.code.size())) { // the result must come last
        out.body.code.push_back({ExprOp::Select,
                                 out.body.code[static_cast<size_t>(result)].type,
                                 {out.body.constant_i64(DType::Bool, 1), result, result}});
    }
    return out;
}

struct Promoter : NullVisitor {
    using NullVisitor::field;
    void field(std::string_view, DType& v) override { v = promoted(v); }
    void field(std::string_view, Tensor& v) override { v = promoted(v); }
    void field(std::string_view, GraphRef& v) override {
        v = v == nullptr ? v : std::make_shared<const Graph>(promoted_to_f64(*v));
    }
};

Value cast_value(Graph& g, Value v, DType to) {
    Map m;
    m.dtype = to;
    m.body.cast(m.body.in(0, g.type(v).dtype), to);
    return g.type(v).dtype == to ? v : g.add1(map_def, std::move(m), {v});
}

// Reinterpreting bits requires the original width.
Value promoted_bitcast(Graph& out, const Graph& g, const Node& n, Value in) {
    Value narrow = cast_value(out, in, g.type(n.inputs[0]).dtype);
    Value bits = out.add(bitcast_def, n.attrs, std::array{narrow})[0];
    return cast_value(out, bits, promoted(g.type(n.outputs[0]).dtype));
}

} // namespace

Graph promoted_to_f64(const Graph& g) {
    Graph out = g.sibling(g.name());
    std::vector<Value> at(g.value_count());
    for (Value v : g.inputs()) {
        Type t = g.type(v);
        at[v.id] = out.add_input(g.value_name(v), {promoted(t.dtype), t.dims});
    }
    for (const Node& n : g.nodes()) {
        out.set_origin(n.name);
        Values in;
        for (Value v : n.inputs) {
            in.push_back(at[v.id]);
        }
        Values made;
        if (n.is(map_def)) {
            std::vector<DType> dtypes;
            for (Value v : n.inputs) {
                dtypes.push_back(g.type(v).dtype);
            }
            made = out.add(map_def, promoted(n.as<Map>(), dtypes), in);
        } else if (n.is(bitcast_def)) {
            made = {promoted_bitcast(out, g, n, in[0])};
        } else {
            Promoter p;
            made = out.add(*n.def, with_visitor(*n.def, n.attrs.get(), p), in);
        }
        for (size_t i = 0; i < made.size(); ++i) {
            at[n.outputs[i].id] = made[i];
            out.set_value_name(made[i], g.value_name(n.outputs[i]));
        }
    }
    for (size_t i = 0; i < g.outputs().size(); ++i) {
        out.add_output(g.output_names()[i], at[g.outputs()[i].id]);
    }
    return out;
}

std::vector<Tensor> evaluate(const Graph& g, std::span<const Tensor> inputs,
                             const EvalOptions& options, Symbols symbols) {
    if (!options.f64) {
        return Runner(options, std::move(symbols)).run(g, inputs, "input");
    }
    Graph wide = promoted_to_f64(g);
    std::vector<Tensor> in;
    for (const Tensor& t : inputs) {
        in.push_back(promoted(t));
    }
    EvalOptions inner;
    inner.observe = options.observe;
    inner.replace = options.replace;
    return Runner(inner, std::move(symbols)).run(wide, in, "input");
}

} // namespace ingot
