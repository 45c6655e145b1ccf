// SPDX-License-Identifier: Apache-2.0
// Weights that do not match their hashes give no result, for every loader and every use, unless the
// check was switched off explicitly.
#include "backends/backends.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "base/process.h"
#include "counts.h"
#include "engine/container.h"
#include "engine/engine.h"
#include "engine/weight_check.h"
#include "ops/ops.h"
#include "workflow/refit.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <random>

namespace ingot {
namespace {

/// y = a reduction of x + w, with a weight of that many elements.
Graph with_weight(DType t, int64_t elements, uint32_t seed) {
    Graph g("weighted");
    Value x = g.add_input("x", parse_type("f32[1]"));
    Tensor w = Tensor::empty(t, {elements});
    std::mt19937 random(seed);
    for (std::byte& b : w.mutable_bytes()) {
        b = static_cast<std::byte>(random() & 0x3bU); // no infinities, no NaN
    }
    Value c = ops::constant(g, w);
    g.set_value_name(c, "w");
    Value sum = ops::reduce(g, "max", ops::cast(g, c, DType::F32), {0});
    g.add_output("y", ops::add(g, x, sum));
    return g;
}

struct Case {
    const char* name;
    DType type;
    int64_t elements;
    uint64_t chunks;
};

const Case cases[] = {
    {"a few bytes", DType::F32, 100, 1},
    {"one chunk", DType::F32, (16 << 20) / 4, 1},
    {"a byte more than a chunk", DType::U8, (16 << 20) + 1, 2},
    {"three chunks of halves", DType::F16, 20'000'000, 3},
    {"packed", DType::I4, 40'000'000, 2},
};

AlignedBytes bytes_of(const Case& c) {
    return engine_bytes(*Engine::create(with_weight(c.type, c.elements, 3), {}, {}));
}

template <class F>
std::string error_of(const F& f) {
    try {
        f();
    } catch (const Error& e) {
        EXPECT_EQ(e.code(), ErrorCode::InvalidEngine) << e.what();
        return e.what();
    }
    return "";
}

std::shared_ptr<const Engine> load(const AlignedBytes& bytes, CheckWeights check) {
    return Engine::load(bytes, nullptr, check);
}

std::vector<Tensor> run(const std::shared_ptr<const Engine>& engine) {
    return Context(engine, cpu_backend()).run(std::array{Tensor::zeros(DType::F32, {1})});
}

TEST(WeightCheck, EveryFlipOfWeightsIsRefused) {
    std::mt19937_64 random(11);
    int64_t all = 0;
    for (const Case& c : cases) {
        AlignedBytes bytes = bytes_of(c);
        Container container(bytes, nullptr);
        Section weights = *container.find(SectionKind::Weights);
        ASSERT_EQ(container.weight_chunks(), c.chunks) << c.name;
        EXPECT_EQ(error_of([&] { load(bytes, CheckWeights::First); }), "") << c.name;
        constexpr uint64_t flips = 24;
        for (uint64_t i = 0; i < flips; ++i) {
            // The first and the last byte, and one of each part between them.
            uint64_t part = weights.bytes / (flips - 2);
            uint64_t at = i == 0 ? 0
                          : i == flips - 1
                              ? weights.bytes - 1
                              : (i - 1) * part + random() % std::max<uint64_t>(part, 1);
            auto flipped = static_cast<std::byte>(1U << (random() % 8));
            bytes[weights.offset + at] ^= flipped;
            uint64_t chunk = at / weight_chunk_bytes;
            uint64_t from = weights.offset + chunk * weight_chunk_bytes;
            uint64_t to = std::min(from + weight_chunk_bytes, weights.offset + weights.bytes) - 1;
            EXPECT_EQ(error_of([&] { load(bytes, CheckWeights::First); }),
                      str("the engine: section weights: chunk ", chunk, " of ", c.chunks,
                          ", bytes ", from, " to ", to,
                          ", does not match its hash: the file is damaged, copy it again or "
                          "rebuild the engine"))
                << c.name << " at " << at;
            EXPECT_NE(error_of([&] { load(bytes, CheckWeights::Beside)->check_weights(); }), "");
            bytes[weights.offset + at] ^= flipped;
        }
        EXPECT_EQ(error_of([&] { load(bytes, CheckWeights::First); }), "") << c.name;
        all += static_cast<int64_t>(flips);
    }
    test::record_injections(all, all);
}

/// Uses of an engine.
const std::pair<const char*, void (*)(const std::shared_ptr<const Engine>&)> uses[] = {
    {"run", [](const auto& e) { run(e); }},
    {"prepare", [](const auto& e) { Context(e, cpu_backend()).prepare(std::array{Shape{1}}); }},
    {"enqueue",
     [](const auto& e) {
         alignas(64) float x = 0;
         alignas(64) float y = -7;
         Binding in{&x, {1}, false};
         Binding out{&y, {}, false};
         Context c(e, cpu_backend());
         try {
             c.enqueue({&in, 1}, {&out, 1}, nullptr);
         } catch (const Error&) {
             EXPECT_EQ(y, -7); // nothing was written
             throw;
         }
     }},
    {"a sibling's run",
     [](const auto& e) {
         Context(e, cpu_backend()).sibling()->run(std::array{Tensor::zeros(DType::F32, {1})});
     }},
    {"write to memory", [](const auto& e) { engine_bytes(*e); }},
    {"write to a file",
     [](const auto& e) {
         TemporaryFolder folder;
         write_engine(folder.path() + "/e.engine", *e);
     }},
    {"write with kernels", [](const auto& e) { engine_bytes(*e->with_kernels({})); }},
};

TEST(WeightCheck, NothingIsMadeOfDamagedWeights) {
    TemporaryFolder folder;
    std::string path = folder.path() + "/e.engine";
    AlignedBytes bytes = bytes_of(cases[3]);
    for (const auto& [name, use] : uses) {
        EXPECT_EQ(error_of([&] { use(load(bytes, CheckWeights::Beside)); }), "") << name;
    }
    bytes[weight_alignment + (17 << 20)] ^= std::byte{1};
    write_file(path, bytes);
    for (const auto& [name, use] : uses) {
        EXPECT_EQ(error_of([&] { use(Engine::load(path)); }),
                  str(path, ": section weights: chunk 1 of 3, bytes 16781312 to 33558527, does not "
                            "match its hash: the file is damaged, copy it again or rebuild the "
                            "engine"))
            << name;
        EXPECT_NE(error_of([&] { use(load(bytes, CheckWeights::Beside)); }), "") << name;
    }
}

TEST(WeightCheck, ErrorsStayWhenTheyAreAskedForAgain) {
    AlignedBytes bytes = bytes_of(cases[2]);
    bytes[weight_alignment] ^= std::byte{1};
    auto engine = load(bytes, CheckWeights::Beside);
    std::string first = error_of([&] { engine->check_weights(); });
    EXPECT_NE(first, "");
    EXPECT_EQ(error_of([&] { engine->check_weights(); }), first);
    EXPECT_EQ(error_of([&] { run(engine); }), first);
}

TEST(WeightCheck, ARefitOfDamagedWeightsIsRefused) {
    Graph g = with_weight(DType::F32, 1000, 5);
    auto whole =
        Engine::create(g, {}, {})->with_source(std::make_shared<RefitSource>(refit_source(g, {})));
    AlignedBytes bytes = engine_bytes(*whole);
    auto other = [&] { return refitted(*load(bytes, CheckWeights::Beside), {}, false, 1); };
    EXPECT_EQ(error_of([&] { other(); }), "");
    bytes[weight_alignment + 100] ^= std::byte{4};
    EXPECT_NE(error_of([&] { other(); }).find("section weights: chunk 0 of 1"), std::string::npos);
}

TEST(WeightCheck, CanBeSwitchedOff) {
    Case c = cases[0];
    AlignedBytes bytes = bytes_of(c);
    float before = run(load(bytes, CheckWeights::Beside))[0].as<float>()[0];
    // The largest of the sums' terms grows: the exponent's highest bit of every weight.
    for (int64_t i = 0; i < c.elements; ++i) {
        bytes[weight_alignment + static_cast<uint64_t>(i) * 4 + 3] ^= std::byte{0x40};
    }
    EXPECT_NE(run(load(bytes, CheckWeights::Never))[0].as<float>()[0], before);
    EXPECT_NE(error_of([&] { run(load(bytes, CheckWeights::Beside)); }), "");
}

/// Cut short before its weights are read for the first time, or between two runs.
TEST(WeightCheck, ATruncatedFileIsAnErrorAndNoSignal) {
    TemporaryFolder folder;
    AlignedBytes bytes = bytes_of(cases[3]);
    for (CheckWeights check : {CheckWeights::Beside, CheckWeights::Never}) {
        for (bool runs_before : {false, true}) {
            std::string path = folder.path() + "/e.engine";
            write_file(path, bytes);
            Context c(Engine::load(path, check), cpu_backend());
            std::array x = {Tensor::zeros(DType::F32, {1})};
            if (runs_before) {
                c.run(x);
            }
            std::filesystem::resize_file(path, 5 << 20);
            try {
                c.run(x);
                // Nothing was read from the file: the CPU had a copy of its weights.
                EXPECT_TRUE(runs_before);
            } catch (const Error& e) {
                std::string text = e.what();
                bool lost = text.find("it was truncated while it was in use") != std::string::npos;
                bool differs = text.find("does not match its hash") != std::string::npos;
                EXPECT_TRUE(lost || (differs && check == CheckWeights::Beside)) << text;
            }
            std::filesystem::remove(path);
        }
    }
}

TEST(WeightCheck, SectionsThatWereCheckedStayAsTheyWere) {
    AlignedBytes bytes = bytes_of(cases[0]);
    Container c(bytes, nullptr);
    std::vector<std::byte> graph(c.section(SectionKind::Graph).begin(),
                                 c.section(SectionKind::Graph).end());
    std::fill(bytes.begin(), bytes.end(), std::byte{0xff}); // as another process might
    EXPECT_TRUE(std::equal(graph.begin(), graph.end(), c.section(SectionKind::Graph).begin()));
    EXPECT_FALSE(c.weight_chunk_is_whole(0));
}

/// As a copy fills the memory: in pieces that do not divide chunks, by one thread or with help.
TEST(WeightCheck, WeightsMayComeWhileTheyAreHashed) {
    for (const Case& c : std::span(cases).first(3)) {
        AlignedBytes bytes = bytes_of(c);
        Section weights = *Container(bytes, nullptr).find(SectionKind::Weights);
        for (int64_t damaged : {-1, 0, static_cast<int>(c.chunks) - 1}) {
            AlignedBytes copy = bytes;
            std::span<std::byte> memory(copy.data() + weights.offset, weights.bytes);
            std::fill(memory.begin(), memory.end(), std::byte{0xee});
            WeightCheck check(Container(copy, nullptr), "", true);
            for (uint64_t at = 0; at < weights.bytes;) {
                uint64_t n = std::min<uint64_t>(700'001, weights.bytes - at);
                std::memcpy(memory.data() + at, bytes.data() + weights.offset + at, n);
                uint64_t flip = static_cast<uint64_t>(damaged) * weight_chunk_bytes;
                if (damaged >= 0 && flip >= at && flip < at + n) {
                    memory[flip] ^= std::byte{1};
                }
                at += n;
                check.came(at);
            }
            std::string error = error_of([&] { check.wait(); });
            std::string expected = str("section weights: chunk ", damaged, " of ", c.chunks);
            EXPECT_EQ(error.find(expected) != std::string::npos, damaged >= 0)
                << c.name << ": " << error;
            EXPECT_EQ(error.empty(), damaged < 0) << c.name << ": " << error;
        }
        WeightCheck abandoned(Container(bytes, nullptr), "", true); // nothing came: nobody waits
    }
}

TEST(WeightCheck, AnInterruptEndsTheWait) {
    struct Cleared {
        ~Cleared() { clear_interrupt(); }
    } cleared;
    AlignedBytes bytes = bytes_of(cases[3]);
    WeightCheck check(Container(bytes, nullptr), "", true);
    request_interrupt(); // before any weights have come: the threads wait for them
    std::string message;
    try {
        check.wait();
    } catch (const Error& e) {
        EXPECT_EQ(e.code(), ErrorCode::Interrupted);
        message = e.message();
    }
    EXPECT_EQ(message, "interrupted");
    clear_interrupt();
    check.came(UINT64_MAX);
    EXPECT_EQ(error_of([&] { check.wait(); }), "");
}

TEST(WeightCheck, AnEngineMayGoBeforeTheCheckIsDone) {
    AlignedBytes bytes = bytes_of(cases[3]);
    for (int i = 0; i < 20; ++i) {
        load(bytes, CheckWeights::Beside);
    }
    auto owner = std::make_shared<const AlignedBytes>(bytes);
    std::weak_ptr<const AlignedBytes> watched = owner;
    auto engine = Engine::load(*owner, owner);
    owner.reset();
    EXPECT_FALSE(watched.expired());
    engine.reset();
    EXPECT_TRUE(watched.expired());
}

} // namespace
} // namespace ingot
