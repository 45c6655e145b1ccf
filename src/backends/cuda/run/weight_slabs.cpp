// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/run/weight_slabs.h"

#include "backends/cuda/run/device_weights.h"

#include <algorithm>
#include <chrono>

namespace ingot::cuda {

WeightSlab::WeightSlab(Gpu& gpu, Memory* memory, size_t bytes) : gpu_(gpu), memory_(memory) {
    auto n = static_cast<int64_t>(bytes);
    data_ = memory_ == nullptr ? gpu_.allocate(n) : memory_->allocate(n);
}

WeightSlab::~WeightSlab() {
    memory_ == nullptr ? gpu_.release(data_) : memory_->release(data_);
}

void WeightSlab::settle(bool whole) {
    std::scoped_lock lock(mutex_);
    if (state_ == State::Coming) {
        state_ = whole ? State::Whole : State::Lost;
        settled_.notify_all();
    }
}

bool WeightSlab::is_lost() const {
    std::scoped_lock lock(mutex_);
    return state_ == State::Lost;
}

bool WeightSlab::wait_whole(const std::atomic<bool>& stopping) const {
    constexpr std::chrono::milliseconds glance{10};
    std::unique_lock lock(mutex_);
    while (!settled_.wait_for(lock, glance, [this] { return state_ != State::Coming; })) {
        if (stopping) {
            return false;
        }
    }
    return state_ == State::Whole;
}

SharedSlabs::Taken SharedSlabs::take(const Layout& layout,
                                     const std::vector<const WeightSlab*>& tried,
                                     const std::function<std::shared_ptr<WeightSlab>()>& make) {
    std::scoped_lock lock(mutex_);
    for (auto it = slabs_.begin(); it != slabs_.end();) {
        std::erase_if(it->second, [](const auto& slab) { return slab.expired(); });
        it = it->second.empty() ? slabs_.erase(it) : std::next(it);
    }
    auto known = slabs_.find(layout);
    for (size_t i = 0; known != slabs_.end() && i < known->second.size(); ++i) {
        std::shared_ptr<WeightSlab> slab = known->second[i].lock();
        bool is_tried = std::find(tried.begin(), tried.end(), slab.get()) != tried.end();
        if (slab != nullptr && !is_tried && !slab->is_lost()) {
            return {std::move(slab), false};
        }
    }
    std::shared_ptr<WeightSlab> slab = make();
    slabs_[layout].push_back(slab);
    return {std::move(slab), true};
}

} // namespace ingot::cuda
