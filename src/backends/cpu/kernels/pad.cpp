// SPDX-License-Identifier: Apache-2.0
// pad: per axis, a table maps each output coordinate to an input coordinate, or to the fill value.
// Runs of consecutive elements along the innermost axis are copied whole.
#include "backends/cpu/kernel.h"
#include "ops/primitives.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace ingot::cpu {

namespace {

constexpr size_t max_rank = 16;
constexpr int64_t grain_bytes = 32 << 10;

/// Input coordinates by output coordinate; -1 for the fill value.
std::vector<int64_t> source_table(const std::string& mode, int64_t size, int64_t low,
                                  int64_t high) {
    std::vector<int64_t> table;
    for (int64_t i = -low; i < size + high; ++i) {
        int64_t at = i;
        if (i < 0 || i >= size) {
            if (mode == "edge") {
                at = std::clamp<int64_t>(i, 0, size - 1);
            } else if (mode == "wrap") {
                at = ((i % size) + size) % size;
            } else if (mode == "reflect") {
                int64_t period = std::max<int64_t>(2 * (size - 1), 1);
                at = ((i % period) + period) % period;
                at = at < size ? at : period - at;
            } else {
                at = -1;
            }
        }
        table.push_back(at);
    }
    return table;
}

struct Run {
    int64_t to; // first output coordinate
    int64_t count;
    int64_t from; // input coordinate, or -1
};

struct PadAxis {
    int64_t size; // of the output
    int64_t to;   // strides
    int64_t from;
    std::vector<int64_t> table;
};

class PadStep : public Step {
public:
    explicit PadStep(const StepArgs& a) : x_(a.in[0]), value_(a.in[1]), out_(a.out[0]) {
        const auto& pad = a.group.first().as<Pad>();
        width_ = bit_width(out_.dtype) / 8;
        for (int axis : plan::stride_order(out_.view)) {
            auto i = static_cast<size_t>(axis);
            int64_t low = pad.low[i].eval(a.symbols);
            int64_t high = pad.high[i].eval(a.symbols);
            int64_t size = x_.view.shape[i];
            require(low >= 0 && high >= 0 && low + high + size == out_.view.shape[i],
                    ErrorCode::InvalidArgument, "pad of axis ", i, " by ", low, " and ", high,
                    ": pads are never negative");
            require(size > 0 || pad.mode == "constant" || low + high == 0,
                    ErrorCode::InvalidArgument, "pad of axis ", i,
                    ", which is empty, has no element to repeat");
            axes_.push_back({out_.view.shape[i], out_.view.strides[i], x_.view.strides[i],
                             source_table(pad.mode, size, low, high)});
        }
        require(axes_.size() <= max_rank, ErrorCode::Unsupported, "pad of rank ", axes_.size());
        if (axes_.empty()) {
            axes_.push_back({1, 1, 1, {0}});
        }
        inner_ = axes_.back();
        axes_.pop_back();
        for (const PadAxis& axis : axes_) {
            outer_ *= axis.size;
        }
        find_runs();
    }

    Status run(const RunContext& c) noexcept override {
        int64_t grain =
            std::max<int64_t>(1, grain_bytes / std::max<int64_t>(inner_.size * width_, 1));
        c.pool.parallel_for(outer_, grain, [&](int64_t begin, int64_t end) {
            switch (width_) {
            case 1:
                return rows<uint8_t>(c, begin, end);
            case 2:
                return rows<uint16_t>(c, begin, end);
            case 4:
                return rows<uint32_t>(c, begin, end);
            default:
                return rows<uint64_t>(c, begin, end);
            }
        });
        return {};
    }

private:
    void find_runs() {
        for (int64_t i = 0; i < inner_.size; ++i) {
            int64_t from = inner_.table[static_cast<size_t>(i)];
            bool joins = false;
            if (!runs_.empty()) {
                const Run& last = runs_.back();
                joins = from < 0 ? last.from < 0 : last.from >= 0 && last.from + last.count == from;
            }
            if (joins) {
                runs_.back().count++;
            } else {
                runs_.push_back({i, 1, from});
            }
        }
    }

    template <class T>
    void rows(const RunContext& c, int64_t begin, int64_t end) const {
        T fill = *c.at<const T>(value_);
        for (int64_t r = begin; r < end; ++r) {
            int64_t to = 0;
            int64_t from = 0;
            bool inside = true;
            int64_t rest = r;
            for (size_t d = axes_.size(); d-- > 0;) {
                const PadAxis& axis = axes_[d];
                int64_t i = rest % axis.size;
                rest /= axis.size;
                int64_t source = axis.table[static_cast<size_t>(i)];
                inside = inside && source >= 0;
                to += i * axis.to;
                from += source * axis.from;
            }
            row(c.at<T>(out_) + to, c.at<const T>(x_) + from, inside, fill);
        }
    }

    template <class T>
    void row(T* to, const T* from, bool inside, T fill) const {
        for (const Run& run : runs_) {
            T* t = to + run.to * inner_.to;
            bool copies = inside && run.from >= 0;
            const T* f = from + run.from * inner_.from;
            if (inner_.to == 1 && !copies) {
                std::fill_n(t, run.count, fill);
            } else if (inner_.to == 1 && inner_.from == 1) {
                std::memcpy(t, f, static_cast<size_t>(run.count) * sizeof(T));
            } else {
                for (int64_t i = 0; i < run.count; ++i) {
                    t[i * inner_.to] = copies ? f[i * inner_.from] : fill;
                }
            }
        }
    }

    Operand x_;
    Operand value_;
    Operand out_;
    std::vector<PadAxis> axes_; // the outer axes
    PadAxis inner_{};
    std::vector<Run> runs_;
    int64_t outer_ = 1;
    int64_t width_ = 4;
};

std::optional<std::string> refuse(const Group& group) {
    bool packed = is_packed(group.graph.type(group.inputs[0]).dtype);
    return packed ? std::optional<std::string>("4-bit elements") : std::nullopt;
}

void layout(LayoutArgs& args) {
    if (std::optional<Order> order = plan::dense_order(args.in[0])) {
        args.order[0] = *order;
    }
}

std::unique_ptr<Step> prepare(const StepArgs& args) {
    return std::make_unique<PadStep>(args);
}

const Kernel rows[] = {{.name = "pad",
                        .refuse = refuse,
                        .prepare = prepare,
                        .layout = layout,
                        .strided_results = true}};

} // namespace

extern const KernelTable pad_kernels;
const KernelTable pad_kernels = rows;

} // namespace ingot::cpu
