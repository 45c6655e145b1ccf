// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/run/device.h"

#include "backends/cuda/driver/nvtx.h"
#include "backends/cuda/options.h"
#include "backends/cuda/run/kept_launches.h"
#include "backends/cuda/run/run_traffic.h"
#include "backends/cuda/run/steps.h"
#include "base/error.h"
#include "base/log.h"

#include <algorithm>
#include <utility>

namespace ingot::cuda {

namespace {

constexpr size_t most_error_words = 16384;

kernels::Arch arch_for(const kernels::Arch& device, const CudaOptions& options) {
    kernels::Arch arch = device;
    if (options.arch != 0) {
        arch = kernels::arch_of(options.arch);
        require(arch.cc == options.arch && runs_on(arch, device), ErrorCode::Unsupported,
                "kernels for compute capability ", options.arch,
                " do not run on this GPU, which has ", device.cc);
        arch.sms = device.sms;
    }
    if (options.shared_memory != 0) {
        constexpr int64_t least = 48 << 10;
        require(options.shared_memory >= least, ErrorCode::Unsupported, "a cap of ",
                options.shared_memory, " bytes on shared memory; kernels need at least ", least);
        arch.shared_per_block = std::min(arch.shared_per_block, options.shared_memory);
        arch.shared_per_sm = std::min(arch.shared_per_sm, arch.shared_per_block + 1024);
    }
    return arch;
}

} // namespace

CudaState::CudaState(Gpu& g, std::shared_ptr<ProgramCache> p, CompileOptions o,
                     std::shared_ptr<DeviceWeights> shared)
    : gpu(g), arch(arch_for(g.arch(), std::as_const(o).of<CudaOptions>())), programs(std::move(p)),
      device(shared != nullptr ? std::move(shared) : std::make_shared<DeviceWeights>(g, o)),
      memory(device->memory), weights(device->weights), streamed(device->streamed),
      compile(std::move(o)), options(std::as_const(compile).of<CudaOptions>()) {
    programs->enter();
}

CudaState::~CudaState() {
    tuner = nullptr; // it requests programs
    programs->leave();
}

CudaDevice::CudaDevice(const std::shared_ptr<CudaState>& state)
    : CudaDevice(state, state->gpu.create_stream_of(state->options.priority)) {}

CudaDevice::CudaDevice(std::shared_ptr<CudaState> state, std::unique_ptr<Stream> stream)
    : Device(false), state_(std::move(state)), stream_(std::move(stream)),
      kept_launches_(std::make_unique<KeptLaunches>()),
      recordings_(state_->options.recordings != nullptr
                      ? state_->options.recordings
                      : std::make_shared<RecordingLimit>(RecordingLimit::usual)) {
    set_parts({.launches = this,
               .uploads = this,
               .budget = this,
               .state = this,
               .clock = stream_->parts().clock,
               .streams = this,
               .cache = this,
               .communication = this,
               .ranges = this});
    if (!state_->options.timeline_file.empty()) {
        timeline_ = std::make_unique<Timeline>(state_->gpu, state_->options.timeline_file);
    }
}

CudaDevice::~CudaDevice() {
    kept_launches_->clear(); // they have error words and places in the timeline
    release_spare();
    if (run_state_ != nullptr) {
        release(run_state_);
    }
    if (error_words_ != nullptr) {
        try {
            stream_->synchronize(); // kernels write them
        } catch (const std::exception& e) {
            log(LogLevel::Verbose, "cuda: error words are given back after ", e.what());
        }
        state_->gpu.release_shared(error_words_);
    }
}

void CudaDevice::begin_plan() {
    reuse_.begin_plan();
    tile_order_.begin_plan();
    kept_launches_->begin_plan();
}

bool CudaDevice::settle() {
    reuse_.finish();
    kept_launches_->end_plan();
    const ProfilePrograms* known = state_->profile_programs.get();
    if (known != nullptr && !known->is_open() && state_->options.specialise == Specialise::None) {
        known->wait(); // later runs compile nothing
    }
    return state_->tuner != nullptr && choices_.settle(*state_->tuner);
}

std::byte* CudaDevice::allocate(int64_t bytes) {
    std::byte* memory = state_->memory.allocate(std::max<int64_t>(bytes, 1), source_);
    if (source_ != nullptr || state_->memory.is_lent()) {
        try {
            wait_for(nullptr);
        } catch (...) {
            state_->memory.release(memory);
            throw;
        }
    }
    return memory;
}

void CudaDevice::release(std::byte* memory) noexcept {
    // Work that uses the memory may still be running.
    try {
        end_uploads();
        stream_->synchronize();
    } catch (const std::exception& e) {
        log(LogLevel::Verbose, "cuda: memory is given back after ", e.what());
    }
    recorded_.clear();
    state_->memory.release(memory);
}

void CudaDevice::bring(const std::vector<StoredConstant>& constants) {
    state_->weights.start(constants);
}

const std::byte* CudaDevice::constant(const StoredConstant& c) {
    return state_->weights.find(c, *stream_);
}

/// A copy beside later steps may overwrite what steps so far have left: it comes after these.
void CudaDevice::upload(std::byte* to, const StoredConstant& constant, bool beside) {
    if (!beside || order() == nullptr) {
        stream_->upload(to, state_->streamed.find(constant), constant.size());
        return;
    }
    if (upload_stream_ == nullptr) {
        upload_stream_ = state_->gpu.create_stream_of(state_->options.priority);
        pass_priority(*upload_stream_);
    }
    const std::byte* from = state_->streamed.find(constant);
    upload_stream_->parts().order->follow(*stream_);
    uploading_ = true;
    upload_stream_->upload(to, from, constant.size());
}

void CudaDevice::pass_priority(Stream& stream) const {
    if (StreamPolicy* policy = stream.parts().policy) {
        caller_ == nullptr ? policy->set_priority(state_->options.priority)
                           : policy->take_priority(caller_);
    }
}

void* CudaDevice::native() {
    return order() == nullptr ? nullptr : order()->native();
}

/// The handles 1 and 2 are default streams too, a process's and a thread's.
static bool is_default(void* stream) {
    constexpr uintptr_t last_default = 2;
    return reinterpret_cast<uintptr_t>(stream) <= last_default;
}

void CudaDevice::wait_for(void* stream) {
    if (order() == nullptr) {
        return;
    }
    if (is_default(stream)) {
        order()->wait_for(stream);
        return;
    }
    entered_ = order()->enter(stream);
    if (!entered_) {
        pass_priority(*stream_);
        order()->wait_for(stream);
    }
}

void CudaDevice::let_wait(void* stream) {
    RunTraffic::of(state_->gpu).note_run(); // it has its weights: they need not give way to it
    if (std::exchange(entered_, false)) {
        order()->leave();
    } else if (order() != nullptr) {
        order()->let_wait(stream);
    }
}

bool CudaDevice::is_captured(void* stream) {
    return stream != nullptr && order() != nullptr && order()->is_captured(stream);
}

void CudaDevice::record(void* event) {
    if (order() != nullptr) {
        order()->record(event);
    }
}

void CudaDevice::take_priority(void* stream) {
    caller_ = is_default(stream) ? nullptr : stream;
    if (caller_ == nullptr) {
        pass_priority(*stream_);
    } // else wait_for() puts work on the caller's stream, or passes its priority
    if (upload_stream_ != nullptr) {
        pass_priority(*upload_stream_);
    }
}

void CudaDevice::end_uploads() {
    if (uploading_) {
        order()->follow(*upload_stream_);
        uploading_ = false;
    }
}

void CudaDevice::copy(std::byte* to, const std::byte* from, size_t bytes) {
    stream_->copy(to, from, bytes);
}

void CudaDevice::fill(std::byte* to, int byte, size_t bytes) {
    stream_->fill(to, byte, bytes);
}

void CudaDevice::read(void* to, const std::byte* from, size_t bytes) {
    stream_->read(to, from, bytes);
}

void CudaDevice::write(std::byte* to, const void* from, size_t bytes) {
    stream_->write(to, from, bytes);
}

void CudaDevice::synchronize() {
    stream_->synchronize();
}

std::byte* CudaDevice::run_state() {
    if (run_state_ == nullptr) {
        constexpr int64_t bytes = 2 * sizeof(uint64_t);
        std::byte* memory = allocate(bytes);
        try {
            stream_->fill(memory, 0, bytes);
        } catch (...) {
            state_->memory.release(memory);
            throw;
        }
        run_state_ = memory;
    }
    return run_state_;
}

/// On the device, so that a recorded or captured run draws other numbers each time it is repeated.
void CudaDevice::advance_draws() {
    if (run_state_ != nullptr) {
        stream_->copy(run_state_, run_state_ + sizeof(uint64_t), sizeof(uint64_t));
    }
}

/// Finds what is known of this plan with these buffers, and moves it to the front. False for
/// nothing: it is added, without a recording.
bool CudaDevice::find_recorded(const SegmentPlan& plan, const RunContext& context,
                               std::shared_ptr<const Recording>& recording) {
    auto end = static_cast<size_t>(plan.end_buffer());
    auto it = std::find_if(recorded_.begin(), recorded_.end(), [&](const Recorded& r) {
        return r.plan == plan.id && std::equal(r.buffers.begin(), r.buffers.end(), context.buffers,
                                               context.buffers + end);
    });
    if (it != recorded_.end() && it->place->use(recording)) {
        recorded_.splice(recorded_.begin(), recorded_, it);
        return true;
    }
    if (it != recorded_.end()) { // it has made way for others
        recorded_.erase(it);
    }
    recorded_.push_front({plan.id,
                          {context.buffers, context.buffers + end},
                          std::make_unique<RecordingPlace>(recordings_),
                          0,
                          false});
    if (recorded_.size() > recordings_->most()) {
        recorded_.pop_back();
    }
    return false;
}

/// Whether all steps can be recorded without a run before.
static bool get_ready(const SegmentPlan& plan) {
    return std::all_of(plan.steps.begin(), plan.steps.end(), [](const StepEntry& e) {
        auto* step = dynamic_cast<ReadyStep*>(e.step.get());
        return step != nullptr && step->get_ready();
    });
}

bool CudaDevice::replay(SegmentPlan& plan, const RunContext& context) {
    if (!state_->options.record_graphs || recording_now_ || !plan.recordable()) {
        return false;
    }
    std::shared_ptr<const Recording> recording;
    bool is_first = !find_recorded(plan, context, recording);
    if (is_first && !(state_->options.record_first && get_ready(plan))) {
        return false; // this run is plain
    }
    Recorded& r = recorded_.front();
    uint64_t arrivals = state_->programs->arrivals();
    if (recording != nullptr && r.arrivals != arrivals &&
        std::any_of(plan.steps.begin(), plan.steps.end(),
                    [](const StepEntry& e) { return e.step->is_stale(); })) {
        recording = nullptr; // kernels for these very shapes have been compiled
    }
    r.arrivals = arrivals;
    if (recording == nullptr && (r.impossible || !record_segment(r, plan, context, recording))) {
        r.impossible = r.impossible && !is_first; // the next run tries again
        return false;
    }
    ++r.replays;
    if (timeline_ != nullptr) {
        timeline_->replay(*stream_, *recording, r.launches, r.replays);
    } else {
        stream_->parts().recorder->launch(*recording);
    }
    if (r.replays == 2) { // the first is of the run that was recorded
        for (const StepEntry& e : plan.steps) {
            if (auto* step = dynamic_cast<ReadyStep*>(e.step.get())) {
                step->repeats();
            }
        }
    }
    return true;
}

/// Where it fails, this plan is launched step by step from then on.
bool CudaDevice::record_segment(Recorded& r, const SegmentPlan& plan, const RunContext& context,
                                std::shared_ptr<const Recording>& recording) {
    std::string problem;
    StreamRecorder* recorder = stream_->parts().recorder;
    try {
        if (recorder == nullptr || !recorder->begin_recording()) {
            r.impossible = true;
            return false;
        }
        recording_now_ = true;
        if (timeline_ != nullptr) {
            timeline_->begin_graph();
        }
        Status status;
        for (auto e = plan.steps.begin(); e != plan.steps.end() && status.ok(); ++e) {
            status = e->step->run(context);
        }
        recording_now_ = false;
        recording = recorder->end_recording();
        if (timeline_ != nullptr) {
            r.launches = timeline_->end_graph();
        }
        if (!status.ok()) {
            recording = nullptr;
            problem = context.error.text[0] != 0 ? context.error.text : status.text();
        }
    } catch (const std::exception& e) {
        recording_now_ = false;
        problem = e.what();
    }
    r.place->keep(recording);
    if (!problem.empty()) {
        log(LogLevel::Warning, "cuda: a graph of launches cannot be recorded: ", problem);
        context.error.text[0] = 0;
        r.impossible = true;
    }
    return problem.empty();
}

void CudaDevice::keep(const std::byte* memory, int64_t bytes, int64_t limit) {
    Kept wanted = limit == 0 ? Kept() : Kept{memory, bytes, limit};
    if (wanted == kept_) {
        return;
    }
    recorded_.clear(); // launches in recordings have kept what was so when they were recorded
    if (StreamPolicy* policy = stream_->parts().policy) {
        policy->keep_in_cache(wanted.memory, wanted.bytes, wanted.limit);
    }
    kept_ = wanted;
}

Rank CudaDevice::rank_in(void* communicator) {
    Communicator c(communicator);
    int own = state_->gpu.number();
    require(own < 0 || c.device() == own, ErrorCode::InvalidArgument, "the communicator is of GPU ",
            c.device(), ", the engine runs on GPU ", own);
    return c.rank();
}

void CudaDevice::set_communicator(void* communicator) {
    if (communicator_ != nullptr) {
        stream_->synchronize(); // runs before may still use what was split off it
    }
    communicator_ =
        communicator == nullptr ? nullptr : std::make_unique<Communicator>(communicator);
}

bool CudaDevice::active() const {
    return nvtx().listening();
}

void CudaDevice::begin(const char* name) {
    nvtx().push(name);
}

void CudaDevice::end() {
    nvtx().pop();
}

int64_t CudaDevice::missing_bytes(const StoredConstant& constant) const {
    return state_->weights.has(constant) || !state_->streamed.keeps(constant)
               ? 0
               : static_cast<int64_t>(constant.size());
}

int CudaDevice::add_error_word(std::string what) {
    if (!free_error_words_.empty()) {
        int index = free_error_words_.back();
        free_error_words_.pop_back();
        error_names_[static_cast<size_t>(index)] = std::move(what);
        return index;
    }
    require(error_names_.size() < most_error_words, ErrorCode::Unsupported, "more than ",
            most_error_words, " steps that can fail at run time");
    if (error_words_ == nullptr) {
        error_words_ =
            state_->gpu.allocate_shared(static_cast<int64_t>(most_error_words * sizeof(uint32_t)));
    }
    free_error_words_.reserve(error_names_.size() + 1);
    error_names_.push_back(std::move(what));
    return static_cast<int>(error_names_.size()) - 1;
}

void CudaDevice::release_error_word(int index) noexcept {
    free_error_words_.push_back(index); // has room
}

std::byte* CudaDevice::error_word(int index) {
    return error_words_ + static_cast<size_t>(index) * sizeof(uint32_t);
}

void CudaDevice::check_errors(bool waits) {
    if (waits && !error_names_.empty()) {
        synchronize();
    }
    for (size_t i = 0; i < error_names_.size(); ++i) {
        // Kernels may be writing it.
        volatile uint32_t* word = reinterpret_cast<volatile uint32_t*>(error_words_) + i;
        uint32_t error = *word;
        if (error == 0) {
            continue;
        }
        *word = 0;
        fail(ErrorCode::InvalidArgument, error_names_[i],
             error == static_cast<uint32_t>(kernels::ErrorWord::IndexOutOfRange)
                 ? std::string(": an index is outside its axis")
                 : str(": error ", error));
    }
}

} // namespace ingot::cuda
