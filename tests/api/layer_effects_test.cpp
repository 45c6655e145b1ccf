// SPDX-License-Identifier: Apache-2.0
// No setter of a layer or tensor is accepted silently: each changes the engine, fails the build, or
// logs a message; the others are listed with the test of their effect.
#include "api/layer_effects.h"
#include "base/file.h"
#include "source_dir.h"

#include <map>
#include <set>
#include <sstream>

namespace ingot::test {

namespace {

std::vector<LayerSetting> settings() {
    std::vector<LayerSetting> all = window_settings();
    for (const auto& more : {data_settings(), other_settings()}) {
        all.insert(all.end(), more.begin(), more.end());
    }
    return all;
}

/// Settings with an effect elsewhere: setter and its test, "file: words of it".
const std::map<std::string, std::string> elsewhere = {
    {"IAssertionLayer::setMessage", "api/layers_data_test.cpp: the assertion fails: three columns"},
    // Enumerations with one value.
    {"ICumulativeLayer::setOperation", "api/layer_settings_test.cpp: running->setOperation("},
    {"IKVCacheUpdateLayer::setCacheMode", "api/layer_settings_test.cpp: cache->setCacheMode("},
    // Deprecated; documented in the header as without effect.
    {"ITensor::setLocation", "../include/ingot/tensor.h: setLocation(TensorLocation location)"},
    {"ITensor::setBroadcastAcrossBatch",
     "../include/ingot/tensor.h: setBroadcastAcrossBatch(bool broadcastAcrossBatch)"},
};

struct Outcome {
    std::string engine;
    std::set<std::string> lines; // warnings, errors, and notes on settings without effect
};

Outcome outcome(const LayerSetting& s, bool changed) {
    OneLayer n;
    std::function<void()> change = s.make(n);
    if (changed) {
        change();
    }
    Outcome o{n.build(), {}};
    for (const auto& [severity, line] : n.scene.lines.all) {
        bool told = severity <= nv::ILogger::Severity::kWARNING;
        if (told || line.find(anyway) != std::string::npos) {
            o.lines.insert(line);
        }
    }
    return o;
}

TEST(LayerEffects, EachSettingChangesTheEngineOrSaysWhyNot) {
    for (const LayerSetting& s : settings()) {
        SCOPED_TRACE(s.setter);
        Outcome plain = outcome(s, false);
        EXPECT_FALSE(plain.engine.empty()) << (plain.lines.empty() ? "" : *plain.lines.begin());
        EXPECT_EQ(plain.engine, outcome(s, false).engine) << "two builds of one network differ";
        Outcome changed = outcome(s, true);
        EXPECT_TRUE(changed.engine != plain.engine || changed.lines != plain.lines)
            << "nothing changes, and nothing is said";
        EXPECT_TRUE(!changed.engine.empty() || !changed.lines.empty()) << "fails without a word";
    }
}

TEST(LayerEffects, EverySetterIsWalked) {
    std::set<std::string> known;
    for (const LayerSetting& s : settings()) {
        EXPECT_TRUE(known.insert(s.setter).second) << "twice: " << s.setter;
    }
    for (const auto& [setter, test] : elsewhere) {
        EXPECT_TRUE(known.insert(setter).second) << "twice: " << setter;
        size_t colon = test.find(": ");
        std::string source = read_text_file(str(source_dir(), "/tests/", test.substr(0, colon)));
        EXPECT_NE(source.find(test.substr(colon + 2)), std::string::npos) << setter << ": " << test;
    }
    // effects_test.cpp walks the setters of `configured`, plugins_test.cpp calls the others.
    std::istringstream text(read_text_file(source_dir() + "/tests/api/surface.def"));
    size_t count = 0;
    for (std::string line; std::getline(text, line);) {
        if (!line.starts_with("METHOD(")) {
            continue;
        }
        size_t comma = line.find(", ");
        size_t end = line.find_first_of(",)", comma + 2);
        std::string type = line.substr(0, comma);
        type = type.substr(type.rfind("::") + 2);
        std::string name = line.substr(comma + 2, end - comma - 2);
        if (name.starts_with("set") && !configured.contains(type) && !derived.contains(type)) {
            ++count;
            EXPECT_TRUE(known.contains(type + "::" + name)) << type << "::" << name;
        }
    }
    EXPECT_GT(count, 150U);
}

} // namespace

} // namespace ingot::test
