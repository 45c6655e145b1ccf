// SPDX-License-Identifier: Apache-2.0
// The table of functions that ONNX Runtime gives to all clients. Slots were measured with the
// headers of release 1.30; their positions never change.
#pragma once

#include "plugins/onnxruntime/abi_plugin.h"

namespace ingot::ort {

/// All functions but getters of strings return a status, null for success. Unused slots have no
/// name.
struct OrtApi {
    OrtStatus* (*CreateStatus)(OrtErrorCode code, const char* message);
    OrtErrorCode (*GetErrorCode)(const OrtStatus* status);
    const char* (*GetErrorMessage)(const OrtStatus* status);
    Slots<46> unused_3;
    OrtStatus* (*CreateTensorWithDataAsOrtValue)(const OrtMemoryInfo* info, void* data,
                                                 size_t bytes, const int64_t* shape, size_t rank,
                                                 ONNXTensorElementDataType type, OrtValue** out);
    Slots<1> unused_50;
    OrtStatus* (*GetTensorMutableData)(OrtValue* value, void** out);
    Slots<3> unused_52;
    OrtStatus* (*CastTypeInfoToTensorInfo)(const OrtTypeInfo* info,
                                           const OrtTensorTypeAndShapeInfo** out);
    Slots<4> unused_56;
    OrtStatus* (*GetTensorElementType)(const OrtTensorTypeAndShapeInfo* info,
                                       ONNXTensorElementDataType* out);
    OrtStatus* (*GetDimensionsCount)(const OrtTensorTypeAndShapeInfo* info, size_t* out);
    OrtStatus* (*GetDimensions)(const OrtTensorTypeAndShapeInfo* info, int64_t* out, size_t count);
    OrtStatus* (*GetSymbolicDimensions)(const OrtTensorTypeAndShapeInfo* info, const char** out,
                                        size_t count);
    Slots<1> unused_64;
    OrtStatus* (*GetTensorTypeAndShape)(const OrtValue* value, OrtTensorTypeAndShapeInfo** out);
    Slots<12> unused_66;
    OrtStatus* (*GetAllocatorWithDefaultOptions)(OrtAllocator** out);
    Slots<9> unused_79;
    OrtStatus* (*KernelContext_GetInputCount)(const OrtKernelContext* context, size_t* out);
    OrtStatus* (*KernelContext_GetOutputCount)(const OrtKernelContext* context, size_t* out);
    OrtStatus* (*KernelContext_GetInput)(const OrtKernelContext* context, size_t index,
                                         const OrtValue** out);
    OrtStatus* (*KernelContext_GetOutput)(OrtKernelContext* context, size_t index,
                                          const int64_t* dims, size_t rank, OrtValue** out);
    Slots<1> unused_92;
    void (*ReleaseStatus)(OrtStatus* status);
    void (*ReleaseMemoryInfo)(OrtMemoryInfo* info);
    Slots<1> unused_95;
    void (*ReleaseValue)(OrtValue* value);
    Slots<2> unused_97;
    void (*ReleaseTensorTypeAndShapeInfo)(OrtTensorTypeAndShapeInfo* info);
    Slots<93> unused_100;
    OrtStatus* (*KernelContext_GetGPUComputeStream)(const OrtKernelContext* context, void** out);
    Slots<17> unused_194;
    OrtStatus* (*CreateOpAttr)(const char* name, const void* data, int length, OrtOpAttrType type,
                               OrtOpAttr** out);
    void (*ReleaseOpAttr)(OrtOpAttr* attribute);
    Slots<34> unused_213;
    OrtStatus* (*Logger_LogMessage)(const OrtLogger* logger, OrtLoggingLevel level,
                                    const char* message, const char* file, int line,
                                    const char* function);
    OrtStatus* (*Logger_GetLoggingSeverityLevel)(const OrtLogger* logger, OrtLoggingLevel* out);
    Slots<23> unused_249;
    OrtStatus* (*ReadOpAttr)(const OrtOpAttr* attribute, OrtOpAttrType type, void* data,
                             size_t bytes, size_t* out);
    Slots<16> unused_273;
    OrtStatus* (*GetValueInfoName)(const OrtValueInfo* info, const char** out);
    OrtStatus* (*GetValueInfoTypeInfo)(const OrtValueInfo* info, const OrtTypeInfo** out);
    const OrtModelEditorApi* (*GetModelEditorApi)();
    Slots<3> unused_292;
    void (*CreateKeyValuePairs)(OrtKeyValuePairs** out);
    void (*AddKeyValuePair)(OrtKeyValuePairs* pairs, const char* key, const char* value);
    const char* (*GetKeyValue)(const OrtKeyValuePairs* pairs, const char* key);
    void (*GetKeyValuePairs)(const OrtKeyValuePairs* pairs, const char* const** keys,
                             const char* const** values, size_t* count);
    Slots<1> unused_299;
    void (*ReleaseKeyValuePairs)(OrtKeyValuePairs* pairs);
    Slots<6> unused_301;
    OrtHardwareDeviceType (*HardwareDevice_Type)(const OrtHardwareDevice* device);
    uint32_t (*HardwareDevice_VendorId)(const OrtHardwareDevice* device);
    const char* (*HardwareDevice_Vendor)(const OrtHardwareDevice* device);
    uint32_t (*HardwareDevice_DeviceId)(const OrtHardwareDevice* device);
    const OrtKeyValuePairs* (*HardwareDevice_Metadata)(const OrtHardwareDevice* device);
    Slots<5> unused_312;
    const OrtEpApi* (*GetEpApi)();
    OrtStatus* (*GetTensorSizeInBytes)(const OrtValue* value, size_t* out);
    Slots<1> unused_319;
    OrtStatus* (*CreateMemoryInfo_V2)(const char* name, OrtMemoryInfoDeviceType type,
                                      uint32_t vendor, int32_t device, OrtDeviceMemoryType memory,
                                      size_t alignment, OrtAllocatorType allocator,
                                      OrtMemoryInfo** out);
    Slots<2> unused_321;
    OrtStatus* (*ValueInfo_GetValueProducer)(const OrtValueInfo* info, const OrtNode** node,
                                             size_t* output);
    OrtStatus* (*ValueInfo_GetValueNumConsumers)(const OrtValueInfo* info, size_t* out);
    OrtStatus* (*ValueInfo_GetValueConsumers)(const OrtValueInfo* info, const OrtNode** nodes,
                                              int64_t* inputs, size_t count);
    OrtStatus* (*ValueInfo_GetInitializerValue)(const OrtValueInfo* info, const OrtValue** out);
    OrtStatus* (*ValueInfo_GetExternalInitializerInfo)(const OrtValueInfo* info,
                                                       OrtExternalInitializerInfo** out);
    Slots<2> unused_328;
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
    Slots<1> unused_347;
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
    Slots<4> unused_374;
    OrtStatus* (*GetTensorData)(const OrtValue* value, const void** out);
    OrtStatus* (*GetSessionOptionsConfigEntries)(const OrtSessionOptions* options,
                                                 OrtKeyValuePairs** out);
    Slots<10> unused_380;
    bool (*TensorTypeAndShape_HasShape)(const OrtTensorTypeAndShapeInfo* info);
};
INGOT_SLOT(OrtApi, CreateStatus, 0);
INGOT_SLOT(OrtApi, GetErrorCode, 1);
INGOT_SLOT(OrtApi, GetErrorMessage, 2);
INGOT_SLOT(OrtApi, CreateTensorWithDataAsOrtValue, 49);
INGOT_SLOT(OrtApi, GetTensorMutableData, 51);
INGOT_SLOT(OrtApi, CastTypeInfoToTensorInfo, 55);
INGOT_SLOT(OrtApi, GetTensorElementType, 60);
INGOT_SLOT(OrtApi, GetDimensionsCount, 61);
INGOT_SLOT(OrtApi, GetDimensions, 62);
INGOT_SLOT(OrtApi, GetSymbolicDimensions, 63);
INGOT_SLOT(OrtApi, GetTensorTypeAndShape, 65);
INGOT_SLOT(OrtApi, GetAllocatorWithDefaultOptions, 78);
INGOT_SLOT(OrtApi, KernelContext_GetInputCount, 88);
INGOT_SLOT(OrtApi, KernelContext_GetOutputCount, 89);
INGOT_SLOT(OrtApi, KernelContext_GetInput, 90);
INGOT_SLOT(OrtApi, KernelContext_GetOutput, 91);
INGOT_SLOT(OrtApi, ReleaseStatus, 93);
INGOT_SLOT(OrtApi, ReleaseMemoryInfo, 94);
INGOT_SLOT(OrtApi, ReleaseValue, 96);
INGOT_SLOT(OrtApi, ReleaseTensorTypeAndShapeInfo, 99);
INGOT_SLOT(OrtApi, KernelContext_GetGPUComputeStream, 193);
INGOT_SLOT(OrtApi, CreateOpAttr, 211);
INGOT_SLOT(OrtApi, ReleaseOpAttr, 212);
INGOT_SLOT(OrtApi, Logger_LogMessage, 247);
INGOT_SLOT(OrtApi, Logger_GetLoggingSeverityLevel, 248);
INGOT_SLOT(OrtApi, ReadOpAttr, 272);
INGOT_SLOT(OrtApi, GetValueInfoName, 289);
INGOT_SLOT(OrtApi, GetValueInfoTypeInfo, 290);
INGOT_SLOT(OrtApi, GetModelEditorApi, 291);
INGOT_SLOT(OrtApi, CreateKeyValuePairs, 295);
INGOT_SLOT(OrtApi, AddKeyValuePair, 296);
INGOT_SLOT(OrtApi, GetKeyValue, 297);
INGOT_SLOT(OrtApi, GetKeyValuePairs, 298);
INGOT_SLOT(OrtApi, ReleaseKeyValuePairs, 300);
INGOT_SLOT(OrtApi, HardwareDevice_Type, 307);
INGOT_SLOT(OrtApi, HardwareDevice_VendorId, 308);
INGOT_SLOT(OrtApi, HardwareDevice_Vendor, 309);
INGOT_SLOT(OrtApi, HardwareDevice_DeviceId, 310);
INGOT_SLOT(OrtApi, HardwareDevice_Metadata, 311);
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
INGOT_SLOT(OrtApi, TensorTypeAndShape_HasShape, 390);

struct OrtApiBase {
    const OrtApi* (*GetApi)(uint32_t version);
    const char* (*GetVersionString)();
};

} // namespace ingot::ort
