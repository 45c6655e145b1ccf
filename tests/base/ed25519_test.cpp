// SPDX-License-Identifier: Apache-2.0
// Signatures against RFC 8032, and what is refused as a key.
#include "base/ed25519.h"
#include "base/error.h"
#include "trust_keys.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace ingot {
namespace {

template <size_t N>
std::array<std::byte, N> hex(std::string_view text) {
    std::array<std::byte, N> out{};
    for (size_t i = 0; i < N; ++i) {
        out[i] = static_cast<std::byte>(std::stoi(std::string(text.substr(2 * i, 2)), nullptr, 16));
    }
    return out;
}

// Section 7.1, test 3.
TEST(Ed25519, IsThatOfTheRfc) {
    Ed25519PrivateKey key =
        private_key_from_pem("-----BEGIN PRIVATE KEY-----\n"
                             "MC4CAQAwBQYDK2VwBCIEIMWqjfQ/n4N77bdELzHct7Fm04U1B28JS4XOOi4LRFj3\n"
                             "-----END PRIVATE KEY-----\n");
    Ed25519PublicKey known;
    known.bytes = hex<32>("fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025");
    EXPECT_EQ(public_key_of(key), known);
    auto message = hex<2>("af82");
    Ed25519Signature signature = sign(key, message);
    EXPECT_EQ(signature,
              hex<64>("6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac"
                      "18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a"));
    EXPECT_TRUE(verify(known, signature, message));
}

TEST(Ed25519, EveryFlippedBitIsNoticed) {
    Ed25519PrivateKey key = private_key_from_pem(test::private_key_1);
    Ed25519PublicKey known = public_key_from_pem(test::public_key_1);
    EXPECT_EQ(public_key_of(key), known);
    std::array<std::byte, 5> message{};
    Ed25519Signature signature = sign(key, message);
    ASSERT_TRUE(verify(known, signature, message));
    EXPECT_FALSE(verify(public_key_from_pem(test::public_key_2), signature, message));
    auto flip = [](auto& bytes, size_t bit) {
        bytes[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    };
    for (size_t bit = 0; bit < 512; ++bit) {
        Ed25519Signature other = signature;
        flip(other, bit);
        EXPECT_FALSE(verify(known, other, message)) << bit;
    }
    for (size_t bit = 0; bit < 40; ++bit) {
        auto other = message;
        flip(other, bit);
        EXPECT_FALSE(verify(known, signature, other)) << bit;
    }
    EXPECT_FALSE(verify(known, signature, {}));
}

std::string refusal(const std::string& text, bool is_private) {
    try {
        if (is_private) {
            private_key_from_pem(text);
        } else {
            public_key_from_pem(text);
        }
    } catch (const Error& e) {
        EXPECT_EQ(e.code(), ErrorCode::InvalidArgument);
        return e.what();
    }
    return "";
}

TEST(Ed25519, OtherKeysAreRefused) {
    const std::string how = "; make one with 'openssl genpkey -algorithm ed25519 -out key.pem'";
    for (const std::string& none : {std::string(), std::string("no key"), test::public_key_1,
                                    test::private_key_1.substr(0, 60)}) {
        EXPECT_EQ(refusal(none, true), "no Ed25519 private key in PEM" + how) << none;
    }
    EXPECT_EQ(refusal("-----BEGIN PRIVATE KEY-----\n"
                      "MC4CAQAwBQYDK2VuBCIEILDUCjnRfLuPoFujmU74Eq6SpnEFOkG4SVyPRwicvDhp\n"
                      "-----END PRIVATE KEY-----\n",
                      true),
              "no Ed25519 private key in PEM, but one of type X25519" + how);
    EXPECT_EQ(refusal("-----BEGIN ENCRYPTED PRIVATE KEY-----\n"
                      "MIGbMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAhlsb5Dpnjz2QICCAAw\n"
                      "DAYIKoZIhvcNAgkFADAdBglghkgBZQMEAQIEEGSV5O52++XVarxjwr+AfuQEQJOi\n"
                      "AhHDuk8+PslyvSnlBzJcD4cVYvMKIhLi/QK7CzQJggKmRIOKi5x/GrQHRRIHpvKt\n"
                      "ZqYW6g9hTSm2yFB8byk=\n-----END ENCRYPTED PRIVATE KEY-----\n",
                      true),
              "the private key is encrypted; 'openssl pkey -in key.pem' writes it decrypted");
    EXPECT_EQ(refusal("-----BEGIN PUBLIC KEY-----\n"
                      "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEyHZxHlB3yzzpAaESWYGU+Agr+DIu\n"
                      "OlCM++9OrU1UI0Szf9vadv9G0oFP043U1MbbSsIcsjig3TN+htmIOkJfug==\n"
                      "-----END PUBLIC KEY-----\n",
                      false),
              "no Ed25519 public key in PEM, but one of type EC; 'openssl pkey -in key.pem -pubout'"
              " prints that of a private key");
    EXPECT_NE(refusal(test::private_key_1, false), "");
    EXPECT_NE(refusal(std::string(70000, 'x'), false).find("at most 65536 are allowed"),
              std::string::npos);
}

} // namespace
} // namespace ingot
