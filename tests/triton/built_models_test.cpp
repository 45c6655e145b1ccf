// SPDX-License-Identifier: Apache-2.0
// Engines that ONNX models were built to are kept for the next load.
#include "ingot.h"
#include "plugins/triton/built_models.h"
#include "source_dir.h"
#include "tests/triton/scene.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <thread>

namespace ingot::triton {
namespace {

namespace fs = std::filesystem;

void write(const std::string& path, std::string_view text) {
    std::ofstream(path, std::ios::binary) << text;
}

/// A cache and a version's folder, of their own.
class BuiltModels : public testing::Test {
protected:
    void SetUp() override {
        ASSERT_TRUE(setCacheFolder(cache_.path().c_str()));
        write(model(), "a model");
    }
    void TearDown() override {
        set_limit_of_built_models(BuiltModel::kept_bytes);
        setCacheFolder(nullptr);
    }
    std::string model() const { return folder_.path() + "/model.onnx"; }
    std::string built() const { return cache_.path() + "/built"; }
    /// The bytes kept for the model now; "" for none.
    std::string kept(bool fp16 = false, bool invariant = false) const {
        std::optional<BuiltModel::Kept> found = BuiltModel(model(), {fp16, invariant}).find();
        return found ? std::string(reinterpret_cast<const char*>(found->engine.data()),
                                   found->engine.size())
                     : "";
    }
    void keep(std::string_view engine, bool fp16 = false) const {
        BuiltModel(model(), {fp16, false})
            .keep(std::as_bytes(std::span(engine.data(), engine.size())));
    }
    std::vector<std::string> files() const {
        std::vector<std::string> out;
        for (const auto& entry : fs::directory_iterator(built())) {
            if (entry.path().extension() == ".engine") {
                out.push_back(entry.path().string());
            }
        }
        return out;
    }

    Folder cache_, folder_;
};

TEST_F(BuiltModels, AreFoundByContentChoicesAndData) {
    EXPECT_EQ(kept(), "");
    keep("engine");
    EXPECT_EQ(kept(), "engine");
    EXPECT_EQ(kept(true), "");
    EXPECT_EQ(kept(false, true), "") << "batch invariant";
    EXPECT_FALSE(BuiltModel(model(), {false, false, {"scale"}}).find()) << "an optional input";
    write(folder_.path() + "/model.data", "weights");
    EXPECT_EQ(kept(), "");
    keep("engine with weights");
    write(folder_.path() + "/model.data", "Weights");
    EXPECT_EQ(kept(), "");
    write(folder_.path() + "/model.data", "weights");
    EXPECT_EQ(kept(), "engine with weights");
    fs::remove(folder_.path() + "/model.data");
    EXPECT_EQ(kept(), "engine");
    write(model(), "another model");
    EXPECT_EQ(kept(), "");
}

TEST_F(BuiltModels, MovedFoldersFindTheirs) {
    keep("engine");
    Folder other;
    fs::copy(model(), other.path() + "/model.onnx");
    EXPECT_TRUE(BuiltModel(other.path() + "/model.onnx", {}).find());
}

TEST_F(BuiltModels, DamagedCutAndSwappedFilesAreNotUsed) {
    keep("engine");
    keep("engine of fp16", true);
    std::vector<std::string> both = files();
    ASSERT_EQ(both.size(), 2U);
    fs::rename(both[0], both[0] + ".aside");
    fs::rename(both[1], both[0]);
    fs::rename(both[0] + ".aside", both[1]);
    EXPECT_EQ(kept() + kept(true), "");
    keep("engine");
    for (size_t size = 0; size < 16; ++size) {
        for (const std::string& file : files()) {
            fs::resize_file(file, size);
        }
        EXPECT_EQ(kept(), "");
    }
    keep("engine");
    for (const std::string& file : files()) {
        std::fstream(file, std::ios::in | std::ios::out | std::ios::binary) << 'E';
    }
    EXPECT_EQ(kept(), "");
}

TEST_F(BuiltModels, WhatOthersMayWriteIsNotUsed) {
    keep("engine");
    ASSERT_EQ(files().size(), 1U);
    struct stat s {};
    ASSERT_EQ(stat(built().c_str(), &s), 0);
    EXPECT_EQ(s.st_mode & 0777U, 0700U);
    chmod(files()[0].c_str(), 0666);
    EXPECT_EQ(kept(), "");
    chmod(files()[0].c_str(), 0600);
    EXPECT_EQ(kept(), "engine");
    chmod(built().c_str(), 0777);
    EXPECT_EQ(kept(), "");
}

TEST_F(BuiltModels, ProblemsOfTheFolderFailNothing) {
    setCacheFolder("");
    keep("engine");
    EXPECT_EQ(kept(), "");
    ASSERT_TRUE(setCacheFolder(cache_.path().c_str()));
    write(built(), "a file where the folder should be");
    keep("engine");
    EXPECT_EQ(kept(), "");
}

TEST_F(BuiltModels, TheLeastRecentlyUsedMakeRoom) {
    constexpr size_t digest = 16;
    std::string engine(1000, 'e');
    set_limit_of_built_models(static_cast<int64_t>(3 * (engine.size() + digest)));
    for (int i = 0; i < 3; ++i) {
        write(model(), "model " + std::to_string(i));
        keep(engine);
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    write(model(), "model 0");
    EXPECT_EQ(kept(), engine); // model 1 is now the oldest
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    write(model(), "model 3");
    keep(engine);
    EXPECT_EQ(files().size(), 3U);
    EXPECT_EQ(kept(), engine);
    write(model(), "model 0");
    EXPECT_EQ(kept(), engine);
    write(model(), "model 1");
    EXPECT_EQ(kept(), "");
    keep(std::string(5000, 'x')); // more than all may take
    EXPECT_EQ(files().size(), 3U);
}

TEST_F(BuiltModels, TheSecondLoadBuildsNothing) {
    for (bool is_second : {false, true}) {
        FakeHost::get().reset();
        Scene scene("");
        fs::remove(scene.model.folder + "/1/model.engine");
        fs::copy(source_dir() + "/examples/digits/digits.onnx",
                 scene.model.folder + "/1/model.onnx");
        EXPECT_EQ(scene.start(), "");
        std::string said = FakeHost::get().logged();
        EXPECT_EQ(said.find("is the one kept in ") != std::string::npos, is_second) << said;
        EXPECT_EQ(files().size(), 1U);
    }
}

} // namespace
} // namespace ingot::triton
