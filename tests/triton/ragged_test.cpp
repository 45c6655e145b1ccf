// SPDX-License-Identifier: Apache-2.0
// Requests of different sizes in one batch, and inputs that say which part of it each request is.
#include "ingot.h"
#include "tests/triton/scene.h"

namespace ingot::triton {
namespace {

namespace nv = nvinfer1;

nv::ITensor* output(nv::ITensor* t, const char* name, nv::INetworkDefinition& n) {
    t->setName(name);
    n.markOutput(*t);
    return t;
}

nv::ITensor* twice(nv::ITensor* x, nv::INetworkDefinition& n) {
    return n.addElementWise(*x, *x, nv::ElementWiseOperation::kSUM)->getOutput(0);
}

/// An engine of requests one behind another: i32[n] `ends` are the elements of f32[m] `x` up to the
/// end of each, f32[n] `last` is the last element of each, and f32[m] `twice` is 2 x. `m` and `n`
/// are `most` at most; 0: nothing bounds them, and the engine has no profile.
std::string ragged_engine(int64_t most) {
    auto fill = [](nv::INetworkDefinition& n) {
        nv::ITensor* x = n.addInput("x", nv::DataType::kFLOAT, nv::Dims{1, {-1}});
        nv::ITensor* ends = n.addInput("ends", nv::DataType::kINT32, nv::Dims{1, {-1}});
        static const int32_t one = 1;
        nv::Weights weights{nv::DataType::kINT32, &one, 1};
        nv::ITensor* ones = n.addConstant(nv::Dims{1, {1}}, weights)->getOutput(0);
        nv::ITensor* at =
            n.addElementWise(*ends, *ones, nv::ElementWiseOperation::kSUB)->getOutput(0);
        output(n.addGather(*x, *at, 0)->getOutput(0), "last", n);
        output(twice(x, n), "twice", n);
    };
    std::pair range{nv::Dims{1, {0}}, nv::Dims{1, {most}}};
    return build_engine(fill, most == 0 ? Bounds() : Bounds{{"x", range}, {"ends", range}});
}

/// The input `ends` of the last run.
struct Told {
    std::vector<int64_t> shape;
    std::vector<int32_t> values;
};
Told& told() {
    static Told last;
    return last;
}

int32_t tell(const HostCall& call) {
    const HostTensor& t = call.inputs[0];
    told().shape.assign(t.dims.d, t.dims.d + t.dims.nbDims);
    int64_t count = 1;
    for (int64_t size : told().shape) {
        count *= size;
    }
    const auto* values = static_cast<const int32_t*>(t.data);
    told().values.assign(values, values + count);
    std::copy(values, values + count, static_cast<int32_t*>(call.outputs[0].data));
    return 0;
}

/// An engine that keeps `ends` of that many dimensions in told(); `twice` is 2 x.
std::string telling_engine(int32_t rank) {
    static const bool registered = registerHostKernel("Tell", tell);
    EXPECT_TRUE(registered);
    return build_engine([&](nv::INetworkDefinition& n) {
        nv::ITensor* x = n.addInput("x", nv::DataType::kFLOAT, nv::Dims{1, {-1}});
        nv::ITensor* ends = n.addInput("ends", nv::DataType::kINT32, nv::Dims{rank, {-1, 1}});
        CudaSource source = {"Tell",  "extern \"C\" __global__ void tell(const int* x, int* y) {}",
                             "tell",  "int32[...] -> int32[...]",
                             nullptr, "1",
                             "32"};
        output(addCudaSourceLayer(n, &ends, 1, source)->getOutput(0), "told", n);
        output(twice(x, n), "twice", n);
    });
}

std::string config_with(const std::string& batch_input, bool has_last = true) {
    const char* last =
        R"({"name":"last","data_type":"TYPE_FP32","dims":[1],"reshape":{"shape":[]}},)";
    return R"({"max_batch_size":4,
        "input":[{"name":"x","data_type":"TYPE_FP32","dims":[-1],"allow_ragged_batch":true}],
        "output":[)" +
           std::string(has_last ? last : "") +
           R"({"name":"twice","data_type":"TYPE_FP32","dims":[-1]}],
        "batch_output":[{"target_name":["twice"],"kind":"BATCH_SCATTER_WITH_INPUT_SHAPE",
                         "source_input":["x"]}],
        "batch_input":[)" +
           batch_input + "]}";
}

std::string of_kind(const std::string& kind) {
    return R"({"kind":")" + kind +
           R"(","target_name":["ends"],"data_type":"TYPE_INT32","source_input":["x"]})";
}

const std::string ends_config = config_with(of_kind("BATCH_ACCUMULATED_ELEMENT_COUNT"));

std::unique_ptr<TRITONBACKEND_Request> request(std::vector<int64_t> shape, float first) {
    int64_t count = 1;
    for (int64_t size : shape) {
        count *= size;
    }
    std::vector<float> x(static_cast<size_t>(count));
    for (size_t i = 0; i < x.size(); ++i) {
        x[i] = first + static_cast<float>(i);
    }
    auto out = std::make_unique<TRITONBACKEND_Request>();
    out->inputs.push_back(float_input("x", std::move(shape), x));
    out->outputs = {"last", "twice"};
    return out;
}

/// A request whose x is first, first + 1 and so on.
void expect_right(const TRITONBACKEND_Request& r, float first) {
    ASSERT_FALSE(r.answered_error) << r.text;
    std::vector<float> twice = floats(r.results.at("twice"));
    for (size_t i = 0; i < twice.size(); ++i) {
        EXPECT_EQ(twice[i], 2 * (first + static_cast<float>(i)));
    }
    EXPECT_EQ(r.results.at("twice").shape, r.inputs[0].shape);
    EXPECT_EQ(floats(r.results.at("last")),
              (std::vector<float>{first + static_cast<float>(twice.size()) - 1}));
}

TEST(TritonRagged, RequestsOfDifferentSizesAreOneRun) {
    for (bool on_gpu : {false, true}) {
        std::optional<SimulatedGpu> simulated;
        if (on_gpu) {
            simulated.emplace();
        }
        Scene scene(ragged_engine(0), ends_config);
        scene.kind =
            on_gpu ? TRITONSERVER_INSTANCEGROUPKIND_GPU : TRITONSERVER_INSTANCEGROUPKIND_CPU;
        ASSERT_EQ(scene.start(), "");
        auto a = request({1, 3}, 10);
        auto b = request({1, 2, 3}, 20);
        auto c = request({1, 1}, 30);
        ASSERT_EQ(scene.execute({a.get(), b.get(), c.get()}), "");
        expect_right(*a, 10);
        expect_right(*b, 20);
        expect_right(*c, 30);
        EXPECT_EQ(scene.instances[0]->batches, 1U);
    }
}

TEST(TritonRagged, BatchesStayWithinWhatTheEngineTakes) {
    Scene scene(ragged_engine(8), ends_config);
    ASSERT_EQ(scene.start(), "");
    auto a = request({1, 5}, 1);
    auto b = request({1, 4}, 2);
    auto large = request({1, 9}, 3);
    auto flat = request({3}, 4);
    ASSERT_EQ(scene.execute({a.get(), b.get(), large.get(), flat.get()}), "");
    expect_right(*a, 1);
    expect_right(*b, 2);
    EXPECT_EQ(scene.instances[0]->batches, 2U);
    EXPECT_EQ(large->text, "input 'x' of shape [1,9] has 9 elements, the engine takes 8");
    EXPECT_EQ(flat->text, "input 'x' has shape [3], expected rows of at least one more size");
}

struct Kind {
    const char* name;
    std::vector<int64_t> shape;
    std::vector<int32_t> values;
};

TEST(TritonRagged, EachKindTellsWhatItsNameSays) {
    // The requests are x[1, 3] and x[2, 2]: 3 and 4 elements.
    const Kind kinds[] = {
        {"BATCH_ELEMENT_COUNT", {2}, {3, 4}},
        {"BATCH_ACCUMULATED_ELEMENT_COUNT", {2}, {3, 7}},
        {"BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO", {3}, {0, 3, 7}},
        {"BATCH_MAX_ELEMENT_COUNT_AS_SHAPE", {4}, {0, 0, 0, 0}},
        {"BATCH_ITEM_SHAPE", {3, 1}, {3, 2, 2}},
        {"BATCH_ITEM_SHAPE_FLATTEN", {3}, {3, 2, 2}},
    };
    for (const Kind& kind : kinds) {
        SCOPED_TRACE(kind.name);
        Scene scene(telling_engine(static_cast<int32_t>(kind.shape.size())),
                    config_with(of_kind(kind.name), false));
        ASSERT_EQ(scene.start(), "");
        auto a = request({1, 3}, 0);
        auto b = request({2, 2}, 0);
        a->outputs = b->outputs = {"twice"};
        ASSERT_EQ(scene.execute({a.get(), b.get()}), "");
        EXPECT_FALSE(a->answered_error) << a->text;
        EXPECT_EQ(told().shape, kind.shape);
        EXPECT_EQ(told().values, kind.values);
    }
}

} // namespace
} // namespace ingot::triton
