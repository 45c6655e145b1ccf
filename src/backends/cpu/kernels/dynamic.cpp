// SPDX-License-Identifier: Apache-2.0
// tensor_to_dims: the elements of a small tensor become sizes of what follows.
#include "backends/cpu/kernel.h"
#include "ops/primitives.h"

#include <algorithm>

namespace ingot::cpu {

namespace {

class TensorToDimsStep : public Step {
public:
    explicit TensorToDimsStep(const StepArgs& a)
        : in_(a.in[0]), out_(a.out[0]), dims_(a.group.first().as<TensorToDims>().symbols) {}

    Status run(const RunContext& c) noexcept override {
        const auto* x = c.at<const int64_t>(in_);
        std::copy(x, x + in_.view.count(), c.at<int64_t>(out_));
        return {};
    }

    void run_dynamic(const RunContext& c, DynamicResults& results) override {
        const auto* x = c.at<const int64_t>(in_);
        auto n = static_cast<size_t>(in_.view.count());
        results.tensors = {Tensor::of<int64_t>(DType::I64, in_.view.shape, {x, n})};
        for (size_t i = 0; i < n; ++i) {
            std::string_view name = dims_[i].symbol_name();
            require(x[i] >= 0 || name.starts_with('~'), ErrorCode::InvalidArgument,
                    "a size computed from data is ", x[i], ", expected 0 or more");
            results.symbols.insert_or_assign(std::string(name), x[i]);
        }
    }

private:
    Operand in_;
    Operand out_;
    Dims dims_;
};

std::optional<std::string> refuse(const Group&) {
    return std::nullopt;
}

std::unique_ptr<Step> prepare(const StepArgs& args) {
    return std::make_unique<TensorToDimsStep>(args);
}

const Kernel rows[] = {{.name = "tensor_to_dims", .refuse = refuse, .prepare = prepare}};

} // namespace

extern const KernelTable dynamic_kernels;
const KernelTable dynamic_kernels = rows;

} // namespace ingot::cpu
