// SPDX-License-Identifier: Apache-2.0
// The ONNX backend test suite in the form of export_suite.py: the list of cases, and running one.
#pragma once

#include "ir/tensor.h"

#include <functional>
#include <string>
#include <vector>

namespace ingot::test {

struct Case {
    std::string name;
    std::string kind;
    double rtol = 1e-3;
    double atol = 1e-7;
    std::string folder;
};

enum class Status { Pass, Refused, Fail };
std::string_view name(Status s);

struct Outcome {
    Status status = Status::Pass;
    std::string reason; // one line; empty for a pass
};

/// Runs a prepared model on inputs in the order of its inputs.
using Run = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;
/// Makes a model file ready to run. Throws Unsupported to refuse it.
using Prepare = std::function<Run(const std::string& model)>;

/// The cases of `folder`/cases.txt. Throws when the file is missing or malformed.
std::vector<Case> read_cases(const std::string& folder);
/// The inputs of each of the case's data sets, in the order of the model's inputs.
std::vector<std::vector<Tensor>> read_inputs(const Case& c);
/// Prepares the case's model and runs all its data sets. Never throws.
Outcome run_case(const Case& c, const Prepare& prepare);

} // namespace ingot::test
