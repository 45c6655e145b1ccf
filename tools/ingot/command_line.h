// SPDX-License-Identifier: Apache-2.0
// The command line of the commands but trtexec: which command, and the texts of its options, by the
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

/// A value that the command line, or the environment, gives.
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

/// Reads the command line; where it asks for help, or is wrong, that is printed and the exit code
/// is the result: 0, or 2.
std::variant<CommandLine, int> parse_command_line(int argc, char** argv,
                                                  std::span<const Command> commands);
/// Prints what is wrong with a command line and where help is; returns the exit code.
int usage_error(const Command* c, const std::string& what);

} // namespace ingot::tool
