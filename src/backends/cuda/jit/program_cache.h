// SPDX-License-Identifier: Apache-2.0
// Programs of one GPU: equal texts are compiled once, on a pool of threads, longest first, and kept
// in the runtime cache on disk. A thread of low priority compiles programs that no run waits for.
#pragma once

#include "backends/cuda/driver/gpu.h"
#include "cache/runtime_cache.h"
#include "plan/backend.h"
#include "plan/plan_report.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <unordered_map>

namespace ingot::cuda {

class ProgramCache;

/// A requested kernel, possibly still compiling. After a lack of memory, the waiting caller gets
/// the error, and the next one compiles again. Must not outlive its cache.
class PendingKernel {
public:
    /// Waits for the compiler, then loads the kernel. Errors: those of compiling or loading.
    const Function& function();
    /// Waits for the compiler. Errors: those of compiling.
    void wait();
    /// Whether function() would return at once.
    bool loaded() const { return loaded_.load(std::memory_order_acquire); }
    /// Waits for the compiler for this long; true when it is done.
    bool wait_ms(double ms);
    /// The compiler's time in seconds; 0 for a binary from the cache.
    double compile_seconds() const { return seconds_; }
    /// Waits for the compiler; nullopt where it failed, or made nothing that can be read.
    std::optional<plan::KernelResources> resources();
    const std::string& text() const { return text_; }
    const std::string& entry() const { return entry_; }
    /// The number of requests: launches of all plans.
    int requests() const { return requests_; }

private:
    friend class ProgramCache;
    void wait(std::unique_lock<std::mutex>& lock);
    Gpu* gpu_ = nullptr;
    ProgramCache* cache_ = nullptr;
    std::string text_;
    std::string entry_;
    int64_t shared_ = 0;
    int requests_ = 1;
    double seconds_ = 0;
    std::mutex mutex_;
    std::condition_variable ready_;
    bool done_ = false;
    bool later_ = false; // in the low-priority queue
    std::atomic<bool> loaded_{false};
    std::string binary_;
    std::optional<plan::KernelResources> resources_;
    std::exception_ptr problem_;
    bool lacked_memory_ = false;
    bool reported_ = false;
    std::shared_ptr<const Function> function_;
};

/// Thread safe.
class ProgramCache {
    friend class PendingKernel;

public:
    /// `ahead` (the engine's compiled kernels) and `disk` may be null. `gives_way`: its threads run
    /// when nothing else needs the CPU.
    ProgramCache(Gpu& gpu, std::shared_ptr<const KernelBinaries> ahead,
                 std::shared_ptr<plan::RuntimeCache> disk, int threads, bool gives_way = false);
    ~ProgramCache();
    ProgramCache(const ProgramCache&) = delete;
    ProgramCache& operator=(const ProgramCache&) = delete;

    /// Later: no run waits for it; a low-priority thread compiles and loads it.
    enum class When { Now, Later };
    /// Now, without the program's whole text where it was requested before.
    std::shared_ptr<PendingKernel> request(const kernels::Program& program,
                                           const std::string& entry, int64_t shared);
    std::shared_ptr<PendingKernel> request(std::string text, const std::string& entry,
                                           int64_t shared, When when);
    /// A kernel for specific shapes; null above most_variants of them, because modules stay loaded.
    std::shared_ptr<PendingKernel> request_variant(std::string text, const std::string& entry,
                                                   int64_t shared, When when);
    static constexpr int most_variants = 256;
    /// Starts the compiler on a thread of its own where the first kernel is sure to need it:
    /// nothing was compiled before, and nothing is kept. NVRTC takes 0.1 to 0.2 s to start.
    void start_compiler();
    /// The number of Later kernels that are loaded.
    uint64_t arrivals() const { return arrivals_.load(std::memory_order_acquire); }
    struct Statistics {
        int programs = 0;
        int compiled = 0;
        double compile_seconds = 0; // summed over threads
    };
    Statistics statistics() const;
    /// Waits for all requested programs. Errors: the first one's.
    KernelBinaries binaries() const;
    /// Registers a user of the cache. When the last one leaves, queued programs are dropped, and
    /// leave() waits for those being compiled: then the process may end.
    void enter();
    void leave() noexcept;
    /// Every requested program.
    std::vector<KernelUse> programs() const;

private:
    /// Texts begin with the same device files, so that their order tells little apart.
    struct ByLength {
        bool operator()(const std::string& a, const std::string& b) const {
            return a.size() != b.size() ? a.size() < b.size() : a < b;
        }
    };

    void work();
    void work_later();
    void compile(PendingKernel& k);
    std::unique_ptr<KeyLock> claim_on_disk(const plan::CacheKey& key);
    void count(const PendingKernel& k);
    void finish_one();
    void put_in_queue(std::shared_ptr<PendingKernel> k);
    void put_in_later(const std::shared_ptr<PendingKernel>& k);
    std::shared_ptr<PendingKernel> request_again(const std::shared_ptr<PendingKernel>& kernel,
                                                 int64_t shared, When when);
    void forget(std::deque<std::shared_ptr<PendingKernel>>& queue);
    void forget(const PendingKernel& k);

    Gpu& gpu_;
    std::shared_ptr<const KernelBinaries> ahead_;
    std::shared_ptr<plan::RuntimeCache> disk_;
    mutable std::mutex mutex_;
    std::condition_variable wake_;
    std::map<std::string, std::shared_ptr<PendingKernel>, ByLength> kernels_; // by entry and text
    /// The same by entry, names of device files and generated text.
    std::unordered_map<std::string, std::shared_ptr<PendingKernel>> generated_;
    std::deque<std::shared_ptr<PendingKernel>> queue_; // longest text first
    std::condition_variable wake_later_;
    std::deque<std::shared_ptr<PendingKernel>> later_;
    std::vector<std::thread> threads_;
    std::thread later_thread_;
    std::thread starter_;
    std::atomic<uint64_t> arrivals_{0};
    int most_threads_;
    bool gives_way_;
    int idle_ = 0;
    int compiling_ = 0;
    int users_ = 0;
    std::condition_variable quiet_; // nothing is compiling
    bool stop_ = false;
    int variants_ = 0;
    Statistics statistics_;
};

} // namespace ingot::cuda
