// SPDX-License-Identifier: Apache-2.0
// Symbols that oneDNN's binary takes from libstdc++.so and libgcc_s.so and that the static
// libraries lack or hide.
#include <unwind.h>

#include <atomic>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>

namespace ingot::cpu::onednn {

/// The shared state of a future in GCC 4.8's layout: oneDNN makes such objects itself but takes
/// their virtual functions from the runtime, which has only the newer class.
class __attribute__((visibility("default"))) FutureState {
public:
    FutureState() = default;
    FutureState(const FutureState&) = delete;
    FutureState& operator=(const FutureState&) = delete;
    virtual ~FutureState();
    virtual void run_deferred();

private:
    using Result = std::__future_base::_Result_base;
    std::unique_ptr<Result, Result::_Deleter> result_;
    std::mutex mutex_;
    std::condition_variable condition_;
    std::atomic_flag retrieved_;
    std::once_flag once_;
};

FutureState::~FutureState() = default;

void FutureState::run_deferred() {}

} // namespace ingot::cpu::onednn

extern "C" __attribute__((visibility("default"))) void
ingot_unwind_resume(_Unwind_Exception* exception) {
    _Unwind_Resume(exception);
}
