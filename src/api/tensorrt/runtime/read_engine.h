// SPDX-License-Identifier: Apache-2.0
// Reads engines from the application's bytes and readers, once, into their final memory.
#pragma once

#include "NvInferRuntime.h"
#include "engine/engine.h"
#include "ingot.h"

namespace ingot::api {

/// An engine's bytes, weights included, in memory that engines share.
struct EngineBytes {
    std::shared_ptr<std::byte> memory;
    size_t size = 0;
    std::span<const std::byte> span() const { return {memory.get(), size}; }
};

/// Copies the caller's bytes. `source` provides the memory (null: the system). Errors of all
/// functions with a `source`: OutOfMemory.
EngineBytes copy_bytes(const void* blob, size_t size, const std::shared_ptr<MemorySource>& source);
/// Copies an engine and compares its weights with their hashes meanwhile. Errors: InvalidEngine.
EngineBytes copy_checked(const void* blob, size_t size,
                         const std::shared_ptr<MemorySource>& source);
/// Maps a file. Errors: Io; InvalidModel for a path out of the folder; InvalidEngine for another
/// engine than the digest's.
EngineBytes map_engine(const EngineFile& file);
/// Reads up to the end of the engine with which the reader begins. Errors: Io.
EngineBytes read_all(nvinfer1::IStreamReaderV2& reader,
                     const std::shared_ptr<MemorySource>& source);
EngineBytes read_all(nvinfer1::IStreamReader& reader, const std::shared_ptr<MemorySource>& source);

/// Errors: InvalidEngine.
std::shared_ptr<const Engine> load_engine(const EngineBytes& bytes, CheckWeights check,
                                          const Trust& trust = {});
/// Takes the bytes of an engine that this process wrote.
std::shared_ptr<const Engine> load_engine(AlignedBytes bytes);
/// Copies such bytes.
std::shared_ptr<const Engine> load_engine(const AlignedBytes& bytes,
                                          const std::shared_ptr<MemorySource>& source);
/// An engine that was built, as its file would load: with weights of its own, or without if the
/// build strips them.
std::shared_ptr<const Engine> built_engine(const Engine& engine,
                                           const std::shared_ptr<MemorySource>& source);

/// Errors: InvalidArgument when the bytes differ from those of `engine`.
void check_same_engine(std::span<const std::byte> bytes, const EngineBytes& engine);
/// The same from a reader, in pieces.
void check_same_engine(nvinfer1::IStreamReaderV2& reader, cudaStream_t stream,
                       const EngineBytes& engine);

} // namespace ingot::api
