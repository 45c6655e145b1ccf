// SPDX-License-Identifier: Apache-2.0
// The functions that Triton Inference Server looks for. Exceptions do not cross them.
#include "plugins/triton/instance.h"

#include <memory>

#define INGOT_EXPORT extern "C" __attribute__((visibility("default")))
#ifdef INGOT_COMPARE_ABI
#define INGOT_NOEXCEPT // as the server's headers declare these functions; guard() lets nothing out
#else
#define INGOT_NOEXCEPT noexcept
#endif

using namespace ingot::triton; // NOLINT(google-build-using-namespace)

namespace {

Instance* instance_of(TRITONBACKEND_ModelInstance* instance) {
    return static_cast<Instance*>(get_from<void*>(TRITONBACKEND_ModelInstanceState, instance));
}

BackendState* backend_of(TRITONBACKEND_Backend* backend) {
    return static_cast<BackendState*>(get_from<void*>(TRITONBACKEND_BackendState, backend));
}

Model* model_of(TRITONBACKEND_Model* model) {
    return static_cast<Model*>(get_from<void*>(TRITONBACKEND_ModelState, model));
}

} // namespace

INGOT_EXPORT TRITONSERVER_Error*
TRITONBACKEND_Initialize(TRITONBACKEND_Backend* backend) INGOT_NOEXCEPT {
    return guard([&] {
        uint32_t major = 0;
        uint32_t minor = 0;
        check(TRITONBACKEND_ApiVersion(&major, &minor));
        ingot::require(major == api_major && minor >= api_minor, ingot::ErrorCode::Unsupported,
                       "the server's backend API is ", major, ".", minor, ", this backend needs ",
                       api_major, ".", api_minor, " or a later ", api_major,
                       ".x: use a server of release 24.10 or later");
        auto made = std::make_unique<BackendState>();
        made->name = get_from<const char*>(TRITONBACKEND_BackendName, backend);
        check(TRITONBACKEND_BackendSetState(backend, made.get()));
        made.release(); // NOLINT(bugprone-unused-return-value): the server keeps it
    });
}

INGOT_EXPORT TRITONSERVER_Error*
TRITONBACKEND_Finalize(TRITONBACKEND_Backend* backend) INGOT_NOEXCEPT {
    return guard([&] { std::unique_ptr<BackendState>(backend_of(backend)).reset(); });
}

INGOT_EXPORT TRITONSERVER_Error*
TRITONBACKEND_GetBackendAttribute(TRITONBACKEND_Backend*,
                                  TRITONBACKEND_BackendAttribute* attributes) INGOT_NOEXCEPT {
    return guard([&] {
        for (TRITONSERVER_InstanceGroupKind kind :
             {TRITONSERVER_INSTANCEGROUPKIND_GPU, TRITONSERVER_INSTANCEGROUPKIND_CPU}) {
            check(TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup(attributes, kind, 0,
                                                                          nullptr, 0));
        }
        check(TRITONBACKEND_BackendAttributeSetParallelModelInstanceLoading(attributes, true));
    });
}

INGOT_EXPORT TRITONSERVER_Error*
TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model* model) INGOT_NOEXCEPT {
    return guard([&] {
        auto* backend = get_from<TRITONBACKEND_Backend*>(TRITONBACKEND_ModelBackend, model);
        auto made = std::make_unique<Model>(*backend_of(backend), model);
        check(TRITONBACKEND_ModelSetState(model, made.get()));
        made.release(); // NOLINT(bugprone-unused-return-value): the server keeps it
    });
}

INGOT_EXPORT TRITONSERVER_Error*
TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model* model) INGOT_NOEXCEPT {
    return guard([&] { std::unique_ptr<Model>(model_of(model)).reset(); });
}

INGOT_EXPORT TRITONSERVER_Error*
TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance* instance) INGOT_NOEXCEPT {
    return guard([&] {
        auto* model = get_from<TRITONBACKEND_Model*>(TRITONBACKEND_ModelInstanceModel, instance);
        auto made = std::make_unique<Instance>(*model_of(model), instance);
        check(TRITONBACKEND_ModelInstanceSetState(instance, made.get()));
        made.release(); // NOLINT(bugprone-unused-return-value): the server keeps it
    });
}

INGOT_EXPORT TRITONSERVER_Error*
TRITONBACKEND_ModelInstanceFinalize(TRITONBACKEND_ModelInstance* instance) INGOT_NOEXCEPT {
    return guard([&] { std::unique_ptr<Instance>(instance_of(instance)).reset(); });
}

INGOT_EXPORT TRITONSERVER_Error*
TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance* instance,
                                   TRITONBACKEND_Request** requests,
                                   const uint32_t count) INGOT_NOEXCEPT {
    return guard([&] { instance_of(instance)->execute(requests, count); });
}

/// Asked by servers from release 26.01 on.
INGOT_EXPORT TRITONSERVER_Error*
TRITONBACKEND_ModelInstanceReady(TRITONBACKEND_ModelInstance* instance) INGOT_NOEXCEPT {
    return guard([&] { instance_of(instance)->check_ready(); });
}
