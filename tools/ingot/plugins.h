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
/// Lets builds use plugins for nodes with their names, and times plugin tactics on the device of
/// --device.
void take_plugins(BuildConfig& c, const Options& o);
/// The plugins of an engine; null without any. Errors: Unsupported for a plugin that no library
/// has; errors of its creator.
std::shared_ptr<plan::PluginHost> plugins_of(const Engine& engine);

} // namespace ingot::tool
