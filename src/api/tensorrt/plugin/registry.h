// SPDX-License-Identifier: Apache-2.0
// IPluginRegistry: the registry of the process, and those of builders and runtimes, which fall back
// to it.
#pragma once

#include "api/tensorrt/report.h"

#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace ingot::api {

class PluginRegistry final : public nvinfer1::IPluginRegistry {
public:
    /// Lookups fall back to `parent`; null for none.
    explicit PluginRegistry(nvinfer1::IPluginRegistry* parent = nullptr)
        : parent_(static_cast<PluginRegistry*>(parent)) {}
    virtual ~PluginRegistry() = default;

    /// Opens a library and registers the creators of its getCreators() or getPluginCreators(),
    /// after giving its setLoggerFinder() a finder of getLogger(). Errors: Io, InvalidArgument,
    /// Unsupported.
    PluginLibraryHandle load(const std::string& path);
    /// The number of creators, including those of parents.
    size_t creator_count() const;

    /// The versions and namespaces of a creator name: "version '1' of namespace ''", ...; "" for
    /// none.
    std::string places_of(const std::string& name);

    bool registerCreator(nvinfer1::IPluginCreatorInterface& creator,
                         const nvinfer1::AsciiChar* plugin_namespace) noexcept override;
    bool deregisterCreator(const nvinfer1::IPluginCreatorInterface& creator) noexcept override;
    nvinfer1::IPluginCreatorInterface*
    getCreator(const nvinfer1::AsciiChar* name, const nvinfer1::AsciiChar* version,
               const nvinfer1::AsciiChar* plugin_namespace) noexcept override;
    nvinfer1::IPluginCreatorInterface* const*
    getAllCreators(int32_t* count) const noexcept override;
    nvinfer1::IPluginCreatorInterface* const*
    getAllCreatorsRecursive(int32_t* count) noexcept override;
    void setErrorRecorder(nvinfer1::IErrorRecorder* recorder) noexcept override {
        report_.set_recorder(recorder);
    }
    nvinfer1::IErrorRecorder* getErrorRecorder() const noexcept override {
        return report_.recorder();
    }
    bool isParentSearchEnabled() const override { return parent_search_; }
    void setParentSearchEnabled(const bool enabled) override { parent_search_ = enabled; }
    PluginLibraryHandle loadLibrary(const nvinfer1::AsciiChar* path) noexcept override;
    void deregisterLibrary(PluginLibraryHandle handle) noexcept override;
    nvinfer1::IPluginResource*
    acquirePluginResource(const nvinfer1::AsciiChar* key,
                          nvinfer1::IPluginResource* resource) noexcept override;
    int32_t releasePluginResource(const nvinfer1::AsciiChar* key) noexcept override;
    nvinfer1::IPluginCreator* const* getPluginCreatorList(int32_t* count) const noexcept override;
    nvinfer1::IPluginCreator*
    getPluginCreator(const nvinfer1::AsciiChar* name, const nvinfer1::AsciiChar* version,
                     const nvinfer1::AsciiChar* plugin_namespace) noexcept override;

private:
    using Key = std::tuple<std::string, std::string, std::string>; // namespace, name, version
    struct Resource {
        nvinfer1::IPluginResource* object = nullptr;
        int32_t users = 0;
    };
    template <class Creator>
    using Lists = std::set<std::vector<Creator*>>;
    void add(nvinfer1::IPluginCreatorInterface& creator, const char* plugin_namespace);

    PluginRegistry* asked_parent() const { return parent_search_ ? parent_ : nullptr; }

    Report report_;
    PluginRegistry* parent_;
    std::atomic<bool> parent_search_{true};
    mutable std::mutex mutex_;
    std::map<Key, nvinfer1::IPluginCreatorInterface*> creators_;
    // Returned lists are kept, since any thread may still read one.
    mutable Lists<nvinfer1::IPluginCreatorInterface> lists_;
    mutable Lists<nvinfer1::IPluginCreator> old_lists_;
    std::map<std::string, Resource> resources_;
    // Creators by library; libraries stay open, because plugins may outlive the registration.
    std::map<PluginLibraryHandle, std::vector<nvinfer1::IPluginCreatorInterface*>> libraries_;
};

} // namespace ingot::api
