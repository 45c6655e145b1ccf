// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/jit/program_cache.h"

#include "backends/cuda/driver/cubin.h"
#include "backends/cuda/driver/exit_gate.h"
#include "backends/cuda/driver/nvrtc.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "base/priority.h"
#include "base/trace.h"

#include <algorithm>
#include <chrono>
#include <system_error>

namespace ingot::cuda {

/// How often a wait for the compiler looks for a stop request.
static constexpr std::chrono::milliseconds glance{100};

void PendingKernel::wait(std::unique_lock<std::mutex>& lock) {
    while (!ready_.wait_for(lock, glance, [this] { return done_; })) {
        check_interrupt(); // the compiler itself cannot be stopped
    }
    if (lacked_memory_ && reported_) { // there may be memory by now
        lock.unlock();
        cache_->compile(*this);
        lock.lock();
    }
    if (problem_ != nullptr) {
        reported_ = true;
        std::rethrow_exception(problem_);
    }
}

const Function& PendingKernel::function() {
    std::unique_lock lock(mutex_);
    wait(lock);
    if (function_ == nullptr) {
        TraceSpan span("load kernel", entry_);
        function_ = gpu_->load(binary_, entry_, shared_);
        binary_ = {};
        loaded_.store(true, std::memory_order_release);
    }
    return *function_;
}

void PendingKernel::wait() {
    std::unique_lock lock(mutex_);
    wait(lock);
}

std::optional<plan::KernelResources> PendingKernel::resources() {
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [this] { return done_; });
    return resources_;
}

bool PendingKernel::wait_ms(double ms) {
    std::unique_lock lock(mutex_);
    return ready_.wait_for(lock, std::chrono::duration<double, std::milli>(ms),
                           [this] { return done_; });
}

ProgramCache::ProgramCache(Gpu& gpu, std::shared_ptr<const KernelBinaries> ahead,
                           std::shared_ptr<plan::RuntimeCache> disk, int threads, bool gives_way)
    : gpu_(gpu), ahead_(std::move(ahead)), disk_(std::move(disk)),
      most_threads_(std::max(threads, 1)), gives_way_(gives_way) {}

ProgramCache::~ProgramCache() {
    {
        std::scoped_lock lock(mutex_);
        stop_ = true;
        queue_.clear();
        later_.clear();
    }
    wake_.notify_all();
    wake_later_.notify_all();
    for (std::thread& t : threads_) {
        t.join();
    }
    for (std::thread* t : {&later_thread_, &starter_}) {
        if (t->joinable()) {
            t->join();
        }
    }
}

void ProgramCache::start_compiler() {
    std::scoped_lock lock(mutex_);
    bool nothing_kept =
        (ahead_ == nullptr || ahead_->empty()) && (disk_ == nullptr || disk_->is_empty());
    if (!nothing_kept || statistics_.programs > 0 || starter_.joinable()) {
        return;
    }
    auto start = [this] {
        try {
            ExitGate inside;
            if (inside) {
                TraceSpan span("start compiler");
                gpu_.start_compiler();
            }
        } catch (const std::exception& e) { // the first kernel says it too
            log(LogLevel::Verbose, "cuda: the compiler does not start: ", e.what());
        }
    };
    try {
        starter_ = std::thread(start);
    } catch (const std::system_error&) {
        // No thread is left: it starts with the first kernel.
    }
}

std::shared_ptr<PendingKernel> ProgramCache::request(const kernels::Program& program,
                                                     const std::string& entry, int64_t shared) {
    std::string key = str(entry, '\n', kernels::short_text(program));
    {
        std::scoped_lock lock(mutex_);
        if (auto it = generated_.find(key); it != generated_.end()) {
            return request_again(it->second, shared, When::Now);
        }
    }
    std::shared_ptr<PendingKernel> kernel =
        request(kernels::full_text(program), entry, shared, When::Now);
    std::scoped_lock lock(mutex_);
    generated_.emplace(std::move(key), kernel);
    return kernel;
}

/// With the mutex locked.
std::shared_ptr<PendingKernel>
ProgramCache::request_again(const std::shared_ptr<PendingKernel>& kernel, int64_t shared,
                            When when) {
    {
        std::scoped_lock inner(kernel->mutex_);
        if (shared > kernel->shared_ && kernel->function_ != nullptr) {
            gpu_.raise_shared(*kernel->function_, shared);
        }
        kernel->shared_ = std::max(kernel->shared_, shared);
    }
    if (kernel->later_ && when == When::Now) { // now a run waits for it
        put_in_queue(kernel);
        kernel->later_ = false;
        later_.erase(std::find(later_.begin(), later_.end(), kernel));
    }
    kernel->requests_++;
    return kernel;
}

std::shared_ptr<PendingKernel> ProgramCache::request(std::string text, const std::string& entry,
                                                     int64_t shared, When when) {
    std::scoped_lock lock(mutex_);
    auto it = kernels_.try_emplace(entry + '\n' + text).first;
    std::shared_ptr<PendingKernel>& slot = it->second;
    if (slot != nullptr) {
        return request_again(slot, shared, when);
    }
    try {
        slot = std::make_shared<PendingKernel>();
        slot->gpu_ = &gpu_;
        slot->cache_ = this;
        slot->text_ = std::move(text);
        slot->entry_ = entry;
        slot->shared_ = shared;
        when == When::Now ? put_in_queue(slot) : put_in_later(slot);
    } catch (...) {
        kernels_.erase(it); // otherwise it is never compiled
        throw;
    }
    statistics_.programs++;
    return slot;
}

std::shared_ptr<PendingKernel> ProgramCache::request_variant(std::string text,
                                                             const std::string& entry,
                                                             int64_t shared, When when) {
    {
        std::scoped_lock lock(mutex_);
        if (kernels_.count(entry + '\n' + text) == 0 && variants_++ >= most_variants) {
            return nullptr;
        }
    }
    return request(std::move(text), entry, shared, when);
}

void ProgramCache::put_in_queue(std::shared_ptr<PendingKernel> k) {
    auto at = std::upper_bound(queue_.begin(), queue_.end(), k, [](const auto& a, const auto& b) {
        return a->text_.size() > b->text_.size();
    });
    at = queue_.insert(at, std::move(k));
    try {
        if (idle_ == 0 && static_cast<int>(threads_.size()) < most_threads_) {
            threads_.emplace_back([this] { work(); });
        } else {
            wake_.notify_one();
        }
    } catch (...) {
        queue_.erase(at); // otherwise it is never compiled
        throw;
    }
}

void ProgramCache::put_in_later(const std::shared_ptr<PendingKernel>& k) {
    if (!later_thread_.joinable()) {
        later_thread_ = std::thread([this] { work_later(); });
    }
    later_.push_back(k);
    k->later_ = true;
    wake_later_.notify_one();
}

void ProgramCache::work() {
    if (gives_way_) {
        lower_this_threads_priority();
    }
    constexpr std::chrono::milliseconds rest{300};
    auto wanted = [this] { return stop_ || !queue_.empty(); };
    std::unique_lock lock(mutex_);
    while (true) {
        idle_++;
        if (!wake_.wait_for(lock, rest, wanted)) {
            if (disk_ != nullptr) { // at a pause: a killed process keeps its kernels
                lock.unlock();
                disk_->flush();
                lock.lock();
            }
            wake_.wait(lock, wanted);
        }
        idle_--;
        if (stop_) {
            return;
        }
        std::shared_ptr<PendingKernel> k = std::move(queue_.front());
        queue_.pop_front();
        compiling_++;
        lock.unlock();
        compile(*k);
        lock.lock();
        count(*k);
        finish_one();
    }
}

void ProgramCache::work_later() {
    lower_this_threads_priority();
    std::unique_lock lock(mutex_);
    while (true) {
        wake_later_.wait(lock, [this] { return stop_ || !later_.empty(); });
        if (stop_) {
            return;
        }
        std::shared_ptr<PendingKernel> k = std::move(later_.front());
        later_.pop_front();
        k->later_ = false;
        compiling_++;
        lock.unlock();
        compile(*k);
        try {
            ExitGate inside;
            if (inside) {
                k->function();
                arrivals_.fetch_add(1, std::memory_order_acq_rel);
            }
        } catch (const std::exception& e) {
            log(LogLevel::Verbose, "cuda: a kernel that no run waits for: ", e.what());
        }
        lock.lock();
        count(*k);
        finish_one();
    }
}

void ProgramCache::finish_one() {
    if (--compiling_ == 0) {
        quiet_.notify_all();
    }
}

void ProgramCache::enter() {
    std::scoped_lock lock(mutex_);
    users_++;
}

void ProgramCache::leave() noexcept {
    std::unique_lock lock(mutex_);
    if (--users_ > 0) {
        return;
    }
    forget(queue_);
    forget(later_);
    quiet_.wait(lock, [this] { return compiling_ == 0; });
}

void ProgramCache::forget(std::deque<std::shared_ptr<PendingKernel>>& queue) {
    for (const auto& k : queue) {
        forget(*k);
    }
    queue.clear();
}

void ProgramCache::forget(const PendingKernel& k) {
    auto it = std::find_if(kernels_.begin(), kernels_.end(),
                           [&k](const auto& known) { return known.second.get() == &k; });
    if (it != kernels_.end()) {
        kernels_.erase(it);
    }
    std::erase_if(generated_, [&k](const auto& known) { return known.second.get() == &k; });
}

void ProgramCache::count(const PendingKernel& k) {
    if (k.seconds_ > 0) {
        statistics_.compiled++;
        statistics_.compile_seconds += k.seconds_;
    }
}

void ProgramCache::compile(PendingKernel& k) {
    std::string binary;
    std::exception_ptr problem;
    bool lacked_memory = false;
    double seconds = 0;
    try {
        ExitGate inside;
        require(static_cast<bool>(inside), ErrorCode::Interrupted,
                "a kernel is not compiled any more: the process is ending");
        plan::CacheKey key = plan::cache_key(k.text_, gpu_.compiler());
        std::optional<std::string> kept;
        if (ahead_ != nullptr) {
            auto it = ahead_->find(to_text(key.hash));
            kept = it == ahead_->end() ? std::nullopt : std::optional(it->second);
        }
        if (!kept && disk_ != nullptr) {
            kept = disk_->find(key);
        }
        std::unique_ptr<KeyLock> claim;
        if (!kept && disk_ != nullptr) { // another process may be compiling it
            claim = claim_on_disk(key);
            kept = disk_->find(key);
        }
        if (kept) {
            binary = std::move(*kept);
        } else {
            TraceSpan span("compile", k.entry_);
            auto start = std::chrono::steady_clock::now();
            binary = gpu_.compile(k.text_);
            std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
            seconds = took.count();
            if (disk_ != nullptr) {
                disk_->add(key, binary, nvrtc_version());
            }
        }
    } catch (const std::bad_alloc&) {
        problem = std::current_exception();
        lacked_memory = true;
    } catch (...) {
        problem = std::current_exception();
    }
    std::optional<plan::KernelResources> resources =
        cubin_resources(binary, k.entry_, gpu_.arch().cc);
    std::scoped_lock lock(k.mutex_);
    k.resources_ = resources;
    k.binary_ = std::move(binary);
    k.problem_ = problem;
    k.lacked_memory_ = lacked_memory;
    k.reported_ = false;
    k.seconds_ = seconds;
    k.done_ = true;
    k.ready_.notify_all();
}

/// Waits while another process compiles this key, but not longer than any compilation takes: that
/// process may have been stopped.
std::unique_ptr<KeyLock> ProgramCache::claim_on_disk(const plan::CacheKey& key) {
    static constexpr std::chrono::seconds longest{60};
    auto start = std::chrono::steady_clock::now();
    return disk_->claim(key, [this, start] {
        std::scoped_lock lock(mutex_);
        return stop_ || std::chrono::steady_clock::now() - start > longest;
    });
}

ProgramCache::Statistics ProgramCache::statistics() const {
    std::scoped_lock lock(mutex_);
    return statistics_;
}

KernelBinaries ProgramCache::binaries() const {
    std::vector<std::shared_ptr<PendingKernel>> all;
    {
        std::scoped_lock lock(mutex_);
        for (const auto& [key, k] : kernels_) {
            all.push_back(k);
        }
    }
    KernelBinaries out;
    for (const auto& k : all) {
        std::unique_lock lock(k->mutex_);
        k->wait(lock);
        out.emplace(to_text(plan::cache_key(k->text_, gpu_.compiler()).hash), k->binary_);
    }
    return out;
}

std::vector<KernelUse> ProgramCache::programs() const {
    std::scoped_lock lock(mutex_);
    std::vector<KernelUse> all;
    for (const auto& [key, k] : kernels_) {
        all.push_back({k->entry_, k->text_, k->requests_});
    }
    return all;
}

} // namespace ingot::cuda
