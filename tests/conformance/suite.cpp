// SPDX-License-Identifier: Apache-2.0
#include "conformance/suite.h"

#include "base/error.h"
#include "onnx/import_run.h"
#include "onnx/reader.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace ingot::test {

namespace fs = std::filesystem;

std::string_view name(Status s) {
    return s == Status::Pass ? "pass" : s == Status::Refused ? "refused" : "fail";
}

namespace {

// Widens the suite's tolerance where it rejects other correct implementations.
void widen_tolerance(Case& c) {
    if (c.name.starts_with("test_dft_inverse")) {
        c.atol = std::max(c.atol, 1e-6); // what is 0 was computed in f32 from numbers up to 99
    }
}

} // namespace

std::vector<Case> read_cases(const std::string& folder) {
    std::ifstream file(folder + "/cases.txt");
    require(file.is_open(), ErrorCode::Io, "cannot open '", folder,
            "/cases.txt'; write it with tests/conformance/export_suite.py");
    std::vector<Case> out;
    std::string line;
    while (std::getline(file, line)) {
        std::istringstream fields(line);
        Case c;
        std::string path;
        fields >> c.name >> c.kind >> c.rtol >> c.atol >> path;
        require(!fields.fail(), ErrorCode::InvalidArgument, "cases.txt: cannot read '", line, "'");
        c.folder = str(folder, "/", path);
        widen_tolerance(c);
        out.push_back(c);
    }
    return out;
}

namespace {

// The first refusal of a list ("2 nodes of the model cannot be imported:" and a line for each).
std::string first_reason(const std::string& text) {
    size_t from = text.find("cannot be imported:\n");
    from = from == std::string::npos ? 0 : text.find_first_not_of(' ', text.find('\n', from) + 1);
    size_t end = text.find('\n', from);
    return text.substr(from, end == std::string::npos ? end : end - from);
}

// The tensors of one side of a data set, in order; stops at the first number that has no file.
std::vector<Tensor> read_tensors(const fs::path& data, const std::string& side) {
    std::vector<Tensor> out;
    for (size_t i = 0;; ++i) {
        fs::path path = data / (side + "_" + std::to_string(i) + ".pb");
        if (!fs::exists(path)) {
            return out;
        }
        onnx::Tensor t = onnx::read_tensor_file(path.string());
        out.push_back(onnx::tensor_from(t).clone());
    }
}

bool close(double got, double want, double rtol, double atol) {
    if (std::isnan(want) || std::isnan(got)) {
        return std::isnan(want) && std::isnan(got);
    }
    // A relative tolerance of infinity would accept every number.
    return got == want ||
           (std::isfinite(want) && std::abs(got - want) <= atol + rtol * std::abs(want));
}

// The suite's rule for bf16; f16 too may be off by two of its steps where a sum is rounded.
double relative_tolerance(DType t, double rtol) {
    return t == DType::BF16  ? std::max(rtol, 0x1p-6)
           : t == DType::F16 ? std::max(rtol, 0x1p-9)
                             : rtol;
}

// The numbers of these cases are drawn at random: only their type, shape and range can agree.
bool is_random(const Case& c) {
    return c.name.starts_with("test_bernoulli");
}

// Empty where they agree under the suite's rule.
std::string difference(const Tensor& got, const Tensor& want, const Case& c) {
    if (got.dtype() != want.dtype() || got.shape() != want.shape()) {
        return str("is ", got.type(), ", expected ", want.type());
    }
    double rtol = relative_tolerance(want.dtype(), c.rtol);
    int64_t wrong = 0;
    std::string first;
    for (int64_t i = 0; i < want.count(); ++i) {
        double g = got.get_f64(i);
        double w = want.get_f64(i);
        if (is_random(c) ? (g != 0 && g != 1) : !close(g, w, rtol, c.atol)) {
            first = wrong++ == 0 ? str("element ", i, " is ", g, ", expected ", w) : first;
        }
    }
    return wrong == 0 ? "" : str(wrong, " of ", want.count(), " elements differ; ", first);
}

std::string run_data_set(const fs::path& data, const Case& c, const Run& run) {
    std::vector<Tensor> inputs = read_tensors(data, "input");
    std::vector<Tensor> expected = read_tensors(data, "output");
    std::vector<Tensor> got = run(inputs);
    if (got.size() != expected.size() || expected.empty()) {
        return str("there are ", got.size(), " results, expected ", expected.size());
    }
    for (size_t i = 0; i < got.size(); ++i) {
        std::string d = difference(got[i], expected[i], c);
        if (!d.empty()) {
            return str("output ", i, " ", d);
        }
    }
    return "";
}

// In order of their names.
std::vector<fs::path> data_sets(const Case& c) {
    std::vector<fs::path> sets;
    for (const auto& entry : fs::directory_iterator(c.folder)) {
        if (entry.is_directory()) {
            sets.push_back(entry.path());
        }
    }
    std::sort(sets.begin(), sets.end());
    return sets;
}

Outcome run_model(const Case& c, const Prepare& prepare) {
    Run run = prepare(c.folder + "/model.onnx");
    std::vector<fs::path> sets = data_sets(c);
    if (sets.empty()) {
        return {Status::Fail, "the case has no data"};
    }
    for (const fs::path& data : sets) {
        std::string problem = run_data_set(data, c, run);
        if (!problem.empty()) {
            return {Status::Fail, problem};
        }
    }
    return {};
}

} // namespace

std::vector<std::vector<Tensor>> read_inputs(const Case& c) {
    std::vector<std::vector<Tensor>> out;
    for (const fs::path& data : data_sets(c)) {
        out.push_back(read_tensors(data, "input"));
    }
    return out;
}

Outcome run_case(const Case& c, const Prepare& prepare) {
    try {
        return run_model(c, prepare);
    } catch (const Error& e) {
        return {e.code() == ErrorCode::Unsupported ? Status::Refused : Status::Fail,
                first_reason(e.what())};
    } catch (const std::exception& e) {
        return {Status::Fail, first_reason(e.what())};
    }
}

} // namespace ingot::test
