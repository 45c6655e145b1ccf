// SPDX-License-Identifier: Apache-2.0
#include "plugins/onnxruntime/factory.h"

#include "ingot.h"
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

/// Pairs for the host, which copies them.
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
    : OrtEpFactory{}, host_(host), logger_(logger), name_(provider_name(registered)) {
    ort_version_supported = host.version;
    GetName = get_name;
    GetVendor = get_vendor;
    GetVendorId = get_vendor_id;
    GetVersion = get_version;
    GetSupportedDevices = get_supported_devices;
    CreateEp = create_ep;
    ReleaseEp = release_ep;
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

bool Factory::allows_cpu(const OptionMap& environment) const {
    const char* variable = std::getenv("INGOT_ALLOW_CPU");
    if (variable != nullptr && *variable != '\0') {
        return parse_bool("INGOT_ALLOW_CPU", variable);
    }
    auto it = environment.find("ingot_allow_cpu");
    return it != environment.end() && parse_bool("ingot_allow_cpu", it->second);
}

OrtStatus* Factory::create_data_transfer(OrtEpFactory*, OrtDataTransferImpl** out) {
    *out = nullptr;
    return nullptr;
}

bool Factory::is_stream_aware(const OrtEpFactory*) {
    return false;
}

OrtStatus* Factory::get_supported_devices(OrtEpFactory* self,
                                          const OrtHardwareDevice* const* devices, size_t count,
                                          OrtEpDevice** out, size_t room, size_t* made) {
    Factory& f = me(self);
    *made = 0;
    return guard(f.host_, [&] {
        OptionMap environment = environment_entries(f.host_);
        for (size_t i = 0; i < count && *made < room; ++i) {
            bool is_cpu = f.host_.api->HardwareDevice_Type(devices[i]) == OrtHardwareDeviceType_CPU;
            if (is_cpu && f.allows_cpu(environment)) {
                f.offer(devices[i], {{"device_id", "0"}}, out + *made);
                ++*made;
            }
        }
    });
}

void Factory::offer(const OrtHardwareDevice* device, const OptionMap& defaults, OrtEpDevice** out) {
    Pairs metadata(host_, {});
    Pairs options(host_, defaults);
    host_.check(host_.ep->CreateEpDevice(this, device, metadata.get(), options.get(), out));
}

OrtStatus* Factory::create_ep(OrtEpFactory* self, const OrtHardwareDevice* const* devices,
                              const OrtKeyValuePairs* const*, size_t count,
                              const OrtSessionOptions* options, const OrtLogger* logger,
                              OrtEp** out) {
    Factory& f = me(self);
    *out = nullptr;
    return guard(f.host_, [&] {
        require(count == 1, ErrorCode::InvalidArgument, "the session names ", count,
                " devices, expected 1: a session runs on one device");
        static_cast<void>(devices);
        ProviderRequest request;
        request.host = f.host_;
        request.name = f.name_;
        request.logger = logger;
        request.entries = session_entries(f.host_, options);
        request.callbacks = context_callbacks(f.host_, options);
        *out = std::make_unique<Provider>(std::move(request)).release();
    });
}

void Factory::release_ep(OrtEpFactory*, OrtEp* ep) {
    std::unique_ptr<Provider>(static_cast<Provider*>(ep)).reset();
}

} // namespace ingot::ort
