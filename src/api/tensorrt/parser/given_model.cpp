// SPDX-License-Identifier: Apache-2.0
#include "api/tensorrt/parser/given_model.h"

#include "base/bytes.h"
#include "base/error.h"
#include "base/file.h"
#include "onnx/import_node.h"
#include "onnx/reader.h"

#include <string>

namespace ingot::api {

namespace {

std::shared_ptr<onnx::Model> read(const void* model, size_t size, const char* path,
                                  bool data_may_be_missing) {
    require(model != nullptr && size > 0, ErrorCode::InvalidArgument, "the model is empty: ", size,
            " bytes", model == nullptr ? " at nullptr" : "");
    const auto* first = static_cast<const std::byte*>(model);
    auto copy = std::make_shared<AlignedBytes>(first, first + size);
    std::string folder = path == nullptr || *path == '\0' ? "." : parent_folder(path);
    return std::make_shared<onnx::Model>(data_may_be_missing
                                             ? onnx::read_model_without_data(*copy, folder, copy)
                                             : onnx::read_model(*copy, folder, copy));
}

} // namespace

void GivenModel::read_file(const char* path) {
    require(path != nullptr, ErrorCode::InvalidArgument, "the file name is nullptr");
    model_ = std::make_shared<onnx::Model>(onnx::read_model_file(path));
}

void GivenModel::read_bytes(const void* model, size_t size, const char* path) {
    model_ = read(model, size, path, false);
}

void GivenModel::read_bytes_without_data(const void* model, size_t size, const char* path) {
    model_ = read(model, size, path, true);
}

void GivenModel::set_initializer(const char* name, const void* data, size_t size) {
    require(name != nullptr && data != nullptr, ErrorCode::InvalidArgument,
            "name or data is nullptr");
    onnx::set_initializer(*get(), name, {static_cast<const std::byte*>(data), size});
}

const std::shared_ptr<onnx::Model>& GivenModel::get() const {
    require(model_ != nullptr, ErrorCode::InvalidArgument,
            "there is no model; call loadModelProto() first");
    return model_;
}

} // namespace ingot::api
