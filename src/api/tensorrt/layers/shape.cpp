// SPDX-License-Identifier: Apache-2.0
// Layers that arrange data: constant, concatenation, shuffle, squeeze, unsqueeze, shape, padding,
// assertion.
#include "api/tensorrt/layers/checks.h"
#include "api/tensorrt/layers/settings.h"
#include "base/log.h"
#include "ir/value_reads.h"
#include "onnx/model.h"

#include <algorithm>
#include <numeric>

namespace ingot::api {

namespace {

class ConstantLayer final : public Layer<nv::IConstantLayer> {
public:
    ConstantLayer(const nv::Dims& dims, nv::Weights weights)
        : Layer({nv::LayerType::kCONSTANT, "Constant"}, 1), dims_(dims), weights_(weights) {
        weights_tensor(weights, numbers_of(dims, "the shape"), "the weights");
    }

    std::vector<nv::Weights> all_weights() const override { return {weights_}; }
    Values emit(const Emitter& e) override {
        return {e.weights(weights_, numbers_of(dims_, "the shape"), "the weights")};
    }

    INGOT_DIMS_SETTING(IConstantLayer, Dimensions, dims_, {}, count_of(numbers_of(v, "the shape")))
    INGOT_CHECKED_SETTING(IConstantLayer, nv::Weights, nv::Weights, Weights, weights_, {},
                          check_weights(v, "the weights"))
};

class Concatenation final : public Layer<nv::IConcatenationLayer> {
public:
    Concatenation() : Layer({nv::LayerType::kCONCATENATION, "Concatenation"}, 1) {}

    bool passes_shapes() const override { return true; }
    void check(const InputTypes& in) const override {
        for (size_t i = 0; i < in.size(); ++i) {
            expect_rank(*this, in, i, 1);
            expect_same_dtype(*this, in, 0, i);
            if (in[0] && in[i]) {
                expect_rank(*this, in, i, in[0]->rank(), in[0]->rank());
            }
        }
    }
    Values emit(const Emitter& e) override {
        InputTypes in;
        for (size_t i = 0; i < e.in.size(); ++i) {
            in.emplace_back(e.type(i));
        }
        int64_t axis = axis_of(e.rank(0));
        expect_axis(*this, in, 0, axis);
        for (size_t i = 0; i < in.size(); ++i) {
            for (size_t d = 0; d < e.dims(0).size(); ++d) {
                const Dim& a = e.dims(0)[d];
                const Dim& b = e.dims(i)[d];
                bool fits =
                    d == static_cast<size_t>(axis) || !a.is_const() || !b.is_const() || a == b;
                require(fits, ErrorCode::InvalidArgument, "input ", i, " ", inputs[i]->quoted(),
                        " is ", e.type(i), ", expected dimension ", d, " to be ", a,
                        " as that of input 0 ", inputs[0]->quoted(), ": the axis is ", axis);
            }
        }
        return {ops::concat(e.g, e.in, axis)};
    }
    void setAxis(int32_t axis) noexcept override {
        change("IConcatenationLayer::setAxis", [&] {
            require(axis >= 0 && axis < nv::Dims::MAX_DIMS, ErrorCode::InvalidArgument,
                    "the axis is ", axis, ", expected 0 to ", nv::Dims::MAX_DIMS - 1);
            axis_ = axis;
        });
    }
    int32_t getAxis() const noexcept override {
        return static_cast<int32_t>(axis_of(inputs[0]->getDimensions().nbDims));
    }

private:
    int64_t axis_of(int64_t rank) const { return axis_ ? *axis_ : third_from_last(rank); }
    std::optional<int32_t> axis_;
};

class Shuffle final : public Layer<nv::IShuffleLayer> {
public:
    Shuffle() : Layer({nv::LayerType::kSHUFFLE, "Shuffle"}, 1) {}

    size_t input_limit() const override { return 2; }
    bool reads_shape(size_t i) const override { return i == 1; }
    bool passes_shapes() const override { return true; }
    void check(const InputTypes& in) const override {
        if (in.size() > 1) {
            expect_index(*this, in, 1);
            expect_rank(*this, in, 1, 1, 1);
        }
    }
    Values emit(const Emitter& e) override {
        Value y = transposed(e, e.in[0], first_, "the first transpose");
        std::vector<onnx::Attribute> zeros = {
            attribute("allowzero", int64_t{zero_is_placeholder_ ? 0 : 1})};
        if (e.has(1)) {
            y = e.onnx1("Reshape", {y, e.in[1]}, zeros);
        } else if (reshape_.nbDims >= 0) {
            Shape shape = numbers_of(reshape_, "the shape");
            y = e.onnx1("Reshape", {y, ops::i64_list(e.g, shape)}, zeros);
        }
        return {transposed(e, y, second_, "the second transpose")};
    }
    void setReshapeDimensions(const nv::Dims& v) noexcept override {
        change("IShuffleLayer::setReshapeDimensions", [&] {
            Shape shape = numbers_of(v, "the shape");
            for (int64_t d : shape) {
                require(d >= -1, ErrorCode::InvalidArgument, "the shape is ", text_of(v),
                        ", expected sizes of -1 or more");
            }
            require(std::count(shape.begin(), shape.end(), -1) <= 1, ErrorCode::InvalidArgument,
                    "the shape is ", text_of(v), ", expected -1 at most once");
            reshape_ = v;
            inputs.resize(1);
        });
    }
    nv::Dims getReshapeDimensions() const noexcept override {
        return inputs.size() > 1 && inputs[1] != nullptr ? no_dims() : reshape_;
    }

    INGOT_SETTING(bool, ZeroIsPlaceholder, zero_is_placeholder_, true)
public:
    void setFirstTranspose(const nv::Permutation& v) noexcept override {
        assign("setFirstTranspose", first_, v);
    }
    nv::Permutation getFirstTranspose() const noexcept override { return first_; }
    void setSecondTranspose(const nv::Permutation& v) noexcept override {
        assign("setSecondTranspose", second_, v);
    }
    nv::Permutation getSecondTranspose() const noexcept override { return second_; }

private:
    static Value transposed(const Emitter& e, Value x, const nv::Permutation& p,
                            std::string_view what) {
        auto rank = static_cast<size_t>(e.g.type(x).rank());
        std::vector<int64_t> perm(p.order, p.order + rank);
        std::vector<int64_t> sorted = perm;
        std::sort(sorted.begin(), sorted.end());
        for (size_t i = 0; i < rank; ++i) {
            require(sorted[i] == static_cast<int64_t>(i), ErrorCode::InvalidArgument, what, " is ",
                    perm, ", which is no permutation of the dimensions of ", e.g.type(x));
        }
        return ops::permute(e.g, x, perm);
    }
    nv::Permutation first_{{0, 1, 2, 3, 4, 5, 6, 7}};
    nv::Permutation second_{{0, 1, 2, 3, 4, 5, 6, 7}};
    nv::Dims reshape_ = no_dims();
};

class Squeeze final : public Layer<nv::ISqueezeLayer> {
public:
    Squeeze() : Layer({nv::LayerType::kSQUEEZE, "Squeeze"}, 1) {}

    bool reads_shape(size_t i) const override { return i == 1; }
    bool passes_shapes() const override { return true; }
    void check(const InputTypes& in) const override { expect_index(*this, in, 1); }
    Values emit(const Emitter& e) override {
        std::vector<int64_t> axes = normalize_axes(e.constant_ints(1), e.rank(0));
        for (int64_t a : axes) {
            const Dim& d = e.dims(0)[static_cast<size_t>(a)];
            require(!d.is_const() || d.is_const(1), ErrorCode::InvalidArgument, "input 0 ",
                    inputs[0]->quoted(), " is ", e.type(0), ", expected axis ", a, " to be 1");
        }
        return {ops::squeeze(e.g, e.in[0], axes)};
    }
};

class Unsqueeze final : public Layer<nv::IUnsqueezeLayer> {
public:
    Unsqueeze() : Layer({nv::LayerType::kUNSQUEEZE, "Unsqueeze"}, 1) {}

    bool reads_shape(size_t i) const override { return i == 1; }
    bool passes_shapes() const override { return true; }
    void check(const InputTypes& in) const override { expect_index(*this, in, 1); }
    Values emit(const Emitter& e) override {
        std::vector<int64_t> axes = e.constant_ints(1);
        axes = normalize_axes(axes, e.rank(0) + static_cast<int64_t>(axes.size()));
        std::sort(axes.begin(), axes.end());
        return {ops::unsqueeze(e.g, e.in[0], axes)};
    }
};

class ShapeOf final : public Layer<nv::IShapeLayer> {
public:
    ShapeOf() : Layer({nv::LayerType::kSHAPE, "Shape"}, 1) {}
    Values emit(const Emitter& e) override { return {ops::dims_tensor(e.g, e.dims(0))}; }
};

class Padding final : public Layer<nv::IPaddingLayer> {
public:
    Padding(const nv::Dims& before, const nv::Dims& after)
        : Layer({nv::LayerType::kPADDING, "Padding"}, 1), before_(before), after_(after) {
        two(before, "the padding before");
        two(after, "the padding after");
    }

    void check(const InputTypes& in) const override { expect_rank(*this, in, 0, 2); }
    Values emit(const Emitter& e) override {
        Value y = e.in[0];
        auto rank = static_cast<size_t>(e.rank(0));
        Dims low(rank, Dim(0));
        Dims high(rank, Dim(0));
        for (size_t i = 0; i < 2; ++i) {
            size_t axis = rank - 2 + i;
            int64_t cut = std::max<int64_t>(0, -before_.d[i]);
            Dim size = e.dims(0)[axis] - cut - std::max<int64_t>(0, -after_.d[i]);
            require(!size.is_const() || size.value() >= 0, ErrorCode::InvalidArgument,
                    "it cuts off more than there is: input 0 ", inputs[0]->quoted(), " is ",
                    e.type(0), ", the padding ", text_of(before_), " and ", text_of(after_));
            y = ops::slice(e.g, y, static_cast<int64_t>(axis), cut, size);
            low[axis] = std::max<int64_t>(0, before_.d[i]);
            high[axis] = std::max<int64_t>(0, after_.d[i]);
        }
        return {ops::pad(e.g, y, low, high)};
    }

    INGOT_DIMS_SETTING(IPaddingLayer, PrePaddingNd, before_, {}, two(v, "the padding before"))
    INGOT_DIMS_SETTING(IPaddingLayer, PostPaddingNd, after_, {}, two(v, "the padding after"))

private:
    static void two(const nv::Dims& v, std::string_view what) {
        require(v.nbDims == 2, ErrorCode::InvalidArgument, what, " ", text_of(v), " has ", v.nbDims,
                " sizes, expected 2");
    }
};

class Assertion final : public Layer<nv::IAssertionLayer> {
public:
    explicit Assertion(const char* message)
        : Layer({nv::LayerType::kASSERTION, "Assertion"}, 0),
          message_(message == nullptr ? "" : message) {}

    bool reads_shape(size_t) const override { return true; }
    void check(const InputTypes& in) const override {
        expect_dtype(*this, in, 0, {DType::Bool});
        expect_rank(*this, in, 0, 0, 1);
    }
    Values emit(const Emitter& e) override {
        HostRef host = e.g.host(e.in[0]);
        ValueReads::note(e.g, e.in[0]);
        const Tensor* t = e.g.constant(e.in[0]);
        bool known = t != nullptr || host != nullptr;
        for (int64_t i = 0; t != nullptr && i < t->count(); ++i) {
            require(t->get_i64(i) != 0, ErrorCode::InvalidArgument,
                    "the assertion fails: ", message_);
        }
        for (size_t i = 0; t == nullptr && host != nullptr && i < host->elements.size(); ++i) {
            const auto& element = host->elements[i];
            known = known && element && element->numerator.is_const();
            require(!element || !element->numerator.is_const(0), ErrorCode::InvalidArgument,
                    "the assertion fails: ", message_);
        }
        if (!known) {
            log(LogLevel::Warning, described(),
                ": the condition is not known at build; runs do not check it");
        }
        return {};
    }
    void setMessage(const char* message) noexcept override {
        change("IAssertionLayer::setMessage",
               [&] { message_ = message == nullptr ? "" : message; });
    }
    const char* getMessage() const noexcept override { return message_.c_str(); }

private:
    std::string message_;
};

} // namespace

nv::IConstantLayer* Network::addConstant(const nv::Dims& dimensions, nv::Weights weights) noexcept {
    return add<ConstantLayer>("INetworkDefinition::addConstant", {}, dimensions, weights);
}

nv::IConcatenationLayer* Network::addConcatenation(nv::ITensor* const* inputs,
                                                   int32_t nb_inputs) noexcept {
    return add_list<Concatenation>("INetworkDefinition::addConcatenation", inputs, nb_inputs);
}

nv::IShuffleLayer* Network::addShuffle(nv::ITensor& input) noexcept {
    return add<Shuffle>("INetworkDefinition::addShuffle", {&input});
}

nv::ISqueezeLayer* Network::addSqueeze(nv::ITensor& input, nv::ITensor& axes) noexcept {
    return add<Squeeze>("INetworkDefinition::addSqueeze", {&input, &axes});
}

nv::IUnsqueezeLayer* Network::addUnsqueeze(nv::ITensor& input, nv::ITensor& axes) noexcept {
    return add<Unsqueeze>("INetworkDefinition::addUnsqueeze", {&input, &axes});
}

nv::IShapeLayer* Network::addShape(nv::ITensor& input) noexcept {
    return add<ShapeOf>("INetworkDefinition::addShape", {&input});
}

nv::IPaddingLayer* Network::addPaddingNd(nv::ITensor& input, const nv::Dims& pre_padding,
                                         const nv::Dims& post_padding) noexcept {
    return add<Padding>("INetworkDefinition::addPaddingNd", {&input}, pre_padding, post_padding);
}

nv::IAssertionLayer* Network::addAssertion(nv::ITensor& condition, const char* message) noexcept {
    return add<Assertion>("INetworkDefinition::addAssertion", {&condition}, message);
}

} // namespace ingot::api
