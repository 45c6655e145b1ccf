// SPDX-License-Identifier: Apache-2.0
#include "workflow/compare/slim_check.h"

#include "base/error.h"

#include <algorithm>

namespace ingot {

namespace {

std::shared_ptr<const Engine> as_engine(const onnx::Model& model) {
    return Engine::create(onnx::import_or_throw(model), {}, {});
}

// Orders the tensors like the engine's inputs, by name.
std::vector<Tensor> in_order(const Engine& e, const Engine& from,
                             const std::vector<Tensor>& tensors) {
    std::vector<Tensor> out;
    const Graph& source = from.graph();
    for (Value v : e.graph().inputs()) {
        const std::string& name = e.graph().value_name(v);
        size_t k = 0;
        while (k < tensors.size() && source.value_name(source.inputs()[k]) != name) {
            ++k;
        }
        require(k < tensors.size(), ErrorCode::Internal, "the slimmed model has lost input '", name,
                "'");
        out.push_back(tensors[k]);
    }
    return out;
}

} // namespace

bool SlimCheck::ok() const {
    return std::all_of(outputs.begin(), outputs.end(),
                       [](const TensorDifference& d) { return d.within; });
}

SlimCheck check_slimmed(const onnx::Model& original, const onnx::Model& slimmed,
                        const Backend& backend, const CompareOptions& options) {
    SlimCheck out;
    const std::shared_ptr<const Engine> after = as_engine(slimmed);
    const LoadedInputs inputs = load_inputs(*after, options.inputs);
    out.random_inputs = inputs.random;
    const std::vector<Tensor> got = Context(after, backend, options.compile).run(inputs.tensors);
    const std::shared_ptr<const Engine> before = as_engine(original);
    const std::vector<Tensor> expected =
        Context(before, backend, options.compile).run(in_order(*before, *after, inputs.tensors));
    const std::vector<std::string>& names = before->graph().output_names();
    for (size_t i = 0; i < names.size(); ++i) {
        const std::vector<std::string>& now = after->graph().output_names();
        const auto k =
            static_cast<size_t>(std::find(now.begin(), now.end(), names[i]) - now.begin());
        out.outputs.push_back(difference(names[i], k < got.size() ? got[k] : Tensor(), expected[i],
                                         options.atol, options.rtol));
    }
    return out;
}

} // namespace ingot
