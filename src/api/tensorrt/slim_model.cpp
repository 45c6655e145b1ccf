// SPDX-License-Identifier: Apache-2.0
// ingotSlimModel: `ingot slim` for programs.
#include "api/tensorrt/convert.h"
#include "api/tensorrt/host_memory.h"
#include "api/tensorrt/report.h"
#include "backends/backends.h"
#include "ingot/slim.h"
#include "onnx/reader.h"
#include "onnx/string_ends.h"
#include "onnx/writer.h"
#include "slim/slim.h"
#include "workflow/compare/slim_check.h"

#include <nlohmann/json.hpp>

#include <cstring>
#include <filesystem>

namespace ingot::api {

namespace {

// bytes; larger weights go to the external file, if requested
constexpr uint64_t external_threshold = 1024;

std::vector<std::pair<std::string, Shape>> shapes_of(const SlimShape* list, int32_t count) {
    std::vector<std::pair<std::string, Shape>> out;
    for (int32_t i = 0; i < count; ++i) {
        const nv::Dims& d = list[i].dims;
        require(list[i].name != nullptr && d.nbDims >= 0 && d.nbDims <= nv::Dims::MAX_DIMS,
                ErrorCode::InvalidArgument, "shape ", i, ": expected a name and 0 to ",
                nv::Dims::MAX_DIMS, " sizes, got ", d.nbDims);
        out.emplace_back(list[i].name, Shape(d.d, d.d + d.nbDims));
    }
    return out;
}

SlimOptions options_of(const SlimRequest& r) {
    SlimOptions s;
    s.input_shapes = shapes_of(r.inputShapes, r.nbInputShapes);
    s.skip.assign(r.skipOptimizations, r.skipOptimizations + r.nbSkipOptimizations);
    require(r.sizeThreshold >= 0, ErrorCode::InvalidArgument, "size threshold ", r.sizeThreshold,
            ": expected a number of bytes");
    s.size_threshold = static_cast<uint64_t>(r.sizeThreshold);
    s.cut_strings = r.cutStrings;
    s.keep_initializer_inputs = r.keepInitializerInputs;
    require(!r.saveAsExternalData || r.output != nullptr, ErrorCode::InvalidArgument,
            "external data needs a path for the result, beside which it is written");
    return s;
}

onnx::Model read(const void* model, size_t size, const char* path) {
    if (model == nullptr) {
        require(path != nullptr, ErrorCode::InvalidArgument, "give a model, or the path of one");
        return onnx::read_model_file(path);
    }
    std::string folder =
        path == nullptr ? "" : std::filesystem::absolute(path).parent_path().string();
    return onnx::read_model({static_cast<const std::byte*>(model), size}, folder, nullptr);
}

/// Errors: InvalidArgument naming the outputs that differ.
void check(const onnx::Model& before, const onnx::Model& after, const SlimRequest& r) {
    CompareOptions c;
    c.inputs.shapes = shapes_of(r.checkShapes, r.nbCheckShapes);
    for (int32_t i = 0; i < r.nbCheckInputs; ++i) {
        c.inputs.files.emplace_back(r.checkInputs[i].name, r.checkInputs[i].path);
    }
    c.inputs.seed = static_cast<uint64_t>(r.seed);
    c.atol = r.atol;
    c.rtol = r.rtol;
    std::string text;
    for (const TensorDifference& d : check_slimmed(before, after, cpu_backend(), c).outputs) {
        if (!d.within) {
            append(text, str(text.empty() ? "" : "; ", "output '", d.name, "': ", d.text()));
        }
    }
    require(text.empty(), ErrorCode::InvalidArgument,
            "the slimmed model gives other results, and is not written: ", text);
}

nlohmann::json described(const onnx::Model& before, const onnx::Model& after,
                         const SlimReport& report) {
    return {{"before", {{"operators", count_operators(before)}}},
            {"after", {{"operators", count_operators(after)}}},
            {"rules", report.applied},
            {"rounds", report.rounds}};
}

nv::IHostMemory* memory_of(const std::string& text) {
    AlignedBytes bytes(text.size());
    std::memcpy(bytes.data(), text.data(), text.size());
    return new HostMemory(std::move(bytes));
}

nv::IHostMemory* slim(const void* model, size_t size, const char* path, const SlimRequest& r,
                      nv::IHostMemory** report) {
    SlimOptions options = options_of(r);
    onnx::Model before = read(model, size, path);
    SlimReport applied;
    onnx::Model after = slim_model(before, options, &applied);
    if (r.modelCheck) {
        check(r.cutStrings ? onnx::without_string_ends(before) : before, after, r);
    }
    std::unique_ptr<nv::IHostMemory> told;
    if (report != nullptr) {
        told.reset(memory_of(described(before, after, applied).dump()));
    }
    std::string bytes;
    if (r.output == nullptr) {
        bytes = onnx::write_model(after);
    } else {
        onnx::WriteOptions write;
        if (r.saveAsExternalData) {
            write.external_threshold = external_threshold;
        }
        onnx::write_model_file(after, r.output, write);
    }
    nv::IHostMemory* result = memory_of(bytes);
    if (report != nullptr) {
        *report = told.release();
    }
    return result;
}

} // namespace

} // namespace ingot::api

nvinfer1::IHostMemory* ingotSlimModel(const void* model, std::size_t size, const char* path,
                                      const ingot::SlimRequest* request, nvinfer1::ILogger* logger,
                                      nvinfer1::IHostMemory** report) noexcept {
    using ingot::require;
    return ingot::api::Report(logger).guard(
        "ingot::slimModel", static_cast<nvinfer1::IHostMemory*>(nullptr), [&] {
            require(request != nullptr, ingot::ErrorCode::InvalidArgument, "there is no request");
            auto place = [&] { return std::string(path == nullptr ? "the model" : path); };
            return ingot::with_place(
                place, [&] { return ingot::api::slim(model, size, path, *request, report); });
        });
}
