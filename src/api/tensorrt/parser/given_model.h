// SPDX-License-Identifier: Apache-2.0
// GivenModel: the ONNX model that a caller hands to a parser, whole or in pieces.
#pragma once

#include "onnx/model.h"

#include <cstddef>
#include <memory>

namespace ingot::api {

class GivenModel {
public:
    void read_file(const char* path);
    /// Copies the bytes; `path` is their file, for external data, or null.
    void read_bytes(const void* model, size_t size, const char* path);
    /// The same for a model whose external data comes from set_initializer().
    void read_bytes_without_data(const void* model, size_t size, const char* path);
    void set_initializer(const char* name, const void* data, size_t size);
    /// Errors: InvalidArgument before a model is read.
    const std::shared_ptr<onnx::Model>& get() const;

private:
    std::shared_ptr<onnx::Model> model_;
};

} // namespace ingot::api
