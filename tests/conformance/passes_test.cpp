// SPDX-License-Identifier: Apache-2.0
// Passes, checked by execution on the ONNX backend suite: results stay the same across every pass
// that changes a case's graph, in the whole list, in the lists with one pass left out, and alone;
// the CPU backend gives the same with each of its lowering passes left out.
#include "backends/backends.h"
#include "base/error.h"
#include "conformance/suite.h"
#include "engine/engine.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "onnx/importer.h"
#include "onnx/reader.h"
#include "ops/evaluator.h"
#include "passes/difference.h"
#include "passes/pipeline.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <set>

namespace ingot::test {

namespace {

using DataSets = std::vector<std::vector<Tensor>>;

// A graph, its text as identity, and its results for each data set, computed on demand.
struct Stage {
    Graph graph;
    std::string text;
    DataSets results;
};
using StageRef = std::shared_ptr<Stage>;

// Passes are pure: the result of a pass on a graph, and its values, are computed once.
class Walk {
public:
    explicit Walk(const Case& c)
        : inputs_(read_inputs(c)),
          first_(stage(onnx::import_or_throw(onnx::read_model_file(c.folder + "/model.onnx")))) {}

    /// Runs the list without the pass of that name; returns the passes that changed something.
    std::set<std::string_view> run(std::string_view left_out) {
        std::set<std::string_view> changing;
        StageRef now = first_;
        for (const Pass* pass : aot_passes()) {
            if (pass->name == left_out) {
                continue;
            }
            StageRef next = after(*pass, now);
            if (next != now) {
                changing.insert(pass->name);
            }
            now = next;
        }
        return changing;
    }

    /// Runs each pass on the graph as it was imported.
    void run_alone() {
        for (const Pass* pass : aot_passes()) {
            after(*pass, first_);
        }
    }

    int comparisons() const { return comparisons_; }

private:
    StageRef stage(Graph g) {
        std::string text = print(g);
        StageRef& s = stages_[text];
        if (!s) {
            s = std::make_shared<Stage>(Stage{std::move(g), text, {}});
        }
        return s;
    }

    StageRef after(const Pass& pass, const StageRef& before) {
        StageRef& to = steps_[{pass.name, before->text}];
        if (!to) {
            to = stage(run_pass(pass, before->graph));
            verify(to->graph);
            if (to != before) {
                compare(pass, *before, *to);
            }
        }
        return to;
    }

    const DataSets& results(Stage& s) {
        if (s.results.empty()) {
            for (const auto& in : inputs_) {
                s.results.push_back(evaluate(s.graph, in));
            }
        }
        return s.results;
    }

    void compare(const Pass& pass, Stage& before, Stage& after) {
        const DataSets& want = results(before);
        const DataSets& got = results(after);
        ++comparisons_;
        for (size_t set = 0; set < want.size(); ++set) {
            ASSERT_EQ(want[set].size(), got[set].size());
            for (size_t i = 0; i < want[set].size(); ++i) {
                double allowed = pass.structural ? 0 : pass_tolerance(want[set][i].dtype());
                EXPECT_EQ(difference(want[set][i], got[set][i], allowed), "")
                    << "pass " << pass.name << ", output " << i << "\n"
                    << before.text << "became\n"
                    << after.text;
            }
        }
    }

    DataSets inputs_;
    std::map<std::string, StageRef> stages_;
    std::map<std::pair<std::string_view, std::string>, StageRef> steps_;
    StageRef first_;
    int comparisons_ = 0;
};

// With a subset of the suite, the number of applied passes is unknown.
bool whole_suite_is_skipped() {
    return std::getenv("INGOT_SUITE") == nullptr || std::getenv("INGOT_CASES") != nullptr;
}

// Calls `check` for every case that can be imported.
void for_each_case(const std::function<void(const Case&)>& check) {
    const char* folder = std::getenv("INGOT_SUITE");
    if (folder == nullptr) {
        GTEST_SKIP() << "INGOT_SUITE is not set: export_suite.py writes the suite";
    }
    const char* part = std::getenv("INGOT_CASES");
    for (const Case& c : read_cases(folder)) {
        if (part != nullptr && c.name.find(part) == std::string::npos) {
            continue;
        }
        SCOPED_TRACE(c.name);
        try {
            check(c);
        } catch (const Error& e) {
            EXPECT_EQ(e.code(), ErrorCode::Unsupported) << e.what();
        }
    }
}

TEST(Passes, KeepTheResultsOfEveryCase) {
    std::map<std::string_view, int> cases;
    int comparisons = 0;
    for_each_case([&](const Case& c) {
        Walk walk(c);
        walk.run_alone();
        std::set<std::string_view> changing = walk.run("");
        for (std::string_view pass : changing) {
            walk.run(pass); // leaving out one that changed nothing changes nothing
            ++cases[pass];
        }
        comparisons += walk.comparisons();
    });
    for (const auto& [pass, count] : cases) {
        std::cout << pass << " changes " << count << " cases\n";
    }
    std::cout << comparisons << " graphs compared\n";
    // Nothing in the suite folds a scale, and its quantisation is not spelled out.
    EXPECT_TRUE(whole_suite_is_skipped() || cases.size() >= 10);
}

// Compiles without some lowering passes; returns which of the others changed something.
std::vector<Tensor> run_lowered(const std::shared_ptr<const Engine>& engine,
                                const std::vector<Tensor>& inputs, std::string_view left_out,
                                std::set<std::string>& changing) {
    CompileOptions options;
    if (!left_out.empty()) {
        options.disabled_passes = {std::string(left_out)};
    }
    std::string text = print(engine->graph());
    options.after_pass = [&](std::string_view pass, const Graph& g) {
        std::string next = print(g);
        if (next != text) {
            changing.emplace(pass);
        }
        text = next;
    };
    return Context(engine, cpu_backend(), options).run(inputs);
}

TEST(Passes, LoweringKeepsTheResultsOfEveryCase) {
    std::map<std::string, int> cases;
    for_each_case([&](const Case& c) {
        Graph g = onnx::import_or_throw(onnx::read_model_file(c.folder + "/model.onnx"));
        auto engine = Engine::create(run_aot_passes(g), {}, {});
        DataSets sets = read_inputs(c);
        if (sets.empty()) {
            return;
        }
        std::set<std::string> changing;
        std::vector<Tensor> want = run_lowered(engine, sets[0], "", changing);
        for (const std::string& pass : changing) {
            std::set<std::string> ignored;
            std::vector<Tensor> got = run_lowered(engine, sets[0], pass, ignored);
            ++cases[pass];
            ASSERT_EQ(got.size(), want.size());
            for (size_t i = 0; i < want.size(); ++i) {
                EXPECT_EQ(difference(want[i], got[i], pass_tolerance(want[i].dtype())), "")
                    << "without " << pass << ", output " << i << "\n"
                    << print(engine->graph());
            }
        }
    });
    for (const auto& [pass, count] : cases) {
        std::cout << pass << " changes " << count << " cases\n";
    }
    EXPECT_TRUE(whole_suite_is_skipped() || cases.size() >= 2);
}

// Cases that need more than 16 bits.
bool needs_f32(const Case& c, DType narrow) {
    bool large = c.name.find("softmax_large_number") != std::string::npos;       // 10000 and 10001
    bool range = narrow == DType::F16 && c.name == "test_dequantizelinear_e5m2"; // 98304
    return large || range || c.name == "test_nonmaxsuppression_iou_threshold_boundary";
}

TEST(Passes, NarrowTypesKeepTheResultsOfEveryCase) {
    int changed = 0;
    for_each_case([&](const Case& c) {
        Graph g = onnx::import_or_throw(onnx::read_model_file(c.folder + "/model.onnx"));
        DataSets sets = read_inputs(c);
        std::string wide = print(run_aot_passes(g));
        for (DType narrow : {DType::F16, DType::BF16}) {
            PipelineOptions options;
            options.pass.precision = narrow;
            Graph after = run_aot_passes(g, options);
            if (sets.empty() || needs_f32(c, narrow) || print(after) == wide) {
                continue;
            }
            ++changed;
            std::vector<Tensor> want = evaluate(g, sets[0]);
            std::vector<Tensor> got = evaluate(after, sets[0]);
            for (size_t i = 0; i < want.size(); ++i) {
                EXPECT_EQ(difference(want[i], got[i], narrow == DType::F16 ? 0.01 : 0.05), "")
                    << name(narrow) << ", output " << i << "\n"
                    << print(after);
            }
        }
    });
    std::cout << changed << " graphs compared\n";
    EXPECT_TRUE(whole_suite_is_skipped() || changed > 1000);
}

} // namespace

} // namespace ingot::test
