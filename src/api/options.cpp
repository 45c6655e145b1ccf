// SPDX-License-Identifier: Apache-2.0
#include "api/options.h"

#include "base/text.h"

#include <array>

namespace ingot {

namespace {

using namespace command;

constexpr std::array rows = {
#define INGOT_OPTION(field, type, standard, commands, names, value, help)                          \
    OptionRow{#field, #type, #standard, commands, names, value, help},
#include "api/options.def"
#undef INGOT_OPTION
};

struct CommandName {
    unsigned bit;
    std::string_view name;
};
constexpr std::array<CommandName, 8> command_names = {{{Build, "build"},
                                                       {Run, "run"},
                                                       {Bench, "bench"},
                                                       {Inspect, "inspect"},
                                                       {Check, "check"},
                                                       {Compare, "compare"},
                                                       {Cache, "cache"},
                                                       {Slim, "slim"}}};

} // namespace

std::span<const OptionRow> option_rows() {
    return rows;
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
            append(out, str("| `", r.names, r.value.empty() ? "" : " ", r.value, "` | `",
                            environment_name(r.field), "` | ", standard, " | ", r.help, " |\n"));
        }
    }
    return out;
}

} // namespace ingot
