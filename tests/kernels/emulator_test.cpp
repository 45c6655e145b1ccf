// SPDX-License-Identifier: Apache-2.0
// The emulator itself: barriers, exchanges, conversions and built-ins against hand-written
// expectations, and the mistakes that it must report.
#include "base/file.h"
#include "base/text.h"
#include "emulator/address_space.h"
#include "kernels/emulator_machine.h"
#include "source_dir.h"

#include <bit>
#include <cctype>
#include <cmath>
#include <fstream>
#include <set>
#include <sstream>

namespace ingot::emulator {
namespace {

uint32_t bits(float x) {
    return std::bit_cast<uint32_t>(x);
}

TEST(Emulator, ExchangesBetweenLanes) {
    Machine m("grid_wait();\n"
              "out[t] = shfl_xor(in[t], 5); out[32 + t] = shfl(in[t], 33);\n"
              "out[64 + t] = shfl_up(in[t], 3); out[96 + t] = ballot(t % 3 == 0);\n"
              "u64 wide = (u64)t << 32 | in[t]; wide = shfl_xor(wide, 1);\n"
              "out[128 + t] = (u32)(wide >> 32); out[160 + t] = (u32)wide;\n"
              "out[192 + t] = (u32)shfl((float)t, 7);\n");
    auto out = m.run(224, numbers(32, 100));
    for (uint32_t i = 0; i < 32; ++i) {
        EXPECT_EQ(out[i], 100 + (i ^ 5U));
        EXPECT_EQ(out[32 + i], 101U);
        EXPECT_EQ(out[64 + i], i < 3 ? 100 + i : 100 + i - 3);
        EXPECT_EQ(out[96 + i], 0x49249249U);
        EXPECT_EQ(out[128 + i], i ^ 1U);
        EXPECT_EQ(out[160 + i], 100 + (i ^ 1U));
        EXPECT_EQ(out[192 + i], 7U);
    }
}

TEST(Emulator, FourLanesExchangeWithoutTheOthers) {
    Machine m("grid_wait(); if (t & 4) out[t] = (u32)quad_xor((float)t, 3); else out[t] = 7;");
    auto out = m.run(32);
    for (uint32_t i = 0; i < 32; ++i) {
        EXPECT_EQ(out[i], (i & 4U) != 0 ? i ^ 3U : 7U);
    }
    Machine part("grid_wait(); if ((t & 3) != 3) out[t] = (u32)quad_xor((float)t, 1);");
    expect_has(part.error(), "quad_xor");
}

TEST(Emulator, BarriersOrderSharedMemory) {
    for (bool reversed : {false, true}) {
        Machine m("SHARED(raw); u32* s = (u32*)raw; __shared__ u32 other[96];\n"
                  "grid_wait(); s[t] = in[t]; other[t] = t; sync();\n"
                  "out[t] = s[95 - t] + other[(t + 1) % 96];",
                  96, 384);
        m.gpu().set_reversed(reversed);
        auto out = m.run(96, numbers(96, 500));
        for (uint32_t i = 0; i < 96; ++i) {
            EXPECT_EQ(out[i], 500 + 95 - i + (i + 1) % 96);
        }
    }
}

TEST(Emulator, SomeThreadsMeetAtABarrier) {
    Machine m("SHARED(raw); u32* s = (u32*)raw; grid_wait();\n"
              "if (t < 64) { s[t] = t; sync_some(1, 64); out[t] = s[63 - t]; }\n"
              "else { sync_some(2, 32); out[t] = 7; }",
              96, 256);
    auto out = m.run(96);
    for (uint32_t i = 0; i < 96; ++i) {
        EXPECT_EQ(out[i], i < 64 ? 63 - i : 7);
    }
}

TEST(Emulator, AsynchronousCopiesArriveWhenWaitedFor) {
    Machine m("SHARED(raw); u32 at = smem_addr(raw); grid_wait();\n"
              "if (t == 0) { cp_async16(at, in, 16); cp_async16(at + 16, in + 4, 8);\n"
              "  cp_async_commit(); cp_async4(at + 32, in + 8, 4); cp_async_commit();\n"
              "  cp_async_wait<1>(); for (int i = 0; i < 9; i++) out[i] = ((u32*)raw)[i];\n"
              "  cp_async_wait<0>(); out[9] = ((u32*)raw)[8]; }",
              32, 64);
    auto out = m.run(10, numbers(16, 1));
    EXPECT_EQ(out, (std::vector<uint32_t>{1, 2, 3, 4, 5, 6, 0, 0, ~0U, 9}));
}

TEST(Emulator, Conversions) {
    Machine m("grid_wait(); float x = __uint_as_float(in[t]);\n"
              "out[t] = f16_of(x); out[32 + t] = bf16_of(x); out[64 + t] = cvt_tf32(x);\n"
              "out[96 + t] = __float_as_uint(f32_of_f16((u16)f16_of(x)));\n"
              "out[128 + t] = f16_of((double)x);\n"
              "out[160 + t] = pack_f16(x, 1.0f); out[192 + t] = pack_bf16(x, 1.0f);");
    std::vector<uint32_t> in(32, 0);
    in[0] = bits(1.5F);
    in[1] = bits(65519.0F);
    in[2] = bits(65520.0F);
    in[3] = bits(std::nanf(""));
    in[4] = bits(0x1.002p0F); // half way in f16: to even
    in[5] = bits(0x1.006p0F); // half way, up
    in[6] = 0x3F808000;       // half way in bf16: to even
    in[7] = 0x3F801000;       // half way in tf32: away from zero
    in[8] = bits(0x1p-24F);
    auto out = m.run(224, in);
    EXPECT_EQ(
        std::vector<uint32_t>(out.begin(), out.begin() + 9),
        (std::vector<uint32_t>{0x3E00, 0x7BFF, 0x7C00, 0x7FFF, 0x3C00, 0x3C02, 0x3C04, 0x3C00, 1}));
    EXPECT_EQ(out[32], 0x3FC0U);
    EXPECT_EQ(out[32 + 3], 0x7FFFU);
    EXPECT_EQ(out[32 + 6], 0x3F80U);
    EXPECT_EQ(out[64 + 7], 0x3F802000U);
    EXPECT_EQ(out[96], bits(1.5F));
    EXPECT_EQ(out[128 + 5], 0x3C02U);
    EXPECT_EQ(out[160], 0x3C003E00U);
    EXPECT_EQ(out[192], 0x3F803FC0U);
}

TEST(Emulator, BuiltIns) {
    Machine m(
        "grid_wait(); if (t) return; int n = 0;\n"
        "out[n++] = __popc(0xF0F0u); out[n++] = __clz(1); out[n++] = __ffs(8);\n"
        "out[n++] = __umulhi(0x80000000u, 6); out[n++] = __brev(1u);\n"
        "out[n++] = __byte_perm(0x33221100u, 0x77665544u, 0x7250u);\n"
        "out[n++] = __funnelshift_l(0x80000000u, 1u, 1); out[n++] = max(-3, 2);\n"
        "out[n++] = (u32)fminf(3.0f, 9.0f); out[n++] = __float2int_rn(2.5f);\n"
        "out[n++] = (u32)__float2int_rz(-1e30f); out[n++] = gridDim.x * blockDim.x;\n"
        "out[n++] = (u32)rintf(exp(0.0f) * 4.0f * rsqrtf(0.25f)); out[n++] = (u32)ex2(5.0f);\n"
        "uint4 v = make_uint4(1, 2, 3, 4); out[n++] = v.w; out[n++] = sizeof(float4);");
    auto out = m.run(16);
    EXPECT_EQ(out, (std::vector<uint32_t>{8, 31, 4, 3, 0x80000000, 0x77225500, 3, 2, 3, 2,
                                          0x80000000, 32, 8, 32, 4, 16}));
}

TEST(Emulator, BlocksOfAGridAndStreamedReads) {
    Machine m("grid_wait(); uint4 v = ld_stream(in + 4 * t);\n"
              "u32 b = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);\n"
              "if (t == 0) out[b] = b * 10 + v.y;");
    m.shape.grid = {3, 2, 2};
    auto out = m.run(12, numbers(128));
    for (uint32_t i = 0; i < 12; ++i) {
        EXPECT_EQ(out[i], i * 10 + 1);
    }
}

TEST(Emulator, BlocksWaitForEarlierOnes) {
    Machine m("grid_wait(); if (t) return; u64* flags = (u64*)out;\n"
              "u64 sum = blockIdx.x; if (blockIdx.x) { u64 v;\n"
              "do { v = ld_acquire(flags + blockIdx.x - 1); } while (v == ~0ull); sum += v; }\n"
              "st_release(flags + blockIdx.x, sum);");
    m.shape.grid = {5, 1, 1};
    EXPECT_EQ(m.run(10), (std::vector<uint32_t>{0, 0, 1, 0, 3, 0, 6, 0, 10, 0}));
}

TEST(Emulator, ReportsDeadlocks) {
    Machine m("grid_wait(); if (t < 32) sync(); else if (t == 40) shfl(t, 0);", 64);
    std::string e = m.error();
    expect_has(e, "kernel 'k', block (0,0,0): deadlock: ");
    expect_has(e, "31 threads ended (the first is 32)");
    expect_has(e, "32 threads in sync 0 (the first is 0)");
    expect_has(e, "1 thread in shfl (the first is 40)");
}

TEST(Emulator, ReportsLanesThatDisagree) {
    Machine m("grid_wait(); out[t] = t < 3 ? shfl_xor(t, 1) : ballot(true);");
    expect_has(m.error(), "is in ballot while others of its warp are in shfl_xor");
    Machine counts("grid_wait(); sync_some(1, t < 32 ? 64 : 96);", 96);
    expect_has(counts.error(), "names 96 threads at barrier 1, others named 64");
}

TEST(Emulator, ReportsAMissingGridWait) {
    expect_has(Machine("out[t] = 1;").error(), "block (0,0,0): ended without grid_wait");
    EXPECT_EQ(Machine("out[t] = 1;", 32, 0, 80).run(32)[31], 1U);
}

TEST(Emulator, ReportsAnAccessBeforeGridWait) {
    Machine early("u32 v = t == 9 ? in[t] : 0; grid_wait(); out[t] = v;");
    early.hold = true;
    std::string e = early.error();
    expect_has(e, "thread 9: accesses memory before grid_wait, at byte 36");
    Machine late("grid_wait(); out[t] = in[t];");
    late.hold = true;
    EXPECT_EQ(late.run(32, numbers(32))[31], 31U);
}

/// The line of the device text that an error names; 0 for none.
int line_in(const std::string& error) {
    constexpr std::string_view place = " at device_text:";
    size_t at = error.find(place);
    return at == std::string::npos ? 0 : std::stoi(error.substr(at + place.size()));
}

TEST(Emulator, FaultsNameTheirLine) {
    int first = line_in(Machine("grid_wait(); out[t * 8 + 64] = 1;").error());
    int later = line_in(Machine("grid_wait();\n\n\nout[t * 8 + 64] = 1;").error());
    EXPECT_GT(first, 0);
    EXPECT_EQ(later, first + 3);
}

TEST(Emulator, ReportsAccessesOutsideAllocations) {
    std::string far = Machine("grid_wait(); out[t] = in[t * 8 + 64];").error();
    expect_has(far, "thread 0: accesses memory 0 bytes behind the end of an allocation of 256");
    expect_has(far, " at device_text:");
    expect_has(Machine("grid_wait(); if (t == 0) out[30] = 1;").error(30),
               "kernel 'k': a write 0 bytes behind the end of an allocation of 120 bytes");
    expect_has(Machine("grid_wait(); if (t == 0) *(out - 1) = 1;").error(),
               "a write 4 bytes before an allocation");
    expect_has(Machine("grid_wait(); *(u32*)0 = 1;").error(), "accesses memory");
}

TEST(Emulator, ReportsSharedMemoryMistakes) {
    expect_has(
        Machine("grid_wait(); st_shared2(smem_addr(ingot_current->shared) + 4 * t, 0, 0);", 32, 512)
            .error(),
        "not aligned");
    expect_has(
        Machine("SHARED(s); grid_wait(); st_shared2(smem_addr(s) + 8 * t, 0, 0);", 32, 128).error(),
        "thread 16: an access reaches byte 128 to 136 of 128 bytes of shared memory");
    expect_has(Machine("SHARED(s); grid_wait(); s[100 + t] = 1;", 32, 128).error(),
               "block (0,0,0): wrote outside its 128 bytes of shared memory");
    expect_has(Machine("SHARED(s); grid_wait(); out[t] = s[4096 + t];", 32, 128).error(),
               "accesses memory at byte 4096 of 128 bytes of shared memory");
    expect_has(Machine("grid_wait(); out[t] = smem_addr(in);").error(), "smem_addr of memory");
}

TEST(Emulator, ReportsTraps) {
    expect_has(Machine("grid_wait(); out[t] = 5 / in[t];").error(), "integer division by zero");
    expect_has(Machine("grid_wait(); ((uint4*)(out + 1))[0] = make_uint4(1, 2, 3, 4);").error(),
               "a misaligned access");
    expect_has(Machine("grid_wait(); u32 v[4]; for (int i = 0; i < 4; i++) v[i] = i;\n"
                       "out[t] = v[in[t] + 4 + t];")
                   .error(),
               "outside a local array");
    expect_has(Machine("grid_wait(); __trap();").error(), "trap");
}

TEST(Emulator, ChecksLaunches) {
    Machine m("grid_wait(); out[t] = 1;", 32, 64);
    m.shape.block = 2048;
    expect_has(m.error(), "2048 threads a block");
    m.shape.block = 32;
    m.shape.shared = 128;
    expect_has(m.error(), "128 bytes of shared memory, loaded for 64");
    m.shape.shared = 0;
    m.shape.grid = {1, 1, 70000};
    expect_has(m.error(), "grid of 70000 blocks along axis 2");
    m.shape.grid = {3, 1, 1};
    m.shape.cluster = 2;
    expect_has(m.error(), "clusters of 2 in a grid of 3");
    EXPECT_THROW(m.gpu().load("", "k", 1 << 20), Error);
}

TEST(Emulator, RecordsAndReplays) {
    EmulatedGpu gpu(90);
    std::string text = std::string(kernels::device_file("ptx")) +
                       "struct Pair { i64 a; float b; };\n"
                       "KERNEL void __launch_bounds__(32) add(u32* p, u32 v, Pair pair) {\n"
                       "grid_wait(); p[threadIdx.x] += v + (u32)pair.a + (u32)pair.b; }\n";
    auto f = gpu.load(gpu.compile(text), "add", 0);
    std::byte* p = gpu.allocate(128);
    auto stream = gpu.create_stream();
    cuda::LaunchShape shape;
    shape.block = 32;
    uint32_t v = 5;
    struct {
        int64_t a = 100;
        float b = 1000;
    } pair;
    void* parameters[] = {&p, &v, &pair};
    auto* recorder = stream->parts().recorder;
    ASSERT_TRUE(recorder->begin_recording());
    stream->fill(p, 0, 128);
    stream->launch(*f, shape, parameters);
    v = 77; // a recording keeps what it was given
    stream->launch(*f, shape, parameters);
    auto recording = recorder->end_recording();
    std::vector<uint32_t> out(32);
    stream->read(out.data(), p, 128);
    EXPECT_EQ(out[0], ~0U);
    for (int i = 0; i < 2; ++i) {
        recorder->launch(*recording);
        stream->read(out.data(), p, 128);
        EXPECT_EQ(out[31], 1105U + 1177U);
    }
    gpu.release(p);
}

TEST(Emulator, MemoryIsLimitedAndChecked) {
    EmulatedOptions options;
    options.memory = 1000;
    EmulatedGpu gpu(80, options);
    std::byte* p = gpu.allocate(600);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(p) % 256, 0U);
    EXPECT_EQ(static_cast<int>(p[599]), poison);
    try {
        gpu.allocate(600);
        FAIL() << "600 + 600 bytes fit into 1000";
    } catch (const Error& e) {
        EXPECT_EQ(e.code(), ErrorCode::OutOfMemory);
        expect_has(e.what(), "cannot allocate 600 bytes: 400 of 1000 are free");
    }
    auto stream = gpu.create_stream();
    EXPECT_THROW(stream->fill(p, 0, 601), Error);
    p[600] = std::byte{1};
    gpu.release(p);
    expect_has(gpu.problems(), "a write 0 bytes behind the end of an allocation of 600 bytes");
    EXPECT_EQ(gpu.memory().used(), 0);
}

TEST(Emulator, NothingOfTheHostLiesNearDeviceMemory) {
    EmulatedGpu gpu(80);
    constexpr uint64_t reach = uint64_t{64} << 30; // 2^32 elements of 16 bytes
    std::byte* p = gpu.allocate(600);
    const auto at = reinterpret_cast<uint64_t>(p);
    std::ifstream maps("/proc/self/maps");
    int inside = 0;
    for (std::string line; std::getline(maps, line);) {
        std::istringstream in(line);
        uint64_t begin = 0;
        uint64_t end = 0;
        char dash = 0;
        std::string access;
        in >> std::hex >> begin >> dash >> end >> access;
        const bool near = begin < at + reach && end > at - reach;
        EXPECT_TRUE(!near || line.find('/') == std::string::npos) << line;
        inside += near && access == "---p" && end - begin > reach ? 1 : 0;
    }
    EXPECT_GE(inside, 1) << "no reserved addresses";
    gpu.release(p);
    for (const char* far : {"+", "-"}) {
        Machine m(str("grid_wait(); out[(long long)in[t] ", far, " (1ll << 33)] = 1;"));
        expect_has(m.error(), "thread 0: accesses memory at address");
    }
}

TEST(Emulator, FreedAddressesAreGivenAgainLast) {
    const size_t bytes = 4 * page;
    std::byte* first = take_addresses(bytes);
    give_back(first, bytes);
    std::byte* second = take_addresses(bytes);
    EXPECT_NE(first, second);
    give_back(second, bytes);
    EXPECT_EQ(take_addresses(size_t{1} << 40), nullptr);
    // All room in large parts, and again after these are freed.
    for (int turn = 0; turn < 3; ++turn) {
        const size_t part = size_t{100} << 30;
        std::vector<std::byte*> parts;
        while (std::byte* p = take_addresses(part)) {
            parts.push_back(p);
        }
        EXPECT_GE(parts.size(), 4U);
        for (std::byte* p : parts) {
            give_back(p, part);
        }
    }
}

/// Names of the functions that a file declares by DEVICE.
std::set<std::string> device_functions(const std::string& text) {
    std::set<std::string> out;
    for (size_t at = text.find("DEVICE "); at != std::string::npos;
         at = text.find("DEVICE ", at + 1)) {
        size_t end = text.find('(', at);
        size_t begin = end;
        while (std::isalnum(static_cast<unsigned char>(text[begin - 1])) != 0 ||
               text[begin - 1] == '_') {
            --begin;
        }
        out.insert(text.substr(begin, end - begin));
    }
    return out;
}

TEST(Emulator, HasEveryIntrinsic) {
    std::string root = source_dir();
    auto device = device_functions(read_text_file(root + "/src/kernels/common/ptx.cuh"));
    auto host = device_functions(read_text_file(root + "/tests/emulator/ptx_host.h"));
    EXPECT_GT(device.size(), 50U);
    for (const std::string& name : device) {
        EXPECT_EQ(host.count(name), 1U) << name << " is missing from tests/emulator/ptx_host.h";
    }
}

} // namespace
} // namespace ingot::emulator
