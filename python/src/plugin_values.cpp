// SPDX-License-Identifier: Apache-2.0
// Arguments and results of plugins written in Python: fields, descriptions of tensors, shape
// expressions.
#include "plugins.h"

#include <algorithm>
#include <cstring>

namespace ingot::python {

namespace {

using Kind = trt::PluginFieldType;

constexpr std::pair<const char*, Kind> kinds[] = {
    {"float16", Kind::kFLOAT16}, {"float32", Kind::kFLOAT32}, {"float64", Kind::kFLOAT64},
    {"int8", Kind::kINT8},       {"int16", Kind::kINT16},     {"int32", Kind::kINT32},
    {"int64", Kind::kINT64},     {"uint8", Kind::kCHAR},
};

nb::object numpy() {
    return nb::module_::import_("numpy");
}

Kind kind_of(nb::handle array) {
    const auto name = nb::cast<std::string>(nb::str(array.attr("dtype").attr("name")));
    for (const auto& [text, kind] : kinds) {
        if (name == text) {
            return kind;
        }
    }
    return Kind::kUNKNOWN;
}

nb::object array_of(nb::handle data) {
    if (nb::isinstance<nb::str>(data)) {
        return numpy().attr("frombuffer")(data.attr("encode")("utf-8"), "uint8");
    }
    if (nb::isinstance<nb::bytes>(data)) {
        return numpy().attr("frombuffer")(data, "uint8");
    }
    return numpy().attr("ascontiguousarray")(data);
}

/// Elements of a field as the array's bytes have them.
int32_t length_of(const PyField& f) {
    const auto size = nb::cast<int64_t>(f.data.attr("nbytes"));
    const int64_t bits = f.type == Kind::kINT4 || f.type == Kind::kFP4 ? 4
                         : f.type == Kind::kBF16                       ? 16
                         : f.type == Kind::kDIMS ? static_cast<int64_t>(sizeof(trt::Dims)) * 8
                                                 : 0;
    if (bits != 0) {
        return static_cast<int32_t>(size * 8 / bits);
    }
    if (f.type == Kind::kUNKNOWN || f.type == Kind::kFP8 || f.type == Kind::kCHAR) {
        return static_cast<int32_t>(size);
    }
    return nb::cast<int32_t>(f.data.attr("size"));
}

/// The array has elements of the field's type.
void check_field(const PyField& f) {
    for (const auto& [text, kind] : kinds) {
        if (kind == f.type && kind != Kind::kCHAR && kind_of(f.data) != kind) {
            raise_python(PyExc_TypeError,
                         "PluginField '" + f.name + "': the array is of " +
                             nb::cast<std::string>(nb::object(f.data.attr("dtype").attr("name"))) +
                             ", the type says " + text);
        }
    }
}

/// Errors: IndexError.
size_t field_place(const PyFields& f, int64_t i) {
    const auto n = static_cast<int64_t>(f.fields.size());
    const int64_t at = i < 0 ? i + n : i;
    if (at < 0 || at >= n) {
        raise_python(PyExc_IndexError, "field index out of range");
    }
    return static_cast<size_t>(at);
}

void bind_fields(nb::module_& m) {
    nb::class_<PyField>(m, "PluginField",
                        "A named attribute of a plugin: a numpy array, or bytes or text for CHAR. "
                        "Errors: TypeError when the array is not of the type.")
        .def(
            "__init__",
            [](PyField* at, const std::string& name, const nb::object& data,
               std::optional<Kind> type) {
                const nb::object array =
                    data.is_none() ? nb::object(numpy().attr("zeros")(0, "uint8")) : array_of(data);
                PyField f{name, array,
                          type             ? *type
                          : data.is_none() ? Kind::kUNKNOWN
                                           : kind_of(array)};
                if (!data.is_none()) {
                    check_field(f);
                }
                new (at) PyField(std::move(f));
            },
            "name"_a = "", "data"_a.none() = nb::none(), "type"_a.none() = nb::none())
        .def_rw("name", &PyField::name, "As the creator lists it.")
        .def_prop_rw(
            "data", [](const PyField& f) { return f.data; },
            [](PyField& f, nb::handle data) { f.data = array_of(data); },
            "The elements, a numpy array.")
        .def_rw("type", &PyField::type, "PluginFieldType of the elements.")
        .def_prop_rw(
            "size", [](const PyField& f) { return nb::cast<int64_t>(f.data.attr("size")); },
            [](PyField& f, int64_t size) {
                const auto there = nb::cast<int64_t>(f.data.attr("size"));
                if (size < 0 || size > there) {
                    raise_python(PyExc_ValueError, "PluginField '" + f.name + "': the size is " +
                                                       std::to_string(size) + ", the array has " +
                                                       std::to_string(there) + " elements");
                }
                f.data = f.data.attr("reshape")(-1)[nb::slice(size)];
            },
            "Elements of the array. Less than it has: the first of them stay.");
    nb::class_<PyFields>(m, "PluginFieldCollection", "A list of PluginField.")
        .def(
            "__init__",
            [](PyFields* at, const std::vector<PyField>& list) { new (at) PyFields{list}; },
            "fields"_a = std::vector<PyField>())
        .def(
            "__init__", [](PyFields* at, const PyFields& other) { new (at) PyFields(other); },
            "other"_a)
        .def("__len__", [](const PyFields& f) { return f.fields.size(); })
        .def(
            "__getitem__",
            [](PyFields& f, int64_t i) -> PyField& { return f.fields[field_place(f, i)]; },
            nb::rv_policy::copy)
        .def(
            "__getitem__",
            [](const PyFields& f, const nb::slice& s) {
                const auto [start, stop, step, length] = s.compute(f.fields.size());
                PyFields out;
                for (size_t i = 0; i < length; ++i) {
                    out.fields.push_back(
                        f.fields[static_cast<size_t>(start + static_cast<Py_ssize_t>(i) * step)]);
                }
                return out;
            },
            "s"_a, "Some of the fields.")
        .def("__setitem__",
             [](PyFields& f, int64_t i, const PyField& x) { f.fields[field_place(f, i)] = x; })
        .def("__setitem__",
             [](PyFields& f, const nb::slice& s, const PyFields& x) {
                 const auto [start, stop, step, length] = s.compute(f.fields.size());
                 if (length != x.fields.size()) {
                     raise_python(PyExc_ValueError, "a slice takes as many fields as it has");
                 }
                 for (size_t i = 0; i < length; ++i) {
                     f.fields[static_cast<size_t>(start + static_cast<Py_ssize_t>(i) * step)] =
                         x.fields[i];
                 }
             })
        .def("__delitem__",
             [](PyFields& f, int64_t i) {
                 f.fields.erase(f.fields.begin() + static_cast<Py_ssize_t>(field_place(f, i)));
             })
        .def(
            "append", [](PyFields& f, const PyField& one) { f.fields.push_back(one); }, "x"_a,
            "Adds a field at the end.")
        .def(
            "extend",
            [](PyFields& f, const PyFields& more) {
                f.fields.insert(f.fields.end(), more.fields.begin(), more.fields.end());
            },
            "L"_a, "Adds fields at the end.")
        .def(
            "insert",
            [](PyFields& f, int64_t i, const PyField& x) {
                const auto n = static_cast<int64_t>(f.fields.size());
                const int64_t at = std::clamp<int64_t>(i < 0 ? i + n : i, 0, n);
                f.fields.insert(f.fields.begin() + at, x);
            },
            "i"_a, "x"_a, "Adds a field before index i.")
        .def(
            "pop",
            [](PyFields& f, int64_t i) {
                const size_t at = field_place(f, i);
                PyField out = f.fields[at];
                f.fields.erase(f.fields.begin() + static_cast<Py_ssize_t>(at));
                return out;
            },
            "i"_a = -1, "Takes a field out. Errors: IndexError.")
        .def(
            "clear", [](PyFields& f) { f.fields.clear(); }, "Takes all fields out.");
    nb::implicitly_convertible<std::vector<PyField>, PyFields>();
    m.attr("PluginFieldCollection_") = m.attr("PluginFieldCollection");
}

struct PyInterfaceInfo {
    std::string kind;
    int64_t major;
    int64_t minor;
};

void bind_descriptions(nb::module_& m) {
    nb::class_<PyInterfaceInfo>(m, "InterfaceInfo", "Which interface an object implements.")
        .def(nb::init<std::string, int64_t, int64_t>(), "kind"_a, "major"_a, "minor"_a)
        .def_rw("kind", &PyInterfaceInfo::kind, "Its name.")
        .def_rw("major", &PyInterfaceInfo::major, "Changes with what is not compatible.")
        .def_rw("minor", &PyInterfaceInfo::minor, "Changes with what is.");
    using Desc = trt::PluginTensorDesc;
    nb::class_<Desc>(m, "PluginTensorDesc", "An input or output of a plugin.")
        .def(nb::init<>())
        .def_prop_rw(
            "dims", [](const Desc& d) { return d.dims; },
            [](Desc& d, const DimsArg& dims) { d.dims = dims.value; },
            "-1 for sizes that are not known.")
        .def_rw("type", &Desc::type, "DataType of the elements.")
        .def_rw("format", &Desc::format, "TensorFormat; LINEAR is dense and row major.")
        .def_rw("scale", &Desc::scale, "Of INT8 without Q/DQ; else -1.");
    using Range = trt::DynamicPluginTensorDesc;
    nb::class_<Range> range(m, "DynamicPluginTensorDesc", "The same with the shapes of a profile.");
    range.def(nb::init<>())
        .def_rw("desc", &Range::desc, "Type, format, and sizes, -1 where they differ.")
        .def_prop_rw(
            "min", [](const Range& r) { return r.min; },
            [](Range& r, const DimsArg& dims) { r.min = dims.value; },
            "The smallest shape; -1 for sizes that are not known.")
        .def_prop_rw(
            "opt", [](const Range& r) { return r.opt; },
            [](Range& r, const DimsArg& dims) { r.opt = dims.value; },
            "The shape that is expected.")
        .def_prop_rw(
            "max", [](const Range& r) { return r.max; },
            [](Range& r, const DimsArg& dims) { r.max = dims.value; }, "The largest shape.");
}

PyExpr expr_of(const ShapeCallRef& call, const trt::IDimensionExpr* e) {
    if (e == nullptr) {
        raise_python(PyExc_ValueError,
                     "no such expression: an operation that does not exist, a division by "
                     "zero, or numbers beyond 63 bits");
    }
    return {call, e};
}

void bind_expressions(nb::module_& m) {
    nb::class_<PyExpr>(m, "IDimensionExpr",
                       "A size as an expression of input sizes; valid during get_output_shapes().")
        .def(
            "is_constant", [](const PyExpr& e) { return e.get().isConstant(); },
            "Whether the value is known.")
        .def(
            "get_constant_value", [](const PyExpr& e) { return e.get().getConstantValue(); },
            "The value if is_constant().")
        .def(
            "is_size_tensor", [](const PyExpr& e) { return e.get().isSizeTensor(); },
            "Whether declare_size_tensor() made it.");
    nb::class_<PyExprBuilder>(m, "IExprBuilder", "Makes expressions for a shape rule.")
        .def(
            "constant",
            [](const PyExprBuilder& b, int64_t value) {
                return expr_of(b.call, b.get().constant(value));
            },
            "value"_a, "A number.")
        .def(
            "operation",
            [](const PyExprBuilder& b, trt::DimensionOperation op, const PyExpr& first,
               const PyExpr& second) {
                return expr_of(b.call, b.get().operation(op, first.get(), second.get()));
            },
            "op"_a, "first"_a, "second"_a, "A DimensionOperation of two. Errors: ValueError.")
        .def(
            "declare_size_tensor",
            [](const PyExprBuilder& b, int32_t output, const PyExpr& opt, const PyExpr& upper) {
                return expr_of(b.call, b.get().declareSizeTensor(output, opt.get(), upper.get()));
            },
            "output_index"_a, "opt"_a, "upper"_a,
            "A size that the plugin writes to its output output_index, an INT32 or INT64 scalar; "
            "at most upper.");
    nb::class_<PyDimsExprs>(m, "DimsExprs", "A shape of expressions.")
        .def(
            "__init__",
            [](PyDimsExprs* at, size_t count) {
                if (count > trt::Dims::MAX_DIMS) {
                    raise_python(PyExc_ValueError, "DimsExprs: at most 8 dimensions");
                }
                new (at) PyDimsExprs{std::vector<std::optional<PyExpr>>(count)};
            },
            "nb_dims"_a = 0)
        .def(nb::init<const PyDimsExprs&>(), "other"_a)
        .def(
            "__init__",
            [](PyDimsExprs* at, const std::vector<PyExpr>& list) {
                new (at) PyDimsExprs{{list.begin(), list.end()}};
            },
            "sizes"_a)
        .def("__len__", [](const PyDimsExprs& d) { return d.sizes.size(); })
        .def("__getitem__",
             [](const PyDimsExprs& d, int64_t i) {
                 const auto n = static_cast<int64_t>(d.sizes.size());
                 const int64_t at = i < 0 ? i + n : i;
                 if (at < 0 || at >= n) {
                     raise_python(PyExc_IndexError, "dimension index out of range");
                 }
                 return d.sizes[static_cast<size_t>(at)];
             })
        .def("__setitem__", [](PyDimsExprs& d, int64_t i, const PyExpr& e) {
            const auto n = static_cast<int64_t>(d.sizes.size());
            const int64_t at = i < 0 ? i + n : i;
            if (at < 0 || at >= n) {
                raise_python(PyExc_IndexError, "dimension index out of range");
            }
            d.sizes[static_cast<size_t>(at)] = e;
        });
}

} // namespace

void raise_python(PyObject* type, const std::string& text) {
    PyErr_SetString(type, text.c_str());
    nb::raise_python_error();
}

std::vector<trt::PluginField> fields_of(const PyFields& from) {
    std::vector<trt::PluginField> list;
    for (const PyField& f : from.fields) {
        const auto data = nb::cast<uintptr_t>(f.data.attr("ctypes").attr("data"));
        list.emplace_back(f.name.c_str(), reinterpret_cast<const void*>(data), f.type,
                          length_of(f));
    }
    return list;
}

PyFields fields_from(const trt::PluginFieldCollection* all) {
    PyFields out;
    for (int32_t i = 0; all != nullptr && i < all->nbFields; ++i) {
        const trt::PluginField& f = all->fields[i];
        const char* type = "uint8";
        size_t size = 1;
        for (const auto& [text, kind] : kinds) {
            if (kind == f.type) {
                type = text;
                size = nb::cast<size_t>(numpy().attr("dtype")(text).attr("itemsize"));
            }
        }
        if (f.type == Kind::kDIMS) {
            size = sizeof(trt::Dims);
        } else if (f.type == Kind::kBF16) {
            size = 2;
        }
        const bool packed = f.type == Kind::kINT4 || f.type == Kind::kFP4;
        const auto count = static_cast<size_t>(f.data == nullptr ? 0 : f.length);
        const size_t bytes = packed ? (count + 1) / 2 : count * size;
        const nb::bytes raw(static_cast<const char*>(f.data), bytes);
        const nb::object array = numpy().attr("frombuffer")(raw, type);
        out.fields.push_back({f.name == nullptr ? "" : f.name, array, f.type});
    }
    return out;
}

const trt::IDimensionExpr& PyExpr::get() const {
    if (call->builder == nullptr) {
        raise_python(PyExc_ValueError,
                     "the expression was used after its get_output_shapes() returned");
    }
    return *expr;
}

trt::IExprBuilder& PyExprBuilder::get() const {
    if (call->builder == nullptr) {
        raise_python(PyExc_ValueError,
                     "the IExprBuilder was used after its get_output_shapes() returned");
    }
    return *call->builder;
}

void bind_plugin_values(nb::module_& m) {
    bind_fields(m);
    bind_descriptions(m);
    bind_expressions(m);
}

} // namespace ingot::python
