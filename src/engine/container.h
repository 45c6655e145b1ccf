// SPDX-License-Identifier: Apache-2.0
// The container of the engine file: a fixed header, a table of sections, the sections (ADR 0003).
// Independent of graphs. All numbers are little-endian.
//
//   header, 64 bytes: magic[8], u32 format, u32 producer, u64 flags (below), u64 table offset,
//                     u32 sections, u32 row bytes, u64 file bytes,
//                     XXH3-128 of the 48 bytes before it and the table
//   row, 88 bytes:    u32 kind, u32 flags (bit 0: required), u64 offset, u64 bytes, XXH3-128,
//                     SHA-256, u64 alignment, u64 zero
//
// Sections follow the table in order, each at the next multiple of its alignment; the gap is zeros.
// Sections do not overlap, and the file ends with the last one.
#pragma once

#include "base/bytes.h"
#include "base/file.h"
#include "base/hash.h"

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ingot {

enum class SectionKind : uint32_t {
    Graph = 1,
    Weights = 2,
    WeightHashes = 3, // XXH3-128 of each 16 MiB chunk of the weights
    Profiles = 4,
    Metadata = 5,
    Cubins = 6,    // optional
    Signature = 7, // optional: an Ed25519 signature (engine/trust.h)
    Source = 8,    // optional: the graph before the AOT passes, for a refit
    Refit = 9,     // with it: the replaceable weights; required when weights are missing
    Formats = 10,  // memory formats of inputs and outputs, unless all are row major
};
std::string_view name(SectionKind k);

inline constexpr uint32_t engine_format = 1;
inline constexpr uint32_t engine_producer = 0x000100; // major.minor.patch of Ingot, one byte each
inline constexpr uint64_t weight_chunk_bytes = 16ULL << 20;
inline constexpr uint64_t weight_alignment = 4096; // of the section, for maps and direct upload

inline constexpr uint64_t engine_header_bytes = 64;
inline constexpr uint64_t signature_section_bytes = 104;

/// Flags of the header: bit 32 + i marks kernels for GPUs of flagged_capabilities[i]; bit 63 marks
/// streamable weights. Others are unknown.
inline constexpr std::array<int, 11> flagged_capabilities = {80,  86,  87,  88,  89, 90,
                                                             100, 103, 110, 120, 121};
inline constexpr int first_capability_flag = 32;
inline constexpr uint64_t streaming_flag = 1ULL << 63U;
inline constexpr uint64_t known_flags = streaming_flag | ((1ULL << flagged_capabilities.size()) - 1)
                                                             << first_capability_flag;
inline constexpr std::array<char, 8> engine_magic = {'I', 'N', 'G', 'O', 'T', '\r', '\n', '\x1a'};

/// The contents of the header.
struct EngineHeader {
    uint32_t format = 0;
    uint32_t producer = 0;
    bool is_readable = false; // by this release
    uint64_t file_bytes = 0;
    std::vector<int> capabilities; // compute capabilities with kernels
    bool streams_weights = false;
};
/// Reads an engine's first engine_header_bytes. Errors: InvalidEngine when they are not an
/// engine's.
EngineHeader read_engine_header(std::span<const std::byte> bytes);

/// The size of the weights, from an engine's first bytes; nullopt when these end inside the table.
/// Errors: InvalidEngine for a damaged header or table.
std::optional<uint64_t> weight_bytes_in_table(std::span<const std::byte> bytes);

/// The identity of an engine: SHA-256 of its header and table, whose rows hold the SHA-256 of each
/// section. From its first bytes; nullopt when these end inside the table. Errors: InvalidEngine
/// when they are not an engine's, and for a damaged header or table.
std::optional<Sha256> engine_identity(std::span<const std::byte> bytes);

struct Section {
    SectionKind kind = SectionKind::Graph;
    bool required = true;
    uint64_t offset = 0;
    uint64_t bytes = 0;
    uint64_t alignment = 64;
    Hash128 xxh3;
    Sha256 sha{};
};

/// Writes a container through AtomicFile, or to memory. Sections are written in the order of
/// begin() calls.
class ContainerWriter {
public:
    /// `sections` is the number of begin() calls to come.
    ContainerWriter(const std::string& path, uint32_t sections);
    /// Writes to `memory`, which must be empty and outlive the writer.
    ContainerWriter(AlignedBytes& memory, uint32_t sections);
    void begin(SectionKind kind, bool required, uint64_t alignment = 64);
    void write(std::span<const std::byte> data);
    void pad_to(uint64_t alignment); // zeros inside the section
    /// Bytes of the current section so far.
    uint64_t position() const { return written() - current().offset; }
    void end();
    /// Replaces the hash of a finished section (weights carry the hash of their chunk hashes).
    void set_xxh3(SectionKind kind, const Hash128& h);
    /// Sets known flags of the header. Call before commit().
    void set_flags(uint64_t flags) { flags_ = flags; }
    /// The release that wrote the contents, when they are copied. Call before commit().
    void set_producer(uint32_t producer) { producer_ = producer; }
    /// Gives the bytes of the signature, all signature_section_bytes, from
    /// Container::signed_bytes().
    using Signer = std::function<std::vector<std::byte>(std::span<const std::byte>)>;
    /// With a signer, the last section is a signature, whose bytes it replaces. Returns
    /// Container::signed_bytes() of what was written.
    std::vector<std::byte> commit(const Signer& signer = {});

private:
    void put_signature(std::span<const std::byte> signature);
    void overwrite(uint64_t at, std::span<const std::byte> data);
    Section& current();
    const Section& current() const { return sections_.back(); }
    uint64_t written() const { return file_ ? file_->position() : memory_->size(); }
    void append(std::span<const std::byte> data);
    std::optional<AtomicFile> file_;
    AlignedBytes* memory_ = nullptr;
    std::vector<Section> sections_;
    uint32_t expected_;
    uint64_t flags_ = 0;
    uint32_t producer_ = engine_producer;
    std::unique_ptr<HashStream> hash_;
};

/// A parsed and checked container. The weights are not copied; everything else is copied before it
/// is checked, because other processes may write to a mapped file between check and use.
class Container {
public:
    /// Checks magic, version, bounds, table hash, and the hash of every section except the weights.
    /// Errors: InvalidEngine with found, needed and remedy, and the position in the file.
    Container(std::span<const std::byte> bytes, std::shared_ptr<const void> owner);
    const Section* find(SectionKind k) const;
    /// The bytes of a required section.
    std::span<const std::byte> section(SectionKind k) const;
    /// The bytes of one of sections().
    std::span<const std::byte> section_bytes(const Section& s) const;
    const std::vector<Section>& sections() const { return sections_; }
    uint64_t flags() const { return flags_; }
    /// The bytes that a signature covers: the first 48 bytes of the header, then all rows but the
    /// signature's.
    const std::vector<std::byte>& signed_bytes() const { return signed_bytes_; }
    const std::shared_ptr<const void>& owner() const { return owner_; }
    uint32_t producer() const { return producer_; }
    uint64_t weight_chunks() const;
    /// Whether a chunk of the weights matches its recorded hash.
    bool weight_chunk_is_whole(uint64_t chunk) const;
    /// Throws the InvalidEngine error for a chunk that does not match.
    [[noreturn]] void fail_weight_chunk(uint64_t chunk) const;

private:
    std::span<const std::byte> weight_chunk(uint64_t chunk) const noexcept;
    void parse_header();
    void parse_rows(std::span<const std::byte> head, uint32_t count);
    void verify_sections() const;
    void copy_sections();
    std::span<const std::byte> bytes_;
    std::shared_ptr<const void> owner_;
    std::vector<Section> sections_;
    std::vector<std::shared_ptr<const std::vector<std::byte>>> copies_; // null for the weights
    std::vector<std::byte> signed_bytes_;
    uint64_t flags_ = 0;
    uint32_t producer_ = 0;
};

} // namespace ingot
