// SPDX-License-Identifier: Apache-2.0
#include "plugins/onnxruntime/gpus.h"

#include "base/device_files.h"
#include "ingot.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

namespace ingot::ort {

namespace {

/// "0000:01:00.0" and "00000000:01:00.0" are one address.
std::string normal_pci(std::string text) {
    for (char& c : text) {
        c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    size_t first = text.find(':');
    if (first != std::string::npos && first > 4) {
        text.erase(0, first - 4);
    }
    return text;
}

std::string pci_of(const Host& host, const OrtHardwareDevice* device) {
    const char* text =
        host.api->GetKeyValue(host.api->HardwareDevice_Metadata(device), "pci_bus_id");
    return text == nullptr ? "" : normal_pci(text);
}

bool is_nvidia_gpu(const Host& host, const OrtHardwareDevice* device) {
    return host.api->HardwareDevice_Type(device) == OrtHardwareDeviceType_GPU &&
           host.api->HardwareDevice_VendorId(device) == nvidia_vendor;
}

} // namespace

GpuTable::~GpuTable() {
    for (const auto& e : entries_) {
        if (e->info != nullptr) {
            host_.api->ReleaseMemoryInfo(e->info);
            host_.api->ReleaseMemoryInfo(e->pinned);
        }
        if (e->own_hardware != nullptr) {
            host_.ep->ReleaseHardwareDevice(e->own_hardware);
        }
    }
}

GpuTable::Entry& GpuTable::add(GpuInfo gpu, std::shared_ptr<DeviceMemory> memory,
                               const char* metadata) {
    Entry& e = *entries_.emplace_back(std::make_unique<Entry>());
    e.gpu = std::move(gpu);
    e.memory = std::move(memory);
    e.metadata = metadata;
    if (e.memory != nullptr) {
        e.streams = std::make_shared<OwnStreams>(e.memory);
        e.scratch = std::make_shared<ScratchPool>(e.memory, e.streams);
        constexpr size_t alignment = 0; // the same value as other descriptions of this memory
        host_.check(host_.api->CreateMemoryInfo_V2(
            "Cuda", OrtMemoryInfoDeviceType_GPU, nvidia_vendor, e.gpu.ordinal,
            OrtDeviceMemoryType_DEFAULT, alignment, OrtDeviceAllocator, &e.info));
        host_.check(host_.api->CreateMemoryInfo_V2(
            "CudaPinned", OrtMemoryInfoDeviceType_GPU, nvidia_vendor, e.gpu.ordinal,
            OrtDeviceMemoryType_HOST_ACCESSIBLE, alignment, OrtDeviceAllocator, &e.pinned));
    }
    return e;
}

void GpuTable::make_hardware(Entry& e, uint32_t id) {
    OrtKeyValuePairs* pairs = nullptr;
    host_.api->CreateKeyValuePairs(&pairs);
    if (e.metadata != nullptr) {
        host_.api->AddKeyValuePair(pairs, e.metadata, "1");
    }
    if (!e.gpu.pci_bus.empty()) {
        host_.api->AddKeyValuePair(pairs, "pci_bus_id", e.gpu.pci_bus.c_str());
    }
    OrtStatus* status = host_.ep->CreateHardwareDevice(OrtHardwareDeviceType_GPU, nvidia_vendor, id,
                                                       "NVIDIA", pairs, &e.own_hardware);
    host_.api->ReleaseKeyValuePairs(pairs);
    host_.check(status);
    e.hardware = e.own_hardware;
}

void GpuTable::add_real(const OrtHardwareDevice* const* devices, size_t count) {
    std::string problem;
    for (GpuInfo& gpu : find_gpus(problem)) {
        if (gpu.capability < oldest_capability) {
            continue;
        }
        std::shared_ptr<DeviceMemory> memory = open_gpu(gpu.ordinal);
        Entry& e = add(std::move(gpu), std::move(memory), nullptr);
        for (size_t i = 0; i < count; ++i) {
            if (is_nvidia_gpu(host_, devices[i]) &&
                pci_of(host_, devices[i]) == normal_pci(e.gpu.pci_bus)) {
                e.hardware = devices[i];
            }
        }
        if (e.hardware == nullptr) { // as inside containers
            make_hardware(e, 0);
        }
    }
}

void GpuTable::add_simulated() {
    GpuInfo gpu;
    gpu.name = "simulated GPU";
    const char* text = std::getenv("INGOT_SIMULATED_GPU_MEMORY");
    constexpr size_t most = 2ULL << 30U;
    size_t bytes = text == nullptr ? most : parse_unsigned("INGOT_SIMULATED_GPU_MEMORY", text);
    Entry& e = add(std::move(gpu), simulated_gpu(bytes), "is_simulated");
    e.is_simulated = true;
    make_hardware(e, 0);
}

void GpuTable::add_virtual(uint32_t hardware_id) {
    GpuInfo gpu;
    gpu.name = "virtual GPU";
    make_hardware(add(std::move(gpu), nullptr, "is_virtual"), hardware_id);
}

const GpuTable::Entry* GpuTable::find(const OrtHardwareDevice* hardware) const {
    for (const auto& e : entries_) {
        if (e->hardware == hardware) {
            return e.get();
        }
    }
    return nullptr;
}

const GpuTable::Entry* GpuTable::find_memory(uint32_t device) const {
    for (const auto& e : entries_) {
        if (e->memory != nullptr && e->gpu.ordinal == static_cast<int32_t>(device)) {
            return e.get();
        }
    }
    return nullptr;
}

std::shared_ptr<DeviceMemory> GpuTable::memory(uint32_t device) const {
    const Entry* e = find_memory(device);
    return e == nullptr ? nullptr : e->memory;
}

const GpuTable::Entry* GpuTable::find(const OrtMemoryInfo* info, bool& is_pinned) const {
    const OrtMemoryDevice* d = host_.ep->MemoryInfo_GetMemoryDevice(info);
    is_pinned = host_.ep->MemoryDevice_GetMemoryType(d) == OrtDeviceMemoryType_HOST_ACCESSIBLE;
    for (const auto& e : entries_) {
        if (e->info != nullptr &&
            e->gpu.ordinal == static_cast<int32_t>(host_.ep->MemoryDevice_GetDeviceId(d))) {
            return e.get();
        }
    }
    return nullptr;
}

void GpuTable::shrink_scratch(const std::shared_ptr<DeviceMemory>& memory) const noexcept {
    for (const auto& e : entries_) {
        if (e->memory == memory && e->scratch != nullptr) {
            e->scratch->shrink();
        }
    }
}

void GpuTable::add_stream(const OrtSyncStreamImpl* stream) const {
    std::lock_guard<std::mutex> lock(mutex_);
    streams_.insert(stream);
}

void GpuTable::remove_stream(const OrtSyncStreamImpl* stream) const noexcept {
    std::lock_guard<std::mutex> lock(mutex_);
    streams_.erase(stream);
}

bool GpuTable::has_stream(const OrtSyncStreamImpl* stream) const {
    std::lock_guard<std::mutex> lock(mutex_);
    return streams_.contains(stream);
}

namespace {

Incompatibility incompatibility(const GpuInfo& gpu) {
    if (gpu.capability < oldest_capability) {
        return {OrtDeviceEpIncompatibility_DEVICE_INCOMPATIBLE,
                str("GPU '", gpu.name, "' has the compute capability ", gpu.capability / 10, ".",
                    gpu.capability % 10, ", expected 8.0 or above")};
    }
    if (const char* problem = getCompilerProblem(gpu.capability)) {
        return {OrtDeviceEpIncompatibility_MISSING_DEPENDENCY,
                str("for GPU '", gpu.name, "' ", problem,
                    "; models that were compiled with nv_target_sm for this GPU run without it")};
    }
    return {};
}

} // namespace

Incompatibility incompatibility(const Host& host, const OrtHardwareDevice* device) {
    if (!is_nvidia_gpu(host, device)) {
        return {OrtDeviceEpIncompatibility_DEVICE_INCOMPATIBLE,
                "the device is no NVIDIA GPU; the CPU is offered when it is asked for "
                "(INGOT_ALLOW_CPU=1)"};
    }
    std::string problem;
    std::vector<GpuInfo> gpus = find_gpus(problem);
    if (!problem.empty()) {
        bool missing = problem.find("not installed") != std::string::npos;
        bool forbidden = !forbidden_device_file().empty();
        return {missing ? OrtDeviceEpIncompatibility_MISSING_DEPENDENCY
                        : OrtDeviceEpIncompatibility_DRIVER_INCOMPATIBLE,
                problem + (forbidden ? "" : "; install NVIDIA's driver for CUDA 12 or newer")};
    }
    std::string place = pci_of(host, device);
    for (const GpuInfo& g : gpus) {
        if (place.empty() || normal_pci(g.pci_bus) == place) {
            return incompatibility(g);
        }
    }
    return {OrtDeviceEpIncompatibility_DRIVER_INCOMPATIBLE,
            "NVIDIA's driver does not show this GPU" +
                (forbidden_device_file().empty() ? std::string("; check CUDA_VISIBLE_DEVICES")
                                                 : forbidden_device_text())};
}

} // namespace ingot::ort
