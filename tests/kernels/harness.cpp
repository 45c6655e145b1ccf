// SPDX-License-Identifier: Apache-2.0
#include "kernels/harness.h"

#include "backends/cuda/options.h"
#include "base/error.h"
#include "base/hash.h"
#include "kernels/group_run.h"
#include "kernels/test_device.h"
#include "ops/evaluator.h"
#include "ops/tolerance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <set>

namespace ingot::test {

using namespace kernels;

Tensor random_elements(DType t, const Shape& shape, unsigned seed, double low, double high) {
    std::mt19937 random(seed * 7919 + static_cast<unsigned>(t));
    Tensor out = Tensor::empty(t, shape);
    int bits = std::min(bit_width(t), 32);
    double most = is_signed(t) ? std::ldexp(1, bits - 1) - 1 : std::ldexp(1, bits) - 1;
    if (!is_float(t)) {
        low = t == DType::Bool ? 0 : std::max(low, is_signed(t) ? -most - 1 : 0);
        high = t == DType::Bool ? 1 : std::min(high, most);
    }
    std::uniform_real_distribution<double> real(low, high);
    std::uniform_int_distribution<int64_t> whole(static_cast<int64_t>(std::ceil(low)),
                                                 static_cast<int64_t>(std::floor(high)));
    for (int64_t i = 0; i < out.count(); ++i) {
        if (is_float(t)) {
            out.set_f64(i, real(random));
        } else {
            out.set_i64(i, whole(random));
        }
    }
    return out;
}

namespace {

std::vector<Tensor> inputs_of(const Graph& g, const Symbols& symbols,
                              const std::vector<Tensor>& given, unsigned seed, double low,
                              double high) {
    std::vector<Tensor> out;
    for (size_t i = 0; i < g.inputs().size(); ++i) {
        const Type& t = g.type(g.inputs()[i]);
        if (i < given.size() && given[i].defined()) {
            out.push_back(given[i]);
        } else {
            out.push_back(random_elements(t.dtype, eval(t.dims, symbols),
                                          seed + static_cast<unsigned>(i), low, high));
        }
    }
    return out;
}

Tensor converted(const Tensor& t, DType to) {
    if (t.dtype() == to) {
        return t;
    }
    Tensor out = Tensor::empty(to, t.shape());
    for (int64_t i = 0; i < t.count(); ++i) {
        out.set_f64(i, t.get_f64(i));
    }
    return out;
}

std::vector<Tensor> reference(const Graph& g, const std::vector<Tensor>& inputs,
                              const Symbols& symbols, bool f64) {
    std::vector<Tensor> in = inputs;
    if (f64) {
        Graph promoted = promoted_to_f64(g);
        for (size_t i = 0; i < in.size(); ++i) {
            in[i] = converted(in[i], promoted.type(promoted.inputs()[i]).dtype);
        }
    }
    EvalOptions options;
    options.f64 = f64;
    return evaluate(g, in, options, symbols);
}

/// The limit for products of 8-bit floats on a device: tensor cores of 9.0 keep about 14 bits of
/// the sums inside an instruction, the emulator all of them.
constexpr double sums_of_14_bits = 5e-4;

double limit_of(const GroupCase& c, const FamilyOptions& options, DType dtype) {
    if (options.tolerance >= 0) {
        return options.tolerance;
    }
    const Node& first = c.group().first();
    bool eight = c.group().graph.type(first.inputs.at(0)).dtype == DType::F8E4M3;
    bool product = first.def->name == "dot" || first.def->name == "conv";
    double limit = tolerance_of(first.def->name, dtype);
    return on_device() && eight && product && is_float(dtype) ? std::max(limit, sums_of_14_bits)
                                                              : limit;
}

/// One case: the group, its inputs and the expected results.
struct Case {
    GroupCase group;
    std::vector<Tensor> inputs;
    std::vector<Tensor> expected;

    Case(const Graph& g, const FamilyOptions& o)
        : group(g, o.family, o.made),
          inputs(inputs_of(g, o.symbols, o.inputs, o.seed, o.low, o.high)),
          expected(reference(g, inputs, o.symbols, o.f64)) {}
};

void check_results(const Case& c, const std::vector<Tensor>& got, const FamilyOptions& o) {
    for (size_t i = 0; i < got.size(); ++i) {
        std::string d = difference(got[i], c.expected[i], limit_of(c.group, o, got[i].dtype()));
        EXPECT_EQ(d, "") << "result " << i;
    }
}

FamilyRun run_case(const Case& c, const Arch& arch, const Tactic& tactic, const FamilyOptions& o,
                   Placement& placement) {
    FamilyRun out;
    out.tactic = tactic.name;
    try {
        GroupRun run(c.group, arch, o, placement);
        Emitted emitted = run.emit(tactic);
        out.scratch = emitted.scratch;
        for (const Launch& l : emitted.launches) {
            out.entries.push_back(l.entry);
            out.texts.push_back(kernels::full_text(l.program));
        }
        out.results = run.execute(emitted, c.inputs, false);
        check_results(c, out.results, o);
        std::vector<Tensor> again = run.execute(emitted, c.inputs, true);
        for (size_t i = 0; i < again.size(); ++i) {
            EXPECT_TRUE(again[i] == out.results[i])
                << "result " << i << " depends on the order in which threads run";
        }
    } catch (const Error& e) {
        ADD_FAILURE() << e.what();
    }
    return out;
}

const Tactic& pick(const std::vector<Tactic>& tactics, const std::string& name) {
    for (const Tactic& t : tactics) {
        if (t.name.starts_with(name)) {
            return t;
        }
    }
    std::string all;
    for (const Tactic& t : tactics) {
        all += ' ' + t.name;
    }
    fail(ErrorCode::InvalidArgument, "no tactic '", name, "'; there are:", all);
}

/// Each tactic of a problem has a unique name, which contains all of its parameters.
void check_names(const std::vector<Tactic>& tactics) {
    std::set<std::string> seen;
    for (const Tactic& t : tactics) {
        EXPECT_TRUE(seen.insert(t.name).second) << "two tactics '" << t.name << "'";
        // A family may prefix the name where a norm comes first, or where heads follow.
        bool parsed = false;
        for (std::string_view prefix : {"", "norm_", "apart_", "apart_norm_"}) {
            std::string_view name = t.name;
            if (name.starts_with(prefix)) {
                name.remove_prefix(prefix.size());
                parsed = parsed || kernels::parse_tactic(*t.algorithm, name).has_value();
            }
        }
        EXPECT_TRUE(parsed) << "'" << t.name << "' is no name of '" << t.algorithm->pattern << "'";
    }
}

/// The tactics' fingerprints. Two that are equal fail the test: the tactics differ by a parameter
/// that changes nothing.
std::vector<std::string> distinct_launches(const std::vector<Tactic>& tactics,
                                           const Placement& placement) {
    std::map<std::string, std::string> names; // by fingerprint
    std::vector<std::string> out;
    for (const Tactic& t : tactics) {
        out.push_back(placement.fingerprint(t));
        const auto& [first, is_new] = names.emplace(out.back(), t.name);
        EXPECT_TRUE(is_new) << "tactics '" << first->second << "' and '" << t.name
                            << "' launch the same: is a parameter not read?";
    }
    return out;
}

std::vector<Tensor> run_backend(Execution& execution, const std::vector<Tensor>& inputs,
                                const std::vector<Tensor>& expected, bool poisoned) {
    std::vector<Tensor> got(expected.size());
    for (size_t i = 0; poisoned && i < got.size(); ++i) {
        got[i] = Tensor::empty(expected[i].dtype(), expected[i].shape());
        std::memset(got[i].mutable_bytes().data(), emulator::poison, got[i].bytes().size());
    }
    Status status = execution.run(inputs, got);
    EXPECT_TRUE(status.ok()) << execution.error();
    return status.ok() ? got : std::vector<Tensor>();
}

} // namespace

FamilyRun expect_family(const Graph& g, const FamilyOptions& options) {
    const Arch& arch = arch_of(options.cc);
    SCOPED_TRACE(str("seed ", options.seed, ", compute capability ", options.cc));
    try {
        Case c(g, options);
        Placement placement(c.group, arch, options);
        std::vector<Tactic> tactics = placement.tactics();
        Tactic t = pick(tactics, options.tactic);
        t.variant = options.variant;
        SCOPED_TRACE("tactic " + t.name);
        return run_case(c, arch, t, options, placement);
    } catch (const Error& e) {
        ADD_FAILURE() << e.what();
    }
    return {};
}

std::vector<std::string> sweep(const Graph& g, FamilyOptions options) {
    std::set<std::string> names;
    std::set<std::string> seen;
    std::vector<Arch> archs = runnable_archs();
    // First the one on which most is checked.
    std::stable_partition(archs.begin(), archs.end(), [](const Arch& a) { return a.cc == 90; });
    try {
        Case c(g, options);
        for (const Arch& arch : archs) {
            options.cc = arch.cc;
            SCOPED_TRACE(str("seed ", options.seed, ", compute capability ", arch.cc,
                             ", shared memory ", arch.shared_per_block));
            Placement placement(c.group, arch, options);
            std::vector<Tactic> tactics = placement.tactics();
            EXPECT_FALSE(tactics.empty());
            check_names(tactics);
            std::vector<Emitted> emitted;
            for (const Tactic& t : tactics) {
                emitted.push_back(placement.emit(t));
            }
            std::vector<std::string> fingerprints = distinct_launches(tactics, placement);
            AheadCompiler compiler(emitted, arch);
            for (size_t i = 0; i < tactics.size(); ++i) {
                const Tactic& t = tactics[i];
                SCOPED_TRACE("tactic " + t.name);
                names.insert(t.name);
                if (seen.insert(fingerprints[i]).second) {
                    compiler.wait_for(emitted[i]);
                    run_case(c, arch, t, options, placement);
                }
            }
        }
    } catch (const Error& e) {
        ADD_FAILURE() << e.what();
    }
    return {names.begin(), names.end()};
}

std::vector<std::string> tactic_names(const Graph& g, const FamilyOptions& options) {
    GroupCase c(g, options.family);
    Placement placement(c, arch_of(options.cc), options);
    std::vector<std::string> out;
    for (const Tactic& t : placement.tactics()) {
        out.push_back(t.name);
    }
    return out;
}

std::optional<std::string> refusal(const Graph& g, std::string_view family) {
    try {
        GroupCase c(g, family);
    } catch (const Error& e) {
        return e.message();
    }
    return std::nullopt;
}

BackendRun expect_backend(const Graph& g, const BackendOptions& options) {
    BackendRun out;
    SCOPED_TRACE(str("seed ", options.seed, ", compute capability ", options.cc));
    try {
        std::vector<Tensor> inputs =
            inputs_of(g, options.symbols, options.inputs, options.seed, -2, 2);
        std::vector<Tensor> expected = evaluate(g, inputs, {}, options.symbols);
        TestDevice device(arch_of(options.cc));
        std::vector<Tensor> first;
        {
            auto backend = cuda::make_backend(device.gpu());
            CompileOptions compile;
            compile.of<CudaOptions>().force_tactic = options.tactic;
            compile.of<CudaOptions>().tf32 = options.tf32;
            compile.poison = true;
            compile.batch_invariant = options.batch_invariant;
            auto execution =
                backend->compile(std::make_shared<const Graph>(g), compile)->create_execution();
            for (int run = 0; run < options.runs; ++run) {
                device.set_reversed(run % 2 == 1);
                auto before = device.counts();
                std::vector<Tensor> got = run_backend(*execution, inputs, expected, run > 0);
                if (auto after = device.counts()) {
                    out.launches = after->launches - before->launches;
                    out.replays = after->replays - before->replays;
                }
                for (size_t i = 0; i < got.size(); ++i) {
                    EXPECT_EQ(difference(got[i], expected[i],
                                         is_float(got[i].dtype()) ? options.tolerance : 0),
                              "")
                        << "result " << i << " of run " << run;
                    EXPECT_TRUE(run == 0 || first.empty() || got[i] == first[i])
                        << "result " << i << " of run " << run << " differs from the first";
                }
                first = run == 0 ? got : first;
            }
            for (const StepInfo& s : execution->steps()) {
                out.kernels.push_back(s.kernel);
                out.implementations.push_back(s.implementation);
            }
        }
        EXPECT_EQ(device.problems(), "");
        EXPECT_EQ(device.used(), 0) << "bytes of device memory that were not released";
    } catch (const Error& e) {
        ADD_FAILURE() << e.what();
    }
    return out;
}

} // namespace ingot::test
