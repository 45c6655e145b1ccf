// SPDX-License-Identifier: Apache-2.0
// Rules that merge a matrix product and its neighbours into one Gemm, and turn an Einsum that is a
// plain matrix product into MatMul.
#include "slim/affine.h"
#include "slim/fold.h"
#include "slim/rules.h"
#include "slim/views.h"

#include <algorithm>

namespace ingot::slim {

namespace {

// Types and shapes that runtimes support in Gemm.
bool is_matrix(const Context& c, const std::string& name) {
    const std::optional<Type> t = c.type(name);
    return t && t->rank() == 2 &&
           (t->dtype == DType::F32 || t->dtype == DType::F64 || t->dtype == DType::F16);
}

// Gemm broadcasts C to the result, never the result to C.
bool fits_as_bias(const Context& c, const std::string& bias, const std::string& product,
                  const std::string& sum) {
    const std::optional<Type> b = c.type(bias);
    return b && b->rank() <= 2 && c.same_type(product, sum);
}

bool matmul_add(Context& c, size_t i) {
    const onnx::Node n = c.edit.node(i);
    for (size_t k = 0; k < 2; ++k) {
        const std::optional<size_t> p = c.only_producer(input(n, k), "MatMul");
        if (!p) {
            continue;
        }
        onnx::Node gemm = c.edit.node(*p);
        const std::string& bias = input(n, 1 - k);
        if (!is_matrix(c, input(gemm, 0)) || !is_matrix(c, input(gemm, 1)) ||
            !fits_as_bias(c, bias, input(n, k), n.outputs[0])) {
            continue;
        }
        gemm.op_type = "Gemm";
        gemm.inputs.push_back(bias);
        gemm.outputs = {n.outputs[0]};
        c.edit.erase(*p);
        c.edit.update(i, std::move(gemm));
        return true;
    }
    return false;
}

bool gemm_add(Context& c, size_t i) {
    const onnx::Node n = c.edit.node(i);
    for (size_t k = 0; k < 2; ++k) {
        const std::optional<size_t> p = c.only_producer(input(n, k), "Gemm");
        if (!p) {
            continue;
        }
        onnx::Node gemm = c.edit.node(*p);
        std::string bias = input(n, 1 - k);
        if (!fits_as_bias(c, bias, input(n, k), n.outputs[0])) {
            continue;
        }
        if (has_input(gemm, 2)) {
            const std::optional<Tensor> old = c.constant(input(gemm, 2));
            const std::optional<Tensor> more = c.constant(bias);
            if (!old || !more || get_float(gemm, "beta", 1) != 1) {
                continue;
            }
            const auto sum = compute(c, "Add", std::vector<Tensor>{*old, *more});
            if (!sum || sum->count() > std::max(old->count(), more->count())) {
                continue;
            }
            bias = c.add(*sum, input(gemm, 2));
        }
        set_input(gemm, 2, bias);
        remove_attribute(gemm, "beta");
        gemm.outputs = {n.outputs[0]};
        c.edit.erase(*p);
        c.edit.update(i, std::move(gemm));
        return true;
    }
    return false;
}

// Normalisation, or a factor or shift per column, after a Gemm with constant B and C.
bool gemm_affine(Context& c, size_t i) {
    const onnx::Node n = c.edit.node(i);
    std::optional<size_t> p = c.only_producer(input(n, 0), "Gemm");
    p = p ? p : c.only_producer(input(n, 1), "Gemm");
    if (!p) {
        return false;
    }
    onnx::Node gemm = c.edit.node(*p);
    const std::optional<Tensor> b = c.constant(input(gemm, 1));
    const std::optional<Tensor> old = c.constant(input(gemm, 2));
    if (!b || b->rank() != 2 || !is_float(b->dtype()) || (has_input(gemm, 2) && !old)) {
        return false;
    }
    const bool transposed = get_int(gemm, "transB", 0) != 0;
    const int64_t columns = b->shape()[transposed ? 0 : 1];
    const auto a = affine_of(c, n, gemm.outputs[0], columns, 2);
    const auto bias = old ? per_channel(c, input(gemm, 2), columns, 2)
                          : std::optional(std::vector<double>(static_cast<size_t>(columns), 0));
    const bool single_use =
        c.edit.used_once(input(gemm, 1)) || b->bytes().size() <= c.options.size_threshold;
    if (!a || !bias || !single_use) {
        return false;
    }
    const auto beta = static_cast<double>(get_float(gemm, "beta", 1));
    std::vector<double> sums = a->shift;
    for (size_t k = 0; k < sums.size(); ++k) {
        sums[k] += beta * (*bias)[k] * a->factor[k];
    }
    const auto shift = as_tensor(b->dtype(), sums);
    const auto weights = scaled_by(*b, a->factor, transposed ? 0 : 1, 1);
    if (!shift || !weights) {
        return false;
    }
    if (weights->bytes().data() != b->bytes().data()) {
        set_input(gemm, 1, c.add(*weights, input(gemm, 1)));
    }
    set_input(gemm, 2, c.add(*shift, old ? input(gemm, 2) : n.outputs[0] + "_bias"));
    remove_attribute(gemm, "beta");
    gemm.outputs = {n.outputs[0]};
    c.edit.erase(*p);
    c.edit.update(i, std::move(gemm));
    return true;
}

// The matrix before the transpose of an operand, when the transpose has no other reader.
std::optional<std::string> transposed_operand(const Context& c, const std::string& name) {
    const std::optional<size_t> p = c.only_producer(name, "Transpose");
    const auto perm = p ? permutation(c, c.edit.node(*p)) : std::nullopt;
    return perm == Axes{1, 0} ? std::optional(input(c.edit.node(*p), 0)) : std::nullopt;
}

bool transpose_gemm(Context& c, size_t i) {
    onnx::Node n = c.edit.node(i);
    const bool matmul = n.op_type == "MatMul";
    // Before opset 11, Gemm requires C.
    if (matmul && (c.opset < 11 || !is_matrix(c, input(n, 0)) || !is_matrix(c, input(n, 1)))) {
        return false;
    }
    bool changed = false;
    for (size_t k = 0; k < 2; ++k) {
        const char* flag = k == 0 ? "transA" : "transB";
        if (const std::optional<std::string> source = transposed_operand(c, input(n, k))) {
            set_input(n, k, *source);
            set_int(n, flag, get_int(n, flag, 0) == 0 ? 1 : 0);
            changed = true;
        }
    }
    if (changed) {
        n.op_type = "Gemm";
        c.edit.update(i, std::move(n));
    }
    return changed;
}

// "...ij,...jk->...ik" with equal, distinct leading letters: a batched product in MatMul's form.
bool is_matmul(std::string equation) {
    std::erase(equation, ' ');
    const size_t comma = equation.find(',');
    const size_t arrow = equation.find("->");
    if (comma == std::string::npos || arrow == std::string::npos || comma > arrow) {
        return false;
    }
    const std::string a = equation.substr(0, comma);
    const std::string b = equation.substr(comma + 1, arrow - comma - 1);
    const std::string out = equation.substr(arrow + 2);
    if (a.size() < 2 || a.size() != b.size() || a.size() != out.size() ||
        b.find(',') != std::string::npos || equation.find('.') != std::string::npos) {
        return false;
    }
    const size_t batch = a.size() - 2;
    std::string letters = a + b.back();
    std::sort(letters.begin(), letters.end());
    const bool distinct = std::adjacent_find(letters.begin(), letters.end()) == letters.end();
    return distinct && a.substr(0, batch) == b.substr(0, batch) &&
           a.substr(0, batch) == out.substr(0, batch) && b[batch] == a[batch + 1] &&
           out[batch] == a[batch] && out[batch + 1] == b[batch + 1];
}

bool einsum_matmul(Context& c, size_t i) {
    onnx::Node n = c.edit.node(i);
    if (n.inputs.size() != 2 || !is_matmul(get_string(n, "equation", ""))) {
        return false;
    }
    const std::optional<Type> a = c.type(input(n, 0));
    const std::optional<Type> b = c.type(input(n, 1));
    if (!a || !b || !(a->dims.back() == b->dims[b->dims.size() - 2])) {
        return false; // Einsum also broadcasts the summed axis
    }
    n.op_type = "MatMul";
    n.attributes.clear();
    c.edit.update(i, std::move(n));
    return true;
}

const Rule rules[] = {
    {"matmul-add",
     "graph_fusion",
     "MatMul and Add of matrices become Gemm",
     {"Add"},
     matmul_add,
     false},
    {"gemm-add", "graph_fusion", "Add after Gemm", {"Add"}, gemm_add, false},
    {"gemm-affine",
     "graph_fusion",
     "normalisation, or arithmetic with a constant per column, after Gemm",
     {"BatchNormalization", "Add", "Sub", "Mul", "Div"},
     gemm_affine,
     false},
    {"transpose-gemm",
     "graph_fusion",
     "transposed operands of Gemm and of MatMul of matrices",
     {"Gemm", "MatMul"},
     transpose_gemm},
    {"einsum-matmul",
     "graph_fusion",
     "Einsum that is a batched matrix product",
     {"Einsum"},
     einsum_matmul,
     false},
};

} // namespace

const RuleTable gemm_rules = rules;

} // namespace ingot::slim
