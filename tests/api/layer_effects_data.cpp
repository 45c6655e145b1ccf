// SPDX-License-Identifier: Apache-2.0
// Settings of pointwise layers, reductions, shapes, indices and sources.
#include "api/layer_effects.h"

namespace ingot::test {

namespace {

nv::ITensor& x46(OneLayer& n) {
    return n.input("x", {4, 6});
}

nv::ITensor& x234(OneLayer& n) {
    return n.input("x", {2, 3, 4});
}

nv::ITensor& indices(OneLayer& n) {
    return n.input("at", {2, 3, 4}, nv::DataType::kINT32);
}

auto* clip(OneLayer& n) {
    auto* l = n.net().addActivation(x46(n), nv::ActivationType::kCLIP);
    l->setAlpha(-1);
    l->setBeta(1);
    return l;
}

auto* reduce(OneLayer& n) {
    return n.net().addReduce(x46(n), nv::ReduceOperation::kSUM, 1, false);
}

auto* top(OneLayer& n) {
    return n.net().addTopK(x46(n), nv::TopKOperation::kMAX, 2, 1);
}

auto* running(OneLayer& n) {
    return n.net().addCumulative(x46(n), n.ints({0}, true), nv::CumulativeOperation::kSUM, false,
                                 false);
}

auto* einsum(OneLayer& n) {
    nv::ITensor& x = x46(n);
    nv::ITensor* both[] = {&x, &x};
    return n.net().addEinsum(both, 2, "ij,ij->i");
}

auto* joined(OneLayer& n) {
    nv::ITensor& x = x234(n);
    nv::ITensor* both[] = {&x, &x};
    return n.net().addConcatenation(both, 2);
}

auto* shuffle(OneLayer& n) {
    auto* l = n.net().addShuffle(x234(n));
    l->setReshapeDimensions(nv::Dims3(3, 2, 4));
    return l;
}

auto* kept_shuffle(OneLayer& n) {
    auto* l = n.net().addShuffle(x234(n));
    l->setReshapeDimensions(nv::Dims2(0, 12));
    return l;
}

auto* slice(OneLayer& n) {
    return n.net().addSlice(x234(n), nv::Dims3(0, 0, 0), nv::Dims3(1, 2, 2), nv::Dims3(1, 1, 1));
}

auto* outside(OneLayer& n) {
    auto* l = n.net().addSlice(x234(n), nv::Dims3(0, 0, 2), nv::Dims3(2, 3, 4), nv::Dims3(1, 1, 1));
    l->setMode(nv::SampleMode::kWRAP);
    return l;
}

auto* axis_slice(OneLayer& n) {
    auto* l = n.net().addSlice(x234(n), dims({0}), dims({2}), dims({1}));
    l->setAxes(dims({1}));
    return l;
}

auto* gather(OneLayer& n, nv::GatherMode mode = nv::GatherMode::kDEFAULT) {
    return n.net().addGatherV2(x234(n), indices(n), mode);
}

auto* batched_gather(OneLayer& n) {
    return n.net().addGatherV2(n.input("x", {2, 2, 3}),
                               n.input("at", {2, 2, 1}, nv::DataType::kINT32), nv::GatherMode::kND);
}

auto* scatter(OneLayer& n) {
    nv::ITensor& x = x234(n);
    return n.net().addScatter(x, indices(n), x, nv::ScatterMode::kELEMENT);
}

auto* fill(OneLayer& n, nv::FillOperation op = nv::FillOperation::kLINSPACE) {
    auto* l = n.net().addFill(nv::Dims{1, {6}}, op, nv::DataType::kFLOAT);
    l->setAlpha(0);
    l->setBeta(1);
    return l;
}

auto* whole_fill(OneLayer& n) {
    auto* l = n.net().addFill(nv::Dims{1, {6}}, nv::FillOperation::kLINSPACE, nv::DataType::kINT64);
    l->setAlphaInt64(0);
    l->setBetaInt64(1);
    return l;
}

auto* nms(OneLayer& n) {
    return n.net().addNMS(n.input("boxes", {1, 5, 4}), n.input("scores", {1, 5, 2}),
                          n.ints({3}, true));
}

auto* reversed(OneLayer& n) {
    auto* l = n.net().addReverseSequence(n.input("x", {3, 3, 4}), n.ints({1, 2, 3}));
    l->setBatchAxis(1);
    l->setSequenceAxis(0);
    return l;
}

auto* one_hot(OneLayer& n) {
    return n.net().addOneHot(indices(n), n.constant({2}), n.ints({5}, true), -1);
}

} // namespace

std::vector<LayerSetting> data_settings() {
    return {
        SETTING(IActivationLayer, ActivationType, clip(n), nv::ActivationType::kRELU),
        SETTING(IActivationLayer, Alpha, clip(n), -1.5F),
        SETTING(IActivationLayer, Beta, clip(n), 2.5F),
        SETTING(
            IElementWiseLayer, Operation,
            n.net().addElementWise(x46(n), n.input("y", {4, 6}), nv::ElementWiseOperation::kSUM),
            nv::ElementWiseOperation::kPOW),
        SETTING(IUnaryLayer, Operation, n.net().addUnary(x46(n), nv::UnaryOperation::kEXP),
                nv::UnaryOperation::kABS),
        SETTING(ISoftMaxLayer, Axes, n.net().addSoftMax(x46(n)), 0b10U),
        SETTING(IReduceLayer, Operation, reduce(n), nv::ReduceOperation::kMAX),
        SETTING(IReduceLayer, ReduceAxes, reduce(n), 0b11U),
        SETTING(IReduceLayer, KeepDimensions, reduce(n), true),
        SETTING(ITopKLayer, Operation, top(n), nv::TopKOperation::kMIN),
        SETTING(ITopKLayer, K, top(n), 3),
        SETTING(ITopKLayer, ReduceAxes, top(n), 0b10U),
        SETTING(ITopKLayer, IndicesType, top(n), nv::DataType::kINT64),
        SETTING(IMatrixMultiplyLayer, Operation,
                n.net().addMatrixMultiply(n.input("x", {4, 4}), nv::MatrixOperation::kNONE,
                                          n.input("y", {4, 4}), nv::MatrixOperation::kNONE),
                0, nv::MatrixOperation::kTRANSPOSE),
        SETTING(IEinsumLayer, Equation, einsum(n), "ij,ik->jk"),
        SETTING(ICumulativeLayer, Exclusive, running(n), true),
        SETTING(ICumulativeLayer, Reverse, running(n), true),
        SETTING(ICastLayer, ToType, n.net().addCast(x46(n), nv::DataType::kHALF),
                nv::DataType::kINT32),
        SETTING(IConcatenationLayer, Axis, joined(n), 2),
        SETTING(IShuffleLayer, FirstTranspose, shuffle(n), nv::Permutation{{2, 0, 1}}),
        SETTING(IShuffleLayer, ReshapeDimensions, shuffle(n), nv::Dims2(0, -1)),
        SETTING(IShuffleLayer, SecondTranspose, shuffle(n), nv::Permutation{{1, 0, 2}}),
        SETTING(IShuffleLayer, ZeroIsPlaceholder, kept_shuffle(n), false),
        SETTING(ISliceLayer, Start, slice(n), nv::Dims3(1, 0, 1)),
        SETTING(ISliceLayer, Size, slice(n), nv::Dims3(1, 1, 2)),
        SETTING(ISliceLayer, Stride, slice(n), nv::Dims3(1, 1, 2)),
        SETTING(ISliceLayer, Mode, outside(n), nv::SampleMode::kCLAMP),
        SETTING(ISliceLayer, Axes, axis_slice(n), dims({2})),
        SETTING(IGatherLayer, Mode, gather(n), nv::GatherMode::kELEMENT),
        SETTING(IGatherLayer, GatherAxis, gather(n), 1),
        SETTING(IGatherLayer, NbElementWiseDims, batched_gather(n), 1),
        SETTING(IScatterLayer, Axis, scatter(n), 2),
        SETTING(IScatterLayer, Mode, scatter(n), nv::ScatterMode::kND),
        SETTING(IOneHotLayer, Axis, one_hot(n), 0),
        SETTING(INonZeroLayer, IndicesType, n.net().addNonZero(x46(n)), nv::DataType::kINT64),
        SETTING(IConstantLayer, Dimensions, n.net().addConstant(nv::Dims2(2, 3), n.weights(6)),
                nv::Dims2(3, 2)),
        SETTING(IConstantLayer, Weights, n.net().addConstant(nv::Dims2(2, 3), n.weights(6)),
                n.weights(6, 9)),
        SETTING(IFillLayer, Dimensions, fill(n), nv::Dims{1, {7}}),
        SETTING(IFillLayer, Operation, fill(n), nv::FillOperation::kRANDOM_UNIFORM),
        SETTING(IFillLayer, Alpha, fill(n), -2.5),
        SETTING(IFillLayer, Beta, fill(n), 7.5),
        SETTING(IFillLayer, ToType, fill(n), nv::DataType::kHALF),
        SETTING(IFillLayer, AlphaInt64, whole_fill(n), int64_t{1} << 40),
        SETTING(IFillLayer, BetaInt64, whole_fill(n), int64_t{3} << 40),
        SETTING(INMSLayer, BoundingBoxFormat, nms(n), nv::BoundingBoxFormat::kCENTER_SIZES),
        SETTING(INMSLayer, TopKBoxLimit, nms(n), 4),
        SETTING(INMSLayer, IndicesType, nms(n), nv::DataType::kINT64),
        SETTING(IReverseSequenceLayer, BatchAxis, reversed(n), 0),
        SETTING(IReverseSequenceLayer, SequenceAxis, reversed(n), 1),
    };
}

} // namespace ingot::test
