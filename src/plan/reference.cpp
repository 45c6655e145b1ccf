// SPDX-License-Identifier: Apache-2.0
#include "plan/reference.h"

#include "ops/evaluator.h"
#include "ops/primitives.h"
#include "plan/device.h"

namespace ingot::plan {

std::vector<Tensor> eval_node(const Graph& g, const Node& n, std::span<const Tensor> in,
                              const Symbols& symbols, uint64_t run) {
    std::vector<Tensor> out(n.outputs.size());
    for (size_t i = 0; i < out.size(); ++i) {
        const Type& t = g.type(n.outputs[i]);
        Shape shape;
        bool known = true;
        for (const Dim& d : t.dims) {
            std::optional<int64_t> size = d.try_eval(symbols);
            known = known && size.has_value();
            shape.push_back(size.value_or(0));
        }
        if (known) {
            out[i] = Tensor::empty(t.dtype, shape);
        }
    }
    std::function<std::vector<Tensor>(const Graph&, std::span<const Tensor>)> run_body =
        [&symbols](const Graph& body, std::span<const Tensor> args) {
            return evaluate(body, args, {}, symbols);
        };
    EvalArgs args{in, out, symbols, run_body};
    if (n.is(random_def) && run > 0) {
        constexpr uint64_t golden = 0x9E3779B97F4A7C15U; // separates the keys of runs
        auto attrs = n.as<Random>();
        attrs.seed = static_cast<int64_t>(static_cast<uint64_t>(attrs.seed) + run * golden);
        n.def->eval(&attrs, args);
        return out;
    }
    n.def->eval(n.attrs.get(), args);
    return out;
}

std::vector<Tensor> eval_node(const Graph& g, const Node& n, std::span<const Tensor> in,
                              const Symbols& symbols, Device& device) {
    return eval_node(g, n, in, symbols, n.is(random_def) ? device.draw() : 0);
}

} // namespace ingot::plan
