// SPDX-License-Identifier: Apache-2.0
// Models whose nodes lack operands or results: no rule reads a missing one.
#include "base/error.h"
#include "onnx/writer.h"
#include "slim/rules.h"
#include "slim_models.h"

#include <gtest/gtest.h>

#include <set>

namespace ingot::slim_test {
namespace {

std::set<std::string_view> operators_with_rules() {
    std::set<std::string_view> ops;
    for (const slim::Rule* r : slim::all_rules()) {
        ops.insert(r->ops.begin(), r->ops.end());
    }
    return ops;
}

// x and a constant through `first`, whose result `second` reads.
onnx::Model chain(std::string_view first, size_t operands, std::string_view second) {
    Builder b;
    const std::string x = b.input("x", {2, 2});
    const std::vector<std::string> all = {b.weights({2, 2}), x, b.weights({2, 2})};
    const std::string t =
        b.node(std::string(first), {all.begin(), all.begin() + static_cast<int64_t>(operands)});
    b.output(b.node(std::string(second), {t, b.weights({2})}));
    return b.model();
}

void expect_a_model_or_an_error(const onnx::Model& model) {
    try {
        const onnx::Model out = slim_model(model, {});
        EXPECT_EQ(onnx::write_model(slim_model(out, {})), onnx::write_model(out));
    } catch (const Error& e) {
        EXPECT_NE(e.code(), ErrorCode::Internal) << e.what();
    }
}

TEST(SlimOperands, MayBeMissing) {
    const std::set<std::string_view> ops = operators_with_rules();
    ASSERT_GT(ops.size(), 40U);
    for (std::string_view op : ops) {
        for (size_t operands = 0; operands < 3; ++operands) {
            SCOPED_TRACE(std::string(op) + " of " + std::to_string(operands));
            for (std::string_view second : {"Add", "Mul", "Reshape", "BatchNormalization", "Not"}) {
                expect_a_model_or_an_error(chain(op, operands, second));
            }
        }
    }
}

TEST(SlimOperands, ResultsMayBeMissing) {
    for (std::string_view op : operators_with_rules()) {
        SCOPED_TRACE(op);
        onnx::Model model = chain(op, 1, "Add");
        model.graph.nodes.front().outputs.clear();
        expect_a_model_or_an_error(model);
    }
}

} // namespace
} // namespace ingot::slim_test
