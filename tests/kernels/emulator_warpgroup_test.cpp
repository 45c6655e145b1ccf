// SPDX-License-Identifier: Apache-2.0
// The emulator's TMA, and the matrix instructions of warpgroups, whose operands TMA brings.
#include "base/text.h"
#include "kernels/emulator_machine.h"

#include <bit>
#include <cstring>
#include <random>

namespace ingot::emulator {
namespace {

/// A kernel `k(map_a, map_b, out)` over two 16-bit matrices.
struct EngineCase {
    EmulatedGpu gpu{90};
    std::unique_ptr<cuda::Stream> stream = gpu.create_stream();
    std::vector<std::byte*> memory;

    ~EngineCase() {
        for (std::byte* p : memory) {
            gpu.release(p);
        }
        EXPECT_EQ(gpu.problems(), "");
    }
    std::byte* upload(const void* data, size_t bytes) {
        memory.push_back(gpu.allocate(static_cast<int64_t>(bytes)));
        stream->write(memory.back(), data, bytes);
        return memory.back();
    }
    std::vector<uint32_t> run(const std::string& body, const kernels::TensorMap (&maps)[2],
                              std::byte* (&bases)[2], uint32_t threads, uint32_t shared,
                              size_t count, const std::string& uses = {}) {
        struct alignas(64) Encoded {
            std::byte bytes[128];
        } encoded[2];
        gpu.encode(maps[0], bases[0], encoded[0].bytes);
        gpu.encode(maps[1], bases[1], encoded[1].bytes);
        auto f = gpu.load(
            gpu.compile(std::string(kernels::device_file("ptx")) + uses +
                        "KERNEL void __launch_bounds__(256) k(const __grid_constant__ TensorMap a, "
                        "const __grid_constant__ TensorMap b, u32* out) {\n"
                        "SHARED(raw); u32 s = smem_addr(raw), bar = s, t = threadIdx.x;\n"
                        "if (t == 0) { prefetch_map(&a); mbar_init(bar, 1); mbar_init_fence(); }\n"
                        "sync(); grid_wait();\n" +
                        body + "\n}\n"),
            "k", shared);
        std::byte* out = gpu.allocate(static_cast<int64_t>(count * 4));
        memory.push_back(out);
        cuda::LaunchShape shape;
        shape.block = threads;
        shape.shared = shared;
        void* parameters[] = {&encoded[0], &encoded[1], &out};
        stream->launch(*f, shape, parameters);
        std::vector<uint32_t> result(count);
        stream->read(result.data(), out, count * 4);
        return result;
    }
};

kernels::TensorMap map16(uint64_t columns, uint64_t rows, uint64_t pitch, uint32_t box_columns,
                         uint32_t box_rows, bool swizzle) {
    kernels::TensorMap m;
    m.sizes = {columns, rows, 0, 0, 0};
    m.strides = {pitch, 0, 0, 0};
    m.box = {box_columns, box_rows, 0, 0, 0};
    m.swizzle128 = swizzle;
    return m;
}

TEST(EmulatorWarpgroup, TensorLoadsSwizzleAndFillWithZeros) {
    EngineCase c;
    std::vector<uint16_t> data(20 * 72); // 20 rows of 70, pitch 72
    for (size_t i = 0; i < data.size(); ++i) {
        data[i] = static_cast<uint16_t>(i + 1);
    }
    std::byte* base = c.upload(data.data(), data.size() * 2);
    kernels::TensorMap maps[2] = {map16(70, 20, 144, 64, 8, true), map16(70, 20, 144, 8, 4, false)};
    std::byte* bases[2] = {base, base};
    auto out =
        c.run("if (t == 0) { mbar_expect(bar, 1024 + 64);\n"
              "  tma_load2(s + 1024, &a, 32, 16, bar); tma_load2(s + 2048, &b, -4, 18, bar); }\n"
              "out[512 + t] = ((u32*)(raw + 1024))[t]; sync();\n" // not there yet
              "mbar_wait(bar, 0); for (u32 i = t; i < 256 + 16; i += 128) out[i] = ((u32*)(raw + "
              "1024))[i];",
              maps, bases, 128, 4096, 1024);
    auto at = [&out](size_t byte) {
        return static_cast<uint16_t>(out[byte / 4] >> (byte % 4 * 8));
    };
    for (size_t row = 0; row < 8; ++row) {
        for (size_t column = 0; column < 64; ++column) {
            size_t chunk = (column / 8) ^ row; // 16-byte chunks, exchanged by the row
            size_t y = 16 + row;
            size_t x = 32 + column;
            EXPECT_EQ(at(row * 128 + chunk * 16 + column % 8 * 2),
                      y < 20 && x < 70 ? data[y * 72 + x] : 0)
                << row << ' ' << column;
        }
    }
    for (size_t i = 0; i < 32; ++i) {
        size_t y = 18 + i / 8;
        size_t x = i % 8;
        EXPECT_EQ(at(1024 + i * 2), y < 20 && x >= 4 ? data[y * 72 + x - 4] : 0);
    }
    EXPECT_EQ(out[512], ~0U);
}

TEST(EmulatorWarpgroup, TensorLoadsRoundSinglesToTf32) {
    EngineCase c;
    // Below, at and above the middle of two neighbours, and values without neighbours.
    const uint32_t given[8] = {0x3F800FFF, 0x3F801000, 0x3F801001, 0x3F803000,
                               0xBF801001, 0x7F800000, 0x7FC00123, 0x00000001};
    const uint32_t rounded[8] = {0x3F800000, 0x3F800000, 0x3F802000, 0x3F804000,
                                 0xBF802000, 0x7F800000, 0x7FC00123, 0x00000000};
    kernels::TensorMap plain = map16(8, 1, 32, 8, 1, false);
    plain.dtype = DType::F32;
    kernels::TensorMap tf32 = plain;
    tf32.tf32 = true;
    kernels::TensorMap maps[2] = {plain, tf32};
    std::byte* base = c.upload(given, sizeof given);
    std::byte* bases[2] = {base, base};
    auto out = c.run("if (t == 0) { mbar_expect(bar, 64);\n"
                     "  tma_load2(s + 128, &a, 0, 0, bar); tma_load2(s + 256, &b, 0, 0, bar); }\n"
                     "sync(); mbar_wait(bar, 0);\n"
                     "if (t < 8) { out[t] = ((u32*)(raw + 128))[t]; out[8 + t] = ((u32*)(raw + "
                     "256))[t]; }",
                     maps, bases, 32, 1024, 16);
    for (size_t i = 0; i < 8; ++i) {
        EXPECT_EQ(out[i], given[i]);
        EXPECT_EQ(out[8 + i], rounded[i]);
    }
}

TEST(EmulatorWarpgroup, TensorStoresHappenWhenWaitedFor) {
    EngineCase c;
    std::vector<uint16_t> zeros(8 * 16, 0);
    std::byte* base = c.upload(zeros.data(), 256);
    kernels::TensorMap maps[2] = {map16(12, 6, 32, 16, 8, false), map16(12, 6, 32, 16, 8, false)};
    std::byte* bases[2] = {base, base};
    const std::string fill =
        "for (u32 i = t; i < 64; i += 32) ((u32*)(raw + 128))[i] = (2 * i + 1) | (2 * i + 2) << "
        "16;\n"
        "async_fence(); sync(); if (t) return; tma_store2(&a, 0, 0, s + 128); bulk_commit();\n";
    c.run(fill + "bulk_wait_all(); out[0] = 1;", maps, bases, 32, 1024, 1);
    std::vector<uint16_t> got(128);
    c.stream->read(got.data(), base, 256);
    for (size_t i = 0; i < 128; ++i) {
        EXPECT_EQ(got[i], i % 16 < 12 && i / 16 < 6 ? i + 1 : 0);
    }
    try {
        c.run(fill + "out[0] = 1;", maps, bases, 32, 1024, 1);
        FAIL() << "a kernel may not end before its stores are read";
    } catch (const Error& e) {
        expect_has(e.what(), "thread 0: ends before its bulk stores have been read");
    }
}

TEST(EmulatorWarpgroup, RefusesImpossibleTensorMaps) {
    EmulatedGpu gpu(90);
    std::byte* p = gpu.allocate(4096);
    std::byte encoded[128];
    auto error = [&](const kernels::TensorMap& m, std::byte* base) -> std::string {
        try {
            gpu.encode(m, base, encoded);
        } catch (const Error& e) {
            return e.what();
        }
        return "accepted";
    };
    EXPECT_EQ(error(map16(64, 8, 128, 64, 8, true), p), "accepted");
    expect_has(error(map16(64, 8, 128, 64, 8, true), p + 8), "not 16-byte aligned");
    expect_has(error(map16(64, 8, 120, 64, 8, true), p), "stride 120 of dimension 1");
    expect_has(error(map16(64, 8, 128, 128, 8, true), p), "inner box of 256 bytes");
    expect_has(error(map16(64, 8, 128, 64, 300, true), p), "box 300 of dimension 1");
    kernels::TensorMap halves = map16(64, 8, 128, 64, 8, true);
    halves.tf32 = true;
    expect_has(error(halves, p), "elements of f16 are not rounded to TF32");
    EmulatedGpu old(80);
    EXPECT_THROW(old.encode(map16(64, 8, 128, 64, 8, true), p, encoded), Error);
    gpu.release(p);
}

/// C[64, n] = A[64, 128 bytes] * B by four steps of wgmma, A and B of whole numbers; B's depth is
/// innermost.
void check_wgmma_of_bytes(DType a_type, DType b_type, int n, const std::string& defines) {
    SCOPED_TRACE(str(a_type, " by ", b_type, " n ", n));
    EngineCase c;
    std::mt19937 random(3);
    Tensor a = Tensor::empty(a_type, {64, 128});
    Tensor b = Tensor::empty(b_type, {n, 128});
    for (Tensor* t : {&a, &b}) {
        // The whole range of integers, and as much of e4m3 as has exact sums in f32.
        int64_t least = t->dtype() == DType::I8 ? -128 : t->dtype() == DType::U8 ? 0 : -15;
        int64_t values = is_integer(t->dtype()) ? 256 : 31;
        for (int64_t i = 0; i < t->count(); ++i) {
            t->set_f64(i, static_cast<double>(least + static_cast<int64_t>(random() % values)));
        }
    }
    std::byte* bases[2] = {c.upload(a.bytes().data(), a.bytes().size()),
                           c.upload(b.bytes().data(), b.bytes().size())};
    kernels::TensorMap maps[2] = {
        map16(128, 64, 128, 128, 64, true),
        map16(128, static_cast<uint64_t>(n), 128, 128, static_cast<uint32_t>(n), true)};
    maps[0].dtype = a_type;
    maps[1].dtype = b_type;
    std::string uses = str(defines, kernels::device_file("wgmma"), "#define N ", n, "\n");
    auto out = c.run(
        "if (t == 0) { mbar_expect(bar, 8192 + N * 128); tma_load2(s + 1024, &a, 0, 0, bar);\n"
        "tma_load2(s + 9216, &b, 0, 0, bar); }\nmbar_wait(bar, 0); WgmmaSum d[N / 2]; "
        "wgmma_fence();\n"
        "for (int k = 0; k < 4; k++)\n"
        "  wgmma<N>(d, wgmma_desc(s + 1024) + k * 2, wgmma_desc(s + 9216) + k * 2, k > 0);\n"
        "wgmma_commit(); wgmma_wait<0>();\n"
        "for (int i = 0; i < N / 2; i++) out[(t / 32 * 16 + t % 32 / 4 + i / 2 % 2 * 8) * N"
        " + i / 4 * 8 + t % 4 * 2 + i % 2] = *(u32*)&d[i];",
        maps, bases, 128, 1024 + 8192 + static_cast<uint32_t>(n) * 128, static_cast<size_t>(64 * n),
        uses);
    for (int64_t row = 0; row < 64; ++row) {
        for (int64_t column = 0; column < n; ++column) {
            double want = 0;
            for (int64_t k = 0; k < 128; ++k) {
                want += a.get_f64(row * 128 + k) * b.get_f64(column * 128 + k);
            }
            uint32_t bits = out[static_cast<size_t>(row * n + column)];
            double got = is_integer(a_type) ? static_cast<double>(static_cast<int32_t>(bits))
                                            : double{std::bit_cast<float>(bits)};
            ASSERT_EQ(got, want) << row << ' ' << column;
        }
    }
}

TEST(EmulatorWarpgroup, MultipliesBytesByWarpgroups) {
    check_wgmma_of_bytes(DType::F8E4M3, DType::F8E4M3, 96,
                         "#define WGMMA_TYPE \"e4m3\"\n#define WGMMA_F8\n");
    std::string whole = "#define WGMMA_WHOLE\n#define WGMMA_TYPE_B \"s8\"\n#define WGMMA_TYPE ";
    check_wgmma_of_bytes(DType::I8, DType::I8, 128, whole + "\"s8\"\n");
    check_wgmma_of_bytes(DType::U8, DType::I8, 48, whole + "\"u8\"\n");
    check_wgmma_of_bytes(
        DType::U8, DType::U8, 16,
        "#define WGMMA_WHOLE\n#define WGMMA_TYPE_B \"u8\"\n#define WGMMA_TYPE \"u8\"\n");
}

/// C[64, n] = A[64, 64] * B by four steps of wgmma; B is [n, 64], or [64, n] with `rows`.
void check_wgmma(DType dtype, int n, bool rows, bool registers) {
    SCOPED_TRACE(str(name(dtype), " n ", n, " rows ", rows, " registers ", registers));
    EngineCase c;
    std::mt19937 random(3);
    Tensor a = Tensor::empty(dtype, {64, 64});
    Tensor b = rows ? Tensor::empty(dtype, {64, n}) : Tensor::empty(dtype, {n, 64});
    for (Tensor* t : {&a, &b}) {
        for (int64_t i = 0; i < t->count(); ++i) {
            t->set_f64(i, static_cast<double>(random() % 9) - 4);
        }
    }
    std::byte* bases[2] = {c.upload(a.bytes().data(), a.bytes().size()),
                           c.upload(b.bytes().data(), b.bytes().size())};
    auto wide = static_cast<uint64_t>(n);
    kernels::TensorMap maps[2] = {map16(64, 64, 128, 64, 64, true),
                                  rows ? map16(wide, 64, wide * 2, 64, 64, true)
                                       : map16(64, wide, 128, 64, static_cast<uint32_t>(n), true)};
    maps[0].dtype = maps[1].dtype = dtype;
    // B by rows: tiles of 64 columns, 8192 bytes apart.
    std::string load_b =
        rows
            ? "for (int i = 0; i < N / 64; i++) tma_load2(s + 9216 + i * 8192, &b, i * 64, 0, bar);"
            : "tma_load2(s + 9216, &b, 0, 0, bar);";
    std::string step_b =
        rows ? "((wgmma_desc(s + 9216 + k * 2048) & ~(0x3fffull << 16)) | 512ull << 16)"
             : "(wgmma_desc(s + 9216) + k * 2)";
    std::string product =
        registers ? "u32 f[4]; for (int i = 0; i < 4; i++) { u32 row = t / 32 * 16 + t % 32 / 4 + "
                    "i % 2 * 8;\n"
                    "u32 column = k * 16 + i / 2 * 8 + t % 4 * 2, chunk = column / 8 ^ row % 8;\n"
                    "f[i] = *(u32*)(raw + 1024 + row * 128 + chunk * 16 + column % 8 * 2); }\n"
                    "wgmma_ra<N, B>(d, f, " +
                        step_b + ", k > 0); wgmma_commit(); wgmma_wait<0>();"
                  : "wgmma<N, B>(d, wgmma_desc(s + 1024) + k * 2, " + step_b + ", k > 0);";
    std::string uses =
        str("#define WGMMA_TYPE \"", name(dtype), "\"\n", kernels::device_file("wgmma"),
            "#define N ", n, "\n#define B ", rows ? 1 : 0, "\n");
    auto out = c.run(
        "if (t == 0) { mbar_expect(bar, 8192 + N * 128); tma_load2(s + 1024, &a, 0, 0, bar);\n" +
            load_b +
            " }\nmbar_wait(bar, 0); float d[N / 2]; wgmma_fence();\n"
            "for (int k = 0; k < 4; k++) { " +
            product +
            " }\n"
            "wgmma_commit(); wgmma_wait<0>();\n"
            "for (int i = 0; i < N / 2; i++) out[(t / 32 * 16 + t % 32 / 4 + i / 2 % 2 * 8) * N"
            " + i / 4 * 8 + t % 4 * 2 + i % 2] = __float_as_uint(d[i]);",
        maps, bases, 128, 1024 + 8192 + static_cast<uint32_t>(n) * 128, static_cast<size_t>(64 * n),
        uses);
    for (int64_t row = 0; row < 64; ++row) {
        for (int64_t column = 0; column < n; ++column) {
            double want = 0;
            for (int64_t k = 0; k < 64; ++k) {
                want +=
                    a.get_f64(row * 64 + k) * b.get_f64(rows ? k * n + column : column * 64 + k);
            }
            ASSERT_EQ(std::bit_cast<float>(out[static_cast<size_t>(row * n + column)]), want)
                << row << ' ' << column;
        }
    }
}

TEST(EmulatorWarpgroup, MultipliesByWarpgroups) {
    check_wgmma(DType::F16, 64, false, false);
    check_wgmma(DType::BF16, 48, false, false);
    check_wgmma(DType::F16, 128, true, false);
    check_wgmma(DType::BF16, 64, true, true);
}

TEST(EmulatorWarpgroup, WarpgroupsTransposeElementsOf16BitsAlone) {
    std::string uses = str("#define WGMMA_TYPE \"tf32\"\n", kernels::device_file("wgmma"));
    Machine m("SHARED(raw); grid_wait(); float d[32]; u64 a = wgmma_desc(smem_addr(raw));\n"
              "wgmma_fence(); wgmma<64, 1>(d, a, a, 0); wgmma_commit(); wgmma_wait<0>();",
              128, 16384, 90, uses);
    expect_has(m.error(), "wgmma transposes operands of 16-bit elements alone");
}

} // namespace
} // namespace ingot::emulator
