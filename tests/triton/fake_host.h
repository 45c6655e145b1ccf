// SPDX-License-Identifier: Apache-2.0
// A host that implements what libtriton_ingot.so calls of Triton Inference Server: it counts what
// it handed out, and fails any call on demand. Each call that may fail is numbered from 1.
#pragma once

#include "base/allocation_count.h"
#include "plugins/triton/abi.h"

#include <atomic>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

// The functions of the library under test.
extern "C" {
TRITONSERVER_Error* TRITONBACKEND_Initialize(TRITONBACKEND_Backend*) noexcept;
TRITONSERVER_Error* TRITONBACKEND_Finalize(TRITONBACKEND_Backend*) noexcept;
TRITONSERVER_Error* TRITONBACKEND_GetBackendAttribute(TRITONBACKEND_Backend*,
                                                      TRITONBACKEND_BackendAttribute*) noexcept;
TRITONSERVER_Error* TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model*) noexcept;
TRITONSERVER_Error* TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model*) noexcept;
TRITONSERVER_Error* TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance*) noexcept;
TRITONSERVER_Error* TRITONBACKEND_ModelInstanceFinalize(TRITONBACKEND_ModelInstance*) noexcept;
TRITONSERVER_Error* TRITONBACKEND_ModelInstanceReady(TRITONBACKEND_ModelInstance*) noexcept;
TRITONSERVER_Error* TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance*,
                                                       TRITONBACKEND_Request**, uint32_t) noexcept;
}

struct TRITONSERVER_Error {
    TRITONSERVER_Error_Code code;
    std::string text;
};
struct TRITONSERVER_Message {
    std::string json;
    bool owned = true; // by the receiver
};
struct TRITONSERVER_Parameter {
    std::string name, value;
};
struct TRITONSERVER_MetricFamily {
    std::string name;
};
struct TRITONSERVER_Metric {
    std::string key; // name{labels}
};
struct TRITONBACKEND_BackendAttribute {
    std::vector<TRITONSERVER_InstanceGroupKind> kinds;
    bool loads_in_parallel = false;
};
struct TRITONBACKEND_Backend {
    std::string name = "ingot";
    TRITONSERVER_Message config{R"({"cmdline":{"default-max-batch-size":"4"}})", false};
    void* state = nullptr;
};
struct TRITONBACKEND_Model {
    TRITONBACKEND_Backend* backend = nullptr;
    std::string name = "model";
    uint64_t version = 1;
    std::string folder, config;
    bool completes = true;
    void* state = nullptr;
};
struct TRITONSERVER_BufferAttributes {
    TRITONSERVER_MemoryType memory = TRITONSERVER_MEMORY_CPU;
    int64_t id = 0;
    size_t bytes = 0;
};
struct TRITONBACKEND_ModelInstance {
    TRITONBACKEND_Model* model = nullptr;
    std::string name = "model_0";
    TRITONSERVER_InstanceGroupKind kind = TRITONSERVER_INSTANCEGROUPKIND_CPU;
    int32_t device = 0;
    TRITONSERVER_Message policy{R"({"cpu":{}})", false};
    void* state = nullptr;
    std::vector<TRITONSERVER_BufferAttributes> memory; // that it reported
    std::atomic<uint64_t> batches{0}, batch_rows{0}, successes{0}, failures{0};
};
struct TRITONBACKEND_Input {
    std::string name;
    TRITONSERVER_DataType type = TRITONSERVER_TYPE_FP32;
    std::vector<int64_t> shape;
    std::vector<std::vector<char>> buffers;
    std::vector<std::pair<const void*, size_t>> gpu_buffers; // instead, of a GPU or pinned
    TRITONSERVER_MemoryType memory = TRITONSERVER_MEMORY_CPU;
};
struct TRITONBACKEND_Output {
    std::string name;
    TRITONSERVER_DataType type;
    std::vector<int64_t> shape;
    std::vector<char> bytes;
    TRITONSERVER_MemoryType memory = TRITONSERVER_MEMORY_CPU;
    void* gpu_buffer = nullptr; // instead of bytes, of a GPU or pinned
};
struct TRITONBACKEND_Response {
    TRITONBACKEND_Request* request;
    std::vector<std::unique_ptr<TRITONBACKEND_Output>> outputs;
};
/// The state of a sequence, for its next request.
struct TRITONBACKEND_State {
    TRITONBACKEND_Request* request;
    TRITONBACKEND_Output tensor;
};
struct TRITONBACKEND_Request {
    std::vector<TRITONBACKEND_Input> inputs;
    std::vector<std::string> outputs;
    TRITONSERVER_MemoryType output_memory = TRITONSERVER_MEMORY_CPU;
    bool cancelled = false;
    bool in_sequence = false;
    TRITONSERVER_MemoryType state_memory = TRITONSERVER_MEMORY_CPU;
    // The outcome of the request.
    int responses = 0, released = 0;
    bool answered_error = false;
    TRITONSERVER_Error_Code code{};
    std::string text;
    std::map<std::string, TRITONBACKEND_Output> results;
    std::vector<std::unique_ptr<TRITONBACKEND_State>> made_states;
    std::map<std::string, TRITONBACKEND_Output> states; // of the next request
};

namespace ingot::triton {

/// One for the process, since the functions are. Thread safe where the server is.
struct FakeHost {
    uint32_t major = 1, minor = 19;
    bool has_metrics = true;
    std::atomic<int64_t> calls{0};
    std::atomic<int64_t> failing_call{0};                                                 // 0: none
    std::atomic<int64_t> errors{0}, messages{0}, responses{0}, metrics{0}, attributes{0}; // alive
    std::mutex mutex;
    std::vector<std::string> log;              // "W text"
    std::map<std::string, double> values;      // of metrics
    std::set<std::string> labelled;            // keys of metrics that are alive
    std::function<void*(size_t)> gpu_allocate; // for outputs that are wanted there

    static FakeHost& get();
    /// Back to the beginning, but for what is alive.
    void reset();
    /// An error for the call that is to fail, else null.
    TRITONSERVER_Error* next(const char* function);
    std::string logged();
};

/// "3 text" of an error, which is deleted; "" for none.
std::string text_of(TRITONSERVER_Error* error);

} // namespace ingot::triton

/// Ends a function of the host with the planted error when it is this call's turn.
#define PLANTED()                                                                                  \
    ingot::AllocationsSucceed ours;                                                                \
    if (TRITONSERVER_Error* planted = FakeHost::get().next(__func__)) {                            \
        return planted;                                                                            \
    }
