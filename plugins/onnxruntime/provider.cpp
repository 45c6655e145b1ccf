// SPDX-License-Identifier: Apache-2.0
#include "plugins/onnxruntime/provider.h"

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
      context_(context_options(request.entries, option_prefix(name_))) {
    api_logger_ = std::make_shared<ApiLogger>(log_, options_.nv_detailed_build_log);
    ort_version_supported = host_.version;
    GetName = get_name;
    GetCapability = get_capability;
    Compile = compile;
    ReleaseNodeComputeInfos = release_infos;
    OnRunStart = on_run_start;
    IsConcurrentRunSupported = is_concurrent_run_supported;
    OnSessionInitializationEnd = on_session_initialization_end;
}

const char* Provider::get_name(const OrtEp* self) {
    return static_cast<const Provider*>(self)->name_.c_str();
}

OrtStatus* Provider::is_concurrent_run_supported(OrtEp*, bool* out) {
    *out = true;
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
        } catch (Error& e) { // which the host takes for "no nodes"
            e.at("choosing nodes");
            p.pending_ = std::make_unique<Error>(e);
            throw;
        }
    });
}

void Provider::fuse(OrtEpGraphSupportInfo* info, const std::vector<const OrtNode*>& nodes) const {
    OrtNodeFusionOptions options{host_.version, true};
    host_.check(
        host_.ep->EpGraphSupportInfo_AddNodesToFuse(info, nodes.data(), nodes.size(), &options));
}

void Provider::claim(const OrtGraph* graph, OrtEpGraphSupportInfo* info) {
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
                             size_t count, OrtNodeComputeInfo** infos, OrtNode**) {
    Provider& p = me(self);
    return guard(p.host_, [&] {
        std::vector<std::unique_ptr<NodeCompute>> made;
        for (size_t i = 0; i < count; ++i) {
            made.push_back(p.compile_node(graphs[i], fused[i]));
        }
        for (size_t i = 0; i < count; ++i) {
            infos[i] = made[i].release();
        }
    });
}

void Provider::release_infos(OrtEp*, OrtNodeComputeInfo** infos, size_t count) {
    for (size_t i = 0; i < count; ++i) {
        std::unique_ptr<NodeCompute>(static_cast<NodeCompute*>(infos[i])).reset();
    }
}

std::unique_ptr<NodeCompute> Provider::compile_node(const OrtGraph* graph, const OrtNode* fused) {
    auto start = std::chrono::steady_clock::now();
    std::vector<const OrtNode*> nodes = nodes_of(host_, graph);
    OnnxModelRequest request;
    request.nodes = nodes;
    request.outputs = outputs_of(host_, fused);
    OnnxModel model = onnx_model(host_, graph, request);

    NodeBinding binding;
    binding.what = str("the subgraph of ", nodes.size(), " nodes from ",
                       described(host_, nodes.front()), " to ", described(host_, nodes.back()));
    std::map<std::string, std::vector<int64_t>> shapes;
    std::vector<const OrtValueInfo*> inputs = inputs_of(host_, fused);
    for (size_t i = 0; i < inputs.size(); ++i) {
        std::string name = name_of(host_, inputs[i]);
        if (std::find(model.inputs.begin(), model.inputs.end(), name) != model.inputs.end()) {
            ValueType t = type_of(host_, inputs[i]);
            shapes.emplace(name, t.dims);
            binding.inputs.emplace_back(std::move(name), i);
        }
    }
    for (const OrtValueInfo* v : request.outputs) {
        binding.outputs.push_back(name_of(host_, v));
    }
    BuildRequest build{target_, &options_, profiles_for(profiles_, shapes), false};
    EngineBytes bytes = build_engine(model, build, api_logger_, binding.what);
    LoadedEngine engine =
        load_engine(bytes->data(), bytes->size(), target_, api_logger_, binding.what);
    if (options_.nv_detailed_build_log) {
        log_.info(str("TensorRT engine build for ", text_of(host_, fused).name,
                      " took: ", ms_since(start), " ms"));
    }
    return std::make_unique<NodeCompute>(host_, std::move(engine), std::move(binding));
}

} // namespace ingot::ort
