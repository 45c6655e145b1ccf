// SPDX-License-Identifier: Apache-2.0
// The used part of Triton Inference Server's C API for backends, version 1.19. The functions are
// the server's: this library leaves them undefined, and the process that loads it has them.
// With INGOT_COMPARE_ABI (-DTRITON_INCLUDE_DIR=) the server's own headers are read first, and a
// function or a number that differs from theirs does not compile.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ingot::triton {

inline constexpr uint32_t api_major = 1;
inline constexpr uint32_t api_minor = 19;

} // namespace ingot::triton

#ifndef INGOT_COMPARE_ABI
#include "plugins/triton/abi_enums.h"
#else
#include "triton/core/tritonbackend.h"

namespace ingot::triton::declared {

#include "plugins/triton/abi_enums.h"

} // namespace ingot::triton::declared

static_assert(TRITONBACKEND_API_VERSION_MAJOR == ingot::triton::api_major &&
                  TRITONBACKEND_API_VERSION_MINOR >= ingot::triton::api_minor,
              "Triton's headers are of another version than this library needs");
#define INGOT_VALUE(name)                                                                          \
    static_assert(static_cast<int64_t>(ingot::triton::declared::name) ==                           \
                      static_cast<int64_t>(::name),                                                \
                  "Triton's header has another " #name)
INGOT_VALUE(TRITONSERVER_ERROR_UNKNOWN);
INGOT_VALUE(TRITONSERVER_ERROR_INTERNAL);
INGOT_VALUE(TRITONSERVER_ERROR_NOT_FOUND);
INGOT_VALUE(TRITONSERVER_ERROR_INVALID_ARG);
INGOT_VALUE(TRITONSERVER_ERROR_UNAVAILABLE);
INGOT_VALUE(TRITONSERVER_ERROR_UNSUPPORTED);
INGOT_VALUE(TRITONSERVER_ERROR_ALREADY_EXISTS);
INGOT_VALUE(TRITONSERVER_ERROR_CANCELLED);
INGOT_VALUE(TRITONSERVER_TYPE_INVALID);
INGOT_VALUE(TRITONSERVER_TYPE_BOOL);
INGOT_VALUE(TRITONSERVER_TYPE_UINT8);
INGOT_VALUE(TRITONSERVER_TYPE_UINT16);
INGOT_VALUE(TRITONSERVER_TYPE_UINT32);
INGOT_VALUE(TRITONSERVER_TYPE_UINT64);
INGOT_VALUE(TRITONSERVER_TYPE_INT8);
INGOT_VALUE(TRITONSERVER_TYPE_INT16);
INGOT_VALUE(TRITONSERVER_TYPE_INT32);
INGOT_VALUE(TRITONSERVER_TYPE_INT64);
INGOT_VALUE(TRITONSERVER_TYPE_FP16);
INGOT_VALUE(TRITONSERVER_TYPE_FP32);
INGOT_VALUE(TRITONSERVER_TYPE_FP64);
INGOT_VALUE(TRITONSERVER_TYPE_BYTES);
INGOT_VALUE(TRITONSERVER_TYPE_BF16);
INGOT_VALUE(TRITONSERVER_MEMORY_CPU);
INGOT_VALUE(TRITONSERVER_MEMORY_CPU_PINNED);
INGOT_VALUE(TRITONSERVER_MEMORY_GPU);
INGOT_VALUE(TRITONSERVER_INSTANCEGROUPKIND_AUTO);
INGOT_VALUE(TRITONSERVER_INSTANCEGROUPKIND_CPU);
INGOT_VALUE(TRITONSERVER_INSTANCEGROUPKIND_GPU);
INGOT_VALUE(TRITONSERVER_INSTANCEGROUPKIND_MODEL);
INGOT_VALUE(TRITONSERVER_LOG_INFO);
INGOT_VALUE(TRITONSERVER_LOG_WARN);
INGOT_VALUE(TRITONSERVER_LOG_ERROR);
INGOT_VALUE(TRITONSERVER_LOG_VERBOSE);
INGOT_VALUE(TRITONSERVER_PARAMETER_STRING);
INGOT_VALUE(TRITONSERVER_PARAMETER_INT);
INGOT_VALUE(TRITONSERVER_PARAMETER_BOOL);
INGOT_VALUE(TRITONSERVER_PARAMETER_DOUBLE);
INGOT_VALUE(TRITONSERVER_PARAMETER_BYTES);
INGOT_VALUE(TRITONSERVER_METRIC_KIND_COUNTER);
INGOT_VALUE(TRITONSERVER_METRIC_KIND_GAUGE);
INGOT_VALUE(TRITONSERVER_METRIC_KIND_HISTOGRAM);
INGOT_VALUE(TRITONBACKEND_ARTIFACT_FILESYSTEM);
INGOT_VALUE(TRITONSERVER_REQUEST_RELEASE_ALL);
INGOT_VALUE(TRITONSERVER_RESPONSE_COMPLETE_FINAL);
#undef INGOT_VALUE
#define INGOT_SIZE(type)                                                                           \
    static_assert(sizeof(ingot::triton::declared::type) == sizeof(::type),                         \
                  "Triton's header has another size of " #type)
INGOT_SIZE(TRITONSERVER_Error_Code);
INGOT_SIZE(TRITONSERVER_DataType);
INGOT_SIZE(TRITONSERVER_MemoryType);
INGOT_SIZE(TRITONSERVER_InstanceGroupKind);
INGOT_SIZE(TRITONSERVER_LogLevel);
INGOT_SIZE(TRITONSERVER_ParameterType);
INGOT_SIZE(TRITONSERVER_MetricKind);
INGOT_SIZE(TRITONBACKEND_ArtifactType);
#undef INGOT_SIZE
#endif

extern "C" {

struct TRITONSERVER_Error;
struct TRITONSERVER_Message;
struct TRITONSERVER_Parameter;
struct TRITONSERVER_MetricFamily;
struct TRITONSERVER_Metric;
struct TRITONBACKEND_Backend;
struct TRITONBACKEND_BackendAttribute;
struct TRITONBACKEND_Model;
struct TRITONBACKEND_ModelInstance;
struct TRITONBACKEND_Request;
struct TRITONBACKEND_Response;
struct TRITONBACKEND_Input;
struct TRITONBACKEND_Output;
struct TRITONBACKEND_State;
struct TRITONSERVER_BufferAttributes;

// All but those of messages and errors return null for success; the caller deletes the error.
#pragma GCC visibility push(default)
TRITONSERVER_Error* TRITONSERVER_ErrorNew(TRITONSERVER_Error_Code code, const char* text);
void TRITONSERVER_ErrorDelete(TRITONSERVER_Error* error);
TRITONSERVER_Error_Code TRITONSERVER_ErrorCode(TRITONSERVER_Error* error);
const char* TRITONSERVER_ErrorMessage(TRITONSERVER_Error* error);
TRITONSERVER_Error* TRITONSERVER_LogMessage(TRITONSERVER_LogLevel level, const char* file, int line,
                                            const char* text);
TRITONSERVER_Error* TRITONSERVER_MessageNewFromSerializedJson(TRITONSERVER_Message** message,
                                                              const char* base, size_t bytes);
TRITONSERVER_Error* TRITONSERVER_MessageSerializeToJson(TRITONSERVER_Message* message,
                                                        const char** base, size_t* bytes);
TRITONSERVER_Error* TRITONSERVER_MessageDelete(TRITONSERVER_Message* message);
TRITONSERVER_Parameter* TRITONSERVER_ParameterNew(const char* name, TRITONSERVER_ParameterType type,
                                                  const void* value);
void TRITONSERVER_ParameterDelete(TRITONSERVER_Parameter* parameter);
TRITONSERVER_Error* TRITONSERVER_MetricFamilyNew(TRITONSERVER_MetricFamily** family,
                                                 TRITONSERVER_MetricKind kind, const char* name,
                                                 const char* description);
TRITONSERVER_Error* TRITONSERVER_MetricFamilyDelete(TRITONSERVER_MetricFamily* family);
TRITONSERVER_Error* TRITONSERVER_MetricNew(TRITONSERVER_Metric** metric,
                                           TRITONSERVER_MetricFamily* family,
                                           const TRITONSERVER_Parameter** labels, uint64_t count);
TRITONSERVER_Error* TRITONSERVER_MetricDelete(TRITONSERVER_Metric* metric);
TRITONSERVER_Error* TRITONSERVER_MetricIncrement(TRITONSERVER_Metric* metric, double value);
TRITONSERVER_Error* TRITONSERVER_MetricSet(TRITONSERVER_Metric* metric, double value);
TRITONSERVER_Error* TRITONSERVER_BufferAttributesNew(TRITONSERVER_BufferAttributes** attributes);
TRITONSERVER_Error* TRITONSERVER_BufferAttributesDelete(TRITONSERVER_BufferAttributes* attributes);
TRITONSERVER_Error*
TRITONSERVER_BufferAttributesSetMemoryType(TRITONSERVER_BufferAttributes* attributes,
                                           TRITONSERVER_MemoryType memory);
TRITONSERVER_Error*
TRITONSERVER_BufferAttributesSetMemoryTypeId(TRITONSERVER_BufferAttributes* attributes, int64_t id);
TRITONSERVER_Error*
TRITONSERVER_BufferAttributesSetByteSize(TRITONSERVER_BufferAttributes* attributes, size_t bytes);

TRITONSERVER_Error* TRITONBACKEND_ApiVersion(uint32_t* major, uint32_t* minor);
TRITONSERVER_Error* TRITONBACKEND_BackendName(TRITONBACKEND_Backend* backend, const char** name);
TRITONSERVER_Error* TRITONBACKEND_BackendConfig(TRITONBACKEND_Backend* backend,
                                                TRITONSERVER_Message** config);
TRITONSERVER_Error* TRITONBACKEND_BackendState(TRITONBACKEND_Backend* backend, void** state);
TRITONSERVER_Error* TRITONBACKEND_BackendSetState(TRITONBACKEND_Backend* backend, void* state);
TRITONSERVER_Error* TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup(
    TRITONBACKEND_BackendAttribute* attributes, TRITONSERVER_InstanceGroupKind kind, uint64_t count,
    const uint64_t* devices, uint64_t device_count);
TRITONSERVER_Error* TRITONBACKEND_BackendAttributeSetParallelModelInstanceLoading(
    TRITONBACKEND_BackendAttribute* attributes, bool enabled);

TRITONSERVER_Error* TRITONBACKEND_ModelName(TRITONBACKEND_Model* model, const char** name);
TRITONSERVER_Error* TRITONBACKEND_ModelVersion(TRITONBACKEND_Model* model, uint64_t* version);
TRITONSERVER_Error* TRITONBACKEND_ModelRepository(TRITONBACKEND_Model* model,
                                                  TRITONBACKEND_ArtifactType* type,
                                                  const char** location);
TRITONSERVER_Error* TRITONBACKEND_ModelConfig(TRITONBACKEND_Model* model, uint32_t version,
                                              TRITONSERVER_Message** config);
TRITONSERVER_Error* TRITONBACKEND_ModelAutoCompleteConfig(TRITONBACKEND_Model* model, bool* wanted);
TRITONSERVER_Error* TRITONBACKEND_ModelSetConfig(TRITONBACKEND_Model* model, uint32_t version,
                                                 TRITONSERVER_Message* config);
TRITONSERVER_Error* TRITONBACKEND_ModelBackend(TRITONBACKEND_Model* model,
                                               TRITONBACKEND_Backend** backend);
TRITONSERVER_Error* TRITONBACKEND_ModelState(TRITONBACKEND_Model* model, void** state);
TRITONSERVER_Error* TRITONBACKEND_ModelSetState(TRITONBACKEND_Model* model, void* state);

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceName(TRITONBACKEND_ModelInstance* instance,
                                                    const char** name);
TRITONSERVER_Error* TRITONBACKEND_ModelInstanceKind(TRITONBACKEND_ModelInstance* instance,
                                                    TRITONSERVER_InstanceGroupKind* kind);
TRITONSERVER_Error* TRITONBACKEND_ModelInstanceDeviceId(TRITONBACKEND_ModelInstance* instance,
                                                        int32_t* device);
TRITONSERVER_Error* TRITONBACKEND_ModelInstanceHostPolicy(TRITONBACKEND_ModelInstance* instance,
                                                          TRITONSERVER_Message** policy);
TRITONSERVER_Error* TRITONBACKEND_ModelInstanceModel(TRITONBACKEND_ModelInstance* instance,
                                                     TRITONBACKEND_Model** model);
TRITONSERVER_Error* TRITONBACKEND_ModelInstanceState(TRITONBACKEND_ModelInstance* instance,
                                                     void** state);
TRITONSERVER_Error* TRITONBACKEND_ModelInstanceSetState(TRITONBACKEND_ModelInstance* instance,
                                                        void* state);
TRITONSERVER_Error*
TRITONBACKEND_ModelInstanceReportStatistics(TRITONBACKEND_ModelInstance* instance,
                                            TRITONBACKEND_Request* request, const bool success,
                                            const uint64_t exec_start, const uint64_t compute_start,
                                            const uint64_t compute_end, const uint64_t exec_end);
TRITONSERVER_Error* TRITONBACKEND_ModelInstanceReportBatchStatistics(
    TRITONBACKEND_ModelInstance* instance, const uint64_t batch, const uint64_t exec_start,
    const uint64_t compute_start, const uint64_t compute_end, const uint64_t exec_end);
TRITONSERVER_Error*
TRITONBACKEND_ModelInstanceReportMemoryUsage(TRITONBACKEND_ModelInstance* instance,
                                             TRITONSERVER_BufferAttributes** usage, uint32_t count);

TRITONSERVER_Error* TRITONBACKEND_RequestInputCount(TRITONBACKEND_Request* request,
                                                    uint32_t* count);
TRITONSERVER_Error* TRITONBACKEND_RequestInputName(TRITONBACKEND_Request* request,
                                                   const uint32_t index, const char** name);
TRITONSERVER_Error* TRITONBACKEND_RequestInput(TRITONBACKEND_Request* request, const char* name,
                                               TRITONBACKEND_Input** input);
TRITONSERVER_Error* TRITONBACKEND_RequestOutputCount(TRITONBACKEND_Request* request,
                                                     uint32_t* count);
TRITONSERVER_Error* TRITONBACKEND_RequestOutputName(TRITONBACKEND_Request* request,
                                                    const uint32_t index, const char** name);
TRITONSERVER_Error* TRITONBACKEND_RequestIsCancelled(TRITONBACKEND_Request* request,
                                                     bool* is_cancelled);
TRITONSERVER_Error* TRITONBACKEND_RequestRelease(TRITONBACKEND_Request* request, uint32_t flags);
TRITONSERVER_Error* TRITONBACKEND_InputProperties(TRITONBACKEND_Input* input, const char** name,
                                                  TRITONSERVER_DataType* type,
                                                  const int64_t** shape, uint32_t* rank,
                                                  uint64_t* bytes, uint32_t* buffers);
TRITONSERVER_Error* TRITONBACKEND_InputBuffer(TRITONBACKEND_Input* input, const uint32_t index,
                                              const void** buffer, uint64_t* bytes,
                                              TRITONSERVER_MemoryType* memory, int64_t* memory_id);
TRITONSERVER_Error* TRITONBACKEND_ResponseNew(TRITONBACKEND_Response** response,
                                              TRITONBACKEND_Request* request);
TRITONSERVER_Error* TRITONBACKEND_ResponseDelete(TRITONBACKEND_Response* response);
TRITONSERVER_Error* TRITONBACKEND_ResponseOutput(TRITONBACKEND_Response* response,
                                                 TRITONBACKEND_Output** output, const char* name,
                                                 const TRITONSERVER_DataType type,
                                                 const int64_t* shape, const uint32_t rank);
TRITONSERVER_Error* TRITONBACKEND_OutputBuffer(TRITONBACKEND_Output* output, void** buffer,
                                               const uint64_t bytes,
                                               TRITONSERVER_MemoryType* memory, int64_t* memory_id);
TRITONSERVER_Error* TRITONBACKEND_StateNew(TRITONBACKEND_State** state,
                                           TRITONBACKEND_Request* request, const char* name,
                                           const TRITONSERVER_DataType type, const int64_t* shape,
                                           const uint32_t rank);
TRITONSERVER_Error* TRITONBACKEND_StateBuffer(TRITONBACKEND_State* state, void** buffer,
                                              const uint64_t bytes, TRITONSERVER_MemoryType* memory,
                                              int64_t* memory_id);
TRITONSERVER_Error* TRITONBACKEND_StateUpdate(TRITONBACKEND_State* state);
TRITONSERVER_Error* TRITONBACKEND_ResponseSend(TRITONBACKEND_Response* response,
                                               const uint32_t flags, TRITONSERVER_Error* error);
#pragma GCC visibility pop

} // extern "C"
