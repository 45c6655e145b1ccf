// SPDX-License-Identifier: Apache-2.0
// Element types and shapes in the server's words.
#include "plugins/triton/engine.h"

namespace ingot::triton {

namespace nv = nvinfer1;

namespace {

struct TypeRow {
    nv::DataType type;
    TRITONSERVER_DataType server;
    std::string_view config;
    size_t bytes;
};
constexpr TypeRow types[] = {
    {nv::DataType::kFLOAT, TRITONSERVER_TYPE_FP32, "TYPE_FP32", 4},
    {nv::DataType::kHALF, TRITONSERVER_TYPE_FP16, "TYPE_FP16", 2},
    {nv::DataType::kBF16, TRITONSERVER_TYPE_BF16, "TYPE_BF16", 2},
    {nv::DataType::kINT8, TRITONSERVER_TYPE_INT8, "TYPE_INT8", 1},
    {nv::DataType::kUINT8, TRITONSERVER_TYPE_UINT8, "TYPE_UINT8", 1},
    {nv::DataType::kINT32, TRITONSERVER_TYPE_INT32, "TYPE_INT32", 4},
    {nv::DataType::kINT64, TRITONSERVER_TYPE_INT64, "TYPE_INT64", 8},
    {nv::DataType::kBOOL, TRITONSERVER_TYPE_BOOL, "TYPE_BOOL", 1},
};

const TypeRow* find(nv::DataType type) {
    for (const TypeRow& row : types) {
        if (row.type == type) {
            return &row;
        }
    }
    return nullptr;
}

} // namespace

std::string_view config_type(nv::DataType type) {
    const TypeRow* row = find(type);
    return row == nullptr ? std::string_view() : row->config;
}

TRITONSERVER_DataType server_type(nv::DataType type) {
    const TypeRow* row = find(type);
    return row == nullptr ? TRITONSERVER_TYPE_INVALID : row->server;
}

size_t element_bytes(nv::DataType type) {
    const TypeRow* row = find(type);
    return row == nullptr ? 0 : row->bytes;
}

std::string_view type_name(TRITONSERVER_DataType type) {
    constexpr std::string_view names[] = {"INVALID", "BOOL", "UINT8", "UINT16", "UINT32",
                                          "UINT64",  "INT8", "INT16", "INT32",  "INT64",
                                          "FP16",    "FP32", "FP64",  "BYTES",  "BF16"};
    auto i = static_cast<size_t>(type);
    return i < std::size(names) ? names[i] : std::string_view("an unknown type");
}

std::string dims_text(const std::vector<int64_t>& dims) {
    return str(dims);
}

std::vector<int64_t> to_vector(const nv::Dims& dims) {
    return {dims.d, dims.d + std::max(dims.nbDims, 0)};
}

nv::Dims to_dims(const std::vector<int64_t>& dims) {
    nv::Dims out{static_cast<int32_t>(dims.size()), {}};
    CHECK(dims.size() <= std::size(out.d), "a shape of rank ", dims.size());
    std::copy(dims.begin(), dims.end(), out.d);
    return out;
}

int64_t element_count(const std::vector<int64_t>& dims) {
    constexpr int64_t most = int64_t{1} << 62U;
    int64_t count = 1;
    for (int64_t d : dims) {
        require(d <= 0 || count <= most / d, ErrorCode::InvalidArgument, "shape ", dims_text(dims),
                " has too many elements");
        count *= d;
    }
    return count;
}

} // namespace ingot::triton
