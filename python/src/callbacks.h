// SPDX-License-Identifier: Apache-2.0
// How interfaces that Python classes implement are called.
#pragma once

#include "bind.h"

#include <nanobind/trampoline.h>

namespace ingot::python {

/// The name that a method has in Python, with the hash by which overriding is found out.
struct MethodName {
    // NOLINTNEXTLINE(google-explicit-constructor): names are written as text.
    constexpr MethodName(const char* text_) : text(text_), hash(nb::detail::str_hash(text_)) {}

    const char* text;
    uint64_t hash;
};

/// Calls Python while a ticket lives, which no unwinding may pass: it would give up a GIL that the
/// thread has lost.
template <class F>
nb::object in_python(const F& f) {
    try {
        return f();
    } catch (abi::__forced_unwind&) {
        stay();
    }
}

/// Calls a method of the Python object behind a trampoline, which must define it. Needs the GIL.
template <class... A>
nb::object call_python(const nb::detail::trampoline& trampoline, const MethodName& name, A&&... a) {
    const nb::detail::ticket ticket(trampoline, name.text, name.hash, true);
    return in_python(
        [&] { return nb::object(trampoline.base().attr(ticket.key)(std::forward<A>(a)...)); });
}

/// Calls it if the Python class overrides it. Returns whether it did; its result goes to `result`.
template <class... A>
bool call_overridden(const nb::detail::trampoline& trampoline, const MethodName& name,
                     nb::object& result, A&&... a) {
    // A method that not even the base class has cannot be looked up by a ticket.
    if (!nb::hasattr(trampoline.base().type(), name.text)) {
        return false;
    }
    const nb::detail::ticket ticket(trampoline, name.text, name.hash, false);
    if (!ticket.key.is_valid()) {
        return false;
    }
    result = in_python(
        [&] { return nb::object(trampoline.base().attr(ticket.key)(std::forward<A>(a)...)); });
    return true;
}

/// Stands for a method that the class of the application defines.
[[noreturn]] inline void undefined(nb::handle self, const nb::args&, const nb::kwargs&) {
    nb::str name(self.type().attr("__name__"));
    PyErr_Format(PyExc_NotImplementedError, "%s has to define this method", name.c_str());
    throw nb::python_error();
}

/// An address or handle as Python sees it.
inline uintptr_t as_int(const void* pointer) noexcept {
    return reinterpret_cast<uintptr_t>(pointer);
}
template <class T = void>
T* as_pointer(uintptr_t address) noexcept {
    return reinterpret_cast<T*>(address);
}
/// An address that Python code returned: an integer, an array (CUDA's or numpy's interface,
/// data_ptr() as of torch), or an object with `ptr` or that int() takes. None is no address.
/// Errors: TypeError.
void* pointer_from(nb::handle object);

} // namespace ingot::python
