// SPDX-License-Identifier: Apache-2.0
// Slices and fills.
#include "api/tensorrt/layers/checks.h"
#include "api/tensorrt/layers/settings.h"

#include <algorithm>

namespace ingot::api {

namespace {

class SliceLayer final : public Layer<nv::ISliceLayer> {
public:
    SliceLayer(const nv::Dims& start, const nv::Dims& size, const nv::Dims& stride)
        : Layer({nv::LayerType::kSLICE, "Slice"}, 1), start_(start), size_(size), stride_(stride) {
        numbers_of(start, "the start");
        numbers_of(size, "the size");
        numbers_of(stride, "the stride");
    }

    size_t input_limit() const override { return 6; }
    bool reads_shape(size_t i) const override { return i >= 1 && i != 4; }
    bool passes_shapes() const override { return true; }
    void check(const InputTypes& in) const override {
        expect_rank(*this, in, 0, 1);
        for (size_t i : {1, 2, 3, 5}) {
            expect_index(*this, in, i);
            expect_rank(*this, in, i, 1, 1);
        }
        expect_same_dtype(*this, in, 0, 4);
    }
    Values emit(const Emitter& e) override {
        Extents at = extents(e);
        Value y = e.in[0];
        if (mode_ == nv::SampleMode::kSTRICT_BOUNDS) {
            if (std::optional<Values> plain = strict(e, at)) {
                return *plain;
            }
        }
        std::optional<Value> outside;
        for (size_t i = 0; i < at.axes.size(); ++i) {
            y = sampled(e, y, at, i, outside);
        }
        if (outside) {
            Value fill =
                e.has(4) ? ops::reshape(e.g, e.in[4], {}) : ops::scalar(e.g, e.dtype(0), 0);
            y = ops::select(e.g, *outside, fill, y);
        }
        return {y};
    }

    INGOT_DIMS_SETTING(ISliceLayer, Start, start_, {}, numbers_of(v, "the start"))
    INGOT_DIMS_SETTING(ISliceLayer, Size, size_, {}, numbers_of(v, "the size"))
    INGOT_DIMS_SETTING(ISliceLayer, Stride, stride_, {}, numbers_of(v, "the stride"))
    INGOT_DIMS_SETTING(ISliceLayer, Axes, axes_, no_dims(), numbers_of(v, "the axes"))
    INGOT_ENUM_SETTING(ISliceLayer, nv::SampleMode, Mode, mode_, {}, "the mode")

private:
    /// Start, size and stride on each of `axes`.
    struct Extents {
        std::vector<int64_t> axes;
        Dims start;
        Dims size;
        Dims stride;
    };
    Extents extents(const Emitter& e) const {
        Extents p;
        if (e.has(5)) {
            p.axes = e.constant_ints(5);
        } else if (axes_.nbDims >= 0) {
            p.axes = numbers_of(axes_, "the axes");
        } else {
            for (int64_t i = 0; i < e.rank(0); ++i) {
                p.axes.push_back(i);
            }
        }
        p.axes = normalize_axes(p.axes, e.rank(0));
        p.start = numbers(e, 1, start_, "the start", p.axes.size(), true);
        p.size = numbers(e, 2, size_, "the size", p.axes.size(), false);
        p.stride = numbers(e, 3, stride_, "the stride", p.axes.size(), true);
        return p;
    }
    Dims numbers(const Emitter& e, size_t input, const nv::Dims& given, std::string_view what,
                 size_t count, bool is_signed) const {
        Dims d = e.has(input) ? e.sizes(input, is_signed) : to_dims(numbers_of(given, what));
        require(d.size() == count, ErrorCode::InvalidArgument, what, " has ", d.size(),
                " numbers, expected ", count, " for input 0 ", inputs[0]->quoted(), ", which is ",
                e.type(0));
        for (const Dim& n : d) {
            require(is_signed || !n.is_const() || n.value() >= 0, ErrorCode::InvalidArgument, what,
                    " is ", d, ", expected sizes of 0 or more");
        }
        return d;
    }
    // nullopt where the strides are known only at run time.
    std::optional<Values> strict(const Emitter& e, const Extents& at) const {
        Slice s{Dims(e.dims(0).size(), Dim(0)), e.dims(0),
                std::vector<int64_t>(e.dims(0).size(), 1)};
        for (size_t i = 0; i < at.axes.size(); ++i) {
            auto a = static_cast<size_t>(at.axes[i]);
            std::optional<int64_t> step = at.stride[i].as_const();
            if (!step || *step == 0) {
                return std::nullopt;
            }
            const Dim& length = e.dims(0)[a];
            Dim last = at.start[i] + (at.size[i] - 1) * *step;
            auto inside = [&](const Dim& v) {
                Interval low = v.bounds();
                Interval high = (length - 1 - v).bounds();
                return low.high >= 0 && high.high >= 0;
            };
            bool fits = at.size[i].is_const(0) || (inside(at.start[i]) && inside(last));
            require(fits, ErrorCode::InvalidArgument, "start ", at.start, ", size ", at.size,
                    " and stride ", at.stride, " leave input 0 ", inputs[0]->quoted(),
                    ", which is ", e.type(0), ", on axis ", at.axes[i],
                    "; set another mode than kSTRICT_BOUNDS");
            s.starts[a] = at.start[i];
            s.sizes[a] = at.size[i];
            s.steps[a] = *step;
        }
        return e.g.add(slice_def, s, std::span(&e.in[0], 1));
    }
    // Indexes one axis; adds a mask of out-of-range elements to `outside`.
    Value sampled(const Emitter& e, Value y, const Extents& at, size_t i,
                  std::optional<Value>& outside) const {
        Graph& g = e.g;
        auto axis = static_cast<size_t>(at.axes[i]);
        Dim length = ops::dims(g, y)[axis];
        Value n = ops::dim_scalar(g, length);
        Value zero = ops::scalar_i64(g, DType::I64, 0);
        Value last = ops::sub(g, n, 1.0);
        Value index = ops::add(g,
                               ops::mul(g, ops::iota(g, DType::I64, {at.size[i]}, 0),
                                        ops::dim_scalar(g, at.stride[i])),
                               ops::dim_scalar(g, at.start[i]));
        switch (mode_) {
        case nv::SampleMode::kSTRICT_BOUNDS:
            break;
        case nv::SampleMode::kWRAP:
            index = ops::binary(g, ExprOp::Mod, index, n);
            break;
        case nv::SampleMode::kCLAMP:
            index = ops::maximum(g, ops::minimum(g, index, last), zero);
            break;
        case nv::SampleMode::kREFLECT: {
            Value period = ops::maximum(g, ops::mul(g, last, 2.0), 1.0);
            index = ops::binary(g, ExprOp::Mod, index, period);
            index = ops::minimum(g, index, ops::sub(g, period, index));
            index = ops::minimum(g, index, last);
            break;
        }
        case nv::SampleMode::kFILL: {
            Value beyond =
                ops::binary(g, ExprOp::Or, ops::less(g, index, zero), ops::less(g, last, index));
            Dims shape(static_cast<size_t>(g.type(y).rank()), Dim(1));
            shape[axis] = at.size[i];
            Value here = ops::reshape(g, beyond, shape);
            outside = outside ? ops::binary(g, ExprOp::Or, *outside, here) : here;
            index = ops::maximum(g, ops::minimum(g, index, last), zero);
            break;
        }
        }
        return ops::gather(g, y, index, static_cast<int64_t>(axis));
    }
};

class Fill final : public Layer<nv::IFillLayer> {
public:
    Fill(const nv::Dims& dims, nv::FillOperation op, nv::DataType type)
        : Layer({nv::LayerType::kFILL, "Fill"}, 1), dims_(dims),
          operation_(checked(op, "the operation")), to_(type) {
        numbers_of(dims, "the shape");
        dtype_of(type);
    }

    size_t input_limit() const override { return 3; }
    bool reads_shape(size_t i) const override { return i == 0; }
    bool passes_shapes() const override { return operation_ == nv::FillOperation::kLINSPACE; }
    void check(const InputTypes& in) const override {
        expect_index(*this, in, 0);
        expect_rank(*this, in, 0, 1, 1);
        expect_rank(*this, in, 1, 0, 0);
        expect_rank(*this, in, 2, 0, 1);
    }
    Values emit(const Emitter& e) override {
        Dims dims = e.has(0) ? e.sizes(0) : to_dims(numbers_of(dims_, "the shape"));
        for (const Dim& d : dims) {
            require(!d.is_const() || d.value() >= 0, ErrorCode::InvalidArgument, "the shape is ",
                    dims, ", expected sizes of 0 or more");
        }
        DType dtype = dtype_of(to_);
        if (operation_ == nv::FillOperation::kLINSPACE) {
            return {linspace(e, dims, dtype)};
        }
        require(is_float(dtype), ErrorCode::InvalidArgument, "random numbers of type ", dtype,
                ", expected a floating-point type");
        Random r;
        bool normal = operation_ == nv::FillOperation::kRANDOM_NORMAL;
        r.kind = normal ? "normal" : "uniform";
        r.dtype = dtype;
        r.dims = dims;
        r.seed = static_cast<int64_t>(position);
        if (!e.has(1) && !e.has(2)) {
            r.a = alpha();
            r.b = beta();
            return {e.g.add1(random_def, r, {})};
        }
        Value a = parameter(e, 1, alpha(), dtype);
        Value b = parameter(e, 2, beta(), dtype);
        Value x = e.g.add1(random_def, r, {});
        return {ops::add(e.g, ops::mul(e.g, x, normal ? b : ops::sub(e.g, b, a)), a)};
    }

    INGOT_DIMS_SETTING(IFillLayer, Dimensions, dims_, {}, numbers_of(v, "the shape"))
    INGOT_ENUM_SETTING(IFillLayer, nv::FillOperation, Operation, operation_, {}, "the operation")
    INGOT_CHECKED_SETTING(IFillLayer, nv::DataType, nv::DataType, ToType, to_, {}, dtype_of(v))
public:
    void setAlpha(double v) noexcept override { set("IFillLayer::setAlpha", alpha_, v, false); }
    double getAlpha() const noexcept override { return alpha(); }
    void setBeta(double v) noexcept override { set("IFillLayer::setBeta", beta_, v, false); }
    double getBeta() const noexcept override { return beta(); }
    void setAlphaInt64(int64_t v) noexcept override {
        set("IFillLayer::setAlphaInt64", whole_alpha_, v, true);
    }
    int64_t getAlphaInt64() const noexcept override { return whole_alpha_; }
    void setBetaInt64(int64_t v) noexcept override {
        set("IFillLayer::setBetaInt64", whole_beta_, v, true);
    }
    int64_t getBetaInt64() const noexcept override { return whole_beta_; }
    bool isAlphaBetaInt64() const noexcept override { return integers_; }

private:
    template <class T>
    void set(std::string_view method, T& member, T v, bool integers) noexcept {
        change(method, [&] {
            integers_ = integers;
            member = v;
        });
    }
    double alpha() const { return integers_ ? static_cast<double>(whole_alpha_) : alpha_; }
    double beta() const { return integers_ ? static_cast<double>(whole_beta_) : beta_; }
    Value number(Graph& g, DType t, bool first) const {
        return integers_ ? ops::scalar_i64(g, t, first ? whole_alpha_ : whole_beta_)
                         : ops::scalar(g, t, first ? alpha_ : beta_);
    }
    static Value parameter(const Emitter& e, size_t i, double otherwise, DType t) {
        return e.has(i) ? as_dtype(e.g, ops::reshape(e.g, e.in[i], {}), t)
                        : ops::scalar(e.g, t, otherwise);
    }
    // alpha + beta . index, in the result's type.
    Value linspace(const Emitter& e, const Dims& dims, DType t) const {
        Graph& g = e.g;
        Value y = e.has(1) ? as_dtype(g, e.in[1], t) : number(g, t, true);
        bool flat = !e.has(2) && beta() == 0;
        require(flat || e.has(2) || dims.size() <= 1, ErrorCode::InvalidArgument, "a shape of ",
                dims.size(), " dimensions needs beta for each of them, as input 2");
        for (size_t i = 0; i < dims.size() && !flat; ++i) {
            Value step = number(g, t, false);
            if (e.has(2)) {
                Value all = ops::flatten(g, as_dtype(g, e.in[2], t));
                const Dim& count = ops::dims(g, all)[0];
                require(!count.is_const() || count.is_const(static_cast<int64_t>(dims.size())),
                        ErrorCode::InvalidArgument, "input 2 ", inputs[2]->quoted(), " is ",
                        e.type(2), ", expected ", dims.size(), " elements");
                step = ops::reshape(g, ops::slice(g, all, 0, static_cast<int64_t>(i), 1), {});
            }
            Value at = ops::iota(g, t, dims, static_cast<int64_t>(i));
            y = ops::add(g, y, ops::mul(g, at, step));
        }
        return ops::broadcast_to(g, y, dims);
    }
    double alpha_ = 0;
    double beta_ = 1;
    int64_t whole_alpha_ = 0;
    int64_t whole_beta_ = 1;
    bool integers_ = false;
};

} // namespace

nv::ISliceLayer* Network::addSlice(nv::ITensor& input, const nv::Dims& start, const nv::Dims& size,
                                   const nv::Dims& stride) noexcept {
    return add<SliceLayer>("INetworkDefinition::addSlice", {&input}, start, size, stride);
}

nv::IFillLayer* Network::addFill(const nv::Dims& dimensions, nv::FillOperation op,
                                 nv::DataType output_type) noexcept {
    return add<Fill>("INetworkDefinition::addFill", {}, dimensions, op, output_type);
}

} // namespace ingot::api
