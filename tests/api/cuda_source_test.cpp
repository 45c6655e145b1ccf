// SPDX-License-Identifier: Apache-2.0
// Kernels in CUDA source text: in networks and models, on an emulated GPU, compiled by NVRTC if
// present; on the CPU, functions of the application replace them.
#include "NvOnnxParser.h"
#include "api/plugin_fixture.h"
#include "backends/backends.h"
#include "onnx/data_type.h"
#include "onnx/model.h"
#include "onnx/writer.h"

namespace ingot::test {
namespace {

const CudaSource row_sum = {
    "RowSum",
    R"(extern "C" __global__ void row_sum(const float* x, float* y, long long n, long long m) {
           long long row = blockIdx.x * 32LL + threadIdx.x;
           if (row >= n) return;
           float sum = 0;
           for (long long i = 0; i < m; ++i) sum += x[row * m + i];
           y[row] = sum;
       })",
    "row_sum",
    "float32[n, m] -> float32[n]",
    "n, m",
    "ceil_div(n, 32)",
    "32"};

/// Any type and rank, with a constant; writes the doubled input, through a workspace.
const CudaSource twice = {
    "Twice",
    R"(extern "C" __global__ void twice(const T* x, T* y, T* again, float* space, long long n,
                                        int shift, float factor) {
           long long i = blockIdx.x * 64LL + threadIdx.y * 8 + threadIdx.x;
           if (i >= n) return;
           space[i] = (float)widen(x[i]) * factor + (float)shift;
           y[i] = narrow<T>(space[i]);
           again[i] = y[i];
       })",
    "twice",
    "T[...] -> T[...], T[..., 1]",
    "..., int(2 - 1), float(2.5e0)",
    "ceil_div(..., 64)",
    "8, 8",
    nullptr,
    "4 * ..."};

class CudaSourceTest : public PluginTest {
protected:
    nv::ILayer* add(std::vector<nv::ITensor*> in, const CudaSource& s) {
        return addCudaSourceLayer(*network, in.data(), static_cast<int32_t>(in.size()), s);
    }
};

/// The calls of host kernels.
struct HostLog {
    std::vector<HostArgument> arguments;
    int calls = 0;
    int32_t status = 0;
};

int32_t row_sum_on_host(const HostCall& call) {
    auto& log = *static_cast<HostLog*>(call.user);
    log.arguments.assign(call.arguments, call.arguments + call.nbArguments);
    ++log.calls;
    const nv::Dims& d = call.inputs[0].dims;
    if (call.nbInputs != 1 || call.nbOutputs != 1 || d.nbDims != 2 ||
        call.outputs[0].type != nv::DataType::kFLOAT) {
        return -1;
    }
    for (int64_t i = 0; i < d.d[0]; ++i) {
        const float* row = static_cast<const float*>(call.inputs[0].data) + i * d.d[1];
        static_cast<float*>(call.outputs[0].data)[i] = std::accumulate(row, row + d.d[1], 0.0F);
    }
    return log.status;
}

TEST_P(CudaSourceTest, OnTheCpuAFunctionStandsForIt) {
    HostLog log;
    nv::ITensor& x = input("x", {-1, 3});
    nv::ILayer* layer = add({&x}, row_sum);
    ASSERT_NE(layer, nullptr) << logger.take_error();
    mark(*network->addUnary(*layer->getOutput(0), nv::UnaryOperation::kNEG));
    profile("x", {0, 3}, {64, 3});
    ASSERT_TRUE(build()) << logger.take_error();
    if (GetParam()) {
        return;
    }
    EXPECT_FALSE(load_engine());
    EXPECT_NE(logger.take_error().find(
                  "or on the CPU a function registered with ingot::registerHostKernel()"),
              std::string::npos);
    EXPECT_FALSE(registerHostKernel("", row_sum_on_host));
    EXPECT_FALSE(registerHostKernel("RowSum", nullptr));
    ASSERT_TRUE(registerHostKernel("RowSum", row_sum_on_host, &log));
    EXPECT_FALSE(registerHostKernel("RowSum", row_sum_on_host, &log));
    ASSERT_TRUE(load_engine()) << logger.take_error();
    feed<float>("x", {2, 3}, {1, 2, 3, 4, 5, 6});
    EXPECT_EQ(run<float>(2), (std::vector<float>{-6, -15}));
    ASSERT_EQ(log.arguments.size(), 2U);
    EXPECT_EQ(log.arguments[0].integer, 2);
    EXPECT_EQ(log.arguments[1].integer, 3);
    EXPECT_FALSE(log.arguments[1].isReal);
    EXPECT_TRUE(deregisterHostKernel("RowSum"));
    EXPECT_FALSE(deregisterHostKernel("RowSum"));
    feed<float>("x", {1, 3}, {1, 1, 1}); // a context keeps its kernels
    EXPECT_EQ(run<float>(1), (std::vector<float>{-3}));
    EXPECT_EQ(log.calls, 2);
    log.status = 7;
    EXPECT_FALSE(context->enqueueV3(nullptr));
    EXPECT_NE(logger.take_error().find("the host kernel of 'RowSum' returned 7, expected 0"),
              std::string::npos);
    context.reset();
    EXPECT_FALSE(load_engine());
    logger.take_error();
}

TEST_P(CudaSourceTest, RunsOnAGpu) {
    nv::ITensor& x = input("x", {-1, 3});
    nv::ILayer* layer = add({&x}, row_sum);
    ASSERT_NE(layer, nullptr) << logger.take_error();
    EXPECT_EQ(layer->getType(), nv::LayerType::kPLUGIN);
    EXPECT_EQ(layer->getOutput(0)->getDimensions().nbDims, 1);
    layer->setName("sums");
    mark(*network->addUnary(*layer->getOutput(0), nv::UnaryOperation::kNEG));
    profile("x", {0, 3}, {64, 3});
    ASSERT_TRUE(build()) << logger.take_error();
    if (!GetParam()) {
        EXPECT_FALSE(load_engine());
        EXPECT_NE(
            logger.take_error().find("'RowSum' is a kernel of CUDA source text, which needs a "
                                     "CUDA device"),
            std::string::npos);
        return;
    }
    ASSERT_TRUE(load_engine()) << logger.take_error();
    for (int i = 0; i < 3; ++i) {
        feed<float>("x", {2, 3}, {1, 2, 3, 4, 5, 6});
        EXPECT_EQ(run<float>(2), (std::vector<float>{-6, -15}));
        feed<float>("x", {40, 3}, std::vector<float>(120, 1));
        EXPECT_EQ(run<float>(40), std::vector<float>(40, -3));
    }
}

TEST_P(CudaSourceTest, TypesRanksScalarsAndWorkspace) {
    if (!GetParam()) {
        GTEST_SKIP() << "a kernel of CUDA source text does not run on the CPU";
    }
    for (nv::DataType type : {nv::DataType::kFLOAT, nv::DataType::kHALF}) {
        network.reset(builder->createNetworkV2(0));
        nv::ITensor& x = input("x", {2, 2, 20}, type);
        nv::ILayer* layer = add({&x}, twice);
        ASSERT_NE(layer, nullptr) << logger.take_error();
        EXPECT_EQ(layer->getOutput(0)->getType(), type);
        EXPECT_EQ(sizes(layer->getOutput(1)->getDimensions()), (std::vector<int64_t>{2, 2, 20, 1}));
        nv::ITensor* y = layer->getOutput(1);
        mark(*network->addCast(*y, nv::DataType::kFLOAT));
        ASSERT_TRUE(build_and_load()) << logger.take_error();
        if (type == nv::DataType::kFLOAT) {
            feed<float>("x", {2, 2, 20}, std::vector<float>(80, 4));
        } else {
            feed<uint16_t>("x", {2, 2, 20}, std::vector<uint16_t>(80, f16_from_f32(4)));
        }
        EXPECT_EQ(run<float>(80), std::vector<float>(80, 11));
    }
}

TEST_P(CudaSourceTest, MistakesAreExplained) {
    struct Mistake {
        void (*change)(CudaSource&);
        const char* message;
    };
    const Mistake mistakes[] = {
        {[](CudaSource& s) { s.name = nullptr; }, "CudaSource::name is empty"},
        {[](CudaSource& s) { s.block = ""; }, "CudaSource::block is empty"},
        {[](CudaSource& s) { s.kernel = "row sum"; },
         "the kernel's name is 'row sum', expected a C++ identifier"},
        {[](CudaSource& s) { s.kernel = "col_sum"; }, "the source has no function 'col_sum'"},
        {[](CudaSource& s) { s.signature = "float32[n] -> float32[n]"; },
         "source 'RowSum': the signature 'float32[n] -> float32[n]': at character 12 ('-'): input "
         "0 "
         "f32[4,3] has 2 dimensions, the signature says 1"},
        {[](CudaSource& s) { s.signature = "int8[n, m] -> float32[n]"; },
         "at character 5 ('['): input 0 is float32[4,3], the signature says int8"},
        {[](CudaSource& s) { s.signature = "float32[n, n] -> float32[n]"; },
         "dimension 1 of input 0, 'n' is 3, expected 4"},
        {[](CudaSource& s) { s.signature = "float32[n, 5] -> float32[n]"; },
         "dimension 1 of input 0 is 3, expected 5"},
        {[](CudaSource& s) { s.signature = "float32[n, m], int8[] -> float32[n]"; },
         "the layer has only 1 inputs"},
        {[](CudaSource& s) { s.signature = "-> float32[4]"; }, "has 0 inputs, the layer has 1"},
        {[](CudaSource& s) { s.signature = "float32[n, m] -> float99[n]"; }, "expected a type"},
        {[](CudaSource& s) { s.signature = "float32[n, m] -> U[n]"; }, "no input has type U"},
        {[](CudaSource& s) { s.signature = "float32[n, m] -> float32[k]"; },
         "at character 27 (']'): 'k' is not a size of an input"},
        {[](CudaSource& s) { s.signature = "float32[n, m] -> float32[n - 5]"; }, "the size is -1"},
        {[](CudaSource& s) { s.signature = "float32[n, m] -> float32[n / 0]"; },
         "division by zero"},
        {[](CudaSource& s) { s.signature = "float32[n, m] -> float32[...]"; },
         "no input has '...'"},
        {[](CudaSource& s) { s.grid = "n +"; },
         "the grid 'n +': at character 4 (its end): expected a number, a name or '('"},
        {[](CudaSource& s) { s.grid = "1, 2, 3, 4"; }, "expected one to three expressions"},
        {[](CudaSource& s) { s.block = "pow(n, 2)"; },
         "'pow' is not a function, expected min, max or ceil_div"},
        {[](CudaSource& s) { s.arguments = "n; m"; }, "expected ',' or the end"},
        {[](CudaSource& s) { s.arguments = "float(alpha)"; }, "expected a number"},
        {[](CudaSource& s) { s.arguments = "99999999999999999999"; }, "a number below 2^63"},
        {[](CudaSource& s) { s.sharedBytes = "(((n)"; }, "expected ')'"},
    };
    nv::ITensor& x = input("x", {4, 3});
    for (const Mistake& m : mistakes) {
        CudaSource s = row_sum;
        m.change(s);
        EXPECT_EQ(add({&x}, s), nullptr) << m.message;
        std::string error = logger.take_error();
        EXPECT_EQ(error.find("ingot::addCudaSourceLayer: "), 0) << error;
        EXPECT_NE(error.find(m.message), std::string::npos) << error;
    }
    std::string deep(1000, '(');
    CudaSource s = row_sum;
    s.grid = deep.c_str();
    EXPECT_EQ(add({&x}, s), nullptr);
    EXPECT_NE(logger.take_error().find("nested too deep"), std::string::npos);
    EXPECT_EQ(ingotAddCudaSourceLayer(network.get(), nullptr, 1, &row_sum), nullptr);
    EXPECT_EQ(ingotAddCudaSourceLayer(network.get(), nullptr, 0, nullptr), nullptr);
    logger.take_error();
    EXPECT_EQ(network->getNbLayers(), 0);
}

TEST_P(CudaSourceTest, WhatOnlyTheRunKnows) {
    if (!GetParam()) {
        GTEST_SKIP() << "a kernel of CUDA source text does not run on the CPU";
    }
    struct Case {
        const char* source;
        const char* signature;
        const char* block;
        const char* message;
    };
    const Case cases[] = {
        {"extern \"C\" __global__ void row_sum(const float* x, float* y, long long, long long) {\n"
         "    y[0] = missing;\n}",
         "float32[n, m] -> float32[n]", "32", "missing"},
        {row_sum.source, "float32[n, m] -> float32[n]", "n * 1000",
         "threads along axis 0, expected 1 to 1024"},
        {row_sum.source, "float32[n, n] -> float32[n]", "32",
         "dimension 1 of input 0, 'n' is 3, expected 4"},
    };
    for (const Case& c : cases) {
        network.reset(builder->createNetworkV2(0));
        config.reset(builder->createBuilderConfig());
        CudaSource s = row_sum;
        s.source = c.source;
        s.signature = c.signature;
        s.arguments = "n, n";
        s.block = c.block;
        nv::ILayer* layer = add({&input("x", {-1, -1})}, s);
        ASSERT_NE(layer, nullptr) << logger.take_error();
        layer->setName("sums");
        mark(*layer);
        profile("x", {1, 1}, {8, 8});
        ASSERT_TRUE(build()) << logger.take_error();
        if (load_engine()) {
            feed<float>("x", {4, 3}, std::vector<float>(12, 1));
            ASSERT_TRUE(context->setTensorAddress("y0", memory->allocate(64)));
            EXPECT_FALSE(context->enqueueV3(nullptr));
        }
        std::string error = logger.take_error();
        EXPECT_NE(error.find(c.message), std::string::npos) << error;
        EXPECT_NE(error.find("node 'sums' (cuda_source)"), std::string::npos) << error;
    }
}

/// With NVRTC, without a GPU: kernels for listed compute capabilities.
TEST_P(CudaSourceTest, CompilesAheadOfTime) {
    if (GetParam()) {
        GTEST_SKIP() << "no device is asked: as on the CPU";
    }
    if (kernel_compiler().empty()) {
        GTEST_SKIP() << "NVRTC is not here";
    }
    mark(*add({&input("x", {2, 2, 20}, nv::DataType::kHALF)}, twice));
    config->setNbComputeCapabilities(1);
    config->setComputeCapability(nv::ComputeCapability::kSM90, 0);
    EXPECT_TRUE(build()) << logger.take_error();
    network.reset(builder->createNetworkV2(0));
    CudaSource broken = row_sum;
    broken.source =
        "extern \"C\" __global__ void row_sum(const float* x) {\n    x[0] = missing;\n}";
    nv::ILayer* layer = add({&input("x", {4, 3})}, broken);
    layer->setName("sums");
    mark(*layer);
    EXPECT_FALSE(build());
    std::string error = logger.take_error();
    EXPECT_NE(error.find("node 'sums' (cuda_source): source 'RowSum'"), std::string::npos) << error;
    EXPECT_NE(error.find("RowSum(2): error: identifier \"missing\" is undefined"),
              std::string::npos)
        << error;
}

// --- models --------------------------------------------------------------------------------------

onnx::Attribute attribute(std::string name, onnx::AttributeType type) {
    onnx::Attribute a;
    a.name = std::move(name);
    a.type = type;
    return a;
}
onnx::Attribute attribute(std::string name, int64_t v) {
    onnx::Attribute a = attribute(std::move(name), onnx::AttributeType::Int);
    a.i = v;
    return a;
}
onnx::Attribute attribute(std::string name, float v) {
    onnx::Attribute a = attribute(std::move(name), onnx::AttributeType::Float);
    a.f = v;
    return a;
}
onnx::Attribute attribute(std::string name, const char* v) {
    onnx::Attribute a = attribute(std::move(name), onnx::AttributeType::String);
    a.s = v;
    return a;
}

/// x f32[2,3] -> y, by one node called 'custom', then negated.
std::string model_bytes(std::string domain, std::string op,
                        std::vector<onnx::Attribute> attributes) {
    onnx::Model m;
    m.ir_version = 9;
    m.opset_imports[""] = 17;
    m.graph.name = "g";
    onnx::ValueInfo x;
    x.name = "x";
    x.kind = onnx::ValueKind::Tensor;
    x.elem_type = onnx::data_type_number(DType::F32);
    x.has_shape = true;
    x.dims = {{2, ""}, {3, ""}};
    m.graph.inputs.push_back(x);
    onnx::ValueInfo y = x;
    y.name = "y0";
    y.has_shape = false;
    y.dims.clear();
    m.graph.outputs.push_back(y);
    onnx::Node custom;
    custom.op_type = std::move(op);
    custom.domain = std::move(domain);
    custom.name = "custom";
    custom.inputs = {"x"};
    custom.outputs = {"t"};
    custom.attributes = std::move(attributes);
    onnx::Node neg;
    neg.op_type = "Neg";
    neg.name = "neg";
    neg.inputs = {"t"};
    neg.outputs = {"y0"};
    m.graph.nodes = {custom, neg};
    return onnx::write_model(m);
}

class CustomNodes : public CudaSourceTest {
protected:
    bool parse(const std::string& model, bool plugins_first = false) {
        network.reset(builder->createNetworkV2(0));
        std::unique_ptr<nvonnxparser::IParser> parser(nvonnxparser::createParser(*network, logger));
        if (plugins_first) {
            parser->setFlag(nvonnxparser::OnnxParserFlag::kENABLE_PLUGIN_OVERRIDE);
        }
        return parser->parse(model.data(), model.size());
    }
    std::vector<float> results() {
        EXPECT_TRUE(build_and_load()) << logger.take_error();
        feed<float>("x", {2, 3}, {1, 2, 3, 4, 5, 6});
        return run<float>(6);
    }
};

TEST_P(CustomNodes, ArePluginsWithAttributesAsFields) {
    std::string model = model_bytes("my.domain", "Scale",
                                    {attribute("factor", 2.0F), attribute("offset", int64_t{1})});
    EXPECT_FALSE(parse(model));
    EXPECT_NE(logger.take_error().find("node 'custom' (my.domain.Scale"), std::string::npos);
    Registered<Scale> registered;
    ASSERT_TRUE(parse(model)) << logger.take_error();
    EXPECT_STREQ(network->getLayer(0)->getName(), "custom");
    EXPECT_EQ(network->getLayer(0)->getType(), nv::LayerType::kPLUGIN_V3);
    EXPECT_EQ(results(), (std::vector<float>{-3, -5, -7, -9, -11, -13}));

    // Namespace and version select the creator.
    Registered<Scale> spaced("space");
    std::vector<onnx::Attribute> chosen = {attribute("plugin_namespace", "space"),
                                           attribute("plugin_version", "1"),
                                           attribute("factor", 3.0F)};
    ASSERT_TRUE(parse(model_bytes("my.domain", "Scale", chosen))) << logger.take_error();
    EXPECT_EQ(plugin_log().created, "factor:1 ");
    chosen[1].s = "2";
    EXPECT_FALSE(parse(model_bytes("my.domain", "Scale", chosen)));
    logger.take_error();
    // Fields of the wrong type.
    EXPECT_FALSE(parse(model_bytes("my.domain", "Scale", {attribute("factor", "two")})));
    EXPECT_NE(logger.take_error().find("attribute 'factor' is of type string, the plugin's creator "
                                       "lists it as kFLOAT32"),
              std::string::npos);
    EXPECT_FALSE(parse(model_bytes("my.domain", "Scale", {attribute("offset", int64_t{1} << 40)})));
    EXPECT_NE(logger.take_error().find("attribute 'offset' is 1099511627776, which does not fit"),
              std::string::npos);
}

/// A plugin named like an operator.
class NotNeg : public Scale {
public:
    static constexpr const char* name = "Neg";
    nv::IPluginV3* clone() noexcept override { return new NotNeg(*this); }
    const char* getPluginName() const noexcept override { return name; }
};

TEST_P(CustomNodes, MayTakeThePlaceOfOperators) {
    Registered<Scale> scale;
    Registered<NotNeg> neg;
    std::string model = model_bytes("", "Scale", {attribute("factor", 2.0F)});
    ASSERT_TRUE(parse(model)) << logger.take_error();
    EXPECT_EQ(results(), (std::vector<float>{-2, -4, -6, -8, -10, -12}));
    ASSERT_TRUE(parse(model, true)) << logger.take_error();
    EXPECT_EQ(results(), (std::vector<float>{2, 4, 6, 8, 10, 12}));
}

TEST_P(CustomNodes, AreKernelsOfSourceText) {
    CudaSource s = {"Affine",
                    R"(extern "C" __global__ void affine(const float* x, float* y, long long n,
                                                         int shift, float alpha) {
                           long long i = blockIdx.x * 256LL + threadIdx.x;
                           if (i < n) y[i] = x[i] * alpha + (float)shift;
                       })",
                    "affine",
                    "float32[...] -> float32[...]",
                    "..., int(shift), float(alpha)",
                    "ceil_div(..., 256)",
                    "256"};
    ASSERT_TRUE(registerCudaSource("my.domain", "Affine", s));
    EXPECT_FALSE(registerCudaSource("my.domain", "Affine", s));
    std::string model = model_bytes("my.domain", "Affine",
                                    {attribute("alpha", 0.5F), attribute("shift", int64_t{3})});
    ASSERT_TRUE(parse(model)) << logger.take_error();
    if (GetParam()) {
        EXPECT_EQ(results(), (std::vector<float>{-3.5, -4, -4.5, -5, -5.5, -6}));
    }
    EXPECT_FALSE(parse(model_bytes("my.domain", "Affine", {})));
    EXPECT_NE(logger.take_error().find("'shift' is not a size of an input"), std::string::npos);
    EXPECT_TRUE(deregisterCudaSource("my.domain", "Affine"));
    EXPECT_FALSE(deregisterCudaSource("my.domain", "Affine"));
    logger.take_error();
    EXPECT_FALSE(parse(model));
    logger.take_error();
}

INSTANTIATE_TEST_SUITE_P(Places, CudaSourceTest, testing::Bool(), [](const auto& place) {
    return std::string(place.param ? "EmulatedGpu" : "Cpu");
});
INSTANTIATE_TEST_SUITE_P(Places, CustomNodes, testing::Bool(), [](const auto& place) {
    return std::string(place.param ? "EmulatedGpu" : "Cpu");
});

} // namespace
} // namespace ingot::test
