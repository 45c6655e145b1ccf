// SPDX-License-Identifier: Apache-2.0
// The parts of a network: tensors, and layers that add their ops to a Graph. A layer class holds
// the settings of one public interface and one function, emit().
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

/// A tensor of a network: an input, or a result of a layer.
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

    // The type of a network input.
    Type input_type() const;
    nv::DataType declared_type = nv::DataType::kFLOAT;
    nv::Dims declared_dims{};
    std::vector<std::string> dimension_names;
    /// For a model's input whose type has no name in the API.
    std::optional<DType> exact_type;
    /// The type that a network output is cast to; the type in which layers see an input.
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

/// The loops and conditionals that contain a tensor: those whose border inputs it depends on.
using Places = std::set<const void*>;
/// Types of a layer's inputs; nullopt for an input that is not set.
using InputTypes = std::vector<std::optional<Type>>;

/// The arguments of emit(): the graph to fill and the values of the layer's inputs (invalid where
/// not set).
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
    /// The elements of a list or scalar input as sizes; unknown sizes are bound at run time.
    Dims sizes(size_t i, bool is_signed = false) const {
        return ops::dims_from(g, in[i], is_signed);
    }
    /// The integers of an input that must be constant. Errors: InvalidArgument.
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

/// A layer's type, and its name in messages: "Convolution".
struct LayerKind {
    nv::LayerType type;
    std::string_view name;
};

/// The common base of layers of all interfaces.
class LayerBase {
public:
    LayerBase(LayerKind kind, size_t count) : kind_(kind), output_count_(count) {}
    virtual ~LayerBase() = default;
    LayerBase(const LayerBase&) = delete;
    LayerBase& operator=(const LayerBase&) = delete;

    /// The public interface.
    virtual nv::ILayer& face() = 0;
    /// Adds the layer's ops and returns its results. Errors: InvalidArgument, Unsupported.
    virtual Values emit(const Emitter& e) = 0;
    /// Checks inputs as soon as they are set. Errors: InvalidArgument.
    virtual void check(const InputTypes& in) const { static_cast<void>(in); }
    /// The largest number of inputs.
    virtual size_t input_limit() const { return inputs.size(); }
    /// Whether the values of an input are a shape.
    virtual bool reads_shape(size_t input) const {
        static_cast<void>(input);
        return false;
    }
    /// The input whose memory a result overwrites; -1 for none.
    virtual int32_t aliased_input(size_t output) const {
        static_cast<void>(output);
        return -1;
    }
    /// The caller's weights that the layer holds.
    virtual std::vector<nv::Weights> all_weights() const { return {}; }
    /// Whether the host may compute it where a shape needs it.
    virtual bool passes_shapes() const { return false; }
    /// A setting that changes nothing, with the reason.
    struct Unused {
        const char* setting;
        const char* reason;
        bool happens_anyway = false;
        auto operator<=>(const Unused&) const = default; // NOLINT(modernize-use-nullptr)
    };
    /// The unused settings that were set. Builds log each once, however many layers have it.
    virtual std::vector<Unused> unused_settings() const { return {}; }
    /// Whether it needs more than one GPU.
    virtual bool spans_ranks() const { return false; }
    /// The number of inputs from earlier layers; later inputs close a recurrence.
    virtual size_t forward_inputs() const { return inputs.size(); }
    /// At the end of a loop or conditional: adds the whole op, with its results, to an engine's
    /// graph. Other layers return false.
    virtual bool close(Emission& e) const {
        static_cast<void>(e);
        return false;
    }
    /// At the border of a loop or conditional: enters or leaves it.
    virtual void cross(Places& places) const { static_cast<void>(places); }

    Network& network() const { return *network_; }
    nv::LayerType type() const { return kind_.type; }
    /// "layer 'conv1' (Convolution)", for messages.
    std::string described() const;
    /// The text in the brackets.
    virtual std::string kind() const;
    /// emit(), or the ops of the model's node while the settings equal the node's.
    Values compute(const Emitter& e, const InputTypes& in);

    std::vector<NetworkTensor*> inputs; // null where an optional one is not set
    std::vector<std::unique_ptr<NetworkTensor>> outputs;
    std::string name;
    std::string metadata;
    int32_t rank_count = 1;
    std::optional<nv::DataType> precision;
    std::vector<std::optional<nv::DataType>> output_types;
    /// Index in the network.
    size_t position = 0;

    // For layers that the parser made.

    bool from_model = false;
    /// The ops of the node. Reset once a setting, or an input that the node lacks, is set: then
    /// emit() applies the settings.
    std::shared_ptr<const ParsedOp> parsed;
    /// The layer whose setting holds the value of this layer, which is fixed from then on.
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
    /// Called by the network when it takes the layer.
    friend class Network;
    void attach(Network& network, size_t at, std::vector<NetworkTensor*> in);

    /// Applies a setter and invalidates cached queries. An error in `f` keeps the old value and is
    /// reported as "<method>: layer 'x' (Kind): ...".
    template <class F>
    bool change(std::string_view method, const F& f) noexcept;
    template <class T>
    void assign(std::string_view method, T& member, T value) noexcept;
    /// change() for settings that every layer has: a parsed layer keeps its node's ops.
    template <class F>
    bool adjust(std::string_view method, const F& f) noexcept;

private:
    /// Errors: InvalidArgument where `settles` is set.
    void require_free() const;
    /// For a parsed layer: whether its class can express the node, as a setter requires. Errors:
    /// Unsupported, with the reason.
    void require_settable();
    /// Marks the settings as different from the node's, unless the parser is setting them.
    void leave_model() noexcept;
    Network* network_ = nullptr;
    LayerKind kind_;
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
