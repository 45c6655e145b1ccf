// SPDX-License-Identifier: Apache-2.0
// Exporters flatten a batch of matrices into one matrix, apply Gemm and restore the batch. MatMul
// takes the batch directly.
#include "slim/rules.h"

#include <algorithm>

namespace ingot::slim {

namespace {

// Does `flat` merge all axes of `full` except the last into one?
bool is_flattened(const Type& full, const Type& flat) {
    return full.rank() > 2 && flat.rank() == 2 && full.dims.back() == flat.dims.back();
}

// [..., K] and [..., N] with the same leading sizes.
bool same_batch(const Type& a, const Type& b) {
    return a.rank() == b.rank() && std::equal(a.dims.begin(), a.dims.end() - 1, b.dims.begin());
}

// The second operand in MatMul's layout; a transposed constant is written in that layout.
std::optional<std::string> right_operand(Context& c, const onnx::Node& gemm) {
    if (get_int(gemm, "transB", 0) == 0) {
        return input(gemm, 1);
    }
    const std::optional<Tensor> b = c.constant(input(gemm, 1));
    if (!b || b->rank() != 2 || bit_width(b->dtype()) < 8 || !c.edit.used_once(input(gemm, 1))) {
        return std::nullopt;
    }
    const int64_t rows = b->shape()[0];
    const int64_t columns = b->shape()[1];
    const auto width = static_cast<size_t>(bit_width(b->dtype()) / 8);
    Tensor t = Tensor::empty(b->dtype(), {columns, rows});
    const std::byte* from = b->bytes().data();
    std::byte* to = t.mutable_bytes().data();
    for (int64_t k = 0; k < columns; ++k) {
        for (int64_t r = 0; r < rows; ++r) {
            const auto source = static_cast<size_t>(r * columns + k) * width;
            to = std::copy_n(from + source, width, to);
        }
    }
    return c.add(t, input(gemm, 1));
}

// Is C a row that is added to each row of the product?
bool is_row(const Context& c, const std::string& name) {
    const std::optional<Type> t = c.type(name);
    return t && (t->rank() <= 1 || (t->rank() == 2 && t->dims[0].is_const(1)));
}

bool batched_gemm(Context& c, size_t i) {
    const onnx::Node after = c.edit.node(i);
    const std::optional<size_t> g = c.only_producer(input(after, 0), "Gemm");
    const std::optional<size_t> before =
        g ? c.only_producer(input(c.edit.node(*g), 0), "Reshape") : std::nullopt;
    if (!before) {
        return false;
    }
    const onnx::Node gemm = c.edit.node(*g);
    const std::string source = input(c.edit.node(*before), 0);
    const std::optional<Type> x = c.type(source);
    const std::optional<Type> flat = c.type(input(gemm, 0));
    const std::optional<Type> product = c.type(gemm.outputs[0]);
    const std::optional<Type> result = c.type(after.outputs[0]);
    const bool plain = get_int(gemm, "transA", 0) == 0 && get_float(gemm, "alpha", 1) == 1 &&
                       get_float(gemm, "beta", 1) == 1 &&
                       (!has_input(gemm, 2) || is_row(c, input(gemm, 2)));
    if (!x || !flat || !product || !result || !plain || !is_flattened(*x, *flat) ||
        !is_flattened(*result, *product) || !same_batch(*x, *result)) {
        return false;
    }
    const std::optional<std::string> right = right_operand(c, gemm);
    if (!right) {
        return false;
    }
    c.edit.erase(i);
    c.edit.erase(*before);
    if (!has_input(gemm, 2)) {
        c.edit.update(*g, make_node("MatMul", {source, *right}, after.outputs[0], gemm.name));
        return true;
    }
    const std::string matmul = c.edit.fresh_name(gemm.outputs[0]);
    c.edit.update(*g, make_node("MatMul", {source, *right}, matmul, gemm.name));
    c.edit.append(make_node("Add", {matmul, input(gemm, 2)}, after.outputs[0],
                            gemm.name.empty() ? "" : gemm.name + "_bias"));
    return true;
}

const Rule rules[] = {
    {"batched-gemm",
     "graph_fusion",
     "Gemm between reshapes that flatten and restore a batch",
     {"Reshape"},
     batched_gemm,
     false},
};

} // namespace

const RuleTable batched_gemm_rules = rules;

} // namespace ingot::slim
