// SPDX-License-Identifier: Apache-2.0
// Functions of the application that stand for kernels of source text on the CPU.
#pragma once

#include "run/plugin.h"

namespace ingot::api {

/// The function registered for kernels of this title; empty for none. It stays valid when it is
/// deregistered, as the application's code does. Thread safe.
plan::HostKernel find_host_kernel(const std::string& title);

} // namespace ingot::api
