// SPDX-License-Identifier: Apache-2.0
// Loops: border layers, and the op that they become.
#include "api/tensorrt/layers/checks.h"
#include "api/tensorrt/layers/control.h"
#include "api/tensorrt/layers/settings.h"
#include "onnx/ops/support/bodies.h"
#include "onnx/ops/support/inputs.h"

#include <algorithm>

namespace ingot::api {

template <class Interface>
class LoopBorder : public Layer<Interface> {
public:
    LoopBorder(LoopUnit& loop, LayerKind kind, size_t count)
        : Layer<Interface>(kind, count), unit(loop) {}
    nv::ILoop* getLoop() const noexcept override { return &unit; }

protected:
    LoopUnit& unit;
};

class Recurrence final : public LoopBorder<nv::IRecurrenceLayer> {
public:
    explicit Recurrence(LoopUnit& loop)
        : LoopBorder(loop, {nv::LayerType::kRECURRENCE, "Recurrence"}, 1) {}

    size_t input_limit() const override { return 2; }
    size_t forward_inputs() const override { return 1; }
    void cross(Places& places) const override { places.insert(&unit); }
    Values emit(const Emitter& e) override { return {e.emission.unknown(e.type(0))}; }
};

class TripLimitLayer final : public LoopBorder<nv::ITripLimitLayer> {
public:
    TripLimitLayer(LoopUnit& loop, nv::TripLimit kind)
        : LoopBorder(loop, {nv::LayerType::kTRIP_LIMIT, "Trip Limit"}, 0), kind_(kind) {}

    nv::TripLimit getTripLimit() const noexcept override { return kind_; }
    bool reads_shape(size_t) const override { return kind_ == nv::TripLimit::kCOUNT; }
    void check(const InputTypes& in) const override {
        if (kind_ == nv::TripLimit::kCOUNT) {
            expect_index(*this, in, 0);
        } else {
            expect_dtype(*this, in, 0, {DType::Bool});
        }
        expect_rank(*this, in, 0, 0, 0);
    }
    Values emit(const Emitter&) override { return {}; }

private:
    nv::TripLimit kind_;
};

class IteratorLayer final : public LoopBorder<nv::IIteratorLayer> {
public:
    IteratorLayer(LoopUnit& loop, int32_t axis, bool reverse)
        : LoopBorder(loop, {nv::LayerType::kITERATOR, "Iterator"}, 1), axis_(axis),
          reverse_(reverse) {}

    void cross(Places& places) const override { places.insert(&unit); }
    void check(const InputTypes& in) const override { expect_axis(*this, in, 0, axis_); }
    Values emit(const Emitter& e) override {
        Type t = e.type(0);
        t.dims.erase(t.dims.begin() + axis_);
        return {e.emission.unknown(t)};
    }
    /// The slice of iteration i (a scalar); iterations beyond the end get the last slice.
    Value slice(Graph& g, Value x, Value i) const {
        const Dim size = ops::dims(g, x)[static_cast<size_t>(axis_)];
        Value last = ops::sub(g, ops::dim_scalar(g, size), 1.0);
        Value at = ops::minimum(g, i, last);
        return ops::gather(g, x, reverse_ ? ops::sub(g, last, at) : at, axis_);
    }

    INGOT_SETTING(int32_t, Axis, axis_, 0)
    INGOT_SETTING(bool, Reverse, reverse_, false)
};

class LoopOutputLayer final : public LoopBorder<nv::ILoopOutputLayer> {
public:
    LoopOutputLayer(LoopUnit& loop, nv::LoopOutput kind, int32_t axis)
        : LoopBorder(loop, {nv::LayerType::kLOOP_OUTPUT, "Loop Output"}, 1), axis_(axis),
          kind_(checked(kind, "the kind of output")) {}

    nv::LoopOutput getLoopOutput() const noexcept override { return kind_; }
    bool last() const { return kind_ == nv::LoopOutput::kLAST_VALUE; }
    size_t input_limit() const override { return last() ? 1 : 2; }
    bool reads_shape(size_t i) const override { return i == 1; }
    bool close(Emission& e) const override {
        unit.close(e);
        return true;
    }
    void cross(Places& places) const override { places.erase(&unit); }
    void check(const InputTypes& in) const override {
        if (in[0] && !last()) {
            require(axis_ >= 0 && axis_ <= in[0]->rank(), ErrorCode::InvalidArgument,
                    "the axis is ", axis_, ", but input 0 ", inputs[0]->quoted(), " is ", *in[0]);
        }
        if (in.size() > 1) {
            expect_index(*this, in, 1);
            expect_rank(*this, in, 1, 0, 0);
        }
    }
    Values emit(const Emitter& e) override {
        require(last() || e.has(1), ErrorCode::InvalidArgument,
                "input 1, the length of the new axis, is not set");
        Type t = e.type(0);
        if (!last()) {
            t.dims.insert(t.dims.begin() + axis_, length(e.g, e.in[1]));
        }
        return {e.emission.unknown(t)};
    }
    static Dim length(Graph& g, Value v) {
        return ops::dims_from(g, ops::reshape(g, as_dtype(g, v, DType::I64), {Dim(1)}))[0];
    }
    /// The stacked results along axis 0, cut or padded to `length`.
    Value finished(Graph& g, Value stacked, Value length_value) const {
        Dim count = ops::dims(g, stacked)[0];
        Dim wanted = length(g, length_value);
        Value y = stacked;
        if (!(count == wanted)) { // rows of iterations that did not run are 0
            Dims low(ops::dims(g, y).size(), Dim(0));
            Dims high = low;
            high[0] = wanted;
            y = ops::slice(g, ops::pad(g, y, low, high), 0, 0, wanted);
        }
        if (kind_ == nv::LoopOutput::kREVERSE) {
            y = ops::reverse(g, y, 0);
        }
        std::vector<int64_t> perm;
        for (int64_t i = 1; i < g.type(y).rank(); ++i) {
            perm.push_back(i);
        }
        perm.insert(perm.begin() + axis_, 0);
        return ops::permute(g, y, perm);
    }

    INGOT_SETTING(int32_t, Axis, axis_, 0)

private:
    nv::LoopOutput kind_;
};

// --- the op --------------------------------------------------------------------------------------

const TripLimitLayer* LoopUnit::limit(nv::TripLimit kind) const {
    for (const TripLimitLayer* l : limits_) {
        if (l->getTripLimit() == kind) {
            return l;
        }
    }
    return nullptr;
}

/// The steps of LoopUnit::close.
class LoopUnit::Closing {
public:
    Closing(const LoopUnit& loop, Emission& outer)
        : loop_(loop), outer_(outer), graph_(outer.graph().sibling(loop.name_)),
          body_(outer, graph_, &loop), count_(loop.limit(nv::TripLimit::kCOUNT)),
          while_(loop.limit(nv::TripLimit::kWHILE)) {
        require(count_ != nullptr || while_ != nullptr, ErrorCode::InvalidArgument,
                "it has no trip limit; add one with addTripLimit()");
    }

    void run() {
        add_inputs();
        Values next;
        for (Recurrence* r : loop_.recurrences_) {
            next.push_back(next_value(*r));
        }
        Values stacked;
        for (LoopOutputLayer* out : loop_.outputs_) {
            if (!out->last()) {
                stacked.push_back(body_.value(*out->inputs[0]));
            }
        }
        graph_.add_output("condition", next_condition(next));
        for (size_t i = 0; i < next.size(); ++i) {
            graph_.add_output(str("recurrence ", i), next[i]);
        }
        auto inner = onnx::inner_symbols(graph_, {});
        for (size_t i = 0; i < stacked.size(); ++i) {
            graph_.add_output(str("output ", i),
                              onnx::with_outer_sizes(graph_, stacked[i], inner, op_.symbols));
        }
        set_outputs(add_op());
    }

private:
    void add_inputs() {
        iteration_ = graph_.add_input("iteration", {DType::I64, {}});
        graph_.add_input("condition", {DType::Bool, {}});
        for (Recurrence* r : loop_.recurrences_) {
            Value first = outer_.value(*r->inputs[0]);
            initial_.push_back(first);
            Value in = graph_.add_input(r->outputs[0]->name(), outer_.graph().type(first));
            body_.preset(*r->outputs[0], in);
        }
        for (IteratorLayer* it : loop_.iterators_) {
            Value x = body_.value(*it->inputs[0]);
            body_.preset(*it->outputs[0], it->slice(graph_, x, iteration_));
        }
    }

    Value next_value(const Recurrence& r) {
        return with_place([&] { return r.described(); },
                          [&] {
                              require(r.inputs.size() > 1 && r.inputs[1] != nullptr,
                                      ErrorCode::InvalidArgument,
                                      "input 1, the next value, is not set");
                              Value v = body_.value(*r.inputs[1]);
                              const Type& was = graph_.type(body_.value(*r.outputs[0]));
                              require(graph_.type(v) == was, ErrorCode::InvalidArgument, "input 1 ",
                                      r.inputs[1]->quoted(), " is ", graph_.type(v), ", expected ",
                                      was, " as input 0 ", r.inputs[0]->quoted());
                              return v;
                          });
    }

    // Whether another iteration runs: the condition, computed from the next iteration's values.
    Value next_condition(const Values& next) {
        if (while_ == nullptr) {
            return ops::scalar_i64(graph_, DType::Bool, 1);
        }
        Emission ahead = Emission::inside(body_, &loop_);
        Value i = ops::add(graph_, iteration_, 1.0);
        for (size_t k = 0; k < next.size(); ++k) {
            ahead.preset(*loop_.recurrences_[k]->outputs[0], next[k]);
        }
        for (IteratorLayer* it : loop_.iterators_) {
            Value x = body_.value(*it->inputs[0]);
            ahead.preset(*it->outputs[0], it->slice(graph_, x, i));
        }
        return ahead.value(*while_->inputs[0]);
    }

    Value first_condition() {
        Graph& g = outer_.graph();
        if (while_ == nullptr) {
            return ops::scalar_i64(g, DType::Bool, 1);
        }
        Emission before = Emission::inside(outer_, &loop_);
        for (size_t k = 0; k < initial_.size(); ++k) {
            before.preset(*loop_.recurrences_[k]->outputs[0], initial_[k]);
        }
        for (IteratorLayer* it : loop_.iterators_) {
            Value x = outer_.value(*it->inputs[0]);
            Value zero = ops::scalar_i64(g, DType::I64, 0);
            before.preset(*it->outputs[0], it->slice(g, x, zero));
        }
        return before.value(*while_->inputs[0]);
    }

    Values add_op() {
        Graph& g = outer_.graph();
        Value trips = ops::scalar_i64(g, DType::I64, INT64_MAX);
        op_.count = g.fresh_symbol();
        if (count_ != nullptr) {
            Value v = outer_.value(*count_->inputs[0]);
            trips = onnx::to_i64(g, v);
            auto known = ops::known_dims(g, v);
            if (while_ == nullptr && known && (*known)[0].bounds().low >= 0) {
                op_.count = (*known)[0];
            }
        }
        Values in = {trips, first_condition()};
        in.insert(in.end(), initial_.begin(), initial_.end());
        for (const Emission::Capture& c : body_.captures()) {
            in.push_back(c.outer);
        }
        op_.carried = static_cast<int64_t>(initial_.size());
        op_.body = std::make_shared<const Graph>(std::move(graph_));
        g.set_origin(loop_.name_);
        return g.add(loop_def, op_, in);
    }

    void set_outputs(const Values& results) {
        size_t stacked = initial_.size();
        for (LoopOutputLayer* out : loop_.outputs_) {
            Value v = out->last() ? results[last_of(*out)]
                                  : out->finished(outer_.graph(), results[stacked++],
                                                  outer_.value(*out->inputs[1]));
            outer_.preset(*out->outputs[0], v);
        }
    }

    // The index of the recurrence whose last value an output returns.
    size_t last_of(const LoopOutputLayer& out) const {
        for (size_t i = 0; i < loop_.recurrences_.size(); ++i) {
            const Recurrence& r = *loop_.recurrences_[i];
            if (out.inputs[0] == r.outputs[0].get() || out.inputs[0] == r.inputs[1]) {
                return i;
            }
        }
        fail(ErrorCode::InvalidArgument, out.described(), ": input 0 ", out.inputs[0]->quoted(),
             " is no recurrence's value; kLAST_VALUE takes the output of a recurrence");
    }

    const LoopUnit& loop_;
    Emission& outer_;
    Graph graph_;
    Emission body_;
    const TripLimitLayer* count_;
    const TripLimitLayer* while_;
    Value iteration_;
    Values initial_;
    ingot::Loop op_;
};

void LoopUnit::close(Emission& e) const {
    with_place([&] { return str("loop '", name_, "'"); }, [&] { Closing(*this, e).run(); });
}

// --- methods -------------------------------------------------------------------------------------

nv::IRecurrenceLayer* LoopUnit::addRecurrence(nv::ITensor& initial_value) noexcept {
    return add_to(recurrences_, network_, "ILoop::addRecurrence", {&initial_value},
                  std::ref(*this));
}

nv::ITripLimitLayer* LoopUnit::addTripLimit(nv::ITensor& tensor, nv::TripLimit limit) noexcept {
    constexpr std::string_view method = "ILoop::addTripLimit";
    return network_.report().guard(method, static_cast<TripLimitLayer*>(nullptr), [&] {
        checked(limit, "the kind of limit");
        require(this->limit(limit) == nullptr, ErrorCode::InvalidArgument, "loop '", name_,
                "' has a limit of this kind already");
        return add_to(limits_, network_, method, {&tensor}, std::ref(*this), limit);
    });
}

nv::IIteratorLayer* LoopUnit::addIterator(nv::ITensor& tensor, int32_t axis,
                                          bool reverse) noexcept {
    return add_to(iterators_, network_, "ILoop::addIterator", {&tensor}, std::ref(*this), axis,
                  reverse);
}

nv::ILoopOutputLayer* LoopUnit::addLoopOutput(nv::ITensor& tensor, nv::LoopOutput output_kind,
                                              int32_t axis) noexcept {
    return add_to(outputs_, network_, "ILoop::addLoopOutput", {&tensor}, std::ref(*this),
                  output_kind, axis);
}

void LoopUnit::setName(const char* name) noexcept {
    network_.report().guard("ILoop::setName", [&] {
        require(name != nullptr, ErrorCode::InvalidArgument, "name is nullptr");
        name_ = name;
    });
}

nv::ILoop* Network::addLoop() noexcept {
    return report_.guard(
        "INetworkDefinition::addLoop", static_cast<nv::ILoop*>(nullptr), [&]() -> nv::ILoop* {
            loops_.push_back(
                std::make_unique<LoopUnit>(*this, str("(Unnamed Loop* ", loops_.size(), ")")));
            return loops_.back().get();
        });
}

} // namespace ingot::api
