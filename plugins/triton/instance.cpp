// SPDX-License-Identifier: Apache-2.0
#include "plugins/triton/instance.h"

#include "plugins/triton/batch.h"

#include <algorithm>

namespace ingot::triton {

namespace {

Target target_of(TRITONBACKEND_ModelInstance* instance) {
    auto kind = get_from<TRITONSERVER_InstanceGroupKind>(TRITONBACKEND_ModelInstanceKind, instance);
    require(kind == TRITONSERVER_INSTANCEGROUPKIND_CPU, ErrorCode::Unsupported, "an instance of ",
            kind == TRITONSERVER_INSTANCEGROUPKIND_GPU ? "KIND_GPU" : "KIND_MODEL",
            " is configured, and this release serves from the CPU: set kind: KIND_CPU in "
            "instance_group");
    return {};
}

} // namespace

Instance::Instance(Model& model, TRITONBACKEND_ModelInstance* instance)
    : model_(model), instance_(instance),
      name_(get_from<const char*>(TRITONBACKEND_ModelInstanceName, instance)) {
    with_place([&] { return str("instance '", name_, "'"); },
               [&] {
                   runner_ =
                       std::make_unique<Runner>(model.engine(target_of(instance)), model.config());
                   std::string reason;
                   size_t warm = warm_up(reason);
                   if (!reason.empty()) {
                       log(TRITONSERVER_LOG_WARN,
                           str(model.subject(), ": not every batch size is prepared: ", reason));
                   }
                   log(TRITONSERVER_LOG_INFO, str(model.subject(), ": instance '", name_,
                                                  "' is ready, ", warm, " batch sizes prepared"));
               });
}

size_t Instance::warm_up(std::string& reason) {
    try {
        return runner_->warm_up(reason);
    } catch (const Error& e) {
        note_loss(e.what());
        throw;
    }
}

void Instance::check_ready() const {
    if (model_.watch().lost()) {
        throw ServerError(TRITONSERVER_ERROR_UNAVAILABLE,
                          str("this server is about to restart: ", model_.watch().cause()));
    }
}

void Instance::run(const Shapes& shapes, const std::vector<const void*>& addresses) {
    check_ready();
    int64_t limit = std::max<int64_t>(model_.config().parameters.hang_timeout_ms, 0);
    Watch::Run watched(model_.watch(), model_.subject(), std::chrono::milliseconds(limit));
    if (!runner_->is_prepared(shapes)) {
        model_.metrics().add(MetricKind::UnpreparedShapes, 1);
    }
    model_.metrics().add(MetricKind::Runs, 1);
    try {
        runner_->run(shapes, addresses);
    } catch (const Error& e) {
        note_loss(e.what());
        throw;
    }
}

/// Whether the device is lost is the driver's word, not a guess from the error.
void Instance::note_loss(const char* what) const {
    const char* error = getDeviceError(*runner_->engine().engine);
    if (error != nullptr) {
        model_.metrics().set(MetricKind::DeviceLost, 1);
        model_.watch().lose(str(model_.subject(), ": the device is lost: ", error),
                            exit_device_lost);
        throw ServerError(TRITONSERVER_ERROR_INTERNAL, what);
    }
}

void Instance::execute(TRITONBACKEND_Request** requests, uint32_t count) {
    check_ready();
    Batch batch(*this, requests, count);
    batch.run();
}

} // namespace ingot::triton
