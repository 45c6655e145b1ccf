// SPDX-License-Identifier: Apache-2.0
// A model's file as an engine that makes contexts, and what the engine takes and gives.
#pragma once

#include "NvInfer.h"
#include "base/file.h"
#include "ingot.h"
#include "plugins/common/engine_trust.h"
#include "plugins/triton/built_models.h"
#include "plugins/triton/device_allocator.h"
#include "plugins/triton/host.h"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ingot::triton {

/// An input or output of an engine. Sizes that are known only at a run are -1.
struct EngineTensor {
    std::string name;
    nvinfer1::DataType type = nvinfer1::DataType::kFLOAT;
    std::vector<int64_t> dims;
    bool on_host = false; // the engine has its values in host memory wherever it runs
    /// For an input, the profile's sizes; empty where they are unbounded.
    std::vector<int64_t> least, usual, most;
    /// The value of an input that a run may leave out; the engine holds the bytes.
    struct Default {
        std::vector<int64_t> dims;
        std::span<const std::byte> bytes;
    };
    std::optional<Default> initial;
};

/// "TYPE_FP32", as configurations call it; "" for a type that the server does not have.
std::string_view config_type(nvinfer1::DataType type);
TRITONSERVER_DataType server_type(nvinfer1::DataType type);
/// "FP32", as messages call it.
std::string_view type_name(TRITONSERVER_DataType type);
size_t element_bytes(nvinfer1::DataType type);
/// "[-1,3,224,224]".
std::string dims_text(const std::vector<int64_t>& dims);
std::vector<int64_t> to_vector(const nvinfer1::Dims& dims);
nvinfer1::Dims to_dims(const std::vector<int64_t>& dims);
/// Elements of a shape whose sizes are not negative. Errors: InvalidArgument beyond 2^62.
int64_t element_count(const std::vector<int64_t>& dims);

/// Where engines run: a GPU by its CUDA ordinal, or the CPU.
struct Target {
    Device device = Device::kCPU;
    int32_t ordinal = 0;
    bool operator<(const Target& other) const {
        return std::pair(device, ordinal) < std::pair(other.device, other.ordinal);
    }
};

/// An engine that is ready to make contexts, with what it needs to live. Immutable; instances of
/// all threads share it.
struct Engine {
    Target target;
    std::shared_ptr<ServerLogger> logger;
    std::unique_ptr<DeviceAllocator> memory; // of its weights; null on the CPU
    std::unique_ptr<nvinfer1::IRuntime> runtime;
    std::unique_ptr<nvinfer1::ICudaEngine> engine;
    std::vector<EngineTensor> inputs, outputs;

    const EngineTensor* find_input(std::string_view name) const;
    const EngineTensor* find_output(std::string_view name) const;
    /// Whether every input and output begins with a size that is open: rows of a batch.
    bool takes_batches() const;
    bool has_defaults() const;
    /// The most rows that it was built for; 0 where nothing bounds them.
    int64_t most_rows() const;
};

/// The bytes of an engine for any device: a file, or what an ONNX model was built to. Immutable.
struct EngineBytes {
    std::string file_name; // without its folder, for messages
    std::shared_ptr<const MappedFile> file;
    std::unique_ptr<nvinfer1::IHostMemory> built; // null where the engine lies in the file
    std::span<const std::byte> data;              // the engine, in one of the two
};
/// The engine of an ONNX model is kept for the next load (built_models.h).
/// \param choices how an ONNX model is built. Beside an engine batch_invariant is refused; the
/// others have no effect.
/// Errors: Io, InvalidEngine, InvalidModel, Unsupported, naming the file.
EngineBytes read_engine(const std::string& path, const BuildChoices& choices, ServerLogger& logger);

struct LoadRequest {
    Target target;
    int32_t profile = 0;
    int32_t threads = 0; // of the CPU; 0 for all cores
    EngineTrust trust;
    std::unique_ptr<DeviceAllocator> memory; // for a GPU
};
/// Errors: InvalidEngine, Unsupported, Device, naming the file.
std::shared_ptr<const Engine> load_engine(const EngineBytes& bytes, LoadRequest request,
                                          const std::shared_ptr<ServerLogger>& logger);

} // namespace ingot::triton
