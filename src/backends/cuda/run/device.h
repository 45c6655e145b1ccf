// SPDX-License-Identifier: Apache-2.0
// CudaDevice: plan::Device on a stream of a Gpu, with recordings of segments and the error words of
// steps. CudaState: what all executions of one executable share, its device memory among it.
#pragma once

#include "backends/cuda/driver/nccl.h"
#include "backends/cuda/jit/program_cache.h"
#include "backends/cuda/options.h"
#include "backends/cuda/run/profile_programs.h"
#include "backends/cuda/tune/kernel_reuse.h"
#include "backends/cuda/tune/tuner.h"
#include "plan/device.h"
#include "plan/program.h"
#include "plan/segment_plan.h"

#include <list>

namespace ingot::cuda {

using plan::Device;
using plan::DynamicResults;
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

/// Device memory within a budget. Thread safe.
class Memory {
public:
    /// `limit` 0: no budget.
    Memory(Gpu& gpu, int64_t limit, std::shared_ptr<MemorySource> source = nullptr)
        : gpu_(gpu), limit_(limit), source_(std::move(source)) {}
    /// From `source`, or, when that is null, from the memory's own. Errors: OutOfMemory with what
    /// was needed and what is left.
    std::byte* allocate(int64_t bytes, std::shared_ptr<MemorySource> source = nullptr);
    void release(std::byte* memory) noexcept;
    /// The smaller one of the budget's and the device's; -1 when neither is known.
    int64_t available() const;
    int64_t held() const;
    /// Whether blocks are an application's: they may be used behind the work that its default
    /// stream holds.
    bool is_lent() const { return source_ != nullptr; }

private:
    Gpu& gpu_;
    int64_t limit_;
    struct Block {
        int64_t bytes;
        std::shared_ptr<MemorySource> source; // null: the GPU
    };
    std::shared_ptr<MemorySource> source_; // null: the GPU's own
    mutable std::mutex mutex_;
    std::map<std::byte*, Block> blocks_;
    int64_t held_ = 0;
};

/// Constants in device memory. Thread safe.
class Weights {
public:
    /// `slab`: how much is allocated at once.
    Weights(Memory& memory, size_t slab) : memory_(memory), slab_bytes_(slab) {}
    ~Weights();
    Weights(const Weights&) = delete;
    Weights& operator=(const Weights&) = delete;
    /// The address of a constant, uploaded when it is first asked for.
    std::byte* find(const Tensor& t, Stream& stream);
    bool has(const Tensor& t) const;
    size_t bytes() const;

private:
    std::byte* reserve(size_t bytes);

    struct Entry {
        Tensor tensor; // keeps the host address from being used again
        std::byte* address = nullptr;
    };
    Memory& memory_;
    size_t slab_bytes_;
    mutable std::mutex mutex_;
    std::map<std::pair<const std::byte*, size_t>, Entry> entries_;
    std::vector<std::byte*> slabs_;
    size_t slab_left_ = 0;
    std::byte* slab_next_ = nullptr;
    size_t bytes_ = 0;
};

/// Constants beyond the budget, in page-locked memory of the host. Thread safe.
class StreamedWeights {
public:
    /// A budget of -1: every constant is kept on the device.
    StreamedWeights(Gpu& gpu, int64_t budget) : gpu_(gpu), budget_(budget) {}
    /// Sets a part of the budget aside for constants on their way while a step still reads others:
    /// as much as the largest of the graph's that takes no more than an eighth. Nothing where all
    /// fit. To be called before anything is kept.
    void make_room(const Graph& g);
    int64_t room() const { return room_; }
    ~StreamedWeights();
    StreamedWeights(const StreamedWeights&) = delete;
    StreamedWeights& operator=(const StreamedWeights&) = delete;
    /// Whether a constant has, or now gets, a part of the budget.
    bool keeps(const Tensor& t);
    /// Where a constant that is not kept lies.
    const std::byte* find(const Tensor& t);

private:
    using Key = std::pair<const std::byte*, size_t>;
    struct Entry {
        Tensor tensor; // keeps the address from being used again
        bool kept = true;
        std::byte* pinned = nullptr;
    };
    Entry& entry(const Tensor& t);
    Gpu& gpu_;
    int64_t budget_;
    int64_t room_ = 0;
    std::mutex mutex_;
    std::map<Key, Entry> entries_;
    int64_t kept_bytes_ = 0;
};

/// Device memory with the weights in it, for all executables of one lowered graph.
struct DeviceWeights {
    DeviceWeights(Gpu& gpu, const CompileOptions& options);

    Memory memory;
    Weights weights;
    StreamedWeights streamed;
};

struct CudaState {
    /// `shared` null: weights of its own. Errors: Unsupported for an architecture or a cap that the
    /// GPU cannot run with.
    CudaState(Gpu& g, std::shared_ptr<ProgramCache> p, CompileOptions o,
              std::shared_ptr<DeviceWeights> shared = nullptr);
    ~CudaState();
    CudaState(const CudaState&) = delete;
    CudaState& operator=(const CudaState&) = delete;

    Gpu& gpu;
    kernels::Arch arch; // the GPU's own, or what the options ask for
    std::shared_ptr<ProgramCache> programs;
    std::shared_ptr<DeviceWeights> device;
    Memory& memory; // these three are of `device`
    Weights& weights;
    StreamedWeights& streamed;
    CompileOptions compile;
    const CudaOptions& options;                        // of `compile`
    std::shared_ptr<ProfilePrograms> profile_programs; // null: nothing is known of later shapes
    std::unique_ptr<Tuner> tuner;                      // null: the model chooses tactics
};

class CudaDevice final : public Device,
                         plan::DeviceLaunches,
                         plan::ConstantUploads,
                         plan::DeviceBudget,
                         plan::StepState,
                         plan::CallerStreams,
                         plan::CacheWindow,
                         plan::DeviceCommunication,
                         plan::ProfilerRanges {
public:
    explicit CudaDevice(const std::shared_ptr<CudaState>& state);
    CudaDevice(std::shared_ptr<CudaState> state, std::unique_ptr<Stream> stream);
    ~CudaDevice() override;
    CudaDevice(const CudaDevice&) = delete;
    CudaDevice& operator=(const CudaDevice&) = delete;

    std::byte* allocate(int64_t bytes) override;
    void release(std::byte* memory) noexcept override;
    void set_memory(std::shared_ptr<MemorySource> source) override {
        release_spare();
        source_ = std::move(source);
    }
    const std::byte* constant(const Tensor& t) override;
    void copy(std::byte* to, const std::byte* from, size_t bytes) override;
    void fill(std::byte* to, int byte, size_t bytes) override;
    void read(void* to, const std::byte* from, size_t bytes) override;
    void write(std::byte* to, const void* from, size_t bytes) override;
    void synchronize() override;

    Stream& stream() { return *stream_; }
    CudaState& state() { return *state_; }
    const kernels::Arch& arch() const { return state_->arch; }
    TacticChoices& choices() { return choices_; }
    KernelReuse& reuse() { return reuse_; }
    /// Null: none is set.
    Communicator* communicator() { return communicator_.get(); }

    /// An error word of its own for a step that may fail; `what` names it in messages.
    int add_error_word(std::string what);
    void release_error_word(int index) noexcept;
    std::byte* error_word(int index);
    /// As kernels::Args::run_state has it.
    std::byte* run_state();

private:
    struct Recorded {
        uint64_t plan = 0;
        std::vector<std::byte*> buffers;
        std::unique_ptr<Recording> recording;
        uint64_t arrivals = 0; // ProgramCache::arrivals when it was recorded
        bool impossible = false;
    };
    // DeviceLaunches
    void begin_plan() override { reuse_.begin_plan(); }
    void join_steps(SegmentPlan& plan) override;
    bool settle() override;
    bool replay(SegmentPlan& plan, const RunContext& context) override;
    // ConstantUploads
    bool keeps(const Tensor& constant) override { return state_->streamed.keeps(constant); }
    void upload(std::byte* to, const Tensor& constant, bool beside) override;
    void end_uploads() override;
    int64_t room() const override { return state_->streamed.room(); }
    // DeviceBudget
    int64_t available() const override { return state_->memory.available(); }
    int64_t missing_bytes(const Tensor& constant) const override;
    // StepState
    void advance_draws() override;
    void check_errors(bool waits) override;
    // CallerStreams
    void* native() override;
    void wait_for(void* stream) override;
    void let_wait(void* stream) override;
    void take_priority(void* stream) override;
    bool is_captured(void* stream) override;
    void record(void* event) override;
    // CacheWindow
    void keep(const std::byte* memory, int64_t bytes, int64_t limit) override;
    int64_t most_bytes() const override { return state_->gpu.most_cache_bytes(); }
    // DeviceCommunication
    Rank rank_in(void* communicator) override;
    void set_communicator(void* communicator) override;
    // ProfilerRanges
    bool active() const override;
    void begin(const char* name) override;
    void end() override;

    bool record_segment(Recorded& r, const SegmentPlan& plan, const RunContext& context);
    void pass_priority(Stream& stream) const;
    StreamOrder* order() const { return stream_->parts().order; }

    std::shared_ptr<CudaState> state_;
    std::unique_ptr<Stream> stream_;
    std::shared_ptr<MemorySource> source_; // null: that of the state's memory
    void* caller_ = nullptr; // the stream whose priority streams have; null: that of the options
    TacticChoices choices_;
    KernelReuse reuse_;
    std::list<Recorded> recorded_; // the last used first
    std::vector<std::string> error_names_;
    std::vector<int> free_error_words_;
    std::byte* error_words_ = nullptr; // shared with the host
    bool recording_now_ = false;
    std::byte* run_state_ = nullptr;        // null: nothing draws
    std::unique_ptr<Stream> upload_stream_; // null: nothing was uploaded beside steps
    bool uploading_ = false;                // what the stream has not waited for
    struct Kept {
        const std::byte* memory = nullptr;
        int64_t bytes = 0;
        int64_t limit = 0;
        bool operator==(const Kept&) const = default;
    };
    Kept kept_; // in the cache
    std::unique_ptr<Communicator> communicator_;
};

} // namespace ingot::cuda
