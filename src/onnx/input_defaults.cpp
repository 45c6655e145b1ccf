// SPDX-License-Identifier: Apache-2.0
#include "onnx/input_defaults.h"

#include "base/error.h"
#include "onnx/import_node.h"

#include <algorithm>

namespace ingot::onnx {

namespace {

constexpr int64_t first_version_with_defaults = 4;
constexpr size_t most_bytes = 1U << 20U; // they lie in the engine's metadata, as text

template <class List>
auto find(List& list, const std::string& name) {
    return std::find_if(list.begin(), list.end(), [&](const auto& t) { return t.name == name; });
}

bool fits(const Type& input, const ingot::Tensor& value) {
    bool out = input.dtype == value.dtype() && input.rank() == value.rank();
    for (size_t i = 0; out && i < input.dims.size(); ++i) {
        out = input.dims[i].as_const().value_or(value.shape()[i]) == value.shape()[i];
    }
    return out;
}

void check_default(const ValueInfo& input, const Tensor& initial) {
    require(initial.missing.empty(), ErrorCode::InvalidArgument,
            "its default cannot be read: ", initial.missing);
    Type type = graph_input_type(input);
    ingot::Tensor value = initializer(initial);
    require(fits(type, value), ErrorCode::InvalidArgument, "it is ", to_text(type),
            ", and its default is ", to_text(value.type()),
            ": give the model a default of the input's type and shape");
    require(value.bytes().size() <= most_bytes, ErrorCode::InvalidArgument, "its default has ",
            value.bytes().size(), " bytes, at most ", most_bytes,
            " are kept: leave it a constant, or let clients send it");
}

void make_optional(Model& model, const std::string& name) {
    auto input = find(model.graph.inputs, name);
    require(input != model.graph.inputs.end(), ErrorCode::InvalidArgument,
            "the model has no such input");
    auto initial = find(model.graph.initializers, name);
    require(initial != model.graph.initializers.end(), ErrorCode::InvalidArgument,
            "it has no default: the model has no initializer of this name; add one, or let every "
            "run bring the input");
    require(model.ir_version >= first_version_with_defaults, ErrorCode::InvalidArgument,
            "the model has IR version ", model.ir_version, ", and initializers are defaults from ",
            first_version_with_defaults, " on: export the model anew");
    check_default(*input, *initial);
    model.input_defaults.push_back(std::move(*initial));
    model.graph.initializers.erase(initial);
}

} // namespace

void make_optional(Model& model, std::span<const std::string> names) {
    for (const std::string& name : names) {
        if (find(model.input_defaults, name) == model.input_defaults.end()) {
            with_place([&] { return str("optional input '", name, "'"); },
                       [&] { make_optional(model, name); });
        }
    }
}

} // namespace ingot::onnx
