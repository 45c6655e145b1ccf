// SPDX-License-Identifier: Apache-2.0
#include "plugins/onnxruntime/memory.h"

#include "plugins/onnxruntime/graph.h"

namespace ingot::ort {

// --- allocator -----------------------------------------------------------------------------------

Allocator::Allocator(const Host& host, std::shared_ptr<const GpuTable> gpus,
                     const GpuTable::Entry& gpu, bool pinned)
    : OrtAllocator{}, host_(host), gpus_(std::move(gpus)), memory_(gpu.memory),
      streams_(gpu.streams), info_(pinned ? gpu.pinned : gpu.info), pinned_(pinned),
      blocks_(gpu.memory) {
    version = host.version;
    Alloc = alloc;
    Free = free;
    Info = get_info;
    Reserve = alloc;
    Shrink = shrink;
    if (!pinned) {
        AllocOnStream = alloc_on_stream;
    }
}

Allocator::~Allocator() {
    release_kept();
}

const OrtMemoryInfo* Allocator::get_info(const OrtAllocator* self) {
    return static_cast<const Allocator*>(self)->info_;
}

void* Allocator::alloc(OrtAllocator* self, size_t bytes) {
    auto& me = *static_cast<Allocator*>(self);
    try {
        return me.pinned_ ? me.memory_->allocate_pinned(bytes) : me.blocks_.take(bytes);
    } catch (...) { // what is kept for later is given back first
        me.release_kept();
        me.gpus_->shrink_scratch(me.memory_);
    }
    try {
        return me.pinned_ ? me.memory_->allocate_pinned(bytes) : me.memory_->allocate(bytes);
    } catch (...) { // the host reports the lack of memory
        return nullptr;
    }
}

void* Allocator::alloc_on_stream(OrtAllocator* self, size_t bytes, OrtSyncStream* stream) {
    auto& me = *static_cast<Allocator*>(self);
    try {
        void* handle = stream_handle(me.host_, *me.gpus_, stream);
        return handle == nullptr ? alloc(self, bytes) : me.take(block_size(bytes), handle);
    } catch (...) {
        return nullptr;
    }
}

void* Allocator::take(size_t bytes, void* stream) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto [first, last] = kept_.equal_range(bytes);
    for (auto it = first; it != last; ++it) {
        LastUse& use = it->second.use;
        if (use.stream == stream || (streams_->record(use) && memory_->has_passed(use.event))) {
            Block b = it->second;
            if (!OwnStreams::is_in_order(use, stream) && !memory_->is_captured(stream)) {
                memory_->make_wait(stream, use.event); // the stream may be another at its address
            }
            kept_.erase(it);
            b.stream = stream;
            used_.emplace(b.memory, b);
            return b.memory;
        }
    }
    Block b{nullptr, bytes, stream, {}};
    b.use.event = memory_->create_event();
    b.memory = memory_->allocate(bytes);
    used_.emplace(b.memory, b);
    return b.memory;
}

void Allocator::free(OrtAllocator* self, void* memory) {
    if (memory != nullptr) {
        static_cast<Allocator*>(self)->give(memory);
    }
}

void Allocator::give(void* memory) noexcept {
    try {
        std::lock_guard<std::mutex> lock(mutex_);
        if (auto it = used_.find(memory); it != used_.end()) {
            Block b = it->second;
            used_.erase(it);
            streams_->end_use(b.use, b.stream);
            kept_.emplace(b.bytes, b);
            return;
        }
        if (blocks_.give(memory)) {
            return;
        }
    } catch (...) { // it returns to the driver, which waits for its last use
    }
    if (pinned_) {
        memory_->release_pinned(memory);
    } else {
        memory_->release(memory);
    }
}

void Allocator::release_kept() noexcept {
    std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [bytes, b] : kept_) {
        memory_->release(b.memory);
        memory_->release_event(b.use.event);
    }
    kept_.clear();
    blocks_.release();
}

OrtStatus* Allocator::shrink(OrtAllocator* self) {
    static_cast<Allocator*>(self)->release_kept();
    return nullptr;
}

// --- copies --------------------------------------------------------------------------------------

DataTransfer::DataTransfer(const Host& host, std::shared_ptr<const GpuTable> gpus)
    : OrtDataTransferImpl{}, host_(host), gpus_(std::move(gpus)) {
    ort_version_supported = host.version;
    Release = release;
    CanCopy = can_copy;
    CopyTensors = copy_tensors;
}

void DataTransfer::release(OrtDataTransferImpl* self) {
    std::unique_ptr<DataTransfer>(static_cast<DataTransfer*>(self)).reset();
}

namespace {

/// Whether it is memory of a GPU; pinned memory is the host's. Before 1.31, addresses that an
/// application binds as "cuda" have no vendor.
bool is_device(const Host& host, const OrtMemoryDevice* d) {
    uint32_t vendor = host.ep->MemoryDevice_GetVendorId(d);
    return host.ep->MemoryDevice_GetDeviceType(d) == OrtMemoryInfoDeviceType_GPU &&
           (vendor == nvidia_vendor || vendor == 0) &&
           host.ep->MemoryDevice_GetMemoryType(d) == OrtDeviceMemoryType_DEFAULT;
}

bool is_host(const Host& host, const OrtMemoryDevice* d) {
    return host.ep->MemoryDevice_GetDeviceType(d) == OrtMemoryInfoDeviceType_CPU ||
           host.ep->MemoryDevice_GetMemoryType(d) == OrtDeviceMemoryType_HOST_ACCESSIBLE;
}

} // namespace

bool DataTransfer::can_copy(const OrtDataTransferImpl* self, const OrtMemoryDevice* source,
                            const OrtMemoryDevice* target) {
    const auto& me = *static_cast<const DataTransfer*>(self);
    auto ours = [&](const OrtMemoryDevice* d) {
        return is_device(me.host_, d) &&
               me.gpus_->memory(me.host_.ep->MemoryDevice_GetDeviceId(d)) != nullptr;
    };
    return (ours(source) && (ours(target) || is_host(me.host_, target))) ||
           (is_host(me.host_, source) && ours(target));
}

void DataTransfer::copy(const OrtValue* source, OrtValue* target, void* stream) const {
    const OrtMemoryDevice* from = host_.ep->Value_GetMemoryDevice(source);
    const OrtMemoryDevice* to = host_.ep->Value_GetMemoryDevice(target);
    size_t bytes = 0;
    const void* data = nullptr;
    void* place = nullptr;
    host_.check(host_.api->GetTensorSizeInBytes(source, &bytes));
    host_.check(host_.api->GetTensorData(source, &data));
    host_.check(host_.api->GetTensorMutableData(target, &place));
    if (bytes == 0) {
        return;
    }
    const OrtMemoryDevice* gpu = is_device(host_, to) ? to : from;
    auto memory = gpus_->memory(host_.ep->MemoryDevice_GetDeviceId(gpu));
    require(memory != nullptr, ErrorCode::Internal, "a tensor is on no GPU of this provider");
    memory->copy(place, data, bytes, stream);
    if (stream != nullptr && is_host(host_, to)) {
        memory->wait_for_stream(stream); // readers do not wait by themselves
    }
}

OrtStatus* DataTransfer::copy_tensors(OrtDataTransferImpl* self, const OrtValue** sources,
                                      OrtValue** targets, OrtSyncStream** streams, size_t count) {
    auto& me = *static_cast<DataTransfer*>(self);
    return guard(me.host_, [&] {
        for (size_t i = 0; i < count; ++i) {
            me.copy(sources[i], targets[i],
                    streams == nullptr ? nullptr : stream_handle(me.host_, *me.gpus_, streams[i]));
        }
    });
}

// --- streams -------------------------------------------------------------------------------------

namespace {

class Notification final : public OrtSyncNotificationImpl {
public:
    Notification(const Host& host, std::shared_ptr<const GpuTable> gpus,
                 std::shared_ptr<DeviceMemory> memory, void* stream)
        : OrtSyncNotificationImpl{}, host_(host), gpus_(std::move(gpus)),
          memory_(std::move(memory)), stream_(stream), event_(memory_->create_event()) {
        ort_version_supported = host.version;
        Release = [](OrtSyncNotificationImpl* self) {
            std::unique_ptr<Notification>(static_cast<Notification*>(self)).reset();
        };
        Activate = [](OrtSyncNotificationImpl* self) {
            auto& me = *static_cast<Notification*>(self);
            return guard(me.host_, [&] { me.memory_->record(me.event_, me.stream_); });
        };
        WaitOnDevice = [](OrtSyncNotificationImpl* self, OrtSyncStream* consumer) {
            auto& me = *static_cast<Notification*>(self);
            return guard(me.host_, [&] {
                me.memory_->make_wait(stream_handle(me.host_, *me.gpus_, consumer), me.event_);
            });
        };
        WaitOnHost = [](OrtSyncNotificationImpl* self) {
            auto& me = *static_cast<Notification*>(self);
            return guard(me.host_, [&] { me.memory_->wait_for_event(me.event_); });
        };
    }
    ~Notification() { memory_->release_event(event_); }
    Notification(const Notification&) = delete;
    Notification& operator=(const Notification&) = delete;

private:
    Host host_;
    std::shared_ptr<const GpuTable> gpus_;
    std::shared_ptr<DeviceMemory> memory_;
    void* stream_;
    void* event_;
};

} // namespace

Stream::Stream(const Host& host, std::shared_ptr<const GpuTable> gpus, const GpuTable::Entry& gpu,
               void* given, bool low_priority)
    : OrtSyncStreamImpl{}, host_(host), gpus_(std::move(gpus)), memory_(gpu.memory),
      streams_(gpu.streams),
      stream_(given == nullptr
                  ? streams_->create(low_priority ? RunPriority::Low : RunPriority::Normal)
                  : given),
      owned_(given == nullptr) {
    ort_version_supported = host.version;
    Release = release;
    GetHandle = get_handle;
    CreateNotification = create_notification;
    Flush = flush;
    OnSessionRunEnd = on_session_run_end;
    gpus_->add_stream(this);
}

Stream::~Stream() {
    gpus_->remove_stream(this);
    if (owned_) {
        streams_->release(stream_);
    }
}

void Stream::release(OrtSyncStreamImpl* self) {
    std::unique_ptr<Stream>(static_cast<Stream*>(self)).reset();
}

void* Stream::get_handle(OrtSyncStreamImpl* self) {
    return static_cast<Stream*>(self)->stream_;
}

OrtStatus* Stream::create_notification(OrtSyncStreamImpl* self, OrtSyncNotificationImpl** out) {
    auto& me = *static_cast<Stream*>(self);
    *out = nullptr;
    return guard(me.host_, [&] {
        *out = std::make_unique<Notification>(me.host_, me.gpus_, me.memory_, me.stream_).release();
    });
}

OrtStatus* Stream::flush(OrtSyncStreamImpl* self) {
    auto& me = *static_cast<Stream*>(self);
    return guard(me.host_, [&] { me.memory_->wait_for_stream(me.stream_); });
}

OrtStatus* Stream::on_session_run_end(OrtSyncStreamImpl*) {
    return nullptr;
}

void* stream_handle(const Host& host, const GpuTable& gpus, const OrtSyncStream* stream) {
    if (stream == nullptr) {
        return nullptr;
    }
    const OrtSyncStreamImpl* impl = host.ep->SyncStream_GetImpl(stream);
    return gpus.has_stream(impl) ? static_cast<const Stream*>(impl)->handle() : nullptr;
}

// --- kernels -------------------------------------------------------------------------------------

namespace {

void* stream_of(const Host& host, const OrtKernelContext* context) {
    void* stream = nullptr;
    host.check(host.api->KernelContext_GetGPUComputeStream(context, &stream));
    return stream;
}

/// MemcpyFromHost and MemcpyToHost: copies the input to the memory in the output's definition.
class MemcpyKernel final : public OrtKernelImpl {
public:
    MemcpyKernel(const Host& host, DataTransfer& transfer)
        : OrtKernelImpl{}, host_(host), transfer_(transfer) {
        ort_version_supported = host.version;
        Compute = compute;
        Release = [](OrtKernelImpl* self) {
            std::unique_ptr<MemcpyKernel>(static_cast<MemcpyKernel*>(self)).reset();
        };
    }

private:
    static OrtStatus* compute(OrtKernelImpl* self, OrtKernelContext* context) {
        auto& me = *static_cast<MemcpyKernel*>(self);
        const Host& host = me.host_;
        return guard(host, [&] {
            const OrtValue* in = nullptr;
            host.check(host.api->KernelContext_GetInput(context, 0, &in));
            TensorView t = view_of(host, in);
            OrtValue* out = nullptr;
            host.check(
                host.api->KernelContext_GetOutput(context, 0, t.dims.data(), t.dims.size(), &out));
            me.transfer_.copy(in, out, stream_of(host, context));
        });
    }
    Host host_;
    DataTransfer& transfer_;
};

} // namespace

MemcpyKernels::MemcpyKernels(const Host& host, const std::string& provider,
                             std::shared_ptr<const GpuTable> gpus)
    : host_(host), transfer_(host, std::move(gpus)) {
    host_.check(host_.ep->CreateKernelRegistry(&registry_));
    add("MemcpyFromHost", provider, false);
    add("MemcpyToHost", provider, true);
}

MemcpyKernels::~MemcpyKernels() {
    host_.ep->ReleaseKernelRegistry(registry_);
}

void MemcpyKernels::add(const char* type, const std::string& provider, bool to_host) {
    OrtKernelDefBuilder* made = nullptr;
    host_.check(host_.ep->CreateKernelDefBuilder(&made));
    std::unique_ptr<OrtKernelDefBuilder, decltype(host_.ep->ReleaseKernelDefBuilder)> builder(
        made, host_.ep->ReleaseKernelDefBuilder);
    host_.check(host_.ep->KernelDefBuilder_SetOperatorType(made, type));
    host_.check(host_.ep->KernelDefBuilder_SetDomain(made, ""));
    host_.check(host_.ep->KernelDefBuilder_SetSinceVersion(made, 1, 1));
    host_.check(host_.ep->KernelDefBuilder_SetExecutionProvider(made, provider.c_str()));
    host_.check(to_host ? host_.ep->KernelDefBuilder_SetOutputMemType(made, 0, OrtMemTypeCPUOutput)
                        : host_.ep->KernelDefBuilder_SetInputMemType(made, 0, OrtMemTypeCPUInput));
    std::vector<const OrtDataType*> types;
    for (int32_t t = 1; t <= ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT4E2M1; ++t) {
        const OrtDataType* found = nullptr;
        if (OrtStatus* status =
                host_.ep->GetTensorDataType(static_cast<ONNXTensorElementDataType>(t), &found)) {
            host_.api->ReleaseStatus(status); // this release lacks the type
        } else if (found != nullptr) {
            types.push_back(found);
        }
    }
    host_.check(
        host_.ep->KernelDefBuilder_AddTypeConstraint(made, "T", types.data(), types.size()));
    OrtKernelDef* definition = nullptr;
    host_.check(host_.ep->KernelDefBuilder_Build(made, &definition));
    std::unique_ptr<OrtKernelDef, decltype(host_.ep->ReleaseKernelDef)> owned(
        definition, host_.ep->ReleaseKernelDef);
    auto create = [](void* state, const OrtKernelInfo*, OrtKernelImpl** out) -> OrtStatus* {
        auto& me = *static_cast<MemcpyKernels*>(state);
        return guard(me.host_, [&] {
            *out = std::make_unique<MemcpyKernel>(me.host_, me.transfer_).release();
        });
    };
    host_.check(host_.ep->KernelRegistry_AddKernel(registry_, definition, create, this));
}

} // namespace ingot::ort
