// SPDX-License-Identifier: Apache-2.0
// Types of onnxruntime_c_api.h that functions take: opaque handles and numbers, those of ONNX
// Runtime 1.24 to 1.31. Include ingot/onnxruntime_c.h instead of this file.
#pragma once

#include <cstddef>
#include <cstdint>

/// Says which word of a table holds a function. INGOT_COMPARE_ABI asks ONNX Runtime's own header,
/// whose names are global, for the same.
#ifdef INGOT_COMPARE_ABI
#define INGOT_SLOT(table, member, index)                                                           \
    static_assert(offsetof(table, member) == (index) * sizeof(void*), #member);                    \
    static_assert(offsetof(::table, member) == (index) * sizeof(void*),                            \
                  "ONNX Runtime's header has " #table "::" #member " elsewhere")
#else
#define INGOT_SLOT(table, member, index)                                                           \
    static_assert(offsetof(table, member) == (index) * sizeof(void*), #member)
#endif

// For programs the names are global, as in ONNX Runtime's header, which forward declarations rely
// on. Ingot's execution provider keeps them in a namespace, beside that header where the two are
// compared.
#ifdef INGOT_ONNXRUNTIME_NAMESPACE
namespace INGOT_ONNXRUNTIME_NAMESPACE {
#else
extern "C" {
#endif

struct OrtStatus;
struct OrtEnv;
struct OrtSession;
struct OrtSessionOptions;
struct OrtRunOptions;
struct OrtValue;
struct OrtTypeInfo;
struct OrtTensorTypeAndShapeInfo;
struct OrtMemoryInfo;
struct OrtIoBinding;
struct OrtAllocator;
struct OrtKeyValuePairs;
struct OrtHardwareDevice;
struct OrtEpDevice;
struct OrtModelCompilationOptions;
struct OrtKernelContext;
struct OrtLogger;
struct OrtOpAttr;
struct OrtValueInfo;
struct OrtNode;
struct OrtGraph;
struct OrtExternalInitializerInfo;
struct OrtEpApi;
struct OrtModelEditorApi;
struct OrtCompileApi;

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
enum GraphOptimizationLevel : int32_t {
    ORT_DISABLE_ALL = 0,
    ORT_ENABLE_BASIC = 1,
    ORT_ENABLE_EXTENDED = 2,
    ORT_ENABLE_LAYOUT = 3,
    ORT_ENABLE_ALL = 99,
};
enum ExecutionMode : int32_t {
    ORT_SEQUENTIAL = 0,
    ORT_PARALLEL = 1,
};
/// The numbers are those of TensorProto.DataType up to FLOAT4E2M1.
enum ONNXTensorElementDataType : int32_t {
    ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED = 0,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT = 1,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8 = 2,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8 = 3,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16 = 4,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16 = 5,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32 = 6,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64 = 7,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING = 8,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL = 9,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16 = 10,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE = 11,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32 = 12,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64 = 13,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16 = 16,
    ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT4E2M1 = 23,
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
enum OrtHardwareDeviceType : int32_t {
    OrtHardwareDeviceType_CPU = 0,
    OrtHardwareDeviceType_GPU = 1,
    OrtHardwareDeviceType_NPU = 2,
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
enum OrtMemoryInfoDeviceType : int32_t {
    OrtMemoryInfoDeviceType_CPU = 0,
    OrtMemoryInfoDeviceType_GPU = 1,
};
enum OrtDeviceMemoryType : int32_t {
    OrtDeviceMemoryType_DEFAULT = 0,
    OrtDeviceMemoryType_HOST_ACCESSIBLE = 5,
};

} // namespace or linkage
