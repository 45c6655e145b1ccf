// SPDX-License-Identifier: Apache-2.0
#include "op_test.h"

#include <array>
#include <cmath>

namespace ingot::test {
namespace {

/// Whether all layer_norm nodes have a scale of the normalised axes alone, as kernels take them.
bool scales_have_one_row(const Graph& g) {
    bool all = true;
    for (const Node& n : g.nodes()) {
        all = all && (!n.is(ops::layer_norm_def) || ops::dims(g, n.inputs[1]).size() == 1);
    }
    return all;
}

TEST(LayerNorm, ScalesThatDifferFromRowToRowFollowTheNorm) {
    Tensor x = random_tensor(DType::F32, {2, 3, 8}, 1);
    Tensor scale = random_tensor(DType::F32, {3, 8}, 2);
    Tensor bias = random_tensor(DType::F32, {3, 1}, 3);
    Graph g;
    Value in = g.add_input("x", x.type());
    Value y =
        ops::layer_norm(g, {-1, 1e-5, false}, in, ops::constant(g, scale), ops::constant(g, bias));
    g.add_output("y", y);
    EXPECT_TRUE(scales_have_one_row(g));
    Tensor got = evaluate(g, std::array{x})[0];
    for (int64_t row = 0; row < 6; ++row) {
        double mean = 0;
        double variance = 0;
        for (int64_t i = 0; i < 8; ++i) {
            mean += x.get_f64(row * 8 + i) / 8;
        }
        for (int64_t i = 0; i < 8; ++i) {
            variance += std::pow(x.get_f64(row * 8 + i) - mean, 2) / 8;
        }
        for (int64_t i = 0; i < 8; ++i) {
            double normed = (x.get_f64(row * 8 + i) - mean) / std::sqrt(variance + 1e-5);
            double want = normed * scale.get_f64(row % 3 * 8 + i) + bias.get_f64(row % 3);
            EXPECT_NEAR(got.get_f64(row * 8 + i), want, 1e-5) << row << " " << i;
        }
    }
}

} // namespace
} // namespace ingot::test
