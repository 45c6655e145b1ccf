// SPDX-License-Identifier: Apache-2.0
// Types of the C ABI of ONNX Runtime, API 24 to 31, that a plugin uses besides those of programs,
// which it takes over into its own namespace together with the table of functions. With
// INGOT_COMPARE_ABI (-DONNXRUNTIME_INCLUDE_DIR) the compiler compares numbers, slots and sizes with
// those of ONNX Runtime's own header, of release 1.31 or newer.
#pragma once

#ifdef INGOT_COMPARE_ABI
#include <onnxruntime_c_api.h>
#endif

#define INGOT_ONNXRUNTIME_NAMESPACE ingot::ort
#include "ingot/onnxruntime_declarations.h"

namespace ingot::ort {

struct OrtKernelInfo;
struct OrtMemoryDevice;
struct OrtSyncStream;
struct OrtEpGraphSupportInfo;
struct OrtNodeComputeContext;
struct OrtKernelRegistry;
struct OrtKernelDefBuilder;
struct OrtKernelDef;
struct OrtDataType;
struct OrtDeviceEpIncompatibilityDetails;
struct OrtProfilingEvent;
struct OrtProfilingEventsContainer;
struct OrtEpContextConfig;

enum OrtWeightlessSupport : int32_t {
    OrtWeightlessSupport_NONE = 0,
    OrtWeightlessSupport_EXTERNAL_ONLY = 1,
    OrtWeightlessSupport_ALL = 2,
    OrtWeightlessSupport_ALL_OR_EXTERNAL_ONLY = 3,
};
enum OrtCompiledModelCompatibility : int32_t {
    OrtCompiledModelCompatibility_EP_NOT_APPLICABLE = 0,
    OrtCompiledModelCompatibility_EP_SUPPORTED_OPTIMAL = 1,
    OrtCompiledModelCompatibility_EP_SUPPORTED_PREFER_RECOMPILATION = 2,
    OrtCompiledModelCompatibility_EP_UNSUPPORTED = 3,
};
/// Bits of OrtEpApi::DeviceEpIncompatibilityDetails_SetDetails.
enum OrtDeviceEpIncompatibilityReason : uint32_t {
    OrtDeviceEpIncompatibility_NONE = 0,
    OrtDeviceEpIncompatibility_DRIVER_INCOMPATIBLE = 1,
    OrtDeviceEpIncompatibility_DEVICE_INCOMPATIBLE = 2,
    OrtDeviceEpIncompatibility_MISSING_DEPENDENCY = 4,
};

#ifdef INGOT_COMPARE_ABI
#define INGOT_VALUE(name) static_assert(static_cast<int64_t>(name) == static_cast<int64_t>(::name))
INGOT_VALUE(ORT_OK);
INGOT_VALUE(ORT_FAIL);
INGOT_VALUE(ORT_INVALID_ARGUMENT);
INGOT_VALUE(ORT_NO_SUCHFILE);
INGOT_VALUE(ORT_NOT_IMPLEMENTED);
INGOT_VALUE(ORT_INVALID_GRAPH);
INGOT_VALUE(ORT_EP_FAIL);
INGOT_VALUE(ORT_LOGGING_LEVEL_VERBOSE);
INGOT_VALUE(ORT_LOGGING_LEVEL_INFO);
INGOT_VALUE(ORT_LOGGING_LEVEL_WARNING);
INGOT_VALUE(ORT_LOGGING_LEVEL_ERROR);
INGOT_VALUE(ORT_LOGGING_LEVEL_FATAL);
INGOT_VALUE(ORT_DISABLE_ALL);
INGOT_VALUE(ORT_ENABLE_BASIC);
INGOT_VALUE(ORT_ENABLE_EXTENDED);
INGOT_VALUE(ORT_ENABLE_LAYOUT);
INGOT_VALUE(ORT_ENABLE_ALL);
INGOT_VALUE(ORT_SEQUENTIAL);
INGOT_VALUE(ORT_PARALLEL);
INGOT_VALUE(ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED);
INGOT_VALUE(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT);
INGOT_VALUE(ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8);
INGOT_VALUE(ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8);
INGOT_VALUE(ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16);
INGOT_VALUE(ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16);
INGOT_VALUE(ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32);
INGOT_VALUE(ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64);
INGOT_VALUE(ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING);
INGOT_VALUE(ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL);
INGOT_VALUE(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16);
INGOT_VALUE(ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE);
INGOT_VALUE(ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32);
INGOT_VALUE(ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64);
INGOT_VALUE(ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16);
INGOT_VALUE(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT4E2M1);
INGOT_VALUE(OrtInvalidAllocator);
INGOT_VALUE(OrtDeviceAllocator);
INGOT_VALUE(OrtMemTypeCPUInput);
INGOT_VALUE(OrtMemTypeCPUOutput);
INGOT_VALUE(OrtMemTypeDefault);
INGOT_VALUE(OrtHardwareDeviceType_CPU);
INGOT_VALUE(OrtHardwareDeviceType_GPU);
INGOT_VALUE(OrtHardwareDeviceType_NPU);
INGOT_VALUE(ORT_OP_ATTR_UNDEFINED);
INGOT_VALUE(ORT_OP_ATTR_INT);
INGOT_VALUE(ORT_OP_ATTR_INTS);
INGOT_VALUE(ORT_OP_ATTR_FLOAT);
INGOT_VALUE(ORT_OP_ATTR_FLOATS);
INGOT_VALUE(ORT_OP_ATTR_STRING);
INGOT_VALUE(ORT_OP_ATTR_STRINGS);
INGOT_VALUE(ORT_OP_ATTR_GRAPH);
INGOT_VALUE(ORT_OP_ATTR_TENSOR);
INGOT_VALUE(OrtMemoryInfoDeviceType_CPU);
INGOT_VALUE(OrtMemoryInfoDeviceType_GPU);
INGOT_VALUE(OrtDeviceMemoryType_DEFAULT);
INGOT_VALUE(OrtDeviceMemoryType_HOST_ACCESSIBLE);
INGOT_VALUE(OrtWeightlessSupport_NONE);
INGOT_VALUE(OrtWeightlessSupport_EXTERNAL_ONLY);
INGOT_VALUE(OrtWeightlessSupport_ALL);
INGOT_VALUE(OrtWeightlessSupport_ALL_OR_EXTERNAL_ONLY);
INGOT_VALUE(OrtCompiledModelCompatibility_EP_NOT_APPLICABLE);
INGOT_VALUE(OrtCompiledModelCompatibility_EP_SUPPORTED_OPTIMAL);
INGOT_VALUE(OrtCompiledModelCompatibility_EP_SUPPORTED_PREFER_RECOMPILATION);
INGOT_VALUE(OrtCompiledModelCompatibility_EP_UNSUPPORTED);
INGOT_VALUE(OrtDeviceEpIncompatibility_NONE);
INGOT_VALUE(OrtDeviceEpIncompatibility_DRIVER_INCOMPATIBLE);
INGOT_VALUE(OrtDeviceEpIncompatibility_DEVICE_INCOMPATIBLE);
INGOT_VALUE(OrtDeviceEpIncompatibility_MISSING_DEPENDENCY);
#undef INGOT_VALUE
#endif

} // namespace ingot::ort
