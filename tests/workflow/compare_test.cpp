// SPDX-License-Identifier: Apache-2.0
// Differences between tensors: NaN, infinity, ties; and the decision when references disagree.
#include "base/file.h"
#include "ops/ops.h"
#include "workflow/compare/compare.h"
#include "workflow/compare/ties.h"
#include "workflow/inputs/npy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace ingot {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

Tensor floats(const Shape& shape, const std::vector<float>& v) {
    return Tensor::of<float>(DType::F32, shape, v);
}

// --- differences

TEST(TensorDifference, NanEqualsNothing) {
    Tensor ours = floats({2, 3}, {1, 2, NAN, 4, NAN, 6});
    Tensor reference = floats({2, 3}, {1, 2, NAN, 4, 5, NAN});
    TensorDifference d = difference("y", ours, reference, 1, 1);
    EXPECT_FALSE(d.within);
    EXPECT_EQ(d.mismatched.count, 3);
    EXPECT_EQ(d.text(),
              "max error 0 (0 of the range) over 6 elements, 3 differ in NaN or infinity: "
              "element [0,2] is nan, expected nan");
    EXPECT_EQ(mismatches(floats({}, {1}), floats({}, {NAN})).text, "element [] is 1, expected nan");
}

TEST(TensorDifference, EqualInfinitiesAreEqual) {
    EXPECT_TRUE(difference("y", floats({3}, {1, infinity, -infinity}),
                           floats({3}, {1, infinity, -infinity}), 0, 0)
                    .within);
    TensorDifference d = difference("y", floats({2}, {1, infinity}), floats({2}, {1, -infinity}),
                                    infinity, infinity);
    EXPECT_FALSE(d.within);
    EXPECT_EQ(d.mismatched.text, "element [1] is inf, expected -inf");
}

TEST(TensorDifference, SaysWhatIsOfAnotherShape) {
    TensorDifference d = difference("y", floats({2}, {1, 2}), floats({1, 2}, {1, 2}), 0, 0);
    EXPECT_FALSE(d.within);
    EXPECT_EQ(d.text(), "shape [2], the reference has [1,2]");
}

// --- ties

TEST(Ties, FindsTheScoresBehindIndices) {
    Graph g;
    Value x = g.add_input("x", Type{DType::F32, {Dim(2), Dim(4)}});
    Values top = ops::topk(g, {Dim(2), 1, true}, x);
    g.add_output("values", top[0]);
    g.add_output("indices", ops::cast(g, top[1], DType::I32));
    g.add_output("best", ops::arg_reduce(g, "max", x, 1));
    std::vector<Choice> found = choices(g);
    ASSERT_EQ(found.size(), 2U);
    EXPECT_EQ(found[0].output, 1U);
    EXPECT_EQ(found[1].output, 2U);
    for (const Choice& c : found) {
        EXPECT_EQ(c.scores, x);
        EXPECT_EQ(c.axis, 1);
    }
}

TEST(Ties, IndicesOfEqualScoresAreTied) {
    Tensor scores = floats({2, 3}, {5, 5, 1, 2, 7, 7});
    auto index = [](const std::vector<int64_t>& v) {
        return Tensor::of<int64_t>(DType::I64, {2, 2}, v);
    };
    Tensor reference = index({0, 1, 1, 2});
    EXPECT_EQ(tied_choices(index({1, 0, 2, 1}), reference, scores, 1, 0), 4);
    EXPECT_EQ(tied_choices(reference, reference, scores, 1, 0), 0);
    EXPECT_EQ(tied_choices(index({0, 2, 1, 2}), reference, scores, 1, 0), std::nullopt);
    EXPECT_EQ(tied_choices(index({0, 0, 1, 2}), reference, scores, 1, 0), std::nullopt) << "twice";
    EXPECT_EQ(tied_choices(index({0, 3, 1, 2}), reference, scores, 1, 9), std::nullopt);
    EXPECT_EQ(tied_choices(index({0, -1, 1, 2}), reference, scores, 1, 9), std::nullopt);
}

struct Outputs {
    std::vector<Tensor> ours, reference;
    std::vector<TensorDifference> differences;

    std::vector<bool> accepted() {
        std::vector<ComparedOutput> all;
        differences.clear();
        for (size_t i = 0; i < ours.size(); ++i) {
            differences.push_back(difference("y", ours[i], reference[i], 1e-5, 0));
        }
        for (size_t i = 0; i < ours.size(); ++i) {
            all.push_back({&ours[i], &reference[i], &differences[i]});
        }
        accept_reordered_rows(all, 1e-5, 0);
        std::vector<bool> within;
        for (const TensorDifference& d : differences) {
            within.push_back(d.within);
        }
        return within;
    }
};

TEST(Ties, RowsOfEqualScoresMaySwap) {
    Tensor scores = floats({4}, {9, 5, 5, 1});
    Outputs o;
    o.reference = {scores, floats({4, 2}, {1, 1, 2, 2, 3, 3, 4, 4})};
    o.ours = {scores, floats({4, 2}, {1, 1, 3, 3, 2, 2, 4, 4})};
    EXPECT_EQ(o.accepted(), (std::vector<bool>{true, true}));
    EXPECT_EQ(o.differences[1].tied, 2);
    EXPECT_NE(o.differences[1].text().find("2 tied: equal scores in another order"),
              std::string::npos);
    o.ours[1] = floats({4, 2}, {2, 2, 1, 1, 3, 3, 4, 4}); // of other scores
    EXPECT_EQ(o.accepted(), (std::vector<bool>{true, false}));
    o.ours[1] = floats({4, 2}, {1, 1, 3, 3, 3, 3, 4, 4}); // one of them twice
    EXPECT_EQ(o.accepted(), (std::vector<bool>{true, false}));
}

TEST(Ties, AllThatBelongsToARowMovesWithIt) {
    Tensor scores = floats({2}, {5, 5});
    Outputs o;
    o.reference = {scores, floats({2, 1}, {1, 2}), floats({2}, {10, 20})};
    o.ours = {scores, floats({2, 1}, {2, 1}), floats({2}, {20, 10})};
    EXPECT_EQ(o.accepted(), (std::vector<bool>{true, true, true}));
    o.ours[2] = floats({2}, {10, 20});
    EXPECT_EQ(o.accepted(), (std::vector<bool>{true, false, true}));
}

// --- who decides

ReferenceReport report_of(bool within, std::string skipped = "") {
    ReferenceReport r;
    r.skipped = std::move(skipped);
    r.outputs.emplace_back().within = within;
    return r;
}

TEST(CompareReport, Float64DecidesWhereItRan) {
    CompareReport r;
    r.references = {report_of(false), report_of(true)};
    EXPECT_TRUE(r.ok());
    r.references = {report_of(true), report_of(false)};
    EXPECT_FALSE(r.ok());
    r.references = {report_of(false), report_of(true, "too large")};
    EXPECT_FALSE(r.ok());
    r.references = {report_of(true, "no Python"), report_of(true, "too large")};
    EXPECT_EQ(r.deciding(), nullptr);
    EXPECT_FALSE(r.ok()) << "nothing was compared";
}

// --- arrays in files

TEST(Npy, ReadsFortranOrder) {
    std::string path = testing::TempDir() + "fortran.npy";
    std::string header = "{'descr': '<i2', 'fortran_order': True, 'shape': (2, 3, 2), }";
    header.resize(117, ' ');
    header += '\n';
    std::string file =
        std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size()) + '\0' + header;
    Tensor wanted = Tensor::empty(DType::I16, {2, 3, 2});
    for (int16_t k = 0; k < 12; ++k) { // in the file the first index is the fastest
        file += static_cast<char>(k);
        file += '\0';
        int64_t i = k % 2;
        int64_t j = k / 2 % 3;
        int64_t l = k / 6;
        wanted.set_i64((i * 3 + j) * 2 + l, k);
    }
    write_file(path, file);
    Tensor t = read_npy(path);
    EXPECT_EQ(t.shape(), (Shape{2, 3, 2}));
    EXPECT_TRUE(std::equal(t.bytes().begin(), t.bytes().end(), wanted.bytes().begin()));
}

} // namespace
} // namespace ingot
