// SPDX-License-Identifier: Apache-2.0
// Ingot's additions to TensorRT's API: choice of the device, priorities of runs, kernels given as
// CUDA source text, the cache of compiled kernels, another calibrator, a search for infinities.
#pragma once

#include "NvInfer.h"

#define INGOT_VERSION_MAJOR 0
#define INGOT_VERSION_MINOR 1
#define INGOT_VERSION_PATCH 0

namespace nvonnxparser {
class IParser;
}

namespace ingot {

/// Where something runs.
enum class Device : int32_t {
    kAUTO = 0, ///< A GPU if there is one, else the CPU
    kGPU = 1,
    kCPU = 2,
};

/// How urgent the runs of a context are to a GPU that other work uses too.
enum class Priority : int32_t {
    kLOW = 0,    ///< Gives way to all other work; kernels compile when nobody else wants the CPU
    kNORMAL = 1, ///< Like work on a stream whose maker asked for no priority
    kHIGH = 2,   ///< Before all other work of normal priority
};

/// A kernel as text, with the rule that gives the types and shapes of its outputs. Texts are
/// checked when the layer is added, travel inside the engine, and the kernel is compiled, once, for
/// each GPU that the engine runs on; what the compiler says is an error of the context that needs
/// it, with the layer's name. It runs on GPUs only: for the CPU no context is made.
///
/// Sizes are named in the signature; expressions are made of these names, numbers, + - * /
/// (rounding down), %, parentheses, min(a, b), max(a, b) and ceil_div(a, b).
///
/// A kernel that adds up the rows of a matrix:
///
///     const char* text = R"(
///         extern "C" __global__ void row_sum(const float* x, float* y, long long n, long long m) {
///             long long row = blockIdx.x * 256LL + threadIdx.x;
///             if (row < n) {
///                 float sum = 0;
///                 for (long long i = 0; i < m; ++i) sum += x[row * m + i];
///                 y[row] = sum;
///             }
///         })";
///     CudaSource row_sum = {"RowSum", text, "row_sum", "float32[n, m] -> float32[n]", "n, m",
///                           "ceil_div(n, 256)", "256"};
struct CudaSource {
    /// The kernel's name, for messages and profiles.
    const char* name;
    /// CUDA C++ as NVRTC takes it, without #include. It may use structs for small floats: F16, BF16
    /// and F8E4M3, with `float widen(F16)` and `F16 narrow<F16>(float)`.
    const char* source;
    /// The `extern "C" __global__` function of it to launch. Its parameters: a pointer per input, a
    /// pointer per output (dense, row-major), a pointer to the workspace if there is one, then the
    /// arguments.
    const char* kernel;
    /// Types and shapes of inputs and outputs: "float32[n, c], int64[] -> float32[n, 2 * c]". An
    /// input's sizes are names or numbers; the same name twice says that sizes are equal. Types:
    /// float32 float16 bfloat16 float8_e4m3 int8 uint8 int32 int64 bool; a name that begins with a
    /// capital letter is any of them, and the type's name in the source. `...` stands for any
    /// number of dimensions, the same in all places, and in expressions for their product:
    /// "T[...] -> T[...]".
    const char* signature;
    /// The kernel's arguments after the pointers, separated by commas; nullptr for none. An
    /// expression is a long long, int(expression) an int; float(1e-5) and double(1e-5) are
    /// constants.
    const char* arguments;
    /// One to three expressions: blocks of the grid. When one is 0 nothing is launched.
    const char* grid;
    /// One to three expressions: threads of a block.
    const char* block;
    /// An expression: bytes of dynamic shared memory; nullptr for none.
    const char* sharedBytes = nullptr;
    /// An expression: bytes of scratch memory; nullptr for none.
    const char* workspaceBytes = nullptr;
};

/// An engine in a file.
struct EngineFile {
    const char* path;
    /// A folder in which the file must lie: `path` is relative to it then, without "..", and no
    /// part of it is a link. nullptr: anywhere.
    const char* folder = nullptr;
    /// The digest, as engineDigest() gives it, of the engine that it must be; nullptr: any.
    const char* digest = nullptr;
};

/// A tensor in host memory, dense and row-major; an input is only read.
struct HostTensor {
    void* data;
    nvinfer1::DataType type;
    nvinfer1::Dims dims;
};
/// The value of one of CudaSource::arguments: a long long or int, or a float or double.
struct HostArgument {
    bool isReal;
    int64_t integer;
    double real;
};
/// One call of a HostKernel; everything is valid during it.
struct HostCall {
    const HostTensor* inputs;
    int32_t nbInputs;
    const HostTensor* outputs;
    int32_t nbOutputs;
    const HostArgument* arguments;
    int32_t nbArguments;
    void* user;
};
/// Computes on the CPU what the kernel of a CudaSource computes on a GPU. Must not throw. Contexts
/// of several threads may call it at once. Returns 0 for success; another number fails the run.
using HostKernel = int32_t (*)(const HostCall& call);

/// A layer's result, or an input, that holds infinity or NaN. Everything is valid during the call.
struct NotFiniteResult {
    const char* text;     ///< All of it as a sentence
    const char* layer;    ///< The layer's name: "'conv_1'", or "input 'x'"
    const char* value;    ///< "nan", "inf" or "-inf": the first element that is not finite
    nvinfer1::Dims index; ///< of that element
    nvinfer1::Dims dims;  ///< of the result
    int64_t count;        ///< Elements of the result that are not finite
    bool arises;          ///< All that the layer reads is finite
};
/// Receives a result that is not finite. Must not throw. \param user is what findNotFinite() was
/// given.
using NotFiniteVisitor = void (*)(const NotFiniteResult& found, void* user);

/// Receives Ingot's verdict on a node. Must not throw, nor use the parser.
/// \param node its index in the model's main graph.
/// \param reason nullptr when Ingot takes it, else the reason; valid during the call.
/// \param user is what claimNodes() was given.
using NodeVerdict = void (*)(int64_t node, const char* reason, void* user);

/// A constant of an ONNX model: an initializer, or the output of a Constant node. Everything is
/// valid during the call; data inside the model's bytes as long as these are.
struct ModelTensor {
    const char* name;
    int32_t type;        ///< TensorProto.DataType
    const int64_t* dims; ///< nbDims sizes
    int32_t nbDims;
    const void* data; ///< dense and row-major, 4-bit elements two in a byte; nullptr: see `missing`
    size_t bytes;
    const char* missing; ///< Why there is no data, such as an external file that is not there
};
/// Told of a constant. Must not throw. \param user is what visitTensors() was given.
using TensorVisitor = void (*)(const ModelTensor& tensor, void* user);

} // namespace ingot

// Called through the inline functions below; strings are copied.
extern "C" TENSORRTAPI const char* ingotVersion() noexcept;
extern "C" TENSORRTAPI bool ingotSetBuildDevice(nvinfer1::IBuilderConfig* config, int32_t device,
                                                int32_t ordinal) noexcept;
extern "C" TENSORRTAPI bool ingotAddSampleInputs(nvinfer1::IBuilderConfig* config,
                                                 const ingot::HostTensor* inputs,
                                                 int32_t nbInputs) noexcept;
extern "C" TENSORRTAPI bool ingotSetMemoryLog(nvinfer1::IBuilderConfig* config, bool log) noexcept;
extern "C" TENSORRTAPI bool ingotSetRuntimeDevice(nvinfer1::IRuntime* runtime, int32_t device,
                                                  int32_t ordinal) noexcept;
extern "C" TENSORRTAPI bool ingotSetVerifyWeights(nvinfer1::IRuntime* runtime,
                                                  bool verify) noexcept;
extern "C" TENSORRTAPI bool ingotSetTrustedKeys(nvinfer1::IRuntime* runtime,
                                                const char* publicKeys) noexcept;
extern "C" TENSORRTAPI bool ingotSetTrustedOnly(nvinfer1::IRuntime* runtime, bool only) noexcept;
extern "C" TENSORRTAPI nvinfer1::IHostMemory* ingotSignEngine(nvinfer1::ILogger* logger,
                                                              const void* engine, uint64_t bytes,
                                                              const char* privateKey) noexcept;
extern "C" TENSORRTAPI bool ingotBuildToFile(nvinfer1::IBuilder* builder,
                                             nvinfer1::INetworkDefinition* network,
                                             nvinfer1::IBuilderConfig* config,
                                             const char* path) noexcept;
extern "C" TENSORRTAPI nvinfer1::ICudaEngine*
ingotDeserializeFile(nvinfer1::IRuntime* runtime, const ingot::EngineFile* file) noexcept;
extern "C" TENSORRTAPI bool ingotEngineDigest(const void* engine, uint64_t bytes,
                                              char* digest) noexcept;
extern "C" TENSORRTAPI int32_t ingotGetDevice(const nvinfer1::ICudaEngine* engine) noexcept;
extern "C" TENSORRTAPI const char*
ingotGetDeviceError(const nvinfer1::ICudaEngine* engine) noexcept;
extern "C" TENSORRTAPI int32_t ingotFindNotFinite(const nvinfer1::ICudaEngine* engine,
                                                  const ingot::HostTensor* inputs, int32_t nbInputs,
                                                  ingot::NotFiniteVisitor visit,
                                                  void* user) noexcept;
extern "C" TENSORRTAPI bool ingotSetPriority(nvinfer1::IRuntimeConfig* config,
                                             int32_t priority) noexcept;
extern "C" TENSORRTAPI int32_t ingotGetPriority(const nvinfer1::IRuntimeConfig* config) noexcept;
extern "C" TENSORRTAPI bool ingotSetGraphLimit(nvinfer1::IRuntimeConfig* config, int32_t most,
                                               const nvinfer1::IRuntimeConfig* other) noexcept;
extern "C" TENSORRTAPI bool ingotSetRecordFirstRun(nvinfer1::IRuntimeConfig* config,
                                                   bool record) noexcept;
extern "C" TENSORRTAPI int32_t ingotCountGraphs(const nvinfer1::IRuntimeConfig* config) noexcept;
extern "C" TENSORRTAPI const char* ingotGetCompilerProblem(int32_t capability) noexcept;
extern "C" TENSORRTAPI bool ingotSetCacheFolder(const char* path) noexcept;
extern "C" TENSORRTAPI const char* ingotGetCacheFolder() noexcept;
extern "C" TENSORRTAPI int32_t ingotRuntimeInterface() noexcept;
extern "C" TENSORRTAPI nvinfer1::ILayer*
ingotAddCudaSourceLayer(nvinfer1::INetworkDefinition* network, nvinfer1::ITensor* const* inputs,
                        int32_t nbInputs, const ingot::CudaSource* source) noexcept;
extern "C" TENSORRTAPI bool ingotRegisterCudaSource(const char* domain, const char* op,
                                                    const ingot::CudaSource* source) noexcept;
extern "C" TENSORRTAPI bool ingotDeregisterCudaSource(const char* domain, const char* op) noexcept;
extern "C" TENSORRTAPI bool ingotClaimNodes(nvonnxparser::IParser* parser,
                                            ingot::NodeVerdict verdict, void* user) noexcept;
extern "C" TENSORRTAPI bool ingotSetOptionalInputs(nvonnxparser::IParser* parser,
                                                   const char* const* names,
                                                   int32_t nbNames) noexcept;
extern "C" TENSORRTAPI bool ingotGetInputDefault(const nvinfer1::ICudaEngine* engine,
                                                 const char* name,
                                                 ingot::HostTensor* value) noexcept;
extern "C" TENSORRTAPI bool ingotVisitTensors(nvinfer1::ILogger* logger, const void* model,
                                              size_t size, const char* folder,
                                              ingot::TensorVisitor visit, void* user) noexcept;
extern "C" TENSORRTAPI bool ingotRegisterHostKernel(const char* name, ingot::HostKernel kernel,
                                                    void* user) noexcept;
extern "C" TENSORRTAPI bool ingotDeregisterHostKernel(const char* name) noexcept;

namespace ingot {

/// Ingot's own version: "0.1.0".
static inline const char* version() noexcept {
    return ingotVersion();
}

/// Number of the interface of runtimes that this library makes and calls: it loads runtimes of
/// libraries with the same number (nvinfer1::IRuntime::loadRuntime).
static inline int32_t runtimeInterface() noexcept {
    return ingotRuntimeInterface();
}

/// Where kernels are timed and kCURRENT is looked up. Default kAUTO.
/// \param ordinal which GPU, as CUDA counts them; 0 for the CPU.
/// \returns false when there is no such device.
static inline bool setDevice(nvinfer1::IBuilderConfig& config, Device device,
                             int32_t ordinal = 0) noexcept {
    return ingotSetBuildDevice(&config, static_cast<int32_t>(device), ordinal);
}

/// Values of a run, which show a build with BuilderFlag::kFP16 where numbers pass 65504, the
/// largest of f16: it runs the network on them on the CPU in f32, lets the layers that pass it keep
/// f32, and names them in a warning. Further calls add further runs. Without kFP16 they have no
/// effect. The values are copied; reset() drops them. Not safe from two threads at once. \param
/// inputs in the order of the network's inputs; a build fails when types or shapes do not fit.
/// \returns false, and nothing changes, for a null address or a shape with a size below 0.
static inline bool addSampleInputs(nvinfer1::IBuilderConfig& config, const HostTensor* inputs,
                                   int32_t nbInputs) noexcept {
    return ingotAddSampleInputs(&config, inputs, nbInputs);
}

/// Whether a build logs the memory that contexts of its engine will take. Default true. It plans
/// them for that, unless a limit of a memory pool makes it plan anyway.
/// \returns false for null.
static inline bool setMemoryLog(nvinfer1::IBuilderConfig& config, bool log) noexcept {
    return ingotSetMemoryLog(&config, log);
}

/// Where engines that this runtime loads from here on will run. Default kAUTO: the GPU that is
/// current for the calling thread.
static inline bool setDevice(nvinfer1::IRuntime& runtime, Device device,
                             int32_t ordinal = 0) noexcept {
    return ingotSetRuntimeDevice(&runtime, static_cast<int32_t>(device), ordinal);
}

/// Whether engines that this runtime loads from here on are refused when their weights do not match
/// the hashes that were written with them. Default true. It costs about a second for each 10 GB on
/// one core, on several cores less, beside what else loading does; without it a damaged engine
/// gives wrong results. \returns false for a runtime of a release that cannot be told.
static inline bool setVerifyWeights(nvinfer1::IRuntime& runtime, bool verify) noexcept {
    return ingotSetVerifyWeights(&runtime, verify);
}

/// Whose engines may bring code for the GPU. By default an engine's kernels built ahead are
/// compiled anew instead of loaded, with a warning, and on a GPU an engine with kernels of source
/// text gives no context, unless this process has built it. Engines signed by one of these keys may
/// bring both, and so may all engines under IRuntime::setEngineHostCodeAllowed(true). For engines
/// that this runtime loads from here on; one whose signature by a trusted key does not match is
/// refused. \param publicKeys one or several Ed25519 public keys in PEM, each with a line before it
/// that says "expires: 2027-01-31" if it is not trusted for ever; nullptr: none. \returns false,
/// and nothing changes, for a malformed text; the logger is told the line.
static inline bool setTrustedKeys(nvinfer1::IRuntime& runtime, const char* publicKeys) noexcept {
    return ingotSetTrustedKeys(&runtime, publicKeys);
}

/// Whether this runtime refuses all engines from here on but those signed by a trusted key. Default
/// false. \returns false for a runtime of a release that cannot be told.
static inline bool setTrustedOnly(nvinfer1::IRuntime& runtime, bool only) noexcept {
    return ingotSetTrustedOnly(&runtime, only);
}

/// A copy of an engine with the signature of this key, in the place of one that it may have. The
/// caller deletes it. Not part of libingot_lean.so.
/// \param privateKey an Ed25519 private key in PEM, not encrypted, as 'openssl genpkey -algorithm
/// ed25519' makes it.
/// \returns nullptr for a damaged engine or another key; the logger gets the reason.
static inline nvinfer1::IHostMemory* signEngine(nvinfer1::ILogger& logger, const void* engine,
                                                uint64_t bytes, const char* privateKey) noexcept {
    return ingotSignEngine(&logger, engine, bytes, privateKey);
}

/// Builds an engine and writes it to a file, whole or not at all: the bytes of
/// IBuilder::buildSerializedNetwork(), which are never in memory together. A file that is there
/// stays until the new one replaces it. Not part of libingot_lean.so.
/// \returns false when the build fails, or the file cannot be written; the logger gets the reason.
static inline bool buildToFile(nvinfer1::IBuilder& builder, nvinfer1::INetworkDefinition& network,
                               nvinfer1::IBuilderConfig& config, const char* path) noexcept {
    return ingotBuildToFile(&builder, &network, &config, path);
}

/// An engine from a file, which is mapped: its weights are not copied to memory of the process, and
/// not to that of an IGpuAllocator. The file must not be written to while the engine lives; it may
/// be replaced or removed. The caller deletes the engine. Not part of libingot_lean.so.
/// \returns nullptr as IRuntime::deserializeCudaEngine(), and for a file that is not there or is
/// not the one that was asked for.
static inline nvinfer1::ICudaEngine* deserializeFile(nvinfer1::IRuntime& runtime,
                                                     const EngineFile& file) noexcept {
    return ingotDeserializeFile(&runtime, &file);
}

/// The identity of an engine: SHA-256 of its header and its table, which holds the SHA-256 of all
/// that follows. Two engines have one only if they are equal, as long as both can be loaded: what
/// follows is compared with the table then. Not part of libingot_lean.so.
/// \param engine all bytes of an engine, or its first 8192.
/// \param digest gets 64 hexadecimal digits and a zero.
/// \returns false, and leaves `digest`, when these are no engine's, or are damaged.
static inline bool engineDigest(const void* engine, uint64_t bytes, char (&digest)[65]) noexcept {
    return ingotEngineDigest(engine, bytes, digest);
}

/// Where the engine runs: kGPU or kCPU.
static inline Device getDevice(const nvinfer1::ICudaEngine& engine) noexcept {
    return static_cast<Device>(ingotGetDevice(&engine));
}

/// Why the engine's device is lost to this process: the first error that left it unusable, such as
/// a kernel's access to memory that is not its own. From then on every run on the device fails, of
/// all engines, and only a new process can use it. nullptr while the device is sound, which it is
/// after running out of memory and after runs that were refused; always on the CPU. The text stays
/// valid. Safe from any thread, and cheap.
static inline const char* getDeviceError(const nvinfer1::ICudaEngine& engine) noexcept {
    return ingotGetDeviceError(&engine);
}

/// Runs the engine on these inputs, unfused, looks at every float value that it computes, and calls
/// `visit` for the first layer that gives infinity or NaN; once more where the first NaN comes
/// later. Slower than a run and takes more memory: for finding out where numbers overflow. Runs on
/// the engine's device. Bodies of If and Loop count as one layer. Safe from several threads. Not
/// part of libingot_lean.so.
/// \param inputs in the order of the engine's inputs, dense and row-major in host memory whatever
/// their formats are; `dims` hold no -1.
/// \returns the number of calls, 0 when all is finite; -1 for inputs that do not fit, and errors of
/// the run, which the engine's recorder or the logger gets.
static inline int32_t findNotFinite(const nvinfer1::ICudaEngine& engine, const HostTensor* inputs,
                                    int32_t nbInputs, NotFiniteVisitor visit,
                                    void* user = nullptr) noexcept {
    return ingotFindNotFinite(&engine, inputs, nbInputs, visit, user);
}

/// How urgent the runs are of contexts made by this configuration: those on the default stream
/// (executeV2() too). Runs on a stream that the application made are as urgent as that stream is,
/// with all that they fork. The CPU ignores it. Not safe from two threads at once.
/// \returns false, and nothing changes, for another number than those of Priority.
static inline bool setPriority(nvinfer1::IRuntimeConfig& config, Priority priority) noexcept {
    return ingotSetPriority(&config, static_cast<int32_t>(priority));
}

/// Default kNORMAL.
static inline Priority getPriority(const nvinfer1::IRuntimeConfig& config) noexcept {
    return static_cast<Priority>(ingotGetPriority(&config));
}

/// How many CUDA graphs (CudaGraphStrategy) all contexts made by this configuration keep together;
/// the one used least recently makes way. Without a limit each context keeps 16. A graph is kept
/// for each group of layers that runs without the host, its shapes and its addresses; the run that
/// comes first with these takes a place too, and records nothing yet. Contexts that exist keep
/// theirs. Not safe from two threads at once.
/// \param most 1 or more.
/// \param other a configuration, of this engine or another, that has a limit with this number: its
/// contexts and those of this one keep `most` together. nullptr: those of this one alone.
/// \returns false, and nothing changes, for a number below 1 and for another one than other's.
/// Not part of libingot_dispatch.so, as the next three are not.
static inline bool setGraphLimit(nvinfer1::IRuntimeConfig& config, int32_t most,
                                 const nvinfer1::IRuntimeConfig* other = nullptr) noexcept {
    return ingotSetGraphLimit(&config, most, other);
}

/// Whether the first run with its shapes and addresses records its CUDA graphs (CudaGraphStrategy)
/// already, and launches them, where the second one would: for runs that prepare later ones, whose
/// shapes and addresses come again. Where a layer has to run before it can be recorded (a plugin, a
/// collective, streamed weights), the second run still records. Default false: shapes that come
/// once cost no graph. For contexts made from here on. Not safe from two threads at once.
/// \returns false for null.
static inline bool setRecordFirstRun(nvinfer1::IRuntimeConfig& config, bool record) noexcept {
    return ingotSetRecordFirstRun(&config, record);
}

/// The CUDA graphs that count for the configuration's limit now; 0 without a limit. Safe from any
/// thread.
static inline int32_t countGraphs(const nvinfer1::IRuntimeConfig& config) noexcept {
    return ingotCountGraphs(&config);
}

/// Why kernels for GPUs of this compute capability (90 for 9.0; 0: any) cannot be compiled here:
/// NVRTC is missing, with the places where it was sought, or too old. nullptr when they can. The
/// text stays valid. Safe from any thread.
static inline const char* getCompilerProblem(int32_t capability = 0) noexcept {
    return ingotGetCompilerProblem(capability);
}

/// Folder where compiled kernels are kept, for contexts of this process that are made from here on
/// without an IRuntimeCache. nullptr: the user's (the default); "": none. Safe from any thread.
/// \returns false when it cannot be made or written.
static inline bool setCacheFolder(const char* path) noexcept {
    return ingotSetCacheFolder(path);
}

/// The folder in use, "" for none; the text stays valid. Safe from any thread.
static inline const char* getCacheFolder() noexcept {
    return ingotGetCacheFolder();
}

/// A layer that runs a kernel given as text. Its type is LayerType::kPLUGIN. nullptr when the
/// signature does not fit the inputs or an expression is malformed; the message says where.
static inline nvinfer1::ILayer* addCudaSourceLayer(nvinfer1::INetworkDefinition& network,
                                                   nvinfer1::ITensor* const* inputs,
                                                   int32_t nbInputs,
                                                   const CudaSource& source) noexcept {
    return ingotAddCudaSourceLayer(&network, inputs, nbInputs, &source);
}

/// Makes the ONNX parser take the kernel for nodes of this operator that Ingot does not know and
/// that no registered plugin stands for. A node's INT and FLOAT attributes are names too: integers
/// in expressions, floats as in float(alpha). For all parsers of the process, until it is
/// deregistered; networks that have been parsed keep it. Strings are copied. Safe from any thread.
/// \param domain of the operator; nullptr or "" for ONNX's own.
/// \returns false when a text is missing or the operator has a kernel already.
static inline bool registerCudaSource(const char* domain, const char* op,
                                      const CudaSource& source) noexcept {
    return ingotRegisterCudaSource(domain, op, &source);
}

/// \returns false when the operator has none.
static inline bool deregisterCudaSource(const char* domain, const char* op) noexcept {
    return ingotDeregisterCudaSource(domain, op);
}

/// Lets engines with kernels given as text run on the CPU: the function stands for those whose
/// CudaSource::name is `name`, until it is deregistered. An engine holds no host code, so that
/// every process that runs it there registers its own before it makes a context. Safe from any
/// thread.
/// \param user is handed to each call.
/// \returns false when there is one already.
static inline bool registerHostKernel(const char* name, HostKernel kernel,
                                      void* user = nullptr) noexcept {
    return ingotRegisterHostKernel(name, kernel, user);
}

/// Engines that have a context keep it. \returns false when there is none.
static inline bool deregisterHostKernel(const char* name) noexcept {
    return ingotDeregisterHostKernel(name);
}

/// Judges each node of the model that IParser::loadModelProto() read by itself, once, in an order
/// in which they can run; the parser's network stays as it is. Where a node is refused, its results
/// have the type that the model's value_info says, so that others are judged behind it: several
/// parts of a model that are taken can be cut out and built. Initialisers that the parser does not
/// have are given to it before (IParser::loadInitializer()).
/// \returns false for a model that is malformed as a whole; the parser's errors say why.
static inline bool claimNodes(nvonnxparser::IParser& parser, NodeVerdict verdict,
                              void* user) noexcept {
    return ingotClaimNodes(&parser, verdict, user);
}

/// Makes these inputs of the model that is parsed next inputs of the network with a default: a
/// program may ask for it (getInputDefault()) and bind it in a run that has no value of its own.
/// Since IR version 4 an initializer with an input's name is its default. Without this call such
/// inputs are constants, since some exporters list all weights among the inputs. The names are
/// copied; a second call replaces them. A model fails to parse where one has no default; the
/// parser's errors say why.
/// \returns false for null.
static inline bool setOptionalInputs(nvonnxparser::IParser& parser, const char* const* names,
                                     int32_t nbNames) noexcept {
    return ingotSetOptionalInputs(&parser, names, nbNames);
}

/// The default of an input that the build was told to be optional (setOptionalInputs(),
/// --optionalInputs), or that a refit has set since: to a refitter it is a weight of the input's
/// name. Not part of libingot_lean.so. \param value gets the default, valid until the engine is
/// refitted or destroyed, for reading alone.
/// \returns false, and leaves `value`, for an input without one and for a name that is no input.
static inline bool getInputDefault(const nvinfer1::ICudaEngine& engine, const char* name,
                                   HostTensor& value) noexcept {
    return ingotGetInputDefault(&engine, name, &value);
}

/// Calls `visit` for each constant of an ONNX model and of its bodies and functions, without an
/// import. Nothing is copied: initializers are in `model`, or in external files that are mapped
/// during the call. Sparse constants and strings are left out. Safe from any thread.
/// \param folder of the external data; nullptr or "" for none.
/// \returns false for a malformed model; the logger gets the reason.
static inline bool visitTensors(nvinfer1::ILogger& logger, const void* model, size_t size,
                                const char* folder, TensorVisitor visit, void* user) noexcept {
    return ingotVisitTensors(&logger, model, size, folder, visit, user);
}

/// Number of the algorithm of IInt8MseCalibrator.
static constexpr nvinfer1::CalibrationAlgoType kMSE_CALIBRATION =
    static_cast<nvinfer1::CalibrationAlgoType>(100);

/// A calibrator whose ranges give the least mean squared error.
class IInt8MseCalibrator : public nvinfer1::IInt8Calibrator {
public:
    nvinfer1::InterfaceInfo getInterfaceInfo() const noexcept override {
        return {"IInt8MseCalibrator", 1, 0};
    }
    nvinfer1::CalibrationAlgoType getAlgorithm() noexcept override { return kMSE_CALIBRATION; }
};

} // namespace ingot
