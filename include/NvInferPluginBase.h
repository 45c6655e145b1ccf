// SPDX-License-Identifier: Apache-2.0
// Shared by all generations of plugins: fields, resources, creators, and IPluginV3 itself. Included
// by NvInferRuntime.h.
#pragma once

#include "NvInferRuntimeBase.h"

namespace nvinfer1 {

/// Element type of a PluginField.
enum class PluginFieldType : int32_t {
    kFLOAT16 = 0,
    kFLOAT32 = 1,
    kFLOAT64 = 2,
    kINT8 = 3,
    kINT16 = 4,
    kINT32 = 5,
    kCHAR = 6,
    kDIMS = 7,    ///< nvinfer1::Dims
    kUNKNOWN = 8, ///< Bytes
    kBF16 = 9,
    kINT64 = 10,
    kFP8 = 11,
    kINT4 = 12,
    kFP4 = 13,
};

/// A named attribute of a plugin: `length` elements of `type` at `data`, which stay the caller's.
/// Types of less than 8 bits hold two elements a byte. A creator gets data at a multiple of 16
/// bytes, valid during the call.
class PluginField {
public:
    const AsciiChar* name;
    const void* data;
    PluginFieldType type;
    int32_t length;

    // NOLINTNEXTLINE(google-explicit-constructor): programs convert names.
    PluginField(const AsciiChar* const name_ = nullptr, const void* const data_ = nullptr,
                const PluginFieldType type_ = PluginFieldType::kUNKNOWN,
                const int32_t length_ = 0) noexcept
        : name(name_), data(data_), type(type_), length(length_) {}
};

/// Attributes of a plugin.
struct PluginFieldCollection {
    int32_t nbFields{};
    const PluginField* fields{};
};

/// For what a creator is asked to make a plugin.
enum class TensorRTPhase : int32_t {
    kBUILD = 0,
    kRUNTIME = 1, ///< The fields are those of IPluginV3OneRuntime::getFieldsToSerialize()
};

enum class PluginCapabilityType : int32_t {
    kCORE = 0,    ///< IPluginV3OneCore; needed always
    kBUILD = 1,   ///< IPluginV3OneBuild; needed to build. At run time, where a plugin has it, it is
                  ///< asked whether types and shapes of an engine are right, and for workspace
    kRUNTIME = 2, ///< IPluginV3OneRuntime; needed always
};

/// Base of the three parts of a plugin.
class IPluginCapability : public IVersionedInterface {
public:
    IPluginCapability() = default;
    ~IPluginCapability() noexcept override = default;

protected:
    IPluginCapability(const IPluginCapability&) = default;
    IPluginCapability(IPluginCapability&&) = default;
    IPluginCapability& operator=(const IPluginCapability&) & = default;
    IPluginCapability& operator=(IPluginCapability&&) & = default;
};

/// Something that plugins share by key through IPluginRegistry::acquirePluginResource().
class IPluginResource : public IVersionedInterface {
public:
    IPluginResource() = default;
    ~IPluginResource() noexcept override = default;

    InterfaceInfo getInterfaceInfo() const noexcept override { return {"IPluginResource", 1, 0}; }
    /// Frees what clone() made, when its last user lets go. Returns 0 for success.
    virtual int32_t release() noexcept = 0;
    /// The object that the registry keeps; from any thread. nullptr on an error.
    virtual IPluginResource* clone() noexcept = 0;

    IPluginResource(const IPluginResource&) = default;
    IPluginResource(IPluginResource&&) = default;
    IPluginResource& operator=(const IPluginResource&) & = default;
    IPluginResource& operator=(IPluginResource&&) & = default;
};

/// Base of all creators of plugins.
///
/// Lifetime: a registered creator lives until it is deregistered, or as long as the process.
class IPluginCreatorInterface : public IVersionedInterface {
public:
    ~IPluginCreatorInterface() noexcept override = default;

protected:
    IPluginCreatorInterface() = default;
    IPluginCreatorInterface(const IPluginCreatorInterface&) = default;
    IPluginCreatorInterface(IPluginCreatorInterface&&) = default;
    IPluginCreatorInterface& operator=(const IPluginCreatorInterface&) & = default;
    IPluginCreatorInterface& operator=(IPluginCreatorInterface&&) & = default;
};

/// A layer that the application implements: hands out its parts, which mostly are base classes of
/// the same object.
///
/// Lifetime: INetworkDefinition::addPluginV3() clones what it is given, which stays the
/// application's; clones are the library's, which deletes them.
/// Thread safety: a clone is used by one thread at a time, different ones at the same time.
class IPluginV3 : public IVersionedInterface {
public:
    IPluginV3() = default;
    ~IPluginV3() noexcept override = default;

    InterfaceInfo getInterfaceInfo() const noexcept override { return {"PLUGIN", 1, 0}; }
    /// The part asked for, valid as long as this object; nullptr when there is none.
    virtual IPluginCapability* getCapabilityInterface(PluginCapabilityType type) noexcept = 0;
    /// A copy, ready for use, with the same parts. nullptr on an error.
    virtual IPluginV3* clone() noexcept = 0;

protected:
    IPluginV3(const IPluginV3&) = default;
    IPluginV3(IPluginV3&&) = default;
    IPluginV3& operator=(const IPluginV3&) & = default;
    IPluginV3& operator=(IPluginV3&&) & = default;
};

namespace v_1_0 {
using nvinfer1::IPluginCapability;
using nvinfer1::IPluginCreatorInterface;
using nvinfer1::IPluginResource;
using nvinfer1::IPluginV3;
} // namespace v_1_0

} // namespace nvinfer1
