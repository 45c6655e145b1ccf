// SPDX-License-Identifier: Apache-2.0
// The Gpu behind the CUDA driver and NVRTC.
#include "backends/cuda/driver.h"
#include "backends/cuda/gpu.h"
#include "backends/cuda/nvrtc.h"
#include "base/error.h"

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

    /// Makes the context current on this thread.
    void enter() const {
        thread_local CUcontext current = nullptr;
        if (current != context) {
            check(d, d.set_current(context), "cuCtxSetCurrent");
            current = context;
        }
    }
};

class NvidiaFunction : public Function {
public:
    CUmodule module = nullptr; // stays loaded as long as the process
    CUfunction function = nullptr;
};

class NvidiaRecording : public Recording {
public:
    NvidiaRecording(const Card& card, CUgraphExec exec) : card_(card), graph(exec) {}
    ~NvidiaRecording() override { card_.d.graph_exec_destroy(graph); }
    NvidiaRecording(const NvidiaRecording&) = delete;
    NvidiaRecording& operator=(const NvidiaRecording&) = delete;

private:
    const Card& card_;

public:
    CUgraphExec graph;
};

/// Page-locked memory through which copies from and to the host go, in two halves: one is filled
/// while the other is copied.
constexpr size_t staging_bytes = 8 << 20;
constexpr size_t half_bytes = staging_bytes / 2;

class NvidiaStream : public Stream {
public:
    explicit NvidiaStream(const Card& card) : card_(card) {
        card_.enter();
        check(card_.d, card_.d.stream_create(&stream_, stream_non_blocking), "cuStreamCreate");
    }
    ~NvidiaStream() override {
        card_.d.stream_synchronize(stream_);
        for (CUevent e : events_) {
            card_.d.event_destroy(e);
        }
        if (staging_ != nullptr) {
            card_.d.mem_free_host(staging_);
            for (CUevent e : half_done_) {
                card_.d.event_destroy(e);
            }
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
        check(card_.d,
              card_.d.launch(&config, static_cast<const NvidiaFunction&>(f).function,
                             const_cast<void**>(parameters), nullptr),
              "cuLaunchKernelEx");
    }

    void copy(std::byte* to, const std::byte* from, size_t bytes) override {
        if (bytes > 0) {
            card_.enter();
            check(card_.d, card_.d.copy_on_device(address(to), address(from), bytes, stream_),
                  "copying on the device");
        }
    }

    void fill(std::byte* to, int byte, size_t bytes) override {
        if (bytes > 0) {
            card_.enter();
            check(card_.d,
                  card_.d.fill(address(to), static_cast<unsigned char>(byte), bytes, stream_),
                  "filling device memory");
        }
    }

    void read(void* to, const std::byte* from, size_t bytes) override {
        synchronize();
        for (size_t at = 0; at < bytes; at += staging_bytes) {
            size_t part = std::min(bytes - at, staging_bytes);
            check(card_.d, card_.d.copy_to_host(staging(), address(from + at), part, stream_),
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
                check(card_.d, card_.d.event_synchronize(half_done_[half_]), "cuEventSynchronize");
            }
            std::memcpy(half, static_cast<const std::byte*>(from) + at, part);
            check(card_.d, card_.d.copy_to_device(address(to + at), half, part, stream_),
                  "copying to the device");
            check(card_.d, card_.d.event_record(half_done_[half_], stream_), "cuEventRecord");
            half_used_[half_] = true;
            half_ = 1 - half_;
        }
    }

    void synchronize() override {
        card_.enter();
        check(card_.d, card_.d.stream_synchronize(stream_), "waiting for the GPU");
    }

    bool begin_recording() override {
        card_.enter();
        check(card_.d, card_.d.begin_capture(stream_, capture_thread_local),
              "cuStreamBeginCapture");
        return true;
    }

    std::unique_ptr<Recording> end_recording() override {
        CUgraph graph = nullptr;
        check(card_.d, card_.d.end_capture(stream_, &graph), "cuStreamEndCapture");
        CUgraphExec exec = nullptr;
        CUresult r = card_.d.graph_instantiate(&exec, graph, 0);
        card_.d.graph_destroy(graph);
        check(card_.d, r, "cuGraphInstantiate");
        return std::make_unique<NvidiaRecording>(card_, exec);
    }

    void launch(const Recording& r) override {
        card_.enter();
        check(card_.d, card_.d.graph_launch(static_cast<const NvidiaRecording&>(r).graph, stream_),
              "cuGraphLaunch");
    }

    int mark_time() override {
        card_.enter();
        if (used_events_ == events_.size()) {
            CUevent e = nullptr;
            check(card_.d, card_.d.event_create(&e, 0), "cuEventCreate");
            events_.push_back(e);
        }
        check(card_.d, card_.d.event_record(events_[used_events_], stream_), "cuEventRecord");
        return static_cast<int>(used_events_++);
    }

    double elapsed_ms(int from, int to) override {
        float ms = 0;
        check(card_.d, card_.d.event_synchronize(events_.at(static_cast<size_t>(to))),
              "cuEventSynchronize");
        check(card_.d,
              card_.d.event_elapsed(&ms, events_.at(static_cast<size_t>(from)),
                                    events_.at(static_cast<size_t>(to))),
              "cuEventElapsedTime");
        return static_cast<double>(ms);
    }

    void forget_times() override { used_events_ = 0; }

private:
    std::byte* staging() {
        card_.enter();
        if (staging_ == nullptr) {
            check(card_.d, card_.d.mem_alloc_host(&staging_, staging_bytes),
                  "allocating page-locked memory");
            for (CUevent& e : half_done_) {
                check(card_.d, card_.d.event_create(&e, 0), "cuEventCreate");
            }
        }
        return static_cast<std::byte*>(staging_);
    }

    const Card& card_;
    CUstream stream_ = nullptr;
    void* staging_ = nullptr;
    CUevent half_done_[2] = {};
    bool half_used_[2] = {};
    size_t half_ = 0;
    std::vector<CUevent> events_;
    size_t used_events_ = 0;
};

class NvidiaGpu : public Gpu {
public:
    NvidiaGpu(const Driver& d, CUdevice device) : card_{d, device, nullptr} {
        check(d, d.primary_retain(&card_.context, device), "cuDevicePrimaryCtxRetain");
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
        description_ = str(static_cast<const char*>(text), ", compute capability ", cc / 10, '.',
                           cc % 10, ", ", arch_.sms, " SMs, driver for CUDA ", version / 1000, '.',
                           version % 1000 / 10);
    }

    const kernels::Arch& arch() const override { return arch_; }
    std::string description() const override { return description_; }
    std::string compiler() const override { return str("cubin ", arch_.nvrtc); }

    std::string compile(const std::string& text) const override {
        return nvrtc_compile(text, std::string(arch_.nvrtc)).cubin;
    }

    std::shared_ptr<const Function> load(std::string_view binary, const std::string& entry,
                                         int64_t shared) override {
        card_.enter();
        auto f = std::make_shared<NvidiaFunction>();
        check(card_.d, card_.d.module_load(&f->module, binary.data()), "cuModuleLoadData");
        check(card_.d, card_.d.module_function(&f->function, f->module, entry.c_str()),
              "cuModuleGetFunction");
        constexpr int64_t default_limit = 48 << 10;
        if (shared > default_limit) {
            check(card_.d,
                  card_.d.function_set(f->function, function_max_dynamic_shared,
                                       static_cast<int>(arch_.shared_per_block)),
                  "raising the limit of shared memory");
        }
        return f;
    }

    std::unique_ptr<Stream> create_stream() override {
        return std::make_unique<NvidiaStream>(card_);
    }

    std::byte* allocate(int64_t bytes) override {
        card_.enter();
        CUdeviceptr p = 0;
        CUresult r = card_.d.mem_alloc(&p, static_cast<size_t>(std::max<int64_t>(bytes, 1)));
        if (r == 2) {
            size_t free = 0;
            size_t total = 0;
            card_.d.mem_info(&free, &total);
            fail(ErrorCode::OutOfMemory, "the GPU has no ", bytes, " bytes left: ", free, " of ",
                 total, " are free; use smaller shapes or close other programs that use it");
        }
        check(card_.d, r, "cuMemAlloc");
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

    void encode(const kernels::TensorMap& map, std::byte* base, std::byte* encoded) const override;

private:
    int attribute(DeviceAttribute a) const {
        int v = 0;
        check(card_.d, card_.d.device_attribute(&v, static_cast<int>(a), card_.device),
              "cuDeviceGetAttribute");
        return v;
    }

    Card card_;
    kernels::Arch arch_;
    std::string description_;
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
    check(card_.d,
          card_.d.encode_tiled(&m, map_type(map.dtype), static_cast<unsigned int>(map.rank), base,
                               map.sizes.data(), map.strides.data(), map.box.data(), steps, 0,
                               map.swizzle128 ? swizzle_128b : 0, promote_256b, 0),
          "cuTensorMapEncodeTiled");
    std::memcpy(encoded, &m, sizeof m);
}

} // namespace

Gpu* find_gpu(int index, std::string& why) {
    static std::mutex mutex;
    static std::map<int, std::unique_ptr<NvidiaGpu>> open;
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
    check(*d, d->device_get(&device, index), "cuDeviceGet");
    return open.emplace(index, std::make_unique<NvidiaGpu>(*d, device)).first->second.get();
}

} // namespace ingot::cuda
