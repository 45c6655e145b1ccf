// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"

#include "base/error.h"

#include <openssl/evp.h>
#include <xxhash.h>

namespace ingot {

std::string to_text(const Hash128& h) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string out;
    for (uint64_t half : {h.high, h.low}) {
        for (int shift = 60; shift >= 0; shift -= 4) {
            out += digits[(half >> shift) & 15U];
        }
    }
    return out;
}

Hash128 xxh3_128(std::span<const std::byte> data) {
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
    EVP_MD_CTX* sha = nullptr;
};

HashStream::HashStream(bool with_sha) : state_(std::make_unique<State>()) {
    bool ok = state_->xxh != nullptr && XXH3_128bits_reset(state_->xxh) == XXH_OK;
    if (with_sha) {
        state_->sha = EVP_MD_CTX_new();
        ok = ok && state_->sha != nullptr &&
             EVP_DigestInit_ex(state_->sha, EVP_sha256(), nullptr) == 1;
    }
    require(ok, ErrorCode::OutOfMemory, "cannot set up a hash");
}

HashStream::~HashStream() {
    XXH3_freeState(state_->xxh);
    EVP_MD_CTX_free(state_->sha);
}

void HashStream::add(std::span<const std::byte> data) {
    bool ok =
        XXH3_128bits_update(state_->xxh, data.data(), data.size()) == XXH_OK &&
        (state_->sha == nullptr || EVP_DigestUpdate(state_->sha, data.data(), data.size()) == 1);
    CHECK(ok, "hashing failed");
}

Hash128 HashStream::xxh3() const {
    XXH128_hash_t h = XXH3_128bits_digest(state_->xxh);
    return {h.high64, h.low64};
}

Sha256 HashStream::sha() {
    Sha256 out{};
    CHECK(state_->sha != nullptr, "this stream computes no SHA-256");
    CHECK(EVP_DigestFinal_ex(state_->sha, reinterpret_cast<unsigned char*>(out.data()), nullptr) ==
              1,
          "hashing failed");
    return out;
}

} // namespace ingot
