// SPDX-License-Identifier: Apache-2.0
#include "plugins/triton/engine.h"

#include "NvOnnxParser.h"
#include "plugins/triton/built_models.h"

#include <algorithm>
#include <cstring>
#include <span>

namespace ingot::triton {

namespace nv = nvinfer1;

namespace {

template <class T>
std::unique_ptr<T> made(T* object, ServerLogger& logger, ErrorCode code, const char* otherwise) {
    std::unique_ptr<T> out(object);
    logger.require_done(out != nullptr, code, otherwise);
    return out;
}

/// Plans of NVIDIA's TensorRT begin with one of these.
void refuse_foreign_plan(std::span<const std::byte> bytes) {
    for (std::string_view tag : {"ftrt", "ptrt"}) {
        require(bytes.size() < tag.size() || std::memcmp(bytes.data(), tag.data(), tag.size()) != 0,
                ErrorCode::InvalidEngine,
                "it is a plan of NVIDIA's TensorRT, which runs there alone; build an engine from "
                "the ONNX model: ingot build model.onnx -o model.engine");
    }
}

/// Runs f. A client may see its errors, which name files as they lie in `folder`.
template <class F>
void without_folder(const std::string& folder, const F& f) {
    try {
        f();
    } catch (const Error& e) {
        std::string text = e.what();
        for (size_t at = text.find(folder); at != std::string::npos; at = text.find(folder, at)) {
            text.erase(at, folder.size());
        }
        fail(e.code(), text);
    }
}

bool ends_with_onnx(const std::string& path) {
    return path.ends_with(".onnx");
}

/// The engine of an ONNX model as bytes.
std::unique_ptr<nv::IHostMemory> build(const MappedFile& file, const BuildChoices& choices,
                                       ServerLogger& logger) {
    auto builder = made(nv::createInferBuilder(logger), logger, ErrorCode::Internal, "no builder");
    auto flag = static_cast<uint32_t>(nv::NetworkDefinitionCreationFlag::kSTRONGLY_TYPED);
    auto network = made(builder->createNetworkV2(choices.fp16 ? 0U : 1U << flag), logger,
                        ErrorCode::Internal, "no network");
    auto parser = made(nvonnxparser::createParser(*network, logger), logger, ErrorCode::Internal,
                       "no parser");
    std::vector<const char*> optional;
    for (const std::string& name : choices.optional_inputs) {
        optional.push_back(name.c_str());
    }
    setOptionalInputs(*parser, optional.data(), static_cast<int32_t>(optional.size()));
    if (!parser->parse(file.bytes().data(), file.bytes().size(), file.path().c_str())) {
        std::string text;
        for (int i = 0; i < parser->getNbErrors(); ++i) {
            text += text.empty() ? "" : "\n";
            text += parser->getError(i)->desc();
        }
        logger.take_errors("");
        fail(ErrorCode::InvalidModel,
             text.empty() ? std::string("the model cannot be read") : text);
    }
    auto config =
        made(builder->createBuilderConfig(), logger, ErrorCode::Internal, "no configuration");
    if (choices.fp16) {
        config->setFlag(nv::BuilderFlag::kFP16);
    }
    if (choices.batch_invariant) {
        config->setFlag(nv::BuilderFlag::kDISTRIBUTIVE_INDEPENDENCE);
    }
    return made(builder->buildSerializedNetwork(*network, *config), logger, ErrorCode::Unsupported,
                "the model cannot be built");
}

/// Replaces the file of an ONNX model by its engine: the kept one, or a new one, which is kept.
void build_or_find(EngineBytes& model, const std::string& path, const BuildChoices& choices,
                   ServerLogger& logger) {
    BuiltModel place(path, choices);
    if (std::optional<BuiltModel::Kept> kept = place.find()) {
        model.file = kept->file;
        model.data = kept->engine;
        log(TRITONSERVER_LOG_INFO,
            str("the engine of '", model.file_name, "' is the one kept in ", model.file->path()));
        return;
    }
    model.built = build(*model.file, choices, logger);
    model.data = {static_cast<const std::byte*>(model.built->data()), model.built->size()};
    if (BuiltModel(path, choices) == place) { // else a file has changed meanwhile
        place.keep(model.data);
    }
}

EngineTensor describe(const nv::ICudaEngine& engine, const char* name, int32_t profile) {
    EngineTensor t;
    t.name = name;
    t.type = engine.getTensorDataType(name);
    t.dims = to_vector(engine.getTensorShape(name));
    t.on_host = engine.getTensorLocation(name) == nv::TensorLocation::kHOST;
    require(!config_type(t.type).empty(), ErrorCode::Unsupported, "tensor '", name,
            "' has elements of ", engine.getTensorFormatDesc(name),
            ", which the server has no type for: convert it inside the model");
    require(engine.getTensorFormat(name, profile) == nv::TensorFormat::kLINEAR,
            ErrorCode::Unsupported, "tensor '", name, "' has the format ",
            engine.getTensorFormatDesc(name, profile),
            ", and clients send rows: build the engine with linear inputs and outputs");
    if (engine.getTensorIOMode(name) == nv::TensorIOMode::kINPUT) {
        auto shape = [&](nv::OptProfileSelector s) {
            return to_vector(engine.getProfileShape(name, profile, s));
        };
        std::vector<int64_t> most = shape(nv::OptProfileSelector::kMAX);
        // An engine without profiles has -1 where nothing bounds a size.
        if (most.size() == t.dims.size() && std::count(most.begin(), most.end(), -1) == 0) {
            t.least = shape(nv::OptProfileSelector::kMIN);
            t.usual = shape(nv::OptProfileSelector::kOPT);
            t.most = most;
        }
        HostTensor value;
        if (getInputDefault(engine, name, value)) {
            std::vector<int64_t> dims = to_vector(value.dims);
            size_t bytes = static_cast<size_t>(element_count(dims)) * element_bytes(t.type);
            t.initial = {dims, {static_cast<const std::byte*>(value.data), bytes}};
        }
    }
    return t;
}

void describe_all(Engine& e, int32_t profile) {
    int32_t profiles = e.engine->getNbOptimizationProfiles();
    require(profile < profiles, ErrorCode::InvalidArgument, "profile ", profile,
            " is asked for, and the engine has ", profiles);
    for (int32_t i = 0; i < e.engine->getNbIOTensors(); ++i) {
        const char* name = e.engine->getIOTensorName(i);
        bool is_input = e.engine->getTensorIOMode(name) == nv::TensorIOMode::kINPUT;
        (is_input ? e.inputs : e.outputs).push_back(describe(*e.engine, name, profile));
    }
}

const EngineTensor* find(const std::vector<EngineTensor>& tensors, std::string_view name) {
    auto at = std::find_if(tensors.begin(), tensors.end(),
                           [&](const EngineTensor& t) { return t.name == name; });
    return at == tensors.end() ? nullptr : &*at;
}

bool has_open_rows(const EngineTensor& t) {
    return !t.dims.empty() && t.dims[0] == -1;
}

} // namespace

const EngineTensor* Engine::find_input(std::string_view name) const {
    return find(inputs, name);
}

const EngineTensor* Engine::find_output(std::string_view name) const {
    return find(outputs, name);
}

bool Engine::takes_batches() const {
    return !inputs.empty() && std::all_of(inputs.begin(), inputs.end(), has_open_rows) &&
           std::all_of(outputs.begin(), outputs.end(), has_open_rows);
}

bool Engine::has_defaults() const {
    return std::any_of(inputs.begin(), inputs.end(), [](auto& t) { return t.initial.has_value(); });
}

int64_t Engine::most_rows() const {
    int64_t most = 0;
    for (const EngineTensor& t : inputs) {
        if (has_open_rows(t) && !t.most.empty()) {
            most = most == 0 ? t.most[0] : std::min(most, t.most[0]);
        }
    }
    return most;
}

EngineBytes read_engine(const std::string& path, const BuildChoices& choices,
                        ServerLogger& logger) {
    EngineBytes out;
    out.file_name = path.substr(path.rfind('/') + 1);
    auto read = [&] {
        out.file = MappedFile::open(path);
        out.data = out.file->bytes();
        require(!out.data.empty(), ErrorCode::InvalidEngine, "it is empty: copy it again");
        refuse_foreign_plan(out.data);
        require(!choices.batch_invariant || ends_with_onnx(path), ErrorCode::InvalidArgument,
                "it is an engine, and the parameter 'batch_invariant' is for ONNX models: build it "
                "with 'ingot build --batchInvariant' and leave the parameter out");
        if (ends_with_onnx(path)) {
            build_or_find(out, path, choices, logger);
        }
    };
    with_place([&] { return str("file '", out.file_name, "'"); },
               [&] { without_folder(parent_folder(path) + "/", read); });
    return out;
}

std::shared_ptr<const Engine> load_engine(const EngineBytes& bytes, LoadRequest request,
                                          const std::shared_ptr<ServerLogger>& logger) {
    return with_place(
        [&] { return str("file '", bytes.file_name, "'"); },
        [&] {
            auto out = std::make_shared<Engine>();
            out->target = request.target;
            out->logger = logger;
            out->memory = std::move(request.memory);
            out->runtime = made(nv::createInferRuntime(*logger), *logger, ErrorCode::Internal,
                                "no runtime could be made");
            logger->require_done(
                setDevice(*out->runtime, request.target.device, request.target.ordinal),
                ErrorCode::Device, "the device cannot be used");
            if (request.threads > 0) {
                logger->require_done(out->runtime->setMaxThreads(request.threads),
                                     ErrorCode::InvalidArgument,
                                     "the number of threads cannot be set");
            }
            out->runtime->setGpuAllocator(out->memory.get());
            apply_trust(*out->runtime, request.trust, *logger);
            out->engine =
                made(out->runtime->deserializeCudaEngine(bytes.data.data(), bytes.data.size()),
                     *logger, ErrorCode::InvalidEngine, "the engine cannot be loaded");
            describe_all(*out, request.profile);
            return out;
        });
}

} // namespace ingot::triton
