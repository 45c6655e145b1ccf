// SPDX-License-Identifier: Apache-2.0
#include "plugins/triton/instance.h"

#include "plugins/triton/batch.h"

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
                   size_t warm = runner_->warm_up(reason);
                   if (!reason.empty()) {
                       log(TRITONSERVER_LOG_WARN,
                           str(model.subject(), ": not every batch size is prepared: ", reason));
                   }
                   log(TRITONSERVER_LOG_INFO, str(model.subject(), ": instance '", name_,
                                                  "' is ready, ", warm, " batch sizes prepared"));
               });
}

void Instance::execute(TRITONBACKEND_Request** requests, uint32_t count) {
    Batch batch(*this, requests, count);
    batch.run();
}

} // namespace ingot::triton
