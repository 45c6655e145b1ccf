// SPDX-License-Identifier: Apache-2.0
// Shared by the tests of slim: building small ONNX models, running them, comparing.
#pragma once

#include "ir/tensor.h"
#include "onnx/model.h"
#include "slim/slim.h"

#include <functional>
#include <ostream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace ingot::slim_test {

using Attr = std::variant<int64_t, float, std::string, std::vector<int64_t>, std::vector<float>,
                          Tensor, onnx::Graph>;
using Attrs = std::vector<std::pair<std::string, Attr>>;
/// A number, or the name of a size.
using Size = std::variant<int64_t, std::string>;

/// Builds one graph. Tensors that have no name given are t0, t1, ... with `prefix` before them.
class Builder {
public:
    explicit Builder(int64_t version = 17, std::string prefix = "t")
        : opset(version), prefix_(std::move(prefix)) {}

    std::string input(const std::string& name, std::vector<Size> dims, DType dtype = DType::F32);
    std::string constant(const Tensor& t);
    std::string ints(const std::vector<int64_t>& v) { return constant(Tensor::i64(v)); }
    std::string scalar(double v, DType dtype = DType::F32);
    /// A constant of pseudo-random numbers in [-1, 1).
    std::string weights(const Shape& shape, DType dtype = DType::F32);
    std::string node(const std::string& op, std::vector<std::string> inputs, Attrs attrs = {});
    std::vector<std::string> nodes(const std::string& op, std::vector<std::string> inputs,
                                   size_t outputs, Attrs attrs = {});
    void output(const std::string& name);
    void outputs(const std::vector<std::string>& names);
    onnx::Model model() const;

    int64_t opset;
    onnx::Graph graph;

private:
    std::string fresh();
    std::string prefix_;
    int count_ = 0;
};

/// Runs the model on the evaluator. Sizes with names are 3, inputs pseudo-random.
std::vector<Tensor> run(const onnx::Model& model, uint64_t seed = 0);
/// The first difference between results, or "". `tolerance` 0 asks for equal bits, but for the sign
/// of zeros; else it is relative to the largest element.
std::string difference(const std::vector<Tensor>& got, const std::vector<Tensor>& expected,
                       double tolerance);

struct SlimCase {
    std::string name;
    std::string rule;
    std::function<void(Builder&)> build;
    OpCounts expected;
    int64_t opset = 17;
    std::vector<std::string> skip = {}; // rules that would be quicker
};
inline void PrintTo(const SlimCase& c, std::ostream* out) {
    *out << c.name;
}
/// The rule applies, and these operators remain.
std::vector<SlimCase> structural_cases();
std::vector<SlimCase> fusion_cases();
/// Models similar to a rule's, to which it must not apply.
std::vector<SlimCase> near_misses();

} // namespace ingot::slim_test
