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
constexpr std::array<CommandName, 7> command_names = {{{Build, "build"},
                                                       {Run, "run"},
                                                       {Bench, "bench"},
                                                       {Inspect, "inspect"},
                                                       {Check, "check"},
                                                       {Compare, "compare"},
                                                       {Slim, "slim"}}};

} // namespace

std::span<const OptionRow> option_rows() {
    return rows;
}

std::string options_page() {
    std::string out = "# Options\n\nGenerated from `src/api/options.def`; `ingot COMMAND --help` "
                      "prints the same.\n";
    for (const CommandName& c : command_names) {
        append(out,
               str("\n## ingot ", c.name, "\n\n| option | default | meaning |\n|---|---|---|\n"));
        for (const OptionRow& r : rows) {
            if ((r.commands & c.bit) == 0) {
                continue;
            }
            std::string standard = r.type == "Flag" || r.type == "List" || r.standard == "\"\""
                                       ? std::string()
                                       : std::string(r.standard);
            append(out, str("| `", r.names, r.value.empty() ? "" : " ", r.value, "` | ", standard,
                            " | ", r.help, " |\n"));
        }
    }
    return out;
}

} // namespace ingot
