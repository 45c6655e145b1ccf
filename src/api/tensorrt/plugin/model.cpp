// SPDX-License-Identifier: Apache-2.0
#include "api/tensorrt/plugin/model.h"

#include "api/tensorrt/builder/builder.h"
#include "api/tensorrt/parser/model_layers.h"
#include "api/tensorrt/plugin/node.h"
#include "base/shared_library.h"

#include <algorithm>

namespace ingot::api {

bool has_custom_nodes(const onnx::Model& model) {
    return std::any_of(model.graph.nodes.begin(), model.graph.nodes.end(), [](const onnx::Node& n) {
        return find_custom(n, *::getPluginRegistry()).has_value();
    });
}

Graph import_with_plugins(const onnx::Model& model, const ModelImport& how, PluginBuild& plugins) {
    Builder builder(nullptr);
    Network network(builder, 0, plugins.report);
    ModelLayers layers(network, std::make_shared<const onnx::Model>(model), how.plugins_first);
    layers.run();
    std::string reasons;
    for (const auto& e : layers.errors()) {
        append(reasons, str("\n  ", e->desc()));
    }
    require(reasons.empty(), ErrorCode::Unsupported, layers.errors().size(), " node",
            layers.errors().size() == 1 ? "" : "s", " cannot be imported:", reasons);
    return network.build({how.keep_names, false, how.named_weights, &plugins});
}

void open_plugin_library(const std::string& path) {
    auto& registry = static_cast<PluginRegistry&>(*::getPluginRegistry());
    size_t before = registry.creator_count();
    std::string problem;
    SharedLibrary file = SharedLibrary::open(path, problem);
    require(static_cast<bool>(file), ErrorCode::Io, "library '", path,
            "' cannot be loaded: ", problem);
    using Init = bool (*)(void*, const char*);
    if (auto init = reinterpret_cast<Init>(file.symbol("initLibNvInferPlugins"))) {
        require(init(::getLogger(), ""), ErrorCode::InvalidArgument, "initLibNvInferPlugins() of '",
                path, "' returned false");
    }
    if (registry.creator_count() == before) {
        registry.load(path);
    }
}

} // namespace ingot::api
