// SPDX-License-Identifier: Apache-2.0
// Whose code an engine may bring: kernels built ahead and kernels of source text run as native code
// of the GPU (ADR 0020).
#pragma once

#include "base/ed25519.h"
#include "engine/container.h"

#include <optional>
#include <string>
#include <vector>

namespace ingot {

struct TrustedKey {
    Ed25519PublicKey key;
    std::string expires; // "2027-01-31": the last day (UTC) on which it is trusted; "": for ever
};

/// Public keys in PEM, one or several. Other lines are empty, comments (#), or "expires:
/// 2027-01-31" before the key that it belongs to. Errors: InvalidArgument with the line.
std::vector<TrustedKey> parse_trusted_keys(std::string_view text);
/// Errors: Io; InvalidArgument with path and line.
std::vector<TrustedKey> read_trusted_keys(const std::string& path);

/// How an engine that is loaded is judged.
struct Trust {
    std::vector<TrustedKey> keys;
    bool only_signed = false; // refuse engines that none of the keys has signed
    bool allow_code = false;  // take code that unsigned engines bring
};

/// Judges an engine that is being loaded: "" when it is signed by a trusted key or was written by
/// this process, else the reason, as the end of a sentence: "it is not signed". Errors:
/// InvalidEngine for a signature of a trusted key that does not match, and for any reason where
/// only signed engines are allowed.
std::string reason_for_distrust(const Container& c, const Trust& trust);

/// Remembers an engine that this process writes, by its Container::signed_bytes().
void remember_own_engine(std::span<const std::byte> signed_bytes);

/// Copies an engine and adds the signature of this key, or replaces the one it has. Errors:
/// InvalidEngine for a damaged engine; Io.
void sign_engine(const std::string& path, const std::string& signed_path,
                 const Ed25519PrivateKey& key);
/// The same in memory.
AlignedBytes signed_engine(std::span<const std::byte> engine, const Ed25519PrivateKey& key);
/// The key of an engine's signature, whether trusted or not; nullopt when it is not signed.
std::optional<Ed25519PublicKey> signer_of(const Container& c);

} // namespace ingot
