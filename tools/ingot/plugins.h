// SPDX-License-Identifier: Apache-2.0
// Libraries of plugins that options name, and what of them builds and runs need.
#pragma once

#include "engine/engine.h"
#include "workflow/build.h"

namespace ingot {
class Options; // api/options.h
}

namespace ingot::tool {

bool has_plugin_libraries(const Options& o);
/// Loads what --staticPlugins and --dynamicPlugins name. Errors: Io and InvalidArgument for a
/// library that cannot be loaded; Unsupported for --setPluginsToSerialize.
void load_plugin_libraries(const Options& o);
/// Builds take plugins for nodes that are named as they are; tactics of plugins are timed on the
/// device that --device names.
void take_plugins(BuildConfig& c, const Options& o);
/// The plugins of an engine; null when it has none. Errors: Unsupported for one that no library
/// has; what its creator says.
std::shared_ptr<plan::PluginHost> plugins_of(const Engine& engine);

} // namespace ingot::tool
