// SPDX-License-Identifier: Apache-2.0
// Hostile bytes: each malformed model gives its exact error, and no truncation or flipped bit of a
// model that uses every message does anything but read or fail cleanly.
#include "counts.h"
#include "onnx/malformed/cases.h"
#include "onnx/proto_builder.h"
#include "onnx/reader.h"
#include "onnx/test_util.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>

namespace ingot::onnx::test {
namespace {

class Malformed : public testing::TestWithParam<MalformedCase> {};

TEST_P(Malformed, GivesItsError) {
    const MalformedCase& c = GetParam();
    try {
        read_model(as_bytes(c.bytes), "", nullptr);
        FAIL() << "was read without an error";
    } catch (const Error& e) {
        EXPECT_EQ(e.what(), c.error);
        EXPECT_EQ(e.code(), ErrorCode::InvalidModel);
    }
}

INSTANTIATE_TEST_SUITE_P(Onnx, Malformed, testing::ValuesIn(all_malformed()),
                         [](const auto& c) { return std::string(c.param.name); });

TEST(MalformedTable, HasDistinctErrors) {
    std::set<std::string> names;
    for (const MalformedCase& c : all_malformed()) {
        EXPECT_TRUE(names.insert(c.name).second) << c.name;
    }
    EXPECT_GE(names.size(), 100U);
}

// An allocation of exactly this size, so that a sanitizer sees a read past its end.
bool reads(const std::string& bytes) {
    const auto exact = std::make_unique<std::byte[]>(bytes.size());
    std::copy_n(as_bytes(bytes).begin(), bytes.size(), exact.get());
    try {
        read_model({exact.get(), bytes.size()}, "", nullptr);
        return true;
    } catch (const Error&) {
        return false;
    }
}

TEST(MalformedSeed, EveryTruncationIsRefusedOrWhole) {
    const std::string seed = rich_model();
    ASSERT_TRUE(reads(seed));
    size_t whole = 0;
    for (size_t n = 0; n < seed.size(); ++n) {
        whole += reads(seed.substr(0, n)) ? 1 : 0;
    }
    // Cuts between the model's last optional fields leave a model: after the second opset import,
    // the metadata and the function.
    EXPECT_EQ(whole, 4U);
    ingot::test::record_injections(std::ssize(seed),
                                   std::ssize(seed) - static_cast<int64_t>(whole));
}

TEST(MalformedSeed, EveryFlippedBitIsReadOrRefused) {
    const std::string seed = rich_model();
    size_t refused = 0;
    for (size_t bit = 0; bit < seed.size() * 8; ++bit) {
        std::string flipped = seed;
        flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
        refused += reads(flipped) ? 0 : 1;
    }
    EXPECT_GT(refused, seed.size());
    ingot::test::record_injections(std::ssize(seed) * 8, static_cast<int64_t>(refused));
}

TEST(MalformedSeed, EveryByteReplacedIsReadOrRefused) {
    const std::string seed = rich_model();
    size_t refused = 0;
    for (size_t i = 0; i < seed.size(); ++i) {
        for (const int value : {0x00, 0x7f, 0x80, 0xff}) {
            std::string replaced = seed;
            replaced[i] = static_cast<char>(value);
            refused += reads(replaced) ? 0 : 1;
        }
    }
    // Tags and lengths are refused; bytes of names and of weights are as good as others.
    EXPECT_GT(refused, seed.size());
    EXPECT_LT(refused, 4 * seed.size());
}

TEST(MalformedSeed, EveryByteLeftOutOrDoubledIsReadOrRefused) {
    const std::string seed = rich_model();
    size_t read = 0;
    for (size_t i = 0; i < seed.size(); ++i) {
        read += reads(seed.substr(0, i) + seed.substr(i + 1)) ? 1 : 0;
        read += reads(seed.substr(0, i) + seed.substr(i, 1) + seed.substr(i)) ? 1 : 0;
    }
    // The enclosing lengths count everything in the graph.
    EXPECT_LT(read, seed.size() / 8);
}

} // namespace
} // namespace ingot::onnx::test
