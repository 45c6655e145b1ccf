// SPDX-License-Identifier: Apache-2.0
// An unusable libcuda.so.1. With OLD it has a few functions of an old release; else every requested
// function, and cuInit reports an unknown error.
extern "C" {

int cuInit(unsigned int) {
    return 999;
}

#ifndef OLD
int cuGetErrorString(int, const char** text) {
    *text = "unknown error";
    return 0;
}

// NOLINTNEXTLINE(cppcoreguidelines-macro-usage)
#define ANSWER(name)                                                                               \
    int name() {                                                                                   \
        return 999;                                                                                \
    }
ANSWER(cuDriverGetVersion)
ANSWER(cuDeviceGetPCIBusId)
ANSWER(cuDevicePrimaryCtxRelease_v2)
ANSWER(cuCtxPushCurrent_v2)
ANSWER(cuCtxPopCurrent_v2)
ANSWER(cuCtxSynchronize)
ANSWER(cuMemHostAlloc)
ANSWER(cuMemcpyAsync)
ANSWER(cuStreamGetCtx)
ANSWER(cuEventQuery)
ANSWER(cuDeviceGetCount)
ANSWER(cuDeviceGet)
ANSWER(cuDeviceGetName)
ANSWER(cuDeviceGetAttribute)
ANSWER(cuDevicePrimaryCtxRetain)
ANSWER(cuCtxSetCurrent)
ANSWER(cuCtxGetCurrent)
ANSWER(cuCtxGetDevice)
ANSWER(cuCtxSetLimit)
ANSWER(cuMemGetInfo_v2)
ANSWER(cuMemAlloc_v2)
ANSWER(cuMemFree_v2)
ANSWER(cuMemAllocAsync)
ANSWER(cuMemFreeAsync)
ANSWER(cuMemAllocHost_v2)
ANSWER(cuMemFreeHost)
ANSWER(cuMemcpyHtoDAsync_v2)
ANSWER(cuMemcpyDtoHAsync_v2)
ANSWER(cuMemcpyDtoDAsync_v2)
ANSWER(cuMemsetD8Async)
ANSWER(cuModuleLoadData)
ANSWER(cuModuleUnload)
ANSWER(cuModuleGetFunction)
ANSWER(cuFuncSetAttribute)
ANSWER(cuLaunchKernelEx)
ANSWER(cuLaunchHostFunc)
ANSWER(cuStreamCreateWithPriority)
ANSWER(cuCtxGetStreamPriorityRange)
ANSWER(cuStreamGetPriority)
ANSWER(cuStreamDestroy_v2)
ANSWER(cuStreamSynchronize)
ANSWER(cuStreamWaitEvent)
ANSWER(cuStreamSetAttribute)
ANSWER(cuStreamIsCapturing)
ANSWER(cuThreadExchangeStreamCaptureMode)
ANSWER(cuStreamBeginCapture_v2)
ANSWER(cuStreamEndCapture)
ANSWER(cuGraphInstantiateWithFlags)
ANSWER(cuGraphLaunch)
ANSWER(cuGraphDestroy)
ANSWER(cuGraphExecDestroy)
ANSWER(cuEventCreate)
ANSWER(cuEventDestroy_v2)
ANSWER(cuEventRecord)
ANSWER(cuEventRecordWithFlags)
ANSWER(cuEventSynchronize)
ANSWER(cuEventElapsedTime)
ANSWER(cuGetErrorName)
ANSWER(cuTensorMapEncodeTiled)
#endif

} // extern "C"
