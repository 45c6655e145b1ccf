// SPDX-License-Identifier: Apache-2.0
// The builder's log lines on the memory of an engine's contexts.
#include "api/effects.h"
#include "api/tensorrt/runtime/place.h"
#include "backends/cuda/backend.h"
#include "backends_cuda/fake_driver.h"

#include <array>
#include <regex>

namespace ingot::test {

namespace {

/// The number of the one line "<what>: <number> bytes" at kINFO; -1 where there is none.
int64_t bytes_of(const Lines& lines, const std::string& what) {
    int64_t found = -1;
    for (const auto& [severity, line] : lines.all) {
        std::smatch m;
        if (severity == nv::ILogger::Severity::kINFO &&
            std::regex_match(line, m, std::regex(what + ": (\\d+) bytes"))) {
            EXPECT_EQ(found, -1) << what << " is said twice";
            found = std::stoll(m[1]);
        }
    }
    return found;
}

TEST(BuilderMemory, IsLoggedWithoutALimit) {
    for (bool limited : {false, true}) {
        Scene s;
        if (limited) {
            s.config->setMemoryPoolLimit(nv::MemoryPoolType::kWORKSPACE, 1U << 30U);
        }
        ASSERT_NE(s.build(), nullptr);
        std::array<int64_t, 4> built{};
        const std::array<std::string, 4> names = {"Total Host Persistent Memory",
                                                  "Total Device Persistent Memory",
                                                  "Max Scratch Memory", "Total Activation Memory"};
        for (size_t i = 0; i < names.size(); ++i) {
            built[i] = bytes_of(s.lines, names[i]);
            EXPECT_GE(built[i], 0) << names[i];
        }
        EXPECT_EQ(built[1], 0) << "a CPU has no memory of a device";
        s.load();
        s.lines.all.clear();
        s.context.reset(s.engine->createExecutionContext());
        EXPECT_EQ(built[2], bytes_of(s.lines, names[2])) << "as the context says";
        EXPECT_LE(built[3], bytes_of(s.lines, names[3])) << "which rounds to its allocations";
    }
}

TEST(BuilderMemory, IsNotLoggedOnRequest) {
    auto logged = [](Scene& s) {
        EXPECT_NE(s.build(), nullptr);
        bool any = bytes_of(s.lines, "Total Activation Memory") >= 0;
        s.lines.all.clear();
        return any;
    };
    Scene s;
    EXPECT_TRUE(ingot::setMemoryLog(*s.config, false));
    EXPECT_FALSE(logged(s));
    s.config->setMemoryPoolLimit(nv::MemoryPoolType::kWORKSPACE, 1U << 30U);
    EXPECT_TRUE(logged(s)) << "a limit is checked in any case";
    s.config->reset();
    EXPECT_TRUE(logged(s));
    EXPECT_FALSE(ingotSetMemoryLog(nullptr, true));
}

/// The same lines as a context on the GPU logs, without a limit, and without a kernel compiled.
TEST(BuilderMemory, IsLoggedForAGpu) {
    fake::reset();
    std::unique_ptr<cuda::Gpu> gpu = fake::make_gpu();
    std::unique_ptr<Backend> backend = cuda::make_backend(*gpu, 1);
    api::set_gpu(backend.get());
    {
        Scene s;
        ingot::setDevice(*s.config, Device::kGPU);
        ingot::setDevice(*s.runtime, Device::kGPU);
        ASSERT_NE(s.build(), nullptr);
        EXPECT_EQ(cuda::count_programs(*backend).requested, 0U);
        std::array<int64_t, 3> built{};
        const std::array<std::string, 3> names = {"Total Host Persistent Memory",
                                                  "Max Scratch Memory", "Total Activation Memory"};
        for (size_t i = 0; i < names.size(); ++i) {
            built[i] = bytes_of(s.lines, names[i]);
            EXPECT_GE(built[i], 0) << names[i];
        }
        EXPECT_GE(bytes_of(s.lines, "Total Device Persistent Memory"), 0);
        s.load();
        s.lines.all.clear();
        s.context.reset(s.engine->createExecutionContext());
        EXPECT_EQ(built[0], bytes_of(s.lines, names[0]));
        EXPECT_EQ(built[1], bytes_of(s.lines, names[1])) << "as the context says";
        EXPECT_LE(built[2], bytes_of(s.lines, names[2])) << "which rounds to its allocations";
    }
    api::set_gpu(nullptr);
}

} // namespace

} // namespace ingot::test
