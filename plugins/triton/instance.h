// SPDX-License-Identifier: Apache-2.0
// Instance: what runs the requests that the server hands over, one batch at a time.
#pragma once

#include "plugins/triton/model.h"
#include "plugins/triton/runner.h"

#include <functional>

namespace ingot::triton {

class Instance {
public:
    /// Makes a context and runs each bucket once. Errors: naming the instance.
    Instance(Model& model, TRITONBACKEND_ModelInstance* instance);
    /// Answers and releases every request, or throws before it has touched any.
    void execute(TRITONBACKEND_Request** requests, uint32_t count);
    /// Errors: unavailable, with the reason, once the device is lost.
    void check_ready() const;

private:
    friend class Batch;
    size_t warm_up(std::string& reason);
    /// The caller's parts of a run.
    struct RunParts {
        /// Gives the inputs' shapes and where they lie.
        std::function<void(Shapes&, std::vector<const void*>&)> gather;
        /// Copies from the outputs, which may not be complete yet.
        std::function<void()> copy;
        /// Answers the requests, on another thread, when the run does not end.
        Watch::GiveUp give_up;
    };
    /// Gathers, runs, copies and waits for all of it, within the time limit. A device that is lost
    /// ends the process.
    void run(const RunParts& parts);
    void report_memory() const;
    /// check_ready(), for requests: with after-loss=hold it does not return once the device is
    /// lost.
    void enter() const;
    void note_loss(const char* what) const;
    std::chrono::milliseconds hang_timeout() const;

    Model& model_;
    TRITONBACKEND_ModelInstance* instance_;
    std::string name_;
    std::unique_ptr<Runner> runner_;
};

} // namespace ingot::triton
