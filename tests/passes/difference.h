// SPDX-License-Identifier: Apache-2.0
// The allowed difference between results with and without a pass.
#pragma once

#include "base/error.h"
#include "ir/tensor.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace ingot::test {

/// Largest difference allowed to an arithmetic pass, relative to the largest magnitude in the
/// tensor (at least 1): summation orders and folded scales differ by a few roundings, coarser ones
/// in narrow types. Values stored as f64 were mostly computed in f32.
inline double pass_tolerance(DType t) {
    return t == DType::F64 || t == DType::F32 ? 2e-4 : t == DType::F16 ? 1e-2 : 5e-2;
}

/// Empty where they agree. `allowed` 0: bit-equal, signs of zeros and kinds of NaN apart.
inline std::string difference(const Tensor& want, const Tensor& got, double allowed) {
    if (want.dtype() != got.dtype() || want.shape() != got.shape()) {
        return str("is ", got.type(), ", expected ", want.type());
    }
    double range = 1;
    for (int64_t i = 0; i < want.count(); ++i) {
        double v = std::abs(want.get_f64(i));
        range = std::isfinite(v) ? std::max(range, v) : range;
    }
    for (int64_t i = 0; i < want.count(); ++i) {
        double a = want.get_f64(i);
        double b = got.get_f64(i);
        bool same = a == b || (std::isnan(a) && std::isnan(b));
        bool close = is_float(want.dtype()) && allowed > 0 &&
                     std::abs(a - b) <= std::max(allowed, pass_tolerance(want.dtype())) * range;
        if (!same && !close) {
            return str("element ", i, " is ", b, ", expected ", a);
        }
    }
    return "";
}

} // namespace ingot::test
