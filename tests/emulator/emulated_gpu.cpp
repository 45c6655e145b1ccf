// SPDX-License-Identifier: Apache-2.0
#include "emulator/emulated_gpu.h"

#include "base/error.h"
#include "emulator/cluster.h"
#include "emulator/compile.h"
#include "emulator/faults.h"
#include "emulator/instructions.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <utility>

namespace ingot::emulator {

namespace {

struct EmulatedFunction : cuda::Function {
    Entry entry;
    mutable std::atomic<int64_t> shared = 0;
};

const EmulatedFunction& emulated(const cuda::Function& f) {
    return static_cast<const EmulatedFunction&>(f);
}

/// A launch with a copy of its parameters.
struct RecordedLaunch {
    const cuda::Function* function = nullptr;
    cuda::LaunchShape shape;
    std::vector<std::vector<std::byte>> parameters;
};

struct EmulatedRecording : cuda::Recording {
    std::vector<std::function<void()>> work;
};

double now_ms() {
    return std::chrono::duration<double, std::milli>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

/// Everything runs immediately, uploads as late as allowed if requested; recorded work runs when
/// the recording is launched.
class EmulatedStream final : public cuda::Stream,
                             cuda::StreamRecorder,
                             cuda::StreamOrder,
                             plan::DeviceClock {
public:
    explicit EmulatedStream(EmulatedGpu& gpu) : gpu_(gpu) {
        set_parts({.recorder = this, .order = this, .clock = this});
    }

    void launch(const cuda::Function& f, const cuda::LaunchShape& shape,
                void* const* parameters) override {
        if (!recording_ && !captured_) {
            gpu_.run(f, shape, parameters);
            return;
        }
        RecordedLaunch r{&f, shape, {}};
        const std::vector<unsigned>& sizes = emulated(f).entry.parameter_sizes;
        for (size_t i = 0; i < sizes.size(); ++i) {
            auto* p = static_cast<const std::byte*>(parameters[i]);
            r.parameters.emplace_back(p, p + sizes[i]);
        }
        do_or_record([this, r] {
            // Aligned as the widest parameter may need.
            std::vector<std::unique_ptr<std::byte, void (*)(void*)>> copies;
            std::vector<void*> pointers;
            for (const std::vector<std::byte>& bytes : r.parameters) {
                size_t room = (bytes.size() + 63) / 64 * 64;
                auto* copy = static_cast<std::byte*>(std::aligned_alloc(64, room));
                std::memcpy(copy, bytes.data(), bytes.size());
                copies.emplace_back(copy, std::free);
                pointers.push_back(copy);
            }
            gpu_.run(*r.function, r.shape, pointers.data());
        });
    }

    void copy(std::byte* to, const std::byte* from, size_t bytes) override {
        gpu_.memory().require_inside(to, bytes, "a copy to");
        gpu_.memory().require_inside(from, bytes, "a copy from");
        do_or_record([=] { std::memmove(to, from, bytes); });
    }

    void upload(std::byte* to, const std::byte* from, size_t bytes) override {
        gpu_.memory().require_inside(to, bytes, "an upload");
        late_.emplace_back([=] { std::memcpy(to, from, bytes); });
        if (leader_ == nullptr || !gpu_.has_late_uploads()) {
            catch_up(leader_ == nullptr ? *this : *leader_);
        }
    }

    void fill(std::byte* to, int byte, size_t bytes) override {
        gpu_.memory().require_inside(to, bytes, "a fill");
        do_or_record([=] { std::memset(to, byte, bytes); });
    }

    void read(void* to, const std::byte* from, size_t bytes) override {
        not_recording("a read to the host");
        gpu_.memory().require_inside(from, bytes, "a read");
        std::memcpy(to, from, bytes);
    }

    void write(std::byte* to, const void* from, size_t bytes) override {
        not_recording("a write from the host");
        gpu_.memory().require_inside(to, bytes, "a write");
        std::memcpy(to, from, bytes);
    }

    void synchronize() override { not_recording("synchronize"); }

    void follow(cuda::Stream& stream) override {
        auto& other = static_cast<EmulatedStream&>(stream);
        if (other.leader_ == this) {
            other.catch_up(*this);
            other.leader_ = nullptr;
        } else {
            leader_ = &other;
        }
    }

    void* native() override { return nullptr; }
    void wait_for(void* other) override { captured_ = gpu_.is_captured(other); }
    void let_wait(void*) override { captured_ = false; }
    bool is_captured(void* other) override { return gpu_.is_captured(other); }
    void record(void* event) override {
        do_or_record([this, event] { gpu_.recorded_events.emplace_back(event, gpu_.launches()); });
    }

    bool begin_recording() override {
        not_recording("begin_recording");
        recording_ = std::make_unique<EmulatedRecording>();
        return true;
    }

    std::unique_ptr<cuda::Recording> end_recording() override {
        require(recording_ != nullptr, ErrorCode::Device, "end_recording without a beginning");
        return std::move(recording_);
    }

    void launch(const cuda::Recording& r) override {
        not_recording("a launch of a recording");
        gpu_.count_replay();
        for (const std::function<void()>& work : static_cast<const EmulatedRecording&>(r).work) {
            work();
        }
    }

    int mark() override {
        marks_.push_back(0);
        size_t i = marks_.size() - 1;
        do_or_record([this, i] { marks_[i] = now_ms(); });
        return static_cast<int>(i);
    }

    double elapsed_ms(int from, int to) override {
        return marks_[static_cast<size_t>(to)] - marks_[static_cast<size_t>(from)];
    }
    void forget() override {}
    void hold() override {}
    void resume() override {}

private:
    /// Runs or records delayed uploads as part of `stream`'s work.
    void catch_up(EmulatedStream& stream) {
        for (std::function<void()>& work : std::exchange(late_, {})) {
            stream.do_or_record(std::move(work));
        }
    }
    void do_or_record(std::function<void()> work) {
        if (captured_) {
            gpu_.capture(std::move(work));
        } else if (recording_) {
            recording_->work.push_back(std::move(work));
        } else {
            work();
        }
    }
    void not_recording(const char* what) const {
        require(recording_ == nullptr && !captured_, ErrorCode::Device, what,
                " while a stream records");
    }

    EmulatedGpu& gpu_;
    std::unique_ptr<EmulatedRecording> recording_;
    bool captured_ = false;            // by a caller
    EmulatedStream* leader_ = nullptr; // the stream that this one follows, until it is followed
    std::vector<std::function<void()>> late_;
    std::vector<double> marks_;
};

void check_shape(const EmulatedFunction& f, const cuda::LaunchShape& s, const kernels::Arch& arch) {
    auto need = [&f](bool ok, const auto&... text) {
        require(ok, ErrorCode::Device, "launch of '", f.entry.name, "': ", text...);
    };
    uint32_t threads = s.block * s.block_y * s.block_z;
    need(threads >= 1 && threads <= f.entry.most_threads && threads <= 1024, threads,
         " threads a block, its launch bounds are ", f.entry.most_threads);
    for (size_t i = 0; i < 3; ++i) {
        need(s.grid[i] >= 1 && s.grid[i] <= (i == 0 ? 0x7fffffffU : 65535U), "grid of ", s.grid[i],
             " blocks along axis ", i);
    }
    need(s.cluster >= 1 && s.cluster <= 8 && s.grid[0] % s.cluster == 0, "clusters of ", s.cluster,
         " in a grid of ", s.grid[0]);
    need(s.cluster == 1 || arch.has_cluster(), "clusters on compute capability ", arch.cc);
    need(s.shared <= static_cast<uint64_t>(f.shared.load()), s.shared,
         " bytes of shared memory, loaded for ", f.shared.load());
}

} // namespace

EmulatedGpu::EmulatedGpu(int cc, EmulatedOptions options)
    : EmulatedGpu(kernels::arch_of(cc), std::move(options)) {}

EmulatedGpu::EmulatedGpu(const kernels::Arch& arch, EmulatedOptions options)
    : arch_(arch), options_(std::move(options)), memory_(options_.memory, options_.alignment) {}

void EmulatedGpu::begin_capture(void* stream) {
    captured_ = stream;
    captured_work_.clear();
}

std::function<void()> EmulatedGpu::end_capture() {
    captured_ = nullptr;
    return [work = std::exchange(captured_work_, {})] {
        for (const std::function<void()>& w : work) {
            w();
        }
    };
}

std::string EmulatedGpu::description() const {
    return str("emulated GPU, compute capability ", arch_.cc / 10, '.', arch_.cc % 10);
}

std::string EmulatedGpu::compiler() const {
    return str("g++ emulating ", arch_.nvrtc);
}

std::string EmulatedGpu::compile(const std::string& text) const {
    return compile_text(text, arch_.cc, options_.folder);
}

std::shared_ptr<const cuda::Function> EmulatedGpu::load(std::string_view binary,
                                                        const std::string& entry, int64_t shared) {
    require(shared >= 0 && shared <= arch_.shared_per_block, ErrorCode::Device, "kernel '", entry,
            "' asks for ", shared, " bytes of shared memory, a block has ", arch_.shared_per_block);
    auto f = std::make_shared<EmulatedFunction>();
    f->entry = load_entry(binary, entry, options_.folder);
    f->shared = shared;
    return f;
}

void EmulatedGpu::raise_shared(const cuda::Function& f, int64_t shared) {
    emulated(f).shared = shared;
}

std::unique_ptr<cuda::Stream> EmulatedGpu::create_stream() {
    return std::make_unique<EmulatedStream>(*this);
}

std::byte* EmulatedGpu::allocate(int64_t bytes) {
    return memory_.allocate(bytes);
}

std::byte* EmulatedGpu::allocate_shared(int64_t bytes) {
    std::byte* p = allocate(bytes);
    std::memset(p, 0, static_cast<size_t>(bytes));
    return p;
}

void EmulatedGpu::release(std::byte* memory) noexcept {
    std::string problem = memory_.release(memory);
    if (!problem.empty()) {
        std::lock_guard lock(mutex_);
        problems_ += problem + '\n';
    }
}

std::string EmulatedGpu::problems() const {
    std::lock_guard lock(mutex_);
    return problems_;
}

void EmulatedGpu::encode(const kernels::TensorMap& map, std::byte* base, std::byte* encoded) const {
    require(arch_.has_tma(), ErrorCode::Device, "a tensor map on compute capability ", arch_.cc);
    encode_map(map, base, encoded);
}

void EmulatedGpu::run(const cuda::Function& function, const cuda::LaunchShape& shape,
                      void* const* parameters) {
    static std::mutex one_at_a_time;
    std::lock_guard lock(one_at_a_time);
    const EmulatedFunction& f = emulated(function);
    check_shape(f, shape, arch_);
    ++launches_;
    if (meddler_) {
        meddler_(memory_, f.entry, parameters);
    }
    LaunchInfo info;
    info.entry = &f.entry;
    info.parameters = parameters;
    info.grid = {shape.grid[0], shape.grid[1], shape.grid[2]};
    info.threads = shape.block * shape.block_y * shape.block_z;
    info.block_y = shape.block_y;
    info.block_z = shape.block_z;
    info.shared = shape.shared;
    info.cluster = shape.cluster;
    info.cc = arch_.cc;
    info.needs_wait = arch_.has_pdl() && shape.overlap;
    info.reversed = options_.reversed;
    info.memory = &memory_;
    FaultGuard guard;
    Cluster cluster(info);
    uint64_t count = uint64_t{shape.grid[0]} * shape.grid[1] * shape.grid[2];
    bool held = arch_.has_pdl() && memory_.any_held();
    for (uint64_t first = 0; first < count; first += shape.cluster) {
        bool near_an_end = first < 2 * uint64_t{shape.cluster} || first + shape.cluster >= count;
        cluster.run(first, held && near_an_end);
    }
    std::string problem = memory_.check();
    require(problem.empty(), ErrorCode::Device, "kernel '", f.entry.name, "': ", problem);
}

} // namespace ingot::emulator
