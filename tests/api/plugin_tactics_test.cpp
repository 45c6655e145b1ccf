// SPDX-License-Identifier: Apache-2.0
// A plugin's own tactics: the choice of a build, where it is stored, and that runs receive it. No
// test depends on times: tactics that fail cannot win, and timings come from tables.
#include "api/plugin_fixture.h"
#include "api/tensorrt/plugin/tactics.h"
#include "cache/timing_cache.h"

namespace ingot::test {
namespace {

/// y = x + the number of the tactic.
class Choosy : public TestPlugin {
public:
    static constexpr const char* name = "Choosy";
    static inline std::vector<int32_t> tactics;
    static inline std::vector<int32_t> failing;
    static inline std::vector<int32_t> ran; // the tactics of runs, in order
    static inline const char* cache_id = nullptr;
    static inline int32_t format_limit = 1;
    static std::vector<nv::PluginField> attributes() { return {}; }
    static bool set(const nv::PluginField&) { return true; }

    nv::IPluginV3* clone() noexcept override { return new Choosy(*this); }
    const char* getPluginName() const noexcept override { return name; }
    int32_t getNbTactics() noexcept override { return static_cast<int32_t>(tactics.size()); }
    int32_t getValidTactics(int32_t* list, int32_t count) noexcept override {
        std::copy(tactics.begin(), tactics.begin() + count, list);
        return 0;
    }
    const char* getTimingCacheID() noexcept override { return cache_id; }
    int32_t getFormatCombinationLimit() noexcept override { return format_limit; }
    int32_t setTactic(int32_t tactic) noexcept override {
        tactic_ = tactic;
        return 0;
    }
    int32_t work(const nv::PluginTensorDesc* in, const nv::PluginTensorDesc*,
                 const void* const* inputs, void* const* outputs, void*) noexcept override {
        ran.push_back(tactic_);
        for (int64_t i = 0; i < volume(in[0].dims); ++i) {
            static_cast<float*>(outputs[0])[i] =
                static_cast<const float*>(inputs[0])[i] + static_cast<float>(tactic_);
        }
        return std::count(failing.begin(), failing.end(), tactic_) > 0 ? 1 : 0;
    }

private:
    int32_t tactic_ = 0;
};

class PluginTactics : public PluginTest {
protected:
    PluginTactics() {
        Choosy::tactics = {3, 5, 9};
        Choosy::failing.clear();
        Choosy::ran.clear();
        Choosy::cache_id = nullptr;
        Choosy::format_limit = 1;
        setDevice(*config, GetParam() ? Device::kGPU : Device::kCPU);
    }
    void SetUp() override {
        if (real::is_asked_for()) {
            GTEST_SKIP() << "the plugin computes on the host, builds time it on the device";
        }
    }
    bool make(std::initializer_list<int64_t> shape = {2}) {
        network.reset(builder->createNetworkV2(0));
        Choosy plugin;
        return add({&input("x", shape)}, plugin) && build();
    }
    /// The tactic of a run, from its result and from the plugin's log.
    int32_t tactic_of_run() {
        if (!load_engine()) {
            return -1;
        }
        Choosy::failing.clear();
        Choosy::ran.clear();
        feed<float>("x", {2}, {100, 200});
        std::vector<float> y = run<float>(2);
        EXPECT_EQ(y[1] - y[0], 100);
        EXPECT_EQ(Choosy::ran, std::vector<int32_t>{static_cast<int32_t>(y[0]) - 100});
        return static_cast<int32_t>(y[0]) - 100;
    }
    Registered<Choosy> registered;
};

TEST(FastestTactic, IsTheFirstOfTheLeastTimeThatCouldRun) {
    std::vector<int32_t> tactics = {4, 7, 2, 8};
    std::map<int32_t, double> table = {{4, 2.5}, {7, 0.5}, {2, 0.5}, {8, 1}};
    std::vector<int32_t> asked;
    auto clock = [&](int32_t t) {
        asked.push_back(t);
        return table[t];
    };
    auto best = api::fastest_tactic(tactics, clock);
    ASSERT_TRUE(best.has_value());
    EXPECT_EQ(best->tactic, 7);
    EXPECT_EQ(best->ms, 0.5);
    EXPECT_EQ(asked, tactics);
    table[7] = table[2] = -1;
    EXPECT_EQ(api::fastest_tactic(tactics, clock)->tactic, 8);
    table[4] = table[8] = -1;
    EXPECT_FALSE(api::fastest_tactic(tactics, clock).has_value());
    EXPECT_FALSE(api::fastest_tactic({}, clock).has_value());
}

TEST_P(PluginTactics, AreTimedByTheBuildAndTheBestOneIsHeld) {
    ASSERT_TRUE(make()) << logger.take_error();
    for (int32_t t : Choosy::tactics) { // one run that warms up, then four
        EXPECT_EQ(std::count(Choosy::ran.begin(), Choosy::ran.end(), t), 5) << t;
    }
    EXPECT_EQ(std::count(Choosy::tactics.begin(), Choosy::tactics.end(), tactic_of_run()), 1);
    EXPECT_TRUE(config->getTimingCache() == nullptr ||
                config->getTimingCache()->queryKeys(nullptr, 0) == 0); // it has no cache ID

    Choosy::failing = {3, 5};
    ASSERT_TRUE(make()) << logger.take_error();
    EXPECT_EQ(tactic_of_run(), 9);
    Choosy::failing = {3, 5, 9};
    ASSERT_TRUE(make()) << logger.take_error();
    EXPECT_EQ(tactic_of_run(), 3); // none could be timed: the first
    Choosy::tactics = {7};
    ASSERT_TRUE(make()) << logger.take_error();
    EXPECT_TRUE(Choosy::ran.empty() || Choosy::ran.size() == 1); // there is nothing to choose
    EXPECT_EQ(tactic_of_run(), 7);
    Choosy::tactics = {};
    ASSERT_TRUE(make()) << logger.take_error();
    EXPECT_EQ(tactic_of_run(), 0);
}

TEST_P(PluginTactics, StayInTheTimingCache) {
    Choosy::cache_id = "adds";
    config->setFlag(nv::BuilderFlag::kEDITABLE_TIMING_CACHE);
    std::unique_ptr<nv::ITimingCache> cache(config->createTimingCache(nullptr, 0));
    ASSERT_TRUE(config->setTimingCache(*cache, false));
    Choosy::failing = {3, 9};
    ASSERT_TRUE(make()) << logger.take_error();
    EXPECT_EQ(tactic_of_run(), 5);
    nv::ITimingCache& filled = const_cast<nv::ITimingCache&>(*config->getTimingCache());
    ASSERT_EQ(filled.queryKeys(nullptr, 0), 1);
    nv::TimingCacheKey key{};
    filled.queryKeys(&key, 1);
    EXPECT_EQ(filled.query(key).tacticHash, plan::tactic_hash("plugin tactic 5"));

    // From here on nothing is timed.
    config->setFlag(nv::BuilderFlag::kERROR_ON_TIMING_CACHE_MISS);
    Choosy::ran.clear();
    ASSERT_TRUE(make()) << logger.take_error();
    EXPECT_TRUE(Choosy::ran.empty() || GetParam()); // a build for a GPU runs the engine once
    EXPECT_EQ(std::count(Choosy::ran.begin(), Choosy::ran.end(), 3), 0);
    EXPECT_EQ(tactic_of_run(), 5);
    ASSERT_TRUE(filled.update(key, {plan::tactic_hash("plugin tactic 9"), 0.25F}));
    ASSERT_TRUE(make()) << logger.take_error();
    EXPECT_EQ(tactic_of_run(), 9);

    // Another ID, shape or list is another problem.
    Choosy::cache_id = "other";
    EXPECT_FALSE(make());
    EXPECT_NE(logger.take_error().find("the timing cache has no entry for the tactics of plugin "
                                       "'Choosy' version '1'"),
              std::string::npos);
    Choosy::cache_id = "adds";
    EXPECT_FALSE(make({3}));
    Choosy::tactics = {3, 9};
    EXPECT_FALSE(make());
    logger.take_error();
    Choosy::cache_id = nullptr; // a problem that the cache cannot hold is timed
    Choosy::failing = {3};
    ASSERT_TRUE(make()) << logger.take_error();
    EXPECT_EQ(tactic_of_run(), 9);
}

TEST_P(PluginTactics, AreTimedAtTheExpectedSizes) {
    Choosy::failing = {3, 5};
    network.reset(builder->createNetworkV2(0));
    Choosy plugin;
    ASSERT_TRUE(add({&input("x", {-1})}, plugin));
    ASSERT_TRUE(build()) << logger.take_error();
    EXPECT_TRUE(Choosy::ran.empty());
    EXPECT_EQ(tactic_of_run(), 3); // the size of x is unknown

    Choosy::failing = {3, 5};
    nv::IOptimizationProfile* p = builder->createOptimizationProfile();
    p->setDimensions("x", nv::OptProfileSelector::kMIN, dims({1}));
    p->setDimensions("x", nv::OptProfileSelector::kOPT, dims({2}));
    p->setDimensions("x", nv::OptProfileSelector::kMAX, dims({8}));
    config->addOptimizationProfile(p);
    ASSERT_TRUE(build()) << logger.take_error();
    EXPECT_EQ(tactic_of_run(), 9);
}

TEST_P(PluginTactics, AndFormatsAreChecked) {
    Choosy::tactics = {3, 0};
    EXPECT_FALSE(make());
    EXPECT_NE(logger.take_error().find("IPluginV3OneBuild::getValidTactics() gave 0, which stands "
                                       "for the tactic of a plugin that names none"),
              std::string::npos);
    Choosy::tactics = {3, 4, 3};
    EXPECT_FALSE(make());
    EXPECT_NE(logger.take_error().find("getValidTactics() gave 3 twice"), std::string::npos);
    Choosy::tactics = {};
    Choosy::format_limit = 0;
    EXPECT_FALSE(make());
    EXPECT_NE(logger.take_error().find("IPluginV3OneBuild::getFormatCombinationLimit() returned 0, "
                                       "expected at least 1"),
              std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Devices, PluginTactics, testing::Bool(), [](const auto& place) {
    return std::string(place.param ? "Gpu" : "Cpu");
});

} // namespace
} // namespace ingot::test
