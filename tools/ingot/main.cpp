// SPDX-License-Identifier: Apache-2.0
// The ingot command: sets the options from the command line and calls one function.
#include "api/options.h"
#include "api/options/common.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "command_line.h"
#include "commands.h"
#include "common.h"
#include "output.h"
#include "plugins.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <stdexcept>

namespace {

using namespace ingot;
using namespace ingot::tool;

const Command commands[] = {
    {"build", "ahead-of-time: ONNX model -> portable engine", command::Build, "ONNX model", build},
    {"run", "run an engine or a model once", command::Run, "engine or ONNX model", run},
    {"bench", "measure an engine or a model", command::Bench, "engine or ONNX model", bench},
    {"inspect", "the contents of a model or an engine", command::Inspect, "engine or ONNX model",
     inspect},
    {"report", "a page about an engine: layers, roofline, cold start, graph", command::Report,
     "engine or ONNX model", report},
    {"check", "list every node that cannot be imported", command::Check, "ONNX model", check},
    {"compare", "compare with ONNX Runtime and with float64", command::Compare, "ONNX model",
     compare},
    {"cache", "the compiled kernels of this user: ls, verify or clear", command::Cache,
     "ls, verify or clear", cache},
    {"slim", "simplify a model, as ONNX", command::Slim, "ONNX model", slim},
    {"calibrate", "sample inputs -> a calibration cache, or a model of int8 (*.onnx)",
     command::Calibrate, "ONNX model", calibrate},
    {"quantize", "narrow weights, without data", command::Quantize, "ONNX model", quantize},
    {"sign", "put a signature into an engine", command::Sign, "engine", sign},
    {"compat-layout", "a folder that build scripts take for TensorRT", command::CompatLayout,
     "folder to make", compat_layout},
    {"export-triton", "publish into a model repository of Triton Inference Server",
     command::ExportTriton, "engine or ONNX model", export_triton},
    {"serve", "run and guard the servers of this machine", command::Serve, "model repository",
     serve},
};

int exit_code(const Error& e) {
    return e.code() == ErrorCode::Interrupted ? 130 : 1;
}

int run_command(const Command& c, const Options& o) {
    set_log_sink(nullptr, nullptr, o.common().verbose ? LogLevel::Verbose : LogLevel::Warning);
    handle_sigint();
    if (o.common().timeout > 0) {
        set_time_limit(std::chrono::milliseconds(static_cast<int64_t>(o.common().timeout * 1000)));
    }
    try {
        watch_external_data(o);
        load_plugin_libraries(o);
        return c.run(o);
    } catch (const Error& e) {
        std::fflush(stdout);
        std::fprintf(stderr, "ingot %s: error: %s\n", c.name, e.what());
        return exit_code(e);
    } catch (const std::bad_alloc&) {
        std::fprintf(stderr, "ingot %s: error: out of memory\n", c.name);
        return 1;
    } catch (const std::length_error&) {
        std::fprintf(stderr, "ingot %s: error: out of memory: a size is larger than any memory\n",
                     c.name);
        return 1;
    } catch (const std::exception& e) {
        std::fprintf(stderr, "ingot %s: internal error: %s\n", c.name, e.what());
        return 1;
    }
}

// Generated pages, for `./dev pages`: "options-page", "operators-page STATUS_FILE".
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

bool is_trtexec(std::string_view name) {
    return name == "trtexec" || name == "tensorrt_rtx";
}

bool is_perf_test(std::string_view name) {
    return name == "perf-test" || name == "onnxruntime_perf_test";
}

int parse_and_run(int argc, char** argv);

/// ingot help [COMMAND]: what --help prints.
int help(int argc, char** argv) {
    std::string option = "--help";
    std::vector<char*> words(argv, argv + std::min(argc, 3));
    words.erase(words.begin() + 1);
    words.push_back(option.data());
    return parse_and_run(static_cast<int>(words.size()), words.data());
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
    if (argc > 1 && words[1] == "help" && !is_perf_test(called)) {
        return help(argc, argv);
    }
    if (argc > 1 && is_trtexec(words[1])) {
        return trtexec(words[1], std::span(words).subspan(2));
    }
    if (is_perf_test(called)) {
        return perf_test(std::span(words).subspan(1));
    }
    if (argc > 1 && is_perf_test(words[1])) {
        return perf_test(std::span(words).subspan(2));
    }
    Options options;
    std::variant<CommandLine, int> parsed = parse_command_line(argc, argv, commands);
    if (const int* code = std::get_if<int>(&parsed)) {
        return *code;
    }
    const CommandLine& line = std::get<CommandLine>(parsed);
    options.model = line.model;
    try {
        for (const OptionText& t : line.options) {
            set_option(options, *t.row, t.name, t.text);
        }
    } catch (const Error& e) {
        return usage_error(line.command, e.what());
    }
    return run_command(*line.command, options);
}

} // namespace

int main(int argc, char** argv) {
    try {
        filter_stdout();
        int code = parse_and_run(argc, argv);
        return end_stdout() ? code : std::max(code, 1);
    } catch (const std::exception& e) {
        std::fprintf(stderr, "ingot: internal error: %s\n", e.what());
    } catch (...) {
        std::fputs("ingot: internal error: an exception of unknown type\n", stderr);
    }
    return 1;
}
