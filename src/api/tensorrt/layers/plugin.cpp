// SPDX-License-Identifier: Apache-2.0
// Layers of application code: plugins of both generations, and kernels in source text.
#include "api/tensorrt/layers/plugin.h"

#include "api/tensorrt/plugin/call.h"
#include "api/tensorrt/plugin/old_plugin.h"
#include "api/tensorrt/plugin/quick_plugin.h"
#include "api/tensorrt/plugin/sources.h"
#include "api/tensorrt/plugin/tactics.h"

#include <algorithm>

namespace ingot::api {

namespace {

using nv::DynamicPluginTensorDesc;

constexpr int ranges = 3; // of a profile: min, opt, max

/// Sizes of a network's inputs under a profile.
std::array<Symbols, ranges> profile_symbols(const Network& network, const Profile& profile) {
    std::array<Symbols, ranges> out;
    for (const auto& input : network.inputs()) {
        const ShapeRange* range = profile.find(input->name());
        if (range == nullptr) {
            continue;
        }
        Type type = input->input_type();
        if (range->opt.size() != type.dims.size()) {
            continue; // the build reports it
        }
        for (size_t d = 0; d < type.dims.size(); ++d) {
            std::string_view name = type.dims[d].symbol_name();
            if (!name.empty()) {
                out[0].emplace(std::string(name), range->min[d]);
                out[1].emplace(std::string(name), range->opt[d]);
                out[2].emplace(std::string(name), range->max[d]);
            }
        }
    }
    return out;
}

/// Sizes as numbers where they are known.
Dims fixed(const Dims& dims, const Symbols& symbols) {
    Dims out;
    for (const Dim& d : dims) {
        out.push_back(d.substitute([&symbols](std::string_view s) -> std::optional<Dim> {
            auto it = symbols.find(s);
            return it == symbols.end() ? std::nullopt : std::optional<Dim>(it->second);
        }));
    }
    return out;
}

nv::Dims dims_under(const Dims& dims, const Symbols& symbols) {
    Shape shape;
    for (const Dim& d : dims) {
        shape.push_back(d.try_eval(symbols).value_or(-1));
    }
    return api_dims(shape);
}

DynamicPluginTensorDesc desc_under(const Type& t, const std::array<Symbols, ranges>& symbols) {
    DynamicPluginTensorDesc d{};
    d.desc = plugin_desc(t.dtype, {});
    d.desc.dims = api_dims(t.dims);
    d.min = dims_under(t.dims, symbols[0]);
    d.opt = dims_under(t.dims, symbols[1]);
    d.max = dims_under(t.dims, symbols[2]);
    return d;
}

bool is_known(const DynamicPluginTensorDesc& d) {
    return std::find(d.max.d, d.max.d + d.max.nbDims, -1) == d.max.d + d.max.nbDims;
}

std::string text_or_empty(const char* text) {
    return text == nullptr ? "" : text;
}

/// Works for both generations: the plugin is an IPluginV3, or is adapted to one.
template <class Face>
class PluginLayer : public Layer<Face> {
public:
    PluginLayer(LayerKind kind, std::unique_ptr<nv::IPluginV3> plugin, size_t shape_inputs,
                int64_t generation)
        : Layer<Face>(kind, count_of(*plugin)), plugin_(std::move(plugin)),
          parts_(parts_of(*plugin_, true)), shape_inputs_(shape_inputs), generation_(generation) {
        require(!text_or_empty(parts_.core->getPluginName()).empty(), ErrorCode::InvalidArgument,
                "the plugin has no name");
    }

    int32_t aliased_input(size_t output) const override {
        if (parts_.build->getInterfaceInfo().major < 2) {
            return -1;
        }
        auto& build = static_cast<nv::IPluginV3OneBuildV2&>(*parts_.build);
        return build.getAliasedInput(static_cast<int32_t>(output));
    }
    bool reads_shape(size_t input) const override {
        return input >= this->inputs.size() - shape_inputs_;
    }

    void check(const InputTypes& in) const override {
        size_t operands = in.size() - shape_inputs_;
        bool known = shape_inputs_ == 0;
        std::vector<Type> types;
        for (size_t i = 0; i < in.size(); ++i) {
            known = known && in[i].has_value();
            if (in[i] && i >= operands) {
                bool integer = in[i]->dtype == DType::I32 || in[i]->dtype == DType::I64;
                require(integer && in[i]->rank() <= 1, ErrorCode::InvalidArgument, "shape input ",
                        i - operands, " is ", *in[i],
                        ", expected an INT32 or INT64 tensor of 0 or 1 dimensions");
            } else if (in[i]) {
                types.push_back(*in[i]);
            }
        }
        if (known) {
            int fresh = 0;
            SizeExprs sizes([&fresh] { return Dim::symbol(str("?", fresh++)); });
            static_cast<void>(results(types, {}, sizes));
        }
    }

    Values emit(const Emitter& e) override {
        size_t operands = e.in.size() - shape_inputs_;
        std::vector<Type> in;
        Values values;
        for (size_t i = 0; i < operands; ++i) {
            in.push_back(e.type(i));
            values.push_back(e.in[i]);
        }
        std::vector<Dims> shapes;
        for (size_t i = operands; i < e.in.size(); ++i) {
            shapes.push_back(e.sizes(i, true));
        }
        SizeExprs sizes([&e] { return e.g.fresh_symbol(); });
        std::vector<Type> out = results(in, shapes, sizes);
        Plugin p = described_plugin(out, sizes);
        for (size_t i = 0; i < shapes.size(); ++i) {
            p.shape_ranks.push_back(e.rank(operands + i));
            p.shape_values.emplace_back(static_cast<int64_t>(shapes[i].size()));
            p.shape_values.insert(p.shape_values.end(), shapes[i].begin(), shapes[i].end());
        }
        if (e.emission.marks().plugins != nullptr) {
            this->within([&] { finish(*e.emission.marks().plugins, in, out, sizes, p); });
        }
        return e.g.add(plugin_def, std::move(p), values);
    }

protected:
    nv::IPluginV3& plugin() const { return *plugin_; }

private:
    static size_t count_of(nv::IPluginV3& plugin) {
        PluginParts parts = parts_of(plugin, true);
        int32_t count = parts.build->getNbOutputs();
        require(count >= 1, ErrorCode::InvalidArgument, plugin_text(*parts.core),
                ": IPluginV3OneBuild::getNbOutputs() returned ", count, ", expected at least 1");
        return static_cast<size_t>(count);
    }

    template <class F>
    auto within(const F& f) const {
        return with_place([this] { return plugin_text(*parts_.core); }, f);
    }

    std::vector<Type> results(std::span<const Type> in, std::span<const Dims> shapes,
                              SizeExprs& sizes) const {
        return within([&] {
            std::vector<Type> out = plugin_results(*parts_.build, in, shapes, sizes);
            require(out.size() == this->outputs.size(), ErrorCode::InvalidArgument,
                    "IPluginV3OneBuild::getNbOutputs() returned ", out.size(), ", and before ",
                    this->outputs.size());
            std::vector<DynamicPluginTensorDesc> all = descs(in, out, {});
            check_formats(*parts_.build, all, in.size());
            for (const SizeExprs::SizeTensor& s : sizes.size_tensors()) {
                bool there = s.output >= 0 && static_cast<size_t>(s.output) < out.size();
                const Type* t = there ? &out[static_cast<size_t>(s.output)] : nullptr;
                require(
                    there && t->dims.empty() && (t->dtype == DType::I32 || t->dtype == DType::I64),
                    ErrorCode::InvalidArgument, "IExprBuilder::declareSizeTensor() names output ",
                    s.output, ", which ", there ? str("is ", *t) : std::string("does not exist"),
                    ", expected an INT32 or INT64 scalar");
            }
            return out;
        });
    }

    static std::vector<DynamicPluginTensorDesc> descs(std::span<const Type> in,
                                                      std::span<const Type> out,
                                                      const std::array<Symbols, ranges>& symbols) {
        std::vector<DynamicPluginTensorDesc> all;
        for (std::span<const Type> list : {in, out}) {
            for (const Type& t : list) {
                all.push_back(desc_under(t, symbols));
            }
        }
        return all;
    }

    Plugin described_plugin(const std::vector<Type>& out, const SizeExprs& sizes) const {
        Plugin p;
        p.name = text_or_empty(parts_.core->getPluginName());
        p.version = text_or_empty(parts_.core->getPluginVersion());
        p.space = text_or_empty(parts_.core->getPluginNamespace());
        p.generation = generation_;
        for (const Type& t : out) {
            p.dtypes.emplace_back(ingot::name(t.dtype));
            p.ranks.push_back(t.rank());
            p.sizes.insert(p.sizes.end(), t.dims.begin(), t.dims.end());
        }
        for (const SizeExprs::SizeTensor& s : sizes.size_tensors()) {
            p.symbols.push_back(s.symbol);
            p.size_results.push_back(s.output);
            p.most.push_back(s.most);
        }
        return p;
    }

    /// Configures the plugin for the profiles and collects the fields that the engine stores.
    void finish(PluginBuild& how, std::span<const Type> in, std::span<const Type> out,
                const SizeExprs& sizes, Plugin& p) {
        std::vector<Profile> profiles = *how.profiles;
        profiles.resize(std::max<size_t>(profiles.size(), 1));
        for (const Profile& profile : profiles) {
            auto symbols = profile_symbols(this->network(), profile);
            for (const SizeExprs::SizeTensor& s : sizes.size_tensors()) {
                std::string symbol(s.symbol.symbol_name());
                symbols[0].emplace(symbol, 0);
                symbols[1].emplace(symbol, s.opt.try_eval(symbols[1]).value_or(-1));
                symbols[2].emplace(symbol, s.most.try_eval(symbols[2]).value_or(-1));
            }
            std::vector<DynamicPluginTensorDesc> all = descs(in, out, symbols);
            configure(*parts_.build, all, in.size());
            if (std::all_of(all.begin(), all.end(), is_known)) {
                p.workspace = std::max(p.workspace, workspace_of(*parts_.build, all, in.size()));
            }
        }
        if (parts_.build->getInterfaceInfo().major >= 2) {
            for (size_t i = 0; i < out.size(); ++i) {
                int32_t a = aliased_input(i);
                require(a >= -1 && a < static_cast<int32_t>(in.size()), ErrorCode::InvalidArgument,
                        "IPluginV3OneBuildV2::getAliasedInput(", i, ") returned ", a,
                        ", expected -1 to ", static_cast<int64_t>(in.size()) - 1);
                p.aliases.push_back(a);
            }
        }
        serialize_fields(*parts_.runtime, p);
        p.tactic = tactic_under(how, in, p, profile_symbols(this->network(), profiles[0])[1]);
        how.used.push_back({p, clone_of(*plugin_)});
    }

    /// The tactic for the opt sizes.
    int32_t tactic_under(const PluginBuild& how, std::span<const Type> in, Plugin p,
                         const Symbols& expected) {
        std::vector<Type> types;
        for (const Type& t : in) {
            types.push_back({t.dtype, fixed(t.dims, expected)});
        }
        p.sizes = fixed(p.sizes, expected);
        p.most = fixed(p.most, expected);
        p.shape_values = fixed(p.shape_values, expected);
        return choose_tactic(how, *plugin_, p, types);
    }

    std::unique_ptr<nv::IPluginV3> plugin_;
    PluginParts parts_;
    size_t shape_inputs_;
    int64_t generation_;
};

class NewPluginLayer final : public PluginLayer<nv::IPluginV3Layer> {
public:
    NewPluginLayer(std::unique_ptr<nv::IPluginV3> plugin, size_t shape_inputs)
        : PluginLayer({nv::LayerType::kPLUGIN_V3, "PluginV3"}, std::move(plugin), shape_inputs, 3) {
    }
    nv::IPluginV3& getPlugin() noexcept override { return origin_of(plugin()); }
};

class OldPluginLayer final : public PluginLayer<nv::IPluginV2Layer> {
public:
    explicit OldPluginLayer(std::unique_ptr<nv::IPluginV3> plugin)
        : PluginLayer({nv::LayerType::kPLUGIN_V2, "PluginV2"}, std::move(plugin), 0, 2) {}
    nv::IPluginV2& getPlugin() noexcept override { return adapted_plugin(plugin()); }
};

class SourceLayer final : public Layer<nv::ILayer> {
public:
    SourceLayer(SourceKernel source, size_t results)
        : Layer({nv::LayerType::kPLUGIN, "Plugin"}, results), source_(std::move(source)) {}

    Values emit(const Emitter& e) override {
        return with_place([this] { return str("source '", source_.title, "'"); },
                          [&] { return e.g.add(cuda_source_def, source_, e.in); });
    }

private:
    SourceKernel source_;
};

template <class L>
L* append_named(Network& network, std::unique_ptr<L> layer,
                const std::vector<NetworkTensor*>& inputs, const std::string& name) {
    if (!name.empty()) {
        layer->LayerBase::name = name;
    }
    return network.append(std::move(layer), inputs);
}

} // namespace

nv::IPluginV3Layer* append_plugin(Network& network, const std::vector<NetworkTensor*>& inputs,
                                  size_t shape_inputs, nv::IPluginV3& plugin,
                                  const std::string& name) {
    return append_named(
        network, std::make_unique<NewPluginLayer>(runnable_plugin(clone_of(plugin)), shape_inputs),
        inputs, name);
}

nv::IPluginV2Layer* append_plugin(Network& network, const std::vector<NetworkTensor*>& inputs,
                                  nv::IPluginV2& plugin, const std::string& name) {
    nv::IPluginV2DynamicExt* copy = dynamic_plugin(plugin).clone();
    require(copy != nullptr, ErrorCode::InvalidArgument, "IPluginV2::clone() gave nullptr");
    return append_named(network, std::make_unique<OldPluginLayer>(adapt_plugin(*copy)), inputs,
                        name);
}

nv::ILayer* append_source(Network& network, const std::vector<NetworkTensor*>& inputs,
                          SourceKernel source, const std::string& name) {
    std::vector<Type> types;
    for (size_t i = 0; i < inputs.size(); ++i) {
        require(inputs[i] != nullptr, ErrorCode::InvalidArgument, "input ", i, " is nullptr");
        types.push_back(network.type_of(*inputs[i]));
    }
    size_t results = with_place([&] { return str("source '", source.title, "'"); },
                                [&] { return bind_source(source, types).results.size(); });
    return append_named(network, std::make_unique<SourceLayer>(std::move(source), results), inputs,
                        name);
}

// --- the methods of INetworkDefinition -----------------------------------------------------------

nv::IPluginV3Layer* Network::addPluginV3(nv::ITensor* const* in, int32_t count,
                                         nv::ITensor* const* shape_in, int32_t shape_count,
                                         nv::IPluginV3& plugin) noexcept {
    return report_.guard(
        "INetworkDefinition::addPluginV3", static_cast<nv::IPluginV3Layer*>(nullptr), [&] {
            std::vector<NetworkTensor*> all =
                count == 0 ? std::vector<NetworkTensor*>() : list(in, count);
            if (shape_count != 0) {
                std::vector<NetworkTensor*> shapes = list(shape_in, shape_count);
                all.insert(all.end(), shapes.begin(), shapes.end());
            }
            return append_plugin(*this, all, static_cast<size_t>(shape_count), plugin, {});
        });
}

nv::IPluginV2Layer* Network::addPluginV2(nv::ITensor* const* in, int32_t count,
                                         nv::IPluginV2& plugin) noexcept {
    return report_.guard("INetworkDefinition::addPluginV2",
                         static_cast<nv::IPluginV2Layer*>(nullptr),
                         [&] { return append_plugin(*this, list(in, count), plugin, {}); });
}

nv::ILayer* Network::add_source(nv::ITensor* const* in, int32_t count,
                                const CudaSource* source) noexcept {
    return report_.guard("ingot::addCudaSourceLayer", static_cast<nv::ILayer*>(nullptr), [&] {
        require(source != nullptr, ErrorCode::InvalidArgument, "the source is nullptr");
        std::vector<NetworkTensor*> all =
            count == 0 ? std::vector<NetworkTensor*>() : list(in, count);
        return append_source(*this, all, source_kernel(*source), {});
    });
}

} // namespace ingot::api
