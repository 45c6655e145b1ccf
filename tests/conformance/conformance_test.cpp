// SPDX-License-Identifier: Apache-2.0
// Runs the ONNX backend test suite by name and compares with tests/onnx/status.txt, in both
// directions. INGOT_SUITE names the folder that export_suite.py wrote; INGOT_CASES picks the cases
// whose name contains a text; INGOT_STATUS_OUT gets the status as it is now.
#include "base/error.h"
#include "conformance/suite.h"
#include "engine/engine.h"
#include "ir/verify.h"
#include "onnx/reader.h"
#include "ops/evaluator.h"
#include "workflow/build.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>

namespace ingot::test {

namespace {

std::string environment(const char* name) {
    const char* v = std::getenv(name);
    return v == nullptr ? "" : v;
}

std::string status_line(const std::string& name, const Outcome& o) {
    return o.reason.empty() ? str(name, "\t", o.status) : str(name, "\t", o.status, "\t", o.reason);
}

std::map<std::string, std::string> read_status(const std::string& path) {
    std::map<std::string, std::string> out;
    std::ifstream file(path);
    std::string line;
    while (std::getline(file, line)) {
        if (!line.empty() && line[0] != '#') {
            out.emplace(line.substr(0, line.find('\t')), line);
        }
    }
    return out;
}

Run by_evaluator(const std::string& model) {
    auto g = std::make_shared<Graph>(onnx::import_or_throw(onnx::read_model_file(model)));
    verify(*g);
    return [g](const std::vector<Tensor>& in) { return evaluate(*g, in); };
}

// Through all layers: passes, a saved and reloaded engine, the CPU backend.
Run by_engine(const std::string& model) {
    static const std::string path =
        (std::filesystem::temp_directory_path() / str("ingot_conformance_", getpid(), ".engine"))
            .string();
    auto built = build_engine(model, {});
    write_engine(path, built->graph(), built->profiles(), built->metadata());
    auto engine = Engine::load(path, true);
    std::filesystem::remove(path);
    auto context = std::make_shared<Context>(engine, cpu_backend());
    return [context](const std::vector<Tensor>& in) { return context->run(in); };
}

// The same on a GPU, with TF32 off. Three runs of each case, the last ones of a recorded graph,
// give the same bits.
Run by_gpu(const std::string& model) {
    auto built = build_engine(model, {});
    CompileOptions options;
    options.tf32 = false;
    options.poison = true;
    std::string why;
    auto context = std::make_shared<Context>(built, *cuda_backend(why), options);
    return [context](const std::vector<Tensor>& in) {
        std::vector<Tensor> first = context->run(in);
        for (int i = 0; i < 2; ++i) {
            std::vector<Tensor> again = context->run(in);
            for (size_t k = 0; k < first.size(); ++k) {
                require(first[k] == again[k], ErrorCode::Internal, "output ", k,
                        " differs between two runs");
            }
        }
        return first;
    };
}

struct Way {
    const char* name;
    Run (*prepare)(const std::string& model);
};

class Ways : public testing::TestWithParam<Way> {};

TEST_P(Ways, EveryCaseIsAsListed) {
    std::string folder = environment("INGOT_SUITE");
    if (folder.empty()) {
        GTEST_SKIP() << "INGOT_SUITE is not set: export_suite.py writes the suite";
    }
    std::string why;
    if (GetParam().prepare == by_gpu && cuda_backend(why) == nullptr) {
        GTEST_SKIP() << "no GPU: " << why;
    }
    std::string part = environment("INGOT_CASES");
    auto listed = read_status(std::string(INGOT_SOURCE_DIR) + "/tests/onnx/status.txt");
    std::ofstream out(environment("INGOT_STATUS_OUT"));
    std::map<Status, int> counts;
    for (const Case& c : read_cases(folder)) {
        if (c.name.find(part) == std::string::npos) {
            continue;
        }
        Outcome o = run_case(c, GetParam().prepare);
        ++counts[o.status];
        std::string line = status_line(c.name, o);
        out << line << "\n";
        auto expected = listed.find(c.name);
        EXPECT_TRUE(expected != listed.end() && expected->second == line)
            << line << "\nlisted: " << (expected == listed.end() ? "(missing)" : expected->second);
        listed.erase(c.name);
    }
    std::cout << counts[Status::Pass] << " pass, " << counts[Status::Refused] << " refused, "
              << counts[Status::Fail] << " fail\n";
    EXPECT_EQ(counts[Status::Fail], 0);
    for (const auto& [name, line] : listed) {
        EXPECT_TRUE(name.find(part) == std::string::npos) << line << "\nis not in the suite";
    }
}

// With every input size from 2 up made a name, equal sizes the same one: what does not need a
// number must not ask for one, and the results stay the same.
Run by_symbols(const std::string& path) {
    onnx::Model model = onnx::read_model_file(path);
    for (onnx::ValueInfo& input : model.graph.inputs) {
        for (onnx::ShapeDim& d : input.dims) {
            d = d.value >= 2 ? onnx::ShapeDim{-1, str("s", d.value)} : d;
        }
    }
    auto g = std::make_shared<Graph>(onnx::import_or_throw(model));
    verify(*g);
    return [g](const std::vector<Tensor>& in) { return evaluate(*g, in); };
}

TEST(Conformance, SizesMayBeNames) {
    std::string folder = environment("INGOT_SUITE");
    if (folder.empty()) {
        GTEST_SKIP() << "INGOT_SUITE is not set: export_suite.py writes the suite";
    }
    int passed = 0;
    for (const Case& c : read_cases(folder)) {
        Outcome o = run_case(c, by_symbols);
        EXPECT_NE(o.status, Status::Fail) << c.name << ": " << o.reason;
        passed += o.status == Status::Pass ? 1 : 0;
    }
    // The others are refused: kernels, heads and channels of unknown size, lists of unknown length.
    EXPECT_GE(passed, 1550);
}

INSTANTIATE_TEST_SUITE_P(Conformance, Ways,
                         testing::Values(Way{"evaluator", by_evaluator}, Way{"engine", by_engine},
                                         Way{"gpu", by_gpu}),
                         [](const auto& way) { return way.param.name; });

} // namespace

} // namespace ingot::test
