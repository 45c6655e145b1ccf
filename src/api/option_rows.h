// SPDX-License-Identifier: Apache-2.0
// The table of options (options.def), and of the trtexec options that are accepted and ignored.
#pragma once

#include "plan/option_value.h"

#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ingot {

class Options; // api/options.h

namespace command {
enum Bit : unsigned {
    Build = 1,
    Run = 2,
    Bench = 4,
    Inspect = 8,
    Check = 16,
    Compare = 32,
    Slim = 64,
    Cache = 128,
    Trtexec = 256,
    Calibrate = 512,
    Quantize = 1024,
    CompatLayout = 2048,
    Sign = 4096,
    ExportTriton = 8192,
    Serve = 16384,
    Report = 32768
};
}

/// The valid range of a number.
struct OptionRange {
    double low = -std::numeric_limits<double>::infinity();
    double high = std::numeric_limits<double>::infinity();
    std::optional<double> other; // one more valid value

    bool holds(double v) const { return (v >= low && v <= high) || v == other; }
    /// "0 to 5", "0 or more", "0 or more, or -1".
    std::string text() const;
    constexpr OptionRange or_value(double v) const { return {low, high, v}; }
};
constexpr OptionRange at_least(double low) {
    return {low, std::numeric_limits<double>::infinity(), std::nullopt};
}
constexpr OptionRange between(double low, double high) {
    return {low, high, std::nullopt};
}

struct OptionRow {
    std::string_view field;
    std::string_view type;
    std::string_view standard; // the default, spelled as in the table
    unsigned commands = 0;
    std::string_view names;
    std::string_view backend = {}; // "cuda": the backend that alone knows it; "": none
    std::string_view value = {};
    OptionRange range = {}; // of a number, or of each number in a Text that holds a list
    bool build_only = false;
    std::string_view on_cpu = {};      // the reason why it has no effect on the CPU; "": it has one
    std::string_view same_on_cpu = {}; // the reason why the CPU behaves so anyway; "": it does not
    std::string_view help;

    bool has_range() const { return range.low > -std::numeric_limits<double>::infinity(); }
};
std::span<const OptionRow> option_rows();
/// The row that `name` ("--fp16") selects in a command; null for an unknown name.
const OptionRow* find_option(unsigned command, std::string_view name);
/// Sets a row's field from text: a Flag by "", 1, true, 0 or false; a List grows. A VALUE of the
/// form a|b|c lists every valid value. Errors: InvalidArgument with `name`, got and expected.
void set_option(Options& o, const OptionRow& row, std::string_view name, std::string_view text);
/// The value of a row's field.
OptionValue option_value(const Options& o, const OptionRow& row);
/// Whether the row's field differs from its default.
bool is_changed(const Options& o, const OptionRow& row);

/// A trtexec option that is accepted and does nothing (trtexec_ignored.def).
struct IgnoredRow {
    std::string_view names;
    std::string_view value; // "" for a flag, [VALUE] where it may be left out
    bool already;           // asks for behaviour that is always on
    std::string_view reason;
};
std::span<const IgnoredRow> ignored_rows();
const IgnoredRow* find_ignored(std::string_view name);
/// The names of a row: "--vc,--versionCompatible" gives two.
std::vector<std::string> split_names(std::string_view names);
/// Checks text against a VALUE: N is an integer, X a number, a|b|c a choice; any other VALUE
/// accepts every text. Errors: as set_option.
void check_value(std::string_view value, std::string_view name, std::string_view text);

/// The environment variable that sets an option where the command line does not: INGOT_FIELD.
std::string environment_name(std::string_view field);

/// The page docs/options.md.
std::string options_page();

} // namespace ingot
