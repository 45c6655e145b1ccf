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
    close_slabs(0);
}

/// Opens a slab of its own for what does not fit into the present one.
std::byte* Weights::reserve(size_t bytes, size_t slab) {
    bytes = aligned(bytes);
    if (bytes > slab_left_) {
        slabs_.reserve(slabs_.size() + 1);
        slab_next_ = memory_.allocate(static_cast<int64_t>(slab));
        slabs_.push_back(slab_next_);
        slab_left_ = slab;
    }
    std::byte* at = slab_next_;
    slab_next_ += bytes;
    slab_left_ -= bytes;
    return at;
}

/// A slab that the first of some constants and those behind it fill.
size_t Weights::slab_of(std::span<const Key> constants) {
    size_t all = aligned(constants.front().size());
    for (const Key& key : constants.subspan(1)) {
        if (all + aligned(key.size()) > most_slab_bytes) {
            break;
        }
        all += aligned(key.size());
    }
    return all;
}

void Weights::start(const std::vector<plan::StoredConstant>& constants) {
    std::scoped_lock lock(mutex_);
    std::vector<Key> fresh;
    std::vector<WeightCopies::Copy> copies;
    const size_t slabs_before = slabs_.size();
    try {
        for (const Key& key : constants) {
            if (entries_.count(key) == 0) {
                fresh.push_back(key);
                entries_.emplace(key, Entry{});
                bytes_ += key.size();
            }
        }
        if (fresh.empty()) {
            return;
        }
        for (size_t i = 0; i < fresh.size(); ++i) {
            const Key& key = fresh[i];
            bool opens = aligned(key.size()) > slab_left_;
            size_t slab = opens ? slab_of(std::span(fresh).subspan(i)) : 0;
            std::byte* address = reserve(key.size(), slab);
            entries_.at(key).address = address;
            copies.push_back({address, key});
        }
        auto started = std::make_shared<WeightCopies>(gpu_, std::move(copies), memory_.is_lent());
        for (const Key& key : fresh) {
            entries_.at(key).copies = started;
        }
    } catch (...) {
        forget(fresh);
        close_slabs(slabs_before);
        throw;
    }
}

/// Releases all slabs but the first `count`.
void Weights::close_slabs(size_t count) {
    if (slabs_.size() > count) {
        slab_left_ = 0; // in the last one
    }
    for (; slabs_.size() > count; slabs_.pop_back()) {
        memory_.release(slabs_.back());
    }
}

void Weights::forget(const std::vector<Key>& keys) {
    for (const Key& key : keys) {
        bytes_ -= entries_.erase(key) == 1 ? key.size() : 0;
    }
}

/// Where the copies failed, their constants are uploaded when they are asked for again.
void Weights::wait_for(const std::shared_ptr<WeightCopies>& copies) {
    try {
        copies->wait();
    } catch (...) {
        std::scoped_lock lock(mutex_);
        std::vector<Key> lost;
        for (const auto& [key, e] : entries_) {
            if (copies->failed() && e.copies == copies) {
                lost.push_back(key);
            }
        }
        forget(lost);
        throw;
    }
}

std::byte* Weights::find(const plan::StoredConstant& c, Stream& stream) {
    std::unique_lock lock(mutex_);
    auto it = entries_.find(c);
    if (it != entries_.end()) {
        std::byte* address = it->second.address;
        std::shared_ptr<WeightCopies> copies = it->second.copies;
        if (copies != nullptr) {
            lock.unlock();
            wait_for(copies);
        }
        return address;
    }
    it = entries_.emplace(c, Entry{}).first;
    try {
        TraceSpan span("upload", str(c.size(), " bytes"));
        size_t bytes = aligned(c.size());
        int64_t left = memory_.available();
        bool fits = left < 0 || static_cast<size_t>(left) >= late_slab_bytes;
        it->second.address = reserve(bytes, fits ? std::max(bytes, late_slab_bytes) : bytes);
        if (StreamOrder* order = stream.parts().order; order != nullptr && memory_.is_lent()) {
            order->wait_for(nullptr);
        }
        stream.write_filled(
            it->second.address, c.size(),
            [&c](size_t at, std::span<std::byte> part) { c.read(at, part, ThreadPool::shared()); });
        stream.synchronize(); // other streams may use it from now on
    } catch (...) {
        entries_.erase(it);
        throw;
    }
    bytes_ += c.size();
    return it->second.address;
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
    std::set<const std::byte*> seen;
    visit_nodes(g, [&](const Graph&, const Node& n) {
        auto b = n.is(constant_def) ? n.as<Constant>().value.bytes() : std::span<const std::byte>();
        if (b.size() >= streamable_bytes && seen.insert(b.data()).second) {
            auto bytes = static_cast<int64_t>(b.size());
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

DeviceWeights::DeviceWeights(Gpu& gpu, const CompileOptions& o)
    : memory(gpu, o.of<CudaOptions>().memory_limit, o.memory), weights(gpu, memory),
      streamed(gpu, o.of<CudaOptions>().weight_budget) {}

} // namespace ingot::cuda
