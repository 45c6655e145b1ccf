// SPDX-License-Identifier: Apache-2.0
#include "plugins/onnxruntime/options.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

namespace ingot::ort {

namespace {

[[noreturn]] void bad_value(std::string_view key, std::string_view text,
                            std::string_view expected) {
    fail(ErrorCode::InvalidArgument, "Failed to parse provider option \"", key, "\": got \"", text,
         "\", expected ", expected);
}

template <class T>
bool read_number(std::string_view text, T& out, int base) {
    auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), out, base);
    return error == std::errc() && at == text.data() + text.size() && !text.empty();
}

void set(bool& out, std::string_view key, std::string_view text) {
    out = parse_bool(key, text);
}

void set(int64_t& out, std::string_view key, std::string_view text) {
    out = parse_int(key, text);
}

void set(uint64_t& out, std::string_view key, std::string_view text) {
    out = parse_unsigned(key, text);
}

void set(std::string& out, std::string_view, std::string_view text) {
    out = text;
}

std::vector<std::string> split(std::string_view text, char separator) {
    std::vector<std::string> parts;
    while (!text.empty()) {
        size_t end = std::min(text.find(separator), text.size());
        std::string_view part = text.substr(0, end);
        while (!part.empty() && std::isspace(static_cast<unsigned char>(part.front())) != 0) {
            part.remove_prefix(1);
        }
        while (!part.empty() && std::isspace(static_cast<unsigned char>(part.back())) != 0) {
            part.remove_suffix(1);
        }
        if (!part.empty()) {
            parts.emplace_back(part);
        }
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return parts;
}

const std::vector<std::string>& known_keys() {
    static const std::vector<std::string> keys = {
#define INGOT_EP_OPTION(type, key, fallback) #key,
#include "plugins/onnxruntime/options.def"
#undef INGOT_EP_OPTION
    };
    return keys;
}

[[noreturn]] void unknown_key(const std::string& key) {
    std::string near = nearest(key, known_keys());
    fail(ErrorCode::InvalidArgument, "Unknown provider option: \"", key, "\".",
         near.empty() ? std::string(" docs/onnxruntime.md lists the options")
                      : str(" Did you mean \"", near, "\"?"));
}

/// Merges two spellings of one option into `newer`; different values are an error.
template <class T>
void join_spellings(Options& o, const char* newer, T& value, const char* older, const T& other) {
    if (!o.given.contains(older)) {
        return;
    }
    require(!o.given.contains(newer) || value == other, ErrorCode::InvalidArgument,
            "provider options \"", newer, "\" and \"", older, "\" are the same option: got \"",
            value, "\" and \"", other, "\"; give one of them");
    value = other;
    o.given.insert(newer);
}

void check(const Options& o) {
    require(o.ingot_max_graphs >= 1 && o.ingot_max_graphs <= 4096, ErrorCode::InvalidArgument,
            "provider option \"ingot_max_graphs\" is ", o.ingot_max_graphs, ", expected 1 to 4096");
    constexpr std::array<std::string_view, 3> precisions = {"fp32", "fp16", "bf16"};
    require(std::find(precisions.begin(), precisions.end(), o.ingot_precision) != precisions.end(),
            ErrorCode::InvalidArgument, "provider option \"ingot_precision\" is \"",
            o.ingot_precision, "\", expected fp32, fp16 or bf16");
    require(!o.has_user_compute_stream || o.user_compute_stream != 0 ||
                !o.given.contains("user_compute_stream"),
            ErrorCode::InvalidArgument,
            "provider option \"has_user_compute_stream\" is set, but \"user_compute_stream\" is 0");
    require(o.user_aux_stream_array == 0 || o.nv_length_aux_stream_array > 0,
            ErrorCode::InvalidArgument,
            "Auxiliary streams must be greater than 0 when using external auxiliary streams: "
            "\"user_aux_stream_array\" is given, \"nv_length_aux_stream_array\" is ",
            o.nv_length_aux_stream_array);
    require(!o.ingot_trusted_only || !o.ingot_trusted_keys.empty(), ErrorCode::InvalidArgument,
            "provider option \"ingot_trusted_only\" is set, but \"ingot_trusted_keys\" names no "
            "file: without keys every engine would be refused");
    static_cast<void>(o.target_capabilities());
}

} // namespace

bool parse_bool(std::string_view key, std::string_view text) {
    if (text == "1" || text == "true" || text == "True") {
        return true;
    }
    if (text == "0" || text == "false" || text == "False") {
        return false;
    }
    bad_value(key, text, "0, 1, true, false, True or False");
}

int64_t parse_int(std::string_view key, std::string_view text) {
    int64_t v = 0;
    if (!read_number(text, v, 10)) {
        bad_value(key, text, "an integer");
    }
    return v;
}

uint64_t parse_unsigned(std::string_view key, std::string_view text) {
    uint64_t v = 0;
    bool hex = text.starts_with("0x") || text.starts_with("0X");
    if (!read_number(hex ? text.substr(2) : text, v, hex ? 16 : 10)) {
        bad_value(key, text, "an integer of 0 or more, decimal or with 0x");
    }
    return v;
}

std::set<std::string, std::less<>> Options::excluded_types() const {
    std::vector<std::string> parts = split(nv_op_types_to_exclude, ',');
    return {parts.begin(), parts.end()};
}

std::vector<int> Options::target_capabilities() const {
    static const std::vector<std::string> names = {"sm80",  "sm86",  "sm87",  "sm89", "sm90",
                                                   "sm100", "sm103", "sm120", "sm121"};
    std::vector<int> out;
    for (const std::string& part : split(nv_target_sm, ',')) {
        require(std::find(names.begin(), names.end(), part) != names.end(),
                ErrorCode::InvalidArgument, "Invalid nv_target_sm value: '", part,
                "'. Valid values are: ", join(names, ", "), ".");
        out.push_back(static_cast<int>(parse_int("nv_target_sm", part.substr(2))));
    }
    return out;
}

Options parse_options(const OptionMap& entries) {
    Options o;
    for (const auto& [key, text] : entries) {
        if (key.starts_with("arena.") || key.starts_with("ep.context_")) {
            continue; // an option of ONNX Runtime
        }
        bool known = false;
#define INGOT_EP_OPTION(type, name, fallback)                                                      \
    if (key == #name) {                                                                            \
        set(o.name, key, text);                                                                    \
        known = true;                                                                              \
    }
#include "plugins/onnxruntime/options.def"
#undef INGOT_EP_OPTION
        if (!known) {
            unknown_key(key);
        }
        o.given.insert(key);
    }
    join_spellings(o, "nv_profile_min_shapes", o.nv_profile_min_shapes, "profile_min_shapes",
                   o.profile_min_shapes);
    join_spellings(o, "nv_profile_max_shapes", o.nv_profile_max_shapes, "profile_max_shapes",
                   o.profile_max_shapes);
    join_spellings(o, "nv_profile_opt_shapes", o.nv_profile_opt_shapes, "profile_opt_shapes",
                   o.profile_opt_shapes);
    join_spellings(o, "nv_multi_rotary_cache_concat_offset", o.nv_multi_rotary_cache_concat_offset,
                   "multi_rotary_cache_concat_offset", o.multi_rotary_cache_concat_offset);
    check(o);
    return o;
}

std::vector<std::string> idle_options(const Options& o) {
    std::vector<std::string> out;
    auto idle = [&](const char* key, bool is_set, const char* reason) {
        if (is_set) {
            out.push_back(
                str("provider option \"", key, "\": accepted, no effect, because ", reason));
        }
    };
    constexpr const char* no_streams = "an engine needs no streams beside the one that it runs on";
    idle("nv_length_aux_stream_array", o.nv_length_aux_stream_array > 0, no_streams);
    idle("user_aux_stream_array", o.user_aux_stream_array != 0, no_streams);
    idle("nv_multi_rotary_cache_concat_offset", o.nv_multi_rotary_cache_concat_offset != 0,
         "the model itself chooses between its rotary caches");
    idle("VkExternalComputeQueueDataParamsNV_data", o.VkExternalComputeQueueDataParamsNV_data != 0,
         "there is no interoperation with Vulkan");
    return out;
}

namespace {

int weightless_mode(const std::string& mode, bool is_enabled) {
    require(mode.empty() || mode == "0" || mode == "1" || mode == "2", ErrorCode::InvalidArgument,
            "\"ep.enable_weightless_mode\" is \"", mode,
            "\", expected 0 (weights stay in), 1 (those of external data are left out) or 2 (all)");
    return mode.empty() ? (is_enabled ? 2 : 0) : mode[0] - '0';
}

} // namespace

ContextOptions context_options(const OptionMap& entries, const std::string& prefix) {
    OptionMap all = entries;
    for (auto& [key, text] : with_prefix(entries, prefix)) {
        if (key.starts_with("ep.context_")) {
            all.emplace(key, text); // ONNX Runtime's own options take precedence
        }
    }
    auto flag = [&](const char* key) {
        auto it = all.find(key);
        return it != all.end() && !it->second.empty() && parse_bool(key, it->second);
    };
    auto text = [&](const char* key) {
        auto it = all.find(key);
        return it == all.end() ? std::string() : it->second;
    };
    ContextOptions o;
    o.enable = flag("ep.context_enable");
    o.embed = flag("ep.context_embed_mode");
    o.compile_only = flag("session.compile_only");
    o.fail_on_suboptimal = flag("session.fail_on_suboptimal_compiled_model");
    o.weightless = weightless_mode(text("ep.enable_weightless_mode"), flag("ep.enable_weightless"));
    o.file_path = text("ep.context_file_path");
    o.source_model_path = text("ep.context_source_model_path");
    o.initializers_folder = text("session.model_external_initializers_file_folder_path");
    return o;
}

namespace {

OptionMap taken(const Host& host, OrtKeyValuePairs* pairs) {
    OptionMap out;
    const char* const* keys = nullptr;
    const char* const* values = nullptr;
    size_t count = 0;
    host.api->GetKeyValuePairs(pairs, &keys, &values, &count);
    for (size_t i = 0; i < count; ++i) {
        out.emplace(keys[i], values[i]);
    }
    host.api->ReleaseKeyValuePairs(pairs);
    return out;
}

} // namespace

OptionMap session_entries(const Host& host, const OrtSessionOptions* options) {
    return taken(
        host, host.get_from<OrtKeyValuePairs*>(host.api->GetSessionOptionsConfigEntries, options));
}

OptionMap environment_entries(const Host& host) {
    return taken(host, host.get_from<OrtKeyValuePairs*>(host.ep->GetEnvConfigEntries));
}

OptionMap with_prefix(const OptionMap& entries, std::string_view prefix) {
    OptionMap out;
    for (auto it = entries.lower_bound(prefix); it != entries.end(); ++it) {
        if (!it->first.starts_with(prefix)) {
            break;
        }
        out.emplace(it->first.substr(prefix.size()), it->second);
    }
    return out;
}

std::string option_prefix(std::string_view provider) {
    std::string out = "ep.";
    for (char c : provider) {
        out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    return out + '.';
}

} // namespace ingot::ort
