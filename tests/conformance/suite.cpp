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
        c.folder = folder + "/" + path;
        out.push_back(c);
    }
    return out;
}

namespace {

std::string one_line(std::string text) {
    std::replace(text.begin(), text.end(), '\n', ' ');
    return text;
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
    return got == want || std::abs(got - want) <= atol + rtol * std::abs(want);
}

// Empty where they agree under the suite's rule.
std::string difference(const Tensor& got, const Tensor& want, const Case& c) {
    if (got.dtype() != want.dtype() || got.shape() != want.shape()) {
        return str("is ", got.type(), ", expected ", want.type());
    }
    double rtol = want.dtype() == DType::BF16 ? std::max(c.rtol, 0x1p-6) : c.rtol;
    int64_t wrong = 0;
    std::string first;
    for (int64_t i = 0; i < want.count(); ++i) {
        if (!close(got.get_f64(i), want.get_f64(i), rtol, c.atol)) {
            if (wrong++ == 0) {
                first = str("element ", i, " is ", got.get_f64(i), ", expected ", want.get_f64(i));
            }
        }
    }
    return wrong == 0 ? "" : str(wrong, " of ", want.count(), " elements differ; ", first);
}

std::string run_data_set(const Graph& g, const fs::path& data, const Case& c,
                         const Execute& execute) {
    std::vector<Tensor> inputs = read_tensors(data, "input");
    std::vector<Tensor> expected = read_tensors(data, "output");
    std::vector<Tensor> got = execute(g, inputs);
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

Outcome run_model(const Case& c, const Execute& execute) {
    onnx::ImportResult r = onnx::import_model(onnx::read_model_file(c.folder + "/model.onnx"));
    if (!r.refusals.empty()) {
        const onnx::Refusal& first = r.refusals.front();
        return {Status::Refused, str(first.type, ": ", first.reason)};
    }
    std::vector<fs::path> sets;
    for (const auto& entry : fs::directory_iterator(c.folder)) {
        if (entry.is_directory()) {
            sets.push_back(entry.path());
        }
    }
    std::sort(sets.begin(), sets.end());
    if (sets.empty()) {
        return {Status::Fail, "the case has no data"};
    }
    for (const fs::path& data : sets) {
        std::string problem = run_data_set(r.graph, data, c, execute);
        if (!problem.empty()) {
            return {Status::Fail, problem};
        }
    }
    return {};
}

} // namespace

Outcome run_case(const Case& c, const Execute& execute) {
    try {
        Outcome o = run_model(c, execute);
        o.reason = one_line(o.reason);
        return o;
    } catch (const Error& e) {
        Status s = e.code() == ErrorCode::Unsupported ? Status::Refused : Status::Fail;
        return {s, one_line(e.what())};
    } catch (const std::exception& e) {
        return {Status::Fail, one_line(e.what())};
    }
}

} // namespace ingot::test
