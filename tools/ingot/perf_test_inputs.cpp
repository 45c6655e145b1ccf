// SPDX-License-Identifier: Apache-2.0
// ingot perf-test: inputs, generated or from the test data beside a model, and one run.
#include "base/error.h"
#include "base/file.h"
#include "onnx/reader.h"
#include "perf_test.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <random>

namespace ingot::tool {

namespace {

namespace fs = std::filesystem;

using TypeInfo = Ort::detail::Owner<OrtTypeInfo, &OrtApi::ReleaseTypeInfo>;
using MemoryInfo = Ort::detail::Owner<OrtMemoryInfo, &OrtApi::ReleaseMemoryInfo>;
using TensorInfo =
    Ort::detail::Owner<OrtTensorTypeAndShapeInfo, &OrtApi::ReleaseTensorTypeAndShapeInfo>;

using GetName = OrtStatus* (*)(const OrtSession*, size_t, OrtAllocator*, char**);

std::vector<std::string> names_of(OrtSession* session, size_t count, GetName get) {
    Ort::AllocatorWithDefaultOptions allocator;
    std::vector<std::string> out;
    for (size_t i = 0; i < count; ++i) {
        char* name = nullptr;
        Ort::ThrowOnError(get(session, i, allocator, &name));
        out.emplace_back(name);
        allocator.Free(name);
    }
    return out;
}

struct Declared {
    ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
    Shape shape; // -1: open
};

Declared declared(const OrtTensorTypeAndShapeInfo* info) {
    const OrtApi& api = Ort::GetApi();
    Declared d;
    size_t rank = 0;
    Ort::ThrowOnError(api.GetTensorElementType(info, &d.type));
    Ort::ThrowOnError(api.GetDimensionsCount(info, &rank));
    d.shape.resize(rank);
    Ort::ThrowOnError(api.GetDimensions(info, d.shape.data(), rank));
    return d;
}

Declared declared_input(OrtSession* session, size_t i, const std::string& name) {
    const OrtApi& api = Ort::GetApi();
    TypeInfo type;
    const OrtTensorTypeAndShapeInfo* info = nullptr;
    Ort::ThrowOnError(api.SessionGetInputTypeInfo(session, i, type.out()));
    Ort::ThrowOnError(api.CastTypeInfoToTensorInfo(type, &info));
    require(info != nullptr, ErrorCode::Unsupported, "-I: input '", name,
            "' is no tensor, expected one; give test data instead");
    Declared d = declared(info);
    require(d.type != ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING, ErrorCode::Unsupported, "-I: input '",
            name, "' has strings, expected numbers; give test data instead");
    return d;
}

size_t bytes_of(OrtValue* value) {
    size_t bytes = 0;
    Ort::ThrowOnError(Ort::GetApi().GetTensorSizeInBytes(value, &bytes));
    return bytes;
}

/// A tensor in host memory.
Value host_tensor(const Shape& shape, ONNXTensorElementDataType type, void*& data) {
    const OrtApi& api = Ort::GetApi();
    Ort::AllocatorWithDefaultOptions allocator;
    Value value;
    Ort::ThrowOnError(
        api.CreateTensorAsOrtValue(allocator, shape.data(), shape.size(), type, value.out()));
    Ort::ThrowOnError(api.GetTensorMutableData(value, &data));
    return value;
}

/// Random floats in [0, 1). Integers may be indices or sizes: they are 0, or 0 and 1 with a seed.
void fill(void* data, size_t bytes, ONNXTensorElementDataType type, std::mt19937& random,
          bool seeded) {
    std::memset(data, 0, bytes);
    auto each = [&]<class T>(T, auto draw) {
        for (size_t i = 0; i + sizeof(T) <= bytes; i += sizeof(T)) {
            T v = draw();
            std::memcpy(static_cast<char*>(data) + i, &v, sizeof(T));
        }
    };
    auto share = [&] { return static_cast<double>(random() >> 8U) / 0x1p24; };
    auto bit = [&] { return seeded ? random() & 1U : 0U; };
    switch (type) {
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT:
        return each(float{}, [&] { return static_cast<float>(share()); });
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE:
        return each(double{}, share);
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16: // 1.x: from 1 up to 2
        return each(uint16_t{},
                    [&] { return static_cast<uint16_t>(0x3C00U | (random() & 0x3FFU)); });
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16:
        return each(uint16_t{},
                    [&] { return static_cast<uint16_t>(0x3F80U | (random() & 0x7FU)); });
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8:
        return each(uint8_t{}, [&] { return static_cast<uint8_t>(bit()); });
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16:
        return each(uint16_t{}, [&] { return static_cast<uint16_t>(bit()); });
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32:
        return each(uint32_t{}, [&] { return static_cast<uint32_t>(bit()); });
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64:
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64:
        return each(uint64_t{}, [&] { return static_cast<uint64_t>(bit()); });
    default: // narrower types stay zero
        return;
    }
}

/// test_data_set_0, test_data_set_1, ... beside a model.
std::vector<fs::path> data_folders(const std::string& model) {
    std::vector<fs::path> out;
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(parent_folder(model), ignored)) {
        if (entry.is_directory() &&
            entry.path().filename().string().starts_with("test_data_set_")) {
            out.push_back(entry.path());
        }
    }
    std::sort(out.begin(), out.end());
    return out;
}

Value value_of(const onnx::Tensor& t, const std::string& where) {
    void* data = nullptr;
    Value value = host_tensor(t.dims, static_cast<ONNXTensorElementDataType>(t.data_type), data);
    require(bytes_of(value) == t.bytes.size(), ErrorCode::InvalidModel, where, " has ",
            t.bytes.size(), " bytes, expected ", bytes_of(value));
    std::memcpy(data, t.bytes.data(), t.bytes.size());
    return value;
}

std::vector<const char*> pointers(const std::vector<std::string>& names) {
    std::vector<const char*> out;
    for (const std::string& n : names) {
        out.push_back(n.c_str());
    }
    return out;
}

bool is_host(const OrtMemoryInfo* info) {
    const char* name = nullptr;
    Ort::ThrowOnError(Ort::GetApi().MemoryInfoGetName(info, &name));
    return std::string_view(name) == "Cpu";
}

} // namespace

std::vector<std::string> output_names(OrtSession* session) {
    size_t count = 0;
    Ort::ThrowOnError(Ort::GetApi().SessionGetOutputCount(session, &count));
    return names_of(session, count, Ort::GetApi().SessionGetOutputName);
}

Inputs::Inputs(OrtSession* session, const PerfTestOptions& o) {
    size_t count = 0;
    Ort::ThrowOnError(Ort::GetApi().SessionGetInputCount(session, &count));
    names_ = names_of(session, count, Ort::GetApi().SessionGetInputName);
    for (const auto& [name, shapes] : o.data_shapes) {
        require(std::find(names_.begin(), names_.end(), name) != names_.end(),
                ErrorCode::InvalidArgument, "--data_shape: there is no input '", name,
                "', expected one of ", join(names_, ", "));
    }
    if (o.generate) {
        generate(session, o);
    } else {
        require(load(o), ErrorCode::Io, "there is no test data for model ", o.model,
                ": expected folders test_data_set_* beside it, or -I, which makes inputs");
    }
}

void Inputs::generate(OrtSession* session, const PerfTestOptions& o) {
    std::mt19937 random(static_cast<uint32_t>(o.seed < 0 ? 0 : o.seed));
    size_t sets = o.data_shapes.empty() ? 1 : o.data_shapes.begin()->second.size();
    for (size_t s = 0; s < sets; ++s) {
        std::vector<Value>& set = sets_.emplace_back();
        for (size_t i = 0; i < names_.size(); ++i) {
            Declared d = declared_input(session, i, names_[i]);
            auto given = o.data_shapes.find(names_[i]);
            if (given != o.data_shapes.end()) {
                d.shape = given->second[s];
            }
            std::replace_if(
                d.shape.begin(), d.shape.end(), [](int64_t size) { return size < 0; }, 1);
            void* data = nullptr;
            set.push_back(host_tensor(d.shape, d.type, data));
            fill(data, bytes_of(set.back()), d.type, random, o.seed >= 0);
        }
    }
}

bool Inputs::load(const PerfTestOptions& o) {
    for (const fs::path& folder : data_folders(o.model)) {
        std::vector<Value> set;
        bool wanted = o.data_shapes.empty();
        bool fits = true;
        for (size_t i = 0; i < names_.size(); ++i) {
            std::string path = (folder / str("input_", i, ".pb")).string();
            onnx::Tensor t = onnx::read_tensor_file(path);
            auto given = o.data_shapes.find(names_[i]);
            if (given != o.data_shapes.end()) {
                wanted = true;
                fits = fits && std::find(given->second.begin(), given->second.end(), t.dims) !=
                                   given->second.end();
            }
            set.push_back(value_of(t, path));
        }
        if (wanted && fits) {
            sets_.push_back(std::move(set));
        }
    }
    return !sets_.empty();
}

PerfTestRunner::PerfTestRunner(Ort::Env& env, OrtSession* session, const PerfTestOptions& o)
    : session_(session), inputs_(session, o), outputs_(output_names(session)) {
    Ort::ThrowOnError(Ort::GetApi().CreateRunOptions(options_.out()));
    if (!o.shrink.empty()) {
        Ort::ThrowOnError(Ort::GetApi().AddRunConfigEntry(
            options_, "memory.enable_memory_arena_shrinkage", o.shrink.c_str()));
    }
    if (o.on_device) {
        bind(env);
    }
}

void PerfTestRunner::bind(Ort::Env& env) {
    const OrtApi& api = Ort::GetApi();
    require(inputs_.sets() == 1, ErrorCode::InvalidArgument, "-g: got ", inputs_.sets(),
            " sets of inputs, expected one, without --data_shape");
    const std::vector<std::string>& names = inputs_.names();
    std::vector<const OrtMemoryInfo*> in(names.size());
    std::vector<const OrtMemoryInfo*> out(outputs_.size());
    Ort::ThrowOnError(api.SessionGetMemoryInfoForInputs(session_, in.data(), in.size()));
    Ort::ThrowOnError(api.SessionGetMemoryInfoForOutputs(session_, out.data(), out.size()));
    Ort::ThrowOnError(api.CreateIoBinding(session_, binding_.out()));
    for (size_t i = 0; i < names.size(); ++i) {
        const OrtValue* value = inputs_.set(0)[i];
        if (!is_host(in[i])) {
            auto& allocator = allocators_.emplace_back();
            TensorInfo info;
            Ort::ThrowOnError(api.CreateAllocator(session_, in[i], allocator.out()));
            Ort::ThrowOnError(api.GetTensorTypeAndShape(value, info.out()));
            Declared d = declared(info);
            Value& there = on_device_.emplace_back();
            Ort::ThrowOnError(api.CreateTensorAsOrtValue(allocator, d.shape.data(), d.shape.size(),
                                                         d.type, there.out()));
            OrtValue* target = there;
            Ort::ThrowOnError(api.CopyTensors(env, &value, &target, nullptr, 1));
            value = target;
        }
        Ort::ThrowOnError(api.BindInput(binding_, names[i].c_str(), value));
    }
    for (size_t i = 0; i < outputs_.size(); ++i) {
        Ort::ThrowOnError(api.BindOutputToDevice(binding_, outputs_[i].c_str(), out[i]));
    }
}

double PerfTestRunner::run(size_t i) {
    const OrtApi& api = Ort::GetApi();
    using Clock = std::chrono::steady_clock;
    auto seconds = [](Clock::time_point since) {
        return std::chrono::duration<double>(Clock::now() - since).count();
    };
    if (binding_ != nullptr) {
        Clock::time_point start = Clock::now();
        Ort::ThrowOnError(api.RunWithBinding(session_, options_, binding_));
        return seconds(start);
    }
    const std::vector<Value>& set = inputs_.set(i % inputs_.sets());
    std::vector<const char*> in = pointers(inputs_.names());
    std::vector<const char*> out = pointers(outputs_);
    std::vector<const OrtValue*> values(set.begin(), set.end());
    std::vector<OrtValue*> results(out.size());
    Clock::time_point start = Clock::now();
    OrtStatus* status = api.Run(session_, options_, in.data(), values.data(), values.size(),
                                out.data(), out.size(), results.data());
    double time = seconds(start);
    for (OrtValue* r : results) {
        if (r != nullptr) {
            api.ReleaseValue(r);
        }
    }
    Ort::ThrowOnError(status);
    return time;
}

} // namespace ingot::tool
