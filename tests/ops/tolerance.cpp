// SPDX-License-Identifier: Apache-2.0
#include "tolerance.h"

#include "base/text.h"

#include <cmath>

namespace ingot::test {

std::string difference(const Tensor& got, const Tensor& want, double limit) {
    if (got.shape() != want.shape()) {
        return str("shape ", got.shape(), ", expected ", want.shape());
    }
    bool real = is_float(got.dtype());
    double range = real ? 0 : 1;
    for (int64_t i = 0; real && i < want.count(); ++i) {
        double w = std::abs(want.get_f64(i));
        range = std::isfinite(w) ? std::max(range, w) : range;
    }
    for (int64_t i = 0; i < want.count(); ++i) {
        double g = got.get_f64(i);
        double w = want.get_f64(i);
        bool same =
            real ? (std::isnan(g) && std::isnan(w)) || g == w : got.get_i64(i) == want.get_i64(i);
        if (!same && !(std::abs(g - w) <= limit * range)) {
            return str("element ", i, " is ", g, ", expected ", w, " within ", limit * range);
        }
    }
    return {};
}

} // namespace ingot::test
