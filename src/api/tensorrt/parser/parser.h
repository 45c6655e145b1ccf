// SPDX-License-Identifier: Apache-2.0
// Parser: nvonnxparser::IParser. Nodes become layers of matching classes; their ops come from the
// importer's own functions.
#pragma once

#include "NvOnnxParser.h"
#include "api/tensorrt/network/network.h"
#include "api/tensorrt/parser/given_model.h"
#include "ingot.h"
#include "onnx/model.h"

#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace ingot::api {

using ParserCode = nvonnxparser::ErrorCode;

class ParserError final : public nvonnxparser::IParserError {
public:
    ParserError(ParserCode code, std::string text, int line)
        : code_(code), text_(std::move(text)), line_(line) {}
    virtual ~ParserError() = default;

    ParserCode code() const noexcept override { return code_; }
    const char* desc() const noexcept override { return text_.c_str(); }
    const char* file() const noexcept override { return "parser.cpp"; }
    int line() const noexcept override { return line_; }
    const char* func() const noexcept override { return "parse"; }
    int node() const noexcept override { return index; }
    const char* nodeName() const noexcept override { return name.c_str(); }
    const char* nodeOperator() const noexcept override { return op.c_str(); }
    const char* const* localFunctionStack() const noexcept override {
        return functions_.empty() ? nullptr : functions_.data();
    }
    int32_t localFunctionStackSize() const noexcept override {
        return static_cast<int32_t>(functions_.size());
    }
    /// The node is in this function of the model.
    void set_function(std::string f) {
        function_ = std::move(f);
        functions_ = {function_.c_str()};
    }

    int index = -1;
    std::string name;
    std::string op;

private:
    ParserCode code_;
    std::string text_;
    int line_;
    std::string function_;
    std::vector<const char*> functions_;
};

using ParserErrors = std::vector<std::unique_ptr<ParserError>>;

/// The parser's code for an error of the whole model.
ParserCode code_for_model(ErrorCode c);
class Parser final : public nvonnxparser::IParser {
public:
    Parser(Network& network, nv::ILogger* logger) : network_(network), report_(logger) {}

    bool parse(const void* model, size_t size, const char* path) noexcept override;
    bool parseFromFile(const char* onnx_model_file, int verbosity) noexcept override;
    bool supportsOperator(const char* op_name) const noexcept override;
    int getNbErrors() const noexcept override { return static_cast<int>(errors_.size()); }
    const nvonnxparser::IParserError* getError(int index) const noexcept override;
    void clearErrors() noexcept override { errors_.clear(); }
    const char* const* getUsedVCPluginLibraries(int64_t& nb_plugin_libs) const noexcept override;
    void setFlags(nvonnxparser::OnnxParserFlags flags) noexcept override;
    nvonnxparser::OnnxParserFlags getFlags() const noexcept override { return flags_; }
    void clearFlag(nvonnxparser::OnnxParserFlag flag) noexcept override;
    void setFlag(nvonnxparser::OnnxParserFlag flag) noexcept override;
    bool getFlag(nvonnxparser::OnnxParserFlag flag) const noexcept override;
    const nv::ITensor* getLayerOutputTensor(const char* name, int64_t i) noexcept override;
    bool supportsModelV2(const void* model, size_t size, const char* path) noexcept override;
    int64_t getNbSubgraphs() noexcept override { return static_cast<int64_t>(parts_.size()); }
    bool isSubgraphSupported(int64_t index) noexcept override;
    int64_t* getSubgraphNodes(int64_t index, int64_t& subgraph_length) noexcept override;
    bool loadModelProto(const void* model, size_t size, const char* path) noexcept override;
    bool loadInitializer(const char* name, const void* data, size_t size) noexcept override;
    bool parseModelProto() noexcept override;
    bool setBuilderConfig(const nv::IBuilderConfig* builder_config) noexcept override;
    /// ingot::claimNodes().
    bool claim(NodeVerdict verdict, void* user) noexcept;
    /// ingot::setOptionalInputs().
    bool set_optional_inputs(const char* const* names, int32_t count) noexcept;

private:
    bool plugins_first() const noexcept {
        return getFlag(nvonnxparser::OnnxParserFlag::kENABLE_PLUGIN_OVERRIDE);
    }
    struct Part {
        std::vector<int64_t> nodes;
        bool supported = false;
    };
    /// Runs f; an exception becomes an error without a node.
    template <class F>
    bool guarded(std::string_view method, const F& f) noexcept;
    void take_errors(ParserErrors errors);
    void report_errors(std::string_view method) const;
    bool import_into_network(std::string_view method);

    Network& network_;
    Report report_;
    nvonnxparser::OnnxParserFlags flags_ = 1;
    ParserErrors errors_;
    GivenModel model_;
    std::vector<std::string> optional_inputs_;
    std::unordered_map<std::string, std::vector<NetworkTensor*>> results_; // by node name
    std::vector<Part> parts_;
};

} // namespace ingot::api
