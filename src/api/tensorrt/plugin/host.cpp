// SPDX-License-Identifier: Apache-2.0
#include "api/tensorrt/plugin/host.h"

#include "api/tensorrt/convert.h"
#include "api/tensorrt/plugin/call.h"
#include "api/tensorrt/plugin/host_kernels.h"
#include "api/tensorrt/plugin/old_plugin.h"
#include "api/tensorrt/plugin/quick_plugin.h"
#include "base/hash.h"
#include "ir/rewrite.h"

#include <map>

namespace ingot::api {

using nv::PluginTensorDesc;
using plan::PluginTensor;
using plan::PluginTensors;

namespace {

std::string text_of(const Plugin& p) {
    return plugin_text(p.name, p.version, p.space);
}

std::string key_of(const Plugin& p) {
    HashStream s(false);
    auto add = [&s](std::string_view text) {
        uint64_t size = text.size();
        s.add(std::as_bytes(std::span(&size, 1)));
        s.add(std::as_bytes(std::span(text.data(), text.size())));
    };
    for (const std::string* text : {&p.name, &p.version, &p.space}) {
        add(*text);
    }
    for (const PluginFieldView& f : plugin_fields(p)) {
        add(f.name);
        add(str(f.type, ' ', f.length));
        s.add(f.bytes);
    }
    return str(p.generation, to_text(s.xxh3()));
}

// --- one execution -------------------------------------------------------------------------------

/// The resources that the plugins of a context may use.
class Resources final : public nv::IPluginResourceContext {
public:
    Resources(nv::IGpuAllocator* allocator, const Report& report)
        : allocator_(allocator), report_(report) {}
    nv::IGpuAllocator* getGpuAllocator() const noexcept override { return allocator_; }
    nv::IErrorRecorder* getErrorRecorder() const noexcept override { return report_.recorder(); }

private:
    nv::IGpuAllocator* allocator_;
    Report report_;
};

std::vector<PluginTensorDesc> descs(const std::vector<PluginTensor>& list) {
    std::vector<PluginTensorDesc> out;
    for (const PluginTensor& t : list) {
        out.push_back(plugin_desc(t.dtype, t.shape));
    }
    return out;
}

class Attached final : public plan::PluginRun {
public:
    Attached(nv::IPluginV3OneRuntime& from, const Plugin& p, nv::IGpuAllocator* allocator,
             const Report& report)
        : text_(text_of(p)), resources_(allocator, report),
          plugin_(from.attachToContext(&resources_)) {
        require(plugin_ != nullptr, ErrorCode::InvalidArgument, text_,
                ": IPluginV3OneRuntime::attachToContext() gave nullptr");
        runtime_ = parts_of(*plugin_, false).runtime;
        check(runtime_->setTactic(static_cast<int32_t>(p.tactic)), "setTactic");
    }

    void set_tensors(const PluginTensors& t) override {
        in_ = descs(t.in);
        out_ = descs(t.out);
        check(runtime_->onShapeChange(in_.data(), static_cast<int32_t>(in_.size()), out_.data(),
                                      static_cast<int32_t>(out_.size())),
              "onShapeChange");
    }
    void enqueue(const PluginTensors&, std::span<const void* const> in, std::span<void* const> out,
                 void* workspace, void* stream) override {
        check(runtime_->enqueue(in_.data(), out_.data(), in.data(), out.data(), workspace,
                                static_cast<cudaStream_t>(stream)),
              "enqueue");
    }

private:
    void check(int32_t status, std::string_view method) const {
        require(status == 0, ErrorCode::InvalidArgument, text_, ": IPluginV3OneRuntime::", method,
                "() returned ", status, ", expected 0");
    }

    std::string text_;
    Resources resources_;
    std::unique_ptr<nv::IPluginV3> plugin_;
    nv::IPluginV3OneRuntime* runtime_ = nullptr;
    std::vector<PluginTensorDesc> in_;
    std::vector<PluginTensorDesc> out_;
};

// --- one engine ----------------------------------------------------------------------------------

/// Other versions and namespaces of a registered creator with that name.
std::string others_of(PluginRegistry& registry, const Plugin& p) {
    std::string places = registry.places_of(p.name);
    return places.empty() ? std::string("no creator of that name is registered")
                          : "registered are " + places;
}

std::unique_ptr<nv::IPluginV3> make_old(nv::IPluginCreator& creator, const Plugin& p,
                                        const std::string& node) {
    std::vector<PluginFieldView> fields = plugin_fields(p);
    require(fields.size() == 1, ErrorCode::InvalidEngine, "its bytes are in ", fields.size(),
            " fields, expected 1");
    nv::IPluginV2* plugin =
        creator.deserializePlugin(node.c_str(), fields[0].bytes.data(), fields[0].bytes.size());
    require(plugin != nullptr, ErrorCode::InvalidArgument,
            "IPluginCreator::deserializePlugin() gave nullptr for ", fields[0].bytes.size(),
            " bytes");
    return adapt_plugin(dynamic_plugin(*plugin));
}

std::unique_ptr<nv::IPluginV3> make_new(nv::IPluginCreatorInterface& creator, const Plugin& p,
                                        const std::string& node) {
    std::vector<nv::PluginField> fields;
    std::vector<PluginFieldView> views = plugin_fields(p);
    for (size_t i = 0; i < views.size(); ++i) {
        fields.emplace_back(p.field_names[i].c_str(), views[i].bytes.data(),
                            static_cast<nv::PluginFieldType>(views[i].type),
                            static_cast<int32_t>(views[i].length));
    }
    nv::PluginFieldCollection all{static_cast<int32_t>(fields.size()), fields.data()};
    std::unique_ptr<nv::IPluginV3> plugin =
        create_plugin(creator, node.c_str(), all, nv::TensorRTPhase::kRUNTIME);
    require(plugin != nullptr, ErrorCode::InvalidArgument,
            "IPluginCreatorV3One::createPlugin() gave nullptr for the ", fields.size(),
            " fields that the engine holds");
    return plugin;
}

class EnginePlugins final : public plan::PluginHost {
public:
    EnginePlugins(nv::IGpuAllocator* allocator, const Report& report)
        : allocator_(allocator), report_(report) {}

    bool empty() const { return made_.empty() && !has_sources_; }

    void add_all(const Graph& g, PluginRegistry& registry) {
        for (const Node& n : g.nodes()) {
            for (const GraphRef& body : bodies(n)) {
                add_all(*body, registry);
            }
            has_sources_ = has_sources_ || n.is(cuda_source_def);
            if (n.is(plugin_def)) {
                const auto& p = n.as<Plugin>();
                with_place([&] { return str("node '", n.name, "': ", text_of(p)); },
                           [&] { add(p, n.name, registry); });
            }
        }
    }

    void add_given(GivenPlugin given) {
        static_cast<void>(parts_of(*given.plugin, false));
        auto made = std::make_unique<Made>();
        made->plugin = std::move(given.plugin);
        made_.emplace(key_of(given.node), std::move(made));
    }

    int64_t prepare(const Plugin& p, const PluginTensors& t) override {
        // Several threads plan at once, but plugins need not be thread safe.
        std::scoped_lock lock(planning_);
        return with_place([&] { return text_of(p); }, [&] { return checked_workspace(p, t); });
    }

    std::shared_ptr<plan::PluginRun> attach(const Plugin& p) override {
        Made& made = find(p);
        std::scoped_lock lock(made.mutex);
        return std::make_shared<Attached>(*parts_of(*made.plugin, false).runtime, p, allocator_,
                                          report_);
    }

    plan::HostKernel host_kernel(const SourceKernel& s) override {
        std::scoped_lock lock(planning_);
        plan::HostKernel& kept = host_kernels_[s.title];
        kept = kept ? kept : find_host_kernel(s.title);
        return kept;
    }

private:
    std::mutex planning_;
    struct Made {
        std::mutex mutex; // of the plugin
        std::unique_ptr<nv::IPluginV3> plugin;
    };

    void add(const Plugin& p, const std::string& node, PluginRegistry& registry) {
        std::string key = key_of(p);
        if (made_.contains(key)) {
            return;
        }
        nv::IPluginCreatorInterface* creator =
            registry.getCreator(p.name.c_str(), p.version.c_str(), p.space.c_str());
        require(creator != nullptr, ErrorCode::Unsupported, "the engine needs it, and ",
                others_of(registry, p),
                "; register its creator (IPluginRegistry::registerCreator() or loadLibrary()) "
                "before the engine is loaded");
        bool old = std::string_view(creator->getInterfaceInfo().kind) == "PLUGIN CREATOR_V1";
        require(old == (p.generation == 2), ErrorCode::Unsupported, "the engine was built with an ",
                p.generation == 2 ? "IPluginV2" : "IPluginV3", ", its creator makes an ",
                old ? "IPluginV2" : "IPluginV3");
        auto made = std::make_unique<Made>();
        made->plugin = old ? make_old(static_cast<nv::IPluginCreator&>(*creator), p, node)
                           : make_new(*creator, p, node);
        static_cast<void>(parts_of(*made->plugin, false));
        made_.emplace(std::move(key), std::move(made));
    }

    Made& find(const Plugin& p) {
        auto it = made_.find(key_of(p));
        require(it != made_.end(), ErrorCode::Unsupported, text_of(p),
                " is not one of those that the engine was loaded with");
        return *it->second;
    }

    /// An engine file may hold any types and shapes: ask the plugin.
    int64_t checked_workspace(const Plugin& p, const PluginTensors& t) {
        Made& made = find(p);
        std::unique_ptr<nv::IPluginV3> scratch;
        {
            std::scoped_lock lock(made.mutex);
            scratch = clone_of(*made.plugin);
        }
        nv::IPluginV3OneBuild* build = parts_of(*scratch, false).build;
        if (build == nullptr) {
            return p.workspace;
        }
        check_results(p, *build, t);
        std::vector<nv::DynamicPluginTensorDesc> all;
        for (const std::vector<PluginTensor>* list : {&t.in, &t.out}) {
            for (const PluginTensorDesc& d : descs(*list)) {
                all.push_back(fixed_desc(d));
            }
        }
        check_formats(*build, all, t.in.size());
        configure(*build, all, t.in.size());
        return workspace_of(*build, all, t.in.size());
    }

    static void check_results(const Plugin& p, const nv::IPluginV3OneBuild& build,
                              const PluginTensors& t) {
        std::vector<Type> in;
        for (const PluginTensor& x : t.in) {
            in.push_back({x.dtype, to_dims(x.shape)});
        }
        std::vector<Dims> shapes;
        for (const Shape& s : t.shape_inputs) {
            shapes.push_back(to_dims(s));
        }
        int symbols = 0;
        SizeExprs sizes([&symbols] { return Dim::symbol(str("?", symbols++)); });
        std::vector<Type> out = plugin_results(build, in, shapes, sizes);
        require(out.size() == t.out.size(), ErrorCode::InvalidArgument, "it has ", out.size(),
                " outputs, the engine ", t.out.size());
        require(sizes.size_tensors().size() == p.symbols.size(), ErrorCode::InvalidArgument,
                "it finds out ", sizes.size_tensors().size(), " sizes, in the engine ",
                p.symbols.size());
        Bounds most;
        for (size_t i = 0; i < p.symbols.size(); ++i) {
            const SizeExprs::SizeTensor& s = sizes.size_tensors()[i];
            int64_t high = s.most.as_const().value_or(INT64_MAX);
            require(s.output == p.size_results[i] && high <= t.most[i], ErrorCode::InvalidArgument,
                    "size ", i, " is in output ", s.output, " and at most ", high,
                    ", in the engine in output ", p.size_results[i], " and at most ", t.most[i]);
            most.emplace(std::string(s.symbol.symbol_name()), Interval{0, high});
        }
        for (size_t i = 0; i < out.size(); ++i) {
            Shape shape;
            bool fits = out[i].dims.size() == t.out[i].largest.size();
            for (size_t d = 0; d < out[i].dims.size(); ++d) {
                shape.push_back(out[i].dims[d].as_const().value_or(-1));
                fits = fits && out[i].dims[d].bounds(most).high <= t.out[i].largest[d];
            }
            require(fits && out[i].dtype == t.out[i].dtype && shape == t.out[i].shape,
                    ErrorCode::InvalidArgument, "output ", i, " is ", name(out[i].dtype), shape,
                    ", in the engine ", name(t.out[i].dtype), t.out[i].shape);
        }
    }

    nv::IGpuAllocator* allocator_;
    Report report_;
    std::map<std::string, std::unique_ptr<Made>> made_;
    bool has_sources_ = false;
    std::map<std::string, plan::HostKernel> host_kernels_; // those requested
};

} // namespace

std::shared_ptr<plan::PluginHost> make_plugin_host(const Graph& g, PluginRegistry& registry,
                                                   nv::IGpuAllocator* allocator,
                                                   const Report& report) {
    auto host = std::make_shared<EnginePlugins>(allocator, report);
    host->add_all(g, registry);
    return host->empty() ? nullptr : host;
}

std::shared_ptr<plan::PluginHost> make_plugin_host(std::vector<GivenPlugin> given,
                                                   nv::IGpuAllocator* allocator,
                                                   const Report& report) {
    auto host = std::make_shared<EnginePlugins>(allocator, report);
    for (GivenPlugin& g : given) {
        host->add_given(std::move(g));
    }
    return host->empty() ? nullptr : host;
}

} // namespace ingot::api
