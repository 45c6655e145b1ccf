// SPDX-License-Identifier: Apache-2.0
#include "cache/kernel_entry.h"

#include "base/text.h"

#include <algorithm>
#include <cstring>

namespace ingot::plan {

namespace {

constexpr char magic[8] = {'I', 'N', 'G', 'O', 'T', 'K', 'R', 'N'};
constexpr uint32_t format_version = 2;
constexpr size_t longest_text = 256;

/// The fixed part; followed by the key, the compiler and the NVRTC version as text, then the
/// binary.
struct Header {
    char magic[8];
    uint32_t version;
    uint32_t compiler_bytes;
    uint32_t nvrtc_bytes;
    uint32_t reserved;
    uint64_t binary_bytes;
    uint64_t hash_high; // XXH3-128 of everything after the header
    uint64_t hash_low;
};

} // namespace

std::string encode_entry(const Hash128& key, std::string_view compiler, std::string_view nvrtc,
                         std::string_view binary) {
    compiler = compiler.substr(0, longest_text);
    nvrtc = nvrtc.substr(0, longest_text);
    const uint64_t both[] = {key.high, key.low};
    std::string rest(reinterpret_cast<const char*>(both), sizeof both);
    rest += str(compiler, nvrtc, binary);
    Hash128 hash = xxh3_128(std::as_bytes(std::span(rest)));
    Header h{};
    std::memcpy(h.magic, magic, sizeof magic);
    h.version = format_version;
    h.compiler_bytes = static_cast<uint32_t>(compiler.size());
    h.nvrtc_bytes = static_cast<uint32_t>(nvrtc.size());
    h.binary_bytes = binary.size();
    h.hash_high = hash.high;
    h.hash_low = hash.low;
    return std::string(reinterpret_cast<const char*>(&h), sizeof h) + rest;
}

KernelEntry parse_entry(std::span<const std::byte> bytes) {
    KernelEntry p;
    Header h{};
    if (bytes.size() < sizeof h) {
        p.problem = str("it has ", bytes.size(), " bytes, a header has ", sizeof h);
        return p;
    }
    std::memcpy(&h, bytes.data(), sizeof h);
    std::span<const std::byte> rest = bytes.subspan(sizeof h);
    if (std::memcmp(h.magic, magic, sizeof magic) != 0 || h.version != format_version ||
        h.reserved != 0) {
        p.problem = "it is not a kernel of this version";
        return p;
    }
    uint64_t both[2] = {};
    size_t names = sizeof both;
    names += h.compiler_bytes;
    names += h.nvrtc_bytes;
    if (h.compiler_bytes > longest_text || h.nvrtc_bytes > longest_text || rest.size() < names ||
        h.binary_bytes != rest.size() - names) {
        p.problem = str("its parts do not add up to ", bytes.size(), " bytes");
        return p;
    }
    Hash128 hash = xxh3_128(rest);
    if (hash.high != h.hash_high || hash.low != h.hash_low) {
        p.problem = "its checksum is wrong";
        return p;
    }
    std::string_view text(reinterpret_cast<const char*>(rest.data()), rest.size());
    std::memcpy(both, text.data(), sizeof both);
    p.key = {both[0], both[1]};
    p.compiler = text.substr(sizeof both, h.compiler_bytes);
    p.nvrtc = text.substr(sizeof both + h.compiler_bytes, h.nvrtc_bytes);
    p.binary = text.substr(names);
    return p;
}

} // namespace ingot::plan
