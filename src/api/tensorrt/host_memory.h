// SPDX-License-Identifier: Apache-2.0
// HostMemory: IHostMemory over bytes that it owns.
#pragma once

#include "NvInferRuntime.h"
#include "base/bytes.h"

#include <utility>

namespace ingot::api {

class HostMemory final : public nvinfer1::IHostMemory {
public:
    explicit HostMemory(AlignedBytes bytes) : bytes_(std::move(bytes)) {}
    void* data() const noexcept override { return const_cast<std::byte*>(bytes_.data()); }
    std::size_t size() const noexcept override { return bytes_.size(); }
    nvinfer1::DataType type() const noexcept override { return nvinfer1::DataType::kINT8; }

private:
    AlignedBytes bytes_;
};

} // namespace ingot::api
