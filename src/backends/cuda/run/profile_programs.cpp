// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/run/profile_programs.h"

#include "backends/cuda/absent_gpu.h"
#include "backends/cuda/run/device.h"
#include "base/error.h"
#include "base/log.h"
#include "ops/evaluator.h"

#include <algorithm>
#include <chrono>
#include <iterator>

namespace ingot::cuda {

using kernels::Emitted;
using kernels::Family;
using kernels::Problem;
using kernels::Tactic;

namespace {

/// Planning a node takes some 50 us: this bounds the load time of an engine.
constexpr size_t most_nodes = 8000;
constexpr size_t most_samples = 768;
constexpr size_t least_samples = 8;
/// Samples are planned in batches, until this many samples in a row found nothing new.
constexpr size_t batch = 32;
constexpr size_t quiet = 8 * batch;

std::string key_of(const std::string& text, const std::string& entry) {
    HashStream s(false);
    s.add(std::as_bytes(std::span(entry)));
    s.add(std::as_bytes(std::span(text)));
    return to_text(s.xxh3());
}

std::string key_of(const kernels::Program& program, const std::string& entry) {
    return key_of(kernels::short_text(program), entry);
}

class Random {
public:
    uint64_t operator()() {
        state_ ^= state_ << 13;
        state_ ^= state_ >> 7;
        state_ ^= state_ << 17;
        return state_ >> 11;
    }

private:
    uint64_t state_ = 0x9e3779b97f4a7c15ULL;
};

/// A size in the range, often a special one for kernels.
int64_t sample(const Interval& range, Random& random) {
    auto span = static_cast<uint64_t>(range.high - range.low) + 1;
    uint64_t kind = random() % 10;
    int64_t size = range.low + static_cast<int64_t>(random() % span);
    if (kind >= 8) {
        return kind == 8 ? range.low : range.high;
    }
    if (kind < 7) { // a multiple of 1, 2, 4, ... 64
        int64_t unit = int64_t{1} << kind;
        int64_t down = size / unit * unit;
        return down >= range.low ? down : down + unit <= range.high ? down + unit : size;
    }
    // Small sizes are few and differ much.
    uint64_t small = std::min<uint64_t>(span, 64);
    return range.low + static_cast<int64_t>(random() % small);
}

} // namespace

std::vector<std::vector<Shape>> sample_shapes(const Graph& g, const std::vector<Profile>& profiles,
                                              size_t count) {
    Bounds bounds = symbol_bounds(g, profiles);
    std::set<std::string, std::less<>> names;
    for (Value v : g.inputs()) {
        for (const Dim& d : g.type(v).dims) {
            d.collect_symbols(names);
        }
    }
    bool varies = false;
    for (const std::string& name : names) {
        auto it = bounds.find(name);
        if (it == bounds.end() || it->second.high == INT64_MAX ||
            it->second.low > it->second.high) {
            return {};
        }
        varies = varies || it->second.low != it->second.high;
    }
    std::vector<std::vector<Shape>> all;
    if (!varies) {
        return all;
    }
    auto& expected = all.emplace_back();
    for (size_t i = 0; i < g.inputs().size(); ++i) {
        expected.push_back(default_shape(g, i, profiles));
    }
    Random random;
    while (all.size() < count) {
        Symbols symbols;
        for (const std::string& name : names) {
            const Interval& range = bounds.find(name)->second;
            symbols[name] = all.size() == 1   ? range.low
                            : all.size() == 2 ? range.high
                                              : sample(range, random);
        }
        auto& shapes = all.emplace_back();
        for (Value v : g.inputs()) {
            shapes.push_back(eval(g.type(v).dims, symbols));
        }
    }
    return all;
}

/// Plans for the samples and requests their programs. Skips contradictory shapes.
static void plan_samples(const std::shared_ptr<CudaState>& state, const plan::Program& program,
                         std::span<const std::vector<Shape>> samples) noexcept {
    const Graph& g = *program.graph;
    try {
        CudaDevice device(state, std::make_unique<NoStream>()); // the plans are not run
        for (const std::vector<Shape>& shapes : samples) {
            try {
                Symbols symbols;
                for (size_t i = 0; i < shapes.size(); ++i) {
                    bind_symbols(g.type(g.inputs()[i]).dims, shapes[i], symbols, "a sample");
                }
                plan::plan_segment(program, device, 0, std::move(symbols), nullptr);
            } catch (const Error& e) {
                log(LogLevel::Verbose, "cuda: a sample of the profile is left out: ", e.what());
            }
        }
    } catch (const std::exception& e) {
        log(LogLevel::Verbose, "cuda: samples of the profile are left out: ", e.what());
    }
}

void ProfilePrograms::find(const std::shared_ptr<CudaState>& state,
                           const std::shared_ptr<const plan::Program>& program) {
    const Graph& g = *program->graph;
    size_t count =
        std::clamp(most_nodes / std::max<size_t>(g.nodes().size(), 1), least_samples, most_samples);
    std::vector<std::vector<Shape>> samples = sample_shapes(g, state->compile.profiles, count);
    if (samples.empty()) {
        return;
    }
    auto start = std::chrono::steady_clock::now();
    auto found = std::make_shared<ProfilePrograms>();
    state->profile_programs = found;
    size_t done = 0;
    size_t news = 0; // samples planned when the last new program was found
    std::set<std::vector<Shape>> planned;
    while (done < samples.size() && done - news < quiet) {
        size_t before = found->count();
        size_t part = std::min(batch, samples.size() - done);
        std::vector<std::vector<Shape>> now; // equal shapes need the same programs
        std::copy_if(samples.begin() + static_cast<int64_t>(done),
                     samples.begin() + static_cast<int64_t>(done + part), std::back_inserter(now),
                     [&planned](const auto& s) { return planned.insert(s).second; });
        program->pool().parallel_for(
            static_cast<int64_t>(now.size()), 1, [&](int64_t b, int64_t e) {
                plan_samples(
                    state, *program,
                    std::span(now).subspan(static_cast<size_t>(b), static_cast<size_t>(e - b)));
            });
        done += part;
        news = found->count() == before ? news : done;
    }
    found->open_ = false;
    std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    log(LogLevel::Info, "cuda: ", done, " shapes of the profiles need ", found->count(),
        " programs, found in ", took.count(), " ms");
}

void ProfilePrograms::note(const kernels::Program& program, const std::string& entry,
                           std::shared_ptr<PendingKernel> kernel) {
    note(kernels::short_text(program), entry, std::move(kernel));
}

void ProfilePrograms::note(const std::string& text, const std::string& entry,
                           std::shared_ptr<PendingKernel> kernel) {
    std::scoped_lock lock(mutex_);
    if (known_.insert(key_of(text, entry)).second) {
        kernels_.push_back(std::move(kernel));
    }
}

bool ProfilePrograms::has(const Emitted& e) const {
    return std::all_of(e.launches.begin(), e.launches.end(), [this](const kernels::Launch& l) {
        return known_.count(key_of(l.program, l.entry)) != 0;
    });
}

ProfilePrograms::Choice ProfilePrograms::choose(const Family& family, const Problem& problem,
                                                const std::vector<Tactic>& tactics) const {
    for (size_t i = 0; i < tactics.size(); ++i) {
        for (int v = 0; v < family.variants; ++v) {
            Tactic t = tactics[i];
            t.variant = v;
            if (has(family.emit(problem, t))) {
                return {i, v};
            }
        }
    }
    return {};
}

void ProfilePrograms::wait() const {
    constexpr double turn_ms = 1000;
    for (const auto& k : kernels_) {
        while (!k->wait_ms(turn_ms)) {
        }
    }
}

} // namespace ingot::cuda
