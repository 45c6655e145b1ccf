// SPDX-License-Identifier: Apache-2.0
#include "base/hash.h"
#include "base/hex.h"

#include <gtest/gtest.h>

#include <set>
#include <string_view>
#include <vector>

namespace ingot {
namespace {

std::span<const std::byte> bytes(std::string_view text) {
    return std::as_bytes(std::span(text.data(), text.size()));
}

TEST(hash, sha256_known_vectors) { // FIPS 180-4 examples
    EXPECT_EQ(to_hex(sha256(bytes(""))),
              "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    EXPECT_EQ(to_hex(sha256(bytes("abc"))),
              "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    EXPECT_EQ(to_hex(sha256(bytes("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"))),
              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST(hash, xxh3_known_vectors) {
    EXPECT_EQ(to_text(xxh3_128(bytes(""))), "99aa06d3014798d86001c324468d497f");
    EXPECT_EQ(to_text(xxh3_128(bytes("abc"))), "06b05ab6733a618578af5f94892f3950");
}

TEST(hash, pieces_hash_like_the_whole) {
    std::string data;
    for (int i = 0; i < 10000; ++i) {
        data += static_cast<char>(i * 7 + i / 256);
    }
    for (size_t step : {size_t{1}, size_t{63}, size_t{64}, size_t{1025}, data.size()}) {
        HashStream stream;
        for (size_t i = 0; i < data.size(); i += step) {
            stream.add(bytes(std::string_view(data).substr(i, step)));
        }
        stream.add({});
        EXPECT_EQ(stream.xxh3(), xxh3_128(bytes(data))) << step;
        EXPECT_EQ(stream.sha(), sha256(bytes(data))) << step;
    }
    HashStream nothing;
    EXPECT_EQ(nothing.xxh3(), xxh3_128({}));
    EXPECT_EQ(nothing.sha(), sha256({}));
}

TEST(hash, every_bit_counts) {
    std::string data(300, 'x');
    std::set<std::string> seen{to_text(xxh3_128(bytes(data)))};
    std::set<uint64_t> seen64{hash_bytes(data.data(), data.size())};
    for (size_t i = 0; i < data.size(); ++i) {
        for (int bit = 0; bit < 8; ++bit) {
            std::string changed = data;
            changed[i] = static_cast<char>(changed[i] ^ (1 << bit));
            seen.insert(to_text(xxh3_128(bytes(changed))));
            seen64.insert(hash_bytes(changed.data(), changed.size()));
        }
    }
    EXPECT_EQ(seen.size(), data.size() * 8 + 1);
    EXPECT_EQ(seen64.size(), data.size() * 8 + 1);
}

TEST(hash, seeds_and_order_matter) {
    EXPECT_NE(hash_bytes("abc", 3, 0), hash_bytes("abc", 3, 1));
    EXPECT_EQ(hash_bytes("abc", 3, 1), hash_bytes("abc", 3, 1));
    EXPECT_NE(mix(mix(0, 1), 2), mix(mix(0, 2), 1));
    EXPECT_NE(mix(0, 0), mix(0, 1));
}

} // namespace
} // namespace ingot
