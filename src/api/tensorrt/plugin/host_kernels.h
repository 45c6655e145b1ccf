// SPDX-License-Identifier: Apache-2.0
// Host functions of the application that replace source kernels on the CPU.
#pragma once

#include "run/plugin.h"

namespace ingot::api {

/// The function registered for kernels of this title; empty for none. It stays valid after
/// deregistration, like the application's code. Thread safe.
plan::HostKernel find_host_kernel(const std::string& title);

} // namespace ingot::api
