// SPDX-License-Identifier: Apache-2.0
#include "plugins/triton/instance.h"

#include "plugins/triton/batch.h"

#include <algorithm>

namespace ingot::triton {

namespace {

constexpr std::chrono::milliseconds default_hang_timeout_on_gpu(60'000);

Target target_of(TRITONBACKEND_ModelInstance* instance) {
    auto kind = get_from<TRITONSERVER_InstanceGroupKind>(TRITONBACKEND_ModelInstanceKind, instance);
    require(kind != TRITONSERVER_INSTANCEGROUPKIND_MODEL, ErrorCode::Unsupported,
            "an instance of KIND_MODEL is configured: an engine does not choose its device, set "
            "kind: KIND_GPU or KIND_CPU in instance_group");
    if (kind == TRITONSERVER_INSTANCEGROUPKIND_CPU) {
        return {Device::kCPU, 0};
    }
    return {Device::kGPU, get_from<int32_t>(TRITONBACKEND_ModelInstanceDeviceId, instance)};
}

std::string target_name(const Target& target) {
    return target.device == Device::kGPU ? str("GPU ", target.ordinal) : "the CPU";
}

std::unique_ptr<Runner> make_runner(Model& model, TRITONBACKEND_ModelInstance* instance,
                                    const HostPolicy& policy) {
    Target target = target_of(instance);
    std::unique_ptr<DeviceAllocator> gpu;
    if (target.device == Device::kGPU) {
        gpu = std::make_unique<DeviceAllocator>(model.gpus().open(target.ordinal), model.metrics());
        if (Gpus::are_simulated()) {
            target = {Device::kCPU, 0};
        }
    }
    return std::make_unique<Runner>(model.engine(target, policy), model.config(), std::move(gpu));
}

/// "host policy 'node0': cores 0-3, NUMA node 0".
std::string policy_text(const HostPolicy& policy) {
    std::string text = str("host policy '", policy.name, "': ");
    text += policy.cores.empty() ? "" : str("cores ", policy.cores);
    text += policy.cores.empty() || policy.node.empty() ? "" : ", ";
    return text + (policy.node.empty() ? "" : str("NUMA node ", policy.node));
}

} // namespace

Instance::Instance(Model& model, TRITONBACKEND_ModelInstance* instance)
    : model_(model), instance_(instance),
      name_(get_from<const char*>(TRITONBACKEND_ModelInstanceName, instance)) {
    with_place([&] { return str("instance '", name_, "'"); },
               [&] {
                   HostPolicy policy = read_host_policy(instance);
                   if (!policy.note.empty()) {
                       log(TRITONSERVER_LOG_WARN, str(model.subject(), ": ", policy.note));
                   }
                   runner_ = make_runner(model, instance, policy);
                   std::string reason;
                   size_t warm = warm_up(reason);
                   if (!reason.empty()) {
                       log(TRITONSERVER_LOG_WARN,
                           str(model.subject(), ": not every batch size is prepared: ", reason));
                   }
                   report_memory();
                   int64_t limit = hang_timeout().count();
                   log(TRITONSERVER_LOG_INFO,
                       str(model.subject(), ": instance '", name_, "' is ready on ",
                           target_name(target_of(instance)), ", ", warm, " batch sizes prepared",
                           limit == 0 ? "" : str(", a run may take ", limit, " ms"),
                           policy.has_effect() ? "; " + policy_text(policy) : ""));
               });
}

size_t Instance::warm_up(std::string& reason) {
    try {
        size_t prepared = runner_->warm_up(reason);
        model_.metrics().add(MetricKind::PreparingSeconds, runner_->preparing_seconds());
        return prepared;
    } catch (const Error& e) {
        note_loss(e.what());
        throw;
    }
}

/// How much memory the instance takes beside the engine's weights, for the server.
void Instance::report_memory() const {
    Target target = target_of(instance_);
    TRITONSERVER_BufferAttributes* memory = nullptr;
    check(TRITONSERVER_BufferAttributesNew(&memory));
    TRITONSERVER_Error* error = guard([&] {
        bool on_gpu = target.device == Device::kGPU;
        check(TRITONSERVER_BufferAttributesSetMemoryType(memory, on_gpu ? TRITONSERVER_MEMORY_GPU
                                                                        : TRITONSERVER_MEMORY_CPU));
        check(TRITONSERVER_BufferAttributesSetMemoryTypeId(memory, target.ordinal));
        check(TRITONSERVER_BufferAttributesSetByteSize(memory,
                                                       static_cast<size_t>(runner_->bytes())));
        check(TRITONBACKEND_ModelInstanceReportMemoryUsage(instance_, &memory, 1));
    });
    ignore(TRITONSERVER_BufferAttributesDelete(memory));
    check(error);
}

void Instance::check_ready() const {
    if (model_.watch().lost()) {
        throw ServerError(TRITONSERVER_ERROR_UNAVAILABLE,
                          str("this server is about to restart: ", model_.watch().cause()));
    }
}

void Instance::enter() const {
    if (model_.watch().lost() && model_.holds_after_loss()) {
        Watch::wait_for_the_end();
    }
    check_ready();
}

std::chrono::milliseconds Instance::hang_timeout() const {
    int64_t configured = model_.config().parameters.hang_timeout_ms;
    if (configured >= 0) {
        return std::chrono::milliseconds(configured);
    }
    return runner_->gpu() == nullptr ? std::chrono::milliseconds(0) : default_hang_timeout_on_gpu;
}

void Instance::run(const RunParts& parts) {
    enter();
    Watch::Run watched(model_.watch(), model_.subject(), hang_timeout(), parts.give_up);
    try {
        Shapes shapes(runner_->engine().inputs.size());
        std::vector<const void*> addresses;
        parts.gather(shapes, addresses);
        if (!runner_->is_prepared(shapes)) {
            model_.metrics().add(MetricKind::UnpreparedShapes, 1);
        }
        model_.metrics().add(MetricKind::Runs, 1);
        double prepared = runner_->preparing_seconds();
        runner_->run(shapes, addresses);
        model_.metrics().add(MetricKind::PreparingSeconds, runner_->preparing_seconds() - prepared);
        parts.copy();
        runner_->wait();
    } catch (const Error& e) {
        runner_->settle();
        note_loss(e.what());
        throw;
    }
}

/// Whether the device is lost is the driver's word, not a guess from the error.
void Instance::note_loss(const char* what) const {
    const char* error = getDeviceError(*runner_->engine().engine);
    if (error == nullptr && runner_->gpu() != nullptr && runner_->gpu()->is_lost()) {
        error = what; // of a run that had begun: this call saw it first
    }
    if (error != nullptr) {
        model_.metrics().set(MetricKind::DeviceLost, 1);
        model_.watch().lose(str(model_.subject(), ": the device is lost: ", error),
                            exit_device_lost);
        throw ServerError(TRITONSERVER_ERROR_INTERNAL, what);
    }
}

void Instance::execute(TRITONBACKEND_Request** requests, uint32_t count) {
    enter();
    Batch batch(*this, requests, count);
    batch.run();
}

} // namespace ingot::triton
