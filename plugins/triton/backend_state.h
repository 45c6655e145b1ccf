// SPDX-License-Identifier: Apache-2.0
// State that the models of one server share.
#pragma once

#include "plugins/triton/metrics.h"
#include "plugins/triton/watch.h"

namespace ingot::triton {

struct BackendState {
    std::string name; // "ingot", or that of another backend whose repositories it serves
    MetricFamilies metrics;
    Watch watch;
};

} // namespace ingot::triton
