// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/driver/cubin.h"

#include <algorithm>
#include <cstring>

namespace ingot::cuda {

namespace {

struct Section {
    std::string_view name;
    std::string_view bytes; // empty for one that has none in the file
    uint64_t size = 0;
    uint32_t type = 0;
    uint32_t link = 0;
};

// Numbers in the file, little endian.
template <class T>
std::optional<T> number(std::string_view from, uint64_t at) {
    if (at > from.size() || from.size() - at < sizeof(T)) {
        return std::nullopt;
    }
    T v;
    std::memcpy(&v, from.data() + at, sizeof v);
    return v;
}

std::string_view part(std::string_view from, uint64_t at, uint64_t size) {
    return at > from.size() || from.size() - at < size ? std::string_view() : from.substr(at, size);
}

std::string_view text_at(std::string_view strings, uint64_t at) {
    if (at >= strings.size()) {
        return {};
    }
    std::string_view rest = strings.substr(at);
    return rest.substr(0, rest.find('\0'));
}

constexpr uint32_t no_bits = 8;      // SHT_NOBITS
constexpr uint32_t symbol_table = 2; // SHT_SYMTAB
constexpr uint64_t symbol_size = 24;

/// The sections of a 64-bit ELF file; none where it is malformed.
std::vector<Section> sections_of(std::string_view file) {
    auto start = number<uint64_t>(file, 0x28);
    auto entry = number<uint16_t>(file, 0x3a);
    auto count = number<uint16_t>(file, 0x3c);
    auto names = number<uint16_t>(file, 0x3e);
    bool is_elf = file.substr(0, 5) == std::string_view("\x7f"
                                                        "ELF\x02",
                                                        5);
    if (!is_elf || !start || !entry || !count || !names || *entry < 64) {
        return {};
    }
    std::vector<Section> out;
    std::vector<uint32_t> name_at;
    for (uint64_t i = 0; i < *count; ++i) {
        std::string_view header = part(file, *start + i * *entry, 64);
        if (header.empty()) {
            return {};
        }
        Section s;
        s.type = *number<uint32_t>(header, 4);
        s.size = *number<uint64_t>(header, 32);
        s.link = *number<uint32_t>(header, 40);
        if (s.type != no_bits) {
            s.bytes = part(file, *number<uint64_t>(header, 24), s.size);
        }
        out.push_back(s);
        name_at.push_back(*number<uint32_t>(header, 0));
    }
    for (size_t i = 0; i < out.size() && *names < out.size(); ++i) {
        out[i].name = text_at(out[*names].bytes, name_at[i]);
    }
    return out;
}

/// The kernel's index in the symbol table.
std::optional<uint32_t> symbol_of(const std::vector<Section>& all, std::string_view entry) {
    for (const Section& s : all) {
        if (s.type != symbol_table || s.link >= all.size()) {
            continue;
        }
        for (uint32_t i = 0; i < s.bytes.size() / symbol_size; ++i) {
            auto name = number<uint32_t>(s.bytes, i * symbol_size);
            if (name && text_at(all[s.link].bytes, *name) == entry) {
                return i;
            }
        }
    }
    return std::nullopt;
}

// Attributes of .nv.info: format, attribute, then 16 bits of value, or of the size that follows.
constexpr uint8_t sized = 4;
constexpr uint8_t registers = 0x2f;
constexpr uint8_t frame_size = 0x11;

void read_info(std::string_view info, uint32_t symbol, plan::KernelResources& to) {
    for (uint64_t at = 0; at + 4 <= info.size();) {
        auto format = *number<uint8_t>(info, at);
        auto attribute = *number<uint8_t>(info, at + 1);
        auto size = *number<uint16_t>(info, at + 2);
        at += 4;
        if (format != sized) {
            continue;
        }
        auto of = number<uint32_t>(info, at);
        auto value = number<uint32_t>(info, at + 4);
        if (size >= 8 && of == symbol && value) {
            to.registers = attribute == registers ? static_cast<int>(*value) : to.registers;
            to.local = attribute == frame_size ? *value : to.local;
        }
        at += size;
    }
}

// From 9.0 on, a kernel's section begins with what the system has of each block.
constexpr int64_t reserved_shared = 1024;

} // namespace

std::optional<plan::KernelResources> cubin_resources(std::string_view binary,
                                                     std::string_view entry, int capability) {
    std::vector<Section> all = sections_of(binary);
    std::optional<uint32_t> symbol = symbol_of(all, entry);
    if (!symbol) {
        return std::nullopt;
    }
    plan::KernelResources r;
    int64_t not_its_own = capability >= 90 ? reserved_shared : 0;
    std::string shared = std::string(".nv.shared.") + std::string(entry);
    for (const Section& s : all) {
        if (s.name == ".nv.info") {
            read_info(s.bytes, *symbol, r);
        } else if (s.name == shared) {
            r.shared = std::max<int64_t>(static_cast<int64_t>(s.size) - not_its_own, 0);
        }
    }
    return r.registers > 0 ? std::optional(r) : std::nullopt;
}

} // namespace ingot::cuda
