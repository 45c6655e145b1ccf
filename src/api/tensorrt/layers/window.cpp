// SPDX-License-Identifier: Apache-2.0
// Layers with windows: convolution, deconvolution, pooling.
#include "api/tensorrt/layers/checks.h"
#include "api/tensorrt/layers/settings.h"
#include "onnx/model.h"

namespace ingot::api {

namespace {

nv::Dims repeated(int64_t value, int32_t rank) {
    nv::Dims d{rank, {}};
    std::fill(d.d, d.d + rank, value);
    return d;
}

// As many numbers as the window has sizes, each at least `least`.
void check_sizes(const nv::Dims& v, const nv::Dims& window, int64_t least, std::string_view what) {
    Shape numbers = numbers_of(v, what);
    require(v.nbDims == window.nbDims, ErrorCode::InvalidArgument, what, " ", text_of(v), " has ",
            v.nbDims, " sizes, the window ", text_of(window), " has ", window.nbDims);
    for (int64_t n : numbers) {
        require(n >= least, ErrorCode::InvalidArgument, what, " is ", text_of(v),
                ", expected sizes of ", least, " or more");
    }
}

nv::Dims checked_window(const nv::Dims& v, std::string_view what) {
    require(v.nbDims == 2 || v.nbDims == 3, ErrorCode::InvalidArgument, what, " ", text_of(v),
            " has ", v.nbDims, " sizes, expected 2 or 3");
    check_sizes(v, v, 1, what);
    return v;
}

int64_t checked_count(int64_t v, std::string_view what) {
    require(v >= 1, ErrorCode::InvalidArgument, what, " is ", v, ", expected 1 or more");
    return v;
}

// What convolution, deconvolution and pooling have in common.
struct Geometry {
    nv::Dims window;
    nv::Dims stride;
    nv::Dims dilation;
    nv::Dims before;
    nv::Dims after;
    nv::PaddingMode mode = nv::PaddingMode::kEXPLICIT_ROUND_DOWN;

    explicit Geometry(const nv::Dims& size)
        : window(size), stride(repeated(1, size.nbDims)), dilation(repeated(1, size.nbDims)),
          before(repeated(0, size.nbDims)), after(repeated(0, size.nbDims)) {}

    // The sizes that others are measured by change with the window's rank.
    void resize(const nv::Dims& size) {
        if (size.nbDims != window.nbDims) {
            nv::PaddingMode kept = mode;
            *this = Geometry(size);
            mode = kept;
        }
        window = size;
    }
    size_t rank() const { return static_cast<size_t>(window.nbDims); }
    int64_t reach(size_t i) const { return dilation.d[i] * (window.d[i] - 1) + 1; }

    struct Pads {
        Dims low;
        Dims high;
        Dims extra; // zeros at the end that rounding up adds
    };
    // For input sizes of the spatial dimensions.
    Pads pads(std::span<const Dim> sizes) const {
        Pads p;
        for (size_t i = 0; i < rank(); ++i) {
            Dim low = before.d[i];
            Dim high = after.d[i];
            Dim extra = 0;
            if (mode == nv::PaddingMode::kSAME_UPPER || mode == nv::PaddingMode::kSAME_LOWER) {
                Dim total = max(
                    (ceil_div(sizes[i], stride.d[i]) - 1) * stride.d[i] + reach(i) - sizes[i], 0);
                Dim half = floor_div(total, 2);
                bool upper = mode == nv::PaddingMode::kSAME_UPPER;
                low = upper ? half : total - half;
                high = total - low;
            } else if (mode == nv::PaddingMode::kEXPLICIT_ROUND_UP) {
                Dim span = sizes[i] + low + high - reach(i);
                extra = ceil_div(span, stride.d[i]) * stride.d[i] - span;
            }
            p.low.push_back(low);
            p.high.push_back(high);
            p.extra.push_back(extra);
        }
        return p;
    }
    static std::vector<int64_t> list(const nv::Dims& d) { return {d.d, d.d + d.nbDims}; }
};

// The settings of Geometry; `least` is the smallest padding.
template <class Interface>
class Windowed : public Layer<Interface> {
public:
    Windowed(nv::LayerType type, std::string_view face, int64_t least, const nv::Dims& size)
        : Layer<Interface>(type, 1), face_(face), least_(least),
          shape_(checked_window(size, "the window")) {}

    void setPrePadding(const nv::Dims& v) noexcept override {
        set("setPrePadding", [&] { check(v, least_, "the padding"), shape_.before = v; });
    }
    nv::Dims getPrePadding() const noexcept override { return shape_.before; }
    void setPostPadding(const nv::Dims& v) noexcept override {
        set("setPostPadding", [&] { check(v, least_, "the padding"), shape_.after = v; });
    }
    nv::Dims getPostPadding() const noexcept override { return shape_.after; }
    void setPaddingNd(const nv::Dims& v) noexcept override {
        set("setPaddingNd", [&] {
            check(v, least_, "the padding");
            shape_.before = v;
            shape_.after = v;
        });
    }
    nv::Dims getPaddingNd() const noexcept override { return shape_.before; }
    void setPaddingMode(nv::PaddingMode v) noexcept override {
        set("setPaddingMode", [&] { shape_.mode = checked(v, "the padding mode"); });
    }
    nv::PaddingMode getPaddingMode() const noexcept override { return shape_.mode; }
    void setStrideNd(const nv::Dims& v) noexcept override {
        set("setStrideNd", [&] { check(v, 1, "the stride"), shape_.stride = v; });
    }
    nv::Dims getStrideNd() const noexcept override { return shape_.stride; }

protected:
    template <class F>
    void set(std::string_view method, const F& f) noexcept {
        this->change(str(face_, "::", method), f);
    }
    void check(const nv::Dims& v, int64_t least, std::string_view what) const {
        check_sizes(v, shape_.window, least, what);
    }
    void check_input(const InputTypes& in) const {
        expect_float(*this, in, 0);
        auto rank = static_cast<int64_t>(shape_.rank()) + 2;
        expect_rank(*this, in, 0, rank, rank);
    }
    static std::span<const Dim> spatial(const Emitter& e) {
        return std::span(e.dims(0)).subspan(2);
    }

    std::string face_;
    int64_t least_;
    Geometry shape_;
};

// Kernel, bias, maps, groups, dilation.
template <class Interface>
class Convolving : public Windowed<Interface> {
public:
    Convolving(nv::LayerType type, std::string_view face, int64_t least, int64_t maps,
               const nv::Dims& size, nv::Weights kernel, nv::Weights bias)
        : Windowed<Interface>(type, face, least, size),
          maps_(checked_count(maps, "the number of output maps")), kernel_(kernel), bias_(bias) {
        check_weights(kernel, "the kernel weights");
        check_weights(bias, "the bias weights");
    }

    size_t input_limit() const override { return 3; }
    std::vector<nv::Weights> all_weights() const override { return {kernel_, bias_}; }
    void check(const InputTypes& in) const override {
        this->check_input(in);
        if (in.size() > 1) {
            expect_same_dtype(*this, in, 0, 1);
            auto rank = static_cast<int64_t>(this->shape_.rank()) + 2;
            expect_rank(*this, in, 1, rank, rank);
        }
        if (in.size() > 2) {
            expect_same_dtype(*this, in, 0, 2);
            expect_rank(*this, in, 2, 1, 1);
        }
        if (in[0]) {
            require(in[0]->dims[1].is_const(), ErrorCode::InvalidArgument, "input 0 ",
                    this->inputs[0]->quoted(), " is ", *in[0],
                    ", but the number of channels must be known at build");
        }
    }

    void setNbOutputMaps(int64_t v) noexcept override {
        this->set("setNbOutputMaps",
                  [&] { maps_ = checked_count(v, "the number of output maps"); });
    }
    int64_t getNbOutputMaps() const noexcept override { return maps_; }
    void setNbGroups(int64_t v) noexcept override {
        this->set("setNbGroups", [&] { groups_ = checked_count(v, "the number of groups"); });
    }
    int64_t getNbGroups() const noexcept override { return groups_; }
    void setKernelWeights(nv::Weights v) noexcept override {
        this->set("setKernelWeights", [&] {
            check_weights(v, "the kernel weights");
            kernel_ = v;
        });
    }
    nv::Weights getKernelWeights() const noexcept override { return kernel_; }
    void setBiasWeights(nv::Weights v) noexcept override {
        this->set("setBiasWeights", [&] {
            check_weights(v, "the bias weights");
            bias_ = v;
        });
    }
    nv::Weights getBiasWeights() const noexcept override { return bias_; }
    void setKernelSizeNd(const nv::Dims& v) noexcept override {
        this->set("setKernelSizeNd",
                  [&] { this->shape_.resize(checked_window(v, "the kernel size")); });
    }
    nv::Dims getKernelSizeNd() const noexcept override { return this->shape_.window; }
    void setDilationNd(const nv::Dims& v) noexcept override {
        this->set("setDilationNd", [&] {
            check_sizes(v, this->shape_.window, 1, "the dilation");
            this->shape_.dilation = v;
        });
    }
    nv::Dims getDilationNd() const noexcept override { return this->shape_.dilation; }

protected:
    // The kernel with `outer` x `inner` in front of the window, checked.
    Value kernel(const Emitter& e, int64_t outer, int64_t inner) const {
        Shape shape = {outer, inner};
        shape.insert(shape.end(), this->shape_.window.d,
                     this->shape_.window.d + this->shape_.window.nbDims);
        require(is_empty(kernel_) || !e.has(1), ErrorCode::InvalidArgument,
                "there are both kernel weights and input 1; empty the weights");
        if (!is_empty(kernel_)) {
            return as_dtype(e.g, e.weights(kernel_, shape, "the kernel weights"), e.dtype(0));
        }
        require(e.has(1), ErrorCode::InvalidArgument,
                "there are neither kernel weights nor input 1");
        require(e.dims(1) == to_dims(shape), ErrorCode::InvalidArgument, "input 1 ",
                this->inputs[1]->quoted(), " is ", e.type(1), ", expected ", to_dims(shape),
                " for ", maps_, " output maps and ", groups_, groups_ == 1 ? " group" : " groups");
        return e.in[1];
    }
    Value bias(const Emitter& e) const {
        require(is_empty(bias_) || !e.has(2), ErrorCode::InvalidArgument,
                "there are both bias weights and input 2; empty the weights");
        if (!is_empty(bias_)) {
            return as_dtype(e.g, e.weights(bias_, {maps_}, "the bias weights"), e.dtype(0));
        }
        require(!e.has(2) || e.dims(2) == Dims{maps_}, ErrorCode::InvalidArgument, "input 2 ",
                e.has(2) ? this->inputs[2]->quoted() : "", " is ", e.has(2) ? e.type(2) : Type(),
                ", expected ", maps_, " elements");
        return e.has(2) ? e.in[2] : Value{};
    }
    int64_t channels_per_group(const Emitter& e) const {
        int64_t channels = e.dims(0)[1].value();
        require(channels % groups_ == 0 && maps_ % groups_ == 0, ErrorCode::InvalidArgument,
                channels, " channels and ", maps_, " output maps do not divide into ", groups_,
                " groups");
        return channels / groups_;
    }
    static Value biased(const Emitter& e, Value y, Value b) {
        if (!b.valid()) {
            return y;
        }
        Dims shape(static_cast<size_t>(e.g.type(y).rank()) - 1, Dim(1));
        shape[0] = ops::dims(e.g, b)[0];
        return ops::add(e.g, y, ops::reshape(e.g, b, shape));
    }

    int64_t maps_;
    int64_t groups_ = 1;
    nv::Weights kernel_;
    nv::Weights bias_;
};

class Convolution final : public Convolving<nv::IConvolutionLayer> {
public:
    Convolution(int64_t maps, const nv::Dims& size, nv::Weights kernel, nv::Weights bias)
        : Convolving(nv::LayerType::kCONVOLUTION, "IConvolutionLayer", 0, maps, size, kernel,
                     bias) {}

    Values emit(const Emitter& e) override {
        Value w = kernel(e, maps_, channels_per_group(e));
        Geometry::Pads p = shape_.pads(spatial(e));
        for (size_t i = 0; i < p.high.size(); ++i) {
            p.high[i] = p.high[i] + p.extra[i];
        }
        ops::Conv c;
        c.strides = Geometry::list(shape_.stride);
        c.dilations = Geometry::list(shape_.dilation);
        c.low = p.low;
        c.high = p.high;
        c.groups = groups_;
        c.dtype = e.dtype(0);
        return {biased(e, ops::conv(e.g, c, e.in[0], w), bias(e))};
    }
};

class Deconvolution final : public Convolving<nv::IDeconvolutionLayer> {
public:
    Deconvolution(int64_t maps, const nv::Dims& size, nv::Weights kernel, nv::Weights bias)
        : Convolving(nv::LayerType::kDECONVOLUTION, "IDeconvolutionLayer", INT32_MIN, maps, size,
                     kernel, bias) {}

    Values emit(const Emitter& e) override {
        channels_per_group(e);
        Value w = kernel(e, e.dims(0)[1].value(), maps_ / groups_);
        ops::ConvTranspose c;
        c.strides = Geometry::list(shape_.stride);
        c.dilations = Geometry::list(shape_.dilation);
        c.groups = groups_;
        bool same = shape_.mode == nv::PaddingMode::kSAME_UPPER ||
                    shape_.mode == nv::PaddingMode::kSAME_LOWER;
        for (size_t i = 0; i < shape_.rank(); ++i) {
            int64_t total = shape_.reach(i) - shape_.stride.d[i]; // leaves in * stride
            int64_t half = total / 2;
            bool upper = shape_.mode == nv::PaddingMode::kSAME_UPPER;
            int64_t low = upper ? half : total - half;
            c.low.emplace_back(same ? low : shape_.before.d[i]);
            c.high.emplace_back(same ? total - low : shape_.after.d[i]);
        }
        return {biased(e, ops::conv_transpose(e.g, c, e.in[0], w), bias(e))};
    }
};

class Pooling final : public Windowed<nv::IPoolingLayer> {
public:
    Pooling(nv::PoolingType type, const nv::Dims& size)
        : Windowed(nv::LayerType::kPOOLING, "IPoolingLayer", 0, size),
          type_(checked(type, "the pooling type")) {}

    void check(const InputTypes& in) const override { check_input(in); }
    Values emit(const Emitter& e) override {
        if (type_ != nv::PoolingType::kMAX_AVERAGE_BLEND) {
            return {pooled(e, type_ == nv::PoolingType::kMAX ? "max" : "average")};
        }
        auto blend = static_cast<double>(blend_);
        Value most = ops::mul(e.g, pooled(e, "max"), 1 - blend);
        return {ops::add(e.g, most, ops::mul(e.g, pooled(e, "average"), blend))};
    }
    void setWindowSizeNd(const nv::Dims& v) noexcept override {
        set("setWindowSizeNd", [&] { shape_.resize(checked_window(v, "the window")); });
    }
    nv::Dims getWindowSizeNd() const noexcept override { return shape_.window; }

    INGOT_ENUM_SETTING(IPoolingLayer, nv::PoolingType, PoolingType, type_, {}, "the pooling type")
    INGOT_CHECKED_SETTING(IPoolingLayer, float, float, BlendFactor, blend_, 0,
                          require(v >= 0 && v <= 1, ErrorCode::InvalidArgument,
                                  "the blend factor is ", v, ", expected 0 to 1"))
    INGOT_SETTING(bool, AverageCountExcludesPadding, exclusive_, true)

private:
    Value pooled(const Emitter& e, const std::string& fn) const {
        Geometry::Pads p = shape_.pads(spatial(e));
        ops::Pool a;
        a.fn = fn;
        a.sizes = Geometry::list(shape_.window);
        a.strides = Geometry::list(shape_.stride);
        a.dilations = Geometry::list(shape_.dilation);
        a.low = p.low;
        a.high = p.high;
        a.extra = p.extra;
        a.count_padding = !exclusive_;
        return ops::pool(e.g, a, e.in[0]);
    }
};

} // namespace

nv::IConvolutionLayer* Network::addConvolutionNd(nv::ITensor& input, int64_t nbOutputMaps,
                                                 const nv::Dims& kernelSize,
                                                 nv::Weights kernelWeights,
                                                 nv::Weights biasWeights) noexcept {
    return add<Convolution>("INetworkDefinition::addConvolutionNd", {&input}, nbOutputMaps,
                            kernelSize, kernelWeights, biasWeights);
}

nv::IDeconvolutionLayer* Network::addDeconvolutionNd(nv::ITensor& input, int64_t nbOutputMaps,
                                                     const nv::Dims& kernelSize,
                                                     nv::Weights kernelWeights,
                                                     nv::Weights biasWeights) noexcept {
    return add<Deconvolution>("INetworkDefinition::addDeconvolutionNd", {&input}, nbOutputMaps,
                              kernelSize, kernelWeights, biasWeights);
}

nv::IPoolingLayer* Network::addPoolingNd(nv::ITensor& input, nv::PoolingType type,
                                         const nv::Dims& windowSize) noexcept {
    return add<Pooling>("INetworkDefinition::addPoolingNd", {&input}, type, windowSize);
}

} // namespace ingot::api
