// SPDX-License-Identifier: Apache-2.0
// Options: one struct with a field for each row of options.def, and the table itself.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ingot {

using Flag = bool;
using Int = int64_t;
using Real = double;
using Text = std::string;
using List = std::vector<std::string>;

struct Options {
    std::string model; // the positional argument
#define INGOT_OPTION(field, type, standard, commands, names, value, help) type field = standard;
#include "api/options.def"
#undef INGOT_OPTION
};

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
    CompatLayout = 2048
};
}

struct OptionRow {
    std::string_view field;
    std::string_view type;
    std::string_view standard; // the default as written in the table
    unsigned commands;
    std::string_view names;
    std::string_view value;
    std::string_view help;
};
std::span<const OptionRow> option_rows();
/// The row that `name` ("--fp16") stands for in a command; null when there is none.
const OptionRow* find_option(unsigned command, std::string_view name);
/// Sets a row's field from text: a Flag by "", 1, true, 0 or false; a List grows. A VALUE of the
/// form a|b|c lists all that is allowed. Errors: InvalidArgument with `name`, got and expected.
void set_option(Options& o, const OptionRow& row, std::string_view name, std::string_view text);

/// An option of trtexec that is accepted and does nothing (trtexec_ignored.def).
struct IgnoredRow {
    std::string_view names;
    std::string_view value; // "" for a flag, [VALUE] where it may be left out
    bool already;           // asks for what happens anyway
    std::string_view reason;
};
std::span<const IgnoredRow> ignored_rows();
const IgnoredRow* find_ignored(std::string_view name);
/// The single names of a row: "--vc,--versionCompatible" -> two.
std::vector<std::string> split_names(std::string_view names);
/// Checks text against a VALUE: N is an integer, X a number, a|b|c a choice, else anything goes.
/// Errors: as set_option.
void check_value(std::string_view value, std::string_view name, std::string_view text);

/// The environment variable that sets an option where the command line does not: INGOT_FIELD.
std::string environment_name(std::string_view field);

/// The page docs/options.md.
std::string options_page();

} // namespace ingot
