// SPDX-License-Identifier: Apache-2.0
#include "plugins.h"

#include "api/options/build.h"
#include "api/options/run.h"
#include "api/tensorrt/plugin/model.h"
#include "backends/backends.h"
#include "base/error.h"
#include "common.h"

namespace ingot::tool {

bool has_plugin_libraries(const Options& o) {
    return !o.build().static_plugins.empty() || !o.build().dynamic_plugins.empty();
}

void load_plugin_libraries(const Options& o) {
    require(o.build().serialized_plugins.empty(), ErrorCode::Unsupported,
            "--setPluginsToSerialize: an engine file holds no host code, so that no library can "
            "travel in it; give --dynamicPlugins=FILE here and wherever the engine is loaded");
    for (const std::string& path : o.build().static_plugins) {
        api::open_plugin_library(path);
    }
    for (const std::string& path : o.build().dynamic_plugins) {
        static_cast<api::PluginRegistry&>(*getPluginRegistry()).load(path);
    }
}

namespace {

/// The device for timing plugins; null where the engine may target a GPU that this machine lacks:
/// host addresses would crash its plugins.
const Backend* timing_place(Options o) {
    bool numbered = !o.run().device.empty() &&
                    o.run().device.find_first_not_of("0123456789") == std::string::npos;
    std::string why;
    const Backend* gpu = numbered ? cuda_backend(std::stoi(o.run().device), why) : nullptr;
    bool host = o.run().device == "cpu";
    o.run().device = numbered ? "auto" : o.run().device;
    const Backend* found = gpu != nullptr ? gpu : &choose_backend(o);
    return found == &cpu_backend() && !host ? nullptr : found;
}

} // namespace

/// The graph of a model with nodes that plugins run, whose tactics are timed.
static Graph import_with_plugins(const onnx::Model& model, const BuildConfig& config,
                                 const Options& o) {
    std::shared_ptr<plan::TimingCache> timings;
    if (!o.run().timing_cache_file.empty()) {
        timings = std::make_shared<plan::TimingCache>(o.run().timing_cache_file);
    }
    api::PluginBuild how;
    how.profiles = &config.profiles;
    how.place = [o] { return timing_place(o); };
    how.timings = timings;
    how.timed_before = o.build().error_on_timing_miss;
    Graph g = api::import_with_plugins(
        model, {config.keep_names, config.refit.has_value(), o.build().plugin_override}, how);
    if (timings != nullptr) {
        timings->save();
    }
    return g;
}

std::shared_ptr<const Engine> build_model(const std::string& path, const BuildConfig& config,
                                          const Options& o) {
    ModelBuild build(path, config);
    bool custom = has_plugin_libraries(o) && api::has_custom_nodes(build.model());
    Graph g = custom ? with_place([&] { return path; },
                                  [&] { return import_with_plugins(build.model(), config, o); })
                     : build.import();
    return std::move(build).engine(std::move(g));
}

std::shared_ptr<plan::PluginHost> plugins_of(const Engine& engine) {
    try {
        return api::make_plugin_host(engine.graph(),
                                     static_cast<api::PluginRegistry&>(*getPluginRegistry()),
                                     nullptr, api::Report());
    } catch (const Error& e) {
        if (e.code() != ErrorCode::Unsupported) {
            throw;
        }
        fail(e.code(), e.what(), "; the command takes a library as --dynamicPlugins=FILE");
    }
}

} // namespace ingot::tool
