// SPDX-License-Identifier: Apache-2.0
// How the library's arrays of plugin calls cross to Python.
#pragma once

#include "plugins.h"

#include <string>

namespace ingot::python {

/// Returned numbers are statuses; None is success.
inline int32_t status_of(const nb::object& result) {
    return result.is_none() ? 0 : nb::cast<int32_t>(result);
}

template <class T>
nb::list list_of(const T* items, int32_t count) {
    nb::list out;
    for (int32_t i = 0; i < count; ++i) {
        out.append(nb::cast(T(items[i])));
    }
    return out;
}

inline nb::list addresses(const void* const* list, size_t count) {
    nb::list out;
    for (size_t i = 0; i < count; ++i) {
        out.append(as_int(list[i]));
    }
    return out;
}

inline nb::list exprs(const trt::DimsExprs* list, int32_t count, const ShapeCallRef& call) {
    nb::list out;
    for (int32_t i = 0; i < count; ++i) {
        PyDimsExprs d;
        for (int32_t k = 0; k < list[i].nbDims; ++k) {
            d.sizes.push_back(PyExpr{call, list[i].d[k]});
        }
        out.append(nb::cast(std::move(d)));
    }
    return out;
}

inline void check_count(const nb::object& list, int32_t count, const char* method) {
    const auto got = static_cast<int32_t>(nb::len(list));
    if (got != count) {
        raise_python(PyExc_ValueError, std::string(method) + "() returned " + std::to_string(got) +
                                           " items, expected " + std::to_string(count));
    }
}

/// Expressions that Python code made for an output.
inline trt::DimsExprs dims_exprs(const PyDimsExprs& d) {
    trt::DimsExprs out{};
    out.nbDims = static_cast<int32_t>(d.sizes.size());
    for (size_t k = 0; k < d.sizes.size() && k < trt::Dims::MAX_DIMS; ++k) {
        out.d[k] = d.sizes[k] ? &d.sizes[k]->get() : nullptr;
    }
    return out;
}

/// A call of a shape rule: expressions end with it.
class OpenShapeCall {
public:
    explicit OpenShapeCall(trt::IExprBuilder& builder)
        : call_(std::make_shared<ShapeCall>(ShapeCall{&builder})) {}
    ~OpenShapeCall() { call_->builder = nullptr; }
    OpenShapeCall(const OpenShapeCall&) = delete;
    OpenShapeCall& operator=(const OpenShapeCall&) = delete;
    const ShapeCallRef& get() const { return call_; }

private:
    ShapeCallRef call_;
};

} // namespace ingot::python
