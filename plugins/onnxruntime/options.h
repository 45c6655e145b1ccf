// SPDX-License-Identifier: Apache-2.0
// Options of a session: the provider's (options.def) and the relevant ones of ONNX Runtime.
#pragma once

#include "plugins/onnxruntime/host.h"

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ingot::ort {

using OptionMap = std::map<std::string, std::string, std::less<>>;

// Accepts exactly 0, 1, true, false, True or False; for integers, the whole text must be one. `key`
// is for messages. Errors: InvalidArgument.
bool parse_bool(std::string_view key, std::string_view text);
int64_t parse_int(std::string_view key, std::string_view text);
uint64_t parse_unsigned(std::string_view key, std::string_view text);

namespace option_types {
using Bool = bool;
using Int = int64_t;
using Unsigned = uint64_t;
using Text = std::string;
} // namespace option_types

/// The provider's own options.
struct Options {
#define INGOT_EP_OPTION(type, key, fallback) option_types::type key = fallback;
#include "plugins/onnxruntime/options.def"
#undef INGOT_EP_OPTION
    /// The given keys.
    std::set<std::string, std::less<>> given;

    /// Operators of nv_op_types_to_exclude.
    std::set<std::string, std::less<>> excluded_types() const;
    /// Compute capabilities of nv_target_sm: {86, 120} for "sm86,sm120".
    std::vector<int> target_capabilities() const;
};
/// A line for each option that was set and has no effect, with the reason.
std::vector<std::string> idle_options(const Options& options);
/// `entries` by key without the provider's prefix. Errors: InvalidArgument naming key and value;
/// the nearest key for an unknown one; contradictions.
Options parse_options(const OptionMap& entries);

/// ONNX Runtime's own options on compiled models ("ep.context_..." and others).
struct ContextOptions {
    bool enable = false;
    bool embed = false;
    bool compile_only = false;
    bool fail_on_suboptimal = false;
    /// Compiled models are written without weights: "1" those of external data, "2" all.
    int weightless = 0;
    std::string file_path;
    std::string source_model_path;
    std::string initializers_folder;
    /// The source model of a compiled one, in memory that the application keeps.
    std::span<const std::byte> source_model;
};
/// `prefix` selects the provider's own entries, which may have the same meaning.
ContextOptions context_options(const OptionMap& entries, const std::string& prefix);

/// All configuration entries of a session.
OptionMap session_entries(const Host& host, const OrtSessionOptions* options);
/// The entries of the environment. Empty where the host has none.
OptionMap environment_entries(const Host& host);
/// Entries that begin with `prefix`, without it.
OptionMap with_prefix(const OptionMap& entries, std::string_view prefix);
/// The prefix of a provider's options among a session's entries.
std::string option_prefix(std::string_view provider);

} // namespace ingot::ort
