// SPDX-License-Identifier: Apache-2.0
// Every call of operator new, of any size and on any thread, fails in turn while networks are made,
// models are parsed, and engines are built, loaded, inspected, refitted and run: each API call
// fails with an error or succeeds with the same result, nothing leaks, and the next attempt
// succeeds.
#include "NvOnnxParser.h"
#include "api/memory_fixture.h"
#include "counts.h"
#include "source_dir.h"

#include <malloc.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <random>

namespace ingot::test {
namespace {

namespace nv = nvinfer1;

/// One attempt: writes its results into the text, which has enough capacity; false when a call
/// failed.
using Try = std::function<bool(std::string&)>;

constexpr size_t most_result_bytes = 1 << 20;

class FailingAllocations : public MemoryBalance {
protected:
    void SetUp() override {
        if (sanitized) {
            GTEST_SKIP() << "a sanitizer has its own operator new";
        }
        result_.reserve(most_result_bytes);
        expected_.reserve(most_result_bytes);
    }

    /// Calls `f` with the n-th allocation failing: for every n up to `most_tries` of them; with
    /// more, for the first ones and then at equal steps from a random start.
    /// INGOT_EVERY_ALLOCATION=1 tries every n, INGOT_EVERY_ALLOCATION=2/5 the second of five parts
    /// of them, INGOT_FIRST_ALLOCATION=N those from N on. Then with all allocations from some n on
    /// failing.
    void each_allocation_fails(const Try& f, int64_t most_tries = 250) {
        once(f);
        expected_ = result_;
        once(f); // makes process-wide state
        int64_t before = allocation_count();
        once(f);
        int64_t all = allocation_count() - before;
        std::optional<Part> part = part_of_all();
        int64_t step = part ? part->count : all / most_tries + 1;
        int64_t every = part ? 0 : step == 1 ? all : most_tries / 4; // of these
        uint64_t start = part        ? static_cast<uint64_t>(part->number - 1)
                         : step == 1 ? 0
                                     : std::random_device()() % static_cast<uint64_t>(step);
        SCOPED_TRACE(str("of about ", all, " allocations, in steps of ", step, " after ", every));
        size_t heap = mallinfo2().uordblks;
        refused_ = 0;
        int64_t tries = 0;
        bool failed = true;
        for (int64_t n = first() + (part ? part->number - 1 : 0); failed; ++tries) {
            ASSERT_NO_FATAL_FAILURE(try_one(f, n, false, failed));
            n += n < every ? 1 : n == every ? 1 + static_cast<int64_t>(start) : step;
        }
        for (int64_t n = 1 + static_cast<int64_t>(start); n < all; n += step * forever_step) {
            ASSERT_NO_FATAL_FAILURE(try_one(f, n, true, failed)); // and all those after it
            ++tries;
        }
        EXPECT_GT(refused_, 0);
        record_injections(tries, refused_);
        if (!GetParam()) { // no thread compiles kernels meanwhile
            // Bytes, with what C libraries allocate: less than 4 a try.
            EXPECT_LT(static_cast<int64_t>(mallinfo2().uordblks) - static_cast<int64_t>(heap),
                      4 * tries + 40000);
        }
    }

private:
    static constexpr int64_t forever_step = 7;

    struct Part {
        int64_t number = 1;
        int64_t count = 1;
    };
    /// INGOT_EVERY_ALLOCATION: nullopt where it is not set; "1" is the whole.
    static std::optional<Part> part_of_all() {
        const char* text = std::getenv("INGOT_EVERY_ALLOCATION");
        if (text == nullptr) {
            return std::nullopt;
        }
        Part p;
        const char* slash = std::strchr(text, '/');
        if (slash != nullptr) {
            p = {std::atoll(text), std::atoll(slash + 1)};
            EXPECT_TRUE(p.count > 0 && p.number > 0 && p.number <= p.count) << text;
        }
        return p;
    }

    void try_one(const Try& f, int64_t n, bool forever, bool& failed) {
        SCOPED_TRACE(str("allocation ", n, forever ? " and all after it" : "", " fails"));
        int64_t held = 1;
        for (int i = 0; i < 3 && held > 0; ++i) {
            refused_ += fails_once(f, n, forever, failed, held) ? 0 : 1;
        }
        ASSERT_LE(held, 0);
        once(f);
        ASSERT_FALSE(HasFailure());
    }
    static int64_t first() {
        const char* n = std::getenv("INGOT_FIRST_ALLOCATION");
        return n == nullptr ? 1 : std::atoll(n);
    }
    void once(const Try& f) {
        result_.clear();
        ASSERT_TRUE(f(result_)) << logger.take_error();
        ASSERT_EQ(logger.take_error(), "");
        if (!expected_.empty()) {
            ASSERT_TRUE(result_ == expected_) << "another result than the first time";
        }
    }
    bool fails_once(const Try& f, int64_t n, bool forever, bool& failed, int64_t& held) {
        held = live_allocations();
        result_.clear();
        fail_allocation(n, forever);
        bool ok = f(result_);
        failed = allocation_failed();
        fail_allocation(0);
        // Threads may still be ending.
        for (int i = 0; i < 20 && live_allocations() > held; ++i) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        held = live_allocations() - held;
        std::string error = logger.take_error();
        bool told = error.find("memory") != error.npos || error.find("bytes") != error.npos;
        EXPECT_TRUE(ok ? error.empty() : told) << error;
        EXPECT_TRUE(!ok || result_ == expected_) << "another result";
        return ok;
    }

    std::string result_;
    std::string expected_;
    int64_t refused_ = 0;
};

void put(std::string& out, const nv::IHostMemory& m) {
    out.append(static_cast<const char*>(m.data()), m.size());
}

TEST_P(FailingAllocations, WhileLoading) {
    AlignedBytes bytes = small_engine();
    each_allocation_fails([&](std::string&) {
        std::unique_ptr<nv::ICudaEngine> engine(
            runtime->deserializeCudaEngine(bytes.data(), bytes.size()));
        return engine != nullptr;
    });
}

TEST_P(FailingAllocations, WhileRunning) {
    AlignedBytes bytes = small_engine();
    std::unique_ptr<nv::ICudaEngine> engine(
        runtime->deserializeCudaEngine(bytes.data(), bytes.size()));
    ASSERT_NE(engine, nullptr) << logger.take_error();
    each_allocation_fails([&](std::string&) { return run_once(*engine); });
}

TEST_P(FailingAllocations, WhileInspecting) {
    AlignedBytes bytes = small_engine();
    std::unique_ptr<nv::ICudaEngine> engine(
        runtime->deserializeCudaEngine(bytes.data(), bytes.size()));
    ASSERT_NE(engine, nullptr) << logger.take_error();
    each_allocation_fails([&](std::string& out) {
        std::unique_ptr<nv::IEngineInspector> inspector(engine->createEngineInspector());
        if (inspector == nullptr) {
            return false;
        }
        for (auto format :
             {nv::LayerInformationFormat::kJSON, nv::LayerInformationFormat::kONELINE}) {
            const char* text = inspector->getEngineInformation(format);
            const char* layer =
                text == nullptr ? nullptr : inspector->getLayerInformation(0, format);
            if (layer == nullptr) {
                return false;
            }
            out.append(text).append(layer);
        }
        return true;
    });
}

struct Made {
    explicit Made(nv::ILogger& logger) : builder(nv::createInferBuilder(logger)) {
        if (builder != nullptr) {
            network.reset(builder->createNetworkV2(0));
            config.reset(network == nullptr ? nullptr : builder->createBuilderConfig());
        }
    }
    bool build(std::string& out) const {
        std::unique_ptr<nv::IHostMemory> bytes(builder->buildSerializedNetwork(*network, *config));
        if (bytes != nullptr) {
            put(out, *bytes);
        }
        return bytes != nullptr;
    }
    std::unique_ptr<nv::IBuilder> builder;
    std::unique_ptr<nv::INetworkDefinition> network;
    std::unique_ptr<nv::IBuilderConfig> config; // null when one object is
};

TEST_P(FailingAllocations, WhileBuilding) {
    if (GetParam()) {
        GTEST_SKIP() << "it asks no device";
    }
    std::array<float, 128> w{};
    each_allocation_fails([&](std::string& out) {
        Made made(logger);
        if (made.config == nullptr) {
            return false;
        }
        nv::INetworkDefinition& network = *made.network;
        nv::ITensor* x = network.addInput("x", nv::DataType::kFLOAT, dims({2, 16}));
        nv::IConstantLayer* c =
            network.addConstant(dims({16, 8}), {nv::DataType::kFLOAT, w.data(), 128});
        if (x == nullptr || c == nullptr) {
            return false;
        }
        nv::ILayer* product = network.addMatrixMultiply(
            *x, nv::MatrixOperation::kNONE, *c->getOutput(0), nv::MatrixOperation::kNONE);
        nv::ILayer* soft =
            product == nullptr ? nullptr : network.addSoftMax(*product->getOutput(0));
        if (soft == nullptr) {
            return false;
        }
        network.markOutput(*soft->getOutput(0));
        return !logger.has_error() && made.build(out); // a failed mark is no output
    });
}

std::string digits_model() {
    std::ifstream in(source_dir() + "/examples/digits/digits.onnx", std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

TEST_P(FailingAllocations, WhileParsing) {
    if (GetParam()) {
        GTEST_SKIP() << "it asks no device";
    }
    std::string model = digits_model();
    each_allocation_fails([&](std::string& out) {
        Made made(logger);
        if (made.config == nullptr) {
            return false;
        }
        std::unique_ptr<nvonnxparser::IParser> parser(
            nvonnxparser::createParser(*made.network, logger));
        return parser != nullptr && parser->parse(model.data(), model.size()) && made.build(out);
    });
}

/// A network whose weights can be refitted, with a loop and a conditional: y = relu(conv(x) + b)
/// times itself three times, or its half where the flag is false.
bool fill(nv::INetworkDefinition& n, const std::array<float, 54>& kernel, FixedLogger& logger) {
    nv::ITensor* x = n.addInput("x", nv::DataType::kFLOAT, dims({1, 3, 6, 6}));
    nv::ITensor* flag = n.addInput("flag", nv::DataType::kBOOL, dims({}));
    nv::IConvolutionLayer* conv =
        x == nullptr
            ? nullptr
            : n.addConvolutionNd(*x, 2, dims({3, 3}), {nv::DataType::kFLOAT, kernel.data(), 54},
                                 {nv::DataType::kFLOAT, kernel.data(), 2});
    if (conv == nullptr || flag == nullptr) {
        return false;
    }
    conv->setName("conv");
    conv->setStrideNd(dims({1, 1}));
    nv::IActivationLayer* relu = n.addActivation(*conv->getOutput(0), nv::ActivationType::kRELU);
    static const int32_t three = 3;
    nv::IConstantLayer* trips = n.addConstant(dims({}), {nv::DataType::kINT32, &three, 1});
    nv::ILoop* loop = n.addLoop();
    nv::IIfConditional* choice = n.addIfConditional();
    if (relu == nullptr || trips == nullptr || loop == nullptr || choice == nullptr ||
        loop->addTripLimit(*trips->getOutput(0), nv::TripLimit::kCOUNT) == nullptr ||
        choice->setCondition(*flag) == nullptr) {
        return false;
    }
    nv::ITensor& t = *relu->getOutput(0);
    nv::IRecurrenceLayer* state = loop->addRecurrence(t);
    nv::ILayer* next = state == nullptr ? nullptr
                                        : n.addElementWise(*state->getOutput(0), t,
                                                           nv::ElementWiseOperation::kPROD);
    if (next == nullptr) {
        return false;
    }
    state->setInput(1, *next->getOutput(0));
    nv::ILayer* power = loop->addLoopOutput(*state->getOutput(0), nv::LoopOutput::kLAST_VALUE, 0);
    nv::ILayer* in = power == nullptr ? nullptr : choice->addInput(*power->getOutput(0));
    nv::ILayer* root =
        in == nullptr ? nullptr : n.addUnary(*in->getOutput(0), nv::UnaryOperation::kNEG);
    nv::ILayer* out =
        root == nullptr ? nullptr : choice->addOutput(*in->getOutput(0), *root->getOutput(0));
    if (out == nullptr) {
        return false;
    }
    out->setName("choice");
    n.markOutput(*out->getOutput(0));
    return !logger.has_error();
}

TEST_P(FailingAllocations, WhileBuildingOnceMore) {
    if (GetParam()) {
        GTEST_SKIP() << "it asks no device";
    }
    std::array<float, 54> kernel{};
    Made made(logger);
    ASSERT_TRUE(fill(*made.network, kernel, logger)) << logger.take_error();
    each_allocation_fails([&](std::string& out) { return made.build(out); });
}

TEST_P(FailingAllocations, WhileBuildingLoopsAndConditionals) {
    if (GetParam()) {
        GTEST_SKIP() << "it asks no device";
    }
    std::array<float, 54> kernel{};
    each_allocation_fails([&](std::string& out) {
        Made made(logger);
        return made.config != nullptr && fill(*made.network, kernel, logger) && made.build(out);
    });
}

TEST_P(FailingAllocations, WhileRefittingAndSerializing) {
    std::array<float, 54> kernel{1, 2, 3};
    Made made(logger);
    ASSERT_TRUE(fill(*made.network, kernel, logger)) << logger.take_error();
    made.config->setFlag(nv::BuilderFlag::kREFIT);
    std::string built;
    ASSERT_TRUE(made.build(built)) << logger.take_error();
    std::unique_ptr<nv::ICudaEngine> engine(
        runtime->deserializeCudaEngine(built.data(), built.size()));
    ASSERT_NE(engine, nullptr) << logger.take_error();
    each_allocation_fails([&](std::string& out) {
        std::unique_ptr<nv::IRefitter> refitter(nv::createInferRefitter(*engine, logger));
        if (refitter == nullptr ||
            !refitter->setWeights("conv", nv::WeightsRole::kKERNEL,
                                  {nv::DataType::kFLOAT, kernel.data(), 54}) ||
            !refitter->setWeights("conv", nv::WeightsRole::kBIAS,
                                  {nv::DataType::kFLOAT, kernel.data(), 2}) ||
            !refitter->refitCudaEngine()) {
            return false;
        }
        std::unique_ptr<nv::IHostMemory> bytes(engine->serialize());
        if (bytes != nullptr) {
            put(out, *bytes);
        }
        return bytes != nullptr;
    });
}

TEST_P(FailingAllocations, OfCachesAndConfigurations) {
    AlignedBytes bytes = small_engine();
    std::unique_ptr<nv::ICudaEngine> engine(
        runtime->deserializeCudaEngine(bytes.data(), bytes.size()));
    ASSERT_NE(engine, nullptr) << logger.take_error();
    std::string timings = plan::print_timings({{"gpu\tfirst", {"mma 64", 250}}});
    Made made(logger);
    each_allocation_fails(
        [&](std::string& out) {
            std::unique_ptr<nv::IRuntimeConfig> config(engine->createRuntimeConfig());
            std::unique_ptr<nv::IRuntimeCache> cache(
                config == nullptr ? nullptr : config->createRuntimeCache());
            if (cache == nullptr || !config->setRuntimeCache(*cache)) {
                return false;
            }
            std::unique_ptr<nv::IExecutionContext> c(engine->createExecutionContext(config.get()));
            if (c == nullptr || !run_twice(*c)) {
                return false;
            }
            std::unique_ptr<nv::IHostMemory> kept(cache->serialize());
            // Without memory a kernel is compiled and not kept: the bytes may differ.
            if (kept == nullptr || !cache->deserialize(kept->data(), kept->size())) {
                return false;
            }
            std::unique_ptr<nv::ITimingCache> times(
                made.config->createTimingCache(timings.data(), timings.size()));
            std::unique_ptr<nv::IHostMemory> text(times == nullptr ? nullptr : times->serialize());
            if (text == nullptr || !made.config->setTimingCache(*times, true)) {
                return false;
            }
            put(out, *text);
            return true;
        },
        60); // on the GPU each has threads of its own
}

TEST_P(FailingAllocations, WhileErrorsAreReported) {
    AlignedBytes bytes = small_engine();
    std::unique_ptr<nv::ICudaEngine> engine(
        runtime->deserializeCudaEngine(bytes.data(), bytes.size()));
    ASSERT_NE(engine, nullptr) << logger.take_error();
    Made made(logger);
    auto refused = [&](std::string& out, auto misuse) {
        misuse();
        AllocationsSucceed own;
        std::string error = logger.take_error();
        bool memory = error.find("the system") != error.npos; // has no memory
        out += error + "\n";
        if (memory || error.empty()) {
            logger.log(nv::ILogger::Severity::kERROR, error.c_str());
        }
        return !memory;
    };
    each_allocation_fails([&](std::string& out) {
        nv::INetworkDefinition& n = *made.network;
        nv::ITensor* x = n.getNbInputs() > 0 ? n.getInput(0)
                                             : n.addInput("x", nv::DataType::kFLOAT, dims({2, 3}));
        if (x == nullptr) {
            return false;
        }
        return refused(out, [&] { n.addInput("x", nv::DataType::kFLOAT, dims({1})); }) &&
               refused(out, [&] { n.addUnary(*x, nv::UnaryOperation::kNOT); }) &&
               refused(out, [&] { n.addActivation(*x, nv::ActivationType{99}); }) &&
               refused(out, [&] { made.builder->buildSerializedNetwork(n, *made.config); }) &&
               refused(out, [&] { runtime->deserializeCudaEngine("no engine at all", 16); }) &&
               refused(out, [&] { engine->getTensorShape("nobody has this name"); }) &&
               refused(out, [&] { nv::createInferRefitter(*engine, logger); });
    });
}

INSTANTIATE_TEST_SUITE_P(Devices, FailingAllocations, testing::Bool(),
                         [](const auto& device) { return device.param ? "Gpu" : "Cpu"; });

} // namespace
} // namespace ingot::test
