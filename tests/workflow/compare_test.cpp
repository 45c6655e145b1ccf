// SPDX-License-Identifier: Apache-2.0
// Differences between tensors: NaN, infinity, ties; and the decision when references disagree.
#include "backends/backends.h"
#include "base/file.h"
#include "ops/ops.h"
#include "source_dir.h"
#include "workflow/compare/compare.h"
#include "workflow/compare/first_wrong.h"
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

TEST(TensorDifference, CountsWrongElementsAndNamesTheirPlace) {
    TensorDifference d = difference("y", floats({2, 3}, {1, 2, 3.5, 4, 9, NAN}),
                                    floats({2, 3}, {1, 2, 3, 4, 5, 6}), 1, 0);
    EXPECT_EQ(d.place(), "y");
    d.node = "conv + relu";
    d.step = 7;
    EXPECT_EQ(d.place(), "y (node 'conv + relu', f32[2,3])");
    EXPECT_EQ(d.wrong_text(), "2 of 6 elements from index 4 on");
    EXPECT_EQ(difference("y", floats({1}, {1}), floats({1}, {1}), 0, 0).wrong, 0);
}

// --- the first wrong step

TensorDifference at_step(const char* name, int64_t step, bool right) {
    TensorDifference d = difference(name, floats({4}, {1, 2, 3, right ? 4.0F : 5.0F}),
                                    floats({4}, {1, 2, 3, 4}), 0, 0);
    d.node = str("node of ", name);
    d.step = step;
    return d;
}

TEST(FirstWrong, IsTheEarliestStep) {
    std::vector<TensorDifference> layers = {at_step("a", 3, true), at_step("c", 5, false),
                                            at_step("b", 4, false)};
    std::vector<TensorDifference> outputs = {at_step("y", -1, false)};
    EXPECT_EQ(first_wrong(layers, outputs, {}),
              "first wrong: layer b (node 'node of b', f32[4]), 1 of 4 elements from index 3 on");
    layers.back().problem = "shape [4], the reference has [1,4]";
    EXPECT_EQ(
        first_wrong(layers, outputs, {}),
        "first wrong: layer b (node 'node of b', f32[4]), shape [4], the reference has [1,4]");
}

TEST(FirstWrong, IsAnOutputAsItsStepWroteIt) {
    std::vector<TensorDifference> layers = {at_step("a", 3, true), at_step("c", 9, false)};
    std::vector<TensorDifference> outputs = {at_step("y", -1, false), at_step("z", -1, true)};
    std::vector<TensorDifference> written = {at_step("z", 2, false), at_step("y", 8, false)};
    EXPECT_EQ(first_wrong(layers, outputs, written),
              "first wrong: output y (node 'node of y', f32[4]), 1 of 4 elements from index 3 on");
}

TEST(FirstWrong, SaysThatAllWasRightAtFirst) {
    std::vector<TensorDifference> layers = {at_step("a", 3, true)};
    std::vector<TensorDifference> outputs = {at_step("y", -1, false)};
    std::vector<TensorDifference> written = {at_step("y", 8, true)};
    EXPECT_EQ(
        first_wrong(layers, outputs, written),
        "every layer was right when it was written: something overwrote one later, or a value "
        "that is not listed is wrong");
    outputs[0].within = true;
    EXPECT_EQ(first_wrong(layers, outputs, written), "");
}

/// The CPU, whose plans fail when they are verified.
class FaultyPlans : public Backend {
public:
    std::string_view name() const override { return "faulty"; }
    std::string description() const override { return "faulty"; }
    std::shared_ptr<const Executable> compile(std::shared_ptr<const Graph> graph,
                                              const CompileOptions& options) const override {
        require(!options.verify_passes, ErrorCode::Internal, "the plan is wrong");
        return cpu_backend().compile(std::move(graph), options);
    }
};

CompareReport compare_digits(double tolerance) {
    CompareOptions o;
    o.layers = true;
    o.atol = o.rtol = tolerance;
    o.excuse_rounding = false;
    o.python = "/nowhere/python";
    bool started = false;
    o.started = [&started](const CompareReport& r) {
        started = r.gflop > 0 && r.references.empty();
    };
    CompareReport r =
        compare_model(source_dir() + "/examples/digits/digits.onnx", FaultyPlans(), o);
    EXPECT_TRUE(started);
    return r;
}

TEST(CompareReport, ListsLayersInTheOrderOfSteps) {
    CompareReport r = compare_digits(0);
    const ReferenceReport& f = *r.deciding();
    ASSERT_GE(f.layers.size(), 2U);
    for (size_t i = 0; i < f.layers.size(); ++i) {
        const TensorDifference& d = f.layers[i];
        EXPECT_GE(d.step, i == 0 ? 0 : f.layers[i - 1].step);
        EXPECT_NE(d.node, "");
        EXPECT_EQ(d.wrong > 0, !d.within) << d.name;
    }
    EXPECT_TRUE(f.first_wrong().starts_with("first wrong: layer " + f.layers[0].place() + ", "))
        << f.first_wrong();
    for (const std::string& name : f.not_compared) {
        EXPECT_TRUE(std::none_of(f.layers.begin(), f.layers.end(), [&](const TensorDifference& d) {
            return d.name == name;
        })) << name;
    }
    EXPECT_FALSE(f.not_compared.empty()) << "convolutions are fused with what follows";
}

TEST(CompareReport, VerifiesPlansWhereResultsDiffer) {
    EXPECT_EQ(compare_digits(0).fault, "the plan is wrong");
    CompareReport same = compare_digits(1e-3);
    EXPECT_TRUE(same.ok());
    EXPECT_EQ(same.fault, "") << "nothing is wrong, so nothing is verified";
    EXPECT_EQ(same.deciding()->first_wrong(), "");
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
