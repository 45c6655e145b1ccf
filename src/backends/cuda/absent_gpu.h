// SPDX-License-Identifier: Apache-2.0
// AbsentGpu: plans are made for it as for a GPU, but nothing runs. Its memory must not be accessed.
#pragma once

#include "backends/cuda/driver/gpu.h"
#include "backends/cuda/driver/nvrtc.h"
#include "base/error.h"

namespace ingot::cuda {

/// Discards all work.
class NoStream : public Stream {
public:
    void launch(const Function&, const LaunchShape&, void* const*) override { refuse(); }
    void copy(std::byte*, const std::byte*, size_t) override {}
    void fill(std::byte*, int, size_t) override {}
    void read(void*, const std::byte*, size_t) override { refuse(); }
    void write(std::byte*, const void*, size_t) override {}
    void write_filled(std::byte*, size_t, const Fill&) override {}
    void synchronize() override {}

private:
    [[noreturn]] static void refuse() {
        fail(ErrorCode::Internal, "a plan made ahead of time was run");
    }
};

/// An architecture with a compiler, and addresses that must not be accessed.
class AbsentGpu : public Gpu {
public:
    AbsentGpu(const kernels::Arch& arch, bool compiles) : arch_(arch), compiles_(compiles) {}
    const kernels::Arch& arch() const override { return arch_; }
    std::string description() const override { return str("compute capability ", arch_.cc); }
    std::string compiler() const override { return str("cubin ", arch_.nvrtc); }
    std::string compile(const std::string& text) const override {
        return compiles_ ? nvrtc_compile(text, std::string(arch_.nvrtc)).cubin : "";
    }
    std::shared_ptr<const Function> load(std::string_view, const std::string&, int64_t) override {
        fail(ErrorCode::Internal, "there is no GPU to load kernels");
    }
    std::unique_ptr<Stream> create_stream() override { return std::make_unique<NoStream>(); }
    std::byte* allocate(int64_t bytes) override {
        constexpr uintptr_t alignment = 256;
        uintptr_t at = next_;
        next_ += (static_cast<uintptr_t>(bytes) + alignment) / alignment * alignment;
        return reinterpret_cast<std::byte*>(at);
    }
    void release(std::byte*) noexcept override {}
    void encode(const kernels::TensorMap&, std::byte*, std::byte*) const override {}

private:
    kernels::Arch arch_;
    bool compiles_;
    uintptr_t next_ = 1 << 20;
};

} // namespace ingot::cuda
