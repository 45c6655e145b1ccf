// SPDX-License-Identifier: Apache-2.0
// Factory: the devices of a registered library, and providers for them.
#pragma once

#include "plugins/onnxruntime/gpus.h"
#include "plugins/onnxruntime/host.h"
#include "plugins/onnxruntime/options.h"
#include "plugins/onnxruntime/shared_engines.h"

#include <string>

namespace ingot::ort {

class Factory : public OrtEpFactory {
public:
    /// `registered` is the library's registered name.
    Factory(const Host& host, const OrtLogger* logger, std::string registered);

private:
    static const char* get_name(const OrtEpFactory* self);
    static const char* get_vendor(const OrtEpFactory* self);
    static const char* get_version(const OrtEpFactory* self);
    static uint32_t get_vendor_id(const OrtEpFactory* self);
    static OrtStatus* get_supported_devices(OrtEpFactory* self,
                                            const OrtHardwareDevice* const* devices, size_t count,
                                            OrtEpDevice** out, size_t room, size_t* made);
    static OrtStatus* create_ep(OrtEpFactory* self, const OrtHardwareDevice* const* devices,
                                const OrtKeyValuePairs* const* metadata, size_t count,
                                const OrtSessionOptions* options, const OrtLogger* logger,
                                OrtEp** out);
    static void release_ep(OrtEpFactory* self, OrtEp* ep);
    static OrtStatus* validate(OrtEpFactory* self, const OrtHardwareDevice* const* devices,
                               size_t count, const char* info, OrtCompiledModelCompatibility* out);
    static OrtStatus* create_allocator(OrtEpFactory* self, const OrtMemoryInfo* info,
                                       const OrtKeyValuePairs* options, OrtAllocator** out);
    static void release_allocator(OrtEpFactory* self, OrtAllocator* allocator);
    static OrtStatus* create_stream(OrtEpFactory* self, const OrtMemoryDevice* device,
                                    const OrtKeyValuePairs* options, OrtSyncStreamImpl** out);
    static OrtStatus* get_incompatibility(OrtEpFactory* self, const OrtHardwareDevice* device,
                                          OrtDeviceEpIncompatibilityDetails* details);
    static OrtStatus* create_data_transfer(OrtEpFactory* self, OrtDataTransferImpl** out);
    static bool is_stream_aware(const OrtEpFactory* self);

    void find_gpus_once(const OptionMap& environment, const OrtHardwareDevice* const* devices,
                        size_t count);
    void check_one(const OrtHardwareDevice* const* devices, size_t count) const;
    void offer(const OrtHardwareDevice* device, OptionMap defaults, const GpuTable::Entry* gpu,
               OrtEpDevice** out);

    /// Those of a session with these entries; null where it shares none.
    std::shared_ptr<SharedEngines> engines_for(const OptionMap& entries);

    Host host_;
    const OrtLogger* logger_;
    std::string name_;
    bool wants_virtual_ = false; // by its registered name
    std::shared_ptr<GpuTable> gpus_;
    std::mutex engines_mutex_;
    std::shared_ptr<SharedEngines> engines_ = std::make_shared<SharedEngines>();
};

/// The provider's name for a library's registered name: programs may use others.
std::string provider_name(const std::string& registered);
/// Whether a compiled model with this `source` is ours.
bool is_our_source(std::string_view source);

} // namespace ingot::ort
