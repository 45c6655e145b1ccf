// SPDX-License-Identifier: Apache-2.0
// softmax and log-softmax along any axis: the planner makes that axis innermost.
#include "backends/cpu/rows.h"
#include "ops/ops.h"

#include <cmath>

namespace ingot::cpu {

namespace {

class SoftmaxStep : public Step {
public:
    SoftmaxStep(const StepArgs& a, bool log) : log_(log) {
        const auto& attrs = a.group.first().as<ops::Softmax>();
        loop_.x = a.in[0];
        loop_.out = a.out[0];
        const Shape& shape = loop_.x.view.shape;
        loop_.size = shape[static_cast<size_t>(normalize_axis(attrs.axis, loop_.x.view.rank()))];
        loop_.rows = loop_.size == 0 ? 0 : loop_.x.view.count() / loop_.size;
    }

    Status run(const RunContext& c) noexcept override {
        const VectorLoops& v = vector_loops();
        int64_t n = loop_.size;
        bool log = log_;
        loop_.run(c, c.scratch<float>(scratch), [&, n, log](const float* x, float* y, int64_t) {
            float top = v.maximum(x, n);
            if (log) {
                log_row(v, x, y, top, n);
            } else {
                float sum = v.exp_sum(y, x, 1, top, n);
                v.scale(y, y, 1 / sum, n);
            }
        });
        return {};
    }
    int64_t scratch_bytes() const override { return loop_.scratch_bytes(); }

private:
    static void log_row(const VectorLoops& v, const float* x, float* y, float top, int64_t n) {
        constexpr int64_t block = 1024;
        float memory[block];
        float sum = 0;
        for (int64_t i = 0; i < n; i += block) {
            sum += v.exp_sum(memory, x + i, 1, top, std::min(block, n - i));
        }
        float log_sum = std::log(sum);
        for (int64_t i = 0; i < n; ++i) {
            y[i] = (x[i] - top) - log_sum;
        }
    }

    RowLoop loop_;
    bool log_;
};

std::optional<std::string> refuse(const Group& group) {
    const Type& t = group.graph.type(group.inputs[0]);
    if (!is_small_float(t.dtype)) {
        return str("elements are ", t.dtype);
    }
    return std::nullopt;
}

void layout(LayoutArgs& args) {
    const View& x = args.in[0];
    int64_t axis = normalize_axis(args.group.first().as<ops::Softmax>().axis, x.rank());
    Order order = plan::dense_order(x).value_or(plan::row_major(x.rank()));
    order.erase(std::find(order.begin(), order.end(), static_cast<int>(axis)));
    order.push_back(static_cast<int>(axis));
    // No copy is needed when the axis already is innermost, as an axis of size 1 is in any order.
    args.want[0] = order;
    args.order[0] = order;
}

std::unique_ptr<Step> prepare(const StepArgs& args) {
    return std::make_unique<SoftmaxStep>(args, args.group.first().as<ops::Softmax>().log);
}

const Kernel rows[] = {
    {.name = "softmax", .refuse = refuse, .prepare = prepare, .layout = layout, .in_place = true}};

} // namespace

extern const KernelTable softmax_kernels;
const KernelTable softmax_kernels = rows;

} // namespace ingot::cpu
