// SPDX-License-Identifier: Apache-2.0
// What Ingot adds to TensorRT's API: choice of the device, kernels given as CUDA source text, the
// cache of compiled kernels, another calibrator.
#pragma once

#include "NvInfer.h"

#define INGOT_VERSION_MAJOR 0
#define INGOT_VERSION_MINOR 1
#define INGOT_VERSION_PATCH 0

namespace ingot {

/// Where something runs.
enum class Device : int32_t {
    kAUTO = 0, ///< A GPU if there is one, else the CPU
    kGPU = 1,
    kCPU = 2,
};

/// A kernel as text, with the rule that gives the shapes of its outputs. It is checked when the
/// layer is added, travels inside the engine, and is compiled for the GPU that the engine runs on.
/// It runs on GPUs only: a context on the CPU reports kUNSUPPORTED_STATE.
///
/// Sizes are named in the signature; expressions use these names, numbers, + - * / (rounding down),
/// %, parentheses, min(a, b), max(a, b) and ceil_div(a, b).
///
/// A kernel that adds rows of a matrix:
///
///     {"RowSum",
///      "extern \"C\" __global__ void row_sum(const float* x, float* y, long long n, long long m)
///      {" "  long long row = blockIdx.x * 256LL + threadIdx.x;" "  if (row >= n) return;" "  float
///      sum = 0;" "  for (long long i = 0; i < m; ++i) sum += x[row * m + i];" "  y[row] = sum;"
///      "}",
///      "row_sum", "float32[n, m] -> float32[n]", "n, m", "ceil_div(n, 256)", "256", nullptr}
struct CudaSource {
    /// What it is, for messages and profiles.
    const char* name;
    /// CUDA C++ as NVRTC takes it.
    const char* source;
    /// The `extern "C" __global__` function of it to launch. Its parameters: a pointer per input,
    /// a pointer per output (dense, row-major), then `arguments` as long long.
    const char* kernel;
    /// Types and shapes of inputs and outputs: "float32[n, c], int64[] -> float32[n, 2 * c]". An
    /// input's sizes are names or numbers; the same name twice says that sizes are equal. Types:
    /// float32 float16 bfloat16 float8_e4m3 int8 uint8 int32 int64 bool.
    const char* signature;
    /// Expressions handed to the kernel, separated by commas; nullptr for none.
    const char* arguments;
    /// One to three expressions: blocks of the grid. When one is 0 nothing is launched.
    const char* grid;
    /// One to three expressions: threads of a block.
    const char* block;
    /// An expression: bytes of dynamic shared memory; nullptr for none.
    const char* sharedBytes;
};

} // namespace ingot

// Called through the inline functions below; strings are copied.
extern "C" TENSORRTAPI const char* ingotVersion() noexcept;
extern "C" TENSORRTAPI bool ingotSetBuildDevice(nvinfer1::IBuilderConfig* config, int32_t device,
                                                int32_t ordinal) noexcept;
extern "C" TENSORRTAPI bool ingotSetRuntimeDevice(nvinfer1::IRuntime* runtime, int32_t device,
                                                  int32_t ordinal) noexcept;
extern "C" TENSORRTAPI int32_t ingotGetDevice(const nvinfer1::ICudaEngine* engine) noexcept;
extern "C" TENSORRTAPI bool ingotSetCacheFolder(const char* path) noexcept;
extern "C" TENSORRTAPI const char* ingotGetCacheFolder() noexcept;
extern "C" TENSORRTAPI nvinfer1::ILayer*
ingotAddCudaSourceLayer(nvinfer1::INetworkDefinition* network, nvinfer1::ITensor* const* inputs,
                        int32_t nbInputs, const ingot::CudaSource* source) noexcept;

namespace ingot {

/// Ingot's own version: "0.1.0".
static inline const char* version() noexcept {
    return ingotVersion();
}

/// Where kernels are timed and kCURRENT is looked up. Default kAUTO.
/// \param ordinal which GPU, as CUDA counts them; 0 for the CPU.
/// \returns false when there is no such device.
static inline bool setDevice(nvinfer1::IBuilderConfig& config, Device device,
                             int32_t ordinal = 0) noexcept {
    return ingotSetBuildDevice(&config, static_cast<int32_t>(device), ordinal);
}

/// Where engines that this runtime loads from here on will run. Default kAUTO: the GPU that is
/// current for the calling thread.
static inline bool setDevice(nvinfer1::IRuntime& runtime, Device device,
                             int32_t ordinal = 0) noexcept {
    return ingotSetRuntimeDevice(&runtime, static_cast<int32_t>(device), ordinal);
}

/// Where the engine runs: kGPU or kCPU.
static inline Device getDevice(const nvinfer1::ICudaEngine& engine) noexcept {
    return static_cast<Device>(ingotGetDevice(&engine));
}

/// Folder where compiled kernels are kept, for contexts of this process that are made from here on
/// without an IRuntimeCache. nullptr: the user's (the default); "": none. Safe from any thread.
/// \returns false when it cannot be made or written.
static inline bool setCacheFolder(const char* path) noexcept {
    return ingotSetCacheFolder(path);
}

/// The folder in use, "" for none; valid until setCacheFolder().
static inline const char* getCacheFolder() noexcept {
    return ingotGetCacheFolder();
}

/// A layer that runs a kernel given as text. Its type is LayerType::kPLUGIN. nullptr when the
/// signature does not fit the inputs or an expression is malformed; the message says where.
/// Refused by this release: nullptr.
static inline nvinfer1::ILayer* addCudaSourceLayer(nvinfer1::INetworkDefinition& network,
                                                   nvinfer1::ITensor* const* inputs,
                                                   int32_t nbInputs,
                                                   const CudaSource& source) noexcept {
    return ingotAddCudaSourceLayer(&network, inputs, nbInputs, &source);
}

/// Number of the algorithm of IInt8MseCalibrator.
static constexpr nvinfer1::CalibrationAlgoType kMSE_CALIBRATION =
    static_cast<nvinfer1::CalibrationAlgoType>(100);

/// A calibrator whose ranges give the least mean squared error.
class IInt8MseCalibrator : public nvinfer1::IInt8Calibrator {
public:
    nvinfer1::InterfaceInfo getInterfaceInfo() const noexcept override {
        return {"IInt8MseCalibrator", 1, 0};
    }
    nvinfer1::CalibrationAlgoType getAlgorithm() noexcept override { return kMSE_CALIBRATION; }
};

} // namespace ingot
