// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/backend.h"

#include "backends/cuda/device.h"
#include "backends/cuda/kernel_set.h"
#include "backends/cuda/lower.h"
#include "backends/cuda/nvrtc.h"
#include "plan/execution.h"

#include <thread>

namespace ingot {

namespace cuda {

namespace {

constexpr int most_compile_threads = 8;

class CudaExecutable : public Executable {
public:
    CudaExecutable(std::shared_ptr<const Program> program, std::shared_ptr<CudaState> state)
        : program_(std::move(program)), state_(std::move(state)) {}

    std::unique_ptr<Execution> create_execution() const override {
        return std::make_unique<plan::ProgramExecution>(program_,
                                                        std::make_shared<CudaDevice>(state_));
    }
    const Graph& lowered() const override { return *program_->graph; }
    size_t packed_bytes() const override {
        return program_->packs->bytes() + state_->weights.bytes();
    }

private:
    std::shared_ptr<const Program> program_;
    std::shared_ptr<CudaState> state_;
};

class CudaBackend : public Backend {
public:
    CudaBackend(Gpu& gpu, int threads) : gpu_(gpu), threads_(threads) {
        if (threads_ <= 0) {
            threads_ = std::min(static_cast<int>(std::thread::hardware_concurrency()),
                                most_compile_threads);
        }
    }
    std::string_view name() const override { return "cuda"; }
    std::string description() const override { return gpu_.description(); }

    std::shared_ptr<const Executable> compile(std::shared_ptr<const Graph> graph,
                                              const CompileOptions& options) const override {
        std::string folder = options.runtime_cache == "default"
                                 ? plan::RuntimeCache::default_folder()
                                 : options.runtime_cache;
        auto state = std::make_shared<CudaState>(gpu_, programs(folder, options), options);
        auto lowered = std::make_shared<const Graph>(lower(*graph, options));
        return std::make_shared<CudaExecutable>(make_program(std::move(lowered), cuda_kernels(),
                                                             std::make_shared<PackCache>(),
                                                             options),
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

private:
    /// Programs are shared by all executables that use the same runtime cache, those apart whose
    /// engines brought kernels along.
    std::shared_ptr<ProgramCache> programs(const std::string& folder,
                                           const CompileOptions& options) const {
        auto make = [&] {
            auto disk = folder.empty() ? nullptr : std::make_shared<plan::RuntimeCache>(folder);
            return std::make_shared<ProgramCache>(gpu_, options.kernels, std::move(disk), threads_);
        };
        if (options.kernels != nullptr && !options.kernels->empty()) {
            return make();
        }
        std::scoped_lock lock(mutex_);
        std::shared_ptr<ProgramCache>& cache = caches_[folder];
        cache = cache == nullptr ? make() : cache;
        return cache;
    }

    Gpu& gpu_;
    int threads_;
    mutable std::mutex mutex_;
    mutable std::map<std::string, std::shared_ptr<ProgramCache>> caches_;
};

} // namespace

std::unique_ptr<Backend> make_backend(Gpu& gpu, int compile_threads) {
    return std::make_unique<CudaBackend>(gpu, compile_threads);
}

std::vector<std::pair<std::string, std::string>> requested_programs(const Backend& backend) {
    return static_cast<const CudaBackend&>(backend).requested();
}

} // namespace cuda

const Backend* cuda_backend(std::string& why) {
    static std::mutex mutex;
    static std::unique_ptr<Backend> backend;
    std::scoped_lock lock(mutex);
    if (backend == nullptr) {
        cuda::Gpu* gpu = cuda::find_gpu(0, why);
        if (gpu == nullptr) {
            return nullptr;
        }
        backend = cuda::make_backend(*gpu);
    }
    return backend.get();
}

std::string kernel_compiler() {
    return cuda::nvrtc_version();
}

} // namespace ingot
