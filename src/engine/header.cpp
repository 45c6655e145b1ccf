// SPDX-License-Identifier: Apache-2.0
// Reads an engine's first bytes. Separate from the container, for callers that need nothing else.
#include "base/error.h"
#include "engine/container.h"

#include <cstring>

namespace ingot {

EngineHeader read_engine_header(std::span<const std::byte> bytes) {
    if (bytes.size() < engine_header_bytes) {
        fail(ErrorCode::InvalidEngine, "the file has ", bytes.size(),
             " bytes, an engine has at least ", engine_header_bytes,
             "; it is truncated or not an engine");
    }
    if (std::memcmp(bytes.data(), engine_magic.data(), engine_magic.size()) != 0) {
        fail(ErrorCode::InvalidEngine,
             "the file is not an Ingot engine: its first bytes are not the engine magic; build one "
             "with 'ingot build'");
    }
    EngineHeader h;
    std::memcpy(&h.format, bytes.data() + 8, sizeof h.format);
    std::memcpy(&h.producer, bytes.data() + 12, sizeof h.producer);
    uint64_t flags = 0;
    std::memcpy(&flags, bytes.data() + 16, sizeof flags);
    h.is_readable = h.format != 0 && h.format <= engine_format && (flags & ~known_flags) == 0;
    h.streams_weights = (flags & streaming_flag) != 0;
    for (size_t i = 0; i < flagged_capabilities.size(); ++i) {
        if ((flags >> (static_cast<size_t>(first_capability_flag) + i) & 1U) != 0) {
            h.capabilities.push_back(flagged_capabilities[i]);
        }
    }
    std::memcpy(&h.file_bytes, bytes.data() + 40, sizeof h.file_bytes);
    return h;
}

} // namespace ingot
