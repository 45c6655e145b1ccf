// SPDX-License-Identifier: Apache-2.0
#include "plugins/onnxruntime/compatibility.h"

#include <algorithm>
#include <array>

namespace ingot::ort {

namespace {

namespace nv = nvinfer1;

constexpr std::string_view ours = "ingot engines=";
constexpr int64_t engine_generation = 1;

std::string_view value_after(std::string_view text, std::string_view key) {
    size_t at = text.find(key);
    if (at == std::string_view::npos) {
        return {};
    }
    text.remove_prefix(at + key.size());
    return text.substr(0, text.find(' '));
}

} // namespace

std::string architecture_text(const Options& options) {
    std::string out;
    for (int c : options.target_capabilities()) {
        out += str(out.empty() ? "sm" : ",sm", c);
    }
    return out.empty() ? "any" : out;
}

std::string compatibility_text(const Options& options, const Target&) {
    return str(ours, engine_generation, " kernels=", architecture_text(options));
}

OrtCompiledModelCompatibility judge_compatibility(std::string_view text, int capability) {
    if (text.empty()) {
        return OrtCompiledModelCompatibility_EP_NOT_APPLICABLE;
    }
    if (!text.starts_with(ours)) {
        return OrtCompiledModelCompatibility_EP_UNSUPPORTED;
    }
    if (value_after(text, ours) != str(engine_generation)) {
        return OrtCompiledModelCompatibility_EP_UNSUPPORTED;
    }
    std::string_view kernels = value_after(text, " kernels=");
    bool has = capability == 0 || kernels == "any" ||
               str(',', kernels, ',').find(str(",sm", capability, ',')) != std::string::npos;
    return has ? OrtCompiledModelCompatibility_EP_SUPPORTED_OPTIMAL
               : OrtCompiledModelCompatibility_EP_SUPPORTED_PREFER_RECOMPILATION;
}

EngineCheck check_engine(std::span<const std::byte> bytes, const Target& target,
                         const std::shared_ptr<ApiLogger>& logger) {
    std::unique_ptr<nv::IRuntime> runtime(nv::createInferRuntime(*logger));
    logger->require_done(runtime != nullptr, ErrorCode::Internal, "no runtime");
    logger->require_done(setDevice(*runtime, target.device, target.ordinal), ErrorCode::Device,
                         "there is no such device");
    uint64_t diagnostics = 0;
    nv::EngineValidity validity =
        runtime->getEngineValidity(bytes.data(), static_cast<int64_t>(bytes.size()), &diagnostics);
    std::string reported = logger->take_errors("");
    EngineCheck out;
    if (validity == nv::EngineValidity::kVALID) {
        return out;
    }
    if (validity == nv::EngineValidity::kSUBOPTIMAL) {
        out.is_best = false;
        out.reason =
            "the engine has kernels for other GPUs than this one, so that all are compiled "
            "now; compile the model again for this GPU (nv_target_sm)";
        return out;
    }
    out.runs = false;
    using Why = nv::EngineInvalidityDiagnostics;
    auto has = [&](Why why) { return (diagnostics & static_cast<uint64_t>(why)) != 0; };
    constexpr std::array<char, 5> magic = {'I', 'N', 'G', 'O', 'T'};
    bool is_ingot =
        bytes.size() >= magic.size() &&
        std::equal(magic.begin(), magic.end(), reinterpret_cast<const char*>(bytes.data()));
    out.reason = !is_ingot ? "its engine is not one of Ingot's: NVIDIA's provider of the same name "
                             "compiled the model, or the file is damaged; compile the model again"
                 : has(Why::kVERSION_MISMATCH)
                     ? "its engine was written by a release of Ingot that this one cannot read; "
                       "compile the model again, or install that release"
                 : has(Why::kMALFORMED_ENGINE)
                     ? "its engine is cut short or damaged; compile the model again"
                 : has(Why::kUNSUPPORTED_CC) ? "its engine was not built for this GPU"
                                             : "its engine does not run here";
    if (is_ingot && !reported.empty()) {
        out.reason += str(": ", reported);
    }
    return out;
}

} // namespace ingot::ort
