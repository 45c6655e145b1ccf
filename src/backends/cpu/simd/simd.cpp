// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/simd/simd.h"

#include "base/log.h"

#include <cpuid.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <cstring>

namespace ingot::cpu {

namespace baseline {
extern const VectorLoops loops;
}
namespace avx2 {
extern const VectorLoops loops;
}
namespace avx512 {
extern const VectorLoops loops;
}
namespace avx512_vnni {
extern const MapLoop lookup; // needs AVX-512 VBMI too
extern const ByteTile byte_tile;
extern const ByteTile quad_tile;
} // namespace avx512_vnni

std::string_view name(InstructionSet s) {
    switch (s) {
    case InstructionSet::Avx512Vnni:
        return "avx512_vnni";
    case InstructionSet::Avx512:
        return "avx512";
    case InstructionSet::Avx2:
        return "avx2";
    default:
        return "baseline";
    }
}

namespace {

// clang 14 has no name for it in __builtin_cpu_supports.
bool has_f16c() {
    unsigned a = 0;
    unsigned b = 0;
    unsigned c = 0;
    unsigned d = 0;
    return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}

InstructionSet supported() {
    __builtin_cpu_init();
    bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
    bool has_avx512 = has_avx2 && __builtin_cpu_supports("avx512f") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512dq");
    bool has_vnni = has_avx512 && __builtin_cpu_supports("avx512vnni");
    return has_vnni     ? InstructionSet::Avx512Vnni
           : has_avx512 ? InstructionSet::Avx512
           : has_avx2   ? InstructionSet::Avx2
                        : InstructionSet::Baseline;
}

/// The user's limit, by the two names that oneDNN reads, so that one variable limits both.
InstructionSet limit() {
    const char* variable = "ONEDNN_MAX_CPU_ISA";
    const char* given = std::getenv(variable);
    if (given == nullptr || *given == 0) {
        variable = "DNNL_MAX_CPU_ISA";
        given = std::getenv(variable);
    }
    if (given == nullptr || *given == 0) {
        return InstructionSet::Avx512Vnni;
    }
    std::optional<InstructionSet> known = limit_named(given);
    if (!known) {
        log(LogLevel::Warning, "cpu: ", variable, " is '", given,
            "', which is not an instruction set: the limit is ignored. Known are sse41, "
            "avx, avx2, avx2_vnni, avx512_core, avx512_core_vnni, avx512_core_bf16, "
            "avx512_core_fp16, avx512_core_amx and all");
    }
    return known.value_or(InstructionSet::Avx512Vnni);
}

} // namespace

std::optional<InstructionSet> limit_named(std::string_view text) {
    std::string lower(text);
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (lower == "sse41" || lower == "avx") {
        return InstructionSet::Baseline;
    }
    if (lower == "avx2" || lower == "avx2_vnni" || lower == "avx2_vnni_2") {
        return InstructionSet::Avx2;
    }
    if (lower == "avx512_core") {
        return InstructionSet::Avx512;
    }
    if (lower.starts_with("avx512_core_") || lower == "all" || lower == "default") {
        return InstructionSet::Avx512Vnni;
    }
    return std::nullopt;
}

InstructionSet instruction_set() {
    static const InstructionSet best = std::min(supported(), limit());
    return best;
}

std::string cpu_model() {
    std::array<unsigned, 12> words{};
    unsigned highest = __get_cpuid_max(0x80000000U, nullptr);
    if (highest < 0x80000004U) {
        return "x86-64";
    }
    for (unsigned i = 0; i < 3; ++i) {
        unsigned* w = &words[size_t{i} * 4];
        __get_cpuid(0x80000002U + i, w, w + 1, w + 2, w + 3);
    }
    char text[sizeof(words) + 1] = {};
    std::memcpy(text, words.data(), sizeof(words));
    std::string model = text;
    model.erase(0, model.find_first_not_of(' '));
    model.erase(model.find_last_not_of(' ') + 1);
    return model;
}

const VectorLoops& vector_loops(InstructionSet s) {
    static const VectorLoops with_vnni = [] {
        VectorLoops loops = avx512::loops;
        loops.byte_tile = avx512_vnni::byte_tile;
        loops.quad_tile = avx512_vnni::quad_tile;
        if (__builtin_cpu_supports("avx512vbmi")) {
            loops.lookup = avx512_vnni::lookup;
        }
        return loops;
    }();
    switch (s) {
    case InstructionSet::Avx512Vnni:
        return with_vnni;
    case InstructionSet::Avx512:
        return avx512::loops;
    case InstructionSet::Avx2:
        return avx2::loops;
    default:
        return baseline::loops;
    }
}

} // namespace ingot::cpu
