// SPDX-License-Identifier: Apache-2.0
// Loops and conditionals: they own their border layers.
#pragma once

#include "api/tensorrt/network/network.h"

namespace ingot::api {

class LoopOutputLayer;
class ConditionalInput;
class ConditionalOutput;
class IteratorLayer;
class Recurrence;
class TripLimitLayer;

/// The body of a method that adds a border layer: a layer of class L, which is appended to `all`.
template <class L, class... Args>
L* add_to(std::vector<L*>& all, Network& network, std::string_view method,
          std::initializer_list<nv::ITensor*> in, Args... args) noexcept {
    return network.report().guard(method, static_cast<L*>(nullptr), [&] {
        all.push_back(nullptr); // reserves the slot: nothing fails once the network owns the layer
        all.back() = network.add<L>(method, in, args...);
        L* layer = all.back();
        if (layer == nullptr) {
            all.pop_back();
        }
        return layer;
    });
}

/// A loop becomes one op when a result is first needed. Its body holds the needed layers that
/// depend on its iterators and recurrences.
class LoopUnit final : public nv::ILoop {
public:
    LoopUnit(Network& network, std::string name) : network_(network), name_(std::move(name)) {}
    virtual ~LoopUnit() = default;

    nv::IRecurrenceLayer* addRecurrence(nv::ITensor& initial_value) noexcept override;
    nv::ITripLimitLayer* addTripLimit(nv::ITensor& tensor, nv::TripLimit limit) noexcept override;
    nv::IIteratorLayer* addIterator(nv::ITensor& tensor, int32_t axis,
                                    bool reverse) noexcept override;
    nv::ILoopOutputLayer* addLoopOutput(nv::ITensor& tensor, nv::LoopOutput output_kind,
                                        int32_t axis) noexcept override;
    void setName(const char* name) noexcept override;
    const char* getName() const noexcept override { return name_.c_str(); }

    /// Adds the loop's op to the emission's graph and sets the values of all outputs.
    void close(Emission& e) const;
    const TripLimitLayer* limit(nv::TripLimit kind) const;

private:
    class Closing;
    Network& network_;
    std::string name_;
    std::vector<TripLimitLayer*> limits_;
    std::vector<Recurrence*> recurrences_;
    std::vector<IteratorLayer*> iterators_;
    std::vector<LoopOutputLayer*> outputs_;
};

/// A conditional becomes one op when a result is first needed.
class Conditional final : public nv::IIfConditional {
public:
    Conditional(Network& network, std::string name) : network_(network), name_(std::move(name)) {}
    virtual ~Conditional() = default;

    nv::IConditionLayer* setCondition(nv::ITensor& condition) noexcept override;
    nv::IIfConditionalOutputLayer* addOutput(nv::ITensor& true_subgraph_output,
                                             nv::ITensor& false_subgraph_output) noexcept override;
    nv::IIfConditionalInputLayer* addInput(nv::ITensor& input) noexcept override;
    void setName(const char* name) noexcept override;
    const char* getName() const noexcept override { return name_.c_str(); }

    void close(Emission& e) const;

private:
    Network& network_;
    std::string name_;
    LayerBase* condition_ = nullptr;
    std::vector<ConditionalInput*> inputs_;
    std::vector<ConditionalOutput*> outputs_;
};

} // namespace ingot::api
