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
    Cache = 128
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

/// The environment variable that sets an option where the command line does not: INGOT_FIELD.
std::string environment_name(std::string_view field);

/// The page docs/options.md.
std::string options_page();

} // namespace ingot
