// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "ir/binary.h"
#include "ir/sample_graphs.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "ops/op_table.h"

#include <gtest/gtest.h>

namespace ingot {
namespace {

// A weights section in memory.
struct Weights {
    std::vector<Tensor> tensors;
    StoreTensor store = [this](const Tensor& t) {
        tensors.push_back(t);
        return uint64_t{1000} * tensors.size();
    };
    ReadOptions read{find_op, [this](DType t, const Shape& shape, uint64_t offset) {
                         for (size_t i = 0; i < tensors.size(); ++i) {
                             if (offset == 1000 * (i + 1) && tensors[i].dtype() == t &&
                                 tensors[i].shape() == shape) {
                                 return tensors[i];
                             }
                         }
                         fail(ErrorCode::InvalidEngine, "no tensor at ", offset);
                     }};
};

std::string full(const Graph& g) {
    PrintOptions o;
    o.full = true;
    return print(g, o);
}

TEST(Binary, EveryOpComesBack) {
    for (const Graph& g : test::sample_graphs()) {
        Weights w;
        std::vector<std::byte> bytes = write_graph(g, w.store);
        Graph again = read_graph(bytes, w.read);
        verify(again);
        EXPECT_EQ(full(again), full(g));
        EXPECT_EQ(write_graph(again,
                              [&, i = size_t{0}](const Tensor& t) mutable {
                                  EXPECT_EQ(t, w.tensors[i]);
                                  return 1000 * ++i;
                              }),
                  bytes);
    }
}

TEST(Binary, SmallConstantsStandInTheGraph) {
    Graph g("g");
    g.add_output("a", ops::constant(g, Tensor::zeros(DType::F32, {16})));
    g.add_output("b", ops::constant(g, Tensor::zeros(DType::F32, {17})));
    Weights w;
    write_graph(g, w.store);
    ASSERT_EQ(w.tensors.size(), 1U);
    EXPECT_EQ(w.tensors[0].count(), 17);
}

std::string error_of(std::span<const std::byte> bytes, const ReadOptions& options) {
    try {
        read_graph(bytes, options);
    } catch (const Error& e) {
        EXPECT_EQ(e.code(), ErrorCode::InvalidEngine) << e.what();
        return e.what();
    }
    return "";
}

TEST(Binary, EveryTruncationIsRefused) {
    for (const Graph& g : test::sample_graphs()) {
        Weights w;
        std::vector<std::byte> bytes = write_graph(g, w.store);
        for (size_t n = 0; n < bytes.size(); ++n) {
            ASSERT_NE(error_of(std::span(bytes).first(n), w.read), "") << n << " bytes";
        }
        bytes.push_back(std::byte{0});
        EXPECT_NE(error_of(bytes, w.read).find("1 bytes follow the graph"), std::string::npos);
    }
}

TEST(Binary, DamageIsAnErrorOrAnotherValidGraph) {
    Graph g = test::control_graph();
    Weights w;
    std::vector<std::byte> bytes = write_graph(g, w.store);
    size_t refused = 0;
    for (size_t i = 0; i < bytes.size(); ++i) {
        for (int bit = 0; bit < 8; ++bit) {
            bytes[i] ^= std::byte(1 << bit);
            try {
                verify(read_graph(bytes, w.read));
            } catch (const Error&) {
                ++refused;
            }
            bytes[i] ^= std::byte(1 << bit);
        }
    }
    EXPECT_GT(refused, bytes.size() * 4);
}

TEST(Binary, ErrorsSayWhatIsWrong) {
    Graph g("g");
    g.add_output("y", ops::exp(g, g.add_input("x", {DType::F32, {2}})));
    Weights w;
    std::vector<std::byte> bytes = write_graph(g, w.store);
    ReadOptions none{[](std::string_view) -> const OpDef* { return nullptr; }, {}};
    EXPECT_NE(error_of(bytes, none).find("unknown op 'map'"), std::string::npos);
    ReadOptions other{[](std::string_view) { return &reshape_def; }, {}};
    EXPECT_NE(
        error_of(bytes, other).find("op 'map' has no attribute 'body', expected one of [dims]"),
        std::string::npos);
    bytes[0] = std::byte{9};
    EXPECT_EQ(error_of(bytes, w.read),
              "graph section, byte 1: graph format 9 is not supported, expected 1: rebuild the "
              "engine, or use the version of the library that wrote it");
}

TEST(Binary, StoredTypesMustMatchInference) {
    Graph g("g");
    Value x = g.add_input("x", {DType::F32, {2}});
    g.add_output("y", ops::exp(g, x));
    Weights w;
    std::vector<std::byte> bytes = write_graph(g, w.store);
    // The input's type entry is the only f32; make the result refer to a type of its own.
    g.add_output("z", ops::reshape(g, x, {1, 2}));
    std::vector<std::byte> two = write_graph(g, w.store);
    bool seen = false;
    for (size_t i = 0; i < two.size() && !seen; ++i) {
        std::vector<std::byte> damaged = two;
        damaged[i] ^= std::byte{1};
        seen = error_of(damaged, w.read).find("inference gives f32[1,2]") != std::string::npos;
    }
    EXPECT_TRUE(seen);
}

} // namespace
} // namespace ingot
