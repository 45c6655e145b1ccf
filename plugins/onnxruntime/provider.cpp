// SPDX-License-Identifier: Apache-2.0
#include "plugins/onnxruntime/provider.h"

#include "plugins/onnxruntime/compatibility.h"

#include <algorithm>
#include <chrono>

namespace ingot::ort {

namespace {

Provider& me(OrtEp* self) {
    return *static_cast<Provider*>(self);
}

/// Milliseconds since `start`.
int64_t ms_since(std::chrono::steady_clock::time_point start) {
    using std::chrono::milliseconds;
    return std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - start)
        .count();
}

} // namespace

Provider::Provider(ProviderRequest request)
    : OrtEp{}, host_(request.host), name_(std::move(request.name)), target_(request.target),
      log_(host_, request.logger),
      options_(parse_options(with_prefix(request.entries, option_prefix(name_)))),
      profiles_(parse_profiles(options_)),
      context_(context_options(request.entries, option_prefix(name_))),
      callbacks_(request.callbacks), writer_(host_, context_, callbacks_),
      compatibility_(compatibility_text(options_, target_)) {
    api_logger_ = std::make_shared<ApiLogger>(log_, options_.nv_detailed_build_log);
    ort_version_supported = host_.version;
    GetName = get_name;
    GetCapability = get_capability;
    Compile = compile;
    ReleaseNodeComputeInfos = release_infos;
    OnRunStart = on_run_start;
    IsConcurrentRunSupported = is_concurrent_run_supported;
    OnSessionInitializationEnd = on_session_initialization_end;
    GetCompiledModelCompatibilityInfo = get_compatibility_info;
    GetEpContextDataCallbackSupport = get_callback_support;
}

const char* Provider::get_name(const OrtEp* self) {
    return static_cast<const Provider*>(self)->name_.c_str();
}

OrtStatus* Provider::is_concurrent_run_supported(OrtEp*, bool* out) {
    *out = true;
    return nullptr;
}

const char* Provider::get_compatibility_info(OrtEp* self, const OrtGraph*) {
    return me(self).compatibility_.c_str();
}

OrtStatus* Provider::get_callback_support(const OrtEp*, uint32_t* flags) {
    *flags = 1U | 2U; // reads and writes
    return nullptr;
}

void Provider::throw_pending() const {
    if (pending_ != nullptr) {
        throw Error(*pending_);
    }
}

OrtStatus* Provider::on_session_initialization_end(OrtEp* self) {
    return guard(me(self).host_, [&] { me(self).throw_pending(); });
}

OrtStatus* Provider::on_run_start(OrtEp* self, const OrtRunOptions*) {
    return guard(me(self).host_, [&] { me(self).throw_pending(); });
}

// --- which nodes ---------------------------------------------------------------------------------

OrtStatus* Provider::get_capability(OrtEp* self, const OrtGraph* graph,
                                    OrtEpGraphSupportInfo* info) {
    Provider& p = me(self);
    return guard(p.host_, [&] {
        try {
            p.claim(graph, info);
        } catch (Error& e) {
            // The host takes a failure here for "no nodes", and everything would run elsewhere in
            // silence: a node is claimed instead, which compile() fails with this error.
            e.at("choosing nodes");
            p.pending_ = std::make_unique<Error>(e);
            std::vector<const OrtNode*> nodes = nodes_of(p.host_, graph);
            if (nodes.empty()) {
                throw;
            }
            p.fuse(info, {nodes.front()});
        }
    });
}

void Provider::fuse(OrtEpGraphSupportInfo* info, const std::vector<const OrtNode*>& nodes) const {
    OrtNodeFusionOptions options{host_.version, true};
    host_.check(
        host_.ep->EpGraphSupportInfo_AddNodesToFuse(info, nodes.data(), nodes.size(), &options));
}

/// A compiled model: its parts are ours, and what is beside them was left to others before.
bool Provider::claim_contexts(const OrtGraph* graph, OrtEpGraphSupportInfo* info) const {
    bool any = false;
    for (const OrtNode* n : nodes_of(host_, graph)) {
        if (!is_our_context(host_, n)) {
            continue;
        }
        require(!context_.enable, ErrorCode::InvalidArgument, described(host_, n),
                ": the model is compiled already; compile the model that it was made of");
        fuse(info, {n});
        any = true;
    }
    return any;
}

void Provider::claim(const OrtGraph* graph, OrtEpGraphSupportInfo* info) {
    if (claim_contexts(graph, info)) {
        return;
    }
    auto start = std::chrono::steady_clock::now();
    Claim claim = claim_graph(host_, graph, options_, api_logger_);
    bool is_body = host_.get_from<const OrtNode*>(host_.api->Graph_GetParentNode, graph) != nullptr;
    if (is_body && claim.claimed == claim.nodes) {
        return; // the node that it belongs to is claimed with it
    }
    for (const auto& group : claim.groups) {
        fuse(info, group);
    }
    if (claim.claimed == claim.nodes) {
        log_.info("Whole graph will run on Nv execution provider");
    } else if (claim.claimed == 0) {
        log_.info("No graph will run on Nv execution provider");
    } else {
        log_.info(str("Graph is partitioned and number of subgraphs running on Nv execution "
                      "provider is ",
                      claim.groups.size()));
    }
    if (!claim.left.empty()) {
        log_.info(str("Left to other execution providers:\n", left_table(claim)));
    }
    if (options_.nv_detailed_build_log) {
        log_.info(str("claimed ", claim.claimed, " of ", claim.nodes, " nodes in ", ms_since(start),
                      " ms"));
    }
}

// --- engines -------------------------------------------------------------------------------------

OrtStatus* Provider::compile(OrtEp* self, const OrtGraph** graphs, const OrtNode** fused,
                             size_t count, OrtNodeComputeInfo** infos, OrtNode** context_nodes) {
    Provider& p = me(self);
    return guard(p.host_, [&] {
        p.throw_pending();
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
    BuildRequest build{target_, &options_, profiles_for(profiles_, shapes), false};
    EngineBytes bytes = build_engine(model, build, api_logger_, what);
    std::span<const std::byte> content(static_cast<const std::byte*>(bytes->data()), bytes->size());
    if (options_.nv_detailed_build_log) {
        log_.info(str("TensorRT engine build for ", text_of(host_, fused).name,
                      " took: ", ms_since(start), " ms"));
    }
    if (context_node != nullptr) {
        *context_node = writer_.write(graph, fused, {content, architecture_text(options_), false});
    }
    if (context_.compile_only) {
        return std::make_unique<NoCompute>(host_);
    }
    return runner(content, fused, what);
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
    return with_place([&] { return str("loading ", what); },
                      [&]() -> std::unique_ptr<NodeRunner> {
                          if (context_.compile_only) {
                              return std::make_unique<NoCompute>(host_);
                          }
                          ContextBytes content =
                              read_context(host_, graph, node, context_, callbacks_);
                          check_validity(content.bytes(), what);
                          return runner(content.bytes(), fused, what);
                      });
}

std::unique_ptr<NodeRunner> Provider::runner(std::span<const std::byte> bytes, const OrtNode* fused,
                                             const std::string& what) {
    LoadedEngine engine = load_engine(bytes.data(), bytes.size(), target_, api_logger_, what);
    NodeBinding binding = bind_node(*engine.engine, what, names_of(host_, inputs_of(host_, fused)),
                                    names_of(host_, outputs_of(host_, fused)));
    return std::make_unique<NodeCompute>(host_, std::move(engine), std::move(binding));
}

} // namespace ingot::ort
