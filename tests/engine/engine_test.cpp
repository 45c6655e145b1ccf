// SPDX-License-Identifier: Apache-2.0
// The engine file: round trips, determinism, and refusal of any damage.
#include "base/error.h"
#include "base/process.h"
#include "counts.h"
#include "engine/container.h"
#include "engine/engine.h"
#include "ir/text.h"
#include "ops/evaluator.h"
#include "ops/ops.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <random>

namespace ingot {
namespace {

Graph small_graph() {
    Graph g("small");
    Value x = g.add_input("x", parse_type("f32[batch,8]"));
    Tensor w = Tensor::empty(DType::F32, {8, 4});
    for (int64_t i = 0; i < w.count(); ++i) {
        w.set_f64(i, 0.25 * static_cast<double>(i) - 3);
    }
    g.set_origin("fc");
    Value y = ops::matmul(g, x, ops::constant(g, w));
    g.set_origin("act");
    g.add_output(
        "y",
        ops::maximum(g, ops::add(g, y, ops::constant(g, w.reshaped({32}).clone().reshaped({8, 4}))),
                     0.0));
    return g;
}

Graph mlp() {
    Graph g("mlp");
    Value x = g.add_input("x", parse_type("f32[batch,8]"));
    Tensor w = Tensor::empty(DType::F32, {8, 4});
    Tensor b = Tensor::empty(DType::F32, {4});
    for (int64_t i = 0; i < w.count(); ++i) {
        w.set_f64(i, 0.25 * static_cast<double>(i) - 3);
    }
    for (int64_t i = 0; i < b.count(); ++i) {
        b.set_f64(i, static_cast<double>(i));
    }
    g.set_origin("fc");
    Value y = ops::matmul(g, x, ops::constant(g, w));
    g.set_origin("act");
    g.add_output("y", ops::maximum(g, ops::add(g, y, ops::constant(g, b)), 0.0));
    return g;
}

std::vector<Profile> profile() {
    return {Profile{{{"x", {1, 8}, {2, 8}, {16, 8}}}}};
}

std::vector<std::byte> bytes_of(const std::string& path) {
    auto file = MappedFile::open(path);
    return {file->bytes().begin(), file->bytes().end()};
}

std::vector<std::byte> engine_bytes() {
    TemporaryFolder folder;
    std::string path = folder.path() + "/e.engine";
    write_engine(path, mlp(), profile(), {{"model", "mlp"}});
    return bytes_of(path);
}

std::string error_of(const std::vector<std::byte>& bytes,
                     CheckWeights check = CheckWeights::First) {
    try {
        Engine::load(bytes, nullptr, check);
    } catch (const Error& e) {
        EXPECT_EQ(e.code(), ErrorCode::InvalidEngine) << e.what();
        return e.what();
    }
    return "";
}

template <class T>
void poke(std::vector<std::byte>& b, size_t at, T v) {
    std::memcpy(b.data() + at, &v, sizeof(T));
}

// Makes the table hash right again after a deliberate change.
void rehash(std::vector<std::byte>& b) {
    uint32_t count = 0;
    std::memcpy(&count, b.data() + 32, 4);
    HashStream h(false);
    h.add(std::span(b).first(48));
    h.add(std::span(b).subspan(64, std::min<size_t>(b.size() - 64, size_t{count} * 88)));
    poke(b, 48, h.xxh3().high);
    poke(b, 56, h.xxh3().low);
}

TEST(Engine, RoundTripKeepsGraphProfilesAndResults) {
    TemporaryFolder folder;
    std::string path = folder.path() + "/e.engine";
    Graph g = mlp();
    write_engine(path, g, profile(), {{"model", "mlp"}});
    auto e = Engine::load(path, CheckWeights::First);
    PrintOptions full;
    full.full = true;
    EXPECT_EQ(print(e->graph(), full), print(g, full));
    EXPECT_EQ(e->profiles(), profile());
    EXPECT_EQ(e->metadata().at("model"), "mlp");
    EXPECT_EQ(e->weight_bytes(), 8 * 4 * 4 + 4 * 4U);
    Tensor x = Tensor::empty(DType::F32, {3, 8});
    for (int64_t i = 0; i < x.count(); ++i) {
        x.set_f64(i, 0.1 * static_cast<double>(i));
    }
    EXPECT_EQ(evaluate(e->graph(), std::array{x})[0], evaluate(g, std::array{x})[0]);
}

TEST(Engine, WeightsStayInTheMappedFile) {
    TemporaryFolder folder;
    std::string path = folder.path() + "/e.engine";
    write_engine(path, mlp(), {}, {});
    auto file = MappedFile::open(path);
    auto e = Engine::load(file->bytes(), file);
    int found = 0;
    for (const Node& n : e->graph().nodes()) {
        if (n.is(constant_def) && n.as<Constant>().value.bytes().size() > 64) {
            const std::byte* p = n.as<Constant>().value.bytes().data();
            EXPECT_TRUE(p >= file->bytes().data() &&
                        p < file->bytes().data() + file->bytes().size());
            EXPECT_FALSE(n.as<Constant>().value.writable());
            ++found;
        }
    }
    EXPECT_EQ(found, 1);
}

TEST(Engine, SameInputGivesSameBytes) {
    EXPECT_EQ(engine_bytes(), engine_bytes());
}

TEST(Engine, EqualWeightsAreStoredOnce) {
    TemporaryFolder folder;
    write_engine(folder.path() + "/twice.engine", small_graph(), {}, {});
    auto b = bytes_of(folder.path() + "/twice.engine");
    Container c(b, nullptr);
    EXPECT_EQ(c.section(SectionKind::Weights).size(), 8 * 4 * 4U);
}

TEST(Engine, EveryTruncationIsRefused) {
    std::vector<std::byte> whole = engine_bytes();
    ASSERT_EQ(error_of(whole), "");
    for (size_t n = 0; n < whole.size(); ++n) {
        std::vector<std::byte> part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n));
        ASSERT_NE(error_of(part), "") << "of " << n << " bytes";
    }
    test::record_injections(std::ssize(whole), std::ssize(whole));
}

TEST(Engine, EveryBitOfHeaderAndTableIsGuarded) {
    std::vector<std::byte> whole = engine_bytes();
    for (size_t bit = 0; bit < (64 + 5 * 88) * 8; ++bit) {
        std::vector<std::byte> b = whole;
        b[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
        ASSERT_NE(error_of(b), "") << "bit " << bit;
    }
    test::record_injections((64 + 5 * 88) * 8, (64 + 5 * 88) * 8);
}

TEST(Engine, EveryPayloadByteIsGuarded) {
    std::vector<std::byte> whole = engine_bytes();
    std::mt19937 random(7);
    for (size_t at = 64 + 5 * 88; at < whole.size(); ++at) {
        std::vector<std::byte> b = whole;
        b[at] ^= static_cast<std::byte>(1U << (random() % 8));
        ASSERT_NE(error_of(b), "") << "byte " << at;
    }
}

/// Sections of many sizes, the weights' the largest.
TEST(Engine, SampledBitsOfThePayloadAreGuarded) {
    Graph g = mlp();
    Value x = g.add_input("wide", parse_type("f32[4,64]"));
    Tensor w = Tensor::zeros(DType::F32, {64, 64});
    g.add_output("z", ops::matmul(g, x, ops::constant(g, w)));
    AlignedBytes made = engine_bytes(*Engine::create(g, {}, {}));
    std::vector<std::byte> bytes(made.begin(), made.end());
    ASSERT_EQ(error_of(bytes), "");
    constexpr size_t table = 64 + 5 * 88;
    std::mt19937_64 random(13);
    int64_t flips = test::as_many(2000, 100'000);
    for (int64_t i = 0; i < flips; ++i) {
        size_t bit = table * 8 + random() % ((bytes.size() - table) * 8);
        auto flipped = static_cast<std::byte>(1U << (bit % 8));
        bytes[bit / 8] ^= flipped;
        ASSERT_NE(error_of(bytes), "") << "bit " << bit;
        bytes[bit / 8] ^= flipped;
    }
    EXPECT_EQ(error_of(bytes), "");
    test::record_injections(flips, flips);
}

TEST(Engine, AFailedWriteLeavesTheOldFile) {
    TemporaryFolder folder;
    std::string path = folder.path() + "/e.engine";
    write_engine(path, mlp(), {}, {});
    std::vector<std::byte> before = bytes_of(path);
    Profile wrong{{{"y", {1}, {1}, {1}}}};
    EXPECT_THROW(write_engine(path, mlp(), {wrong}, {}), Error);
    EXPECT_EQ(bytes_of(path), before);
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

struct Mutation {
    const char* name;
    void (*change)(std::vector<std::byte>&);
    const char* message;
};

const Mutation mutations[] = {
    {"empty", [](auto& b) { b.clear(); },
     "the file has 0 bytes, an engine has at least 64; it is truncated or not an engine"},
    {"not an engine", [](auto& b) { poke(b, 0, uint64_t{0x0808080808080808}); },
     "the file is not an Ingot engine: its first bytes are not the engine magic; build one with "
     "'ingot build'"},
    {"newer format",
     [](auto& b) {
         poke(b, 8, uint32_t{2});
         poke(b, 12, uint32_t{0x020301});
         rehash(b);
     },
     "engine format 2 (written by Ingot 2.3.1), this is Ingot 0.1.0, which reads formats 1 to 1; "
     "use a newer Ingot or rebuild the engine"},
    {"format zero",
     [](auto& b) {
         poke(b, 8, uint32_t{0});
         rehash(b);
     },
     "engine format 0 (written by Ingot 0.1.0), this is Ingot 0.1.0, which reads formats 1 to 1; "
     "use a newer Ingot or rebuild the engine"},
    {"unknown flags",
     [](auto& b) {
         poke(b, 16, uint64_t{4});
         rehash(b);
     },
     "header flags 4 are unknown to Ingot 0.1.0; use a newer Ingot or rebuild the engine"},
    {"table elsewhere",
     [](auto& b) {
         poke(b, 24, uint64_t{72});
         rehash(b);
     },
     "the table of sections is damaged: at 72, 5 rows of 88 bytes, expected at 64, 1 to 64 rows of "
     "88"},
    {"no sections",
     [](auto& b) {
         poke(b, 32, uint32_t{0});
         rehash(b);
     },
     "the table of sections is damaged: at 64, 0 rows of 88 bytes, expected at 64, 1 to 64 rows of "
     "88"},
    {"too many sections", [](auto& b) { poke(b, 32, uint32_t{0x7fffffff}); },
     "the table of sections is damaged: at 64, 2147483647 rows of 88 bytes, expected at 64, 1 to "
     "64 rows of 88"},
    {"wrong row size",
     [](auto& b) {
         poke(b, 36, uint32_t{80});
         rehash(b);
     },
     "the table of sections is damaged: at 64, 5 rows of 80 bytes, expected at 64, 1 to 64 rows of "
     "88"},
    {"appended", [](auto& b) { b.push_back(std::byte{0}); }, "; something was appended to it"},
    {"cut", [](auto& b) { b.resize(b.size() - 1); }, "; it is truncated, copy it again"},
    {"table hash", [](auto& b) { poke(b, 48, uint64_t{1}); },
     "header and table do not match their hash: the file is damaged, copy it again or rebuild the "
     "engine"},
    {"unknown row flags",
     [](auto& b) {
         poke(b, 68, uint32_t{3});
         rehash(b);
     },
     "section 0 (weights): flags 3, alignment 4096 are not valid"},
    {"alignment of 3",
     [](auto& b) {
         poke(b, 64 + 72, uint64_t{3});
         rehash(b);
     },
     "section 0 (weights): flags 1, alignment 3 are not valid"},
    {"unknown required section",
     [](auto& b) {
         poke(b, 64, uint32_t{99});
         rehash(b);
     },
     "section 0 has kind 99, which Ingot 0.1.0 does not know but the engine (Ingot 0.1.0) needs; "
     "use a newer Ingot"},
    {"offset moved",
     [](auto& b) {
         poke(b, 64 + 8, uint64_t{8192});
         rehash(b);
     },
     "section 0 (weights) lies at 8192 with 128 bytes, expected at 4096 inside"},
    {"size overflows",
     [](auto& b) {
         poke(b, 64 + 16, ~uint64_t{0});
         rehash(b);
     },
     "section 0 (weights) lies at 4096 with 18446744073709551615 bytes, expected at 4096 inside"},
    {"section twice",
     [](auto& b) {
         poke(b, 64 + 88, uint32_t{2});
         rehash(b);
     },
     "section 1 (weights) occurs twice"},
    {"section missing",
     [](auto& b) {
         poke(b, 64 + 4 * 88, uint32_t{99});
         poke(b, 64 + 4 * 88 + 4, uint32_t{0});
         rehash(b);
     },
     "section metadata is missing"},
    {"dirty gap", [](auto& b) { poke(b, 64 + 5 * 88 + 10, uint8_t{1}); },
     "before section 0 (weights) is not zero: the file is damaged, copy it again or rebuild the "
     "engine"},
    {"damaged weights", [](auto& b) { poke(b, 4096, uint8_t{77}); },
     "section weights: chunk 0 of 1, bytes 4096 to 4223, does not match its hash: the file is "
     "damaged, copy it again or rebuild the engine"},
    {"damaged weight hashes", [](auto& b) { poke(b, 4096 + 128, uint8_t{77}); },
     "section weights does not match its hash: the file is damaged, copy it again or rebuild the "
     "engine"},
};

TEST(Engine, MalformedFilesHaveExactMessages) {
    for (const Mutation& m : mutations) {
        std::vector<std::byte> b = engine_bytes();
        m.change(b);
        std::string text = error_of(b);
        EXPECT_NE(text.find(m.message), std::string::npos) << m.name << ": " << text;
    }
    test::record_injections(std::ssize(mutations), std::ssize(mutations));
}

// Sections with valid hashes but wrong content.
std::string hostile(const char* profiles, const char* properties) {
    TemporaryFolder folder;
    std::string path = folder.path() + "/e.engine";
    std::vector<std::byte> good = engine_bytes();
    Container c(good, nullptr);
    ContainerWriter out(path, 5);
    for (SectionKind k : {SectionKind::Weights, SectionKind::WeightHashes, SectionKind::Graph}) {
        out.begin(k, true, k == SectionKind::Weights ? weight_alignment : 64);
        out.write(c.section(k));
        out.end();
    }
    out.set_xxh3(SectionKind::Weights, xxh3_128(c.section(SectionKind::WeightHashes)));
    for (auto [kind, text] : {std::pair{SectionKind::Profiles, profiles},
                              std::pair{SectionKind::Metadata, properties}}) {
        out.begin(kind, true);
        out.write(std::as_bytes(std::span(text, std::strlen(text))));
        out.end();
    }
    out.commit();
    return error_of(bytes_of(path));
}

TEST(Engine, HostileSectionsAreRefused) {
    EXPECT_EQ(hostile("[]", "{}"), "");
    EXPECT_NE(hostile("", "{}").find("section profiles is invalid: "), std::string::npos);
    EXPECT_NE(hostile("{\"a\":1}", "{}").find("section profiles is invalid: "), std::string::npos);
    EXPECT_NE(hostile("[[{\"input\":\"x\"}]]", "{}").find("an object has no 'min'"),
              std::string::npos);
    EXPECT_NE(hostile("[[{\"input\":\"q\",\"min\":[1],\"opt\":[1],\"max\":[1]}]]", "{}")
                  .find("there is no input 'q'"),
              std::string::npos);
    EXPECT_NE(hostile("[[{\"input\":\"x\",\"min\":[4,8],\"opt\":[1,8],\"max\":[1,8]}]]", "{}")
                  .find("min 4, opt 1, max 1"),
              std::string::npos);
    EXPECT_NE(hostile("[]", "[1]").find("section metadata is invalid: "), std::string::npos);
    std::string deep(100000, '[');
    EXPECT_NE(hostile(deep.c_str(), "{}").find("it is nested deeper than"), std::string::npos);
}

} // namespace
} // namespace ingot
