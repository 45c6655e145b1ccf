// SPDX-License-Identifier: Apache-2.0
#include "workflow/quantization/constant_operand.h"

#include "base/thread_pool.h"
#include "plan/copy.h"

namespace ingot {

namespace {

Tensor transposed(const Tensor& matrix) {
    int64_t rows = matrix.shape()[0];
    int64_t columns = matrix.shape()[1];
    Tensor out = Tensor::empty(matrix.dtype(), {columns, rows});
    plan::Operand from{matrix.dtype(), -1, {{columns, rows}, {1, columns}, 0}};
    plan::Operand to{out.dtype(), -1, plan::dense(out.shape())};
    plan::copy_elements(from, matrix.bytes().data(), to, out.mutable_bytes().data(),
                        ThreadPool::shared());
    return out;
}

} // namespace

std::optional<ConstantOperand> constant_operand(const slim::Context& c, const std::string& tensor) {
    if (c.edit.constant(tensor) != nullptr) {
        return ConstantOperand{tensor, false};
    }
    std::optional<size_t> p = c.producer(tensor, "Transpose");
    if (!p) {
        return std::nullopt;
    }
    const onnx::Node& n = c.edit.node(*p);
    const onnx::Tensor* t = c.edit.constant(n.inputs[0]);
    std::vector<int64_t> perm = slim::get_ints(n, "perm");
    bool exchanges = perm.empty() || perm == std::vector<int64_t>{1, 0};
    bool matrix = t != nullptr && t->dims.size() == 2 && c.dtype(n.inputs[0]) == DType::F32;
    return matrix && exchanges ? std::optional(ConstantOperand{n.inputs[0], true}) : std::nullopt;
}

Tensor value_of(const slim::Context& c, const ConstantOperand& o) {
    Tensor t = c.constant(o.name).value();
    return o.transposed ? transposed(t) : t;
}

void drop_transpose(slim::GraphEdit& edit, const std::string& tensor) {
    std::optional<size_t> p = edit.producer(tensor);
    if (p && edit.node(*p).op_type == "Transpose" && !edit.is_used(tensor)) {
        edit.erase(*p);
    }
}

} // namespace ingot
