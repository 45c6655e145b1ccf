// SPDX-License-Identifier: Apache-2.0
#include "plan/reference.h"

#include "base/error.h"
#include "ops/evaluator.h"
#include "ops/primitives.h"
#include "plan/device.h"
#include "plan/kernel.h"

#include <algorithm>

namespace ingot::plan {

std::vector<Tensor> eval_node(const Graph& g, const Node& n, std::span<const Tensor> in,
                              const Symbols& symbols, uint64_t run) {
    std::vector<Tensor> out(n.outputs.size());
    for (size_t i = 0; i < out.size(); ++i) {
        const Type& t = g.type(n.outputs[i]);
        Shape shape;
        bool known = true;
        for (const Dim& d : t.dims) {
            std::optional<int64_t> size = d.try_eval(symbols);
            known = known && size.has_value();
            shape.push_back(size.value_or(0));
        }
        if (known) {
            out[i] = Tensor::empty(t.dtype, shape);
        }
    }
    std::function<std::vector<Tensor>(const Graph&, std::span<const Tensor>)> run_body =
        [&symbols](const Graph& body, std::span<const Tensor> args) {
            return evaluate(body, args, {}, symbols);
        };
    EvalArgs args{in, out, symbols, run_body};
    if (n.is(random_def) && run > 0) {
        constexpr uint64_t golden = 0x9E3779B97F4A7C15U; // separates the keys of runs
        auto attrs = n.as<Random>();
        attrs.seed = static_cast<int64_t>(static_cast<uint64_t>(attrs.seed) + run * golden);
        n.def->eval(&attrs, args);
        return out;
    }
    n.def->eval(n.attrs.get(), args);
    return out;
}

std::vector<Tensor> eval_node(const Graph& g, const Node& n, std::span<const Tensor> in,
                              const Symbols& symbols, Device& device) {
    return eval_node(g, n, in, symbols, n.is(random_def) ? device.draw() : 0);
}

namespace {

class ReferenceStep : public Step {
public:
    explicit ReferenceStep(const StepArgs& a)
        : graph_(a.group.graph), node_(a.node), symbols_(a.symbols), in_(a.in.begin(), a.in.end()),
          out_(a.out.begin(), a.out.end()), is_host_(a.device.is_host()) {}

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
        results.tensors = evaluate(c);
        if (is_host_) {
            return;
        }
        for (Tensor& t : results.tensors) {
            Tensor there = c.device.tensor(t.dtype(), t.shape());
            c.device.write(there.mutable_bytes().data(), t.bytes().data(), t.bytes().size());
            t = std::move(there);
        }
    }

    std::string implementation() const override { return is_host_ ? "reference" : "host"; }

private:
    Tensor read(const RunContext& c, const Operand& o) const {
        size_t bytes = byte_size(o.dtype, o.view.count());
        if (is_host_) {
            return Tensor::wrap(o.dtype, o.view.shape, {c.bytes(o), bytes}, nullptr);
        }
        Tensor t = Tensor::empty(o.dtype, o.view.shape);
        c.device.read(t.mutable_bytes().data(), c.bytes(o), bytes);
        return t;
    }

    /// The results own their bytes: an op may return an operand.
    std::vector<Tensor> evaluate(const RunContext& c) const {
        std::vector<Tensor> in;
        for (const Operand& o : in_) {
            in.push_back(read(c, o));
        }
        std::vector<Tensor> out = eval_node(graph_, node_, in, symbols_, c.device);
        for (Tensor& t : out) {
            bool borrowed = std::any_of(in.begin(), in.end(), [&t](const Tensor& i) {
                return i.bytes().data() == t.bytes().data();
            });
            t = borrowed && is_host_ ? t.clone() : t;
        }
        return out;
    }

    const Graph& graph_;
    const Node& node_;
    Symbols symbols_;
    std::vector<Operand> in_;
    std::vector<Operand> out_;
    bool is_host_;
};

} // namespace

std::optional<std::string> refuse_reference(const Group& group) {
    const OpDef& op = *group.first().def;
    return op.eval == nullptr ? std::optional(str(op.name, " is not a primitive")) : std::nullopt;
}

std::unique_ptr<Step> make_reference_step(const StepArgs& args) {
    return std::make_unique<ReferenceStep>(args);
}

} // namespace ingot::plan
