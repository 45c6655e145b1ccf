// SPDX-License-Identifier: Apache-2.0
// reference: the op's own evaluation, for rare ops and types without another kernel. Correct,
// serial and slow; copies its operands to row major and allocates.
#include "plan/reference.h"

#include "backends/cpu/kernel.h"
#include "plan/device.h"

namespace ingot::cpu {

namespace {

class ReferenceStep : public Step {
public:
    explicit ReferenceStep(const StepArgs& a)
        : graph_(a.group.graph), node_(a.node), symbols_(a.symbols), in_(a.in.begin(), a.in.end()),
          out_(a.out.begin(), a.out.end()) {}

    Status run(const RunContext& c) noexcept override {
        try {
            std::vector<Tensor> results = evaluate(c);
            for (size_t i = 0; i < out_.size(); ++i) {
                if (results[i].shape() != out_[i].view.shape) {
                    fail(ErrorCode::InvalidArgument, "result ", i, " has shape ",
                         results[i].shape(), ", expected ", out_[i].view.shape);
                }
                std::span<const std::byte> bytes = results[i].bytes();
                std::copy(bytes.begin(), bytes.end(), c.bytes(out_[i]));
            }
        } catch (const Error& e) {
            c.error.set("%s", e.what());
            return {e.code(), "the evaluation of an op failed"};
        } catch (const std::exception& e) {
            c.error.set("%s", e.what());
            return {ErrorCode::OutOfMemory, "the evaluation of an op failed"};
        }
        return {};
    }

    void run_dynamic(const RunContext& c, DynamicResults& results) override {
        results.tensors = evaluate(c);
    }

    std::string implementation() const override { return "reference"; }

private:
    std::vector<Tensor> evaluate(const RunContext& c) const {
        std::vector<Tensor> in;
        for (const Operand& o : in_) {
            size_t bytes = byte_size(o.dtype, o.view.count());
            in.push_back(Tensor::wrap(o.dtype, o.view.shape, {c.bytes(o), bytes}, nullptr));
        }
        std::vector<Tensor> out = plan::eval_node(graph_, node_, in, symbols_, c.device);
        for (Tensor& t : out) {
            bool borrowed = std::any_of(in.begin(), in.end(), [&t](const Tensor& i) {
                return i.bytes().data() == t.bytes().data();
            });
            t = borrowed ? t.clone() : t;
        }
        return out;
    }

    const Graph& graph_;
    const Node& node_;
    Symbols symbols_;
    std::vector<Operand> in_;
    std::vector<Operand> out_;
};

std::optional<std::string> refuse(const Group& group) {
    const Node& n = group.first();
    if (n.def->eval == nullptr) {
        return str(n.def->name, " is not a primitive");
    }
    return std::nullopt;
}

std::unique_ptr<Step> prepare(const StepArgs& args) {
    return std::make_unique<ReferenceStep>(args);
}

const Kernel rows[] = {{.name = "reference", .refuse = refuse, .prepare = prepare}};

} // namespace

extern const KernelTable reference_kernels;
const KernelTable reference_kernels = rows;

} // namespace ingot::cpu
