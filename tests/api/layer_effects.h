// SPDX-License-Identifier: Apache-2.0
// A network of one layer and a change of one of its settings, for layer_effects_test.cpp.
#pragma once

#include "api/effects.h"
#include "api/network_fixture.h"

#include <deque>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

namespace ingot::test {

class OneLayer {
public:
    OneLayer() { scene.network.reset(scene.builder->createNetworkV2(0)); }

    nv::INetworkDefinition& net() { return *scene.network; }
    nv::ITensor& input(const char* name, std::initializer_list<int64_t> sizes,
                       nv::DataType t = nv::DataType::kFLOAT) {
        return *net().addInput(name, t, dims(sizes));
    }
    /// f32: 0.5, 1, 1.5, ... or, from another `seed`, other numbers.
    nv::Weights weights(int64_t count, int seed = 1) {
        std::vector<float>& v = kept.emplace_back(static_cast<size_t>(count));
        std::iota(v.begin(), v.end(), static_cast<float>(seed));
        return {nv::DataType::kFLOAT, v.data(), count};
    }
    nv::ITensor& constant(std::initializer_list<int64_t> sizes, int seed = 1) {
        nv::Dims d = dims(sizes);
        int64_t count = 1;
        for (int64_t s : sizes) {
            count *= s;
        }
        return *net().addConstant(d, weights(count, seed))->getOutput(0);
    }
    nv::ITensor& ints(std::initializer_list<int32_t> values, bool scalar = false) {
        std::vector<int32_t>& v = integers.emplace_back(values);
        nv::Dims d = scalar ? nv::Dims{0, {}} : dims({static_cast<int64_t>(v.size())});
        nv::Weights w{nv::DataType::kINT32, v.data(), static_cast<int64_t>(v.size())};
        return *net().addConstant(d, w)->getOutput(0);
    }
    void mark(nv::ILayer& layer) {
        for (int32_t i = 0; i < layer.getNbOutputs(); ++i) {
            net().markOutput(*layer.getOutput(i));
        }
    }
    /// The engine as a file; "" when the build failed.
    std::string build() {
        scene.build();
        const nv::IHostMemory* m = scene.bytes.get();
        return m == nullptr ? "" : std::string(static_cast<const char*>(m->data()), m->size());
    }

    Scene scene;
    std::deque<std::vector<float>> kept;
    std::deque<std::vector<int32_t>> integers;
};

struct LayerSetting {
    std::string setter;
    /// Makes the network; the returned function changes the setting.
    std::function<std::function<void()>(OneLayer&)> make;
};

/// A row for `l->setName(arguments)` on the layer made by `layer` on `n`, whose results are
/// outputs.
#define SETTING(type, Name, layer, ...)                                                            \
    LayerSetting {                                                                                 \
#type "::set" #Name, [](OneLayer& n) -> std::function<void()> {                            \
            auto* l = layer;                                                                       \
            n.mark(*l);                                                                            \
            return [l, &n] {                                                                       \
                static_cast<void>(n);                                                              \
                l->set##Name(__VA_ARGS__);                                                         \
            };                                                                                     \
        }       \
    }

std::vector<LayerSetting> window_settings();
std::vector<LayerSetting> data_settings();
std::vector<LayerSetting> other_settings();

} // namespace ingot::test
