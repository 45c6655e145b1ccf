// SPDX-License-Identifier: Apache-2.0
#include "api/tensorrt/builder/int8.h"

#include "api/tensorrt/runtime/place.h"
#include "ingot.h"
#include "ir/rewrite.h"
#include "workflow/quantization/calibrate.h"
#include "workflow/quantization/quantize_graph.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace ingot::api {

namespace {

using Severity = nv::ILogger::Severity;

constexpr float int8_steps = 127;

bool quantises(const Graph& g) {
    bool any = false;
    visit_nodes(g, [&](const Graph&, const Node& n) {
        any = any || n.is(ops::quantize_def) || n.is(ops::dequantize_def);
    });
    return any;
}

nv::IInt8LegacyCalibrator* as_legacy(nv::IInt8Calibrator& c) {
    return c.getAlgorithm() == nv::CalibrationAlgoType::kLEGACY_CALIBRATION
               ? static_cast<nv::IInt8LegacyCalibrator*>(&c)
               : nullptr;
}

CalibrationOptions options_of(nv::IInt8Calibrator& c) {
    CalibrationOptions o;
    nv::CalibrationAlgoType algorithm = c.getAlgorithm();
    switch (algorithm) {
    case nv::CalibrationAlgoType::kENTROPY_CALIBRATION:
        o.method = CalibrationMethod::Entropy;
        break;
    case nv::CalibrationAlgoType::kENTROPY_CALIBRATION_2:
        o.method = CalibrationMethod::Entropy2;
        break;
    case nv::CalibrationAlgoType::kMINMAX_CALIBRATION:
        o.method = CalibrationMethod::MinMax;
        break;
    case nv::CalibrationAlgoType::kLEGACY_CALIBRATION:
        o.method = CalibrationMethod::Legacy;
        o.quantile = as_legacy(c)->getQuantile();
        o.cutoff = as_legacy(c)->getRegressionCutoff();
        break;
    default:
        require(algorithm == kMSE_CALIBRATION, ErrorCode::InvalidArgument,
                "calibrator: getAlgorithm() is ", static_cast<int32_t>(algorithm),
                ", expected 0 to 3, or 100 for the least mean squared error");
        o.method = CalibrationMethod::Mse;
    }
    with_place([] { return std::string("calibrator"); }, [&] { check_options(o); });
    return o;
}

// --- batches -------------------------------------------------------------------------------------

/// The input shapes of one batch.
class BatchShapes {
public:
    BatchShapes(const Graph& g, const BuilderConfig& config, int64_t batch)
        : graph_(g), report_(config.report()), batch_(batch) {
        chosen_ = config.calibration_profile() != nullptr;
        if (chosen_) {
            profile_ = config.calibration_profile()->profile();
        } else if (!config.profiles().empty()) {
            profile_ = config.profiles()[0]->profile();
        }
    }

    std::vector<Shape> all() const {
        std::vector<Shape> out;
        for (Value v : graph_.inputs()) {
            out.push_back(shape(v));
        }
        return out;
    }

private:
    Shape shape(Value v) const {
        const Type& t = graph_.type(v);
        const std::string& name = graph_.value_name(v);
        if (std::optional<Shape> fixed = as_const(t.dims)) {
            if (batch_ > 1 && !fixed->empty() && (*fixed)[0] != batch_) {
                report_.log(Severity::kWARNING,
                            str("calibration: getBatchSize() is ", batch_, ", but input '", name,
                                "' is ", t, ": of each batch the first ", (*fixed)[0],
                                " are taken"));
            }
            return *fixed;
        }
        const ShapeRange* range = profile_.find(name);
        require(range != nullptr, ErrorCode::InvalidArgument, "calibration: input '", name, "' is ",
                t, ": set its shape in a profile, with setCalibrationProfile()");
        Shape shape = range->opt;
        if (!chosen_ && batch_ > 0 && !t.dims.empty() && !t.dims[0].is_const()) {
            shape[0] = batch_;
        }
        return shape;
    }

    const Graph& graph_;
    const Report& report_;
    int64_t batch_;
    bool chosen_ = false;
    Profile profile_;
};

/// The next batch as tensors of the host; false when there are no more.
bool next_batch(nv::IInt8Calibrator& calibrator, const Graph& g, const std::vector<Shape>& shapes,
                const Backend& backend, std::vector<Tensor>& batch) {
    std::vector<const char*> names;
    for (Value v : g.inputs()) {
        names.push_back(g.value_name(v).c_str());
    }
    std::vector<void*> addresses(names.size(), nullptr);
    if (!calibrator.getBatch(addresses.data(), names.data(), static_cast<int32_t>(names.size()))) {
        return false;
    }
    batch.clear();
    for (size_t i = 0; i < names.size(); ++i) {
        require(addresses[i] != nullptr, ErrorCode::InvalidArgument,
                "calibrator: getBatch() gave no address for input '", names[i], "'");
        Tensor t = Tensor::empty(g.type(g.inputs()[i]).dtype, shapes[i]);
        backend.read(t.mutable_bytes().data(), addresses[i], t.bytes().size());
        batch.push_back(std::move(t));
    }
    return true;
}

/// Reads histograms of an earlier build that a legacy calibrator kept.
bool take_histograms(nv::IInt8LegacyCalibrator* legacy, Calibrator& c, const Report& report) {
    size_t length = 0;
    const void* data = legacy == nullptr ? nullptr : legacy->readHistogramCache(length);
    if (data == nullptr || length == 0) {
        return false;
    }
    std::span<const std::byte> bytes(static_cast<const std::byte*>(data), length);
    bool good = c.restore(bytes);
    if (!good) {
        report.log(Severity::kWARNING, "calibration: the histogram cache is of another network, or "
                                       "damaged, and is not used");
    }
    return good;
}

CalibrationCache calibrate(nv::IInt8Calibrator& calibrator, const Graph& g,
                           const BuilderConfig& config, const std::function<void()>& batch_done) {
    CalibrationOptions options = options_of(calibrator);
    int64_t size = calibrator.getBatchSize();
    require(size >= 0, ErrorCode::InvalidArgument, "calibrator: getBatchSize() is ", size,
            ", expected 0 or more");
    std::vector<Shape> shapes = BatchShapes(g, config, size).all();
    const Backend& backend = *find_place(config.device, config.ordinal).backend;
    Calibrator c(g, backend, options);
    nv::IInt8LegacyCalibrator* legacy = as_legacy(calibrator);
    if (!take_histograms(legacy, c, config.report())) {
        std::vector<Tensor> batch;
        while (next_batch(calibrator, g, shapes, backend, batch)) {
            c.add_batch(batch);
            batch_done();
        }
        require(c.batches() > 0, ErrorCode::InvalidArgument,
                "calibrator: getBatch() gave no batch; give at least one, or a cache by "
                "readCalibrationCache()");
        config.report().log(Severity::kINFO, str("calibration: ", c.batches(), " batches, ",
                                                 c.tensors().size(), " tensors"));
        if (legacy != nullptr) {
            std::string kept = c.histograms();
            legacy->writeHistogramCache(kept.data(), kept.size());
        }
    }
    return c.finish();
}

CalibrationCache scales_of(nv::IInt8Calibrator& calibrator, const Graph& g,
                           const BuilderConfig& config, const std::function<void()>& batch_done) {
    size_t length = 0;
    const void* cached = calibrator.readCalibrationCache(length);
    if (cached != nullptr && length > 0) {
        std::string_view text(static_cast<const char*>(cached), length);
        CalibrationCache cache = parse_calibration_cache(text, "readCalibrationCache()");
        std::string_view wanted = cache_algorithm(options_of(calibrator).method);
        if (cache.algorithm != wanted) {
            config.report().log(Severity::kWARNING,
                                str("calibration: the cache is of ", cache.algorithm,
                                    ", the calibrator's algorithm is ", wanted,
                                    "; the cache is used"));
        }
        return cache;
    }
    CalibrationCache cache = calibrate(calibrator, g, config, batch_done);
    std::string text = print_calibration_cache(cache);
    calibrator.writeCalibrationCache(text.data(), text.size());
    return cache;
}

// --- ranges --------------------------------------------------------------------------------------

/// Takes dynamic ranges set on tensors; they override the calibrator's.
void take_ranges(const Network& network, CalibrationCache& cache) {
    auto take = [&](const NetworkTensor& t) {
        if (!t.dynamicRangeIsSet()) {
            return;
        }
        float most = std::max(std::abs(t.getDynamicRangeMin()), std::abs(t.getDynamicRangeMax()));
        float scale = most > 0 ? most / int8_steps : 1;
        auto it = std::find_if(cache.scales.begin(), cache.scales.end(),
                               [&](const auto& s) { return s.first == t.name(); });
        if (it != cache.scales.end()) {
            it->second = scale;
        } else {
            cache.scales.emplace_back(t.name(), scale);
        }
    };
    for (const auto& t : network.inputs()) {
        take(*t);
    }
    for (const auto& layer : network.layers()) {
        for (const auto& t : layer->outputs) {
            take(*t);
        }
    }
}

void report_on(const QuantizeReport& r, const Report& report) {
    report.log(Severity::kINFO, str("INT8: ", r.products.size(), " products of int8, ",
                                    r.tensors.size(), " tensors stored as int8"));
    if (r.products.empty()) {
        report.log(Severity::kWARNING,
                   "INT8: nothing became int8: there is no convolution or matrix product of f32 "
                   "with a constant weight and a range for its input");
    }
    if (!r.missing.empty()) {
        report.log(Severity::kWARNING,
                   str("INT8: ", r.missing.size(),
                       " products stay in floats, since their inputs have no range; the "
                       "first is '",
                       r.missing[0], "'"));
    }
}

} // namespace

Graph int8_graph(Graph g, const Network& network, const BuilderConfig& config,
                 const std::function<void()>& batch_done) {
    nv::IInt8Calibrator* calibrator = config.getInt8Calibrator();
    if (quantises(g)) {
        if (calibrator != nullptr) {
            config.report().log(
                Severity::kWARNING,
                "the network quantises by itself: neither calibrator nor dynamic ranges are used");
        }
        return g;
    }
    CalibrationCache cache;
    if (calibrator != nullptr) {
        cache = scales_of(*calibrator, g, config, batch_done);
    }
    take_ranges(network, cache);
    if (cache.scales.empty() && config.guesses_ranges()) {
        std::vector<Profile> profiles;
        for (const auto& p : config.profiles()) {
            profiles.push_back(p->profile());
        }
        cache = guessed_ranges(g, profiles);
    }
    require(!cache.scales.empty(), ErrorCode::InvalidArgument,
            "kINT8 is set, but the ranges of tensors are not known: give a calibrator "
            "(setInt8Calibrator), dynamic ranges (ITensor::setDynamicRange) or a network with "
            "quantise layers, or ask for ranges guessed from random inputs, which make results "
            "poor, with setBuildRoute(\"",
            BuilderConfig::guess_route, "\")");
    QuantizeReport report;
    Graph out = quantised_graph(g, cache, &report);
    report_on(report, config.report());
    return out;
}

} // namespace ingot::api
