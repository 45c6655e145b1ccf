// SPDX-License-Identifier: Apache-2.0
// Provider: the engines of fused nodes, built or loaded.
#include "base/file.h"
#include "plugins/onnxruntime/compatibility.h"
#include "plugins/onnxruntime/provider.h"

#include <algorithm>
#include <chrono>

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
    OnnxModelRequest request;
    request.nodes = nodes;
    request.outputs = outputs_of(host_, fused);
    OnnxModel model = onnx_model(host_, graph, request);
    std::string what = str("the subgraph of ", nodes.size(), " nodes from ",
                           described(host_, nodes.front()), " to ", described(host_, nodes.back()));
    std::map<std::string, std::vector<int64_t>> shapes;
    for (const OrtValueInfo* v : inputs_of(host_, fused)) {
        std::string name = name_of(host_, v);
        if (std::find(model.inputs.begin(), model.inputs.end(), name) != model.inputs.end()) {
            shapes.emplace(std::move(name), type_of(host_, v).dims);
        }
    }
    if (options_.nv_dump_subgraphs) {
        dump(graph, fused, request);
    }
    BuildRequest build{target_, &options_, profiles_for(profiles_, shapes)};
    build.kernels_ahead = !build.profiles.empty() || are_known(shapes);
    if (!build.kernels_ahead && !options_.nv_target_sm.empty()) {
        log_.info(str(what, ": nv_target_sm has no effect, since sizes are open and there are no "
                            "profiles; kernels are compiled where the model is loaded"));
    }
    StrippedEngine built = this->build(
        graph, model, build, context_node == nullptr ? Weightless::None : weightless_, what);
    std::span<const std::byte> content(static_cast<const std::byte*>(built.bytes->data()),
                                       built.bytes->size());
    if (options_.nv_detailed_build_log) {
        log_.info(str("TensorRT engine build for ", text_of(host_, fused).name,
                      " took: ", ms_since(start), " ms"));
    }
    if (context_node != nullptr) {
        EngineBytes is_signed;
        std::span<const std::byte> written = content;
        if (!signing_key_.empty()) {
            is_signed = sign_engine(content, signing_key_, *api_logger_);
            written = {static_cast<const std::byte*>(is_signed->data()), is_signed->size()};
        }
        *context_node =
            writer_.write(graph, fused,
                          {written, build.kernels_ahead ? architecture_text(options_) : "any",
                           built.left_out.empty() ? std::string() : to_json_text(built.left_out)});
    }
    if (std::unique_ptr<NodeRunner> none = runner_of_none()) {
        return none;
    }
    // Without weights the same bytes may belong to models with other weights.
    return runner({content, {}, "", !built.left_out.empty()}, fused, what,
                  [&](const LoadedEngine& engine, const std::vector<std::string>& names) {
                      ModelConstants constants(model, *api_logger_);
                      Constants needed;
                      for (const std::string& name : names) {
                          needed.emplace(name, constants.all().at(name));
                      }
                      give_weights(engine, needed, what);
                  });
}

StrippedEngine Provider::build(const OrtGraph* graph, const OnnxModel& model,
                               const BuildRequest& request, Weightless which,
                               const std::string& what) {
    if (which == Weightless::None) {
        return {build_engine(model, request, api_logger_, what), {}};
    }
    const char* given = host_.get_from<const char*>(host_.api->Graph_GetModelPath, graph);
    std::string path = given == nullptr ? "" : given;
    SourcePlaces places;
    places.buffer = context_.source_model;
    if (!path.empty() || !context_.source_model_path.empty()) {
        places.models.push_back(path.empty() ? context_.source_model_path : path);
    }
    return build_without_weights(model, request, which, places, path, api_logger_, what);
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
    EngineCheck check = check_engine(bytes, target_, api_logger_);
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
            ContextBytes content = read_context(host_, graph, node, context_, callbacks_);
            check_validity(content.bytes(), what);
            return runner({content.bytes(), trust_, content.left_out()}, fused, what,
                          [&](const LoadedEngine& engine, const std::vector<std::string>& names) {
                              restore_weights(engine, names, content.left_out(),
                                              source_places(host_, graph, node, context_), what);
                          });
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
        LoadedEngine engine = load_engine(source.bytes, target_, source.trust, logger, what);
        if (options_.nv_detailed_build_log) {
            log_.info(str(what, ": ", source.bytes.size(), " bytes with ",
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
        engine_key(source.bytes, source.left_out, target_, source.trust), load);
    if (found.streams) {
        log_.warning(str(what, ": ep.share_ep_contexts has no effect on it, since its weights are "
                               "streamed with a budget of the session's own"));
    } else if (found.is_shared && options_.nv_detailed_build_log) {
        log_.info(str(what, ": the engine is shared with another session"));
    }
    return found.engine;
}

std::unique_ptr<NodeRunner> Provider::runner(const EngineSource& source, const OrtNode* fused,
                                             const std::string& what, const GiveWeights& give) {
    std::shared_ptr<const LoadedEngine> engine = loaded(source, what, give);
    NodeBinding binding = bind_node(*engine->engine, what, names_of(host_, inputs_of(host_, fused)),
                                    names_of(host_, outputs_of(host_, fused)));
    std::unique_ptr<RuntimeCache> cache;
    if (!cache_folder_.empty()) {
        cache = std::make_unique<RuntimeCache>(cache_folder_, source.bytes,
                                               options_.ingot_runtime_cache_limit, log_,
                                               environment_log_);
    }
    return std::make_unique<NodeCompute>(host_, std::move(engine), std::move(binding), settings_,
                                         std::move(cache), gpu_ == nullptr ? nullptr : gpu_->memory,
                                         gpu_ == nullptr ? nullptr : gpu_->scratch);
}

} // namespace ingot::ort
