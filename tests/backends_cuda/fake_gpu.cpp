// SPDX-License-Identifier: Apache-2.0
// A GPU of the driver without a device.
#include "backends/cuda/driver/nvidia_gpu.h"
#include "backends_cuda/fake_driver.h"

namespace ingot::test::fake {

using namespace cuda;

namespace {

/// Leaves the text of kernels as it is.
class TextGpu : public Gpu {
public:
    explicit TextGpu(int index) : gpu_(make_nvidia_gpu(fake_driver(), first_handle + index)) {}
    const kernels::Arch& arch() const override { return gpu_->arch(); }
    int number() const override { return gpu_->number(); }
    std::string description() const override { return gpu_->description(); }
    const char* error() const override { return gpu_->error(); }
    std::string compiler() const override { return "none"; }
    std::string compile(const std::string& text) const override { return text; }
    std::shared_ptr<const Function> load(std::string_view binary, const std::string& entry,
                                         int64_t shared) override {
        return gpu_->load(binary, entry, shared);
    }
    void raise_shared(const Function& f, int64_t shared) override { gpu_->raise_shared(f, shared); }
    std::unique_ptr<Stream> create_stream() override { return gpu_->create_stream(); }
    std::unique_ptr<Stream> create_stream_of(RunPriority priority) override {
        return gpu_->create_stream_of(priority);
    }
    std::byte* allocate(int64_t bytes) override { return gpu_->allocate(bytes); }
    void release(std::byte* memory) noexcept override { gpu_->release(memory); }
    int64_t free_bytes() const override { return gpu_->free_bytes(); }
    int64_t total_bytes() const override { return gpu_->total_bytes(); }
    int64_t most_cache_bytes() const override { return gpu_->most_cache_bytes(); }
    void encode(const kernels::TensorMap& map, std::byte* base, std::byte* encoded) const override {
        gpu_->encode(map, base, encoded);
    }

private:
    std::unique_ptr<Gpu> gpu_;
};

} // namespace

std::unique_ptr<Gpu> make_gpu(int index) {
    return std::make_unique<TextGpu>(index);
}

} // namespace ingot::test::fake
