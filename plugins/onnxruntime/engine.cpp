// SPDX-License-Identifier: Apache-2.0
#include "plugins/onnxruntime/engine.h"

#include "NvOnnxParser.h"

#include <algorithm>
#include <thread>

namespace ingot::ort {

namespace nv = nvinfer1;

namespace {

template <class T>
std::unique_ptr<T> made(T* object, ApiLogger& logger, const char* what) {
    std::unique_ptr<T> out(object);
    require(out != nullptr, ErrorCode::Internal, what, ": ",
            logger.take_errors("it could not be made"));
    return out;
}

/// A network and the objects that make it; destroyed in reverse order.
struct Building {
    std::unique_ptr<nv::IBuilder> builder;
    std::unique_ptr<nv::INetworkDefinition> network;
    std::unique_ptr<nvonnxparser::IParser> parser;
};

Building start(const OnnxModel& model, ApiLogger& logger, bool strongly_typed) {
    Building b;
    b.builder = made(nv::createInferBuilder(logger), logger, "builder");
    auto flag = static_cast<uint32_t>(nv::NetworkDefinitionCreationFlag::kSTRONGLY_TYPED);
    b.network =
        made(b.builder->createNetworkV2(strongly_typed ? 1U << flag : 0U), logger, "network");
    b.parser = made(nvonnxparser::createParser(*b.network, logger), logger, "parser");
    logger.require_done(b.parser->loadModelProto(model.bytes.data(), model.bytes.size(),
                                                 model.path.empty() ? nullptr : model.path.c_str()),
                        ErrorCode::InvalidModel, "the model cannot be read");
    for (const auto& [name, weight] : model.weights) {
        if (model.in_files.contains(name)) {
            continue;
        }
        logger.require_done(b.parser->loadInitializer(name.c_str(), weight.data, weight.bytes),
                            ErrorCode::InvalidModel, "a weight cannot be given");
    }
    return b;
}

std::string parser_errors(const nvonnxparser::IParser& parser) {
    std::string text;
    for (int i = 0; i < parser.getNbErrors(); ++i) {
        text += text.empty() ? "" : "\n";
        text += parser.getError(i)->desc();
    }
    return text;
}

void add_profiles(Building& b, nv::IBuilderConfig& config, const BuildRequest& request,
                  ApiLogger& logger) {
    for (const ShapeProfile& p : request.profiles) {
        nv::IOptimizationProfile* profile = b.builder->createOptimizationProfile();
        logger.require_done(profile != nullptr, ErrorCode::Internal, "no profile");
        for (const auto& [name, ranges] : p) {
            constexpr nv::OptProfileSelector selectors[] = {nv::OptProfileSelector::kMIN,
                                                            nv::OptProfileSelector::kOPT,
                                                            nv::OptProfileSelector::kMAX};
            for (size_t i = 0; i < 3; ++i) {
                nv::Dims dims{static_cast<int32_t>(ranges[i].size()), {}};
                std::copy(ranges[i].begin(), ranges[i].end(), dims.d);
                logger.require_done(profile->setDimensions(name.c_str(), selectors[i], dims),
                                    ErrorCode::InvalidArgument,
                                    "a shape of a profile does not fit");
            }
        }
        logger.require_done(config.addOptimizationProfile(profile) >= 0, ErrorCode::InvalidArgument,
                            "a profile does not fit");
    }
}

void apply_options(nv::IBuilderConfig& config, const BuildRequest& request) {
    const Options& o = *request.options;
    if (o.nv_max_workspace_size > 0) {
        config.setMemoryPoolLimit(nv::MemoryPoolType::kWORKSPACE, o.nv_max_workspace_size);
    }
    if (o.nv_max_shared_mem_size > 0) {
        config.setMemoryPoolLimit(nv::MemoryPoolType::kTACTIC_SHARED_MEMORY,
                                  o.nv_max_shared_mem_size);
    }
    if (o.ingot_precision == "fp16") {
        config.setFlag(nv::BuilderFlag::kFP16);
    }
    if (o.ingot_precision == "bf16") {
        config.setFlag(nv::BuilderFlag::kBF16);
    }
    if (o.nv_weight_streaming_budget != "0") {
        config.setFlag(nv::BuilderFlag::kWEIGHT_STREAMING);
    }
    if (o.nv_detailed_build_log || o.nv_enable_profiling) {
        config.setProfilingVerbosity(nv::ProfilingVerbosity::kDETAILED);
    }
    std::vector<int> capabilities;
    if (request.kernels_ahead) {
        capabilities = o.target_capabilities();
    }
    config.setNbComputeCapabilities(static_cast<int32_t>(capabilities.size()));
    for (size_t i = 0; i < capabilities.size(); ++i) {
        config.setComputeCapability(static_cast<nv::ComputeCapability>(capabilities[i]),
                                    static_cast<int32_t>(i));
    }
}

void leave_weights_out(nv::INetworkDefinition& network, nv::IBuilderConfig& config,
                       const BuildRequest& request, ApiLogger& logger) {
    if (!request.without_weights) {
        return;
    }
    config.setFlag(nv::BuilderFlag::kSTRIP_PLAN);
    if (request.left_out == nullptr) {
        return;
    }
    config.setFlag(nv::BuilderFlag::kREFIT_INDIVIDUAL);
    for (const std::string& name : *request.left_out) {
        logger.require_done(network.markWeightsRefittable(name.c_str()), ErrorCode::Internal,
                            "weights cannot be left out");
    }
}

/// make(building, configuration) of a model.
template <class Make>
auto built(const OnnxModel& model, const BuildRequest& request,
           const std::shared_ptr<ApiLogger>& logger, const std::string& what, const Make& make) {
    return with_place(
        [&] { return str("building ", what); },
        [&] {
            Building b = start(model, *logger, request.options->ingot_precision == "fp32");
            if (!b.parser->parseModelProto()) {
                std::string errors = parser_errors(*b.parser);
                fail(ErrorCode::Unsupported,
                     logger->take_errors(errors.empty() ? "the parser failed" : errors.c_str()));
            }
            auto config = made(b.builder->createBuilderConfig(), *logger, "configuration");
            logger->require_done(setDevice(*config, request.target.device, request.target.ordinal),
                                 ErrorCode::Device, "there is no such device");
            apply_options(*config, request);
            if (!request.options->nv_detailed_build_log) {
                setMemoryLog(*config, false);
            }
            leave_weights_out(*b.network, *config, request, *logger);
            add_profiles(b, *config, request, *logger);
            return make(b, *config);
        });
}

} // namespace

EngineBytes build_engine(const OnnxModel& model, const BuildRequest& request,
                         const std::shared_ptr<ApiLogger>& logger, const std::string& what) {
    return built(model, request, logger, what, [&](Building& b, nv::IBuilderConfig& config) {
        return made(b.builder->buildSerializedNetwork(*b.network, config), *logger, "engine");
    });
}

void build_engine_file(const OnnxModel& model, const BuildRequest& request, const std::string& path,
                       const std::shared_ptr<ApiLogger>& logger, const std::string& what) {
    built(model, request, logger, what, [&](Building& b, nv::IBuilderConfig& config) {
        logger->require_done(buildToFile(*b.builder, *b.network, config, path.c_str()),
                             ErrorCode::Io, "the engine cannot be written");
    });
}

LoadedEngine build_loaded_engine(const OnnxModel& model, const BuildRequest& request,
                                 const std::shared_ptr<ApiLogger>& logger,
                                 const std::string& what) {
    return built(model, request, logger, what, [&](Building& b, nv::IBuilderConfig& config) {
        LoadedEngine out;
        out.logger = logger;
        out.engine = made(b.builder->buildEngineWithConfig(*b.network, config), *logger, "engine");
        return out;
    });
}

std::vector<std::string> claim_nodes(const OnnxModel& model, size_t node_count,
                                     const std::shared_ptr<ApiLogger>& logger) {
    Building b = start(model, *logger, true);
    std::vector<std::string> reasons(node_count);
    auto take = [](int64_t node, const char* reason, void* user) {
        auto& out = *static_cast<std::vector<std::string>*>(user);
        out.at(static_cast<size_t>(node)) = reason == nullptr ? "" : reason;
    };
    logger->require_done(claimNodes(*b.parser, take, &reasons), ErrorCode::InvalidModel,
                         "the model cannot be judged");
    logger->take_errors("");
    return reasons;
}

EngineBytes sign_engine(std::span<const std::byte> engine, const std::string& private_key,
                        ApiLogger& logger) {
    EngineBytes out(signEngine(logger, engine.data(), engine.size(), private_key.c_str()));
    logger.require_done(out != nullptr, ErrorCode::InvalidArgument, "the engine cannot be signed");
    return out;
}

std::string engine_digest(std::span<const std::byte> bytes) {
    char text[65] = "";
    return ingot::engineDigest(bytes.data(), bytes.size(), text) ? text : "";
}

EngineContent content_of(const EngineBytes& engine) {
    std::span<const std::byte> bytes(static_cast<const std::byte*>(engine->data()), engine->size());
    return {bytes, "", "", engine_digest(bytes)};
}

LoadedEngine load_engine(const EngineContent& content, const Target& target,
                         const EngineTrust& trust, const std::shared_ptr<ApiLogger>& logger,
                         const std::string& what) {
    return with_place(
        [&] { return str("loading ", what); },
        [&] {
            LoadedEngine out;
            out.logger = logger;
            out.runtime = made(nv::createInferRuntime(*logger), *logger, "runtime");
            logger->require_done(setDevice(*out.runtime, target.device, target.ordinal),
                                 ErrorCode::Device, "there is no such device");
            apply_trust(*out.runtime, trust, *logger);
            if (content.file.empty()) {
                out.engine.reset(
                    out.runtime->deserializeCudaEngine(content.bytes.data(), content.bytes.size()));
            } else {
                out.engine.reset(deserializeFile(
                    *out.runtime, {content.file.c_str(), content.folder.c_str(),
                                   content.digest.empty() ? nullptr : content.digest.c_str()}));
            }
            logger->require_done(out.engine != nullptr, ErrorCode::InvalidEngine,
                                 "the engine cannot be read");
            return out;
        });
}

namespace {

std::unique_ptr<nv::IRefitter> refitter_of(const LoadedEngine& engine) {
    return made(nv::createInferRefitter(*engine.engine, *engine.logger), *engine.logger,
                "refitter");
}

} // namespace

std::vector<std::string> missing_weights(const LoadedEngine& engine) {
    if (engine.engine->getEngineStat(nv::EngineStat::kSTRIPPED_WEIGHTS_SIZE) < 0) {
        return {};
    }
    auto refitter = refitter_of(engine);
    std::vector<const char*> names(
        static_cast<size_t>(std::max(refitter->getMissingWeights(0, nullptr), 0)));
    refitter->getMissingWeights(static_cast<int32_t>(names.size()), names.data());
    return {names.begin(), names.end()};
}

void give_weights(const LoadedEngine& engine,
                  const std::map<std::string, TensorView, std::less<>>& weights,
                  const std::string& what) {
    with_place([&] { return str("giving weights to ", what); },
               [&] {
                   OnnxModel model = model_of_tensors(weights);
                   auto refitter = refitter_of(engine);
                   refitter->setWeightsValidation(false);
                   refitter->setMaxThreads(
                       static_cast<int32_t>(std::max(1U, std::thread::hardware_concurrency())));
                   std::unique_ptr<nvonnxparser::IParserRefitter> parser =
                       made(nvonnxparser::createParserRefitter(*refitter, *engine.logger),
                            *engine.logger, "refitter of the parser");
                   bool done = parser->loadModelProto(model.bytes.data(), model.bytes.size());
                   for (auto it = model.weights.begin(); done && it != model.weights.end(); ++it) {
                       done = parser->loadInitializer(it->first.c_str(), it->second.data,
                                                      it->second.bytes);
                   }
                   engine.logger->require_done(done && parser->refitModelProto(),
                                               ErrorCode::InvalidEngine,
                                               "the engine does not take them");
               });
}

} // namespace ingot::ort
