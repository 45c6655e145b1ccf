// SPDX-License-Identifier: Apache-2.0
// For tests of moments: the moments of given rows, and looks at runs.
#pragma once

#include "kernels/harness.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace ingot::test {

/// The moments of rows by chunks of 32, in f64.
inline Tensor moments_of(const Tensor& x) {
    Shape shape = x.shape();
    constexpr int64_t chunk = 32;
    shape.back() /= chunk;
    shape.push_back(2);
    Tensor out = Tensor::empty(DType::F32, shape);
    for (int64_t c = 0; c < x.count() / chunk; ++c) {
        double sum = 0;
        double squares = 0;
        for (int64_t k = 0; k < chunk; ++k) {
            sum += x.get_f64(c * chunk + k);
        }
        for (int64_t k = 0; k < chunk; ++k) {
            double d = x.get_f64(c * chunk + k) - sum / chunk;
            squares += d * d;
        }
        out.set_f64(2 * c, sum / chunk);
        out.set_f64(2 * c + 1, squares);
    }
    return out;
}

inline Shape shape_of(const Type& t) {
    Shape shape;
    for (const Dim& d : t.dims) {
        shape.push_back(d.value());
    }
    return shape;
}

/// An input for the moments of rows.
inline Value moments_input(Graph& g, const Type& rows) {
    Dims chunks = rows.dims;
    chunks.back() = chunks.back().value() / 32;
    chunks.push_back(2);
    return g.add_input("m", {DType::F32, chunks});
}

inline bool lists(const std::vector<std::string>& names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

/// The results' own moments, to the last digits of f32.
inline void expect_own_moments(const FamilyRun& run) {
    ASSERT_EQ(run.results.size(), 2U);
    Tensor expected = moments_of(run.results[0]);
    for (int64_t i = 0; i < expected.count(); ++i) {
        double e = expected.get_f64(i);
        double got = run.results[1].get_f64(i);
        if (std::isnan(e)) {
            EXPECT_TRUE(std::isnan(got)) << i;
        } else {
            EXPECT_NEAR(got, e, 2e-5 * (1 + std::abs(e))) << i;
        }
    }
}

inline int64_t count_of(const BackendRun& run, std::string_view kernel) {
    return std::count(run.kernels.begin(), run.kernels.end(), kernel);
}

} // namespace ingot::test
