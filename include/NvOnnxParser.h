// SPDX-License-Identifier: Apache-2.0
// The ONNX parser: fills a network from a model, and refits an engine from one.
#pragma once

#include "NvInfer.h"

#include <cstddef>
#include <utility>
#include <vector>

#define NV_ONNX_PARSER_MAJOR 0
#define NV_ONNX_PARSER_MINOR 2
#define NV_ONNX_PARSER_PATCH 0

static constexpr int32_t NV_ONNX_PARSER_VERSION =
    ((NV_ONNX_PARSER_MAJOR * 10000) + (NV_ONNX_PARSER_MINOR * 100) + NV_ONNX_PARSER_PATCH);

// For older generations: nodes of a part of the model, and whether it is supported. The library
// itself uses neither.
using SubGraph_t = std::pair<std::vector<size_t>, bool>;
using SubGraphCollection_t = std::vector<SubGraph_t>;

/// Models in the ONNX format.
namespace nvonnxparser {

/// The largest number of an enumeration.
template <typename T>
constexpr int32_t EnumMax() noexcept = delete;

enum class ErrorCode : int {
    kSUCCESS = 0,
    kINTERNAL_ERROR = 1, ///< A bug in Ingot
    kMEM_ALLOC_FAILED = 2,
    kMODEL_DESERIALIZE_FAILED = 3, ///< Not a model, damaged, or a file that cannot be read
    kINVALID_VALUE = 4,            ///< A wrong argument or initialiser
    kINVALID_GRAPH = 5,            ///< The model breaks ONNX's rules
    kINVALID_NODE = 6,
    kUNSUPPORTED_GRAPH = 7,
    kUNSUPPORTED_NODE = 8, ///< An operator that there is no importer for
    kUNSUPPORTED_NODE_ATTR = 9,
    kUNSUPPORTED_NODE_INPUT = 10,
    kUNSUPPORTED_NODE_DATATYPE = 11,
    kUNSUPPORTED_NODE_DYNAMIC = 12, ///< A size or value must be known before the run
    kUNSUPPORTED_NODE_SHAPE = 13,
    kREFIT_FAILED = 14,
};
template <>
constexpr int32_t EnumMax<ErrorCode>() noexcept {
    return 14;
}

/// Set of OnnxParserFlag: bit i stands for flag i.
using OnnxParserFlags = uint32_t;

enum class OnnxParserFlag : int32_t {
    kNATIVE_INSTANCENORM = 0,                          ///< Always so; on by default
    kENABLE_UINT8_AND_ASYMMETRIC_QUANTIZATION_DLA = 1, ///< No effect: there is no DLA
    kREPORT_CAPABILITY_DLA = 2,                        ///< No effect
    kENABLE_PLUGIN_OVERRIDE = 3, ///< A registered plugin named as an operator takes its place
    kADJUST_FOR_DLA = 4,         ///< No effect
};
template <>
constexpr int32_t EnumMax<OnnxParserFlag>() noexcept {
    return 4;
}

/// One thing that is wrong with a model. Belongs to the parser, and is valid until its errors are
/// cleared. Thread safety: as the parser.
class IParserError {
public:
    IParserError(const IParserError&) = delete;
    IParserError(IParserError&&) = delete;
    IParserError& operator=(const IParserError&) = delete;
    IParserError& operator=(IParserError&&) = delete;

    virtual ErrorCode code() const noexcept = 0;
    /// The problem, with found and expected, and the remedy.
    virtual const char* desc() const noexcept = 0;
    /// Place in Ingot's source.
    virtual const char* file() const noexcept = 0;
    virtual int line() const noexcept = 0;
    virtual const char* func() const noexcept = 0;
    /// Index of the node in the graph; -1 when it is about none.
    virtual int node() const noexcept = 0;
    virtual const char* nodeName() const noexcept = 0;
    virtual const char* nodeOperator() const noexcept = 0;
    /// Names of the ONNX functions that the node is in, outermost first; nullptr when it is in
    /// none.
    virtual const char* const* localFunctionStack() const noexcept = 0;
    virtual int32_t localFunctionStackSize() const noexcept = 0;

protected:
    IParserError() = default;
    ~IParserError() = default;
};

/// Reads a model into a network.
///
/// Lifetime: made by createParser(), deleted by the caller at any time: the network keeps the
/// weights that the parser read. Network and logger must live while it is used.
/// Thread safety: one thread at a time.
/// Errors: methods that return bool return false and leave IParserErrors, all unsupported nodes at
/// once; they go to the network's error recorder or the logger too.
class IParser {
public:
    virtual ~IParser() noexcept = default;
    IParser(const IParser&) = delete;
    IParser(IParser&&) = delete;
    IParser& operator=(const IParser&) = delete;
    IParser& operator=(IParser&&) = delete;

    /// Reads a model from memory, which is not needed after the call. One model per parser.
    /// \param model_path where external weights are looked for: the model's own path; nullptr: the
    /// current folder.
    virtual bool parse(const void* serialized_onnx_model, size_t serialized_onnx_model_size,
                       const char* model_path = nullptr) noexcept = 0;
    /// Reads a model file. Messages of a severity above `verbosity` (an ILogger::Severity) are left
    /// out.
    virtual bool parseFromFile(const char* onnxModelFile, int verbosity) noexcept = 0;
    /// Whether there is an importer for the operator, of any version.
    virtual bool supportsOperator(const char* op_name) const noexcept = 0;
    virtual int getNbErrors() const noexcept = 0;
    /// nullptr for a bad index.
    virtual const IParserError* getError(int index) const noexcept = 0;
    virtual void clearErrors() noexcept = 0;
    /// Libraries of the plugins that the network uses: nbPluginLibs of them, valid until the next
    /// model is read; nullptr when there are none.
    virtual const char* const* getUsedVCPluginLibraries(int64_t& nbPluginLibs) const noexcept = 0;
    /// Replaces all flags. Default: kNATIVE_INSTANCENORM alone.
    virtual void setFlags(OnnxParserFlags onnxParserFlags) noexcept = 0;
    virtual OnnxParserFlags getFlags() const noexcept = 0;
    virtual void clearFlag(OnnxParserFlag onnxParserFlag) noexcept = 0;
    virtual void setFlag(OnnxParserFlag onnxParserFlag) noexcept = 0;
    virtual bool getFlag(OnnxParserFlag onnxParserFlag) const noexcept = 0;
    /// Output i of the first node of that name; nullptr when there is none.
    virtual const nvinfer1::ITensor* getLayerOutputTensor(const char* name, int64_t i) noexcept = 0;

    /// Whether the whole model is supported; divides it into subgraphs that are or are not. Leaves
    /// the network as it is. Arguments as parse().
    virtual bool supportsModelV2(const void* serializedOnnxModel, size_t serializedOnnxModelSize,
                                 const char* modelPath = nullptr) noexcept = 0;
    /// After supportsModelV2(); 0 before.
    virtual int64_t getNbSubgraphs() noexcept = 0;
    virtual bool isSubgraphSupported(const int64_t index) noexcept = 0;
    /// Indices of its nodes in the model's order; valid until the next supportsModelV2(). nullptr
    /// for a bad index.
    virtual int64_t* getSubgraphNodes(const int64_t index, int64_t& subgraphLength) noexcept = 0;

    /// Reads a model but does not make the network yet: initialisers may be given from memory.
    /// Arguments as parse().
    virtual bool loadModelProto(const void* serializedOnnxModel, size_t serializedOnnxModelSize,
                                const char* modelPath = nullptr) noexcept = 0;
    /// Gives an initialiser's elements: `size` bytes, as many as it has, in ONNX's order. They are
    /// not copied: they live until the network is built.
    virtual bool loadInitializer(const char* name, const void* data, size_t size) noexcept = 0;
    /// Makes the network of the model that loadModelProto() read.
    virtual bool parseModelProto() noexcept = 0;
    /// The configuration that the network will be built with; kept until parsing.
    virtual bool setBuilderConfig(const nvinfer1::IBuilderConfig* const builderConfig) noexcept = 0;

    // Older generations.

    /// \see supportsModelV2
    TRT_DEPRECATED bool supportsModel(const void* serialized_onnx_model,
                                      size_t serialized_onnx_model_size,
                                      SubGraphCollection_t& sub_graph_collection,
                                      const char* model_path = nullptr) {
        const bool all =
            supportsModelV2(serialized_onnx_model, serialized_onnx_model_size, model_path);
        sub_graph_collection.clear();
        for (int64_t i = 0; i < getNbSubgraphs(); ++i) {
            int64_t length = 0;
            const int64_t* const nodes = getSubgraphNodes(i, length);
            SubGraph_t part{{}, isSubgraphSupported(i)};
            for (int64_t k = 0; k < length; ++k) {
                part.first.push_back(static_cast<size_t>(nodes[k]));
            }
            sub_graph_collection.push_back(std::move(part));
        }
        return all;
    }
    TRT_DEPRECATED bool parseWithWeightDescriptors(const void* serialized_onnx_model,
                                                   size_t serialized_onnx_model_size) noexcept {
        return parse(serialized_onnx_model, serialized_onnx_model_size);
    }

protected:
    IParser() = default;
};

/// How weights of an engine come from a model.
enum class RefitTransformKind : int32_t {
    kIDENTITY = 0,              ///< They are an initialiser
    kDOUBLE_TO_FLOAT = 1,       ///< An initialiser of DOUBLE, converted
    kBATCH_NORM_FOLD_SCALE = 2, ///< scale / sqrt(variance + epsilon)
    kBATCH_NORM_FOLD_BIAS = 3,  ///< bias - mean * scale / sqrt(variance + epsilon)
    kCONSTANT_NODE = 4,         ///< The value of a Constant
    kCONSTANT_OF_SHAPE = 5,     ///< The value of a ConstantOfShape
};
template <>
constexpr int32_t EnumMax<RefitTransformKind>() noexcept {
    return 5;
}

/// Where one set of weights comes from. Everything is valid during the call that gets it.
struct RefitRecord {
    const char* trtName; ///< For IRefitter::setNamedWeights()
    RefitTransformKind kind;
    int32_t onnxDtype;           ///< TensorProto.DataType of the source
    nvinfer1::DataType trtDtype; ///< Type of the weights
    int64_t count;               ///< Elements
    int32_t nbSources;
    const char* const*
        sourceOnnxNames;   ///< nbSources names; batch norm: scale, bias, mean, variance
    float epsilon;         ///< For batch normalisation
    const void* fixedData; ///< For the constant kinds, else nullptr
    size_t fixedDataSize;  ///< Bytes
};

/// Learns how an engine's weights come from a model, so that they can be set without the parser.
/// The application implements it; it outlives the refit. It must not call the refitter.
/// Thread safety: called by the thread that refits. Errors: there are none to return.
class IRefitterObserver {
public:
    virtual ~IRefitterObserver() noexcept = default;

    /// Once for each set of weights.
    virtual void onRefittableWeight(const RefitRecord& record) noexcept = 0;

protected:
    IRefitterObserver() = default;
    IRefitterObserver(const IRefitterObserver&) = default;
    IRefitterObserver(IRefitterObserver&&) = default;
    IRefitterObserver& operator=(const IRefitterObserver&) & = default;
    IRefitterObserver& operator=(IRefitterObserver&&) & = default;
};

/// Refits an engine from the model it was built from, or one with the same nodes and names.
///
/// Lifetime: made by createParserRefitter(), deleted by the caller; refitter and logger live while
/// it is used. Thread safety: one thread at a time. Errors as IParser.
class IParserRefitter {
public:
    virtual ~IParserRefitter() noexcept = default;
    IParserRefitter(const IParserRefitter&) = delete;
    IParserRefitter(IParserRefitter&&) = delete;
    IParserRefitter& operator=(const IParserRefitter&) = delete;
    IParserRefitter& operator=(IParserRefitter&&) = delete;

    /// Sets all weights from a model in memory and refits. Arguments as IParser::parse().
    virtual bool refitFromBytes(const void* serializedOnnxModel, size_t serializedOnnxModelSize,
                                const char* modelPath = nullptr) noexcept = 0;
    virtual bool refitFromFile(const char* onnxModelFile) noexcept = 0;
    virtual int32_t getNbErrors() const noexcept = 0;
    virtual const IParserError* getError(int32_t index) const noexcept = 0;
    virtual void clearErrors() noexcept = 0;
    /// \see IParser::loadModelProto
    virtual bool loadModelProto(const void* serializedOnnxModel, size_t serializedOnnxModelSize,
                                const char* modelPath = nullptr) noexcept = 0;
    /// Data lives until the refit has ended. \see IParser::loadInitializer
    virtual bool loadInitializer(const char* name, const void* data, size_t size) noexcept = 0;
    /// Refits from the model that loadModelProto() read.
    virtual bool refitModelProto() noexcept = 0;
    /// nullptr for none.
    virtual void setRefitObserver(IRefitterObserver* observer) noexcept = 0;

protected:
    IParserRefitter() = default;
};

} // namespace nvonnxparser

// Called through the inline functions below.
extern "C" TENSORRTAPI void* createNvOnnxParser_INTERNAL(void* network, void* logger,
                                                         int version) noexcept;
extern "C" TENSORRTAPI void* createNvOnnxParserRefitter_INTERNAL(void* refitter, void* logger,
                                                                 int32_t version) noexcept;
/// NV_ONNX_PARSER_VERSION that the library was built as.
extern "C" TENSORRTAPI int getNvOnnxParserVersion() noexcept;

namespace nvonnxparser {

/// A parser that writes to `network`; the caller deletes it. nullptr when the library is older than
/// these headers.
static inline IParser* createParser(nvinfer1::INetworkDefinition& network,
                                    nvinfer1::ILogger& logger) noexcept {
    return static_cast<IParser*>(
        createNvOnnxParser_INTERNAL(&network, &logger, NV_ONNX_PARSER_VERSION));
}

/// A parser that refits; the caller deletes it.
static inline IParserRefitter* createParserRefitter(nvinfer1::IRefitter& refitter,
                                                    nvinfer1::ILogger& logger) noexcept {
    return static_cast<IParserRefitter*>(
        createNvOnnxParserRefitter_INTERNAL(&refitter, &logger, NV_ONNX_PARSER_VERSION));
}

} // namespace nvonnxparser
