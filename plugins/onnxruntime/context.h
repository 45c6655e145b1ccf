// SPDX-License-Identifier: Apache-2.0
// EPContext nodes: engines inside or beside compiled models. An external engine is named after the
// model that it is part of, and bound to it by its hash.
#pragma once

#include "base/file.h"
#include "plugins/onnxruntime/engine.h"

#include <memory>
#include <span>
#include <string>

namespace ingot::ort {

/// The application's own functions for the bytes of engines; null where it has none.
struct ContextCallbacks {
    OrtWriteEpContextData write = nullptr;
    void* write_state = nullptr;
    OrtReadEpContextData read = nullptr;
    void* read_state = nullptr;
};
/// Those of a session. They stay valid as long as it.
ContextCallbacks context_callbacks(const Host& host, const OrtSessionOptions* options);

/// Where a compiled model is, or is going to be.
struct ContextPlace {
    std::string folder; // "" when neither the model nor the options tell
    std::string stem;   // of its file name
};
/// Of the model that this session writes: ep.context_file_path, else beside the source model as
/// <stem>_ctx.onnx.
ContextPlace output_place(const ContextOptions& options, const std::string& model_path);
/// Of the model that this session reads.
ContextPlace input_place(const ContextOptions& options, const std::string& model_path);

/// Writes the contexts of one session.
class ContextWriter {
public:
    ContextWriter(const Host& host, const ContextOptions& options,
                  const ContextCallbacks& callbacks)
        : host_(host), options_(options), callbacks_(callbacks) {}

    struct Engine {
        std::span<const std::byte> bytes;
        std::string architecture; // of the GPUs that it has kernels for
    };
    /// The node that stands for `fused` in the compiled model; the host takes it over. An external
    /// engine is written whole or not at all. Errors: Io; InvalidArgument when there is no place
    /// for it, and when more than 2 GiB were to be embedded.
    OrtNode* write(const OrtGraph* graph, const OrtNode* fused, const Engine& engine);
    size_t written() const { return count_; }

private:
    std::string store(const ContextPlace& place, std::span<const std::byte> bytes);

    Host host_;
    ContextOptions options_;
    ContextCallbacks callbacks_;
    size_t count_ = 0;
};

/// Whether a node is a compiled part, of whichever provider.
bool is_context_node(const Host& host, const OrtNode* node);
/// Whether it is one of ours: its source is, or it says none.
bool is_our_context(const Host& host, const OrtNode* node);

/// The bytes of a context's engine, in whichever memory they came.
class ContextBytes {
public:
    std::span<const std::byte> bytes() const { return bytes_; }

private:
    friend ContextBytes read_context(const Host& host, const OrtGraph* graph, const OrtNode* node,
                                     const ContextOptions& options,
                                     const ContextCallbacks& callbacks);
    std::span<const std::byte> bytes_;
    std::string embedded_;
    std::shared_ptr<const MappedFile> file_;
    std::shared_ptr<void> given_;
};
/// Errors: InvalidModel for a node that is malformed and a path that leaves the model's folder; Io;
/// InvalidEngine for bytes that are not those the model was compiled with.
ContextBytes read_context(const Host& host, const OrtGraph* graph, const OrtNode* node,
                          const ContextOptions& options, const ContextCallbacks& callbacks);

} // namespace ingot::ort
