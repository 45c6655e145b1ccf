// SPDX-License-Identifier: Apache-2.0
// Device memory within a budget, and the constants in it: those that stay, and those that are
// streamed from page-locked memory of the host.
#pragma once

#include "backends/cuda/driver/gpu.h"
#include "backends/cuda/run/weight_comparison.h"
#include "backends/cuda/run/weight_copies.h"
#include "backends/cuda/run/weight_slabs.h"
#include "ir/graph.h"
#include "plan/compile_options.h"

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace ingot::cuda {

/// Device memory within a budget. Thread safe.
class Memory {
public:
    /// `limit` 0: no budget.
    Memory(Gpu& gpu, int64_t limit, std::shared_ptr<MemorySource> source = nullptr)
        : gpu_(gpu), limit_(limit), source_(std::move(source)) {}
    /// From `source`, or, when that is null, from the memory's own. Errors: OutOfMemory with what
    /// was needed and what is left.
    std::byte* allocate(int64_t bytes, std::shared_ptr<MemorySource> source = nullptr);
    void release(std::byte* memory) noexcept;
    /// The smaller one of the budget's and the device's; -1 when neither is known.
    int64_t available() const;
    int64_t held() const;
    /// Whether blocks are an application's: they may be used behind the work that its default
    /// stream holds.
    bool is_lent() const { return source_ != nullptr; }

private:
    Gpu& gpu_;
    int64_t limit_;
    struct Block {
        int64_t bytes;
        std::shared_ptr<MemorySource> source; // null: the GPU
    };
    std::shared_ptr<MemorySource> source_; // null: the GPU's own
    mutable std::mutex mutex_;
    std::map<std::byte*, Block> blocks_;
    int64_t held_ = 0;
};

/// Constants in device memory. Thread safe.
class Weights {
public:
    /// `shared` null: slabs are this object's own.
    Weights(Gpu& gpu, Memory& memory, std::shared_ptr<SharedSlabs> shared = nullptr)
        : gpu_(gpu), memory_(memory), shared_(std::move(shared)) {}
    ~Weights();
    Weights(const Weights&) = delete;
    Weights& operator=(const Weights&) = delete;
    /// Brings the constants that are not there yet, or finds out whether shared slabs have them.
    /// Either is done or goes on when it returns. Errors: OutOfMemory, after which none of them is
    /// there.
    void start(const std::vector<plan::StoredConstant>& constants);
    /// The address of a constant, uploaded when it is first asked for. Waits for one on its way.
    /// Errors: OutOfMemory, Device, Interrupted.
    std::byte* find(const plan::StoredConstant& c, Stream& stream);
    bool has(const plan::StoredConstant& c) const;
    size_t bytes() const;

private:
    using Key = plan::StoredConstant; // keeps the host address from being used again
    struct Entry {
        std::byte* address = nullptr;                           // null while it is compared
        std::shared_ptr<WeightCopies> copies;                   // that bring it; null: it is there
        std::shared_ptr<WeightComparison> comparison = nullptr; // null: it is none of a shared slab
    };
    struct Placement;
    void place(std::span<const Key> constants, const std::vector<const WeightSlab*>& tried);
    void place_slab(std::span<const Key> constants, const std::vector<const WeightSlab*>& tried,
                    Placement& out);
    static size_t count_in_slab(std::span<const Key> constants);
    std::byte* reserve_late(size_t bytes);
    std::byte* upload(const Key& c, Stream& stream);
    void settle(const std::shared_ptr<WeightComparison>& comparison);
    void forget(std::span<const Key> keys);
    template <class Work>
    void wait_for(const std::shared_ptr<Work>& work, std::shared_ptr<Work> Entry::*of_entry);

    Gpu& gpu_;
    Memory& memory_;
    std::shared_ptr<SharedSlabs> shared_;
    mutable std::mutex mutex_;
    std::map<Key, Entry> entries_;
    std::vector<std::shared_ptr<WeightSlab>> slabs_;
    size_t late_left_ = 0; // in a slab for constants that come one by one
    std::byte* late_next_ = nullptr;
    size_t bytes_ = 0;
};

/// Constants beyond the budget, in page-locked memory of the host. Thread safe.
class StreamedWeights {
public:
    /// A budget of -1: every constant is kept on the device.
    StreamedWeights(Gpu& gpu, int64_t budget) : gpu_(gpu), budget_(budget) {}
    /// Sets a part of the budget aside for constants on their way while a step still reads others:
    /// as much as the largest of the graph's that takes no more than an eighth. Nothing where all
    /// fit. To be called before anything is kept.
    void make_room(const Graph& g);
    int64_t room() const { return room_; }
    ~StreamedWeights();
    StreamedWeights(const StreamedWeights&) = delete;
    StreamedWeights& operator=(const StreamedWeights&) = delete;
    /// Whether a constant has, or now gets, a part of the budget.
    bool keeps(const plan::StoredConstant& c);
    /// Where a constant that is not kept lies.
    const std::byte* find(const plan::StoredConstant& c);

private:
    struct Entry {
        bool kept = true;
        std::byte* pinned = nullptr;
    };
    Entry& entry(const plan::StoredConstant& c);
    Gpu& gpu_;
    int64_t budget_;
    int64_t room_ = 0;
    std::mutex mutex_;
    std::map<plan::StoredConstant, Entry> entries_; // keeps addresses from being used again
    int64_t kept_bytes_ = 0;
};

/// Device memory with the weights in it, for all executables of one lowered graph.
struct DeviceWeights {
    /// `shared` null: nothing is shared. Nor are weights with memory of an application or a limit
    /// of its own, or those that plugins, which might write to them, read.
    DeviceWeights(Gpu& gpu, const CompileOptions& options,
                  std::shared_ptr<SharedSlabs> shared = nullptr);

    Memory memory;
    Weights weights;
    StreamedWeights streamed;
};

} // namespace ingot::cuda
