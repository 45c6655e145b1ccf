// SPDX-License-Identifier: Apache-2.0
// Plugins of the older generation: those of libraries, and those that Python code implements, which
// derive from IPluginV2DynamicExt.
#include "layers.h"
#include "plugin_calls.h"

#include <cstring>

namespace ingot::python {

namespace {

using V2 = trt::IPluginV2;
using Dynamic = trt::IPluginV2DynamicExt;
using Creator = trt::IPluginCreator;

/// The library takes an object that Python code returned, and gives it back by destroy().
template <class T>
T* taken(nb::object object) {
    T* const plugin = nb::cast<T*>(object);
    static_cast<void>(object.release());
    return plugin;
}

/// A plugin that Python code implements. The class must define the methods that return a value.
class PyPluginV2 : public Dynamic {
public:
    NB_TRAMPOLINE(Dynamic);

    const char* getPluginType() const noexcept override { return type.c_str(); }
    const char* getPluginVersion() const noexcept override { return version.c_str(); }
    const char* getPluginNamespace() const noexcept override { return space.c_str(); }
    void setPluginNamespace(const char* text) noexcept override {
        space = text == nullptr ? "" : text;
    }
    int32_t getNbOutputs() const noexcept override { return outputs; }

    int32_t initialize() noexcept override { return optional("initialize"); }
    void terminate() noexcept override { static_cast<void>(optional("terminate")); }
    size_t getSerializationSize() const noexcept override {
        return callback("IPluginV2DynamicExt.serialize", size_t{0}, [this] {
            const auto data = nb::cast<nb::bytes>(call_python(nb_trampoline, "serialize"));
            bytes_.assign(static_cast<const char*>(data.data()), data.size());
            return bytes_.size();
        });
    }
    void serialize(void* buffer) const noexcept override {
        std::memcpy(buffer, bytes_.data(), bytes_.size());
    }
    void destroy() noexcept override {
        static_cast<void>(callback("IPluginV2DynamicExt.destroy", false, [this] {
            const nb::object self = nb::steal(nb_trampoline.base());
            nb::object none;
            return call_overridden(nb_trampoline, "destroy", none);
        }));
    }
    Dynamic* clone() const noexcept override {
        return callback<Dynamic*>("IPluginV2DynamicExt.clone", nullptr, [this] {
            return taken<Dynamic>(call_python(nb_trampoline, "clone"));
        });
    }

    trt::DataType getOutputDataType(int32_t index, const trt::DataType* in,
                                    int32_t count) const noexcept override {
        return callback("IPluginV2DynamicExt.get_output_datatype", trt::DataType::kFLOAT, [&] {
            return nb::cast<trt::DataType>(
                call_python(nb_trampoline, "get_output_datatype", index, list_of(in, count)));
        });
    }
    trt::DimsExprs getOutputDimensions(int32_t index, const trt::DimsExprs* in, int32_t count,
                                       trt::IExprBuilder& builder) noexcept override {
        trt::DimsExprs failed{};
        failed.nbDims = -1;
        return callback("IPluginV2DynamicExt.get_output_dimensions", failed, [&] {
            const OpenShapeCall open(builder);
            return dims_exprs(nb::cast<PyDimsExprs>(
                call_python(nb_trampoline, "get_output_dimensions", index,
                            exprs(in, count, open.get()), PyExprBuilder{open.get()})));
        });
    }
    bool supportsFormatCombination(int32_t pos, const trt::PluginTensorDesc* all, int32_t in_count,
                                   int32_t out_count) noexcept override {
        return callback("IPluginV2DynamicExt.supports_format_combination", false, [&] {
            const nb::object yes = call_python(nb_trampoline, "supports_format_combination", pos,
                                               list_of(all, in_count + out_count), in_count);
            return PyObject_IsTrue(yes.ptr()) == 1;
        });
    }
    void configurePlugin(const trt::DynamicPluginTensorDesc* in, int32_t in_count,
                         const trt::DynamicPluginTensorDesc* out,
                         int32_t out_count) noexcept override {
        in_count_ = in_count;
        out_count_ = out_count;
        static_cast<void>(callback("IPluginV2DynamicExt.configure_plugin", -1, [&] {
            nb::object result;
            return call_overridden(nb_trampoline, "configure_plugin", result, list_of(in, in_count),
                                   list_of(out, out_count))
                       ? status_of(result)
                       : 0;
        }));
    }
    size_t getWorkspaceSize(const trt::PluginTensorDesc* in, int32_t in_count,
                            const trt::PluginTensorDesc* out,
                            int32_t out_count) const noexcept override {
        return callback("IPluginV2DynamicExt.get_workspace_size", size_t{SIZE_MAX}, [&] {
            nb::object bytes;
            return call_overridden(nb_trampoline, "get_workspace_size", bytes,
                                   list_of(in, in_count), list_of(out, out_count))
                       ? nb::cast<size_t>(bytes)
                       : size_t{0};
        });
    }
    int32_t enqueue(const trt::PluginTensorDesc* in, const trt::PluginTensorDesc* out,
                    const void* const* from, void* const* to, void* workspace,
                    cudaStream_t stream) noexcept override {
        return callback("IPluginV2DynamicExt.enqueue", -1, [&] {
            return status_of(call_python(
                nb_trampoline, "enqueue", list_of(in, in_count_), list_of(out, out_count_),
                addresses(from, static_cast<size_t>(in_count_)),
                addresses(to, static_cast<size_t>(out_count_)), as_int(workspace), as_int(stream)));
        });
    }

    std::string type;
    std::string version;
    std::string space;
    int32_t outputs = 0;

private:
    /// The status of a method that may be missing.
    int32_t optional(const MethodName& name) noexcept {
        return callback(name.text, -1, [&] {
            nb::object result;
            return call_overridden(nb_trampoline, name, result) ? status_of(result) : 0;
        });
    }

    mutable std::string bytes_; // serialised last
    int32_t in_count_ = 0;
    int32_t out_count_ = 0;
};

/// A creator that Python code implements.
class PyCreatorV2 : public Creator {
public:
    NB_TRAMPOLINE(Creator);

    V2* createPlugin(const char* plugin, const trt::PluginFieldCollection* fc) noexcept override {
        return callback<V2*>("IPluginCreator.create_plugin", nullptr, [&] {
            return taken<V2>(
                call_python(nb_trampoline, "create_plugin", plugin, nb::cast(fields_from(fc))));
        });
    }
    V2* deserializePlugin(const char* plugin, const void* data, size_t size) noexcept override {
        return callback<V2*>("IPluginCreator.deserialize_plugin", nullptr, [&] {
            return taken<V2>(
                call_python(nb_trampoline, "deserialize_plugin", plugin, nb::bytes(data, size)));
        });
    }
    const trt::PluginFieldCollection* getFieldNames() noexcept override {
        return callback<const trt::PluginFieldCollection*>(
            "IPluginCreator.field_names", nullptr, [this] {
                list_ = fields_of(field_names);
                all_ = {static_cast<int32_t>(list_.size()), list_.data()};
                return &all_;
            });
    }
    const char* getPluginName() const noexcept override { return name.c_str(); }
    const char* getPluginVersion() const noexcept override { return version.c_str(); }
    const char* getPluginNamespace() const noexcept override { return space.c_str(); }
    void setPluginNamespace(const char* text) noexcept override {
        space = text == nullptr ? "" : text;
    }

    std::string name;
    std::string version = "1";
    std::string space;
    PyFields field_names;

private:
    std::vector<trt::PluginField> list_;
    trt::PluginFieldCollection all_;
};

template <class Python, class T>
Python& own(T& object) {
    auto* python = dynamic_cast<Python*>(&object);
    if (python == nullptr) {
        throw nb::attribute_error("attributes of what is not written in Python are fixed");
    }
    return *python;
}

/// An object of a library, which destroy() deletes when Python lets go of it.
nb::object owned_plugin(V2* plugin, nb::handle creator) {
    if (plugin == nullptr) {
        return nb::none();
    }
    nb::object object = nb::cast(plugin, nb::rv_policy::reference);
    if (dynamic_cast<PyPluginV2*>(plugin) != nullptr) {
        object.dec_ref(); // that which taken() kept
        return object;
    }
    nb::keep_alive_cb(object, plugin, [](void* p) noexcept { static_cast<V2*>(p)->destroy(); });
    nb::keep_alive_obj(object, creator);
    return object;
}

void bind_base(nb::module_& m) {
    nb::class_<V2>(m, "IPluginV2",
                   "A plugin of the older generation. In Python derive from IPluginV2DynamicExt.")
        .def_prop_rw(
            "num_outputs", &V2::getNbOutputs,
            [](V2& p, int32_t n) { own<PyPluginV2>(p).outputs = n; }, "Outputs of its layer.")
        .def_prop_rw(
            "plugin_type", &V2::getPluginType,
            [](V2& p, std::string v) { own<PyPluginV2>(p).type = std::move(v); },
            "The name of its creator.")
        .def_prop_rw(
            "plugin_version", &V2::getPluginVersion,
            [](V2& p, std::string v) { own<PyPluginV2>(p).version = std::move(v); },
            "The version of its creator.")
        .def_prop_rw("plugin_namespace", &V2::getPluginNamespace, &V2::setPluginNamespace,
                     "The namespace of its creator.")
        .def_prop_ro("tensorrt_version", &V2::getTensorRTVersion, "Kind and version as a number.")
        .def_prop_ro("serialization_size", &V2::getSerializationSize, "Bytes of serialize().")
        .def(
            "get_output_shape",
            [](V2& p, int32_t index, const std::vector<DimsArg>& shapes) {
                std::vector<trt::Dims> in;
                for (const DimsArg& s : shapes) {
                    in.push_back(s.value);
                }
                return p.getOutputDimensions(index, in.data(), static_cast<int32_t>(in.size()));
            },
            "index"_a, "input_shapes"_a, "Of plugins without dynamic shapes.")
        .def("supports_format", &V2::supportsFormat, "dtype"_a, "format"_a,
             "Of plugins without dynamic shapes.")
        .def(
            "configure_with_format",
            [](V2& p, const std::vector<DimsArg>& in, const std::vector<DimsArg>& out,
               trt::DataType type, trt::TensorFormat format, int32_t batch) {
                std::vector<trt::Dims> all;
                for (const std::vector<DimsArg>* list : {&in, &out}) {
                    for (const DimsArg& s : *list) {
                        all.push_back(s.value);
                    }
                }
                p.configureWithFormat(all.data(), static_cast<int32_t>(in.size()),
                                      all.data() + in.size(), static_cast<int32_t>(out.size()),
                                      type, format, batch);
            },
            "input_shapes"_a, "output_shapes"_a, "dtype"_a, "format"_a, "max_batch_size"_a,
            "Of plugins without dynamic shapes.")
        .def("initialize", &V2::initialize, "Before the first run. 0 for success.")
        .def("terminate", &V2::terminate, "After the last run.")
        .def(
            "get_workspace_size", [](const V2& p, int32_t n) { return p.getWorkspaceSize(n); },
            "max_batch_size"_a, "Of plugins without dynamic shapes.")
        .def(
            "execute_async",
            [](V2& p, int32_t batch, const std::vector<uintptr_t>& in,
               const std::vector<uintptr_t>& out, uintptr_t workspace, uintptr_t stream) {
                std::vector<const void*> from;
                std::vector<void*> to;
                for (const uintptr_t a : in) {
                    from.push_back(as_pointer(a));
                }
                for (const uintptr_t a : out) {
                    to.push_back(as_pointer(a));
                }
                return p.enqueue(batch, from.data(), to.data(), as_pointer(workspace),
                                 reinterpret_cast<cudaStream_t>(stream));
            },
            "batch_size"_a, "inputs"_a, "outputs"_a, "workspace"_a, "stream_handle"_a,
            "Of plugins without dynamic shapes. 0 for success.")
        .def(
            "serialize",
            [](const V2& p) {
                std::string bytes(p.getSerializationSize(), '\0');
                p.serialize(bytes.data());
                return nb::bytes(bytes.data(), bytes.size());
            },
            "What IPluginCreator.deserialize_plugin() needs.")
        .def(
            "destroy", [](nb::handle) {}, "Called when the library lets go of the plugin.")
        .def(
            "clone", [](nb::pointer_and_handle<V2> p) { return owned_plugin(p.p->clone(), p.h); },
            nb::sig("def clone(self) -> IPluginV2"), "A copy.");
    nb::class_<trt::IPluginV2Ext, V2>(m, "IPluginV2Ext", "Base of plugins of libraries.")
        .def(
            "get_output_data_type",
            [](const trt::IPluginV2Ext& p, int32_t index, const std::vector<trt::DataType>& in) {
                return p.getOutputDataType(index, in.data(), static_cast<int32_t>(in.size()));
            },
            "index"_a, "input_types"_a, "Type of an output.");
}

void bind_dynamic(nb::module_& m) {
    nb::class_<Dynamic, trt::IPluginV2Ext, PyPluginV2>(
        m, "IPluginV2DynamicExt",
        "A layer of the application, of the older generation. Derive from it, call "
        "super().__init__(), set num_outputs, plugin_type, plugin_version and plugin_namespace, "
        "and "
        "define get_output_datatype(self, index, input_types), get_output_dimensions(self, "
        "output_index, inputs, expr_builder), supports_format_combination(self, pos, in_out, "
        "num_inputs), enqueue(self, input_desc, output_desc, inputs, outputs, workspace, stream), "
        "serialize(self) -> bytes and clone(self); initialize, terminate, configure_plugin(self, "
        "inp, out), get_workspace_size(self, inp, out) and destroy may be defined. Addresses are "
        "integers; on the CPU they are of the host and the stream is 0.")
        .def(nb::init<>())
        .def_ro_static("FORMAT_COMBINATION_LIMIT", &Dynamic::kFORMAT_COMBINATION_LIMIT,
                       "Combinations of formats that may be tried.")
        .def(
            "get_output_datatype", &undefined,
            nb::sig("def get_output_datatype(self, index: int, input_types: Sequence[DataType]) -> "
                    "DataType"),
            "Type of an output.")
        .def("get_output_dimensions", &undefined,
             nb::sig("def get_output_dimensions(self, output_index: int, inputs: "
                     "Sequence[DimsExprs], expr_builder: IExprBuilder) -> DimsExprs"),
             "Shape of an output, in sizes of inputs.")
        .def("supports_format_combination", &undefined,
             nb::sig("def supports_format_combination(self, pos: int, in_out: "
                     "Sequence[PluginTensorDesc], num_inputs: int) -> bool"),
             "Whether type and format of tensor `pos` (inputs, then outputs) will do.")
        .def("configure_plugin", &undefined,
             nb::sig("def configure_plugin(self, pos: Sequence[DynamicPluginTensorDesc], in_out: "
                     "Sequence[DynamicPluginTensorDesc]) -> None"),
             "Types and shapes that were chosen, of inputs and outputs.")
        .def("get_workspace_size", &undefined,
             nb::sig("def get_workspace_size(self, inp: Sequence[PluginTensorDesc], out: "
                     "Sequence[PluginTensorDesc]) -> int"),
             "Bytes of scratch memory.")
        .def("get_serialization_size", &undefined,
             nb::sig("def get_serialization_size(self) -> int"), "Not asked: serialize() tells.")
        .def("enqueue", &undefined,
             nb::sig("def enqueue(self, input_desc: Sequence[PluginTensorDesc], output_desc: "
                     "Sequence[PluginTensorDesc], inputs: Sequence[int], outputs: Sequence[int], "
                     "workspace: int, stream: int) -> None"),
             "Queues the work on a stream.");
}

void bind_creator(nb::module_& m) {
    nb::class_<Creator, trt::IPluginCreatorInterface, PyCreatorV2>(
        m, "IPluginCreator",
        "Makes IPluginV2. Subclass it, call super().__init__(), set name, plugin_version, "
        "plugin_namespace and field_names, and define create_plugin(self, name, field_collection) "
        "and deserialize_plugin(self, name, serialized_plugin: bytes).")
        .def(nb::init<>())
        .def_prop_rw(
            "name", &Creator::getPluginName,
            [](Creator& c, std::string v) { own<PyCreatorV2>(c).name = std::move(v); },
            "Of the plugins that it makes.")
        .def_prop_rw(
            "plugin_version", &Creator::getPluginVersion,
            [](Creator& c, std::string v) { own<PyCreatorV2>(c).version = std::move(v); },
            "Version of the plugins that it makes.")
        .def_prop_rw("plugin_namespace", &Creator::getPluginNamespace, &Creator::setPluginNamespace,
                     "Namespace of the plugins that it makes.")
        .def_prop_rw(
            "field_names", [](Creator& c) { return fields_from(c.getFieldNames()); },
            [](Creator& c, PyFields v) { own<PyCreatorV2>(c).field_names = std::move(v); },
            "The fields that create_plugin() understands, a PluginFieldCollection.")
        .def(
            "create_plugin",
            [](nb::pointer_and_handle<Creator> self, const char* name, const PyFields& fields) {
                const std::vector<trt::PluginField> list = fields_of(fields);
                const trt::PluginFieldCollection all{static_cast<int32_t>(list.size()),
                                                     list.data()};
                return owned_plugin(self.p->createPlugin(name, &all), self.h);
            },
            "name"_a, "field_collection"_a,
            nb::sig(
                "def create_plugin(self, name: str, field_collection: PluginFieldCollection) -> "
                "IPluginV2 | None"),
            "A plugin of these fields. None when it cannot be made.")
        .def(
            "deserialize_plugin",
            [](nb::pointer_and_handle<Creator> self, const char* name, const nb::bytes& data) {
                return owned_plugin(self.p->deserializePlugin(name, data.data(), data.size()),
                                    self.h);
            },
            "name"_a, "serialized_plugin"_a,
            nb::sig(
                "def deserialize_plugin(self, name: str, serialized_plugin: bytes) -> IPluginV2 "
                "| None"),
            "A plugin from what IPluginV2.serialize() wrote. None when it cannot be made.");
}

Part<trt::IPluginV2Layer> add_plugin(nb::pointer_and_handle<trt::INetworkDefinition> self,
                                     const std::vector<trt::ITensor*>& inputs, V2& plugin) {
    CallScope scope;
    trt::IPluginV2Layer* const layer =
        self.p->addPluginV2(inputs.data(), static_cast<int32_t>(inputs.size()), plugin);
    scope.finish();
    return {layer, nb::borrow(self.h)};
}

} // namespace

void bind_old_plugins(nb::module_& m) {
    bind_base(m);
    bind_dynamic(m);
    bind_creator(m);
    layer<trt::IPluginV2Layer>(m, "IPluginV2Layer", "A layer of a plugin, older generation.")
        .def_prop_ro(
            "plugin", [](trt::IPluginV2Layer& self) { return &self.getPlugin(); },
            nb::rv_policy::reference, "The network's clone of the plugin.");
    const nb::object network = m.attr("INetworkDefinition");
    nb::setattr(network, "add_plugin_v2",
                nb::cpp_function(&add_plugin, nb::name("add_plugin_v2"), nb::scope(network),
                                 nb::is_method(), "inputs"_a, "plugin"_a,
                                 "A layer of the application: an IPluginV2DynamicExt, which is "
                                 "cloned. None when it is refused; the logger has the reason."));
}

} // namespace ingot::python
