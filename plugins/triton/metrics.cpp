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

MetricFamilies::Version& MetricFamilies::acquire(const Key& key) {
    std::string number = str(key.second);
    Label labels[] = {
        Label(TRITONSERVER_ParameterNew("model", TRITONSERVER_PARAMETER_STRING, key.first.c_str())),
        Label(TRITONSERVER_ParameterNew("version", TRITONSERVER_PARAMETER_STRING, number.c_str())),
    };
    std::lock_guard<std::mutex> lock(mutex_);
    auto [found, is_new] = versions_.try_emplace(key);
    Version& version = found->second;
    ++version.loads;
    if (!is_new) {
        return version;
    }
    const TRITONSERVER_Parameter* list[] = {labels[0].get(), labels[1].get()};
    for (size_t i = 0; i < metric_kinds; ++i) {
        TRITONSERVER_Metric* metric = nullptr;
        if (families_[i] == nullptr) {
            continue;
        }
        TRITONSERVER_Error* error =
            TRITONSERVER_MetricNew(&metric, families_[i].get(), list, std::size(list));
        if (error == nullptr) {
            version.metrics[i].reset(metric);
        }
        ignore(error);
    }
    return version;
}

void MetricFamilies::release(const Key& key) noexcept {
    std::lock_guard<std::mutex> lock(mutex_);
    auto found = versions_.find(key);
    if (--found->second.loads == 0) {
        versions_.erase(found); // under the lock: none of equal labels is made meanwhile
    }
}

ModelMetrics::ModelMetrics(MetricFamilies& families, const std::string& model, uint64_t version)
    : families_(families), key_(model, version), version_(families.acquire(key_)) {
    add_device_bytes(0);
}

void ModelMetrics::add(MetricKind kind, double amount) noexcept {
    TRITONSERVER_Metric* m = version_.metrics[static_cast<size_t>(kind)].get();
    if (m != nullptr && amount > 0) {
        ignore(TRITONSERVER_MetricIncrement(m, amount));
    }
}

void ModelMetrics::set(MetricKind kind, int64_t value) noexcept {
    if (TRITONSERVER_Metric* m = version_.metrics[static_cast<size_t>(kind)].get()) {
        ignore(TRITONSERVER_MetricSet(m, static_cast<double>(value)));
    }
}

void ModelMetrics::add_device_bytes(int64_t bytes) noexcept {
    std::lock_guard<std::mutex> lock(version_.mutex);
    version_.device_bytes += bytes;
    set(MetricKind::DeviceBytes, version_.device_bytes);
}

} // namespace ingot::triton
