// SPDX-License-Identifier: Apache-2.0
// ingot quantize: narrow weights, without calibration data.
#include "api/options/quantize.h"

#include "api/options/build.h"
#include "api/options/common.h"
#include "base/error.h"
#include "commands.h"
#include "common.h"
#include "onnx/reader.h"
#include "onnx/writer.h"
#include "workflow/quantization/quantize_weights.h"

#include <cstdio>

namespace ingot::tool {

int quantize(const Options& o) {
    int formats = int{o.build().int8} + int{o.quantize().fp8} + int{o.quantize().int4};
    require(formats == 1, ErrorCode::InvalidArgument, formats == 0 ? "say which: " : "give one of ",
            "--int8, --fp8 or --int4");
    require(!o.common().output.empty(), ErrorCode::InvalidArgument,
            "say where to write the model with -o");
    QuantizeWeightsOptions options;
    options.format = o.build().int8     ? WeightFormat::Int8
                     : o.quantize().fp8 ? WeightFormat::Fp8
                                        : WeightFormat::Int4;
    onnx::Model model = onnx::read_model_file(o.model);
    std::vector<QuantizedTensorReport> report;
    onnx::Model out = with_place([&] { return o.model; },
                                 [&] { return quantised_weights(model, options, &report); });
    onnx::write_model_file(out, o.common().output);
    size_t kept = 0;
    for (const QuantizedTensorReport& r : report) {
        if (!r.kept.empty()) {
            ++kept;
            std::printf("stays: '%s', %s\n", r.name.c_str(), r.kept.c_str());
        } else if (o.common().verbose) {
            std::printf("%s: '%s', error %.3g %%\n", r.type.c_str(), r.name.c_str(), r.error * 100);
        }
    }
    std::printf("%s: %zu weights quantised, %zu stay\n", o.common().output.c_str(),
                report.size() - kept, kept);
    return 0;
}

} // namespace ingot::tool
