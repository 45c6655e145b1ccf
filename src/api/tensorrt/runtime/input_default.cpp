// SPDX-License-Identifier: Apache-2.0
// ingotGetInputDefault, apart from the engine: libingot_lean.so does without it.
#include "api/tensorrt/convert.h"
#include "api/tensorrt/runtime/engine.h"
#include "ingot.h"

extern "C" bool ingotGetInputDefault(const nvinfer1::ICudaEngine* engine, const char* name,
                                     ingot::HostTensor* value) noexcept {
    using namespace ingot;
    using namespace ingot::api;
    if (engine == nullptr || name == nullptr || value == nullptr) {
        return false;
    }
    for (const IoTensor& t : static_cast<const EngineObject&>(*engine).state()->tensors()) {
        if (t.name == name && t.initial.defined()) {
            auto* data = const_cast<std::byte*>(t.initial.bytes().data()); // HostTensor: read only
            *value = {data, data_type_of(t.initial.dtype()), api_dims(t.initial.shape())};
            return true;
        }
    }
    return false;
}
