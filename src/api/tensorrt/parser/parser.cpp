// SPDX-License-Identifier: Apache-2.0
#include "api/tensorrt/parser/parser.h"

#include "api/tensorrt/globals.h"
#include "api/tensorrt/parser/claim.h"
#include "api/tensorrt/parser/model_layers.h"
#include "api/tensorrt/unused.h"
#include "onnx/import_node.h"
#include "onnx/importer.h"
#include "onnx/input_defaults.h"

#include <algorithm>
#include <iterator>

namespace ingot::api {

ParserCode code_for_model(ErrorCode c) {
    switch (c) {
    case ErrorCode::InvalidArgument:
        return ParserCode::kINVALID_VALUE;
    case ErrorCode::InvalidModel:
    case ErrorCode::Io:
        return ParserCode::kMODEL_DESERIALIZE_FAILED;
    case ErrorCode::Unsupported:
        return ParserCode::kUNSUPPORTED_GRAPH;
    case ErrorCode::OutOfMemory:
        return ParserCode::kMEM_ALLOC_FAILED;
    default:
        return ParserCode::kINTERNAL_ERROR;
    }
}

template <class F>
bool Parser::guarded(std::string_view method, const F& f) noexcept {
    return network_.report().guard(method, false, [&] {
        try {
            return f();
        } catch (const Error& e) {
            errors_.push_back(
                std::make_unique<ParserError>(code_for_model(e.code()), e.what(), __LINE__));
            throw;
        }
    });
}

void Parser::take_errors(ParserErrors errors) {
    std::move(errors.begin(), errors.end(), std::back_inserter(errors_));
}

void Parser::report_errors(std::string_view method) const {
    for (const auto& e : errors_) {
        network_.report().error(nv::ErrorCode::kUNSUPPORTED_STATE, method, e->desc());
    }
}

bool Parser::import_into_network(std::string_view method) {
    onnx::make_optional(*model_.get(), optional_inputs_);
    Network::State before = network_.state();
    ModelLayers layers(network_, model_.get(), plugins_first());
    try {
        layers.run();
    } catch (...) {
        network_.restore(before);
        throw;
    }
    if (!layers.errors().empty()) {
        take_errors(std::move(layers.errors()));
        network_.restore(before);
        report_errors(method);
        return false;
    }
    results_ = layers.results();
    return true;
}

bool Parser::parse(const void* model, size_t size, const char* path) noexcept {
    constexpr std::string_view method = "IParser::parse";
    return guarded(method, [&] {
        model_.read_bytes(model, size, path);
        return import_into_network(method);
    });
}

bool Parser::parseFromFile(const char* onnx_model_file, int) noexcept {
    constexpr std::string_view method = "IParser::parseFromFile";
    return guarded(method, [&] {
        model_.read_file(onnx_model_file);
        return import_into_network(method);
    });
}

bool Parser::loadModelProto(const void* model, size_t size, const char* path) noexcept {
    return guarded("IParser::loadModelProto", [&] {
        model_.read_bytes_without_data(model, size, path);
        return true;
    });
}

bool Parser::loadInitializer(const char* name, const void* data, size_t size) noexcept {
    return guarded("IParser::loadInitializer", [&] {
        model_.set_initializer(name, data, size);
        return true;
    });
}

bool Parser::parseModelProto() noexcept {
    constexpr std::string_view method = "IParser::parseModelProto";
    return guarded(method, [&] { return import_into_network(method); });
}

// --- what is supported ---------------------------------------------------------------------------

bool Parser::supportsOperator(const char* op_name) const noexcept {
    return network_.report().guard("IParser::supportsOperator", false, [&] {
        require(op_name != nullptr, ErrorCode::InvalidArgument, "the name is nullptr");
        for (const onnx::ImporterTable* table : onnx::all_importers()) {
            for (const onnx::ImporterRow& row : *table) {
                if (row.type == op_name && row.domain.empty()) {
                    return true;
                }
            }
        }
        return false;
    });
}

bool Parser::supportsModelV2(const void* model, size_t size, const char* path) noexcept {
    return guarded("IParser::supportsModelV2", [&] {
        parts_.clear();
        Network scratch(network_.getBuilder(), network_.getFlags(), Report(report_.logger()));
        GivenModel given;
        given.read_bytes(model, size, path);
        ModelLayers layers(scratch, given.get(), plugins_first());
        layers.run();
        bool all = layers.errors().empty();
        take_errors(std::move(layers.errors()));
        // Neighbours in execution order, so that no part needs a result of a later one.
        for (size_t node : layers.order()) {
            bool supported = !layers.refused(node);
            if (parts_.empty() || parts_.back().supported != supported) {
                parts_.push_back({{}, supported});
            }
            parts_.back().nodes.push_back(static_cast<int64_t>(node));
        }
        return all;
    });
}

bool Parser::claim(NodeVerdict verdict, void* user) noexcept {
    return guarded("claimNodes", [&] {
        require(verdict != nullptr, ErrorCode::InvalidArgument, "verdict is nullptr");
        claim_nodes(*model_.get(), verdict, user);
        return true;
    });
}

bool Parser::set_optional_inputs(const char* const* names, int32_t count) noexcept {
    return guarded("setOptionalInputs", [&] {
        require(count >= 0 && (names != nullptr || count == 0), ErrorCode::InvalidArgument, "got ",
                count, " names at ", names == nullptr ? "a null address" : "an address");
        std::vector<std::string> all;
        for (int32_t i = 0; i < count; ++i) {
            require(names[i] != nullptr, ErrorCode::InvalidArgument, "name ", i, " is null");
            all.emplace_back(names[i]);
        }
        optional_inputs_ = std::move(all);
        return true;
    });
}

bool Parser::isSubgraphSupported(int64_t index) noexcept {
    return index >= 0 && index < getNbSubgraphs() && parts_[static_cast<size_t>(index)].supported;
}

int64_t* Parser::getSubgraphNodes(int64_t index, int64_t& subgraph_length) noexcept {
    subgraph_length = 0;
    return network_.report().guard(
        "IParser::getSubgraphNodes", static_cast<int64_t*>(nullptr), [&] {
            require(index >= 0 && index < getNbSubgraphs(), ErrorCode::InvalidArgument, "index ",
                    index, " is out of range: there are ", parts_.size());
            std::vector<int64_t>& nodes = parts_[static_cast<size_t>(index)].nodes;
            subgraph_length = static_cast<int64_t>(nodes.size());
            return nodes.data();
        });
}

bool Parser::setBuilderConfig(const nv::IBuilderConfig* builder_config) noexcept {
    if (builder_config != nullptr) {
        log_unused(network_.report(), "IParser::setBuilderConfig", true,
                   "a model is parsed alike for every configuration");
    }
    return builder_config != nullptr;
}

// --- the rest ------------------------------------------------------------------------------------

const nvonnxparser::IParserError* Parser::getError(int index) const noexcept {
    using Found = const nvonnxparser::IParserError*;
    return network_.report().guard("IParser::getError", Found{nullptr}, [&]() -> Found {
        require(index >= 0 && static_cast<size_t>(index) < errors_.size(),
                ErrorCode::InvalidArgument, "index ", index, " is out of range: there are ",
                errors_.size());
        return errors_[static_cast<size_t>(index)].get();
    });
}

const char* const* Parser::getUsedVCPluginLibraries(int64_t& nb_plugin_libs) const noexcept {
    nb_plugin_libs = 0;
    return nullptr;
}

namespace {

uint32_t bit_of(nvonnxparser::OnnxParserFlag flag) {
    auto number = static_cast<int64_t>(flag);
    constexpr int32_t last = nvonnxparser::EnumMax<nvonnxparser::OnnxParserFlag>();
    require(number >= 0 && number <= last, ErrorCode::InvalidArgument, "the flag is ", number,
            ", expected 0 to ", last);
    return 1U << static_cast<uint32_t>(number);
}

void note_unused_flags(const Report& report, nvonnxparser::OnnxParserFlags flags) {
    using Flag = nvonnxparser::OnnxParserFlag;
    constexpr std::pair<Flag, const char*> dla[] = {
        {Flag::kENABLE_UINT8_AND_ASYMMETRIC_QUANTIZATION_DLA,
         "kENABLE_UINT8_AND_ASYMMETRIC_QUANTIZATION_DLA"},
        {Flag::kREPORT_CAPABILITY_DLA, "kREPORT_CAPABILITY_DLA"},
        {Flag::kADJUST_FOR_DLA, "kADJUST_FOR_DLA"}};
    for (const auto& [flag, name] : dla) {
        if ((flags & bit_of(flag)) != 0) {
            log_unused(report, name, false, "there is no DLA");
        }
    }
}

} // namespace

void Parser::setFlags(nvonnxparser::OnnxParserFlags flags) noexcept {
    network_.report().guard("IParser::setFlags", [&] {
        constexpr int32_t last = nvonnxparser::EnumMax<nvonnxparser::OnnxParserFlag>();
        require((flags >> static_cast<uint32_t>(last + 1)) == 0, ErrorCode::InvalidArgument,
                "the flags ", flags, " have bits above ", last);
        flags_ = flags;
        note_unused_flags(network_.report(), flags);
    });
}

void Parser::clearFlag(nvonnxparser::OnnxParserFlag flag) noexcept {
    network_.report().guard("IParser::clearFlag", [&] { flags_ &= ~bit_of(flag); });
}

void Parser::setFlag(nvonnxparser::OnnxParserFlag flag) noexcept {
    network_.report().guard("IParser::setFlag", [&] {
        flags_ |= bit_of(flag);
        note_unused_flags(network_.report(), bit_of(flag));
    });
}

bool Parser::getFlag(nvonnxparser::OnnxParserFlag flag) const noexcept {
    return network_.report().guard("IParser::getFlag", false,
                                   [&] { return (flags_ & bit_of(flag)) != 0; });
}

const nv::ITensor* Parser::getLayerOutputTensor(const char* name, int64_t i) noexcept {
    auto it = name == nullptr ? results_.end() : results_.find(name);
    return it == results_.end() || i < 0 || i >= static_cast<int64_t>(it->second.size())
               ? nullptr
               : it->second[static_cast<size_t>(i)];
}

} // namespace ingot::api

extern "C" void* createNvOnnxParser_INTERNAL(void* network, void* logger, int version) noexcept {
    auto* log = static_cast<nvinfer1::ILogger*>(logger);
    return ingot::api::Report(log).guard(
        "createParser", static_cast<void*>(nullptr), [&]() -> void* {
            ingot::require(version <= NV_ONNX_PARSER_VERSION, ingot::ErrorCode::Unsupported,
                           "the program was compiled with headers of version ", version,
                           ", this library is ", NV_ONNX_PARSER_VERSION);
            ingot::require(network != nullptr, ingot::ErrorCode::InvalidArgument,
                           "network is nullptr");
            auto* definition = static_cast<nvinfer1::INetworkDefinition*>(network);
            nvonnxparser::IParser* parser = std::make_unique<ingot::api::Parser>(
                                                static_cast<ingot::api::Network&>(*definition), log)
                                                .release();
            return parser;
        });
}

extern "C" bool ingotSetOptionalInputs(nvonnxparser::IParser* parser, const char* const* names,
                                       int32_t count) noexcept {
    return parser != nullptr &&
           static_cast<ingot::api::Parser*>(parser)->set_optional_inputs(names, count);
}

extern "C" int getNvOnnxParserVersion() noexcept {
    return NV_ONNX_PARSER_VERSION;
}
