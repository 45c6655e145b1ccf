// SPDX-License-Identifier: Apache-2.0
#include "api/tensorrt/plugin/host_kernels.h"

#include "api/tensorrt/convert.h"
#include "api/tensorrt/report.h"
#include "ingot.h"

#include <map>
#include <mutex>

namespace ingot::api {

namespace {

struct Registered {
    HostKernel kernel = nullptr;
    void* user = nullptr;
};
struct AllRegistered {
    std::mutex mutex;
    std::map<std::string, Registered> kernels; // by title
};

AllRegistered& registered() {
    // Never destroyed: threads may run until the process ends.
    // NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables,bugprone-unhandled-exception-at-new)
    static auto* all = new AllRegistered;
    return *all;
}

HostArgument host_argument(const BoundSource::Argument& a) {
    using Kind = BoundSource::Argument::Kind;
    HostArgument out{};
    out.isReal = a.kind == Kind::F32 || a.kind == Kind::F64;
    out.integer = out.isReal ? 0 : a.integer.value();
    out.real = out.isReal ? a.real : 0;
    return out;
}

HostTensor host_tensor(const plan::PluginTensor& t, void* data) {
    return {data, data_type_of(t.dtype), api_dims(t.shape)};
}

} // namespace

plan::HostKernel find_host_kernel(const std::string& title) {
    Registered found;
    {
        std::scoped_lock lock(registered().mutex);
        auto it = registered().kernels.find(title);
        if (it == registered().kernels.end()) {
            return {};
        }
        found = it->second;
    }
    return [found, title](const plan::PluginTensors& t,
                          std::span<const BoundSource::Argument> arguments,
                          std::span<const void* const> in, std::span<void* const> out) {
        std::vector<HostTensor> inputs;
        std::vector<HostTensor> outputs;
        std::vector<HostArgument> values;
        for (size_t i = 0; i < in.size(); ++i) {
            inputs.push_back(host_tensor(t.in[i], const_cast<void*>(in[i])));
        }
        for (size_t i = 0; i < out.size(); ++i) {
            outputs.push_back(host_tensor(t.out[i], out[i]));
        }
        for (const BoundSource::Argument& a : arguments) {
            values.push_back(host_argument(a));
        }
        HostCall call{};
        call.inputs = inputs.data();
        call.nbInputs = static_cast<int32_t>(inputs.size());
        call.outputs = outputs.data();
        call.nbOutputs = static_cast<int32_t>(outputs.size());
        call.arguments = values.data();
        call.nbArguments = static_cast<int32_t>(values.size());
        call.user = found.user;
        int32_t status = found.kernel(call);
        require(status == 0, ErrorCode::InvalidArgument, "the host kernel of '", title,
                "' returned ", status, ", expected 0");
    };
}

} // namespace ingot::api

extern "C" {

bool ingotRegisterHostKernel(const char* name, ingot::HostKernel kernel, void* user) noexcept {
    return ingot::api::Report().guard("ingot::registerHostKernel", false, [&] {
        using ingot::ErrorCode;
        ingot::require(name != nullptr && *name != '\0', ErrorCode::InvalidArgument,
                       "the name is empty");
        ingot::require(kernel != nullptr, ErrorCode::InvalidArgument, "the kernel is nullptr");
        auto& all = ingot::api::registered();
        std::scoped_lock lock(all.mutex);
        bool added = all.kernels.emplace(name, ingot::api::Registered{kernel, user}).second;
        ingot::require(added, ErrorCode::InvalidArgument, "'", name,
                       "' has a host kernel already; deregister it first");
        return true;
    });
}

bool ingotDeregisterHostKernel(const char* name) noexcept {
    return ingot::api::Report().guard("ingot::deregisterHostKernel", false, [&] {
        std::string title = name == nullptr ? "" : name;
        auto& all = ingot::api::registered();
        std::scoped_lock lock(all.mutex);
        ingot::require(all.kernels.erase(title) == 1, ingot::ErrorCode::InvalidArgument, "'", title,
                       "' has no host kernel");
        return true;
    });
}

} // extern "C"
