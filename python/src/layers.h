// SPDX-License-Identifier: Apache-2.0
// How layer classes are declared.
#pragma once

#include "bind.h"

namespace ingot::python {

/// A class of parts of a network.
template <class T, class Base>
nb::class_<T, Base> layer_class(nb::module_& m, const char* name, const char* doc) {
    return nb::class_<T, Base>(m, name, nb::dynamic_attr(), doc != nullptr ? doc : "");
}
template <class T>
nb::class_<T, trt::ILayer> layer(nb::module_& m, const char* name, const char* doc) {
    return layer_class<T, trt::ILayer>(m, name, doc);
}

} // namespace ingot::python

// A property named in Python, with the ends of the names of its getter and setter.
#define INGOT_PROP(cls, T, name, End, doc)                                                         \
    ingot::python::prop<&trt::T::get##End, &trt::T::set##End>(cls, name, doc)
