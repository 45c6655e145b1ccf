// SPDX-License-Identifier: Apache-2.0
// config.pbtxt of engines with inputs that requests may leave out.
#include "engine/properties.h"
#include "ops/ops.h"
#include "workflow/serving/model_config.h"

#include <gtest/gtest.h>

namespace ingot::serving {
namespace {

std::shared_ptr<const Engine> engine(bool optional, bool is_new = true) {
    Graph g("scaled");
    Value x = g.add_input("x", parse_type("f32[n,2]"));
    Value y = is_new ? ops::mul(g, x, g.add_input("scale", parse_type("f32[n,2]"))) : x;
    g.add_output("y", ops::add(g, y, y));
    Properties metadata;
    if (optional) {
        put_input_default("scale", Tensor::zeros(DType::F32, {1, 2}), metadata);
    }
    return Engine::create(std::move(g), {}, std::move(metadata));
}

TEST(ModelConfig, SaysWhichInputsAreOptional) {
    Interface with = interface_of(*engine(true));
    EXPECT_FALSE(with.takes_batches());
    ServedModel model;
    model.name = "m";
    std::string text = config_text(model, with);
    EXPECT_NE(
        text.find("  { name: \"x\" data_type: TYPE_FP32 dims: [ -1, 2 ] },\n"
                  "  { name: \"scale\" data_type: TYPE_FP32 dims: [ -1, 2 ] optional: true }"),
        std::string::npos)
        << text;
    Interface without = interface_of(*engine(false));
    EXPECT_TRUE(without.takes_batches());
    EXPECT_EQ(config_text(model, without).find("optional"), std::string::npos);
}

TEST(ModelConfig, AnInputThatClientsNeedNotSendIsNoDifference) {
    Interface before = interface_of(*engine(false, false));
    Interface optional = interface_of(*engine(true));
    Interface needed = interface_of(*engine(false));
    EXPECT_EQ(differences(before, optional), std::vector<std::string>());
    EXPECT_EQ(differences(needed, optional), std::vector<std::string>());
    EXPECT_EQ(differences(before, needed), std::vector<std::string>{"input 'scale' is new"});
    EXPECT_EQ(differences(optional, needed),
              std::vector<std::string>{"input 'scale' is no longer optional"});
}

} // namespace
} // namespace ingot::serving
