# SPDX-License-Identifier: Apache-2.0
"""The tables of the trtexec tests: users' command lines, every flag, and wrong arguments with
their errors."""

# Users' command lines, except path names.
USERS_LINES = [
    "trtexec --onnx=model.onnx --saveEngine=model.engine",
    "trtexec --onnx=model.onnx --saveEngine=model_fp16.engine --fp16",
    "trtexec --onnx=model.onnx --saveEngine=model_int8.engine --int8 --calib=calibration_cache.bin",
    "trtexec --onnx=model.onnx --saveEngine=model.engine --fp16 --minShapes=input:1x3x640x640 "
    "--optShapes=input:8x3x640x640 --maxShapes=input:32x3x640x640",
    "trtexec --onnx=model.onnx --saveEngine=model.engine --fp16 --minShapes=input:1x3x320x320 "
    "--optShapes=input:8x3x640x640 --maxShapes=input:32x3x1280x1280",
    "trtexec --onnx=model.onnx --fp16 --iterations=1000 --warmUp=500 --avgRuns=100",
    "trtexec --onnx=model.onnx --saveEngine=model_int8.engine --int8 --calib=calibration_cache.bin --calibBatchSize=32",
    "trtexec --onnx=models/model.onnx --saveEngine=models/model.engine --fp16",
    "trtexec --onnx=models/model.onnx --saveEngine=models/model.engine --fp16 --minShapes=input:1x3x640x640 "
    "--optShapes=input:8x3x640x640 --maxShapes=input:32x3x640x640",
    "trtexec --loadEngine=models/model.engine --iterations=1000 --warmUp=500",
]

# Every flag of TensorRT 8.6 to 11 and TensorRT-RTX, by its treatment.
WORKS = """
--minShapes=image:1x1x8x8 --optShapes=image:2x1x8x8 --maxShapes=image:4x1x8x8 --profile=0 --inputIOFormats=fp32:chw
--inputIOFormats=chw --inputIOFormats=fp16:hwc8+chw4 --outputIOFormats=fp16:chw --outputIOFormats=chw --directIO --memPoolSize=tacticSharedMem:48K
--profilingVerbosity=layer_names_only --profilingVerbosity=detailed --profilingVerbosity=none --monitorMemory --noTF32
--stronglyTyped --saveEngine=new.engine --getPlanVersionOnly --noCompilationCache --timingCacheFile=timing.cache
--builderOptimizationLevel=0 --builderOptimizationLevel=5 --runtimePlatform=SameAsBuild
--runtimePlatform=WindowsAMD64 --precisionConstraints=none --precisionConstraints=prefer --precisionConstraints=obey
--layerPrecisions=conv1:fp32 --layerOutputTypes=conv1:fp32 --markDebug=linear --markUnfusedTensorsAsDebugTensors --fp16 --bf16 --best
--int8WithoutCalibration --shapes=image:3x1x8x8 --loadInputs=image:image.npy
--accuracyAlgorithm=l0 --accuracyAlgorithm=l1 --accuracyAlgorithm=l2 --accuracyAlgorithm=lInf --accuracyAlgorithm=cos
--atol=1e-5 --rtol=1e-5 --accuracyThreshold=0.5 --iterations=10 --warmUp=1 --duration=0.01 --sleepTime=1 --idleTime=1
--infStreams=2 --streams=2 --includeDataTransfers --noCudaGraph --timeDeserialize --skipInference
--buildOnly --useProfile=0 --saveDebugTensors=linear:linear.npy --saveAllDebugTensors=summary --verbose --avgRuns=1
--percentile=50,99.9 --dumpOutput --dumpRawBindingsToFile --dumpProfile --dumpLayerInfo --dumpOptimizationProfile
--exportTimes=times.json --exportOutput=output.json --exportProfile=profile.json --exportLayerInfo=layers.json
--device=0 --runtimeCacheFile=runtime.cache --specializeStrategyDS=lazy --specializeStrategyDS=eager
--refit --stripWeights --stripAllWeights --weightless --refitFromOnnx=model.onnx --timeRefit --dumpRefit
--allowWeightStreaming --weightStreamingBudget=-2
--specializeStrategyDS=none --rtxCudaGraphStrategy=disable --rtxCudaGraphStrategy=wholeGraph
--useRuntime=full --useRuntime=lean --useRuntime=dispatch --errorOnTimingCacheMiss --persistentCacheRatio=0.5
--enablePluginOverride --memPoolSize=workspace:1024 --workspace=1024 --nvtxMode=verbose --nvtxVerbosity=none
""".split()
# The output behind the list of options, or the file, of a run with the flag that a run without it
# lacks. The other working flags stand for options that test_option_effects.py proves.
SHOWN = {
    "--minShapes=image:1x1x8x8": "profile 0 to: MIN=1x1x8x8",
    "--optShapes=image:2x1x8x8": "profile 0 to: .* OPT=2x1x8x8",
    "--maxShapes=image:4x1x8x8": "profile 0 to: .* MAX=4x1x8x8",
    "--shapes=image:3x1x8x8": "profile 0 to: MIN=3x1x8x8 OPT=3x1x8x8 MAX=3x1x8x8",
    "--saveEngine=new.engine": "file:new.engine",
    "--getPlanVersionOnly": r"Plan was created with TensorRT version [\d.]+ \(Ingot",
    "--timingCacheFile=timing.cache": "no timing cache is read or written: the CPU has no kernels to compile or time",
    "--runtimeCacheFile=runtime.cache": "no runtime cache is read or written: the CPU has no kernels to compile or time",
    "--builderOptimizationLevel=5": "--builderOptimizationLevel=5: accepted, no effect, because the CPU has no tactics",
    "--runtimePlatform=WindowsAMD64": "Skipped inference phase since --runtimePlatform is added",
    "--layerPrecisions=conv1:fp32": "change nothing without --precisionConstraints",
    "--layerOutputTypes=conv1:fp32": "change nothing without --precisionConstraints",
    "--markDebug=linear": "there is no tensor 'linear' to mark for debugging",
    "--monitorMemory": r"Peak host memory after building: [\d.]+ MiB",
    "--iterations=10": "Timing trace has 10 queries",
    "--infStreams=2": "Timing trace has 4 queries",
    "--streams=2": "Timing trace has 4 queries",
    "--timeDeserialize": r"Total deserialization time = \S+ milliseconds in \d+ iterations",
    "--skipInference": "Skipped inference phase since --skipInference is added",
    "--buildOnly": "Skipped inference phase since --skipInference is added",
    "--saveDebugTensors=linear:linear.npy": "debug tensor 'linear' does not occur",
    "--saveAllDebugTensors=summary": r"Debug tensor pool1 f32 1x16x4x4: min \S+ max \S+ mean \S+, 0 not finite",
    "--verbose": r"\[V\] \[Ingot\] pass dead_code: \d+ -> \d+ nodes",
    "--avgRuns=1": "Trace averages of 1 runs",
    "--percentile=50,99.9": r"percentile\(50%\) = \S+ ms, percentile\(99.9%\) = \S+ ms",
    "--dumpOutput": r"scores: \(1x10\)",
    "--dumpRawBindingsToFile": "file:scores.output.1.10.Float.raw",
    "--dumpProfile": r"conv1 \+ relu1$",
    "--dumpLayerInfo": r"\[I\] conv1 \+ relu1$",
    "--dumpOptimizationProfile": r"Model input image \(profile 0\): any shape \[batch,1,8,8\]",
    "--exportTimes=times.json": "file:times.json",
    "--exportOutput=output.json": "file:output.json",
    "--exportProfile=profile.json": "file:profile.json",
    "--exportLayerInfo=layers.json": "file:layers.json",
    "--device=0": "there is no GPU 0",
    "--specializeStrategyDS=lazy": "--specialisation: accepted, no effect, because the CPU has no kernels to compile",
    "--specializeStrategyDS=eager": "--specialisation: accepted, no effect, because the CPU has no kernels to compile",
    "--specializeStrategyDS=none": "--specialisation: accepted, no effect, because the CPU has no kernels to compile",
    "--refitFromOnnx=model.onnx": r"Engine refitted in \S+ sec",
    "--timeRefit": r"Total refit time = \S+ milliseconds in \d+ iterations",
    "--dumpRefit": r"linear\.weight: f32\[10,128\]",
    "--noCompilationCache": "--noCompilationCache: accepted, no effect, because the CPU has no kernels to compile",
    "--includeDataTransfers": "--includeDataTransfers: accepted, no effect, because runs on the CPU copy nothing",
}
# These ask for behaviour that is always on.
ALREADY = """
--versionCompatible --vc --excludeLeanRuntime --ignoreParsedPluginLibs --pluginInstanceNorm --pi --asyncFileReader --hardwareCompatibilityLevel=none
--hardwareCompatibilityLevel=ampere+ --hardwareCompatibilityLevel=sameComputeCapability --tempdir=there
--tempfileControls=in_memory:allow --noDataTransfers --useCudaGraph --separateProfileRun --explicitBatch --explicitPrecision --threads
""".split()
# These change nothing, and a warning gives the reason.
IGNORED = """
--calibBatchSize=32 --avgTiming=8 --minTiming=1
--sparsity=disable --sparsity=enable --sparsity=force --layerDeviceTypes=a:DLA --decomposableAttentions=a,b
--tacticSources=-EDGE_MASK_CONVOLUTIONS,+JIT_CONVOLUTIONS --noBuilderCache
--preview=+runtimeActivationResize --maxTactics=-1 --maxAuxStreams=4
--tilingOptimizationLevel=0 --l2LimitForTiling=-1 --uint8AsymmetricQuantizationDLA
--reportCapabilityDLA --adjustForDLA --buildDLAStandalone --allowGPUFallback --safe --consistency --dumpKernelText
--remoteAutoTuningConfig=a --cpuOnly --fp8 --int4 --calibProfile=0 --minShapesCalib=image:1x1x8x8
--optShapesCalib=image:1x1x8x8 --maxShapesCalib=image:1x1x8x8 --restricted --exposeDMA
--useManagedMemory --noSpinWait --useSpinWait --allocationStrategy=static
--allocationStrategy=profile --allocationStrategy=runtime
--tuneBuildRoutes=a --tuneBuildRouteFile=f --tuningSearch=fast --tuningSearch=full --tuningSearch=mixed
--tuningCacheFile=f --tuningTimeOut=-1 --saveAllEngines --dryRun --continue --helpBuildRoute --helpBuildRoute=knob
--setBuildRoute=a --useDLACore=0 --safetyPlugins=a.so --heuristic
--batch=1 --maxBatch=1 --memPoolSize=dlaSRAM:1 --memPoolSize=dlaLocalDRAM:1 --memPoolSize=dlaGlobalDRAM:1
""".split()

WRONG = [  # arguments, the error
    ([], "Model missing: give --onnx=FILE or --loadEngine=FILE"),
    (["--onn=DIGITS"], "Unknown option: --onn; did you mean --onnx?"),
    (["--onnx=DIGITS", "--fp17"], "Unknown option: --fp17; did you mean --fp16?"),
    (["--onnx=DIGITS", "--useDLACores=0"], "Unknown option: --useDLACores; did you mean --useDLACore?"),
    (["--onnx=DIGITS", "--saveengine=x"], "Unknown option: --saveengine; did you mean --saveEngine?"),
    (["--onnx=DIGITS", "--nothingLikeThis"], "Unknown option: --nothingLikeThis; --help lists all"),
    (["model.onnx"], "unexpected argument 'model.onnx': a model is given as --onnx=FILE or --loadEngine=FILE"),
    (["--onnx"], "--onnx needs a value: --onnx=FILE"),
    (["--onnx="], "--onnx needs a value: --onnx=FILE"),
    (["--onnx", "--fp16"], "--onnx needs a value: --onnx=FILE"),
    (["--onnx=DIGITS", "--onnx=DIGITS"], "--onnx is given twice"),
    (["--onnx=DIGITS", "--fp16=yes"], "--fp16=yes: expected no value: this is a flag"),
    (["--onnx=DIGITS", "--safe=yes"], "--safe=yes: expected no value: this is a flag"),
    (["--onnx=DIGITS", "--iterations=ten"], "--iterations=ten: expected a whole number"),
    (["--onnx=DIGITS", "--iterations=-1"], "--iterations=-1: expected 0 or more"),
    (["--onnx=DIGITS", "--duration=soon"], "--duration=soon: expected a number"),
    (["--onnx=DIGITS", "--duration=-2"], "--duration=-2: expected 0 or more, or -1"),
    (["--onnx=DIGITS", "--avgRuns=0"], "--avgRuns=0: expected 1 or more"),
    (["--onnx=DIGITS", "--infStreams=0"], "--infStreams=0: expected 1 to 256"),
    (["--onnx=DIGITS", "--builderOptimizationLevel=6"], "--builderOptimizationLevel=6: expected 0 to 5"),
    (["--onnx=DIGITS", "--percentile=101"], "--percentile=101: expected 0 to 100"),
    (["--onnx=DIGITS", "--profilingVerbosity=some"],
     "--profilingVerbosity=some: expected layer_names_only, detailed or none"),
    (["--onnx=DIGITS", "--sparsity=some"], "--sparsity=some: expected disable, enable or force"),
    (["--onnx=DIGITS", "--avgTiming=x"], "--avgTiming=x: expected a whole number"),
    (["--onnx=DIGITS", "--persistentCacheRatio=x"], "--persistentCacheRatio=x: expected a number"),
    (["--onnx=DIGITS", "--persistentCacheRatio=1.5"], "--persistentCacheRatio=1.5: expected 0 to 1"),
    (["--onnx=DIGITS", "--workspace=-1"], "--workspace=-1: expected 0 to 1073741824"),
    (["--onnx=DIGITS", "--useRuntime=light"], "--useRuntime=light: expected full, lean or dispatch"),
    (["--onnx=DIGITS", "--leanDLLPath=lean.so"], "--leanDLLPath needs --useRuntime=lean or dispatch"),
    (["--onnx=DIGITS", "--setPluginsToSerialize=a.so"], "--setPluginsToSerialize: an engine file holds no host code, so "
     "that no library can travel in it; give --dynamicPlugins=FILE here and wherever the engine is loaded"),
    (["--onnx=DIGITS", "--memPoolSize=heap:3"], "--memPoolSize=heap:3: there is no pool 'heap'; expected workspace, "
     "tacticSharedMem, dlaSRAM, dlaLocalDRAM or dlaGlobalDRAM"),
    (["--onnx=DIGITS", "--memPoolSize=workspace:3X"], "--memPoolSize=workspace:3X: 'workspace:3X': expected name:size, "
     "such as workspace:512 or tacticSharedMem:48K"),
    (["--onnx=DIGITS", "--memPoolSize=workspace"], "--memPoolSize=workspace: 'workspace': expected name:size, "
     "such as workspace:512 or tacticSharedMem:48K"),
    (["--onnx=DIGITS", "--optShapes=image"], "shapes 'image': 'image' is not name:sizes, such as image:1x3x224x224"),
    (["--onnx=DIGITS", "--optShapes=imag:1x1x8x8"],
     "profile: there is no input 'imag', did you mean 'image'? Inputs: image"),
    (["--onnx=DIGITS", "--optShapes=image:1x1x8x8", "--optShapes=image:2x1x8x8"],
     "--optShapes=image:2x1x8x8 is given twice for the same index: it was image:1x1x8x8"),
    (["--onnx=DIGITS", "--profile=1", "--optShapes=image:1x1x8x8"],
     "--profile=0 has no shapes: profiles are numbered from 0 without gaps"),
    (["--onnx=DIGITS", "--weightStreamingBudget=50%"],
     "--weightStreamingBudget: the engine was built without --allowWeightStreaming"),
    (["--onnx=DIGITS", "--allowWeightStreaming", "--weightStreamingBudget=lots"],
     "--weightStreamingBudget=lots: expected -2, -1, a share such as 50%, or bytes such as 4194304 or 4M"),
    (["--onnx=DIGITS", "--refitFromOnnx=nowhere.onnx"], "cannot open 'nowhere.onnx': No such file or directory"),
    (["--onnx=DIGITS", "--profile=-1"], "--profile=-1: expected 0 to 63"),
    (["--onnx=DIGITS", "--minShapes=image:4x1x8x8", "--maxShapes=image:2x1x8x8"],
     "profile: input 'image' dimension 0: min 4, opt 2, max 2, expected min <= opt <= max"),
    (["--onnx=DIGITS", "--useProfile=1"], "--useProfile=1: the engine has 0 profiles"),
    (["--onnx=DIGITS", "--loadInputs=image"], "--loadInputs=image: 'image': expected name:file"),
    (["--onnx=DIGITS", "--loadInputs=picture:x.bin"], "there is no input 'picture'. Inputs: image"),
    (["--onnx=DIGITS", "--inputIOFormats=int8:chw"],
     "--inputIOFormats int8:chw: entry 1 asks for i8, the model has f32"),
    (["--onnx=DIGITS", "--inputIOFormats=fp16:chw33"],
     "--inputIOFormats: 'fp16:chw33': there is no 'chw33', expected TYPE, FORMAT[+FORMAT] or TYPE:FORMAT[+FORMAT]. "
     "Types: fp32, fp16, bf16, int32, int64, int8, uint8, fp8, bool. Formats: chw, hwc, hwc8, hwc16, dhwc, dhwc8, chw2, "
     "chw4, chw16, chw32, cdhw32, dla_linear, dla_hwc4"),
    (["--onnx=DIGITS", "--inputIOFormats=chw2"],
     "input 'image' f32[batch,1,8,8] has no allowed memory format: kCHW2 (chw2) holds f16 or bf16, not f32. Formats that fit: kLINEAR, kHWC, kDHWC, kCHW32: allow one of these, or change the type of the tensor"),
    (["--onnx=DIGITS", "--inputIOFormats=hwc", "--directIO"],
     "input 'image' would be stored as kHWC, which engines reformat when they run, but kDIRECT_IO (--directIO) forbids that: "
     "clear it, or allow kLINEAR (chw)"),
    (["--onnx=DIGITS", "--loadRefOutputs=scores:x.bin"],
     "--accuracyThreshold with a value above 0 is required with --loadRefOutputs or --refPair"),
    (["--onnx=DIGITS", "--refPair=0", "--accuracyThreshold=1"],
     "--refPair needs two pairs at least; leave it out for a single pair"),
    (["--onnx=DIGITS", "--refPair=1", "--loadInputs=image:a", "--loadRefOutputs=scores:b", "--accuracyThreshold=1"],
     "--refPair=0: expected --loadInputs and --loadRefOutputs after it"),
    (["--onnx=DIGITS", "--saveAllDebugTensors=jpeg"],
     "--saveAllDebugTensors=jpeg: 'jpeg': expected summary, numpy, string or raw"),
    (["--onnx=DIGITS", "--timeDeserialize"],
     "--timeDeserialize needs an engine file: give --loadEngine or --saveEngine"),
    (["--onnx=DIGITS", "--getPlanVersionOnly"], "--getPlanVersionOnly needs --loadEngine=FILE"),
    (["--loadEngine=missing.engine"], "cannot open 'missing.engine': No such file or directory"),
    (["--onnx=DIGITS", "--computeCapabilities=nine"], "'nine': expected numbers joined by commas"),
]
