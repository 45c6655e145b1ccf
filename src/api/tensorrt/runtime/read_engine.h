// SPDX-License-Identifier: Apache-2.0
// Engines from the application's bytes and readers: read once, to where they stay.
#pragma once

#include "NvInferRuntime.h"
#include "engine/engine.h"

namespace ingot::api {

/// An engine's bytes, weights among them, in memory that engines keep.
struct EngineBytes {
    std::shared_ptr<std::byte> memory;
    size_t size = 0;
    std::span<const std::byte> span() const { return {memory.get(), size}; }
};

/// Errors of all that take a `source`, who gives the memory (null: the system): OutOfMemory.
/// A copy of the caller's.
EngineBytes copy_bytes(const void* blob, size_t size, const std::shared_ptr<MemorySource>& source);
/// Everything that a reader has, up to the end of the engine that it begins with. Errors: Io.
EngineBytes read_all(nvinfer1::IStreamReaderV2& reader,
                     const std::shared_ptr<MemorySource>& source);
EngineBytes read_all(nvinfer1::IStreamReader& reader, const std::shared_ptr<MemorySource>& source);

/// Errors: InvalidEngine.
std::shared_ptr<const Engine> load_engine(const EngineBytes& bytes, CheckWeights check);
/// From bytes of an engine that was written a moment ago; it owns them.
std::shared_ptr<const Engine> load_engine(AlignedBytes bytes);
/// From a copy of such bytes.
std::shared_ptr<const Engine> load_engine(const AlignedBytes& bytes,
                                          const std::shared_ptr<MemorySource>& source);

/// Errors: InvalidArgument when the bytes are not those of `engine`.
void check_same_engine(std::span<const std::byte> bytes, const EngineBytes& engine);
/// The same from a reader, piece by piece.
void check_same_engine(nvinfer1::IStreamReaderV2& reader, cudaStream_t stream,
                       const EngineBytes& engine);

} // namespace ingot::api
