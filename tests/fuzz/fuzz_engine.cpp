// SPDX-License-Identifier: Apache-2.0
// Fuzz target: engine files. An input with first byte 0 is loaded unchanged; else its parts become
// the graph, profiles and properties of a container with right hashes, so that the code behind the
// hashes is reached too. Only ingot::Error may be thrown.
#include "base/error.h"
#include "engine/container.h"
#include "engine/engine.h"

#include <cstring>

namespace {

using namespace ingot;

template <class T>
void put(std::vector<std::byte>& out, const T& v) {
    const auto* p = reinterpret_cast<const std::byte*>(&v);
    out.insert(out.end(), p, p + sizeof(T));
}

// A well-formed container of five sections without weights.
std::vector<std::byte> container(std::span<const std::span<const std::byte>> parts) {
    constexpr SectionKind kinds[] = {SectionKind::Weights, SectionKind::WeightHashes,
                                     SectionKind::Graph, SectionKind::Profiles,
                                     SectionKind::Metadata};
    std::vector<std::byte> table;
    std::vector<std::byte> body;
    constexpr uint64_t start = 64 + 5 * 88;
    for (size_t i = 0; i < 5; ++i) {
        std::span<const std::byte> data = i < 2 ? std::span<const std::byte>() : parts[i - 2];
        while ((start + body.size()) % 64 != 0) {
            body.push_back(std::byte{0});
        }
        Hash128 h = xxh3_128(data);
        put(table, static_cast<uint32_t>(kinds[i]));
        put(table, uint32_t{1});
        put(table, uint64_t{start + body.size()});
        put(table, uint64_t{data.size()});
        put(table, h.high);
        put(table, h.low);
        put(table, Sha256{});
        put(table, uint64_t{64});
        put(table, uint64_t{0});
        body.insert(body.end(), data.begin(), data.end());
    }
    std::vector<std::byte> out;
    for (char c : {'I', 'N', 'G', 'O', 'T', '\r', '\n', '\x1a'}) {
        put(out, c);
    }
    put(out, engine_format);
    put(out, engine_producer);
    put(out, uint64_t{0});
    put(out, uint64_t{64});
    put(out, uint32_t{5});
    put(out, uint32_t{88});
    put(out, uint64_t{start + body.size()});
    HashStream h(false);
    h.add(out);
    h.add(table);
    put(out, h.xxh3().high);
    put(out, h.xxh3().low);
    out.insert(out.end(), table.begin(), table.end());
    out.insert(out.end(), body.begin(), body.end());
    return out;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size == 0) {
        return 0;
    }
    std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
    std::vector<std::byte> built;
    if (data[0] == 0) {
        bytes = bytes.subspan(1);
    } else { // three parts, the first two lengths in two bytes each
        size_t lengths[2] = {0, 0};
        std::memcpy(&lengths[0], data + 1, std::min<size_t>(2, size - 1));
        std::memcpy(&lengths[1], data + std::min<size_t>(3, size), size > 4 ? 2 : 0);
        std::span<const std::byte> rest = bytes.subspan(std::min<size_t>(5, size));
        std::span<const std::byte> profiles = rest.first(std::min(lengths[0], rest.size()));
        rest = rest.subspan(profiles.size());
        std::span<const std::byte> properties = rest.first(std::min(lengths[1], rest.size()));
        rest = rest.subspan(properties.size());
        const std::span<const std::byte> parts[] = {rest, profiles, properties};
        built = container(parts);
        bytes = built;
    }
    try {
        Engine::load(bytes, nullptr, CheckWeights::First);
    } catch (const Error&) {
    }
    return 0;
}
