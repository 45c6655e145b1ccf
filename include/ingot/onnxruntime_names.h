// SPDX-License-Identifier: Apache-2.0
// Names of the execution provider and of its options, as programs spell them that were written for
// NVIDIA's. INGOT_NO_ONNXRUNTIME_NAMES leaves them to other headers, such as nv_provider_options.h.
#pragma once

#ifndef INGOT_NO_ONNXRUNTIME_NAMES

namespace onnxruntime {
constexpr const char* kNvTensorRTRTXExecutionProvider = "NvTensorRTRTXExecutionProvider";

namespace nv {
namespace provider_option_names {
constexpr const char* kDeviceId = "device_id";
constexpr const char* kHasUserComputeStream = "has_user_compute_stream";
constexpr const char* kUserComputeStream = "user_compute_stream";
constexpr const char* kUserAuxStreamArray = "user_aux_stream_array";
constexpr const char* kLengthAuxStreamArray = "nv_length_aux_stream_array";
constexpr const char* kMaxWorkspaceSize = "nv_max_workspace_size";
constexpr const char* kMaxSharedMemSize = "nv_max_shared_mem_size";
constexpr const char* kDumpSubgraphs = "nv_dump_subgraphs";
constexpr const char* kDetailedBuildLog = "nv_detailed_build_log";
constexpr const char* kProfilesMinShapes = "nv_profile_min_shapes";
constexpr const char* kProfilesMaxShapes = "nv_profile_max_shapes";
constexpr const char* kProfilesOptShapes = "nv_profile_opt_shapes";
constexpr const char* kCudaGraphEnable = "enable_cuda_graph";
constexpr const char* kMultiProfileEnable = "nv_multi_profile_enable";
constexpr const char* kUseExternalDataInitializer = "nv_use_external_data_initializer";
constexpr const char* kRuntimeCacheFile = "nv_runtime_cache_path";
constexpr const char* kExternalComputeQueueDataParamNV_data =
    "VkExternalComputeQueueDataParamsNV_data";
constexpr const char* kWeightStreamingBudget = "nv_weight_streaming_budget";
constexpr const char* kOpTypesToExclude = "nv_op_types_to_exclude";
} // namespace provider_option_names
namespace run_option_names {
constexpr const char* kProfileIndex = "nv_profile_index";
} // namespace run_option_names
} // namespace nv
} // namespace onnxruntime

#endif // INGOT_NO_ONNXRUNTIME_NAMES
