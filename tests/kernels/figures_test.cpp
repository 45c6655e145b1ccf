// SPDX-License-Identifier: Apache-2.0
#include "kernels/figures.h"

#include <gtest/gtest.h>

namespace ingot::kernels {
namespace {

TEST(Figures, BlocksOfAnSmAreLimitedByThreadsSharedMemoryAndRegisters) {
    const Arch& h = arch_of(90);
    EXPECT_EQ(blocks_per_sm(h, 256, 0, 0), 8) << "2048 threads";
    EXPECT_EQ(blocks_per_sm(h, 32, 0, 0), 32) << "blocks";
    EXPECT_EQ(blocks_per_sm(h, 128, 0, 100 * 1024), 2) << "228 KiB, one KiB of each block's own";
    EXPECT_EQ(blocks_per_sm(h, 256, 255, 0), 1) << "255 registers of 8 warps";
    EXPECT_EQ(blocks_per_sm(h, 256, 64, 0), 4) << "64 * 256 of 65536";
    EXPECT_EQ(blocks_per_sm(h, 128, 33, 0), 12) << "33 registers of a warp take 5 * 256";
    EXPECT_EQ(blocks_per_sm(arch_of(86), 32, 0, 0), 16);
    EXPECT_EQ(blocks_per_sm(arch_of(89), 32, 0, 0), 24);
    EXPECT_EQ(blocks_per_sm(arch_of(89), 1024, 0, 0), 1);
    EXPECT_EQ(blocks_per_sm(h, 1024, 128, 0), 1) << "never none";
}

TEST(Figures, PeaksFollowTheTableOfGpus) {
    const Arch& h = arch_of(90);
    plan::DeviceFigures f = figures_of(h, true);
    double f16 = 132 * 1.7e9 * 4096;
    EXPECT_DOUBLE_EQ(f.peak(DType::F16), f16);
    EXPECT_DOUBLE_EQ(f.peak(DType::BF16), f16);
    EXPECT_DOUBLE_EQ(f.peak(DType::F32), f16 / 2) << "TF32";
    EXPECT_DOUBLE_EQ(f.peak(DType::I8), 2 * f16);
    EXPECT_DOUBLE_EQ(f.peak(DType::F8E4M3), 2 * f16);
    EXPECT_DOUBLE_EQ(f.scalar_flops, 132 * 1.7e9 * 256);
    EXPECT_DOUBLE_EQ(figures_of(h, false).peak(DType::F32), f.scalar_flops);
    EXPECT_DOUBLE_EQ(figures_of(arch_of(80), true).peak(DType::F8E4M3),
                     figures_of(arch_of(80), true).peak(DType::F16))
        << "no units of FP8";
}

} // namespace
} // namespace ingot::kernels
