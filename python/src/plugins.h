// SPDX-License-Identifier: Apache-2.0
// Plugins between Python and the library: fields, shape expressions, and the objects of Python
// classes as the library sees them.
#pragma once

#include "callbacks.h"

#include <string>

namespace ingot::python {

/// A field whose elements are a numpy array; bytes are an array of uint8.
struct PyField {
    std::string name;
    nb::object data;
    trt::PluginFieldType type;
};
/// A list of fields.
struct PyFields {
    std::vector<PyField> fields;
};
/// The fields for the library: they point into the arrays of `from`.
std::vector<trt::PluginField> fields_of(const PyFields& from);
/// Copies of the library's fields.
PyFields fields_from(const trt::PluginFieldCollection* all);

/// A shape rule's call: expressions end with it.
struct ShapeCall {
    trt::IExprBuilder* builder = nullptr; // null: it is over
};
using ShapeCallRef = std::shared_ptr<ShapeCall>;
struct PyExpr {
    ShapeCallRef call;
    const trt::IDimensionExpr* expr = nullptr;
    /// Errors: ValueError when the call is over.
    const trt::IDimensionExpr& get() const;
};
struct PyExprBuilder {
    ShapeCallRef call;
    trt::IExprBuilder& get() const;
};
struct PyDimsExprs {
    std::vector<std::optional<PyExpr>> sizes;
};

/// An object of a Python class that derives from IPluginV3, for the library to delete; then it is
/// told so, unless it is the application's. Errors: TypeError when it is none.
std::unique_ptr<trt::IPluginV3> plugin_of(nb::handle object, bool is_own = true);

/// Wraps an object of Python for the library.
class PythonPlugin {
public:
    virtual ~PythonPlugin() = default;
    virtual nb::object object() const = 0;
};
/// plugin_of() for those with the parts of impl/NvInferPythonPlugin.h.
std::unique_ptr<trt::IPluginV3> quick_plugin(nb::object object, bool is_own);
/// The object of Python that the library knows as this one; a NativePluginV3 for others.
nb::object python_object(trt::IPluginV3& plugin);

/// Raises a Python exception, also from a callback.
[[noreturn]] void raise_python(PyObject* type, const std::string& text);

void bind_plugin_values(nb::module_& m);
void bind_plugin_classes(nb::module_& m);
void bind_plugin_resources(nb::module_& m);
/// After all classes of plugins and allocators.
void bind_versions(nb::module_& m);
void bind_old_plugins(nb::module_& m);
void bind_quick_creator(nb::module_& m);

} // namespace ingot::python
