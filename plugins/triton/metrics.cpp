// SPDX-License-Identifier: Apache-2.0
#include "plugins/triton/metrics.h"

namespace ingot::triton {

namespace {

struct FamilyRow {
    TRITONSERVER_MetricKind kind;
    const char* name;
    const char* help;
};
constexpr FamilyRow rows[metric_kinds] = {
    {TRITONSERVER_METRIC_KIND_COUNTER, "ingot_runs", "Runs of the engine"},
    {TRITONSERVER_METRIC_KIND_COUNTER, "ingot_padded_rows",
     "Rows that were added to batches to reach a prepared size"},
    {TRITONSERVER_METRIC_KIND_COUNTER, "ingot_unprepared_shapes",
     "Runs of shapes that were not prepared before the model was ready"},
    {TRITONSERVER_METRIC_KIND_COUNTER, "ingot_preparing_seconds",
     "Seconds in which shapes were planned and their kernels compiled, summed over instances"},
    {TRITONSERVER_METRIC_KIND_GAUGE, "ingot_device_bytes",
     "Bytes of GPU memory of weights, contexts, inputs and outputs"},
    {TRITONSERVER_METRIC_KIND_GAUGE, "ingot_device_lost",
     "1 once the device is lost, shortly before the process ends"},
};

struct ParameterDelete {
    void operator()(TRITONSERVER_Parameter* p) const { TRITONSERVER_ParameterDelete(p); }
};
using Label = std::unique_ptr<TRITONSERVER_Parameter, ParameterDelete>;

} // namespace

MetricFamilies::MetricFamilies() {
    for (size_t i = 0; i < metric_kinds; ++i) {
        TRITONSERVER_MetricFamily* family = nullptr;
        TRITONSERVER_Error* error =
            TRITONSERVER_MetricFamilyNew(&family, rows[i].kind, rows[i].name, rows[i].help);
        if (error == nullptr) {
            families_[i].reset(family);
        }
        ignore(error); // metrics are switched off
    }
}

ModelMetrics::ModelMetrics(const MetricFamilies& families, const std::string& model,
                           uint64_t version) {
    std::string number = str(version);
    Label labels[] = {
        Label(TRITONSERVER_ParameterNew("model", TRITONSERVER_PARAMETER_STRING, model.c_str())),
        Label(TRITONSERVER_ParameterNew("version", TRITONSERVER_PARAMETER_STRING, number.c_str())),
    };
    const TRITONSERVER_Parameter* list[] = {labels[0].get(), labels[1].get()};
    for (size_t i = 0; i < metric_kinds; ++i) {
        TRITONSERVER_MetricFamily* family = families.find(static_cast<MetricKind>(i));
        TRITONSERVER_Metric* metric = nullptr;
        if (family == nullptr) {
            continue;
        }
        TRITONSERVER_Error* error = TRITONSERVER_MetricNew(&metric, family, list, std::size(list));
        if (error == nullptr) {
            metrics_[i].reset(metric);
        }
        ignore(error);
    }
}

void ModelMetrics::add(MetricKind kind, double amount) noexcept {
    TRITONSERVER_Metric* m = metrics_[static_cast<size_t>(kind)].get();
    if (m != nullptr && amount > 0) {
        ignore(TRITONSERVER_MetricIncrement(m, amount));
    }
}

void ModelMetrics::set(MetricKind kind, int64_t value) noexcept {
    if (TRITONSERVER_Metric* m = metrics_[static_cast<size_t>(kind)].get()) {
        ignore(TRITONSERVER_MetricSet(m, static_cast<double>(value)));
    }
}

} // namespace ingot::triton
