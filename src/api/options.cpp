// SPDX-License-Identifier: Apache-2.0
#include "api/options.h"

#include "api/options/build.h"
#include "api/options/common.h"
#include "api/options/inspect.h"
#include "api/options/measure.h"
#include "api/options/quantize.h"
#include "api/options/run.h"
#include "api/options/serving.h"
#include "api/options/slim.h"
#include "base/error.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace ingot {

namespace {

using namespace command;

constexpr std::string_view no_tactics = "the CPU has no tactics to choose from";
constexpr std::string_view no_kernels = "the CPU has no kernels to compile";

constexpr std::array rows = {
#define INGOT_OPTION(name, kind, default_value, ...)                                               \
    OptionRow{.field = #name, .type = #kind, .standard = #default_value, __VA_ARGS__},
#include "api/options.def"
#undef INGOT_OPTION
};

constexpr std::array ignored = {
#define INGOT_IGNORED(names, value, already, reason) IgnoredRow{names, value, already, reason},
#include "api/trtexec_ignored.def"
#undef INGOT_IGNORED
};

struct CommandName {
    unsigned bit;
    std::string_view name;
};
constexpr std::array<CommandName, 15> command_names = {{{Build, "build"},
                                                        {Run, "run"},
                                                        {Bench, "bench"},
                                                        {Inspect, "inspect"},
                                                        {Report, "report"},
                                                        {Check, "check"},
                                                        {Compare, "compare"},
                                                        {Cache, "cache"},
                                                        {Slim, "slim"},
                                                        {Calibrate, "calibrate"},
                                                        {Quantize, "quantize"},
                                                        {Sign, "sign"},
                                                        {ExportTriton, "export-triton"},
                                                        {Serve, "serve"},
                                                        {Trtexec, "trtexec"}}};

/// Escapes bars, which would end a table cell.
std::string in_table(std::string_view text) {
    std::string out;
    for (char c : text) {
        append(out, c == '|' ? std::string_view("\\|") : std::string_view(&c, 1));
    }
    return out;
}

/// Splits a list at the separators.
std::vector<std::string> split(std::string_view list, char separator) {
    std::vector<std::string> out;
    for (size_t start = 0; start <= list.size();) {
        size_t end = std::min(list.find(separator, start), list.size());
        out.emplace_back(list.substr(start, end - start));
        start = end + 1;
    }
    return out;
}

template <class T>
bool parses(std::string_view text, T& value) {
    auto [last, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && last == text.data() + text.size() && !text.empty();
}

template <class... Args>
[[noreturn]] void refuse(std::string_view name, std::string_view text, const Args&... expected) {
    fail(ErrorCode::InvalidArgument, name, "=", text, ": expected ", expected...);
}

void set(bool& field, std::string_view name, std::string_view text) {
    field = text.empty() || text == "1" || text == "true";
    if (!field && text != "0" && text != "false") {
        refuse(name, text, "no value: this is a flag");
    }
}

void set(int64_t& field, std::string_view name, std::string_view text) {
    if (!parses(text, field)) {
        refuse(name, text, "a whole number");
    }
}

void set(double& field, std::string_view name, std::string_view text) {
    if (!parses(text, field)) {
        refuse(name, text, "a number");
    }
}

void set(std::string& field, std::string_view, std::string_view text) {
    field = text;
}

/// Checks a number, or each number of a comma-separated list.
void check_range(const OptionRow& row, std::string_view name, std::string_view text) {
    for (const std::string& part : split(text, ',')) {
        double number = 0;
        if (!parses(part, number)) {
            refuse(name, text, "numbers joined by commas");
        }
        if (!row.range.holds(number)) {
            refuse(name, text, row.range.text());
        }
    }
}

void set(std::vector<std::string>& field, std::string_view, std::string_view text) {
    field.emplace_back(text);
}

std::string ignored_page() {
    std::string out = "\nAccepted, with a line that says why they do nothing:\n\n"
                      "| option | reason |\n|---|---|\n";
    for (const IgnoredRow& r : ignored) {
        std::string names;
        for (const std::string& n : split(r.names, ',')) {
            append(names, str(names.empty() ? "`" : ", `", n, r.value.empty() ? "" : "=",
                              in_table(r.value), "`"));
        }
        append(out, str("| ", names, " | ", r.reason, " |\n"));
    }
    return out;
}

/// A limit as text, without trailing zeros.
std::string shown(double limit) {
    auto whole = static_cast<int64_t>(limit);
    return static_cast<double>(whole) == limit ? str(whole) : str(limit);
}

} // namespace

struct Options::Groups {
#define INGOT_GROUP(Type, name) options::Type name;
#include "api/options/groups.def"
#undef INGOT_GROUP
};

Options::Options() : groups_(std::make_unique<Groups>()) {}
Options::Options(const Options& other)
    : model(other.model), groups_(std::make_unique<Groups>(*other.groups_)) {}
Options::Options(Options&& other) noexcept = default;
Options::~Options() = default;

Options& Options::operator=(Options other) noexcept {
    std::swap(model, other.model);
    std::swap(groups_, other.groups_);
    return *this;
}

#define INGOT_GROUP(Type, name)                                                                    \
    const options::Type& Options::name() const {                                                   \
        return groups_->name;                                                                      \
    }                                                                                              \
    options::Type& Options::name() {                                                               \
        return groups_->name;                                                                      \
    }
#include "api/options/groups.def"
#undef INGOT_GROUP

std::string OptionRange::text() const {
    std::string out = high < std::numeric_limits<double>::infinity()
                          ? str(shown(low), " to ", shown(high))
                          : str(shown(low), " or more");
    return other ? str(out, ", or ", shown(*other)) : out;
}

std::span<const OptionRow> option_rows() {
    return rows;
}

std::span<const IgnoredRow> ignored_rows() {
    return ignored;
}

std::vector<std::string> split_names(std::string_view names) {
    return split(names, ',');
}

const OptionRow* find_option(unsigned command, std::string_view name) {
    for (const OptionRow& r : rows) {
        std::vector<std::string> names = split_names(r.names);
        if ((r.commands & command) != 0 &&
            std::find(names.begin(), names.end(), name) != names.end()) {
            return &r;
        }
    }
    return nullptr;
}

const IgnoredRow* find_ignored(std::string_view name) {
    for (const IgnoredRow& r : ignored) {
        std::vector<std::string> names = split_names(r.names);
        if (std::find(names.begin(), names.end(), name) != names.end()) {
            return &r;
        }
    }
    return nullptr;
}

void check_value(std::string_view value, std::string_view name, std::string_view text) {
    int64_t whole = 0;
    double number = 0;
    if (value.empty()) {
        bool flag = false;
        set(flag, name, text);
    } else if (value == "N") {
        set(whole, name, text);
    } else if (value == "X") {
        set(number, name, text);
    } else if (value.find('|') != std::string_view::npos) {
        std::vector<std::string> choices = split(value, '|');
        if (std::find(choices.begin(), choices.end(), text) == choices.end()) {
            std::string last = choices.back();
            choices.pop_back();
            refuse(name, text, join(choices, ", "), " or ", last);
        }
    }
}

namespace {

/// The field of a row, by the row's index in the table.
struct Field {
    void (*set)(Options& o, std::string_view name, std::string_view text);
    OptionValue (*value)(const Options& o);
    bool (*is_changed)(const Options& o);
};
constexpr std::array<Field, rows.size()> fields = {{
#define INGOT_OPTION(field, type, standard, ...)                                                   \
    {[](Options& o, std::string_view name, std::string_view text) {                                \
         set(o.INGOT_OPTION_GROUP().field, name, text);                                            \
     },                                                                                            \
     [](const Options& o) { return OptionValue(o.INGOT_OPTION_GROUP().field); },                   \
     [](const Options& o) {                                                                        \
         const type unchanged = standard;                                                          \
         return o.INGOT_OPTION_GROUP().field != unchanged;                                         \
     }},
#include "api/options.def"
#undef INGOT_OPTION
}};

const Field& field_of(const OptionRow& row) {
    return fields[static_cast<size_t>(&row - rows.data())];
}

} // namespace

void set_option(Options& o, const OptionRow& row, std::string_view name, std::string_view text) {
    if (row.value.find('|') != std::string_view::npos) {
        check_value(row.value, name, text);
    }
    if (row.has_range()) {
        check_value(row.type == "Int" ? "N" : row.type == "Real" ? "X" : "LIST", name, text);
        check_range(row, name, text);
    }
    field_of(row).set(o, name, text);
}

OptionValue option_value(const Options& o, const OptionRow& row) {
    return field_of(row).value(o);
}

bool is_changed(const Options& o, const OptionRow& row) {
    return field_of(row).is_changed(o);
}

std::string environment_name(std::string_view field) {
    std::string name = "INGOT_";
    for (char c : field) {
        name += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    }
    return name;
}

std::string options_page() {
    std::string out =
        "# Options\n\nGenerated from `src/api/options.def`; `ingot COMMAND --help` prints the same."
        "\n\nAn option that the command line does not give is taken from its environment variable: "
        "`INGOT_SEED=7` is\n`--seed=7`. A flag takes `1` or `0` there, a repeatable option one "
        "value. "
        "An empty variable counts as unset.\n";
    for (const CommandName& c : command_names) {
        append(out, str("\n## ingot ", c.name,
                        "\n\n| option | variable | default | meaning |\n|---|---|---|---|\n"));
        for (const OptionRow& r : rows) {
            if ((r.commands & c.bit) == 0) {
                continue;
            }
            std::string standard = r.type == "Flag" || r.type == "List" || r.standard == "\"\""
                                       ? std::string()
                                       : std::string(r.standard);
            append(out, str("| `", r.names, r.value.empty() ? "" : " ", in_table(r.value), "` | `",
                            environment_name(r.field), "` | ", standard, " | ", r.help, " |\n"));
        }
    }
    append(out, ignored_page());
    return out;
}

} // namespace ingot
