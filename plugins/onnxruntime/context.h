// SPDX-License-Identifier: Apache-2.0
// EPContext nodes: engines inside or beside compiled models. An external engine is named after its
// model, and bound to it by a hash.
#pragma once

#include "base/file.h"
#include "plugins/onnxruntime/weightless.h"

#include <memory>
#include <span>
#include <string>

namespace ingot::ort {

/// The application's functions for reading and writing engines; null where it has none.
struct ContextCallbacks {
    OrtWriteEpContextData write = nullptr;
    void* write_state = nullptr;
    OrtReadEpContextData read = nullptr;
    void* read_state = nullptr;
};
/// Those of a session. They stay valid as long as the session.
ContextCallbacks context_callbacks(const Host& host, const OrtSessionOptions* options);

/// The location of a compiled model.
struct ContextPlace {
    std::string folder; // "" when neither the model nor the options give it
    std::string stem;   // file name without extension
};
/// For the model that this session writes: ep.context_file_path, else beside the source model as
/// <stem>_ctx.onnx.
ContextPlace output_place(const ContextOptions& options, const std::string& model_path);
/// For the model that this session reads.
ContextPlace input_place(const ContextOptions& options, const std::string& model_path);

/// Writes the contexts of one session.
class ContextWriter {
public:
    ContextWriter(const Host& host, const ContextOptions& options,
                  const ContextCallbacks& callbacks)
        : host_(host), options_(options), callbacks_(callbacks) {}

    struct Engine {
        std::span<const std::byte> bytes;
        std::string file;         // that holds them already: place_file(); "" for none
        std::string architecture; // of the GPUs that its kernels are for
        std::string left_out;     // the table of weights that it lacks, "" for none
    };
    /// Errors: InvalidArgument where the compiled model would replace its source.
    void check_place(const OrtGraph* graph) const;
    /// The file for the engine of the next node, for the caller to write; "" where it is embedded,
    /// or the application writes it. Errors: InvalidArgument without a location.
    std::string place_file(const OrtGraph* graph) const;
    /// The node that replaces `fused` in the compiled model; the host owns it. An external engine
    /// is written whole or not at all. Errors: Io; InvalidArgument without a location, and for more
    /// than 2 GiB to embed.
    OrtNode* write(const OrtGraph* graph, const OrtNode* fused, const Engine& engine);
    size_t written() const { return count_; }

private:
    std::string engine_name(const ContextPlace& place) const;
    std::string store(const OrtGraph* graph, const ContextPlace& place, const Engine& engine);

    Host host_;
    ContextOptions options_;
    ContextCallbacks callbacks_;
    size_t count_ = 0;
};

/// Whether a node is a compiled part of any provider.
bool is_context_node(const Host& host, const OrtNode* node);
/// Whether it is one of ours: its source is ours, or missing.
bool is_our_context(const Host& host, const OrtNode* node);

/// The places where the source model of a compiled one and its data files may be.
SourcePlaces source_places(const Host& host, const OrtGraph* graph, const OrtNode* node,
                           const ContextOptions& options);

/// A context's engine, in memory of any owner.
class ContextBytes {
public:
    const EngineContent& content() const { return content_; }
    /// The table of weights that the engine lacks; "" for none.
    const std::string& left_out() const { return left_out_; }

private:
    friend ContextBytes read_context(const Host& host, const OrtGraph* graph, const OrtNode* node,
                                     const ContextOptions& options,
                                     const ContextCallbacks& callbacks);
    EngineContent content_;
    std::string embedded_;
    std::string left_out_;
    std::shared_ptr<const MappedFile> file_;
    std::shared_ptr<void> given_;
};
/// Errors: InvalidModel for a malformed node and for a path outside the model's folder; Io;
/// InvalidEngine for bytes other than those compiled with the model.
ContextBytes read_context(const Host& host, const OrtGraph* graph, const OrtNode* node,
                          const ContextOptions& options, const ContextCallbacks& callbacks);

} // namespace ingot::ort
