// SPDX-License-Identifier: Apache-2.0
// ingot calibrate: from sample inputs to the scale of each tensor, as a cache or inside the model.
#include "workflow/quantization/calibrate.h"

#include "api/options/common.h"
#include "api/options/quantize.h"
#include "api/options/run.h"
#include "base/error.h"
#include "commands.h"
#include "common.h"
#include "onnx/reader.h"
#include "onnx/writer.h"
#include "workflow/quantization/calibration_data.h"
#include "workflow/quantization/quantize.h"

#include <algorithm>
#include <cstdio>

namespace ingot::tool {

namespace {

std::string algorithm(const Options& o) {
    const std::string& given = o.quantize().algorithm;
    return !given.empty() ? given : o.quantize().fp8 ? "minmax" : "entropy2";
}

CalibrationOptions calibration_options(const Options& o) {
    CalibrationOptions c;
    c.method = calibration_method(algorithm(o));
    c.percentile = o.quantize().calibration_percentile;
    c.quantile = o.quantize().quantile;
    c.cutoff = o.quantize().regression_cutoff;
    check_options(c);
    bool by_steps = c.method == CalibrationMethod::Entropy2 ||
                    c.method == CalibrationMethod::Entropy || c.method == CalibrationMethod::Mse;
    require(!o.quantize().fp8 || !by_steps, ErrorCode::InvalidArgument, "--algorithm ",
            algorithm(o),
            " weighs clipping against the steps of int8, which f8e4m3 does not have: --fp8 takes "
            "minmax, percentile or legacy");
    return c;
}

CalibrationDataOptions data_options(const Options& o) {
    CalibrationDataOptions d;
    d.folder = o.quantize().data;
    d.shapes = parse_shapes(o.common().shapes);
    d.image = {parse_numbers(o.run().mean), parse_numbers(o.run().std), o.run().layout};
    return d;
}

CalibrationCache run_batches(const Options& o, const onnx::Model& model) {
    Graph g = calibration_graph(model);
    CalibrationData data(g, data_options(o));
    Calibrator calibrator(g, choose_backend(o), calibration_options(o), compile_options(o));
    int64_t count =
        o.quantize().batches > 0 ? std::min(o.quantize().batches, data.batches()) : data.batches();
    for (int64_t i = 0; i < count; ++i) {
        calibrator.add_batch(data.batch(i));
    }
    std::printf("%lld batches, %zu tensors, %s\n", static_cast<long long>(count),
                calibrator.tensors().size(), algorithm(o).c_str());
    return calibrator.finish();
}

} // namespace

int calibrate(const Options& o) {
    require(!o.common().output.empty(), ErrorCode::InvalidArgument,
            "say where to write the result with -o: a calibration cache, or a model (*.onnx)");
    require(!o.quantize().data.empty(), ErrorCode::InvalidArgument,
            "say where the samples are with --data DIR: .npy, .png or .jpg files, or a folder of "
            "them for each input");
    calibration_options(o);
    bool writes_model = o.common().output.ends_with(".onnx");
    require(writes_model || !o.quantize().fp8, ErrorCode::InvalidArgument,
            "--fp8 writes a model, and '", o.common().output,
            "' does not end with .onnx: a calibration cache has the scales of int8 alone");
    onnx::Model model = onnx::read_model_file(o.model);
    auto place = [&] { return o.model; };
    CalibrationCache cache = with_place(place, [&] { return run_batches(o, model); });
    if (!writes_model) {
        write_calibration_cache(cache, o.common().output);
        std::printf("%s: %zu scales\n", o.common().output.c_str(), cache.scales.size());
        return 0;
    }
    QuantizeReport report;
    auto format = o.quantize().fp8 ? ProductFormat::Fp8 : ProductFormat::Int8;
    const char* type = o.quantize().fp8 ? "f8e4m3" : "int8";
    onnx::Model out = with_place(place, [&] { return quantised(model, cache, &report, format); });
    require(!report.products.empty(), ErrorCode::InvalidArgument, o.model,
            ": nothing would become ", type,
            ": there is no convolution or matrix product of f32 with a constant weight",
            report.small.empty() ? "" : " whose sums have 64 products or more");
    onnx::write_model_file(out, o.common().output);
    std::printf("%s: %zu products of %s, %zu tensors stored as %s\n", o.common().output.c_str(),
                report.products.size(), type, report.tensors.size(), type);
    for (const std::string& name : report.small) {
        std::printf("in floats, being small: '%s'\n", name.c_str());
    }
    for (const std::string& name : report.missing) {
        std::printf("in floats: readers of '%s'\n", name.c_str());
    }
    return 0;
}

} // namespace ingot::tool
