// SPDX-License-Identifier: Apache-2.0
// ProfilerRange: names the work that a scope enqueues, where a profiler listens.
#pragma once

#include "plan/device_parts.h"
#include "plan/step_info.h"

#include <string>

namespace ingot::plan {

class ProfilerRange {
public:
    /// `all` may be null. `name()` is called only where a profiler listens; its text is copied.
    template <class Name>
    ProfilerRange(ProfilerRanges* all, Ranges ranges, const Name& name) {
        if (ranges != Ranges::None && all != nullptr && all->active()) {
            all->begin(std::string(name()).c_str());
            open_ = all;
        }
    }
    ~ProfilerRange() {
        if (open_ != nullptr) {
            open_->end();
        }
    }
    ProfilerRange(const ProfilerRange&) = delete;
    ProfilerRange& operator=(const ProfilerRange&) = delete;

private:
    ProfilerRanges* open_ = nullptr; // null: nothing to end
};

} // namespace ingot::plan
