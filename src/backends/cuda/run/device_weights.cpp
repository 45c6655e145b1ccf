// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/run/device_weights.h"

#include "backends/cuda/options.h"
#include "base/error.h"
#include "base/trace.h"
#include "ir/rewrite.h"
#include "ops/primitives.h"
#include "plan/device_parts.h"
#include "plan/memory_source.h"

#include <algorithm>
#include <set>
#include <span>

namespace ingot::cuda {

namespace {

constexpr size_t most_slab_bytes = 256 << 20; // the driver rounds each slab up to 2 MiB
constexpr size_t late_slab_bytes = 64 << 10;  // for constants that come one by one
constexpr size_t weight_alignment = 256;

bool may_share(const CompileOptions& o) {
    return o.memory == nullptr && o.plugins == nullptr && o.of<CudaOptions>().memory_limit == 0;
}

size_t aligned(size_t bytes) {
    return (std::max<size_t>(bytes, 1) + weight_alignment - 1) / weight_alignment *
           weight_alignment;
}

} // namespace

std::byte* Memory::allocate(int64_t bytes, std::shared_ptr<MemorySource> source) {
    std::scoped_lock lock(mutex_);
    if (source == nullptr) {
        source = source_;
    }
    require(limit_ <= 0 || bytes <= limit_ - held_, ErrorCode::OutOfMemory, bytes,
            " bytes of device memory are needed, and of the limit of ", limit_, " only ",
            limit_ - held_, " are left");
    std::byte* p = source == nullptr ? gpu_.allocate(bytes) : source->allocate(bytes);
    require(p != nullptr, ErrorCode::OutOfMemory, bytes,
            " bytes of device memory are needed, which the allocator does not give");
    try {
        blocks_[p] = {bytes, source};
    } catch (...) {
        source == nullptr ? gpu_.release(p) : source->release(p);
        throw;
    }
    held_ += bytes;
    return p;
}

void Memory::release(std::byte* memory) noexcept {
    std::scoped_lock lock(mutex_);
    std::shared_ptr<MemorySource> source;
    if (auto it = blocks_.find(memory); it != blocks_.end()) {
        held_ -= it->second.bytes;
        source = std::move(it->second.source);
        blocks_.erase(it);
    }
    source == nullptr ? gpu_.release(memory) : source->release(memory);
}

int64_t Memory::available() const {
    std::scoped_lock lock(mutex_);
    int64_t free = source_ == nullptr ? gpu_.free_bytes() : -1;
    int64_t left = limit_ - held_;
    return limit_ <= 0 ? free : free < 0 ? left : std::min(left, free);
}

int64_t Memory::held() const {
    std::scoped_lock lock(mutex_);
    return held_;
}

Weights::~Weights() {
    entries_.clear(); // ends copies to the slabs
}

/// As many of the first constants as a slab takes.
size_t Weights::count_in_slab(std::span<const Key> constants) {
    size_t all = aligned(constants.front().size());
    size_t count = 1;
    for (; count < constants.size(); ++count) {
        all += aligned(constants[count].size());
        if (all > most_slab_bytes) {
            break;
        }
    }
    return count;
}

/// The work that fills slabs or compares them.
struct Weights::Placement {
    std::vector<WeightCopies::Copy> copies;
    std::vector<std::shared_ptr<WeightSlab>> filled; // by these copies
    std::vector<WeightComparison::Pair> pairs;
};

/// A slab with all of these constants: a new one, or one to be compared.
void Weights::place_slab(std::span<const Key> constants,
                         const std::vector<const WeightSlab*>& tried, Placement& out) {
    SharedSlabs::Layout layout;
    std::vector<WeightComparison::Placed> placed;
    size_t bytes = 0;
    for (const Key& key : constants) {
        layout.push_back(key.size());
        placed.push_back({bytes, key});
        bytes += aligned(key.size());
    }
    auto make = [&] {
        return std::make_shared<WeightSlab>(gpu_, shared_ == nullptr ? &memory_ : nullptr, bytes);
    };
    SharedSlabs::Taken taken =
        shared_ == nullptr ? SharedSlabs::Taken{make(), true} : shared_->take(layout, tried, make);
    if (!taken.is_new) {
        out.pairs.push_back({std::move(taken.slab), std::move(placed)});
        return;
    }
    out.filled.push_back(taken.slab);
    slabs_.push_back(taken.slab);
    for (const WeightComparison::Placed& p : placed) {
        std::byte* address = taken.slab->data() + p.at;
        entries_.at(p.constant).address = address;
        out.copies.push_back({address, p.constant});
    }
}

/// Begins to copy or compare constants that have entries. On an error they may be forgotten.
void Weights::place(std::span<const Key> constants, const std::vector<const WeightSlab*>& tried) {
    Placement placement;
    const size_t slabs_before = slabs_.size();
    try {
        for (std::span<const Key> rest = constants; !rest.empty();) {
            size_t count = count_in_slab(rest);
            place_slab(rest.first(count), tried, placement);
            rest = rest.subspan(count);
        }
        // Others that wait for these slabs get them before this thread waits for slabs of others.
        if (!placement.copies.empty()) {
            std::vector<WeightCopies::Copy> copies = placement.copies;
            auto ended = [filled = placement.filled](bool all) {
                for (const auto& slab : filled) {
                    slab->settle(all);
                }
            };
            auto started = std::make_shared<WeightCopies>(gpu_, std::move(copies),
                                                          memory_.is_lent(), std::move(ended));
            for (const WeightCopies::Copy& c : placement.copies) {
                entries_.at(c.constant).copies = started;
            }
        }
        if (!placement.pairs.empty()) {
            auto started =
                std::make_shared<WeightComparison>(gpu_, std::move(placement.pairs), tried);
            for (const WeightComparison::Pair& pair : started->pairs()) {
                for (const WeightComparison::Placed& p : pair.constants) {
                    entries_.at(p.constant).comparison = started;
                }
            }
        }
    } catch (...) {
        forget(constants); // which ends their copies
        for (; slabs_.size() > slabs_before; slabs_.pop_back()) {
            slabs_.back()->settle(false);
        }
        throw;
    }
}

void Weights::start(const std::vector<plan::StoredConstant>& constants) {
    std::scoped_lock lock(mutex_);
    std::vector<Key> fresh;
    try {
        for (const Key& key : constants) {
            if (entries_.count(key) == 0) {
                fresh.push_back(key);
                entries_.emplace(key, Entry{});
                bytes_ += key.size();
            }
        }
    } catch (...) {
        forget(fresh);
        throw;
    }
    place(fresh, {});
}

void Weights::forget(std::span<const Key> keys) {
    for (const Key& key : keys) {
        bytes_ -= entries_.erase(key) == 1 ? key.size() : 0;
    }
}

/// Where the work failed, its constants are uploaded when they are asked for again.
template <class Work>
void Weights::wait_for(const std::shared_ptr<Work>& work, std::shared_ptr<Work> Entry::*of_entry) {
    try {
        work->wait();
    } catch (...) {
        std::scoped_lock lock(mutex_);
        std::vector<Key> lost;
        for (const auto& [key, e] : entries_) {
            if (work->failed() && e.*of_entry == work) {
                lost.push_back(key);
            }
        }
        forget(lost);
        throw;
    }
}

/// Takes the slabs that are equal; where they are not, the constants go elsewhere.
void Weights::settle(const std::shared_ptr<WeightComparison>& comparison) {
    const std::vector<WeightComparison::Pair>& pairs = comparison->pairs();
    std::vector<Key> others;
    std::vector<const WeightSlab*> tried = comparison->tried();
    for (size_t i = 0; i < pairs.size(); ++i) {
        if (!comparison->is_equal(i)) {
            tried.push_back(pairs[i].slab.get());
            for (const WeightComparison::Placed& p : pairs[i].constants) {
                others.push_back(p.constant);
            }
        }
    }
    slabs_.reserve(slabs_.size() + pairs.size()); // nothing fails from here to place()
    for (size_t i = 0; i < pairs.size(); ++i) {
        std::byte* data = comparison->is_equal(i) ? pairs[i].slab->data() : nullptr;
        if (data != nullptr) {
            slabs_.push_back(pairs[i].slab);
        }
        for (const WeightComparison::Placed& p : pairs[i].constants) {
            Entry& e = entries_.at(p.constant);
            e.address = data == nullptr ? nullptr : data + p.at;
            e.comparison = nullptr;
        }
    }
    place(others, tried);
}

/// Room in a slab for constants that come one by one.
std::byte* Weights::reserve_late(size_t bytes) {
    bytes = aligned(bytes);
    if (bytes > late_left_) {
        int64_t left = memory_.available();
        bool fits = left < 0 || static_cast<size_t>(left) >= late_slab_bytes;
        size_t slab = fits ? std::max(bytes, late_slab_bytes) : bytes;
        slabs_.push_back(std::make_shared<WeightSlab>(gpu_, &memory_, slab));
        late_next_ = slabs_.back()->data();
        late_left_ = slab;
    }
    std::byte* at = late_next_;
    late_next_ += bytes;
    late_left_ -= bytes;
    return at;
}

std::byte* Weights::upload(const Key& c, Stream& stream) {
    TraceSpan span("upload", str(c.size(), " bytes"));
    std::byte* address = reserve_late(c.size());
    if (StreamOrder* order = stream.parts().order; order != nullptr && memory_.is_lent()) {
        order->wait_for(nullptr);
    }
    stream.write_filled(address, c.size(), [&c](size_t at, std::span<std::byte> part) {
        c.read(at, part, ThreadPool::shared());
    });
    stream.synchronize(); // other streams may use it from now on
    return address;
}

std::byte* Weights::find(const plan::StoredConstant& c, Stream& stream) {
    std::unique_lock lock(mutex_);
    for (auto it = entries_.find(c); it != entries_.end(); it = entries_.find(c)) {
        Entry e = it->second;
        if (e.comparison != nullptr) {
            lock.unlock();
            wait_for(e.comparison, &Entry::comparison);
            lock.lock();
            it = entries_.find(c);
            if (it != entries_.end() && it->second.comparison == e.comparison) {
                settle(e.comparison);
            }
            continue;
        }
        if (e.copies != nullptr) {
            lock.unlock();
            wait_for(e.copies, &Entry::copies);
        }
        return e.address;
    }
    std::byte* address = upload(c, stream);
    entries_.emplace(c, Entry{address, nullptr});
    bytes_ += c.size();
    return address;
}

bool Weights::has(const plan::StoredConstant& c) const {
    std::scoped_lock lock(mutex_);
    return entries_.count(c) != 0;
}

size_t Weights::bytes() const {
    std::scoped_lock lock(mutex_);
    return bytes_;
}

StreamedWeights::~StreamedWeights() {
    for (auto& [key, e] : entries_) {
        if (e.pinned != nullptr) {
            gpu_.release_shared(e.pinned);
        }
    }
}

StreamedWeights::Entry& StreamedWeights::entry(const plan::StoredConstant& c) {
    auto [it, fresh] = entries_.try_emplace(c);
    Entry& e = it->second;
    auto bytes = static_cast<int64_t>(c.size());
    if (fresh) {
        e.kept = bytes <= budget_ - room_ - kept_bytes_;
        kept_bytes_ += e.kept ? bytes : 0;
    }
    return e;
}

void StreamedWeights::make_room(const Graph& g) {
    constexpr int64_t share = 8; // more kept constants would often save more than uploads beside
    int64_t all = 0;
    int64_t largest = 0;
    std::set<const void*> seen;
    visit_nodes(g, [&](const Graph&, const Node& n) {
        const Tensor* t = n.is(constant_def) ? &n.as<Constant>().value : nullptr;
        if (t != nullptr && t->byte_count() >= streamable_bytes &&
            seen.insert(t->identity()).second) {
            auto bytes = static_cast<int64_t>(t->byte_count());
            all += bytes;
            largest = bytes <= budget_ / share ? std::max(largest, bytes) : largest;
        }
    });
    room_ = all <= budget_ ? 0 : largest;
}

bool StreamedWeights::keeps(const plan::StoredConstant& c) {
    if (budget_ < 0 || c.size() < streamable_bytes) {
        return true;
    }
    std::scoped_lock lock(mutex_);
    return entry(c).kept;
}

const std::byte* StreamedWeights::find(const plan::StoredConstant& c) {
    std::scoped_lock lock(mutex_);
    Entry& e = entry(c);
    if (e.pinned == nullptr) {
        e.pinned = gpu_.allocate_shared(static_cast<int64_t>(c.size()));
        c.read(0, {e.pinned, c.size()}, ThreadPool::shared());
    }
    return e.pinned;
}

DeviceWeights::DeviceWeights(Gpu& gpu, const CompileOptions& o, std::shared_ptr<SharedSlabs> shared)
    : memory(gpu, o.of<CudaOptions>().memory_limit, o.memory),
      weights(gpu, memory, may_share(o) ? std::move(shared) : nullptr),
      streamed(gpu, o.of<CudaOptions>().weight_budget) {}

} // namespace ingot::cuda
