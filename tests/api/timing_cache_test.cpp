// SPDX-License-Identifier: Apache-2.0
// Timing caches: their entries, allowed changes, and builds on an emulated GPU that fill them.
#include "api/network_fixture.h"
#include "api/real_gpu.h"
#include "api/tensorrt/builder/build_settings.h"
#include "api/tensorrt/runtime/place.h"
#include "backends/backends.h"
#include "backends/cuda/backend.h"
#include "base/process.h"
#include "emulator/emulated_gpu.h"
#include "ingot.h"

#include <filesystem>
#include <limits>

namespace ingot::test {

namespace {

class TimingCacheTest : public NetworkTest {
protected:
    TimingCacheTest() { setCacheFolder(""); }
    ~TimingCacheTest() override {
        api::set_gpu(nullptr);
        setCacheFolder(nullptr);
    }
    void use_gpu() {
        if (real::is_asked_for()) {
            return;
        }
        gpu = std::make_unique<emulator::EmulatedGpu>(90);
        backend = cuda::make_backend(*gpu);
        api::set_gpu(backend.get());
    }
    std::unique_ptr<nv::ITimingCache> cache_of(const std::string& text) {
        return std::unique_ptr<nv::ITimingCache>(
            config->createTimingCache(text.data(), text.size()));
    }
    static std::string text_of(const nv::ITimingCache& cache) {
        std::unique_ptr<nv::IHostMemory> bytes(cache.serialize());
        return {static_cast<const char*>(bytes->data()), bytes->size()};
    }
    static std::vector<nv::TimingCacheKey> keys_of(const nv::ITimingCache& cache) {
        std::vector<nv::TimingCacheKey> keys(static_cast<size_t>(cache.queryKeys(nullptr, 0)));
        cache.queryKeys(keys.data(), static_cast<int64_t>(keys.size()));
        return keys;
    }
    /// y = x w, of a size with several good tactics.
    void product() {
        nv::ITensor& x = input("x", {16, 64});
        network->markOutput(*network
                                 ->addMatrixMultiply(x, nv::MatrixOperation::kNONE,
                                                     constant(numbers({64, 64})),
                                                     nv::MatrixOperation::kNONE)
                                 ->getOutput(0));
    }
    const std::string two =
        plan::print_timings({{"gpu\tfirst", {"mma 64", 250}}, {"gpu\tsecond", {"simt", 1000}}});
    std::unique_ptr<emulator::EmulatedGpu> gpu;
    std::unique_ptr<Backend> backend;
};

TEST_F(TimingCacheTest, entries_are_read_asked_for_and_written) {
    std::unique_ptr<nv::ITimingCache> cache = cache_of(two);
    ASSERT_NE(cache, nullptr);
    std::vector<nv::TimingCacheKey> keys = keys_of(*cache);
    ASSERT_EQ(keys.size(), 2U);
    nv::TimingCacheValue first = cache->query(keys[0]);
    EXPECT_EQ(first.timingMSec, 0.25F);
    EXPECT_EQ(first.tacticHash, plan::tactic_hash("mma 64"));
    EXPECT_EQ(text_of(*cache), two);
    EXPECT_EQ(cache->queryKeys(nullptr, -1), -1);
    EXPECT_TRUE(cache->reset());
    EXPECT_EQ(cache->queryKeys(nullptr, 0), 0);
    EXPECT_EQ(cache->query(keys[0]).tacticHash, nv::TimingCacheValue::kINVALID_TACTIC_HASH);
    EXPECT_EQ(cache_of(two.substr(0, two.size() - 1)), nullptr);
    EXPECT_EQ(logger.errors.back(), "IBuilderConfig::createTimingCache: the " +
                                        std::to_string(two.size() - 1) +
                                        " bytes are no timing cache of this release: it is "
                                        "damaged or of another version; start with an empty one");
}

TEST_F(TimingCacheTest, only_editable_ones_can_be_changed) {
    std::unique_ptr<nv::ITimingCache> fixed = cache_of(two);
    nv::TimingCacheKey key = keys_of(*fixed)[0];
    EXPECT_FALSE(fixed->update(key, {5, 1}));
    EXPECT_NE(logger.errors.back().find("without kEDITABLE_TIMING_CACHE"), std::string::npos);
    config->setFlag(nv::BuilderFlag::kEDITABLE_TIMING_CACHE);
    std::unique_ptr<nv::ITimingCache> cache = cache_of(two);
    EXPECT_TRUE(cache->update(key, {5, 0.5F}));
    EXPECT_EQ(cache->query(key).tacticHash, 5U);
    EXPECT_EQ(cache->query(key).timingMSec, 0.5F);
    EXPECT_EQ(cache_of(text_of(*cache))->query(key).tacticHash, 5U);
    EXPECT_FALSE(cache->update(key, {nv::TimingCacheValue::kINVALID_TACTIC_HASH, 1}));
    EXPECT_TRUE(cache->update(key, {1, std::numeric_limits<float>::quiet_NaN()}));
    EXPECT_EQ(cache->queryKeys(nullptr, 0), 1);
    EXPECT_FALSE(cache->update(key, {1, 1}));
    EXPECT_EQ(logger.errors.back(), "ITimingCache::update: there is no such key");
}

TEST_F(TimingCacheTest, caches_of_another_device_need_to_be_asked_for) {
    std::unique_ptr<nv::ITimingCache> cache = cache_of(two);
    std::unique_ptr<nv::ITimingCache> other = cache_of("");
    EXPECT_FALSE(other->combine(*cache, false));
    EXPECT_EQ(
        logger.errors.back().find("ITimingCache::combine: the timing cache is of 'gpu', this is "),
        0U);
    if (!real::is_asked_for()) {
        EXPECT_EQ(logger.errors.back(),
                  str("ITimingCache::combine: the timing cache is of 'gpu', this is '",
                      cpu_backend().description(),
                      "'; ignoreMismatch takes it nevertheless, without effect here"));
    }
    EXPECT_FALSE(config->setTimingCache(*cache, false));
    EXPECT_EQ(config->getTimingCache(), nullptr);
    EXPECT_TRUE(other->combine(*cache, true));
    EXPECT_EQ(other->queryKeys(nullptr, 0), 2);
    EXPECT_TRUE(config->setTimingCache(*cache, true));
    EXPECT_EQ(config->getTimingCache()->queryKeys(nullptr, 0), 2);
}

TEST_F(TimingCacheTest, builds_on_a_gpu_fill_it_and_the_engine_carries_it) {
    use_gpu();
    product();
    std::unique_ptr<nv::ITimingCache> empty = cache_of("");
    ASSERT_TRUE(config->setTimingCache(*empty, false));
    std::shared_ptr<const Engine> engine = build();
    ASSERT_NE(engine, nullptr);
    int64_t timed = config->getTimingCache()->queryKeys(nullptr, 0);
    EXPECT_GE(timed, 1);
    ASSERT_NE(api::timings_of(*engine), nullptr);
    EXPECT_EQ(static_cast<int64_t>(api::timings_of(*engine)->size()), timed);

    config->setFlag(nv::BuilderFlag::kERROR_ON_TIMING_CACHE_MISS); // all is there
    EXPECT_NE(build(), nullptr);
    EXPECT_EQ(empty->queryKeys(nullptr, 0), timed) << "the cache itself is extended, no copy of it";
    empty = cache_of("");
    ASSERT_TRUE(config->setTimingCache(*empty, false));
    EXPECT_EQ(builder->buildSerializedNetwork(*network, *config), nullptr);
    EXPECT_NE(logger.errors.back().find("the timing cache has no entry for "), std::string::npos)
        << logger.errors.back();
    config->setFlag(nv::BuilderFlag::kDISABLE_TIMING_CACHE);
    engine = build();
    EXPECT_EQ(api::timings_of(*engine), nullptr);
}

TEST_F(TimingCacheTest, builds_leave_no_kernels_behind_where_that_is_asked_for) {
    use_gpu();
    product();
    config->setBuilderOptimizationLevel(5); // tactics are timed, for which they are compiled
    TemporaryFolder folder;
    setCacheFolder(folder.path().c_str());
    auto kernels = [&] {
        return std::distance(std::filesystem::recursive_directory_iterator(folder.path()), {});
    };
    config->setFlag(nv::BuilderFlag::kDISABLE_COMPILATION_CACHE);
    ASSERT_NE(build(), nullptr);
    EXPECT_EQ(kernels(), 0);
    config->clearFlag(nv::BuilderFlag::kDISABLE_COMPILATION_CACHE);
    ASSERT_NE(build(), nullptr);
    EXPECT_GE(kernels(), 1);
}

TEST_F(TimingCacheTest, what_timing_may_take_is_bounded) {
    use_gpu();
    product();
    std::unique_ptr<nv::ITimingCache> empty = cache_of("");
    ASSERT_TRUE(config->setTimingCache(*empty, false));
    config->setMemoryPoolLimit(nv::MemoryPoolType::kTACTIC_DRAM, 1000);
    ASSERT_NE(build(), nullptr);
    EXPECT_EQ(config->getTimingCache()->queryKeys(nullptr, 0), 0);
    config->setMemoryPoolLimit(nv::MemoryPoolType::kTACTIC_DRAM, 1U << 30U);
    ASSERT_NE(build(), nullptr);
    EXPECT_GE(config->getTimingCache()->queryKeys(nullptr, 0), 1);
}

} // namespace

} // namespace ingot::test
