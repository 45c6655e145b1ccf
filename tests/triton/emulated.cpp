// SPDX-License-Identifier: Apache-2.0
#include "tests/triton/emulated.h"

#include <cstdlib>

namespace ingot::triton {

namespace nv = nvinfer1;

void TritonEmulated::SetUp() {
    newest = find_function<int64_t(int)>("libcuda.so.1", "ingot_emulated_newest");
    loaded = find_function<int64_t(int)>("libcuda.so.1", "ingot_emulated_loaded");
    launches = find_function<int64_t(int, bool)>("libcuda.so.1", "ingot_emulated_calls");
    stopping = find_function<int64_t(int)>("libcuda.so.1", "ingot_emulated_stopping");
    streams = find_function<int64_t(int)>("libcuda.so.1", "ingot_emulated_streams");
    locking = find_function<int64_t(int)>("libcuda.so.1", "ingot_emulated_locking");
    executed = find_function<int64_t(int)>("libcuda.so.1", "ingot_emulated_launches");
    graphs = find_function<int64_t(int)>("libcuda.so.1", "ingot_emulated_graphs");
    counted = find_function<int64_t(int, const char*)>("libcuda.so.1", "ingot_emulated_counted");
    hops = find_function<int64_t(int)>("libcuda.so.1", "ingot_emulated_hops");
    const char* compiler = std::getenv("INGOT_NVRTC");
    hold = find_function<void(int)>(compiler, "ingot_emulated_hold");
    waiting = find_function<int()>(compiler, "ingot_emulated_waiting");
    compiled = find_function<int()>(compiler, "ingot_emulated_compiled");
    niceness = find_function<int()>(compiler, "ingot_emulated_niceness");
    if (newest == nullptr || loaded == nullptr || hold == nullptr || waiting == nullptr ||
        compiled == nullptr || niceness == nullptr || launches == nullptr || stopping == nullptr ||
        streams == nullptr || locking == nullptr || executed == nullptr || graphs == nullptr ||
        counted == nullptr || hops == nullptr) {
        GTEST_SKIP() << "no emulated GPU: run it as 'ctest -R triton_emulated'";
    }
}

void TritonEmulated::TearDown() {
    if (hold != nullptr) {
        hold(0);
    }
}

std::string turning_engine(int32_t most, const Configure& configure) {
    auto fill = [](nv::INetworkDefinition& n) {
        nv::ITensor* x = n.addInput("x", nv::DataType::kFLOAT, nv::Dims{3, {-1, 5, 7}});
        nv::IShuffleLayer* turned = n.addShuffle(*x);
        turned->setFirstTranspose(nv::Permutation{{0, 2, 1}});
        nv::ITensor* t = turned->getOutput(0);
        nv::ITensor* y = n.addElementWise(*t, *t, nv::ElementWiseOperation::kSUM)->getOutput(0);
        y->setName("y");
        n.markOutput(*y);
    };
    return build_engine(fill, {{"x", {nv::Dims{3, {1, 5, 7}}, nv::Dims{3, {most, 5, 7}}}}},
                        configure);
}

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

} // namespace ingot::triton
