// SPDX-License-Identifier: Apache-2.0
#include "api/tensorrt/convert.h"

#include "base/error.h"

#include <array>
#include <cstring>
#include <iterator>

namespace ingot::api {

namespace {

struct TypeRow {
    nv::DataType api;
    std::string_view name;
    std::optional<DType> dtype;
};

using Api = nv::DataType;
constexpr std::array<TypeRow, 12> types = {{{Api::kFLOAT, "FLOAT", DType::F32},
                                            {Api::kHALF, "HALF", DType::F16},
                                            {Api::kINT8, "INT8", DType::I8},
                                            {Api::kINT32, "INT32", DType::I32},
                                            {Api::kBOOL, "BOOL", DType::Bool},
                                            {Api::kUINT8, "UINT8", DType::U8},
                                            {Api::kFP8, "FP8", DType::F8E4M3},
                                            {Api::kBF16, "BF16", DType::BF16},
                                            {Api::kINT64, "INT64", DType::I64},
                                            {Api::kINT4, "INT4", DType::I4},
                                            {Api::kFP4, "FP4", DType::F4E2M1},
                                            {Api::kE8M0, "E8M0", std::nullopt}}};

} // namespace

DType dtype_of(nv::DataType t) {
    auto number = static_cast<int64_t>(t);
    require(is_one_of(t), ErrorCode::InvalidArgument, "data type ", number, " does not exist");
    const TypeRow& row = types[static_cast<size_t>(number)];
    require(row.dtype.has_value(), ErrorCode::Unsupported, "type ", row.name, " is not supported");
    return *row.dtype;
}

nv::DataType data_type_of(DType t) {
    for (const TypeRow& row : types) {
        if (row.dtype == t) {
            return row.api;
        }
    }
    switch (t) {
    case DType::F64:
        return Api::kFLOAT;
    case DType::F8E5M2:
        return Api::kFP8;
    case DType::U4:
        return Api::kINT4;
    case DType::U64:
        return Api::kINT64;
    default:
        return Api::kINT32;
    }
}

std::string_view name_of(nv::DataType t) {
    return is_one_of(t) ? types[static_cast<size_t>(t)].name : "?";
}

nv::Dims no_dims() {
    return {-1, {}};
}

nv::Dims api_dims(const Dims& dims) {
    if (dims.size() > nv::Dims::MAX_DIMS) {
        return no_dims();
    }
    nv::Dims out{static_cast<int32_t>(dims.size()), {}};
    for (size_t i = 0; i < dims.size(); ++i) {
        out.d[i] = dims[i].is_const() ? dims[i].value() : -1;
    }
    return out;
}

nv::Dims api_dims(const Shape& shape) {
    return api_dims(to_dims(shape));
}

Shape numbers_of(const nv::Dims& d, std::string_view what) {
    require(d.nbDims >= 0 && d.nbDims <= nv::Dims::MAX_DIMS, ErrorCode::InvalidArgument, what,
            " has ", d.nbDims, " dimensions, expected 0 to ", nv::Dims::MAX_DIMS);
    return {d.d, d.d + d.nbDims};
}

std::string text_of(const nv::Dims& d) {
    if (d.nbDims < 0 || d.nbDims > nv::Dims::MAX_DIMS) {
        return str("(", d.nbDims, " dimensions)");
    }
    std::string out = "[";
    for (int32_t i = 0; i < d.nbDims; ++i) {
        append(out, str(i == 0 ? "" : ",", d.d[i]));
    }
    return out + "]";
}

std::vector<int64_t> axes_of(uint32_t mask, int64_t rank, std::string_view what) {
    std::vector<int64_t> out;
    for (int64_t i = 0; i < 32; ++i) {
        if (((mask >> i) & 1U) != 0) {
            require(i < rank, ErrorCode::InvalidArgument, what, " name axis ", i,
                    ", but the input has ", rank, " dimensions");
            out.push_back(i);
        }
    }
    return out;
}

bool same_weights(const nv::Weights& a, const nv::Weights& b) {
    return a.values == b.values && a.count == b.count && a.type == b.type;
}

void check_weights(const nv::Weights& w, std::string_view what) {
    require(w.count >= 0, ErrorCode::InvalidArgument, what, " have a count of ", w.count);
    require(w.count == 0 || w.values != nullptr, ErrorCode::InvalidArgument, what,
            " have a count of ", w.count, ", but values is nullptr");
    require(is_one_of(w.type), ErrorCode::InvalidArgument, what, " have data type ",
            static_cast<int64_t>(w.type), ", which does not exist");
}

Tensor weights_tensor(const nv::Weights& w, Shape shape, std::string_view what) {
    check_weights(w, what);
    int64_t expected = count_of(shape);
    require(w.count == expected, ErrorCode::InvalidArgument, what, " have a count of ", w.count,
            ", expected ", expected, " for ", to_text(Type{dtype_of(w.type), to_dims(shape)}));
    DType dtype = dtype_of(w.type);
    auto bytes = static_cast<size_t>(byte_size(dtype, w.count));
    auto alignment = static_cast<uintptr_t>(std::max(8, bit_width(dtype))) / 8;
    std::span<const std::byte> memory(static_cast<const std::byte*>(w.values), bytes);
    if (reinterpret_cast<uintptr_t>(w.values) % alignment == 0) {
        return Tensor::wrap(dtype, std::move(shape), memory, nullptr);
    }
    Tensor copy = Tensor::empty(dtype, std::move(shape));
    std::memcpy(copy.mutable_bytes().data(), memory.data(), bytes);
    return copy;
}

} // namespace ingot::api
