// SPDX-License-Identifier: Apache-2.0
// Types of the C ABI of ONNX Runtime, API 24 to 31, that a plugin uses: opaque handles and numbers.
// With INGOT_COMPARE_ABI (-DONNXRUNTIME_INCLUDE_DIR) the compiler compares numbers, slots and sizes
// with those of ONNX Runtime's own header, of release 1.31 or newer.
#pragma once

#ifdef INGOT_COMPARE_ABI
#include <onnxruntime_c_api.h>
#endif

#include <cstddef>
#include <cstdint>

namespace ingot::ort {

struct OrtStatus;
struct OrtEnv;
struct OrtSession;
struct OrtSessionOptions;
struct OrtRunOptions;
struct OrtValue;
struct OrtTypeInfo;
struct OrtTensorTypeAndShapeInfo;
struct OrtMemoryInfo;
struct OrtKernelContext;
struct OrtKernelInfo;
struct OrtLogger;
struct OrtOpAttr;
struct OrtKeyValuePairs;
struct OrtHardwareDevice;
struct OrtEpDevice;
struct OrtValueInfo;
struct OrtNode;
struct OrtGraph;
struct OrtExternalInitializerInfo;
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
struct OrtCompileApi;
struct OrtEpContextConfig;

enum OrtErrorCode : int32_t {
    ORT_OK = 0,
    ORT_FAIL = 1,
    ORT_INVALID_ARGUMENT = 2,
    ORT_NO_SUCHFILE = 3,
    ORT_NOT_IMPLEMENTED = 9,
    ORT_INVALID_GRAPH = 10,
    ORT_EP_FAIL = 11,
};
enum OrtLoggingLevel : int32_t {
    ORT_LOGGING_LEVEL_VERBOSE = 0,
    ORT_LOGGING_LEVEL_INFO = 1,
    ORT_LOGGING_LEVEL_WARNING = 2,
    ORT_LOGGING_LEVEL_ERROR = 3,
    ORT_LOGGING_LEVEL_FATAL = 4,
};
/// The numbers are those of TensorProto.DataType up to FLOAT4E2M1.
enum ONNXTensorElementDataType : int32_t {
    ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED = 0,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING = 8,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT4E2M1 = 23,
};
enum OrtOpAttrType : int32_t {
    ORT_OP_ATTR_UNDEFINED = 0,
    ORT_OP_ATTR_INT = 1,
    ORT_OP_ATTR_INTS = 2,
    ORT_OP_ATTR_FLOAT = 3,
    ORT_OP_ATTR_FLOATS = 4,
    ORT_OP_ATTR_STRING = 5,
    ORT_OP_ATTR_STRINGS = 6,
    ORT_OP_ATTR_GRAPH = 7,
    ORT_OP_ATTR_TENSOR = 8,
};
enum OrtHardwareDeviceType : int32_t {
    OrtHardwareDeviceType_CPU = 0,
    OrtHardwareDeviceType_GPU = 1,
    OrtHardwareDeviceType_NPU = 2,
};
enum OrtMemoryInfoDeviceType : int32_t {
    OrtMemoryInfoDeviceType_CPU = 0,
    OrtMemoryInfoDeviceType_GPU = 1,
};
enum OrtDeviceMemoryType : int32_t {
    OrtDeviceMemoryType_DEFAULT = 0,
    OrtDeviceMemoryType_HOST_ACCESSIBLE = 5,
};
enum OrtWeightlessSupport : int32_t {
    OrtWeightlessSupport_NONE = 0,
    OrtWeightlessSupport_EXTERNAL_ONLY = 1,
    OrtWeightlessSupport_ALL = 2,
    OrtWeightlessSupport_ALL_OR_EXTERNAL_ONLY = 3,
};
enum OrtAllocatorType : int32_t {
    OrtInvalidAllocator = -1,
    OrtDeviceAllocator = 0,
};
enum OrtMemType : int32_t {
    OrtMemTypeCPUInput = -2,
    OrtMemTypeCPUOutput = -1,
    OrtMemTypeDefault = 0,
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
INGOT_VALUE(ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED);
INGOT_VALUE(ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING);
INGOT_VALUE(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT4E2M1);
INGOT_VALUE(ORT_OP_ATTR_UNDEFINED);
INGOT_VALUE(ORT_OP_ATTR_INT);
INGOT_VALUE(ORT_OP_ATTR_INTS);
INGOT_VALUE(ORT_OP_ATTR_FLOAT);
INGOT_VALUE(ORT_OP_ATTR_FLOATS);
INGOT_VALUE(ORT_OP_ATTR_STRING);
INGOT_VALUE(ORT_OP_ATTR_STRINGS);
INGOT_VALUE(ORT_OP_ATTR_GRAPH);
INGOT_VALUE(ORT_OP_ATTR_TENSOR);
INGOT_VALUE(OrtHardwareDeviceType_CPU);
INGOT_VALUE(OrtHardwareDeviceType_GPU);
INGOT_VALUE(OrtHardwareDeviceType_NPU);
INGOT_VALUE(OrtMemoryInfoDeviceType_CPU);
INGOT_VALUE(OrtMemoryInfoDeviceType_GPU);
INGOT_VALUE(OrtDeviceMemoryType_DEFAULT);
INGOT_VALUE(OrtDeviceMemoryType_HOST_ACCESSIBLE);
INGOT_VALUE(OrtWeightlessSupport_NONE);
INGOT_VALUE(OrtWeightlessSupport_EXTERNAL_ONLY);
INGOT_VALUE(OrtWeightlessSupport_ALL);
INGOT_VALUE(OrtWeightlessSupport_ALL_OR_EXTERNAL_ONLY);
INGOT_VALUE(OrtInvalidAllocator);
INGOT_VALUE(OrtDeviceAllocator);
INGOT_VALUE(OrtMemTypeCPUInput);
INGOT_VALUE(OrtMemTypeCPUOutput);
INGOT_VALUE(OrtMemTypeDefault);
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
