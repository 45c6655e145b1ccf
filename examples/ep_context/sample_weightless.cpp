// SPDX-License-Identifier: Apache-2.0
// The same with an EP-context model that asks for no weights of its own: these stay in the source
// model, which has to be there when it is loaded. --verify runs both and compares their outputs.
// Usage: sample_weightless MODEL.onnx MODEL_CTX.onnx [EMBED_MODE] [PROVIDER] [--verify]
#include "common.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

namespace {

using Bytes = std::vector<char>;

/// Runs a session through the C API on inputs that are the same in each call: floats from a fixed
/// seed, zeros of any other type, open sizes 1. Returns each output's bytes and element type.
std::vector<std::pair<ONNXTensorElementDataType, Bytes>> run(OrtSession* session) {
    const OrtApi& api = Ort::GetApi();
    Ort::AllocatorWithDefaultOptions allocator;
    size_t input_count = 0;
    size_t output_count = 0;
    Ort::ThrowOnError(api.SessionGetInputCount(session, &input_count));
    Ort::ThrowOnError(api.SessionGetOutputCount(session, &output_count));
    std::mt19937 random(1);
    std::vector<char*> names(input_count + output_count);
    std::vector<OrtValue*> inputs(input_count);
    std::vector<OrtValue*> outputs(output_count);
    for (size_t i = 0; i < input_count; ++i) {
        OrtTypeInfo* type_info = nullptr;
        const OrtTensorTypeAndShapeInfo* info = nullptr;
        ONNXTensorElementDataType type{};
        size_t rank = 0;
        size_t bytes = 0;
        void* data = nullptr;
        Ort::ThrowOnError(api.SessionGetInputName(session, i, allocator, &names[i]));
        Ort::ThrowOnError(api.SessionGetInputTypeInfo(session, i, &type_info));
        Ort::ThrowOnError(api.CastTypeInfoToTensorInfo(type_info, &info));
        Ort::ThrowOnError(api.GetTensorElementType(info, &type));
        Ort::ThrowOnError(api.GetDimensionsCount(info, &rank));
        std::vector<int64_t> shape(rank);
        Ort::ThrowOnError(api.GetDimensions(info, shape.data(), rank));
        std::replace_if(
            shape.begin(), shape.end(), [](int64_t size) { return size < 0; }, 1);
        Ort::ThrowOnError(
            api.CreateTensorAsOrtValue(allocator, shape.data(), rank, type, &inputs[i]));
        Ort::ThrowOnError(api.GetTensorMutableData(inputs[i], &data));
        Ort::ThrowOnError(api.GetTensorSizeInBytes(inputs[i], &bytes));
        std::memset(data, 0, bytes);
        if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT) {
            std::normal_distribution<float> normal;
            std::generate_n(static_cast<float*>(data), bytes / sizeof(float),
                            [&] { return normal(random); });
        }
        api.ReleaseTypeInfo(type_info);
    }
    for (size_t i = 0; i < output_count; ++i) {
        Ort::ThrowOnError(api.SessionGetOutputName(session, i, allocator, &names[input_count + i]));
    }
    Ort::ThrowOnError(api.Run(session, nullptr, names.data(), inputs.data(), input_count,
                              names.data() + input_count, output_count, outputs.data()));
    std::vector<std::pair<ONNXTensorElementDataType, Bytes>> result;
    for (OrtValue* value : outputs) {
        OrtTensorTypeAndShapeInfo* info = nullptr;
        ONNXTensorElementDataType type{};
        size_t bytes = 0;
        void* data = nullptr;
        Ort::ThrowOnError(api.GetTensorTypeAndShape(value, &info));
        Ort::ThrowOnError(api.GetTensorElementType(info, &type));
        Ort::ThrowOnError(api.GetTensorSizeInBytes(value, &bytes));
        Ort::ThrowOnError(api.GetTensorMutableData(value, &data));
        const char* first = static_cast<const char*>(data);
        result.emplace_back(type, Bytes(first, first + bytes));
        api.ReleaseTensorTypeAndShapeInfo(info);
        api.ReleaseValue(value);
    }
    for (OrtValue* value : inputs) {
        api.ReleaseValue(value);
    }
    for (char* name : names) {
        allocator.Free(name);
    }
    return result;
}

/// The largest difference of float outputs; others have to be equal.
/// Errors: std::runtime_error where an output has another type, another size, or is not equal.
float difference(OrtSession* one, OrtSession* two) {
    const auto a = run(one);
    const auto b = run(two);
    float largest = 0;
    for (size_t i = 0; i < a.size(); ++i) {
        if (a[i].first != b[i].first || a[i].second.size() != b[i].second.size()) {
            throw std::runtime_error("output " + std::to_string(i) + " has another type or size");
        }
        const bool is_float = a[i].first == ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
        if (!is_float && a[i].second != b[i].second) {
            throw std::runtime_error("output " + std::to_string(i) + " is not equal");
        }
        for (size_t at = 0; is_float && at < a[i].second.size(); at += sizeof(float)) {
            float x = 0;
            float y = 0;
            std::memcpy(&x, a[i].second.data() + at, sizeof(x));
            std::memcpy(&y, b[i].second.data() + at, sizeof(y));
            const float d = std::fabs(x - y);
            largest = d > largest || std::isnan(d) ? d : largest;
        }
    }
    return largest;
}

} // namespace

int main(int argc, char** argv) {
    return sample::main("sample_weightless", [&] {
        const bool verify = argc > 1 && std::strcmp(argv[argc - 1], "--verify") == 0;
        const auto words =
            sample::arguments(verify ? argc - 1 : argc, argv, 2, {"0", ingot::kEXECUTION_PROVIDER},
                              "MODEL.onnx MODEL_CTX.onnx [0|1] [PROVIDER] [--verify]");
        const std::string& model = words[0];
        const std::string& compiled = words[1];
        const bool embed = sample::embed_mode(words[2]);
        const std::string& provider = words[3];
        Ort::Env env(ORT_LOGGING_LEVEL_WARNING, "ep_context");
        const ingot::ProviderOptions weightless = {
            {"nv_weight_stripped_engine_enable_experimental", "1"}};

        sample::print("Original session load time", sample::timed([&] {
                          auto options = sample::options(env, provider, false);
                          Ort::Session session(env, model.c_str(), options);
                      }));
        sample::print("Compile time", sample::timed([&] {
                          auto options = sample::options(env, provider, true, weightless);
                          Ort::ModelCompilationOptions compile(env, options);
                          compile.SetInputModelPath(model.c_str());
                          compile.SetOutputModelPath(compiled.c_str());
                          compile.SetEpContextEmbedMode(embed);
                          sample::check(Ort::CompileModel(env, compile));
                      }));
        std::printf("> Compiled model saved at %s\n", compiled.c_str());
        sample::print("Context model session load time", sample::timed([&] {
                          auto options = sample::options(env, provider, false, weightless);
                          Ort::Session session(env, compiled.c_str(), options);
                      }));
        for (bool filled : {false, true}) {
            const double seconds = sample::timed([&] {
                auto options = sample::options(env, provider, true, weightless);
                Ort::Session session(env, compiled.c_str(), options);
            });
            if (filled) {
                sample::print("Context model session load time with runtime cache", seconds);
            }
        }
        if (verify) {
            auto options = sample::options(env, provider, false);
            auto other = sample::options(env, provider, false, weightless);
            Ort::Session source(env, model.c_str(), options);
            Ort::Session context(env, compiled.c_str(), other);
            const float largest = difference(source, context);
            std::printf("> Largest difference of outputs: %g\n", static_cast<double>(largest));
            if (!(largest <= 1e-3F)) {
                throw std::runtime_error("--verify: the outputs differ, expected at most 0.001");
            }
        }
    });
}
