// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/backend.h"

#include "backends/backends.h"
#include "backends/cuda/driver/driver.h"
#include "backends/cuda/driver/nvrtc.h"
#include "backends/cuda/kernel_set.h"
#include "backends/cuda/lower.h"
#include "backends/cuda/lowered_graphs.h"
#include "backends/cuda/options.h"
#include "backends/device_memory.h"
#include "kernels/figures.h"
#include "run/execution.h"

#include <algorithm>
#include <thread>

namespace ingot {

namespace cuda {

namespace {

constexpr int most_compile_threads = 8;

class CudaExecutable : public Executable {
public:
    CudaExecutable(std::shared_ptr<const LoweredGraph> lowered,
                   std::shared_ptr<const Program> program, std::shared_ptr<CudaState> state)
        : lowered_(std::move(lowered)), program_(std::move(program)), state_(std::move(state)) {}

    std::unique_ptr<Execution> create_execution() const override {
        return std::make_unique<plan::ProgramExecution>(program_,
                                                        std::make_shared<CudaDevice>(state_));
    }
    const Graph& lowered() const override { return *program_->graph; }
    size_t packed_bytes() const override {
        return program_->packs->bytes() + state_->weights.bytes();
    }

private:
    std::shared_ptr<const LoweredGraph> lowered_; // others find it while this lives
    std::shared_ptr<const Program> program_;
    std::shared_ptr<CudaState> state_;
};

/// Whether a profile leaves a size open.
bool is_dynamic(const std::vector<Profile>& profiles) {
    return std::any_of(profiles.begin(), profiles.end(), [](const Profile& p) {
        return std::any_of(p.inputs.begin(), p.inputs.end(),
                           [](const ShapeRange& r) { return r.min != r.max; });
    });
}

int64_t constant_bytes(const Graph& g) {
    int64_t bytes = 0;
    for (const Node& n : g.nodes()) {
        bytes += n.is(constant_def) ? static_cast<int64_t>(n.as<Constant>().value.byte_count()) : 0;
    }
    return bytes;
}

class CudaBackend : public Backend {
public:
    const kernels::Arch& arch() const { return gpu_.arch(); }
    CudaBackend(Gpu& gpu, int threads) : gpu_(gpu), threads_(threads), lowered_(gpu) {
        if (threads_ <= 0) {
            threads_ = std::min(static_cast<int>(std::thread::hardware_concurrency()),
                                most_compile_threads);
        }
    }
    std::string_view name() const override { return "cuda"; }
    std::string description() const override { return gpu_.description(); }
    DeviceMemoryInfo memory() const override { return {gpu_.free_bytes(), gpu_.total_bytes()}; }
    int compute_capability() const override { return gpu_.arch().cc; }
    bool compiles() const {
        bool is_real = gpu_.number() >= 0; // simulated GPUs have compilers of their own
        return !is_real || nvrtc_knows(std::string(gpu_.arch().nvrtc));
    }
    const char* error() const { return gpu_.error(); }
    std::string timing_device() const override { return cuda::timing_device(gpu_, gpu_.arch()); }
    void read(void* to, const void* from, size_t bytes, void* after) const override {
        std::unique_ptr<Stream> stream = gpu_.create_stream();
        if (StreamOrder* order = stream->parts().order) {
            order->wait_for(after);
        }
        stream->read(to, static_cast<const std::byte*>(from), bytes);
    }

    void write(void* to, const void* from, size_t bytes) const override {
        std::unique_ptr<Stream> stream = gpu_.create_stream();
        stream->write(static_cast<std::byte*>(to), from, bytes);
        stream->synchronize();
    }
    std::byte* allocate(int64_t bytes) const override { return gpu_.allocate(bytes); }
    void release(std::byte* memory) const noexcept override { gpu_.release(memory); }

    /// The lowered graph, with its weights on the device unless a budget, which plans explain, or
    /// plugins, which need the device itself, decide over them.
    std::shared_ptr<const LoweredGraph> upload(const std::shared_ptr<const Graph>& graph,
                                               const CompileOptions& options) const {
        std::shared_ptr<const LoweredGraph> lowered = lowered_.find(graph, options);
        bool plain = options.of<CudaOptions>().memory_limit == 0 && options.plugins == nullptr;
        if (plain && lowered->device->weights.bytes() == 0) {
            upload_weights(gpu_, *lowered, options);
        }
        return lowered;
    }

    std::shared_ptr<const Executable> compile(std::shared_ptr<const Graph> graph,
                                              const CompileOptions& options) const override {
        CompileOptions o = options;
        auto& own = o.of<CudaOptions>();
        if (own.specialise == Specialise::Auto) {
            own.specialise = is_dynamic(o.profiles) ? Specialise::Lazy : Specialise::None;
        }
        // Either all ranks or none may record an exchange, and ranks do not know when the others
        // record.
        own.record_graphs = own.record_graphs && !has_collectives(*graph);
        Caches caches = find_caches(o);
        caches.programs->start_compiler();
        std::shared_ptr<const LoweredGraph> lowered = upload(graph, o);
        auto state = std::make_shared<CudaState>(gpu_, caches.programs, o, lowered->device);
        int64_t weights = constant_bytes(*lowered->graph);
        auto program = make_program(lowered->graph, cuda_kernels(), lowered->packs, o);
        ProfilePrograms::find(state, program);
        if (own.tune != Tune::Off) {
            state->tuner = std::make_unique<Tuner>(*state, caches.timings, weights);
        }
        return std::make_shared<CudaExecutable>(std::move(lowered), std::move(program),
                                                std::move(state));
    }

    std::vector<std::pair<std::string, std::string>> requested() const {
        std::scoped_lock lock(mutex_);
        std::vector<std::pair<std::string, std::string>> all;
        for (const auto& [folder, cache] : caches_) {
            for (KernelUse& p : cache->programs()) {
                all.emplace_back(std::move(p.entry), std::move(p.text));
            }
        }
        return all;
    }

    ProgramCounts counts() const {
        std::scoped_lock lock(mutex_);
        ProgramCounts n;
        for (const auto& [folder, cache] : caches_) {
            ProgramCache::Statistics s = cache->statistics();
            n.requested += s.programs;
            n.compiled += s.compiled;
        }
        return n;
    }

private:
    struct Caches {
        std::shared_ptr<ProgramCache> programs;
        std::shared_ptr<plan::TimingCache> timings;
    };

    /// Executables with the same runtime cache share programs, except those whose engines contain
    /// kernels.
    Caches find_caches(const CompileOptions& all) const {
        const auto& options = all.of<CudaOptions>();
        bool one_file = !options.runtime_cache_file.empty();
        bool in_memory = options.kernel_cache != nullptr;
        std::string place = in_memory  ? std::string()
                            : one_file ? options.runtime_cache_file
                            : options.runtime_cache == "default"
                                ? plan::RuntimeCache::default_folder()
                                : options.runtime_cache;
        std::string times = !options.timing_cache_file.empty() ? options.timing_cache_file
                            : place.empty()                    ? std::string()
                                            : place + (one_file ? ".timing" : "/timing.txt");
        std::scoped_lock lock(mutex_);
        Caches found;
        if (options.tune != Tune::Off) {
            auto read = [&] { return std::make_shared<plan::TimingCache>(times); };
            found.timings = options.timing_cache != nullptr ? options.timing_cache
                                                            : shared(timings_, times, read);
        }
        auto disk = place.empty() ? options.kernel_cache : shared(disks_, place, [&] {
            using Kind = plan::RuntimeCache::Kind;
            return std::make_shared<plan::RuntimeCache>(place,
                                                        one_file ? Kind::File : Kind::Folder);
        });
        // A thread cannot raise its priority again: programs are shared within a priority.
        bool gives_way = options.priority == RunPriority::Low;
        auto make = [&] {
            return std::make_shared<ProgramCache>(gpu_, all.kernels, disk, threads_, gives_way);
        };
        bool own = in_memory || (all.kernels != nullptr && !all.kernels->empty());
        found.programs = own ? make() : shared(caches_, place + (gives_way ? "\nlow" : ""), make);
        return found;
    }

    /// The entry of that key, made on a miss.
    template <class T, class Make>
    static std::shared_ptr<T> shared(std::map<std::string, std::shared_ptr<T>>& all,
                                     const std::string& key, Make&& make) {
        std::shared_ptr<T>& entry = all[key];
        entry = entry == nullptr ? make() : entry;
        return entry;
    }

    Gpu& gpu_;
    int threads_;
    mutable LoweredGraphs lowered_;
    mutable std::mutex mutex_;
    mutable std::map<std::string, std::shared_ptr<plan::RuntimeCache>> disks_;
    mutable std::map<std::string, std::shared_ptr<plan::TimingCache>> timings_;
    mutable std::map<std::string, std::shared_ptr<ProgramCache>> caches_;
};

} // namespace

std::unique_ptr<Backend> make_backend(Gpu& gpu, int compile_threads) {
    return std::make_unique<CudaBackend>(gpu, compile_threads);
}

std::vector<std::pair<std::string, std::string>> requested_programs(const Backend& backend) {
    return static_cast<const CudaBackend&>(backend).requested();
}

ProgramCounts count_programs(const Backend& backend) {
    return static_cast<const CudaBackend&>(backend).counts();
}

} // namespace cuda

const Backend* cuda_backend(std::string& why) {
    return cuda_backend(0, why);
}

const Backend* cuda_backend(int index, std::string& why) {
    static std::mutex mutex;
    static std::map<int, std::unique_ptr<Backend>> backends;
    std::scoped_lock lock(mutex);
    auto it = backends.find(index);
    if (it == backends.end()) {
        cuda::Gpu* gpu = cuda::find_gpu(index, why);
        if (gpu == nullptr) {
            return nullptr;
        }
        it = backends.emplace(index, cuda::make_backend(*gpu)).first;
    }
    return it->second.get();
}

bool is_fast(const Backend& backend, DType dtype) {
    constexpr int fp8_units = 89; // the first with FP8 units; all GPUs from 8.0 on have the others
    int cc = backend.compute_capability();
    bool fp8 = dtype == DType::F8E4M3 || dtype == DType::F8E5M2;
    bool narrow = dtype == DType::F16 || dtype == DType::BF16 || dtype == DType::I8;
    return dtype == DType::F32 || (cc > 0 && narrow) || (cc >= fp8_units && fp8);
}

std::optional<plan::DeviceFigures> device_figures(const Backend& backend,
                                                  const CompileOptions& options) {
    const auto* gpu = dynamic_cast<const cuda::CudaBackend*>(&backend);
    if (gpu == nullptr) {
        return std::nullopt;
    }
    plan::DeviceFigures f = kernels::figures_of(gpu->arch(), options.of<CudaOptions>().tf32);
    f.name = gpu->description();
    return f;
}

const char* device_error(const Backend& backend) {
    const auto* gpu = dynamic_cast<const cuda::CudaBackend*>(&backend);
    return gpu == nullptr ? nullptr : gpu->error();
}

std::shared_ptr<const void> upload_weights(const Backend& backend,
                                           const std::shared_ptr<const Graph>& graph,
                                           const CompileOptions& options) {
    const auto* gpu = dynamic_cast<const cuda::CudaBackend*>(&backend);
    return gpu == nullptr ? nullptr : gpu->upload(graph, options);
}

bool compiles_kernels(const Backend& backend) {
    const auto* gpu = dynamic_cast<const cuda::CudaBackend*>(&backend);
    return gpu == nullptr || gpu->compiles();
}

int lowest_capability() {
    return kernels::known_archs().front().cc;
}

bool runs_kernels_of(int compute_capability, int compiled_for) {
    // Keys name the architecture: those of others are not looked up.
    return kernels::arch_of(compute_capability).nvrtc == kernels::arch_of(compiled_for).nvrtc;
}

CudaProblem cuda_problem() {
    return cuda::driver_problem();
}

int current_cuda_device() {
    std::string why;
    const cuda::Driver* d = cuda::find_driver(why);
    return d == nullptr ? 0 : cuda::current_device(*d);
}

std::string kernel_compiler() {
    return cuda::nvrtc_version();
}

std::string kernel_compiler_problem(int compute_capability) {
    return cuda::nvrtc_problem(compute_capability == 0
                                   ? std::string()
                                   : std::string(kernels::arch_of(compute_capability).nvrtc));
}

} // namespace ingot
