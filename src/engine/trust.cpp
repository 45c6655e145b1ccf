// SPDX-License-Identifier: Apache-2.0
#include "engine/trust.h"

#include "base/error.h"
#include "base/file.h"

#include <chrono>
#include <cstring>
#include <mutex>
#include <set>

namespace ingot {

namespace {

// The section: u32 version, u32 zero, the public key, the signature.
constexpr uint32_t signature_version = 1;
constexpr size_t key_at = 8;
constexpr size_t signature_at = key_at + 32;

constexpr std::string_view domain = "Ingot engine signature 1\n";

// The signed message: the domain, then the SHA-256 of Container::signed_bytes().
std::vector<std::byte> message_of(std::span<const std::byte> signed_bytes) {
    Sha256 hash = sha256(signed_bytes);
    std::vector<std::byte> out(domain.size() + hash.size());
    std::memcpy(out.data(), domain.data(), domain.size());
    std::memcpy(out.data() + domain.size(), hash.data(), hash.size());
    return out;
}

// "2027-01-31"; the order of the texts is that of the days.
std::string today() {
    using namespace std::chrono;
    const year_month_day d(floor<days>(system_clock::now()));
    auto padded = [](auto v, size_t digits) {
        std::string text = std::to_string(v);
        return std::string(digits - std::min(digits, text.size()), '0') + text;
    };
    return str(padded(static_cast<int>(d.year()), 4), "-",
               padded(static_cast<unsigned>(d.month()), 2), "-",
               padded(static_cast<unsigned>(d.day()), 2));
}

bool is_date(std::string_view t) {
    if (t.size() != 10 || t[4] != '-' || t[7] != '-') {
        return false;
    }
    unsigned parts[3] = {0, 0, 0};
    size_t part = 0;
    for (char c : t) {
        if (c == '-') {
            ++part;
        } else if (c >= '0' && c <= '9' && part < 3) {
            parts[part] = parts[part] * 10 + static_cast<unsigned>(c - '0');
        } else {
            return false;
        }
    }
    using namespace std::chrono;
    return year_month_day(year(static_cast<int>(parts[0])), month(parts[1]), day(parts[2])).ok();
}

std::string_view trimmed(std::string_view s) {
    constexpr std::string_view blanks = " \t\r";
    size_t first = s.find_first_not_of(blanks);
    return first == std::string_view::npos
               ? std::string_view()
               : s.substr(first, s.find_last_not_of(blanks) - first + 1);
}

struct OwnEngines {
    std::mutex mutex;
    std::set<Sha256> hashes;
};

OwnEngines& own_engines() {
    static OwnEngines engines;
    return engines;
}

bool is_own(std::span<const std::byte> signed_bytes) {
    OwnEngines& own = own_engines();
    Sha256 hash = sha256(signed_bytes);
    std::scoped_lock lock(own.mutex);
    return own.hashes.contains(hash);
}

// A signature covers the rows of the table, the SHA-256 in them cover the sections.
void check_sha256(const Container& c, bool with_weights) {
    for (const Section& s : c.sections()) {
        bool skipped =
            s.kind == SectionKind::Signature || (s.kind == SectionKind::Weights && !with_weights);
        require(skipped || sha256(c.section_bytes(s)) == s.sha, ErrorCode::InvalidEngine,
                "section ", s.kind,
                " does not match its SHA-256: the engine was changed after it was written");
    }
}

std::span<const std::byte> signature_section(const Container& c) {
    std::span<const std::byte> bytes = c.section(SectionKind::Signature);
    uint32_t version = 0;
    require(bytes.size() >= key_at, ErrorCode::InvalidEngine, "section signature has ",
            bytes.size(), " bytes, expected ", signature_section_bytes);
    std::memcpy(&version, bytes.data(), sizeof version);
    require(version == signature_version, ErrorCode::InvalidEngine,
            "section signature has version ", version, ", this Ingot reads ", signature_version,
            "; use a newer Ingot or sign the engine again");
    require(bytes.size() == signature_section_bytes, ErrorCode::InvalidEngine,
            "section signature has ", bytes.size(), " bytes, expected ", signature_section_bytes);
    return bytes;
}

// "" or the end of a sentence.
std::string distrust(const Container& c, const Trust& trust) {
    if (c.find(SectionKind::Signature) == nullptr) {
        return "it is not signed";
    }
    if (trust.keys.empty()) {
        return "it is signed, but no trusted keys are given";
    }
    const Ed25519PublicKey signer = *signer_of(c);
    std::string expired;
    for (const TrustedKey& k : trust.keys) {
        if (!(k.key == signer)) {
            continue;
        }
        if (!k.expires.empty() && k.expires < today()) {
            expired = k.expires;
            continue;
        }
        Ed25519Signature signature{};
        std::memcpy(signature.data(), signature_section(c).data() + signature_at, signature.size());
        require(verify(k.key, signature, message_of(c.signed_bytes())), ErrorCode::InvalidEngine,
                "the signature of key ", key_name(signer),
                " does not match: the engine was changed after it was signed");
        check_sha256(c, true);
        return "";
    }
    return expired.empty() ? str("it is signed by key ", key_name(signer),
                                 ", which is not one of the trusted keys")
                           : str("the trusted key ", key_name(signer),
                                 " that signed it expired after ", expired);
}

void copy_sections(const Container& c, ContainerWriter& out, const Ed25519PrivateKey& key) {
    out.set_flags(c.flags());
    out.set_producer(c.producer());
    for (const Section& s : c.sections()) {
        if (s.kind == SectionKind::Signature) {
            continue;
        }
        std::span<const std::byte> bytes = c.section_bytes(s);
        out.begin(s.kind, s.required, s.alignment);
        out.write(bytes);
        out.end();
        if (s.kind == SectionKind::Weights) {
            out.set_xxh3(s.kind, s.xxh3);
        }
    }
    out.begin(SectionKind::Signature, false);
    std::vector<std::byte> room(signature_section_bytes);
    out.write(room);
    out.end();
    out.commit([&](std::span<const std::byte> signed_bytes) {
        std::memcpy(room.data(), &signature_version, sizeof signature_version);
        std::memcpy(room.data() + key_at, public_key_of(key).bytes.data(), 32);
        Ed25519Signature signature = sign(key, message_of(signed_bytes));
        std::memcpy(room.data() + signature_at, signature.data(), signature.size());
        return room;
    });
}

// Signing damage would make it trusted.
uint32_t check_whole(const Container& c) {
    for (uint64_t i = 0; i < c.weight_chunks(); ++i) {
        if (!c.weight_chunk_is_whole(i)) {
            c.fail_weight_chunk(i);
        }
    }
    check_sha256(c, true);
    auto sections = static_cast<uint32_t>(c.sections().size());
    return c.find(SectionKind::Signature) == nullptr ? sections + 1 : sections;
}

} // namespace

std::vector<TrustedKey> parse_trusted_keys(std::string_view text) {
    std::vector<TrustedKey> keys;
    std::string expires;
    std::string block;
    size_t number = 0;
    for (size_t at = 0; at < text.size();) {
        size_t end = std::min(text.find('\n', at), text.size());
        std::string_view line = trimmed(text.substr(at, end - at));
        at = end + 1;
        ++number;
        auto place = [&] { return str("line ", number); };
        if (!block.empty() || line.starts_with("-----BEGIN ")) {
            block += str(line, "\n");
            if (line.starts_with("-----END ")) {
                with_place(place, [&] { keys.push_back({public_key_from_pem(block), expires}); });
                block.clear();
                expires.clear();
            }
        } else if (line.starts_with("expires:") && expires.empty()) {
            expires = trimmed(line.substr(std::string_view("expires:").size()));
            require(is_date(expires), ErrorCode::InvalidArgument, "line ", number, ": '", expires,
                    "' is no date, expected expires: YYYY-MM-DD");
        } else {
            require(line.empty() || line.front() == '#', ErrorCode::InvalidArgument, "line ",
                    number,
                    ": expected a public key in PEM, 'expires: YYYY-MM-DD' before it, or a "
                    "comment (#)");
        }
    }
    require(block.empty() && expires.empty(), ErrorCode::InvalidArgument, "line ", number,
            block.empty() ? ": a date that no key follows" : ": the key does not end");
    require(!keys.empty(), ErrorCode::InvalidArgument,
            "there is no key; 'openssl pkey -in key.pem -pubout' prints that of a private key");
    return keys;
}

std::vector<TrustedKey> read_trusted_keys(const std::string& path) {
    return with_place([&] { return path; },
                      [&] { return parse_trusted_keys(read_text_file(path, 1U << 20U)); });
}

std::optional<Ed25519PublicKey> signer_of(const Container& c) {
    if (c.find(SectionKind::Signature) == nullptr) {
        return std::nullopt;
    }
    Ed25519PublicKey key;
    std::memcpy(key.bytes.data(), signature_section(c).data() + key_at, key.bytes.size());
    return key;
}

std::string reason_for_distrust(const Container& c, const Trust& trust) {
    std::string reason = distrust(c, trust);
    require(reason.empty() || !trust.only_signed, ErrorCode::InvalidEngine,
            "only engines signed by a trusted key are allowed, and ", reason);
    if (!reason.empty() && is_own(c.signed_bytes())) {
        check_sha256(c, false); // weights are no code
        return "";
    }
    return reason;
}

void remember_own_engine(std::span<const std::byte> signed_bytes) {
    OwnEngines& own = own_engines();
    Sha256 hash = sha256(signed_bytes);
    std::scoped_lock lock(own.mutex);
    own.hashes.insert(hash);
}

void sign_engine(const std::string& path, const std::string& signed_path,
                 const Ed25519PrivateKey& key) {
    auto file = MappedFile::open(path);
    with_place([&] { return path; },
               [&] {
                   Container c(file->bytes(), file);
                   ContainerWriter out(signed_path, check_whole(c));
                   copy_sections(c, out, key);
               });
}

AlignedBytes signed_engine(std::span<const std::byte> engine, const Ed25519PrivateKey& key) {
    Container c(engine, nullptr);
    AlignedBytes bytes;
    ContainerWriter out(bytes, check_whole(c));
    copy_sections(c, out, key);
    return bytes;
}

} // namespace ingot
