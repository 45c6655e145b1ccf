// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/driver/cubin.h"
#include "backends/cuda/driver/nvrtc.h"

#include <gtest/gtest.h>

#include <cstring>

namespace ingot::cuda {
namespace {

/// Bytes of a file that numbers are appended to.
struct Bytes {
    std::string text;
    template <class T>
    Bytes& add(T v) {
        text.append(reinterpret_cast<const char*>(&v), sizeof v);
        return *this;
    }
    template <class T>
    void put(size_t at, T v) {
        std::memcpy(text.data() + at, &v, sizeof v);
    }
};

struct Part {
    std::string name;
    uint32_t type = 1;
    uint32_t link = 0;
    std::string bytes;
    uint64_t size = 0; // of a section without bytes in the file
};

/// A 64-bit ELF file of these sections, and one of their names behind them.
std::string elf(std::vector<Part> parts) {
    std::string names(1, '\0');
    for (Part& p : parts) {
        auto at = static_cast<uint32_t>(names.size());
        names += p.name + '\0';
        p.name.assign(reinterpret_cast<const char*>(&at), sizeof at);
    }
    std::string at_0(4, '\0');
    parts.push_back({at_0, 3, 0, names, 0});
    Bytes file{std::string(64, '\0')};
    std::memcpy(file.text.data(),
                "\x7f"
                "ELF\x02",
                5);
    std::vector<uint64_t> offsets;
    for (const Part& p : parts) {
        offsets.push_back(file.text.size());
        file.text += p.bytes;
    }
    file.put<uint64_t>(0x28, file.text.size());
    file.put<uint16_t>(0x3a, 64);
    file.put<uint16_t>(0x3c, static_cast<uint16_t>(parts.size()));
    file.put<uint16_t>(0x3e, static_cast<uint16_t>(parts.size() - 1));
    for (size_t i = 0; i < parts.size(); ++i) {
        const Part& p = parts[i];
        file.text += p.name;
        file.add<uint32_t>(p.type).add<uint64_t>(0).add<uint64_t>(0).add(offsets[i]);
        file.add<uint64_t>(p.size > 0 ? p.size : p.bytes.size()).add(p.link).add<uint32_t>(0);
        file.add<uint64_t>(1).add<uint64_t>(0);
    }
    return file.text;
}

/// A cubin of the kernels "other" and "kernel", the latter with 40 registers, 16 bytes of local and
/// 1,024 of static shared memory.
std::string small_cubin() {
    Bytes symbols;
    symbols.text.assign(24, '\0');
    for (uint32_t name : {1U, 7U}) {
        symbols.add(name).add<uint32_t>(0).add<uint64_t>(0).add<uint64_t>(0);
    }
    Bytes info;
    auto attribute = [&info](uint8_t which, uint32_t symbol, uint32_t value) {
        info.add<uint8_t>(4).add(which).add<uint16_t>(8).add(symbol).add(value);
    };
    attribute(0x2f, 1, 255);
    info.add<uint8_t>(3).add<uint8_t>(0x50).add<uint16_t>(7); // its value is in the header
    attribute(0x2f, 2, 40);
    attribute(0x11, 2, 16);
    return elf({{".strtab", 3, 0, std::string("\0other\0kernel\0", 14), 0},
                {".symtab", 2, 0, symbols.text, 0},
                {".nv.info", 1, 0, info.text, 0},
                {".nv.shared.kernel", 8, 0, "", 1024}});
}

TEST(Cubin, TellsRegistersLocalAndSharedMemory) {
    auto r = cubin_resources(small_cubin(), "kernel", 80);
    ASSERT_TRUE(r);
    EXPECT_EQ(*r, (plan::KernelResources{40, 1024, 16}));
    EXPECT_EQ(cubin_resources(small_cubin(), "kernel", 90)->shared, 0) << "the system's";
    EXPECT_EQ(cubin_resources(small_cubin(), "other", 80)->registers, 255);
    EXPECT_FALSE(cubin_resources(small_cubin(), "missing", 80));
}

TEST(Cubin, DamagedFilesSayNothingAndHarmNothing) {
    std::string whole = small_cubin();
    for (size_t n = 0; n < whole.size(); ++n) {
        cubin_resources(std::string_view(whole).substr(0, n), "kernel", 80);
        for (char byte : {'\0', '\x7f', '\xff'}) {
            std::string damaged = whole;
            damaged[n] = byte;
            cubin_resources(damaged, "kernel", 80);
        }
    }
    EXPECT_FALSE(cubin_resources("", "kernel", 80));
    EXPECT_FALSE(cubin_resources("a text", "kernel", 80));
    EXPECT_FALSE(
        cubin_resources(std::string_view(whole).substr(0, whole.size() - 1), "kernel", 80));
}

TEST(Cubin, OfTheCompiler) {
    if (!nvrtc_knows("sm_90a")) {
        GTEST_SKIP() << "no NVRTC: its files were NOT read";
    }
    std::string text = "extern \"C\" __global__ void k(float* x) {\n"
                       "  __shared__ float s[256];\n"
                       "  s[threadIdx.x] = x[threadIdx.x];\n"
                       "  __syncthreads();\n"
                       "  x[threadIdx.x] = s[255 - threadIdx.x];\n"
                       "}\n";
    for (auto [arch, capability] : {std::pair("sm_80", 80), std::pair("sm_90a", 90),
                                    std::pair("sm_100a", 100), std::pair("sm_120", 120)}) {
        auto r = cubin_resources(nvrtc_compile(text, arch).cubin, "k", capability);
        ASSERT_TRUE(r) << arch;
        EXPECT_GE(r->registers, 4) << arch;
        EXPECT_LE(r->registers, 40) << arch;
        EXPECT_EQ(r->shared, 1024) << arch;
        EXPECT_EQ(r->local, 0) << arch;
    }
}

} // namespace
} // namespace ingot::cuda
