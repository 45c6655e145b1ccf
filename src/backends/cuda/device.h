// SPDX-License-Identifier: Apache-2.0
// CudaDevice: plan::Device on a stream of a Gpu, with recordings of segments and the error words of
// steps. CudaState: what all executions of one executable share.
#pragma once

#include "backends/cuda/program_cache.h"
#include "plan/device.h"
#include "plan/program.h"
#include "plan/reference.h"
#include "plan/segment_plan.h"

#include <list>

namespace ingot::cuda {

using plan::Device;
using plan::DynamicResults;
using plan::eval_node;
using plan::Group;
using plan::group_of;
using plan::GrowingBuffer;
using plan::Kernel;
using plan::KernelSet;
using plan::KernelTable;
using plan::LayoutArgs;
using plan::Operand;
using plan::Order;
using plan::PackCache;
using plan::Program;
using plan::RunContext;
using plan::SegmentPlan;
using plan::Step;
using plan::StepArgs;
using plan::StepEntry;
using plan::View;

/// Constants in device memory. Thread safe.
class Weights {
public:
    explicit Weights(Gpu& gpu) : gpu_(gpu) {}
    ~Weights();
    Weights(const Weights&) = delete;
    Weights& operator=(const Weights&) = delete;
    /// The address of a constant, uploaded when it is first asked for.
    std::byte* find(const Tensor& t, Stream& stream);
    size_t bytes() const;

private:
    std::byte* reserve(size_t bytes);

    struct Entry {
        Tensor tensor; // keeps the host address from being used again
        std::byte* address = nullptr;
    };
    Gpu& gpu_;
    mutable std::mutex mutex_;
    std::map<std::pair<const std::byte*, size_t>, Entry> entries_;
    std::vector<std::byte*> slabs_;
    size_t slab_left_ = 0;
    std::byte* slab_next_ = nullptr;
    size_t bytes_ = 0;
};

struct CudaState {
    CudaState(Gpu& g, std::shared_ptr<ProgramCache> p, CompileOptions o)
        : gpu(g), programs(std::move(p)), weights(g), options(std::move(o)) {}

    Gpu& gpu;
    std::shared_ptr<ProgramCache> programs;
    Weights weights;
    CompileOptions options;
};

class CudaDevice : public Device {
public:
    explicit CudaDevice(std::shared_ptr<CudaState> state);
    ~CudaDevice() override;
    CudaDevice(const CudaDevice&) = delete;
    CudaDevice& operator=(const CudaDevice&) = delete;

    std::byte* allocate(int64_t bytes) override;
    void release(std::byte* memory) noexcept override;
    const std::byte* constant(const Tensor& t) override;
    void copy(std::byte* to, const std::byte* from, size_t bytes) override;
    void fill(std::byte* to, int byte, size_t bytes) override;
    void read(void* to, const std::byte* from, size_t bytes) override;
    void write(std::byte* to, const void* from, size_t bytes) override;
    void synchronize() override;
    bool replay(SegmentPlan& plan, const RunContext& context) override;
    void finish_run() override { check_error_words(); }
    int mark_time() override { return stream_->mark_time(); }
    double elapsed_ms(int from, int to) override { return stream_->elapsed_ms(from, to); }
    void forget_times() override { stream_->forget_times(); }

    Stream& stream() { return *stream_; }
    CudaState& state() { return *state_; }
    const kernels::Arch& arch() const { return state_->gpu.arch(); }

    /// An error word of its own for a step that may fail; `what` names it in messages.
    int add_error_word(std::string what);
    std::byte* error_word(int index);
    /// Reads all words; throws for the first that is set, and clears them. Waits.
    void check_error_words();

private:
    struct Recorded {
        uint64_t plan = 0;
        std::vector<std::byte*> buffers;
        int runs = 0;
        std::unique_ptr<Recording> recording;
    };

    std::shared_ptr<CudaState> state_;
    std::unique_ptr<Stream> stream_;
    std::list<Recorded> recorded_; // the last used first
    std::vector<std::string> error_names_;
    std::byte* error_words_ = nullptr;
    bool recording_now_ = false;
};

} // namespace ingot::cuda
