// SPDX-License-Identifier: Apache-2.0
// Requests, their responses and their states, as the fake host of the backend has them.
#include "tests/triton/fake_host.h"

using ingot::triton::FakeHost;

extern "C" {

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
TRITONSERVER_Error* TRITONBACKEND_RequestInputCount(TRITONBACKEND_Request* request,
                                                    uint32_t* count) {
    PLANTED()
    *count = static_cast<uint32_t>(request->inputs.size());
    return nullptr;
}
TRITONSERVER_Error* TRITONBACKEND_RequestInputName(TRITONBACKEND_Request* request,
                                                   const uint32_t index, const char** name) {
    PLANTED()
    *name = request->inputs.at(index).name.c_str();
    return nullptr;
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
    ingot::AllocationsSucceed ours;
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
    ingot::AllocationsSucceed ours;
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
    if (output->memory != TRITONSERVER_MEMORY_CPU) {
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
    ingot::AllocationsSucceed ours;
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
    ingot::AllocationsSucceed ours;
    return TRITONBACKEND_OutputBuffer(&state->tensor, buffer, bytes, memory, id);
}
TRITONSERVER_Error* TRITONBACKEND_StateUpdate(TRITONBACKEND_State* state) {
    PLANTED()
    state->request->states[state->tensor.name] = state->tensor;
    return nullptr;
}

} // extern "C"
