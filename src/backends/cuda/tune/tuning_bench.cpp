// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/tune/tuning_bench.h"

#include "backends/cuda/options.h"
#include "base/error.h"
#include "base/log.h"

#include <algorithm>
#include <set>

namespace ingot::cuda {

namespace {

constexpr int64_t pattern_bytes = 1 << 20;
constexpr int poison_byte = 0xCB;
constexpr int most_rounds = 9;
constexpr int least_rounds = 3;
/// A candidate above this time gets the minimum of rounds.
constexpr double long_us = 5000;
/// A later candidate must beat an earlier one by this factor.
constexpr double margin = 0.99;

double median(std::vector<double> v) {
    std::sort(v.begin(), v.end());
    size_t half = v.size() / 2;
    return v.size() % 2 == 1 ? v[half] : (v[half - 1] + v[half]) / 2;
}

/// Elements between -1 and 1; 0 for integers, which may be indices.
std::vector<std::byte> pattern_of(DType dtype) {
    std::vector<std::byte> bytes(pattern_bytes);
    uint64_t state = 0x9e3779b97f4a7c15ULL;
    auto random = [&state] {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        return state >> 32;
    };
    if (is_float(dtype) && !is_packed(dtype)) {
        Tensor t = Tensor::empty(dtype, {pattern_bytes * 8 / bit_width(dtype)});
        constexpr int64_t period = 4096; // converting is slow
        for (int64_t i = 0; i < period; ++i) {
            t.set_f64(i, static_cast<double>(random()) / 0x1p31 - 1);
        }
        std::span<const std::byte> all = t.bytes();
        size_t part = byte_size(dtype, period);
        for (size_t at = 0; at < bytes.size(); ++at) {
            bytes[at] = all[at % part];
        }
    } else if (dtype == DType::Bool || bit_width(dtype) <= 8) {
        for (std::byte& b : bytes) {
            b = static_cast<std::byte>(dtype == DType::Bool ? random() & 1 : random());
        }
    }
    return bytes;
}

} // namespace

TuningBench::TuningBench(std::shared_ptr<CudaState> state, bool background, bool weights_stay)
    : state_(std::move(state)), background_(background), weights_stay_(weights_stay),
      device_(state_, state_->gpu.create_stream_of(background ? RunPriority::Low
                                                              : state_->options.priority)) {
    flush_bytes_ = 2 * state_->arch.l2_bytes;
    if (int64_t limit = state_->options.tuning_memory; limit > 0) {
        flush_bytes_ = std::min(flush_bytes_, limit / 2);
    }
    flush_ = device_.allocate(flush_bytes_);
}

TuningBench::~TuningBench() {
    release();
    for (auto& [dtype, memory] : patterns_) {
        device_.release(memory);
    }
    device_.release(flush_);
}

void TuningBench::request(const TuningJob& job) const {
    for (const TuningJob::Candidate& c : job.candidates) {
        for (const kernels::Launch& l : c.emitted.launches) {
            state_->programs->request(kernels::full_text(l.program), l.entry, l.shared,
                                      background_ ? ProgramCache::When::Later
                                                  : ProgramCache::When::Now);
        }
    }
}

/// Waits for the compiler while there is time.
bool TuningBench::compiled(const TuningJob::Candidate& c,
                           const std::function<double()>& left_ms) const {
    constexpr double turn_ms = 20; // between looks at the clock
    for (const kernels::Launch& l : c.emitted.launches) {
        auto k = state_->programs->request(kernels::full_text(l.program), l.entry, l.shared,
                                           background_ ? ProgramCache::When::Later
                                                       : ProgramCache::When::Now);
        while (!k->wait_ms(turn_ms)) {
            if (left_ms() <= 0) {
                return false;
            }
        }
    }
    return true;
}

/// Whether a candidate fits CompileOptions::tuning_memory.
bool TuningBench::has_room(const TuningJob& job, const TuningJob::Candidate& c) const {
    int64_t limit = state_->options.tuning_memory;
    int64_t bytes = flush_bytes_ + c.emitted.scratch;
    std::set<DType> types; // types with a pattern already
    for (const auto& [dtype, memory] : patterns_) {
        types.insert(dtype);
    }
    for (const auto& [index, b] : job.buffers) {
        bytes += b.bytes;
        types.insert(b.dtype);
    }
    bytes += static_cast<int64_t>(types.size()) * pattern_bytes;
    if (limit == 0 || bytes <= limit) {
        return true;
    }
    std::string text = str(job.what, ": tactic ", c.tactic, " is not timed: that takes ", bytes,
                           " bytes of device memory, allowed are ", limit);
    log(LogLevel::Verbose, "cuda: ", text);
    if (state_->compile.on_limit) {
        state_->compile.on_limit(text);
    }
    return false;
}

std::vector<TuningBench::Racer> TuningBench::compile(const TuningJob& job,
                                                     const std::function<double()>& left_ms) {
    std::vector<Racer> racers;
    for (size_t i = 0; i < job.candidates.size() && left_ms() > 0; ++i) {
        const TuningJob::Candidate& c = job.candidates[i];
        if (!has_room(job, c)) {
            continue;
        }
        try {
            if (compiled(c, left_ms)) {
                racers.push_back({i, std::make_unique<LaunchList>(device_, job.what), {}});
                racers.back().launches->set(c.emitted, Specialise::None);
                racers.back().launches->wait();
            }
        } catch (const Error& e) {
            if (e.code() == ErrorCode::Device) {
                throw;
            }
            log(LogLevel::Verbose, "cuda: ", job.what, ", tactic ", c.tactic,
                " is not timed: ", e.what());
            if (!racers.empty() && racers.back().candidate == i) {
                racers.pop_back();
            }
        }
    }
    return racers;
}

void TuningBench::allocate(const TuningJob& job) {
    int64_t scratch = 1;
    for (const TuningJob::Candidate& c : job.candidates) {
        scratch = std::max(scratch, c.emitted.scratch);
    }
    scratch_ = device_.allocate(scratch);
    device_.fill(scratch_, poison_byte, static_cast<size_t>(scratch));
    for (const auto& [index, b] : job.buffers) {
        auto at = static_cast<size_t>(index);
        buffers_.resize(std::max(buffers_.size(), at + 1));
        buffers_[at] = device_.allocate(b.bytes);
        if (b.read) {
            write_pattern(buffers_[at], b.bytes, b.dtype);
        }
    }
}

void TuningBench::release() noexcept {
    for (std::byte* b : buffers_) {
        if (b != nullptr) {
            device_.release(b);
        }
    }
    buffers_.clear();
    if (scratch_ != nullptr) {
        device_.release(scratch_);
        scratch_ = nullptr;
    }
}

std::byte* TuningBench::pattern(DType dtype) {
    std::byte*& there = patterns_[dtype];
    if (there == nullptr) {
        std::byte* memory = device_.allocate(pattern_bytes);
        std::vector<std::byte> bytes = pattern_of(dtype);
        device_.write(memory, bytes.data(), bytes.size());
        there = memory;
    }
    return there;
}

void TuningBench::write_pattern(std::byte* to, int64_t bytes, DType dtype) {
    int64_t done = std::min(bytes, pattern_bytes);
    device_.copy(to, pattern(dtype), static_cast<size_t>(done));
    while (done < bytes) {
        int64_t part = std::min(done, bytes - done);
        device_.copy(to + done, to, static_cast<size_t>(part));
        done += part;
    }
}

/// Puts the memory system into the state that earlier kernels would leave.
void TuningBench::prepare(const TuningJob& job) {
    device_.fill(flush_, 0, static_cast<size_t>(flush_bytes_));
    for (const auto& [index, b] : job.buffers) {
        std::byte* memory = buffers_[static_cast<size_t>(index)];
        if (!b.read) {
            device_.fill(memory, poison_byte, static_cast<size_t>(b.bytes));
        } else if (b.constant ? weights_stay_ : b.bytes <= state_->arch.l2_bytes) {
            write_pattern(memory, b.bytes, b.dtype);
        }
    }
}

double TuningBench::run(const TuningJob& job, Racer& r) {
    struct Held { // resumes the device in any case
        plan::DeviceClock& clock;
        explicit Held(plan::DeviceClock& c) : clock(c) { clock.hold(); }
        ~Held() { clock.resume(); }
        Held(const Held&) = delete;
        Held& operator=(const Held&) = delete;
    };
    plan::DeviceClock& clock = *device_.parts().clock;
    clock.forget();
    int from = 0;
    int to = 0;
    {
        Held held(clock);
        prepare(job);
        from = clock.mark();
        r.launches->run(buffers_.data(), scratch_);
        to = clock.mark();
    }
    device_.synchronize();
    return clock.elapsed_ms(from, to) * 1e3;
}

std::optional<TuningBench::Result> TuningBench::fastest(const TuningJob& job,
                                                        const std::function<double()>& left_ms) {
    std::vector<Racer> racers = compile(job, left_ms);
    if (racers.size() < 2) {
        return std::nullopt;
    }
    struct Release {
        TuningBench& bench;
        ~Release() { bench.release(); }
    } release{*this};
    try {
        allocate(job);
    } catch (const Error& e) {
        if (e.code() != ErrorCode::OutOfMemory) {
            throw;
        }
        log(LogLevel::Verbose, "cuda: ", job.what, " is not timed: ", e.what());
        return std::nullopt;
    }
    for (Racer& r : racers) {
        run(job, r); // warm
    }
    int rounds = most_rounds;
    for (int round = 0; round < rounds; ++round) {
        if (left_ms() <= 0) {
            break;
        }
        for (Racer& r : racers) {
            r.us.push_back(run(job, r));
            rounds = r.us.back() > long_us ? least_rounds : rounds;
        }
    }
    if (racers[0].us.empty()) {
        return std::nullopt;
    }
    Result result;
    for (const Racer& r : racers) {
        double us = median(r.us);
        log(LogLevel::Verbose, "cuda: ", job.what, ": tactic ", job.candidates[r.candidate].tactic,
            " is expected to take ", job.candidates[r.candidate].cost_us, " us and takes ", us,
            " us");
        result.times.push_back({r.candidate, us});
        if (us < result.times[result.best].us * margin) {
            result.best = result.times.size() - 1;
        }
    }
    return result;
}

} // namespace ingot::cuda
