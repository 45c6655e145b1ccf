// SPDX-License-Identifier: Apache-2.0
// Runs the ONNX backend test suite by name and compares with tests/onnx/status.txt, in both
// directions: its first column on the CPU, its second on a GPU. INGOT_SUITE names the folder that
// export_suite.py wrote; INGOT_CASES picks the cases whose name contains a text, INGOT_SHARD=1/4
// the second of four parts; INGOT_STATUS_OUT gets the status as it is now.
#include "backends/backends.h"
#include "backends/cuda/options.h"
#include "base/error.h"
#include "conformance/suite.h"
#include "engine/engine.h"
#include "ir/rewrite.h"
#include "ir/verify.h"
#include "onnx/reader.h"
#include "ops/evaluator.h"
#include "ops/primitives.h"
#include "source_dir.h"
#include "workflow/build.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <set>

namespace ingot::test {

namespace {

std::string environment(const char* name) {
    const char* v = std::getenv(name);
    return v == nullptr ? "" : v;
}

/// One line of the list: name, status on the CPU, status on a GPU, and for what is refused the
/// reason; a second reason where a GPU has another.
struct Listed {
    std::string status[2]{"unlisted", "unlisted"};
    std::string reason[2];
    std::string line(const std::string& name) const {
        std::string text = str(name, "\t", status[0], "\t", status[1]);
        bool differ = reason[1] != reason[0];
        if (!reason[0].empty() || differ) {
            text += str("\t", reason[0]);
        }
        return differ ? str(text, "\t", reason[1]) : text;
    }
};

std::vector<std::string> fields_of(const std::string& line) {
    std::vector<std::string> out;
    for (size_t start = 0; start <= line.size();) {
        size_t end = std::min(line.find('\t', start), line.size());
        out.push_back(line.substr(start, end - start));
        start = end + 1;
    }
    return out;
}

std::map<std::string, Listed> read_status(const std::string& path) {
    std::map<std::string, Listed> out;
    std::ifstream file(path);
    std::string line;
    while (std::getline(file, line)) {
        if (line.empty() || line[0] == '#') {
            continue;
        }
        std::vector<std::string> f = fields_of(line);
        f.resize(std::max<size_t>(f.size(), 4));
        out[f[0]] = {{f[1], f[2]}, {f[3], f.size() > 4 ? f[4] : f[3]}};
    }
    return out;
}

/// INGOT_SHARD: the number of this part, and of how many.
std::pair<size_t, size_t> shard() {
    std::string text = environment("INGOT_SHARD");
    size_t slash = text.find('/');
    if (slash == std::string::npos) {
        return {0, 1};
    }
    return {std::stoul(text.substr(0, slash)), std::stoul(text.substr(slash + 1))};
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
    auto engine = Engine::load(path, CheckWeights::First);
    std::filesystem::remove(path);
    auto context = std::make_shared<Context>(engine, cpu_backend());
    return [context](const std::vector<Tensor>& in) { return context->run(in); };
}

// The same on a GPU, with TF32 off. Three runs of each case, the last ones of a recorded graph,
// give the same bits, but for those that draw random numbers.
Run by_gpu(const std::string& model) {
    auto built = build_engine(model, {});
    bool draws = false;
    visit_nodes(built->graph(),
                [&draws](const Graph&, const Node& n) { draws = draws || n.is(random_def); });
    CompileOptions options;
    options.of<CudaOptions>().tf32 = false;
    options.poison = true;
    std::string why;
    auto context = std::make_shared<Context>(built, *cuda_backend(why), options);
    return [context, draws](const std::vector<Tensor>& in) {
        std::vector<Tensor> first = context->run(in);
        for (int i = 0; i < 2; ++i) {
            std::vector<Tensor> again = context->run(in);
            for (size_t k = 0; k < first.size(); ++k) {
                require(draws || first[k] == again[k], ErrorCode::Internal, "output ", k,
                        " differs between two runs");
            }
        }
        return first;
    };
}

struct Way {
    const char* name;
    Run (*prepare)(const std::string& model);
    size_t column; // of the list
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
    size_t column = GetParam().column;
    std::string part = environment("INGOT_CASES");
    auto [index, parts] = shard();
    std::string list = environment("INGOT_STATUS");
    auto listed = read_status(list.empty() ? source_dir() + "/tests/onnx/status.txt" : list);
    std::ofstream out(environment("INGOT_STATUS_OUT"));
    std::map<Status, int> counts;
    std::set<std::string> names;
    for (const Case& c : read_cases(folder)) {
        names.insert(c.name);
        if (c.name.find(part) == std::string::npos || names.size() % parts != index) {
            continue;
        }
        Outcome o = run_case(c, GetParam().prepare);
        ++counts[o.status];
        const Listed& expected = listed[c.name];
        Listed found = expected;
        found.status[column] = name(o.status);
        found.reason[column] = o.reason;
        out << found.line(c.name) << "\n";
        EXPECT_TRUE(expected.status[column] == found.status[column] &&
                    expected.reason[column] == o.reason)
            << found.line(c.name) << "\nlisted: " << expected.line(c.name);
        for (const std::string& status : expected.status) {
            EXPECT_TRUE(status == "pass" || status == "refused")
                << expected.line(c.name) << "\nhas no status for both the CPU and a GPU";
        }
    }
    std::cout << counts[Status::Pass] << " pass, " << counts[Status::Refused] << " refused, "
              << counts[Status::Fail] << " fail\n";
    EXPECT_EQ(counts[Status::Fail], 0);
    for (const auto& [name, line] : listed) {
        EXPECT_TRUE(names.count(name) != 0) << line.line(name) << "\nis not in the suite";
    }
}

// Every input size from 2 up becomes a symbol, equal sizes the same one: no op may require a number
// without need, and the results stay the same.
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
                         testing::Values(Way{"evaluator", by_evaluator, 0},
                                         Way{"engine", by_engine, 0}, Way{"gpu", by_gpu, 1}),
                         [](const auto& way) { return way.param.name; });

} // namespace

} // namespace ingot::test
