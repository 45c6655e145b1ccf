// SPDX-License-Identifier: Apache-2.0
// Runs the models of tests/data/contrib, and compares with ONNX Runtime's results: see
// tests/data/make_contrib.py.
#include "base/error.h"
#include "onnx/import_run.h"
#include "onnx/reader.h"
#include "ops/evaluator.h"
#include "source_dir.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

namespace ingot::onnx::test {

namespace fs = std::filesystem;

namespace {

std::vector<std::string> case_folders() {
    std::vector<std::string> out;
    const char* other = std::getenv("INGOT_CONTRIB");
    fs::path folder =
        other != nullptr ? fs::path(other) : fs::path(source_dir()) / "tests" / "data" / "contrib";
    for (const auto& entry : fs::directory_iterator(folder)) {
        out.push_back(entry.path().string());
    }
    std::sort(out.begin(), out.end());
    return out;
}

std::vector<ingot::Tensor> read_tensors(const std::string& folder, const std::string& side) {
    std::vector<ingot::Tensor> out;
    for (size_t i = 0;; ++i) {
        fs::path path = fs::path(folder) / str(side, "_", i, ".pb");
        if (!fs::exists(path)) {
            return out;
        }
        out.push_back(tensor_from(read_tensor_file(path.string())).clone());
    }
}

// Largest difference allowed: floats by what f32 sums of a few dozen terms, and the different
// formulas of the two sides, lose; quantised results by one step, where a tie may round either way.
double tolerance(const ingot::Tensor& want) {
    double largest = 0;
    for (int64_t i = 0; i < want.count(); ++i) {
        double v = std::abs(want.get_f64(i));
        largest = std::isfinite(v) ? std::max(largest, v) : largest;
    }
    switch (want.dtype()) {
    case DType::F16:
        return 4e-3 * std::max(largest, 1.0);
    case DType::F32:
        return 2e-5 * std::max(largest, 1.0);
    case DType::U8:
    case DType::I8:
    case DType::U16:
        return 1;
    default:
        return 0;
    }
}

// The difference, or "".
std::string difference(const ingot::Tensor& got, const ingot::Tensor& want) {
    if (got.dtype() != want.dtype() || got.shape() != want.shape()) {
        return str("is ", got.type(), ", expected ", want.type());
    }
    double allowed = tolerance(want);
    int64_t wrong = 0;
    std::string first;
    for (int64_t i = 0; i < want.count(); ++i) {
        double a = got.get_f64(i);
        double b = want.get_f64(i);
        bool same = a == b || std::abs(a - b) <= allowed || (std::isnan(a) && std::isnan(b));
        if (!same && wrong++ == 0) {
            first = str("element ", i, " is ", a, ", expected ", b, " +- ", allowed);
        }
    }
    return wrong == 0 ? "" : str(wrong, " of ", want.count(), " elements differ; ", first);
}

std::string run_case(const std::string& folder) {
    try {
        ingot::Graph g = import_or_throw(read_model_file(folder + "/model.onnx"));
        std::vector<ingot::Tensor> got = evaluate(g, read_tensors(folder, "input"));
        std::vector<ingot::Tensor> want = read_tensors(folder, "output");
        if (got.size() != want.size() || want.empty()) {
            return str("there are ", got.size(), " results, expected ", want.size());
        }
        for (size_t i = 0; i < got.size(); ++i) {
            std::string d = difference(got[i], want[i]);
            if (!d.empty()) {
                return str("output ", i, " ", d);
            }
        }
        return "";
    } catch (const std::exception& e) {
        return e.what();
    }
}

class OrtCase : public testing::TestWithParam<std::string> {};

TEST_P(OrtCase, AgreesWithOnnxRuntime) {
    EXPECT_EQ(run_case(GetParam()), "");
}

std::string case_name(const testing::TestParamInfo<std::string>& info) {
    return fs::path(info.param).filename().string();
}

INSTANTIATE_TEST_SUITE_P(Contrib, OrtCase, testing::ValuesIn(case_folders()), case_name);

} // namespace

} // namespace ingot::onnx::test
