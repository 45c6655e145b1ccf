// SPDX-License-Identifier: Apache-2.0
// Calls, callbacks, and conversions of shapes and weights (bind.h).
#include "bind.h"

#include <unistd.h>

#include <cstdio>

namespace ingot::python {

namespace {

thread_local CallScope* innermost = nullptr;

} // namespace

void stay() noexcept {
    while (true) {
        ::pause();
    }
}

void prepare_unwinding() noexcept {
    struct Nothing {};
    try {
        throw Nothing();
    } catch (const Nothing&) {
    }
}

WithGil::WithGil()
    : state_([] {
          try {
              return PyGILState_Ensure();
          } catch (abi::__forced_unwind&) {
              stay();
          }
      }()) {}

WithoutGil::~WithoutGil() {
    try {
        PyEval_RestoreThread(state_);
    } catch (abi::__forced_unwind&) {
        stay();
    }
}

CallScope::CallScope() noexcept : outer_(innermost) {
    innermost = this;
}

CallScope::~CallScope() {
    innermost = outer_;
    Py_XDECREF(pending_);
}

void CallScope::keep_current(const char* where) noexcept {
    try {
        throw;
    } catch (nb::python_error& error) {
        error.restore();
    } catch (const std::exception& error) {
        PyErr_SetString(PyExc_RuntimeError, error.what());
    } catch (...) {
        PyErr_SetString(PyExc_RuntimeError, "unknown exception");
    }
    if (innermost != nullptr && innermost->pending_ == nullptr) {
        PyObject *type, *value, *trace;
        PyErr_Fetch(&type, &value, &trace);
        PyErr_NormalizeException(&type, &value, &trace);
        if (trace != nullptr) {
            PyException_SetTraceback(value, trace);
        }
        Py_XDECREF(type);
        Py_XDECREF(trace);
        innermost->pending_ = value;
    } else {
        PyErr_WriteUnraisable(nb::str(where).ptr());
    }
}

bool CallScope::has_pending() noexcept {
    return innermost != nullptr && innermost->pending_ != nullptr;
}

bool CallScope::check_signals() noexcept {
    if (PyErr_CheckSignals() == 0) {
        return true;
    }
    try {
        throw nb::python_error();
    } catch (...) {
        keep_current("a handler of signals");
    }
    return false;
}

void CallScope::finish() {
    if (pending_ != nullptr) {
        PyObject* const error = std::exchange(pending_, nullptr);
        PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error)), error);
        Py_DECREF(error);
        throw nb::python_error();
    }
}

int64_t element_bits(trt::DataType type) noexcept {
    switch (type) {
    case trt::DataType::kINT64:
        return 64;
    case trt::DataType::kFLOAT:
    case trt::DataType::kINT32:
        return 32;
    case trt::DataType::kHALF:
    case trt::DataType::kBF16:
        return 16;
    case trt::DataType::kINT4:
    case trt::DataType::kFP4:
        return 4;
    default:
        return 8;
    }
}

namespace {

struct NumpyName {
    const char* name;
    trt::DataType type;
};
// Names of numpy's types; those from bfloat16 on are of the package ml_dtypes.
constexpr NumpyName numpy_names[] = {
    {"float32", trt::DataType::kFLOAT},     {"float16", trt::DataType::kHALF},
    {"int8", trt::DataType::kINT8},         {"int32", trt::DataType::kINT32},
    {"bool", trt::DataType::kBOOL},         {"uint8", trt::DataType::kUINT8},
    {"int64", trt::DataType::kINT64},       {"bfloat16", trt::DataType::kBF16},
    {"float8_e4m3fn", trt::DataType::kFP8}, {"float8_e8m0fnu", trt::DataType::kE8M0},
};

} // namespace

PyWeights weights_of(nb::handle array) {
    const nb::module_ numpy = nb::module_::import_("numpy");
    if (!nb::isinstance(array, numpy.attr("ndarray")) &&
        !nb::isinstance(array, numpy.attr("generic"))) {
        throw nb::type_error("weights are a numpy array");
    }
    const nb::object dense = numpy.attr("ascontiguousarray")(array);
    const auto name = nb::cast<std::string>(nb::str(dense.attr("dtype").attr("name")));
    for (const NumpyName& known : numpy_names) {
        if (name == known.name) {
            const auto address = nb::cast<uintptr_t>(dense.attr("ctypes").attr("data"));
            return {{known.type, reinterpret_cast<const void*>(address),
                     nb::cast<int64_t>(dense.attr("size"))},
                    dense};
        }
    }
    const std::string text = "weights of numpy type " + name +
                             ": got a type that the library does not have; convert it, for "
                             "instance with array.astype(numpy.float32)";
    throw nb::type_error(text.c_str());
}

nb::object numpy_of(const trt::Weights& weights, nb::handle owner) {
    const nb::module_ numpy = nb::module_::import_("numpy");
    nb::object dtype = nb::module_::import_("ingot._types").attr("storage")(weights.type);
    if (weights.values == nullptr || weights.count == 0) {
        return numpy.attr("empty")(0, dtype);
    }
    const auto bytes =
        static_cast<Py_ssize_t>((weights.count * element_bits(weights.type) + 7) / 8);
    // The memory is the application's or the library's: read-only here.
    auto* const start = static_cast<char*>(const_cast<void*>(weights.values));
    const nb::object view = nb::steal(PyMemoryView_FromMemory(start, bytes, PyBUF_READ));
    const nb::object array = numpy.attr("frombuffer")(view, dtype);
    return nb::module_::import_("ingot._types").attr("keeping")(array, owner);
}

nb::object network_of(nb::handle part) {
    if (nb::isinstance<trt::INetworkDefinition>(part)) {
        return nb::borrow(part);
    }
    return part.attr("_network");
}

void network_keeps(nb::handle part, nb::handle what) {
    if (what.is_valid()) {
        const bool is_part = nb::hasattr(part, "_network");
        nb::keep_alive_obj(is_part ? nb::object(part.attr("_network")) : nb::borrow(part), what);
    }
}

} // namespace ingot::python

namespace nanobind::detail {

namespace {

/// The elements of a sequence of at most 8 integers.
bool load_dims(handle src, nvinfer1::Dims& dims) {
    if (isinstance<nvinfer1::Dims>(src)) {
        dims = *inst_ptr<nvinfer1::Dims>(src);
        return true;
    }
    if (PySequence_Check(src.ptr()) == 0 || PyUnicode_Check(src.ptr()) != 0 ||
        PyBytes_Check(src.ptr()) != 0) {
        return false;
    }
    const Py_ssize_t count = PySequence_Size(src.ptr());
    if (count < 0 || count > nvinfer1::Dims::MAX_DIMS) {
        return false;
    }
    dims.nbDims = static_cast<int32_t>(count);
    for (Py_ssize_t i = 0; i < count; ++i) {
        const object item = steal(PySequence_GetItem(src.ptr(), i));
        const object index = item.is_valid() ? steal(PyNumber_Index(item.ptr())) : object();
        if (!index.is_valid()) {
            return false;
        }
        dims.d[i] = PyLong_AsLongLong(index.ptr());
        if (dims.d[i] == -1 && PyErr_Occurred() != nullptr) {
            return false;
        }
    }
    return true;
}

} // namespace

bool type_caster<ingot::python::DimsArg>::from_python(handle src, uint32_t,
                                                      cleanup_list*) noexcept {
    value.value = {};
    const bool loaded = load_dims(src, value.value);
    if (!loaded) {
        PyErr_Clear();
    }
    return loaded;
}

bool type_caster<ingot::python::WeightsArg>::from_python(handle src, uint32_t flags,
                                                         cleanup_list*) noexcept {
    value.weights = {};
    if (src.is_none()) {
        return true;
    }
    if (isinstance<ingot::python::PyWeights>(src)) {
        value.weights = *inst_ptr<ingot::python::PyWeights>(src);
        return true;
    }
    if ((flags & static_cast<uint32_t>(cast_flags::convert)) == 0) {
        return false;
    }
    try {
        value.weights = ingot::python::weights_of(src);
        return true;
    } catch (const std::exception&) {
        PyErr_Clear();
        return false;
    }
}

} // namespace nanobind::detail
