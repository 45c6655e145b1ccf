// SPDX-License-Identifier: Apache-2.0
// IPluginRegistry: where creators of plugins are found.
#pragma once

#include "NvInferPluginBase.h"
#include "NvInferRuntimePlugin.h"

namespace nvinfer1 {

/// Creators of plugins by name, version and namespace. One per process (getPluginRegistry()), and
/// one per builder and runtime, which asks the global one for what it does not have.
///
/// Lifetime: belongs to the library. Creators stay the application's.
/// Thread safety: all methods but setErrorRecorder(), which must not meet any other call.
/// Errors: nullptr or false, with a message to the recorder set here, else to standard error
/// output.
class IPluginRegistry {
public:
    using PluginLibraryHandle = void*;

    IPluginRegistry(const IPluginRegistry&) = delete;
    IPluginRegistry(IPluginRegistry&&) = delete;
    IPluginRegistry& operator=(const IPluginRegistry&) = delete;
    IPluginRegistry& operator=(IPluginRegistry&&) = delete;

    /// Returns false when the same name, version and namespace is registered already.
    virtual bool registerCreator(IPluginCreatorInterface& creator,
                                 const AsciiChar* const pluginNamespace) noexcept = 0;
    /// Returns false when it is not registered.
    virtual bool deregisterCreator(const IPluginCreatorInterface& creator) noexcept = 0;
    /// nullptr when there is none.
    virtual IPluginCreatorInterface*
    getCreator(const AsciiChar* const pluginName, const AsciiChar* const pluginVersion,
               const AsciiChar* const pluginNamespace = "") noexcept = 0;
    /// Creators of this registry, as of now; the array lives as long as the registry.
    virtual IPluginCreatorInterface* const*
    getAllCreators(int32_t* const numCreators) const noexcept = 0;
    /// Creators of this registry and of those that it asks.
    virtual IPluginCreatorInterface* const*
    getAllCreatorsRecursive(int32_t* const numCreators) noexcept = 0;

    virtual void setErrorRecorder(IErrorRecorder* const recorder) noexcept = 0;
    virtual IErrorRecorder* getErrorRecorder() const noexcept = 0;
    /// Whether the global registry is asked too; of no effect in that itself. Default true.
    virtual bool isParentSearchEnabled() const = 0;
    virtual void setParentSearchEnabled(const bool enabled) = 0;

    /// Loads a shared library and registers what its getCreators() (or, of older generations,
    /// getPluginCreators()) gives; its setLoggerFinder(), if it has one, gets a finder of
    /// getLogger(). nullptr when it cannot be loaded, is loaded already, or names are taken.
    virtual PluginLibraryHandle loadLibrary(const AsciiChar* pluginPath) noexcept = 0;
    /// Deregisters the creators of a library. It stays open: engines may go on using its plugins.
    virtual void deregisterLibrary(PluginLibraryHandle handle) noexcept = 0;

    /// The resource kept under `key`; at the first call, a clone of `resource`. nullptr on an
    /// error. Counted: as many releasePluginResource() belong to it.
    virtual IPluginResource* acquirePluginResource(const AsciiChar* key,
                                                   IPluginResource* resource) noexcept = 0;
    /// Returns 0 for success.
    virtual int32_t releasePluginResource(const AsciiChar* key) noexcept = 0;

    // Older generations.

    /// Creators of IPluginV2 only.
    TRT_DEPRECATED virtual IPluginCreator* const*
    getPluginCreatorList(int32_t* const numCreators) const noexcept = 0;
    /// nullptr when there is none, or it does not make IPluginV2.
    TRT_DEPRECATED virtual IPluginCreator*
    getPluginCreator(const AsciiChar* const pluginName, const AsciiChar* const pluginVersion,
                     const AsciiChar* const pluginNamespace = "") noexcept = 0;

protected:
    IPluginRegistry() = default;
    ~IPluginRegistry() = default;
};

} // namespace nvinfer1
