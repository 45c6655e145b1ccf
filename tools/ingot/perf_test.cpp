// SPDX-License-Identifier: Apache-2.0
// ingot perf-test: runs a model in stock ONNX Runtime, with Ingot's execution provider or others,
// with the options and output of onnxruntime_perf_test.
#include "perf_test.h"

#include "base/error.h"
#include "base/process.h"
#include "base/read_file.h"
#include "commands.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <exception>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

namespace ingot::tool {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

Ort::Session make_session(Ort::Env& env, const PerfTestOptions& o,
                          const Ort::SessionOptions& options) {
    if (!o.from_memory) {
        return {env, o.model.c_str(), options};
    }
    std::ifstream file(o.model, std::ios::binary | std::ios::ate);
    require(file.good(), ErrorCode::Io, "cannot read ", o.model);
    std::vector<char> bytes(static_cast<size_t>(file.tellg()));
    file.seekg(0);
    file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    require(file.good(), ErrorCode::Io, "cannot read ", o.model);
    return {env, bytes.data(), bytes.size(), options};
}

/// Runs until the time or count is used up, on the requested number of threads.
class Measurement {
public:
    Measurement(PerfTestRunner& runner, const PerfTestOptions& o, PerfTestTimes& times)
        : runner_(runner), o_(o), times_(times) {}
    void run() {
        std::vector<std::thread> others;
        for (int64_t i = 1; i < o_.concurrent; ++i) {
            others.emplace_back([this] { work(); });
        }
        work();
        for (std::thread& t : others) {
            t.join();
        }
        if (problem_ != nullptr) {
            std::rethrow_exception(problem_);
        }
    }

private:
    bool more(size_t i) const {
        bool within = o_.by_time ? seconds_since(start_) < static_cast<double>(o_.seconds)
                                 : i < static_cast<size_t>(o_.times);
        return within && !stopped_;
    }
    void work() {
        try {
            for (size_t i = next_++; more(i); i = next_++) {
                keep(runner_.run(i));
            }
        } catch (...) {
            std::lock_guard lock(mutex_);
            problem_ = std::current_exception();
            stopped_ = true;
        }
    }
    void keep(double time) {
        std::lock_guard lock(mutex_);
        times_.runs.push_back(time);
        if (o_.verbose) {
            std::printf("iteration:%zu,time_cost:%g\n", times_.runs.size(), time);
        }
    }
    PerfTestRunner& runner_;
    const PerfTestOptions& o_;
    PerfTestTimes& times_;
    Clock::time_point start_ = Clock::now();
    std::atomic<size_t> next_ = 0;
    std::atomic<bool> stopped_ = false;
    std::mutex mutex_;
    std::exception_ptr problem_;
};

int measure(Ort::Env& env, const PerfTestOptions& o) {
    PerfTestTimes times;
    Ort::SessionOptions options = session_options(env, o, false);
    Clock::time_point start = Clock::now();
    Ort::Session session = make_session(env, o, options);
    times.creation = seconds_since(start);
    if (o.only_session) {
        std::printf("\nSession creation time cost: %g s\n", times.creation);
        if (o.hold > 0) {
            std::printf("SESSION_READY\n");
            std::fflush(stdout);
            std::this_thread::sleep_for(std::chrono::milliseconds(o.hold));
        }
        return 0;
    }
    PerfTestRunner runner(env, session, o);
    start = Clock::now();
    runner.run(0);
    times.first = seconds_since(start);
    std::clock_t cpu = std::clock(); // of all threads
    start = Clock::now();
    Measurement(runner, o, times).run();
    times.whole = seconds_since(start);
    double busy = static_cast<double>(std::clock() - cpu) / CLOCKS_PER_SEC;
    unsigned cores = std::max(1U, std::thread::hardware_concurrency());
    times.cpu_percent = 100 * busy / (times.whole * cores);
    print_times(o, times);
    return 0;
}

void compile(Ort::Env& env, const PerfTestOptions& o) {
    std::printf("\n> Compiling model...\n");
    Ort::SessionOptions options = session_options(env, o, true);
    Ort::ModelCompilationOptions settings(env, options);
    settings.SetEpContextEmbedMode(o.embed);
    settings.SetInputModelPath(o.model.c_str());
    settings.SetOutputModelPath(o.compiled_model.c_str());
    Clock::time_point start = Clock::now();
    Ort::Status status = Ort::CompileModel(env, settings);
    double time = seconds_since(start);
    if (!status.IsOK()) {
        std::printf("Failed to compile model: %s\n", status.GetErrorMessage().c_str());
        fail(ErrorCode::Internal, o.model, " was not compiled: ", status.GetErrorMessage());
    }
    std::printf("Compile time cost: %g s\nModel compiled successfully to %s\n", time,
                o.compiled_model.c_str());
}

int perform(const PerfTestOptions& o) {
    open_onnxruntime(o);
    Ort::Env env(o.verbose ? ORT_LOGGING_LEVEL_VERBOSE : ORT_LOGGING_LEVEL_WARNING, "Default");
    Registered registered(env, o);
    if (o.list_devices) {
        list_ep_devices(env);
        return 0;
    }
    if (!o.compile) {
        return measure(env, o);
    }
    compile(env, o);
    if (o.compile_only) {
        return 0;
    }
    std::printf("\n> Running EP context model...\n");
    PerfTestOptions compiled = o;
    compiled.model = o.compiled_model;
    return measure(env, compiled);
}

/// Min, Max and percentiles of sorted times, as lines.
std::string percentiles(const std::vector<double>& sorted) {
    char text[512];
    auto at = [&](double share) {
        return sorted[static_cast<size_t>(static_cast<double>(sorted.size()) * share)];
    };
    std::snprintf(text, sizeof(text),
                  "Min Latency: %g s\nMax Latency: %g s\nP50 Latency: %g s\nP90 Latency: %g s\n"
                  "P95 Latency: %g s\nP99 Latency: %g s\nP999 Latency: %g s\n",
                  sorted.front(), sorted.back(), at(0.5), at(0.9), at(0.95), at(0.99), at(0.999));
    return text;
}

/// Prints the reason behind earlier output; returns the exit code.
int refused(const std::exception& e, int code) {
    std::fflush(stdout);
    std::fprintf(stderr, "ingot perf-test: error: %s\n", e.what());
    return code;
}

} // namespace

void print_times(const PerfTestOptions& o, const PerfTestTimes& times) {
    double sum = 0;
    for (double t : times.runs) {
        sum += t;
    }
    auto count = static_cast<double>(times.runs.size());
    auto memory = static_cast<unsigned long long>(peak_memory_bytes());
    int cpu = static_cast<int>(times.cpu_percent);
    std::printf("Session creation time cost: %g s\nFirst inference time cost: %lld ms\n"
                "Total inference time cost: %g s\nTotal inference requests: %zu\n"
                "Average inference time cost total: %f ms\nTotal inference run time: %g s\n"
                "Number of inferences per second: %g \nAvg CPU usage: %d %%\n"
                "Peak working set size: %llu bytes\n",
                times.creation, static_cast<long long>(times.first * 1000), sum, times.runs.size(),
                sum / count * 1000, times.whole, count / times.whole, cpu, memory);
    std::vector<double> sorted = times.runs;
    std::sort(sorted.begin(), sorted.end());
    if (o.result_file.empty()) {
        std::printf("Avg CPU usage:%d\nPeak working set size:%llu\nRuns:%zu\n%s", cpu, memory,
                    times.runs.size(), percentiles(sorted).c_str());
        return;
    }
    std::ofstream file(o.result_file, std::ios::app);
    std::string folder = std::filesystem::absolute(o.model).parent_path().filename().string();
    for (size_t i = 0; i < times.runs.size(); ++i) {
        file << folder << ',' << times.runs[i] << ',' << memory << ',' << cpu << ',' << i << '\n';
    }
    if (o.statistics) {
        file << '\n' << percentiles(sorted);
        std::printf("%s", percentiles(sorted).c_str());
    }
    require(file.flush().good(), ErrorCode::Io, "cannot write ", o.result_file);
}

int perf_test(std::span<const std::string> arguments) {
    try {
        PerfTestOptions o = parse_perf_test(arguments);
        if (o.help || o.help_too) {
            std::fputs(perf_test_help().c_str(), stdout);
            return 0;
        }
        return perform(o);
    } catch (const Error& e) {
        return refused(e, e.code() == ErrorCode::InvalidArgument ? 2 : 1);
    } catch (const std::exception& e) {
        return refused(e, 1);
    }
}

} // namespace ingot::tool
