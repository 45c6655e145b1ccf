// SPDX-License-Identifier: Apache-2.0
// Outputs with data-dependent sizes in memory given by address alone: allowed up to
// getMaxOutputSize(), and nothing is written beyond.
#include "api/runtime_fixture.h"

namespace ingot::test {
namespace {

class DataDependentOutputs : public RuntimeTest {
protected:
    /// A run with `bytes` bytes for the output; returns the floats that fit, and checks that the
    /// next byte is unchanged.
    std::vector<float> run_in(nvinfer1::IExecutionContext& c, const char* output, size_t bytes) {
        void* room = memory->allocate(static_cast<int64_t>(bytes) + 256);
        EXPECT_TRUE(c.setTensorAddress(output, room));
        EXPECT_TRUE(c.enqueueV3(nullptr)) << logger.take_error();
        synchronize();
        std::vector<float> all = values_at(room, bytes / sizeof(float) + 8);
        std::vector<float> behind(all.end() - 8, all.end());
        std::vector<float> untouched(8);
        std::memset(untouched.data(), 0xCB, untouched.size() * sizeof(float));
        EXPECT_EQ(std::memcmp(behind.data(), untouched.data(), 8 * sizeof(float)), 0);
        all.resize(bytes / sizeof(float));
        return all;
    }
};

TEST_P(DataDependentOutputs, AnAddressDoesUpToTheBound) {
    auto engine = load(*data_decides());
    auto c = context(*engine);
    int64_t most = c->getMaxOutputSize("where");
    EXPECT_EQ(most, 20); // all five
    EXPECT_EQ(sizes(c->getTensorShape("where")), (std::vector<int64_t>{1, -1}));
    c->setTensorAddress("twice", memory->allocate(20));
    c->setTensorAddress("x", memory->floats({1, 2, 3, 4, 5}));
    EXPECT_EQ(run_in(*c, "where", 20), (std::vector<float>{0, 1, 2, 3, 4}));
    c->setTensorAddress("x", memory->floats({0, 3, 0, 0, 5}));
    std::vector<float> two = run_in(*c, "where", 20);
    two.resize(2);
    EXPECT_EQ(two, (std::vector<float>{1, 4}));
    // Sizes stay open: another run of the same shapes may give others.
    EXPECT_EQ(sizes(c->getTensorShape("where")), (std::vector<int64_t>{1, -1}));
    EXPECT_EQ(c->getMaxOutputSize("where"), 20);
}

TEST_P(DataDependentOutputs, ExecuteTakesItsBindings) {
    auto engine = load(*data_decides());
    auto c = context(*engine);
    void* where = memory->allocate(20);
    void* twice = memory->allocate(20);
    void* bindings[] = {memory->floats({0, 0, 7, 0, 0}), where, twice};
    ASSERT_TRUE(c->executeV2(bindings)) << logger.take_error();
    EXPECT_EQ(values_at(where, 1), (std::vector<float>{2}));
    EXPECT_EQ(values_at(twice, 5), (std::vector<float>{0, 0, 14, 0, 0}));
}

TEST_P(DataDependentOutputs, TheBoundFollowsTheShapes) {
    Graph g;
    Value x = g.add_input("x", parse_type("f32[N,3]"));
    g.add_output("where", g.add1(nonzero_def, NonZero{g.fresh_symbol()}, {x}));
    auto engine = load(*Engine::create(std::move(g), {}, {}));
    auto c = context(*engine);
    EXPECT_EQ(c->getMaxOutputSize("where"), -1); // no shape is set
    ASSERT_TRUE(c->setInputShape("x", dims({2, 3})));
    EXPECT_EQ(c->getMaxOutputSize("where"), 2 * 6 * 8);
    ASSERT_TRUE(c->setInputShape("x", dims({0, 3})));
    EXPECT_EQ(c->getMaxOutputSize("where"), 0);
}

TEST_P(DataDependentOutputs, NmsKeepsNoMoreThanItIsAskedFor) {
    Graph g;
    Value boxes = g.add_input("boxes", parse_type("f32[2,6,4]"));
    Value scores = g.add_input("scores", parse_type("f32[2,5,6]"));
    Value most = ops::scalar_i64(g, DType::I64, 3);
    Value half = ops::scalar(g, DType::F32, 0.5);
    Value rows = g.add1(nms_def, Nms{false, g.fresh_symbol()}, {boxes, scores, most, half, half});
    g.add_output("kept", rows);
    auto engine = load(*Engine::create(std::move(g), {}, {}));
    EXPECT_EQ(context(*engine)->getMaxOutputSize("kept"), 2 * 5 * 3 * 3 * 8);
}

TEST_P(DataDependentOutputs, WithoutABoundAnAllocatorIsNeeded) {
    Graph g;
    Value n = g.add_input("n", parse_type("i64[1]"));
    Dims size = ops::dims_from(g, n);
    g.add_output("numbers", g.add1(iota_def, Iota{DType::F32, size, 0}, {}));
    auto engine = load(*Engine::create(std::move(g), {}, {}));
    auto c = context(*engine);
    EXPECT_EQ(c->getMaxOutputSize("numbers"), -1);
    void* four = memory->allocate(8);
    int64_t value = 4;
    std::memcpy(four, &value, sizeof value);
    c->setTensorAddress("n", four);
    c->setTensorAddress("numbers", memory->allocate(256));
    EXPECT_FALSE(c->enqueueV3(nullptr));
    EXPECT_EQ(logger.take_error(),
              "IExecutionContext::enqueueV3: the size of output 'numbers' depends on data, and "
              "nothing bounds it: setTensorAddress() cannot say how much memory there is; call "
              "setOutputAllocator()");
}

INSTANTIATE_TEST_SUITE_P(Devices, DataDependentOutputs, testing::Bool(),
                         [](const auto& device) { return device.param ? "Gpu" : "Cpu"; });

} // namespace
} // namespace ingot::test
