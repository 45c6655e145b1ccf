// SPDX-License-Identifier: Apache-2.0
// The extension module ingot._ingot: TensorRT's Python API over include/ and nothing else.
#include "bind.h"

namespace ingot::python {

void bind_slim(nb::module_& m);
void bind_host_inputs(nb::module_& m);

} // namespace ingot::python

// NOLINTNEXTLINE: the macro's own declarations.
NB_MODULE(_ingot, m) {
    using namespace ingot::python;
    // Objects that a program leaves in global variables are no fault.
    nb::set_leak_warnings(false);
    m.doc() = "TensorRT's Python API, implemented by Ingot.";
    bind_enums(m);
    bind_layer_enums(m);
    bind_values(m);
    bind_interfaces(m);
    bind_calibrators(m);
    bind_tensors(m);
    bind_math_layers(m);
    bind_window_layers(m);
    bind_data_layers(m);
    bind_control_layers(m);
    bind_network(m);
    bind_plugins(m);
    prepare_unwinding();
    bind_config(m);
    bind_engine(m);
    bind_context(m);
    bind_runtime(m);
    bind_builder(m);
    bind_parser(m);
    bind_arrays(m);
    bind_slim(m);
    bind_host_inputs(m);
    m.def(
        "sign_engine",
        [](const nb::bytes& engine, const std::string& private_key) {
            struct Reason : nvinfer1::ILogger {
                std::string text;
                void log(Severity severity, const char* message) noexcept override {
                    if (severity <= Severity::kERROR) {
                        text = message;
                    }
                }
            } reason;
            const std::unique_ptr<nvinfer1::IHostMemory> made(
                ingot::signEngine(reason, engine.data(), engine.size(), private_key.c_str()));
            if (made == nullptr) {
                throw nb::value_error(reason.text.c_str());
            }
            return nb::bytes(made->data(), made->size());
        },
        nb::arg("engine"), nb::arg("private_key"),
        "Beyond TensorRT: a copy of an engine, as bytes, with the signature of this key: an "
        "Ed25519 "
        "private key in PEM, as 'openssl genpkey -algorithm ed25519' makes it. ValueError for a "
        "damaged engine and other keys. See Runtime.set_trusted_keys().");
    m.def("library_version", &ingot::version, "Ingot's own version.");
    m.def("set_cache_folder", &ingot::setCacheFolder, nb::arg("path").none(),
          "Folder where compiled kernels are kept; None: the user's; '': none.");
    m.def("get_cache_folder", &ingot::getCacheFolder, "The folder in use; \"\" for none.");
}
