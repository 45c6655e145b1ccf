// SPDX-License-Identifier: Apache-2.0
// Engine::with_own_weights(): the graphs in their binary form, with weights in one block instead of
// a file's section.
#include "base/error.h"
#include "base/page_guard.h"
#include "base/pieces.h"
#include "engine/engine.h"
#include "ir/binary.h"
#include "ops/op_table.h"

#include <cstring>

namespace ingot {

namespace {

/// Whether the tensor itself keeps its bytes, and nobody else may change them: they were computed,
/// or lie in a file that was mapped while a model was read, and decide no size or address
/// (ADR 0015).
bool keeps_itself(const Tensor& t) {
    return t.writable() || (is_float(t.dtype()) && are_guarded(t.bytes()));
}

/// Places for the weights of several graphs in one block; equal weights have one place, and those
/// that keep themselves have none.
class WeightPlaces {
public:
    uint64_t store(const Tensor& t) {
        std::span<const std::byte> bytes = t.bytes();
        if (keeps_itself(t)) {
            kept_.push_back(t);
            return kept_mark | (kept_.size() - 1);
        }
        auto [it, is_new] = places_.try_emplace(str(bytes.size(), ":", xxh3_128(bytes)), next_);
        if (is_new) {
            sources_.emplace_back(next_, t);
            next_ = (next_ + bytes.size() + alignment - 1) / alignment * alignment;
        }
        return it->second;
    }
    uint64_t bytes() const { return next_; }
    /// Null for a tensor that has a place.
    const Tensor* kept(uint64_t offset) const {
        return (offset & kept_mark) == 0 ? nullptr : &kept_[offset & ~kept_mark];
    }
    void copy_to(std::byte* block) const {
        for (const auto& [at, t] : sources_) {
            std::byte* to = block + at;
            for_pieces(t.bytes(), [&](std::span<const std::byte> part) {
                std::memcpy(to, part.data(), part.size());
                to += part.size();
            });
            check_pages(t.bytes());
        }
    }

private:
    static constexpr uint64_t alignment = 64;
    static constexpr uint64_t kept_mark = 1ULL << 63U;
    std::vector<Tensor> kept_;
    std::map<std::string, uint64_t> places_;
    std::vector<std::pair<uint64_t, Tensor>> sources_;
    uint64_t next_ = 0;
};

} // namespace

std::shared_ptr<const Engine> Engine::with_own_weights(const AllocateWeights& allocate) const {
    CHECK(!weights_missing(), "there are no weights to copy");
    check_weights();
    WeightPlaces places;
    auto written = [&](const Graph& g) {
        return write_graph(g, [&](const Tensor& t) { return places.store(t); });
    };
    std::vector<std::byte> graph = written(*graph_);
    std::vector<std::byte> before = source_ == nullptr ? graph : written(*source_->graph);
    std::shared_ptr<std::byte> block = allocate(places.bytes());
    places.copy_to(block.get());
    ReadOptions options;
    options.find_op = find_op;
    options.fetch = [&](DType dtype, const Shape& shape, uint64_t offset) {
        if (const Tensor* kept = places.kept(offset)) {
            return *kept;
        }
        auto bytes = static_cast<size_t>(byte_size(dtype, count_of(shape)));
        return Tensor::wrap(dtype, shape, std::span<const std::byte>(block.get() + offset, bytes),
                            block);
    };
    std::shared_ptr<Engine> e(new Engine(*this));
    e->graph_ = std::make_shared<const Graph>(read_graph(graph, options));
    if (source_ != nullptr) {
        auto source = std::make_shared<RefitSource>(*source_);
        source->graph = std::make_shared<const Graph>(read_graph(before, options));
        e->source_ = std::move(source);
    }
    e->check_ = nullptr; // of the weights that were copied
    return e;
}

} // namespace ingot
