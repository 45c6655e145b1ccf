// SPDX-License-Identifier: Apache-2.0
// The report of a plan: the operations, bytes and launches of each step, and why its tactic was
// chosen.
#pragma once

#include "ops/support/flops.h"
#include "plan/step_info.h"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ingot::plan {

/// The resources that a compiled kernel takes from a GPU, read from its binary.
struct KernelResources {
    int registers = 0;  // a thread
    int64_t shared = 0; // static shared memory of a block, bytes
    int64_t local = 0;  // spilled and indexed memory of a thread, bytes
    bool operator==(const KernelResources&) const = default;
};

struct LaunchReport {
    std::string entry; // of the kernel
    std::string text;  // its whole program
    std::array<int64_t, 3> grid{1, 1, 1};
    int64_t block = 0;                        // threads
    int64_t shared = 0;                       // dynamic shared memory of a block, bytes
    int64_t cluster = 1;                      // blocks
    std::optional<KernelResources> resources; // nullopt: not compiled
    int blocks_per_sm = 0; // that are resident at once; without resources, as if registers never
                           // limited them
    double waves = 0;      // blocks of the grid per blocks that the device holds
};

/// The reason for a tactic: the only one; the cost model's first; the family's first, though the
/// model rates another as cheaper; an earlier timing; an option; a
/// kernel that other steps use too; a kernel that is compiled for the engine's profiles; the
/// generic one, because the first did not compile.
enum class ChoiceReason : uint8_t {
    Only,
    Model,
    Preferred,
    Timed,
    Forced,
    Shared,
    Profile,
    Fallback
};
/// "only", "model", "preferred", "timed", "forced", "shared", "profile", "fallback".
std::string_view name(ChoiceReason r);

struct ChoiceReport {
    std::string tactic;
    ChoiceReason reason = ChoiceReason::Only;
    double predicted_us = 0; // by the cost model
    std::string runner_up;   // the cheapest other tactic by the model; "": there is none
    double runner_up_us = 0;
    int64_t candidates = 1;
};

struct StepReport {
    StepInfo info;
    std::vector<std::string> nodes; // of the ONNX model
    Operations operations;
    DType product_type = DType::F32; // of the operands of its products
    int64_t bytes_read = 0;          // of each operand once; of a table, the rows that are read
    int64_t bytes_written = 0;
    std::vector<ChoiceReport> choices; // one a step, or one a part of joined steps
    std::vector<LaunchReport> launches;
    std::vector<size_t> reads_from; // indices of steps
    int depth = 0;                  // 1: in the body of the last step of depth 0 before it, ...
    std::string body;               // "then", "else", "body" of the first step of a body
};

/// A GPU's figures: peaks are those of its kind, by the cost model's table.
struct DeviceFigures {
    std::string name; // "sm_90a"
    int capability = 0;
    int sms = 0;
    double clock_ghz = 0;
    double dram_gbs = 0;      // 1e9 bytes a second, read and written
    double product_flops = 0; // a second, of f16 on tensor cores with sums in f32
    double scalar_flops = 0;  // a second, of f32 outside tensor cores
    bool has_fp8 = false;
    bool tf32 = true; // products of f32 may use tensor cores
    /// The peak of products of this type, per second.
    double peak(DType type) const;
};

/// A step that launches kernels of a device.
class LaunchReporter {
public:
    /// Fills in choices and launches. Waits for kernels that are being compiled.
    virtual void report(StepReport& to) = 0;

protected:
    ~LaunchReporter() = default;
};

/// A step that runs programs (if, loop).
class BodyReporter {
public:
    /// The steps of its bodies, each with depth 0 for the body's own ones.
    virtual std::vector<StepReport> bodies_report() = 0;

protected:
    ~BodyReporter() = default;
};

struct SegmentPlan;
struct StepEntry;
struct Program;

/// A step with names and operands, as inspectors print it.
StepInfo step_info(const Program& program, const StepEntry& e);

/// The steps of these plans in order, bodies behind their step; then, without figures, what will
/// run in the segments that cannot be planned yet.
std::vector<StepReport> report_of(const Program& program,
                                  std::span<const SegmentPlan* const> planned);

} // namespace ingot::plan
