// SPDX-License-Identifier: Apache-2.0
#include "api/tensorrt/runtime/read_engine.h"

#include "base/error.h"
#include "base/hash.h"
#include "engine/container.h"

#include <algorithm>

namespace ingot::api {

namespace {

constexpr size_t header_bytes = engine_header_bytes;
// What a header claims is not allocated before that much of it has come.
constexpr size_t most_at_once = 64ULL << 20;

/// `read(to, n)`: up to n bytes, 0 at the end, negative on an error.
template <class Read>
AlignedBytes read_engine(const Read& read) {
    AlignedBytes bytes;
    uint64_t wanted = header_bytes;
    while (bytes.size() < wanted) {
        size_t at = bytes.size();
        size_t part = static_cast<size_t>(std::min<uint64_t>(wanted - at, most_at_once));
        bytes.resize(at + part);
        int64_t got = read(bytes.data() + at, static_cast<int64_t>(part));
        require(got >= 0 && got <= static_cast<int64_t>(part), ErrorCode::Io, "the reader gave ",
                got, " for ", part, " bytes after ", at);
        bytes.resize(at + static_cast<size_t>(got));
        if (got == 0) {
            break;
        }
        if (at < header_bytes && bytes.size() >= header_bytes) {
            wanted = read_engine_header(bytes).file_bytes;
        }
    }
    return bytes;
}

Hash128 fingerprint(const Engine& engine) {
    AlignedBytes bytes = engine_bytes(engine);
    return xxh3_128(bytes);
}

} // namespace

AlignedBytes copy_bytes(const void* blob, size_t size) {
    const auto* from = static_cast<const std::byte*>(blob);
    return {from, from + size};
}

std::shared_ptr<const Engine> load_engine(AlignedBytes bytes) {
    auto owner = std::make_shared<const AlignedBytes>(std::move(bytes));
    return Engine::load(*owner, owner);
}

std::shared_ptr<const Engine> load_engine(const AlignedBytes& bytes,
                                          const std::shared_ptr<MemorySource>& source) {
    std::byte* memory = source->allocate(static_cast<int64_t>(bytes.size()));
    require(memory != nullptr, ErrorCode::OutOfMemory, "an engine needs ", bytes.size(),
            " bytes, which the allocator does not give");
    std::shared_ptr<std::byte> owner(memory, [source](std::byte* p) { source->release(p); });
    std::copy(bytes.begin(), bytes.end(), memory);
    return Engine::load({memory, bytes.size()}, owner);
}

AlignedBytes read_all(nvinfer1::IStreamReaderV2& reader, cudaStream_t stream) {
    return read_engine([&](void* to, int64_t n) { return reader.read(to, n, stream); });
}

AlignedBytes read_all(nvinfer1::IStreamReader& reader) {
    return read_engine([&](void* to, int64_t n) { return reader.read(to, n); });
}

void check_same_engine(std::span<const std::byte> bytes, const Engine& engine) {
    auto other = Engine::load(bytes, nullptr, true);
    require(fingerprint(*other) == fingerprint(engine), ErrorCode::InvalidArgument,
            "these weights belong to another engine");
}

} // namespace ingot::api
