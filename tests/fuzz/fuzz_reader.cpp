// SPDX-License-Identifier: Apache-2.0
// Fuzz target: the ONNX reader on any bytes, and the writer and the reader again on accepted
// models. The reader may throw only ingot::Error; accepted models must be writable or refused as
// Unsupported, and read back to the same bytes.
#include "base/error.h"
#include "onnx/reader.h"
#include "onnx/writer.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace {

std::optional<std::string> write_if_supported(const ingot::onnx::Model& model) {
    try {
        return ingot::onnx::write_model(model);
    } catch (const ingot::Error& e) {
        CHECK(e.code() == ingot::ErrorCode::Unsupported, e.what());
        return std::nullopt;
    }
}

std::optional<ingot::onnx::Model> read_if_valid(std::span<const std::byte> bytes) {
    try {
        return ingot::onnx::read_model(bytes, "", nullptr);
    } catch (const ingot::Error&) {
        return std::nullopt;
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const auto bytes = std::as_bytes(std::span(data, size));
    try {
        ingot::onnx::read_tensor(bytes);
    } catch (const ingot::Error&) {
        // Most inputs are no tensor, which the reader must report.
    }
    const std::optional<ingot::onnx::Model> model = read_if_valid(bytes);
    const std::optional<std::string> written = model ? write_if_supported(*model) : std::nullopt;
    if (written) {
        const auto again = std::as_bytes(std::span(written->data(), written->size()));
        const ingot::onnx::Model copy = ingot::onnx::read_model(again, "", nullptr);
        CHECK(ingot::onnx::write_model(copy) == *written, "writing is not stable");
    }
    return 0;
}
