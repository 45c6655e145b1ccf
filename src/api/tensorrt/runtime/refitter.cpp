// SPDX-License-Identifier: Apache-2.0
#include "api/tensorrt/runtime/refitter.h"

#include "api/tensorrt/convert.h"
#include "api/tensorrt/globals.h"
#include "api/tensorrt/runtime/engine.h"
#include "base/shared_library.h"
#include "workflow/refit.h"

#include <algorithm>
#include <cstring>

namespace ingot::api {

using nvinfer1::TensorLocation;
using nvinfer1::Weights;
using nvinfer1::WeightsRole;

namespace {

/// Fills up to `size` entries with layers and roles; returns the full count.
int32_t list_uses(const std::vector<const Weight*>& weights, int32_t size, const char** layers,
                  WeightsRole* roles) {
    require(size >= 0, ErrorCode::InvalidArgument, "there is no room for ", size, " entries");
    int32_t n = 0;
    for (const Weight* w : weights) {
        for (const WeightUse& u : w->uses) {
            if (n < size && layers != nullptr) {
                layers[n] = u.layer.c_str();
            }
            if (n < size && roles != nullptr) {
                roles[n] = static_cast<WeightsRole>(u.role);
            }
            ++n;
        }
    }
    return n;
}

int32_t list_names(const std::vector<const Weight*>& weights, int32_t size, const char** names) {
    require(size >= 0, ErrorCode::InvalidArgument, "there is no room for ", size, " names");
    for (size_t i = 0; names != nullptr && i < weights.size(); ++i) {
        if (i < static_cast<size_t>(size)) {
            names[i] = weights[i]->name.c_str();
        }
    }
    return static_cast<int32_t>(weights.size());
}

} // namespace

Refitter::Refitter(std::shared_ptr<EngineState> state, const Report& report)
    : state_(std::move(state)), report_(report) {
    require(state_->engine().source() != nullptr, ErrorCode::InvalidArgument,
            "the engine cannot be refitted: build it with kREFIT, kREFIT_IDENTICAL, "
            "kREFIT_INDIVIDUAL or kSTRIP_PLAN");
    defaults_ = default_weights(state_->engine());
}

std::vector<const Weight*> Refitter::all() const {
    std::vector<const Weight*> out;
    for (const std::vector<Weight>* list : {&source().weights, &defaults_}) {
        for (const Weight& w : *list) {
            out.push_back(&w);
        }
    }
    return out;
}

const Weight& Refitter::find(const char* name) const {
    require(name != nullptr, ErrorCode::InvalidArgument, "the name of the weights is null");
    const Weight* w = source().find(name);
    for (const Weight& d : defaults_) {
        w = d.name == name ? &d : w;
    }
    if (w == nullptr) {
        auto fixed = source().fixed.find(std::string_view(name));
        require(fixed == source().fixed.end(), ErrorCode::InvalidArgument, "weights '", name,
                "' cannot be refitted: the network was built from their values, or they were not "
                "marked with markWeightsRefittable()");
        std::vector<std::string> names;
        for (const Weight* known : all()) {
            names.push_back(known->name);
        }
        std::string near = nearest(name, names);
        fail(ErrorCode::InvalidArgument, "the engine has no weights '", name, "'",
             near.empty() ? std::string() : str(", did you mean '", near, "'?"));
    }
    return *w;
}

const Weight& Refitter::find(const char* layer, WeightsRole role) const {
    require(layer != nullptr, ErrorCode::InvalidArgument, "the name of the layer is null");
    auto number = static_cast<int32_t>(checked(role, "the role"));
    for (const Weight& w : source().weights) {
        for (const WeightUse& u : w.uses) {
            if (u.layer == layer && u.role == number) {
                return w;
            }
        }
    }
    fail(ErrorCode::InvalidArgument, "layer '", layer, "' has no weights of role ", number,
         " that can be refitted; getAll() lists them");
}

void Refitter::set(const Weight& w, const Weights& weights, TensorLocation location) {
    require(weights.type == data_type_of(w.dtype), ErrorCode::InvalidArgument, "weights '", w.name,
            "' are ", name_of(weights.type), ", expected ", name_of(data_type_of(w.dtype)));
    int64_t count = count_of(w.shape);
    require(weights.count == count, ErrorCode::InvalidArgument, "weights '", w.name, "' have ",
            weights.count, " elements, expected ", count);
    require(weights.values != nullptr, ErrorCode::InvalidArgument, "weights '", w.name,
            "' are at a null address");
    given_[w.name] = {weights, checked(location, "the location"), {}};
}

void Refitter::set(const NamedTensors& weights) {
    for (const auto& [name, t] : weights) {
        const Weight& w = find(name.c_str());
        given_[name] = {
            {data_type_of(w.dtype), t.bytes().data(), t.count()}, TensorLocation::kHOST, t};
    }
}

bool Refitter::setWeights(const char* layer_name, WeightsRole role,
                          Weights weights) noexcept { // NOLINT(performance-unnecessary-value-param)
    return report_.guard("IRefitter::setWeights", false, [&] {
        set(find(layer_name, role), weights, TensorLocation::kHOST);
        return true;
    });
}

bool Refitter::setNamedWeights(const char* name, Weights weights) noexcept {
    return setNamedWeights(name, weights, TensorLocation::kHOST);
}

bool Refitter::setNamedWeights(const char* name, Weights weights,
                               TensorLocation location) noexcept {
    return report_.guard("IRefitter::setNamedWeights", false, [&] {
        set(find(name), weights, location);
        return true;
    });
}

Weights Refitter::getNamedWeights(const char* weights_name) const noexcept {
    return report_.guard("IRefitter::getNamedWeights", Weights{}, [&] {
        auto it = given_.find(find(weights_name).name);
        return it == given_.end() ? Weights{} : it->second.weights;
    });
}

TensorLocation Refitter::getWeightsLocation(const char* weights_name) const noexcept {
    return report_.guard("IRefitter::getWeightsLocation", TensorLocation::kHOST, [&] {
        auto it = given_.find(find(weights_name).name);
        return it == given_.end() ? TensorLocation::kHOST : it->second.location;
    });
}

bool Refitter::unsetNamedWeights(const char* weights_name) noexcept {
    return report_.guard("IRefitter::unsetNamedWeights", false,
                         [&] { return given_.erase(find(weights_name).name) > 0; });
}

Weights Refitter::getWeightsPrototype(const char* weights_name) const noexcept {
    return report_.guard("IRefitter::getWeightsPrototype", Weights{}, [&] {
        const Weight& w = find(weights_name);
        return Weights{data_type_of(w.dtype), nullptr, count_of(w.shape)};
    });
}

std::vector<const Weight*> Refitter::missing() const {
    std::vector<const Weight*> out;
    for (const Weight& w : source().weights) {
        if (source().missing && !given_.contains(w.name)) {
            out.push_back(&w);
        }
    }
    return out;
}

int32_t Refitter::getMissing(int32_t size, const char** layer_names, WeightsRole* roles) noexcept {
    return report_.guard("IRefitter::getMissing", 0,
                         [&] { return list_uses(missing(), size, layer_names, roles); });
}

int32_t Refitter::getAll(int32_t size, const char** layer_names, WeightsRole* roles) noexcept {
    return report_.guard("IRefitter::getAll", 0,
                         [&] { return list_uses(all(), size, layer_names, roles); });
}

int32_t Refitter::getMissingWeights(int32_t size, const char** weights_names) noexcept {
    return report_.guard("IRefitter::getMissingWeights", 0,
                         [&] { return list_names(missing(), size, weights_names); });
}

int32_t Refitter::getAllWeights(int32_t size, const char** weights_names) noexcept {
    return report_.guard("IRefitter::getAllWeights", 0,
                         [&] { return list_names(all(), size, weights_names); });
}

bool Refitter::setMaxThreads(int32_t max_threads) noexcept {
    return report_.guard("IRefitter::setMaxThreads", false, [&] {
        require(max_threads >= 1, ErrorCode::InvalidArgument, "maxThreads is ", max_threads,
                ", expected 1 or more");
        max_threads_ = max_threads;
        return true;
    });
}

Tensor Refitter::tensor_of(const Weight& w, const Given& given, cudaStream_t stream) const {
    auto bytes = static_cast<size_t>(w.bytes());
    if (w.dtype == DType::F64 && !given.tensor.defined()) { // kFLOAT in the API
        Tensor narrow = tensor_of({w.name, DType::F32, w.shape, {}, {}}, given, stream);
        std::span<const float> values = narrow.as<float>();
        return Tensor::of<float>(DType::F64, w.shape, values);
    }
    if (given.location == TensorLocation::kHOST) {
        return Tensor::wrap(w.dtype, w.shape,
                            {static_cast<const std::byte*>(given.weights.values), bytes}, nullptr);
    }
    Tensor t = Tensor::empty(w.dtype, w.shape);
    state_->place().backend->read(t.mutable_bytes().data(), given.weights.values, bytes, stream);
    return t;
}

bool Refitter::refit(const char* method, cudaStream_t stream) noexcept {
    return report_.guard(method, false, [&] {
        NamedTensors weights;
        for (const auto& [name, given] : given_) {
            weights.emplace(name, tensor_of(find(name.c_str()), given, stream));
        }
        state_->refit(refitted(state_->engine(), weights, validates_, max_threads_));
        for (auto& [name, given] : given_) {
            given.is_in_engine = true;
        }
        return true;
    });
}

bool Refitter::releaseRefitResources() noexcept {
    std::erase_if(given_, [](const auto& entry) {
        return entry.second.is_in_engine && entry.second.tensor.defined();
    });
    return true;
}

bool Refitter::refitCudaEngine() noexcept {
    return refit("IRefitter::refitCudaEngine", nullptr);
}

bool Refitter::refitCudaEngineAsync(cudaStream_t stream) noexcept {
    return refit("IRefitter::refitCudaEngineAsync", stream);
}

} // namespace ingot::api

extern "C" void* createInferRefitter_INTERNAL(void* engine, void* logger,
                                              int32_t version) noexcept {
    using namespace ingot; // NOLINT(google-build-using-namespace)
    auto* log = static_cast<nvinfer1::ILogger*>(logger);
    if (!api::check_version(version, log, "createInferRefitter")) {
        return nullptr;
    }
    return api::Report(log).guard(
        "createInferRefitter", static_cast<void*>(nullptr), [&]() -> void* {
            require(engine != nullptr, ErrorCode::InvalidArgument, "the engine is null");
            auto* face = static_cast<nvinfer1::ICudaEngine*>(engine);
            const void* table = nullptr; // the object's virtual functions
            std::memcpy(&table, static_cast<const void*>(face), sizeof table);
            static const char here = 0;
            require(same_library(table, &here), ErrorCode::InvalidArgument,
                    "the engine was made by another library: use createInferRefitter() of that "
                    "one");
            auto& object = static_cast<api::EngineObject&>(*face);
            nvinfer1::IRefitter* refitter =
                std::make_unique<api::Refitter>(object.state(), api::Report(log)).release();
            return refitter;
        });
}
