// SPDX-License-Identifier: Apache-2.0
// The emulator itself: instructions against hand-written expectations, and what it must refuse.
#include "base/error.h"
#include "emulator/emulated_gpu.h"
#include "kernels/family.h"

#include <gtest/gtest.h>

#include <cstring>

namespace ingot::emulator {
namespace {

/// A kernel `k(out, in)` and the memory it works on.
class Machine {
public:
    explicit Machine(const std::string& text, int cc = 90, int64_t shared = 4096) : gpu_(cc) {
        std::string binary = gpu_.compile(std::string(kernels::device_file("ptx")) + text);
        function_ = gpu_.load(binary, "k", shared);
        shape_.shared = static_cast<uint32_t>(shared);
        shape_.block = 32;
    }
    EmulatedGpu& gpu() { return gpu_; }
    cuda::LaunchShape& shape() { return shape_; }

    template <class Out, class In>
    std::vector<Out> run(size_t count, const std::vector<In>& in) {
        std::byte* from = gpu_.allocate(static_cast<int64_t>(in.size() * sizeof(In)));
        std::byte* to = gpu_.allocate(static_cast<int64_t>(count * sizeof(Out)));
        auto stream = gpu_.create_stream();
        stream->write(from, in.data(), in.size() * sizeof(In));
        void* parameters[] = {&to, &from};
        stream->launch(*function_, shape_, parameters);
        std::vector<Out> out(count);
        stream->read(out.data(), to, count * sizeof(Out));
        gpu_.release(from);
        gpu_.release(to);
        EXPECT_EQ(gpu_.problems(), "");
        return out;
    }
    std::string error() {
        try {
            run<uint32_t>(64, std::vector<uint32_t>(64));
        } catch (const Error& e) {
            return e.what();
        }
        return {};
    }

private:
    EmulatedGpu gpu_;
    cuda::LaunchShape shape_;
    std::shared_ptr<const cuda::Function> function_;
};

const std::string begin = "KERNEL void __launch_bounds__(256) k(u32* out, const u32* in) {\n"
                          "    grid_wait();\n    u32 t = threadIdx.x;\n";

TEST(Emulator, ExchangesBetweenLanes) {
    std::vector<uint32_t> in(32);
    for (uint32_t i = 0; i < 32; ++i) {
        in[i] = 100 + i;
    }
    auto out = Machine(begin + "out[t] = shfl_xor(in[t], 5);\n out[32 + t] = shfl(in[t], 33);\n"
                               "out[64 + t] = shfl_up(in[t], 3);\n"
                               "out[96 + t] = ballot(t % 3 == 0);\n}")
                   .run<uint32_t>(128, in);
    for (uint32_t i = 0; i < 32; ++i) {
        EXPECT_EQ(out[i], 100 + (i ^ 5U));
        EXPECT_EQ(out[32 + i], 101U);
        EXPECT_EQ(out[64 + i], i < 3 ? 100 + i : 100 + i - 3);
        EXPECT_EQ(out[96 + i], 0x49249249U);
    }
}

} // namespace
} // namespace ingot::emulator
