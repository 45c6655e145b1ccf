// SPDX-License-Identifier: Apache-2.0
#include "onnx/input_sizes.h"

#include "ir/fixed_sizes.h"
#include "onnx/import_node.h"

namespace ingot::onnx {

namespace {

bool has_dims(const ValueInfo& info) {
    return info.kind == ValueKind::Tensor && info.has_shape;
}

} // namespace

void fix_input_sizes(Model& model, const std::vector<Profile>& profiles) {
    if (profiles.empty()) {
        return;
    }
    std::vector<NamedType> inputs;
    for (const ValueInfo& info : model.graph.inputs) {
        Type t;
        for (size_t i = 0; has_dims(info) && i < info.dims.size(); ++i) {
            const ShapeDim& d = info.dims[i];
            t.dims.push_back(d.value >= 0 ? Dim(d.value) : open_size(d.param, info.name, i));
        }
        inputs.emplace_back(info.name, std::move(t));
    }
    std::vector<NamedType> fixed = with_fixed_sizes(inputs, profiles);
    for (size_t k = 0; k < fixed.size(); ++k) {
        for (size_t i = 0; i < fixed[k].second.dims.size(); ++i) {
            const Dim& d = fixed[k].second.dims[i];
            if (d != inputs[k].second.dims[i]) {
                model.graph.inputs[k].dims[i] =
                    d.is_const() ? ShapeDim{d.value(), ""} : ShapeDim{-1, to_text(d)};
            }
        }
    }
}

} // namespace ingot::onnx
