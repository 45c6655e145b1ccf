// SPDX-License-Identifier: Apache-2.0
// Normalisation and local response normalisation.
#include "api/tensorrt/layers/checks.h"
#include "api/tensorrt/layers/settings.h"
#include "onnx/model.h"

namespace ingot::api {

namespace {

class Lrn final : public Layer<nv::ILRNLayer> {
public:
    Lrn(int64_t window, float alpha, float beta, float k)
        : Layer({nv::LayerType::kLRN, "LRN"}, 1), window_(window), alpha_(alpha), beta_(beta),
          k_(k) {
        check_window(window);
    }

    void check(const InputTypes& in) const override {
        expect_float(*this, in, 0);
        expect_rank(*this, in, 0, 3);
    }
    Values emit(const Emitter& e) override {
        return {
            e.onnx1("LRN", {e.in[0]},
                    {attribute("size", window_), attribute("alpha", static_cast<double>(alpha_)),
                     attribute("beta", static_cast<double>(beta_)),
                     attribute("bias", static_cast<double>(k_))})};
    }

    INGOT_CHECKED_SETTING(ILRNLayer, int64_t, int64_t, WindowSize, window_, 0, check_window(v))
    INGOT_SETTING(float, Alpha, alpha_, 0)
    INGOT_SETTING(float, Beta, beta_, 0)
    INGOT_SETTING(float, K, k_, 0)

private:
    static void check_window(int64_t w) {
        require(w >= 1 && w % 2 == 1, ErrorCode::InvalidArgument, "the window is ", w,
                ", expected an odd number of 1 or more");
    }
};

class Normalization final : public Layer<nv::INormalizationLayer> {
public:
    Normalization(uint32_t axes, bool v2)
        : Layer({nv::LayerType::kNORMALIZATION, "Normalization"}, 1), axes_(axes), v2_(v2) {}

    void check(const InputTypes& in) const override {
        expect_float(*this, in, 0);
        expect_rank(*this, in, 0, 2);
        for (size_t i = 1; i < 3; ++i) {
            expect_same_dtype(*this, in, 0, i);
            if (in[0] && in[i] && !from_model) {
                expect_rank(*this, in, i, in[0]->rank(), in[0]->rank());
            }
        }
        if (in[0]) {
            require(!axes_of(axes_, in[0]->rank(), "the axes").empty(), ErrorCode::InvalidArgument,
                    "axes are 0, expected at least one bit");
        }
    }
    Values emit(const Emitter& e) override {
        std::vector<int64_t> axes = axes_of(axes_, e.rank(0), "the axes");
        if (groups_ != 1) {
            return {grouped(e, axes)};
        }
        if (e.rank(1) < e.rank(0) || e.rank(2) < e.rank(0)) {
            return {as_in_model(e, axes)};
        }
        for (size_t i = 1; i < 3; ++i) {
            expect_broadcast(*this, {e.type(0), e.type(1), e.type(2)}, {0, i});
        }
        bool trailing = axes.front() + static_cast<int64_t>(axes.size()) == e.rank(0);
        if (trailing && varies_along_trailing(e, axes.front())) {
            Dims tail(e.dims(1).begin() + axes.front(), e.dims(1).end());
            Dims bias_tail(e.dims(2).begin() + axes.front(), e.dims(2).end());
            ops::LayerNorm n{axes.front(), static_cast<double>(epsilon_), false};
            return {ops::layer_norm(e.g, n, e.in[0], ops::reshape(e.g, e.in[1], tail),
                                    ops::reshape(e.g, e.in[2], bias_tail))};
        }
        if (trailing && axes.front() == 2 && per_channel(e, 1) && per_channel(e, 2)) {
            return {group_norm(e, e.dims(0)[1].value(), e.in[1], e.in[2])};
        }
        return {spelled_out(e, axes)};
    }
    bool isV2() const noexcept override { return v2_; }

    INGOT_CHECKED_SETTING(INormalizationLayer, float, float, Epsilon, epsilon_, 1e-5F,
                          require(v >= 0, ErrorCode::InvalidArgument, "epsilon is ", v,
                                  ", expected 0 or more"))
    INGOT_SETTING(uint32_t, Axes, axes_, 0)
    INGOT_CHECKED_SETTING(INormalizationLayer, int64_t, int64_t, NbGroups, groups_, 1,
                          require(v >= 1, ErrorCode::InvalidArgument, "the number of groups is ", v,
                                  ", expected 1 or more"))
    INGOT_CHECKED_SETTING(INormalizationLayer, nv::DataType, nv::DataType, ComputePrecision,
                          precision_, nv::DataType::kFLOAT,
                          require(v == nv::DataType::kFLOAT || v == nv::DataType::kHALF,
                                  ErrorCode::InvalidArgument, "the precision is ", name_of(v),
                                  ", expected FLOAT or HALF"))
    std::vector<Unused> unused_settings() const override {
        if (precision_ == nv::DataType::kFLOAT) {
            return {};
        }
        return {{"INormalizationLayer::setComputePrecision",
                 "means and variances are computed in FP32"}};
    }

private:
    // Whether scale and bias are 1 before the axis.
    static bool varies_along_trailing(const Emitter& e, int64_t axis) {
        for (size_t i = 1; i < 3; ++i) {
            for (size_t d = 0; d < static_cast<size_t>(axis); ++d) {
                if (!e.dims(i)[d].is_const(1)) {
                    return false;
                }
            }
        }
        return true;
    }
    // Whether scale or bias has the shape 1 C 1 ... .
    static bool per_channel(const Emitter& e, size_t i) {
        const Dims& d = e.dims(i);
        bool fits = e.dims(0)[1].is_const() && d[1] == e.dims(0)[1];
        for (size_t k = 0; k < d.size(); ++k) {
            fits = fits && (k == 1 || d[k].is_const(1));
        }
        return fits;
    }
    // Scale and bias in ONNX's form, with the trailing dimensions; one of each for one channel.
    Value as_in_model(const Emitter& e, const std::vector<int64_t>& axes) const {
        int64_t first = axes.front();
        bool trailing = first + static_cast<int64_t>(axes.size()) == e.rank(0);
        require(trailing, ErrorCode::InvalidArgument, "the axes are ", axes, " of input 0 ",
                inputs[0]->quoted(), ", which is ", e.type(0), ", but input 1 ",
                inputs[1]->quoted(), " is ", e.type(1), ", expected ", e.rank(0), " dimensions");
        if (first == 2 && e.dims(0)[1].is_const(1) && product(e.dims(1)).is_const(1)) {
            return group_norm(e, 1, e.in[1], e.in[2]);
        }
        ops::LayerNorm n{first, static_cast<double>(epsilon_), false};
        return ops::layer_norm(e.g, n, e.in[0], e.in[1], e.in[2]);
    }
    Value group_norm(const Emitter& e, int64_t groups, Value scale, Value bias) const {
        ops::GroupNorm n{groups, static_cast<double>(epsilon_)};
        return ops::group_norm(e.g, n, e.in[0], ops::flatten(e.g, scale), ops::flatten(e.g, bias));
    }
    Value grouped(const Emitter& e, const std::vector<int64_t>& axes) const {
        bool spatial = axes.front() == 2 && static_cast<int64_t>(axes.size()) == e.rank(0) - 2;
        require(spatial, ErrorCode::InvalidArgument, "with ", groups_,
                " groups the axes are the spatial ones, 2 to ", e.rank(0) - 1);
        const Dim& channels = e.dims(0)[1];
        require(channels.is_const() && channels.value() % groups_ == 0, ErrorCode::InvalidArgument,
                channels, " channels do not divide into ", groups_, " groups");
        return group_norm(e, groups_, parameter(e, 1), parameter(e, 2));
    }
    // A per-group parameter, expanded to one element per channel.
    Value parameter(const Emitter& e, size_t i) const {
        int64_t channels = e.dims(0)[1].value();
        int64_t expected = v2_ ? channels : groups_;
        require(product(e.dims(i)) == Dim(expected), ErrorCode::InvalidArgument, "input ", i, " ",
                inputs[i]->quoted(), " is ", e.type(i), ", expected ", expected,
                " elements, one for each ", v2_ ? "channel" : "group");
        if (v2_) {
            return e.in[i];
        }
        Value v = ops::reshape(e.g, e.in[i], {Dim(groups_), Dim(1)});
        return ops::broadcast_to(e.g, v, {Dim(groups_), Dim(channels / groups_)});
    }
    Value spelled_out(const Emitter& e, const std::vector<int64_t>& axes) const {
        Graph& g = e.g;
        Value x = ops::widen(g, e.in[0]);
        Value centred = ops::sub(g, x, ops::reduce_mean(g, x, axes, true));
        Value variance = ops::reduce_mean(g, ops::mul(g, centred, centred), axes, true);
        Value deviation = ops::sqrt(g, ops::add(g, variance, static_cast<double>(epsilon_)));
        Value y = ops::div(g, centred, deviation);
        y = ops::mul(g, y, as_dtype(g, e.in[1], g.type(y).dtype));
        y = ops::add(g, y, as_dtype(g, e.in[2], g.type(y).dtype));
        return as_dtype(g, y, e.dtype(0));
    }
    bool v2_;
};

} // namespace

nv::ILRNLayer* Network::addLRN(nv::ITensor& input, int64_t window, float alpha, float beta,
                               float k) noexcept {
    return add<Lrn>("INetworkDefinition::addLRN", {&input}, window, alpha, beta, k);
}

nv::INormalizationLayer* Network::addNormalization(nv::ITensor& input, nv::ITensor& scale,
                                                   nv::ITensor& bias, uint32_t axes_mask) noexcept {
    return add<Normalization>("INetworkDefinition::addNormalization", {&input, &scale, &bias},
                              axes_mask, false);
}

nv::INormalizationLayer* Network::addNormalizationV2(nv::ITensor& input, nv::ITensor& scale,
                                                     nv::ITensor& bias,
                                                     uint32_t axes_mask) noexcept {
    return add<Normalization>("INetworkDefinition::addNormalizationV2", {&input, &scale, &bias},
                              axes_mask, true);
}

} // namespace ingot::api
