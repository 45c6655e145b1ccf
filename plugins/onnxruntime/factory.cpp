// SPDX-License-Identifier: Apache-2.0
#include "plugins/onnxruntime/factory.h"

#include "ingot.h"
#include "plugins/onnxruntime/compatibility.h"
#include "plugins/onnxruntime/provider.h"

#include <algorithm>
#include <array>
#include <cstdlib>

namespace ingot::ort {

namespace {

constexpr std::array<std::string_view, 3> names = {ep_name, "NvTensorRtRtxExecutionProvider",
                                                   "IngotExecutionProvider"};

Factory& me(OrtEpFactory* self) {
    return *static_cast<Factory*>(self);
}

/// Key-value pairs for the host, which copies them.
class Pairs {
public:
    Pairs(const Host& host, const OptionMap& content) : host_(host) {
        host_.api->CreateKeyValuePairs(&pairs_);
        for (const auto& [key, value] : content) {
            host_.api->AddKeyValuePair(pairs_, key.c_str(), value.c_str());
        }
    }
    ~Pairs() { host_.api->ReleaseKeyValuePairs(pairs_); }
    Pairs(const Pairs&) = delete;
    Pairs& operator=(const Pairs&) = delete;
    const OrtKeyValuePairs* get() const { return pairs_; }

private:
    Host host_;
    OrtKeyValuePairs* pairs_ = nullptr;
};

} // namespace

std::string provider_name(const std::string& registered) {
    std::string base =
        registered.ends_with(".virtual") ? registered.substr(0, registered.size() - 8) : registered;
    return std::find(names.begin(), names.end(), base) != names.end() ? base : ep_name;
}

bool is_our_source(std::string_view source) {
    return std::find(names.begin(), names.end(), source) != names.end();
}

Factory::Factory(const Host& host, const OrtLogger* logger, std::string registered)
    : OrtEpFactory{}, host_(host), logger_(logger), name_(provider_name(registered)),
      wants_virtual_(registered.ends_with(".virtual")) {
    ort_version_supported = host.version;
    GetName = get_name;
    GetVendor = get_vendor;
    GetVendorId = get_vendor_id;
    GetVersion = get_version;
    GetSupportedDevices = get_supported_devices;
    CreateEp = create_ep;
    ReleaseEp = release_ep;
    ValidateCompiledModelCompatibilityInfo = validate;
    CreateAllocator = create_allocator;
    ReleaseAllocator = release_allocator;
    CreateSyncStreamForDevice = create_stream;
    GetHardwareDeviceIncompatibilityDetails = get_incompatibility;
    CreateDataTransfer = create_data_transfer;
    IsStreamAware = is_stream_aware;
}

const char* Factory::get_name(const OrtEpFactory* self) {
    return static_cast<const Factory*>(self)->name_.c_str();
}

const char* Factory::get_vendor(const OrtEpFactory*) {
    return "Ingot";
}

uint32_t Factory::get_vendor_id(const OrtEpFactory*) {
    return nvidia_vendor;
}

const char* Factory::get_version(const OrtEpFactory*) {
    return ingot::version();
}

namespace {

/// A switch from the process's environment, else the host's.
bool is_on(const OptionMap& environment, const char* variable, const char* key) {
    const char* text = std::getenv(variable);
    if (text != nullptr && *text != '\0') {
        return parse_bool(variable, text);
    }
    auto it = environment.find(key);
    return it != environment.end() && parse_bool(key, it->second);
}

} // namespace

OrtStatus* Factory::create_data_transfer(OrtEpFactory* self, OrtDataTransferImpl** out) {
    Factory& f = me(self);
    *out = nullptr;
    return guard(f.host_, [&] {
        if (is_stream_aware(self)) {
            *out = std::make_unique<DataTransfer>(f.host_, f.gpus_).release();
        }
    });
}

bool Factory::is_stream_aware(const OrtEpFactory* self) {
    const auto& f = *static_cast<const Factory*>(self);
    return f.gpus_ != nullptr && std::any_of(f.gpus_->entries().begin(), f.gpus_->entries().end(),
                                             [](const auto& e) { return e->memory != nullptr; });
}

OrtStatus* Factory::create_allocator(OrtEpFactory* self, const OrtMemoryInfo* info,
                                     const OrtKeyValuePairs*, OrtAllocator** out) {
    Factory& f = me(self);
    *out = nullptr;
    return guard(f.host_, [&] {
        bool pinned = false;
        const GpuTable::Entry* e = f.gpus_ == nullptr ? nullptr : f.gpus_->find(info, pinned);
        require(e != nullptr, ErrorCode::InvalidArgument,
                "an allocator is asked for memory that is "
                "on no GPU of this provider");
        *out = std::make_unique<Allocator>(f.host_, f.gpus_, *e, pinned).release();
    });
}

void Factory::release_allocator(OrtEpFactory*, OrtAllocator* allocator) {
    std::unique_ptr<Allocator>(static_cast<Allocator*>(allocator)).reset();
}

OrtStatus* Factory::create_stream(OrtEpFactory* self, const OrtMemoryDevice* device,
                                  const OrtKeyValuePairs*, OrtSyncStreamImpl** out) {
    Factory& f = me(self);
    *out = nullptr;
    return guard(f.host_, [&] {
        const auto* gpu = f.gpus_->find_memory(f.host_.ep->MemoryDevice_GetDeviceId(device));
        require(gpu != nullptr, ErrorCode::InvalidArgument,
                "a stream is asked for on no GPU of this provider");
        *out = std::make_unique<Stream>(f.host_, f.gpus_, *gpu, nullptr, false).release();
    });
}

OrtStatus* Factory::get_incompatibility(OrtEpFactory* self, const OrtHardwareDevice* device,
                                        OrtDeviceEpIncompatibilityDetails* details) {
    Factory& f = me(self);
    return guard(f.host_, [&] {
        OptionMap environment = environment_entries(f.host_);
        bool is_cpu = f.host_.api->HardwareDevice_Type(device) == OrtHardwareDeviceType_CPU;
        Incompatibility found = is_cpu && is_on(environment, "INGOT_ALLOW_CPU", "ingot_allow_cpu")
                                    ? Incompatibility{}
                                    : incompatibility(f.host_, device);
        f.host_.check(f.host_.ep->DeviceEpIncompatibilityDetails_SetDetails(
            details, found.reasons, 0, found.text.empty() ? nullptr : found.text.c_str()));
    });
}

OrtStatus* Factory::validate(OrtEpFactory* self, const OrtHardwareDevice* const* devices,
                             size_t count, const char* info, OrtCompiledModelCompatibility* out) {
    Factory& f = me(self);
    return guard(f.host_, [&] {
        const GpuTable::Entry* e =
            f.gpus_ == nullptr || count == 0 ? nullptr : f.gpus_->find(devices[0]);
        *out =
            judge_compatibility(info == nullptr ? "" : info, e == nullptr ? 0 : e->gpu.capability);
    });
}

void Factory::find_gpus_once(const OptionMap& environment, const OrtHardwareDevice* const* devices,
                             size_t count) {
    if (gpus_ != nullptr) {
        return;
    }
    auto table = std::make_shared<GpuTable>(host_);
    if (is_on({}, "INGOT_SIMULATED_GPU", "")) {
        table->add_simulated();
    } else {
        table->add_real(devices, count);
    }
    std::string prefix = str("ep_factory.", name_, ".");
    OptionMap own = with_prefix(environment, prefix);
    if (wants_virtual_ || own.contains("nv_target_sm") ||
        is_on(environment, "INGOT_VIRTUAL_GPU", "allow_virtual_devices")) {
        auto id = own.find("nv_hardware_device_id");
        table->add_virtual(static_cast<uint32_t>(
            id == own.end() ? 0 : parse_unsigned(prefix + id->first, id->second)));
    }
    gpus_ = std::move(table);
}

OrtStatus* Factory::get_supported_devices(OrtEpFactory* self,
                                          const OrtHardwareDevice* const* devices, size_t count,
                                          OrtEpDevice** out, size_t room, size_t* made) {
    Factory& f = me(self);
    *made = 0;
    return guard(f.host_, [&] {
        OptionMap environment = environment_entries(f.host_);
        f.find_gpus_once(environment, devices, count);
        for (const auto& e : f.gpus_->entries()) {
            if (*made == room) {
                return;
            }
            OptionMap defaults = {{"device_id", str(e->gpu.ordinal)}};
            auto sm = environment.find(str("ep_factory.", f.name_, ".nv_target_sm"));
            if (e->memory == nullptr && sm != environment.end()) {
                defaults.emplace("nv_target_sm", sm->second);
            }
            f.offer(e->hardware, std::move(defaults), e.get(), out + *made);
            ++*made;
        }
        for (size_t i = 0; i < count && *made < room; ++i) {
            bool is_cpu = f.host_.api->HardwareDevice_Type(devices[i]) == OrtHardwareDeviceType_CPU;
            if (is_cpu && is_on(environment, "INGOT_ALLOW_CPU", "ingot_allow_cpu")) {
                f.offer(devices[i], {{"device_id", "0"}}, nullptr, out + *made);
                ++*made;
            }
        }
    });
}

void Factory::offer(const OrtHardwareDevice* device, OptionMap defaults, const GpuTable::Entry* gpu,
                    OrtEpDevice** out) {
    Pairs metadata(host_, {{"nv_ep_ort_api_version", str(host_.version)},
                           {"weightless_support", "all"},
                           {"weightless_supported_modes", "all_or_external_only"}});
    Pairs options(host_, defaults);
    host_.check(host_.ep->CreateEpDevice(this, device, metadata.get(), options.get(), out));
    if (gpu != nullptr && gpu->memory != nullptr) {
        host_.check(host_.ep->EpDevice_AddAllocatorInfo(*out, gpu->info));
        host_.check(host_.ep->EpDevice_AddAllocatorInfo(*out, gpu->pinned));
    }
}

/// Errors: InvalidArgument naming the devices, unless there is exactly one.
void Factory::check_one(const OrtHardwareDevice* const* devices, size_t count) const {
    std::string given;
    for (size_t i = 0; i < count; ++i) {
        const GpuTable::Entry* e = gpus_ == nullptr ? nullptr : gpus_->find(devices[i]);
        given += str(i == 0 ? "" : ", ", e == nullptr ? "the CPU" : e->gpu.name);
    }
    bool same = count > 0 && std::all_of(devices, devices + count,
                                         [&](const auto* d) { return d == devices[0]; });
    require(same, ErrorCode::InvalidArgument, "the session names ", count, " devices (", given,
            "), expected 1: a session runs on one device; give each its own session");
}

namespace {

/// The application's source model, for one without weights; empty for none.
std::span<const std::byte> source_model_of(const Host& host, const OrtSessionOptions* options) {
    constexpr uint32_t since = 29;
    const void* data = nullptr;
    size_t bytes = 0;
    if (host.version >= since) {
        host.check(host.ep->SessionOptionsGetWeightlessSourceModelBuffer(options, &data, &bytes));
    }
    return {static_cast<const std::byte*>(data), data == nullptr ? 0 : bytes};
}

} // namespace

std::shared_ptr<SharedEngines> Factory::engines_for(const OptionMap& entries) {
    const Sharing sharing = sharing_options(entries);
    std::lock_guard<std::mutex> lock(engines_mutex_);
    std::shared_ptr<SharedEngines> out = sharing.share ? engines_ : nullptr;
    if (sharing.stop) {
        engines_ = std::make_shared<SharedEngines>(); // for later sessions
    }
    return out;
}

OrtStatus* Factory::create_ep(OrtEpFactory* self, const OrtHardwareDevice* const* devices,
                              const OrtKeyValuePairs* const*, size_t count,
                              const OrtSessionOptions* options, const OrtLogger* logger,
                              OrtEp** out) {
    Factory& f = me(self);
    *out = nullptr;
    return guard(f.host_, [&] {
        f.check_one(devices, count);
        ProviderRequest request;
        request.host = f.host_;
        request.name = f.name_;
        request.logger = logger;
        request.environment_logger = f.logger_;
        request.entries = session_entries(f.host_, options);
        request.gpus = f.gpus_;
        request.gpu = f.gpus_ == nullptr ? nullptr : f.gpus_->find(devices[0]);
        if (request.gpu != nullptr) {
            bool runs_there = request.gpu->memory != nullptr && !request.gpu->is_simulated;
            request.target = {runs_there ? Device::kGPU : Device::kCPU, request.gpu->gpu.ordinal};
        }
        request.shared_engines = f.engines_for(request.entries);
        request.callbacks = context_callbacks(f.host_, options);
        request.source_model = source_model_of(f.host_, options);
        *out = std::make_unique<Provider>(std::move(request)).release();
    });
}

void Factory::release_ep(OrtEpFactory*, OrtEp* ep) {
    std::unique_ptr<Provider>(static_cast<Provider*>(ep)).reset();
}

} // namespace ingot::ort
