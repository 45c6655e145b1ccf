// SPDX-License-Identifier: Apache-2.0
// layer_norm (with rms) and group_norm, in f32. Groups are rows in [N,C,...]; with channels last
// they are columns, summed over chunks of positions.
#include "backends/cpu/rows.h"
#include "ops/ops.h"

#include <array>
#include <cmath>

namespace ingot::cpu {

namespace {

float inverse_deviation(float squares, int64_t n, double epsilon) {
    return 1 / std::sqrt(squares / static_cast<float>(n) + static_cast<float>(epsilon));
}

class LayerNormStep : public Step {
public:
    explicit LayerNormStep(const StepArgs& a) : attrs_(a.group.first().as<ops::LayerNorm>()) {
        loop_.x = a.in[0];
        loop_.out = a.out[0];
        const Shape& shape = loop_.x.view.shape;
        auto axis = static_cast<std::ptrdiff_t>(
            normalize_axis(attrs_.axis, static_cast<int64_t>(shape.size())));
        Shape row(shape.begin() + axis, shape.end());
        loop_.size = count_of(row);
        loop_.rows = loop_.size == 0 ? 0 : loop_.x.view.count() / loop_.size;
        weight_ = vector_of(a.in[1], row);
        if (a.in.size() > 2) {
            has_bias_ = true;
            bias_ = vector_of(a.in[2], row);
        }
    }

    Status run(const RunContext& c) noexcept override {
        const VectorLoops& v = vector_loops();
        auto* memory = c.scratch<float>(scratch);
        const float* weight = weight_.get(c, memory);
        memory += weight_.scratch();
        const float* bias = has_bias_ ? bias_.get(c, memory) : nullptr;
        memory += bias_.scratch();
        int64_t n = loop_.size;
        loop_.run(c, memory, [&](const float* x, float* y, int64_t) {
            float mean = attrs_.rms ? 0 : v.sum(x, n) / static_cast<float>(n);
            float factor = inverse_deviation(v.sum_squares(x, mean, n), n, attrs_.epsilon);
            v.normalize(y, x, mean, factor, weight, bias, n);
        });
        return {};
    }

    int64_t scratch_bytes() const override {
        return (weight_.scratch() + bias_.scratch()) * 4 + loop_.scratch_bytes();
    }

private:
    /// Scale and bias may have leading axes of size 1.
    static FloatVector vector_of(Operand o, const Shape& row) {
        while (o.view.shape.size() > row.size()) {
            require(o.view.shape.front() == 1, ErrorCode::InvalidArgument,
                    "layer_norm: scale or bias of shape ", o.view.shape,
                    " does not broadcast to the normalised axes ", row);
            o.view.shape.erase(o.view.shape.begin());
            o.view.strides.erase(o.view.strides.begin());
        }
        size_t shift = row.size() - o.view.shape.size();
        for (size_t i = 0; i < o.view.shape.size(); ++i) {
            require(o.view.shape[i] == 1 || o.view.shape[i] == row[i + shift],
                    ErrorCode::InvalidArgument, "layer_norm: scale or bias of shape ", o.view.shape,
                    " does not broadcast to the normalised axes ", row);
        }
        return {o, row};
    }

    ops::LayerNorm attrs_;
    RowLoop loop_;
    FloatVector weight_;
    FloatVector bias_;
    bool has_bias_ = false;
};

// --- group_norm ----------------------------------------------------------------------------------

/// Groups in [N,C,...]: each is one row.
class GroupRowsStep : public Step {
public:
    explicit GroupRowsStep(const StepArgs& a) : attrs_(a.group.first().as<ops::GroupNorm>()) {
        loop_.x = a.in[0];
        loop_.out = a.out[0];
        const Shape& shape = loop_.x.view.shape;
        loop_.rows = shape[0] * attrs_.groups;
        loop_.size = loop_.rows == 0 ? 0 : loop_.x.view.count() / loop_.rows;
        channels_ = shape[1] / attrs_.groups;
        weight_ = FloatVector(a.in[1], {shape[1]});
        bias_ = FloatVector(a.in[2], {shape[1]});
    }

    Status run(const RunContext& c) noexcept override {
        const VectorLoops& v = vector_loops();
        auto* memory = c.scratch<float>(scratch);
        const float* weight = weight_.get(c, memory);
        memory += weight_.scratch();
        const float* bias = bias_.get(c, memory);
        memory += bias_.scratch();
        int64_t n = loop_.size;
        int64_t per_channel = n / channels_;
        loop_.run(c, memory, [&](const float* x, float* y, int64_t row) {
            float mean = v.sum(x, n) / static_cast<float>(n);
            float factor = inverse_deviation(v.sum_squares(x, mean, n), n, attrs_.epsilon);
            int64_t first = row % attrs_.groups * channels_;
            for (int64_t i = 0; i < channels_; ++i) {
                const float* from = x + i * per_channel;
                float* to = y + i * per_channel;
                float scale = factor * weight[first + i];
                float shift = bias[first + i] - mean * scale;
                for (int64_t k = 0; k < per_channel; ++k) {
                    to[k] = from[k] * scale + shift;
                }
            }
        });
        return {};
    }

    int64_t scratch_bytes() const override {
        return (weight_.scratch() + bias_.scratch()) * 4 + loop_.scratch_bytes();
    }

private:
    ops::GroupNorm attrs_;
    RowLoop loop_;
    int64_t channels_ = 1; // of a group
    FloatVector weight_;
    FloatVector bias_;
};

/// Channels last, f32: sums over chunks of positions, in a fixed order.
class GroupColumnsStep : public Step {
public:
    explicit GroupColumnsStep(const StepArgs& a)
        : attrs_(a.group.first().as<ops::GroupNorm>()), x_(a.in[0]), out_(a.out[0]) {
        const Shape& shape = x_.view.shape;
        batch_ = shape[0];
        channels_ = shape[1];
        positions_ = x_.view.count() / std::max<int64_t>(batch_ * channels_, 1);
        weight_ = FloatVector(a.in[1], {channels_});
        bias_ = FloatVector(a.in[2], {channels_});
        chunk_ = std::max<int64_t>((positions_ + chunks - 1) / chunks, 1);
        add_ = map_loop(ExprOp::Add, DType::F32);
        mul_ = map_loop(ExprOp::Mul, DType::F32);
        sub_ = map_loop(ExprOp::Sub, DType::F32);
    }

    Status run(const RunContext& c) noexcept override {
        auto* memory = c.scratch<float>(scratch);
        const float* weight = weight_.get(c, memory);
        memory += weight_.scratch();
        const float* bias = bias_.get(c, memory);
        memory += bias_.scratch();
        float* sums = memory;                     // [chunks][channels]
        float* scale = sums + chunks * channels_; // [channels]
        float* shift = scale + channels_;         // [channels], holds the means at first
        float* squares = shift + channels_;       // [chunks][channels]: squared differences
        for (int64_t n = 0; n < batch_; ++n) {
            const float* x = c.at<const float>(x_) + n * positions_ * channels_;
            float* y = c.at<float>(out_) + n * positions_ * channels_;
            sum_chunks(c, x, nullptr, sums, squares);
            group_means(sums, shift);
            sum_chunks(c, x, shift, sums, squares);
            group_factors(sums, scale, shift, weight, bias);
            int64_t grain = std::max<int64_t>(1, row_grain_elements / channels_);
            c.pool.parallel_for(positions_, grain, [&](int64_t begin, int64_t end) {
                for (int64_t p = begin; p < end; ++p) {
                    mul_(y + p * channels_, x + p * channels_, scale, nullptr, channels_);
                    add_(y + p * channels_, y + p * channels_, shift, nullptr, channels_);
                }
            });
        }
        return {};
    }

    int64_t scratch_bytes() const override {
        return (weight_.scratch() + bias_.scratch() + (2 * chunks + 2) * channels_) * 4;
    }

private:
    static constexpr int64_t chunks = 16;

    /// Sums over the positions of each chunk: x, or (x - mean) squared.
    void sum_chunks(const RunContext& c, const float* x, const float* mean, float* sums,
                    float* work) const {
        c.pool.parallel_for(chunks, 1, [&](int64_t begin, int64_t end) {
            for (int64_t k = begin; k < end; ++k) {
                float* sum = sums + k * channels_;
                float* difference = work + k * channels_;
                std::fill_n(sum, channels_, 0.0F);
                int64_t last = std::min((k + 1) * chunk_, positions_);
                for (int64_t p = k * chunk_; p < last; ++p) {
                    const float* row = x + p * channels_;
                    if (mean != nullptr) {
                        sub_(difference, row, mean, nullptr, channels_);
                        mul_(difference, difference, difference, nullptr, channels_);
                        row = difference;
                    }
                    add_(sum, sum, row, nullptr, channels_);
                }
            }
        });
    }

    double group_total(const float* sums, int64_t group) const {
        int64_t per_group = channels_ / attrs_.groups;
        double total = 0;
        for (int64_t k = 0; k < chunks; ++k) {
            for (int64_t i = 0; i < per_group; ++i) {
                total += static_cast<double>(sums[k * channels_ + group * per_group + i]);
            }
        }
        return total;
    }

    void group_means(const float* sums, float* mean) const {
        int64_t per_group = channels_ / attrs_.groups;
        for (int64_t g = 0; g < attrs_.groups; ++g) {
            auto n = static_cast<double>(per_group * positions_);
            std::fill_n(mean + g * per_group, per_group,
                        static_cast<float>(group_total(sums, g) / n));
        }
    }

    void group_factors(const float* sums, float* scale, float* shift, const float* weight,
                       const float* bias) const {
        int64_t per_group = channels_ / attrs_.groups;
        for (int64_t g = 0; g < attrs_.groups; ++g) {
            float factor = inverse_deviation(static_cast<float>(group_total(sums, g)),
                                             per_group * positions_, attrs_.epsilon);
            for (int64_t i = g * per_group; i < (g + 1) * per_group; ++i) {
                scale[i] = factor * weight[i];
                shift[i] = bias[i] - shift[i] * scale[i];
            }
        }
    }

    ops::GroupNorm attrs_;
    Operand x_;
    Operand out_;
    int64_t batch_ = 0;
    int64_t channels_ = 0;
    int64_t positions_ = 0;
    int64_t chunk_ = 1; // positions
    FloatVector weight_;
    FloatVector bias_;
    MapLoop add_ = nullptr;
    MapLoop mul_ = nullptr;
    MapLoop sub_ = nullptr;
};

std::optional<std::string> refuse(const Group& group) {
    for (Value v : group.first().inputs) {
        DType t = group.graph.type(v).dtype;
        if (!is_small_float(t)) {
            return str("elements are ", t);
        }
    }
    return std::nullopt;
}

void layer_norm_layout(LayoutArgs& args) {
    args.want[0] = plan::row_major(args.in[0].rank());
}

bool goes_by_columns(const View& x, DType t) {
    return t == DType::F32 && x.rank() >= 3 && !plan::is_dense(x) &&
           plan::is_dense(x, plan::channels_last(x.rank()));
}

void group_norm_layout(LayoutArgs& args) {
    const View& x = args.in[0];
    DType t = args.group.graph.type(args.group.inputs[0]).dtype;
    Order order = goes_by_columns(x, t) ? plan::channels_last(x.rank()) : plan::row_major(x.rank());
    args.want[0] = order;
    args.order[0] = order;
}

std::unique_ptr<Step> prepare_layer_norm(const StepArgs& args) {
    return std::make_unique<LayerNormStep>(args);
}

std::unique_ptr<Step> prepare_group_norm(const StepArgs& args) {
    const View& x = args.in[0].view;
    int64_t groups = args.group.first().as<ops::GroupNorm>().groups;
    require(x.shape[1] % groups == 0 && args.in[1].view.shape == Shape{x.shape[1]} &&
                args.in[2].view.shape == Shape{x.shape[1]},
            ErrorCode::InvalidArgument, "group_norm of ", x.shape, " in ", groups,
            " groups: scale ", args.in[1].view.shape, " and bias ", args.in[2].view.shape,
            " do not fit the channels");
    if (goes_by_columns(x, args.in[0].dtype)) {
        return std::make_unique<GroupColumnsStep>(args);
    }
    return std::make_unique<GroupRowsStep>(args);
}

const Kernel rows[] = {
    {.name = "layer_norm",
     .refuse = refuse,
     .prepare = prepare_layer_norm,
     .layout = layer_norm_layout,
     .in_place = true},
    {.name = "group_norm",
     .refuse = refuse,
     .prepare = prepare_group_norm,
     .layout = group_norm_layout,
     .in_place = true},
};

} // namespace

extern const KernelTable norm_kernels;
const KernelTable norm_kernels = rows;

} // namespace ingot::cpu
