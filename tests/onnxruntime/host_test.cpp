// SPDX-License-Identifier: Apache-2.0
// The plugin against a host that is no ONNX Runtime: versions, exceptions, texts.
#include "plugins/onnxruntime/compatibility.h"
#include "plugins/onnxruntime/factory.h"
#include "plugins/onnxruntime/proto.h"
#include "plugins/onnxruntime/run_settings.h"

#include <gtest/gtest.h>

#include <map>
#include <stdexcept>

namespace ingot::ort {
namespace {

struct FakeStatus {
    OrtErrorCode code;
    std::string text;
};

FakeStatus* fake(OrtStatus* s) {
    return reinterpret_cast<FakeStatus*>(s);
}

const OrtApi& fake_api() {
    static const OrtApi api = [] {
        OrtApi a{};
        a.CreateStatus = [](OrtErrorCode code, const char* text) {
            return reinterpret_cast<OrtStatus*>(new FakeStatus{code, text});
        };
        a.GetErrorCode = [](const OrtStatus* s) {
            return reinterpret_cast<const FakeStatus*>(s)->code;
        };
        a.GetErrorMessage = [](const OrtStatus* s) {
            return reinterpret_cast<const FakeStatus*>(s)->text.c_str();
        };
        a.ReleaseStatus = [](OrtStatus* s) { delete fake(s); };
        return a;
    }();
    return api;
}

Host fake_host() {
    Host host;
    host.api = &fake_api();
    host.version = newest_api;
    return host;
}

std::string text_and_release(OrtStatus* status) {
    if (status == nullptr) {
        return "";
    }
    std::string text = str(static_cast<int>(fake(status)->code), " ", fake(status)->text);
    delete fake(status);
    return text;
}

TEST(RunOptions, AreReadFromTheRun) {
    static std::map<std::string, std::string> entries;
    OrtApi api = fake_api();
    api.GetRunConfigEntry = [](const OrtRunOptions*, const char* key) -> const char* {
        auto it = entries.find(key);
        return it == entries.end() ? nullptr : it->second.c_str();
    };
    Host host = fake_host();
    host.api = &api;
    auto read = [&](std::map<std::string, std::string> given, int32_t device) {
        entries = std::move(given);
        return read_run_options(host, nullptr, device);
    };
    constexpr const char* shrink = "memory.enable_memory_arena_shrinkage";
    RunOptions none = read({}, 0);
    EXPECT_TRUE(!none.profile && none.graph == 0 && !none.shrinks);
    RunOptions all =
        read({{"nv_profile_index", "2"}, {"gpu_graph_id", "-1"}, {shrink, "gpu:1"}}, 1);
    EXPECT_TRUE(all.profile == 2 && all.graph == -1 && all.shrinks);
    EXPECT_TRUE(read({{shrink, "cpu:0;gpu:1"}}, 1).shrinks);
    EXPECT_FALSE(read({{shrink, "cpu:0;gpu:1"}}, 0).shrinks); // of another GPU
    EXPECT_FALSE(read({{shrink, "gpu:11"}}, 1).shrinks);
    EXPECT_FALSE(read({{shrink, "gpu:0"}}, -1).shrinks); // on the CPU
    EXPECT_EQ(read({{"gpu_graph_id", "3"}, {"cuda_graph_annotation_id", "3"}}, 0).graph, 3);
}

TEST(Host, ReleaseGivesTheVersion) {
    EXPECT_EQ(api_of_release("1.24.1"), 24U);
    EXPECT_EQ(api_of_release("1.31.1"), 31U);
    EXPECT_EQ(api_of_release("1.131"), 131U);
    for (const char* bad : {"", "1", "1.", "2.24.0", "1.x", "1.24x"}) {
        EXPECT_EQ(api_of_release(bad), 0U) << bad;
    }
}

TEST(Host, ExceptionsBecomeStatuses) {
    Host host = fake_host();
    EXPECT_EQ(guard(host, [] {}), nullptr);
    EXPECT_EQ(text_and_release(guard(host, [] { fail(ErrorCode::InvalidArgument, "a is ", 1); })),
              "2 [NvTensorRTRTX EP] a is 1");
    EXPECT_EQ(text_and_release(guard(host, [] { fail(ErrorCode::Unsupported, "b"); })),
              "9 [NvTensorRTRTX EP] b");
    // Names in a damaged model may be any bytes; the host's languages want UTF-8.
    EXPECT_EQ(text_and_release(guard(
                  host, [] { fail(ErrorCode::Unsupported, "n\xc3\xa9\xff\xe2\x82 \xc0\x80"); })),
              "9 [NvTensorRTRTX EP] n\xc3\xa9??? ??");
    EXPECT_EQ(text_and_release(guard(host, [] { throw std::bad_alloc(); })),
              "1 [NvTensorRTRTX EP] out of host memory");
    EXPECT_EQ(text_and_release(guard(host, [] { throw std::runtime_error("c"); })), "1 c");
    EXPECT_EQ(text_and_release(guard(host, [] { throw 3; })),
              "1 [NvTensorRTRTX EP] unknown exception");
}

TEST(Host, StatusesBecomeExceptions) {
    Host host = fake_host();
    EXPECT_NO_THROW(host.check(nullptr));
    try {
        host.check(host.status(ORT_INVALID_ARGUMENT, "no such thing"));
        FAIL() << "nothing was thrown";
    } catch (const Error& e) {
        EXPECT_EQ(e.code(), ErrorCode::InvalidArgument);
        EXPECT_EQ(e.message(), "no such thing");
    }
}

TEST(Factory, NameIsTheProvidersUnlessTheRegistrationIsOneThatPythonKnows) {
    EXPECT_EQ(provider_name("nv_tensorrt_rtx"), "NvTensorRTRTXExecutionProvider");
    EXPECT_EQ(provider_name("x.virtual"), "NvTensorRTRTXExecutionProvider");
    EXPECT_EQ(provider_name("IngotExecutionProvider"), "IngotExecutionProvider");
    EXPECT_EQ(provider_name("NvTensorRtRtxExecutionProvider.virtual"),
              "NvTensorRtRtxExecutionProvider");
    EXPECT_TRUE(is_our_source("IngotExecutionProvider"));
    EXPECT_FALSE(is_our_source("QNNExecutionProvider"));
}

TEST(Compatibility, TextsAreJudged) {
    Options any;
    Options two;
    two.nv_target_sm = "sm86, sm120";
    EXPECT_EQ(compatibility_text(any, {}), "ingot engines=1 kernels=any");
    EXPECT_EQ(compatibility_text(two, {}), "ingot engines=1 kernels=sm86,sm120");
    EXPECT_EQ(judge_compatibility("", 90), OrtCompiledModelCompatibility_EP_NOT_APPLICABLE);
    EXPECT_EQ(judge_compatibility("ingot engines=1 kernels=any", 90),
              OrtCompiledModelCompatibility_EP_SUPPORTED_OPTIMAL);
    EXPECT_EQ(judge_compatibility("ingot engines=1 kernels=sm86,sm120", 120),
              OrtCompiledModelCompatibility_EP_SUPPORTED_OPTIMAL);
    EXPECT_EQ(judge_compatibility("ingot engines=1 kernels=sm86,sm120", 12),
              OrtCompiledModelCompatibility_EP_SUPPORTED_PREFER_RECOMPILATION);
    EXPECT_EQ(judge_compatibility("ingot engines=2 kernels=any", 90),
              OrtCompiledModelCompatibility_EP_UNSUPPORTED);
    EXPECT_EQ(judge_compatibility(std::string(128, 'a'), 90),
              OrtCompiledModelCompatibility_EP_UNSUPPORTED);
}

TEST(Proto, FieldsAreWrittenAsProtobufHasThem) {
    Proto inner;
    inner.text(1, "n").integer(2, 300).real(3, 1.0F).integer(4, -1);
    EXPECT_EQ(inner.bytes(), std::string("\x0a\x01n\x10\xac\x02\x1d\x00\x00\x80\x3f\x20"
                                         "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
                                         22));
    EXPECT_EQ(Proto().message(16, Proto().text(1, "")).bytes(),
              std::string("\x82\x01\x02\x0a\x00", 5));
}

} // namespace
} // namespace ingot::ort

// --- the library's two functions -----------------------------------------------------------------

extern "C" ingot::ort::OrtStatus* CreateEpFactories(const char*, const ingot::ort::OrtApiBase*,
                                                    const ingot::ort::OrtLogger*,
                                                    ingot::ort::OrtEpFactory**, size_t, size_t*);

namespace ingot::ort {
namespace {

TEST(Plugin, HostThatIsTooOldIsToldWhatToInstall) {
    static uint32_t asked = 0;
    OrtApiBase base{};
    base.GetVersionString = [] { return "1.23.2"; };
    base.GetApi = [](uint32_t version) {
        asked = version;
        return version <= 23 ? &fake_api() : nullptr;
    };
    OrtEpFactory* factory = nullptr;
    size_t made = 7;
    EXPECT_EQ(text_and_release(CreateEpFactories("x", &base, nullptr, &factory, 4, &made)),
              "1 [NvTensorRTRTX EP] ONNX Runtime is 1.23.2, expected 1.24 or newer: pip install "
              "--upgrade onnxruntime");
    EXPECT_EQ(made, 0U);
    EXPECT_EQ(asked, 23U);
}

} // namespace
} // namespace ingot::ort
