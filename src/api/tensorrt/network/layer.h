// SPDX-License-Identifier: Apache-2.0
// What a network is made of: tensors, and layers that add their ops to a Graph. A class of a layer
// holds the settings of one public interface and one function, emit().
#pragma once

#include "api/tensorrt/convert.h"
#include "base/error.h"
#include "onnx/model.h"
#include "ops/ops.h"

#include <initializer_list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace ingot::api {

class Emission;
class LayerBase;
class Network;
class ParsedOp;

/// A tensor of a network: an input of it, or a result of a layer.
class NetworkTensor final : public nv::ITensor {
public:
    NetworkTensor(Network& network, LayerBase* producer, std::string name)
        : network_(network), producer_(producer), name_(std::move(name)) {}

    virtual ~NetworkTensor() = default;

    Network& network() const { return network_; }
    /// Null for a network input.
    LayerBase* producer() const { return producer_; }
    const std::string& name() const { return name_; }
    /// "'x'", for messages.
    std::string quoted() const { return str("'", name_, "'"); }

    void rename(std::string name) { name_ = std::move(name); }

    // Of a network input.
    Type input_type() const;
    nv::DataType declared_type = nv::DataType::kFLOAT;
    nv::Dims declared_dims{};
    std::vector<std::string> dimension_names;
    /// Of a model's input whose type has no name in the API.
    std::optional<DType> exact_type;
    /// What a network output is cast to.
    std::optional<nv::DataType> cast_type;

    void setName(const char* name) noexcept override;
    const char* getName() const noexcept override { return name_.c_str(); }
    void setDimensions(const nv::Dims& dimensions) noexcept override;
    nv::Dims getDimensions() const noexcept override;
    nv::DataType getType() const noexcept override;
    bool isNetworkInput() const noexcept override { return producer_ == nullptr; }
    bool isNetworkOutput() const noexcept override;
    void setAllowedFormats(nv::TensorFormats formats) noexcept override;
    nv::TensorFormats getAllowedFormats() const noexcept override { return formats_; }
    bool isShapeTensor() const noexcept override;
    bool isExecutionTensor() const noexcept override;
    void setDimensionName(int32_t index, const char* name) noexcept override;
    const char* getDimensionName(int32_t index) const noexcept override;
    nv::TensorLocation getLocation() const noexcept override;
    void setType(nv::DataType type) noexcept override;
    bool setDynamicRange(float min, float max) noexcept override;
    bool dynamicRangeIsSet() const noexcept override { return range_.has_value(); }
    void resetDynamicRange() noexcept override { range_.reset(); }
    float getDynamicRangeMin() const noexcept override;
    float getDynamicRangeMax() const noexcept override;

private:
    Network& network_;
    LayerBase* producer_;
    std::string name_;
    nv::TensorFormats formats_ = (1U << nv::EnumMax<nv::TensorFormat>()) - 1;
    std::optional<std::pair<float, float>> range_;
};

/// Loops and conditionals whose insides a tensor belongs to: those on whose border inputs it
/// depends.
using Places = std::set<const void*>;
/// Types of a layer's inputs; an input that is not set has none.
using InputTypes = std::vector<std::optional<Type>>;

/// What emit() works with: the graph that is filled, the values of the layer's inputs (invalid
/// where they are not set).
class Emitter {
public:
    Emitter(Emission& from, Graph& graph, const LayerBase& of, Values inputs)
        : emission(from), g(graph), layer(of), in(std::move(inputs)) {}

    Emission& emission;
    Graph& g;
    const LayerBase& layer;
    const Values in;

    bool has(size_t i) const { return i < in.size() && in[i].valid(); }
    const Type& type(size_t i) const { return g.type(in[i]); }
    const Dims& dims(size_t i) const { return type(i).dims; }
    DType dtype(size_t i) const { return type(i).dtype; }
    int64_t rank(size_t i) const { return type(i).rank(); }
    /// Elements of a list or scalar input as sizes, bound when it runs where they are not known.
    Dims sizes(size_t i, bool is_signed = false) const {
        return ops::dims_from(g, in[i], is_signed);
    }
    /// Integers of an input that must be known at build. Errors: InvalidArgument.
    std::vector<int64_t> constant_ints(size_t i) const;
    /// The ops of an ONNX operator (opset 24).
    Values onnx(std::string_view op, std::span<const Value> inputs,
                std::vector<onnx::Attribute> attributes = {}, size_t outputs = 1) const;
    Value onnx1(std::string_view op, std::initializer_list<Value> inputs,
                std::vector<onnx::Attribute> attributes = {}) const;
    Value weights(const nv::Weights& w, Shape shape, std::string_view what) const;
};

// Attributes of ONNX operators.
onnx::Attribute attribute(std::string_view name, int64_t v);
onnx::Attribute attribute(std::string_view name, double v);
onnx::Attribute attribute(std::string_view name, std::string v);
onnx::Attribute attribute(std::string_view name, std::vector<int64_t> v);

/// A layer, whichever interface it has.
class LayerBase {
public:
    LayerBase(nv::LayerType type, size_t count) : type_(type), output_count_(count) {}
    virtual ~LayerBase() = default;
    LayerBase(const LayerBase&) = delete;
    LayerBase& operator=(const LayerBase&) = delete;

    /// The public face.
    virtual nv::ILayer& face() = 0;
    /// Adds the layer's ops and returns its results. Errors: InvalidArgument, Unsupported.
    virtual Values emit(const Emitter& e) = 0;
    /// What can be said of inputs as soon as they are set. Errors: InvalidArgument.
    virtual void check(const InputTypes& in) const { static_cast<void>(in); }
    /// How many inputs there may be.
    virtual size_t input_limit() const { return inputs.size(); }
    /// Whether the values of an input are used as a shape.
    virtual bool reads_shape(size_t input) const {
        static_cast<void>(input);
        return false;
    }
    /// The input that a result is written over; -1 for none.
    virtual int32_t aliased_input(size_t output) const {
        static_cast<void>(output);
        return -1;
    }
    /// Weights of the caller that it holds.
    virtual std::vector<nv::Weights> all_weights() const { return {}; }
    /// Whether it may be computed on the host when a shape needs it.
    virtual bool passes_shapes() const { return false; }
    /// A setting that changes nothing, and why.
    struct Unused {
        const char* setting;
        const char* reason;
        bool happens_anyway = false;
        auto operator<=>(const Unused&) const = default; // NOLINT(modernize-use-nullptr)
    };
    /// Those that were set. Builds log each once, whatever the number of layers.
    virtual std::vector<Unused> unused_settings() const { return {}; }
    /// Whether it is for more than one GPU.
    virtual bool spans_ranks() const { return false; }
    /// How many of its inputs come before it; those after close a circle.
    virtual size_t forward_inputs() const { return inputs.size(); }
    /// At the end of a loop or conditional: adds all of it, results included, to the graph of an
    /// engine. Returns false for other layers.
    virtual bool close(Emission& e) const {
        static_cast<void>(e);
        return false;
    }
    /// At the border of a loop or conditional: enters or leaves it.
    virtual void cross(Places& places) const { static_cast<void>(places); }

    Network& network() const { return *network_; }
    nv::LayerType type() const { return type_; }
    /// "layer 'conv1' (Convolution)", for messages.
    std::string described() const;
    /// What stands in the brackets.
    virtual std::string kind() const;
    /// emit(), or what the model's node adds while the settings are those of the node.
    Values compute(const Emitter& e, const InputTypes& in);

    std::vector<NetworkTensor*> inputs; // null where an optional one is not set
    std::vector<std::unique_ptr<NetworkTensor>> outputs;
    std::string name;
    std::string metadata;
    int32_t rank_count = 1;
    std::optional<nv::DataType> precision;
    std::vector<std::optional<nv::DataType>> output_types;
    /// Where it stands in the network.
    size_t position = 0;

    // Of a layer that the parser made.

    bool from_model = false;
    /// What its node adds. Gone once a setting, or an input that the node does not have, is set:
    /// then emit() adds what the settings say.
    std::shared_ptr<const ParsedOp> parsed;
    /// The layer one of whose settings its value has become: it cannot change any more.
    const LayerBase* settles = nullptr;

    // The methods of ILayer.
    void set_name(const char* text) noexcept;
    void set_input(int32_t i, nv::ITensor& tensor) noexcept;
    nv::ITensor* input(int32_t i) const noexcept;
    nv::ITensor* output(int32_t i) const noexcept;
    nv::DataType output_type(int32_t i) const noexcept;
    void set_metadata(const char* text) noexcept;
    bool set_rank_count(int32_t n) noexcept;
    void set_precision(nv::DataType t) noexcept;
    void set_output_type(int32_t i, nv::DataType t) noexcept;
    bool output_type_is_set(int32_t i) const noexcept;
    void reset_output_type(int32_t i) noexcept;

protected:
    /// Called by the network once the layer belongs to it.
    friend class Network;
    void attach(Network& network, size_t at, std::vector<NetworkTensor*> in);

    /// A setter's work: what a query needs is emitted anew. Errors in `f` keep the old value and
    /// are reported as "<method>: layer 'x' (Kind): ...".
    template <class F>
    bool change(std::string_view method, const F& f) noexcept;
    template <class T>
    void assign(std::string_view method, T& member, T value) noexcept;
    /// change() of what every layer has: a parsed layer still does what its node says.
    template <class F>
    bool adjust(std::string_view method, const F& f) noexcept;

private:
    /// Errors: InvalidArgument where `settles` is set.
    void require_free() const;
    /// Of a parsed layer: whether its class can do what the node does, which a setter would change.
    /// Errors: Unsupported, with the reason.
    void require_settable();
    /// Settings differ from those of the node, unless the parser is setting them.
    void leave_model() noexcept;
    Network* network_ = nullptr;
    nv::LayerType type_;
    size_t output_count_;
};

/// The methods of ILayer for a public interface.
template <class Interface>
class Layer : public Interface, public LayerBase {
public:
    using LayerBase::LayerBase;

    nv::ILayer& face() override { return *this; }
    nv::LayerType getType() const noexcept override { return LayerBase::type(); }
    void setName(const char* text) noexcept override { set_name(text); }
    const char* getName() const noexcept override { return LayerBase::name.c_str(); }
    int32_t getNbInputs() const noexcept override { return static_cast<int32_t>(inputs.size()); }
    nv::ITensor* getInput(int32_t i) const noexcept override { return input(i); }
    int32_t getNbOutputs() const noexcept override { return static_cast<int32_t>(outputs.size()); }
    nv::ITensor* getOutput(int32_t i) const noexcept override { return output(i); }
    void setInput(int32_t i, nv::ITensor& tensor) noexcept override { set_input(i, tensor); }
    nv::DataType getOutputType(int32_t i) const noexcept override { return output_type(i); }
    void setMetadata(const char* text) noexcept override { set_metadata(text); }
    const char* getMetadata() const noexcept override { return metadata.c_str(); }
    bool setNbRanks(int32_t n) noexcept override { return set_rank_count(n); }
    int32_t getNbRanks() const noexcept override { return rank_count; }
    void setPrecision(nv::DataType t) noexcept override { set_precision(t); }
    nv::DataType getPrecision() const noexcept override {
        return precision.value_or(nv::DataType::kFLOAT);
    }
    bool precisionIsSet() const noexcept override { return precision.has_value(); }
    void resetPrecision() noexcept override { precision.reset(); }
    void setOutputType(int32_t i, nv::DataType t) noexcept override { set_output_type(i, t); }
    bool outputTypeIsSet(int32_t i) const noexcept override { return output_type_is_set(i); }
    void resetOutputType(int32_t i) noexcept override { reset_output_type(i); }
};

} // namespace ingot::api
