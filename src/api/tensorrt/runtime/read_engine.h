// SPDX-License-Identifier: Apache-2.0
// Engines from the application's bytes and readers.
#pragma once

#include "NvInferRuntime.h"
#include "engine/engine.h"

namespace ingot::api {

/// From bytes that the engine owns. Errors: InvalidEngine.
std::shared_ptr<const Engine> load_engine(AlignedBytes bytes);
/// The same with the bytes, weights among them, in memory that `source` gives. Errors: OutOfMemory.
std::shared_ptr<const Engine> load_engine(const AlignedBytes& bytes,
                                          const std::shared_ptr<MemorySource>& source);
/// A copy of the caller's.
AlignedBytes copy_bytes(const void* blob, size_t size);
/// Everything that a reader has, up to the end of the engine that it begins with. Errors: Io.
AlignedBytes read_all(nvinfer1::IStreamReaderV2& reader, cudaStream_t stream);
AlignedBytes read_all(nvinfer1::IStreamReader& reader);
/// Errors: InvalidEngine for damaged bytes; InvalidArgument when they are not this engine's.
void check_same_engine(std::span<const std::byte> bytes, const Engine& engine);

} // namespace ingot::api
