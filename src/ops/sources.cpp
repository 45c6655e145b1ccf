// SPDX-License-Identifier: Apache-2.0
// constant, iota, and the conversions between sizes and tensors.
#include "base/error.h"
#include "ops/op_table.h"
#include "ops/primitives.h"

#include <bit>
#include <cmath>

namespace ingot {

namespace {

std::optional<HostElement> host_element(const Tensor& t, int64_t i) {
    if (!is_float(t.dtype())) {
        return HostElement{t.get_i64(i), 1};
    }
    double v = t.get_f64(i);
    int64_t d = 1;
    while (d < (1 << 20) && v != std::floor(v)) {
        v *= 2;
        d *= 2;
    }
    if (v != std::floor(v) || std::abs(v) > 9e15) {
        return std::nullopt;
    }
    return HostElement{static_cast<int64_t>(v), d};
}

HostRef host_of(const Dims& values, Shape shape) {
    auto r = std::make_shared<HostValue>();
    r->shape = std::move(shape);
    for (const Dim& d : values) {
        r->elements.emplace_back(HostElement{d, 1});
    }
    return r;
}

} // namespace

const OpDef constant_def = primitive<Constant>(
    "constant", {Rounding::Matters, InHalf::Unchanged, like_result},
    [](const Constant& a, std::span<const Type>) {
        require(a.value.count() == count_of(a.value.shape()), ErrorCode::InvalidModel,
                "constant: the tensor has no value");
        return std::vector<Type>{a.value.type()};
    },
    [](const Constant& a, EvalArgs& e) { e.out[0] = a.value; },
    [](const Constant& a, std::span<const HostRef>, std::span<const Type>) -> std::vector<HostRef> {
        if (a.value.is_lazy() || a.value.count() > 1024 ||
            (a.value.rank() > 1 && is_float(a.value.dtype()))) {
            return {};
        }
        auto r = std::make_shared<HostValue>();
        r->shape = a.value.shape();
        for (int64_t i = 0; i < a.value.count(); ++i) {
            r->elements.push_back(host_element(a.value, i));
        }
        return {r};
    });

const OpDef dims_to_tensor_def = primitive<DimsToTensor>(
    "dims_to_tensor", {Rounding::Matters, InHalf::Narrow, like_result},
    [](const DimsToTensor& a, std::span<const Type> in) {
        require(in.empty(), ErrorCode::InvalidModel, "dims_to_tensor takes no inputs, got ",
                in.size());
        require(is_integer(a.dtype) && bit_width(a.dtype) >= 32, ErrorCode::InvalidModel,
                "sizes are i32 or i64 tensors, got ", a.dtype);
        require(!a.scalar || a.values.size() == 1, ErrorCode::InvalidModel,
                "a scalar has 1 size, got ", a.values.size());
        Type t{a.dtype, {}};
        if (!a.scalar) {
            t.dims.emplace_back(static_cast<int64_t>(a.values.size()));
        }
        return std::vector<Type>{t};
    },
    [](const DimsToTensor& a, EvalArgs& e) {
        for (size_t i = 0; i < a.values.size(); ++i) {
            e.out[0].set_i64(static_cast<int64_t>(i), e.dim(a.values[i]));
        }
    },
    [](const DimsToTensor& a, std::span<const HostRef>, std::span<const Type>) {
        Shape shape;
        if (!a.scalar) {
            shape.push_back(static_cast<int64_t>(a.values.size()));
        }
        return std::vector<HostRef>{host_of(a.values, std::move(shape))};
    });

const OpDef tensor_to_dims_def = primitive<TensorToDims>(
    "tensor_to_dims", {Rounding::Matters, InHalf::Narrow, like_result},
    [](const TensorToDims& a, std::span<const Type> in) {
        require(in.size() == 1 && in[0].rank() == 1 && in[0].dtype == DType::I64 &&
                    in[0].dims[0].is_const(static_cast<int64_t>(a.symbols.size())),
                ErrorCode::InvalidModel, "tensor_to_dims binds ", a.symbols.size(),
                " sizes and takes one i64 tensor of as many elements, got ",
                in.empty() ? std::string("none") : to_text(in[0]));
        for (const Dim& d : a.symbols) {
            require(!d.symbol_name().empty(), ErrorCode::InvalidModel, "tensor_to_dims binds '", d,
                    "', which is not a symbol");
        }
        return std::vector<Type>{in[0]};
    },
    [](const TensorToDims&, EvalArgs& e) { e.out[0] = e.in[0]; },
    [](const TensorToDims& a, std::span<const HostRef>, std::span<const Type>) {
        return std::vector<HostRef>{host_of(a.symbols, {static_cast<int64_t>(a.symbols.size())})};
    });

const OpDef iota_def = primitive<Iota>(
    "iota", {Rounding::Matters, InHalf::Wide, like_result},
    [](const Iota& a, std::span<const Type> in) {
        require(in.empty(), ErrorCode::InvalidModel, "iota takes no inputs, got ", in.size());
        require(a.axis >= 0 && a.axis < static_cast<int64_t>(a.dims.size()),
                ErrorCode::InvalidModel, "iota counts along axis ", a.axis, " of ", a.dims.size(),
                ", expected 0 or more and less than that");
        return std::vector<Type>{{a.dtype, a.dims}};
    },
    [](const Iota& a, EvalArgs& e) {
        Tensor& t = e.out[0];
        auto axis = static_cast<size_t>(a.axis);
        int64_t stride = strides_of(t.shape())[axis];
        for (int64_t i = 0; i < t.count(); ++i) {
            t.set_i64(i, i / stride % t.shape()[axis]);
        }
    },
    [](const Iota& a, std::span<const HostRef>, std::span<const Type>) -> std::vector<HostRef> {
        if (a.dims.size() != 1 || !a.dims[0].is_const() || a.dims[0].value() > 1024) {
            return {};
        }
        Dims values;
        for (int64_t i = 0; i < a.dims[0].value(); ++i) {
            values.emplace_back(i);
        }
        return {host_of(values, {a.dims[0].value()})};
    });

extern const OpTable sources_ops;
static const OpDef* const list[] = {&constant_def, &dims_to_tensor_def, &tensor_to_dims_def,
                                    &iota_def};
const OpTable sources_ops = list;

} // namespace ingot
