// SPDX-License-Identifier: Apache-2.0
// HostStep: evaluates an op without a family on the host. Correct and slow.
#include "backends/cuda/run/steps.h"
#include "base/error.h"
#include "plan/reference.h"

namespace ingot::cuda {

namespace {

class HostStep : public Step {
public:
    explicit HostStep(const StepArgs& a)
        : graph_(a.group.graph), node_(a.node), symbols_(a.symbols), in_(a.in.begin(), a.in.end()),
          out_(a.out.begin(), a.out.end()) {}

    Status run(const RunContext& c) noexcept override {
        try {
            std::vector<Tensor> results = evaluate(c);
            for (size_t i = 0; i < out_.size(); ++i) {
                require(results[i].shape() == out_[i].view.shape, ErrorCode::InvalidArgument,
                        "result ", i, " has shape ", results[i].shape(), ", expected ",
                        out_[i].view.shape);
                c.device.write(c.bytes(out_[i]), results[i].bytes().data(),
                               results[i].bytes().size());
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
        for (const Tensor& t : evaluate(c)) {
            Tensor there = c.device.tensor(t.dtype(), t.shape());
            c.device.write(there.mutable_bytes().data(), t.bytes().data(), t.bytes().size());
            results.tensors.push_back(std::move(there));
        }
    }

    std::string implementation() const override { return "host"; }

private:
    std::vector<Tensor> evaluate(const RunContext& c) const {
        std::vector<Tensor> in;
        for (const Operand& o : in_) {
            Tensor t = Tensor::empty(o.dtype, o.view.shape);
            c.device.read(t.mutable_bytes().data(), c.bytes(o), t.bytes().size());
            in.push_back(std::move(t));
        }
        return eval_node(graph_, node_, in, symbols_, c.device);
    }

    const Graph& graph_;
    const Node& node_;
    Symbols symbols_;
    std::vector<Operand> in_;
    std::vector<Operand> out_;
};

} // namespace

std::unique_ptr<Step> make_host_step(const StepArgs& args) {
    return std::make_unique<HostStep>(args);
}

} // namespace ingot::cuda
