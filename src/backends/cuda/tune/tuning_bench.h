// SPDX-License-Identifier: Apache-2.0
// TuningBench: runs a job's candidates on its own memory under the conditions of a model: fresh
// activations, weights in the L2 cache only where all of them fit.
#pragma once

#include "backends/cuda/run/launch_list.h"
#include "backends/cuda/tune/tuning_job.h"

#include <functional>
#include <optional>

namespace ingot::cuda {

/// One thread at a time may use it.
class TuningBench {
public:
    TuningBench(std::shared_ptr<CudaState> state, bool background, bool weights_stay);
    ~TuningBench();
    TuningBench(const TuningBench&) = delete;
    TuningBench& operator=(const TuningBench&) = delete;

    struct Time {
        size_t candidate = 0;
        double us = 0; // the median of its runs
    };
    struct Result {
        std::vector<Time> times; // of the candidates that ran, in the job's order
        size_t best = 0;         // the index among them
    };
    /// Requests a job's kernels, so that they compile while others are timed.
    void request(const TuningJob& job) const;
    /// The fastest candidate; nullopt when fewer than two ran before `left_ms()` reached 0, or
    /// memory is short. Errors: those of a lost device.
    std::optional<Result> fastest(const TuningJob& job, const std::function<double()>& left_ms);

private:
    struct Racer {
        size_t candidate = 0;
        std::unique_ptr<LaunchList> launches;
        std::vector<double> us;
    };
    std::vector<Racer> compile(const TuningJob& job, const std::function<double()>& left_ms);
    bool compiled(const TuningJob::Candidate& c, const std::function<double()>& left_ms) const;
    bool has_room(const TuningJob& job, const TuningJob::Candidate& c) const;
    void allocate(const TuningJob& job);
    void release() noexcept;
    void prepare(const TuningJob& job);
    double run(const TuningJob& job, Racer& r);
    void write_pattern(std::byte* to, int64_t bytes, DType dtype);
    std::byte* pattern(DType dtype);

    std::shared_ptr<CudaState> state_;
    bool background_;
    bool weights_stay_;
    CudaDevice device_;
    std::byte* flush_ = nullptr;
    int64_t flush_bytes_ = 0;
    std::map<DType, std::byte*> patterns_;
    std::vector<std::byte*> buffers_; // of the job, by Operand::buffer
    std::byte* scratch_ = nullptr;
};

} // namespace ingot::cuda
