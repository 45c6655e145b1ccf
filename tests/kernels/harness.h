// SPDX-License-Identifier: Apache-2.0
// Runs graphs through kernel families on the emulated GPU and compares with the evaluator.
//
//     Graph g;
//     Value a = g.add_input("a", parse_type("f32[4,300]"));
//     g.add_output("y", ops::softmax(g, a, 1));
//     sweep(g);                       // every tactic on every architecture
//     expect_family(g, {.cc = 80});   // the best tactic of one
#pragma once

#include "emulator/emulated_gpu.h"
#include "ir/graph.h"
#include "plan/view.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ingot::kernels {
struct Family;
}

namespace ingot::test {

struct FamilyOptions {
    /// The family; "" is the first node's op, as in Fused::kernel.
    std::string family = {};
    /// A family that a test made, which must take the graph, in place of that one.
    const kernels::Family* made = nullptr;
    int cc = 90;
    /// The first tactic whose name starts so; "" is the best one.
    std::string tactic = {};
    int variant = 0; // below Family::variants
    Symbols symbols = {};
    bool tf32 = true;
    /// Relative to each result's largest magnitude; negative: the tolerance of the first op and the
    /// result's dtype (ops/tolerance.h).
    double tolerance = -1;
    /// Compares with an evaluation in f64 (of the same inputs), else in the graph's own types.
    bool f64 = true;
    unsigned seed = 1;
    /// Random floats lie between these; integers too, where the dtype has them.
    double low = -2;
    double high = 2;
    /// Inputs by position; undefined ones are random. For indices, lengths, special values.
    std::vector<Tensor> inputs = {};
    /// The inputs' layouts before the family asks for others; empty: row major.
    std::vector<plan::Order> orders = {};
    /// Leaves gaps between the rows of operands where the family takes any strides, and of results
    /// where it writes any.
    bool strided = false;
    /// The error word that the kernels store.
    uint32_t error_word = 0;
    bool backwards = false; // Problem::backwards
};

/// The results of a run, for assertions.
struct FamilyRun {
    std::string tactic;
    std::vector<std::string> entries; // one per launch
    int64_t scratch = 0;
    std::vector<std::string> texts; // of the programs, one per launch
    std::vector<Tensor> results;    // row major
};

/// Runs the graph's nodes (constants aside) as one group, by threads in both orders: results must
/// be the same bytes, gaps and red zones untouched, and close to the evaluator's. Reports failures
/// of the current test.
FamilyRun expect_family(const Graph& g, const FamilyOptions& options = {});

/// All tactics on all known architectures (`options.cc` and `options.tactic` are set by it).
/// Launches that are equal on two architectures run once; two tactics of one architecture that
/// launch the same fail the test. Returns the names of all tactics.
std::vector<std::string> sweep(const Graph& g, FamilyOptions options = {});

/// The family's tactics for the graph on an architecture, best first.
std::vector<std::string> tactic_names(const Graph& g, const FamilyOptions& options = {});
/// Whether one of the names begins so.
inline bool ran(const std::vector<std::string>& names, std::string_view prefix) {
    return std::any_of(names.begin(), names.end(),
                       [&](const std::string& n) { return n.starts_with(prefix); });
}

/// Why the family refuses the graph as a group; nullopt when it takes it.
std::optional<std::string> refusal(const Graph& g, std::string_view family = {});

struct BackendOptions {
    int cc = 90;
    Symbols symbols = {};
    std::string tactic = {}; // CompileOptions::force_tactic
    bool tf32 = true;
    double tolerance = 1e-4; // of each result's largest magnitude
    unsigned seed = 1;
    std::vector<Tensor> inputs = {}; // as above
    int runs = 3;                    // plain, recorded, replayed
    bool batch_invariant = false;    // CompileOptions::batch_invariant
};
/// The results of a run, for assertions.
struct BackendRun {
    std::vector<std::string> kernels;         // of the steps in their order
    std::vector<std::string> implementations; // StepInfo's
    /// Of the last run; -1 on a real device, which does not count.
    int64_t launches = -1;
    int64_t replays = -1;
};
/// Through the whole CUDA backend: lowering, planner, recording. Results of all runs must be the
/// same bytes.
BackendRun expect_backend(const Graph& g, const BackendOptions& options = {});

/// Random elements in [low, high], clamped to the dtype's range; both bools.
Tensor random_elements(DType t, const Shape& shape, unsigned seed, double low = -2,
                       double high = 2);

/// A program that a family emitted in this process, for the test that compiles them for real.
struct EmittedProgram {
    std::string text;
    std::string entry;
    std::string family;
    std::string tactic;
    int cc = 0;
    int64_t shared = 0;
};
const std::vector<EmittedProgram>& emitted_programs();

} // namespace ingot::test
