// SPDX-License-Identifier: Apache-2.0
#include "command_line.h"

#include "base/text.h"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <map>
#include <sstream>

namespace ingot::tool {

namespace {

/// The name in messages: the first long one.
std::string long_name(const OptionRow& row) {
    std::vector<std::string> names = split_names(row.names);
    auto it = std::find_if(names.begin(), names.end(),
                           [](const std::string& n) { return n.starts_with("--"); });
    return it == names.end() ? names.front() : *it;
}

CLI::Option* add(CLI::App& app, const OptionRow& row, std::vector<OptionText>& given) {
    std::string names(row.names);
    std::string help(row.help);
    auto note = [&row, &given](std::string text) {
        given.push_back({&row, long_name(row), std::move(text)});
    };
    if (row.type == "Flag") {
        return app.add_flag_function(
            names, [note](int64_t count) { note(count > 0 ? "1" : "0"); }, help);
    }
    CLI::Option* added = app.add_option(
        names,
        [note](const CLI::results_t& texts) {
            std::for_each(texts.begin(), texts.end(), note);
            return true;
        },
        help);
    added->type_name(std::string(row.value));
    return row.type == "List" ? added->take_all()->expected(1) : added;
}

// Only the command that runs reads the environment: other commands may refuse the variable.
void add_options(CLI::App& app, const Command& c, bool runs, CommandLine& line) {
    bool optional = c.bit == command::Bench;
    app.add_option("model", line.model, c.model)->required(!optional)->type_name("FILE");
    for (const OptionRow& row : option_rows()) {
        if ((row.commands & c.bit) != 0) {
            add(app, row, line.options)->envname(runs ? environment_name(row.field) : "");
        }
    }
}

// CLI11 says "The following argument was not expected: --x"; adds the nearest option, or the
// commands that have this one.
std::string hint(const Command* c, std::span<const Command> commands, int argc, char** argv) {
    std::vector<std::string> known;
    std::map<std::string, unsigned> elsewhere;
    for (const OptionRow& r : option_rows()) {
        for (const std::string& name : split_names(r.names)) {
            if (c != nullptr && (r.commands & c->bit) != 0) {
                known.push_back(name);
            }
            elsewhere[name] |= r.commands;
        }
    }
    for (int i = 2; i < argc; ++i) {
        std::string word = argv[i];
        word = word.substr(0, word.find('='));
        if (!word.starts_with("--") || std::find(known.begin(), known.end(), word) != known.end()) {
            continue;
        }
        std::vector<std::string> others;
        for (const Command& other : commands) {
            if ((elsewhere[word] & other.bit) != 0) {
                others.push_back(str("ingot ", other.name));
            }
        }
        std::string near = nearest(word, known);
        return !others.empty() ? str(" (", word, " is an option of ", join(others, ", "), ")")
               : near.empty()  ? str(" (", word, ")")
                               : str(" (", word, "; did you mean ", near, "?)");
    }
    return "";
}

int unknown_command(const std::string& word, std::span<const Command> commands) {
    std::vector<std::string> names;
    for (const Command& c : commands) {
        names.emplace_back(c.name);
    }
    names.emplace_back("trtexec");
    names.emplace_back("perf-test");
    std::string near = nearest(word, names);
    std::fprintf(stderr, "ingot: error: there is no command '%s'%s Commands: %s\n", word.c_str(),
                 near.empty() ? "." : str(", did you mean '", near, "'?").c_str(),
                 join(names, ", ").c_str());
    return 2;
}

} // namespace

int usage_error(const Command* c, const std::string& what) {
    std::fprintf(stderr, "ingot: error: %s\nRun 'ingot %s--help'.\n", what.c_str(),
                 c == nullptr ? "" : str(c->name, " ").c_str());
    return 2;
}

std::variant<CommandLine, int> parse_command_line(int argc, char** argv,
                                                  std::span<const Command> commands) {
    CLI::App app{"Ingot: any ONNX model becomes a portable engine and runs"};
    app.footer("trtexec takes TensorRT's options: ingot trtexec --help\n"
               "perf-test takes those of onnxruntime_perf_test: ingot perf-test --help");
    app.set_version_flag("--version", "ingot " INGOT_VERSION);
    app.require_subcommand(1);
    std::string word = argc > 1 ? argv[1] : "";
    CommandLine line;
    for (const Command& c : commands) {
        CLI::App* sub = app.add_subcommand(c.name, c.help);
        add_options(*sub, c, word == c.name, line);
        if (word == c.name) {
            line.command = &c;
        }
    }
    if (line.command == nullptr && !word.empty() && word[0] != '-') {
        return unknown_command(word, commands);
    }
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& e) {
        if (e.get_exit_code() == 0) {
            std::ostringstream text; // stdout is where a failure to write is noticed
            int code = app.exit(e, text, text);
            std::fputs(text.str().c_str(), stdout);
            return code;
        }
        return usage_error(line.command, e.what() + hint(line.command, commands, argc, argv));
    }
    return line;
}

} // namespace ingot::tool
