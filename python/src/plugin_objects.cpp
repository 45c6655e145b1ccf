// SPDX-License-Identifier: Apache-2.0
// Plugins written in Python. A plugin derives from several interfaces at once, which classes of an
// extension cannot: the bases are plain Python classes, and the library sees an adapter.
#include "plugin_calls.h"

#include <nanobind/eval.h>

namespace ingot::python {

namespace {

constexpr const char* base_classes = R"py(
class IVersionedInterface(abc.ABC):
    """Base of what applications implement."""

    _kind = ("", 1, 0)

    @property
    def api_language(self) -> APILanguage:
        """PYTHON."""
        return APILanguage.PYTHON

    @property
    def interface_info(self) -> InterfaceInfo:
        """Which interface it is."""
        return InterfaceInfo(*self._kind)


class IPluginCapability(IVersionedInterface):
    """Base of the parts of a plugin."""

    def __init__(self, other: object = None) -> None:
        pass


class IPluginV3(IVersionedInterface):
    """A layer of the application. Derive from it and from the parts IPluginV3OneCore,
    IPluginV3OneBuild (or IPluginV3OneBuildV2) and IPluginV3OneRuntime. Methods run on the thread
    that builds or runs; what they raise is raised by the call that led to them."""

    _kind = ("PLUGIN", 1, 0)

    def __init__(self, other: object = None) -> None:
        pass

    def get_capability_interface(self, type):
        """The part asked for (PluginCapabilityType); this object by default."""
        return self

    def clone(self):
        """A copy, ready for use. By default of the same class with the same attributes."""
        copy = self.__class__.__new__(self.__class__)
        copy.__dict__.update(self.__dict__)
        return copy

    def destroy(self):
        """Called when the library lets go of the plugin."""


class IPluginV3OneCore(IPluginCapability):
    """Who a plugin is: set plugin_name, plugin_version and plugin_namespace to those of its
    creator."""

    _kind = ("PLUGIN_V3ONE_CORE", 1, 0)
    plugin_name = ""
    plugin_version = "1"
    plugin_namespace = ""


class IPluginV3OneBuild(IPluginCapability):
    """How a plugin is built into an engine: set num_outputs, and timing_cache_id where the times of
    tactics are to be kept in timing caches."""

    _kind = ("PLUGIN_V3ONE_BUILD", 1, 0)
    DEFAULT_FORMAT_COMBINATION_LIMIT = 100
    metadata_string = None
    num_outputs = 1
    format_combination_limit = 100
    timing_cache_id = None

    def get_output_data_types(self, input_types):
        """A list of DataType, one for each output."""
        raise NotImplementedError("get_output_data_types()")

    def get_output_shapes(self, inputs, shape_inputs, expr_builder):
        """A list of DimsExprs, one for each output, from those of inputs and the values of shape
        inputs."""
        raise NotImplementedError("get_output_shapes()")

    def supports_format_combination(self, pos, in_out, num_inputs):
        """Whether type and format of tensor `pos` (inputs, then outputs) will do."""
        raise NotImplementedError("supports_format_combination()")

    def configure_plugin(self, inp, out):
        """Types and profile shapes that were chosen (lists of DynamicPluginTensorDesc)."""

    def get_workspace_size(self, inp, out):
        """Bytes of scratch memory for shapes up to these."""
        return 0

    def get_valid_tactics(self):
        """The plugin's own numbers of implementations, not 0: the build times them, and the engine
        holds the fastest."""
        return []


class IPluginV3OneBuildV2(IPluginV3OneBuild):
    """An IPluginV3OneBuild whose outputs may lie where inputs lie."""

    _kind = ("PLUGIN_V3ONE_BUILD", 2, 0)

    def get_aliased_input(self, output_index):
        """The input that this output updates in place; -1 for none."""
        return -1


class IPluginV3OneRuntime(IPluginCapability):
    """How a plugin runs."""

    _kind = ("PLUGIN_V3ONE_RUNTIME", 1, 0)

    def set_tactic(self, tactic):
        """Which implementation enqueue() is to use."""

    def on_shape_change(self, inp, out):
        """Before the first run with these shapes (lists of PluginTensorDesc)."""

    def enqueue(self, input_desc, output_desc, inputs, outputs, workspace, stream):
        """Queues the work on a stream. inputs and outputs are lists of addresses, workspace and
        stream integers; on the CPU addresses are of the host and stream is 0."""
        raise NotImplementedError("enqueue()")

    def attach_to_context(self, resource_context):
        """A clone for one context."""
        return self.clone()

    def get_fields_to_serialize(self):
        """A PluginFieldCollection: what the creator needs to make this plugin again."""
        return []


class IPluginV3QuickCore(IPluginCapability):
    """Who a plugin of ingot.plugin is."""

    _kind = ("PLUGIN_V3QUICK_CORE", 1, 0)
    plugin_name = ""
    plugin_version = "1"
    plugin_namespace = ""


class IPluginV3QuickBuild(IPluginCapability):
    """How a plugin of ingot.plugin stands in a network. Defines get_num_outputs(),
    get_output_data_types(input_types, ranks), get_output_shapes(inputs, shape_inputs, expr_builder),
    configure_plugin(inp, out), get_supported_format_combinations(in_out, num_inputs),
    get_aliased_input(output_index) and get_valid_tactics()."""

    _kind = ("PLUGIN_V3QUICK_BUILD", 1, 0)


class IPluginV3QuickRuntime(IPluginCapability):
    """How a plugin of ingot.plugin runs. Defines set_tactic(tactic), get_fields_to_serialize() and
    enqueue(input_desc, output_desc, inputs, outputs, in_strides, out_strides, stream)."""

    _kind = ("PLUGIN_V3QUICK_RUNTIME", 1, 0)
)py";

class PyPlugin final : public trt::IPluginV3,
                       public PythonPlugin,
                       public trt::IPluginV3OneCore,
                       public trt::IPluginV3OneBuildV2,
                       public trt::IPluginV3OneRuntime {
public:
    PyPlugin(nb::object object, bool is_own) : object_(std::move(object)), is_own_(is_own) {
        core_ = part("CORE");
        build_ = part("BUILD");
        runtime_ = part("RUNTIME");
        const auto text = [this](const char* attribute) {
            return nb::cast<std::string>(nb::str(core_.attr(attribute)));
        };
        name_ = text("plugin_name");
        version_ = text("plugin_version");
        namespace_ = text("plugin_namespace");
    }
    PyPlugin(const PyPlugin&) = delete;
    PyPlugin& operator=(const PyPlugin&) = delete;
    PyPlugin(PyPlugin&&) = delete;
    PyPlugin& operator=(PyPlugin&&) = delete;
    ~PyPlugin() override {
        const bool done = callback("IPluginV3.destroy", false, [this] {
            const nb::object last = std::move(object_);
            fields_.clear();
            kept_.fields.clear();
            core_.reset();
            build_.reset();
            runtime_.reset();
            if (is_own_ && nb::hasattr(last, "destroy")) {
                last.attr("destroy")();
            }
            return true;
        });
        if (!done) { // Python is gone, or destroy() raised: nothing is to be done with them
            for (nb::object* o : {&object_, &core_, &build_, &runtime_}) {
                static_cast<void>(o->release());
            }
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
            return core_.is_none() ? nullptr : static_cast<trt::IPluginV3OneCore*>(this);
        case trt::PluginCapabilityType::kBUILD:
            return build_.is_none() ? nullptr : static_cast<trt::IPluginV3OneBuild*>(this);
        case trt::PluginCapabilityType::kRUNTIME:
            return runtime_.is_none() ? nullptr : static_cast<trt::IPluginV3OneRuntime*>(this);
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
        return callback("IPluginV3OneBuild.num_outputs", -1,
                        [this] { return nb::cast<int32_t>(build_.attr("num_outputs")); });
    }
    int32_t configurePlugin(const trt::DynamicPluginTensorDesc* in, int32_t in_count,
                            const trt::DynamicPluginTensorDesc* out,
                            int32_t out_count) noexcept override {
        return callback("IPluginV3OneBuild.configure_plugin", -1, [&] {
            return status_of(
                build_.attr("configure_plugin")(list_of(in, in_count), list_of(out, out_count)));
        });
    }
    int32_t getOutputDataTypes(trt::DataType* out, int32_t out_count, const trt::DataType* in,
                               int32_t in_count) const noexcept override {
        return callback("IPluginV3OneBuild.get_output_data_types", -1, [&] {
            const nb::object types = build_.attr("get_output_data_types")(list_of(in, in_count));
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
        return callback("IPluginV3OneBuild.get_output_shapes", -1, [&] {
            const OpenShapeCall open(builder);
            const ShapeCallRef& call = open.get();
            const nb::object shapes = build_.attr("get_output_shapes")(
                exprs(in, in_count, call), exprs(shape, shape_count, call),
                nb::cast(PyExprBuilder{call}));
            check_count(shapes, out_count, "get_output_shapes");
            for (int32_t i = 0; i < out_count; ++i) {
                out[i] = dims_exprs(nb::cast<PyDimsExprs>(shapes[nb::int_(i)]));
            }
            return 0;
        });
    }
    bool supportsFormatCombination(int32_t pos, const trt::DynamicPluginTensorDesc* all,
                                   int32_t in_count, int32_t out_count) noexcept override {
        return callback("IPluginV3OneBuild.supports_format_combination", false, [&] {
            const nb::object yes = build_.attr("supports_format_combination")(
                pos, list_of(all, in_count + out_count), in_count);
            return PyObject_IsTrue(yes.ptr()) == 1;
        });
    }
    size_t getWorkspaceSize(const trt::DynamicPluginTensorDesc* in, int32_t in_count,
                            const trt::DynamicPluginTensorDesc* out,
                            int32_t out_count) const noexcept override {
        return callback("IPluginV3OneBuild.get_workspace_size", SIZE_MAX, [&] {
            return nb::cast<size_t>(
                build_.attr("get_workspace_size")(list_of(in, in_count), list_of(out, out_count)));
        });
    }
    int32_t getNbTactics() noexcept override {
        return callback("IPluginV3OneBuild.get_valid_tactics", -1, [this] {
            return static_cast<int32_t>(nb::len(build_.attr("get_valid_tactics")()));
        });
    }
    int32_t getValidTactics(int32_t* tactics, int32_t count) noexcept override {
        return callback("IPluginV3OneBuild.get_valid_tactics", -1, [&] {
            const nb::object list = build_.attr("get_valid_tactics")();
            check_count(list, count, "get_valid_tactics");
            for (int32_t i = 0; i < count; ++i) {
                tactics[i] = nb::cast<int32_t>(list[nb::int_(i)]);
            }
            return 0;
        });
    }
    const char* getTimingCacheID() noexcept override {
        return callback(
            "IPluginV3OneBuild.timing_cache_id", static_cast<const char*>(nullptr), [this] {
                const nb::object id = nb::getattr(build_, "timing_cache_id", nb::none());
                timing_cache_id_ = id.is_none() ? std::string() : nb::cast<std::string>(id);
                return id.is_none() ? nullptr : timing_cache_id_.c_str();
            });
    }
    int32_t getFormatCombinationLimit() noexcept override {
        return callback("IPluginV3OneBuild.format_combination_limit", -1, [this] {
            return nb::cast<int32_t>(nb::getattr(build_, "format_combination_limit", nb::int_(1)));
        });
    }
    int32_t getAliasedInput(int32_t output) noexcept override {
        return callback("IPluginV3OneBuildV2.get_aliased_input", -2, [&] {
            return nb::hasattr(build_, "get_aliased_input")
                       ? nb::cast<int32_t>(build_.attr("get_aliased_input")(output))
                       : -1;
        });
    }

    int32_t setTactic(int32_t tactic) noexcept override {
        return callback("IPluginV3OneRuntime.set_tactic", -1,
                        [&] { return status_of(runtime_.attr("set_tactic")(tactic)); });
    }
    int32_t onShapeChange(const trt::PluginTensorDesc* in, int32_t in_count,
                          const trt::PluginTensorDesc* out, int32_t out_count) noexcept override {
        in_count_ = in_count;
        out_count_ = out_count;
        return callback("IPluginV3OneRuntime.on_shape_change", -1, [&] {
            return status_of(
                runtime_.attr("on_shape_change")(list_of(in, in_count), list_of(out, out_count)));
        });
    }
    int32_t enqueue(const trt::PluginTensorDesc* in, const trt::PluginTensorDesc* out,
                    const void* const* inputs, void* const* outputs, void* workspace,
                    cudaStream_t stream) noexcept override {
        return callback("IPluginV3OneRuntime.enqueue", -1, [&] {
            return status_of(
                runtime_.attr("enqueue")(list_of(in, in_count_), list_of(out, out_count_),
                                         addresses(inputs, static_cast<size_t>(in_count_)),
                                         addresses(outputs, static_cast<size_t>(out_count_)),
                                         as_int(workspace), as_int(stream)));
        });
    }
    trt::IPluginV3* attachToContext(trt::IPluginResourceContext* context) noexcept override {
        return callback<trt::IPluginV3*>("IPluginV3OneRuntime.attach_to_context", nullptr, [&] {
            const nb::object c = nb::cast(context, nb::rv_policy::reference);
            return plugin_of(runtime_.attr("attach_to_context")(c)).release();
        });
    }
    const trt::PluginFieldCollection* getFieldsToSerialize() noexcept override {
        return callback<const trt::PluginFieldCollection*>(
            "IPluginV3OneRuntime.get_fields_to_serialize", nullptr, [this] {
                kept_ = nb::cast<PyFields>(runtime_.attr("get_fields_to_serialize")());
                fields_ = fields_of(kept_);
                all_ = {static_cast<int32_t>(fields_.size()), fields_.data()};
                return &all_;
            });
    }

private:
    nb::object part(const char* type) const {
        const nb::object types = nb::type<trt::PluginCapabilityType>().attr(type);
        return object_.attr("get_capability_interface")(types);
    }

    nb::object object_;
    bool is_own_;
    nb::object core_;
    nb::object build_;
    nb::object runtime_;
    std::string name_;
    std::string version_;
    std::string namespace_;
    std::string timing_cache_id_;
    int32_t in_count_ = 0;
    int32_t out_count_ = 0;
    PyFields kept_;
    std::vector<trt::PluginField> fields_;
    trt::PluginFieldCollection all_;
};

} // namespace

std::unique_ptr<trt::IPluginV3> plugin_of(nb::handle object, bool is_own) {
    if (!nb::hasattr(object, "get_capability_interface") || !nb::hasattr(object, "clone")) {
        raise_python(PyExc_TypeError,
                     "expected an IPluginV3, got " +
                         nb::cast<std::string>(nb::str(object.type().attr("__name__"))));
    }
    const nb::object core =
        object.attr("get_capability_interface")(nb::type<trt::PluginCapabilityType>().attr("CORE"));
    if (nb::isinstance(core, nb::module_::import_("ingot._ingot").attr("IPluginV3QuickCore"))) {
        return quick_plugin(nb::borrow(object), is_own);
    }
    return std::make_unique<PyPlugin>(nb::borrow(object), is_own);
}

nb::object python_object(trt::IPluginV3& plugin) {
    const auto* ours = dynamic_cast<PythonPlugin*>(&plugin);
    return ours != nullptr ? ours->object() : nb::cast(&plugin, nb::rv_policy::reference);
}

void bind_plugin_classes(nb::module_& m) {
    nb::dict scope;
    scope["__name__"] = m.attr("__name__");
    scope["abc"] = nb::module_::import_("abc");
    for (const char* name : {"APILanguage", "InterfaceInfo"}) {
        scope[name] = m.attr(name);
    }
    nb::exec(nb::str(base_classes), scope);
    for (const char* name :
         {"IVersionedInterface", "IPluginCapability", "IPluginV3", "IPluginV3OneCore",
          "IPluginV3OneBuild", "IPluginV3OneBuildV2", "IPluginV3OneRuntime", "IPluginV3QuickCore",
          "IPluginV3QuickBuild", "IPluginV3QuickRuntime"}) {
        m.attr(name) = scope[name];
    }
}

} // namespace ingot::python
