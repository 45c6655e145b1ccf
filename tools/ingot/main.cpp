// SPDX-License-Identifier: Apache-2.0
// The ingot command: parses options by the table in api/options.def and calls one function.
#include "base/error.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "commands.h"
#include "plugins.h"

#include <CLI/CLI.hpp>

#include <chrono>
#include <cstdio>

namespace {

using namespace ingot;
using namespace ingot::tool;

struct Command {
    const char* name;
    const char* help;
    unsigned bit;
    const char* model; // help of the positional argument
    int (*run)(const Options&);
};

const Command commands[] = {
    {"build", "ahead-of-time: ONNX model -> portable engine", command::Build, "ONNX model", build},
    {"run", "run an engine or a model once", command::Run, "engine or ONNX model", run},
    {"bench", "measure an engine or a model", command::Bench, "engine or ONNX model", bench},
    {"inspect", "what is in a model or an engine", command::Inspect, "engine or ONNX model",
     inspect},
    {"check", "list every node that cannot be imported", command::Check, "ONNX model", check},
    {"compare", "compare with ONNX Runtime and with float64", command::Compare, "ONNX model",
     compare},
    {"cache", "the compiled kernels of this user: ls, verify or clear", command::Cache,
     "ls, verify or clear", cache},
    {"slim", "simplify a model, as ONNX", command::Slim, "ONNX model", slim},
    {"calibrate", "sample inputs -> a calibration cache, or a model of int8 (*.onnx)",
     command::Calibrate, "ONNX model", calibrate},
    {"quantize", "narrow weights, without data", command::Quantize, "ONNX model", quantize},
    {"compat-layout", "a folder that build scripts take for TensorRT", command::CompatLayout,
     "folder to make", compat_layout},
};

CLI::Option* add(CLI::App& app, const std::string& names, bool& field, const std::string&,
                 const std::string& help) {
    return app.add_flag(names, field, help);
}

template <class T>
CLI::Option* add(CLI::App& app, const std::string& names, T& field, const std::string& value,
                 const std::string& help) {
    return app.add_option(names, field, help)->type_name(value);
}

CLI::Option* add(CLI::App& app, const std::string& names, List& field, const std::string& value,
                 const std::string& help) {
    return app.add_option(names, field, help)->type_name(value)->take_all()->expected(1);
}

// Only the command that runs reads the environment: a variable that another one refuses is its
// own affair.
void add_options(CLI::App& app, const Command& c, bool runs, Options& o) {
    using namespace command;
    bool optional = c.bit == command::Bench;
    app.add_option("model", o.model, c.model)->required(!optional)->type_name("FILE");
#define INGOT_OPTION(field, type, standard, where, names, value, help)                             \
    if (((where)&c.bit) != 0) {                                                                    \
        CLI::Option* added = add(app, names, o.field, value, help);                                \
        added->envname(runs ? environment_name(#field) : "");                                      \
    }
#include "api/options.def"
#undef INGOT_OPTION
}

// CLI11 says "The following argument was not expected: --x"; add the nearest option.
std::string hint(const Command* c, int argc, char** argv) {
    std::vector<std::string> known;
    for (const OptionRow& r : option_rows()) {
        for (size_t at = 0; c != nullptr && (r.commands & c->bit) != 0 && at < r.names.size();) {
            size_t end = std::min(r.names.find(',', at), r.names.size());
            known.emplace_back(r.names.substr(at, end - at));
            at = end + 1;
        }
    }
    for (int i = 2; i < argc; ++i) {
        std::string word = argv[i];
        word = word.substr(0, word.find('='));
        if (word.starts_with("--") && std::find(known.begin(), known.end(), word) == known.end()) {
            std::string near = nearest(word, known);
            return near.empty() ? str(" (", word, ")")
                                : str(" (", word, "; did you mean ", near, "?)");
        }
    }
    return "";
}

int exit_code(const Error& e) {
    return e.code() == ErrorCode::Interrupted ? 130 : 1;
}

int run_command(const Command& c, const Options& o) {
    set_log_sink(nullptr, nullptr, o.verbose ? LogLevel::Verbose : LogLevel::Warning);
    handle_sigint();
    if (o.timeout > 0) {
        set_time_limit(std::chrono::milliseconds(static_cast<int64_t>(o.timeout * 1000)));
    }
    try {
        load_plugin_libraries(o);
        return c.run(o);
    } catch (const Error& e) {
        std::fflush(stdout);
        std::fprintf(stderr, "ingot %s: error: %s\n", c.name, e.what());
        return exit_code(e);
    } catch (const std::bad_alloc&) {
        std::fprintf(stderr, "ingot %s: error: out of memory\n", c.name);
        return 1;
    } catch (const std::exception& e) {
        std::fprintf(stderr, "ingot %s: internal error: %s\n", c.name, e.what());
        return 1;
    }
}

// Generated pages, for `./dev format`: "options-page", "operators-page STATUS_FILE".
bool print_page(int argc, char** argv) {
    std::string_view word = argc > 1 ? argv[1] : "";
    if (word == "options-page" && argc == 2) {
        std::fputs(options_page().c_str(), stdout);
        return true;
    }
    if (word == "operators-page" && argc == 3) {
        std::fputs(operators_page(argv[2]).c_str(), stdout);
        return true;
    }
    return false;
}

int unknown_command(const std::string& word) {
    std::vector<std::string> names;
    for (const Command& c : commands) {
        names.emplace_back(c.name);
    }
    names.emplace_back("trtexec");
    std::string near = nearest(word, names);
    std::fprintf(stderr, "ingot: error: there is no command '%s'%s Commands: %s\n", word.c_str(),
                 near.empty() ? "." : str(", did you mean '", near, "'?").c_str(),
                 join(names, ", ").c_str());
    return 2;
}

bool is_trtexec(std::string_view name) {
    return name == "trtexec" || name == "tensorrt_rtx";
}

int parse_and_run(int argc, char** argv) {
    if (print_page(argc, argv)) {
        return 0;
    }
    std::vector<std::string> words(argv, argv + argc);
    std::string called = argc > 0 ? words[0].substr(words[0].rfind('/') + 1) : std::string();
    if (is_trtexec(called)) {
        return trtexec(called, std::span(words).subspan(1));
    }
    if (argc > 1 && is_trtexec(words[1])) {
        return trtexec(words[1], std::span(words).subspan(2));
    }
    CLI::App app{"Ingot: any ONNX model becomes a portable engine and runs"};
    app.footer("trtexec takes TensorRT's options: ingot trtexec --help");
    app.set_version_flag("--version", "ingot " INGOT_VERSION);
    app.require_subcommand(1);
    std::string word = argc > 1 ? argv[1] : "";
    Options options;
    const Command* chosen = nullptr;
    for (const Command& c : commands) {
        CLI::App* sub = app.add_subcommand(c.name, c.help);
        add_options(*sub, c, word == c.name, options);
        if (word == c.name) {
            chosen = &c;
        }
    }
    if (chosen == nullptr && !word.empty() && word[0] != '-') {
        return unknown_command(word);
    }
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& e) {
        if (e.get_exit_code() == 0) {
            return app.exit(e);
        }
        std::fprintf(stderr, "ingot: error: %s%s\nRun 'ingot %s--help'.\n", e.what(),
                     hint(chosen, argc, argv).c_str(),
                     chosen == nullptr ? "" : str(chosen->name, " ").c_str());
        return 2;
    }
    return run_command(*chosen, options);
}

} // namespace

int main(int argc, char** argv) {
    try {
        return parse_and_run(argc, argv);
    } catch (const std::exception& e) {
        std::fprintf(stderr, "ingot: internal error: %s\n", e.what());
    } catch (...) {
        std::fputs("ingot: internal error: an exception of unknown type\n", stderr);
    }
    return 1;
}
