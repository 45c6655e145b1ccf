// SPDX-License-Identifier: Apache-2.0
// Instances on an emulated GPU, whose kernels are compiled as on a real one. The driver and the
// compiler come from the folder emulated_cuda, of which the test `triton_emulated` tells the
// process; without them these tests are skipped.
#include "tests/triton/scene.h"

#include <dlfcn.h>

#include <chrono>
#include <cstdlib>

namespace ingot::triton {
namespace {

namespace nv = nvinfer1;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds patience(120);

template <class F>
F* find_function(const char* library, const char* name) {
    void* opened = library == nullptr ? nullptr : dlopen(library, RTLD_NOW);
    return opened == nullptr ? nullptr : reinterpret_cast<F*>(dlsym(opened, name));
}

class TritonEmulated : public testing::Test {
protected:
    void SetUp() override {
        newest = find_function<int64_t(int)>("libcuda.so.1", "ingot_emulated_newest");
        loaded = find_function<int64_t(int)>("libcuda.so.1", "ingot_emulated_loaded");
        const char* compiler = std::getenv("INGOT_NVRTC");
        hold = find_function<void(int)>(compiler, "ingot_emulated_hold");
        waiting = find_function<int()>(compiler, "ingot_emulated_waiting");
        if (newest == nullptr || loaded == nullptr || hold == nullptr || waiting == nullptr) {
            GTEST_SKIP() << "no emulated GPU: run it as 'ctest -R triton_emulated'";
        }
    }
    void TearDown() override {
        if (hold != nullptr) {
            hold(0);
        }
    }

    int64_t (*newest)(int) = nullptr;
    int64_t (*loaded)(int) = nullptr;
    void (*hold)(int) = nullptr;
    int (*waiting)() = nullptr;
};

/// Bytes of an engine: `y` f32[n, 7, 5] is the transpose of `x` f32[n, 5, 7], doubled.
std::string turning_engine(int32_t most) {
    auto fill = [](nv::INetworkDefinition& n) {
        nv::ITensor* x = n.addInput("x", nv::DataType::kFLOAT, nv::Dims{3, {-1, 5, 7}});
        nv::IShuffleLayer* turned = n.addShuffle(*x);
        turned->setFirstTranspose(nv::Permutation{{0, 2, 1}});
        nv::ITensor* t = turned->getOutput(0);
        nv::ITensor* y = n.addElementWise(*t, *t, nv::ElementWiseOperation::kSUM)->getOutput(0);
        y->setName("y");
        n.markOutput(*y);
    };
    return build_engine(fill, {{"x", {nv::Dims{3, {1, 5, 7}}, nv::Dims{3, {most, 5, 7}}}}});
}

/// A request for it is run and its answer compared.
void turn(Scene& scene, int64_t rows) {
    std::vector<float> values(static_cast<size_t>(rows) * 35);
    for (size_t i = 0; i < values.size(); ++i) {
        values[i] = static_cast<float>(i);
    }
    TRITONBACKEND_Request request;
    request.inputs.push_back(float_input("x", {rows, 5, 7}, values));
    request.outputs = {"y"};
    ASSERT_EQ(scene.execute({&request}), "");
    ASSERT_FALSE(request.answered_error) << request.text;
    std::vector<float> y = floats(request.results.at("y"));
    ASSERT_EQ(y.size(), values.size());
    for (size_t i = 0; i < y.size(); ++i) {
        size_t row = i / 35;
        size_t column = i % 35 / 5;
        ASSERT_EQ(y[i], 2 * values[row * 35 + i % 5 * 7 + column]) << i;
    }
}

/// The compiler stands still: requests of shapes beyond the buckets take the general kernels, which
/// the instance has since it was made. Once it goes on, the fitted ones take over.
TEST_F(TritonEmulated, NoRequestWaitsForTheCompilerBeyondTheBuckets) {
    Scene scene(turning_engine(99), R"({"parameters":{"buckets":{"string_value":"3"}}})");
    scene.kind = TRITONSERVER_INSTANCEGROUPKIND_GPU;
    ASSERT_EQ(scene.start(), "");
    auto end = Clock::now() + patience;
    turn(scene, 3);
    int64_t general = newest(0);
    while (newest(0) == general) { // until those for the bucket have come
        turn(scene, 3);
        ASSERT_LT(Clock::now(), end) << "no kernel was fitted to the bucket";
    }
    int64_t fitted = newest(0);
    int64_t before = loaded(0);
    hold(1);
    while (waiting() == 0) {
        turn(scene, 64);
        ASSERT_LT(Clock::now(), end) << "nothing was compiled for the new shape";
    }
    for (int64_t rows : {64, 65, 66}) {
        turn(scene, rows);
    }
    EXPECT_EQ(loaded(0), before); // they ran without any kernel of their own
    EXPECT_GE(FakeHost::get().values.at("ingot_unprepared_shapes{model=model,version=1}"), 3);
    hold(0);
    while (newest(0) == fitted) {
        turn(scene, 64);
        ASSERT_LT(Clock::now(), end) << "the fitted kernels were never launched";
    }
}

} // namespace
} // namespace ingot::triton
