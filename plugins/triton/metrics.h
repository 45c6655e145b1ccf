// SPDX-License-Identifier: Apache-2.0
// Metrics of this backend on the server's port, one of each kind for a version of a model.
#pragma once

#include "plugins/triton/host.h"

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

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

/// The metrics of all loaded versions. Outlives the models; safe from any thread. A server without
/// metrics has none of these either.
class MetricFamilies {
public:
    /// Shared by the loads of one version.
    struct Version {
        std::array<std::unique_ptr<TRITONSERVER_Metric, MetricDelete>, metric_kinds> metrics;
        int64_t loads = 0;
        std::mutex mutex;
        int64_t device_bytes = 0;
    };
    using Key = std::pair<std::string, uint64_t>; // name and number

    MetricFamilies();
    /// The version's entry, made for its first load. Each acquire needs one release.
    Version& acquire(const Key& key);
    void release(const Key& key) noexcept;

private:
    std::array<std::unique_ptr<TRITONSERVER_MetricFamily, FamilyDelete>, metric_kinds> families_;
    std::mutex mutex_;
    std::map<Key, Version> versions_;
};

/// The metrics of one load of a version. A load may begin before the unload of the same version has
/// ended. Both then use the same metrics: the server merges metrics of equal labels, and where one
/// is made while another is deleted, it frees the metric that the new one refers to. Safe from any
/// thread.
class ModelMetrics {
public:
    ModelMetrics(MetricFamilies& families, const std::string& model, uint64_t version);
    ~ModelMetrics() { families_.release(key_); }
    ModelMetrics(const ModelMetrics&) = delete;
    ModelMetrics& operator=(const ModelMetrics&) = delete;

    void add(MetricKind kind, double amount) noexcept;
    void set(MetricKind kind, int64_t value) noexcept;
    /// Bytes of GPU memory that the version takes from now on; negative: gives back.
    void add_device_bytes(int64_t bytes) noexcept;

private:
    MetricFamilies& families_;
    MetricFamilies::Key key_;
    MetricFamilies::Version& version_;
};

} // namespace ingot::triton
