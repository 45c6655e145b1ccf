// SPDX-License-Identifier: Apache-2.0
#include "api/tensorrt/plugin/registry.h"

#include "base/shared_library.h"
#include "impl/NvInferPythonPlugin.h"

#include <algorithm>
#include <string_view>

namespace ingot::api {

using nvinfer1::AsciiChar;
using nvinfer1::IPluginCreator;
using nvinfer1::IPluginCreatorInterface;
using nvinfer1::IPluginCreatorV3One;
using nvinfer1::IPluginResource;

namespace {

bool is_old(const IPluginCreatorInterface& creator) {
    return std::string_view(creator.getInterfaceInfo().kind) == "PLUGIN CREATOR_V1";
}

/// A stored copy of the list; equal lists share one copy.
template <class Creator>
Creator* const* give_out(std::set<std::vector<Creator*>>& lists, std::vector<Creator*> list,
                         int32_t* count) {
    list.reserve(list.size() + 1); // an empty list needs an address too
    const std::vector<Creator*>& kept = *lists.insert(std::move(list)).first;
    if (count != nullptr) {
        *count = static_cast<int32_t>(kept.size());
    }
    return kept.data();
}

const char* or_empty(const char* text) {
    return text == nullptr ? "" : text;
}

struct Identity {
    std::string name;
    std::string version;
};

/// Errors: Unsupported for a creator of another kind.
Identity identity_of(const IPluginCreatorInterface& creator) {
    std::string_view kind = or_empty(creator.getInterfaceInfo().kind);
    if (is_old(creator)) {
        const auto& c = static_cast<const IPluginCreator&>(creator);
        return {or_empty(c.getPluginName()), or_empty(c.getPluginVersion())};
    }
    if (kind == "PLUGIN CREATOR_V3QUICK") {
        const auto& c = static_cast<const nvinfer1::IPluginCreatorV3Quick&>(creator);
        return {or_empty(c.getPluginName()), or_empty(c.getPluginVersion())};
    }
    require(kind == "PLUGIN CREATOR_V3ONE", ErrorCode::Unsupported, "a creator of kind '", kind,
            "' is not supported, expected 'PLUGIN CREATOR_V3ONE', 'PLUGIN CREATOR_V3QUICK' or "
            "'PLUGIN CREATOR_V1'");
    const auto& c = static_cast<const IPluginCreatorV3One&>(creator);
    return {or_empty(c.getPluginName()), or_empty(c.getPluginVersion())};
}

/// Plugin libraries log to the process's first logger.
class FirstLogger final : public nvinfer1::ILoggerFinder {
public:
    nvinfer1::ILogger* findLogger() override { return getLogger(); }
};

} // namespace

void PluginRegistry::add(IPluginCreatorInterface& creator, const char* plugin_namespace) {
    Identity id = identity_of(creator);
    require(!id.name.empty(), ErrorCode::InvalidArgument, "the creator has no name");
    Key key{or_empty(plugin_namespace), id.name, id.version};
    bool added = creators_.emplace(key, &creator).second;
    require(added, ErrorCode::InvalidArgument, "plugin '", id.name, "' version '", id.version,
            "' is registered already in namespace '", std::get<0>(key), "'");
    if (is_old(creator)) {
        static_cast<IPluginCreator&>(creator).setPluginNamespace(or_empty(plugin_namespace));
    }
}

std::string PluginRegistry::places_of(const std::string& name) {
    PluginRegistry* parent = asked_parent();
    std::string found = parent == nullptr ? std::string() : parent->places_of(name);
    std::scoped_lock lock(mutex_);
    for (const auto& [key, creator] : creators_) {
        if (std::get<1>(key) == name) {
            found += str(found.empty() ? "" : ", ", "version '", std::get<2>(key),
                         "' of namespace '", std::get<0>(key), "'");
        }
    }
    return found;
}

bool PluginRegistry::registerCreator(IPluginCreatorInterface& creator,
                                     const AsciiChar* plugin_namespace) noexcept {
    return report_.guard("IPluginRegistry::registerCreator", false, [&] {
        std::scoped_lock lock(mutex_);
        add(creator, plugin_namespace);
        return true;
    });
}

bool PluginRegistry::deregisterCreator(const IPluginCreatorInterface& creator) noexcept {
    return report_.guard("IPluginRegistry::deregisterCreator", false, [&] {
        std::scoped_lock lock(mutex_);
        size_t removed = std::erase_if(
            creators_, [&creator](const auto& entry) { return entry.second == &creator; });
        require(removed > 0, ErrorCode::InvalidArgument, "the creator is not registered");
        return true;
    });
}

IPluginCreatorInterface* PluginRegistry::getCreator(const AsciiChar* name, const AsciiChar* version,
                                                    const AsciiChar* plugin_namespace) noexcept {
    return report_.guard("IPluginRegistry::getCreator",
                         static_cast<IPluginCreatorInterface*>(nullptr),
                         [&]() -> IPluginCreatorInterface* {
                             {
                                 std::scoped_lock lock(mutex_);
                                 auto it = creators_.find(Key{or_empty(plugin_namespace),
                                                              or_empty(name), or_empty(version)});
                                 if (it != creators_.end()) {
                                     return it->second;
                                 }
                             }
                             PluginRegistry* parent = asked_parent();
                             return parent == nullptr
                                        ? nullptr
                                        : parent->getCreator(name, version, plugin_namespace);
                         });
}

IPluginCreatorInterface* const* PluginRegistry::getAllCreators(int32_t* count) const noexcept {
    return report_.guard("IPluginRegistry::getAllCreators",
                         static_cast<IPluginCreatorInterface* const*>(nullptr), [&] {
                             std::scoped_lock lock(mutex_);
                             std::vector<IPluginCreatorInterface*> list;
                             for (const auto& [key, creator] : creators_) {
                                 list.push_back(creator);
                             }
                             return give_out(lists_, std::move(list), count);
                         });
}

IPluginCreatorInterface* const* PluginRegistry::getAllCreatorsRecursive(int32_t* count) noexcept {
    return report_.guard("IPluginRegistry::getAllCreatorsRecursive",
                         static_cast<IPluginCreatorInterface* const*>(nullptr), [&] {
                             int32_t more = 0;
                             PluginRegistry* parent = asked_parent();
                             IPluginCreatorInterface* const* outer =
                                 parent == nullptr ? nullptr
                                                   : parent->getAllCreatorsRecursive(&more);
                             std::scoped_lock lock(mutex_);
                             std::vector<IPluginCreatorInterface*> list(outer, outer + more);
                             for (const auto& [key, creator] : creators_) {
                                 list.push_back(creator);
                             }
                             return give_out(lists_, std::move(list), count);
                         });
}

IPluginCreator* const* PluginRegistry::getPluginCreatorList(int32_t* count) const noexcept {
    return report_.guard("IPluginRegistry::getPluginCreatorList",
                         static_cast<IPluginCreator* const*>(nullptr), [&] {
                             std::scoped_lock lock(mutex_);
                             std::vector<IPluginCreator*> list;
                             for (const auto& [key, creator] : creators_) {
                                 if (is_old(*creator)) {
                                     list.push_back(static_cast<IPluginCreator*>(creator));
                                 }
                             }
                             return give_out(old_lists_, std::move(list), count);
                         });
}

IPluginCreator* PluginRegistry::getPluginCreator(const AsciiChar* name, const AsciiChar* version,
                                                 const AsciiChar* plugin_namespace) noexcept {
    IPluginCreatorInterface* found = getCreator(name, version, plugin_namespace);
    return found != nullptr && is_old(*found) ? static_cast<IPluginCreator*>(found) : nullptr;
}

nvinfer1::IPluginRegistry::PluginLibraryHandle PluginRegistry::load(const std::string& path) {
    std::string problem;
    SharedLibrary file = SharedLibrary::open(path, problem);
    require(static_cast<bool>(file), ErrorCode::Io, "library '", path,
            "' cannot be loaded: ", problem);
    using Creators = IPluginCreatorInterface* const* (*)(int32_t&);
    using OldCreators = IPluginCreator* const* (*)(int32_t&);
    auto* creators = reinterpret_cast<Creators>(file.symbol("getCreators"));
    auto* old = reinterpret_cast<OldCreators>(file.symbol("getPluginCreators"));
    require(creators != nullptr || old != nullptr, ErrorCode::InvalidArgument, "library '", path,
            "' has neither getCreators() nor getPluginCreators()");
    using SetFinder = void (*)(nvinfer1::ILoggerFinder*);
    if (auto set = reinterpret_cast<SetFinder>(file.symbol("setLoggerFinder"))) {
        static FirstLogger finder;
        set(&finder);
    }
    std::vector<IPluginCreatorInterface*> all;
    int32_t count = 0;
    if (creators != nullptr) {
        IPluginCreatorInterface* const* list = creators(count);
        all.assign(list, list + count);
    } else {
        IPluginCreator* const* list = old(count);
        all.assign(list, list + count);
    }
    PluginLibraryHandle handle =
        creators != nullptr ? reinterpret_cast<void*>(creators) : reinterpret_cast<void*>(old);
    std::scoped_lock lock(mutex_);
    require(!libraries_.contains(handle), ErrorCode::InvalidArgument, "library '", path,
            "' is loaded already");
    auto before = creators_;
    try {
        for (IPluginCreatorInterface*& c : all) {
            // The library's registrars may have registered it while it was opened.
            Identity id = identity_of(*c);
            auto there = creators_.find(Key{"", id.name, id.version});
            if (there != creators_.end() && same_library(there->second, handle)) {
                c = there->second;
            } else {
                add(*c, "");
            }
        }
    } catch (const Error&) {
        creators_ = std::move(before);
        throw;
    }
    libraries_[handle] = std::move(all);
    return handle;
}

nvinfer1::IPluginRegistry::PluginLibraryHandle
PluginRegistry::loadLibrary(const AsciiChar* path) noexcept {
    return report_.guard("IPluginRegistry::loadLibrary", static_cast<PluginLibraryHandle>(nullptr),
                         [&]() -> PluginLibraryHandle {
                             require(path != nullptr, ErrorCode::InvalidArgument,
                                     "the path is null");
                             return load(path);
                         });
}

size_t PluginRegistry::creator_count() const {
    size_t outer = parent_ == nullptr ? 0 : parent_->creator_count();
    std::scoped_lock lock(mutex_);
    return outer + creators_.size();
}

void PluginRegistry::deregisterLibrary(PluginLibraryHandle handle) noexcept {
    report_.guard("IPluginRegistry::deregisterLibrary", [&] {
        std::scoped_lock lock(mutex_);
        auto it = libraries_.find(handle);
        require(it != libraries_.end(), ErrorCode::InvalidArgument, "the library is not loaded");
        for (IPluginCreatorInterface* gone : it->second) {
            std::erase_if(creators_, [gone](const auto& entry) { return entry.second == gone; });
        }
        libraries_.erase(it);
    });
}

IPluginResource* PluginRegistry::acquirePluginResource(const AsciiChar* key,
                                                       IPluginResource* resource) noexcept {
    return report_.guard(
        "IPluginRegistry::acquirePluginResource", static_cast<IPluginResource*>(nullptr), [&] {
            require(key != nullptr && resource != nullptr, ErrorCode::InvalidArgument,
                    "key or resource is null");
            std::scoped_lock lock(mutex_);
            Resource& r = resources_[key];
            if (r.object == nullptr) {
                r.object = resource->clone();
            }
            if (r.object == nullptr) {
                resources_.erase(key);
                fail(ErrorCode::InvalidArgument, "resource '", key, "' cannot be cloned");
            }
            ++r.users;
            return r.object;
        });
}

int32_t PluginRegistry::releasePluginResource(const AsciiChar* key) noexcept {
    return report_.guard("IPluginRegistry::releasePluginResource", -1, [&] {
        std::scoped_lock lock(mutex_);
        auto it = resources_.find(or_empty(key));
        require(it != resources_.end(), ErrorCode::InvalidArgument, "there is no resource '",
                or_empty(key), "'");
        if (--it->second.users > 0) {
            return 0;
        }
        int32_t result = it->second.object->release();
        resources_.erase(it);
        return result;
    });
}

} // namespace ingot::api

extern "C" nvinfer1::IPluginRegistry* getPluginRegistry() noexcept {
    // Never destroyed: creators of other libraries refer to it until the process ends.
    // NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables,bugprone-unhandled-exception-at-new)
    static auto* registry = new ingot::api::PluginRegistry;
    return registry;
}
