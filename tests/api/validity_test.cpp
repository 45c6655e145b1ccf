// SPDX-License-Identifier: Apache-2.0
// getEngineValidity(): every answer and every diagnostic, from the given bytes and from the device.
#include "api/runtime_fixture.h"
#include "api/tensorrt/runtime/validity.h"
#include "backends_cuda/fake_driver.h"
#include "engine/weights.h"

#include <cstdlib>

namespace ingot::test {
namespace {

using api::DeviceFacts;
using api::EngineHead;
using nvinfer1::EngineValidity;
using Why = nvinfer1::EngineInvalidityDiagnostics;

uint64_t bits(std::initializer_list<Why> all) {
    uint64_t sum = 0;
    for (Why w : all) {
        sum |= static_cast<uint64_t>(w);
    }
    return sum;
}

struct Case {
    const char* name;
    EngineHead engine;
    DeviceFacts device;
    EngineValidity answer;
    uint64_t diagnostics = 0;
};

DeviceFacts gpu(bool compiles = true, bool runs_kernels = false, int64_t memory = -1) {
    return {true, CudaProblem::None, true, compiles, runs_kernels, memory};
}

TEST(Validity, EveryAnswer) {
    EngineHead plain{false, true, {}, 1000};
    EngineHead with_kernels{false, true, {80, 90}, 1000};
    EngineHead damaged{true, true, {}, 0};
    EngineHead newer{false, false, {}, 0};
    DeviceFacts cpu;
    DeviceFacts old_driver{false, CudaProblem::OldDriver, true, true, false, -1};
    DeviceFacts broken{true, CudaProblem::Failed, true, true, false, -1};
    DeviceFacts turing{true, CudaProblem::None, false, true, false, -1};
    using enum EngineValidity;
    const Case cases[] = {
        {"on the CPU", plain, cpu, kVALID},
        {"kernels nobody needs", with_kernels, cpu, kVALID},
        {"on a GPU", plain, gpu(), kVALID},
        {"its kernels", with_kernels, gpu(true, true), kVALID},
        {"its kernels, no compiler", with_kernels, gpu(false, true), kVALID},
        {"others' kernels", with_kernels, gpu(), kSUBOPTIMAL},
        {"others' kernels, no compiler", with_kernels, gpu(false), kINVALID,
         bits({Why::kOLD_CUDA_RUNTIME})},
        {"no compiler", plain, gpu(false), kINVALID, bits({Why::kOLD_CUDA_RUNTIME})},
        {"just enough memory", plain, gpu(true, false, 1000), kVALID},
        {"little memory", plain, gpu(true, false, 999), kINVALID,
         bits({Why::kINSUFFICIENT_GPU_MEMORY})},
        {"little memory, no compiler", plain, gpu(false, false, 0), kINVALID,
         bits({Why::kINSUFFICIENT_GPU_MEMORY, Why::kOLD_CUDA_RUNTIME})},
        {"damaged", damaged, gpu(false), kINVALID, bits({Why::kMALFORMED_ENGINE})},
        {"newer", newer, gpu(), kINVALID, bits({Why::kVERSION_MISMATCH})},
        {"old driver", plain, old_driver, kINVALID, bits({Why::kOLD_CUDA_DRIVER})},
        {"old driver, damaged", damaged, old_driver, kINVALID,
         bits({Why::kOLD_CUDA_DRIVER, Why::kMALFORMED_ENGINE})},
        {"broken driver", plain, broken, kINVALID, bits({Why::kCUDA_ERROR})},
        {"an old GPU", plain, turing, kINVALID, bits({Why::kUNSUPPORTED_CC})},
    };
    for (const Case& c : cases) {
        api::Validity v = api::judge(c.engine, c.device);
        EXPECT_EQ(v.answer, c.answer) << c.name;
        EXPECT_EQ(v.diagnostics, c.diagnostics) << c.name;
    }
}

std::shared_ptr<const Engine> weighted(bool streams = false) {
    Graph g;
    Value x = g.add_input("x", parse_type("f32[100]"));
    g.add_output("y", ops::mul(g, x, ops::constant(g, Tensor::zeros(DType::F32, {100}))));
    Properties properties;
    if (streams) {
        properties[streaming_property] = "1";
    }
    return Engine::create(std::move(g), {}, std::move(properties));
}

class ValidityOf : public RuntimeTest {
protected:
    std::pair<EngineValidity, uint64_t> ask(const AlignedBytes& bytes, size_t size) const {
        uint64_t why = 99;
        EngineValidity v =
            runtime->getEngineValidity(bytes.data(), static_cast<int64_t>(size), &why);
        EXPECT_EQ(runtime->getEngineValidity(bytes.data(), static_cast<int64_t>(size), nullptr), v);
        return {v, why};
    }
    const std::pair<EngineValidity, uint64_t> valid{EngineValidity::kVALID, 0};
};

TEST_P(ValidityOf, KernelsForOtherGpus) {
    if (real::is_asked_for()) {
        GTEST_SKIP() << "for an emulated GPU of compute capability 9.0";
    }
    const KernelBinaries kernels = {{std::string(32, 'a'), "binary"}};
    auto of = [&](std::vector<int> capabilities) {
        return engine_bytes(*weighted()->with_kernels(kernels, capabilities));
    };
    std::pair<EngineValidity, uint64_t> suboptimal{
        GetParam() ? EngineValidity::kSUBOPTIMAL : EngineValidity::kVALID, 0};
    for (size_t size : {size_t{64}, size_t{100}, size_t{3000}}) { // the header suffices
        EXPECT_EQ(ask(engine_bytes(*weighted()), size), valid);
        EXPECT_EQ(ask(of({90}), size), valid);
        EXPECT_EQ(ask(of({80, 90}), size), valid);
        EXPECT_EQ(ask(of({80, 120}), size), suboptimal);
        EXPECT_EQ(ask(of({100}), size), suboptimal);
    }
    AlignedBytes bytes = of({80});
    EXPECT_EQ(ask(bytes, bytes.size()), suboptimal);
    // The flag survives loading and writing.
    auto again = Engine::load(bytes, nullptr);
    EXPECT_EQ(engine_bytes(*again), bytes);
    EXPECT_EQ(read_engine_header(bytes).capabilities, (std::vector<int>{80}));
}

TEST_P(ValidityOf, EveryByteThatIsGivenCounts) {
    AlignedBytes bytes = engine_bytes(*weighted());
    EXPECT_EQ(ask(bytes, bytes.size()), valid);
    for (size_t at = 0; at < bytes.size(); ++at) {
        AlignedBytes flipped = bytes;
        flipped[at] ^= static_cast<std::byte>(1U << (at % 8));
        EXPECT_EQ(ask(flipped, flipped.size()).first, EngineValidity::kINVALID) << at;
    }
    // The table, once all of it is present.
    AlignedBytes flipped = bytes;
    flipped[64 + 90] ^= std::byte{1};
    EXPECT_EQ(ask(flipped, 64), valid);
    EXPECT_EQ(ask(flipped, 64 + 5 * 88 - 1), valid);
    std::pair malformed{EngineValidity::kINVALID, bits({Why::kMALFORMED_ENGINE})};
    EXPECT_EQ(ask(flipped, 64 + 5 * 88), malformed);
    bytes.push_back(std::byte{0});
    EXPECT_EQ(ask(bytes, bytes.size()), malformed);
    EXPECT_EQ(ask(bytes, 63), malformed);
    EXPECT_EQ(ask(bytes, 0), malformed);
    EXPECT_EQ(runtime->getEngineValidity(bytes.data(), -1, nullptr), EngineValidity::kINVALID);
}

INSTANTIATE_TEST_SUITE_P(Devices, ValidityOf, testing::Bool(),
                         [](const auto& device) { return device.param ? "Gpu" : "Cpu"; });

TEST(Validity, MemoryOfTheDevice) {
    auto bit = static_cast<uint64_t>(Why::kINSUFFICIENT_GPU_MEMORY);
    std::unique_ptr<cuda::Gpu> gpu = fake::make_gpu();
    std::unique_ptr<Backend> backend = cuda::make_backend(*gpu);
    api::set_gpu(backend.get());
    std::unique_ptr<nvinfer1::IRuntime> runtime(nvinfer1::createInferRuntime(shared_logger()));
    auto lacks = [&](const AlignedBytes& bytes, size_t size) {
        uint64_t why = 0;
        runtime->getEngineValidity(bytes.data(), static_cast<int64_t>(size), &why);
        return (why & bit) != 0;
    };
    AlignedBytes bytes = engine_bytes(*weighted());
    AlignedBytes streaming = engine_bytes(*weighted(true));
    fake::reset(400);
    EXPECT_FALSE(lacks(bytes, bytes.size()));
    EXPECT_FALSE(lacks(bytes, 64 + 5 * 88)); // the table has the bytes of weights
    fake::reset(399);
    EXPECT_TRUE(lacks(bytes, bytes.size()));
    EXPECT_TRUE(lacks(bytes, 64 + 5 * 88));
    EXPECT_TRUE(lacks(bytes, 64));
    EXPECT_FALSE(lacks(streaming, streaming.size()));
    EXPECT_FALSE(lacks(streaming, 64));
    ASSERT_TRUE(setDevice(*runtime, Device::kCPU));
    EXPECT_FALSE(lacks(bytes, bytes.size()));
    fake::reset();
    api::set_gpu(nullptr);
}

/// Ends with the diagnostics bits as the exit code. Runs in a process of its own, whose loader
/// finds the driver in `folder`.
[[noreturn]] void answer_under() {
    Logger logger;
    std::unique_ptr<nvinfer1::IRuntime> runtime(nvinfer1::createInferRuntime(logger));
    AlignedBytes bytes = engine_bytes(*weighted());
    uint64_t why = 0;
    EngineValidity v = runtime->getEngineValidity(bytes.data(), 64, &why);
    uint64_t on_cpu = 0;
    bool ok = setDevice(*runtime, Device::kCPU) &&
              runtime->getEngineValidity(bytes.data(), 64, &on_cpu) == EngineValidity::kVALID;
    ::_exit(v == EngineValidity::kINVALID && ok && on_cpu == 0 ? static_cast<int>(why) : 120);
}

TEST(Validity, DriversThatCannotBeUsed) {
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
    for (auto [folder, bit] :
         {std::pair{OLD_CUDA, Why::kOLD_CUDA_DRIVER}, std::pair{FAILING_CUDA, Why::kCUDA_ERROR}}) {
        const char* was = std::getenv("LD_LIBRARY_PATH");
        std::string before = was == nullptr ? "" : was;
        ::setenv("LD_LIBRARY_PATH", folder, 1);
        EXPECT_EXIT(answer_under(), testing::ExitedWithCode(static_cast<int>(bit)), "");
        was == nullptr ? ::unsetenv("LD_LIBRARY_PATH")
                       : ::setenv("LD_LIBRARY_PATH", before.c_str(), 1);
    }
}

} // namespace
} // namespace ingot::test
