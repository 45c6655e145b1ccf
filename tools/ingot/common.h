// SPDX-License-Identifier: Apache-2.0
// Shared by several commands: opening models, choosing a device, inputs from options.
#pragma once

#include "api/options.h"
#include "engine/engine.h"
#include "workflow/build.h"
#include "workflow/inputs/inputs.h"

#include <memory>

namespace ingot::tool {

/// Build settings from the options; `progress` draws a bar when stderr is a terminal.
BuildConfig build_config(const Options& o, bool progress);
/// From --verify and --noVerifyWeights. Errors: InvalidArgument for both.
CheckWeights check_weights(const Options& o);
/// Lets models read what --allowHiddenFile names, and prints which files hold their data.
void watch_external_data(const Options& o);
/// As --trustedKeys, --trustedOnly and --allowEngineCode say. Errors: Io, InvalidArgument.
Trust engine_trust(const Options& o);
/// Loads an engine file, or builds one in memory from an ONNX model.
std::shared_ptr<const Engine> open_model(const Options& o, const std::string& path);
InputSource input_source(const Options& o);
/// The backend of --device; throws for cuda on a machine without one.
const Backend& choose_backend(const Options& o);
CompileOptions compile_options(const Options& o);
/// The same with the engine's plugins. Errors: as plugins_of().
CompileOptions compile_options(const Options& o, const Engine& engine);
/// On the CPU backend, one warning for each given option that only GPUs support.
void warn_of_gpu_options(const Options& o, const Backend& backend);
std::vector<double> parse_numbers(std::string_view list);
/// "80,8.6" -> 80, 86; `option` names it in messages.
std::vector<int> compute_capabilities(std::string_view option, const std::string& list);
double seconds_now();

/// "name:file,..." -> pairs. Errors: InvalidArgument naming `option`.
std::vector<std::pair<std::string, std::string>> parse_files(std::string_view option,
                                                             std::string_view spec);
/// "a,b" -> a, b; nothing for "".
std::vector<std::string> parse_names(std::string_view list);

} // namespace ingot::tool
