// SPDX-License-Identifier: Apache-2.0
#include "api/dispatch/dispatch_runtime.h"

#include "engine/container.h"

#include <algorithm>
#include <cstring>
#include <thread>

namespace ingot::api {

using nvinfer1::EngineInvalidityDiagnostics;
using nvinfer1::EngineValidity;
using nvinfer1::ICudaEngine;

namespace {

constexpr uint32_t major_shift = 16; // of a producer's version

/// Copies the unread rest of `first`.
int64_t take(std::span<const std::byte>& first, void* to, int64_t bytes) {
    size_t n = std::min(first.size(), static_cast<size_t>(std::max<int64_t>(bytes, 0)));
    std::memcpy(to, first.data(), n);
    first = first.subspan(n);
    return static_cast<int64_t>(n);
}

/// Replays bytes that were read already, then reads on from the reader.
class WholeReader final : public nvinfer1::IStreamReader {
public:
    WholeReader(std::span<const std::byte> first, nvinfer1::IStreamReader& rest)
        : first_(first), rest_(rest) {}
    int64_t read(void* to, int64_t bytes) override {
        return first_.empty() ? rest_.read(to, bytes) : take(first_, to, bytes);
    }

private:
    std::span<const std::byte> first_;
    nvinfer1::IStreamReader& rest_;
};

/// The same; does not seek, and runtimes never seek.
class WholeReaderV2 final : public nvinfer1::IStreamReaderV2 {
public:
    WholeReaderV2(std::span<const std::byte> first, nvinfer1::IStreamReaderV2& rest)
        : first_(first), rest_(rest) {}
    int64_t read(void* to, int64_t bytes, cudaStream_t stream) noexcept override {
        return first_.empty() ? rest_.read(to, bytes, stream) : take(first_, to, bytes);
    }
    bool seek(int64_t, nvinfer1::SeekPosition) noexcept override { return false; }

private:
    std::span<const std::byte> first_;
    nvinfer1::IStreamReaderV2& rest_;
};

template <class Read>
std::vector<std::byte> read_header(const Read& read) {
    std::vector<std::byte> bytes(engine_header_bytes);
    size_t have = 0;
    while (have < bytes.size()) {
        int64_t got = read(bytes.data() + have, static_cast<int64_t>(bytes.size() - have));
        require(got >= 0 && got <= static_cast<int64_t>(bytes.size() - have), ErrorCode::Io,
                "the reader gave ", got, " for ", bytes.size() - have, " bytes after ", have);
        if (got == 0) {
            break;
        }
        have += static_cast<size_t>(got);
    }
    bytes.resize(have);
    return bytes;
}

} // namespace

LeanLibraries& LeanLibraries::shared() {
    // NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
    static auto& all = *new LeanLibraries;
    return all;
}

const LeanLibrary& LeanLibraries::of_major(uint32_t major, bool is_readable) {
    std::scoped_lock lock(mutex_);
    auto it = by_major_.find(major);
    if (it == by_major_.end()) {
        it = by_major_.emplace(major, LeanLibrary::find(major, is_readable)).first;
        if (cache_folder_) {
            it->second.set_cache_folder(*cache_folder_ ? (*cache_folder_)->c_str() : nullptr);
        }
    }
    return it->second;
}

const LeanLibrary& LeanLibraries::current() {
    return of_major(engine_producer >> major_shift, true);
}

const LeanLibrary* LeanLibraries::maker(const void* object) {
    std::scoped_lock lock(mutex_);
    for (const auto& [major, library] : by_major_) {
        if (library.made(object)) {
            return &library;
        }
    }
    return nullptr;
}

bool LeanLibraries::set_cache_folder(const char* path) {
    bool ok = current().set_cache_folder(path);
    std::scoped_lock lock(mutex_);
    for (const auto& [major, library] : by_major_) {
        ok = library.set_cache_folder(path) && ok;
    }
    if (ok) {
        std::optional<std::string>& folder = cache_folder_.emplace();
        if (path != nullptr) {
            folder = path;
        }
    }
    return ok;
}

DispatchRuntime::DispatchRuntime(nvinfer1::ILogger* logger) : report_(logger) {
    settings_.max_threads = static_cast<int32_t>(std::max(1U, std::thread::hardware_concurrency()));
}

void DispatchRuntime::configure(nvinfer1::IRuntime& runtime, const LeanLibrary& library) const {
    const Settings& s = settings_;
    runtime.setErrorRecorder(report_.recorder());
    runtime.setGpuAllocator(s.allocator);
    runtime.setDLACore(s.dla_core);
    runtime.setMaxThreads(s.max_threads);
    runtime.setTemporaryDirectory(s.temporary ? s.temporary->c_str() : nullptr);
    runtime.setTempfileControlFlags(s.tempfile_flags);
    runtime.setEngineHostCodeAllowed(s.host_code);
    runtime.setDeferredWeightsLoading(s.deferred);
    if (s.device != 0 || s.ordinal != 0) {
        library.set_device(runtime, s.device, s.ordinal);
    }
    if (!s.verify_weights) {
        library.set_verify_weights(runtime, false);
    }
    bool told = (!s.trusted_keys || library.set_trusted_keys(runtime, s.trusted_keys->c_str())) &&
                (!s.trusted_only || library.set_trusted_only(runtime, true));
    require(told, ErrorCode::Unsupported, "'", library.path(), "' is of Ingot ", library.version(),
            ", which does not check signatures, and trusted keys are set");
}

nvinfer1::IRuntime& DispatchRuntime::runtime_for(std::span<const std::byte> header) const {
    EngineHeader about = read_engine_header(header);
    uint32_t major = about.producer >> major_shift;
    std::scoped_lock lock(mutex_);
    auto it = runtimes_.find(major);
    if (it == runtimes_.end()) {
        const LeanLibrary& library = LeanLibraries::shared().of_major(major, about.is_readable);
        std::unique_ptr<nvinfer1::IRuntime> runtime = library.create_runtime(report_.logger());
        require(runtime != nullptr, ErrorCode::Unsupported, "'", library.path(),
                "' made no runtime");
        configure(*runtime, library);
        it = runtimes_.emplace(major, Made{&library, std::move(runtime)}).first;
    }
    return *it->second.runtime;
}

template <class F>
void DispatchRuntime::for_all(const char* method, const F& change) const noexcept {
    report_.guard(method, [&] {
        std::scoped_lock lock(mutex_);
        for (const auto& [major, made] : runtimes_) {
            change(*made.runtime);
        }
    });
}

ICudaEngine* DispatchRuntime::deserializeCudaEngine(const void* blob, std::size_t size) noexcept {
    return report_.guard("IRuntime::deserializeCudaEngine", static_cast<ICudaEngine*>(nullptr),
                         [&] {
                             require(blob != nullptr, ErrorCode::InvalidArgument,
                                     "the engine's bytes are at a null address");
                             std::span bytes(static_cast<const std::byte*>(blob), size);
                             return runtime_for(bytes).deserializeCudaEngine(blob, size);
                         });
}

ICudaEngine* DispatchRuntime::deserializeCudaEngine(nvinfer1::IStreamReaderV2& reader) noexcept {
    return report_.guard(
        "IRuntime::deserializeCudaEngine", static_cast<ICudaEngine*>(nullptr), [&] {
            std::vector<std::byte> header =
                read_header([&reader](void* to, int64_t n) { return reader.read(to, n, nullptr); });
            WholeReaderV2 whole(header, reader);
            return runtime_for(header).deserializeCudaEngine(whole);
        });
}

ICudaEngine* DispatchRuntime::deserializeCudaEngine(nvinfer1::IStreamReader& reader) noexcept {
    return report_.guard(
        "IRuntime::deserializeCudaEngine", static_cast<ICudaEngine*>(nullptr), [&] {
            std::vector<std::byte> header =
                read_header([&reader](void* to, int64_t n) { return reader.read(to, n); });
            WholeReader whole(header, reader);
            return runtime_for(header).deserializeCudaEngine(whole);
        });
}

void DispatchRuntime::setDLACore(int32_t core) noexcept {
    settings_.dla_core = core;
    for_all("IRuntime::setDLACore", [&](nvinfer1::IRuntime& r) { r.setDLACore(core); });
}

void DispatchRuntime::setGpuAllocator(nvinfer1::IGpuAllocator* allocator) noexcept {
    settings_.allocator = allocator;
    for_all("IRuntime::setGpuAllocator",
            [&](nvinfer1::IRuntime& r) { r.setGpuAllocator(allocator); });
}

void DispatchRuntime::setErrorRecorder(nvinfer1::IErrorRecorder* recorder) noexcept {
    report_.set_recorder(recorder);
    for_all("IRuntime::setErrorRecorder",
            [&](nvinfer1::IRuntime& r) { r.setErrorRecorder(recorder); });
}

bool DispatchRuntime::setMaxThreads(int32_t threads) noexcept {
    bool ok = report_.guard("IRuntime::setMaxThreads", false, [&] {
        require(threads >= 1, ErrorCode::InvalidArgument, "the number of threads is ", threads,
                ", expected at least 1");
        settings_.max_threads = threads;
        return true;
    });
    for_all("IRuntime::setMaxThreads",
            [&](nvinfer1::IRuntime& r) { r.setMaxThreads(settings_.max_threads); });
    return ok;
}

void DispatchRuntime::setTemporaryDirectory(const char* path) noexcept {
    report_.guard("IRuntime::setTemporaryDirectory", [&] {
        settings_.temporary = path == nullptr ? std::nullopt : std::optional<std::string>(path);
    });
    for_all("IRuntime::setTemporaryDirectory",
            [&](nvinfer1::IRuntime& r) { r.setTemporaryDirectory(path); });
}

void DispatchRuntime::setTempfileControlFlags(nvinfer1::TempfileControlFlags flags) noexcept {
    report_.guard("IRuntime::setTempfileControlFlags", [&] {
        require(flags <= 3, ErrorCode::InvalidArgument, "flags are ", flags,
                ", expected bits of 3");
        settings_.tempfile_flags = flags;
    });
    for_all("IRuntime::setTempfileControlFlags",
            [&](nvinfer1::IRuntime& r) { r.setTempfileControlFlags(settings_.tempfile_flags); });
}

nvinfer1::IPluginRegistry& DispatchRuntime::getPluginRegistry() noexcept {
    return *::getPluginRegistry();
}

nvinfer1::IRuntime* DispatchRuntime::loadRuntime(const char* path) noexcept {
    return report_.guard("IRuntime::loadRuntime", static_cast<nvinfer1::IRuntime*>(nullptr),
                         [&] { return LeanLibrary::load_runtime(path, report_).release(); });
}

void DispatchRuntime::setEngineHostCodeAllowed(bool allowed) noexcept {
    settings_.host_code = allowed;
    for_all("IRuntime::setEngineHostCodeAllowed",
            [&](nvinfer1::IRuntime& r) { r.setEngineHostCodeAllowed(allowed); });
}

int64_t DispatchRuntime::getEngineHeaderSize() const noexcept {
    return static_cast<int64_t>(engine_header_bytes);
}

EngineValidity DispatchRuntime::getEngineValidity(const void* blob, int64_t size,
                                                  uint64_t* diagnostics) const noexcept {
    uint64_t found = 0;
    EngineValidity result = report_.guard(
        "IRuntime::getEngineValidity", EngineValidity::kINVALID, [&]() -> EngineValidity {
            found = static_cast<uint64_t>(EngineInvalidityDiagnostics::kMALFORMED_ENGINE);
            require(blob != nullptr && size >= 0, ErrorCode::InvalidEngine,
                    "the engine's bytes are at a null address");
            std::span bytes(static_cast<const std::byte*>(blob), static_cast<size_t>(size));
            static_cast<void>(read_engine_header(bytes));
            found = static_cast<uint64_t>(EngineInvalidityDiagnostics::kVERSION_MISMATCH);
            nvinfer1::IRuntime& runtime = runtime_for(bytes);
            return runtime.getEngineValidity(blob, size, &found);
        });
    if (diagnostics != nullptr) {
        *diagnostics = result == EngineValidity::kINVALID ? found : 0;
    }
    return result;
}

void DispatchRuntime::setDeferredWeightsLoading(bool defer) noexcept {
    settings_.deferred = defer;
    for_all("IRuntime::setDeferredWeightsLoading",
            [&](nvinfer1::IRuntime& r) { r.setDeferredWeightsLoading(defer); });
}

bool DispatchRuntime::setDLAWorkspaceAllocationStrategy(
    nvinfer1::DLAWorkspaceAllocationStrategy strategy) noexcept {
    return report_.guard("IRuntime::setDLAWorkspaceAllocationStrategy", false, [&] {
        const auto number = static_cast<int32_t>(strategy);
        require(number >= 0 &&
                    number < nvinfer1::EnumMax<nvinfer1::DLAWorkspaceAllocationStrategy>(),
                ErrorCode::InvalidArgument, "the strategy is ", number, ", expected 0 to ",
                nvinfer1::EnumMax<nvinfer1::DLAWorkspaceAllocationStrategy>() - 1);
        settings_.dla_workspace = strategy;
        return true;
    });
}

bool DispatchRuntime::set_verify_weights(bool verify) noexcept {
    return report_.guard("ingot::setVerifyWeights", false, [&] {
        settings_.verify_weights = verify;
        std::scoped_lock lock(mutex_);
        bool ok = true;
        for (const auto& [major, made] : runtimes_) {
            ok = made.library->set_verify_weights(*made.runtime, verify) && ok;
        }
        return ok;
    });
}

bool DispatchRuntime::set_trusted_keys(const char* public_keys) noexcept {
    return report_.guard("ingot::setTrustedKeys", false, [&] {
        // The runtime of this release knows what keys look like.
        const LeanLibrary& library = LeanLibraries::shared().current();
        auto probe = library.create_runtime(report_.logger());
        if (probe == nullptr || !library.set_trusted_keys(*probe, public_keys)) {
            return false;
        }
        settings_.trusted_keys =
            public_keys == nullptr ? std::nullopt : std::optional<std::string>(public_keys);
        std::scoped_lock lock(mutex_);
        bool ok = true;
        for (const auto& [major, made] : runtimes_) {
            ok = made.library->set_trusted_keys(*made.runtime, public_keys) && ok;
        }
        return ok;
    });
}

bool DispatchRuntime::set_trusted_only(bool only) noexcept {
    return report_.guard("ingot::setTrustedOnly", false, [&] {
        settings_.trusted_only = only;
        std::scoped_lock lock(mutex_);
        bool ok = true;
        for (const auto& [major, made] : runtimes_) {
            ok = made.library->set_trusted_only(*made.runtime, only) && ok;
        }
        return ok;
    });
}

bool DispatchRuntime::set_device(int32_t device, int32_t ordinal) noexcept {
    return report_.guard("ingot::setDevice", false, [&] {
        // The runtime of this release lists all of them.
        const LeanLibrary& library = LeanLibraries::shared().current();
        auto probe = library.create_runtime(report_.logger());
        if (probe == nullptr || !library.set_device(*probe, device, ordinal)) {
            return false;
        }
        settings_.device = device;
        settings_.ordinal = ordinal;
        std::scoped_lock lock(mutex_);
        bool ok = true;
        for (const auto& [major, made] : runtimes_) {
            ok = made.library->set_device(*made.runtime, device, ordinal) && ok;
        }
        return ok;
    });
}

} // namespace ingot::api
