// SPDX-License-Identifier: Apache-2.0
#include "backends_cpu/compare.h"

#include "backends/backends.h"
#include "backends/cpu/options.h"
#include "ops/evaluator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace ingot::test {

Tensor random_tensor(DType t, const Shape& shape, std::mt19937& random) {
    Tensor out = Tensor::empty(t, shape);
    std::uniform_real_distribution<double> real(-2, 2);
    std::uniform_int_distribution<int64_t> whole(is_signed(t) ? -8 : 0, is_signed(t) ? 8 : 16);
    for (int64_t i = 0; i < out.count(); ++i) {
        if (t == DType::Bool) {
            out.set_i64(i, whole(random) % 2);
        } else if (is_float(t)) {
            out.set_f64(i, real(random));
        } else {
            out.set_i64(i, whole(random));
        }
    }
    return out;
}

void expect_close(const Tensor& got, const Tensor& expected, double tolerance,
                  std::string_view what) {
    ASSERT_EQ(got.dtype(), expected.dtype()) << what;
    ASSERT_EQ(got.shape(), expected.shape()) << what;
    if (!is_float(expected.dtype())) {
        for (int64_t i = 0; i < got.count(); ++i) {
            ASSERT_EQ(got.get_i64(i), expected.get_i64(i)) << what << " element " << i;
        }
        return;
    }
    double largest = 1;
    for (int64_t i = 0; i < expected.count(); ++i) {
        double v = std::abs(expected.get_f64(i));
        largest = std::isfinite(v) ? std::max(largest, v) : largest;
    }
    for (int64_t i = 0; i < got.count(); ++i) {
        double a = got.get_f64(i);
        double b = expected.get_f64(i);
        bool same =
            a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= tolerance * largest;
        ASSERT_TRUE(same) << what << " element " << i << ": got " << a << ", expected " << b;
    }
}

namespace {

void expect_results(const std::shared_ptr<const Graph>& g, std::span<const Tensor> inputs,
                    std::span<const Tensor> expected, const CompareOptions& options) {
    auto execution = cpu_backend().compile(g, options.compile)->create_execution();
    std::vector<Tensor> first;
    for (int run = 0; run < options.runs; ++run) {
        std::vector<Tensor> got(expected.size());
        // The second run writes into given tensors, filled with garbage.
        for (size_t i = 0; run > 0 && i < got.size(); ++i) {
            got[i] = Tensor::empty(expected[i].dtype(), expected[i].shape());
            std::memset(got[i].mutable_bytes().data(), 0xCB, got[i].bytes().size());
        }
        Status status = execution->run(inputs, got);
        ASSERT_TRUE(status.ok()) << execution->error();
        for (size_t i = 0; i < got.size(); ++i) {
            expect_close(got[i], expected[i], options.tolerance,
                         "output " + std::to_string(i) + " of run " + std::to_string(run));
            if (run > 0) {
                EXPECT_EQ(std::memcmp(got[i].bytes().data(), first[i].bytes().data(),
                                      got[i].bytes().size()),
                          0)
                    << "run " << run << " differs from the first";
            }
        }
        if (run == 0) {
            first = std::move(got);
        }
    }
}

} // namespace

void expect_same_as_evaluator(const Graph& g, std::span<const Tensor> inputs,
                              CompareOptions options) {
    std::vector<Tensor> expected = evaluate(g, inputs);
    options.compile.poison = true;
    auto shared = std::make_shared<const Graph>(g);
    for (bool use_library : {true, false}) {
        SCOPED_TRACE(use_library ? "through the library" : "own loops");
        options.compile.of<CpuOptions>().use_library = use_library;
        expect_results(shared, inputs, expected, options);
    }
}

void expect_same_as_evaluator(const Graph& g, const Symbols& symbols, unsigned seed,
                              CompareOptions options) {
    std::mt19937 random(seed);
    std::vector<Tensor> inputs;
    for (Value v : g.inputs()) {
        inputs.push_back(random_tensor(g.type(v).dtype, eval(g.type(v).dims, symbols), random));
    }
    expect_same_as_evaluator(g, inputs, std::move(options));
}

std::vector<StepInfo> planned_steps(const Graph& g) {
    auto execution =
        cpu_backend().compile(std::make_shared<const Graph>(g), {})->create_execution();
    std::vector<Shape> shapes;
    for (Value v : g.inputs()) {
        shapes.push_back(eval(g.type(v).dims, {}));
    }
    execution->prepare(shapes);
    return execution->steps();
}

} // namespace ingot::test
