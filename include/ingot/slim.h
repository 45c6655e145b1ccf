// SPDX-License-Identifier: Apache-2.0
// Simplifying an ONNX model that stays ONNX, as the command `ingot slim` does.
#pragma once

#include "NvInferRuntime.h"

namespace ingot {

/// The sizes of an input.
struct SlimShape {
    const char* name;
    nvinfer1::Dims dims;
};
/// The values of an input: a .npy, .png or .jpg file.
struct SlimInput {
    const char* name;
    const char* path;
};

/// The options of `ingot slim`. Pointers are read during the call only; nullptr is none.
struct SlimRequest {
    /// Inputs whose sizes are fixed.
    const SlimShape* inputShapes = nullptr;
    int32_t nbInputShapes = 0;
    /// Rules, or groups of rules, that are left out (constant_folding, graph_fusion, ...).
    const char* const* skipOptimizations = nullptr;
    int32_t nbSkipOptimizations = 0;
    /// By how many bytes a folded constant may be larger than what it replaces.
    int64_t sizeThreshold = int64_t{64} << 20;
    /// Initializers that are inputs too stay inputs.
    bool keepInitializerInputs = false;
    /// Path of the result, which appears whole or not at all; nullptr: it is returned instead.
    const char* output = nullptr;
    /// Weights go to a file beside `output`; above 2 GB they always do.
    bool saveAsExternalData = false;

    /// Runs the model before and after on the same inputs, on the CPU, and compares the outputs:
    /// |difference| <= atol + rtol * range of the output.
    bool modelCheck = false;
    const SlimShape* checkShapes = nullptr;
    int32_t nbCheckShapes = 0;
    const SlimInput* checkInputs = nullptr; ///< Others are random
    int32_t nbCheckInputs = 0;
    int64_t seed = 0;
    double atol = 1e-5;
    double rtol = 1e-3;

    /// Cuts off operators at the ends that only make labels of strings; what they read becomes an
    /// output.
    bool cutStrings = false;
};

} // namespace ingot

extern "C" TENSORRTAPI nvinfer1::IHostMemory*
ingotSlimModel(const void* model, std::size_t size, const char* path,
               const ingot::SlimRequest* request, nvinfer1::ILogger* logger,
               nvinfer1::IHostMemory** report) noexcept;

namespace ingot {

/// Simplifies a model: folds constants, fuses, drops dead nodes and duplicates. Inputs, outputs
/// and opset stay, results too. Safe from any thread.
/// \param model, size the ONNX file's bytes; nullptr and 0: `path` is read.
/// \param path of the file, for external data and messages; nullptr: the model has none.
/// \param logger gets errors; nullptr: they go to standard error.
/// \param report where not null, gets a JSON text, as `ingot slim --json` prints it, with "check"
/// (a
///     text for each output that differs) when that was asked for. The caller deletes it.
/// \returns the model, or with `output` no bytes; the caller deletes it. nullptr when it failed,
///     a failed check included: then nothing was written.
static inline nvinfer1::IHostMemory* slimModel(const void* model, std::size_t size,
                                               const char* path, const SlimRequest& request,
                                               nvinfer1::ILogger* logger = nullptr,
                                               nvinfer1::IHostMemory** report = nullptr) noexcept {
    return ingotSlimModel(model, size, path, &request, logger, report);
}

} // namespace ingot
