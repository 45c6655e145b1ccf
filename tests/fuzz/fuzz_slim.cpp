// SPDX-License-Identifier: Apache-2.0
// Fuzz target: models through slim. Any bytes are no model, or refused with an Error, or slimmed to
// a model that can be written and read, and that slimming leaves unchanged.
#include "base/error.h"
#include "base/interrupt.h"
#include "onnx/reader.h"
#include "onnx/writer.h"
#include "slim/slim.h"

#include <cstdio>
#include <cstdlib>

namespace {

using namespace ingot;

constexpr uint64_t most_folded_bytes = 1 << 16;

void check(std::span<const std::byte> bytes, uint8_t choice) {
    onnx::Model model = onnx::read_model(bytes, "", nullptr);
    SlimOptions options;
    options.size_threshold = most_folded_bytes;
    options.keep_initializer_inputs = (choice & 1U) != 0;
    if ((choice & 2U) != 0) {
        options.skip = {"constant_folding"};
    }
    onnx::Model slim = slim_model(model, options);
    std::string written = onnx::write_model(slim);
    onnx::Model again = // what slim writes, the reader takes
        onnx::read_model(std::as_bytes(std::span(written)), "", nullptr);
    if (onnx::write_model(again) != written) {
        std::fprintf(stderr, "the model is written differently once it was read\n");
        std::abort();
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size == 0) {
        return 0;
    }
    set_time_limit(std::chrono::milliseconds(2000));
    try {
        check(std::as_bytes(std::span(data + 1, size - 1)), data[0]);
    } catch (const Error&) {
    }
    set_time_limit(std::chrono::milliseconds(0));
    return 0;
}
