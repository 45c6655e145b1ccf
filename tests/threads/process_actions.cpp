// SPDX-License-Identifier: Apache-2.0
#include "NvInferPlugin.h"
#include "threads/world.h"

#include <algorithm>
#include <cstring>

namespace ingot::test {
namespace {

/// Registers, deregisters, finds and lists plugins: in the registry of the process, and in those of
/// the shared builder and runtime, which fall back to it.
void registries(World& w, Worker& me) {
    nv::IPluginRegistry& process = *getPluginRegistry();
    nv::IPluginRegistry* all[] = {&process, &w.builder->getPluginRegistry(),
                                  &w.runtime->getPluginRegistry()};
    for (nv::IPluginRegistry* registry : all) {
        TwiceCreator own("Twice" + std::to_string(me.number));
        nv::IPluginCreatorInterface& creator = own;
        EXPECT_TRUE(registry->registerCreator(creator, "threads"));
        EXPECT_EQ(registry->getCreator(own.getPluginName(), "1", "threads"), &creator);
        EXPECT_EQ(registry->getCreator("Nobody", "1", ""), nullptr);
        EXPECT_TRUE(registry->isParentSearchEnabled());
        EXPECT_TRUE(registry->deregisterCreator(creator));
        // Creators that other threads register may be gone: reads the lists, not the creators.
        int32_t count = 0;
        nv::IPluginCreatorInterface* const* list = registry->getAllCreatorsRecursive(&count);
        me.pause();
        nv::IPluginCreatorInterface* twice = &w.twice;
        EXPECT_NE(std::find(list, list + count, twice), list + count);
        list = process.getAllCreators(&count);
        me.pause();
        EXPECT_NE(std::find(list, list + count, twice), list + count);
        nv::IPluginCreator* const* old = process.getPluginCreatorList(&count);
        me.pause();
        EXPECT_EQ(std::count(old, old + count, nullptr), 0);
    }
}

/// Counts what the registry made of it.
class Resource : public nv::IPluginResource {
public:
    int32_t release() noexcept override {
        delete this;
        return 0;
    }
    nv::IPluginResource* clone() noexcept override {
        return std::make_unique<Resource>().release();
    }
};

void resources(World&, Worker& me) {
    nv::IPluginRegistry& registry = *getPluginRegistry();
    std::string own = "of thread " + std::to_string(me.number);
    Resource prototype;
    for (const char* key : {"of all threads", own.c_str()}) {
        EXPECT_NE(registry.acquirePluginResource(key, &prototype), nullptr);
    }
    for (const char* key : {"of all threads", own.c_str()}) {
        EXPECT_EQ(registry.releasePluginResource(key), 0);
    }
}

/// An engine with a plugin: loading makes plugins, contexts attach to them and run them.
void plugins(World& w, Worker& me) {
    auto own = w.load(*w.plugged);
    ASSERT_NE(own, nullptr);
    nv::ICudaEngine& engine = me.below(2) == 0 ? *own : *w.plugged_engine;
    std::unique_ptr<nv::IExecutionContext> c(engine.createExecutionContext());
    ASSERT_NE(c, nullptr);
    own.reset();
    for (int64_t rows = 1; rows <= 3; ++rows) {
        run(*c, rows, w.value(2));
    }
}

void sources(World&, Worker& me) {
    std::string op = "Source" + std::to_string(me.number);
    CudaSource s = {op.c_str(), "extern \"C\" __global__ void f(const float* x, float* y) {}",
                    "f",        "float32[n] -> float32[n]",
                    nullptr,    "n",
                    "1"};
    EXPECT_TRUE(ingot::registerCudaSource("threads", op.c_str(), s));
    EXPECT_TRUE(ingot::deregisterCudaSource("threads", op.c_str()));
}

/// The library's version and cache folder.
void globals(World& w, Worker& me) {
    std::string folder = w.folder + "/kernels";
    EXPECT_TRUE(ingot::setCacheFolder(me.below(2) == 0 ? "" : folder.c_str()));
    const char* shown = ingot::getCacheFolder();
    me.pause();
    std::string now = shown;
    EXPECT_TRUE(now.empty() || now == folder) << now;
    EXPECT_EQ(getLogger(), &logger());
    EXPECT_EQ(getInferLibVersion(), NV_TENSORRT_VERSION);
    EXPECT_NE(ingot::version(), nullptr);
    EXPECT_TRUE(initLibNvInferPlugins(&logger(), ""));
    EXPECT_EQ(getBuilderPluginRegistry(nv::EngineCapability::kSTANDARD), getPluginRegistry());
}

} // namespace

std::span<const Action> process_actions() {
    static const Action all[] = {{"registries", registries},
                                 {"resources", resources},
                                 {"plugins", plugins},
                                 {"sources", sources},
                                 {"globals", globals}};
    return all;
}

} // namespace ingot::test
