// SPDX-License-Identifier: Apache-2.0
// Tuner: times tactics of similar modelled cost within a budget, and stores the winners in the
// timing cache. One per executable.
#pragma once

#include "backends/cuda/driver/gpu.h"
#include "backends/cuda/options.h"
#include "backends/cuda/tune/tuning_job.h"
#include "cache/timing_cache.h"
#include "plan/backend.h"

#include <condition_variable>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

namespace ingot::cuda {

struct CudaState;
class TuningBench;

/// The device's name in the timing cache.
std::string timing_device(const Gpu& gpu, const kernels::Arch& arch);

/// StepInfo::implementation for a step with a tactic.
std::string implementation_text(std::string_view family, std::string_view tactic, bool timed);

/// Thread safe.
class Tuner {
public:
    /// Belongs to `state`. `weight_bytes`: of the whole model; if they exceed the L2 cache, weights
    /// are timed as uncached.
    Tuner(CudaState& state, std::shared_ptr<plan::TimingCache> cache, int64_t weight_bytes);
    /// Stops timing and drops the queue.
    ~Tuner();
    Tuner(const Tuner&) = delete;
    Tuner& operator=(const Tuner&) = delete;

    bool is_full() const { return mode_ == Tune::Full; }
    /// A problem that is missing in the timing cache is an error.
    bool must_know() const;
    /// The key of a layer's problem: per layer where the cache has such a key or separates layers.
    std::string key_of(const std::string& layer, const std::string& problem) const;
    /// Reports a cached tactic that the layer lacks.
    void miss(const std::string& layer, const std::string& tactic) const;
    /// The winner of a problem, if known.
    std::optional<plan::Timing> find(const std::string& problem) const;
    /// Counts another step with this problem. True when a job for it is needed: the first time,
    /// while there is budget left.
    bool wants(const std::string& problem);
    /// Background: queues the job. Full: the next finish() times it.
    void add(TuningJob job);
    /// Times the added jobs, the most costly by the model first, until the budget is spent. Errors:
    /// those of a lost device.
    void finish();
    /// Milliseconds spent.
    double spent_ms() const;

private:
    void work();
    void time_jobs(std::vector<TuningJob> jobs, bool background);
    void sort_by_cost(std::vector<TuningJob>& jobs) const;

    std::shared_ptr<CudaState> state_; // does not own it
    std::shared_ptr<plan::TimingCache> cache_;
    std::string device_;
    bool weights_stay_; // in the L2 cache
    Tune mode_;
    double budget_ms_;
    mutable std::mutex mutex_;
    std::mutex finishing_;
    std::condition_variable wake_;
    std::map<std::string, int> uses_; // by problem: the number of its steps
    std::vector<TuningJob> jobs_;
    double spent_ms_ = 0;
    bool stop_ = false;
    std::thread thread_;
};

/// The choices of one context: a problem keeps its choice while the context lives.
class TacticChoices {
public:
    /// The index of the tactic to use: the context's earlier choice, the timing cache's, or the
    /// model's; `timed` tells whether it was measured as the fastest of several. Offers the problem
    /// to the tuner if it was never timed.
    size_t choose(Tuner& tuner, const kernels::Family& family, const kernels::Problem& problem,
                  const std::vector<kernels::Tactic>& tactics, const std::string& layer,
                  bool& timed);
    /// Full tuning: times the offered problems; true when this context has new winners, so that
    /// plans with the model's choices are made again.
    bool settle(Tuner& tuner);

private:
    struct Choice {
        std::string tactic;
        bool timed = false;
    };
    std::map<std::string, Choice> made_; // by problem
    std::vector<std::string> open_;      // the model's choices, until the tuner finishes
};

} // namespace ingot::cuda
