// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/conv_transpose_phases.h"

#include "base/integers.h"

#include <algorithm>
#include <numeric>

namespace ingot::cpu {

AxisPhase phase_at(const SpatialAxis& a, int64_t first_out) {
    int64_t common = std::gcd(a.stride, a.dilation);
    AxisPhase p;
    p.step = a.stride / common;
    p.step_in = a.dilation / common;
    p.count = div_up(a.out - first_out, a.stride);
    p.first_out = {first_out};
    p.first_tap = {0};
    for (int64_t t = 0; t < std::min(a.size, p.step); ++t) {
        int64_t at = first_out + a.low - t * a.dilation;
        if (at % a.stride == 0) {
            p.first_tap = {t};
            p.taps = div_up(a.size - t, p.step);
            p.first_in = at / a.stride;
            break;
        }
    }
    return p;
}

std::vector<AxisPhase> phases_of(const SpatialAxis& a) {
    std::vector<AxisPhase> phases;
    for (int64_t out = 0; out < std::min(a.stride, a.out); ++out) {
        AxisPhase p = phase_at(a, out);
        auto same = std::find_if(phases.begin(), phases.end(), [&](const AxisPhase& q) {
            return q.count == p.count && q.taps == p.taps && q.first_in == p.first_in;
        });
        if (same == phases.end()) {
            phases.push_back(std::move(p));
        } else {
            same->first_out.push_back(out);
            same->first_tap.push_back(p.first_tap[0]);
        }
    }
    return phases;
}

} // namespace ingot::cpu
