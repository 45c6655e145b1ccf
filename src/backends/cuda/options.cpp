// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/options.h"

#include "backends/backends.h"

namespace ingot {

namespace {

Tune tune_mode(const std::string& text) {
    return text == "off" ? Tune::Off : text == "full" ? Tune::Full : Tune::Background;
}

Specialise specialise_mode(const std::string& text) {
    return text.empty()      ? Specialise::Auto
           : text == "lazy"  ? Specialise::Lazy
           : text == "eager" ? Specialise::Eager
                             : Specialise::None;
}

RunPriority run_priority(const std::string& text) {
    return text == "low"    ? RunPriority::Low
           : text == "high" ? RunPriority::High
                            : RunPriority::Normal;
}

std::string cache_folder(const std::string& text) {
    return text.empty() ? CudaOptions().runtime_cache : text == "none" ? std::string() : text;
}

CudaOptions& own(CompileOptions& o) {
    return o.of<CudaOptions>();
}

bool flag(const OptionValue& v) {
    return std::get<bool>(v);
}

int64_t number(const OptionValue& v) {
    return std::get<int64_t>(v);
}

const std::string& text(const OptionValue& v) {
    return std::get<std::string>(v);
}

using Options = CompileOptions;
using Value = OptionValue;

constexpr BackendOption setters[] = {
    {"no_tf32", [](Options& o, const Value& v) { own(o).tf32 = !flag(v); }},
    {"no_cuda_graph", [](Options& o, const Value& v) { own(o).record_graphs = !flag(v); }},
    {"error_on_timing_miss", [](Options& o, const Value& v) { own(o).timed_before = flag(v); }},
    {"arch", [](Options& o, const Value& v) { own(o).arch = static_cast<int>(number(v)); }},
    {"memory_limit", [](Options& o, const Value& v) { own(o).memory_limit = number(v); }},
    {"tune_budget",
     [](Options& o, const Value& v) { own(o).tune_budget_ms = static_cast<double>(number(v)); }},
    {"force_tactic", [](Options& o, const Value& v) { own(o).force_tactic = text(v); }},
    {"runtime_cache",
     [](Options& o, const Value& v) { own(o).runtime_cache = cache_folder(text(v)); }},
    {"timeline", [](Options& o, const Value& v) { own(o).timeline_file = text(v); }},
    {"runtime_cache_file", [](Options& o, const Value& v) { own(o).runtime_cache_file = text(v); }},
    {"timing_cache_file", [](Options& o, const Value& v) { own(o).timing_cache_file = text(v); }},
    {"tune", [](Options& o, const Value& v) { own(o).tune = tune_mode(text(v)); }},
    {"specialise",
     [](Options& o, const Value& v) { own(o).specialise = specialise_mode(text(v)); }},
    {"priority", [](Options& o, const Value& v) { own(o).priority = run_priority(text(v)); }},
};

} // namespace

std::span<const BackendOption> cuda_options() {
    return setters;
}

} // namespace ingot
