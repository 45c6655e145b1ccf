// SPDX-License-Identifier: Apache-2.0
// Softmax, reductions, top-k, products, cumulative sums.
#include "api/tensorrt/layers/checks.h"
#include "api/tensorrt/layers/settings.h"
#include "onnx/model.h"

#include <algorithm>
#include <cctype>
#include <limits>

namespace ingot::api {

namespace {

class SoftMaxLayer final : public Layer<nv::ISoftMaxLayer> {
public:
    SoftMaxLayer() : Layer({nv::LayerType::kSOFTMAX, "SoftMax"}, 1) {}

    void check(const InputTypes& in) const override {
        expect_float(*this, in, 0);
        expect_rank(*this, in, 0, 1);
    }
    Values emit(const Emitter& e) override {
        int64_t axis = axes_ ? one_axis(*axes_) : third_from_last(e.rank(0));
        expect_axis(*this, {e.type(0)}, 0, axis);
        return {ops::softmax(e.g, e.in[0], axis)};
    }
    void setAxes(uint32_t axes) noexcept override {
        change("ISoftMaxLayer::setAxes", [&] {
            one_axis(axes);
            axes_ = axes;
        });
    }
    uint32_t getAxes() const noexcept override {
        return axes_ ? *axes_ : 1U << third_from_last(inputs[0]->getDimensions().nbDims);
    }

private:
    std::optional<uint32_t> axes_;
};

class RaggedSoftMax final : public Layer<nv::IRaggedSoftMaxLayer> {
public:
    RaggedSoftMax() : Layer({nv::LayerType::kRAGGED_SOFTMAX, "Ragged SoftMax"}, 1) {}

    void check(const InputTypes& in) const override {
        expect_float(*this, in, 0);
        expect_rank(*this, in, 0, 2);
        expect_index(*this, in, 1);
        expect_broadcast(*this, in, {0, 1});
    }
    Values emit(const Emitter& e) override {
        Graph& g = e.g;
        const Dims d = e.dims(0);
        Value at = ops::iota(g, DType::I64, {d.back()}, 0);
        Value inside = ops::less(g, at, as_dtype(g, e.in[1], DType::I64));
        Value never = ops::scalar(g, e.dtype(0), -std::numeric_limits<double>::infinity());
        Value y = ops::softmax(g, ops::select(g, inside, e.in[0], never), e.rank(0) - 1);
        return {ops::select(g, inside, y, ops::scalar(g, e.dtype(0), 0))};
    }
};

class ReduceLayer final : public Layer<nv::IReduceLayer> {
public:
    ReduceLayer(nv::ReduceOperation op, uint32_t axes, bool keep)
        : Layer({nv::LayerType::kREDUCE, "Reduce"}, 1), op_(op), axes_(axes), keep_(keep) {
        check_operation(op);
    }

    bool passes_shapes() const override { return true; }
    void check(const InputTypes& in) const override {
        expect_number(*this, in, 0);
        if (in[0]) {
            axes_of(axes_, in[0]->rank(), "the axes");
        }
    }
    Values emit(const Emitter& e) override {
        std::vector<int64_t> axes = axes_of(axes_, e.rank(0), "the axes");
        require(!axes.empty(), ErrorCode::InvalidArgument, "axes are 0, expected at least one bit");
        if (op_ == nv::ReduceOperation::kAVG) {
            return {ops::reduce_mean(e.g, e.in[0], axes, keep_)};
        }
        constexpr std::array<const char*, 4> names = {"sum", "prod", "max", "min"};
        return {ops::reduce(e.g, names[static_cast<size_t>(op_)], e.in[0], axes, keep_)};
    }

    INGOT_CHECKED_SETTING(IReduceLayer, nv::ReduceOperation, nv::ReduceOperation, Operation, op_,
                          {}, check_operation(v))
    INGOT_SETTING(uint32_t, ReduceAxes, axes_, 0)
    INGOT_SETTING(bool, KeepDimensions, keep_, false)

private:
    static void check_operation(nv::ReduceOperation op) {
        checked(op, "the operation");
        require(op != nv::ReduceOperation::kNONE, ErrorCode::InvalidArgument,
                "the operation is kNONE, which is for collectives only");
    }
};

class TopKLayer final : public Layer<nv::ITopKLayer> {
public:
    TopKLayer(nv::TopKOperation op, int32_t k, uint32_t axes, nv::DataType type)
        : Layer({nv::LayerType::kTOPK, "TopK"}, 2), op_(checked(op, "the operation")), k_(k),
          axes_(axes), type_(type) {
        one_axis(axes);
        check_type(type);
        check_k(k);
    }

    size_t input_limit() const override { return 2; }
    bool reads_shape(size_t i) const override { return i == 1; }
    void check(const InputTypes& in) const override {
        expect_number(*this, in, 0);
        expect_axis(*this, in, 0, one_axis(axes_));
        expect_index(*this, in, 1);
        expect_rank(*this, in, 1, 0, from_model ? 1 : 0);
    }
    Values emit(const Emitter& e) override {
        int64_t axis = one_axis(axes_);
        const Dim& size = e.dims(0)[static_cast<size_t>(axis)];
        Dim k = k_;
        if (e.has(1)) {
            k = ops::dims_from(e.g, ops::reshape(e.g, e.in[1], {Dim(1)}))[0];
        }
        require(!k.is_const() || !size.is_const() || k.value() <= size.value(),
                ErrorCode::InvalidArgument, "k is ", k, ", but axis ", axis, " of input 0 ",
                inputs[0]->quoted(), " has ", size, " elements");
        Values y = ops::topk(e.g, {k, axis, op_ == nv::TopKOperation::kMAX}, e.in[0]);
        return {y[0], as_dtype(e.g, y[1], dtype_of(type_))};
    }
    int32_t getK() const noexcept override {
        return inputs.size() > 1 && inputs[1] != nullptr ? -1 : k_;
    }
    void setK(int32_t k) noexcept override {
        change("ITopKLayer::setK", [&] {
            check_k(k);
            k_ = k;
            inputs.resize(1);
        });
    }
    bool setIndicesType(nv::DataType type) noexcept override {
        return change("ITopKLayer::setIndicesType", [&] {
            check_type(type);
            type_ = type;
        });
    }
    nv::DataType getIndicesType() const noexcept override { return type_; }

    INGOT_ENUM_SETTING(ITopKLayer, nv::TopKOperation, Operation, op_, {}, "the operation")
private:
    int32_t k_ = 0;
    INGOT_CHECKED_SETTING(ITopKLayer, uint32_t, uint32_t, ReduceAxes, axes_, 0, one_axis(v))

private:
    static void check_type(nv::DataType t) {
        require(t == nv::DataType::kINT32 || t == nv::DataType::kINT64, ErrorCode::InvalidArgument,
                "the type of indices is ", name_of(t), ", expected INT32 or INT64");
    }
    static void check_k(int32_t k) {
        require(k >= 0, ErrorCode::InvalidArgument, "k is ", k, ", expected 0 or more");
    }
    nv::DataType type_;
};

class MatrixMultiply final : public Layer<nv::IMatrixMultiplyLayer> {
public:
    MatrixMultiply(nv::MatrixOperation a, nv::MatrixOperation b)
        : Layer({nv::LayerType::kMATRIX_MULTIPLY, "Matrix Multiply"}, 1),
          op_{checked(a, "operation 0"), checked(b, "operation 1")} {}

    void check(const InputTypes& in) const override {
        for (size_t i = 0; i < 2; ++i) {
            expect_float(*this, in, i);
            expect_rank(*this, in, i, vector(i) ? 1 : 2);
        }
        expect_same_dtype(*this, in, 0, 1);
    }
    Values emit(const Emitter& e) override {
        int64_t a_batch = e.rank(0) - (vector(0) ? 1 : 2);
        int64_t b_batch = e.rank(1) - (vector(1) ? 1 : 2);
        require(from_model || a_batch == b_batch, ErrorCode::InvalidArgument, "input 0 ",
                inputs[0]->quoted(), " is ", e.type(0), " and input 1 ", inputs[1]->quoted(),
                " is ", e.type(1),
                ", expected as many dimensions before the matrices, but there are ", a_batch,
                " and ", b_batch);
        Value a = matrix(e, 0);
        Value b = matrix(e, 1);
        const Dim& inner_a = ops::dims(e.g, a).back();
        const Dim& inner_b = ops::dims(e.g, b)[static_cast<size_t>(b_batch)];
        require(!inner_a.is_const() || !inner_b.is_const() || inner_a == inner_b,
                ErrorCode::InvalidArgument, "input 0 ", inputs[0]->quoted(), " is ", e.type(0),
                " and input 1 ", inputs[1]->quoted(), " is ", e.type(1), ": rows of ", inner_a,
                " and columns of ", inner_b, " elements do not multiply");
        Value y = ops::matmul(e.g, a, b);
        if (vector(1)) {
            y = ops::squeeze(e.g, y, {-1});
        }
        if (vector(0)) {
            y = ops::squeeze(e.g, y, {vector(1) ? -1 : -2});
        }
        return {y};
    }
    void setOperation(int32_t index, nv::MatrixOperation op) noexcept override {
        change("IMatrixMultiplyLayer::setOperation", [&] {
            require(index == 0 || index == 1, ErrorCode::InvalidArgument, "index is ", index,
                    ", expected 0 or 1");
            op_[static_cast<size_t>(index)] = checked(op, "the operation");
        });
    }
    nv::MatrixOperation getOperation(int32_t index) const noexcept override {
        return index == 0 || index == 1 ? op_[static_cast<size_t>(index)]
                                        : nv::MatrixOperation::kNONE;
    }

private:
    bool vector(size_t i) const { return op_[i] == nv::MatrixOperation::kVECTOR; }
    Value matrix(const Emitter& e, size_t i) const {
        if (vector(i)) {
            return ops::unsqueeze(e.g, e.in[i], {i == 0 ? e.rank(i) - 1 : e.rank(i)});
        }
        return op_[i] == nv::MatrixOperation::kTRANSPOSE ? ops::transpose_last(e.g, e.in[i])
                                                         : e.in[i];
    }
    std::array<nv::MatrixOperation, 2> op_;
};

// Accepts letters, commas and dots, with an arrow or without.
void check_equation(std::string_view text) {
    size_t arrow = text.find("->");
    std::string_view left = text.substr(0, arrow);
    std::string_view right = arrow == std::string_view::npos ? "" : text.substr(arrow + 2);
    auto fits = [](std::string_view side, bool commas) {
        size_t dots = 0;
        for (char c : side) {
            dots += c == '.' ? 1 : 0;
            if (std::isalpha(static_cast<unsigned char>(c)) == 0 && c != '.' && c != ' ' &&
                !(commas && c == ',')) {
                return false;
            }
        }
        return dots % 3 == 0;
    };
    require(!text.empty() && fits(left, true) && fits(right, false), ErrorCode::InvalidArgument,
            "the equation '", text, "' is malformed, expected one such as 'ij,jk->ik'");
}

class Einsum final : public Layer<nv::IEinsumLayer> {
public:
    explicit Einsum(const char* equation)
        : Layer({nv::LayerType::kEINSUM, "Einsum"}, 1),
          equation_(equation == nullptr ? "" : equation) {
        check_equation(equation_);
    }

    void check(const InputTypes& in) const override {
        for (size_t i = 1; i < in.size(); ++i) {
            expect_same_dtype(*this, in, 0, i);
        }
        auto terms = static_cast<size_t>(std::count(equation_.begin(), equation_.end(), ',') + 1);
        require(terms == in.size(), ErrorCode::InvalidArgument, "the equation '", equation_,
                "' has ", terms, terms == 1 ? " term" : " terms", ", but there ",
                in.size() == 1 ? "is 1 input" : str("are ", in.size(), " inputs"));
    }
    Values emit(const Emitter& e) override {
        return {e.onnx("Einsum", e.in, {attribute("equation", equation_)})[0]};
    }
    bool setEquation(const char* equation) noexcept override {
        return change("IEinsumLayer::setEquation", [&] {
            std::string text = equation == nullptr ? "" : equation;
            check_equation(text);
            equation_ = std::move(text);
        });
    }
    const char* getEquation() const noexcept override { return equation_.c_str(); }

private:
    std::string equation_;
};

class Cumulative final : public Layer<nv::ICumulativeLayer> {
public:
    Cumulative(nv::CumulativeOperation op, bool exclusive, bool reverse)
        : Layer({nv::LayerType::kCUMULATIVE, "Cumulative"}, 1), op_(checked(op, "the operation")),
          exclusive_(exclusive), reverse_(reverse) {}

    bool reads_shape(size_t i) const override { return i == 1; }
    bool passes_shapes() const override { return true; }
    void check(const InputTypes& in) const override {
        expect_number(*this, in, 0);
        expect_index(*this, in, 1);
        expect_rank(*this, in, 1, 0, from_model ? 1 : 0);
    }
    Values emit(const Emitter& e) override {
        Scan s;
        s.axis = normalize_axis(e.constant_ints(1)[0], e.rank(0));
        s.exclusive = exclusive_;
        s.reverse = reverse_;
        return {ops::scan(e.g, s, e.in[0])};
    }
    bool setOperation(nv::CumulativeOperation op) noexcept override {
        return change("ICumulativeLayer::setOperation",
                      [&] { op_ = checked(op, "the operation"); });
    }
    nv::CumulativeOperation getOperation() const noexcept override { return op_; }

private:
    nv::CumulativeOperation op_;
    INGOT_SETTING(bool, Exclusive, exclusive_, false)
    INGOT_SETTING(bool, Reverse, reverse_, false)
};

} // namespace

nv::ISoftMaxLayer* Network::addSoftMax(nv::ITensor& input) noexcept {
    return add<SoftMaxLayer>("INetworkDefinition::addSoftMax", {&input});
}

nv::IRaggedSoftMaxLayer* Network::addRaggedSoftMax(nv::ITensor& input,
                                                   nv::ITensor& bounds) noexcept {
    return add<RaggedSoftMax>("INetworkDefinition::addRaggedSoftMax", {&input, &bounds});
}

nv::IReduceLayer* Network::addReduce(nv::ITensor& input, nv::ReduceOperation operation,
                                     uint32_t reduce_axes, bool keep_dimensions) noexcept {
    return add<ReduceLayer>("INetworkDefinition::addReduce", {&input}, operation, reduce_axes,
                            keep_dimensions);
}

nv::ITopKLayer* Network::addTopK(nv::ITensor& input, nv::TopKOperation op, int32_t k,
                                 uint32_t reduce_axes, nv::DataType indices_type) noexcept {
    return add<TopKLayer>("INetworkDefinition::addTopK", {&input}, op, k, reduce_axes,
                          indices_type);
}

nv::IMatrixMultiplyLayer* Network::addMatrixMultiply(nv::ITensor& input0, nv::MatrixOperation op0,
                                                     nv::ITensor& input1,
                                                     nv::MatrixOperation op1) noexcept {
    return add<MatrixMultiply>("INetworkDefinition::addMatrixMultiply", {&input0, &input1}, op0,
                               op1);
}

nv::IEinsumLayer* Network::addEinsum(nv::ITensor* const* inputs, int32_t nb_inputs,
                                     const char* equation) noexcept {
    return add_list<Einsum>("INetworkDefinition::addEinsum", inputs, nb_inputs, equation);
}

nv::ICumulativeLayer* Network::addCumulative(nv::ITensor& input, nv::ITensor& axis,
                                             nv::CumulativeOperation operation, bool exclusive,
                                             bool reverse) noexcept {
    return add<Cumulative>("INetworkDefinition::addCumulative", {&input, &axis}, operation,
                           exclusive, reverse);
}

} // namespace ingot::api
