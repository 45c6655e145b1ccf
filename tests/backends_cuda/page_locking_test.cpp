// SPDX-License-Identifier: Apache-2.0
// Page-locked memory that is given back is kept for the next who asks.
#include "backends/cuda/driver/nvidia_gpu.h"
#include "backends_cuda/fake_driver.h"
#include "base/error.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace ingot::test {
namespace {

constexpr int64_t mebibyte = 1 << 20;

std::unique_ptr<cuda::Gpu> make_gpu() {
    return cuda::make_nvidia_gpu(fake::fake_driver(), fake::first_handle);
}

/// Copies something from the host, for which a stream locks pages.
void write(cuda::Stream& stream, std::byte* to) {
    int value = 1;
    stream.write(to, &value, sizeof value);
}

TEST(PageLocking, StreamsThatFollowEachOtherLockOnce) {
    fake::reset();
    {
        std::unique_ptr<cuda::Gpu> gpu = make_gpu();
        std::byte* memory = gpu->allocate(100);
        for (int i = 0; i < 3; ++i) {
            write(*gpu->create_stream(), memory);
            EXPECT_EQ(fake::alive(), "1 buffer, 1 host buffer") << i;
        }
        for (int i = 0; i < 3; ++i) { // two at a time
            std::unique_ptr<cuda::Stream> a = gpu->create_stream();
            std::unique_ptr<cuda::Stream> b = gpu->create_stream();
            write(*a, memory);
            write(*b, memory);
        }
        EXPECT_EQ(fake::alive(), "1 buffer, 2 host buffers");
        gpu->release(memory);
    }
    EXPECT_EQ(fake::alive(), "");
}

TEST(PageLocking, MemoryOfBeforeIsZeroedAgain) {
    fake::reset();
    std::unique_ptr<cuda::Gpu> gpu = make_gpu();
    constexpr int64_t bytes = 5000;
    std::byte* first = gpu->allocate_shared(bytes);
    std::fill_n(first, bytes, std::byte{7});
    gpu->release_shared(first);
    std::byte* second = gpu->allocate_shared(bytes);
    EXPECT_EQ(second, first);
    EXPECT_EQ(std::count(second, second + bytes, std::byte{0}), bytes);
    std::byte* other = gpu->allocate_shared(bytes);
    EXPECT_NE(other, second);
    gpu->release_shared(other);
    gpu->release_shared(second);
}

TEST(PageLocking, WhatIsKeptIsBounded) {
    fake::reset();
    std::unique_ptr<cuda::Gpu> gpu = make_gpu();
    std::vector<std::byte*> all;
    for (int i = 0; i < 5; ++i) {
        all.push_back(gpu->allocate_shared(20 * mebibyte));
    }
    for (std::byte* memory : all) {
        gpu->release_shared(memory);
    }
    EXPECT_EQ(fake::alive(), "3 host buffers"); // of at most 64 MiB
}

TEST(PageLocking, SizesThatNobodyAsksForAgainMakeWay) {
    fake::reset();
    std::unique_ptr<cuda::Gpu> gpu = make_gpu();
    for (int64_t odd : {30 * mebibyte + 1, 30 * mebibyte + 2}) {
        gpu->release_shared(gpu->allocate_shared(odd));
    }
    EXPECT_EQ(fake::alive(), "2 host buffers");
    std::byte* usual = gpu->allocate_shared(8 * mebibyte);
    gpu->release_shared(usual);
    EXPECT_EQ(fake::alive(), "2 host buffers"); // the first of 30 MiB is gone
    EXPECT_EQ(gpu->allocate_shared(8 * mebibyte), usual);
    gpu->release_shared(usual);
    gpu->release_shared(gpu->allocate_shared(65 * mebibyte)); // is not kept, nor drives others out
    EXPECT_EQ(fake::alive(), "2 host buffers");
    gpu.reset();
    EXPECT_EQ(fake::alive(), "");
}

TEST(PageLocking, ALackOfMemoryIsSaid) {
    fake::reset();
    std::unique_ptr<cuda::Gpu> gpu = make_gpu();
    std::unique_ptr<cuda::Stream> stream = gpu->create_stream();
    std::byte* memory = gpu->allocate(100);
    fake::fail_call(1, cuda::out_of_memory, false);
    try {
        write(*stream, memory);
        FAIL() << "expected an error";
    } catch (const Error& e) {
        EXPECT_EQ(e.code(), ErrorCode::OutOfMemory);
        EXPECT_STREQ(e.what(), "the system has no 8388608 bytes of page-locked memory left; close "
                               "other programs that use GPUs");
    }
    write(*stream, memory);
    gpu->release(memory);
}

} // namespace
} // namespace ingot::test
