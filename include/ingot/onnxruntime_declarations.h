// SPDX-License-Identifier: Apache-2.0
// Stands in for onnxruntime_c_api.h where that is not installed: the same names and layout, for
// what programs call that run and compile models. Slots were measured with the headers of
// release 1.30; they never change place. Include ingot/onnxruntime_c.h instead of this file.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

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

enum OrtErrorCode : int32_t {
    ORT_OK = 0,
    ORT_FAIL = 1,
    ORT_INVALID_ARGUMENT = 2,
    ORT_NO_SUCHFILE = 3,
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
/// The numbers are those of TensorProto.DataType.
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

/// Compiling a model ahead of time.
struct OrtCompileApi {
    void (*ReleaseModelCompilationOptions)(OrtModelCompilationOptions* options);
    OrtStatus* (*CreateModelCompilationOptionsFromSessionOptions)(const OrtEnv* env,
                                                                  const OrtSessionOptions* options,
                                                                  OrtModelCompilationOptions** out);
    OrtStatus* (*ModelCompilationOptions_SetInputModelPath)(OrtModelCompilationOptions* options,
                                                            const char* path);
    OrtStatus* (*ModelCompilationOptions_SetInputModelFromBuffer)(
        OrtModelCompilationOptions* options, const void* data, size_t bytes);
    OrtStatus* (*ModelCompilationOptions_SetOutputModelPath)(OrtModelCompilationOptions* options,
                                                             const char* path);
    OrtStatus* (*ModelCompilationOptions_SetOutputModelExternalInitializersFile)(
        OrtModelCompilationOptions* options, const char* path, size_t threshold);
    OrtStatus* (*ModelCompilationOptions_SetOutputModelBuffer)(OrtModelCompilationOptions* options,
                                                               OrtAllocator* allocator, void** data,
                                                               size_t* bytes);
    OrtStatus* (*ModelCompilationOptions_SetEpContextEmbedMode)(OrtModelCompilationOptions* options,
                                                                bool embed);
    OrtStatus* (*CompileModel)(const OrtEnv* env, const OrtModelCompilationOptions* options);
    OrtStatus* (*ModelCompilationOptions_SetFlags)(OrtModelCompilationOptions* options,
                                                   uint32_t flags);
    OrtStatus* (*ModelCompilationOptions_SetEpContextBinaryInformation)(
        OrtModelCompilationOptions* options, const char* folder, const char* model_name);
    void* unused_11[4];
    /// Since release 1.29.
    OrtStatus* (*ModelCompilationOptions_SetWeightlessEnabled)(OrtModelCompilationOptions* options,
                                                               bool weightless);
};

/// The functions. All but getters of strings return a status, null for success.
struct OrtApi {
    OrtStatus* (*CreateStatus)(OrtErrorCode code, const char* message);
    OrtErrorCode (*GetErrorCode)(const OrtStatus* status);
    const char* (*GetErrorMessage)(const OrtStatus* status);
    OrtStatus* (*CreateEnv)(OrtLoggingLevel level, const char* name, OrtEnv** out);
    void* unused_4[3];
    OrtStatus* (*CreateSession)(const OrtEnv* env, const char* path,
                                const OrtSessionOptions* options, OrtSession** out);
    OrtStatus* (*CreateSessionFromArray)(const OrtEnv* env, const void* data, size_t bytes,
                                         const OrtSessionOptions* options, OrtSession** out);
    OrtStatus* (*Run)(OrtSession* session, const OrtRunOptions* options,
                      const char* const* input_names, const OrtValue* const* inputs,
                      size_t input_count, const char* const* output_names, size_t output_count,
                      OrtValue** outputs);
    OrtStatus* (*CreateSessionOptions)(OrtSessionOptions** out);
    OrtStatus* (*SetOptimizedModelFilePath)(OrtSessionOptions* options, const char* path);
    void* unused_12[1];
    OrtStatus* (*SetSessionExecutionMode)(OrtSessionOptions* options, ExecutionMode mode);
    OrtStatus* (*EnableProfiling)(OrtSessionOptions* options, const char* prefix);
    void* unused_15[2];
    OrtStatus* (*DisableMemPattern)(OrtSessionOptions* options);
    void* unused_18[1];
    OrtStatus* (*DisableCpuMemArena)(OrtSessionOptions* options);
    void* unused_20[2];
    OrtStatus* (*SetSessionLogSeverityLevel)(OrtSessionOptions* options, int level);
    OrtStatus* (*SetSessionGraphOptimizationLevel)(OrtSessionOptions* options,
                                                   GraphOptimizationLevel level);
    OrtStatus* (*SetIntraOpNumThreads)(OrtSessionOptions* options, int count);
    OrtStatus* (*SetInterOpNumThreads)(OrtSessionOptions* options, int count);
    void* unused_26[3];
    OrtStatus* (*RegisterCustomOpsLibrary)(OrtSessionOptions* options, const char* path,
                                           void** handle);
    OrtStatus* (*SessionGetInputCount)(const OrtSession* session, size_t* out);
    OrtStatus* (*SessionGetOutputCount)(const OrtSession* session, size_t* out);
    void* unused_32[1];
    OrtStatus* (*SessionGetInputTypeInfo)(const OrtSession* session, size_t index,
                                          OrtTypeInfo** out);
    OrtStatus* (*SessionGetOutputTypeInfo)(const OrtSession* session, size_t index,
                                           OrtTypeInfo** out);
    void* unused_35[1];
    OrtStatus* (*SessionGetInputName)(const OrtSession* session, size_t index,
                                      OrtAllocator* allocator, char** out);
    OrtStatus* (*SessionGetOutputName)(const OrtSession* session, size_t index,
                                       OrtAllocator* allocator, char** out);
    void* unused_38[1];
    OrtStatus* (*CreateRunOptions)(OrtRunOptions** out);
    void* unused_40[8];
    OrtStatus* (*CreateTensorAsOrtValue)(OrtAllocator* allocator, const int64_t* shape, size_t rank,
                                         ONNXTensorElementDataType type, OrtValue** out);
    OrtStatus* (*CreateTensorWithDataAsOrtValue)(const OrtMemoryInfo* info, void* data,
                                                 size_t bytes, const int64_t* shape, size_t rank,
                                                 ONNXTensorElementDataType type, OrtValue** out);
    void* unused_50[1];
    OrtStatus* (*GetTensorMutableData)(OrtValue* value, void** out);
    void* unused_52[3];
    OrtStatus* (*CastTypeInfoToTensorInfo)(const OrtTypeInfo* info,
                                           const OrtTensorTypeAndShapeInfo** out);
    void* unused_56[4];
    OrtStatus* (*GetTensorElementType)(const OrtTensorTypeAndShapeInfo* info,
                                       ONNXTensorElementDataType* out);
    OrtStatus* (*GetDimensionsCount)(const OrtTensorTypeAndShapeInfo* info, size_t* out);
    OrtStatus* (*GetDimensions)(const OrtTensorTypeAndShapeInfo* info, int64_t* out, size_t count);
    OrtStatus* (*GetSymbolicDimensions)(const OrtTensorTypeAndShapeInfo* info, const char** out,
                                        size_t count);
    void* unused_64[1];
    OrtStatus* (*GetTensorTypeAndShape)(const OrtValue* value, OrtTensorTypeAndShapeInfo** out);
    void* unused_66[3];
    OrtStatus* (*CreateCpuMemoryInfo)(OrtAllocatorType allocator, OrtMemType type,
                                      OrtMemoryInfo** out);
    void* unused_70[1];
    OrtStatus* (*MemoryInfoGetName)(const OrtMemoryInfo* info, const char** out);
    void* unused_72[4];
    OrtStatus* (*AllocatorFree)(OrtAllocator* allocator, void* data);
    void* unused_77[1];
    OrtStatus* (*GetAllocatorWithDefaultOptions)(OrtAllocator** out);
    OrtStatus* (*AddFreeDimensionOverride)(OrtSessionOptions* options, const char* denotation,
                                           int64_t size);
    void* unused_80[12];
    void (*ReleaseEnv)(OrtEnv* env);
    void (*ReleaseStatus)(OrtStatus* status);
    void (*ReleaseMemoryInfo)(OrtMemoryInfo* info);
    void (*ReleaseSession)(OrtSession* session);
    void (*ReleaseValue)(OrtValue* value);
    void (*ReleaseRunOptions)(OrtRunOptions* options);
    void (*ReleaseTypeInfo)(OrtTypeInfo* info);
    void (*ReleaseTensorTypeAndShapeInfo)(OrtTensorTypeAndShapeInfo* info);
    void (*ReleaseSessionOptions)(OrtSessionOptions* options);
    void* unused_101[23];
    OrtStatus* (*AddFreeDimensionOverrideByName)(OrtSessionOptions* options, const char* name,
                                                 int64_t size);
    void* unused_125[5];
    OrtStatus* (*AddSessionConfigEntry)(OrtSessionOptions* options, const char* key,
                                        const char* value);
    OrtStatus* (*CreateAllocator)(const OrtSession* session, const OrtMemoryInfo* info,
                                  OrtAllocator** out);
    void (*ReleaseAllocator)(OrtAllocator* allocator);
    OrtStatus* (*RunWithBinding)(OrtSession* session, const OrtRunOptions* options,
                                 const OrtIoBinding* binding);
    OrtStatus* (*CreateIoBinding)(OrtSession* session, OrtIoBinding** out);
    void (*ReleaseIoBinding)(OrtIoBinding* binding);
    OrtStatus* (*BindInput)(OrtIoBinding* binding, const char* name, const OrtValue* value);
    OrtStatus* (*BindOutput)(OrtIoBinding* binding, const char* name, const OrtValue* value);
    OrtStatus* (*BindOutputToDevice)(OrtIoBinding* binding, const char* name,
                                     const OrtMemoryInfo* info);
    void* unused_139[26];
    OrtStatus* (*AddRunConfigEntry)(OrtRunOptions* options, const char* key, const char* value);
    void* unused_166[113];
    OrtStatus* (*AddExternalInitializersFromFilesInMemory)(OrtSessionOptions* options,
                                                           const char* const* names,
                                                           char* const* data, const size_t* bytes,
                                                           size_t count);
    void* unused_280[14];
    const OrtCompileApi* (*GetCompileApi)();
    void* unused_295[2];
    const char* (*GetKeyValue)(const OrtKeyValuePairs* pairs, const char* key);
    void (*GetKeyValuePairs)(const OrtKeyValuePairs* pairs, const char* const** keys,
                             const char* const** values, size_t* count);
    void* unused_299[2];
    OrtStatus* (*RegisterExecutionProviderLibrary)(OrtEnv* env, const char* name, const char* path);
    OrtStatus* (*UnregisterExecutionProviderLibrary)(OrtEnv* env, const char* name);
    OrtStatus* (*GetEpDevices)(const OrtEnv* env, const OrtEpDevice* const** out, size_t* count);
    OrtStatus* (*SessionOptionsAppendExecutionProvider_V2)(OrtSessionOptions* options, OrtEnv* env,
                                                           const OrtEpDevice* const* devices,
                                                           size_t device_count,
                                                           const char* const* keys,
                                                           const char* const* values, size_t count);
    void* unused_305[2];
    OrtHardwareDeviceType (*HardwareDevice_Type)(const OrtHardwareDevice* device);
    uint32_t (*HardwareDevice_VendorId)(const OrtHardwareDevice* device);
    const char* (*HardwareDevice_Vendor)(const OrtHardwareDevice* device);
    uint32_t (*HardwareDevice_DeviceId)(const OrtHardwareDevice* device);
    const OrtKeyValuePairs* (*HardwareDevice_Metadata)(const OrtHardwareDevice* device);
    const char* (*EpDevice_EpName)(const OrtEpDevice* device);
    const char* (*EpDevice_EpVendor)(const OrtEpDevice* device);
    const OrtKeyValuePairs* (*EpDevice_EpMetadata)(const OrtEpDevice* device);
    const OrtKeyValuePairs* (*EpDevice_EpOptions)(const OrtEpDevice* device);
    const OrtHardwareDevice* (*EpDevice_Device)(const OrtEpDevice* device);
    void* unused_317[1];
    OrtStatus* (*GetTensorSizeInBytes)(const OrtValue* value, size_t* out);
    void* unused_319[61];
    OrtStatus* (*SessionGetMemoryInfoForInputs)(const OrtSession* session,
                                                const OrtMemoryInfo** out, size_t count);
    OrtStatus* (*SessionGetMemoryInfoForOutputs)(const OrtSession* session,
                                                 const OrtMemoryInfo** out, size_t count);
    void* unused_382[4];
    OrtStatus* (*CopyTensors)(const OrtEnv* env, const OrtValue* const* from, OrtValue* const* to,
                              void* stream, size_t count);
};

/// The result of OrtGetApiBase, the library's only exported function of interest.
struct OrtApiBase {
    const OrtApi* (*GetApi)(uint32_t version);
    const char* (*GetVersionString)();
};

} // extern "C"

#define INGOT_SLOT(table, member, index)                                                           \
    static_assert(offsetof(table, member) == (index) * sizeof(void*))
INGOT_SLOT(OrtCompileApi, ReleaseModelCompilationOptions, 0);
INGOT_SLOT(OrtCompileApi, CreateModelCompilationOptionsFromSessionOptions, 1);
INGOT_SLOT(OrtCompileApi, ModelCompilationOptions_SetInputModelPath, 2);
INGOT_SLOT(OrtCompileApi, ModelCompilationOptions_SetInputModelFromBuffer, 3);
INGOT_SLOT(OrtCompileApi, ModelCompilationOptions_SetOutputModelPath, 4);
INGOT_SLOT(OrtCompileApi, ModelCompilationOptions_SetOutputModelExternalInitializersFile, 5);
INGOT_SLOT(OrtCompileApi, ModelCompilationOptions_SetOutputModelBuffer, 6);
INGOT_SLOT(OrtCompileApi, ModelCompilationOptions_SetEpContextEmbedMode, 7);
INGOT_SLOT(OrtCompileApi, CompileModel, 8);
INGOT_SLOT(OrtCompileApi, ModelCompilationOptions_SetFlags, 9);
INGOT_SLOT(OrtCompileApi, ModelCompilationOptions_SetEpContextBinaryInformation, 10);
INGOT_SLOT(OrtCompileApi, ModelCompilationOptions_SetWeightlessEnabled, 15);
INGOT_SLOT(OrtApi, CreateStatus, 0);
INGOT_SLOT(OrtApi, GetErrorCode, 1);
INGOT_SLOT(OrtApi, GetErrorMessage, 2);
INGOT_SLOT(OrtApi, CreateEnv, 3);
INGOT_SLOT(OrtApi, CreateSession, 7);
INGOT_SLOT(OrtApi, CreateSessionFromArray, 8);
INGOT_SLOT(OrtApi, Run, 9);
INGOT_SLOT(OrtApi, CreateSessionOptions, 10);
INGOT_SLOT(OrtApi, SetOptimizedModelFilePath, 11);
INGOT_SLOT(OrtApi, SetSessionExecutionMode, 13);
INGOT_SLOT(OrtApi, EnableProfiling, 14);
INGOT_SLOT(OrtApi, DisableMemPattern, 17);
INGOT_SLOT(OrtApi, DisableCpuMemArena, 19);
INGOT_SLOT(OrtApi, SetSessionLogSeverityLevel, 22);
INGOT_SLOT(OrtApi, SetSessionGraphOptimizationLevel, 23);
INGOT_SLOT(OrtApi, SetIntraOpNumThreads, 24);
INGOT_SLOT(OrtApi, SetInterOpNumThreads, 25);
INGOT_SLOT(OrtApi, RegisterCustomOpsLibrary, 29);
INGOT_SLOT(OrtApi, SessionGetInputCount, 30);
INGOT_SLOT(OrtApi, SessionGetOutputCount, 31);
INGOT_SLOT(OrtApi, SessionGetInputTypeInfo, 33);
INGOT_SLOT(OrtApi, SessionGetOutputTypeInfo, 34);
INGOT_SLOT(OrtApi, SessionGetInputName, 36);
INGOT_SLOT(OrtApi, SessionGetOutputName, 37);
INGOT_SLOT(OrtApi, CreateRunOptions, 39);
INGOT_SLOT(OrtApi, CreateTensorAsOrtValue, 48);
INGOT_SLOT(OrtApi, CreateTensorWithDataAsOrtValue, 49);
INGOT_SLOT(OrtApi, GetTensorMutableData, 51);
INGOT_SLOT(OrtApi, CastTypeInfoToTensorInfo, 55);
INGOT_SLOT(OrtApi, GetTensorElementType, 60);
INGOT_SLOT(OrtApi, GetDimensionsCount, 61);
INGOT_SLOT(OrtApi, GetDimensions, 62);
INGOT_SLOT(OrtApi, GetSymbolicDimensions, 63);
INGOT_SLOT(OrtApi, GetTensorTypeAndShape, 65);
INGOT_SLOT(OrtApi, CreateCpuMemoryInfo, 69);
INGOT_SLOT(OrtApi, MemoryInfoGetName, 71);
INGOT_SLOT(OrtApi, AllocatorFree, 76);
INGOT_SLOT(OrtApi, GetAllocatorWithDefaultOptions, 78);
INGOT_SLOT(OrtApi, AddFreeDimensionOverride, 79);
INGOT_SLOT(OrtApi, ReleaseEnv, 92);
INGOT_SLOT(OrtApi, ReleaseStatus, 93);
INGOT_SLOT(OrtApi, ReleaseMemoryInfo, 94);
INGOT_SLOT(OrtApi, ReleaseSession, 95);
INGOT_SLOT(OrtApi, ReleaseValue, 96);
INGOT_SLOT(OrtApi, ReleaseRunOptions, 97);
INGOT_SLOT(OrtApi, ReleaseTypeInfo, 98);
INGOT_SLOT(OrtApi, ReleaseTensorTypeAndShapeInfo, 99);
INGOT_SLOT(OrtApi, ReleaseSessionOptions, 100);
INGOT_SLOT(OrtApi, AddFreeDimensionOverrideByName, 124);
INGOT_SLOT(OrtApi, AddSessionConfigEntry, 130);
INGOT_SLOT(OrtApi, CreateAllocator, 131);
INGOT_SLOT(OrtApi, ReleaseAllocator, 132);
INGOT_SLOT(OrtApi, RunWithBinding, 133);
INGOT_SLOT(OrtApi, CreateIoBinding, 134);
INGOT_SLOT(OrtApi, ReleaseIoBinding, 135);
INGOT_SLOT(OrtApi, BindInput, 136);
INGOT_SLOT(OrtApi, BindOutput, 137);
INGOT_SLOT(OrtApi, BindOutputToDevice, 138);
INGOT_SLOT(OrtApi, AddRunConfigEntry, 165);
INGOT_SLOT(OrtApi, AddExternalInitializersFromFilesInMemory, 279);
INGOT_SLOT(OrtApi, GetCompileApi, 294);
INGOT_SLOT(OrtApi, GetKeyValue, 297);
INGOT_SLOT(OrtApi, GetKeyValuePairs, 298);
INGOT_SLOT(OrtApi, RegisterExecutionProviderLibrary, 301);
INGOT_SLOT(OrtApi, UnregisterExecutionProviderLibrary, 302);
INGOT_SLOT(OrtApi, GetEpDevices, 303);
INGOT_SLOT(OrtApi, SessionOptionsAppendExecutionProvider_V2, 304);
INGOT_SLOT(OrtApi, HardwareDevice_Type, 307);
INGOT_SLOT(OrtApi, HardwareDevice_VendorId, 308);
INGOT_SLOT(OrtApi, HardwareDevice_Vendor, 309);
INGOT_SLOT(OrtApi, HardwareDevice_DeviceId, 310);
INGOT_SLOT(OrtApi, HardwareDevice_Metadata, 311);
INGOT_SLOT(OrtApi, EpDevice_EpName, 312);
INGOT_SLOT(OrtApi, EpDevice_EpVendor, 313);
INGOT_SLOT(OrtApi, EpDevice_EpMetadata, 314);
INGOT_SLOT(OrtApi, EpDevice_EpOptions, 315);
INGOT_SLOT(OrtApi, EpDevice_Device, 316);
INGOT_SLOT(OrtApi, GetTensorSizeInBytes, 318);
INGOT_SLOT(OrtApi, SessionGetMemoryInfoForInputs, 380);
INGOT_SLOT(OrtApi, SessionGetMemoryInfoForOutputs, 381);
INGOT_SLOT(OrtApi, CopyTensors, 386);
#undef INGOT_SLOT
