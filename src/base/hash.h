// SPDX-License-Identifier: Apache-2.0
// XXH3-128 (damage) and SHA-256 (identity) over byte ranges. Those of more than 16 MiB can be
// stopped: Error(Interrupted).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace ingot {

struct Hash128 {
    uint64_t high = 0;
    uint64_t low = 0;
    bool operator==(const Hash128&) const = default;
};
std::string to_text(const Hash128& h); // 32 hex digits
Hash128 xxh3_128(std::span<const std::byte> data);

using Sha256 = std::array<std::byte, 32>;
Sha256 sha256(std::span<const std::byte> data);

/// Hashes over data that arrives in pieces: XXH3-128 and, unless left out, SHA-256.
class HashStream {
public:
    explicit HashStream(bool with_sha = true);
    ~HashStream();
    HashStream(const HashStream&) = delete;
    HashStream& operator=(const HashStream&) = delete;
    void add(std::span<const std::byte> data);
    Hash128 xxh3() const;
    Sha256 sha(); // ends the stream; only with_sha

private:
    struct State;
    std::unique_ptr<State> state_;
};

/// Mixes a 64-bit value into a running hash: for hash tables and structural hashes, not for files.
inline uint64_t mix(uint64_t seed, uint64_t v) {
    seed ^= v + 0x9e3779b97f4a7c15ULL + (seed << 6) + (seed >> 2);
    return seed * 0xff51afd7ed558ccdULL;
}
uint64_t hash_bytes(const void* data, size_t bytes, uint64_t seed = 0);

} // namespace ingot
