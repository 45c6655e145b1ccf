// SPDX-License-Identifier: Apache-2.0
// The table of functions of onnxruntime_c_api.h, in the same layout: what programs call that run
// and compile models, and what the execution provider calls. Slots were measured with the headers
// of release 1.30; they never change place. Programs include ingot/onnxruntime_c.h instead of this
// file.
#pragma once

#include "ingot/onnxruntime_types.h"

#ifdef INGOT_ONNXRUNTIME_NAMESPACE
namespace INGOT_ONNXRUNTIME_NAMESPACE {
#else
extern "C" {
#endif

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

/// The functions. All but getters of texts and numbers return a status, null for success.
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
    void* unused_80[8];
    OrtStatus* (*KernelContext_GetInputCount)(const OrtKernelContext* context, size_t* out);
    OrtStatus* (*KernelContext_GetOutputCount)(const OrtKernelContext* context, size_t* out);
    OrtStatus* (*KernelContext_GetInput)(const OrtKernelContext* context, size_t index,
                                         const OrtValue** out);
    OrtStatus* (*KernelContext_GetOutput)(OrtKernelContext* context, size_t index,
                                          const int64_t* dims, size_t rank, OrtValue** out);
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
    void* unused_166[27];
    OrtStatus* (*KernelContext_GetGPUComputeStream)(const OrtKernelContext* context, void** out);
    void* unused_194[17];
    OrtStatus* (*CreateOpAttr)(const char* name, const void* data, int length, OrtOpAttrType type,
                               OrtOpAttr** out);
    void (*ReleaseOpAttr)(OrtOpAttr* attribute);
    void* unused_213[34];
    OrtStatus* (*Logger_LogMessage)(const OrtLogger* logger, OrtLoggingLevel level,
                                    const char* message, const char* file, int line,
                                    const char* function);
    OrtStatus* (*Logger_GetLoggingSeverityLevel)(const OrtLogger* logger, OrtLoggingLevel* out);
    void* unused_249[23];
    OrtStatus* (*ReadOpAttr)(const OrtOpAttr* attribute, OrtOpAttrType type, void* data,
                             size_t bytes, size_t* out);
    void* unused_273[6];
    OrtStatus* (*AddExternalInitializersFromFilesInMemory)(OrtSessionOptions* options,
                                                           const char* const* names,
                                                           char* const* data, const size_t* bytes,
                                                           size_t count);
    void* unused_280[9];
    OrtStatus* (*GetValueInfoName)(const OrtValueInfo* info, const char** out);
    OrtStatus* (*GetValueInfoTypeInfo)(const OrtValueInfo* info, const OrtTypeInfo** out);
    const OrtModelEditorApi* (*GetModelEditorApi)();
    void* unused_292[2];
    const OrtCompileApi* (*GetCompileApi)();
    void (*CreateKeyValuePairs)(OrtKeyValuePairs** out);
    void (*AddKeyValuePair)(OrtKeyValuePairs* pairs, const char* key, const char* value);
    const char* (*GetKeyValue)(const OrtKeyValuePairs* pairs, const char* key);
    void (*GetKeyValuePairs)(const OrtKeyValuePairs* pairs, const char* const** keys,
                             const char* const** values, size_t* count);
    void* unused_299[1];
    void (*ReleaseKeyValuePairs)(OrtKeyValuePairs* pairs);
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
    const OrtEpApi* (*GetEpApi)();
    OrtStatus* (*GetTensorSizeInBytes)(const OrtValue* value, size_t* out);
    void* unused_319[1];
    OrtStatus* (*CreateMemoryInfo_V2)(const char* name, OrtMemoryInfoDeviceType type,
                                      uint32_t vendor, int32_t device, OrtDeviceMemoryType memory,
                                      size_t alignment, OrtAllocatorType allocator,
                                      OrtMemoryInfo** out);
    void* unused_321[2];
    OrtStatus* (*ValueInfo_GetValueProducer)(const OrtValueInfo* info, const OrtNode** node,
                                             size_t* output);
    OrtStatus* (*ValueInfo_GetValueNumConsumers)(const OrtValueInfo* info, size_t* out);
    OrtStatus* (*ValueInfo_GetValueConsumers)(const OrtValueInfo* info, const OrtNode** nodes,
                                              int64_t* inputs, size_t count);
    OrtStatus* (*ValueInfo_GetInitializerValue)(const OrtValueInfo* info, const OrtValue** out);
    OrtStatus* (*ValueInfo_GetExternalInitializerInfo)(const OrtValueInfo* info,
                                                       OrtExternalInitializerInfo** out);
    void* unused_328[2];
    OrtStatus* (*ValueInfo_IsGraphOutput)(const OrtValueInfo* info, bool* out);
    OrtStatus* (*ValueInfo_IsConstantInitializer)(const OrtValueInfo* info, bool* out);
    OrtStatus* (*ValueInfo_IsFromOuterScope)(const OrtValueInfo* info, bool* out);
    OrtStatus* (*Graph_GetName)(const OrtGraph* graph, const char** out);
    OrtStatus* (*Graph_GetModelPath)(const OrtGraph* graph, const char** out);
    OrtStatus* (*Graph_GetOnnxIRVersion)(const OrtGraph* graph, int64_t* out);
    OrtStatus* (*Graph_GetNumOperatorSets)(const OrtGraph* graph, size_t* out);
    OrtStatus* (*Graph_GetOperatorSets)(const OrtGraph* graph, const char** domains,
                                        int64_t* versions, size_t count);
    OrtStatus* (*Graph_GetNumInputs)(const OrtGraph* graph, size_t* out);
    OrtStatus* (*Graph_GetInputs)(const OrtGraph* graph, const OrtValueInfo** out, size_t count);
    OrtStatus* (*Graph_GetNumOutputs)(const OrtGraph* graph, size_t* out);
    OrtStatus* (*Graph_GetOutputs)(const OrtGraph* graph, const OrtValueInfo** out, size_t count);
    OrtStatus* (*Graph_GetNumInitializers)(const OrtGraph* graph, size_t* out);
    OrtStatus* (*Graph_GetInitializers)(const OrtGraph* graph, const OrtValueInfo** out,
                                        size_t count);
    OrtStatus* (*Graph_GetNumNodes)(const OrtGraph* graph, size_t* out);
    OrtStatus* (*Graph_GetNodes)(const OrtGraph* graph, const OrtNode** out, size_t count);
    OrtStatus* (*Graph_GetParentNode)(const OrtGraph* graph, const OrtNode** out);
    void* unused_347[1];
    OrtStatus* (*Node_GetId)(const OrtNode* node, size_t* out);
    OrtStatus* (*Node_GetName)(const OrtNode* node, const char** out);
    OrtStatus* (*Node_GetOperatorType)(const OrtNode* node, const char** out);
    OrtStatus* (*Node_GetDomain)(const OrtNode* node, const char** out);
    OrtStatus* (*Node_GetSinceVersion)(const OrtNode* node, int* out);
    OrtStatus* (*Node_GetNumInputs)(const OrtNode* node, size_t* out);
    OrtStatus* (*Node_GetInputs)(const OrtNode* node, const OrtValueInfo** out, size_t count);
    OrtStatus* (*Node_GetNumOutputs)(const OrtNode* node, size_t* out);
    OrtStatus* (*Node_GetOutputs)(const OrtNode* node, const OrtValueInfo** out, size_t count);
    OrtStatus* (*Node_GetNumImplicitInputs)(const OrtNode* node, size_t* out);
    OrtStatus* (*Node_GetImplicitInputs)(const OrtNode* node, const OrtValueInfo** out,
                                         size_t count);
    OrtStatus* (*Node_GetNumAttributes)(const OrtNode* node, size_t* out);
    OrtStatus* (*Node_GetAttributes)(const OrtNode* node, const OrtOpAttr** out, size_t count);
    OrtStatus* (*Node_GetAttributeByName)(const OrtNode* node, const char* name,
                                          const OrtOpAttr** out);
    OrtStatus* (*OpAttr_GetTensorAttributeAsOrtValue)(const OrtOpAttr* attribute, OrtValue** out);
    OrtStatus* (*OpAttr_GetType)(const OrtOpAttr* attribute, OrtOpAttrType* out);
    OrtStatus* (*OpAttr_GetName)(const OrtOpAttr* attribute, const char** out);
    OrtStatus* (*Node_GetNumSubgraphs)(const OrtNode* node, size_t* out);
    OrtStatus* (*Node_GetSubgraphs)(const OrtNode* node, const OrtGraph** graphs, size_t count,
                                    const char** attribute_names);
    OrtStatus* (*Node_GetGraph)(const OrtNode* node, const OrtGraph** out);
    OrtStatus* (*Node_GetEpName)(const OrtNode* node, const char** out);
    void (*ReleaseExternalInitializerInfo)(OrtExternalInitializerInfo* info);
    const char* (*ExternalInitializerInfo_GetFilePath)(const OrtExternalInitializerInfo* info);
    int64_t (*ExternalInitializerInfo_GetFileOffset)(const OrtExternalInitializerInfo* info);
    size_t (*ExternalInitializerInfo_GetByteSize)(const OrtExternalInitializerInfo* info);
    const char* (*GetRunConfigEntry)(const OrtRunOptions* options, const char* key);
    void* unused_374[4];
    OrtStatus* (*GetTensorData)(const OrtValue* value, const void** out);
    OrtStatus* (*GetSessionOptionsConfigEntries)(const OrtSessionOptions* options,
                                                 OrtKeyValuePairs** out);
    OrtStatus* (*SessionGetMemoryInfoForInputs)(const OrtSession* session,
                                                const OrtMemoryInfo** out, size_t count);
    OrtStatus* (*SessionGetMemoryInfoForOutputs)(const OrtSession* session,
                                                 const OrtMemoryInfo** out, size_t count);
    void* unused_382[4];
    OrtStatus* (*CopyTensors)(const OrtEnv* env, const OrtValue* const* from, OrtValue* const* to,
                              void* stream, size_t count);
    void* unused_387[3];
    bool (*TensorTypeAndShape_HasShape)(const OrtTensorTypeAndShapeInfo* info);
};
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
INGOT_SLOT(OrtApi, KernelContext_GetInputCount, 88);
INGOT_SLOT(OrtApi, KernelContext_GetOutputCount, 89);
INGOT_SLOT(OrtApi, KernelContext_GetInput, 90);
INGOT_SLOT(OrtApi, KernelContext_GetOutput, 91);
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
INGOT_SLOT(OrtApi, KernelContext_GetGPUComputeStream, 193);
INGOT_SLOT(OrtApi, CreateOpAttr, 211);
INGOT_SLOT(OrtApi, ReleaseOpAttr, 212);
INGOT_SLOT(OrtApi, Logger_LogMessage, 247);
INGOT_SLOT(OrtApi, Logger_GetLoggingSeverityLevel, 248);
INGOT_SLOT(OrtApi, ReadOpAttr, 272);
INGOT_SLOT(OrtApi, AddExternalInitializersFromFilesInMemory, 279);
INGOT_SLOT(OrtApi, GetValueInfoName, 289);
INGOT_SLOT(OrtApi, GetValueInfoTypeInfo, 290);
INGOT_SLOT(OrtApi, GetModelEditorApi, 291);
INGOT_SLOT(OrtApi, GetCompileApi, 294);
INGOT_SLOT(OrtApi, CreateKeyValuePairs, 295);
INGOT_SLOT(OrtApi, AddKeyValuePair, 296);
INGOT_SLOT(OrtApi, GetKeyValue, 297);
INGOT_SLOT(OrtApi, GetKeyValuePairs, 298);
INGOT_SLOT(OrtApi, ReleaseKeyValuePairs, 300);
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
INGOT_SLOT(OrtApi, GetEpApi, 317);
INGOT_SLOT(OrtApi, GetTensorSizeInBytes, 318);
INGOT_SLOT(OrtApi, CreateMemoryInfo_V2, 320);
INGOT_SLOT(OrtApi, ValueInfo_GetValueProducer, 323);
INGOT_SLOT(OrtApi, ValueInfo_GetValueNumConsumers, 324);
INGOT_SLOT(OrtApi, ValueInfo_GetValueConsumers, 325);
INGOT_SLOT(OrtApi, ValueInfo_GetInitializerValue, 326);
INGOT_SLOT(OrtApi, ValueInfo_GetExternalInitializerInfo, 327);
INGOT_SLOT(OrtApi, ValueInfo_IsGraphOutput, 330);
INGOT_SLOT(OrtApi, ValueInfo_IsConstantInitializer, 331);
INGOT_SLOT(OrtApi, ValueInfo_IsFromOuterScope, 332);
INGOT_SLOT(OrtApi, Graph_GetName, 333);
INGOT_SLOT(OrtApi, Graph_GetModelPath, 334);
INGOT_SLOT(OrtApi, Graph_GetOnnxIRVersion, 335);
INGOT_SLOT(OrtApi, Graph_GetNumOperatorSets, 336);
INGOT_SLOT(OrtApi, Graph_GetOperatorSets, 337);
INGOT_SLOT(OrtApi, Graph_GetNumInputs, 338);
INGOT_SLOT(OrtApi, Graph_GetInputs, 339);
INGOT_SLOT(OrtApi, Graph_GetNumOutputs, 340);
INGOT_SLOT(OrtApi, Graph_GetOutputs, 341);
INGOT_SLOT(OrtApi, Graph_GetNumInitializers, 342);
INGOT_SLOT(OrtApi, Graph_GetInitializers, 343);
INGOT_SLOT(OrtApi, Graph_GetNumNodes, 344);
INGOT_SLOT(OrtApi, Graph_GetNodes, 345);
INGOT_SLOT(OrtApi, Graph_GetParentNode, 346);
INGOT_SLOT(OrtApi, Node_GetId, 348);
INGOT_SLOT(OrtApi, Node_GetName, 349);
INGOT_SLOT(OrtApi, Node_GetOperatorType, 350);
INGOT_SLOT(OrtApi, Node_GetDomain, 351);
INGOT_SLOT(OrtApi, Node_GetSinceVersion, 352);
INGOT_SLOT(OrtApi, Node_GetNumInputs, 353);
INGOT_SLOT(OrtApi, Node_GetInputs, 354);
INGOT_SLOT(OrtApi, Node_GetNumOutputs, 355);
INGOT_SLOT(OrtApi, Node_GetOutputs, 356);
INGOT_SLOT(OrtApi, Node_GetNumImplicitInputs, 357);
INGOT_SLOT(OrtApi, Node_GetImplicitInputs, 358);
INGOT_SLOT(OrtApi, Node_GetNumAttributes, 359);
INGOT_SLOT(OrtApi, Node_GetAttributes, 360);
INGOT_SLOT(OrtApi, Node_GetAttributeByName, 361);
INGOT_SLOT(OrtApi, OpAttr_GetTensorAttributeAsOrtValue, 362);
INGOT_SLOT(OrtApi, OpAttr_GetType, 363);
INGOT_SLOT(OrtApi, OpAttr_GetName, 364);
INGOT_SLOT(OrtApi, Node_GetNumSubgraphs, 365);
INGOT_SLOT(OrtApi, Node_GetSubgraphs, 366);
INGOT_SLOT(OrtApi, Node_GetGraph, 367);
INGOT_SLOT(OrtApi, Node_GetEpName, 368);
INGOT_SLOT(OrtApi, ReleaseExternalInitializerInfo, 369);
INGOT_SLOT(OrtApi, ExternalInitializerInfo_GetFilePath, 370);
INGOT_SLOT(OrtApi, ExternalInitializerInfo_GetFileOffset, 371);
INGOT_SLOT(OrtApi, ExternalInitializerInfo_GetByteSize, 372);
INGOT_SLOT(OrtApi, GetRunConfigEntry, 373);
INGOT_SLOT(OrtApi, GetTensorData, 378);
INGOT_SLOT(OrtApi, GetSessionOptionsConfigEntries, 379);
INGOT_SLOT(OrtApi, SessionGetMemoryInfoForInputs, 380);
INGOT_SLOT(OrtApi, SessionGetMemoryInfoForOutputs, 381);
INGOT_SLOT(OrtApi, CopyTensors, 386);
INGOT_SLOT(OrtApi, TensorTypeAndShape_HasShape, 390);

/// The result of OrtGetApiBase, the library's only exported function of interest.
struct OrtApiBase {
    const OrtApi* (*GetApi)(uint32_t version);
    const char* (*GetVersionString)();
};

} // namespace or linkage
