// SPDX-License-Identifier: Apache-2.0
// The command line of ingot perf-test.
#include "base/error.h"
#include "perf_test.h"

#include <algorithm>
#include <charconv>
#include <variant>

namespace ingot::tool {

namespace {

using O = PerfTestOptions;
using Field = std::variant<O::Flag O::*, O::Int O::*, O::Text O::*, O::List O::*>;

struct Row {
    std::string_view name;
    Field field;
    std::string_view value;
    std::string_view help;
};

const Row rows[] = {
#define INGOT_PERF_OPTION(type, field, standard, name, value, help) {name, &O::field, value, help},
#include "perf_test_options.def"
#undef INGOT_PERF_OPTION
};

std::string dashed(std::string_view name) {
    return str(name.size() == 1 ? "-" : "--", name);
}

int64_t number(std::string_view option, std::string_view text, int64_t least) {
    int64_t value = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    bool whole = error == std::errc() && end == text.data() + text.size();
    require(whole && value >= least, ErrorCode::InvalidArgument, option, ": got '", text,
            "', expected an integer", least == INT64_MIN ? "" : str(" >= ", least));
    return value;
}

bool truth(std::string_view option, std::string_view text) {
    for (std::string_view yes : {"1", "true", "t", "yes", "y"}) {
        if (text == yes) {
            return true;
        }
    }
    for (std::string_view no : {"0", "false", "f", "no", "n"}) {
        if (text == no) {
            return false;
        }
    }
    fail(ErrorCode::InvalidArgument, option, ": got '", text, "', expected true or false");
}

const Row* find(std::string_view name) {
    for (const Row& r : rows) {
        if (r.name == name) {
            return &r;
        }
    }
    return nullptr;
}

[[noreturn]] void unknown(std::string_view word, std::string_view name) {
    std::vector<std::string> names;
    for (const Row& r : rows) {
        names.emplace_back(r.name);
    }
    std::string near = nearest(name, names);
    fail(ErrorCode::InvalidArgument, "there is no option ", word,
         near.empty() ? std::string(": see --help") : str("; did you mean ", dashed(near), "?"));
}

/// Sets one option from the words at `at`; returns the number of words used.
size_t set(PerfTestOptions& o, std::span<const std::string> words, size_t at,
           std::vector<std::string_view>& given) {
    std::string_view word = words[at];
    std::string_view name = word.substr(word.starts_with("--") ? 2 : 1);
    size_t equals = name.find('=');
    bool has_value = equals != std::string_view::npos;
    std::string_view value = has_value ? name.substr(equals + 1) : std::string_view();
    name = name.substr(0, equals);
    const Row* row = find(name);
    if (row == nullptr && name.starts_with("no") && !has_value) {
        row = find(name.substr(2));
        if (row != nullptr && std::holds_alternative<O::Flag O::*>(row->field)) {
            o.*std::get<O::Flag O::*>(row->field) = false;
            return 1;
        }
        row = nullptr;
    }
    if (row == nullptr) {
        unknown(word, name);
    }
    given.push_back(row->name);
    if (const auto* flag = std::get_if<O::Flag O::*>(&row->field)) {
        o.** flag = !has_value || truth(dashed(name), value);
        return 1;
    }
    if (!has_value) {
        require(at + 1 < words.size(), ErrorCode::InvalidArgument, dashed(name),
                " needs a value: ", row->value);
        value = words[at + 1];
    }
    if (const auto* integer = std::get_if<O::Int O::*>(&row->field)) {
        o.** integer = number(dashed(name), value, INT64_MIN);
    } else if (const auto* text = std::get_if<O::Text O::*>(&row->field)) {
        o.** text = value;
    } else {
        (o.*std::get<O::List O::*>(row->field)).emplace_back(value);
    }
    return has_value ? 1 : 2;
}

/// "batch:4 seq:8" -> pairs.
void sizes(std::string_view option, const std::vector<std::string>& texts,
           std::vector<std::pair<std::string, int64_t>>& out) {
    for (const std::string& text : texts) {
        for (const std::string& part : split(text, ' ')) {
            size_t colon = part.rfind(':');
            require(colon != std::string::npos && colon > 0, ErrorCode::InvalidArgument, option,
                    ": got '", part, "', expected NAME:N");
            out.emplace_back(part.substr(0, colon), number(option, part.substr(colon + 1), 1));
        }
    }
}

/// "in:[1,2][3,4] other:[1][2]" -> the shapes of each input.
std::map<std::string, std::vector<Shape>> shapes(std::string_view text) {
    constexpr std::string_view option = "--data_shape";
    std::map<std::string, std::vector<Shape>> out;
    for (const std::string& part : split(text, ' ')) {
        size_t open = part.find(":[");
        require(open != std::string::npos && open > 0 && part.ends_with(']'),
                ErrorCode::InvalidArgument, option, ": got '", part,
                "', expected INPUT:[N,..][N,..]");
        std::vector<Shape>& list = out[part.substr(0, open)];
        for (const std::string& group :
             split(std::string_view(part).substr(open + 2, part.size() - open - 3), ']')) {
            Shape shape;
            for (const std::string& size :
                 split(group.starts_with('[') ? group.substr(1) : group, ',')) {
                shape.push_back(number(option, size, 1));
            }
            list.push_back(std::move(shape));
        }
        require(list.size() == out.begin()->second.size(), ErrorCode::InvalidArgument, option,
                ": input '", part.substr(0, open), "' has ", list.size(), " shapes, '",
                out.begin()->first, "' has ", out.begin()->second.size(),
                "; expected as many for each");
    }
    return out;
}

bool has(const std::vector<std::string_view>& given, std::string_view name) {
    return std::find(given.begin(), given.end(), name) != given.end();
}

void check_choices(PerfTestOptions& o, const std::vector<std::string_view>& given) {
    // The provider's own documentation swaps the last letters.
    if (o.provider == "nvtensorrttrx") {
        o.provider = "nvtensorrtrtx";
    }
    require(o.provider == "cpu" || o.provider == "nvtensorrtrtx", ErrorCode::InvalidArgument,
            "-e: got '", o.provider,
            "', expected cpu or nvtensorrtrtx; libraries of other providers are named by "
            "--plugin_ep_libs");
    require(!o.extensions, ErrorCode::InvalidArgument,
            "-X: name the library of onnxruntime-extensions by -R instead");
    number("-r", str(o.times), 1);
    number("-t", str(o.seconds), 1);
    number("-c", str(o.concurrent), 1);
    number("-x", str(o.intra_threads), 0);
    number("-y", str(o.inter_threads), 0);
    number("-o", str(o.level), 0);
    require(o.mode.empty() || o.mode == "duration" || o.mode == "times", ErrorCode::InvalidArgument,
            "-m: got '", o.mode, "', expected duration or times");
    o.by_time = has(given, "t") || (!has(given, "r") && o.mode != "times");
    require(!o.on_device || o.concurrent == 1, ErrorCode::InvalidArgument, "-g with -c ",
            o.concurrent, ": one binding serves one run at a time, expected -c 1");
}

} // namespace

std::vector<std::string> split(std::string_view text, char separator) {
    std::vector<std::string> parts;
    while (!text.empty()) {
        size_t end = std::min(text.find(separator), text.size());
        if (end > 0) {
            parts.emplace_back(text.substr(0, end));
        }
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return parts;
}

Pairs parse_pairs(std::string_view option, std::string_view text) {
    Pairs out;
    std::string part;
    bool quoted = false;
    auto finish = [&] {
        if (part.empty()) {
            return;
        }
        size_t bar = part.find('|');
        require(bar != std::string::npos && bar > 0, ErrorCode::InvalidArgument, option, ": got '",
                part, "', expected KEY|VALUE");
        out.emplace_back(part.substr(0, bar), part.substr(bar + 1));
        part.clear();
    };
    for (char c : text) {
        if (c == '"') {
            quoted = !quoted;
        } else if (c == ' ' && !quoted) {
            finish();
        } else {
            part += c;
        }
    }
    require(!quoted, ErrorCode::InvalidArgument, option, ": a quote is not closed in ", text);
    finish();
    return out;
}

PerfTestOptions parse_perf_test(std::span<const std::string> arguments) {
    PerfTestOptions o;
    std::vector<std::string> positional;
    std::vector<std::string_view> given;
    for (size_t at = 0; at < arguments.size();) {
        const std::string& word = arguments[at];
        if (word.size() > 1 && word[0] == '-') {
            at += set(o, arguments, at, given);
        } else {
            positional.push_back(word);
            ++at;
        }
    }
    if (o.help || o.help_too) {
        return o;
    }
    require(positional.size() <= 2, ErrorCode::InvalidArgument, "got ", positional.size(),
            " files, expected MODEL and RESULT_FILE: ", join(positional, ", "));
    require(!positional.empty() || o.list_devices, ErrorCode::InvalidArgument,
            "no model: ingot perf-test [options...] MODEL [RESULT_FILE]");
    o.model = positional.empty() ? "" : positional[0];
    o.result_file = positional.size() > 1 ? positional[1] : "";
    check_choices(o, given);
    o.provider_options = parse_pairs("-i", o.provider_text);
    o.session_entries = parse_pairs("-C", o.entries_text);
    o.libraries = parse_pairs("--plugin_ep_libs", o.libraries_text);
    o.device_filters = parse_pairs("--filter_ep_devices", o.filter_text);
    sizes("-f", o.free_name_texts, o.free_names);
    sizes("-F", o.free_denotation_texts, o.free_denotations);
    o.data_shapes = shapes(o.data_shape);
    return o;
}

std::string perf_test_help() {
    std::string text = "ingot perf-test [options...] MODEL [RESULT_FILE]\n\n"
                       "Runs a model in ONNX Runtime as onnxruntime_perf_test does. Options start "
                       "with one dash or two.\n\nOptions:\n";
    for (const Row& r : rows) {
        append(text, str("  ", dashed(r.name), r.value.empty() ? "" : " ", r.value, "\n      ",
                         r.help, "\n"));
    }
    return text;
}

} // namespace ingot::tool
