// SPDX-License-Identifier: Apache-2.0
#include "callbacks.h"

namespace ingot::python {

void* pointer_from(nb::handle object) {
    if (object.is_none()) {
        return nullptr;
    }
    nb::object number = nb::borrow(object);
    if (!nb::isinstance<nb::int_>(object)) {
        for (const char* view : {"__cuda_array_interface__", "__array_interface__"}) {
            if (nb::hasattr(object, view)) {
                return as_pointer(nb::cast<uintptr_t>(object.attr(view)["data"][0]));
            }
        }
        number = nb::hasattr(object, "data_ptr") ? object.attr("data_ptr")()
                 : nb::hasattr(object, "ptr")    ? nb::object(object.attr("ptr"))
                                                 : number;
    }
    // int() of a text would read its digits.
    const bool text = nb::isinstance<nb::str>(number) || nb::isinstance<nb::bytes>(number);
    const nb::object whole = nb::steal(
        text || PyNumber_Check(number.ptr()) == 0 ? nullptr : PyNumber_Long(number.ptr()));
    PyErr_Clear();
    uintptr_t address = 0;
    if (!whole.is_valid() || !nb::try_cast(whole, address)) {
        PyErr_Format(PyExc_TypeError,
                     "expected an address, as an integer, or an array that has one; got %R",
                     object.ptr());
        throw nb::python_error();
    }
    return as_pointer(address);
}

} // namespace ingot::python
