// SPDX-License-Identifier: Apache-2.0
// DynamicStep: nonzero and nms. The first half counts on the device, the host reads the count, and
// the second half writes a result of that size.
#include "backends/cuda/run/launch_list.h"
#include "backends/cuda/run/steps.h"
#include "base/error.h"
#include "kernels/scan_sort/dynamic.h"
#include "ops/primitives.h"

namespace ingot::cuda {

namespace {

using kernels::Emitted;
using kernels::Problem;

class DynamicStep : public Step, public plan::LaunchReporter {
public:
    explicit DynamicStep(const StepArgs& a)
        : device_(static_cast<CudaDevice&>(a.device)), group_(a.group), symbols_(a.symbols),
          in_(a.in.begin(), a.in.end()), constants_(constant_marks(a)),
          tf32_(device_.state().options.tf32),
          counts_(device_, str("node '", a.node.name, "' (counting)")),
          writes_(device_, str("node '", a.node.name, "' (writing)")) {
        // Its own buffers: operands, then the result.
        for (size_t i = 0; i < in_.size(); ++i) {
            outer_.push_back(in_[i].buffer);
            in_[i].buffer = static_cast<int>(i);
        }
        bool is_nonzero = a.group.first().is(nonzero_def);
        count_ = is_nonzero ? kernels::emit_nonzero_count : kernels::emit_nms_count;
        write_ = is_nonzero ? kernels::emit_nonzero_write : kernels::emit_nms_write;
        rank_ = in_[0].view.rank();
        Emitted e = count_(problem({}));
        scratch_bytes_ = e.scratch;
        counts_.set(e);
    }

    Status run(const RunContext&) noexcept override {
        return {ErrorCode::Internal, "a step with a result of unknown size has to be run as such"};
    }

    void run_dynamic(const RunContext& c, DynamicResults& results) override {
        std::vector<std::byte*> buffers;
        for (int b : outer_) {
            buffers.push_back(c.buffers[b]);
        }
        std::byte* memory = c.buffers[scratch];
        counts_.run(buffers.data(), memory);
        uint64_t count = 0;
        c.device.read(&count, memory, sizeof count);
        auto n = static_cast<int64_t>(count);
        Shape shape = count_ == kernels::emit_nonzero_count ? Shape{rank_, n} : Shape{n, 3};
        Tensor result = c.device.tensor(DType::I64, shape);
        if (result.count() > 0) {
            buffers.push_back(result.mutable_bytes().data());
            Operand out{DType::I64, static_cast<int>(in_.size()), plan::dense(shape)};
            if (n != written_) { // else the last run's launches are reused
                written_ = -1;
                writes_.set(write_(problem({&out, 1})));
                written_ = n;
            }
            writes_.run(buffers.data(), memory);
        }
        results.tensors = {std::move(result)};
    }

    void report(plan::StepReport& to) override {
        counts_.report(to.launches);
        writes_.report(to.launches); // none before the first run
    }

    int64_t scratch_bytes() const override { return scratch_bytes_; }
    std::string implementation() const override { return "two halves"; }

private:
    Problem problem(std::span<const Operand> out) const {
        return {group_, symbols_, in_, out, constants_, device_.arch(), tf32_};
    }

    CudaDevice& device_;
    Group group_;
    Symbols symbols_;
    std::vector<Operand> in_;
    std::vector<const std::byte*> constants_;
    bool tf32_;
    std::vector<int> outer_; // Operand::buffer of each input in the plan
    int64_t rank_ = 0;
    Emitted (*count_)(const Problem&) = nullptr;
    Emitted (*write_)(const Problem&) = nullptr;
    LaunchList counts_;
    LaunchList writes_;
    int64_t written_ = -1; // the count that `writes_` was made for
    int64_t scratch_bytes_ = 0;
};

} // namespace

std::unique_ptr<Step> make_dynamic_step(const StepArgs& args) {
    return std::make_unique<DynamicStep>(args);
}

} // namespace ingot::cuda
