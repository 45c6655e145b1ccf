// SPDX-License-Identifier: Apache-2.0
#include "plugins/triton/watch.h"

#include <unistd.h>

#include <algorithm>

namespace ingot::triton {

namespace {

using Clock = std::chrono::steady_clock;

void end_process(std::chrono::milliseconds delay, int exit_code) noexcept {
    std::this_thread::sleep_for(delay);
    _exit(exit_code); // destructors would wait for the device
}

} // namespace

Watch::~Watch() {
    {
        std::lock_guard<std::mutex> lock(mutex_);
        stopping_ = true;
    }
    changed_.notify_all();
    for (std::thread* t : {&thread_, &ending_}) {
        if (t->joinable()) {
            t->join();
        }
    }
}

void Watch::lose(const std::string& cause, int exit_code) noexcept {
    std::lock_guard<std::mutex> lock(mutex_);
    lose_locked(cause, exit_code);
}

void Watch::lose_locked(const std::string& cause, int exit_code) noexcept {
    try {
        if (lost()) {
            return;
        }
        cause_ = cause;
        lost_.store(true, std::memory_order_release);
        ending_ =
            std::thread([delay = exit_delay_.load(), exit_code] { end_process(delay, exit_code); });
        log(TRITONSERVER_LOG_ERROR, str(cause, "; this process ends with exit code ", exit_code,
                                        ", so that a supervisor starts another"));
    } catch (...) { // no memory, or no thread
        _exit(exit_code);
    }
}

std::string Watch::cause() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return cause_;
}

void Watch::wait_for_the_end() {
    while (true) {
        std::this_thread::sleep_for(std::chrono::hours(1));
    }
}

Watch::Run::Run(Watch& watch, std::string subject, std::chrono::milliseconds limit, GiveUp give_up)
    : watch_(watch), subject_(std::move(subject)), limit_(limit), give_up_(std::move(give_up)),
      end_(Clock::now() + limit) {
    if (limit_.count() == 0) {
        return;
    }
    std::lock_guard<std::mutex> lock(watch_.mutex_);
    at_ = watch_.runs_.insert(watch_.runs_.end(), this);
    if (!watch_.thread_.joinable()) {
        try {
            watch_.thread_ = std::thread([&watch] { watch.watch_runs(); });
        } catch (...) {
            watch_.runs_.erase(at_);
            throw;
        }
    }
    if (end_ < watch_.next_look_) { // else it looks in time: no run wakes a thread
        watch_.next_look_ = end_;
        watch_.changed_.notify_all();
    }
}

Watch::Run::~Run() {
    if (limit_.count() == 0) {
        return;
    }
    std::lock_guard<std::mutex> lock(watch_.mutex_);
    watch_.runs_.erase(at_);
}

void Watch::watch_runs() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (!stopping_) {
        auto first = std::min_element(runs_.begin(), runs_.end(),
                                      [](const Run* a, const Run* b) { return a->end_ < b->end_; });
        if (first == runs_.end()) {
            next_look_ = Clock::time_point::max();
            changed_.wait(lock);
        } else if ((*first)->end_ <= Clock::now()) {
            std::string text = str((*first)->subject_, ": a run has not ended after ",
                                   (*first)->limit_.count(), " ms (parameter hang_timeout_ms)");
            lose_locked(text, exit_hang); // first, so that the process ends whatever follows
            (*first)->give_up_(text);
            return;
        } else {
            next_look_ = (*first)->end_;
            changed_.wait_until(lock, next_look_);
        }
    }
}

} // namespace ingot::triton
