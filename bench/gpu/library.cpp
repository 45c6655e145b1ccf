// SPDX-License-Identifier: Apache-2.0
// libingot_bench.so: what the GPU benchmarks need, for Python's ctypes, so that Ingot and its peers
// are timed in one process. Every function returns 0, or 1 with a message in `ingot_bench_error`.
#include "backends/backends.h"
#include "backends/cuda/options.h"
#include "base/json.h"
#include "base/trace.h"
#include "cache/timing_cache.h"
#include "engine/engine.h"
#include "plan/run_settings.h"
#include "workflow/build.h"
#include "workflow/inputs/inputs.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <fstream>

namespace {

using namespace ingot;

thread_local std::string last_error;

struct Session {
    std::shared_ptr<const Engine> engine;
    std::unique_ptr<Context> context;
    std::vector<Tensor> inputs;
    std::vector<Tensor> outputs;
};

/// Appends what the tuner times to a file, a problem a line, as JSON: times in nanoseconds.
class TimingWriter : public plan::TimingListener {
public:
    explicit TimingWriter(const std::string& path) : out_(path, std::ios::app) {
        require(out_.good(), ErrorCode::InvalidArgument, "'", path, "' cannot be written");
    }
    void timed(const plan::TimedProblem& p) override {
        constexpr double ns_per_us = 1000;
        Json line;
        line.set("problem", p.problem);
        line.set("layer", p.layer);
        Json& rows = line.set("candidates", Json::list());
        for (const plan::TimedProblem::Row& r : p.rows) {
            Json& row = rows.add();
            row.set("tactic", r.tactic);
            row.set("expected_ns", std::llround(r.expected_us * ns_per_us));
            row.set("ns", std::llround(r.us * ns_per_us));
        }
        out_ << line.dump() << std::endl;
    }
    void missed(const std::string&, const std::string&) override {}

private:
    std::ofstream out_;
};

/// Makes the sessions that write to one file share a timing cache, so that a problem is timed once.
void time_tactics(CudaOptions& own, const std::string& file, double budget_ms) {
    struct Shared {
        std::shared_ptr<plan::TimingCache> cache = std::make_shared<plan::TimingCache>("");
        std::shared_ptr<TimingWriter> writer;
    };
    static std::map<std::string, Shared> by_file;
    Shared& shared = by_file[file];
    if (shared.writer == nullptr) {
        shared.writer = std::make_shared<TimingWriter>(file);
        shared.cache->listen(shared.writer);
    }
    own.tune = Tune::Full;
    own.tune_budget_ms = budget_ms;
    own.timing_cache = shared.cache;
    own.record_graphs = false;
}

template <class F>
int guarded(const F& f) {
    try {
        f();
        return 0;
    } catch (const std::exception& e) {
        last_error = e.what();
        return 1;
    }
}

} // namespace

#define INGOT_BENCH_API extern "C" __attribute__((visibility("default")))

INGOT_BENCH_API const char* ingot_bench_error() {
    return last_error.c_str();
}

/// Loads an engine file and compiles it for the GPU; `options` is a list of words: "notf32",
/// "nograph", "nocache", "without=PASS" (repeatable), "timeline=FILE", "tune=FILE" (every problem's
/// tactics are timed before its first run, and the file gets a line each), and at the end
/// "tactic=NAME".
INGOT_BENCH_API int ingot_bench_open(const char* path, const char* options, void** session) {
    return guarded([&] {
        auto s = std::make_unique<Session>();
        CompileOptions c;
        std::string words = options;
        auto& own = c.of<CudaOptions>();
        own.tf32 = words.find("notf32") == std::string::npos;
        own.record_graphs = words.find("nograph") == std::string::npos;
        if (words.find("nocache") != std::string::npos) {
            own.runtime_cache.clear();
        }
        constexpr std::string_view without = "without=";
        for (size_t at = words.find(without); at != std::string::npos;
             at = words.find(without, at + 1)) {
            size_t begin = at + without.size();
            c.disabled_passes.push_back(words.substr(begin, words.find(' ', begin) - begin));
        }
        if (size_t at = words.find("timeline="); at != std::string::npos) {
            own.timeline_file = words.substr(at + 9, words.find(' ', at) - at - 9);
        }
        if (size_t at = words.find("tune="); at != std::string::npos) {
            constexpr double budget_ms = 600000;
            time_tactics(own, words.substr(at + 5, words.find(' ', at) - at - 5), budget_ms);
        }
        if (size_t at = words.find("tactic="); at != std::string::npos) {
            own.force_tactic = words.substr(at + 7);
        }
        s->engine = Engine::load(path);
        std::string why;
        const Backend* backend = cuda_backend(why);
        require(backend != nullptr, ErrorCode::Unsupported, why);
        s->context = std::make_unique<Context>(s->engine, *backend, c);
        for (Value v : s->engine->graph().inputs()) {
            s->inputs.emplace_back();
            (void)v;
        }
        *session = s.release();
    });
}

INGOT_BENCH_API void ingot_bench_close(void* session) {
    delete static_cast<Session*>(session);
}

/// Sets an input from host memory of the input's own dtype.
INGOT_BENCH_API int ingot_bench_input(void* session, const char* name, const void* data,
                                      const int64_t* shape, int rank) {
    return guarded([&] {
        auto& s = *static_cast<Session*>(session);
        const Graph& g = s.engine->graph();
        for (size_t i = 0; i < g.inputs().size(); ++i) {
            Value v = g.inputs()[i];
            if (g.value_name(v) == name) {
                Tensor t = Tensor::empty(g.type(v).dtype, Shape(shape, shape + rank));
                std::memcpy(t.mutable_bytes().data(), data, t.bytes().size());
                s.inputs[i] = t;
                return;
            }
        }
        fail(ErrorCode::InvalidArgument, "there is no input '", name, "'");
    });
}

/// Runs once; results stay in the session.
INGOT_BENCH_API int ingot_bench_run(void* session) {
    return guarded([&] {
        auto& s = *static_cast<Session*>(session);
        s.outputs = s.context->run(s.inputs);
    });
}

/// Output `index` as f32 (other floats and integers are converted), at most `count` elements; the
/// number of elements it has goes to `total`.
INGOT_BENCH_API int ingot_bench_output(void* session, int index, float* data, int64_t count,
                                       int64_t* total) {
    return guarded([&] {
        const Tensor& t = static_cast<Session*>(session)->outputs.at(static_cast<size_t>(index));
        *total = t.count();
        for (int64_t i = 0; i < std::min(count, t.count()); ++i) {
            data[i] = static_cast<float>(is_float(t.dtype()) ? t.get_f64(i)
                                                             : static_cast<double>(t.get_i64(i)));
        }
    });
}

/// `runs` inferences; the GPU's milliseconds and the caller's enqueue milliseconds of each.
INGOT_BENCH_API int ingot_bench_time(void* session, int runs, double* compute, double* enqueue) {
    return guarded([&] {
        auto& s = *static_cast<Session*>(session);
        for (int i = 0; i < runs; ++i) {
            s.context->run(s.inputs, s.outputs);
            RunTimes t = s.context->execution().times();
            compute[i] = t.compute;
            enqueue[i] = t.enqueue;
        }
    });
}

/// One line a step of the plan: milliseconds, kernel, implementation, name, operands, separated by
/// tabs. The text is valid until the next call on this thread.
INGOT_BENCH_API const char* ingot_bench_profile(void* session, int runs) {
    static thread_local std::string text;
    int failed = guarded([&] {
        struct Collector : StepTimer {
            std::vector<std::pair<std::string, std::vector<double>>> steps;
            size_t at = 0;
            void step(const StepInfo& info, double ms) noexcept override {
                if (at == steps.size()) {
                    steps.emplace_back(str(info.kernel, '\t', info.implementation, '\t', info.name),
                                       std::vector<double>());
                }
                steps[at++].second.push_back(ms);
            }
        };
        auto& s = *static_cast<Session*>(session);
        Collector c;
        s.context->execution().change([&](RunSettings& changed) { changed.timer = &c; });
        for (int i = 0; i < runs; ++i) {
            c.at = 0;
            s.context->run(s.inputs, s.outputs);
        }
        s.context->execution().change([&](RunSettings& changed) { changed.timer = nullptr; });
        std::vector<StepInfo> infos = s.context->execution().steps();
        text.clear();
        for (size_t i = 0; i < c.steps.size(); ++i) {
            std::vector<double>& v = c.steps[i].second;
            std::sort(v.begin(), v.end());
            text += str(v[v.size() / 2], '\t', c.steps[i].first);
            if (i < infos.size()) {
                for (const auto& list : {infos[i].inputs, infos[i].outputs}) {
                    text += '\t';
                    for (const std::string& o : list) {
                        text += o + ' ';
                    }
                }
            }
            text += '\n';
        }
    });
    return failed != 0 ? nullptr : text.c_str();
}

/// Records the phases of this process from now on.
INGOT_BENCH_API void ingot_bench_start_trace() {
    start_trace();
}

/// Ends recording. One line a phase: its name, detail, thread, start and end in milliseconds,
/// separated by tabs. The text is valid until the next call on this thread.
INGOT_BENCH_API const char* ingot_bench_trace() {
    static thread_local std::string text;
    text.clear();
    for (const TraceEvent& e : end_trace()) {
        text +=
            str(e.phase, '\t', e.detail, '\t', e.thread, '\t', e.start_ms, '\t', e.end_ms, '\n');
    }
    return text.c_str();
}
