// SPDX-License-Identifier: Apache-2.0
// Arrays of other libraries by DLPack, for ingot.compile().
#include "bind.h"

#include <nanobind/ndarray.h>

#include <string>

namespace ingot::python {

namespace {

/// An array that another library owns, kept while this lives.
struct Tensor {
    nb::ndarray<nb::ro> array;
};

trt::DataType type_of(const nb::dlpack::dtype& type) {
    using Code = nb::dlpack::dtype_code;
    using T = trt::DataType;
    struct Known {
        Code code;
        uint8_t bits;
        T type;
    };
    static constexpr Known known[] = {
        {Code::Float, 32, T::kFLOAT}, {Code::Float, 16, T::kHALF},  {Code::Int, 8, T::kINT8},
        {Code::Int, 32, T::kINT32},   {Code::Int, 64, T::kINT64},   {Code::UInt, 8, T::kUINT8},
        {Code::Bool, 8, T::kBOOL},    {Code::Bfloat, 16, T::kBF16},
    };
    for (const Known& k : known) {
        if (static_cast<uint8_t>(k.code) == type.code && k.bits == type.bits && type.lanes == 1) {
            return k.type;
        }
    }
    const std::string text = "a DLPack array of code " + std::to_string(type.code) + " and " +
                             std::to_string(type.bits) +
                             " bits: got a type that the library does not have";
    throw nb::type_error(text.c_str());
}

nb::dlpack::dtype dlpack_type(trt::DataType type) {
    using Code = nb::dlpack::dtype_code;
    const auto bits = static_cast<uint8_t>(element_bits(type));
    const auto code = [type] {
        switch (type) {
        case trt::DataType::kFLOAT:
        case trt::DataType::kHALF:
            return Code::Float;
        case trt::DataType::kBF16:
            return Code::Bfloat;
        case trt::DataType::kBOOL:
            return Code::Bool;
        case trt::DataType::kINT8:
        case trt::DataType::kINT32:
        case trt::DataType::kINT64:
            return Code::Int;
        default:
            return Code::UInt;
        }
    }();
    return {static_cast<uint8_t>(code), bits, 1};
}

/// Whether elements follow one another in row-major order.
bool is_dense(const nb::ndarray<nb::ro>& array) {
    int64_t expected = 1;
    for (size_t i = array.ndim(); i-- > 0;) {
        if (array.shape(i) != 1 && array.stride(i) != expected) {
            return array.size() == 0;
        }
        expected *= static_cast<int64_t>(array.shape(i));
    }
    return true;
}

nb::object capsule_over(uintptr_t address, const std::vector<size_t>& shape, trt::DataType type,
                        int32_t device_type, int32_t device, const nb::object& owner) {
    return nb::cast(nb::ndarray<>(reinterpret_cast<void*>(address), shape.size(), shape.data(),
                                  owner, nullptr, dlpack_type(type), device_type, device));
}

} // namespace

void bind_arrays(nb::module_& m) {
    nb::class_<Tensor>(m, "_Tensor", "An array of another library, imported by DLPack.")
        .def(
            "__init__",
            [](Tensor* at, nb::ndarray<nb::ro> array) { new (at) Tensor{std::move(array)}; },
            "array"_a)
        .def_prop_ro("address",
                     [](const Tensor& t) { return reinterpret_cast<uintptr_t>(t.array.data()); })
        .def_prop_ro("shape",
                     [](const Tensor& t) {
                         nb::list shape;
                         for (size_t i = 0; i < t.array.ndim(); ++i) {
                             shape.append(t.array.shape(i));
                         }
                         return nb::tuple(shape);
                     })
        .def_prop_ro("dtype", [](const Tensor& t) { return type_of(t.array.dtype()); })
        .def_prop_ro("is_dense", [](const Tensor& t) { return is_dense(t.array); })
        .def_prop_ro("device_type", [](const Tensor& t) { return t.array.device_type(); })
        .def_prop_ro("device_id", [](const Tensor& t) { return t.array.device_id(); });
    m.def("_capsule_over", &capsule_over, "address"_a, "shape"_a, "dtype"_a, "device_type"_a,
          "device_id"_a, "owner"_a, "A DLPack capsule over memory that `owner` keeps.");
}

} // namespace ingot::python
