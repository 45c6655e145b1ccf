// SPDX-License-Identifier: Apache-2.0
// CudaDevice: plan::Device on a stream of a Gpu, with recordings of segments and the error words of
// steps. CudaState: what all executions of one executable share, its device memory among it.
#pragma once

#include "backends/cuda/driver/nccl.h"
#include "backends/cuda/jit/program_cache.h"
#include "backends/cuda/options.h"
#include "backends/cuda/run/device_weights.h"
#include "backends/cuda/run/profile_programs.h"
#include "backends/cuda/run/recording_limit.h"
#include "backends/cuda/run/tile_order.h"
#include "backends/cuda/run/timeline.h"
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
using plan::StoredConstant;
using plan::View;

class KeptLaunches;

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
    void bring(const std::vector<StoredConstant>& constants) override;
    const std::byte* constant(const StoredConstant& c) override;
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
    /// They serve plans without a timeline.
    KeptLaunches& kept_launches() { return *kept_launches_; }
    TileOrder& tile_order() { return tile_order_; }
    /// Null: none is set.
    Communicator* communicator() { return communicator_.get(); }
    /// Null: none is wanted.
    Timeline* timeline() { return timeline_.get(); }

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
        std::unique_ptr<RecordingPlace> place;
        uint64_t arrivals = 0; // ProgramCache::arrivals when it was recorded
        bool impossible = false;
        std::vector<int> launches = {}; // of the timeline
        int replays = 0;
    };
    // DeviceLaunches
    void begin_plan() override;
    void join_steps(SegmentPlan& plan) override;
    bool settle() override;
    bool replay(SegmentPlan& plan, const RunContext& context) override;
    // ConstantUploads
    bool keeps(const StoredConstant& constant) override { return state_->streamed.keeps(constant); }
    void upload(std::byte* to, const StoredConstant& constant, bool beside) override;
    void end_uploads() override;
    int64_t room() const override { return state_->streamed.room(); }
    // DeviceBudget
    int64_t available() const override { return state_->memory.available(); }
    int64_t missing_bytes(const StoredConstant& constant) const override;
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

    bool find_recorded(const SegmentPlan& plan, const RunContext& context,
                       std::shared_ptr<const Recording>& recording);
    bool record_segment(Recorded& r, const SegmentPlan& plan, const RunContext& context,
                        std::shared_ptr<const Recording>& recording);
    void pass_priority(Stream& stream) const;
    StreamOrder* order() const { return stream_->parts().order; }

    std::shared_ptr<CudaState> state_;
    std::unique_ptr<Stream> stream_;
    std::shared_ptr<MemorySource> source_; // null: that of the state's memory
    void* caller_ = nullptr; // the stream whose priority streams have; null: that of the options
    bool entered_ = false;   // work is queued on a caller's stream
    TacticChoices choices_;
    KernelReuse reuse_;
    std::unique_ptr<KeptLaunches> kept_launches_;
    TileOrder tile_order_;
    std::shared_ptr<RecordingLimit> recordings_; // other devices may share it
    std::list<Recorded> recorded_;               // the last used first
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
    std::unique_ptr<Timeline> timeline_;
};

} // namespace ingot::cuda
