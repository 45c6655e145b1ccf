// SPDX-License-Identifier: Apache-2.0
// Configurations: what is added from the engine, and what does not fit it.
#include "plugins/triton/fields.h"
#include "source_dir.h"
#include "tests/triton/scene.h"

#include <fstream>

namespace ingot::triton {
namespace {

const char* const written = R"({"max_batch_size":4,
    "input":[{"name":"x","data_type":"TYPE_FP32","dims":[3]}],
    "output":[{"name":"sum","data_type":"TYPE_FP32","dims":[1]}])";

std::string with(const std::string& fields) {
    return written + ("," + fields) + "}";
}

std::string accelerator(const std::string& key, const std::string& value) {
    return R"("optimization":{"execution_accelerators":{"gpu_execution_accelerator":[)"
           R"({"name":"tensorrt","parameters":{")" +
           key + R"(":")" + value + R"("}}]}})";
}

struct Completion {
    const char* what;
    int64_t most; // rows of the engine's profile
    std::string config;
    const char* completed; // "": left as it is
};

const char* const tensors_of_rows =
    R"("input":[{"name":"x","data_type":"TYPE_FP32","dims":[3]}],)"
    R"("output":[{"name":"sum","data_type":"TYPE_FP32","dims":[1]},)"
    R"({"name":"twice","data_type":"TYPE_FP32","dims":[3]}])";

TEST(TritonConfig, IsCompletedFromTheEngine) {
    const Completion cases[] = {
        {"nothing is written", 8, R"({"name":"m"})",
         R"({"name":"m","max_batch_size":8,%,"dynamic_batching":{}})"},
        {"nothing bounds the rows: the server's default", 0, R"({"name":"m"})",
         R"({"name":"m","max_batch_size":4,%,"dynamic_batching":{}})"},
        {"a limit", 8, R"({"max_batch_size":3,"input":[],"output":[]})",
         R"({"max_batch_size":3,%,"dynamic_batching":{}})"},
        {"a scheduler stays", 8, R"({"sequence_batching":{"oldest":{}}})",
         R"({"sequence_batching":{"oldest":{}},"max_batch_size":8,%})"},
        {"rows that are fixed are no batch", 1, "{}",
         R"({"max_batch_size":0,"input":[{"name":"x","data_type":"TYPE_FP32","dims":[1,3]}],)"
         R"("output":[{"name":"sum","data_type":"TYPE_FP32","dims":[1,1]},)"
         R"({"name":"twice","data_type":"TYPE_FP32","dims":[1,3]}]})"},
        {"numbers beyond 64-bit integers become texts, which the server reads alike", 8,
         R"({"name":"a\"-1.5, 2e3\\","x":[0.5,-1e3,18446744073709551615,-7,"1.5"]})",
         R"({"name":"a\"-1.5, 2e3\\","x":["0.5","-1e3","18446744073709551615",-7,"1.5"],)"
         R"("max_batch_size":8,%,"dynamic_batching":{}})"},
        {"complete", 8, with(R"("dynamic_batching":{})"), ""},
        {"whole shapes are written, so no batches", 8,
         R"({"max_batch_size":0,"input":[{"name":"x","data_type":"TYPE_FP32","dims":[2,3]}],
             "output":[{"name":"sum","data_type":"TYPE_FP32","dims":[2,1]}]})",
         ""},
    };
    for (const Completion& c : cases) {
        SCOPED_TRACE(c.what);
        Scene scene(row_engine(c.most), c.config);
        ASSERT_EQ(scene.start_backend(), "");
        ASSERT_EQ(scene.start_model(), "");
        std::string expected = *c.completed == 0 ? c.config : c.completed;
        if (size_t at = expected.find('%'); at != std::string::npos) {
            expected.replace(at, 1, tensors_of_rows);
        }
        EXPECT_EQ(scene.model.config, expected);
    }
}

TEST(TritonConfig, IsLeftAloneWhereTheServerSaysSo) {
    Scene scene(row_engine(8), with(R"("x":0)"));
    scene.model.completes = false;
    ASSERT_EQ(scene.start_backend(), "");
    ASSERT_EQ(scene.start_model(), "");
    EXPECT_EQ(scene.model.config, with(R"("x":0)"));
}

struct Refusal {
    std::string config, text;
};

TEST(TritonConfig, DisagreementsAreRefusedByName) {
    auto io = [](const std::string& input, const std::string& output) {
        return R"({"max_batch_size":4,"input":[)" + input + R"(],"output":[)" + output + "]}";
    };
    const std::string x = R"({"name":"x","data_type":"TYPE_FP32","dims":[3]})";
    const std::string sum = R"({"name":"sum","data_type":"TYPE_FP32","dims":[1]})";
    auto tensor = [](const std::string& rest) { return R"({"name":"x",)" + rest + "}"; };
    const Refusal cases[] = {
        {io(tensor(R"("data_type":"TYPE_INT32","dims":[3])"), sum),
         "input 'x': data_type TYPE_INT32 is configured, the engine has TYPE_FP32"},
        {io(tensor(R"("data_type":"TYPE_FP32","dims":[4])"), sum),
         "input 'x': shape [-1,4] is configured (the first size are the rows of a batch), the "
         "engine has [-1,3], built for [1,3] to [8,3]"},
        {io(tensor(R"("data_type":"TYPE_FP32","dims":[3,1])"), sum),
         "input 'x': shape [-1,3,1] is configured (the first size are the rows of a batch), the "
         "engine has [-1,3], built for [1,3] to [8,3]"},
        {io(R"({"name":"y","data_type":"TYPE_FP32","dims":[3]})", sum),
         "configured input 'y' is none of the engine's, which are: x"},
        {io(x, R"({"name":"scores","data_type":"TYPE_FP32","dims":[1]})"),
         "configured output 'scores' is none of the engine's, which are: sum, twice"},
        {io(tensor(R"("data_type":"TYPE_FP32","dims":[3],"allow_ragged_batch":true)"), sum),
         "input 'x' has allow_ragged_batch: the engine gets all requests as one vector, [-1], and "
         "has [-1,3]"},
        {io(tensor(R"("data_type":"TYPE_FP32","dims":[3],"optional":true)"), sum),
         "input 'x' has optional, and the engine has no default for it: build it with 'ingot build "
         "--optionalInputs=x' from a model that has one"},
        {io(tensor(R"("data_type":"TYPE_FP32","dims":[3],"is_shape_tensor":true)"), sum),
         "input 'x' is a shape tensor, which requests of one batch cannot share: set "
         "max_batch_size to 0"},
        {R"({"max_batch_size":9})",
         "max_batch_size 9 is configured, the engine was built for 8 rows at most: lower it, or "
         "build the engine with a larger --maxShapes"},
        {with(R"("batch_input":[{"kind":"BATCH_MEAN","target_name":["m"],"source_input":["x"]}])"),
         "batch_input has the kind BATCH_MEAN, which is unknown to this backend"},
        {with(R"("batch_input":[{"kind":"BATCH_ELEMENT_COUNT","source_input":["x"]}])"),
         "batch_input: one target_name is expected, got 0"},
        {with(R"("batch_input":[{"kind":"BATCH_ELEMENT_COUNT","target_name":["m"],
                "data_type":"TYPE_INT32","source_input":["x"]}])"),
         "batch_input has the source_input 'x', which is no input with allow_ragged_batch"},
        {with(R"("batch_output":[{"target_name":["sum"],"source_input":["y"]}])"),
         "batch_output has the source_input 'y', which is no input with allow_ragged_batch"},
        {with(R"("model_transaction_policy":{"decoupled":true})"),
         "model_transaction_policy.decoupled is set: an engine gives one response to each request"},
        {with(R"("instance_group":[{"name":"g","profile":["0","1"]}])"),
         "instance_group 'g' names several profiles: name one, an instance runs with one"},
        {with(R"("instance_group":[{"name":"g","profile":["2"]}])"),
         "profile 2 is asked for, and the engine has 1"},
        {with(R"("parameters":{"bukets":{"string_value":"1"}})"),
         "parameter 'bukets' is unknown to this backend; docs/serving.md lists those that it "
         "knows; did you mean 'buckets'?"},
        {with(R"("optimization":{"speed":1})"),
         "field of optimization 'speed' is unknown to this backend"},
        {with(accelerator("precision_mode", "INT8")),
         "precision_mode INT8 is refused: FP32 and FP16 are served"},
        {with(R"("parameters":{"batch_invariant":{"string_value":"1"}})"),
         "parameter 'batch_invariant': true or false is expected, got '1'"},
        {with(R"("parameters":{"buckets":{"string_value":"4,2"}})"),
         "parameter 'buckets': each is larger than the one before, got '4,2'"},
        {with(R"("parameters":{"buckets":{"string_value":"5"}})"),
         "parameter 'buckets' has 5, and max_batch_size is 4"},
        {with(R"("parameters":{"threads":{"string_value":"many"}})"),
         "parameter 'threads': a number of 1 to 1048576 is expected, got 'many'"},
        {with(R"("default_model_filename":"other.engine")"),
         "the folder of the version has no other.engine: put the engine there, or name it in "
         "default_model_filename"},
        {with(R"("default_model_filename":"../1/model.engine")"),
         "default_model_filename '../1/model.engine' names a file elsewhere: it lies in the folder "
         "of the version"},
        {R"({"input":5})", "the configuration cannot be read: "},
        {R"({"max_batch_size":"many"})", "the configuration has 'many' where a number is expected"},
        {io(tensor(R"("data_type":"TYPE_FP16","dims":[3])"), sum),
         "input 'x': data_type TYPE_FP16 is configured, the engine has TYPE_FP32"},
        {io(x, R"({"name":"sum","data_type":"TYPE_INT64","dims":[1]})"),
         "output 'sum': data_type TYPE_INT64 is configured, the engine has TYPE_FP32"},
        {io(x, R"({"name":"sum","data_type":"TYPE_FP32","dims":[2]})"),
         "output 'sum': shape [-1,2] is configured (the first size are the rows of a batch), the "
         "engine has [-1,1]"},
        {with(R"("parameters":{"bucket":{"string_value":"1"}})"),
         "parameter 'bucket' is unknown to this backend; docs/serving.md lists those that it "
         "knows; did you mean 'buckets'?"},
        {with(R"("batch_input":[{"kind":"BATCH_ELEMENT_COUNT","target_name":["m","n"],
                "source_input":["x"]}])"),
         "batch_input: one target_name is expected, got 2"},
        {with(R"("batch_input":[{"kind":"BATCH_ELEMENT_COUNT","target_name":["m"]}])"),
         "batch_input: one source_input is expected, got 0"},
        {with(R"("batch_output":[{"target_name":["sum"]}])"),
         "batch_output: one source_input is expected, got 0"},
        {with(R"("batch_output":[{"source_input":["x"]}])"),
         "batch_output: one target_name is expected, got 0"},
        {with(R"("instance_group":[{"name":"g","profile":["1"]}])"),
         "profile 1 is asked for, and the engine has 1"},
        {with(accelerator("precision_mode", "BF16")),
         "precision_mode BF16 is refused: FP32 and FP16 are served"},
        {with(R"("parameters":{"threads":{"string_value":"0"}})"),
         "parameter 'threads': a number of 1 to 1048576 is expected, got '0'"},
        {with(R"("parameters":{"threads":{"string_value":"-1"}})"),
         "parameter 'threads': a number of 1 to 1048576 is expected, got '-1'"},
        {with(R"("parameters":{"threads":{"string_value":"99999999999999999999"}})"),
         "parameter 'threads': a number of 1 to 1048576 is expected, got '99999999999999999999'"},
        {with(R"("parameters":{"buckets":{"string_value":"2,2"}})"),
         "parameter 'buckets': each is larger than the one before, got '2,2'"},
        {with(R"("parameters":{"buckets":{"string_value":"1,x"}})"),
         "parameter 'buckets': a number of 1 to 1048576 is expected, got 'x'"},
    };
    EXPECT_GE(std::size(cases), 40U);
    for (const Refusal& c : cases) {
        SCOPED_TRACE(c.config);
        Scene scene(row_engine(8), c.config);
        ASSERT_EQ(scene.start_backend(), "");
        std::string text = scene.start_model();
        EXPECT_NE(text.find(c.text), std::string::npos) << text;
        EXPECT_NE(text.find("model 'model' version 1: "), std::string::npos) << text;
    }
}

// Each row of fields.def in a configuration: what is honoured, taken with a reason, or refused.
TEST(TritonConfig, FieldsOfOtherBackendsDoWhatTheTableSays) {
    const std::map<std::string, std::string> values = {
        {"batch_invariant", "false"},      {"buckets", "1,4"},
        {"precision_mode", "FP16"},        {"graph", R"({"level":1})"},
        {"priority", R"("PRIORITY_MAX")"}, {"cuda", R"({"graphs":true})"},
        {"eager_batching", "true"}};
    std::string engine = row_engine(8);
    for (const Field& f : fields()) {
        SCOPED_TRACE(f.name);
        auto found = values.find(f.name);
        std::string value = found == values.end() ? "2" : found->second;
        std::string field =
            f.place == Place::Parameter ? R"("parameters":{")" + std::string(f.name) +
                                              R"(":{"string_value":")" + value + R"("}})"
            : f.place == Place::Accelerator
                ? accelerator(f.name, value)
                : R"("optimization":{")" + std::string(f.name) + R"(":)" + value + "}";
        Scene scene(engine, with(field));
        ASSERT_EQ(scene.start_backend(), "");
        std::string text = scene.start_model();
        std::string said = "'" + std::string(f.name) + "' has no effect: " + f.reason;
        if (f.verdict == Verdict::Refused) {
            EXPECT_NE(text.find("'" + std::string(f.name) + "' is refused: " + f.reason),
                      std::string::npos)
                << text;
        } else {
            EXPECT_EQ(text, "");
            EXPECT_EQ(FakeHost::get().logged().find(said) != std::string::npos,
                      f.verdict == Verdict::Accepted)
                << FakeHost::get().logged();
        }
    }
}

TEST(TritonConfig, TheServersDefaultsAreNoNews) {
    Scene scene(row_engine(8),
                with(R"("optimization":{"priority":"PRIORITY_DEFAULT","input_pinned_memory":)"
                     R"({"enable":true},"output_pinned_memory":{"enable":true},)"
                     R"("gather_kernel_buffer_threshold":0,"eager_batching":false},)"
                     R"("cc_model_filenames":{},"parameters":{})"));
    ASSERT_EQ(scene.start_backend(), "");
    ASSERT_EQ(scene.start_model(), "");
    EXPECT_EQ(FakeHost::get().logged().find("no effect"), std::string::npos);
}

// The table of docs/serving.md is that of fields.def.
TEST(TritonConfig, TheDocumentHasTheTableOfFields) {
    std::ifstream file(source_dir() + "/docs/serving.md");
    std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    const char* const verdicts[] = {"honoured", "no effect", "refused"};
    for (const Field& f : fields()) {
        std::string row = "| `" + std::string(f.name) + "` | " +
                          verdicts[static_cast<size_t>(f.verdict)] + " | " + f.reason + " |";
        EXPECT_NE(text.find(row), std::string::npos) << row;
    }
}

TEST(TritonConfig, BytesThatAreNoEngineAreRefusedWithoutThePath) {
    Scene scene("no engine at all", "{}");
    ASSERT_EQ(scene.start_backend(), "");
    std::string text = scene.start_model();
    EXPECT_NE(text.find("file 'model.engine': "), std::string::npos) << text;
    EXPECT_EQ(text.find(scene.model.folder), std::string::npos) << "a path in " << text;
}

TEST(TritonConfig, PlansOfTensorRTAreToldApart) {
    for (const char* tag : {"ftrt", "ptrt"}) {
        Scene scene(tag + std::string(100, '\1'), "{}");
        ASSERT_EQ(scene.start_backend(), "");
        std::string text = scene.start_model();
        EXPECT_NE(text.find("it is a plan of NVIDIA's TensorRT, which runs there alone; build an "
                            "engine from the ONNX model: ingot build model.onnx -o model.engine"),
                  std::string::npos)
            << text;
    }
}

TEST(TritonConfig, OtherKindsOfInstancesAreRefused) {
    Scene scene(row_engine(8));
    scene.kind = TRITONSERVER_INSTANCEGROUPKIND_MODEL;
    EXPECT_EQ(scene.start(),
              "5 instance 'model_0': an instance of KIND_MODEL is configured: an engine does not "
              "choose its device, set kind: KIND_GPU or KIND_CPU in instance_group");
}

TEST(TritonConfig, ServersOfOtherVersionsAreRefused) {
    for (auto [major, minor] : {std::pair(1U, 18U), std::pair(2U, 0U)}) {
        Scene scene("");
        FakeHost::get().major = major;
        FakeHost::get().minor = minor;
        EXPECT_EQ(scene.start_backend(), "5 the server's backend API is " + std::to_string(major) +
                                             "." + std::to_string(minor) +
                                             ", this backend needs 1.19 or a later 1.x: use a "
                                             "server of release 24.10 or later");
    }
}

/// The server loads a model again before it has unloaded it (the fake host tells of metrics whose
/// labels exist already).
TEST(TritonConfig, LoadsThatOverlapShareTheirMetrics) {
    Scene scene(row_engine(4));
    ASSERT_EQ(scene.start(), "");
    TRITONBACKEND_Model again = scene.model;
    again.state = nullptr;
    ASSERT_EQ(text_of(TRITONBACKEND_ModelInitialize(&again)), "");
    auto request = row_request(1, 1);
    ASSERT_EQ(scene.execute({request.get()}), "");
    std::string runs = "ingot_runs{model=model,version=1}";
    EXPECT_EQ(FakeHost::get().values.at(runs), 1);
    ASSERT_EQ(text_of(TRITONBACKEND_ModelInstanceFinalize(scene.instances[0].get())), "");
    scene.instances.clear();
    ASSERT_EQ(text_of(TRITONBACKEND_ModelFinalize(&scene.model)), "");
    scene.model.state = nullptr;
    EXPECT_EQ(FakeHost::get().labelled.count(runs), 1U);
    ASSERT_EQ(text_of(TRITONBACKEND_ModelFinalize(&again)), "");
    EXPECT_TRUE(FakeHost::get().labelled.empty());
}

TEST(TritonConfig, WithoutMetricsTheModelServes) {
    Scene scene(row_engine(4));
    FakeHost::get().has_metrics = false;
    ASSERT_EQ(scene.start(), "");
    auto request = row_request(1, 1);
    ASSERT_EQ(scene.execute({request.get()}), "");
    expect_right(*request);
}

} // namespace
} // namespace ingot::triton
