// SPDX-License-Identifier: Apache-2.0
#include "workflow/compare/tensor_difference.h"

#include "base/error.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

namespace ingot {

std::string position(const Shape& shape, int64_t i) {
    Shape at(shape.size());
    for (size_t k = shape.size(); k-- > 0;) {
        at[k] = i % std::max<int64_t>(shape[k], 1);
        i /= std::max<int64_t>(shape[k], 1);
    }
    return str(at);
}

namespace {

/// Drops the sign of NaN, which is meaningless.
double shown(double x) {
    return std::isnan(x) ? std::numeric_limits<double>::quiet_NaN() : x;
}

} // namespace

bool is_mismatch(double ours, double reference) {
    bool finite = std::isfinite(ours) && std::isfinite(reference);
    return !finite && !(ours == reference); // false for equal infinities, true for any NaN
}

Mismatches mismatches(const Tensor& ours, const Tensor& reference) {
    Mismatches m;
    for (int64_t i = 0; i < ours.count(); ++i) {
        if (is_mismatch(ours.get_f64(i), reference.get_f64(i))) {
            m.first = m.count++ == 0 ? i : m.first;
        }
    }
    if (m.count > 0) {
        m.text =
            str("element ", position(ours.shape(), m.first), " is ", shown(ours.get_f64(m.first)),
                ", expected ", shown(reference.get_f64(m.first)));
    }
    return m;
}

std::string TensorDifference::text() const {
    if (!problem.empty()) {
        return problem;
    }
    char errors[96];
    std::snprintf(errors, sizeof errors, "max error %.3g (%.3g of the range) over %lld elements",
                  max_absolute, max_relative, static_cast<long long>(elements));
    std::string out = errors;
    if (mismatched.count > 0) {
        append(out, str(", ", mismatched.count, " differ in NaN or infinity: ", mismatched.text));
    }
    if (tied > 0) {
        append(out, str(", ", tied, " tied: equal scores in another order"));
    }
    if (spread > 0) {
        std::snprintf(errors, sizeof errors, ", roundings that tip over alone move it by %.3g",
                      spread);
        append(out, errors);
    }
    return out;
}

std::string TensorDifference::place() const {
    return step < 0 ? name : str(name, " (node '", node, "', ", dtype, shape, ")");
}

std::string TensorDifference::wrong_text() const {
    return str(wrong, " of ", elements, " elements from index ", first_wrong, " on");
}

TensorDifference difference(std::string name, const Tensor& ours, const Tensor& reference,
                            double atol, double rtol) {
    TensorDifference d;
    d.name = std::move(name);
    d.elements = ours.count();
    d.dtype = ours.dtype();
    d.shape = ours.shape();
    if (ours.shape() != reference.shape()) {
        d.problem = str("shape ", ours.shape(), ", the reference has ", reference.shape());
        return d;
    }
    double low = INFINITY;
    double high = -INFINITY;
    for (int64_t i = 0; i < ours.count(); ++i) {
        double a = ours.get_f64(i);
        double b = reference.get_f64(i);
        if (std::isfinite(a) && std::isfinite(b)) {
            low = std::min(low, b);
            high = std::max(high, b);
            d.max_absolute = std::max(d.max_absolute, std::fabs(a - b));
        }
    }
    d.mismatched = mismatches(ours, reference);
    d.range = high >= low ? std::max(high - low, std::max(std::fabs(high), std::fabs(low))) : 0;
    d.max_relative = d.max_absolute / std::max(d.range, 1e-30);
    double most = atol + rtol * d.range;
    d.within = d.mismatched.count == 0 && d.max_absolute <= most;
    for (int64_t i = 0; i < ours.count() && !d.within; ++i) {
        double a = ours.get_f64(i);
        double b = reference.get_f64(i);
        if (is_mismatch(a, b) || std::fabs(a - b) > most) {
            d.first_wrong = d.wrong++ == 0 ? i : d.first_wrong;
        }
    }
    return d;
}

} // namespace ingot
