// SPDX-License-Identifier: Apache-2.0
// Layers with windows: convolution, deconvolution, pooling.
#include "api/tensorrt/layers/checks.h"
#include "api/tensorrt/layers/settings.h"
#include "base/cut_text.h"
#include "onnx/model.h"

namespace ingot::api {

namespace {

nv::Dims repeated(int64_t value, int32_t rank) {
    nv::Dims d{rank, {}};
    std::fill(d.d, d.d + rank, value);
    return d;
}

// Checks for one number per window dimension, each at least `least`.
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
    require(v.nbDims >= 1 && v.nbDims <= 3, ErrorCode::InvalidArgument, what, " ", text_of(v),
            " has ", v.nbDims, " sizes, expected 1 to 3");
    check_sizes(v, v, 1, what);
    return v;
}

int64_t checked_count(int64_t v, std::string_view what) {
    require(v >= 1, ErrorCode::InvalidArgument, what, " is ", v, ", expected 1 or more");
    return v;
}

// Settings that convolution, deconvolution and pooling share.
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

    // Settings follow the window's rank.
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
        Dims extra; // zeros at the end, added by rounding up
    };
    // The padding for these sizes of the spatial dimensions.
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

// The setters of Geometry; `least` is the smallest padding.
template <class Interface>
class Windowed : public Layer<Interface> {
public:
    Windowed(LayerKind kind, std::string_view face, int64_t least, const nv::Dims& size)
        : Layer<Interface>(kind, 1), interface_name(face), least_padding(least),
          geometry(checked_window(size, "the window")) {}

    void setPrePadding(const nv::Dims& v) noexcept override {
        set("setPrePadding",
            [&] { check_numbers(v, least_padding, "the padding"), geometry.before = v; });
    }
    nv::Dims getPrePadding() const noexcept override { return geometry.before; }
    void setPostPadding(const nv::Dims& v) noexcept override {
        set("setPostPadding",
            [&] { check_numbers(v, least_padding, "the padding"), geometry.after = v; });
    }
    nv::Dims getPostPadding() const noexcept override { return geometry.after; }
    void setPaddingNd(const nv::Dims& v) noexcept override {
        set("setPaddingNd", [&] {
            check_numbers(v, least_padding, "the padding");
            geometry.before = v;
            geometry.after = v;
        });
    }
    nv::Dims getPaddingNd() const noexcept override { return geometry.before; }
    void setPaddingMode(nv::PaddingMode v) noexcept override {
        set("setPaddingMode", [&] { geometry.mode = checked(v, "the padding mode"); });
    }
    nv::PaddingMode getPaddingMode() const noexcept override { return geometry.mode; }
    void setStrideNd(const nv::Dims& v) noexcept override {
        set("setStrideNd", [&] { check_numbers(v, 1, "the stride"), geometry.stride = v; });
    }
    nv::Dims getStrideNd() const noexcept override { return geometry.stride; }

protected:
    template <class F>
    void set(std::string_view method, const F& f) noexcept {
        constexpr size_t most = 64; // in none of them
        this->change(CutText<most>({interface_name, "::", method}).view(), f);
    }
    void check_numbers(const nv::Dims& v, int64_t least, std::string_view what) const {
        check_sizes(v, geometry.window, least, what);
    }
    void check_input(const InputTypes& in) const {
        expect_float(*this, in, 0);
        auto rank = static_cast<int64_t>(geometry.rank()) + 2;
        expect_rank(*this, in, 0, rank, rank);
    }
    static std::span<const Dim> spatial(const Emitter& e) {
        return std::span(e.dims(0)).subspan(2);
    }

    std::string interface_name;
    int64_t least_padding;
    Geometry geometry;
};

// The setters for kernel, bias, maps, groups, dilation.
template <class Interface>
class Convolving : public Windowed<Interface> {
public:
    Convolving(LayerKind kind, std::string_view face, int64_t least, int64_t maps,
               const nv::Dims& size, nv::Weights kernel, nv::Weights bias)
        : Windowed<Interface>(kind, face, least, size),
          map_count(checked_count(maps, "the number of output maps")), kernel_weights(kernel),
          bias_weights(bias) {
        check_weights(kernel, "the kernel weights");
        check_weights(bias, "the bias weights");
    }

    size_t input_limit() const override { return 3; }
    std::vector<nv::Weights> all_weights() const override { return {kernel_weights, bias_weights}; }
    void check(const InputTypes& in) const override {
        this->check_input(in);
        if (in.size() > 1) {
            expect_same_dtype(*this, in, 0, 1);
            auto rank = static_cast<int64_t>(this->geometry.rank()) + 2;
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
                  [&] { map_count = checked_count(v, "the number of output maps"); });
    }
    int64_t getNbOutputMaps() const noexcept override { return map_count; }
    void setNbGroups(int64_t v) noexcept override {
        this->set("setNbGroups", [&] { group_count = checked_count(v, "the number of groups"); });
    }
    int64_t getNbGroups() const noexcept override { return group_count; }
    void setKernelWeights(nv::Weights v) noexcept override {
        this->set("setKernelWeights", [&] {
            check_weights(v, "the kernel weights");
            kernel_weights = v;
        });
    }
    nv::Weights getKernelWeights() const noexcept override { return kernel_weights; }
    void setBiasWeights(nv::Weights v) noexcept override {
        this->set("setBiasWeights", [&] {
            check_weights(v, "the bias weights");
            bias_weights = v;
        });
    }
    nv::Weights getBiasWeights() const noexcept override { return bias_weights; }
    void setKernelSizeNd(const nv::Dims& v) noexcept override {
        this->set("setKernelSizeNd",
                  [&] { this->geometry.resize(checked_window(v, "the kernel size")); });
    }
    nv::Dims getKernelSizeNd() const noexcept override { return this->geometry.window; }
    void setDilationNd(const nv::Dims& v) noexcept override {
        this->set("setDilationNd", [&] {
            check_sizes(v, this->geometry.window, 1, "the dilation");
            this->geometry.dilation = v;
        });
    }
    nv::Dims getDilationNd() const noexcept override { return this->geometry.dilation; }

protected:
    // The kernel, checked, with `outer` x `inner` in front of the window.
    Value kernel(const Emitter& e, int64_t outer, int64_t inner) const {
        Shape shape = {outer, inner};
        shape.insert(shape.end(), this->geometry.window.d,
                     this->geometry.window.d + this->geometry.window.nbDims);
        require(is_empty(kernel_weights) || !e.has(1), ErrorCode::InvalidArgument,
                "there are both kernel weights and input 1; empty the weights");
        if (!is_empty(kernel_weights)) {
            return as_dtype(e.g, e.weights(kernel_weights, shape, "the kernel weights"),
                            e.dtype(0));
        }
        require(e.has(1), ErrorCode::InvalidArgument,
                "there are neither kernel weights nor input 1");
        require(e.dims(1) == to_dims(shape), ErrorCode::InvalidArgument, "input 1 ",
                this->inputs[1]->quoted(), " is ", e.type(1), ", expected ", to_dims(shape),
                " for ", map_count, " output maps and ", group_count,
                group_count == 1 ? " group" : " groups");
        return e.in[1];
    }
    Value bias(const Emitter& e) const {
        require(is_empty(bias_weights) || !e.has(2), ErrorCode::InvalidArgument,
                "there are both bias weights and input 2; empty the weights");
        if (!is_empty(bias_weights)) {
            return as_dtype(e.g, e.weights(bias_weights, {map_count}, "the bias weights"),
                            e.dtype(0));
        }
        require(!e.has(2) || e.dims(2) == Dims{Dim(map_count)}, ErrorCode::InvalidArgument,
                "input 2 ", e.has(2) ? this->inputs[2]->quoted() : "", " is ",
                e.has(2) ? e.type(2) : Type(), ", expected ", map_count, " elements");
        return e.has(2) ? e.in[2] : Value{};
    }
    int64_t channels_per_group(const Emitter& e) const {
        int64_t channels = e.dims(0)[1].value();
        require(channels % group_count == 0 && map_count % group_count == 0,
                ErrorCode::InvalidArgument, channels, " channels and ", map_count,
                " output maps do not divide into ", group_count, " groups");
        return channels / group_count;
    }
    static Value biased(const Emitter& e, Value y, Value b) {
        if (!b.valid()) {
            return y;
        }
        Dims shape(static_cast<size_t>(e.g.type(y).rank()) - 1, Dim(1));
        shape[0] = ops::dims(e.g, b)[0];
        return ops::add(e.g, y, ops::reshape(e.g, b, shape));
    }

    int64_t map_count;
    int64_t group_count = 1;
    nv::Weights kernel_weights;
    nv::Weights bias_weights;
};

class Convolution final : public Convolving<nv::IConvolutionLayer> {
public:
    Convolution(int64_t maps, const nv::Dims& size, nv::Weights kernel, nv::Weights bias)
        : Convolving({nv::LayerType::kCONVOLUTION, "Convolution"}, "IConvolutionLayer", 0, maps,
                     size, kernel, bias) {}

    Values emit(const Emitter& e) override {
        Value w = kernel(e, map_count, channels_per_group(e));
        Geometry::Pads p = geometry.pads(spatial(e));
        for (size_t i = 0; i < p.high.size(); ++i) {
            p.high[i] = p.high[i] + p.extra[i];
        }
        ops::Conv c;
        c.strides = Geometry::list(geometry.stride);
        c.dilations = Geometry::list(geometry.dilation);
        c.low = p.low;
        c.high = p.high;
        c.groups = group_count;
        c.dtype = e.dtype(0);
        return {biased(e, ops::conv(e.g, c, e.in[0], w), bias(e))};
    }
};

class Deconvolution final : public Convolving<nv::IDeconvolutionLayer> {
public:
    Deconvolution(int64_t maps, const nv::Dims& size, nv::Weights kernel, nv::Weights bias)
        : Convolving({nv::LayerType::kDECONVOLUTION, "Deconvolution"}, "IDeconvolutionLayer",
                     INT32_MIN, maps, size, kernel, bias) {}

    Values emit(const Emitter& e) override {
        channels_per_group(e);
        Value w = kernel(e, e.dims(0)[1].value(), map_count / group_count);
        ops::ConvTranspose c;
        c.strides = Geometry::list(geometry.stride);
        c.dilations = Geometry::list(geometry.dilation);
        c.groups = group_count;
        bool same = geometry.mode == nv::PaddingMode::kSAME_UPPER ||
                    geometry.mode == nv::PaddingMode::kSAME_LOWER;
        for (size_t i = 0; i < geometry.rank(); ++i) {
            int64_t total = geometry.reach(i) - geometry.stride.d[i]; // input size * stride
            int64_t half = total / 2;
            bool upper = geometry.mode == nv::PaddingMode::kSAME_UPPER;
            int64_t low = upper ? half : total - half;
            c.low.emplace_back(same ? low : geometry.before.d[i]);
            c.high.emplace_back(same ? total - low : geometry.after.d[i]);
        }
        return {biased(e, ops::conv_transpose(e.g, c, e.in[0], w), bias(e))};
    }
};

class Pooling final : public Windowed<nv::IPoolingLayer> {
public:
    Pooling(nv::PoolingType type, const nv::Dims& size)
        : Windowed({nv::LayerType::kPOOLING, "Pooling"}, "IPoolingLayer", 0, size),
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
        set("setWindowSizeNd", [&] { geometry.resize(checked_window(v, "the window")); });
    }
    nv::Dims getWindowSizeNd() const noexcept override { return geometry.window; }

    INGOT_ENUM_SETTING(IPoolingLayer, nv::PoolingType, PoolingType, type_, {}, "the pooling type")
    INGOT_CHECKED_SETTING(IPoolingLayer, float, float, BlendFactor, blend_, 0,
                          require(v >= 0 && v <= 1, ErrorCode::InvalidArgument,
                                  "the blend factor is ", v, ", expected 0 to 1"))
    INGOT_SETTING(bool, AverageCountExcludesPadding, exclusive_, true)

private:
    Value pooled(const Emitter& e, const std::string& fn) const {
        Geometry::Pads p = geometry.pads(spatial(e));
        ops::Pool a;
        a.fn = fn;
        a.sizes = Geometry::list(geometry.window);
        a.strides = Geometry::list(geometry.stride);
        a.dilations = Geometry::list(geometry.dilation);
        a.low = p.low;
        a.high = p.high;
        a.extra = p.extra;
        a.count_padding = !exclusive_;
        return ops::pool(e.g, a, e.in[0]);
    }
};

} // namespace

nv::IConvolutionLayer* Network::addConvolutionNd(nv::ITensor& input, int64_t nb_output_maps,
                                                 const nv::Dims& kernel_size,
                                                 nv::Weights kernel_weights,
                                                 nv::Weights bias_weights) noexcept {
    return add<Convolution>("INetworkDefinition::addConvolutionNd", {&input}, nb_output_maps,
                            kernel_size, kernel_weights, bias_weights);
}

nv::IDeconvolutionLayer* Network::addDeconvolutionNd(nv::ITensor& input, int64_t nb_output_maps,
                                                     const nv::Dims& kernel_size,
                                                     nv::Weights kernel_weights,
                                                     nv::Weights bias_weights) noexcept {
    return add<Deconvolution>("INetworkDefinition::addDeconvolutionNd", {&input}, nb_output_maps,
                              kernel_size, kernel_weights, bias_weights);
}

nv::IPoolingLayer* Network::addPoolingNd(nv::ITensor& input, nv::PoolingType type,
                                         const nv::Dims& window_size) noexcept {
    return add<Pooling>("INetworkDefinition::addPoolingNd", {&input}, type, window_size);
}

} // namespace ingot::api
