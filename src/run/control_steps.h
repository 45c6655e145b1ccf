// SPDX-License-Identifier: Apache-2.0
// Shared by the steps of control flow, whose bodies are programs that a runner plans and runs.
#pragma once

#include "base/integers.h"
#include "base/log.h"
#include "run/runner.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace ingot::plan {

inline int64_t bytes_of(const Operand& o) {
    return static_cast<int64_t>(byte_size(o.dtype, o.view.count()));
}

/// Runs `f`, which may throw, inside a step's noexcept run.
template <class F>
Status guarded(const RunContext& c, std::string_view what, const F& f) noexcept {
    try {
        f();
    } catch (const Error& e) {
        c.error.set("%.*s: %s", static_cast<int>(what.size()), what.data(), e.what());
        return {e.code(), "a body failed"};
    } catch (const std::exception&) {
        return {ErrorCode::OutOfMemory, "a body ran out of memory"};
    }
    return {};
}

/// On devices with their own memory, the buffers that bodies read and write are aligned to this;
/// kernels rely on it.
inline constexpr size_t buffer_alignment = 64;

/// `p` itself when it is aligned like a buffer's start, else a copy of the bytes in `memory`.
inline const std::byte* aligned(Device& device, GrowingBuffer& memory, const std::byte* p,
                                int64_t bytes) {
    if (device.is_host() || is_aligned(p, buffer_alignment)) {
        return p;
    }
    memory.reserve(std::max<int64_t>(bytes, 1));
    device.copy(memory.data(), p, static_cast<size_t>(bytes));
    return memory.data();
}

/// The plan of a body, as it ran last, or as it would run on inputs of these shapes.
inline std::string body_text(std::string_view name, Runner& runner, std::span<const Shape> shapes) {
    try {
        return str(name, ": ", runner.plan_text(shapes));
    } catch (const Error& e) {
        return str(name, ": not planned: ", e.what(), "\n");
    }
}

/// Appends the steps of a body; one that cannot be planned before it runs has none.
inline void append_report(std::vector<StepReport>& all, std::string_view name, Runner& runner,
                          std::span<const Shape> shapes) {
    try {
        std::vector<StepReport> steps = runner.report(shapes);
        size_t start = all.size();
        for (StepReport& r : steps) {
            for (size_t& from : r.reads_from) {
                from += start;
            }
        }
        if (!steps.empty()) {
            steps[0].body = name;
        }
        all.insert(all.end(), std::make_move_iterator(steps.begin()),
                   std::make_move_iterator(steps.end()));
    } catch (const Error& e) {
        log(LogLevel::Verbose, name, ": not planned: ", e.what());
    }
}

inline void require_shape(const Shape& got, const Shape& expected, std::string_view what,
                          size_t i) {
    require(got == expected, ErrorCode::InvalidArgument, what, " ", i, " has shape ", got,
            ", expected ", expected);
}

/// The step of a loop (loop.cpp).
std::unique_ptr<Step> make_loop_step(const StepArgs& args);

} // namespace ingot::plan
