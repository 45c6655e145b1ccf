// SPDX-License-Identifier: Apache-2.0
#include "plan/reference.h"

#include "ops/evaluator.h"

namespace ingot::plan {

std::vector<Tensor> eval_node(const Graph& g, const Node& n, std::span<const Tensor> in,
                              const Symbols& symbols) {
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
    std::function<std::vector<Tensor>(const Graph&, std::span<const Tensor>)> run =
        [&symbols](const Graph& body, std::span<const Tensor> args) {
            return evaluate(body, args, {}, symbols);
        };
    EvalArgs args{in, out, symbols, run};
    n.def->eval(n.attrs.get(), args);
    return out;
}

} // namespace ingot::plan
