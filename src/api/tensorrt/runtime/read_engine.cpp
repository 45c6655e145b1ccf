// SPDX-License-Identifier: Apache-2.0
#include "api/tensorrt/runtime/read_engine.h"

#include "base/error.h"
#include "base/file.h"
#include "base/hex.h"
#include "engine/weight_check.h"
#include "plan/memory_source.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace ingot::api {

namespace {

// A header's sizes are trusted once this much has arrived.
constexpr size_t most_unseen = 64ULL << 20;
constexpr size_t piece_bytes = 1ULL << 20;

EngineBytes allocate(size_t size, const std::shared_ptr<MemorySource>& source) {
    constexpr std::align_val_t alignment{64};
    size_t bytes = std::max<size_t>(size, 1);
    std::byte* memory =
        source == nullptr ? static_cast<std::byte*>(::operator new(bytes, alignment, std::nothrow))
                          : source->allocate(static_cast<int64_t>(bytes));
    require(memory != nullptr, ErrorCode::OutOfMemory, "an engine needs ", size, " bytes, which ",
            source == nullptr ? "the system does not have" : "the allocator does not give");
    auto release = [source](std::byte* p) {
        source == nullptr ? ::operator delete(p, alignment) : source->release(p);
    };
    return {{memory, release}, size};
}

/// Fills `to` with `read(to, n)`, which returns at most n bytes, 0 at the end, negative on an
/// error. Returns the bytes read; `before` counts earlier ones.
template <class Read>
size_t fill(std::span<std::byte> to, size_t before, const Read& read) {
    size_t at = 0;
    while (at < to.size()) {
        auto wanted = static_cast<int64_t>(to.size() - at);
        int64_t got = read(to.data() + at, wanted);
        require(got >= 0 && got <= wanted, ErrorCode::Io, "the reader gave ", got, " for ", wanted,
                " bytes after ", before + at);
        if (got == 0) {
            break;
        }
        at += static_cast<size_t>(got);
    }
    return at;
}

template <class Read>
EngineBytes read_engine(const std::shared_ptr<MemorySource>& source, const Read& read) {
    std::array<std::byte, engine_header_bytes> header;
    size_t came = fill(header, 0, read);
    uint64_t whole = came;
    if (came == header.size()) {
        whole = std::max<uint64_t>(came, read_engine_header(header).file_bytes);
    }
    EngineBytes bytes = allocate(std::min<uint64_t>(whole, most_unseen), source);
    std::memcpy(bytes.memory.get(), header.data(), came);
    came += fill({bytes.memory.get() + came, bytes.size - came}, came, read);
    if (came == most_unseen && came < whole) {
        EngineBytes all = allocate(whole, source);
        std::memcpy(all.memory.get(), bytes.memory.get(), came);
        bytes = std::move(all);
        came += fill({bytes.memory.get() + came, bytes.size - came}, came, read);
    }
    bytes.size = came;
    return bytes;
}

} // namespace

EngineBytes copy_bytes(const void* blob, size_t size, const std::shared_ptr<MemorySource>& source) {
    EngineBytes bytes = allocate(size, source);
    std::memcpy(bytes.memory.get(), blob, size);
    return bytes;
}

EngineBytes copy_checked(const void* blob, size_t size,
                         const std::shared_ptr<MemorySource>& source) {
    std::span<const std::byte> from(static_cast<const std::byte*>(blob), size);
    Container given(from, nullptr);
    const Section* found = given.find(SectionKind::Weights);
    if (found == nullptr) {
        return copy_bytes(blob, size, source);
    }
    const Section weights = *found;
    EngineBytes bytes = allocate(size, source);
    std::byte* to = bytes.memory.get();
    uint64_t end = weights.offset + weights.bytes;
    std::memcpy(to, blob, weights.offset);
    std::memcpy(to + end, from.data() + end, size - end);
    Container copy(bytes.span(), nullptr);
    const Section* same = copy.find(SectionKind::Weights);
    require(same != nullptr && same->offset == weights.offset && same->bytes == weights.bytes,
            ErrorCode::InvalidEngine, "the engine's bytes changed while they were read");
    WeightCheck check(std::move(copy), "", true);
    for (uint64_t at = 0; at < weights.bytes;) {
        uint64_t n = std::min<uint64_t>(piece_bytes, weights.bytes - at);
        std::memcpy(to + weights.offset + at, from.data() + weights.offset + at, n);
        at += n;
        check.came(at);
    }
    check.wait();
    return bytes;
}

EngineBytes map_engine(const EngineFile& file) {
    require(file.path != nullptr, ErrorCode::InvalidArgument, "the path is null");
    auto map = file.folder == nullptr ? MappedFile::open(file.path)
                                      : MappedFile::open_beneath(file.folder, file.path);
    if (file.digest != nullptr) {
        std::optional<Sha256> found =
            with_place([&] { return map->path(); }, [&] { return engine_identity(map->bytes()); });
        std::string got = found ? to_hex(*found) : std::string("an engine that is cut short");
        require(got == file.digest, ErrorCode::InvalidEngine, map->path(),
                " is another engine: got ", got, ", expected ", file.digest);
    }
    std::span<const std::byte> bytes = map->bytes();
    return {{map, const_cast<std::byte*>(bytes.data())}, bytes.size()}; // it is only read
}

EngineBytes read_all(nvinfer1::IStreamReaderV2& reader,
                     const std::shared_ptr<MemorySource>& source) {
    return read_engine(source, [&](void* to, int64_t n) { return reader.read(to, n, nullptr); });
}

EngineBytes read_all(nvinfer1::IStreamReader& reader, const std::shared_ptr<MemorySource>& source) {
    return read_engine(source, [&](void* to, int64_t n) { return reader.read(to, n); });
}

std::shared_ptr<const Engine> load_engine(const EngineBytes& bytes, CheckWeights check,
                                          const Trust& trust) {
    return Engine::load(bytes.span(), bytes.memory, check, trust);
}

std::shared_ptr<const Engine> load_engine(AlignedBytes bytes) {
    auto owner = std::make_shared<const AlignedBytes>(std::move(bytes));
    return Engine::load(*owner, owner, CheckWeights::Never);
}

std::shared_ptr<const Engine> load_engine(const AlignedBytes& bytes,
                                          const std::shared_ptr<MemorySource>& source) {
    return load_engine(copy_bytes(bytes.data(), bytes.size(), source), CheckWeights::Never);
}

std::shared_ptr<const Engine> built_engine(const Engine& engine,
                                           const std::shared_ptr<MemorySource>& source) {
    if (WriteOptions options = as_built(engine); !options.weights) {
        return load_engine(engine_bytes(engine, options), source);
    }
    return engine.with_own_weights([&](size_t size) { return allocate(size, source).memory; });
}

static constexpr const char* other_engine = "these weights belong to another engine";

void check_same_engine(std::span<const std::byte> bytes, const EngineBytes& engine) {
    std::span<const std::byte> own = engine.span();
    require(bytes.size() == own.size() && std::memcmp(bytes.data(), own.data(), own.size()) == 0,
            ErrorCode::InvalidArgument, other_engine);
}

void check_same_engine(nvinfer1::IStreamReaderV2& reader, cudaStream_t stream,
                       const EngineBytes& engine) {
    std::span<const std::byte> own = engine.span();
    auto read = [&](void* to, int64_t n) { return reader.read(to, n, stream); };
    std::vector<std::byte> piece(std::min(piece_bytes, own.size()));
    for (size_t at = 0; at < own.size();) {
        std::span<std::byte> part(piece.data(), std::min(piece.size(), own.size() - at));
        size_t came = fill(part, at, read);
        require(came == part.size() && std::memcmp(part.data(), own.data() + at, came) == 0,
                ErrorCode::InvalidArgument, other_engine);
        at += came;
    }
}

} // namespace ingot::api
