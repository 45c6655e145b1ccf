// SPDX-License-Identifier: Apache-2.0
// KeptLaunches: the launches of steps, kept from plan to plan of one execution. A decoder's next
// token is a new plan, most of whose launches are those of the plan before.
#pragma once

#include "backends/cuda/run/launch_list.h"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace ingot::cuda {

/// The launches that a family emitted for a step, which steps of several plans may share.
class MadeLaunches {
public:
    using Emit = std::function<kernels::Emitted()>;

    /// `tactic` is for messages and reports. A launch that can join others is kept as it was
    /// emitted. `generic` emits the launches of the generic tactic, for a chosen one that does not
    /// compile; null where it is that one.
    MadeLaunches(kernels::Emitted e, std::string tactic, bool can_join, Emit generic = nullptr)
        : tactic_(std::move(tactic)), scratch_(e.scratch), can_join_(can_join),
          generic_(std::move(generic)), emitted_(std::move(e)) {}

    const std::string& tactic() const { return tactic_; }
    /// In bytes.
    int64_t scratch() const { return scratch_; }
    const Emit& generic() const { return generic_; }
    /// The one launch of a step that others may join; null for other steps.
    const kernels::Launch* joinable() const {
        return can_join_ ? emitted_.launches.data() : nullptr;
    }
    /// kernels::short_text of its program.
    const std::string& joinable_text() const;
    /// Requests the kernels when it is called first. Errors: those of LaunchList::set.
    LaunchList& list(CudaDevice& device, const std::string& what);
    /// These as LaunchList has them.
    bool is_stale() const { return list_ != nullptr && list_->is_stale(); }
    void repeats() noexcept {
        if (list_ != nullptr) {
            list_->repeats();
        }
    }

private:
    std::string tactic_;
    int64_t scratch_;
    bool can_join_;
    Emit generic_;
    mutable std::string joinable_text_; // empty until somebody asks
    kernels::Emitted emitted_; // empty where a list without joinable launches has been made
    std::unique_ptr<LaunchList> list_;
};

/// Belongs to one device, and is used by its thread.
class KeptLaunches {
public:
    /// All that launches of a step depend on, for a program whose nodes stay where they are.
    struct Key {
        Key(const Node& n, std::shared_ptr<const KnownProblem> p, size_t tactic, int variant,
            const kernels::Problem& problem);
        auto operator<=>(const Key&) const = default; // NOLINT(modernize-use-nullptr)

        const Node* node;
        std::shared_ptr<const KnownProblem> known;
        size_t tactic;
        int variant;
        bool backwards;
        std::vector<int64_t> places; // buffer, offset and strides of each operand and result
        std::vector<const std::byte*> constants;
    };
    using Parts = std::vector<std::shared_ptr<const MadeLaunches>>;

    /// Starts another plan.
    void begin_plan() { ++plan_; }
    /// The launches under this key, made where they are not kept.
    template <class Make>
    std::shared_ptr<MadeLaunches> find(Key key, const Make& make) {
        return find_in(steps_, std::move(key), make);
    }
    /// The list of launches that join these.
    template <class Make>
    std::shared_ptr<LaunchList> find_joined(Parts parts, const Make& make) {
        return find_in(joined_, std::move(parts), make);
    }
    /// The kernel of launches that join those of steps with these programs; null until it is set.
    std::shared_ptr<PendingKernel>& joined_kernel(const Parts& parts);
    /// Ends the plan: drops what the last few, of other segments and bodies among them, have not
    /// asked for.
    void end_plan();
    void clear();

private:
    template <class T>
    struct Kept {
        std::shared_ptr<T> launches;
        uint64_t plan = 0; // that asked for it last
    };
    template <class K, class T, class Make>
    std::shared_ptr<T> find_in(std::map<K, Kept<T>>& kept, K key, const Make& make) {
        auto it = kept.find(key);
        if (it == kept.end()) {
            it = kept.emplace(std::move(key), Kept<T>{make()}).first;
        }
        it->second.plan = plan_;
        return it->second.launches;
    }

    uint64_t plan_ = 0;
    std::map<Key, Kept<MadeLaunches>> steps_;
    std::map<Parts, Kept<LaunchList>> joined_;
    /// By the texts of the parts.
    std::map<std::vector<std::string>, Kept<std::shared_ptr<PendingKernel>>> joined_kernels_;
};

} // namespace ingot::cuda
