// SPDX-License-Identifier: Apache-2.0
// Inputs that a request may leave out: their default is an initializer of the model.
#include "base/text.h"
#include "ingot.h"
#include "tests/triton/scene.h"

#include <filesystem>
#include <fstream>

namespace ingot::triton {
namespace {

namespace fs = std::filesystem;

/// A field of a protobuf message, of bytes; sizes are below 128.
std::string field(int number, const std::string& bytes) {
    return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())} + bytes;
}
std::string field(int number, int value) {
    return {static_cast<char>(number << 3), static_cast<char>(value)};
}

std::string float_info(const std::string& name, int size) {
    std::string shape = field(1, field(1, size));
    return field(1, name) + field(2, field(1, field(1, 1) + field(2, shape)));
}

std::string float_tensor(const std::string& name, const std::vector<float>& values) {
    std::string raw(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    return field(1, static_cast<int>(values.size())) + field(2, 1) + field(8, name) + field(9, raw);
}

std::string op(const char* type, const char* a, const char* b, const char* out) {
    return field(1, a) + field(1, b) + field(2, out) + field(4, type);
}

/// y = x * scale + shift, each of 2 numbers, but for `scale`. `scale` is 3 and `shift` 10 and 20
/// where they are not given; `x` is always.
std::string scale_model() {
    std::string graph = field(1, op("Mul", "x", "scale", "t")) +
                        field(1, op("Add", "t", "shift", "y")) + field(2, "g") +
                        field(5, float_tensor("scale", {3})) +
                        field(5, float_tensor("shift", {10, 20})) + field(11, float_info("x", 2)) +
                        field(11, float_info("scale", 1)) + field(11, float_info("shift", 2)) +
                        field(12, float_info("y", 2));
    std::string long_graph = {static_cast<char>(7 << 3 | 2),
                              static_cast<char>(graph.size() % 128 | 128),
                              static_cast<char>(graph.size() / 128)};
    return field(1, 8) + long_graph + graph + field(8, field(1, "") + field(2, 17));
}

const char* const both_optional = R"({"max_batch_size":0,"input":[
    {"name":"x","data_type":"TYPE_FP32","dims":[2]},
    {"name":"scale","data_type":"TYPE_FP32","dims":[1],"optional":true},
    {"name":"shift","data_type":"TYPE_FP32","dims":[2],"optional":true}],
    "output":[{"name":"y","data_type":"TYPE_FP32","dims":[2]}]})";

/// A scene with the model as model.onnx.
class OptionalInputs : public testing::Test {
protected:
    void SetUp() override { ASSERT_TRUE(setCacheFolder(cache_.path().c_str())); }
    void TearDown() override { setCacheFolder(nullptr); }
    static std::unique_ptr<Scene> scene(const std::string& config) {
        auto out = std::make_unique<Scene>("", config);
        fs::remove(out->model.folder + "/1/model.engine");
        std::ofstream(out->model.folder + "/1/model.onnx", std::ios::binary) << scale_model();
        return out;
    }
    /// The answer; empty for an error.
    static std::vector<float> ask(Scene& scene, std::vector<TRITONBACKEND_Input> inputs) {
        TRITONBACKEND_Request r;
        r.inputs = std::move(inputs);
        r.outputs = {"y"};
        EXPECT_EQ(scene.execute({&r}), "");
        EXPECT_FALSE(r.answered_error) << r.text;
        return r.answered_error ? std::vector<float>() : floats(r.results.at("y"));
    }

    Folder cache_;
};

const TRITONBACKEND_Input& x() {
    static const TRITONBACKEND_Input input = float_input("x", {2}, {1, 2});
    return input;
}

template <class Ask>
void expect_each_combination(Scene& scene, const Ask& ask) {
    TRITONBACKEND_Input scale = float_input("scale", {1}, {5});
    TRITONBACKEND_Input shift = float_input("shift", {2}, {1, 1});
    for (int round = 0; round < 2; ++round) { // a default comes back after a value
        EXPECT_EQ(ask(scene, {x()}), (std::vector<float>{13, 26}));
        EXPECT_EQ(ask(scene, {x(), scale}), (std::vector<float>{15, 30}));
        EXPECT_EQ(ask(scene, {shift, x()}), (std::vector<float>{4, 7}));
        EXPECT_EQ(ask(scene, {x(), shift, scale}), (std::vector<float>{6, 11}));
    }
}

TEST_F(OptionalInputs, AreTheirDefaultsWhereARequestLacksThem) {
    for (bool is_second : {false, true}) { // which is the kept engine
        auto s = scene(both_optional);
        ASSERT_EQ(s->start(), "");
        expect_each_combination(*s, ask);
        std::string said = FakeHost::get().logged();
        EXPECT_EQ(said.find("is the one kept in ") != std::string::npos, is_second) << said;
        FakeHost::get().reset();
    }
}

TEST_F(OptionalInputs, AreTheirDefaultsOnASimulatedGpu) {
    SimulatedGpu simulated;
    auto s = scene(both_optional);
    s->kind = TRITONSERVER_INSTANCEGROUPKIND_GPU;
    ASSERT_EQ(s->start(), "");
    expect_each_combination(*s, ask);
}

TEST_F(OptionalInputs, AreConstantsWhereTheConfigurationDoesNotNameThem) {
    auto s = scene("{}");
    ASSERT_EQ(s->start(), "");
    EXPECT_EQ(s->model.config.find("scale"), std::string::npos) << s->model.config;
    EXPECT_EQ(ask(*s, {x()}), (std::vector<float>{13, 26}));
}

TEST_F(OptionalInputs, ARequestWithoutTheOthersFailsAlone) {
    auto s = scene(both_optional);
    ASSERT_EQ(s->start(), "");
    TRITONBACKEND_Request lacking;
    lacking.inputs = {float_input("scale", {1}, {5})};
    TRITONBACKEND_Request wrong;
    wrong.inputs = {x(), float_input("scale", {2}, {5, 5})};
    TRITONBACKEND_Request right;
    right.inputs = {x()};
    right.outputs = {"y"};
    ASSERT_EQ(s->execute({&lacking, &wrong, &right}), "");
    EXPECT_EQ(lacking.text, "unknown request input name x");
    EXPECT_EQ(wrong.text, "input 'scale' has shape [2], expected [1] within [1] to [1]");
    EXPECT_EQ(floats(right.results.at("y")), (std::vector<float>{13, 26}));
}

/// A failing call of the server fails the request: an input that was sent is never its default.
TEST_F(OptionalInputs, AreNotGuessedWhereTheServerFails) {
    for (int64_t ahead = 1; ahead < 12; ++ahead) {
        auto s = scene(both_optional);
        ASSERT_EQ(s->start(), "");
        TRITONBACKEND_Request r;
        r.inputs = {x(), float_input("scale", {1}, {5})};
        r.outputs = {"y"};
        FakeHost::get().failing_call = FakeHost::get().calls + ahead;
        std::string failed = s->execute({&r});
        FakeHost::get().failing_call = 0;
        if (failed.empty() && !r.answered_error) {
            EXPECT_EQ(floats(r.results.at("y")), (std::vector<float>{15, 30})) << ahead;
        }
    }
}

TEST_F(OptionalInputs, WithoutADefaultAreRefused) {
    auto config = [](const char* batch, const char* x_rest, const char* scale_rest) {
        return str(R"({"max_batch_size":)", batch,
                   R"(,"input":[{"name":"x","data_type":"TYPE_FP32","dims":[2])", x_rest,
                   R"(},{"name":"scale","data_type":"TYPE_FP32","dims":[1])", scale_rest,
                   R"(}],"output":[{"name":"y","data_type":"TYPE_FP32","dims":[2]}]})");
    };
    const char* optional = R"(,"optional":true)";
    auto of_model = scene(config("0", optional, optional));
    ASSERT_EQ(of_model->start_backend(), "");
    EXPECT_NE(of_model->start_model().find(
                  "optional input 'x': it has no default: the model has no initializer of this "
                  "name; add one, or let every run bring the input"),
              std::string::npos);
    auto not_optional = scene(config("0", "", ""));
    ASSERT_EQ(not_optional->start_backend(), "");
    EXPECT_NE(not_optional->start_model().find("configured input 'scale' is none of the engine's"),
              std::string::npos);
    Scene of_engine(row_engine(8), R"({"max_batch_size":4,
        "input":[{"name":"x","data_type":"TYPE_FP32","dims":[3],"optional":true}],
        "output":[{"name":"sum","data_type":"TYPE_FP32","dims":[1]}]})");
    ASSERT_EQ(of_engine.start_backend(), "");
    EXPECT_NE(of_engine.start_model().find(
                  "input 'x' has optional, and the engine has no default for it: build it with "
                  "'ingot build --optionalInputs=x' from a model that has one (an initializer of "
                  "the input's name), or leave the field out"),
              std::string::npos);
}

} // namespace
} // namespace ingot::triton
