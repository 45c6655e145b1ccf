// SPDX-License-Identifier: Apache-2.0
#include "backends_cuda/fake_driver.h"

#include <gtest/gtest.h>

#include <array>
#include <thread>
#include <vector>

namespace ingot::test {
namespace {

TEST(FakeDriver, ThreadsLoadModulesWhileWorkIsTaken) {
    fake::reset();
    fake::set_current(-1);
    fake::take_work();
    constexpr int per_thread = 2000;
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
        threads.emplace_back([] {
            const cuda::Driver& d = fake::fake_driver();
            std::array<std::byte, 16> bytes{};
            for (int i = 0; i < per_thread; ++i) {
                cuda::CUmodule module = nullptr;
                cuda::CUdeviceptr memory{};
                d.module_load(&module, nullptr);
                d.mem_alloc(&memory, bytes.size());
                d.copy_to_device(memory, bytes.data(), bytes.size(), nullptr);
                d.mem_free(memory);
                d.module_unload(module);
            }
        });
    }
    size_t taken = 0;
    for (int i = 0; i < per_thread; ++i) {
        taken += fake::take_work().size();
    }
    for (std::thread& t : threads) {
        t.join();
    }
    EXPECT_EQ(taken + fake::take_work().size(), 3U * per_thread); // the uploads
    EXPECT_EQ(fake::alive(), "");
}

} // namespace
} // namespace ingot::test
