// SPDX-License-Identifier: Apache-2.0
#include "kernels/test_device.h"

#include "backends/cuda/driver/nvrtc.h"
#include "base/error.h"
#include "base/hash.h"
#include "cache/runtime_cache.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>

namespace ingot::test {

using kernels::Arch;

namespace {

bool is_set(const char* name, std::string_view wanted) {
    const char* value = std::getenv(name);
    return value != nullptr && value == wanted;
}

cuda::Gpu& real_gpu() {
    if (is_set("INGOT_TEST_GPU", "emulated")) {
        static emulator::EmulatedGpu stand_in(90);
        return stand_in;
    }
    std::string why;
    cuda::Gpu* gpu = cuda::find_gpu(0, why);
    require(gpu != nullptr, ErrorCode::Unsupported, "INGOT_TEST_GPU is set, but ", why);
    return *gpu;
}

/// Compiled once per process and, through the runtime cache, once per machine.
class Compiled {
public:
    std::string binary(const cuda::Gpu& gpu, const std::string& text) {
        {
            std::scoped_lock lock(mutex_);
            if (auto it = binaries_.find(text); it != binaries_.end()) {
                return it->second;
            }
        }
        plan::CacheKey key = plan::cache_key(text, gpu.compiler());
        std::optional<std::string> kept = disk_.find(key);
        std::string made = kept ? std::move(*kept) : gpu.compile(text);
        if (!kept) {
            disk_.add(key, made, cuda::nvrtc_version());
        }
        std::scoped_lock lock(mutex_);
        return binaries_.emplace(text, std::move(made)).first->second;
    }
    std::shared_ptr<const cuda::Function> function(cuda::Gpu& gpu, std::string_view binary,
                                                   const std::string& entry, int64_t shared) {
        std::scoped_lock lock(mutex_);
        auto& slot = functions_[std::pair(std::string(binary), entry)];
        if (slot.first == nullptr || shared > slot.second) {
            slot = {gpu.load(binary, entry, shared), shared};
        }
        return slot.first;
    }

private:
    std::mutex mutex_;
    plan::RuntimeCache disk_{plan::RuntimeCache::default_folder()};
    std::map<std::string, std::string> binaries_;
    std::map<std::pair<std::string, std::string>,
             std::pair<std::shared_ptr<const cuda::Function>, int64_t>>
        functions_;
};

Compiled& compiled() {
    static Compiled c;
    return c;
}

} // namespace

/// The device with the attributes of another; allocations are poisoned and lie between red zones.
class TestDevice::CheckedGpu : public cuda::Gpu {
public:
    explicit CheckedGpu(const Arch& arch)
        : real_(real_gpu()), arch_(arch), stream_(real_.create_stream()) {}

    const Arch& arch() const override { return arch_; }
    std::string description() const override { return real_.description(); }
    std::string compiler() const override { return real_.compiler(); }
    std::string compile(const std::string& text) const override {
        return compiled().binary(real_, text);
    }
    std::shared_ptr<const cuda::Function> load(std::string_view binary, const std::string& entry,
                                               int64_t shared) override {
        return compiled().function(real_, binary, entry, shared);
    }
    void raise_shared(const cuda::Function& f, int64_t shared) override {
        real_.raise_shared(f, shared);
    }
    std::unique_ptr<cuda::Stream> create_stream() override { return real_.create_stream(); }
    void encode(const kernels::TensorMap& map, std::byte* base, std::byte* encoded) const override {
        real_.encode(map, base, encoded);
    }

    std::byte* allocate(int64_t bytes) override {
        std::scoped_lock lock(mutex_);
        std::byte* p = real_.allocate(bytes + 2 * zone);
        if (memory_is_poisoned()) {
            stream_->fill(p, emulator::poison, static_cast<size_t>(bytes + 2 * zone));
        } else {
            stream_->fill(p, emulator::poison, zone);
            stream_->fill(p + zone + bytes, emulator::poison, zone);
        }
        stream_->synchronize();
        blocks_[p + zone] = bytes;
        used_ += bytes;
        return p + zone;
    }
    void release(std::byte* memory) noexcept override {
        if (memory == nullptr) {
            return;
        }
        std::scoped_lock lock(mutex_);
        auto it = blocks_.find(memory);
        if (it == blocks_.end()) {
            problems_ += "memory that was not allocated was released; ";
            return;
        }
        try {
            check(memory - zone, "in front of");
            check(memory + it->second, "behind");
        } catch (const Error& e) {
            problems_ += e.what();
        }
        real_.release(memory - zone);
        used_ -= it->second;
        blocks_.erase(it);
    }

    std::byte* allocate_shared(int64_t bytes) override { return real_.allocate_shared(bytes); }
    void release_shared(std::byte* memory) noexcept override { real_.release_shared(memory); }

    std::string problems() const {
        std::scoped_lock lock(mutex_);
        return problems_;
    }
    int64_t used() const {
        std::scoped_lock lock(mutex_);
        return used_;
    }

private:
    static constexpr int64_t zone = 256;

    void check(const std::byte* at, const char* where) {
        std::byte bytes[zone];
        stream_->read(bytes, at, zone);
        auto poison = static_cast<std::byte>(emulator::poison);
        if (std::any_of(bytes, bytes + zone, [&](std::byte b) { return b != poison; })) {
            problems_ += str("bytes ", where, " an allocation were written; ");
        }
    }

    cuda::Gpu& real_;
    Arch arch_;
    std::unique_ptr<cuda::Stream> stream_;
    mutable std::mutex mutex_;
    std::map<std::byte*, int64_t> blocks_;
    std::string problems_;
    int64_t used_ = 0;
};

bool on_device() {
    return is_set("INGOT_TEST_GPU", "1") || is_set("INGOT_TEST_GPU", "emulated");
}

bool memory_is_poisoned() {
    return !on_device() || !is_set("INGOT_TEST_UNINITIALISED", "1");
}

std::vector<Arch> runnable_archs() {
    std::vector<Arch> out;
    if (on_device() && is_set("INGOT_TEST_ARCHS", "own")) {
        return {real_gpu().arch()};
    }
    for (const Arch& a : kernels::known_archs()) {
        if (!on_device() || kernels::runs_on(a, real_gpu().arch())) {
            out.push_back(a);
        }
    }
    if (on_device()) {
        Arch small = real_gpu().arch();
        constexpr int64_t cap = 99 << 10;
        small.shared_per_block = std::min(small.shared_per_block, cap);
        small.shared_per_sm = small.shared_per_block + 1024;
        out.push_back(small);
    }
    return out;
}

TestDevice::TestDevice(const Arch& arch) {
    if (on_device()) {
        real_ = std::make_unique<CheckedGpu>(arch);
    } else {
        emulated_ = std::make_unique<emulator::EmulatedGpu>(arch);
    }
}

TestDevice::~TestDevice() = default;

cuda::Gpu& TestDevice::gpu() {
    return real_ != nullptr ? static_cast<cuda::Gpu&>(*real_) : *emulated_;
}

void TestDevice::hold_until_wait(std::byte* memory) {
    if (emulated_ != nullptr) {
        emulated_->hold_until_wait(memory);
    }
}

void TestDevice::set_reversed(bool reversed) {
    if (emulated_ != nullptr) {
        emulated_->set_reversed(reversed);
    }
}

std::string TestDevice::problems() const {
    return real_ != nullptr ? real_->problems() : emulated_->problems();
}

std::optional<TestDevice::Counts> TestDevice::counts() const {
    if (emulated_ == nullptr) {
        return std::nullopt;
    }
    return Counts{static_cast<int64_t>(emulated_->launches()),
                  static_cast<int64_t>(emulated_->replays())};
}

int64_t TestDevice::used() const {
    return real_ != nullptr ? real_->used() : emulated_->memory().used();
}

} // namespace ingot::test
