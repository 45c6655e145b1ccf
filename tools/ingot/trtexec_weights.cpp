// SPDX-License-Identifier: Apache-2.0
// trtexec: refitted weights, and weights that stay on the host.
#include "api/options/build.h"
#include "backends/cuda/options.h"
#include "base/error.h"
#include "common.h"
#include "onnx/reader.h"
#include "trtexec.h"
#include "workflow/refit.h"

#include <algorithm>
#include <cmath>

namespace ingot::tool {

namespace {

constexpr std::string_view budget_option = "--weightStreamingBudget";

double number_of(std::string_view text, const std::string& whole) {
    try {
        size_t used = 0;
        double v = std::stod(std::string(text), &used);
        if (used == text.size() && std::isfinite(v)) {
            return v;
        }
    } catch (const std::exception&) { // reported below
    }
    fail(ErrorCode::InvalidArgument, budget_option, "=", whole,
         ": expected -2, -1, a share such as 50%, or bytes such as 4194304 or 4M");
}

int64_t budget_bytes(const std::string& text, int64_t all, int64_t automatic) {
    require(!text.empty(), ErrorCode::InvalidArgument, budget_option, " needs a value");
    std::string_view digits = text;
    std::string_view unit;
    size_t at = text.find_first_not_of("-+.0123456789");
    if (at != std::string::npos) {
        digits = digits.substr(0, at);
        unit = std::string_view(text).substr(at);
    }
    double n = number_of(digits, text);
    if (unit.empty() && n == -2) {
        return all;
    }
    if (unit.empty() && n == -1) {
        return automatic;
    }
    double factor = unit.empty() || unit == "B" ? 1
                    : unit == "K"               ? 0x1p10
                    : unit == "M"               ? 0x1p20
                    : unit == "G"               ? 0x1p30
                    : unit == "%"               ? static_cast<double>(all) / 100
                                                : -1;
    require(n >= 0 && factor >= 0 && (unit != "%" || n <= 100), ErrorCode::InvalidArgument,
            budget_option, "=", text,
            ": expected -2, -1, a share such as 50%, or bytes such as 4194304 or 4M");
    return static_cast<int64_t>(std::min(n * factor, 0x1p62));
}

/// Half of the free memory: the rest is for activations, inputs and results.
int64_t automatic_budget(const Backend& backend, int64_t all) {
    int64_t free = backend.memory().free;
    return free < 0 ? all : std::min(all, free / 2);
}

double mebibytes(int64_t bytes) {
    return static_cast<double>(bytes) / 0x1p20;
}

void dump_refit(const Engine& engine) {
    info("=== Refittable weights ===");
    for (const Weight& w : replaceable_weights(engine)) {
        info(str(w.name, ": ", Type{w.dtype, to_dims(w.shape)}));
    }
}

void time_refit(const Engine& engine) {
    constexpr int runs = 3;
    NamedTensors weights = named_constants(*engine.source()->graph);
    std::erase_if(weights,
                  [&](const auto& w) { return engine.source()->find(w.first) == nullptr; });
    double total = 0;
    for (int i = 0; i < runs; ++i) {
        double start = seconds_now();
        refitted(engine, weights);
        total += seconds_now() - start;
    }
    info(str("Total refit time = ", total * 1000, " milliseconds in ", runs,
             " iterations, average time = ", total * 1000 / runs, " milliseconds."));
}

} // namespace

void refit_engine(TrtexecRun& run) {
    const Options& o = run.t.o;
    bool asked = !o.build().refit_from.empty() || o.build().dump_refit || o.build().time_refit;
    if (!asked) {
        return;
    }
    require(run.engine->source() != nullptr, ErrorCode::InvalidArgument,
            "the engine cannot be refitted: build it with --refit or --stripWeights");
    if (o.build().dump_refit) {
        dump_refit(*run.engine);
    }
    if (!o.build().refit_from.empty()) {
        double start = seconds_now();
        onnx::Model model = onnx::read_model_file(o.build().refit_from);
        run.engine =
            with_place([&] { return o.build().refit_from; },
                       [&] { return refitted(*run.engine, weights_of_model(*run.engine, model)); });
        info(str("Engine refitted in ", seconds_now() - start, " sec."));
    }
    if (o.build().time_refit) {
        require(!run.engine->weights_missing(), ErrorCode::InvalidArgument,
                "--timeRefit: the engine has no weights; give --refitFromOnnx too");
        time_refit(*run.engine);
    }
}

void set_weight_budget(TrtexecRun& run) {
    const std::string& text = run.t.o.build().streaming_budget;
    int64_t all = streamable_weight_bytes(run.engine->graph());
    int64_t budget = budget_bytes(text, all, automatic_budget(*run.backend, all));
    if (text == "-2") {
        return;
    }
    require(run.engine->metadata().contains(streaming_property), ErrorCode::InvalidArgument,
            budget_option, ": the engine was built without --allowWeightStreaming");
    if (run.on_cpu()) {
        info("Weight streaming: the weights lie in the memory of the host, where the CPU reads "
             "them");
        return;
    }
    info(str("Weight streaming budget: ", mebibytes(std::min(budget, all)), " MiB of ",
             mebibytes(all), " MiB"));
    run.compile.of<CudaOptions>().weight_budget = budget >= all ? -1 : budget;
}

} // namespace ingot::tool
