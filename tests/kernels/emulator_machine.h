// SPDX-License-Identifier: Apache-2.0
// A kernel `k(out, in)` written in a test, and the emulated GPU that runs it.
#pragma once

#include "base/error.h"
#include "emulator/emulated_gpu.h"
#include "kernels/family.h"

#include <gtest/gtest.h>

namespace ingot::emulator {

class Machine {
public:
    explicit Machine(const std::string& body, uint32_t threads = 32, uint32_t shared = 0,
                     int cc = 90, const std::string& before = {})
        : gpu_(cc), text_(std::string(kernels::device_file("ptx")) + before +
                          "KERNEL void __launch_bounds__(1024) k(u32* out, const u32* in) {\n"
                          "u32 t = threadIdx.x;\n" +
                          body + "\n}\n") {
        function_ = gpu_.load(gpu_.compile(text_), "k", shared);
        shape.shared = shared;
        shape.block = threads;
        shape.overlap = true;
    }

    EmulatedGpu& gpu() { return gpu_; }
    cuda::LaunchShape shape;
    bool hold = false; // `in` holds activations

    /// `count` words of output.
    std::vector<uint32_t> run(size_t count, const std::vector<uint32_t>& in = {0}) {
        std::byte* from = gpu_.allocate(static_cast<int64_t>(in.size() * 4));
        std::byte* to = gpu_.allocate(static_cast<int64_t>(count * 4));
        auto stream = gpu_.create_stream();
        stream->write(from, in.data(), in.size() * 4);
        if (hold) {
            gpu_.hold_until_wait(from);
        }
        void* parameters[] = {&to, &from};
        stream->launch(*function_, shape, parameters);
        std::vector<uint32_t> out(count);
        stream->read(out.data(), to, count * 4);
        gpu_.release(from);
        gpu_.release(to);
        EXPECT_EQ(gpu_.problems(), "");
        return out;
    }
    /// The message of a run that must fail.
    std::string error(size_t count = 64) {
        try {
            run(count, std::vector<uint32_t>(64));
        } catch (const Error& e) {
            return e.what();
        }
        return "nothing failed";
    }

private:
    EmulatedGpu gpu_;
    std::string text_;
    std::shared_ptr<const cuda::Function> function_;
};

inline void expect_has(const std::string& text, std::string_view part) {
    EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in: " << text;
}

inline std::vector<uint32_t> numbers(uint32_t count, uint32_t first = 0) {
    std::vector<uint32_t> out(count);
    for (uint32_t i = 0; i < count; ++i) {
        out[i] = first + i;
    }
    return out;
}

} // namespace ingot::emulator
