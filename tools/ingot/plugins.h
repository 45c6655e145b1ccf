// SPDX-License-Identifier: Apache-2.0
// Plugin libraries from the options, for builds and runs.
#pragma once

#include "engine/engine.h"
#include "workflow/build.h"

namespace ingot {
class Options; // api/options.h
}

namespace ingot::tool {

bool has_plugin_libraries(const Options& o);
/// Loads the libraries of --staticPlugins and --dynamicPlugins. Errors: Io and InvalidArgument for
/// a library that cannot be loaded; Unsupported for --setPluginsToSerialize.
void load_plugin_libraries(const Options& o);
/// The engine of a model. Plugins of the options run the nodes with their names; plugin tactics are
/// timed on the device of --device. Errors: as build_engine().
std::shared_ptr<const Engine> build_model(const std::string& path, const BuildConfig& config,
                                          const Options& o);
/// The plugins of an engine; null without any. Errors: Unsupported for a plugin that no library
/// has; errors of its creator.
std::shared_ptr<plan::PluginHost> plugins_of(const Engine& engine);

} // namespace ingot::tool
