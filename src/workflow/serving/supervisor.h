// SPDX-License-Identifier: Apache-2.0
// Starts the servers of a plan and the proxy in front of them, and guards them.
#pragma once

#include "workflow/serving/restart_policy.h"
#include "workflow/serving/serve_plan.h"

#include <functional>

namespace ingot::serving {

struct SuperviseRequest {
    ServePlan plan;
    RestartRules rules;
    std::chrono::seconds silence{60}; // of a worker that has answered before: it is killed
    std::function<void(const std::string&)> told; // gets each event as a sentence
};
/// SIGUSR1 starts the workers anew, one after the other, without losing a request where there are
/// two. Returns when it is interrupted (SIGTERM, SIGINT): the proxy takes no more connections, what
/// is in flight ends, then the servers end. Errors: Device when every worker or the proxy has been
/// given up, Io when a program cannot be started.
void supervise(const SuperviseRequest& request);

} // namespace ingot::serving
