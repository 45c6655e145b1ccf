// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/tune/tuner.h"

#include "backends/cuda/options.h"
#include "backends/cuda/tune/tuning_bench.h"
#include "base/error.h"
#include "base/log.h"
#include "base/priority.h"

#include <algorithm>

namespace ingot::cuda {

using kernels::Tactic;

namespace {

/// Jobs that compile while one is timed.
constexpr size_t jobs_ahead = 4;

} // namespace

std::string timing_device(const Gpu& gpu, const kernels::Arch& arch) {
    std::string device =
        str(gpu.identity(), ", ", arch.nvrtc, " with ", arch.shared_per_block, " bytes a block");
    std::replace_if(
        device.begin(), device.end(), [](char c) { return c == '\n' || c == '\t'; }, ' ');
    return device;
}

std::string implementation_text(std::string_view family, std::string_view tactic, bool timed) {
    return str(family, ' ', tactic, timed ? " (timed)" : "");
}

Tuner::Tuner(CudaState& state, std::shared_ptr<plan::TimingCache> cache, int64_t weight_bytes)
    : state_(std::shared_ptr<void>(), &state), cache_(std::move(cache)),
      device_(timing_device(state.gpu, state.arch)),
      weights_stay_(weight_bytes < state.arch.l2_bytes), mode_(state.options.tune),
      budget_ms_(state.options.tune_budget_ms) {}

Tuner::~Tuner() {
    {
        std::scoped_lock lock(mutex_);
        stop_ = true;
        jobs_.clear();
    }
    wake_.notify_all();
    if (thread_.joinable()) {
        thread_.join();
    }
}

std::optional<plan::Timing> Tuner::find(const std::string& problem) const {
    return cache_->find(device_, problem);
}

std::string Tuner::key_of(const std::string& layer, const std::string& problem) const {
    std::string own = plan::layer_problem(layer, problem);
    return cache_->by_layer() || cache_->find(device_, own) ? own : problem;
}

void Tuner::miss(const std::string& layer, const std::string& tactic) const {
    cache_->miss(layer, tactic);
}

bool Tuner::must_know() const {
    return state_->options.timed_before;
}

bool Tuner::wants(const std::string& problem) {
    std::scoped_lock lock(mutex_);
    return ++uses_[problem] == 1 && spent_ms_ < budget_ms_;
}

void Tuner::add(TuningJob job) {
    std::scoped_lock lock(mutex_);
    jobs_.push_back(std::move(job));
    if (mode_ != Tune::Background) {
        return;
    }
    if (!thread_.joinable()) {
        thread_ = std::thread([this] { work(); });
    } else {
        wake_.notify_one();
    }
}

double Tuner::spent_ms() const {
    std::scoped_lock lock(mutex_);
    return spent_ms_;
}

void Tuner::work() {
    lower_this_threads_priority();
    std::unique_lock lock(mutex_);
    while (true) {
        wake_.wait(lock, [this] { return stop_ || !jobs_.empty(); });
        if (stop_) {
            return;
        }
        std::vector<TuningJob> jobs = std::move(jobs_);
        jobs_.clear();
        lock.unlock();
        try {
            time_jobs(std::move(jobs), true);
        } catch (const std::exception& e) {
            log(LogLevel::Warning, "cuda: tactics are not timed any more: ", e.what());
            return;
        }
        lock.lock();
    }
}

void Tuner::finish() {
    std::scoped_lock turn(finishing_);
    std::vector<TuningJob> jobs;
    {
        std::scoped_lock lock(mutex_);
        jobs = std::move(jobs_);
        jobs_.clear();
    }
    if (!jobs.empty()) {
        time_jobs(std::move(jobs), false);
    }
}

void Tuner::sort_by_cost(std::vector<TuningJob>& jobs) const {
    std::scoped_lock lock(mutex_);
    for (TuningJob& job : jobs) {
        job.cost_us *= uses_.at(job.problem);
    }
    std::stable_sort(jobs.begin(), jobs.end(),
                     [](const TuningJob& a, const TuningJob& b) { return a.cost_us > b.cost_us; });
}

void Tuner::time_jobs(std::vector<TuningJob> jobs, bool background) {
    double start = state_->gpu.now_ms();
    auto left_ms = [&] {
        std::scoped_lock lock(mutex_);
        return stop_ ? 0 : budget_ms_ - spent_ms_ - (state_->gpu.now_ms() - start);
    };
    sort_by_cost(jobs);
    size_t timed = 0;
    size_t requested = 0;
    try {
        TuningBench bench(state_, background, weights_stay_);
        for (size_t i = 0; i < jobs.size(); ++i) {
            const TuningJob& job = jobs[i];
            // In the background, one thread compiles kernel by kernel.
            size_t ahead = background || left_ms() <= 0 ? i : std::min(i + jobs_ahead, jobs.size());
            while (requested < ahead) {
                bench.request(jobs[requested++]);
            }
            auto best = left_ms() > 0 ? bench.fastest(job, left_ms) : std::nullopt;
            if (best) {
                plan::TimedProblem p{job.layer, device_, job.problem, {}, best->best};
                for (const TuningBench::Time& t : best->times) {
                    const TuningJob::Candidate& c = job.candidates[t.candidate];
                    p.rows.push_back({c.tactic, implementation_text(job.family, c.tactic, true),
                                      t.us, c.cost_us});
                }
                cache_->add(p);
                timed++;
                log(LogLevel::Verbose, "cuda: ", job.what, ": ", p.rows[p.best].tactic, " takes ",
                    p.rows[p.best].us, " us, the best of ", job.candidates.size());
            }
        }
    } catch (const Error& e) {
        if (e.code() != ErrorCode::OutOfMemory) {
            throw;
        }
        log(LogLevel::Warning, "cuda: tactics are not timed: ", e.what());
    }
    cache_->save();
    std::scoped_lock lock(mutex_);
    spent_ms_ += state_->gpu.now_ms() - start;
    log(LogLevel::Info, "cuda: tactics of ", timed, " of ", jobs.size(), " problems were timed, ",
        spent_ms_, " of ", budget_ms_, " ms spent");
}

size_t TacticChoices::choose(Tuner& tuner, const kernels::Family& family,
                             const kernels::Problem& problem, const std::vector<Tactic>& tactics,
                             const std::string& layer, bool& timed) {
    std::vector<Tactic> candidates = candidates_of(tactics);
    if (candidates.size() < 2) {
        return 0;
    }
    auto place = [&tactics](const std::string& name) {
        auto it = std::find_if(tactics.begin(), tactics.end(), [&name](const Tactic& t) {
            return plan::names_tactic(name, t.name);
        });
        return it == tactics.end() ? std::nullopt
                                   : std::optional(static_cast<size_t>(it - tactics.begin()));
    };
    std::string key = tuner.key_of(layer, problem_text(family, problem));
    auto it = made_.find(key);
    bool is_new = it == made_.end();
    if (is_new) {
        std::optional<plan::Timing> known = tuner.find(key);
        bool usable = known && place(known->tactic);
        if (known && !usable) {
            tuner.miss(layer, known->tactic);
        }
        require(usable || !tuner.must_know(), ErrorCode::InvalidArgument,
                "the timing cache has no entry for ", layer_text(layer, family.name), ": ", key);
        it =
            made_
                .emplace(key, usable ? Choice{known->tactic, true} : Choice{tactics[0].name, false})
                .first;
        bool offered = !usable && tuner.wants(key);
        if (offered) {
            tuner.add(make_job(family, problem, candidates, key, layer));
        }
        if (tuner.is_full() && (offered || !known)) {
            open_.push_back(key);
        }
    }
    if (!is_new && !it->second.timed) {
        tuner.wants(key); // counts the use: made_ has the choice, so nothing is offered
    }
    std::optional<size_t> at = place(it->second.tactic);
    timed = at && it->second.timed;
    return at.value_or(0);
}

bool TacticChoices::settle(Tuner& tuner) {
    if (open_.empty()) {
        return false;
    }
    tuner.finish();
    bool again = false;
    for (const std::string& key : open_) {
        if (tuner.find(key)) {
            made_.erase(key);
            again = true;
        }
    }
    open_.clear();
    return again;
}

} // namespace ingot::cuda
