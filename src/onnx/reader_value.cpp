// SPDX-License-Identifier: Apache-2.0
// ValueInfoProto, and the tensor part of TypeProto; other kinds of type are kept as bytes.
#include "onnx/reader.h"
#include "onnx/reader_parts.h"

#include <array>

namespace ingot::onnx {
namespace {

ShapeDim read_dim(Bytes message, ReadContext& context) {
    ShapeDim dim;
    Wire w(message, context.origin);
    while (w.next()) {
        switch (w.field()) {
        case 1:
            // Exporters write -1 for an unknown dimension.
            dim.value = w.once("dim_value").integer();
            if (dim.value < -1) {
                w.bad(str("is ", dim.value));
            }
            dim.param.clear();
            break;
        case 2:
            dim.param = context.budget.text(w.once("dim_param").text());
            dim.value = -1;
            break;
        default:
            w.skip();
        }
    }
    return dim;
}

std::vector<ShapeDim> read_shape(Bytes message, ReadContext& context) {
    std::vector<ShapeDim> dims;
    Wire w(message, context.origin);
    while (w.next()) {
        if (w.field() != 1) {
            w.skip();
            continue;
        }
        const Bytes part = w.repeated("dim").bytes();
        if (dims.size() == max_rank) {
            w.bad(str("has more than ", max_rank, " entries"));
        }
        context.budget.take_element(dims);
        dims.push_back(read_dim(part, context));
    }
    return dims;
}

void read_tensor_type(Bytes message, ValueInfo& value, ReadContext& context) {
    Wire w(message, context.origin);
    while (w.next()) {
        switch (w.field()) {
        case 1:
            value.elem_type = w.once("elem_type").int32();
            break;
        case 2:
            value.dims = read_shape(w.once("shape").bytes(), context);
            value.has_shape = true;
            break;
        default:
            w.skip();
        }
    }
}

ValueKind kind_of(uint32_t field) {
    switch (field) {
    case 1:
        return ValueKind::Tensor;
    case 4:
        return ValueKind::Sequence;
    case 5:
        return ValueKind::Map;
    case 7:
        return ValueKind::Opaque;
    case 8:
        return ValueKind::SparseTensor;
    case 9:
        return ValueKind::Optional;
    default:
        return ValueKind::None;
    }
}

void read_type(Bytes message, ValueInfo& value, ReadContext& context) {
    Wire w(message, context.origin);
    while (w.next()) {
        const ValueKind kind = kind_of(w.field());
        if (kind == ValueKind::None) {
            w.skip();
            continue;
        }
        const Bytes part = w.once("type").bytes();
        if (value.kind != ValueKind::None) {
            w.bad("is a second kind of type for one value");
        }
        value.kind = kind;
        if (kind == ValueKind::Tensor) {
            read_tensor_type(part, value, context);
        }
    }
    if (value.kind != ValueKind::None && value.kind != ValueKind::Tensor) {
        context.budget.take(message.size());
        value.type_message.assign(reinterpret_cast<const char*>(message.data()), message.size());
    }
}

} // namespace

std::string_view name(ValueKind k) {
    constexpr std::array<std::string_view, 7> names = {"none",   "tensor",        "sequence", "map",
                                                       "opaque", "sparse_tensor", "optional"};
    return names.at(static_cast<size_t>(k));
}

ValueInfo read_value_info_message(Bytes message, ReadContext& context) {
    ValueInfo v;
    Wire w(message, context.origin);
    while (w.next()) {
        switch (w.field()) {
        case 1:
            v.name = context.budget.text(w.once("name").text());
            break;
        case 2:
            read_type(w.once("type").bytes(), v, context);
            break;
        default:
            w.skip();
        }
    }
    return v;
}

} // namespace ingot::onnx
