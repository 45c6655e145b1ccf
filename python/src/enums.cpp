// SPDX-License-Identifier: Apache-2.0
// Enumerations of builder, runtime and plugins.
#include "bind.h"
#include "impl/NvInferPythonPlugin.h"

namespace ingot::python {

namespace {

void part_0(nb::module_& m) {
    nb::enum_<trt::DataType>(m, "DataType", nb::is_arithmetic(),
                             "Type of the elements of a tensor or of weights.")
        .value("FLOAT", trt::DataType::kFLOAT, "IEEE binary32")
        .value("HALF", trt::DataType::kHALF, "IEEE binary16")
        .value("INT8", trt::DataType::kINT8, "Quantised where a scale belongs to it")
        .value("INT32", trt::DataType::kINT32)
        .value("BOOL", trt::DataType::kBOOL, "A byte, 0 or 1")
        .value("UINT8", trt::DataType::kUINT8)
        .value("FP8", trt::DataType::kFP8,
               "E4M3: 4 exponent, 3 mantissa bits, no infinities, largest 448")
        .value("BF16", trt::DataType::kBF16, "The upper half of binary32")
        .value("INT64", trt::DataType::kINT64)
        .value("INT4", trt::DataType::kINT4, "Two per byte, the first in the low bits")
        .value("FP4", trt::DataType::kFP4, "E2M1, two per byte, the first in the low bits")
        .value("E8M0", trt::DataType::kE8M0, "A power of two, for scales");
    nb::enum_<trt::TensorFormat>(
        m, "TensorFormat", nb::is_arithmetic(),
        "How elements lie in memory. In the vectorised ones the channel dimension (third from "
        "last; fourth from last in the D ones) is grouped: CHWx keeps groups of x channels as an "
        "innermost axis of length x, HWCx puts channels, padded to a multiple of x, innermost.")
        .value("LINEAR", trt::TensorFormat::kLINEAR, "Row-major, the last dimension contiguous")
        .value("CHW2", trt::TensorFormat::kCHW2)
        .value("HWC8", trt::TensorFormat::kHWC8)
        .value("CHW4", trt::TensorFormat::kCHW4)
        .value("CHW16", trt::TensorFormat::kCHW16)
        .value("CHW32", trt::TensorFormat::kCHW32)
        .value("DHWC8", trt::TensorFormat::kDHWC8)
        .value("CDHW32", trt::TensorFormat::kCDHW32)
        .value("HWC", trt::TensorFormat::kHWC, "Channels innermost, not padded")
        .value("DLA_LINEAR", trt::TensorFormat::kDLA_LINEAR)
        .value("DLA_HWC4", trt::TensorFormat::kDLA_HWC4)
        .value("HWC16", trt::TensorFormat::kHWC16)
        .value("DHWC", trt::TensorFormat::kDHWC);
    nb::enum_<trt::APILanguage>(m, "APILanguage", nb::is_arithmetic(),
                                "The language that an interface is implemented in.")
        .value("CPP", trt::APILanguage::kCPP)
        .value("PYTHON", trt::APILanguage::kPYTHON);
    nb::enum_<trt::DLAWorkspaceAllocationStrategy>(
        m, "DLAWorkspaceAllocationStrategy", nb::is_arithmetic(),
        "How a DLA's modules get their workspace. There is no DLA.")
        .value("DEFAULT", trt::DLAWorkspaceAllocationStrategy::kDEFAULT, "Each module its own")
        .value("SHARED_STATIC", trt::DLAWorkspaceAllocationStrategy::kSHARED_STATIC,
               "One for all modules of a runtime");
    nb::enum_<trt::PluginCreatorVersion>(m, "PluginCreatorVersion", nb::is_arithmetic(),
                                         "Kind of a creator of IPluginV2.")
        .value("V1", trt::PluginCreatorVersion::kV1)
        .value("V1_PYTHON", trt::PluginCreatorVersion::kV1_PYTHON);
    nb::enum_<trt::QuickPluginCreationRequest>(
        m, "QuickPluginCreationRequest", nb::is_arithmetic(),
        "Which kind of a plugin is asked for. There is one kind: those that run by enqueue().")
        .value("UNKNOWN", trt::QuickPluginCreationRequest::kUNKNOWN)
        .value("PREFER_JIT", trt::QuickPluginCreationRequest::kPREFER_JIT)
        .value("PREFER_AOT", trt::QuickPluginCreationRequest::kPREFER_AOT)
        .value("STRICT_JIT", trt::QuickPluginCreationRequest::kSTRICT_JIT)
        .value("STRICT_AOT", trt::QuickPluginCreationRequest::kSTRICT_AOT);
    nb::enum_<trt::AllocatorFlag>(m, "AllocatorFlag", nb::is_arithmetic(),
                                  "What memory is asked for.")
        .value("RESIZABLE", trt::AllocatorFlag::kRESIZABLE,
               "reallocate() may be called for the memory");
    nb::enum_<trt::ErrorCode>(m, "ErrorCodeTRT", nb::is_arithmetic(),
                              "What kind of error it was, for an IErrorRecorder.")
        .value("SUCCESS", trt::ErrorCode::kSUCCESS)
        .value("UNSPECIFIED_ERROR", trt::ErrorCode::kUNSPECIFIED_ERROR)
        .value("INTERNAL_ERROR", trt::ErrorCode::kINTERNAL_ERROR, "A bug in Ingot")
        .value("INVALID_ARGUMENT", trt::ErrorCode::kINVALID_ARGUMENT,
               "An argument is wrong in itself")
        .value("INVALID_CONFIG", trt::ErrorCode::kINVALID_CONFIG,
               "An argument does not fit others or the object's settings")
        .value("FAILED_ALLOCATION", trt::ErrorCode::kFAILED_ALLOCATION,
               "Host or device memory ran out, or an allocator refused")
        .value("FAILED_INITIALIZATION", trt::ErrorCode::kFAILED_INITIALIZATION,
               "Driver, compiler or another library is not usable")
        .value("FAILED_EXECUTION", trt::ErrorCode::kFAILED_EXECUTION,
               "A run failed or was cancelled")
        .value("FAILED_COMPUTATION", trt::ErrorCode::kFAILED_COMPUTATION,
               "A run ended with wrong values")
        .value("INVALID_STATE", trt::ErrorCode::kINVALID_STATE,
               "The call does not fit what was called before")
        .value("UNSUPPORTED_STATE", trt::ErrorCode::kUNSUPPORTED_STATE,
               "Right, but not possible on this device or in this build");
    nb::enum_<trt::TensorIOMode>(m, "TensorIOMode", nb::is_arithmetic(),
                                 "What a tensor is to an engine.")
        .value("NONE", trt::TensorIOMode::kNONE, "Not an input or output")
        .value("INPUT", trt::TensorIOMode::kINPUT)
        .value("OUTPUT", trt::TensorIOMode::kOUTPUT);
    nb::enum_<trt::SeekPosition>(m, "SeekPosition", nb::is_arithmetic(),
                                 "From where IStreamReaderV2::seek() counts.")
        .value("SET", trt::SeekPosition::kSET)
        .value("CUR", trt::SeekPosition::kCUR)
        .value("END", trt::SeekPosition::kEND);
}

void part_1(nb::module_& m) {
    nb::enum_<trt::PluginFieldType>(m, "PluginFieldType", nb::is_arithmetic(),
                                    "Element type of a PluginField.")
        .value("FLOAT16", trt::PluginFieldType::kFLOAT16)
        .value("FLOAT32", trt::PluginFieldType::kFLOAT32)
        .value("FLOAT64", trt::PluginFieldType::kFLOAT64)
        .value("INT8", trt::PluginFieldType::kINT8)
        .value("INT16", trt::PluginFieldType::kINT16)
        .value("INT32", trt::PluginFieldType::kINT32)
        .value("CHAR", trt::PluginFieldType::kCHAR)
        .value("DIMS", trt::PluginFieldType::kDIMS, "nvinfer1::Dims")
        .value("UNKNOWN", trt::PluginFieldType::kUNKNOWN, "Bytes")
        .value("BF16", trt::PluginFieldType::kBF16)
        .value("INT64", trt::PluginFieldType::kINT64)
        .value("FP8", trt::PluginFieldType::kFP8)
        .value("INT4", trt::PluginFieldType::kINT4)
        .value("FP4", trt::PluginFieldType::kFP4);
    nb::enum_<trt::TensorRTPhase>(m, "TensorRTPhase", nb::is_arithmetic(),
                                  "For what a creator is asked to make a plugin.")
        .value("BUILD", trt::TensorRTPhase::kBUILD)
        .value("RUNTIME", trt::TensorRTPhase::kRUNTIME,
               "The fields are those of IPluginV3OneRuntime::getFieldsToSerialize()");
    nb::enum_<trt::PluginCapabilityType>(m, "PluginCapabilityType", nb::is_arithmetic(),
                                         "What a plugin is asked for.")
        .value("CORE", trt::PluginCapabilityType::kCORE, "IPluginV3OneCore; needed always")
        .value("BUILD", trt::PluginCapabilityType::kBUILD, "IPluginV3OneBuild; needed to build")
        .value("RUNTIME", trt::PluginCapabilityType::kRUNTIME,
               "IPluginV3OneRuntime; needed always");
    nb::enum_<trt::EngineCapability>(
        m, "EngineCapability", nb::is_arithmetic(),
        "What an engine is to run on. Ingot builds kSTANDARD; the others are refused at build.")
        .value("STANDARD", trt::EngineCapability::kSTANDARD)
        .value("SAFETY", trt::EngineCapability::kSAFETY)
        .value("DLA_STANDALONE", trt::EngineCapability::kDLA_STANDALONE);
    nb::enum_<trt::WeightsRole>(
        m, "WeightsRole", nb::is_arithmetic(),
        "What a layer does with weights; names weights for IRefitter::setWeights().")
        .value("KERNEL", trt::WeightsRole::kKERNEL)
        .value("BIAS", trt::WeightsRole::kBIAS)
        .value("SHIFT", trt::WeightsRole::kSHIFT)
        .value("SCALE", trt::WeightsRole::kSCALE)
        .value("CONSTANT", trt::WeightsRole::kCONSTANT)
        .value("ANY", trt::WeightsRole::kANY);
    nb::enum_<trt::DeviceType>(m, "DeviceType", nb::is_arithmetic(), "Where a layer runs.")
        .value("GPU", trt::DeviceType::kGPU)
        .value("DLA", trt::DeviceType::kDLA,
               "Not supported; layers stay on the GPU, with a warning");
    nb::enum_<trt::TempfileControlFlag>(m, "TempfileControlFlag", nb::is_arithmetic(),
                                        "How a runtime may unpack code that an engine carries.")
        .value("ALLOW_IN_MEMORY_FILES", trt::TempfileControlFlag::kALLOW_IN_MEMORY_FILES)
        .value("ALLOW_TEMPORARY_FILES", trt::TempfileControlFlag::kALLOW_TEMPORARY_FILES);
    nb::enum_<trt::TensorLocation>(m, "TensorLocation", nb::is_arithmetic(),
                                   "Where the elements of a tensor are.")
        .value("DEVICE", trt::TensorLocation::kDEVICE)
        .value("HOST", trt::TensorLocation::kHOST);
    nb::enum_<trt::OptProfileSelector>(
        m, "OptProfileSelector", nb::is_arithmetic(),
        "Which of the three shapes (or value sets) of an optimisation profile.")
        .value("MIN", trt::OptProfileSelector::kMIN)
        .value("OPT", trt::OptProfileSelector::kOPT, "What kernels are chosen for")
        .value("MAX", trt::OptProfileSelector::kMAX);
    nb::enum_<trt::ProfilingVerbosity>(m, "ProfilingVerbosity", nb::is_arithmetic(),
                                       "How much an engine, and NVTX ranges, tell of layers.")
        .value("LAYER_NAMES_ONLY", trt::ProfilingVerbosity::kLAYER_NAMES_ONLY)
        .value("NONE", trt::ProfilingVerbosity::kNONE)
        .value("DETAILED", trt::ProfilingVerbosity::kDETAILED, "Types, shapes, kernels");
}

void part_2(nb::module_& m) {
    nb::enum_<trt::TacticSource>(m, "TacticSource", nb::is_arithmetic(), "Sources of kernels.")
        .value("EDGE_MASK_CONVOLUTIONS", trt::TacticSource::kEDGE_MASK_CONVOLUTIONS)
        .value("JIT_CONVOLUTIONS", trt::TacticSource::kJIT_CONVOLUTIONS)
        .value("CUBLAS", trt::TacticSource::kCUBLAS)
        .value("CUBLAS_LT", trt::TacticSource::kCUBLAS_LT)
        .value("CUDNN", trt::TacticSource::kCUDNN);
    nb::enum_<trt::HardwareCompatibilityLevel>(
        m, "HardwareCompatibilityLevel", nb::is_arithmetic(),
        "On which GPUs, other than the one it was built on, an engine may run. Ingot's engines run "
        "on all GPUs that it supports unless compute capabilities are listed; the level is "
        "recorded.")
        .value("NONE", trt::HardwareCompatibilityLevel::kNONE)
        .value("AMPERE_PLUS", trt::HardwareCompatibilityLevel::kAMPERE_PLUS)
        .value("SAME_COMPUTE_CAPABILITY",
               trt::HardwareCompatibilityLevel::kSAME_COMPUTE_CAPABILITY);
    nb::enum_<trt::ExecutionContextAllocationStrategy>(
        m, "ExecutionContextAllocationStrategy", nb::is_arithmetic(),
        "How a context gets the memory for activations.")
        .value("STATIC", trt::ExecutionContextAllocationStrategy::kSTATIC,
               "When it is created, enough for every profile")
        .value("ON_PROFILE_CHANGE", trt::ExecutionContextAllocationStrategy::kON_PROFILE_CHANGE,
               "When a profile is chosen, enough for that profile")
        .value("USER_MANAGED", trt::ExecutionContextAllocationStrategy::kUSER_MANAGED,
               "From setDeviceMemoryV2()");
    nb::enum_<trt::EngineStat>(m, "EngineStat", nb::is_arithmetic(),
                               "Numbers that ICudaEngine::getEngineStat() gives.")
        .value("TOTAL_WEIGHTS_SIZE", trt::EngineStat::kTOTAL_WEIGHTS_SIZE, "Bytes of all weights")
        .value("STRIPPED_WEIGHTS_SIZE", trt::EngineStat::kSTRIPPED_WEIGHTS_SIZE,
               "Bytes of the weights that were left out; -1 if none were");
    nb::enum_<trt::RuntimePlatform>(
        m, "RuntimePlatform", nb::is_arithmetic(),
        "Operating system that an engine is for. Ingot's engines run on any.")
        .value("SAME_AS_BUILD", trt::RuntimePlatform::kSAME_AS_BUILD)
        .value("WINDOWS_AMD64", trt::RuntimePlatform::kWINDOWS_AMD64);
    nb::enum_<trt::LayerInformationFormat>(m, "LayerInformationFormat", nb::is_arithmetic(),
                                           "How EngineInspector writes.")
        .value("ONELINE", trt::LayerInformationFormat::kONELINE, "A line per layer")
        .value("JSON", trt::LayerInformationFormat::kJSON);
    nb::enum_<trt::SerializationFlag>(m, "SerializationFlag", nb::is_arithmetic(),
                                      "What is written of an engine.")
        .value("EXCLUDE_WEIGHTS", trt::SerializationFlag::kEXCLUDE_WEIGHTS,
               "Leave out the weights that can be refitted")
        .value("EXCLUDE_LEAN_RUNTIME", trt::SerializationFlag::kEXCLUDE_LEAN_RUNTIME,
               "Leave out the runtime of a version-compatible engine")
        .value("INCLUDE_REFIT", trt::SerializationFlag::kINCLUDE_REFIT,
               "The engine can be refitted again after loading");
    nb::enum_<trt::EngineValidity>(m, "EngineValidity", nb::is_arithmetic(),
                                   "Answer of IRuntime::getEngineValidity().")
        .value("VALID", trt::EngineValidity::kVALID, "It will run, as far as its header tells")
        .value("SUBOPTIMAL", trt::EngineValidity::kSUBOPTIMAL,
               "It will run, with kernels meant for other GPUs")
        .value("INVALID", trt::EngineValidity::kINVALID, "It will not run");
    nb::enum_<trt::EngineInvalidityDiagnostics>(
        m, "EngineInvalidityDiagnostics", nb::is_arithmetic(),
        "Why an engine is kINVALID: bits, of which several may be set.")
        .value("VERSION_MISMATCH", trt::EngineInvalidityDiagnostics::kVERSION_MISMATCH,
               "Written by a release that this one cannot read")
        .value("UNSUPPORTED_CC", trt::EngineInvalidityDiagnostics::kUNSUPPORTED_CC,
               "Not built for the compute capability found")
        .value("OLD_CUDA_DRIVER", trt::EngineInvalidityDiagnostics::kOLD_CUDA_DRIVER,
               "The driver is too old")
        .value("OLD_CUDA_RUNTIME", trt::EngineInvalidityDiagnostics::kOLD_CUDA_RUNTIME,
               "The compiler of kernels is too old")
        .value("INSUFFICIENT_GPU_MEMORY",
               trt::EngineInvalidityDiagnostics::kINSUFFICIENT_GPU_MEMORY,
               "Build with weight streaming")
        .value("MALFORMED_ENGINE", trt::EngineInvalidityDiagnostics::kMALFORMED_ENGINE,
               "Not an engine, cut short, or damaged")
        .value("CUDA_ERROR", trt::EngineInvalidityDiagnostics::kCUDA_ERROR,
               "The driver reported an error");
    nb::enum_<trt::DynamicShapesKernelSpecializationStrategy>(
        m, "DynamicShapesKernelSpecializationStrategy", nb::is_arithmetic(),
        "How kernels of dynamic shapes are fitted to the shapes that occur.")
        .value("LAZY", trt::DynamicShapesKernelSpecializationStrategy::kLAZY,
               "In the background; runs use the general kernel until then")
        .value("EAGER", trt::DynamicShapesKernelSpecializationStrategy::kEAGER,
               "Before the first run of a shape, which waits")
        .value("NONE", trt::DynamicShapesKernelSpecializationStrategy::kNONE, "Never");
    nb::enum_<trt::CudaGraphStrategy>(
        m, "CudaGraphStrategy", nb::is_arithmetic(),
        "Whether a context records its launches as a CUDA graph and repeats that.")
        .value("DISABLED", trt::CudaGraphStrategy::kDISABLED)
        .value("WHOLE_GRAPH_CAPTURE", trt::CudaGraphStrategy::kWHOLE_GRAPH_CAPTURE,
               "From the second run with the same shapes and addresses on");
}

void part_3(nb::module_& m) {
    nb::enum_<trt::ComputeCapability>(
        m, "ComputeCapability", nb::is_arithmetic(),
        "A GPU generation that an engine is built for: ten times major plus minor.")
        .value("NONE", trt::ComputeCapability::kNONE, "Not set; cannot be built for")
        .value("CURRENT", trt::ComputeCapability::kCURRENT,
               "That of the GPU found at build; stands alone")
        .value("SM75", trt::ComputeCapability::kSM75)
        .value("SM80", trt::ComputeCapability::kSM80)
        .value("SM86", trt::ComputeCapability::kSM86)
        .value("SM87", trt::ComputeCapability::kSM87)
        .value("SM89", trt::ComputeCapability::kSM89)
        .value("SM90", trt::ComputeCapability::kSM90)
        .value("SM100", trt::ComputeCapability::kSM100)
        .value("SM103", trt::ComputeCapability::kSM103)
        .value("SM120", trt::ComputeCapability::kSM120)
        .value("SM121", trt::ComputeCapability::kSM121);
    nb::enum_<trt::DimensionOperation>(m, "DimensionOperation", nb::is_arithmetic(),
                                       "Operations of IExprBuilder.")
        .value("SUM", trt::DimensionOperation::kSUM)
        .value("PROD", trt::DimensionOperation::kPROD)
        .value("MAX", trt::DimensionOperation::kMAX)
        .value("MIN", trt::DimensionOperation::kMIN)
        .value("SUB", trt::DimensionOperation::kSUB)
        .value("EQUAL", trt::DimensionOperation::kEQUAL, "1 or 0")
        .value("LESS", trt::DimensionOperation::kLESS, "1 or 0")
        .value("FLOOR_DIV", trt::DimensionOperation::kFLOOR_DIV)
        .value("CEIL_DIV", trt::DimensionOperation::kCEIL_DIV);
    nb::enum_<trt::NetworkDefinitionCreationFlag>(
        m, "NetworkDefinitionCreationFlag", nb::is_arithmetic(),
        "How a network is made. Networks are always of explicit batch.")
        .value("STRONGLY_TYPED", trt::NetworkDefinitionCreationFlag::kSTRONGLY_TYPED)
        .value("PREFER_JIT_PYTHON_PLUGINS",
               trt::NetworkDefinitionCreationFlag::kPREFER_JIT_PYTHON_PLUGINS, "No effect")
        .value("PREFER_AOT_PYTHON_PLUGINS",
               trt::NetworkDefinitionCreationFlag::kPREFER_AOT_PYTHON_PLUGINS, "No effect")
        .value("EXPLICIT_BATCH", trt::NetworkDefinitionCreationFlag::kEXPLICIT_BATCH, "Always so");
}

void part_4(nb::module_& m) {
    nb::enum_<trt::BuilderFlag>(m, "BuilderFlag", nb::is_arithmetic(),
                                "Switches of a build. The numbers are those of the newest "
                                "generation; names of older ones stand in its gaps.")
        .value("DEBUG", trt::BuilderFlag::kDEBUG, "Engines synchronise after every layer")
        .value("GPU_FALLBACK", trt::BuilderFlag::kGPU_FALLBACK, "No effect: there is no DLA")
        .value("REFIT", trt::BuilderFlag::kREFIT, "All weights can be replaced")
        .value("DISABLE_TIMING_CACHE", trt::BuilderFlag::kDISABLE_TIMING_CACHE)
        .value("TF32", trt::BuilderFlag::kTF32,
               "FLOAT products may round operands to TF32. On by default")
        .value("SPARSE_WEIGHTS", trt::BuilderFlag::kSPARSE_WEIGHTS,
               "Kernels for 2:4 sparsity may be used")
        .value("SAFETY_SCOPE", trt::BuilderFlag::kSAFETY_SCOPE, "Refused")
        .value("DIRECT_IO", trt::BuilderFlag::kDIRECT_IO, "No reformatting of inputs and outputs")
        .value("VERSION_COMPATIBLE", trt::BuilderFlag::kVERSION_COMPATIBLE,
               "Later releases can run the engine")
        .value("EXCLUDE_LEAN_RUNTIME", trt::BuilderFlag::kEXCLUDE_LEAN_RUNTIME,
               "Such an engine does not carry its runtime")
        .value("ERROR_ON_TIMING_CACHE_MISS", trt::BuilderFlag::kERROR_ON_TIMING_CACHE_MISS)
        .value("DISABLE_COMPILATION_CACHE", trt::BuilderFlag::kDISABLE_COMPILATION_CACHE)
        .value("STRIP_PLAN", trt::BuilderFlag::kSTRIP_PLAN,
               "Leave refittable weights out; implies kREFIT_IDENTICAL alone")
        .value("REFIT_IDENTICAL", trt::BuilderFlag::kREFIT_IDENTICAL,
               "Weights can be put back, but not changed")
        .value("WEIGHT_STREAMING", trt::BuilderFlag::kWEIGHT_STREAMING)
        .value("REFIT_INDIVIDUAL", trt::BuilderFlag::kREFIT_INDIVIDUAL,
               "Marked weights can be replaced; not with the other two")
        .value("STRICT_NANS", trt::BuilderFlag::kSTRICT_NANS,
               "No rewriting that hides NaN, such as 0 * x to 0")
        .value("MONITOR_MEMORY", trt::BuilderFlag::kMONITOR_MEMORY, "Log memory during the build")
        .value("EDITABLE_TIMING_CACHE", trt::BuilderFlag::kEDITABLE_TIMING_CACHE)
        .value("DISTRIBUTIVE_INDEPENDENCE", trt::BuilderFlag::kDISTRIBUTIVE_INDEPENDENCE,
               "A row's result does not depend on the rows beside it")
        .value("REQUIRE_USER_ALLOCATION", trt::BuilderFlag::kREQUIRE_USER_ALLOCATION,
               "Runs allocate nothing; refused where they must")
        .value("FP16", trt::BuilderFlag::kFP16)
        .value("INT8", trt::BuilderFlag::kINT8)
        .value("OBEY_PRECISION_CONSTRAINTS", trt::BuilderFlag::kOBEY_PRECISION_CONSTRAINTS)
        .value("PREFER_PRECISION_CONSTRAINTS", trt::BuilderFlag::kPREFER_PRECISION_CONSTRAINTS)
        .value("FP8", trt::BuilderFlag::kFP8)
        .value("BF16", trt::BuilderFlag::kBF16)
        .value("INT4", trt::BuilderFlag::kINT4)
        .value("FP4", trt::BuilderFlag::kFP4);
    m.attr("BuilderFlag").attr("WEIGHTLESS") = m.attr("BuilderFlag").attr("STRIP_PLAN");
    nb::enum_<trt::MemoryPoolType>(m, "MemoryPoolType", nb::is_arithmetic(),
                                   "Memory that a build, or the engine, may use at most.")
        .value("WORKSPACE", trt::MemoryPoolType::kWORKSPACE,
               "Scratch memory of a layer. Default: the device's memory")
        .value("DLA_MANAGED_SRAM", trt::MemoryPoolType::kDLA_MANAGED_SRAM)
        .value("DLA_LOCAL_DRAM", trt::MemoryPoolType::kDLA_LOCAL_DRAM)
        .value("DLA_GLOBAL_DRAM", trt::MemoryPoolType::kDLA_GLOBAL_DRAM)
        .value("TACTIC_DRAM", trt::MemoryPoolType::kTACTIC_DRAM,
               "Device memory while timing. Default: the device's memory")
        .value("TACTIC_SHARED_MEMORY", trt::MemoryPoolType::kTACTIC_SHARED_MEMORY,
               "Shared memory of a block. Default: what the device has");
    nb::enum_<trt::PreviewFeature>(m, "PreviewFeature", nb::is_arithmetic(),
                                   "Features that TensorRT was trying out.")
        .value("ALIASED_PLUGIN_IO_10_03", trt::PreviewFeature::kALIASED_PLUGIN_IO_10_03,
               "IPluginV3OneBuildV2::getAliasedInput() counts")
        .value("RUNTIME_ACTIVATION_RESIZE_10_10",
               trt::PreviewFeature::kRUNTIME_ACTIVATION_RESIZE_10_10,
               "updateDeviceMemorySizeForShapes() may be less")
        .value("PROFILE_SHARING_0806", trt::PreviewFeature::kPROFILE_SHARING_0806)
        .value("MULTIDEVICE_RUNTIME_10_16", trt::PreviewFeature::kMULTIDEVICE_RUNTIME_10_16);
    nb::enum_<trt::TilingOptimizationLevel>(
        m, "TilingOptimizationLevel", nb::is_arithmetic(),
        "How much work goes into keeping intermediate values in L2.")
        .value("NONE", trt::TilingOptimizationLevel::kNONE)
        .value("FAST", trt::TilingOptimizationLevel::kFAST)
        .value("MODERATE", trt::TilingOptimizationLevel::kMODERATE)
        .value("FULL", trt::TilingOptimizationLevel::kFULL);
    nb::enum_<trt::QuantizationFlag>(m, "QuantizationFlag", nb::is_arithmetic(),
                                     "Of IBuilderConfig::setQuantizationFlag().")
        .value("CALIBRATE_BEFORE_FUSION", trt::QuantizationFlag::kCALIBRATE_BEFORE_FUSION,
               "Always so");
}

void part_5(nb::module_& m) {
    nb::enum_<trt::CalibrationAlgoType>(m, "CalibrationAlgoType", nb::is_arithmetic(),
                                        "How a calibrator turns histograms of values into ranges.")
        .value("LEGACY_CALIBRATION", trt::CalibrationAlgoType::kLEGACY_CALIBRATION, "A quantile")
        .value("ENTROPY_CALIBRATION", trt::CalibrationAlgoType::kENTROPY_CALIBRATION,
               "Least Kullback-Leibler divergence")
        .value("ENTROPY_CALIBRATION_2", trt::CalibrationAlgoType::kENTROPY_CALIBRATION_2,
               "The same, per tensor, as the next generation has it")
        .value("MSE_CALIBRATION", ingot::kMSE_CALIBRATION, "The least mean squared error")
        .value("MINMAX_CALIBRATION", trt::CalibrationAlgoType::kMINMAX_CALIBRATION,
               "The largest value");
}

} // namespace

void bind_enums(nb::module_& m) {
    part_0(m);
    part_1(m);
    part_2(m);
    part_3(m);
    part_4(m);
    part_5(m);
}

} // namespace ingot::python
