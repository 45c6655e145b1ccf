// SPDX-License-Identifier: Apache-2.0
// resize of f32, axis by axis: every result is a weighted sum of at most four neighbours.
// Evaluating the op's own expansion on a few test rows gives the neighbours and their weights.
#include "backends/cpu/kernel.h"
#include "backends/cpu/simd/simd.h"
#include "ops/evaluator.h"
#include "ops/ops.h"

#include <algorithm>
#include <cmath>

namespace ingot::cpu {

namespace {

constexpr int64_t most_taps = 4;
constexpr int64_t residues = 8; // neighbours are adjacent: their indices differ modulo 8
constexpr int64_t grain_elements = 16 << 10;

struct Tap {
    int64_t at = 0;
    float weight = 0;
};

/// For one axis: the neighbours of each result position and their weights.
struct Taps {
    std::vector<Tap> taps;
    std::vector<int64_t> first; // per position, and one more at the end
};

/// Row r < 8 is 1 where index mod 8 is r; row 8 + r holds the quotients there.
Tensor test_rows(int64_t in) {
    Tensor rows = Tensor::empty(DType::F32, {2 * residues, in});
    auto* at = reinterpret_cast<float*>(rows.mutable_bytes().data());
    for (int64_t r = 0; r < residues; ++r) {
        for (int64_t i = 0; i < in; ++i) {
            bool here = i % residues == r;
            int64_t quotient = i / residues;
            at[r * in + i] = here ? 1.0F : 0.0F;
            at[(residues + r) * in + i] = here ? static_cast<float>(quotient) : 0.0F;
        }
    }
    return rows;
}

Taps taps_of(const ops::Resize& attrs, size_t entry, int64_t in, int64_t out) {
    ops::Resize one = attrs;
    one.axes = {1};
    one.sizes = {Dim(out)};
    one.scales.clear();
    if (!attrs.scales.empty()) {
        one.scales = {attrs.scales[entry]};
    }
    Graph g;
    Value x = g.add_input("x", {DType::F32, {2 * residues, in}});
    g.add_output("y", ops::resize(g, std::move(one), x));
    Tensor rows = test_rows(in);
    Tensor result = evaluate(g, std::span(&rows, 1)).front();
    const auto* at = reinterpret_cast<const float*>(result.bytes().data());
    Taps t;
    for (int64_t o = 0; o < out; ++o) {
        t.first.push_back(static_cast<int64_t>(t.taps.size()));
        for (int64_t r = 0; r < residues; ++r) {
            float weight = at[r * out + o];
            if (weight != 0) {
                float quotient = at[(residues + r) * out + o] / weight;
                t.taps.push_back({std::lround(quotient) * residues + r, weight});
            }
        }
    }
    t.first.push_back(static_cast<int64_t>(t.taps.size()));
    return t;
}

/// One axis: [outer, in, inner] becomes [outer, out, inner].
struct Pass {
    int64_t outer = 1;
    int64_t in = 1;
    int64_t out = 1;
    int64_t inner = 1;
    Taps taps;

    void resize_row(const float* x, float* y, int64_t position, const VectorLoops& loops) const {
        auto first = static_cast<size_t>(taps.first[static_cast<size_t>(position)]);
        auto last = static_cast<size_t>(taps.first[static_cast<size_t>(position) + 1]);
        if (first == last) {
            std::fill(y, y + inner, 0.0F);
            return;
        }
        loops.scale(y, x + taps.taps[first].at * inner, taps.taps[first].weight, inner);
        for (size_t i = first + 1; i < last; ++i) {
            loops.add_scaled(y, x + taps.taps[i].at * inner, taps.taps[i].weight, inner);
        }
    }

    void resize_elements(const float* x, float* y) const {
        for (size_t o = 0; o < static_cast<size_t>(out); ++o) {
            float sum = 0;
            for (auto i = static_cast<size_t>(taps.first[o]);
                 i < static_cast<size_t>(taps.first[o + 1]); ++i) {
                sum += x[taps.taps[i].at] * taps.taps[i].weight;
            }
            y[o] = sum;
        }
    }

    void run(const float* x, float* y, ThreadPool& pool) const {
        const VectorLoops& loops = vector_loops();
        bool elements = inner == 1;
        int64_t rows = elements ? outer : outer * out;
        int64_t length = elements ? out : inner;
        int64_t grain = std::max<int64_t>(1, grain_elements / std::max<int64_t>(length, 1));
        pool.parallel_for(rows, grain, [&](int64_t begin, int64_t end) {
            for (int64_t r = begin; r < end; ++r) {
                if (elements) {
                    resize_elements(x + r * in, y + r * out);
                } else {
                    resize_row(x + r / out * in * inner, y + r * inner, r % out, loops);
                }
            }
        });
    }
};

class ResizeStep : public Step {
public:
    explicit ResizeStep(const StepArgs& a) : x_(a.in[0]), out_(a.out[0]) {
        const auto& attrs = a.group.first().as<ops::Resize>();
        Order order = plan::dense_order(x_.view).value_or(plan::row_major(x_.view.rank()));
        if (!plan::is_dense(out_.view, order)) {
            order = plan::dense_order(out_.view).value_or(order);
        }
        Shape shape = x_.view.shape;
        for (size_t i = 0; i < attrs.axes.size(); ++i) {
            auto axis = static_cast<size_t>(attrs.axes[i]);
            Pass p;
            p.in = shape[axis];
            p.out = out_.view.shape[axis];
            bool inside = false;
            for (int k : order) {
                auto other = static_cast<size_t>(k);
                inside = inside || other == axis;
                if (other != axis) {
                    (inside ? p.inner : p.outer) *= shape[other];
                }
            }
            shape[axis] = p.out;
            bool empty = p.outer * p.out * p.inner == 0;
            require(empty || p.in > 0, ErrorCode::InvalidArgument, "resize of ", x_.view.shape,
                    ": axis ", axis, " has no elements");
            if (!empty) {
                p.taps = taps_of(attrs, i, p.in, p.out);
            }
            passes_.push_back(std::move(p));
        }
        for (size_t i = 0; i + 1 < passes_.size(); ++i) {
            const Pass& p = passes_[i];
            largest_ = std::max(largest_, p.outer * p.out * p.inner);
        }
    }

    Status run(const RunContext& c) noexcept override {
        const float* from = c.at<const float>(x_);
        auto* memory = c.scratch<float>(scratch);
        for (size_t i = 0; i < passes_.size(); ++i) {
            bool last = i + 1 == passes_.size();
            float* to = last ? c.at<float>(out_) : memory + static_cast<int64_t>(i % 2) * largest_;
            passes_[i].run(from, to, c.pool);
            from = to;
        }
        return {};
    }

    int64_t scratch_bytes() const override { return passes_.size() > 1 ? 2 * largest_ * 4 : 0; }

private:
    Operand x_;
    Operand out_;
    std::vector<Pass> passes_;
    int64_t largest_ = 0; // size of the intermediate between two passes
};

std::optional<std::string> refuse(const Group& group) {
    const Node& n = group.first();
    const auto& attrs = n.as<ops::Resize>();
    if (n.inputs.size() != 1 || group.graph.type(n.inputs[0]).dtype != DType::F32) {
        return "scales or a region are computed at run time, or elements are not f32";
    }
    if (attrs.axes.empty() || attrs.antialias || attrs.coordinates == "tf_crop_and_resize") {
        return str(attrs.antialias ? "antialiasing" : attrs.coordinates);
    }
    std::vector<int64_t> axes = attrs.axes;
    std::sort(axes.begin(), axes.end());
    if (std::adjacent_find(axes.begin(), axes.end()) != axes.end()) {
        return "an axis is resized twice";
    }
    static_assert(most_taps <= residues);
    return std::nullopt;
}

void layout(LayoutArgs& args) {
    Order order = plan::dense_order(args.in[0]).value_or(plan::row_major(args.in[0].rank()));
    args.want[0] = order;
    args.order[0] = order;
}

std::unique_ptr<Step> prepare(const StepArgs& args) {
    return std::make_unique<ResizeStep>(args);
}

const Kernel rows[] = {{.name = "resize", .refuse = refuse, .prepare = prepare, .layout = layout}};

} // namespace

extern const KernelTable resize_kernels;
const KernelTable resize_kernels = rows;

} // namespace ingot::cpu
