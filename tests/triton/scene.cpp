// SPDX-License-Identifier: Apache-2.0
#include "tests/triton/scene.h"

#include "NvInfer.h"
#include "ingot.h"

#include <filesystem>
#include <fstream>
#include <random>

namespace ingot::triton {

namespace nv = nvinfer1;

namespace {

class Silent final : public nv::ILogger {
public:
    void log(Severity severity, const char* text) noexcept override {
        if (severity <= Severity::kERROR) {
            ADD_FAILURE() << text;
        }
    }
};

Silent& silent() {
    static Silent logger;
    return logger;
}

RowFunction& current_function() {
    static RowFunction function;
    return function;
}

int32_t call_function(const HostCall& call) {
    return current_function()(static_cast<const float*>(call.inputs[0].data),
                              static_cast<float*>(call.outputs[0].data), call.inputs[0].dims.d[0]);
}

} // namespace

std::string build_engine(const Fill& fill, const Bounds& bounds, const Configure& configure) {
    std::unique_ptr<nv::IBuilder> builder(nv::createInferBuilder(silent()));
    std::unique_ptr<nv::INetworkDefinition> network(builder->createNetworkV2(1));
    std::unique_ptr<nv::IBuilderConfig> config(builder->createBuilderConfig());
    fill(*network);
    if (!bounds.empty()) {
        nv::IOptimizationProfile* profile = builder->createOptimizationProfile();
        for (const auto& [name, range] : bounds) {
            profile->setDimensions(name.c_str(), nv::OptProfileSelector::kMIN, range.first);
            profile->setDimensions(name.c_str(), nv::OptProfileSelector::kOPT, range.second);
            profile->setDimensions(name.c_str(), nv::OptProfileSelector::kMAX, range.second);
        }
        config->addOptimizationProfile(profile);
    }
    if (configure) {
        configure(*config);
    }
    std::unique_ptr<nv::IHostMemory> bytes(builder->buildSerializedNetwork(*network, *config));
    EXPECT_NE(bytes, nullptr);
    return bytes == nullptr ? ""
                            : std::string(static_cast<const char*>(bytes->data()), bytes->size());
}

Folder::Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "ingot_triton_XXXXXX").string();
    path_ = mkdtemp(pattern.data());
}

Folder::~Folder() {
    std::filesystem::remove_all(path_);
}

std::string row_engine(int64_t most) {
    auto fill = [](nv::INetworkDefinition& n) {
        nv::ITensor* x = n.addInput("x", nv::DataType::kFLOAT, nv::Dims{2, {-1, 3}});
        nv::ITensor* twice = n.addElementWise(*x, *x, nv::ElementWiseOperation::kSUM)->getOutput(0);
        nv::ITensor* sum = n.addReduce(*twice, nv::ReduceOperation::kSUM, 2, true)->getOutput(0);
        twice->setName("twice");
        sum->setName("sum");
        n.markOutput(*sum);
        n.markOutput(*twice);
    };
    return build_engine(
        fill, most == 0 ? Bounds() : Bounds{{"x", {nv::Dims{2, {1, 3}}, nv::Dims{2, {most, 3}}}}});
}

std::string sum_engine() {
    auto fill = [](nv::INetworkDefinition& n) {
        auto input = [&](const char* name) {
            return n.addInput(name, nv::DataType::kFLOAT, nv::Dims{2, {-1, 1}});
        };
        auto apply = [&](nv::ITensor* a, nv::ElementWiseOperation op, nv::ITensor* b) {
            return n.addElementWise(*a, *b, op)->getOutput(0);
        };
        static const float numbers[] = {1, 10};
        auto number = [&](size_t i) {
            nv::Weights weights{nv::DataType::kFLOAT, &numbers[i], 1};
            return n.addConstant(nv::Dims{2, {1, 1}}, weights)->getOutput(0);
        };
        nv::ITensor* x = input("x");
        nv::ITensor* goes_on = apply(number(0), nv::ElementWiseOperation::kSUB, input("start"));
        nv::ITensor* before =
            apply(input("total_before"), nv::ElementWiseOperation::kPROD, goes_on);
        nv::ITensor* total = apply(x, nv::ElementWiseOperation::kSUM, before);
        nv::ITensor* y = apply(total, nv::ElementWiseOperation::kPROD, number(1));
        total->setName("total");
        y->setName("y");
        n.markOutput(*total);
        n.markOutput(*y);
    };
    return build_engine(fill);
}

std::string function_engine(RowFunction function) {
    current_function() = std::move(function);
    static const bool registered = registerHostKernel("Row", call_function);
    EXPECT_TRUE(registered);
    auto fill = [](nv::INetworkDefinition& n) {
        nv::ITensor* x = n.addInput("x", nv::DataType::kFLOAT, nv::Dims{2, {-1, 1}});
        CudaSource source = {
            "Row",   "extern \"C\" __global__ void row(const float* x, float* y) {}",
            "row",   "float32[n, 1] -> float32[n, 1]",
            nullptr, "n",
            "32"};
        nv::ITensor* y = addCudaSourceLayer(n, &x, 1, source)->getOutput(0);
        y->setName("y");
        n.markOutput(*y);
    };
    return build_engine(fill);
}

TRITONBACKEND_Input float_input(const std::string& name, std::vector<int64_t> shape,
                                const std::vector<float>& values) {
    TRITONBACKEND_Input in;
    in.name = name;
    in.shape = std::move(shape);
    // In two pieces, as large bodies come.
    const char* bytes = reinterpret_cast<const char*>(values.data());
    size_t half = values.size() / 2 * sizeof(float) + (values.empty() ? 0 : 1);
    in.buffers.emplace_back(bytes, bytes + half);
    in.buffers.emplace_back(bytes + half, bytes + values.size() * sizeof(float));
    return in;
}

std::vector<float> floats(const TRITONBACKEND_Output& output) {
    std::vector<float> out(output.bytes.size() / sizeof(float));
    if (!out.empty()) {
        std::memcpy(out.data(), output.bytes.data(), out.size() * sizeof(float));
    }
    return out;
}

std::unique_ptr<TRITONBACKEND_Request> row_request(int64_t rows, unsigned seed) {
    std::mt19937 random(seed);
    std::uniform_int_distribution<int> small(-50, 50); // sums are exact
    std::vector<float> values(static_cast<size_t>(rows) * 3);
    for (float& v : values) {
        v = static_cast<float>(small(random));
    }
    auto out = std::make_unique<TRITONBACKEND_Request>();
    out->inputs.push_back(float_input("x", {rows, 3}, values));
    out->outputs = {"twice", "sum"};
    return out;
}

void expect_right(const TRITONBACKEND_Request& request) {
    ASSERT_FALSE(request.answered_error) << request.text;
    std::vector<char> bytes; // pieces need not hold whole elements
    for (const std::vector<char>& b : request.inputs[0].buffers) {
        bytes.insert(bytes.end(), b.begin(), b.end());
    }
    std::vector<float> x(bytes.size() / sizeof(float));
    if (!x.empty()) {
        std::memcpy(x.data(), bytes.data(), bytes.size());
    }
    std::vector<float> twice;
    std::vector<float> sum;
    for (size_t i = 0; i < x.size(); i += 3) {
        sum.push_back(2 * (x[i] + x[i + 1] + x[i + 2]));
        for (size_t j = 0; j < 3; ++j) {
            twice.push_back(2 * x[i + j]);
        }
    }
    int64_t rows = request.inputs[0].shape[0];
    ASSERT_EQ(request.results.size(), request.outputs.size());
    for (const std::string& name : request.outputs) {
        const TRITONBACKEND_Output& o = request.results.at(name);
        EXPECT_EQ(floats(o), name == "sum" ? sum : twice) << name;
        EXPECT_EQ(o.shape, (std::vector<int64_t>{rows, name == "sum" ? 1 : 3})) << name;
    }
}

SimulatedGpu::SimulatedGpu() {
    setenv("INGOT_SIMULATED_GPU", "1", 1); // NOLINT(concurrency-mt-unsafe)
}

SimulatedGpu::~SimulatedGpu() {
    unsetenv("INGOT_SIMULATED_GPU"); // NOLINT(concurrency-mt-unsafe)
}

Scene::Scene(const std::string& engine, std::string config) {
    FakeHost::get().reset();
    model.backend = &backend;
    model.config = std::move(config);
    model.folder = folder_.path();
    std::filesystem::create_directory(model.folder + "/1");
    std::ofstream(model.folder + "/1/model.engine", std::ios::binary) << engine;
}

Scene::~Scene() {
    FakeHost::get().failing_call = 0;
    stop();
}

std::string Scene::start_backend() {
    return text_of(TRITONBACKEND_Initialize(&backend));
}

std::string Scene::start_model() {
    return text_of(TRITONBACKEND_ModelInitialize(&model));
}

std::string Scene::start_instances(int count) {
    for (int i = 0; i < count; ++i) {
        auto made = std::make_unique<TRITONBACKEND_ModelInstance>();
        made->model = &model;
        made->name = "model_" + std::to_string(i);
        made->kind = kind;
        std::string text = text_of(TRITONBACKEND_ModelInstanceInitialize(made.get()));
        if (!text.empty()) {
            return text;
        }
        instances.push_back(std::move(made));
    }
    return "";
}

std::string Scene::start(int count) {
    std::string text = start_backend();
    text = text.empty() ? start_model() : text;
    return text.empty() ? start_instances(count) : text;
}

std::string Scene::execute(const std::vector<TRITONBACKEND_Request*>& requests, size_t instance) {
    std::vector<TRITONBACKEND_Request*> list = requests;
    return text_of(TRITONBACKEND_ModelInstanceExecute(instances.at(instance).get(), list.data(),
                                                      static_cast<uint32_t>(list.size())));
}

void Scene::stop_model() {
    for (auto& i : instances) {
        EXPECT_EQ(text_of(TRITONBACKEND_ModelInstanceFinalize(i.get())), "");
    }
    instances.clear();
    if (model.state != nullptr) {
        EXPECT_EQ(text_of(TRITONBACKEND_ModelFinalize(&model)), "");
        model.state = nullptr;
    }
}

void Scene::stop() {
    stop_model();
    if (backend.state != nullptr) {
        EXPECT_EQ(text_of(TRITONBACKEND_Finalize(&backend)), "");
        backend.state = nullptr;
    }
}

} // namespace ingot::triton
