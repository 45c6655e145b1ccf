// SPDX-License-Identifier: Apache-2.0
#include "api/tensorrt/runtime/validity.h"

#include "base/error.h"
#include "engine/weight_check.h"

namespace ingot::api {

using nvinfer1::EngineInvalidityDiagnostics;
using nvinfer1::EngineValidity;

EngineHead read_engine_head(std::span<const std::byte> bytes) {
    EngineHead head;
    try {
        EngineHeader header = read_engine_header(bytes);
        head.is_readable = header.is_readable;
        if (!header.is_readable) {
            return head; // not an engine at all
        }
        head.capabilities = header.capabilities;
        uint64_t weights = header.file_bytes;
        if (std::optional<uint64_t> known = weight_bytes_in_table(bytes)) {
            weights = *known;
        }
        if (bytes.size() >= header.file_bytes) {
            WeightCheck(Container(bytes, nullptr), "").wait();
        }
        head.weight_bytes = header.streams_weights ? 0 : weights;
    } catch (const Error&) {
        head.is_malformed = true;
    }
    return head;
}

Validity judge(const EngineHead& engine, const DeviceFacts& device) {
    using Why = EngineInvalidityDiagnostics;
    Validity v;
    auto refuse = [&v](bool holds, Why why) {
        v.diagnostics |= holds ? static_cast<uint64_t>(why) : 0;
    };
    bool known = !engine.is_malformed && engine.is_readable;
    refuse(engine.is_malformed, Why::kMALFORMED_ENGINE);
    refuse(!engine.is_readable, Why::kVERSION_MISMATCH);
    refuse(device.problem == CudaProblem::OldDriver, Why::kOLD_CUDA_DRIVER);
    refuse(device.problem == CudaProblem::Failed, Why::kCUDA_ERROR);
    refuse(!device.is_supported, Why::kUNSUPPORTED_CC);
    bool usable = device.is_gpu && device.is_supported && device.problem == CudaProblem::None;
    if (usable && known) {
        refuse(!device.compiles && !device.runs_kernels, Why::kOLD_CUDA_RUNTIME);
        refuse(device.memory_bytes >= 0 &&
                   engine.weight_bytes > static_cast<uint64_t>(device.memory_bytes),
               Why::kINSUFFICIENT_GPU_MEMORY);
    }
    bool is_for_others = usable && !engine.capabilities.empty() && !device.runs_kernels;
    v.answer = v.diagnostics != 0 ? EngineValidity::kINVALID
               : is_for_others    ? EngineValidity::kSUBOPTIMAL
                                  : EngineValidity::kVALID;
    return v;
}

} // namespace ingot::api
