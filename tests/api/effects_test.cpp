// SPDX-License-Identifier: Apache-2.0
// No setting is accepted silently: each flag, and each setter of the objects that build, load and
// run, has a test of its effect (effects.def, and `proofs` here), or a message that it has none,
// with the reason (effects_messages.cpp).
#include "api/effects.h"
#include "api/tensorrt/builder/build_settings.h"
#include "backends/backends.h"
#include "base/file.h"
#include "base/text.h"
#include "source_dir.h"

#include <limits>
#include <map>
#include <regex>
#include <set>
#include <sstream>

namespace ingot::test {

namespace {

TEST(Effects, ASettingWithoutOneSaysSoOnce) {
    for (const Message& m : messages()) {
        SCOPED_TRACE(m.setting + ": " + m.line);
        Scene s;
        s.build();
        auto severity =
            m.line.find(anyway) != std::string::npos ? Severity::kINFO : Severity::kWARNING;
        EXPECT_EQ(s.lines.count(severity, m.line), 0) << "said without being asked";
        m.make(s);
        EXPECT_EQ(s.lines.count(severity, m.line), 1);
        for (const auto& [severity_of_line, line] : s.lines.all) {
            EXPECT_GT(severity_of_line, Severity::kERROR) << line;
        }
    }
}

// --- effects that are proved here ----------------------------------------------------------------

struct Proof {
    std::string setting;
    std::function<void(Scene&)> prove;
};

bool computes_in(const Engine& e, DType t) {
    const Graph& g = e.graph();
    return std::any_of(g.nodes().begin(), g.nodes().end(), [&](const Node& n) {
        return std::any_of(n.outputs.begin(), n.outputs.end(),
                           [&](Value v) { return g.type(v).dtype == t; });
    });
}

void expect_refused(Scene& s, const std::string& text) {
    EXPECT_EQ(s.build(), nullptr);
    EXPECT_EQ(s.lines.all.back().first, Severity::kERROR);
    EXPECT_EQ(s.lines.all.back().second, "IBuilder::buildSerializedNetwork: " + text);
}

std::vector<Proof> proofs() {
    return {
        {"BuilderFlag::kTF32",
         [](Scene& s) {
             EXPECT_TRUE(api::read_build_settings(*s.build()).tf32);
             s.config->clearFlag(Flag::kTF32);
             EXPECT_FALSE(api::read_build_settings(*s.build()).tf32);
         }},
        {"BuilderFlag::kBF16",
         [](Scene& s) {
             EXPECT_FALSE(computes_in(*s.build(), DType::BF16));
             s.config->setFlag(Flag::kBF16);
             EXPECT_TRUE(computes_in(*s.build(), DType::BF16));
         }},
        {"BuilderFlag::kSAFETY_SCOPE",
         [](Scene& s) {
             s.config->setFlag(Flag::kSAFETY_SCOPE);
             expect_refused(s, "kSAFETY_SCOPE is set; safety engines are not supported");
         }},
        {"BuilderFlag::kMONITOR_MEMORY",
         [](Scene& s) {
             s.build();
             EXPECT_FALSE(s.lines.has("[MemUsageStats] "));
             s.config->setFlag(Flag::kMONITOR_MEMORY);
             s.build();
             EXPECT_TRUE(s.lines.has("[MemUsageStats] "));
         }},
        {"BuilderFlag::kREQUIRE_USER_ALLOCATION",
         [](Scene& s) {
             s.config->setFlag(Flag::kREQUIRE_USER_ALLOCATION);
             EXPECT_NE(s.build(), nullptr);
             nv::ILayer* found =
                 s.network->addNonZero(*s.network->getInput(0), nv::DataType::kINT64);
             s.network->markOutput(*found->getOutput(0));
             EXPECT_EQ(s.build(), nullptr);
             EXPECT_TRUE(s.lines.has("kREQUIRE_USER_ALLOCATION is set, but layer"));
         }},
        {"IBuilderConfig::setEngineCapability",
         [](Scene& s) {
             s.config->setEngineCapability(nv::EngineCapability::kSAFETY);
             expect_refused(s, "the engine capability is not kSTANDARD; safety and DLA engines are "
                               "not supported");
         }},
        {"IBuilderConfig::setProfilingVerbosity",
         [](Scene& s) {
             s.config->setProfilingVerbosity(nv::ProfilingVerbosity::kDETAILED);
             EXPECT_EQ(s.load().getProfilingVerbosity(), nv::ProfilingVerbosity::kDETAILED);
         }},
        {"MemoryPoolType::kWORKSPACE",
         [](Scene& s) {
             s.config->setMemoryPoolLimit(nv::MemoryPoolType::kWORKSPACE, 1U << 30U);
             EXPECT_EQ(api::read_build_settings(*s.build()).workspace, 1 << 30);
         }},
        {"MemoryPoolType::kTACTIC_SHARED_MEMORY",
         [](Scene& s) {
             s.config->setMemoryPoolLimit(nv::MemoryPoolType::kTACTIC_SHARED_MEMORY, 48U << 10U);
             EXPECT_EQ(api::read_build_settings(*s.build()).shared_memory, 48 << 10);
         }},
        {"IRuntime::setMaxThreads",
         [](Scene& s) {
             EXPECT_TRUE(s.runtime->setMaxThreads(1));
             EXPECT_EQ(s.runtime->getMaxThreads(), 1);
             EXPECT_NE(s.run().getEngine().getNbLayers(), 0);
         }},
        {"OnnxParserFlag::kNATIVE_INSTANCENORM",
         [](Scene& s) {
             std::unique_ptr<nvonnxparser::IParser> p(
                 nvonnxparser::createParser(*s.network, s.lines));
             EXPECT_TRUE(p->getFlag(nvonnxparser::OnnxParserFlag::kNATIVE_INSTANCENORM));
             EXPECT_TRUE(p->supportsOperator("InstanceNormalization"));
         }},
        {"INetworkDefinition::setErrorRecorder",
         [](Scene& s) {
             Recorder recorder;
             s.network->setErrorRecorder(&recorder);
             EXPECT_EQ(s.network->addInput("", nv::DataType::kFLOAT, dims({1})), nullptr);
             EXPECT_EQ(recorder.getNbErrors(), 1);
             s.network->setErrorRecorder(nullptr);
         }},
        {"IEngineInspector::setErrorRecorder",
         [](Scene& s) {
             Recorder recorder;
             std::unique_ptr<nv::IEngineInspector> i(s.load().createEngineInspector());
             i->setErrorRecorder(&recorder);
             EXPECT_EQ(i->getLayerInformation(-1, nv::LayerInformationFormat::kJSON), nullptr);
             EXPECT_EQ(recorder.getNbErrors(), 1);
         }},
        {"IPluginRegistry::setErrorRecorder",
         [](Scene&) {
             Recorder recorder;
             nv::IPluginRegistry& registry = *getPluginRegistry();
             registry.setErrorRecorder(&recorder);
             EXPECT_EQ(registry.loadLibrary("/nonexistent.so"), nullptr);
             registry.setErrorRecorder(nullptr);
             EXPECT_EQ(recorder.getNbErrors(), 1);
         }},
        {"IRefitter::setWeightsValidation",
         [](Scene& s) {
             s.config->setFlag(Flag::kREFIT_IDENTICAL);
             std::unique_ptr<nv::IRefitter> r(nv::createInferRefitter(s.load(), s.lines));
             const char* name = nullptr;
             ASSERT_EQ(r->getAllWeights(1, &name), 1);
             std::array<float, 16> others{1, 2, 3};
             nv::Weights w{nv::DataType::kFLOAT, others.data(), 16};
             ASSERT_TRUE(r->setNamedWeights(name, w));
             EXPECT_FALSE(r->refitCudaEngine()); // the weights differ
             r->setWeightsValidation(false);
             ASSERT_TRUE(r->setNamedWeights(name, w));
             EXPECT_TRUE(r->refitCudaEngine());
         }},
        {"IExecutionContext::setName",
         [](Scene& s) {
             s.run().setName("mine");
             EXPECT_STREQ(s.context->getName(), "mine");
         }},
        {"INetworkDefinition::setName",
         [](Scene& s) {
             s.network->setName("mine");
             EXPECT_STREQ(s.load().getName(), "mine");
         }},
    };
}

TEST(Effects, OfTheseSettingsAreThere) {
    for (const Proof& p : proofs()) {
        SCOPED_TRACE(p.setting);
        Scene s;
        p.prove(s);
    }
}

TEST(Effects, StrictNansHaveNothingToDo) {
    // A size that a rewriting may turn into a constant.
    Scene s;
    s.config->setFlag(Flag::kSTRICT_NANS);
    s.network.reset(s.builder->createNetworkV2(0));
    nv::ITensor& x = *s.network->addInput("x", nv::DataType::kFLOAT, dims({1}));
    const float zero = 0;
    nv::ITensor& none_at_all =
        *s.network->addConstant(dims({1}), {nv::DataType::kFLOAT, &zero, 1})->getOutput(0);
    using Op = nv::ElementWiseOperation;
    auto add = [&](nv::ITensor& a, Op op, nv::ITensor& b) {
        s.network->markOutput(*s.network->addElementWise(a, b, op)->getOutput(0));
    };
    add(x, Op::kPROD, none_at_all);
    add(x, Op::kSUB, x);
    add(x, Op::kDIV, x);
    add(none_at_all, Op::kDIV, x);
    auto engine = s.build();
    ASSERT_NE(engine, nullptr);
    for (bool with_flag : {true, false}) {
        with_flag ? s.config->setFlag(Flag::kSTRICT_NANS) : s.config->clearFlag(Flag::kSTRICT_NANS);
        std::vector<Tensor> in = {Tensor::of<float>(
            DType::F32, {1}, std::array{std::numeric_limits<float>::quiet_NaN()})};
        for (const Tensor& t : Context(s.build(), cpu_backend()).run(in)) {
            EXPECT_TRUE(std::isnan(t.get_f64(0)));
        }
    }
}

// --- all of them ---------------------------------------------------------------------------------

struct Claim {
    const char* setting;
    const char* file;
    const char* suite;
    const char* test;
    const char* word;
};

const Claim claims[] = {
#define EFFECT(setting, file, suite, test, word) {#setting, file, #suite, #test, word},
#include "api/effects.def"
#undef EFFECT
};

/// The text of a test; "" for an unknown name.
std::string body_of(const Claim& c) {
    std::string source = read_text_file(str(source_dir(), "/tests/", c.file));
    for (const char* macro : {"TEST", "TEST_F", "TEST_P"}) {
        size_t at = source.find(str("\n", macro, "(", c.suite, ", ", c.test, ") {"));
        if (at != std::string::npos) {
            return source.substr(at, source.find("\n}\n", at) - at);
        }
    }
    return "";
}

TEST(Effects, EachClaimHasATestThatNamesTheSetting) {
    for (const Claim& c : claims) {
        std::string body = body_of(c);
        EXPECT_FALSE(body.empty()) << c.file << " has no test " << c.suite << '.' << c.test;
        EXPECT_NE(body.find(c.word), std::string::npos)
            << c.setting << ": " << c.suite << '.' << c.test << " does not mention " << c.word;
    }
}

std::set<std::string> covered() {
    std::set<std::string> all;
    for (const Claim& c : claims) {
        EXPECT_TRUE(all.insert(c.setting).second) << "twice: " << c.setting;
    }
    for (const Message& m : messages()) {
        all.insert(m.setting);
    }
    for (const Proof& p : proofs()) {
        EXPECT_TRUE(all.insert(p.setting).second) << "twice: " << p.setting;
    }
    return all;
}

/// Rows MACRO(first, second, ...) of the list of the public surface.
std::vector<std::array<std::string, 3>> surface(const std::string& macro) {
    std::vector<std::array<std::string, 3>> rows;
    std::istringstream text(read_text_file(source_dir() + "/tests/api/surface.def"));
    for (std::string whole; std::getline(text, whole);) {
        std::string_view line = whole;
        if (!line.starts_with(macro + "(")) {
            continue;
        }
        std::string_view inside = line.substr(macro.size() + 1);
        size_t first = inside.find(", ");
        size_t second = inside.find_first_of(",)", first + 2);
        size_t colons = inside.substr(0, first).rfind("::");
        rows.push_back({std::string(inside.substr(colons + 2, first - colons - 2)),
                        std::string(inside.substr(first + 2, second - first - 2)),
                        std::string(inside.substr(std::min(second + 2, inside.size())))});
    }
    return rows;
}

TEST(Effects, NoFlagIsWithoutAnEffectOrAMessage) {
    std::set<std::string> known = covered();
    std::map<std::string, int64_t> last; // of those that are walked
    last["BuilderFlag"] = nv::EnumMax<Flag>() - 1;
    last["NetworkDefinitionCreationFlag"] = nv::EnumMax<nv::NetworkDefinitionCreationFlag>() - 1;
    last["SerializationFlag"] = nv::EnumMax<nv::SerializationFlag>() - 1;
    last["QuantizationFlag"] = nv::EnumMax<nv::QuantizationFlag>() - 1;
    last["OnnxParserFlag"] = nvonnxparser::EnumMax<nvonnxparser::OnnxParserFlag>();
    last["MemoryPoolType"] = nv::EnumMax<nv::MemoryPoolType>() - 1;
    last["PreviewFeature"] = nv::EnumMax<nv::PreviewFeature>() - 1;
    std::map<std::string, std::set<int64_t>> named;
    for (const auto& [type, name, number] : surface("ENUMERATOR")) {
        if (!last.contains(type)) {
            continue;
        }
        int64_t value = std::stoll(number);
        if (value <= last[type]) { // others are aliases from older generations
            bool first = named[type].insert(value).second;
            EXPECT_TRUE(!first || known.contains(type + "::" + name))
                << type << "::" << name << ": neither effect nor message";
        }
    }
    for (const auto& [type, most] : last) {
        EXPECT_EQ(static_cast<int64_t>(named[type].size()), most + 1)
            << type << ": surface.def does not name each number";
    }
}

TEST(Effects, NoSetterIsWithoutAnEffectOrAMessage) {
    std::set<std::string> known = covered();
    std::set<std::string> missing;
    size_t count = 0;
    for (const auto& [type, name, rest] : surface("METHOD")) {
        if (configured.contains(type) && name.starts_with("set")) {
            ++count;
            if (!known.contains(type + "::" + name)) {
                missing.insert(type + "::" + name);
            }
        }
    }
    EXPECT_GT(count, 80U);
    EXPECT_EQ(missing, std::set<std::string>())
        << "each needs a row in tests/api/effects.def that names the test of its effect, or its "
           "message in effects_messages.cpp";
}

TEST(Effects, NoFunctionThatSetsIsWithoutAnEffectOrAMessage) {
    std::set<std::string> known = covered();
    std::string text = read_text_file(source_dir() + "/include/ingot.h");
    size_t count = 0;
    const std::regex setter(R"(\nstatic inline bool ((?:set|add)[A-Z]\w+)\()");
    for (std::sregex_iterator at(text.begin(), text.end(), setter), end; at != end; ++at) {
        ++count;
        EXPECT_TRUE(known.contains("ingot::" + at->str(1))) << at->str(1);
    }
    EXPECT_GT(count, 7U);
}

} // namespace

} // namespace ingot::test
