// SPDX-License-Identifier: Apache-2.0
// Which launches let the next one's blocks start before their own wait, and how they say so.
#include "backends/cuda/run/early_release.h"

#include <gtest/gtest.h>

namespace ingot::test {
namespace {

kernels::Launch launch(int64_t blocks, int64_t shared, int cluster = 1, bool alone = false) {
    kernels::Launch l;
    l.grid = {blocks, 1, 1};
    l.shared = shared;
    l.cluster = cluster;
    l.alone = alone;
    return l;
}

bool says_early(int64_t bytes) {
    return (bytes & 16) != 0;
}

TEST(EarlyRelease, ClustersLoneBlocksAndFullDevicesAreLate) {
    const kernels::Arch arch = kernels::arch_of(90);
    const int64_t half = arch.shared_of_a_lone_block();
    EXPECT_TRUE(cuda::releases_early(launch(1000, 0), arch));
    EXPECT_TRUE(cuda::releases_early(launch(1000, half - 1), arch)) << "two blocks an SM";
    EXPECT_TRUE(cuda::releases_early(launch(arch.sms / 2, 200 << 10), arch)) << "half of the SMs";
    EXPECT_FALSE(cuda::releases_early(launch(arch.sms / 2 + 1, half), arch));
    EXPECT_FALSE(cuda::releases_early(launch(4, 0, 2), arch)) << "clusters";
    EXPECT_FALSE(cuda::releases_early(launch(4, half, 1, true), arch)) << "alone";
    kernels::Launch wide = launch(1, half);
    wide.grid = {4, 12, 2};
    EXPECT_FALSE(cuda::releases_early(wide, arch)) << "96 blocks";
    EXPECT_FALSE(cuda::releases_early(launch(4, 0), kernels::arch_of(80)))
        << "no dependent launches";
}

TEST(EarlyRelease, IsSaidByTheBytesOfSharedMemory) {
    for (int cc : {80, 90, 100, 120}) {
        const kernels::Arch arch = kernels::arch_of(cc);
        for (int64_t asked : {int64_t{0}, int64_t{16}, int64_t{27284}, int64_t{50000},
                              arch.shared_per_block - 48, arch.shared_per_block}) {
            for (bool alone : {false, true}) {
                kernels::Launch l = launch(4, asked, 1, alone);
                int64_t bytes = cuda::shared_with_release(l, arch);
                SCOPED_TRACE(testing::Message() << cc << ", " << asked << ", " << bytes);
                EXPECT_GE(bytes, asked);
                EXPECT_LE(bytes, arch.shared_per_block);
                EXPECT_LE(bytes, cuda::most_shared_with_release(asked, arch));
                EXPECT_LE(bytes - asked, 47);
                if (cc >= 90) {
                    bool room = asked <= arch.shared_per_block - 32;
                    EXPECT_EQ(says_early(bytes), !alone && room);
                } else {
                    EXPECT_EQ(bytes, asked);
                }
            }
        }
    }
}

} // namespace
} // namespace ingot::test
