// SPDX-License-Identifier: Apache-2.0
// if and tensor_to_dims, and the kernels of control flow. Bodies are separate programs, planned
// once per shape.
#include "run/control.h"

#include "ops/primitives.h"
#include "run/control_steps.h"

#include <deque>

namespace ingot::plan {

namespace {

class IfStep : public Step, public BodyReporter {
public:
    explicit IfStep(const StepArgs& a)
        : in_(a.in.begin(), a.in.end()), out_(a.out.begin(), a.out.end()) {
        for (const auto& body : a.bodies) {
            branches_.push_back(std::make_unique<Runner>(body, a.device, a.symbols));
        }
        for (size_t i = 1; i < in_.size(); ++i) {
            shapes_.push_back(in_[i].view.shape);
            copies_.emplace_back(a.device);
        }
        inputs_.resize(shapes_.size());
        results_.resize(out_.size());
    }

    Status run(const RunContext& c) noexcept override {
        return guarded(c, "if", [&] { run_branch(c, false); });
    }

    void run_dynamic(const RunContext& c, DynamicResults& results) override {
        run_branch(c, true);
        for (ResultSlot& r : results_) {
            results.tensors.push_back(std::move(r.tensor));
        }
    }

    std::string bodies_text() override {
        return str(body_text("then", *branches_[0], shapes_),
                   body_text("else", *branches_[1], shapes_));
    }
    std::vector<StepReport> bodies_report() override {
        std::vector<StepReport> all;
        append_report(all, "then", *branches_[0], shapes_);
        append_report(all, "else", *branches_[1], shapes_);
        return all;
    }

private:
    void run_branch(const RunContext& c, bool dynamic) {
        bool condition = false;
        c.device.read(&condition, c.bytes(in_[0]), sizeof condition);
        Runner& branch = *branches_[condition ? 0 : 1];
        branch.prepare(shapes_);
        for (size_t i = 0; i < inputs_.size(); ++i) {
            inputs_[i] = aligned(c.device, copies_[i], c.bytes(in_[i + 1]), bytes_of(in_[i + 1]));
        }
        for (size_t i = 0; i < results_.size(); ++i) {
            results_[i] = {};
            std::optional<Shape> shape = branch.result_shape(i);
            if (!dynamic && shape) {
                require_shape(*shape, out_[i].view.shape, "result", i);
                results_[i].data = c.bytes(out_[i]);
            }
        }
        branch.run(inputs_, results_, *c.bodies);
        for (size_t i = 0; !dynamic && i < results_.size(); ++i) {
            const Tensor& t = results_[i].tensor;
            if (t.defined()) {
                require_shape(t.shape(), out_[i].view.shape, "result", i);
                c.device.copy(c.bytes(out_[i]), t.bytes().data(), t.bytes().size());
            }
        }
    }

    std::vector<Operand> in_;
    std::vector<Operand> out_;
    std::vector<std::unique_ptr<Runner>> branches_;
    std::deque<GrowingBuffer> copies_; // copies of captures whose address is not aligned
    std::vector<Shape> shapes_;
    std::vector<const std::byte*> inputs_;
    std::vector<ResultSlot> results_;
};

/// Binds the elements of a small tensor to sizes of later types.
class TensorToDimsStep : public Step {
public:
    explicit TensorToDimsStep(const StepArgs& a)
        : in_(a.in[0]), out_(a.out[0]), dims_(a.group.first().as<TensorToDims>().symbols) {}

    Status run(const RunContext& c) noexcept override {
        return guarded(c, "tensor_to_dims", [&] {
            c.device.copy(c.bytes(out_), c.bytes(in_), static_cast<size_t>(bytes_of(in_)));
        });
    }

    void run_dynamic(const RunContext& c, DynamicResults& results) override {
        auto n = static_cast<size_t>(in_.view.count());
        std::vector<int64_t> x(n);
        c.device.read(x.data(), c.bytes(in_), n * sizeof(int64_t));
        results.tensors = {c.device.tensor(DType::I64, in_.view.shape)};
        c.device.write(results.tensors[0].mutable_bytes().data(), x.data(), n * sizeof(int64_t));
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

std::optional<std::string> accept(const Group&) {
    return std::nullopt;
}

template <class T>
std::unique_ptr<Step> prepare(const StepArgs& args) {
    return std::make_unique<T>(args);
}

const Kernel rows[] = {
    {.name = "if", .refuse = accept, .prepare = prepare<IfStep>},
    {.name = "loop", .refuse = accept, .prepare = make_loop_step},
    {.name = "tensor_to_dims", .refuse = accept, .prepare = prepare<TensorToDimsStep>}};

} // namespace

const KernelTable control_kernels = rows;

} // namespace ingot::plan
