// SPDX-License-Identifier: Apache-2.0
#include "tests/triton/fake_host.h"

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

// Fails when it is this call's turn.
#define PLANTED()                                                                                  \
    if (TRITONSERVER_Error* planted = FakeHost::get().next(__func__)) {                            \
        return planted;                                                                            \
    }

extern "C" {

TRITONSERVER_Error* TRITONSERVER_ErrorNew(TRITONSERVER_Error_Code code, const char* text) {
    ++FakeHost::get().errors;
    return new TRITONSERVER_Error{code, text};
}
void TRITONSERVER_ErrorDelete(TRITONSERVER_Error* error) {
    --FakeHost::get().errors;
    delete error;
}
TRITONSERVER_Error_Code TRITONSERVER_ErrorCode(TRITONSERVER_Error* error) {
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
    if (!message->owned) {
        std::abort(); // as the server does
    }
    --FakeHost::get().messages;
    delete message;
    return nullptr;
}
TRITONSERVER_Parameter* TRITONSERVER_ParameterNew(const char* name, TRITONSERVER_ParameterType,
                                                  const void* value) {
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
    *metric = new TRITONSERVER_Metric{key + "}"};
    return nullptr;
}
TRITONSERVER_Error* TRITONSERVER_MetricDelete(TRITONSERVER_Metric* metric) {
    --FakeHost::get().metrics;
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
TRITONSERVER_Error* TRITONBACKEND_ModelInstanceModel(TRITONBACKEND_ModelInstance* instance,
                                                     TRITONBACKEND_Model** model) {
    PLANTED()
    *model = instance->model;
    return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ModelInstanceState(TRITONBACKEND_ModelInstance* instance,
                                                     void** state) {
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

TRITONSERVER_Error* TRITONBACKEND_RequestInput(TRITONBACKEND_Request* request, const char* name,
                                               TRITONBACKEND_Input** input) {
    PLANTED()
    for (TRITONBACKEND_Input& one : request->inputs) {
        if (one.name == name) {
            *input = &one;
            return nullptr;
        }
    }
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INVALID_ARG,
                                 (std::string("unknown request input name ") + name).c_str());
}
TRITONSERVER_Error* TRITONBACKEND_RequestOutputCount(TRITONBACKEND_Request* request,
                                                     uint32_t* count) {
    PLANTED()
    *count = static_cast<uint32_t>(request->outputs.size());
    return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_RequestOutputName(TRITONBACKEND_Request* request,
                                                    const uint32_t index, const char** name) {
    PLANTED()
    *name = request->outputs.at(index).c_str();
    return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_RequestIsCancelled(TRITONBACKEND_Request* request,
                                                     bool* is_cancelled) {
    PLANTED()
    *is_cancelled = request->cancelled;
    return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_RequestRelease(TRITONBACKEND_Request* request, uint32_t) {
    ++request->released;
    return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_InputProperties(TRITONBACKEND_Input* input, const char** name,
                                                  TRITONSERVER_DataType* type,
                                                  const int64_t** shape, uint32_t* rank,
                                                  uint64_t* bytes, uint32_t* buffers) {
    PLANTED()
    if (name != nullptr) {
        *name = input->name.c_str();
    }
    *type = input->type;
    *shape = input->shape.data();
    *rank = static_cast<uint32_t>(input->shape.size());
    bool is_there = !input->gpu_buffers.empty(); // the host's are what it was moved from
    *bytes = 0;
    for (const std::vector<char>& b : input->buffers) {
        *bytes += is_there ? 0 : b.size();
    }
    for (const auto& [data, size] : input->gpu_buffers) {
        *bytes += size;
    }
    *buffers = static_cast<uint32_t>(is_there ? input->gpu_buffers.size() : input->buffers.size());
    return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_InputBuffer(TRITONBACKEND_Input* input, const uint32_t index,
                                              const void** buffer, uint64_t* bytes,
                                              TRITONSERVER_MemoryType* memory, int64_t* id) {
    PLANTED()
    if (input->gpu_buffers.empty()) {
        *buffer = input->buffers.at(index).data();
        *bytes = input->buffers[index].size();
    } else {
        *buffer = input->gpu_buffers.at(index).first;
        *bytes = input->gpu_buffers[index].second;
    }
    *memory = input->memory;
    *id = 0;
    return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ResponseNew(TRITONBACKEND_Response** response,
                                              TRITONBACKEND_Request* request) {
    PLANTED()
    ++FakeHost::get().responses;
    *response = new TRITONBACKEND_Response{request, {}};
    return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ResponseDelete(TRITONBACKEND_Response* response) {
    --FakeHost::get().responses;
    delete response;
    return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ResponseOutput(TRITONBACKEND_Response* response,
                                                 TRITONBACKEND_Output** output, const char* name,
                                                 const TRITONSERVER_DataType type,
                                                 const int64_t* shape, const uint32_t rank) {
    PLANTED()
    response->outputs.push_back(std::make_unique<TRITONBACKEND_Output>(TRITONBACKEND_Output{
        name, type, {shape, shape + rank}, {}, response->request->output_memory, nullptr}));
    *output = response->outputs.back().get();
    return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_OutputBuffer(TRITONBACKEND_Output* output, void** buffer,
                                               const uint64_t bytes,
                                               TRITONSERVER_MemoryType* memory, int64_t* id) {
    PLANTED()
    *memory = output->memory; // whatever was wished for
    if (output->memory == TRITONSERVER_MEMORY_GPU) {
        *buffer = output->gpu_buffer = FakeHost::get().gpu_allocate(bytes);
    } else {
        output->bytes.assign(bytes, '\xCB');
        *buffer = output->bytes.data();
    }
    *id = 0;
    return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_ResponseSend(TRITONBACKEND_Response* response, const uint32_t,
                                               TRITONSERVER_Error* error) {
    TRITONBACKEND_Request& request = *response->request;
    if (request.released != 0) {
        std::abort(); // its memory is gone
    }
    ++request.responses;
    request.answered_error = error != nullptr;
    if (error != nullptr) {
        request.code = error->code;
        request.text = error->text;
    } else {
        for (std::unique_ptr<TRITONBACKEND_Output>& o : response->outputs) {
            request.results.emplace(o->name, std::move(*o));
        }
    }
    --FakeHost::get().responses;
    delete response;
    return nullptr;
}

TRITONSERVER_Error* TRITONBACKEND_StateNew(TRITONBACKEND_State** state,
                                           TRITONBACKEND_Request* request, const char* name,
                                           const TRITONSERVER_DataType type, const int64_t* shape,
                                           const uint32_t rank) {
    PLANTED()
    if (!request->in_sequence) {
        return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INVALID_ARG, "the request has no sequence");
    }
    request->made_states.emplace_back(new TRITONBACKEND_State{
        request, {name, type, {shape, shape + rank}, {}, request->state_memory, nullptr}});
    *state = request->made_states.back().get();
    return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_StateBuffer(TRITONBACKEND_State* state, void** buffer,
                                              const uint64_t bytes, TRITONSERVER_MemoryType* memory,
                                              int64_t* id) {
    return TRITONBACKEND_OutputBuffer(&state->tensor, buffer, bytes, memory, id);
}
TRITONSERVER_Error* TRITONBACKEND_StateUpdate(TRITONBACKEND_State* state) {
    PLANTED()
    state->request->states[state->tensor.name] = state->tensor;
    return nullptr;
}

TRITONSERVER_Error* TRITONSERVER_BufferAttributesNew(TRITONSERVER_BufferAttributes** attributes) {
    PLANTED()
    ++FakeHost::get().attributes;
    *attributes = new TRITONSERVER_BufferAttributes;
    return nullptr;
}
TRITONSERVER_Error* TRITONSERVER_BufferAttributesDelete(TRITONSERVER_BufferAttributes* attributes) {
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
