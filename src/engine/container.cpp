// SPDX-License-Identifier: Apache-2.0
#include "engine/container.h"

#include "base/checked.h"
#include "base/error.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace ingot {

namespace {

constexpr uint64_t header_bytes = engine_header_bytes;
constexpr uint64_t hashed_header_bytes = 48;
constexpr uint64_t row_bytes = 88;
constexpr uint32_t max_sections = 64;
constexpr uint32_t required_flag = 1;

template <class T>
T read(std::span<const std::byte> bytes, uint64_t at) {
    T v{};
    std::memcpy(&v, bytes.data() + at, sizeof(T));
    return v;
}

template <class T>
void put(std::vector<std::byte>& out, const T& v) {
    const auto* p = reinterpret_cast<const std::byte*>(&v);
    out.insert(out.end(), p, p + sizeof(T));
}

void put(std::vector<std::byte>& out, const Section& s) {
    put(out, static_cast<uint32_t>(s.kind));
    put(out, s.required ? required_flag : 0U);
    put(out, s.offset);
    put(out, s.bytes);
    put(out, s.xxh3.high);
    put(out, s.xxh3.low);
    put(out, s.sha);
    put(out, s.alignment);
    put(out, uint64_t{0});
}

std::string version_text(uint32_t v) {
    return str(v >> 16, ".", (v >> 8) & 255U, ".", v & 255U);
}

template <class... Args>
[[noreturn]] void bad(const Args&... args) {
    fail(ErrorCode::InvalidEngine, args...);
}

// The bytes have header and table.
void check_table_hash(std::span<const std::byte> head, uint32_t count) {
    HashStream h;
    h.add(head.first(hashed_header_bytes));
    h.add(head.subspan(header_bytes, uint64_t{count} * row_bytes));
    if (!(h.xxh3() == Hash128{read<uint64_t>(head, 48), read<uint64_t>(head, 56)})) {
        bad("header and table do not match their hash: the file is damaged, copy it again or "
            "rebuild the engine");
    }
}

} // namespace

std::string_view name(SectionKind k) {
    switch (k) {
    case SectionKind::Graph:
        return "graph";
    case SectionKind::Weights:
        return "weights";
    case SectionKind::WeightHashes:
        return "weight hashes";
    case SectionKind::Profiles:
        return "profiles";
    case SectionKind::Metadata:
        return "metadata";
    case SectionKind::Cubins:
        return "cubins";
    case SectionKind::Signature:
        return "signature";
    case SectionKind::Source:
        return "source";
    case SectionKind::Refit:
        return "refit";
    case SectionKind::Formats:
        return "formats";
    }
    return "unknown";
}

ContainerWriter::ContainerWriter(const std::string& path, uint32_t sections)
    : file_(std::in_place, path), expected_(sections) {
    std::vector<std::byte> room(header_bytes + row_bytes * sections);
    append(room);
}

ContainerWriter::ContainerWriter(AlignedBytes& memory, uint32_t sections)
    : memory_(&memory), expected_(sections) {
    CHECK(memory.empty(), "the memory is not empty");
    memory.resize(header_bytes + row_bytes * sections);
}

void ContainerWriter::append(std::span<const std::byte> data) {
    if (file_) {
        file_->write(data);
        return;
    }
    // insert() would copy byte by byte, because the vector has an allocator of its own.
    constexpr size_t slice = size_t{64} << 10; // in the cache between resize() and the copy
    while (!data.empty()) {
        const std::span<const std::byte> next = data.first(std::min(data.size(), slice));
        const size_t at = memory_->size();
        memory_->resize(at + next.size());
        std::memcpy(memory_->data() + at, next.data(), next.size());
        data = data.subspan(next.size());
    }
}

Section& ContainerWriter::current() {
    CHECK(!sections_.empty(), "no section has begun");
    return sections_.back();
}

void ContainerWriter::begin(SectionKind kind, bool required, uint64_t alignment) {
    CHECK(sections_.size() < expected_ && hash_ == nullptr, "sections do not match the table");
    std::vector<std::byte> gap((alignment - written() % alignment) % alignment);
    append(gap);
    Section s;
    s.kind = kind;
    s.required = required;
    s.offset = written();
    s.alignment = alignment;
    sections_.push_back(s);
    hash_ = std::make_unique<HashStream>();
}

void ContainerWriter::write(std::span<const std::byte> data) {
    hash_->add(data);
    append(data);
}

void ContainerWriter::pad_to(uint64_t alignment) {
    std::vector<std::byte> gap((alignment - position() % alignment) % alignment);
    write(gap);
}

void ContainerWriter::end() {
    Section& s = current();
    s.bytes = position();
    s.xxh3 = hash_->xxh3();
    s.sha = hash_->sha();
    hash_.reset();
}

void ContainerWriter::set_xxh3(SectionKind kind, const Hash128& h) {
    for (Section& s : sections_) {
        if (s.kind == kind) {
            s.xxh3 = h;
        }
    }
}

void ContainerWriter::overwrite(uint64_t at, std::span<const std::byte> data) {
    if (file_) {
        file_->write_at(at, data);
    } else {
        std::copy(data.begin(), data.end(), memory_->begin() + static_cast<std::ptrdiff_t>(at));
    }
}

void ContainerWriter::put_signature(std::span<const std::byte> signature) {
    Section& s = current();
    CHECK(s.kind == SectionKind::Signature && signature.size() == s.bytes,
          "the signature is not the last section");
    overwrite(s.offset, signature);
    s.xxh3 = xxh3_128(signature);
    s.sha = sha256(signature);
}

std::vector<std::byte> ContainerWriter::commit(const Signer& signer) {
    CHECK(sections_.size() == expected_ && hash_ == nullptr, "sections do not match the table");
    std::vector<std::byte> head;
    for (char c : engine_magic) {
        put(head, c);
    }
    put(head, engine_format);
    put(head, producer_);
    put(head, flags_);
    put(head, header_bytes);
    put(head, expected_);
    put(head, static_cast<uint32_t>(row_bytes));
    put(head, written());
    CHECK(head.size() == hashed_header_bytes, "header size");
    std::vector<std::byte> signed_bytes = head;
    for (const Section& s : sections_) {
        if (s.kind != SectionKind::Signature) {
            put(signed_bytes, s);
        }
    }
    if (signer) {
        put_signature(signer(signed_bytes));
    }
    std::vector<std::byte> table;
    for (const Section& s : sections_) {
        put(table, s);
    }
    HashStream h;
    h.add(head);
    h.add(table);
    put(head, h.xxh3().high);
    put(head, h.xxh3().low);
    head.insert(head.end(), table.begin(), table.end());
    overwrite(0, head);
    if (file_) {
        file_->commit();
    }
    return signed_bytes;
}

Container::Container(std::span<const std::byte> bytes, std::shared_ptr<const void> owner)
    : bytes_(bytes), owner_(std::move(owner)) {
    parse_header();
    copy_sections();
    verify_sections();
}

void Container::copy_sections() {
    for (const Section& s : sections_) {
        auto data = bytes_.subspan(s.offset, s.bytes);
        copies_.push_back(
            s.kind == SectionKind::Weights
                ? nullptr
                : std::make_shared<const std::vector<std::byte>>(data.begin(), data.end()));
    }
}

void Container::parse_header() {
    const std::vector<std::byte> head(
        bytes_.begin(),
        bytes_.begin() + static_cast<std::ptrdiff_t>(
                             std::min(bytes_.size(), header_bytes + max_sections * row_bytes)));
    uint32_t format = read_engine_header(head).format;
    producer_ = read<uint32_t>(head, 12);
    if (format == 0 || format > engine_format) {
        bad("engine format ", format, " (written by Ingot ", version_text(producer_),
            "), this is Ingot ", version_text(engine_producer), ", which reads formats 1 to ",
            engine_format, "; use a newer Ingot or rebuild the engine");
    }
    flags_ = read<uint64_t>(head, 16);
    if ((flags_ & ~known_flags) != 0) {
        bad("header flags ", flags_ & ~known_flags, " are unknown to Ingot ",
            version_text(engine_producer), "; use a newer Ingot or rebuild the engine");
    }
    auto table = read<uint64_t>(head, 24);
    auto count = read<uint32_t>(head, 32);
    auto row = read<uint32_t>(head, 36);
    auto size = read<uint64_t>(head, 40);
    if (table != header_bytes || row != row_bytes || count == 0 || count > max_sections) {
        bad("the table of sections is damaged: at ", table, ", ", count, " rows of ", row,
            " bytes, expected at ", header_bytes, ", 1 to ", max_sections, " rows of ", row_bytes);
    }
    if (size != bytes_.size()) {
        bad("the file has ", bytes_.size(), " bytes, its header says ", size,
            bytes_.size() < size ? "; it is truncated, copy it again"
                                 : "; something was appended to it");
    }
    if (header_bytes + uint64_t{count} * row_bytes > bytes_.size()) {
        bad("the table of ", count, " sections does not fit into ", bytes_.size(), " bytes");
    }
    check_table_hash(head, count);
    parse_rows(head, count);
}

/// The bytes of header and table, compared with their hash; empty when `bytes` end before.
static std::span<const std::byte> header_and_table(std::span<const std::byte> bytes) {
    auto count = read<uint32_t>(bytes, 32);
    if (count == 0 || count > max_sections) {
        bad("the table of sections is damaged: ", count, " rows, expected 1 to ", max_sections);
    }
    uint64_t all = header_bytes + uint64_t{count} * row_bytes;
    if (bytes.size() < all) {
        return {};
    }
    check_table_hash(bytes, count);
    return bytes.first(all);
}

std::optional<uint64_t> weight_bytes_in_table(std::span<const std::byte> bytes) {
    std::span<const std::byte> head = header_and_table(bytes);
    if (head.empty()) {
        return std::nullopt;
    }
    for (uint64_t at = header_bytes; at < head.size(); at += row_bytes) {
        if (read<uint32_t>(head, at) == static_cast<uint32_t>(SectionKind::Weights)) {
            return read<uint64_t>(head, at + 16);
        }
    }
    return 0;
}

std::optional<Sha256> engine_identity(std::span<const std::byte> bytes) {
    static_cast<void>(read_engine_header(bytes)); // it is an engine's
    std::span<const std::byte> head = header_and_table(bytes);
    return head.empty() ? std::nullopt : std::optional(sha256(head));
}

void Container::parse_rows(std::span<const std::byte> head, uint32_t count) {
    uint64_t end = header_bytes + uint64_t{count} * row_bytes;
    auto sign = [&](uint64_t at, uint64_t bytes) {
        auto first = head.begin() + static_cast<std::ptrdiff_t>(at);
        signed_bytes_.insert(signed_bytes_.end(), first,
                             first + static_cast<std::ptrdiff_t>(bytes));
    };
    sign(0, hashed_header_bytes);
    for (uint32_t i = 0; i < count; ++i) {
        uint64_t at = header_bytes + uint64_t{i} * row_bytes;
        Section s;
        s.kind = static_cast<SectionKind>(read<uint32_t>(head, at));
        if (s.kind != SectionKind::Signature) {
            sign(at, row_bytes);
        }
        auto flags = read<uint32_t>(head, at + 4);
        s.required = (flags & required_flag) != 0;
        s.offset = read<uint64_t>(head, at + 8);
        s.bytes = read<uint64_t>(head, at + 16);
        s.xxh3 = {read<uint64_t>(head, at + 24), read<uint64_t>(head, at + 32)};
        s.sha = read<Sha256>(head, at + 40);
        s.alignment = read<uint64_t>(head, at + 72);
        auto what = str("section ", i, " (", s.kind, ")");
        bool aligned =
            s.alignment != 0 && (s.alignment & (s.alignment - 1)) == 0 && s.alignment <= 65536;
        if ((flags & ~required_flag) != 0 || !aligned || read<uint64_t>(head, at + 80) != 0) {
            bad(what, ": flags ", flags, ", alignment ", s.alignment, " are not valid");
        }
        if (name(s.kind) == "unknown" && s.required) {
            bad("section ", i, " has kind ", static_cast<uint32_t>(s.kind), ", which Ingot ",
                version_text(engine_producer), " does not know but the engine (Ingot ",
                version_text(producer_), ") needs; use a newer Ingot");
        }
        uint64_t want = (end + s.alignment - 1) / s.alignment * s.alignment;
        auto stop = checked_add(s.offset, s.bytes);
        if (s.offset != want || !stop || *stop > bytes_.size()) {
            bad(what, " lies at ", s.offset, " with ", s.bytes, " bytes, expected at ", want,
                " inside ", bytes_.size(), " bytes");
        }
        if (find(s.kind) != nullptr) {
            bad(what, " occurs twice");
        }
        for (uint64_t b = end; b < s.offset; ++b) {
            if (bytes_[b] != std::byte{0}) {
                bad("byte ", b, " before ", what,
                    " is not zero: the file is damaged, copy it again or rebuild the engine");
            }
        }
        end = *stop;
        sections_.push_back(s);
    }
    if (end != bytes_.size()) {
        bad("the sections end at ", end, ", the file at ", bytes_.size());
    }
}

void Container::verify_sections() const {
    for (const Section& s : sections_) {
        bool is_weights = s.kind == SectionKind::Weights;
        std::span<const std::byte> data = section(is_weights ? SectionKind::WeightHashes : s.kind);
        if (is_weights) {
            if (data.size() != weight_chunks() * sizeof(Hash128)) {
                bad("there are ", data.size() / sizeof(Hash128), " weight hashes, expected ",
                    weight_chunks());
            }
        }
        if (!(xxh3_128(data) == s.xxh3)) {
            bad("section ", s.kind,
                " does not match its hash: the file is damaged, copy it again or rebuild the "
                "engine");
        }
    }
}

const Section* Container::find(SectionKind k) const {
    for (const Section& s : sections_) {
        if (s.kind == k) {
            return &s;
        }
    }
    return nullptr;
}

std::span<const std::byte> Container::section(SectionKind k) const {
    const Section* s = find(k);
    if (s == nullptr) {
        bad("section ", k, " is missing");
    }
    return section_bytes(*s);
}

std::span<const std::byte> Container::section_bytes(const Section& s) const {
    const auto& copy = copies_[static_cast<size_t>(&s - sections_.data())];
    return copy == nullptr ? bytes_.subspan(s.offset, s.bytes) : std::span(*copy);
}

uint64_t Container::weight_chunks() const {
    return (section(SectionKind::Weights).size() + weight_chunk_bytes - 1) / weight_chunk_bytes;
}

std::span<const std::byte> Container::weight_chunk(uint64_t chunk) const noexcept {
    const Section* s = find(SectionKind::Weights);
    uint64_t start = chunk * weight_chunk_bytes;
    return bytes_.subspan(s->offset + start, std::min(weight_chunk_bytes, s->bytes - start));
}

bool Container::weight_chunk_is_whole(uint64_t chunk) const {
    std::span<const std::byte> hashes = section(SectionKind::WeightHashes);
    uint64_t at = chunk * sizeof(Hash128);
    return xxh3_128(weight_chunk(chunk)) ==
           Hash128{read<uint64_t>(hashes, at), read<uint64_t>(hashes, at + 8)};
}

void Container::fail_weight_chunk(uint64_t chunk) const {
    std::span<const std::byte> data = weight_chunk(chunk);
    auto at = static_cast<uint64_t>(data.data() - bytes_.data());
    bad("section weights: chunk ", chunk, " of ", weight_chunks(), ", bytes ", at, " to ",
        at + data.size() - 1,
        ", does not match its hash: the file is damaged, copy it again or rebuild the engine");
}

} // namespace ingot
