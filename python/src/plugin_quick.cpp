// SPDX-License-Identifier: Apache-2.0
// Plugins of the Python module ingot.plugin: objects with the parts of impl/NvInferPythonPlugin.h.
#include "creators.h"
#include "impl/NvInferPythonPlugin.h"
#include "plugin_calls.h"

#include <algorithm>

namespace ingot::python {

namespace {

using Creator = trt::IPluginCreatorV3Quick;

class PyQuickPlugin final : public trt::IPluginV3,
                            public PythonPlugin,
                            public trt::IPluginV3QuickCore,
                            public trt::IPluginV3QuickBuild,
                            public trt::IPluginV3QuickRuntime {
public:
    PyQuickPlugin(nb::object object, bool is_own) : object_(std::move(object)), is_own_(is_own) {
        const auto text = [this](const char* attribute) {
            return nb::cast<std::string>(nb::str(object_.attr(attribute)));
        };
        name_ = text("plugin_name");
        version_ = text("plugin_version");
        namespace_ = text("plugin_namespace");
        runs_ = nb::hasattr(object_, "enqueue");
    }
    PyQuickPlugin(const PyQuickPlugin&) = delete;
    PyQuickPlugin& operator=(const PyQuickPlugin&) = delete;
    PyQuickPlugin(PyQuickPlugin&&) = delete;
    PyQuickPlugin& operator=(PyQuickPlugin&&) = delete;
    ~PyQuickPlugin() override {
        const bool done = callback("IPluginV3.destroy", false, [this] {
            const nb::object last = std::move(object_);
            fields_.clear();
            kept_.fields.clear();
            if (is_own_ && nb::hasattr(last, "destroy")) {
                last.attr("destroy")();
            }
            return true;
        });
        if (!done) { // Python is gone, or destroy() raised: nothing is to be done with them
            static_cast<void>(object_.release());
            for (PyField& f : kept_.fields) {
                static_cast<void>(f.data.release());
            }
        }
    }
    nb::object object() const override { return object_; }

    trt::IPluginCapability*
    getCapabilityInterface(trt::PluginCapabilityType type) noexcept override {
        switch (type) {
        case trt::PluginCapabilityType::kCORE:
            return static_cast<trt::IPluginV3QuickCore*>(this);
        case trt::PluginCapabilityType::kBUILD:
            return static_cast<trt::IPluginV3QuickBuild*>(this);
        case trt::PluginCapabilityType::kRUNTIME:
            return runs_ ? static_cast<trt::IPluginV3QuickRuntime*>(this) : nullptr;
        }
        return nullptr;
    }
    trt::IPluginV3* clone() noexcept override {
        return callback<trt::IPluginV3*>("IPluginV3.clone", nullptr, [this] {
            return plugin_of(object_.attr("clone")()).release();
        });
    }

    const char* getPluginName() const noexcept override { return name_.c_str(); }
    const char* getPluginVersion() const noexcept override { return version_.c_str(); }
    const char* getPluginNamespace() const noexcept override { return namespace_.c_str(); }

    int32_t getNbOutputs() const noexcept override {
        return callback("IPluginV3QuickBuild.get_num_outputs", -1,
                        [this] { return nb::cast<int32_t>(object_.attr("get_num_outputs")()); });
    }
    int32_t getOutputDataTypes(trt::DataType* out, int32_t out_count, const trt::DataType* in,
                               const int32_t* ranks, int32_t in_count) const noexcept override {
        return callback("IPluginV3QuickBuild.get_output_data_types", -1, [&] {
            const nb::object types = object_.attr("get_output_data_types")(
                list_of(in, in_count), list_of(ranks, in_count));
            check_count(types, out_count, "get_output_data_types");
            for (int32_t i = 0; i < out_count; ++i) {
                out[i] = nb::cast<trt::DataType>(types[nb::int_(i)]);
            }
            return 0;
        });
    }
    int32_t getOutputShapes(const trt::DimsExprs* in, int32_t in_count, const trt::DimsExprs* shape,
                            int32_t shape_count, trt::DimsExprs* out, int32_t out_count,
                            trt::IExprBuilder& builder) noexcept override {
        return callback("IPluginV3QuickBuild.get_output_shapes", -1, [&] {
            const OpenShapeCall open(builder);
            const nb::object shapes = object_.attr("get_output_shapes")(
                exprs(in, in_count, open.get()), exprs(shape, shape_count, open.get()),
                nb::cast(PyExprBuilder{open.get()}));
            check_count(shapes, out_count, "get_output_shapes");
            for (int32_t i = 0; i < out_count; ++i) {
                out[i] = dims_exprs(nb::cast<PyDimsExprs>(shapes[nb::int_(i)]));
            }
            return 0;
        });
    }
    int32_t configurePlugin(const trt::DynamicPluginTensorDesc* in, int32_t in_count,
                            const trt::DynamicPluginTensorDesc* out,
                            int32_t out_count) noexcept override {
        return callback("IPluginV3QuickBuild.configure_plugin", -1, [&] {
            return status_of(
                object_.attr("configure_plugin")(list_of(in, in_count), list_of(out, out_count)));
        });
    }
    int32_t getNbSupportedFormatCombinations(const trt::DynamicPluginTensorDesc* all,
                                             int32_t in_count,
                                             int32_t out_count) noexcept override {
        return callback("IPluginV3QuickBuild.get_supported_format_combinations", -1, [&] {
            const nb::object list = object_.attr("get_supported_format_combinations")(
                list_of(all, in_count + out_count), in_count);
            combinations_.clear();
            for (const nb::handle one : list) {
                combinations_.push_back(nb::cast<trt::PluginTensorDesc>(one));
            }
            return static_cast<int32_t>(combinations_.size()) / (in_count + out_count);
        });
    }
    int32_t getSupportedFormatCombinations(const trt::DynamicPluginTensorDesc*, int32_t in_count,
                                           int32_t out_count, trt::PluginTensorDesc* to,
                                           int32_t count) noexcept override {
        const auto n = static_cast<size_t>((in_count + out_count) * count);
        std::copy_n(combinations_.begin(), std::min(n, combinations_.size()), to);
        return 0;
    }
    int32_t getAliasedInput(int32_t output) noexcept override {
        return callback("IPluginV3QuickBuild.get_aliased_input", -2, [&] {
            return nb::cast<int32_t>(object_.attr("get_aliased_input")(output));
        });
    }
    int32_t getNbTactics() noexcept override {
        return callback("IPluginV3QuickBuild.get_valid_tactics", -1, [this] {
            return static_cast<int32_t>(nb::len(object_.attr("get_valid_tactics")()));
        });
    }
    int32_t getValidTactics(int32_t* tactics, int32_t count) noexcept override {
        return callback("IPluginV3QuickBuild.get_valid_tactics", -1, [&] {
            const nb::object list = object_.attr("get_valid_tactics")();
            check_count(list, count, "get_valid_tactics");
            for (int32_t i = 0; i < count; ++i) {
                tactics[i] = nb::cast<int32_t>(list[nb::int_(i)]);
            }
            return 0;
        });
    }

    int32_t setTactic(int32_t tactic) noexcept override {
        return callback("IPluginV3QuickRuntime.set_tactic", -1,
                        [&] { return status_of(object_.attr("set_tactic")(tactic)); });
    }
    int32_t enqueue(const trt::PluginTensorDesc* in, const trt::PluginTensorDesc* out,
                    const void* const* inputs, void* const* outputs, const trt::Dims* in_strides,
                    const trt::Dims* out_strides, int32_t in_count, int32_t out_count,
                    cudaStream_t stream) noexcept override {
        return callback("IPluginV3QuickRuntime.enqueue", -1, [&] {
            return status_of(object_.attr("enqueue")(
                list_of(in, in_count), list_of(out, out_count),
                addresses(inputs, static_cast<size_t>(in_count)),
                addresses(outputs, static_cast<size_t>(out_count)), list_of(in_strides, in_count),
                list_of(out_strides, out_count), as_int(stream)));
        });
    }
    const trt::PluginFieldCollection* getFieldsToSerialize() noexcept override {
        return callback<const trt::PluginFieldCollection*>(
            "IPluginV3QuickRuntime.get_fields_to_serialize", nullptr, [this] {
                kept_ = nb::cast<PyFields>(object_.attr("get_fields_to_serialize")());
                fields_ = fields_of(kept_);
                all_ = {static_cast<int32_t>(fields_.size()), fields_.data()};
                return &all_;
            });
    }

private:
    nb::object object_;
    bool is_own_;
    bool runs_ = false;
    std::string name_;
    std::string version_;
    std::string namespace_;
    std::vector<trt::PluginTensorDesc> combinations_;
    PyFields kept_;
    std::vector<trt::PluginField> fields_;
    trt::PluginFieldCollection all_;
};

constexpr char field_names_of_quick_creator[] = "IPluginCreatorV3Quick.field_names";

/// A creator that Python code implements.
class PyQuickCreator : public CreatorAttributes<Creator, field_names_of_quick_creator> {
public:
    trt::IPluginV3* createPlugin(const char* plugin, const char* nspace,
                                 const trt::PluginFieldCollection* fc, trt::TensorRTPhase phase,
                                 trt::QuickPluginCreationRequest request) noexcept override {
        return callback<trt::IPluginV3*>("IPluginCreatorV3Quick.create_plugin", nullptr, [&] {
            return plugin_of(call_python(nb_trampoline, "create_plugin", plugin, nspace,
                                         nb::cast(fields_from(fc)), phase, request))
                .release();
        });
    }
};

} // namespace

std::unique_ptr<trt::IPluginV3> quick_plugin(nb::object object, bool is_own) {
    return std::make_unique<PyQuickPlugin>(std::move(object), is_own);
}

void bind_quick_creator(nb::module_& m) {
    auto creator = nb::class_<Creator, trt::IPluginCreatorInterface, PyQuickCreator>(
        m, "IPluginCreatorV3Quick",
        "Makes the plugins of ingot.plugin. Subclass it, call super().__init__(), set name, "
        "plugin_version, plugin_namespace and field_names, and define create_plugin(self, name, "
        "namespace, field_collection, phase, quickPluginType).");
    bind_attributes<PyQuickCreator>(creator).def(
        "create_plugin",
        [](nb::pointer_and_handle<Creator> self, const char* name, const char* space,
           const PyFields& fields, trt::TensorRTPhase phase,
           trt::QuickPluginCreationRequest request) {
            const std::vector<trt::PluginField> list = fields_of(fields);
            const trt::PluginFieldCollection all{static_cast<int32_t>(list.size()), list.data()};
            return Owned<trt::IPluginV3>{std::unique_ptr<trt::IPluginV3>(self.p->createPlugin(
                                             name, space, &all, phase, request)),
                                         nb::borrow(self.h),
                                         {}};
        },
        "name"_a, "namespace"_a, "field_collection"_a, "phase"_a,
        "quickPluginType"_a = trt::QuickPluginCreationRequest::kSTRICT_JIT,
        "A plugin of these fields. None when it cannot be made.");
}

} // namespace ingot::python
