// SPDX-License-Identifier: Apache-2.0
// ingot perf-test: the options of onnxruntime_perf_test, and the parts of a run.
#pragma once

// The same declarations on every machine, whether ONNX Runtime's headers are installed or not.
#define INGOT_ONNXRUNTIME_DECLARATIONS
#include "ingot/onnxruntime_cxx.h"

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ingot::tool {

using Pairs = std::vector<std::pair<std::string, std::string>>;
using Shape = std::vector<int64_t>;

struct PerfTestOptions {
#define INGOT_PERF_OPTION(type, field, standard, name, value, help) type field = standard;
    using Flag = bool;
    using Int = int64_t;
    using Text = std::string;
    using List = std::vector<std::string>;
#include "perf_test_options.def"
#undef INGOT_PERF_OPTION
    std::string model;
    std::string result_file;
    // Made of the texts above when these are parsed.
    bool by_time = true;
    Pairs provider_options, session_entries, libraries, device_filters;
    std::vector<std::pair<std::string, int64_t>> free_names, free_denotations;
    std::map<std::string, std::vector<Shape>> data_shapes;
};

/// Options may start with one dash or two, and take a value as -x=VALUE or as the next word.
/// Errors: InvalidArgument with the option, got and expected.
PerfTestOptions parse_perf_test(std::span<const std::string> arguments);
std::string perf_test_help();
/// "a|1 b|2" -> pairs; quotes around a value keep its spaces. Errors: InvalidArgument.
Pairs parse_pairs(std::string_view option, std::string_view text);
/// Non-empty parts between separators.
std::vector<std::string> split(std::string_view text, char separator);

/// Opens ONNX Runtime: --ort-library, $INGOT_ORT_LIBRARY, the one of the loader's folders, else
/// that of the package of `python3`. Errors: Io with what was tried.
void open_onnxruntime(const PerfTestOptions& o);
/// The libraries that the options name, and Ingot's where -e asks for it; unregistered at the end.
class Registered {
public:
    Registered(Ort::Env& env, const PerfTestOptions& o);
    ~Registered();
    Registered(const Registered&) = delete;
    Registered& operator=(const Registered&) = delete;

private:
    void unregister();
    Ort::Env& env_;
    std::vector<std::string> names_;
};
std::vector<const OrtEpDevice*> ep_devices(const Ort::Env& env);
void list_ep_devices(const Ort::Env& env);
/// All that the options say of a session: its providers with their devices, levels, threads.
Ort::SessionOptions session_options(Ort::Env& env, const PerfTestOptions& o, bool compiles);

using Value = Ort::detail::Owner<OrtValue, &OrtApi::ReleaseValue>;
/// What the session is given: one list of inputs per set of test data, or of generated ones.
class Inputs {
public:
    /// Errors: NotFound where there is neither test data nor -I.
    Inputs(OrtSession* session, const PerfTestOptions& o);
    size_t sets() const { return sets_.size(); }
    const std::vector<std::string>& names() const { return names_; }
    const std::vector<Value>& set(size_t i) const { return sets_[i]; }

private:
    void generate(OrtSession* session, const PerfTestOptions& o);
    bool load(const PerfTestOptions& o);
    std::vector<std::string> names_;
    std::vector<std::vector<Value>> sets_;
};
std::vector<std::string> output_names(OrtSession* session);

/// One session with its inputs, run by any number of threads.
class PerfTestRunner {
public:
    PerfTestRunner(Ort::Env& env, OrtSession* session, const PerfTestOptions& o);
    /// Seconds that run number `i` takes. Safe from any thread without -g, which binds one set.
    double run(size_t i);

private:
    void bind(Ort::Env& env);
    OrtSession* session_;
    Inputs inputs_;
    std::vector<std::string> outputs_;
    Ort::detail::Owner<OrtRunOptions, &OrtApi::ReleaseRunOptions> options_;
    // The binding ends first, then what is bound, then the allocators.
    std::vector<Ort::detail::Owner<OrtAllocator, &OrtApi::ReleaseAllocator>> allocators_;
    std::vector<Value> on_device_;
    Ort::detail::Owner<OrtIoBinding, &OrtApi::ReleaseIoBinding> binding_;
};

struct PerfTestTimes {
    double creation = 0; // seconds, as all of these
    double first = 0;
    double whole = 0; // from the first measured run's start to the last one's end
    double cpu_percent = 0;
    std::vector<double> runs;
};
void print_times(const PerfTestOptions& o, const PerfTestTimes& times);

} // namespace ingot::tool
