// SPDX-License-Identifier: Apache-2.0
#include "plugins/onnxruntime/context.h"

#include "base/hash.h"
#include "plugins/onnxruntime/factory.h"

#include <filesystem>
#include <limits>

namespace ingot::ort {

namespace {

namespace fs = std::filesystem;

constexpr const char* context_type = "EPContext";
constexpr const char* context_domain = "com.microsoft";

constexpr const char* table_attribute = "ep_refit_table";

constexpr std::string_view binding_key = "engine=";

/// The binding of an engine and the table of its weights to their node: "engine=<64 hex digits>",
/// its digest, with " weights=<32 hex digits>" for a table.
std::string binding_of(const std::string& digest, const std::string& left_out) {
    return str(binding_key, digest.empty() ? "none" : digest, left_out.empty() ? "" : " weights=",
               left_out.empty() ? std::string()
                                : to_text(xxh3_128(std::as_bytes(std::span(left_out)))));
}

class Attributes {
public:
    explicit Attributes(const Host& host) : host_(host) {}
    ~Attributes() {
        for (OrtOpAttr* a : list_) {
            host_.api->ReleaseOpAttr(a);
        }
    }
    Attributes(const Attributes&) = delete;
    Attributes& operator=(const Attributes&) = delete;
    void text(const char* name, std::string_view value) {
        add(name, value.data(), value.size(), ORT_OP_ATTR_STRING);
    }
    void integer(const char* name, int64_t value) { add(name, &value, 1, ORT_OP_ATTR_INT); }
    OrtOpAttr** data() { return list_.data(); }
    size_t size() const { return list_.size(); }

private:
    void add(const char* name, const void* data, size_t length, OrtOpAttrType type) {
        OrtOpAttr* a = nullptr;
        host_.check(host_.api->CreateOpAttr(name, data, static_cast<int>(length), type, &a));
        list_.push_back(a);
    }
    Host host_;
    std::vector<OrtOpAttr*> list_;
};

std::string model_path_of(const Host& host, const OrtGraph* graph) {
    const char* path = host.get_from<const char*>(host.api->Graph_GetModelPath, graph);
    return path == nullptr ? "" : path;
}

ContextPlace place_of(const fs::path& path) {
    fs::path folder = path.parent_path();
    return {folder.empty() ? "." : folder.string(), path.stem().string()};
}

std::vector<const char*> pointers(const std::vector<std::string>& texts) {
    std::vector<const char*> out;
    for (const std::string& t : texts) {
        out.push_back(t.c_str());
    }
    return out;
}

void check_binding(const Host& host, const OrtNode* node, const std::string& digest,
                   const std::string& left_out, const std::string& where) {
    std::string notes = string_attribute(host, node, "notes").value_or("");
    size_t at = notes.find(binding_key);
    if (at == std::string::npos) {
        return; // not written by us
    }
    std::string expected = notes.substr(at);
    std::string got = binding_of(digest, left_out);
    require(got == expected, ErrorCode::InvalidEngine, where,
            " is not the engine that the model "
            "was compiled with: got ",
            got, ", expected ", expected,
            "; it was damaged, or replaced by that of another model: compile the model again");
}

} // namespace

ContextCallbacks context_callbacks(const Host& host, const OrtSessionOptions* options) {
    ContextCallbacks out;
    constexpr uint32_t since = 31;
    if (host.version < since) {
        return out;
    }
    OrtEpContextConfig* config = nullptr;
    host.check(host.ep->SessionOptions_GetEpContextConfig(options, &config));
    if (config != nullptr) {
        std::unique_ptr<OrtEpContextConfig, decltype(host.ep->ReleaseEpContextConfig)> owned(
            config, host.ep->ReleaseEpContextConfig);
        host.check(host.ep->EpContextConfig_GetEpContextDataWriteFunc(config, &out.write,
                                                                      &out.write_state));
        host.check(
            host.ep->EpContextConfig_GetEpContextDataReadFunc(config, &out.read, &out.read_state));
    }
    return out;
}

ContextPlace output_place(const ContextOptions& options, const std::string& model_path) {
    if (!options.file_path.empty()) {
        return place_of(options.file_path);
    }
    if (model_path.empty()) {
        return {};
    }
    ContextPlace place = place_of(model_path);
    place.stem += "_ctx";
    return place;
}

ContextPlace input_place(const ContextOptions& options, const std::string& model_path) {
    // With a folder for external initialisers the host says that the model is there.
    bool is_moved = !options.initializers_folder.empty() && !options.file_path.empty();
    if (!model_path.empty() && !is_moved) {
        return place_of(model_path);
    }
    return options.file_path.empty() ? ContextPlace{} : place_of(options.file_path);
}

void ContextWriter::check_place(const OrtGraph* graph) const {
    std::string model_path = model_path_of(host_, graph);
    std::error_code none; // of a file that is not there: it is another one
    bool is_same = !model_path.empty() && !options_.file_path.empty() &&
                   fs::equivalent(model_path, options_.file_path, none);
    require(!is_same, ErrorCode::InvalidArgument, "the compiled model would replace its source '",
            model_path, "': give it another path");
}

std::string ContextWriter::engine_name(const ContextPlace& place) const {
    return str(place.stem.empty() ? "model" : place.stem, "_", count_, ".engine");
}

std::string ContextWriter::place_file(const OrtGraph* graph) const {
    if (options_.embed || callbacks_.write != nullptr) {
        return "";
    }
    ContextPlace place = output_place(options_, model_path_of(host_, graph));
    require(!place.folder.empty(), ErrorCode::InvalidArgument,
            "the engine is to be beside the compiled model, and it is not known where that will "
            "be: set ep.context_file_path, or embed the engine (ep.context_embed_mode 1)");
    fs::path folder = fs::path(place.folder);
    std::error_code error;
    fs::create_directories(folder, error);
    return (folder / engine_name(place)).string();
}

std::string ContextWriter::store(const OrtGraph* graph, const ContextPlace& place,
                                 const Engine& engine) {
    std::string name = engine_name(place);
    if (callbacks_.write != nullptr) {
        host_.check(callbacks_.write(callbacks_.write_state, name.c_str(), engine.bytes.data(),
                                     engine.bytes.size()));
    } else if (engine.file.empty()) {
        write_file(place_file(graph), engine.bytes);
    }
    return name;
}

OrtNode* ContextWriter::write(const OrtGraph* graph, const OrtNode* fused, const Engine& engine) {
    std::string model_path = model_path_of(host_, graph);
    ContextPlace place = output_place(options_, model_path);
    constexpr auto most = static_cast<size_t>(std::numeric_limits<int32_t>::max());
    require(!options_.embed || engine.bytes.size() <= most, ErrorCode::InvalidArgument,
            "the engine has ", engine.bytes.size(), " bytes, and a model file holds at most ", most,
            ": keep it beside the model (ep.context_embed_mode 0)");
    NodeText text = text_of(host_, fused);
    Attributes a(host_);
    a.integer("main_context", 1);
    a.integer("embed_mode", options_.embed ? 1 : 0);
    if (options_.embed) {
        a.text("ep_cache_context",
               {reinterpret_cast<const char*>(engine.bytes.data()), engine.bytes.size()});
    } else {
        a.text("ep_cache_context", store(graph, place, engine));
    }
    a.text("ep_sdk_version", ingot::version());
    a.text("onnx_model_filename", fs::path(model_path).filename().string());
    a.text("hardware_architecture", engine.architecture);
    a.text("partition_name", str(place.stem.empty() ? "model" : place.stem, "_", count_));
    a.text("source", ep_name);
    a.text("notes", binding_of(engine_digest(engine.bytes), engine.left_out));
    if (!engine.left_out.empty()) {
        a.text(table_attribute, engine.left_out);
    }
    std::vector<std::string> inputs = names_of(host_, inputs_of(host_, fused));
    std::vector<std::string> outputs = names_of(host_, outputs_of(host_, fused));
    OrtNode* node = nullptr;
    host_.check(host_.editor->CreateNode(
        context_type, context_domain, text.name.c_str(), pointers(inputs).data(), inputs.size(),
        pointers(outputs).data(), outputs.size(), a.data(), a.size(), &node));
    ++count_;
    return node;
}

SourcePlaces source_places(const Host& host, const OrtGraph* graph, const OrtNode* node,
                           const ContextOptions& options) {
    SourcePlaces out;
    out.buffer = options.source_model;
    auto add_folder = [&](const fs::path& folder) {
        out.folders.push_back(folder.empty() ? "." : folder.string());
    };
    if (!options.initializers_folder.empty()) {
        add_folder(options.initializers_folder);
    }
    if (!options.source_model_path.empty()) {
        out.models.push_back(options.source_model_path);
        add_folder(fs::path(options.source_model_path).parent_path());
    }
    ContextPlace place = input_place(options, model_path_of(host, graph));
    if (place.folder.empty()) {
        return out;
    }
    add_folder(place.folder);
    fs::path source = string_attribute(host, node, "onnx_model_filename").value_or("");
    bool is_name = !source.empty() && source == source.filename(); // nothing outside the folder
    if (is_name) {
        out.models.push_back((fs::path(place.folder) / source).string());
    }
    return out;
}

bool is_context_node(const Host& host, const OrtNode* node) {
    NodeText t = text_of(host, node);
    return t.type == context_type && t.domain == context_domain;
}

bool is_our_context(const Host& host, const OrtNode* node) {
    if (!is_context_node(host, node)) {
        return false;
    }
    std::optional<std::string> source = string_attribute(host, node, "source");
    return !source || source->empty() || is_our_source(*source);
}

ContextBytes read_context(const Host& host, const OrtGraph* graph, const OrtNode* node,
                          const ContextOptions& options, const ContextCallbacks& callbacks) {
    ContextBytes out;
    out.left_out_ = string_attribute(host, node, table_attribute).value_or("");
    std::optional<std::string> content = string_attribute(host, node, "ep_cache_context");
    require(content && !content->empty(), ErrorCode::InvalidModel,
            "the EPContext node has no attribute 'ep_cache_context', which holds the engine or its "
            "file name: compile the model again");
    auto take = [&](std::span<const std::byte> bytes, const std::string& where) {
        out.content_.bytes = bytes;
        out.content_.digest = engine_digest(bytes);
        check_binding(host, node, out.content_.digest, out.left_out_, where);
    };
    if (int_attribute(host, node, "embed_mode").value_or(1) == 1) {
        out.embedded_ = std::move(*content);
        take(std::as_bytes(std::span(out.embedded_.data(), out.embedded_.size())),
             "the embedded engine");
        return out;
    }
    const std::string& name = *content;
    if (callbacks.read != nullptr) {
        OrtAllocator* allocator = nullptr;
        host.check(host.api->GetAllocatorWithDefaultOptions(&allocator));
        void* data = nullptr;
        size_t size = 0;
        host.check(callbacks.read(callbacks.read_state, name.c_str(), allocator, &data, &size));
        out.given_.reset(data, [allocator](void* p) { allocator->Free(allocator, p); });
        take({static_cast<const std::byte*>(data), size},
             str("the application's bytes for '", name, "'"));
        return out;
    }
    ContextPlace place = input_place(options, model_path_of(host, graph));
    require(!place.folder.empty(), ErrorCode::InvalidArgument,
            "the model was read from memory, "
            "and its engine '",
            name,
            "' is a file: set ep.context_file_path to where the model "
            "would be");
    try {
        out.file_ = MappedFile::open_beneath(place.folder, name);
    } catch (Error& e) {
        e.at(str("can't find engine cache: ", (fs::path(place.folder) / name).string(),
                 ". Please make sure engine cache is in the same directory or sub-directory of "
                 "context model"));
        throw;
    }
    out.content_.folder = place.folder;
    out.content_.file = name;
    take(out.file_->bytes(), str("'", out.file_->path(), "'"));
    return out;
}

} // namespace ingot::ort
