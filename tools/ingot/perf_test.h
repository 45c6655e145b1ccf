// SPDX-License-Identifier: Apache-2.0
// ingot perf-test: the options of onnxruntime_perf_test, and the parts of a run.
#pragma once

// The same declarations on every machine, with or without ONNX Runtime's headers.
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
    // Parsed from the texts above.
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
/// The non-empty parts between separators.
std::vector<std::string> split(std::string_view text, char separator);

/// Opens ONNX Runtime: --ort-library, $INGOT_ORT_LIBRARY, the loader's, else that of the package of
/// `python3`. Errors: Io listing the tried ones.
void open_onnxruntime(const PerfTestOptions& o);
/// The provider libraries of the options, and Ingot's for -e; the destructor unregisters them.
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
/// The session options: providers with their devices, levels, threads.
Ort::SessionOptions session_options(Ort::Env& env, const PerfTestOptions& o, bool compiles);

using Value = Ort::detail::Owner<OrtValue, &OrtApi::ReleaseValue>;
/// Inputs of the session: one list per set of test data, or of generated values.
class Inputs {
public:
    /// Errors: NotFound without test data and without -I.
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

/// One session with its inputs, usable from any number of threads.
class PerfTestRunner {
public:
    PerfTestRunner(Ort::Env& env, OrtSession* session, const PerfTestOptions& o);
    /// Seconds of run number `i`. Thread safe without -g, which binds one set.
    double run(size_t i);

private:
    void bind(Ort::Env& env);
    OrtSession* session_;
    Inputs inputs_;
    std::vector<std::string> outputs_;
    Ort::detail::Owner<OrtRunOptions, &OrtApi::ReleaseRunOptions> options_;
    // Destroyed in order: the binding, the bound values, the allocators.
    std::vector<Ort::detail::Owner<OrtAllocator, &OrtApi::ReleaseAllocator>> allocators_;
    std::vector<Value> on_device_;
    Ort::detail::Owner<OrtIoBinding, &OrtApi::ReleaseIoBinding> binding_;
};

struct PerfTestTimes {
    double creation = 0; // in seconds, like the others
    double first = 0;
    double whole = 0; // from the first measured run's start to the last one's end
    double cpu_percent = 0;
    std::vector<double> runs;
};
void print_times(const PerfTestOptions& o, const PerfTestTimes& times);

} // namespace ingot::tool
