// SPDX-License-Identifier: Apache-2.0
// The kernels of an engine's plan, with what each does, what it costs and why it was chosen: for a
// GPU, which may be absent, or for the CPU.
#pragma once

#include "engine/engine.h"
#include "plan/plan_report.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ingot {

/// The origin of a time: measured here; the cost model of the kernel's family; the bytes and
/// operations by the device's figures, a lower bound; none.
enum class TimeBasis : uint8_t { Measured, Model, Roofline, None };
/// "measured", "model", "roofline", "none".
std::string_view name(TimeBasis b);

struct LayerReport {
    plan::StepReport step;
    double time_us = 0; // of all launches; 0 without a basis
    TimeBasis basis = TimeBasis::None;
    double floor_us = 0;    // at the device's peaks; 0 where they are unknown
    std::string limited_by; // "memory", "products", "scalars"; "" where the peaks are unknown
    /// The part of the time that the device's peaks leave, 0 where either is unknown. Above 1 where
    /// a cache serves what the bytes count as memory's.
    double share() const { return time_us > 0 ? floor_us / time_us : 0; }
    double bytes() const {
        return static_cast<double>(step.bytes_read) + static_cast<double>(step.bytes_written);
    }
};

struct KernelReport {
    std::string backend; // "cpu", "cuda"
    std::string device;
    bool is_here = false; // else a GPU is imagined
    std::optional<plan::DeviceFigures> figures;
    std::vector<std::pair<std::string, Shape>> inputs;
    std::vector<LayerReport> layers;
    int64_t timed_runs = 0;
    double serial_ms = 0; // mean of the timed runs, one layer after the other
    double plain_ms = 0;  // median of a run without timing of layers
    MemoryUse memory;     // of a device that is here
};

struct ReportRequest {
    const Backend* backend = nullptr; // null: the GPU of `capability`
    int capability = 0;               // 90 for 9.0
    std::vector<Shape> shapes;        // one an input
    bool compiles = false;            // for an absent GPU: tells registers, needs a compiler
    /// Layers are timed over this many runs with these inputs; 0 times none. For a backend.
    int64_t timed_runs = 0;
    std::vector<Tensor> inputs;
};
/// Errors: those of planning, compiling and running.
KernelReport kernel_report(const std::shared_ptr<const Engine>& engine,
                           const ReportRequest& request, const CompileOptions& options);

/// One program that launches use.
struct ReportedKernel {
    std::string entry;
    std::string hash; // of its text, 16 hex digits
    std::string text;
    int64_t launches = 0; // a run, bodies of control flow once
};
/// By launches, most first.
std::vector<ReportedKernel> kernels_of(const KernelReport& r);
/// The start of the hash of a program's text, as reports name it.
std::string kernel_hash(const std::string& text);

/// As a table: a line with figures for each launch, then lines with the choice and the nodes.
std::string report_text(const KernelReport& r);
/// The same as a JSON object. `sources`: with the kernels' texts.
std::string report_json(const KernelReport& r, bool sources);

} // namespace ingot
