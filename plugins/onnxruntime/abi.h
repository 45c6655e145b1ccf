// SPDX-License-Identifier: Apache-2.0
// The tables that plugins get from ONNX Runtime (OrtEpApi, OrtModelEditorApi) and those that they
// fill in. A slot of release 1.N may be called, and is called, from API version N on.
#pragma once

#include "plugins/onnxruntime/abi_types.h"

namespace ingot::ort {

/// Unused words of a table.
template <size_t count>
struct Slots {
    void* words[count];
};

struct OrtEpFactory;
struct OrtEp;
struct OrtNodeComputeInfo;
struct OrtDataTransferImpl;
struct OrtSyncStreamImpl;
struct OrtSyncNotificationImpl;
struct OrtEpProfilerImpl;
struct OrtKernelImpl;

using OrtKernelCreateFunc = OrtStatus* (*)(void* state, const OrtKernelInfo* info,
                                           OrtKernelImpl** out);
using OrtWriteEpContextData = OrtStatus* (*)(void* state, const char* name, const void* data,
                                             size_t bytes);
using OrtReadEpContextData = OrtStatus* (*)(void* state, const char* name, OrtAllocator* allocator,
                                            void** data, size_t* bytes);

struct OrtNodeFusionOptions {
    uint32_t ort_version_supported;
    bool drop_constant_initializers; ///< The plugin keeps its own
};

/// Functions for plugins. Unused slots have no name.
struct OrtEpApi {
    OrtStatus* (*CreateEpDevice)(OrtEpFactory* factory, const OrtHardwareDevice* device,
                                 const OrtKeyValuePairs* metadata, const OrtKeyValuePairs* options,
                                 OrtEpDevice** out);
    void (*ReleaseEpDevice)(OrtEpDevice* device);
    OrtStatus* (*EpGraphSupportInfo_AddNodesToFuse)(OrtEpGraphSupportInfo* info,
                                                    const OrtNode* const* nodes, size_t count,
                                                    const OrtNodeFusionOptions* options);
    Slots<1> unused_3;
    const char* (*NodeComputeContext_NodeName)(const OrtNodeComputeContext* context);
    OrtStatus* (*EpDevice_AddAllocatorInfo)(OrtEpDevice* device, const OrtMemoryInfo* info);
    const OrtMemoryDevice* (*MemoryInfo_GetMemoryDevice)(const OrtMemoryInfo* info);
    const OrtMemoryDevice* (*Value_GetMemoryDevice)(const OrtValue* value);
    Slots<1> unused_8;
    OrtMemoryInfoDeviceType (*MemoryDevice_GetDeviceType)(const OrtMemoryDevice* device);
    OrtDeviceMemoryType (*MemoryDevice_GetMemoryType)(const OrtMemoryDevice* device);
    uint32_t (*MemoryDevice_GetVendorId)(const OrtMemoryDevice* device);
    uint32_t (*MemoryDevice_GetDeviceId)(const OrtMemoryDevice* device);
    const OrtSyncStreamImpl* (*SyncStream_GetImpl)(const OrtSyncStream* stream);
    Slots<2> unused_14;
    OrtStatus* (*CreateHardwareDevice)(OrtHardwareDeviceType type, uint32_t vendor, uint32_t device,
                                       const char* vendor_name, const OrtKeyValuePairs* metadata,
                                       OrtHardwareDevice** out);
    void (*ReleaseHardwareDevice)(OrtHardwareDevice* device);
    OrtStatus* (*CreateKernelRegistry)(OrtKernelRegistry** out);
    void (*ReleaseKernelRegistry)(OrtKernelRegistry* registry);
    OrtStatus* (*KernelRegistry_AddKernel)(OrtKernelRegistry* registry,
                                           const OrtKernelDef* definition,
                                           OrtKernelCreateFunc create, void* state);
    OrtStatus* (*CreateKernelDefBuilder)(OrtKernelDefBuilder** out);
    void (*ReleaseKernelDefBuilder)(OrtKernelDefBuilder* builder);
    OrtStatus* (*KernelDefBuilder_SetOperatorType)(OrtKernelDefBuilder* builder, const char* type);
    OrtStatus* (*KernelDefBuilder_SetDomain)(OrtKernelDefBuilder* builder, const char* domain);
    OrtStatus* (*KernelDefBuilder_SetSinceVersion)(OrtKernelDefBuilder* builder, int first,
                                                   int last);
    OrtStatus* (*KernelDefBuilder_SetExecutionProvider)(OrtKernelDefBuilder* builder,
                                                        const char* name);
    OrtStatus* (*KernelDefBuilder_SetInputMemType)(OrtKernelDefBuilder* builder, size_t input,
                                                   OrtMemType type);
    OrtStatus* (*KernelDefBuilder_SetOutputMemType)(OrtKernelDefBuilder* builder, size_t output,
                                                    OrtMemType type);
    OrtStatus* (*KernelDefBuilder_AddTypeConstraint)(OrtKernelDefBuilder* builder, const char* name,
                                                     const OrtDataType* const* types, size_t count);
    Slots<2> unused_30;
    OrtStatus* (*KernelDefBuilder_Build)(OrtKernelDefBuilder* builder, OrtKernelDef** out);
    void (*ReleaseKernelDef)(OrtKernelDef* definition);
    Slots<6> unused_34;
    OrtStatus* (*GetTensorDataType)(ONNXTensorElementDataType type, const OrtDataType** out);
    Slots<2> unused_41;
    OrtStatus* (*KernelInfo_GetEp)(const OrtKernelInfo* info, const OrtEp** out);
    OrtStatus* (*DeviceEpIncompatibilityDetails_SetDetails)(
        OrtDeviceEpIncompatibilityDetails* details, uint32_t reasons, int32_t code,
        const char* notes);
    Slots<4> unused_45;
    OrtStatus* (*GetEnvConfigEntries)(OrtKeyValuePairs** out);
    Slots<15> unused_50;
    OrtStatus* (*CreateProfilingEvent)(int32_t category, int32_t process, int32_t thread,
                                       const char* name, int64_t time_us, int64_t duration_us,
                                       const char* const* keys, const char* const* values,
                                       size_t count, OrtProfilingEvent** out);
    void (*ReleaseProfilingEvent)(OrtProfilingEvent* event);
    Slots<5> unused_67;
    OrtStatus* (*ProfilingEventsContainer_AddEvents)(OrtProfilingEventsContainer* container,
                                                     const OrtProfilingEvent* const* events,
                                                     size_t count);
    OrtStatus* (*SessionOptionsGetWeightlessSourceModelBuffer)(const OrtSessionOptions* options,
                                                               const void** data, size_t* bytes);
    OrtStatus* (*SessionOptions_GetEpContextConfig)(const OrtSessionOptions* options,
                                                    OrtEpContextConfig** out);
    void (*ReleaseEpContextConfig)(OrtEpContextConfig* config);
    OrtStatus* (*EpContextConfig_GetEpContextDataReadFunc)(const OrtEpContextConfig* config,
                                                           OrtReadEpContextData* function,
                                                           void** state);
    OrtStatus* (*EpContextConfig_GetEpContextDataWriteFunc)(const OrtEpContextConfig* config,
                                                            OrtWriteEpContextData* function,
                                                            void** state);
};
INGOT_SLOT(OrtEpApi, CreateEpDevice, 0);
INGOT_SLOT(OrtEpApi, ReleaseEpDevice, 1);
INGOT_SLOT(OrtEpApi, EpGraphSupportInfo_AddNodesToFuse, 2);
INGOT_SLOT(OrtEpApi, NodeComputeContext_NodeName, 4);
INGOT_SLOT(OrtEpApi, EpDevice_AddAllocatorInfo, 5);
INGOT_SLOT(OrtEpApi, MemoryInfo_GetMemoryDevice, 6);
INGOT_SLOT(OrtEpApi, Value_GetMemoryDevice, 7);
INGOT_SLOT(OrtEpApi, MemoryDevice_GetDeviceType, 9);
INGOT_SLOT(OrtEpApi, MemoryDevice_GetMemoryType, 10);
INGOT_SLOT(OrtEpApi, MemoryDevice_GetVendorId, 11);
INGOT_SLOT(OrtEpApi, MemoryDevice_GetDeviceId, 12);
INGOT_SLOT(OrtEpApi, SyncStream_GetImpl, 13);
INGOT_SLOT(OrtEpApi, CreateHardwareDevice, 16);
INGOT_SLOT(OrtEpApi, ReleaseHardwareDevice, 17);
INGOT_SLOT(OrtEpApi, CreateKernelRegistry, 18);
INGOT_SLOT(OrtEpApi, ReleaseKernelRegistry, 19);
INGOT_SLOT(OrtEpApi, KernelRegistry_AddKernel, 20);
INGOT_SLOT(OrtEpApi, CreateKernelDefBuilder, 21);
INGOT_SLOT(OrtEpApi, ReleaseKernelDefBuilder, 22);
INGOT_SLOT(OrtEpApi, KernelDefBuilder_SetOperatorType, 23);
INGOT_SLOT(OrtEpApi, KernelDefBuilder_SetDomain, 24);
INGOT_SLOT(OrtEpApi, KernelDefBuilder_SetSinceVersion, 25);
INGOT_SLOT(OrtEpApi, KernelDefBuilder_SetExecutionProvider, 26);
INGOT_SLOT(OrtEpApi, KernelDefBuilder_SetInputMemType, 27);
INGOT_SLOT(OrtEpApi, KernelDefBuilder_SetOutputMemType, 28);
INGOT_SLOT(OrtEpApi, KernelDefBuilder_AddTypeConstraint, 29);
INGOT_SLOT(OrtEpApi, KernelDefBuilder_Build, 32);
INGOT_SLOT(OrtEpApi, ReleaseKernelDef, 33);
INGOT_SLOT(OrtEpApi, GetTensorDataType, 40);
INGOT_SLOT(OrtEpApi, KernelInfo_GetEp, 43);
INGOT_SLOT(OrtEpApi, DeviceEpIncompatibilityDetails_SetDetails, 44);
INGOT_SLOT(OrtEpApi, GetEnvConfigEntries, 49);
INGOT_SLOT(OrtEpApi, CreateProfilingEvent, 65);
INGOT_SLOT(OrtEpApi, ReleaseProfilingEvent, 66);
INGOT_SLOT(OrtEpApi, ProfilingEventsContainer_AddEvents, 72);
INGOT_SLOT(OrtEpApi, SessionOptionsGetWeightlessSourceModelBuffer, 73);
INGOT_SLOT(OrtEpApi, SessionOptions_GetEpContextConfig, 74);
INGOT_SLOT(OrtEpApi, ReleaseEpContextConfig, 75);
INGOT_SLOT(OrtEpApi, EpContextConfig_GetEpContextDataReadFunc, 76);
INGOT_SLOT(OrtEpApi, EpContextConfig_GetEpContextDataWriteFunc, 77);

/// Makes nodes. Unused slots have no name.
struct OrtModelEditorApi {
    Slots<6> unused_0;
    OrtStatus* (*CreateNode)(const char* type, const char* domain, const char* name,
                             const char* const* inputs, size_t input_count,
                             const char* const* outputs, size_t output_count,
                             OrtOpAttr** attributes, size_t attribute_count, OrtNode** out);
};
INGOT_SLOT(OrtModelEditorApi, CreateNode, 6);

/// Makes execution providers for devices.
struct OrtEpFactory {
    uint32_t ort_version_supported = 0;
    const char* (*GetName)(const OrtEpFactory* self) = nullptr;
    const char* (*GetVendor)(const OrtEpFactory* self) = nullptr;
    OrtStatus* (*GetSupportedDevices)(OrtEpFactory* self, const OrtHardwareDevice* const* devices,
                                      size_t count, OrtEpDevice** out, size_t room,
                                      size_t* made) = nullptr;
    OrtStatus* (*CreateEp)(OrtEpFactory* self, const OrtHardwareDevice* const* devices,
                           const OrtKeyValuePairs* const* metadata, size_t count,
                           const OrtSessionOptions* options, const OrtLogger* logger,
                           OrtEp** out) = nullptr;
    void (*ReleaseEp)(OrtEpFactory* self, OrtEp* ep) = nullptr;
    uint32_t (*GetVendorId)(const OrtEpFactory* self) = nullptr;
    const char* (*GetVersion)(const OrtEpFactory* self) = nullptr;
    OrtStatus* (*ValidateCompiledModelCompatibilityInfo)(
        OrtEpFactory* self, const OrtHardwareDevice* const* devices, size_t count, const char* info,
        OrtCompiledModelCompatibility* out) = nullptr;
    OrtStatus* (*CreateAllocator)(OrtEpFactory* self, const OrtMemoryInfo* info,
                                  const OrtKeyValuePairs* options, OrtAllocator** out) = nullptr;
    void (*ReleaseAllocator)(OrtEpFactory* self, OrtAllocator* allocator) = nullptr;
    OrtStatus* (*CreateDataTransfer)(OrtEpFactory* self, OrtDataTransferImpl** out) = nullptr;
    bool (*IsStreamAware)(const OrtEpFactory* self) = nullptr;
    OrtStatus* (*CreateSyncStreamForDevice)(OrtEpFactory* self, const OrtMemoryDevice* device,
                                            const OrtKeyValuePairs* options,
                                            OrtSyncStreamImpl** out) = nullptr;
    OrtStatus* (*GetHardwareDeviceIncompatibilityDetails)(
        OrtEpFactory* self, const OrtHardwareDevice* device,
        OrtDeviceEpIncompatibilityDetails* details) = nullptr;
    Slots<6> unused_15{};
};
INGOT_SLOT(OrtEpFactory, GetName, 1);
INGOT_SLOT(OrtEpFactory, GetVendor, 2);
INGOT_SLOT(OrtEpFactory, GetSupportedDevices, 3);
INGOT_SLOT(OrtEpFactory, CreateEp, 4);
INGOT_SLOT(OrtEpFactory, ReleaseEp, 5);
INGOT_SLOT(OrtEpFactory, GetVendorId, 6);
INGOT_SLOT(OrtEpFactory, GetVersion, 7);
INGOT_SLOT(OrtEpFactory, ValidateCompiledModelCompatibilityInfo, 8);
INGOT_SLOT(OrtEpFactory, CreateAllocator, 9);
INGOT_SLOT(OrtEpFactory, ReleaseAllocator, 10);
INGOT_SLOT(OrtEpFactory, CreateDataTransfer, 11);
INGOT_SLOT(OrtEpFactory, IsStreamAware, 12);
INGOT_SLOT(OrtEpFactory, CreateSyncStreamForDevice, 13);
INGOT_SLOT(OrtEpFactory, GetHardwareDeviceIncompatibilityDetails, 14);
static_assert(sizeof(OrtEpFactory) == 21 * sizeof(void*));

/// The execution provider of one session.
struct OrtEp {
    uint32_t ort_version_supported = 0;
    const char* (*GetName)(const OrtEp* self) = nullptr;
    OrtStatus* (*GetCapability)(OrtEp* self, const OrtGraph* graph,
                                OrtEpGraphSupportInfo* info) = nullptr;
    OrtStatus* (*Compile)(OrtEp* self, const OrtGraph** graphs, const OrtNode** fused_nodes,
                          size_t count, OrtNodeComputeInfo** infos,
                          OrtNode** context_nodes) = nullptr;
    void (*ReleaseNodeComputeInfos)(OrtEp* self, OrtNodeComputeInfo** infos,
                                    size_t count) = nullptr;
    Slots<2> unused_5{};
    OrtStatus* (*SetDynamicOptions)(OrtEp* self, const char* const* keys, const char* const* values,
                                    size_t count) = nullptr;
    OrtStatus* (*OnRunStart)(OrtEp* self, const OrtRunOptions* options) = nullptr;
    OrtStatus* (*OnRunEnd)(OrtEp* self, const OrtRunOptions* options, bool synchronize) = nullptr;
    OrtStatus* (*CreateAllocator)(OrtEp* self, const OrtMemoryInfo* info,
                                  OrtAllocator** out) = nullptr;
    OrtStatus* (*CreateSyncStreamForDevice)(OrtEp* self, const OrtMemoryDevice* device,
                                            OrtSyncStreamImpl** out) = nullptr;
    const char* (*GetCompiledModelCompatibilityInfo)(OrtEp* self, const OrtGraph* graph) = nullptr;
    OrtStatus* (*GetKernelRegistry)(OrtEp* self, const OrtKernelRegistry** out) = nullptr;
    OrtStatus* (*IsConcurrentRunSupported)(OrtEp* self, bool* out) = nullptr;
    OrtStatus* (*Sync)(OrtEp* self) = nullptr;
    OrtStatus* (*CreateProfiler)(OrtEp* self, OrtEpProfilerImpl** out) = nullptr;
    bool (*IsGraphCaptureEnabled)(const OrtEp* self) = nullptr;
    bool (*IsGraphCaptured)(const OrtEp* self, int graph) = nullptr;
    OrtStatus* (*ReplayGraph)(OrtEp* self, int graph) = nullptr;
    int32_t (*GetGraphCaptureNodeAssignmentPolicy)(const OrtEp* self) = nullptr;
    Slots<1> unused_21{};
    OrtStatus* (*OnSessionInitializationEnd)(OrtEp* self) = nullptr;
    OrtStatus* (*GetDefaultMemoryDevice)(const OrtEp* self, const OrtMemoryDevice** out) = nullptr;
    OrtStatus* (*ReleaseCapturedGraph)(OrtEp* self, int graph) = nullptr;
    OrtStatus* (*GetWeightlessSupport)(const OrtEp* self, OrtWeightlessSupport* out) = nullptr;
    OrtStatus* (*GetEpContextDataCallbackSupport)(const OrtEp* self, uint32_t* flags) = nullptr;
};
INGOT_SLOT(OrtEp, GetName, 1);
INGOT_SLOT(OrtEp, GetCapability, 2);
INGOT_SLOT(OrtEp, Compile, 3);
INGOT_SLOT(OrtEp, ReleaseNodeComputeInfos, 4);
INGOT_SLOT(OrtEp, SetDynamicOptions, 7);
INGOT_SLOT(OrtEp, OnRunStart, 8);
INGOT_SLOT(OrtEp, OnRunEnd, 9);
INGOT_SLOT(OrtEp, CreateAllocator, 10);
INGOT_SLOT(OrtEp, CreateSyncStreamForDevice, 11);
INGOT_SLOT(OrtEp, GetCompiledModelCompatibilityInfo, 12);
INGOT_SLOT(OrtEp, GetKernelRegistry, 13);
INGOT_SLOT(OrtEp, IsConcurrentRunSupported, 14);
INGOT_SLOT(OrtEp, Sync, 15);
INGOT_SLOT(OrtEp, CreateProfiler, 16);
INGOT_SLOT(OrtEp, IsGraphCaptureEnabled, 17);
INGOT_SLOT(OrtEp, IsGraphCaptured, 18);
INGOT_SLOT(OrtEp, ReplayGraph, 19);
INGOT_SLOT(OrtEp, GetGraphCaptureNodeAssignmentPolicy, 20);
INGOT_SLOT(OrtEp, OnSessionInitializationEnd, 22);
INGOT_SLOT(OrtEp, GetDefaultMemoryDevice, 23);
INGOT_SLOT(OrtEp, ReleaseCapturedGraph, 24);
INGOT_SLOT(OrtEp, GetWeightlessSupport, 25);
INGOT_SLOT(OrtEp, GetEpContextDataCallbackSupport, 26);
static_assert(sizeof(OrtEp) == 27 * sizeof(void*));

/// Runs one fused node.
struct OrtNodeComputeInfo {
    uint32_t ort_version_supported = 0;
    OrtStatus* (*CreateState)(OrtNodeComputeInfo* self, OrtNodeComputeContext* context,
                              void** state) = nullptr;
    OrtStatus* (*Compute)(OrtNodeComputeInfo* self, void* state,
                          OrtKernelContext* context) = nullptr;
    void (*ReleaseState)(OrtNodeComputeInfo* self, void* state) = nullptr;
};
INGOT_SLOT(OrtNodeComputeInfo, CreateState, 1);
INGOT_SLOT(OrtNodeComputeInfo, Compute, 2);
INGOT_SLOT(OrtNodeComputeInfo, ReleaseState, 3);
static_assert(sizeof(OrtNodeComputeInfo) == 4 * sizeof(void*));

/// Memory of one kind.
struct OrtAllocator {
    uint32_t version = 0;
    void* (*Alloc)(OrtAllocator* self, size_t bytes) = nullptr;
    void (*Free)(OrtAllocator* self, void* memory) = nullptr;
    const OrtMemoryInfo* (*Info)(const OrtAllocator* self) = nullptr;
    void* (*Reserve)(OrtAllocator* self, size_t bytes) = nullptr;
    OrtStatus* (*GetStats)(const OrtAllocator* self, OrtKeyValuePairs** out) = nullptr;
    void* (*AllocOnStream)(OrtAllocator* self, size_t bytes, OrtSyncStream* stream) = nullptr;
    OrtStatus* (*Shrink)(OrtAllocator* self) = nullptr;
};
INGOT_SLOT(OrtAllocator, Alloc, 1);
INGOT_SLOT(OrtAllocator, Free, 2);
INGOT_SLOT(OrtAllocator, Info, 3);
INGOT_SLOT(OrtAllocator, Reserve, 4);
INGOT_SLOT(OrtAllocator, GetStats, 5);
INGOT_SLOT(OrtAllocator, AllocOnStream, 6);
INGOT_SLOT(OrtAllocator, Shrink, 7);
static_assert(sizeof(OrtAllocator) == 8 * sizeof(void*));

/// Copies between memories.
struct OrtDataTransferImpl {
    uint32_t ort_version_supported = 0;
    void (*Release)(OrtDataTransferImpl* self) = nullptr;
    bool (*CanCopy)(const OrtDataTransferImpl* self, const OrtMemoryDevice* source,
                    const OrtMemoryDevice* target) = nullptr;
    OrtStatus* (*CopyTensors)(OrtDataTransferImpl* self, const OrtValue** sources,
                              OrtValue** targets, OrtSyncStream** streams, size_t count) = nullptr;
};
INGOT_SLOT(OrtDataTransferImpl, Release, 1);
INGOT_SLOT(OrtDataTransferImpl, CanCopy, 2);
INGOT_SLOT(OrtDataTransferImpl, CopyTensors, 3);
static_assert(sizeof(OrtDataTransferImpl) == 4 * sizeof(void*));

/// A stream.
struct OrtSyncStreamImpl {
    uint32_t ort_version_supported = 0;
    void (*Release)(OrtSyncStreamImpl* self) = nullptr;
    void* (*GetHandle)(OrtSyncStreamImpl* self) = nullptr;
    OrtStatus* (*CreateNotification)(OrtSyncStreamImpl* self,
                                     OrtSyncNotificationImpl** out) = nullptr;
    OrtStatus* (*Flush)(OrtSyncStreamImpl* self) = nullptr;
    OrtStatus* (*OnSessionRunEnd)(OrtSyncStreamImpl* self) = nullptr;
};
INGOT_SLOT(OrtSyncStreamImpl, Release, 1);
INGOT_SLOT(OrtSyncStreamImpl, GetHandle, 2);
INGOT_SLOT(OrtSyncStreamImpl, CreateNotification, 3);
INGOT_SLOT(OrtSyncStreamImpl, Flush, 4);
INGOT_SLOT(OrtSyncStreamImpl, OnSessionRunEnd, 5);
static_assert(sizeof(OrtSyncStreamImpl) == 6 * sizeof(void*));

/// A point in a stream that other streams wait for.
struct OrtSyncNotificationImpl {
    uint32_t ort_version_supported = 0;
    void (*Release)(OrtSyncNotificationImpl* self) = nullptr;
    OrtStatus* (*Activate)(OrtSyncNotificationImpl* self) = nullptr;
    OrtStatus* (*WaitOnDevice)(OrtSyncNotificationImpl* self, OrtSyncStream* consumer) = nullptr;
    OrtStatus* (*WaitOnHost)(OrtSyncNotificationImpl* self) = nullptr;
};
INGOT_SLOT(OrtSyncNotificationImpl, Release, 1);
INGOT_SLOT(OrtSyncNotificationImpl, Activate, 2);
INGOT_SLOT(OrtSyncNotificationImpl, WaitOnDevice, 3);
INGOT_SLOT(OrtSyncNotificationImpl, WaitOnHost, 4);
static_assert(sizeof(OrtSyncNotificationImpl) == 5 * sizeof(void*));

/// Adds events to a profile.
struct OrtEpProfilerImpl {
    uint32_t ort_version_supported = 0;
    void (*Release)(OrtEpProfilerImpl* self) = nullptr;
    OrtStatus* (*StartProfiling)(OrtEpProfilerImpl* self, int64_t offset_ns) = nullptr;
    OrtStatus* (*StartEvent)(OrtEpProfilerImpl* self, uint64_t id) = nullptr;
    OrtStatus* (*StopEvent)(OrtEpProfilerImpl* self, uint64_t id,
                            const OrtProfilingEvent* event) = nullptr;
    OrtStatus* (*EndProfiling)(OrtEpProfilerImpl* self,
                               OrtProfilingEventsContainer* container) = nullptr;
};
INGOT_SLOT(OrtEpProfilerImpl, Release, 1);
INGOT_SLOT(OrtEpProfilerImpl, StartProfiling, 2);
INGOT_SLOT(OrtEpProfilerImpl, StartEvent, 3);
INGOT_SLOT(OrtEpProfilerImpl, StopEvent, 4);
INGOT_SLOT(OrtEpProfilerImpl, EndProfiling, 5);
static_assert(sizeof(OrtEpProfilerImpl) == 6 * sizeof(void*));

/// A kernel of one node.
struct OrtKernelImpl {
    uint32_t ort_version_supported = 0;
    OrtStatus* (*Compute)(OrtKernelImpl* self, OrtKernelContext* context) = nullptr;
    void (*Release)(OrtKernelImpl* self) = nullptr;
    Slots<2> unused_3{};
};
INGOT_SLOT(OrtKernelImpl, Compute, 1);
INGOT_SLOT(OrtKernelImpl, Release, 2);
static_assert(sizeof(OrtKernelImpl) == 5 * sizeof(void*));

} // namespace ingot::ort
