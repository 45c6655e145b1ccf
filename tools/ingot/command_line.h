// SPDX-License-Identifier: Apache-2.0
// The command line of all commands but trtexec: the command, and the texts of its options, by the
// rows of api/options.def.
#pragma once

#include "api/option_rows.h"

#include <variant>

namespace ingot::tool {

struct Command {
    const char* name;
    const char* help;
    unsigned bit;
    const char* model; // help of the positional argument
    int (*run)(const Options&);
};

/// A value from the command line or the environment.
struct OptionText {
    const OptionRow* row = nullptr;
    std::string name; // of the option, for messages
    std::string text;
};
struct CommandLine {
    const Command* command = nullptr;
    std::string model;
    std::vector<OptionText> options; // in the order of the rows
};

/// Parses the command line. For --help and errors, prints and returns the exit code: 0, or 2.
std::variant<CommandLine, int> parse_command_line(int argc, char** argv,
                                                  std::span<const Command> commands);
/// Prints the error and a pointer to --help; returns the exit code.
int usage_error(const Command* c, const std::string& what);

} // namespace ingot::tool
