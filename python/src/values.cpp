// SPDX-License-Identifier: Apache-2.0
// Values: shapes, permutations, weights, host memory.
#include "bind.h"

#include <algorithm>

namespace ingot::python {

namespace {

int32_t rank_of(const trt::Dims& dims) {
    if (dims.nbDims < 0) {
        throw nb::value_error("there is no shape: the call that gave it has reported an error");
    }
    return dims.nbDims;
}

nb::tuple tuple_of(const trt::Dims& dims) {
    nb::list sizes;
    for (int32_t i = 0; i < rank_of(dims); ++i) {
        sizes.append(dims.d[i]);
    }
    return nb::tuple(sizes);
}

int32_t place(int64_t index, int32_t count) {
    const int64_t at = index < 0 ? index + count : index;
    if (at < 0 || at >= count) {
        throw nb::index_error("index out of range");
    }
    return static_cast<int32_t>(at);
}

bool same(const trt::Dims& a, const trt::Dims& b) {
    return a.nbDims == b.nbDims && std::equal(a.d, a.d + std::max(a.nbDims, 0), b.d);
}

template <class T>
void make_dims(T* at, const trt::Dims& sizes, int32_t rank) {
    if (sizes.nbDims != rank) {
        throw nb::value_error("the number of sizes does not fit the class");
    }
    new (at) T;
    std::copy(sizes.d, sizes.d + rank, at->d);
}

/// The methods of tuples, besides elements.
void bind_tuple_methods(nb::class_<trt::Dims>& dims) {
    dims.def("__eq__", [](const trt::Dims& d, const DimsArg& o) { return same(d, o.value); })
        .def(
            "__eq__", [](const trt::Dims&, const nb::object&) { return false; }, "other"_a.none())
        .def("__hash__", [](const trt::Dims& d) { return nb::hash(tuple_of(d)); })
        .def("__bool__", [](const trt::Dims& d) { return d.nbDims > 0; })
        .def("__add__",
             [](const trt::Dims& d, const DimsArg& o) { return tuple_of(d) + tuple_of(o.value); })
        .def("__radd__",
             [](const trt::Dims& d, const DimsArg& o) { return tuple_of(o.value) + tuple_of(d); })
        .def(
            "__contains__",
            [](const trt::Dims& d, nb::handle size) {
                return nb::cast<bool>(tuple_of(d).attr("__contains__")(size));
            },
            "size"_a.none())
        .def(
            "__reversed__",
            [](const trt::Dims& d) {
                return nb::module_::import_("builtins").attr("reversed")(tuple_of(d));
            },
            nb::sig("def __reversed__(self) -> collections.abc.Iterator[int]"))
        .def(
            "index",
            [](const trt::Dims& d, int64_t size) {
                return nb::cast<int64_t>(tuple_of(d).attr("index")(size));
            },
            "size"_a, "The first dimension of a size. Errors: ValueError when there is none.")
        .def(
            "count",
            [](const trt::Dims& d, int64_t size) {
                return std::count(d.d, d.d + rank_of(d), size);
            },
            "size"_a, "How many dimensions have a size.")
        .def("__reduce__",
             [](nb::handle self) {
                 return nb::make_tuple(self.type(),
                                       nb::make_tuple(tuple_of(nb::cast<const trt::Dims&>(self))));
             })
        .def("__repr__", [](const trt::Dims& d) {
            return d.nbDims < 0 ? nb::str("(no shape)") : nb::repr(tuple_of(d));
        });
}

void bind_dims(nb::module_& m) {
    nb::class_<trt::Dims> dims(m, "Dims", nb::sig("class Dims(collections.abc.Sequence[int])"),
                               "A shape of up to 8 sizes; -1 is a size known only at run time. "
                               "Behaves as a tuple whose elements can be set.");
    dims.def(nb::init<>())
        .def(
            "__init__",
            [](trt::Dims* at, const DimsArg& sizes) { new (at) trt::Dims(sizes.value); }, "shape"_a)
        .def_ro_static("MAX_DIMS", &trt::Dims::MAX_DIMS, "Most dimensions of a tensor.")
        .def("__len__", &rank_of)
        .def(
            "__iter__", [](const trt::Dims& d) { return nb::iter(tuple_of(d)); },
            nb::sig("def __iter__(self) -> collections.abc.Iterator[int]"))
        .def("__getitem__",
             [](const trt::Dims& d, int64_t index) { return d.d[place(index, rank_of(d))]; })
        .def(
            "__getitem__",
            [](const trt::Dims& d, const nb::slice& range) {
                return nb::steal(PyObject_GetItem(tuple_of(d).ptr(), range.ptr()));
            },
            nb::sig("def __getitem__(self, arg: slice, /) -> tuple[int, ...]"))
        .def("__setitem__", [](trt::Dims& d, int64_t index,
                               int64_t size) { d.d[place(index, rank_of(d))] = size; })
        .def("__setitem__", [](trt::Dims& d, const nb::slice& range, const DimsArg& sizes) {
            const auto [start, stop, step, length] = range.compute(rank_of(d));
            if (static_cast<int32_t>(length) != sizes.value.nbDims) {
                throw nb::value_error("a slice of Dims takes as many sizes as it has");
            }
            for (size_t i = 0; i < length; ++i) {
                d.d[start + static_cast<Py_ssize_t>(i) * step] = sizes.value.d[i];
            }
        });
    bind_tuple_methods(dims);
}

void bind_fixed_dims(nb::module_& m) {
    nb::class_<trt::Dims2, trt::Dims>(m, "Dims2", "A shape of two sizes.")
        .def(nb::init<>())
        .def(nb::init<int64_t, int64_t>(), "dim0"_a, "dim1"_a)
        .def(
            "__init__", [](trt::Dims2* at, const DimsArg& s) { make_dims(at, s.value, 2); },
            "shape"_a);
    nb::class_<trt::DimsHW, trt::Dims2>(m, "DimsHW", "Height and width.")
        .def(nb::init<>())
        .def(nb::init<int64_t, int64_t>(), "h"_a, "w"_a)
        .def(
            "__init__", [](trt::DimsHW* at, const DimsArg& s) { make_dims(at, s.value, 2); },
            "shape"_a)
        .def_prop_rw(
            "h", [](const trt::DimsHW& d) { return d.h(); },
            [](trt::DimsHW& d, int64_t size) { d.h() = size; }, "Size of the first dimension.")
        .def_prop_rw(
            "w", [](const trt::DimsHW& d) { return d.w(); },
            [](trt::DimsHW& d, int64_t size) { d.w() = size; }, "Size of the second dimension.");
    nb::class_<trt::Dims3, trt::Dims2>(m, "Dims3", "A shape of three sizes.")
        .def(nb::init<>())
        .def(nb::init<int64_t, int64_t, int64_t>(), "dim0"_a, "dim1"_a, "dim2"_a)
        .def(
            "__init__", [](trt::Dims3* at, const DimsArg& s) { make_dims(at, s.value, 3); },
            "shape"_a);
    nb::class_<trt::Dims4, trt::Dims3>(m, "Dims4", "A shape of four sizes.")
        .def(nb::init<>())
        .def(nb::init<int64_t, int64_t, int64_t, int64_t>(), "dim0"_a, "dim1"_a, "dim2"_a, "dim3"_a)
        .def(
            "__init__", [](trt::Dims4* at, const DimsArg& s) { make_dims(at, s.value, 4); },
            "shape"_a);
}

void bind_permutation(nb::module_& m) {
    constexpr int32_t length = trt::Dims::MAX_DIMS;
    nb::class_<trt::Permutation>(m, "Permutation",
                                 "Where the dimensions of a result come from: dimension i is "
                                 "dimension order[i] of the input.")
        .def("__init__",
             [](trt::Permutation* at) {
                 new (at) trt::Permutation;
                 for (int32_t i = 0; i < length; ++i) {
                     at->order[i] = i;
                 }
             })
        .def(
            "__init__",
            [](trt::Permutation* at, const DimsArg& order) {
                new (at) trt::Permutation;
                for (int32_t i = 0; i < length; ++i) {
                    at->order[i] =
                        i < order.value.nbDims ? static_cast<int32_t>(order.value.d[i]) : i;
                }
            },
            "order"_a)
        .def("__len__", [](const trt::Permutation&) { return length; })
        .def("__getitem__",
             [](const trt::Permutation& p, int64_t index) { return p.order[place(index, length)]; })
        .def("__setitem__", [](trt::Permutation& p, int64_t index,
                               int32_t axis) { p.order[place(index, length)] = axis; })
        .def("__repr__", [](const trt::Permutation& p) {
            nb::list order;
            for (const int32_t axis : p.order) {
                order.append(axis);
            }
            return nb::repr(nb::tuple(order));
        });
    nb::implicitly_convertible<DimsArg, trt::Permutation>();
}

void bind_weights(nb::module_& m) {
    nb::class_<PyWeights>(m, "Weights",
                          "Elements in host memory: a numpy array, which is kept and not copied "
                          "if it is contiguous, or an address that stays the caller's.")
        .def(
            "__init__",
            [](PyWeights* at, trt::DataType type) {
                new (at) PyWeights{{type, nullptr, 0}, {}};
            },
            "type"_a = trt::DataType::kFLOAT, "No elements.")
        .def(
            "__init__",
            [](PyWeights* at, trt::DataType type, uintptr_t address, int64_t count) {
                new (at) PyWeights{{type, reinterpret_cast<const void*>(address), count}, {}};
            },
            "type"_a, "ptr"_a, "count"_a, "Count elements at an address of host memory.")
        .def(
            "__init__",
            [](PyWeights* at, const nb::object& array) { new (at) PyWeights(weights_of(array)); },
            "a"_a, nb::sig("def __init__(self, a: numpy.ndarray) -> None"))
        .def_prop_ro(
            "dtype", [](const PyWeights& w) { return w.value.type; }, "Type of the elements.")
        .def_prop_ro(
            "size", [](const PyWeights& w) { return w.value.count; }, "Number of elements.")
        .def_prop_ro(
            "nbytes",
            [](const PyWeights& w) { return (w.value.count * element_bits(w.value.type) + 7) / 8; },
            "Bytes of all elements.")
        .def_prop_ro(
            "address",
            [](const PyWeights& w) { return reinterpret_cast<uintptr_t>(w.value.values); },
            "Where the elements are.")
        .def(
            "numpy",
            [](nb::pointer_and_handle<PyWeights> w) {
                return w.p->owner.is_valid() ? w.p->owner : numpy_of(w.p->value, w.h);
            },
            "The elements as a numpy array, without a copy.")
        .def("__len__", [](const PyWeights& w) { return w.value.count; })
        .def("__bool__", [](const PyWeights& w) { return w.value.count > 0; });
}

int host_memory_buffer(PyObject* self, Py_buffer* view, int flags) noexcept {
    const trt::IHostMemory* const memory = nb::inst_ptr<trt::IHostMemory>(self);
    return PyBuffer_FillInfo(view, self, memory->data(), static_cast<Py_ssize_t>(memory->size()), 1,
                             flags);
}

PyType_Slot host_memory_slots[] = {
    {Py_bf_getbuffer, reinterpret_cast<void*>(&host_memory_buffer)},
    {0, nullptr},
};

void bind_host_memory(nb::module_& m) {
    nb::class_<trt::IHostMemory> memory(
        m, "IHostMemory", nb::type_slots(host_memory_slots),
        "Bytes that the library owns: an engine, a cache. Supports the buffer protocol, read-only: "
        "file.write(memory), bytes(memory), memoryview(memory) all work.");
    common(memory);
    memory.def_prop_ro("nbytes", &trt::IHostMemory::size, "Bytes.")
        .def_prop_ro("dtype", &trt::IHostMemory::type, "Type of the elements.")
        .def("__len__", &trt::IHostMemory::size);
}

} // namespace

void bind_values(nb::module_& m) {
    bind_dims(m);
    bind_fixed_dims(m);
    bind_permutation(m);
    bind_weights(m);
    bind_host_memory(m);
}

} // namespace ingot::python
