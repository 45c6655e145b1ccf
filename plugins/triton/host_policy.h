// SPDX-License-Identifier: Apache-2.0
// HostPolicy: the part of the host that the operator gives to an instance. The server keeps the
// thread that makes the instance, and the one that runs it, to the policy's cores and memory; what
// these threads start or allocate stays there too.
#pragma once

#include "plugins/triton/host.h"

#include <string>

namespace ingot::triton {

struct HostPolicy {
    std::string name;  // "cpu" and "gpu_0" where the configuration names none
    std::string cores; // cpu-cores of --host-policy: "0-3,8-11"; "" for all
    std::string node;  // numa-node; "" for any
    std::string note;  // a warning for the operator; "" for none

    bool has_effect() const { return !cores.empty() || !node.empty(); }
};

/// Errors: InvalidArgument for a policy that is none.
HostPolicy read_host_policy(TRITONBACKEND_ModelInstance* instance);

} // namespace ingot::triton
