// SPDX-License-Identifier: Apache-2.0
// Tuner: times the tactics that the cost model puts near each other, within a budget, and keeps the
// winners in the timing cache. One per executable.
#pragma once

#include "backends/cuda/driver/gpu.h"
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

/// Names a device in the timing cache.
std::string timing_device(const Gpu& gpu, const kernels::Arch& arch);

/// StepInfo::implementation of a step that uses a tactic.
std::string implementation_text(std::string_view family, std::string_view tactic, bool timed);

/// Thread safe.
class Tuner {
public:
    /// Belongs to `state`. `weight_bytes`: of the whole model; where they do not fit into the L2
    /// cache, no weight is there when a run needs it.
    Tuner(CudaState& state, std::shared_ptr<plan::TimingCache> cache, int64_t weight_bytes);
    /// Ends what is being timed and drops the rest.
    ~Tuner();
    Tuner(const Tuner&) = delete;
    Tuner& operator=(const Tuner&) = delete;

    bool is_full() const { return mode_ == Tune::Full; }
    /// A problem that is not in the timing cache is an error.
    bool must_know() const;
    /// The key of a layer's problem: the layer's own where the cache has one or keeps them apart.
    std::string key_of(const std::string& layer, const std::string& problem) const;
    /// The cache knows a tactic for the layer that it does not have.
    void miss(const std::string& layer, const std::string& tactic) const;
    /// The winner of a problem, where it is known.
    std::optional<plan::Timing> find(const std::string& problem) const;
    /// Another step has this problem. True when a job for it is welcome: the first time, while
    /// there is budget left.
    bool wants(const std::string& problem);
    /// Background: it is timed when its turn comes. Full: by the next finish().
    void add(TuningJob job);
    /// Times what was added, what costs the model most first, until the budget is spent. Errors:
    /// those of a device that is lost.
    void finish();
    /// Milliseconds spent so far.
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
    std::map<std::string, int> uses_; // by problem: steps that have it
    std::vector<TuningJob> jobs_;
    double spent_ms_ = 0;
    bool stop_ = false;
    std::thread thread_;
};

/// The choices of one context: what it chose for a problem stays while it lives.
class TacticChoices {
public:
    /// The place of the tactic that a context uses, by its own earlier choice, the timing cache or
    /// the model; `timed` says whether it was the fastest of several. Offers the problem to the
    /// tuner where nobody timed it yet.
    size_t choose(Tuner& tuner, const kernels::Family& family, const kernels::Problem& problem,
                  const std::vector<kernels::Tactic>& tactics, const std::string& layer,
                  bool& timed);
    /// Full tuning: times what was offered; true when there are new winners among the problems of
    /// this context, so that plans made with the model's choices are made again.
    bool settle(Tuner& tuner);

private:
    struct Choice {
        std::string tactic;
        bool timed = false;
    };
    std::map<std::string, Choice> made_; // by problem
    std::vector<std::string> open_;      // chosen by the model until the tuner finishes
};

} // namespace ingot::cuda
