// SPDX-License-Identifier: Apache-2.0
// The registry of plugins: creators by namespace, name and version; shared resources.
#include "api/runtime_fixture.h"

namespace ingot::test {
namespace {

using nvinfer1::AsciiChar;

class Creator : public nvinfer1::IPluginCreatorV3One {
public:
    Creator(const char* name, const char* version) : name_(name), version_(version) {}
    nvinfer1::IPluginV3* createPlugin(const AsciiChar*, const nvinfer1::PluginFieldCollection*,
                                      nvinfer1::TensorRTPhase) noexcept override {
        return nullptr;
    }
    const nvinfer1::PluginFieldCollection* getFieldNames() noexcept override { return &fields_; }
    const AsciiChar* getPluginName() const noexcept override { return name_; }
    const AsciiChar* getPluginVersion() const noexcept override { return version_; }
    const AsciiChar* getPluginNamespace() const noexcept override { return ""; }

private:
    const char* name_;
    const char* version_;
    nvinfer1::PluginFieldCollection fields_;
};

class OldCreator : public nvinfer1::IPluginCreator {
public:
    const AsciiChar* getPluginName() const noexcept override { return "Old"; }
    const AsciiChar* getPluginVersion() const noexcept override { return "1"; }
    const nvinfer1::PluginFieldCollection* getFieldNames() noexcept override { return nullptr; }
    nvinfer1::IPluginV2* createPlugin(const AsciiChar*,
                                      const nvinfer1::PluginFieldCollection*) noexcept override {
        return nullptr;
    }
    nvinfer1::IPluginV2* deserializePlugin(const AsciiChar*, const void*,
                                           size_t) noexcept override {
        return nullptr;
    }
    void setPluginNamespace(const AsciiChar* n) noexcept override { space_ = n; }
    const AsciiChar* getPluginNamespace() const noexcept override { return space_.c_str(); }

private:
    std::string space_;
};

class Resource : public nvinfer1::IPluginResource {
public:
    int32_t release() noexcept override {
        --*live_;
        delete this;
        return 0;
    }
    nvinfer1::IPluginResource* clone() noexcept override {
        ++*live_;
        return new Resource(live_);
    }
    explicit Resource(int* live) : live_(live) {}

private:
    int* live_;
};

TEST(PluginRegistry, FindsCreators) {
    nvinfer1::IPluginRegistry& registry = *getPluginRegistry();
    EXPECT_EQ(&registry, getPluginRegistry());
    int32_t before = 0;
    registry.getAllCreators(&before);
    Creator a("Swish", "1");
    Creator b("Swish", "2");
    Creator again("Swish", "1");
    OldCreator old;
    EXPECT_TRUE(registry.registerCreator(a, ""));
    EXPECT_TRUE(registry.registerCreator(b, ""));
    EXPECT_FALSE(registry.registerCreator(again, ""));
    EXPECT_TRUE(registry.registerCreator(again, "mine"));
    EXPECT_TRUE(registry.registerCreator(old, "mine"));
    EXPECT_STREQ(old.getPluginNamespace(), "mine");
    EXPECT_EQ(registry.getCreator("Swish", "1", ""), &a);
    EXPECT_EQ(registry.getCreator("Swish", "2"), &b);
    EXPECT_EQ(registry.getCreator("Swish", "1", "mine"), &again);
    EXPECT_EQ(registry.getCreator("Swish", "3"), nullptr);
    EXPECT_EQ(registry.getPluginCreator("Old", "1", "mine"), &old);
    EXPECT_EQ(registry.getPluginCreator("Swish", "1", ""), nullptr); // of a newer kind
    int32_t count = 0;
    registry.getAllCreators(&count);
    EXPECT_EQ(count, before + 4);
    nvinfer1::IPluginCreator* const* list = registry.getPluginCreatorList(&count);
    ASSERT_EQ(count, 1);
    EXPECT_EQ(list[0], &old);
    for (nvinfer1::IPluginCreatorInterface* c :
         {static_cast<nvinfer1::IPluginCreatorInterface*>(&a),
          static_cast<nvinfer1::IPluginCreatorInterface*>(&b),
          static_cast<nvinfer1::IPluginCreatorInterface*>(&again),
          static_cast<nvinfer1::IPluginCreatorInterface*>(&old)}) {
        EXPECT_TRUE(registry.deregisterCreator(*c));
        EXPECT_FALSE(registry.deregisterCreator(*c));
    }
    registry.getAllCreators(&count);
    EXPECT_EQ(count, before);
    EXPECT_EQ(registry.loadLibrary("/no/such/library.so"), nullptr);
}

TEST(PluginRegistry, LibrariesBringCreatorsAndTakeThemAlong) {
    std::unique_ptr<nvinfer1::IRuntime> runtime(nvinfer1::createInferRuntime(shared_logger()));
    nvinfer1::IPluginRegistry& registry = runtime->getPluginRegistry();
    nvinfer1::IPluginRegistry::PluginLibraryHandle library = registry.loadLibrary(PLUGIN_LIBRARY);
    ASSERT_NE(library, nullptr);
    nvinfer1::IPluginCreatorInterface* creator = registry.getCreator("Offset", "1", "");
    ASSERT_NE(creator, nullptr);
    EXPECT_STREQ(creator->getInterfaceInfo().kind, "PLUGIN CREATOR_V3ONE");
    EXPECT_EQ(getPluginRegistry()->getCreator("Offset", "1", ""), nullptr);
    EXPECT_EQ(registry.loadLibrary(PLUGIN_LIBRARY), nullptr);
    registry.deregisterLibrary(library);
    EXPECT_EQ(registry.getCreator("Offset", "1", ""), nullptr);
    EXPECT_NE(registry.loadLibrary(PLUGIN_LIBRARY), nullptr);
}

TEST(PluginRegistry, ResourcesAreShared) {
    nvinfer1::IPluginRegistry& registry = *getPluginRegistry();
    int live = 0;
    Resource mine(&live);
    nvinfer1::IPluginResource* first = registry.acquirePluginResource("handle", &mine);
    ASSERT_NE(first, nullptr);
    EXPECT_NE(first, &mine);
    EXPECT_EQ(registry.acquirePluginResource("handle", &mine), first);
    EXPECT_EQ(live, 1);
    EXPECT_EQ(registry.releasePluginResource("handle"), 0);
    EXPECT_EQ(live, 1);
    EXPECT_EQ(registry.releasePluginResource("handle"), 0);
    EXPECT_EQ(live, 0);
    EXPECT_NE(registry.releasePluginResource("handle"), 0);
    EXPECT_EQ(registry.acquirePluginResource(nullptr, &mine), nullptr);
}

} // namespace
} // namespace ingot::test
