// SPDX-License-Identifier: Apache-2.0
// ingotFindNotFinite, apart from the engine: libingot_lean.so does without it.
#include "api/tensorrt/convert.h"
#include "api/tensorrt/globals.h"
#include "api/tensorrt/host_tensor.h"
#include "api/tensorrt/runtime/engine.h"
#include "base/text.h"
#include "workflow/finite.h"

namespace ingot::api {

namespace {

Tensor input_of(const Graph& g, Value v, const HostTensor& given) {
    return with_place([&] { return str("input '", g.value_name(v), "'"); },
                      [&] {
                          Tensor t = tensor_of(given);
                          require(t.dtype() == g.type(v).dtype, ErrorCode::InvalidArgument, "got ",
                                  name(t.dtype()), ", expected ", name(g.type(v).dtype));
                          return t;
                      });
}

int32_t find(const EngineState& state, std::span<const HostTensor> inputs, NotFiniteVisitor visit,
             void* user) {
    require(visit != nullptr, ErrorCode::InvalidArgument, "the visitor is null");
    state.check_weights();
    const Graph& g = state.graph();
    require(inputs.size() == g.inputs().size(), ErrorCode::InvalidArgument, "got ", inputs.size(),
            " inputs, the engine has ", g.inputs().size());
    std::vector<Tensor> tensors;
    for (size_t i = 0; i < inputs.size(); ++i) {
        tensors.push_back(input_of(g, g.inputs()[i], inputs[i]));
    }
    std::vector<NotFinite> found =
        find_not_finite(state.engine(), *state.place().backend,
                        state.compile_options({}, cache_folder_option()), tensors);
    for (const NotFinite& f : found) {
        visit({f.text().c_str(), f.layer.c_str(), f.value.c_str(), api_dims(f.position),
               api_dims(f.type.dims), f.count, f.arises},
              user);
    }
    return static_cast<int32_t>(found.size());
}

} // namespace

} // namespace ingot::api

extern "C" int32_t ingotFindNotFinite(const nvinfer1::ICudaEngine* engine,
                                      const ingot::HostTensor* inputs, int32_t count,
                                      ingot::NotFiniteVisitor visit, void* user) noexcept {
    using namespace ingot::api;
    if (engine == nullptr) {
        return -1;
    }
    const auto& object = static_cast<const EngineObject&>(*engine);
    return object.report().guard("ingot::findNotFinite", -1, [&] {
        return find(*object.state(), host_inputs(inputs, count), visit, user);
    });
}
