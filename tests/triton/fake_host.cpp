// SPDX-License-Identifier: Apache-2.0
#include "tests/triton/fake_host.h"

#include <gtest/gtest.h>

using ingot::triton::FakeHost;

namespace ingot::triton {

FakeHost& FakeHost::get() {
    static FakeHost host;
    return host;
}

void FakeHost::reset() {
    major = 1;
    minor = 19;
    has_metrics = true;
    calls = 0;
    failing_call = 0;
    std::lock_guard<std::mutex> lock(mutex);
    log.clear();
    values.clear();
}

TRITONSERVER_Error* FakeHost::next(const char* function) {
    ingot::AllocationsSucceed ours;
    if (++calls == failing_call) {
        return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL,
                                     (std::string("planted in ") + function).c_str());
    }
    return nullptr;
}

std::string FakeHost::logged() {
    std::lock_guard<std::mutex> lock(mutex);
    std::string out;
    for (const std::string& line : log) {
        out += line + "\n";
    }
    return out;
}

std::string text_of(TRITONSERVER_Error* error) {
    if (error == nullptr) {
        return "";
    }
    std::string out = std::to_string(error->code) + " " + error->text;
    TRITONSERVER_ErrorDelete(error);
    return out;
}

} // namespace ingot::triton

extern "C" {

TRITONSERVER_Error* TRITONSERVER_ErrorNew(TRITONSERVER_Error_Code code, const char* text) {
    ingot::AllocationsSucceed ours;
    ++FakeHost::get().errors;
    return new TRITONSERVER_Error{code, text};
}
void TRITONSERVER_ErrorDelete(TRITONSERVER_Error* error) {
    --FakeHost::get().errors;
    delete error;
}
TRITONSERVER_Error_Code TRITONSERVER_ErrorCode(TRITONSERVER_Error* error) {
    ingot::AllocationsSucceed ours;
    return error->code;
}
const char* TRITONSERVER_ErrorMessage(TRITONSERVER_Error* error) {
    return error->text.c_str();
}
TRITONSERVER_Error* TRITONSERVER_LogMessage(TRITONSERVER_LogLevel level, const char* /*file*/,
                                            int /*line*/, const char* text) {
    PLANTED()
    std::lock_guard<std::mutex> lock(FakeHost::get().mutex);
    FakeHost::get().log.push_back(std::string(1, "IWEV"[level]) + " " + text);
    return nullptr;
}
TRITONSERVER_Error* TRITONSERVER_MessageNewFromSerializedJson(TRITONSERVER_Message** message,
                                                              const char* base, size_t bytes) {
    PLANTED()
    ++FakeHost::get().messages;
    *message = new TRITONSERVER_Message{std::string(base, bytes)};
    return nullptr;
}
TRITONSERVER_Error* TRITONSERVER_MessageSerializeToJson(TRITONSERVER_Message* message,
                                                        const char** base, size_t* bytes) {
    PLANTED()
    *base = message->json.data();
    *bytes = message->json.size();
    return nullptr;
}
TRITONSERVER_Error* TRITONSERVER_MessageDelete(TRITONSERVER_Message* message) {
    ingot::AllocationsSucceed ours;
    if (!message->owned) {
        std::abort(); // as the server does
    }
    --FakeHost::get().messages;
    delete message;
    return nullptr;
}
TRITONSERVER_Parameter* TRITONSERVER_ParameterNew(const char* name, TRITONSERVER_ParameterType,
                                                  const void* value) {
    ingot::AllocationsSucceed ours;
    ++FakeHost::get().metrics;
    return new TRITONSERVER_Parameter{name, static_cast<const char*>(value)};
}
void TRITONSERVER_ParameterDelete(TRITONSERVER_Parameter* parameter) {
    --FakeHost::get().metrics;
    delete parameter;
}
TRITONSERVER_Error* TRITONSERVER_MetricFamilyNew(TRITONSERVER_MetricFamily** family,
                                                 TRITONSERVER_MetricKind, const char* name,
                                                 const char* /*help*/) {
    PLANTED()
    if (!FakeHost::get().has_metrics) {
        return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNSUPPORTED, "metrics not supported");
    }
    ++FakeHost::get().metrics;
    *family = new TRITONSERVER_MetricFamily{name};
    return nullptr;
}
TRITONSERVER_Error* TRITONSERVER_MetricFamilyDelete(TRITONSERVER_MetricFamily* family) {
    ingot::AllocationsSucceed ours;
    --FakeHost::get().metrics;
    delete family;
    return nullptr;
}
TRITONSERVER_Error* TRITONSERVER_MetricNew(TRITONSERVER_Metric** metric,
                                           TRITONSERVER_MetricFamily* family,
                                           const TRITONSERVER_Parameter** labels, uint64_t count) {
    PLANTED()
    std::string key = family->name + "{";
    for (uint64_t i = 0; i < count; ++i) {
        key += (i == 0 ? "" : ",") + labels[i]->name + "=" + labels[i]->value;
    }
    ++FakeHost::get().metrics;
    auto made = std::make_unique<TRITONSERVER_Metric>(TRITONSERVER_Metric{key + "}"});
    std::lock_guard<std::mutex> lock(FakeHost::get().mutex);
    if (!FakeHost::get().labelled.insert(made->key).second) {
        ADD_FAILURE() << "a second metric " << made->key << ": the server may free both with one";
    }
    *metric = made.release();
    return nullptr;
}
TRITONSERVER_Error* TRITONSERVER_MetricDelete(TRITONSERVER_Metric* metric) {
    ingot::AllocationsSucceed ours;
    --FakeHost::get().metrics;
    std::lock_guard<std::mutex> lock(FakeHost::get().mutex);
    FakeHost::get().labelled.erase(metric->key);
    delete metric;
    return nullptr;
}
TRITONSERVER_Error* TRITONSERVER_MetricIncrement(TRITONSERVER_Metric* metric, double value) {
    PLANTED()
    std::lock_guard<std::mutex> lock(FakeHost::get().mutex);
    FakeHost::get().values[metric->key] += value;
    return nullptr;
}
TRITONSERVER_Error* TRITONSERVER_MetricSet(TRITONSERVER_Metric* metric, double value) {
    PLANTED()
    std::lock_guard<std::mutex> lock(FakeHost::get().mutex);
    FakeHost::get().values[metric->key] = value;
    return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ApiVersion(uint32_t* major, uint32_t* minor) {
    PLANTED()
    *major = FakeHost::get().major;
    *minor = FakeHost::get().minor;
    return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_BackendName(TRITONBACKEND_Backend* backend, const char** name) {
    PLANTED()
    *name = backend->name.c_str();
    return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_BackendConfig(TRITONBACKEND_Backend* backend,
                                                TRITONSERVER_Message** config) {
    PLANTED()
    *config = &backend->config;
    return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_BackendState(TRITONBACKEND_Backend* backend, void** state) {
    ingot::AllocationsSucceed ours;
    *state = backend->state; // only asked for once it is set
    return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_BackendSetState(TRITONBACKEND_Backend* backend, void* state) {
    PLANTED()
    backend->state = state;
    return nullptr;
}
TRITONSERVER_Error*
TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup(TRITONBACKEND_BackendAttribute* attributes,
                                                        TRITONSERVER_InstanceGroupKind kind,
                                                        uint64_t, const uint64_t*, uint64_t) {
    PLANTED()
    attributes->kinds.push_back(kind);
    return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_BackendAttributeSetParallelModelInstanceLoading(
    TRITONBACKEND_BackendAttribute* attributes, bool enabled) {
    PLANTED()
    attributes->loads_in_parallel = enabled;
    return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelName(TRITONBACKEND_Model* model, const char** name) {
    PLANTED()
    *name = model->name.c_str();
    return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ModelVersion(TRITONBACKEND_Model* model, uint64_t* version) {
    PLANTED()
    *version = model->version;
    return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ModelRepository(TRITONBACKEND_Model* model,
                                                  TRITONBACKEND_ArtifactType* type,
                                                  const char** location) {
    PLANTED()
    *type = TRITONBACKEND_ARTIFACT_FILESYSTEM;
    *location = model->folder.c_str();
    return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ModelConfig(TRITONBACKEND_Model* model, uint32_t,
                                              TRITONSERVER_Message** config) {
    PLANTED()
    ++FakeHost::get().messages;
    *config = new TRITONSERVER_Message{model->config};
    return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ModelAutoCompleteConfig(TRITONBACKEND_Model* model,
                                                          bool* wanted) {
    PLANTED()
    *wanted = model->completes;
    return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ModelSetConfig(TRITONBACKEND_Model* model, uint32_t,
                                                 TRITONSERVER_Message* config) {
    PLANTED()
    model->config = config->json;
    return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ModelBackend(TRITONBACKEND_Model* model,
                                               TRITONBACKEND_Backend** backend) {
    PLANTED()
    *backend = model->backend;
    return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ModelState(TRITONBACKEND_Model* model, void** state) {
    ingot::AllocationsSucceed ours;
    *state = model->state; // only asked for once it is set
    return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ModelSetState(TRITONBACKEND_Model* model, void* state) {
    PLANTED()
    model->state = state;
    return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceName(TRITONBACKEND_ModelInstance* instance,
                                                    const char** name) {
    PLANTED()
    *name = instance->name.c_str();
    return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ModelInstanceKind(TRITONBACKEND_ModelInstance* instance,
                                                    TRITONSERVER_InstanceGroupKind* kind) {
    PLANTED()
    *kind = instance->kind;
    return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ModelInstanceDeviceId(TRITONBACKEND_ModelInstance* instance,
                                                        int32_t* device) {
    PLANTED()
    *device = instance->device;
    return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ModelInstanceHostPolicy(TRITONBACKEND_ModelInstance* instance,
                                                          TRITONSERVER_Message** policy) {
    PLANTED()
    *policy = &instance->policy;
    return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ModelInstanceModel(TRITONBACKEND_ModelInstance* instance,
                                                     TRITONBACKEND_Model** model) {
    PLANTED()
    *model = instance->model;
    return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ModelInstanceState(TRITONBACKEND_ModelInstance* instance,
                                                     void** state) {
    ingot::AllocationsSucceed ours;
    *state = instance->state; // only asked for once it is set
    return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ModelInstanceSetState(TRITONBACKEND_ModelInstance* instance,
                                                        void* state) {
    PLANTED()
    instance->state = state;
    return nullptr;
}
TRITONSERVER_Error*
TRITONBACKEND_ModelInstanceReportStatistics(TRITONBACKEND_ModelInstance* instance,
                                            TRITONBACKEND_Request* request, const bool success,
                                            const uint64_t start, const uint64_t compute_start,
                                            const uint64_t compute_end, const uint64_t end) {
    PLANTED()
    if (request->released != 0 || start > compute_start || compute_start > compute_end ||
        compute_end > end) {
        std::abort(); // too late, or times that run backwards
    }
    ++(success ? instance->successes : instance->failures);
    return nullptr;
}
TRITONSERVER_Error*
TRITONBACKEND_ModelInstanceReportBatchStatistics(TRITONBACKEND_ModelInstance* instance,
                                                 const uint64_t batch, const uint64_t,
                                                 const uint64_t, const uint64_t, const uint64_t) {
    PLANTED()
    ++instance->batches;
    instance->batch_rows += batch;
    return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_BufferAttributesNew(TRITONSERVER_BufferAttributes** attributes) {
    PLANTED()
    ++FakeHost::get().attributes;
    *attributes = new TRITONSERVER_BufferAttributes;
    return nullptr;
}
TRITONSERVER_Error* TRITONSERVER_BufferAttributesDelete(TRITONSERVER_BufferAttributes* attributes) {
    ingot::AllocationsSucceed ours;
    --FakeHost::get().attributes;
    delete attributes;
    return nullptr;
}
TRITONSERVER_Error*
TRITONSERVER_BufferAttributesSetMemoryType(TRITONSERVER_BufferAttributes* attributes,
                                           TRITONSERVER_MemoryType memory) {
    PLANTED()
    attributes->memory = memory;
    return nullptr;
}
TRITONSERVER_Error*
TRITONSERVER_BufferAttributesSetMemoryTypeId(TRITONSERVER_BufferAttributes* attributes,
                                             int64_t id) {
    PLANTED()
    attributes->id = id;
    return nullptr;
}
TRITONSERVER_Error*
TRITONSERVER_BufferAttributesSetByteSize(TRITONSERVER_BufferAttributes* attributes, size_t bytes) {
    PLANTED()
    attributes->bytes = bytes;
    return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ModelInstanceReportMemoryUsage(
    TRITONBACKEND_ModelInstance* instance, TRITONSERVER_BufferAttributes** usage, uint32_t count) {
    PLANTED()
    for (uint32_t i = 0; i < count; ++i) {
        instance->memory.push_back(*usage[i]);
    }
    return nullptr;
}

} // extern "C"
