// SPDX-License-Identifier: Apache-2.0
// pool: maxima and averages over windows, channels last: combines rows of channels.
#include "backends/cpu/expr_program.h"
#include "backends/cpu/onednn_conv.h"
#include "backends/cpu/options.h"
#include "backends/cpu/rows.h"
#include "backends/cpu/spatial.h"
#include "ops/ops.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace ingot::cpu {

namespace {

constexpr int64_t block = 512; // channels per iteration
constexpr int64_t grain_elements = 8 << 10;

/// The taps of one position along one axis: [first, last) of the window are inside the input; also
/// the divisor for averages.
struct Cover {
    int64_t first = 0;
    int64_t last = 0;
    int64_t start = 0; // input coordinate of tap 0
    int64_t counted = 0;
};

std::vector<Cover> covers_of(const SpatialAxis& a, int64_t extra, bool count_padding) {
    std::vector<Cover> covers;
    for (int64_t o = 0; o < a.out; ++o) {
        Cover c;
        c.start = o * a.stride - a.low;
        c.last = a.size;
        while (c.first < a.size && c.start + c.first * a.dilation < 0) {
            ++c.first;
        }
        while (c.last > c.first && c.start + (c.last - 1) * a.dilation >= a.in) {
            --c.last;
        }
        c.counted = c.last - c.first;
        if (count_padding) {
            c.counted = 0;
            for (int64_t t = 0; t < a.size; ++t) {
                c.counted += c.start + t * a.dilation < a.in + a.high - extra ? 1 : 0;
            }
        }
        covers.push_back(c);
    }
    return covers;
}

std::vector<SpatialAxis> axes_of(const StepArgs& a, const Shape& extra) {
    const auto& attrs = a.group.first().as<ops::Pool>();
    Shape high = eval(attrs.high, a.symbols);
    for (size_t i = 0; i < high.size(); ++i) {
        high[i] += extra[i];
    }
    return spatial_axes("pool", a.in[0].view.shape, a.out[0].view.shape, attrs.sizes, attrs.strides,
                        attrs.dilations, eval(attrs.low, a.symbols), high);
}

class PoolStep : public Step {
public:
    explicit PoolStep(const StepArgs& a) : x_(a.in[0]), out_(a.out[0]) {
        const auto& attrs = a.group.first().as<ops::Pool>();
        average_ = attrs.fn == "average";
        type_ = compute_type(x_.dtype);
        width_ = bit_width(x_.dtype) / 8;
        compute_width_ = bit_width(type_) / 8;
        combine_ = map_loop(average_ ? ExprOp::Add : ExprOp::Max, type_);
        load_ = load_loop(x_.dtype);
        store_ = store_loop(x_.dtype);
        channels_ = x_.view.shape[1];
        Shape extra = eval(attrs.extra, a.symbols);
        axes_ = axes_of(a, extra);
        for (size_t i = 0; i < axes_.size(); ++i) {
            covers_.push_back(covers_of(axes_[i], extra[i], attrs.count_padding));
            positions_ *= axes_[i].out;
            taps_ *= axes_[i].size;
        }
        require(axes_.size() <= 3, ErrorCode::Unsupported, "pool over ", axes_.size(),
                " axes, expected at most 3");
        write_lowest();
    }

    Status run(const RunContext& c) noexcept override {
        int64_t rows = x_.view.shape[0] * positions_;
        int64_t grain =
            std::max<int64_t>(1, grain_elements / std::max<int64_t>(channels_ * taps_, 1));
        c.pool.parallel_for(rows, grain, [&](int64_t begin, int64_t end) {
            for (int64_t r = begin; r < end; ++r) {
                for (int64_t first = 0; first < channels_; first += block) {
                    fold(c, r, first, std::min(block, channels_ - first));
                }
            }
        });
        return {};
    }

private:
    void write_lowest() {
        std::vector<std::byte> one(8);
        if (type_ == DType::F32) {
            float v = average_ ? 0 : -std::numeric_limits<float>::infinity();
            std::memcpy(one.data(), &v, sizeof v);
        } else if (type_ == DType::F64) {
            double v = average_ ? 0 : -std::numeric_limits<double>::infinity();
            std::memcpy(one.data(), &v, sizeof v);
        } else if (is_signed(type_)) {
            uint64_t v = uint64_t{1} << (bit_width(type_) - 1);
            std::memcpy(one.data(), &v, sizeof v);
        }
        for (int64_t i = 0; i < block; ++i) {
            lowest_.insert(lowest_.end(), one.begin(),
                           one.begin() + static_cast<std::ptrdiff_t>(compute_width_));
        }
    }

    void fold(const RunContext& c, int64_t row, int64_t first, int64_t n) const {
        alignas(64) std::byte total[block * 8];
        alignas(64) std::byte loaded[block * 8];
        std::memcpy(total, lowest_.data(), static_cast<size_t>(n * compute_width_));
        const Cover* cover[3] = {};
        int64_t rest = row % positions_;
        for (size_t i = axes_.size(); i-- > 0;) {
            cover[i] = &covers_[i][static_cast<size_t>(rest % axes_[i].out)];
            rest /= axes_[i].out;
        }
        int64_t image = row / positions_;
        for (const SpatialAxis& a : axes_) {
            image *= a.in;
        }
        const std::byte* x = c.bytes(x_) + (image * channels_ + first) * width_;
        fold_axis(0, 0, cover, [&](int64_t pixel) {
            const std::byte* from = x + pixel * channels_ * width_;
            if (load_ != nullptr) {
                load_(loaded, from, nullptr, nullptr, n);
                from = loaded;
            }
            combine_(total, total, from, nullptr, n);
        });
        if (average_) {
            divide(total, cover, n);
        }
        std::byte* to = c.bytes(out_) + (row * channels_ + first) * width_;
        if (store_ != nullptr) {
            store_(to, total, nullptr, nullptr, n);
        } else {
            std::memcpy(to, total, static_cast<size_t>(n * width_));
        }
    }

    template <class F>
    void fold_axis(size_t axis, int64_t pixel, const Cover* const* cover, const F& f) const {
        if (axis == axes_.size()) {
            f(pixel);
            return;
        }
        const SpatialAxis& a = axes_[axis];
        for (int64_t t = cover[axis]->first; t < cover[axis]->last; ++t) {
            fold_axis(axis + 1, pixel * a.in + cover[axis]->start + t * a.dilation, cover, f);
        }
    }

    void divide(std::byte* total, const Cover* const* cover, int64_t n) const {
        double counted = 1;
        for (size_t i = 0; i < axes_.size(); ++i) {
            counted *= static_cast<double>(cover[i]->counted);
        }
        if (type_ == DType::F32) {
            auto* v = reinterpret_cast<float*>(total);
            vector_loops().scale(v, v, static_cast<float>(1 / counted), n);
        } else {
            auto* v = reinterpret_cast<double*>(total);
            for (int64_t i = 0; i < n; ++i) {
                v[i] /= counted;
            }
        }
    }

    Operand x_;
    Operand out_;
    bool average_ = false;
    DType type_ = DType::F32;
    int64_t width_ = 4;
    int64_t compute_width_ = 4;
    MapLoop combine_ = nullptr;
    MapLoop load_ = nullptr;
    MapLoop store_ = nullptr;
    int64_t channels_ = 0;
    std::vector<SpatialAxis> axes_;
    std::vector<std::vector<Cover>> covers_;
    int64_t positions_ = 1;
    int64_t taps_ = 1;
    std::vector<std::byte> lowest_;
};

std::optional<std::string> refuse(const Group& group) {
    const Type& t = group.graph.type(group.inputs[0]);
    if (is_packed(t.dtype)) {
        return "4-bit elements";
    }
    if (t.rank() > 5) {
        return str("rank ", t.rank());
    }
    return std::nullopt;
}

void layout(LayoutArgs& args) {
    Order order = plan::channels_last(args.in[0].rank());
    args.want[0] = order;
    args.order[0] = order;
}

/// oneDNN's loops; null when it has none, or when it would count as padding the extra positions
/// that rounding up adds.
std::unique_ptr<Step> from_library(const StepArgs& args) {
    const auto& attrs = args.group.first().as<ops::Pool>();
    Shape extra = eval(attrs.extra, args.symbols);
    bool rounds_up = std::any_of(extra.begin(), extra.end(), [](int64_t e) { return e != 0; });
    if (!args.options.of<CpuOptions>().use_library ||
        (rounds_up && attrs.fn == "average" && attrs.count_padding)) {
        return nullptr;
    }
    PoolKind kind = attrs.fn != "average" ? PoolKind::Max
                    : attrs.count_padding ? PoolKind::AverageWithPadding
                                          : PoolKind::Average;
    return make_library_pool(kind, axes_of(args, extra), args);
}

std::unique_ptr<Step> prepare(const StepArgs& args) {
    if (std::unique_ptr<Step> step = from_library(args)) {
        return step;
    }
    return std::make_unique<PoolStep>(args);
}

const Kernel rows[] = {{.name = "pool", .refuse = refuse, .prepare = prepare, .layout = layout}};

} // namespace

extern const KernelTable pool_kernels;
const KernelTable pool_kernels = rows;

} // namespace ingot::cpu
