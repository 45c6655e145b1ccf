// SPDX-License-Identifier: Apache-2.0
// Time of RunWithBinding on the provider, without waiting for the GPU, and of a run that waits for
// it. Inputs and outputs are in the device's memory, inputs zero; the graph is recorded before.
// Usage: onnxruntime_enqueue MODEL.onnx RUNS NAME=1x3x224x224... : prints JSON, microseconds.
#define ORT_API_MANUAL_INIT
#include "ingot_onnxruntime.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <sstream>
#include <vector>

namespace {

using Shape = std::vector<int64_t>;

double thread_us() {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) / 1e3;
}

double wall_us() {
    using std::chrono::steady_clock;
    return std::chrono::duration<double, std::micro>(steady_clock::now().time_since_epoch())
        .count();
}

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

std::map<std::string, Shape> shapes_of(char** words, int count) {
    std::map<std::string, Shape> out;
    for (int i = 0; i < count; ++i) {
        const std::string word = words[i];
        const size_t cut = word.find('=');
        std::stringstream sizes(cut == std::string::npos ? "" : word.substr(cut + 1));
        for (std::string size; std::getline(sizes, size, 'x');) {
            out[word.substr(0, cut)].push_back(std::atoll(size.c_str()));
        }
    }
    return out;
}

/// Binds zeros of these shapes to the session's inputs, and its outputs to the device.
void bind(const OrtApi& api, OrtEnv* env, OrtSession* session,
          const std::map<std::string, Shape>& shapes, OrtIoBinding* binding) {
    Ort::AllocatorWithDefaultOptions names;
    size_t inputs = 0;
    size_t outputs = 0;
    Ort::ThrowOnError(api.SessionGetInputCount(session, &inputs));
    Ort::ThrowOnError(api.SessionGetOutputCount(session, &outputs));
    std::vector<const OrtMemoryInfo*> places(std::max(inputs, outputs));
    Ort::ThrowOnError(api.SessionGetMemoryInfoForInputs(session, places.data(), inputs));
    OrtAllocator* allocator = nullptr;
    Ort::ThrowOnError(api.CreateAllocator(session, places[0], &allocator));
    const char* place = nullptr;
    Ort::ThrowOnError(api.MemoryInfoGetName(places[0], &place));
    const bool on_host = std::string(place) == "Cpu";
    OrtMemoryInfo* host = nullptr;
    Ort::ThrowOnError(api.CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &host));
    for (size_t i = 0; i < inputs; ++i) {
        char* name = nullptr;
        OrtTypeInfo* type = nullptr;
        const OrtTensorTypeAndShapeInfo* tensor = nullptr;
        ONNXTensorElementDataType element{};
        Ort::ThrowOnError(api.SessionGetInputName(session, i, names, &name));
        Ort::ThrowOnError(api.SessionGetInputTypeInfo(session, i, &type));
        Ort::ThrowOnError(api.CastTypeInfoToTensorInfo(type, &tensor));
        Ort::ThrowOnError(api.GetTensorElementType(tensor, &element));
        const Shape& shape = shapes.at(name);
        OrtValue* value = nullptr;
        Ort::ThrowOnError(
            api.CreateTensorAsOrtValue(allocator, shape.data(), shape.size(), element, &value));
        size_t bytes = 0;
        Ort::ThrowOnError(api.GetTensorSizeInBytes(value, &bytes));
        std::vector<char> zeros(bytes);
        OrtValue* source = nullptr;
        Ort::ThrowOnError(api.CreateTensorWithDataAsOrtValue(
            host, zeros.data(), bytes, shape.data(), shape.size(), element, &source));
        const OrtValue* sources[] = {source};
        if (on_host) {
            void* data = nullptr;
            Ort::ThrowOnError(api.GetTensorMutableData(value, &data));
            std::fill_n(static_cast<char*>(data), bytes, char{0});
        } else {
            Ort::ThrowOnError(api.CopyTensors(env, sources, &value, nullptr, 1));
        }
        Ort::ThrowOnError(api.BindInput(binding, name, value)); // shares the memory
        api.ReleaseValue(source);
        api.ReleaseValue(value);
        api.ReleaseTypeInfo(type);
    }
    api.ReleaseMemoryInfo(host);
    Ort::ThrowOnError(api.SessionGetMemoryInfoForOutputs(session, places.data(), outputs));
    for (size_t i = 0; i < outputs; ++i) {
        char* name = nullptr;
        Ort::ThrowOnError(api.SessionGetOutputName(session, i, names, &name));
        Ort::ThrowOnError(api.BindOutputToDevice(binding, name, places[i]));
    }
}

struct Times {
    double cpu = 0; // of a run that does not wait
    double wall = 0;
    double waiting = 0; // of a run that waits
};

Times measure(const OrtApi& api, OrtSession* session, OrtIoBinding* binding, int runs) {
    OrtRunOptions* at_once = nullptr;
    Ort::ThrowOnError(api.CreateRunOptions(&at_once));
    Ort::ThrowOnError(
        api.AddRunConfigEntry(at_once, "disable_synchronize_execution_providers", "1"));
    for (int i = 0; i < 10; ++i) {
        Ort::ThrowOnError(api.RunWithBinding(session, nullptr, binding));
    }
    std::vector<double> cpu;
    std::vector<double> wall;
    std::vector<double> waiting;
    for (int i = 0; i < runs; ++i) {
        const double start = wall_us();
        Ort::ThrowOnError(api.RunWithBinding(session, nullptr, binding));
        waiting.push_back(wall_us() - start);
        const double cpu_start = thread_us();
        const double wall_start = wall_us();
        Ort::ThrowOnError(api.RunWithBinding(session, at_once, binding));
        wall.push_back(wall_us() - wall_start);
        cpu.push_back(thread_us() - cpu_start);
        Ort::ThrowOnError(
            api.RunWithBinding(session, nullptr, binding)); // the queue is empty again
    }
    api.ReleaseRunOptions(at_once);
    return {median(cpu), median(wall), median(waiting)};
}

} // namespace

int main(int argc, char** argv) {
    try {
        if (argc < 4) {
            throw std::runtime_error(
                "usage: onnxruntime_enqueue MODEL.onnx RUNS NAME=1x3x224x224...");
        }
        Ort::InitApi(&ingot::onnxRuntimeApi(ingot::openOnnxRuntime()));
        const OrtApi& api = Ort::GetApi();
        Ort::Env env(ORT_LOGGING_LEVEL_ERROR, "enqueue");
        Ort::SessionOptions options;
        options.AddConfigEntry("session.disable_cpu_ep_fallback", "1");
        const char* graphs = std::getenv("INGOT_BENCH_CUDA_GRAPHS");
        ingot::appendExecutionProvider(env, options,
                                       {{"enable_cuda_graph", graphs == nullptr ? "1" : graphs}});
        Ort::Session session(env, argv[1], options);
        OrtIoBinding* binding = nullptr;
        Ort::ThrowOnError(api.CreateIoBinding(session, &binding));
        bind(api, env, session, shapes_of(argv + 3, argc - 3), binding);
        const Times t = measure(api, session, binding, std::atoi(argv[2]));
        api.ReleaseIoBinding(binding);
        std::printf("{\"cpu_us\": %.2f, \"wall_us\": %.2f, \"waiting_us\": %.2f}\n", t.cpu, t.wall,
                    t.waiting);
        return 0;
    } catch (const std::exception& e) {
        std::fprintf(stderr, "onnxruntime_enqueue: error: %s\n", e.what());
        return 1;
    }
}
