// SPDX-License-Identifier: Apache-2.0
// Shared by all files of the Python extension: conversion of arguments and results between Python
// and include/, lifetimes, and exceptions raised in callbacks.
#pragma once

#include "ingot.h"

#include <cxxabi.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <type_traits>
#include <utility>

namespace nb = nanobind;
namespace trt = nvinfer1;
using nanobind::literals::operator""_a;

namespace ingot::python {

/// One call into the library from one thread. An exception that Python code raises in a callback
/// of it cannot pass through the library: it waits here and is raised when the call is over.
class CallScope {
public:
    CallScope() noexcept;
    ~CallScope();
    CallScope(const CallScope&) = delete;
    CallScope& operator=(const CallScope&) = delete;

    /// For a catch block of a callback: stores the first exception of the innermost call of this
    /// thread; without one, or for a second exception, it is printed. Needs the GIL.
    static void keep_current(const char* where) noexcept;
    /// Whether an exception waits in the innermost call of this thread.
    static bool has_pending() noexcept;
    /// Runs handlers of signals if this is the main thread; false when one raised, which is kept.
    static bool check_signals() noexcept;
    /// Raises what was stored. Needs the GIL.
    void finish();

private:
    CallScope* outer_;
    PyObject* pending_ = nullptr;
};

/// Python before 3.14 ends a daemon thread that wants the GIL back when the interpreter is ending:
/// it unwinds the thread's stack, which neither destructors nor noexcept functions survive. Such a
/// thread stays where it is until the process has ended, as it does from 3.14 on.
[[noreturn]] void stay() noexcept;

/// Call once, before threads give up the GIL: libgcc is linked statically here, and its copy sets
/// up its tables at the first exception. A forced unwinding, which libgcc_s.so starts, aborts in a
/// handler of ours while they are empty.
void prepare_unwinding() noexcept;

/// Without the GIL while it lives.
class WithoutGil {
public:
    WithoutGil() : state_(PyEval_SaveThread()) {}
    ~WithoutGil();
    WithoutGil(const WithoutGil&) = delete;
    WithoutGil& operator=(const WithoutGil&) = delete;

private:
    PyThreadState* state_;
};

/// With the GIL while it lives. nanobind's own cannot be unwound through.
class WithGil {
public:
    WithGil();
    ~WithGil() { PyGILState_Release(state_); }
    WithGil(const WithGil&) = delete;
    WithGil& operator=(const WithGil&) = delete;

private:
    PyGILState_STATE state_;
};

/// Calls f without the GIL; then raises what its callbacks raised.
template <class F>
auto unlocked(const F& f) {
    CallScope scope;
    if constexpr (std::is_void_v<decltype(f())>) {
        {
            const WithoutGil release;
            f();
        }
        scope.finish();
    } else {
        auto result = [&] {
            const WithoutGil release;
            return f();
        }();
        scope.finish();
        return result;
    }
}

/// The result of Python code run for the library; `failure` when it raised or Python is gone.
template <class R, class F>
R callback(const char* where, R failure, const F& f) noexcept {
    if (!nb::is_alive()) {
        return failure;
    }
    const WithGil gil;
    try {
        return f();
    } catch (abi::__forced_unwind&) {
        stay();
    } catch (...) {
        CallScope::keep_current(where);
        return failure;
    }
}

/// Weights with their owner, which the C++ class does not have.
struct PyWeights {
    trt::Weights value{trt::DataType::kFLOAT, nullptr, 0};
    nb::object owner;
};

/// Weights of a numpy array, which is copied if it is not contiguous. Errors: TypeError.
PyWeights weights_of(nb::handle array);
/// A numpy array over the same memory, kept by `owner`; bytes for types that numpy lacks.
nb::object numpy_of(const trt::Weights& weights, nb::handle owner);
/// Bits that an element takes.
int64_t element_bits(trt::DataType type) noexcept;

/// Argument: weights, a numpy array, or None for no weights.
struct WeightsArg {
    PyWeights weights;
};
/// Argument: Dims or a sequence of up to 8 integers.
struct DimsArg {
    trt::Dims value;
};
/// Result: an object that the library hands out; Python deletes it before it lets `parents` go.
template <class T>
struct Owned {
    std::unique_ptr<T> object;
    nb::object parent;
    nb::object other_parent;
};
/// Result: a part of a network, which it keeps alive.
template <class T>
struct Part {
    T* part;
    nb::object network;
};
/// The result of a constructor. Errors: RuntimeError when the library made nothing and has reported
/// the reason.
template <class T>
Owned<T> made(const char* what, T* object, nb::handle parent, nb::handle other = {}) {
    if (object == nullptr) {
        nb::raise("%s could not be made: the logger has the reason", what);
    }
    return {std::unique_ptr<T>(object), nb::borrow(parent), nb::borrow(other)};
}
/// The network that a part belongs to; a network itself.
nb::object network_of(nb::handle part);
/// Makes the network of a part, or any other object, keep `what`.
void network_keeps(nb::handle part, nb::handle what);

} // namespace ingot::python

namespace nanobind::detail {

/// Layers show as what they are.
template <>
struct type_hook<nvinfer1::ILayer> {
    static const std::type_info* get(const nvinfer1::ILayer* layer);
};

template <>
struct type_caster<ingot::python::DimsArg> {
    NB_TYPE_CASTER(ingot::python::DimsArg, make_caster<nvinfer1::Dims>::Name +
                                               const_name(" | collections.abc.Sequence[int]"))
    bool from_python(handle src, uint32_t flags, cleanup_list* cleanup) noexcept;
};

template <>
struct type_caster<ingot::python::WeightsArg> {
    NB_TYPE_CASTER(ingot::python::WeightsArg,
                   make_caster<ingot::python::PyWeights>::Name + const_name(" | numpy.ndarray"))
    bool from_python(handle src, uint32_t flags, cleanup_list* cleanup) noexcept;
};

template <class T>
struct type_caster<ingot::python::Owned<T>> {
    static constexpr auto Name = make_caster<T>::Name + const_name(" | None");

    static handle from_cpp(ingot::python::Owned<T>&& owned, rv_policy,
                           cleanup_list* cleanup) noexcept {
        if (!owned.object) {
            return none().release();
        }
        T* const pointer = owned.object.get();
        const handle result = make_caster<T>::from_cpp(pointer, rv_policy::reference, cleanup);
        if (!result) {
            return result;
        }
        const auto remove = [](void* object) noexcept {
            const ingot::python::WithoutGil release;
            delete static_cast<T*>(object);
        };
        // Callbacks run before references are dropped: see CallScope's user Owned.
        keep_alive_cb(result, owned.object.release(), remove);
        keep_alive_obj(result, owned.parent);
        if (owned.other_parent.is_valid()) {
            keep_alive_obj(result, owned.other_parent);
        }
        return result;
    }
};

template <class T>
struct type_caster<ingot::python::Part<T>> {
    static constexpr auto Name = make_caster<T>::Name + const_name(" | None");

    static handle from_cpp(const ingot::python::Part<T>& part, rv_policy,
                           cleanup_list* cleanup) noexcept {
        if (part.part == nullptr) {
            return none().release();
        }
        const handle result = make_caster<T>::from_cpp(part.part, rv_policy::reference, cleanup);
        if (result) {
            keep_alive_obj(result, part.network);
            if (PyObject_SetAttrString(result.ptr(), "_network", part.network.ptr()) != 0) {
                return {};
            }
        }
        return result;
    }
};

} // namespace nanobind::detail

namespace ingot::python {

// How one argument arrives (Type), and what the library gets of it.
template <class A>
struct Arg {
    using Type = A;
    static A pass(A a) { return a; }
    static void after(nb::handle, const Type&) {}
};
template <>
struct Arg<const trt::Dims&> {
    using Type = DimsArg;
    static const trt::Dims& pass(const DimsArg& a) { return a.value; }
    static void after(nb::handle, const Type&) {}
};
template <>
struct Arg<trt::Weights> {
    using Type = WeightsArg;
    static trt::Weights pass(const WeightsArg& a) { return a.weights.value; }
    static void after(nb::handle self, const Type& a) { network_keeps(self, a.weights.owner); }
};

template <class R>
auto result_of(R result, nb::handle self) {
    if constexpr (std::is_same_v<R, trt::Weights>) {
        return numpy_of(result, self);
    } else if constexpr (std::is_pointer_v<R> && std::is_class_v<std::remove_pointer_t<R>>) {
        using T = std::remove_const_t<std::remove_pointer_t<R>>;
        if constexpr (std::is_base_of_v<trt::IVersionedInterface, T>) {
            return const_cast<T*>(result);
        } else if constexpr (std::is_destructible_v<T>) {
            return Owned<T>{std::unique_ptr<T>(result), nb::borrow(self), {}};
        } else {
            return Part<T>{const_cast<T*>(result), network_of(self)};
        }
    } else {
        return result;
    }
}

template <bool unlock, auto f, class Signature>
struct Method;
template <bool unlock, auto f, class R, class C, class... A>
struct Method<unlock, f, R (C::*)(A...)> {
    static auto make() {
        return [](nb::pointer_and_handle<C> self, typename Arg<A>::Type... a) {
            const auto run = [&]() -> R { return (self.p->*f)(Arg<A>::pass(a)...); };
            const auto call = [&]() -> R {
                if constexpr (unlock) {
                    return unlocked(run);
                } else {
                    return run();
                }
            };
            if constexpr (std::is_void_v<R>) {
                call();
                (Arg<A>::after(self.h, a), ...);
            } else {
                auto result = call();
                (Arg<A>::after(self.h, a), ...);
                return result_of<R>(std::move(result), self.h);
            }
        };
    }
};
template <bool unlock, auto f, class R, class C, class... A>
struct Method<unlock, f, R (C::*)(A...) noexcept> : Method<unlock, f, R (C::*)(A...)> {};
template <bool unlock, auto f, class R, class C, class... A>
struct Method<unlock, f, R (C::*)(A...) const> : Method<unlock, f, R (C::*)(A...)> {};
template <bool unlock, auto f, class R, class C, class... A>
struct Method<unlock, f, R (C::*)(A...) const noexcept> : Method<unlock, f, R (C::*)(A...)> {};

/// A member function for def(): arguments and results converted, parents kept.
template <auto f>
auto method() {
    return Method<false, f, decltype(f)>::make();
}
/// The same, without the GIL: for what takes long or waits for threads that call back.
template <auto f>
auto slow() {
    return Method<true, f, decltype(f)>::make();
}

/// A property of a getter and a setter, of which the result is dropped.
template <auto get, auto set, class C>
C& prop(C& c, const char* name, const char* doc) {
    c.def_prop_rw(name, method<get>(), method<set>(), nb::for_setter(nb::arg("value").none()),
                  doc != nullptr ? doc : "");
    return c;
}
template <auto get, class C>
C& prop_ro(C& c, const char* name, const char* doc) {
    c.def_prop_ro(name, method<get>(), doc != nullptr ? doc : "");
    return c;
}

/// A property that holds an object of the application, which the owner keeps alive.
template <auto get, auto set, class C>
C& prop_held(C& c, const char* name, const char* doc) {
    c.def_prop_rw(name, method<get>(), method<set>(), nb::for_setter(nb::keep_alive<1, 2>()),
                  nb::for_setter(nb::arg("value").none()), nb::for_getter(nb::rv_policy::reference),
                  doc);
    return c;
}

/// Methods of all objects: `with x as y:`, and being true.
template <class C>
C& common(C& c) {
    c.def("__enter__", [](nb::handle self) { return nb::borrow(self); });
    c.def(
        "__exit__", [](nb::handle, nb::args) {}, "Does nothing: objects end when nobody has them.");
    c.def("__bool__", [](nb::handle) { return true; });
    return c;
}

// One for each file.
void bind_enums(nb::module_& m);
void bind_layer_enums(nb::module_& m);
void bind_values(nb::module_& m);
void bind_interfaces(nb::module_& m);
void bind_calibrators(nb::module_& m);
void bind_tensors(nb::module_& m);
void bind_math_layers(nb::module_& m);
void bind_window_layers(nb::module_& m);
void bind_data_layers(nb::module_& m);
void bind_control_layers(nb::module_& m);
void bind_network(nb::module_& m);
void bind_config(nb::module_& m);
void bind_builder(nb::module_& m);
void bind_engine(nb::module_& m);
void bind_context(nb::module_& m);
void bind_runtime(nb::module_& m);
void bind_parser(nb::module_& m);
void bind_plugins(nb::module_& m);
void bind_arrays(nb::module_& m);

} // namespace ingot::python
