// SPDX-License-Identifier: Apache-2.0
// Provider: the engines of fused nodes, built or loaded.
#include "base/file.h"
#include "base/hash.h"
#include "plugins/onnxruntime/compatibility.h"
#include "plugins/onnxruntime/provider.h"

#include <algorithm>
#include <filesystem>

namespace ingot::ort {

namespace {

Provider& me(OrtEp* self) {
    return *static_cast<Provider*>(self);
}

bool are_known(const std::map<std::string, std::vector<int64_t>>& shapes) {
    return std::all_of(shapes.begin(), shapes.end(), [](const auto& s) {
        return std::all_of(s.second.begin(), s.second.end(), [](int64_t d) { return d >= 0; });
    });
}

/// Milliseconds since `start`.
int64_t ms_since(std::chrono::steady_clock::time_point start) {
    using std::chrono::milliseconds;
    return std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - start)
        .count();
}

/// Names the kernels of an engine that is built: equal for equal models built alike.
std::string identity_of(const OnnxModel& model, const BuildRequest& request) {
    std::string text = str(model.bytes, request.options->ingot_precision);
    for (const auto& [name, t] : model.weights) {
        text += digest_of({static_cast<const std::byte*>(t.data), t.bytes});
    }
    for (const ShapeProfile& profile : request.profiles) {
        for (const auto& [name, ranges] : profile) {
            text += str(' ', name, ranges[0], ranges[1], ranges[2]);
        }
    }
    return to_text(xxh3_128(std::as_bytes(std::span(text))));
}

} // namespace

OrtStatus* Provider::compile(OrtEp* self, const OrtGraph** graphs, const OrtNode** fused,
                             size_t count, OrtNodeComputeInfo** infos, OrtNode** context_nodes) {
    Provider& p = me(self);
    return guard(p.host_, [&] {
        p.throw_pending();
        if (count > 0 && p.context_.enable && p.shared_engines_ != nullptr) {
            p.log_.warning("ep.share_ep_contexts puts no engines of several models into one file: "
                           "each compiled model has engines of its own. Sessions that load them "
                           "with this key share those that are equal");
        }
        std::vector<std::unique_ptr<NodeRunner>> made;
        for (size_t i = 0; i < count; ++i) {
            OrtNode** context_node = p.context_.enable ? context_nodes + i : nullptr;
            made.push_back(p.compile_node(graphs[i], fused[i], context_node));
        }
        for (size_t i = 0; i < count; ++i) {
            infos[i] = made[i].release();
        }
    });
}

void Provider::release_infos(OrtEp*, OrtNodeComputeInfo** infos, size_t count) {
    for (size_t i = 0; i < count; ++i) {
        std::unique_ptr<NodeRunner>(static_cast<NodeRunner*>(infos[i])).reset();
    }
}

std::unique_ptr<NodeRunner> Provider::compile_node(const OrtGraph* graph, const OrtNode* fused,
                                                   OrtNode** context_node) {
    auto start = std::chrono::steady_clock::now();
    std::vector<const OrtNode*> nodes = nodes_of(host_, graph);
    if (nodes.size() == 1 && is_context_node(host_, nodes[0])) {
        return load_context(graph, nodes[0], fused);
    }
    require(!trust_.only_signed || context_node != nullptr, ErrorCode::InvalidArgument,
            "the model is not compiled, and ingot_trusted_only allows only compiled models whose "
            "engine a trusted key has signed: compile it with ingot_signing_key");
    if (context_node != nullptr) {
        writer_.check_place(graph);
    }
    std::unique_ptr<NodeRunner> none = runner_of_none();
    bool runs_as_built = context_node == nullptr && none == nullptr && shared_engines_ == nullptr;
    Part part = part_of(graph, fused, runs_as_built);
    if (runs_as_built) {
        auto engine = std::make_shared<const LoadedEngine>(
            build_loaded_engine(part.model, part.request, api_logger_, part.what));
        log_build(part, start);
        if (options_.nv_detailed_build_log) {
            log_.info(str(part.what, ": ", engine->engine->getNbLayers(), " layers after fusion"));
        }
        std::string identity = cache_folder_.empty() ? "" : identity_of(part.model, part.request);
        return runner(std::move(engine), identity, fused, part.what);
    }
    BuiltEngine built = build(part, context_node != nullptr);
    log_build(part, start);
    if (context_node != nullptr) {
        *context_node = write_context(part, built);
    }
    if (none != nullptr) {
        return none;
    }
    // Without weights the same bytes may belong to models with other weights.
    EngineSource source{built.content, {}, "", !built.left_out.empty()};
    auto give = [&](const LoadedEngine& engine, const std::vector<std::string>& names) {
        ModelConstants constants(part.model, *api_logger_);
        Constants needed;
        for (const std::string& name : names) {
            needed.emplace(name, constants.all().at(name));
        }
        give_weights(engine, needed, part.what);
    };
    return runner(loaded(source, part.what, give), source.content.digest, fused, part.what);
}

Provider::Part Provider::part_of(const OrtGraph* graph, const OrtNode* fused, bool name_files) {
    Part part{graph, fused, {}, {}, ""};
    std::vector<const OrtNode*> nodes = nodes_of(host_, graph);
    OnnxModelRequest request;
    request.nodes = nodes;
    request.outputs = outputs_of(host_, fused);
    request.name_files = name_files;
    part.model = onnx_model(host_, graph, request);
    part.what = str("the subgraph of ", nodes.size(), " nodes from ",
                    described(host_, nodes.front()), " to ", described(host_, nodes.back()));
    std::map<std::string, std::vector<int64_t>> shapes;
    const std::vector<std::string>& inputs = part.model.inputs;
    for (const OrtValueInfo* v : inputs_of(host_, fused)) {
        std::string name = name_of(host_, v);
        if (std::find(inputs.begin(), inputs.end(), name) != inputs.end()) {
            shapes.emplace(std::move(name), type_of(host_, v).dims);
        }
    }
    if (options_.nv_dump_subgraphs) {
        dump(graph, fused, request);
    }
    part.request = {target_, &options_, profiles_for(profiles_, shapes)};
    part.request.kernels_ahead = !part.request.profiles.empty() || are_known(shapes);
    if (!part.request.kernels_ahead && !options_.nv_target_sm.empty()) {
        log_.info(str(part.what, ": nv_target_sm has no effect, since sizes are open and there are "
                                 "no profiles; kernels are compiled where the model is loaded"));
    }
    return part;
}

void Provider::log_build(const Part& part, std::chrono::steady_clock::time_point start) const {
    if (options_.nv_detailed_build_log) {
        log_.info(str("TensorRT engine build for ", text_of(host_, part.fused).name,
                      " took: ", ms_since(start), " ms"));
    }
}

Provider::BuiltEngine Provider::build(const Part& part, bool is_context) {
    BuiltEngine out;
    if (is_context && weightless_ != Weightless::None) {
        const char* given = host_.get_from<const char*>(host_.api->Graph_GetModelPath, part.graph);
        std::string path = given == nullptr ? "" : given;
        SourcePlaces places;
        places.buffer = context_.source_model;
        if (!path.empty() || !context_.source_model_path.empty()) {
            places.models.push_back(path.empty() ? context_.source_model_path : path);
        }
        StrippedEngine stripped = build_without_weights(part.model, part.request, weightless_,
                                                        places, path, api_logger_, part.what);
        out.bytes = std::move(stripped.bytes);
        out.left_out = std::move(stripped.left_out);
    } else if (is_context && signing_key_.empty()) {
        out.path = writer_.place_file(part.graph);
    }
    if (out.path.empty()) {
        if (out.bytes == nullptr) {
            out.bytes = build_engine(part.model, part.request, api_logger_, part.what);
        }
        out.content = content_of(out.bytes);
        return out;
    }
    build_engine_file(part.model, part.request, out.path, api_logger_, part.what);
    out.file = MappedFile::open(out.path);
    out.content = {out.file->bytes(), parent_folder(out.path),
                   std::filesystem::path(out.path).filename().string(),
                   engine_digest(out.file->bytes())};
    return out;
}

OrtNode* Provider::write_context(const Part& part, const BuiltEngine& built) {
    EngineBytes is_signed;
    ContextWriter::Engine engine{built.content.bytes, built.path,
                                 part.request.kernels_ahead ? architecture_text(options_) : "any",
                                 built.left_out.empty() ? std::string()
                                                        : to_json_text(built.left_out)};
    if (!signing_key_.empty()) {
        is_signed = sign_engine(built.content.bytes, signing_key_, *api_logger_);
        engine.bytes = content_of(is_signed).bytes;
    }
    return writer_.write(part.graph, part.fused, engine);
}

void Provider::dump(const OrtGraph* graph, const OrtNode* fused, OnnxModelRequest request) {
    std::string path = text_of(host_, fused).name + ".onnx";
    std::replace(path.begin(), path.end(), '/', '_');
    try {
        request.self_contained = true;
        write_file(path, onnx_model(host_, graph, request).bytes);
    } catch (const Error& e) {
        log_.warning(str("nv_dump_subgraphs: '", path, "' is not written: ", e.what()));
    }
}

void Provider::check_validity(std::span<const std::byte> bytes, const std::string& what) {
    constexpr size_t head = 8192; // all that is judged here; loading compares the rest with it
    EngineCheck check =
        check_engine(bytes.first(std::min(head, bytes.size())), target_, api_logger_);
    require(check.runs, ErrorCode::InvalidEngine, what, ": ", check.reason);
    if (!check.is_best) {
        std::string text = str(what, ": ", check.reason);
        require(!context_.fail_on_suboptimal, ErrorCode::InvalidEngine, text);
        log_.warning(text);
    }
}

std::unique_ptr<NodeRunner> Provider::load_context(const OrtGraph* graph, const OrtNode* node,
                                                   const OrtNode* fused) {
    std::string what = str("the compiled part ", described(host_, node));
    return with_place(
        [&] { return str("loading ", what); },
        [&]() -> std::unique_ptr<NodeRunner> {
            if (auto none = runner_of_none()) {
                return none;
            }
            ContextBytes context = read_context(host_, graph, node, context_, callbacks_);
            check_validity(context.content().bytes, what);
            EngineSource source{context.content(), trust_, context.left_out()};
            auto give = [&](const LoadedEngine& engine, const std::vector<std::string>& names) {
                restore_weights(engine, names, context.left_out(),
                                source_places(host_, graph, node, context_), what);
            };
            return runner(loaded(source, what, give), source.content.digest, fused, what);
        });
}

std::unique_ptr<NodeRunner> Provider::runner_of_none() const {
    if (context_.compile_only) {
        return std::make_unique<NoCompute>(
            host_, "[NvTensorRTRTX EP] inference is not available in a compile-only session");
    }
    if (gpu_ != nullptr && gpu_->memory == nullptr) {
        return std::make_unique<NoCompute>(
            host_, "[NvTensorRTRTX EP] the session's GPU is virtual: models can be compiled for it "
                   "(CompileModel, or ep.context_enable), and run on a real one");
    }
    return nullptr;
}

std::shared_ptr<const LoadedEngine>
Provider::loaded(const EngineSource& source, const std::string& what, const GiveWeights& give) {
    const bool shares = shared_engines_ != nullptr && !source.is_alone;
    // A session's logger ends with it, a shared engine lives on.
    auto logger = shares ? std::make_shared<ApiLogger>(environment_log_, false) : api_logger_;
    auto load = [&] {
        auto start = std::chrono::steady_clock::now();
        LoadedEngine engine = load_engine(source.content, target_, source.trust, logger, what);
        if (options_.nv_detailed_build_log) {
            log_.info(str(what, ": ", source.content.bytes.size(), " bytes with ",
                          engine.engine->getNbLayers(), " layers after fusion, loaded in ",
                          ms_since(start), " ms"));
        }
        if (std::vector<std::string> names = missing_weights(engine); !names.empty()) {
            give(engine, names);
        }
        return engine;
    };
    if (!shares) {
        return std::make_shared<const LoadedEngine>(load());
    }
    SharedEngines::Found found = shared_engines_->get(
        engine_key(source.content.digest, source.left_out, target_, source.trust), load);
    if (found.streams) {
        log_.warning(str(what, ": ep.share_ep_contexts has no effect on it, since its weights are "
                               "streamed with a budget of the session's own"));
    } else if (found.is_shared && options_.nv_detailed_build_log) {
        log_.info(str(what, ": the engine is shared with another session"));
    }
    return found.engine;
}

std::unique_ptr<NodeRunner> Provider::runner(std::shared_ptr<const LoadedEngine> engine,
                                             const std::string& identity, const OrtNode* fused,
                                             const std::string& what) {
    NodeBinding binding = bind_node(*engine->engine, what, names_of(host_, inputs_of(host_, fused)),
                                    names_of(host_, outputs_of(host_, fused)));
    std::unique_ptr<RuntimeCache> cache;
    if (!cache_folder_.empty()) {
        cache = std::make_unique<RuntimeCache>(
            cache_folder_, identity, options_.ingot_runtime_cache_limit, log_, environment_log_);
    }
    return std::make_unique<NodeCompute>(host_, std::move(engine), std::move(binding), settings_,
                                         std::move(cache), gpu_ == nullptr ? nullptr : gpu_->memory,
                                         gpu_ == nullptr ? nullptr : gpu_->scratch);
}

} // namespace ingot::ort
