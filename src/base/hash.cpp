// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"

#include "base/error.h"
#include "base/hex.h"
#include "base/pieces.h"

// The low-level SHA-256 functions: EVP would link seven megabytes of other algorithms.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>
#include <xxhash.h>

namespace ingot {

std::string to_text(const Hash128& h) {
    std::string out;
    for (uint64_t half : {h.high, h.low}) {
        for (int shift = 56; shift >= 0; shift -= 8) {
            append_hex(out, static_cast<uint8_t>(half >> shift));
        }
    }
    return out;
}

Hash128 xxh3_128(std::span<const std::byte> data) {
    if (data.size() > piece_bytes) {
        HashStream s(false);
        s.add(data);
        return s.xxh3();
    }
    XXH128_hash_t h = XXH3_128bits(data.data(), data.size());
    return {h.high64, h.low64};
}

uint64_t hash_bytes(const void* data, size_t bytes, uint64_t seed) {
    return XXH3_64bits_withSeed(data, bytes, seed);
}

Sha256 sha256(std::span<const std::byte> data) {
    HashStream s;
    s.add(data);
    return s.sha();
}

struct HashStream::State {
    XXH3_state_t* xxh = XXH3_createState();
    SHA256_CTX sha{};
    bool with_sha = false;
    State() = default;
    ~State() { XXH3_freeState(xxh); }
    State(const State&) = delete;
    State& operator=(const State&) = delete;
};

HashStream::HashStream(bool with_sha) : state_(std::make_unique<State>()) {
    bool ok = state_->xxh != nullptr && XXH3_128bits_reset(state_->xxh) == XXH_OK;
    if (with_sha) {
        state_->with_sha = true;
        ok = ok && SHA256_Init(&state_->sha) == 1;
    }
    require(ok, ErrorCode::OutOfMemory, "cannot set up a hash");
}

HashStream::~HashStream() = default;

void HashStream::add(std::span<const std::byte> data) {
    for_pieces(data, [this](std::span<const std::byte> part) {
        bool ok = XXH3_128bits_update(state_->xxh, part.data(), part.size()) == XXH_OK &&
                  (!state_->with_sha || SHA256_Update(&state_->sha, part.data(), part.size()) == 1);
        CHECK(ok, "hashing failed");
    });
}

Hash128 HashStream::xxh3() const {
    XXH128_hash_t h = XXH3_128bits_digest(state_->xxh);
    return {h.high64, h.low64};
}

Sha256 HashStream::sha() {
    Sha256 out{};
    CHECK(state_->with_sha, "this stream computes no SHA-256");
    CHECK(SHA256_Final(reinterpret_cast<unsigned char*>(out.data()), &state_->sha) == 1,
          "hashing failed");
    return out;
}

} // namespace ingot
