// SPDX-License-Identifier: Apache-2.0
#include "plugins/onnxruntime/provider.h"

#include "base/file.h"
#include "plugins/onnxruntime/compatibility.h"

#include <algorithm>
#include <ctime>

namespace ingot::ort {

namespace {

Provider& me(OrtEp* self) {
    return *static_cast<Provider*>(self);
}

/// The text of the file that an option names; "" for none.
std::string text_of_file(const char* option, const std::string& path) {
    constexpr uint64_t limit = 1U << 20U;
    return path.empty() ? std::string()
                        : with_place([&] { return std::string(option); },
                                     [&] { return read_text_file(path, limit); });
}

/// Milliseconds of CPU time that this thread has used.
int64_t thread_ms() {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<int64_t>(t.tv_sec) * 1000 + t.tv_nsec / 1000000;
}

} // namespace

Provider::Provider(ProviderRequest request)
    : OrtEp{}, host_(request.host), name_(std::move(request.name)), target_(request.target),
      shared_engines_(std::move(request.shared_engines)), gpus_(std::move(request.gpus)),
      gpu_(request.gpu), log_(host_, request.logger),
      environment_log_(host_, request.environment_logger),
      settings_(std::make_shared<RunSettings>()), options_(settings_->options),
      context_(context_options(request.entries, option_prefix(name_))),
      callbacks_(request.callbacks), writer_(host_, context_, callbacks_) {
    context_.source_model = request.source_model;
    settings_->options = parse_options(with_prefix(request.entries, option_prefix(name_)));
    check_device();
    if (context_.weightless == 1) {
        weightless_ = Weightless::ExternalOnly;
    } else if (context_.weightless == 2 || options_.nv_weight_stripped_engine_enable_experimental) {
        weightless_ = Weightless::All;
    }
    for (const std::string& text : idle_options(options_)) {
        log_.warning(text);
    }
    settings_->budget = StreamingBudget::parse(options_.nv_weight_streaming_budget);
    profiles_ = parse_profiles(options_);
    compatibility_ = compatibility_text(options_, target_);
    if (options_.nv_enable_profiling) {
        settings_->profile = std::make_shared<ProfileFile>(options_.nv_profiling_output_file, log_);
    }
    if (!options_.nv_runtime_cache_path.empty()) {
        cache_folder_ = prepare_cache_folder(options_.nv_runtime_cache_path, log_);
    }
    api_logger_ = std::make_shared<ApiLogger>(log_, options_.nv_detailed_build_log);
    trust_ = {text_of_file("ingot_trusted_keys", options_.ingot_trusted_keys),
              options_.ingot_trusted_only, options_.ingot_allow_engine_code};
    signing_key_ = text_of_file("ingot_signing_key", options_.ingot_signing_key);
    ort_version_supported = host_.version;
    GetName = get_name;
    GetCapability = get_capability;
    Compile = compile;
    ReleaseNodeComputeInfos = release_infos;
    if (gpu_ != nullptr && gpu_->memory != nullptr) {
        kernels_ = std::make_unique<MemcpyKernels>(host_, name_, gpus_);
        GetKernelRegistry = get_kernel_registry;
        CreateSyncStreamForDevice = create_stream;
        GetDefaultMemoryDevice = get_default_memory;
        Sync = sync;
    }
    OnRunStart = on_run_start;
    OnRunEnd = on_run_end;
    CreateProfiler = create_profiler;
    SetDynamicOptions = set_dynamic_options;
    IsConcurrentRunSupported = is_concurrent_run_supported;
    OnSessionInitializationEnd = on_session_initialization_end;
    GetCompiledModelCompatibilityInfo = get_compatibility_info;
    GetEpContextDataCallbackSupport = get_callback_support;
    GetWeightlessSupport = get_weightless_support;
}

/// The options must name the device that the session was given.
void Provider::check_device() {
    if (options_.given.contains("device_id")) {
        require(options_.device_id == target_.ordinal, ErrorCode::InvalidArgument,
                "Invalid device ID: ", options_.device_id, ", the session's device is ",
                target_.ordinal, ": leave the option out, or choose another device");
    }
    if (gpu_ != nullptr && gpu_->memory != nullptr) {
        gpu_->memory->require_alive();
    }
    if (options_.user_compute_stream == 0) {
        return;
    }
    if (gpu_ == nullptr || gpu_->memory == nullptr) {
        log_.warning("user_compute_stream has no effect without a GPU");
    } else {
        gpu_->memory->check_stream(reinterpret_cast<void*>(options_.user_compute_stream));
    }
}

const char* Provider::get_name(const OrtEp* self) {
    return static_cast<const Provider*>(self)->name_.c_str();
}

OrtStatus* Provider::is_concurrent_run_supported(OrtEp*, bool* out) {
    *out = true;
    return nullptr;
}

OrtStatus* Provider::create_stream(OrtEp* self, const OrtMemoryDevice* device,
                                   OrtSyncStreamImpl** out) {
    Provider& p = me(self);
    *out = nullptr;
    return guard(p.host_, [&] {
        const auto* gpu = p.gpus_->find_memory(p.host_.ep->MemoryDevice_GetDeviceId(device));
        require(gpu != nullptr && gpu == p.gpu_, ErrorCode::InvalidArgument,
                "a stream is asked for on another GPU than the session's");
        bool low = false;
        {
            std::lock_guard<std::mutex> lock(p.settings_->mutex);
            low = p.settings_->low_priority;
        }
        auto* given = reinterpret_cast<void*>(p.options_.user_compute_stream);
        *out = std::make_unique<Stream>(p.host_, p.gpus_, *gpu, given, low).release();
    });
}

OrtStatus* Provider::get_kernel_registry(OrtEp* self, const OrtKernelRegistry** out) {
    *out = me(self).kernels_->registry();
    return nullptr;
}

OrtStatus* Provider::get_default_memory(const OrtEp* self, const OrtMemoryDevice** out) {
    const auto& p = *static_cast<const Provider*>(self);
    *out = p.host_.ep->MemoryInfo_GetMemoryDevice(p.gpu_->info);
    return nullptr;
}

OrtStatus* Provider::sync(OrtEp* self) {
    Provider& p = me(self);
    return guard(p.host_, [&] { p.gpu_->memory->wait(); });
}

const char* Provider::get_compatibility_info(OrtEp* self, const OrtGraph*) {
    return me(self).compatibility_.c_str();
}

OrtStatus* Provider::get_callback_support(const OrtEp*, uint32_t* flags) {
    *flags = 1U | 2U; // reads and writes
    return nullptr;
}

OrtStatus* Provider::get_weightless_support(const OrtEp*, OrtWeightlessSupport* out) {
    *out = OrtWeightlessSupport_ALL_OR_EXTERNAL_ONLY;
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

OrtStatus* Provider::on_run_start(OrtEp* self, const OrtRunOptions* options) {
    Provider& p = me(self);
    return guard(p.host_, [&] {
        p.throw_pending();
        if (p.gpu_ != nullptr && p.gpu_->memory != nullptr) {
            p.gpu_->memory->require_alive(); // inputs are copied before a node can say it
        }
        int32_t device = p.gpu_ == nullptr ? -1 : p.target_.ordinal;
        p.settings_->set_run_options(read_run_options(p.host_, options, device));
    });
}

OrtStatus* Provider::on_run_end(OrtEp* self, const OrtRunOptions*, bool) {
    const Provider& p = me(self);
    if (p.settings_->run_options().shrinks && p.gpu_->scratch != nullptr) {
        p.gpu_->scratch->shrink();
    }
    p.settings_->set_run_options(std::nullopt);
    return nullptr;
}

OrtStatus* Provider::create_profiler(OrtEp* self, OrtEpProfilerImpl** out) {
    Provider& p = me(self);
    *out = nullptr;
    return guard(p.host_, [&] {
        *out = std::make_unique<Profiler>(p.host_, p.settings_->profilers).release();
    });
}

OrtStatus* Provider::set_dynamic_options(OrtEp* self, const char* const* keys,
                                         const char* const* values, size_t count) {
    Provider& p = me(self);
    return guard(p.host_, [&] {
        for (size_t i = 0; i < count; ++i) {
            p.settings_->set_dynamic_option(keys[i], values[i]);
        }
    });
}

// --- which nodes ---------------------------------------------------------------------------------

OrtStatus* Provider::get_capability(OrtEp* self, const OrtGraph* graph,
                                    OrtEpGraphSupportInfo* info) {
    Provider& p = me(self);
    return guard(p.host_, [&] {
        try {
            p.claim(graph, info);
        } catch (Error& e) {
            // The host takes a failure here for "no nodes" and would silently run everything
            // elsewhere: instead a node is claimed, and compile() fails with this error.
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

/// For a compiled model: claims our contexts; the other nodes were left to others when it was
/// compiled.
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

/// Profiles may name any value of the graph: groups have inputs of their own.
void Provider::check_profiles(const OrtGraph* graph) const {
    if (profiles_.empty() ||
        host_.get_from<const OrtNode*>(host_.api->Graph_GetParentNode, graph) != nullptr) {
        return;
    }
    std::vector<std::string> inputs = names_of(host_, inputs_of(host_, graph));
    std::vector<std::string> values = inputs;
    for (const OrtNode* n : nodes_of(host_, graph)) {
        for (const OrtValueInfo* v : outputs_of(host_, n)) {
            values.push_back(name_of(host_, v));
        }
    }
    check_profile_names(profiles_, values, inputs);
}

void Provider::claim(const OrtGraph* graph, OrtEpGraphSupportInfo* info) {
    if (claim_contexts(graph, info)) {
        return;
    }
    check_profiles(graph);
    int64_t start = thread_ms();
    Claim claim = claim_graph(host_, graph, options_, api_logger_);
    bool is_body = host_.get_from<const OrtNode*>(host_.api->Graph_GetParentNode, graph) != nullptr;
    if (is_body && claim.claimed == claim.nodes) {
        return; // the node that contains it is claimed as a whole
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
        log_.info(str("claimed ", claim.claimed, " of ", claim.nodes, " nodes in ",
                      thread_ms() - start, " ms of CPU time"));
    }
}

} // namespace ingot::ort
