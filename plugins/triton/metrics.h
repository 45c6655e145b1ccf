// SPDX-License-Identifier: Apache-2.0
// Metrics of this backend on the server's port, one of each kind for a version of a model.
#pragma once

#include "plugins/triton/host.h"

#include <array>
#include <memory>

namespace ingot::triton {

enum class MetricKind {
    Runs,             // runs of the engine
    PaddedRows,       // rows that were added to reach a bucket
    UnpreparedShapes, // runs of shapes that had to be planned first
    PreparingSeconds, // in which shapes were planned and their kernels compiled
    DeviceBytes,      // of GPU memory that the version holds
    DeviceLost,       // 1 from the moment on that the device is lost
};
inline constexpr size_t metric_kinds = 6;

struct FamilyDelete {
    void operator()(TRITONSERVER_MetricFamily* f) const {
        ignore(TRITONSERVER_MetricFamilyDelete(f));
    }
};
struct MetricDelete {
    void operator()(TRITONSERVER_Metric* m) const { ignore(TRITONSERVER_MetricDelete(m)); }
};

/// Outlives the models' metrics. A server without metrics has none of these either.
class MetricFamilies {
public:
    MetricFamilies();
    TRITONSERVER_MetricFamily* find(MetricKind kind) const {
        return families_[static_cast<size_t>(kind)].get();
    }

private:
    std::array<std::unique_ptr<TRITONSERVER_MetricFamily, FamilyDelete>, metric_kinds> families_;
};

/// Safe from any thread.
class ModelMetrics {
public:
    ModelMetrics(const MetricFamilies& families, const std::string& model, uint64_t version);
    void add(MetricKind kind, double amount) noexcept;
    void set(MetricKind kind, int64_t value) noexcept;

private:
    std::array<std::unique_ptr<TRITONSERVER_Metric, MetricDelete>, metric_kinds> metrics_;
};

} // namespace ingot::triton
