// SPDX-License-Identifier: Apache-2.0
// Ed25519 signatures (RFC 8032) by OpenSSL, and keys as its PEM files hold them.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace ingot {

using Ed25519Signature = std::array<std::byte, 64>;

struct Ed25519PublicKey {
    std::array<std::byte, 32> bytes{};
    bool operator==(const Ed25519PublicKey&) const = default;
};
/// The first 16 hex digits of the key's SHA-256, for messages.
std::string key_name(const Ed25519PublicKey& key);

/// The seed of a private key; overwritten when it goes.
struct Ed25519PrivateKey {
    std::array<std::byte, 32> seed{};
    Ed25519PrivateKey() = default;
    Ed25519PrivateKey(const Ed25519PrivateKey&) = default;
    Ed25519PrivateKey& operator=(const Ed25519PrivateKey&) = default;
    ~Ed25519PrivateKey();
};

/// Reads one "-----BEGIN PRIVATE KEY-----" (PKCS #8, not encrypted). Errors: InvalidArgument, which
/// names the kind of text found and how to make a key.
Ed25519PrivateKey private_key_from_pem(std::string_view text);
/// Reads one "-----BEGIN PUBLIC KEY-----". Errors: InvalidArgument.
Ed25519PublicKey public_key_from_pem(std::string_view text);
Ed25519PublicKey public_key_of(const Ed25519PrivateKey& key);

Ed25519Signature sign(const Ed25519PrivateKey& key, std::span<const std::byte> message);
/// False for anything but this key's signature of exactly this message.
bool verify(const Ed25519PublicKey& key, const Ed25519Signature& signature,
            std::span<const std::byte> message);

} // namespace ingot
