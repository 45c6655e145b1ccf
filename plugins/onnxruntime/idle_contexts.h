// SPDX-License-Identifier: Apache-2.0
// IdleContexts: contexts that wait for their next run, by the CUDA graphs that they hold.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace ingot::ort {

/// T has a member `graph`, std::optional<int64_t>: the id of the graphs that the context records,
/// nullopt for one that records none. Not thread safe.
template <class T>
class IdleContexts {
public:
    /// At most `most_ids` ids have contexts of their own; then the one that was used least recently
    /// goes to the new id.
    explicit IdleContexts(size_t most_ids) : most_ids_(most_ids) {}

    /// A context for this id; null where a new one has to be made.
    std::unique_ptr<T> take(std::optional<int64_t> graph) {
        if (graph) {
            use(*graph);
        }
        auto it = std::find_if(idle_.rbegin(), idle_.rend(),
                               [&](const auto& c) { return c->graph == graph; });
        if (it == idle_.rend() && graph) {
            it = std::find_if(idle_.rbegin(), idle_.rend(), [&](const auto& c) {
                return c->graph && std::find(ids_.begin(), ids_.end(), *c->graph) == ids_.end();
            });
        }
        if (it == idle_.rend()) {
            return nullptr;
        }
        std::unique_ptr<T> out = std::move(*it);
        idle_.erase(std::next(it).base());
        out->graph = graph;
        return out;
    }
    void give(std::unique_ptr<T> context) { idle_.push_back(std::move(context)); }
    void clear() { idle_.clear(); }
    size_t size() const { return idle_.size(); }

private:
    void use(int64_t id) {
        if (auto it = std::find(ids_.begin(), ids_.end(), id); it != ids_.end()) {
            ids_.erase(it);
        }
        ids_.insert(ids_.begin(), id);
        if (ids_.size() > most_ids_) {
            ids_.pop_back();
        }
    }

    size_t most_ids_;
    std::vector<int64_t> ids_; // the last used first
    std::vector<std::unique_ptr<T>> idle_;
};

} // namespace ingot::ort
