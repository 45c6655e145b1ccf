// SPDX-License-Identifier: Apache-2.0
#include "api/tensorrt/network/network.h"

#include "api/tensorrt/layers/attention.h"
#include "api/tensorrt/layers/control.h"
#include "api/tensorrt/plugin/tactics.h"

#include <algorithm>

namespace ingot::api {

Network::Network(nv::IBuilder& builder, nv::NetworkDefinitionCreationFlags flags,
                 const Report& report)
    : report_(report), builder_(builder), flags_(flags), name_("Unnamed Network 0") {}

Network::~Network() = default;

// --- layers --------------------------------------------------------------------------------------

NetworkTensor& Network::ours(nv::ITensor& t, std::string_view what) const {
    auto& tensor = static_cast<NetworkTensor&>(t);
    require(&tensor.network() == this, ErrorCode::InvalidArgument, what, " ", tensor.quoted(),
            " belongs to another network");
    return tensor;
}

std::vector<NetworkTensor*> Network::list(nv::ITensor* const* in, int32_t count) const {
    require(count >= 1, ErrorCode::InvalidArgument, "nbInputs is ", count, ", expected 1 or more");
    require(in != nullptr, ErrorCode::InvalidArgument, "inputs is nullptr");
    std::vector<NetworkTensor*> out;
    for (int32_t i = 0; i < count; ++i) {
        require(in[i] != nullptr, ErrorCode::InvalidArgument, "input ", i, " is nullptr");
        out.push_back(&ours(*in[i], str("input ", i)));
    }
    return out;
}

void Network::take(std::unique_ptr<LayerBase> layer, std::vector<NetworkTensor*> in) {
    layer->attach(*this, layers_.size(), std::move(in));
    if (is_reading() || layer->parsed != nullptr) { // keeps the model's layer
        layer->from_model = true;
        layers_.push_back(std::move(layer));
        return;
    }
    InputTypes types(layer->inputs.size());
    for (size_t i = 0; i < types.size() && i < layer->forward_inputs(); ++i) {
        if (layer->inputs[i] != nullptr) {
            types[i] = try_type_of(*layer->inputs[i]);
        }
    }
    with_place([&] { return layer->described(); }, [&] { layer->check(types); });
    layers_.push_back(std::move(layer));
}

size_t Network::add_initializer(std::string name, Tensor t) {
    if (t.count() > 0) {
        initializers_by_memory_.emplace(t.bytes().data(), initializers_.size());
    }
    initializers_.push_back({std::move(name), std::move(t)});
    changed();
    return initializers_.size() - 1;
}

std::optional<size_t> Network::initializer_of(const nv::Weights& w) const {
    auto it = initializers_by_memory_.find(w.values);
    bool found = it != initializers_by_memory_.end() && it->second < initializers_.size() &&
                 initializers_[it->second].tensor.count() == w.count;
    return found ? std::optional(it->second) : std::nullopt;
}

Network::State Network::state() const {
    return {layers_.size(), inputs_.size(), outputs_.size(), initializers_.size()};
}

void Network::restore(const State& s) {
    outputs_.resize(s.outputs);
    layers_.resize(s.layers);
    inputs_.resize(s.inputs);
    initializers_.resize(s.initializers);
    for (auto it = initializers_by_memory_.begin(); it != initializers_by_memory_.end();) {
        it = it->second < s.initializers ? std::next(it) : initializers_by_memory_.erase(it);
    }
    changed();
}

NetworkTensor* Network::find(std::string_view name) const {
    for (const auto& t : inputs_) {
        if (t->name() == name) {
            return t.get();
        }
    }
    for (NetworkTensor* t : outputs_) {
        if (t->name() == name) {
            return t;
        }
    }
    return nullptr;
}

// --- inputs and outputs --------------------------------------------------------------------------

nv::ITensor* Network::addInput(const char* name, nv::DataType type,
                               const nv::Dims& dimensions) noexcept {
    return report_.guard("INetworkDefinition::addInput", static_cast<nv::ITensor*>(nullptr), [&] {
        require(name != nullptr && *name != '\0', ErrorCode::InvalidArgument,
                "the name of an input is empty");
        require(find(name) == nullptr, ErrorCode::InvalidArgument, "the name '", name,
                "' is taken by another input or output");
        return with_place([&] { return str("input '", name, "'"); },
                          [&]() -> nv::ITensor* {
                              dtype_of(type);
                              for (int64_t d : numbers_of(dimensions, "its shape")) {
                                  require(d >= -1, ErrorCode::InvalidArgument, "its shape is ",
                                          text_of(dimensions),
                                          ", expected sizes of 0 or more, or -1");
                              }
                              auto t = std::make_unique<NetworkTensor>(*this, nullptr, name);
                              t->declared_type = type;
                              t->declared_dims = dimensions;
                              inputs_.push_back(std::move(t));
                              changed();
                              return inputs_.back().get();
                          });
    });
}

void Network::markOutput(nv::ITensor& tensor) noexcept {
    report_.guard("INetworkDefinition::markOutput", [&] {
        NetworkTensor& t = ours(tensor, "tensor");
        bool known = std::find(outputs_.begin(), outputs_.end(), &t) != outputs_.end();
        require(!known, ErrorCode::InvalidArgument, "tensor ", t.quoted(), " is an output already");
        outputs_.push_back(&t);
    });
}

void Network::unmarkOutput(nv::ITensor& tensor) noexcept {
    report_.guard("INetworkDefinition::unmarkOutput", [&] {
        NetworkTensor& t = ours(tensor, "tensor");
        auto it = std::find(outputs_.begin(), outputs_.end(), &t);
        require(it != outputs_.end(), ErrorCode::InvalidArgument, "tensor ", t.quoted(),
                " is no output");
        outputs_.erase(it);
    });
}

bool Network::markOutputForShapes(nv::ITensor& tensor) noexcept {
    return report_.guard("INetworkDefinition::markOutputForShapes", false, [&] {
        NetworkTensor& t = ours(tensor, "tensor");
        Type type = type_of(t);
        bool shape = type.rank() <= 1 && (type.dtype == DType::I32 || type.dtype == DType::I64);
        require(shape, ErrorCode::InvalidArgument, "tensor ", t.quoted(), " is ", type,
                ", expected INT32 or INT64 of at most one dimension");
        auto& list = shape_outputs_;
        require(std::find(list.begin(), list.end(), &t) == list.end(), ErrorCode::InvalidArgument,
                "tensor ", t.quoted(), " is such an output already");
        list.push_back(&t);
        return true;
    });
}

bool Network::unmarkOutputForShapes(nv::ITensor& tensor) noexcept {
    return report_.guard("INetworkDefinition::unmarkOutputForShapes", false, [&] {
        NetworkTensor& t = ours(tensor, "tensor");
        auto it = std::find(shape_outputs_.begin(), shape_outputs_.end(), &t);
        require(it != shape_outputs_.end(), ErrorCode::InvalidArgument, "tensor ", t.quoted(),
                " is no output for shapes");
        shape_outputs_.erase(it);
        return true;
    });
}

void Network::removeTensor(nv::ITensor& tensor) noexcept {
    report_.guard("INetworkDefinition::removeTensor", [&] {
        NetworkTensor& t = ours(tensor, "tensor");
        for (const auto& layer : layers_) {
            bool used =
                std::find(layer->inputs.begin(), layer->inputs.end(), &t) != layer->inputs.end();
            require(!used, ErrorCode::InvalidArgument, "tensor ", t.quoted(), " is used by ",
                    layer->described());
        }
        outputs_.erase(std::remove(outputs_.begin(), outputs_.end(), &t), outputs_.end());
        auto same = [&](const auto& p) { return p.get() == &t; };
        inputs_.erase(std::remove_if(inputs_.begin(), inputs_.end(), same), inputs_.end());
        changed();
    });
}

namespace {

template <class List>
auto* at(const Report& report, std::string_view method, const List& list, int32_t index) {
    using Element = std::remove_reference_t<decltype(*list.front())>;
    return report.guard(method, static_cast<Element*>(nullptr), [&] {
        bool inside = index >= 0 && static_cast<size_t>(index) < list.size();
        require(inside, ErrorCode::InvalidArgument, "index ", index, " is out of range: there are ",
                list.size());
        return &*list[static_cast<size_t>(index)];
    });
}

} // namespace

int32_t Network::getNbLayers() const noexcept {
    return static_cast<int32_t>(layers_.size());
}

nv::ILayer* Network::getLayer(int32_t index) const noexcept {
    LayerBase* layer = at(report(), "INetworkDefinition::getLayer", layers_, index);
    return layer == nullptr ? nullptr : &layer->face();
}

int32_t Network::getNbInputs() const noexcept {
    return static_cast<int32_t>(inputs_.size());
}

nv::ITensor* Network::getInput(int32_t index) const noexcept {
    return at(report(), "INetworkDefinition::getInput", inputs_, index);
}

int32_t Network::getNbOutputs() const noexcept {
    return static_cast<int32_t>(outputs_.size());
}

nv::ITensor* Network::getOutput(int32_t index) const noexcept {
    return at(report(), "INetworkDefinition::getOutput", outputs_, index);
}

// --- debug tensors -------------------------------------------------------------------------------

bool Network::markDebug(nv::ITensor& tensor) noexcept {
    return report_.guard("INetworkDefinition::markDebug", false,
                         [&] { return debug_.insert(&ours(tensor, "tensor")).second; });
}

bool Network::unmarkDebug(nv::ITensor& tensor) noexcept {
    return report_.guard("INetworkDefinition::unmarkDebug", false,
                         [&] { return debug_.erase(&ours(tensor, "tensor")) == 1; });
}

bool Network::isDebugTensor(const nv::ITensor& tensor) const noexcept {
    return debug_.contains(static_cast<const NetworkTensor*>(&tensor));
}

// In layer order: equal networks give equal engines.
std::vector<const NetworkTensor*> Network::debug_outputs() const {
    std::vector<const NetworkTensor*> out;
    for (const auto& layer : layers_) {
        for (const auto& t : layer->outputs) {
            auto shown = [&](const std::vector<NetworkTensor*>& list) {
                return std::find(list.begin(), list.end(), t.get()) != list.end();
            };
            if (debug_.contains(t.get()) && !shown(outputs_) && !shown(shape_outputs_)) {
                out.push_back(t.get());
            }
        }
    }
    return out;
}

std::vector<std::string> Network::debug_names() const {
    std::vector<std::string> out;
    for (const NetworkTensor* t : debug_) {
        out.push_back(t->name());
    }
    std::sort(out.begin(), out.end());
    return out;
}

bool Network::markUnfusedTensorsAsDebugTensors() noexcept {
    debug_unfused_ = true;
    return true;
}

bool Network::unmarkUnfusedTensorsAsDebugTensors() noexcept {
    debug_unfused_ = false;
    return true;
}

// --- the rest ------------------------------------------------------------------------------------

void Network::setName(const char* name) noexcept {
    report_.guard("INetworkDefinition::setName", [&] {
        require(name != nullptr, ErrorCode::InvalidArgument, "name is nullptr");
        name_ = name;
        changed();
    });
}

const char* Network::getName() const noexcept {
    return name_.c_str();
}

void Network::setErrorRecorder(nv::IErrorRecorder* recorder) noexcept {
    report_.set_recorder(recorder);
}

nv::IErrorRecorder* Network::getErrorRecorder() const noexcept {
    return report_.recorder();
}

nv::IBuilder& Network::getBuilder() const noexcept {
    return builder_;
}

nv::NetworkDefinitionCreationFlags Network::getFlags() const noexcept {
    return flags_;
}

bool Network::getFlag(nv::NetworkDefinitionCreationFlag flag) const noexcept {
    return ((flags_ >> static_cast<uint32_t>(flag)) & 1U) != 0;
}

bool Network::setWeightsName(nv::Weights weights, const char* name) noexcept {
    return report_.guard("INetworkDefinition::setWeightsName", false, [&] {
        require(name != nullptr && *name != '\0', ErrorCode::InvalidArgument, "name is empty");
        bool used = std::any_of(layers_.begin(), layers_.end(), [&](const auto& layer) {
            std::vector<nv::Weights> all = layer->all_weights();
            return std::any_of(all.begin(), all.end(), [&](const nv::Weights& w) {
                return !is_empty(w) && w.values == weights.values && w.count == weights.count;
            });
        });
        require(used, ErrorCode::InvalidArgument, "no layer uses the weights for '", name, "'");
        for (auto& [w, n] : weight_names_) {
            require(n != name || same_weights(w, weights), ErrorCode::InvalidArgument, "the name '",
                    name, "' is taken by other weights");
            if (same_weights(w, weights)) {
                n = name;
                return true;
            }
        }
        weight_names_.emplace_back(weights, name);
        return true;
    });
}

namespace {

bool names_weights(const std::vector<std::pair<nv::Weights, std::string>>& named,
                   const std::vector<Network::Initializer>& initializers, std::string_view name) {
    return std::any_of(named.begin(), named.end(),
                       [&](const auto& w) { return w.second == name; }) ||
           std::any_of(initializers.begin(), initializers.end(),
                       [&](const auto& i) { return i.name == name; });
}

} // namespace

const std::string* Network::given_name(const nv::Weights& w) const {
    auto it = std::find_if(weight_names_.begin(), weight_names_.end(),
                           [&](const auto& named) { return same_weights(named.first, w); });
    return it == weight_names_.end() ? nullptr : &it->second;
}

bool Network::markWeightsRefittable(const char* name) noexcept {
    return report_.guard("INetworkDefinition::markWeightsRefittable", false, [&] {
        require(name != nullptr && names_weights(weight_names_, initializers_, name),
                ErrorCode::InvalidArgument, "no weights have the name '",
                name == nullptr ? "" : name, "'");
        refittable_.insert(name);
        return true;
    });
}

bool Network::unmarkWeightsRefittable(const char* name) noexcept {
    return report_.guard("INetworkDefinition::unmarkWeightsRefittable", false, [&] {
        require(name != nullptr && names_weights(weight_names_, initializers_, name),
                ErrorCode::InvalidArgument, "no weights have the name '",
                name == nullptr ? "" : name, "'");
        refittable_.erase(name);
        return true;
    });
}

bool Network::areWeightsMarkedRefittable(const char* name) const noexcept {
    return name != nullptr && refittable_.contains(std::string_view(name));
}

} // namespace ingot::api
