# SPDX-License-Identifier: Apache-2.0
"""Options that only a GPU heeds, each with the reason that a run on the CPU prints."""
OF_A_GPU = {
    "--tune=full": "the CPU has no tactics to choose from",
    "--tuneBudget=10": "the CPU has no tactics to choose from",
    "--timingCacheFile=there": "the CPU has no tactics to choose from",
    "--forceTactic=a": "the CPU has no tactics to choose from",
    "--arch=80": "the CPU has no kernels to compile",
    "--runtimeCacheDir=/nonexistent": "the CPU has no kernels to compile",
    "--runtimeCacheFile=there": "the CPU has no kernels to compile",
    "--specialisation=eager": "the CPU has no kernels to compile",
    "--memoryLimit=1000000": "it bounds the memory of a GPU, and the CPU has none of its own",
    "--priority=low": "runs on the CPU have that of the process",
    "--nvtx": "the CPU tells NVTX nothing",
    "--allowEngineCode": "an engine brings no code for the CPU",
}
