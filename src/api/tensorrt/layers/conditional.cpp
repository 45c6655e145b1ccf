// SPDX-License-Identifier: Apache-2.0
// Conditionals: border layers, and the op that they become.
#include "api/tensorrt/layers/checks.h"
#include "api/tensorrt/layers/control.h"

#include <algorithm>

namespace ingot::api {

namespace {

template <class Interface>
class ConditionalBorder : public Layer<Interface> {
public:
    ConditionalBorder(Conditional& c, LayerKind kind, size_t count)
        : Layer<Interface>(kind, count), unit(c) {}
    nv::IIfConditional* getConditional() const noexcept override { return &unit; }

protected:
    Conditional& unit;
};

class Condition final : public ConditionalBorder<nv::IConditionLayer> {
public:
    explicit Condition(Conditional& c)
        : ConditionalBorder(c, {nv::LayerType::kCONDITION, "Condition"}, 0) {}

    void check(const InputTypes& in) const override {
        expect_dtype(*this, in, 0, {DType::Bool});
        expect_rank(*this, in, 0, 0, 0);
    }
    Values emit(const Emitter&) override { return {}; }
};

} // namespace

class ConditionalInput final : public ConditionalBorder<nv::IIfConditionalInputLayer> {
public:
    explicit ConditionalInput(Conditional& c)
        : ConditionalBorder(c, {nv::LayerType::kCONDITIONAL_INPUT, "Conditional Input"}, 1) {}

    void cross(Places& places) const override { places.insert(&unit); }
    Values emit(const Emitter& e) override { return {e.in[0]}; }
};

class ConditionalOutput final : public ConditionalBorder<nv::IIfConditionalOutputLayer> {
public:
    explicit ConditionalOutput(Conditional& c)
        : ConditionalBorder(c, {nv::LayerType::kCONDITIONAL_OUTPUT, "Conditional Output"}, 1) {}

    bool close(Emission& e) const override {
        unit.close(e);
        return true;
    }
    void cross(Places& places) const override { places.erase(&unit); }
    void check(const InputTypes& in) const override {
        expect_same_dtype(*this, in, 0, 1);
        if (in[0] && in[1]) {
            require(in[0]->rank() == in[1]->rank(), ErrorCode::InvalidArgument, "input 1 ",
                    inputs[1]->quoted(), " is ", *in[1],
                    ", expected as many dimensions as input 0 ", inputs[0]->quoted(), ", which is ",
                    *in[0]);
        }
    }
    Values emit(const Emitter& e) override {
        Type t = e.type(0);
        for (size_t i = 0; i < t.dims.size(); ++i) {
            if (!(t.dims[i] == e.dims(1)[i])) {
                t.dims[i] = e.g.fresh_symbol();
            }
        }
        return {e.emission.unknown(t)};
    }
};

// --- the op --------------------------------------------------------------------------------------

void Conditional::close(Emission& e) const {
    with_place([&] { return str("conditional '", name_, "'"); },
               [&] {
                   require(condition_ != nullptr, ErrorCode::InvalidArgument,
                           "it has no condition; give it one with setCondition()");
                   Graph& g = e.graph();
                   Graph yes = g.sibling(str(name_, " then"));
                   Graph no = g.sibling(str(name_, " else"));
                   Emission then(e, yes, this);
                   Emission otherwise(e, no, this);
                   auto fill = [&](Emission& body, size_t side) {
                       for (LayerBase* in : inputs_) {
                           body.preset(*in->outputs[0], body.value(*in->inputs[0]));
                       }
                       for (ConditionalOutput* out : outputs_) {
                           Value v = body.value(*out->inputs[side]);
                           body.graph().add_output(out->outputs[0]->name(), v);
                       }
                   };
                   fill(then, 0);
                   // both branches share one list
                   for (const Emission::Capture& c : then.captures()) {
                       otherwise.capture(*c.tensor);
                   }
                   fill(otherwise, 1);
                   for (const Emission::Capture& c : otherwise.captures()) {
                       then.capture(*c.tensor);
                   }
                   If op;
                   for (size_t i = 0; i < outputs_.size(); ++i) {
                       const Type& a = yes.type(yes.outputs()[i]);
                       const Type& b = no.type(no.outputs()[i]);
                       for (size_t d = 0; d < a.dims.size(); ++d) {
                           if (!(a.dims[d] == b.dims[d])) {
                               op.symbols.push_back(g.fresh_symbol());
                           }
                       }
                   }
                   Values in = {e.value(*condition_->inputs[0])};
                   for (const Emission::Capture& c : otherwise.captures()) {
                       in.push_back(c.outer);
                   }
                   op.then_body = std::make_shared<const Graph>(std::move(yes));
                   op.else_body = std::make_shared<const Graph>(std::move(no));
                   g.set_origin(name_);
                   Values results = g.add(if_def, op, in);
                   for (size_t i = 0; i < outputs_.size(); ++i) {
                       e.preset(*outputs_[i]->outputs[0], results[i]);
                   }
               });
}

// --- methods -------------------------------------------------------------------------------------

nv::IConditionLayer* Conditional::setCondition(nv::ITensor& condition) noexcept {
    constexpr std::string_view method = "IIfConditional::setCondition";
    return network_.report().guard(method, static_cast<Condition*>(nullptr), [&] {
        require(condition_ == nullptr, ErrorCode::InvalidArgument, "conditional '", name_,
                "' has a condition already");
        auto* c = network_.add<Condition>(method, {&condition}, std::ref(*this));
        condition_ = c;
        return c;
    });
}

nv::IIfConditionalOutputLayer* Conditional::addOutput(nv::ITensor& true_subgraph_output,
                                                      nv::ITensor& false_subgraph_output) noexcept {
    return add_to(outputs_, network_, "IIfConditional::addOutput",
                  {&true_subgraph_output, &false_subgraph_output}, std::ref(*this));
}

nv::IIfConditionalInputLayer* Conditional::addInput(nv::ITensor& input) noexcept {
    return add_to(inputs_, network_, "IIfConditional::addInput", {&input}, std::ref(*this));
}

void Conditional::setName(const char* name) noexcept {
    network_.report().guard("IIfConditional::setName", [&] {
        require(name != nullptr, ErrorCode::InvalidArgument, "name is nullptr");
        name_ = name;
    });
}

nv::IIfConditional* Network::addIfConditional() noexcept {
    return report_.guard("INetworkDefinition::addIfConditional",
                         static_cast<nv::IIfConditional*>(nullptr), [&]() -> nv::IIfConditional* {
                             conditionals_.push_back(std::make_unique<Conditional>(
                                 *this, str("(Unnamed Conditional* ", conditionals_.size(), ")")));
                             return conditionals_.back().get();
                         });
}

} // namespace ingot::api
