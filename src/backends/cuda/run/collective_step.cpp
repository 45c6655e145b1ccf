// SPDX-License-Identifier: Apache-2.0
// CollectiveStep: an exchange between GPUs through NCCL, on the run's stream.
#include "backends/cuda/run/steps.h"
#include "ops/collective.h"

namespace ingot::cuda {

namespace {

class CollectiveStep : public Step {
public:
    explicit CollectiveStep(const StepArgs& a)
        : op_(a.group.first().as<Collective>()), in_(a.in[0]), out_(a.out[0]) {
        // A size unknown at build may turn out not to be divisible.
        bool cuts = op_.operation == "scatter" || op_.operation == "reduce_scatter" ||
                    op_.operation == "all_to_all";
        require(!cuts || in_.view.shape[0] % op_.ranks == 0, ErrorCode::InvalidArgument,
                op_.operation, " cuts axis 0 of ", in_.view.shape, " into ", op_.ranks,
                " parts, which it does not divide into");
    }

    Status run(const RunContext& c) noexcept override {
        return launched(c, [&] {
            auto& device = static_cast<CudaDevice&>(c.device);
            Communicator* comm = device.communicator();
            require(comm != nullptr, ErrorCode::InvalidArgument, op_.operation, " between ",
                    op_.ranks,
                    " ranks: no communicator is set; give the ncclComm_t of this rank "
                    "to IExecutionContext::setCommunicator()");
            plan::CallerStreams& streams = *device.parts().streams;
            void* stream = streams.native();
            Communicator::Exchange e{op_,
                                     in_.dtype,
                                     c.bytes(in_),
                                     c.bytes(out_),
                                     in_.view.count(),
                                     out_.view.count(),
                                     streams.is_captured(stream)};
            if (!comm->enqueue(e, stream)) {
                device.fill(e.out, 0, byte_size(out_.dtype, e.out_count));
            }
        });
    }

    std::string implementation() const override { return str("nccl ", op_.operation); }
    bool recordable() const override { return true; }

private:
    const Collective& op_;
    Operand in_;
    Operand out_;
};

} // namespace

std::unique_ptr<Step> make_collective_step(const StepArgs& args) {
    return std::make_unique<CollectiveStep>(args);
}

} // namespace ingot::cuda
