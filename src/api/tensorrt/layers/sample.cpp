// SPDX-License-Identifier: Apache-2.0
// Layers that sample images: resize and grid sample.
#include "api/tensorrt/layers/checks.h"
#include "api/tensorrt/layers/settings.h"
#include "onnx/model.h"

#include <array>

namespace ingot::api {

namespace {

class ResizeLayer final : public Layer<nv::IResizeLayer> {
public:
    ResizeLayer() : Layer({nv::LayerType::kRESIZE, "Resize"}, 1) {}

    size_t input_limit() const override { return 2; }
    bool reads_shape(size_t i) const override { return i == 1; }
    void check(const InputTypes& in) const override {
        expect_number(*this, in, 0);
        expect_rank(*this, in, 0, 1);
        expect_index(*this, in, 1);
        expect_rank(*this, in, 1, 1, 1);
    }
    Values emit(const Emitter& e) override {
        Value sizes;
        Value scales;
        auto rank = static_cast<size_t>(e.rank(0));
        if (e.has(1)) {
            sizes = as_dtype(e.g, e.in[1], DType::I64);
        } else if (!scales_.empty()) {
            require(scales_.size() == rank, ErrorCode::InvalidArgument, "there are ",
                    scales_.size(), " scales, but input 0 ", inputs[0]->quoted(), " is ",
                    e.type(0));
            scales = ops::constant(
                e.g, Tensor::of<float>(DType::F32, {static_cast<int64_t>(rank)}, scales_));
        } else {
            require(dims_.nbDims >= 0, ErrorCode::InvalidArgument,
                    "there are neither output dimensions nor scales nor input 1");
            Shape shape = numbers_of(dims_, "the output dimensions");
            require(shape.size() == rank, ErrorCode::InvalidArgument, "the output dimensions are ",
                    text_of(dims_), ", but input 0 ", inputs[0]->quoted(), " is ", e.type(0));
            sizes = ops::i64_list(e.g, shape);
        }
        constexpr std::array<const char*, 3> modes = {"nearest", "linear", "cubic"};
        std::vector<onnx::Attribute> attributes = {
            attribute("mode", std::string(modes[static_cast<size_t>(mode_)])),
            attribute("coordinate_transformation_mode", coordinates()),
            attribute("nearest_mode", rounding()),
            attribute("cubic_coeff_a", static_cast<double>(cubic_)),
            attribute("exclude_outside", int64_t{exclude_ ? 1 : 0})};
        return {e.onnx1("Resize", {e.in[0], Value{}, scales, sizes}, std::move(attributes))};
    }
    void setOutputDimensions(const nv::Dims& v) noexcept override {
        change("IResizeLayer::setOutputDimensions", [&] {
            for (int64_t d : numbers_of(v, "the output dimensions")) {
                require(d >= 0, ErrorCode::InvalidArgument, "the output dimensions are ",
                        text_of(v), ", expected sizes of 0 or more");
            }
            dims_ = v;
            scales_.clear();
            inputs.resize(1);
        });
    }
    nv::Dims getOutputDimensions() const noexcept override { return dims_; }
    void setScales(const float* scales, int32_t nb_scales) noexcept override {
        change("IResizeLayer::setScales", [&] {
            require(scales != nullptr && nb_scales >= 1 && nb_scales <= nv::Dims::MAX_DIMS,
                    ErrorCode::InvalidArgument, "there are ", nb_scales, " scales, expected 1 to ",
                    nv::Dims::MAX_DIMS);
            for (int32_t i = 0; i < nb_scales; ++i) {
                require(scales[i] > 0, ErrorCode::InvalidArgument, "scale ", i, " is ", scales[i],
                        ", expected more than 0");
            }
            scales_.assign(scales, scales + nb_scales);
            dims_ = no_dims();
            inputs.resize(1);
        });
    }
    int32_t getScales(int32_t size, float* scales) const noexcept override {
        for (size_t i = 0; scales != nullptr && i < scales_.size(); ++i) {
            if (static_cast<int32_t>(i) < size) {
                scales[i] = scales_[i];
            }
        }
        return scales_.empty() ? -1 : static_cast<int32_t>(scales_.size());
    }

    INGOT_ENUM_SETTING(IResizeLayer, nv::InterpolationMode, ResizeMode, mode_, {}, "the mode")
    INGOT_ENUM_SETTING(IResizeLayer, nv::ResizeCoordinateTransformation, CoordinateTransformation,
                       coordinates_, nv::ResizeCoordinateTransformation::kASYMMETRIC,
                       "the coordinate transformation")
    INGOT_ENUM_SETTING(IResizeLayer, nv::ResizeSelector, SelectorForSinglePixel, selector_, {},
                       "the selector")
    INGOT_ENUM_SETTING(IResizeLayer, nv::ResizeRoundMode, NearestRounding, rounding_,
                       nv::ResizeRoundMode::kFLOOR, "the rounding")
    INGOT_SETTING(float, CubicCoeff, cubic_, -0.75F)
    INGOT_SETTING(bool, ExcludeOutside, exclude_, false)

private:
    std::string coordinates() const {
        switch (coordinates_) {
        case nv::ResizeCoordinateTransformation::kALIGN_CORNERS:
            return "align_corners";
        case nv::ResizeCoordinateTransformation::kASYMMETRIC:
            return "asymmetric";
        case nv::ResizeCoordinateTransformation::kHALF_PIXEL:
            break;
        }
        // The mode that maps a dimension of 1 to index 0.
        return selector_ == nv::ResizeSelector::kUPPER ? "pytorch_half_pixel" : "half_pixel";
    }
    std::string rounding() const {
        constexpr std::array<const char*, 4> names = {"round_prefer_ceil", "round_prefer_floor",
                                                      "floor", "ceil"};
        return names[static_cast<size_t>(rounding_)];
    }
    nv::Dims dims_ = no_dims();
    std::vector<float> scales_;
};

class GridSample final : public Layer<nv::IGridSampleLayer> {
public:
    GridSample() : Layer({nv::LayerType::kGRID_SAMPLE, "GridSample"}, 1) {}

    void check(const InputTypes& in) const override {
        expect_float(*this, in, 0);
        expect_rank(*this, in, 0, 4, 4);
        expect_float(*this, in, 1);
        expect_rank(*this, in, 1, 4, 4);
    }
    Values emit(const Emitter& e) override {
        constexpr std::array<const char*, 3> modes = {"nearest", "linear", "cubic"};
        const char* padding = mode_ == nv::SampleMode::kFILL    ? "zeros"
                              : mode_ == nv::SampleMode::kCLAMP ? "border"
                                                                : "reflection";
        return {e.onnx1("GridSample", {e.in[0], as_dtype(e.g, e.in[1], e.dtype(0))},
                        {attribute("mode", std::string(modes[static_cast<size_t>(interpolation_)])),
                         attribute("padding_mode", std::string(padding)),
                         attribute("align_corners", int64_t{align_ ? 1 : 0})})};
    }
    bool setSampleMode(nv::SampleMode mode) noexcept override {
        return change("IGridSampleLayer::setSampleMode", [&] {
            bool fits = mode == nv::SampleMode::kFILL || mode == nv::SampleMode::kCLAMP ||
                        mode == nv::SampleMode::kREFLECT;
            require(fits, ErrorCode::InvalidArgument, "the sample mode is ",
                    static_cast<int64_t>(mode), ", expected kFILL, kCLAMP or kREFLECT");
            mode_ = mode;
        });
    }
    nv::SampleMode getSampleMode() const noexcept override { return mode_; }

    INGOT_ENUM_SETTING(IGridSampleLayer, nv::InterpolationMode, InterpolationMode, interpolation_,
                       nv::InterpolationMode::kLINEAR, "the mode")
    INGOT_SETTING(bool, AlignCorners, align_, false)

private:
    nv::SampleMode mode_ = nv::SampleMode::kFILL;
};

} // namespace

nv::IResizeLayer* Network::addResize(nv::ITensor& input) noexcept {
    return add<ResizeLayer>("INetworkDefinition::addResize", {&input});
}

nv::IGridSampleLayer* Network::addGridSample(nv::ITensor& input, nv::ITensor& grid) noexcept {
    return add<GridSample>("INetworkDefinition::addGridSample", {&input, &grid});
}

} // namespace ingot::api
