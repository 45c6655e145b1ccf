// SPDX-License-Identifier: Apache-2.0
// Tensors and shape expressions as plugins see them. Included by NvInferRuntimePlugin.h.
#pragma once

#include "NvInferPluginBase.h"
#include "ingot/runtime_types.h"

namespace nvinfer1 {

using PluginFormat = TensorFormat;

/// An input or output of a plugin. `scale` is that of an INT8 tensor without Q/DQ, else -1.
struct PluginTensorDesc {
    Dims dims; ///< -1 where not known yet
    DataType type;
    TensorFormat format;
    float scale;
};

/// The same with the shapes of a profile. desc.dims has -1 where they differ.
struct DynamicPluginTensorDesc {
    PluginTensorDesc desc;
    Dims min;
    Dims max;
    Dims opt;
};

/// Operations of IExprBuilder.
enum class DimensionOperation : int32_t {
    kSUM = 0,
    kPROD = 1,
    kMAX = 2,
    kMIN = 3,
    kSUB = 4,
    kEQUAL = 5, ///< 1 or 0
    kLESS = 6,  ///< 1 or 0
    kFLOOR_DIV = 7,
    kCEIL_DIV = 8,
};
INGOT_ENUM_MAX(DimensionOperation, 9)

/// A size as an expression of input sizes. Belongs to the IExprBuilder that made it.
class IDimensionExpr : public INoCopy {
public:
    virtual bool isConstant() const noexcept = 0;
    /// The value if isConstant(), else INT64_MIN.
    virtual int64_t getConstantValue() const noexcept = 0;
    /// Whether IExprBuilder::declareSizeTensor() made it.
    virtual bool isSizeTensor() const noexcept = 0;

protected:
    ~IDimensionExpr() = default;
};

/// Makes expressions for a shape rule. It and what it made are valid during the call that gets it.
class IExprBuilder : public INoCopy {
public:
    virtual const IDimensionExpr* constant(int64_t value) noexcept = 0;
    /// nullptr when op is no operation.
    virtual const IDimensionExpr* operation(DimensionOperation op, const IDimensionExpr& first,
                                            const IDimensionExpr& second) noexcept = 0;
    /// A size that the plugin finds out while it runs and writes to its output `outputIndex`, an
    /// INT32 or INT64 scalar.
    /// \param opt the size that kernels are chosen for.
    /// \param upper what memory is planned for; never exceeded.
    virtual const IDimensionExpr* declareSizeTensor(int32_t outputIndex, const IDimensionExpr& opt,
                                                    const IDimensionExpr& upper) noexcept = 0;

protected:
    ~IExprBuilder() = default;
};

/// A shape of expressions.
class DimsExprs {
public:
    int32_t nbDims;
    const IDimensionExpr* d[Dims::MAX_DIMS];
};

/// Resources that a context lends to an attached plugin; valid as long as the plugin. Used by
/// the thread that runs the context. Its getters give nullptr where there is none.
class IPluginResourceContext {
public:
    /// That of the runtime or builder that made the engine; nullptr when it has none.
    virtual IGpuAllocator* getGpuAllocator() const noexcept = 0;
    /// That of the runtime or builder when the engine was made; nullptr when it had none.
    virtual IErrorRecorder* getErrorRecorder() const noexcept = 0;
    virtual ~IPluginResourceContext() noexcept = default;

    IPluginResourceContext(const IPluginResourceContext&) = delete;
    IPluginResourceContext(IPluginResourceContext&&) = delete;
    IPluginResourceContext& operator=(const IPluginResourceContext&) = delete;
    IPluginResourceContext& operator=(IPluginResourceContext&&) = delete;

protected:
    IPluginResourceContext() = default;
};

} // namespace nvinfer1
