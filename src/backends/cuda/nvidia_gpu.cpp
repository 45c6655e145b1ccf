// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/nvidia_gpu.h"

#include "backends/cuda/nvrtc.h"
#include "base/error.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

namespace ingot::cuda {

namespace {

CUdeviceptr address(const std::byte* p) {
    return reinterpret_cast<CUdeviceptr>(p);
}

/// One device with its primary context.
struct Card {
    const Driver& d;
    CUdevice device = 0;
    CUcontext context = nullptr;
    mutable DeviceHealth health;

    Card(const Driver& driver, CUdevice number) : d(driver), device(number) {}

    void check(CUresult r, const char* what) const { health.check(d, r, what); }
    /// Makes the context current on this thread. Errors: Device for a dead device.
    void enter() const {
        thread_local CUcontext current = nullptr;
        health.require_alive();
        if (current != context) {
            check(d.set_current(context), "cuCtxSetCurrent");
            current = context;
        }
    }
    /// For what gives resources back: on a dead device their release does nothing.
    void enter_quietly() const noexcept {
        try {
            enter();
        } catch (const std::exception&) {
            return;
        }
    }
};

class NvidiaFunction : public Function {
public:
    explicit NvidiaFunction(const Card& card) : card_(card) {}
    ~NvidiaFunction() override {
        if (module != nullptr) {
            card_.enter_quietly();
            card_.d.module_unload(module);
        }
    }
    NvidiaFunction(const NvidiaFunction&) = delete;
    NvidiaFunction& operator=(const NvidiaFunction&) = delete;

private:
    const Card& card_;

public:
    CUmodule module = nullptr;
    CUfunction function = nullptr;
};

class NvidiaRecording : public Recording {
public:
    NvidiaRecording(const Card& card, CUgraphExec exec) : card_(card), graph(exec) {}
    ~NvidiaRecording() override {
        card_.enter_quietly();
        card_.d.graph_exec_destroy(graph);
    }
    NvidiaRecording(const NvidiaRecording&) = delete;
    NvidiaRecording& operator=(const NvidiaRecording&) = delete;

private:
    const Card& card_;

public:
    CUgraphExec graph;
};

/// Where a stream waits until the host lets it go on.
class Gate {
public:
    void close() {
        std::scoped_lock lock(mutex_);
        open_ = false;
    }
    void open() {
        std::scoped_lock lock(mutex_);
        open_ = true;
        opened_.notify_all();
    }
    /// Gives up after a while: a queue that is full would hold the host, which then never opens it.
    void pass() {
        std::unique_lock lock(mutex_);
        opened_.wait_for(lock, std::chrono::seconds(2), [this] { return open_; });
    }

private:
    std::mutex mutex_;
    std::condition_variable opened_;
    bool open_ = true;
};

/// Page-locked memory through which copies from and to the host go, in two halves: one is filled
/// while the other is copied.
constexpr size_t staging_bytes = 8 << 20;
constexpr size_t half_bytes = staging_bytes / 2;

class NvidiaStream : public Stream {
public:
    /// Streams of runs have a step more priority than those of background work.
    NvidiaStream(const Card& card, bool background) : card_(card) {
        card_.enter();
        int least = 0;
        int greatest = 0;
        const Driver& d = card_.d;
        if (d.stream_priorities == nullptr || d.stream_create_with_priority == nullptr ||
            d.stream_priorities(&least, &greatest) != 0) {
            card_.check(d.stream_create(&stream_, stream_non_blocking), "cuStreamCreate");
            return;
        }
        // Smaller numbers are more urgent.
        int priority = background || greatest >= least ? least : least - 1;
        card_.check(d.stream_create_with_priority(&stream_, stream_non_blocking, priority),
                    "cuStreamCreateWithPriority");
    }
    ~NvidiaStream() override {
        resume();
        card_.enter_quietly();
        card_.d.stream_synchronize(stream_);
        for (CUevent e : events_) {
            card_.d.event_destroy(e);
        }
        for (CUevent e : {half_done_[0], half_done_[1], before_, after_}) {
            if (e != nullptr) {
                card_.d.event_destroy(e);
            }
        }
        if (staging_ != nullptr) {
            card_.d.mem_free_host(staging_);
        }
        card_.d.stream_destroy(stream_);
    }
    NvidiaStream(const NvidiaStream&) = delete;
    NvidiaStream& operator=(const NvidiaStream&) = delete;

    void launch(const Function& f, const LaunchShape& shape, void* const* parameters) override {
        card_.enter();
        CUlaunchAttribute attributes[2] = {};
        unsigned int count = 0;
        if (shape.cluster > 1) {
            attributes[count].id = launch_cluster_dimension;
            attributes[count].dims[0] = shape.cluster;
            attributes[count].dims[1] = 1;
            attributes[count++].dims[2] = 1;
        }
        if (shape.overlap) {
            attributes[count].id = launch_programmatic_serialization;
            attributes[count++].flag = 1;
        }
        CUlaunchConfig config = {{shape.grid[0], shape.grid[1], shape.grid[2]},
                                 {shape.block, 1, 1},
                                 shape.shared,
                                 stream_,
                                 attributes,
                                 count};
        card_.check(card_.d.launch(&config, static_cast<const NvidiaFunction&>(f).function,
                                   const_cast<void**>(parameters), nullptr),
                    "cuLaunchKernelEx");
    }

    void copy(std::byte* to, const std::byte* from, size_t bytes) override {
        if (bytes > 0) {
            card_.enter();
            card_.check(card_.d.copy_on_device(address(to), address(from), bytes, stream_),
                        "copying on the device");
        }
    }

    void fill(std::byte* to, int byte, size_t bytes) override {
        if (bytes > 0) {
            card_.enter();
            card_.check(card_.d.fill(address(to), static_cast<unsigned char>(byte), bytes, stream_),
                        "filling device memory");
        }
    }

    void read(void* to, const std::byte* from, size_t bytes) override {
        synchronize();
        for (size_t at = 0; at < bytes; at += staging_bytes) {
            size_t part = std::min(bytes - at, staging_bytes);
            card_.check(card_.d.copy_to_host(staging(), address(from + at), part, stream_),
                        "copying to the host");
            synchronize();
            std::memcpy(static_cast<std::byte*>(to) + at, staging_, part);
        }
    }

    void write(std::byte* to, const void* from, size_t bytes) override {
        for (size_t at = 0; at < bytes; at += half_bytes) {
            size_t part = std::min(bytes - at, half_bytes);
            std::byte* half = staging() + half_ * half_bytes;
            if (half_used_[half_]) { // wait until it has been copied
                card_.check(card_.d.event_synchronize(half_done_[half_]), "cuEventSynchronize");
            }
            std::memcpy(half, static_cast<const std::byte*>(from) + at, part);
            card_.check(card_.d.copy_to_device(address(to + at), half, part, stream_),
                        "copying to the device");
            card_.check(card_.d.event_record(half_done_[half_], stream_), "cuEventRecord");
            half_used_[half_] = true;
            half_ = 1 - half_;
        }
    }

    void synchronize() override {
        card_.enter();
        card_.check(card_.d.stream_synchronize(stream_), "waiting for the GPU");
    }

    bool begin_recording() override {
        card_.enter();
        card_.check(card_.d.begin_capture(stream_, capture_thread_local), "cuStreamBeginCapture");
        return true;
    }

    std::unique_ptr<Recording> end_recording() override {
        CUgraph graph = nullptr;
        card_.check(card_.d.end_capture(stream_, &graph), "cuStreamEndCapture");
        CUgraphExec exec = nullptr;
        CUresult r = card_.d.graph_instantiate(&exec, graph, 0);
        card_.d.graph_destroy(graph);
        card_.check(r, "cuGraphInstantiate");
        return std::make_unique<NvidiaRecording>(card_, exec);
    }

    void launch(const Recording& r) override {
        card_.enter();
        card_.check(card_.d.graph_launch(static_cast<const NvidiaRecording&>(r).graph, stream_),
                    "cuGraphLaunch");
    }

    void wait_for(void* other) override {
        pass_order(static_cast<CUstream>(other), stream_, before_);
    }
    void let_wait(void* other) override {
        pass_order(stream_, static_cast<CUstream>(other), after_);
    }

    int mark_time() override {
        card_.enter();
        if (used_events_ == events_.size()) {
            CUevent e = nullptr;
            card_.check(card_.d.event_create(&e, 0), "cuEventCreate");
            events_.push_back(e);
        }
        card_.check(card_.d.event_record(events_[used_events_], stream_), "cuEventRecord");
        return static_cast<int>(used_events_++);
    }

    double elapsed_ms(int from, int to) override {
        float ms = 0;
        card_.check(card_.d.event_synchronize(events_.at(static_cast<size_t>(to))),
                    "cuEventSynchronize");
        card_.check(card_.d.event_elapsed(&ms, events_.at(static_cast<size_t>(from)),
                                          events_.at(static_cast<size_t>(to))),
                    "cuEventElapsedTime");
        return static_cast<double>(ms);
    }

    void forget_times() override { used_events_ = 0; }

    void hold() override {
        card_.enter();
        gate_.close();
        CUresult r = card_.d.launch_host(
            stream_, [](void* gate) { static_cast<Gate*>(gate)->pass(); }, &gate_);
        if (r != 0) {
            gate_.open();
            card_.check(r, "cuLaunchHostFunc");
        }
    }
    void resume() override { gate_.open(); }

private:
    /// What follows on `second` waits for what `first` holds. An event that is recorded again still
    /// holds back those that waited for what it stood for before.
    void pass_order(CUstream first, CUstream second, CUevent& event) {
        card_.enter();
        if (event == nullptr) {
            card_.check(card_.d.event_create(&event, event_without_timing), "cuEventCreate");
        }
        card_.check(card_.d.event_record(event, first), "cuEventRecord");
        card_.check(card_.d.stream_wait_event(second, event, 0), "cuStreamWaitEvent");
    }

    std::byte* staging() {
        card_.enter();
        if (staging_ == nullptr) {
            card_.check(card_.d.mem_alloc_host(&staging_, staging_bytes),
                        "allocating page-locked memory");
        }
        for (CUevent& e : half_done_) {
            if (e == nullptr) {
                card_.check(card_.d.event_create(&e, 0), "cuEventCreate");
            }
        }
        return static_cast<std::byte*>(staging_);
    }

    const Card& card_;
    CUstream stream_ = nullptr;
    CUevent before_ = nullptr;
    CUevent after_ = nullptr;
    void* staging_ = nullptr;
    CUevent half_done_[2] = {};
    bool half_used_[2] = {};
    size_t half_ = 0;
    std::vector<CUevent> events_;
    size_t used_events_ = 0;
    Gate gate_;
};

class NvidiaGpu : public Gpu {
public:
    NvidiaGpu(const Driver& d, CUdevice device) : card_(d, device) {
        card_.check(d.primary_retain(&card_.context, device), "cuDevicePrimaryCtxRetain");
        card_.enter();
        int cc = attribute(DeviceAttribute::ComputeCapabilityMajor) * 10 +
                 attribute(DeviceAttribute::ComputeCapabilityMinor);
        arch_ = kernels::arch_of(cc);
        arch_.cc = cc;
        arch_.sms = attribute(DeviceAttribute::MultiprocessorCount);
        arch_.shared_per_block = attribute(DeviceAttribute::MaxSharedPerBlockOptin);
        arch_.shared_per_sm = attribute(DeviceAttribute::MaxSharedPerMultiprocessor);
        arch_.threads_per_sm = attribute(DeviceAttribute::MaxThreadsPerMultiprocessor);
        arch_.l2_bytes = attribute(DeviceAttribute::L2CacheSize);
        char text[256] = {};
        d.device_name(text, sizeof text - 1, device);
        int version = 0;
        d.driver_version(&version);
        identity_ = str(static_cast<const char*>(text), ", compute capability ", cc / 10, '.',
                        cc % 10, ", ", arch_.sms, " SMs, ", arch_.shared_per_sm, " and ",
                        arch_.l2_bytes, " bytes of shared memory and L2 cache");
        description_ = str(static_cast<const char*>(text), ", compute capability ", cc / 10, '.',
                           cc % 10, ", ", arch_.sms, " SMs, driver for CUDA ", version / 1000, '.',
                           version % 1000 / 10);
    }

    const kernels::Arch& arch() const override { return arch_; }
    std::string description() const override { return description_; }
    std::string identity() const override { return identity_; }
    std::string compiler() const override { return str("cubin ", arch_.nvrtc); }

    std::string compile(const std::string& text) const override {
        return nvrtc_compile(text, std::string(arch_.nvrtc)).cubin;
    }

    std::shared_ptr<const Function> load(std::string_view binary, const std::string& entry,
                                         int64_t shared) override {
        card_.enter();
        auto f = std::make_shared<NvidiaFunction>(card_);
        card_.check(card_.d.module_load(&f->module, binary.data()), "cuModuleLoadData");
        card_.check(card_.d.module_function(&f->function, f->module, entry.c_str()),
                    "cuModuleGetFunction");
        constexpr int64_t default_limit = 48 << 10;
        if (shared > default_limit) {
            card_.check(card_.d.function_set(f->function, function_max_dynamic_shared,
                                             static_cast<int>(arch_.shared_per_block)),
                        "raising the limit of shared memory");
        }
        return f;
    }

    std::unique_ptr<Stream> create_stream() override {
        return std::make_unique<NvidiaStream>(card_, false);
    }

    std::unique_ptr<Stream> create_background_stream() override {
        return std::make_unique<NvidiaStream>(card_, true);
    }

    std::byte* allocate(int64_t bytes) override {
        card_.enter();
        CUdeviceptr p = 0;
        CUresult r = card_.d.mem_alloc(&p, static_cast<size_t>(std::max<int64_t>(bytes, 1)));
        if (r == out_of_memory) {
            size_t free = 0;
            size_t total = 0;
            card_.d.mem_info(&free, &total);
            fail(ErrorCode::OutOfMemory, "the GPU has no ", bytes, " bytes left: ", free, " of ",
                 total, " are free; use smaller shapes or close other programs that use it");
        }
        card_.check(r, "cuMemAlloc");
        return reinterpret_cast<std::byte*>(p);
    }

    void release(std::byte* memory) noexcept override {
        try {
            card_.enter();
        } catch (const Error&) {
            return; // the context is gone, and its memory with it
        }
        card_.d.mem_free(address(memory));
    }

    std::byte* allocate_shared(int64_t bytes) override {
        card_.enter();
        void* p = nullptr;
        CUresult r = card_.d.mem_alloc_host(&p, static_cast<size_t>(bytes));
        if (r == out_of_memory) {
            fail(ErrorCode::OutOfMemory, "the system has no ", bytes,
                 " bytes of page-locked memory left; close other programs that use GPUs");
        }
        card_.check(r, "cuMemAllocHost");
        std::memset(p, 0, static_cast<size_t>(bytes));
        return static_cast<std::byte*>(p);
    }

    void release_shared(std::byte* memory) noexcept override {
        card_.enter_quietly();
        card_.d.mem_free_host(memory);
    }

    int64_t free_bytes() const override {
        card_.enter();
        size_t free = 0;
        size_t total = 0;
        card_.check(card_.d.mem_info(&free, &total), "cuMemGetInfo");
        return static_cast<int64_t>(free);
    }

    void encode(const kernels::TensorMap& map, std::byte* base, std::byte* encoded) const override;

private:
    int attribute(DeviceAttribute a) const {
        int v = 0;
        card_.check(card_.d.device_attribute(&v, static_cast<int>(a), card_.device),
                    "cuDeviceGetAttribute");
        return v;
    }

    Card card_;
    kernels::Arch arch_;
    std::string description_;
    std::string identity_;
};

/// CUtensorMapDataType.
int map_type(DType t) {
    switch (bit_width(t)) {
    case 8:
        return 0;
    case 16:
        return t == DType::F16 ? 6 : t == DType::BF16 ? 9 : 1;
    case 32:
        return t == DType::F32 ? 7 : 2;
    default:
        return 4;
    }
}

void NvidiaGpu::encode(const kernels::TensorMap& map, std::byte* base, std::byte* encoded) const {
    require(card_.d.encode_tiled != nullptr, ErrorCode::Unsupported,
            "the CUDA driver has no tensor maps: it is older than CUDA 12.0, update it");
    const uint32_t steps[5] = {1, 1, 1, 1, 1};
    CUtensorMap m;
    constexpr int swizzle_128b = 3;
    constexpr int promote_256b = 3;
    card_.check(card_.d.encode_tiled(&m, map_type(map.dtype), static_cast<unsigned int>(map.rank),
                                     base, map.sizes.data(), map.strides.data(), map.box.data(),
                                     steps, 0, map.swizzle128 ? swizzle_128b : 0, promote_256b, 0),
                "cuTensorMapEncodeTiled");
    std::memcpy(encoded, &m, sizeof m);
}

} // namespace

std::unique_ptr<Gpu> make_nvidia_gpu(const Driver& driver, CUdevice device) {
    return std::make_unique<NvidiaGpu>(driver, device);
}

Gpu* find_gpu(int index, std::string& why) {
    static std::mutex mutex;
    // Never destroyed: kernels that others keep until the process ends refer to it.
    // NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables)
    static auto& open = *new std::map<int, std::unique_ptr<Gpu>>;
    const Driver* d = find_driver(why);
    if (d == nullptr) {
        return nullptr;
    }
    std::scoped_lock lock(mutex);
    if (auto it = open.find(index); it != open.end()) {
        return it->second.get();
    }
    int count = 0;
    d->device_count(&count);
    if (index < 0 || index >= count) {
        why = str("there is no CUDA device ", index, ": the driver has ", count);
        return nullptr;
    }
    CUdevice device = 0;
    DeviceHealth().check(*d, d->device_get(&device, index), "cuDeviceGet");
    return open.emplace(index, make_nvidia_gpu(*d, device)).first->second.get();
}

} // namespace ingot::cuda
