// SPDX-License-Identifier: Apache-2.0
// Linking this file links OpenSSL's EVP layer, about four megabytes of a library.
#include "base/ed25519.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/hex.h"

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <memory>

namespace ingot {

namespace {

template <auto free>
struct Freed {
    template <class T>
    void operator()(T* p) const {
        free(p);
    }
};
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;
using DigestContext = std::unique_ptr<EVP_MD_CTX, Freed<EVP_MD_CTX_free>>;
using Bio = std::unique_ptr<BIO, Freed<BIO_free_all>>;

// Before any other call: without it OpenSSL would read the machine's configuration file, which can
// name libraries to load.
void start_openssl() {
    static const bool started =
        OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ATEXIT, nullptr) == 1;
    CHECK(started, "OpenSSL does not start");
}

unsigned char* data(std::byte* p) {
    return reinterpret_cast<unsigned char*>(p);
}
const unsigned char* data(const std::byte* p) {
    return reinterpret_cast<const unsigned char*>(p);
}

// Called for a passphrase: there is nobody to ask.
int no_passphrase(char*, int, int, void* asked) {
    *static_cast<bool*>(asked) = true;
    return -1;
}

Bio reader(std::string_view text) {
    constexpr size_t most = 64U << 10U;
    require(text.size() <= most, ErrorCode::InvalidArgument, "a key of ", text.size(),
            " bytes, at most ", most, " are allowed");
    Bio bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
    require(bio != nullptr, ErrorCode::OutOfMemory, "cannot read a key");
    return bio;
}

[[noreturn]] void fail_key(const char* kind, const EVP_PKEY* found, const char* remedy) {
    ERR_clear_error();
    const char* type = found == nullptr ? nullptr : EVP_PKEY_get0_type_name(found);
    fail(ErrorCode::InvalidArgument, "no Ed25519 ", kind, " key in PEM",
         type == nullptr ? std::string() : str(", but one of type ", type), remedy);
}

constexpr const char* make_private =
    "; make one with 'openssl genpkey -algorithm ed25519 -out key.pem'";
constexpr const char* make_public =
    "; 'openssl pkey -in key.pem -pubout' prints that of a private key";

Key private_key(const Ed25519PrivateKey& key) {
    start_openssl();
    Key k(EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, data(key.seed.data()),
                                       key.seed.size()));
    require(k != nullptr, ErrorCode::OutOfMemory, "cannot set up a key");
    return k;
}

} // namespace

Ed25519PrivateKey::~Ed25519PrivateKey() {
    OPENSSL_cleanse(seed.data(), seed.size());
}

std::string key_name(const Ed25519PublicKey& key) {
    Sha256 hash = sha256(key.bytes);
    return to_hex(std::span(hash).first(8));
}

Ed25519PrivateKey private_key_from_pem(std::string_view text) {
    start_openssl();
    bool asked = false;
    Key k(PEM_read_bio_PrivateKey(reader(text).get(), nullptr, no_passphrase, &asked));
    require(!asked, ErrorCode::InvalidArgument,
            "the private key is encrypted; 'openssl pkey -in key.pem' writes it decrypted");
    Ed25519PrivateKey out;
    size_t bytes = out.seed.size();
    if (k == nullptr || EVP_PKEY_is_a(k.get(), "ED25519") != 1 ||
        EVP_PKEY_get_raw_private_key(k.get(), data(out.seed.data()), &bytes) != 1) {
        fail_key("private", k.get(), make_private);
    }
    return out;
}

Ed25519PublicKey public_key_from_pem(std::string_view text) {
    start_openssl();
    bool asked = false;
    Key k(PEM_read_bio_PUBKEY(reader(text).get(), nullptr, no_passphrase, &asked));
    Ed25519PublicKey out;
    size_t bytes = out.bytes.size();
    if (k == nullptr || EVP_PKEY_is_a(k.get(), "ED25519") != 1 ||
        EVP_PKEY_get_raw_public_key(k.get(), data(out.bytes.data()), &bytes) != 1) {
        fail_key("public", k.get(), make_public);
    }
    return out;
}

Ed25519PublicKey public_key_of(const Ed25519PrivateKey& key) {
    Key k = private_key(key);
    Ed25519PublicKey out;
    size_t bytes = out.bytes.size();
    CHECK(EVP_PKEY_get_raw_public_key(k.get(), data(out.bytes.data()), &bytes) == 1,
          "a private key without its public one");
    return out;
}

Ed25519Signature sign(const Ed25519PrivateKey& key, std::span<const std::byte> message) {
    Key k = private_key(key);
    DigestContext c(EVP_MD_CTX_new());
    Ed25519Signature out{};
    size_t bytes = out.size();
    require(c != nullptr && EVP_DigestSignInit(c.get(), nullptr, nullptr, nullptr, k.get()) == 1 &&
                EVP_DigestSign(c.get(), data(out.data()), &bytes, data(message.data()),
                               message.size()) == 1,
            ErrorCode::OutOfMemory, "cannot sign");
    return out;
}

bool verify(const Ed25519PublicKey& key, const Ed25519Signature& signature,
            std::span<const std::byte> message) {
    start_openssl();
    Key k(EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, data(key.bytes.data()),
                                      key.bytes.size()));
    DigestContext c(EVP_MD_CTX_new());
    bool ok = k != nullptr && c != nullptr &&
              EVP_DigestVerifyInit(c.get(), nullptr, nullptr, nullptr, k.get()) == 1 &&
              EVP_DigestVerify(c.get(), data(signature.data()), signature.size(),
                               data(message.data()), message.size()) == 1;
    ERR_clear_error();
    return ok;
}

} // namespace ingot
