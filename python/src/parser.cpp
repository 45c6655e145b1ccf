// SPDX-License-Identifier: Apache-2.0
// OnnxParser and OnnxParserRefitter.
#include "NvOnnxParser.h"
#include "bind.h"

#include <string>

namespace ingot::python {

namespace {

namespace onnx = nvonnxparser;
using onnx::IParser;
using onnx::IParserError;
using onnx::IParserRefitter;
using Self = nb::pointer_and_handle<IParser>;

std::string text_of(const IParserError& error) {
    std::string text;
    if (error.node() >= 0) {
        text = "In node " + std::to_string(error.node()) + " with name: " + error.nodeName() +
               " and operator: " + error.nodeOperator() + " (" + error.func() + "): ";
    }
    return text + error.desc();
}

void bind_enums_of(nb::module_& m) {
    using E = onnx::ErrorCode;
    nb::enum_<E>(m, "ErrorCode", nb::is_arithmetic(), "What is wrong with a model.")
        .value("SUCCESS", E::kSUCCESS)
        .value("INTERNAL_ERROR", E::kINTERNAL_ERROR)
        .value("MEM_ALLOC_FAILED", E::kMEM_ALLOC_FAILED)
        .value("MODEL_DESERIALIZE_FAILED", E::kMODEL_DESERIALIZE_FAILED)
        .value("INVALID_VALUE", E::kINVALID_VALUE)
        .value("INVALID_GRAPH", E::kINVALID_GRAPH)
        .value("INVALID_NODE", E::kINVALID_NODE)
        .value("UNSUPPORTED_GRAPH", E::kUNSUPPORTED_GRAPH)
        .value("UNSUPPORTED_NODE", E::kUNSUPPORTED_NODE)
        .value("UNSUPPORTED_NODE_ATTR", E::kUNSUPPORTED_NODE_ATTR)
        .value("UNSUPPORTED_NODE_INPUT", E::kUNSUPPORTED_NODE_INPUT)
        .value("UNSUPPORTED_NODE_DATATYPE", E::kUNSUPPORTED_NODE_DATATYPE)
        .value("UNSUPPORTED_NODE_DYNAMIC", E::kUNSUPPORTED_NODE_DYNAMIC)
        .value("UNSUPPORTED_NODE_SHAPE", E::kUNSUPPORTED_NODE_SHAPE)
        .value("REFIT_FAILED", E::kREFIT_FAILED);
    using F = onnx::OnnxParserFlag;
    nb::enum_<F>(m, "OnnxParserFlag", nb::is_arithmetic(), "How a model is read.")
        .value("NATIVE_INSTANCENORM", F::kNATIVE_INSTANCENORM)
        .value("ENABLE_UINT8_AND_ASYMMETRIC_QUANTIZATION_DLA",
               F::kENABLE_UINT8_AND_ASYMMETRIC_QUANTIZATION_DLA)
        .value("REPORT_CAPABILITY_DLA", F::kREPORT_CAPABILITY_DLA)
        .value("ENABLE_PLUGIN_OVERRIDE", F::kENABLE_PLUGIN_OVERRIDE)
        .value("ADJUST_FOR_DLA", F::kADJUST_FOR_DLA);
}

void bind_error(nb::module_& m) {
    nb::class_<IParserError>(m, "ParserError", "One thing that is wrong with a model.")
        .def("code", &IParserError::code, "What kind of error it is.")
        .def("desc", &IParserError::desc, "What is wrong, with found and expected.")
        .def("file", &IParserError::file, "Source file of Ingot that reported it, for bug reports.")
        .def("line", &IParserError::line, "Line of file().")
        .def("func", &IParserError::func, "Function that reported it.")
        .def("node", &IParserError::node, "Index of the node; -1 when it is about none.")
        .def("node_name", &IParserError::nodeName, "Name of the node; \"\" when it is about none.")
        .def("node_operator", &IParserError::nodeOperator,
             "Operator of the node; \"\" when it is about none.")
        .def(
            "local_function_stack",
            [](const IParserError& self) {
                const int32_t count = self.localFunctionStackSize();
                const char* const* const names = self.localFunctionStack();
                return count > 0 ? std::vector<std::string>(names, names + count)
                                 : std::vector<std::string>();
            },
            "Names of the model's functions that the node is in, the outermost first.")
        .def("local_function_stack_size", &IParserError::localFunctionStackSize,
             "Length of local_function_stack().")
        .def("__str__", &text_of)
        .def("__repr__", &text_of);
}

template <class T>
const IParserError* error_at(const T& self, int32_t index) {
    const IParserError* const error = self.getError(index);
    if (error == nullptr) {
        const std::string text = "get_error: index " + std::to_string(index) + ", there are " +
                                 std::to_string(self.getNbErrors()) + " errors";
        throw nb::index_error(text.c_str());
    }
    return error;
}

using Path = std::optional<std::string>;

const char* chars(const Path& path) {
    return path ? path->c_str() : nullptr;
}

/// A path of type str or os.PathLike.
std::string path_of(const nb::object& path) {
    return nb::cast<std::string>(nb::module_::import_("os").attr("fspath")(path));
}

void bind_parsing(nb::class_<IParser>& c) {
    c.def(
         "parse",
         [](IParser& self, const nb::bytes& model, const Path& path) {
             return unlocked([&] { return self.parse(model.data(), model.size(), chars(path)); });
         },
         "model"_a, "path"_a.none() = nb::none(),
         "Reads a model; path: where external weights are looked for. False: see get_error().")
        .def(
            "parse_from_file",
            [](IParser& self, const nb::object& model) {
                const std::string path = path_of(model);
                const auto all = static_cast<int>(trt::ILogger::Severity::kVERBOSE);
                return unlocked([&] { return self.parseFromFile(path.c_str(), all); });
            },
            "model"_a, nb::sig("def parse_from_file(self, model: str | os.PathLike[str]) -> bool"),
            "Reads a model; external weights are looked for beside it. False: see get_error().")
        .def(
            "supports_model",
            [](IParser& self, const nb::bytes& model, const Path& path) {
                const bool all = unlocked(
                    [&] { return self.supportsModelV2(model.data(), model.size(), chars(path)); });
                std::vector<std::pair<std::vector<int64_t>, bool>> parts;
                for (int64_t i = 0; i < self.getNbSubgraphs(); ++i) {
                    int64_t count = 0;
                    const int64_t* const nodes = self.getSubgraphNodes(i, count);
                    parts.emplace_back(std::vector<int64_t>(nodes, nodes + count),
                                       self.isSubgraphSupported(i));
                }
                return std::pair(all, parts);
            },
            "model"_a, "path"_a.none() = nb::none(),
            "(whether all is supported, [(nodes, whether they are supported), ...]).")
        .def(
            "supports_model_v2",
            [](IParser& self, const nb::bytes& model, const Path& path) {
                return unlocked(
                    [&] { return self.supportsModelV2(model.data(), model.size(), chars(path)); });
            },
            "model"_a, "path"_a.none() = nb::none(),
            "Whether all of a model is supported; then is_subgraph_supported() and "
            "get_subgraph_nodes() tell of its parts.")
        .def(
            "load_model_proto",
            [](IParser& self, const nb::bytes& model, const Path& path) {
                return unlocked(
                    [&] { return self.loadModelProto(model.data(), model.size(), chars(path)); });
            },
            "model"_a, "path"_a.none() = nb::none(),
            "Reads a model but does not make the network yet: see load_initializer().")
        .def("parse_model_proto", slow<&IParser::parseModelProto>(),
             "Makes the network of load_model_proto() and load_initializer(). False: see "
             "get_error().");
}

void bind_parser_frame(nb::class_<IParser>& c) {
    common(c);
    c.def(nb::new_([](nb::pointer_and_handle<trt::INetworkDefinition> network,
                      nb::pointer_and_handle<trt::ILogger> logger) {
              return made("OnnxParser", onnx::createParser(*network.p, *logger.p), network.h,
                          logger.h);
          }),
          "network"_a, "logger"_a)
        .def_prop_ro("num_errors", &IParser::getNbErrors, "Errors since the last clear_errors().")
        .def("get_error", &error_at<IParser>, "index"_a, nb::rv_policy::reference_internal,
             "An error. Errors: IndexError.")
        .def("clear_errors", &IParser::clearErrors, "Forgets all errors.")
        .def("supports_operator", &IParser::supportsOperator, "op_name"_a,
             "Whether an ONNX operator of this name is known.")
        .def(
            "set_optional_inputs",
            [](IParser& self, const std::vector<std::string>& names) {
                std::vector<const char*> texts;
                for (const std::string& name : names) {
                    texts.push_back(name.c_str());
                }
                return ingot::setOptionalInputs(self, texts.data(),
                                                static_cast<int32_t>(texts.size()));
            },
            "names"_a,
            "Beyond TensorRT: makes these inputs of the model that is parsed next inputs with a "
            "default, the initializer of that name, which ICudaEngine.get_input_default() tells. "
            "Without it they are constants. A model fails to parse where one has no default.")
        .def_prop_rw("flags", &IParser::getFlags, &IParser::setFlags, "Bits of OnnxParserFlag.")
        .def("set_flag", &IParser::setFlag, "flag"_a, "Switches an OnnxParserFlag on.")
        .def("clear_flag", &IParser::clearFlag, "flag"_a, "Switches an OnnxParserFlag off.")
        .def("get_flag", &IParser::getFlag, "flag"_a, "Whether an OnnxParserFlag is on.")
        .def_prop_ro("num_subgraphs", &IParser::getNbSubgraphs,
                     "Parts found by supports_model_v2().")
        .def("is_subgraph_supported", &IParser::isSubgraphSupported, "index"_a,
             "Whether a part is supported.")
        .def(
            "get_subgraph_nodes",
            [](IParser& self, int64_t index) {
                int64_t count = 0;
                const int64_t* const nodes = self.getSubgraphNodes(index, count);
                return nodes != nullptr ? std::vector<int64_t>(nodes, nodes + count)
                                        : std::vector<int64_t>();
            },
            "index"_a, "Indices of the nodes of a part.")
        .def(
            "get_used_vc_plugin_libraries",
            [](const IParser& self) {
                int64_t count = 0;
                const char* const* const names = self.getUsedVCPluginLibraries(count);
                return names != nullptr ? std::vector<std::string>(names, names + count)
                                        : std::vector<std::string>();
            },
            "Paths of libraries of plugins that the network uses.")
        .def("set_builder_config", &IParser::setBuilderConfig, "builder_config"_a,
             nb::keep_alive<1, 2>(), "The configuration that the network will be built with.");
}

/// Elements that stay the caller's: the array is kept until the network is gone.
bool load_initializer(IParser& self, nb::handle keeper, const char* name, const nb::object& data) {
    const PyWeights weights = weights_of(data);
    const auto bytes = (weights.value.count * element_bits(weights.value.type) + 7) / 8;
    nb::keep_alive_obj(keeper, weights.owner);
    return self.loadInitializer(name, weights.value.values, static_cast<size_t>(bytes));
}

void bind_initializers(nb::class_<IParser>& c) {
    c.def(
         "load_initializer",
         [](const Self& self, const char* name, const nb::object& data) {
             return load_initializer(*self.p, self.h, name, data);
         },
         "name"_a, "data"_a, "Gives an initialiser's elements as a numpy array, not copied.")
        .def(
            "load_initializer",
            [](IParser& self, const char* name, uintptr_t data, size_t size) {
                return self.loadInitializer(name, reinterpret_cast<const void*>(data), size);
            },
            "name"_a, "data"_a, "size"_a,
            "The same from an address and a size in bytes; they outlive the parser.")
        .def(
            "get_layer_output_tensor",
            [](IParser& self, const char* name, int64_t i) {
                return const_cast<trt::ITensor*>(self.getLayerOutputTensor(name, i));
            },
            "name"_a, "i"_a, nb::rv_policy::reference_internal, "None when there is none.");
}

void bind_refitter(nb::module_& m) {
    nb::class_<IParserRefitter> c(m, "OnnxParserRefitter", "Refits an engine from a model.");
    common(c);
    c.def(nb::new_([](nb::pointer_and_handle<trt::IRefitter> refitter,
                      nb::pointer_and_handle<trt::ILogger> logger) {
              return made("OnnxParserRefitter", onnx::createParserRefitter(*refitter.p, *logger.p),
                          refitter.h, logger.h);
          }),
          "refitter"_a, "logger"_a)
        .def(
            "refit_from_bytes",
            [](IParserRefitter& self, const nb::bytes& model, const Path& path) {
                return unlocked(
                    [&] { return self.refitFromBytes(model.data(), model.size(), chars(path)); });
            },
            "model"_a, "path"_a.none() = nb::none(),
            "Gives the refitter all weights of a model. False: see get_error().")
        .def(
            "refit_from_file",
            [](IParserRefitter& self, const nb::object& model) {
                const std::string path = path_of(model);
                return unlocked([&] { return self.refitFromFile(path.c_str()); });
            },
            "model"_a,
            "As refit_from_bytes(), from a file; external weights are looked for beside it.")
        .def(
            "load_model_proto",
            [](IParserRefitter& self, const nb::bytes& model, const Path& path) {
                return unlocked(
                    [&] { return self.loadModelProto(model.data(), model.size(), chars(path)); });
            },
            "model"_a, "path"_a.none() = nb::none(),
            "Reads a model whose initializers load_initializer() may replace.")
        .def(
            "load_initializer",
            [](nb::pointer_and_handle<IParserRefitter> self, const char* name,
               const nb::bytes& data) {
                const bool set = self.p->loadInitializer(name, data.data(), data.size());
                if (set) {
                    nb::keep_alive_obj(self.h, data);
                }
                return set;
            },
            "name"_a, "data"_a, "Bytes of an initializer.")
        .def(
            "load_initializer",
            [](IParserRefitter& self, const char* name, uintptr_t data, size_t size) {
                return self.loadInitializer(name, reinterpret_cast<const void*>(data), size);
            },
            "name"_a, "data"_a, "size"_a,
            "The same from an address and a size in bytes; they outlive the refitter.")
        .def("refit_model_proto", slow<&IParserRefitter::refitModelProto>(),
             "Refits from the model that load_model_proto() read.")
        .def_prop_ro("num_errors", &IParserRefitter::getNbErrors,
                     "Errors since the last clear_errors().")
        .def("get_error", &error_at<IParserRefitter>, "index"_a, nb::rv_policy::reference_internal,
             "An error. Errors: IndexError.")
        .def("clear_errors", &IParserRefitter::clearErrors, "Forgets all errors.");
}

} // namespace

void bind_parser(nb::module_& m) {
    bind_enums_of(m);
    bind_error(m);
    nb::class_<IParser> c(m, "OnnxParser",
                          "Fills a network from an ONNX model; keeps network and logger alive.");
    bind_parser_frame(c);
    bind_parsing(c);
    bind_initializers(c);
    bind_refitter(m);
    m.def(
        "get_nv_onnx_parser_version", [] { return getNvOnnxParserVersion(); },
        "Version of the parser's API as a number.");
}

} // namespace ingot::python
