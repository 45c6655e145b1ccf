// SPDX-License-Identifier: Apache-2.0
// Layers that move, make and select data.
#include "api/network_fixture.h"

namespace ingot::test {

namespace {

using Data = NetworkTest;

TEST_F(Data, shuffle_transposes_reshapes_and_transposes) {
    nv::ITensor& x = input("x", {2, 3, 4});
    auto* s = network->addShuffle(x);
    s->setFirstTranspose({{0, 2, 1}});
    s->setReshapeDimensions(dims({0, -1}));
    s->setSecondTranspose({{1, 0}});
    EXPECT_EQ(list(s->getOutput(0)->getDimensions()), (std::vector<int64_t>{12, 2}));
    Tensor data = numbers({2, 3, 4});
    auto y = run(s, {data});
    expect_elements(y, 0, {12, 2}, [&](int64_t i) {
        int64_t k = i / 2; // of 4 x 3
        return data.get_f64(i % 2 * 12 + k % 3 * 4 + k / 3);
    });
}

TEST_F(Data, shuffle_takes_its_shape_from_a_tensor) {
    nv::ITensor& x = input("x", {-1, 6});
    nv::ITensor& shape = *network->addShape(x)->getOutput(0);
    EXPECT_EQ(shape.getType(), nv::DataType::kINT64);
    auto* flipped = network->addGather(shape, indices({1, 0}), 0);
    auto* s = network->addShuffle(x);
    s->setInput(1, *flipped->getOutput(0));
    EXPECT_EQ(s->getReshapeDimensions().nbDims, -1);
    EXPECT_TRUE(shape.isShapeTensor());
    EXPECT_FALSE(x.isShapeTensor());
    EXPECT_EQ(list(s->getOutput(0)->getDimensions()), (std::vector<int64_t>{6, -1}));
    Tensor data = numbers({5, 6});
    auto y = run(s, {data});
    expect_elements(y, 0, {6, 5}, [&](int64_t i) { return data.get_f64(i); });
}

TEST_F(Data, squeeze_unsqueeze_concatenation_and_constant) {
    nv::ITensor& x = input("x", {2, 1, 3});
    Tensor more = numbers({2, 3});
    nv::ITensor& flat = *network->addSqueeze(x, indices({1}))->getOutput(0);
    nv::ITensor* parts[] = {&flat, &constant(more)};
    auto* c = network->addConcatenation(parts, 2);
    EXPECT_EQ(c->getAxis(), 0);
    c->setAxis(1);
    auto* u = network->addUnsqueeze(*c->getOutput(0), indices({0, 3}));
    Tensor data = numbers({2, 1, 3});
    auto y = run(u, {data});
    expect_elements(y, 0, {1, 2, 6, 1}, [&](int64_t i) {
        int64_t column = i % 6;
        return column < 3 ? data.get_f64(i / 6 * 3 + column) : more.get_f64(i / 6 * 3 + column - 3);
    });
}

TEST_F(Data, slice_in_every_mode) {
    nv::ITensor& x = input("x", {2, 5});
    struct Case {
        nv::SampleMode mode;
        int64_t start;
        int64_t stride;
        int64_t columns[4]; // -1: filled
    };
    const Case cases[] = {
        {nv::SampleMode::kSTRICT_BOUNDS, 4, -1, {4, 3, 2, 1}},
        {nv::SampleMode::kWRAP, 3, 1, {3, 4, 0, 1}},
        {nv::SampleMode::kCLAMP, -1, 2, {0, 1, 3, 4}},
        {nv::SampleMode::kREFLECT, -2, 2, {2, 0, 2, 4}},
        {nv::SampleMode::kFILL, 3, 1, {3, 4, -1, -1}},
    };
    for (const Case& c : cases) {
        auto* s = network->addSlice(x, dims({0, c.start}), dims({2, 4}), dims({1, c.stride}));
        s->setMode(c.mode);
        if (c.mode == nv::SampleMode::kFILL) {
            s->setInput(4, constant(Tensor::scalar(DType::F32, 9)));
        }
        network->markOutput(*s->getOutput(0));
    }
    Tensor data = numbers({2, 5});
    auto y = run({data});
    for (size_t k = 0; k < std::size(cases); ++k) {
        SCOPED_TRACE(k);
        expect_elements(y, k, {2, 4}, [&](int64_t i) {
            int64_t column = cases[k].columns[i % 4];
            return column < 0 ? 9 : data.get_f64(i / 4 * 5 + column);
        });
    }
}

TEST_F(Data, slice_by_tensors_along_axes) {
    nv::ITensor& x = input("x", {3, -1});
    nv::ITensor& shape = *network->addShape(x)->getOutput(0);
    nv::ITensor& width = *network->addGather(shape, indices({1}), 0)->getOutput(0);
    nv::ITensor& less =
        *network->addElementWise(width, indices({1}), nv::ElementWiseOperation::kSUB)->getOutput(0);
    auto* s = network->addSlice(x, dims({1}), dims({0}), dims({1}));
    s->setAxes(dims({1}));
    s->setInput(2, less);
    EXPECT_TRUE(less.isShapeTensor());
    Tensor data = numbers({3, 4});
    auto y = run(s, {data});
    expect_elements(y, 0, {3, 3}, [&](int64_t i) { return data.get_f64(i / 3 * 4 + i % 3 + 1); });
}

TEST_F(Data, padding_adds_and_crops) {
    nv::ITensor& x = input("x", {1, 1, 3, 3});
    Tensor data = numbers({1, 1, 3, 3});
    auto y = run(network->addPaddingNd(x, nv::DimsHW(1, -1), nv::DimsHW(0, 2)), {data});
    expect_elements(y, 0, {1, 1, 4, 4}, [&](int64_t i) {
        int64_t h = i / 4 - 1;
        int64_t w = i % 4 + 1;
        return h >= 0 && w < 3 ? data.get_f64(h * 3 + w) : 0;
    });
}

TEST_F(Data, gather_in_every_mode) {
    nv::ITensor& x = input("x", {2, 3, 4});
    auto* plain = network->addGather(x, indices({2, -3}), 1);
    auto* batched = network->addGather(x, constant(Tensor::i64({1, 0}).reshaped({2, 1})), 2);
    batched->setNbElementWiseDims(1);
    auto* element = network->addGatherV2(x, constant(Tensor::i64({3, 0}).reshaped({2, 1, 1})),
                                         nv::GatherMode::kELEMENT);
    element->setGatherAxis(2);
    auto* nd = network->addGatherV2(x, constant(Tensor::i64({1, 2}).reshaped({1, 2})),
                                    nv::GatherMode::kND);
    for (nv::ILayer* l : std::initializer_list<nv::ILayer*>{plain, batched, element, nd}) {
        network->markOutput(*l->getOutput(0));
    }
    Tensor data = numbers({2, 3, 4});
    auto y = run({data});
    expect_elements(y, 0, {2, 2, 4}, [&](int64_t i) {
        return data.get_f64(i / 8 * 12 + (i / 4 % 2 == 0 ? 8 : 0) + i % 4);
    });
    expect_elements(y, 1, {2, 3, 1},
                    [&](int64_t i) { return data.get_f64(i * 4 + (i < 3 ? 1 : 0)); });
    expect_elements(y, 2, {2, 1, 1}, [&](int64_t i) { return data.get_f64(i == 0 ? 3 : 12); });
    expect_elements(y, 3, {1, 4}, [&](int64_t i) { return data.get_f64(20 + i); });
}

TEST_F(Data, scatter_of_elements_and_slices) {
    nv::ITensor& x = input("x", {3, 2});
    Tensor updates = numbers({1, 2}, 5, 9);
    auto* element = network->addScatter(x, constant(Tensor::i64({2, 0}).reshaped({1, 2})),
                                        constant(updates), nv::ScatterMode::kELEMENT);
    auto* nd = network->addScatter(x, constant(Tensor::i64({1}).reshaped({1, 1})),
                                   constant(updates), nv::ScatterMode::kND);
    network->markOutput(*element->getOutput(0));
    network->markOutput(*nd->getOutput(0));
    Tensor data = numbers({3, 2});
    auto y = run({data});
    expect_elements(y, 0, {3, 2}, [&](int64_t i) {
        return i == 4 ? updates.get_f64(0) : i == 1 ? updates.get_f64(1) : data.get_f64(i);
    });
    expect_elements(y, 1, {3, 2}, [&](int64_t i) {
        return i / 2 == 1 ? updates.get_f64(i % 2) : data.get_f64(i);
    });
}

TEST_F(Data, one_hot_and_non_zero) {
    nv::ITensor& at = input("at", nv::DataType::kINT32, {3});
    std::vector<float> off_on = {-1, 1};
    auto* hot =
        network->addOneHot(at, constant(Tensor::of<float>(DType::F32, {2}, off_on)), scalar(4), 1);
    auto* where = network->addNonZero(at, nv::DataType::kINT32);
    EXPECT_EQ(list(where->getOutput(0)->getDimensions()), (std::vector<int64_t>{1, -1}));
    network->markOutput(*hot->getOutput(0));
    network->markOutput(*where->getOutput(0));
    std::vector<int32_t> values = {2, 0, 3};
    auto y = run({Tensor::of<int32_t>(DType::I32, {3}, values)});
    expect_elements(y, 0, {3, 4}, [&](int64_t i) {
        return values[static_cast<size_t>(i / 4)] == i % 4 ? 1 : -1;
    });
    expect_elements(y, 1, {1, 2}, [&](int64_t i) { return i == 0 ? 0 : 2; });
}

TEST_F(Data, reverse_sequence) {
    nv::ITensor& x = input("x", {3, 2});
    Tensor data = numbers({3, 2});
    auto y = run(network->addReverseSequence(x, indices({3, 2})), {data});
    const int64_t from[] = {4, 3, 2, 1, 0, 5};
    expect_elements(y, 0, {3, 2}, [&](int64_t i) { return data.get_f64(from[i]); });
}

TEST_F(Data, fills_count_in_each_dimension_and_draw_numbers) {
    auto* line = network->addFill(dims({2, 3}), nv::FillOperation::kLINSPACE, nv::DataType::kFLOAT);
    std::vector<float> steps = {10, 1};
    line->setInput(1, constant(Tensor::scalar(DType::F32, 5)));
    line->setInput(2, constant(Tensor::of<float>(DType::F32, {2}, steps)));
    auto* whole = network->addFill(dims({4}), nv::FillOperation::kLINSPACE, nv::DataType::kINT64);
    whole->setAlphaInt64(7);
    whole->setBetaInt64(-2);
    EXPECT_TRUE(whole->isAlphaBetaInt64());
    auto* uniform =
        network->addFill(dims({1000}), nv::FillOperation::kRANDOM_UNIFORM, nv::DataType::kFLOAT);
    uniform->setAlpha(2);
    uniform->setBeta(4);
    auto* normal =
        network->addFill(dims({1000}), nv::FillOperation::kRANDOM_NORMAL, nv::DataType::kFLOAT);
    normal->setAlpha(-1);
    normal->setBeta(0.5);
    for (nv::ILayer* l : std::initializer_list<nv::ILayer*>{line, whole, uniform, normal}) {
        network->markOutput(*l->getOutput(0));
    }
    auto y = run(std::vector<Tensor>());
    expect_elements(y, 0, {2, 3},
                    [](int64_t i) { return static_cast<double>(5 + i / 3 * 10 + i % 3); });
    expect_elements(y, 1, {4}, [](int64_t i) { return static_cast<double>(7 - 2 * i); });
    double means[2] = {0, 0};
    for (int64_t i = 0; i < 1000; ++i) {
        EXPECT_GE(y[2].get_f64(i), 2);
        EXPECT_LE(y[2].get_f64(i), 4);
        means[0] += y[2].get_f64(i) / 1000;
        means[1] += y[3].get_f64(i) / 1000;
    }
    EXPECT_NEAR(means[0], 3, 0.1);
    EXPECT_NEAR(means[1], -1, 0.1);
}

TEST_F(Data, non_maximum_suppression) {
    nv::ITensor& boxes = input("boxes", {1, 3, 4});
    nv::ITensor& scores = input("scores", {1, 3, 2});
    auto* nms = network->addNMS(boxes, scores, scalar(2), nv::DataType::kINT32);
    nms->setInput(3, constant(Tensor::scalar(DType::F32, 0.5)));
    nms->setInput(4, constant(Tensor::scalar(DType::F32, 0.1)));
    std::vector<float> b = {0, 0, 1, 1, 0, 0, 1, 0.9F, 5, 5, 6, 6};
    std::vector<float> s = {0.9F, 0, 0.8F, 0, 0.7F, 0.5F};
    auto y = run(nms, {Tensor::of<float>(DType::F32, {1, 3, 4}, b),
                       Tensor::of<float>(DType::F32, {1, 3, 2}, s)});
    const double expected[] = {0, 0, 0, 0, 0, 2, 0, 1, 2};
    expect_elements(y, 0, {3, 3}, [&](int64_t i) { return expected[i]; });
    expect_elements(y, 1, {}, [](int64_t) { return 3; });
}

TEST_F(Data, assertions_are_checked_when_the_network_is_built) {
    nv::ITensor& x = input("x", {2, 3});
    nv::ITensor& shape = *network->addShape(x)->getOutput(0);
    auto* same = network->addElementWise(shape, indices({2, 4}), nv::ElementWiseOperation::kEQUAL);
    auto* a = network->addAssertion(*same->getOutput(0), "three columns are four");
    EXPECT_STREQ(a->getMessage(), "three columns are four");
    network->markOutput(*network->addIdentity(x)->getOutput(0));
    EXPECT_EQ(builder->buildSerializedNetwork(*network, *config), nullptr);
    EXPECT_EQ(logger.errors.back(),
              "IBuilder::buildSerializedNetwork: layer '(Unnamed Layer* 3) [Assertion]' "
              "(Assertion): the assertion fails: three columns are four");
}

} // namespace

} // namespace ingot::test
