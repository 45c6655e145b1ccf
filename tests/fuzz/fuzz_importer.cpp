// SPDX-License-Identifier: Apache-2.0
// Fuzz target: any ONNX model that reads is imported, optimised and verified, or refused. Only
// ingot::Error may come out, and a graph that was imported verifies after every pass.
#include "base/error.h"
#include "base/interrupt.h"
#include "onnx/importer.h"
#include "onnx/reader.h"
#include "passes/pipeline.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    using namespace ingot;
    try {
        onnx::Model model = onnx::read_model(std::as_bytes(std::span(data, size)), "", nullptr);
        onnx::ImportResult r = onnx::import_model(model);
        if (r.refusals.empty()) {
            PipelineOptions options;
            options.pass.fold_bytes = 1 << 16;
            options.pass.fold_operations = 1e6;
            run_aot_passes(r.graph, options);
        }
    } catch (const Error& e) {
        if (e.code() == ErrorCode::Internal) {
            __builtin_trap();
        }
    }
    return 0;
}
