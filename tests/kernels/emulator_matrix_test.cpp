// SPDX-License-Identifier: Apache-2.0
// The emulator's matrix instructions of warps, clusters and their barriers. Fragments are indexed
// here as drawn in the PTX manual.
#include "base/text.h"
#include "kernels/emulator_machine.h"

#include <bit>
#include <cstring>
#include <random>

namespace ingot::emulator {
namespace {

TEST(EmulatorMatrix, LoadsMatricesFromSharedMemory) {
    // Element (row, column) of matrix i is 100 * i + 10 * row + column.
    Machine m(
        "SHARED(raw); u16* s = (u16*)raw; grid_wait();\n"
        "for (u32 e = t; e < 256; e += 32) s[e] = (u16)(e / 64 * 100 + e % 64 / 8 * 10 + e % 8);\n"
        "sync(); u32 r[4]; ldmatrix4(r, smem_addr(raw) + t * 16);\n"
        "for (int i = 0; i < 4; i++) out[i * 32 + t] = r[i];\n"
        "ldmatrix4_trans(r, smem_addr(raw) + t * 16);\n"
        "for (int i = 0; i < 4; i++) out[128 + i * 32 + t] = r[i];",
        32, 512);
    auto out = m.run(256);
    for (uint32_t i = 0; i < 4; ++i) {
        for (uint32_t lane = 0; lane < 32; ++lane) {
            uint32_t row = lane / 4;
            uint32_t column = lane % 4 * 2;
            uint32_t first = 100 * i + 10 * row + column;
            EXPECT_EQ(out[i * 32 + lane], first | (first + 1) << 16);
            first = 100 * i + 10 * column + row;
            EXPECT_EQ(out[128 + i * 32 + lane], first | (first + 10) << 16);
        }
    }
}

TEST(EmulatorMatrix, StoresMatricesToSharedMemory) {
    Machine m("SHARED(raw); grid_wait(); u32 r[4];\n"
              "for (u32 i = 0; i < 4; i++) { u32 e = i * 100 + t / 4 * 10 + t % 4 * 2; r[i] = e | "
              "(e + 1) << 16; }\n"
              "stmatrix4(smem_addr(raw) + t * 16, r[0], r[1], r[2], r[3]); sync();\n"
              "for (u32 e = t; e < 128; e += 32) out[e] = ((u32*)raw)[e];",
              32, 512);
    auto out = m.run(128);
    for (uint32_t e = 0; e < 256; ++e) {
        uint32_t got = out[e / 2] >> (e % 2 * 16) & 0xFFFFU;
        EXPECT_EQ(got, e / 64 * 100 + e % 64 / 8 * 10 + e % 8);
    }
}

struct MmaType {
    const char* function;
    DType dtype;
    DType sum;
};

/// C = C + A * B with A 16 x K and B 8 x K (its columns), eight words a row.
TEST(EmulatorMatrix, MultipliesFragments) {
    const MmaType types[] = {{"mma_f16", DType::F16, DType::F32},
                             {"mma_bf16", DType::BF16, DType::F32},
                             {"mma_tf32", DType::F32, DType::F32},
                             {"mma_e4m3", DType::F8E4M3, DType::F32},
                             {"mma_s8", DType::I8, DType::I32}};
    for (const MmaType& type : types) {
        SCOPED_TRACE(type.function);
        bool whole = type.sum == DType::I32;
        Machine m(
            str("grid_wait(); u32 g = t / 4, q = t % 4;\nconst u32* b = in + 128;\n"
                "u32 a[4] = {in[g * 8 + q], in[(g + 8) * 8 + q], in[g * 8 + q + 4], in[(g + 8) "
                "* 8 + q + 4]};\n",
                whole ? "i32" : "float", " c[4] = {1, 2, 3, 4};\n", type.function,
                "(c, a, b[g * 8 + q], b[g * 8 + q + 4]);\n"
                "for (u32 i = 0; i < 4; i++) out[(g + i / 2 * 8) * 8 + q * 2 + i % 2] = ",
                whole ? "(u32)c[i];" : "__float_as_uint(c[i]);"));
        int64_t depth = 256 / bit_width(type.dtype);
        Tensor a = Tensor::empty(type.dtype, {24, depth});
        std::mt19937 random(5);
        for (int64_t i = 0; i < a.count(); ++i) {
            a.set_f64(i, static_cast<double>(random() % 15) - 7);
        }
        std::vector<uint32_t> in(192);
        std::memcpy(in.data(), a.bytes().data(), 768);
        auto out = m.run(128, in);
        for (int64_t row = 0; row < 16; ++row) {
            for (int64_t column = 0; column < 8; ++column) {
                double want = 1 + static_cast<double>(column % 2 + row / 8 * 2);
                for (int64_t k = 0; k < depth; ++k) {
                    want += a.get_f64(row * depth + k) * a.get_f64((16 + column) * depth + k);
                }
                uint32_t bits = out[static_cast<size_t>(row * 8 + column)];
                double got = whole ? static_cast<double>(static_cast<int32_t>(bits))
                                   : double{std::bit_cast<float>(bits)};
                EXPECT_EQ(got, want) << row << ' ' << column;
            }
        }
    }
}

TEST(EmulatorMatrix, Tf32IgnoresLowBits) {
    Machine m("grid_wait(); u32 a[4] = {0x3F801FFFu, 0, 0, 0}; float c[4] = {};\n"
              "mma_tf32(c, a, 0x3F800000u, 0); out[t] = __float_as_uint(c[0]);");
    EXPECT_EQ(m.run(32)[0], std::bit_cast<uint32_t>(4.0F));
}

TEST(EmulatorMatrix, ClustersReadEachOther) {
    Machine m("SHARED(raw); __shared__ u32 own[32]; float* s = (float*)raw; grid_wait();\n"
              "s[t] = (float)(100 * cluster_rank() + t); own[t] = blockIdx.x; cluster_sync();\n"
              "float v[4]; ld_cluster4(v, smem_addr(raw) + t / 4 * 16, (cluster_rank() + 1) % 2);\n"
              "out[blockIdx.x * 32 + t] = (u32)v[t % 4] * 10 + own[31 - t]; cluster_sync();",
              32, 128);
    m.shape.grid = {4, 1, 1};
    m.shape.cluster = 2;
    auto out = m.run(128);
    for (uint32_t i = 0; i < 128; ++i) {
        uint32_t block = i / 32;
        EXPECT_EQ(out[i], ((block + 1) % 2 * 100 + i % 32) * 10 + block);
    }
    Machine outside("SHARED(s); float v[4]; grid_wait(); ld_cluster4(v, smem_addr(s), 1);\n"
                    "out[t] = (u32)v[0];",
                    32, 128);
    expect_has(outside.error(), "names block 1 of a cluster of 1");
    expect_has(Machine("grid_wait(); cluster_sync();", 32, 0, 80).error(), "needs compute");
}

/// Clusters of two blocks.
struct Pairs : Machine {
    Pairs(const std::string& body, uint32_t blocks) : Machine("SHARED(raw);\n" + body, 32, 520) {
        shape.grid = {blocks, 1, 1};
        shape.cluster = 2;
    }
};

TEST(EmulatorMatrix, BlocksSendToEachOther) {
    const std::string wait =
        "u32 s = smem_addr(raw), bar = s + 512, other = cluster_rank() ^ 1;\n"
        "if (t == 0) { mbar_init(bar, 1); mbar_init_fence(); } sync();\n"
        "cluster_arrive_relaxed(); if (t == 0) mbar_expect(bar, 512); grid_wait();\n"
        "cluster_wait();\n";
    const std::string send =
        "float x = 100.0f * cluster_rank() + t;\n"
        "u32 to = cluster_address(s + t * 16, other), there = cluster_address(bar, other);\n"
        "float v[4] = {x, x + 0.25f, x + 0.5f, x + 0.25f}; st_async4(to, v, there);\n";
    auto out = Pairs(wait + send +
                         "mbar_wait_cluster(bar, 0); float* got = (float*)raw + t * 4;\n"
                         "out[blockIdx.x * 32 + t] = (u32)(got[0] + got[1] + got[2] + got[3]);",
                     4)
                   .run(128);
    for (uint32_t i = 0; i < 128; ++i) {
        EXPECT_EQ(out[i], 4 * ((i / 32 + 1) % 2 * 100 + i % 32) + 1);
    }
    auto error = [&](const std::string& rest) { return Pairs(wait + rest, 2).error(); };
    auto send_to = [](const char* to, const char* there) {
        return str("float v[4] = {}; st_async4(", to, ", v, ", there, ");");
    };
    expect_has(error(send + "cluster_sync();"), "ended before what others sent it had arrived");
    expect_has(error("if (cluster_rank()) return; for (int i = 0; i < 9; i++) sync();\n" + send),
               "st_async to block 1 of the cluster, which has ended");
    expect_has(error("if (t < 31) {" + send + "} mbar_wait(bar, 0);"), "in mbar_wait at byte 512");
    expect_has(error(send_to("cluster_address(s, 1)", "cluster_address(bar, 0)")),
               "st_async whose mbarrier is not in the block that it stores to");
    expect_has(error(send_to("s", "bar")), "st_async to what is no cluster_address");
    expect_has(error(send_to("cluster_address(s + 8, 1)", "cluster_address(bar, 1)")),
               "st_async of 16 bytes at byte 8 of shared memory, which is not aligned");
    expect_has(error(send_to("cluster_address(s, 1)", "cluster_address(s, 1)")),
               "an mbarrier at byte 0 that was not initialised");
    expect_has(error(send_to("cluster_address(s, 2)", "cluster_address(bar, 2)")),
               "cluster_address names block 2 of a cluster of 2");
}

TEST(EmulatorMatrix, ClusterBarriersHaveTwoHalves) {
    // Threads wait in an order of their own.
    auto out = Pairs("float* s = (float*)raw; grid_wait(); s[t] = (float)blockIdx.x;\n"
                     "cluster_arrive(); if (t < 16) cluster_wait(); sync();\n"
                     "if (t >= 16) cluster_wait(); float v[4];\n"
                     "ld_cluster4(v, smem_addr(raw), blockIdx.x ^ 1);\n"
                     "out[blockIdx.x * 32 + t] = (u32)v[0]; cluster_sync();",
                     2)
                   .run(64);
    EXPECT_EQ(out[0], 1U);
    EXPECT_EQ(out[63], 0U);
    auto error = [](const std::string& body) { return Pairs("grid_wait(); " + body, 2).error(); };
    expect_has(error("cluster_arrive(); cluster_arrive();"),
               "cluster_arrive after a cluster_arrive without cluster_wait");
    expect_has(error("cluster_wait();"), "cluster_wait without cluster_arrive");
    expect_has(error("if (blockIdx.x) return; cluster_arrive(); cluster_wait();"),
               "32 threads in cluster_wait");
}

TEST(EmulatorMatrix, ReportsMbarrierMistakes) {
    const std::string start = "SHARED(s); u32 bar = smem_addr(s); grid_wait();\n";
    Machine unknown(start + "mbar_arrive(bar);", 32, 64);
    expect_has(unknown.error(), "an mbarrier at byte 0 that was not initialised");
    Machine many(
        start + "if (t) return; mbar_init(bar, 2); mbar_init(bar + 8, 1); mbar_expect(bar, 16);\n"
                "mbar_arrive(bar); mbar_arrive(bar);",
        32, 64);
    expect_has(many.error(), "more arrivals at an mbarrier than it was initialised for");
    Machine stuck(start + "if (t == 0) mbar_init(bar, 2); sync(); if (t == 0) mbar_arrive(bar);\n"
                          "mbar_wait(bar, 0);",
                  32, 64);
    expect_has(stuck.error(), "32 threads in mbar_wait at byte 0");
    expect_has(Machine(start + "mbar_init(bar, 1);", 1, 64, 80).error(), "needs compute");
}

TEST(EmulatorMatrix, MbarrierPhasesAlternate) {
    // A producer warp and a consumer warp share one slot.
    Machine m(
        "SHARED(raw); u32* slot = (u32*)(raw + 64); u32 full = smem_addr(raw), empty = full + 8;\n"
        "if (t == 0) { mbar_init(full, 1); mbar_init(empty, 32); mbar_init_fence(); }\n"
        "sync(); grid_wait();\n"
        "if (t == 32) for (u32 i = 0; i < 6; i++) {\n"
        "  mbar_wait(empty, (i & 1) ^ 1); *slot = i * i; mbar_arrive(full); }\n"
        "if (t < 32) for (u32 i = 0; i < 6; i++) {\n"
        "  mbar_wait(full, i & 1); if (t == 31) out[i] = *slot; mbar_arrive(empty); }",
        64, 128);
    EXPECT_EQ(m.run(6), (std::vector<uint32_t>{0, 1, 4, 9, 16, 25}));
}

} // namespace
} // namespace ingot::emulator
