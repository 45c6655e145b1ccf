// SPDX-License-Identifier: Apache-2.0
// reciprocal_scales: where the result of a kernel is stored in 8 bits, divisions by constants
// become products with their reciprocals: a division takes as long as all else that an epilogue
// does. The quotient's last bit may differ, as that of the kernel's own sums does with their order.
#include "ir/rewrite.h"
#include "lower/lowering.h"
#include "ops/ops.h"
#include "plan/epilogue.h"
#include "plan/views.h"

#include <algorithm>
#include <cmath>

namespace ingot::plan {

namespace {

bool is_eight_bits(DType t) {
    return t == DType::I8 || t == DType::U8 || t == DType::F8E4M3;
}

/// Whether v is computed, and by no map: in floats or as sums, not a graph's input or a constant.
bool is_kernel_result(const Graph& g, Value v) {
    const Node* p = g.producer(v);
    return p != nullptr && !p->is(map_def) && !p->inputs.empty() && !is_view(g, *p);
}

/// The reciprocals of a constant of f32; nullopt where one is not normal.
std::optional<Tensor> reciprocals(const Tensor* t) {
    if (t == nullptr || t->dtype() != DType::F32) {
        return std::nullopt;
    }
    Tensor out = Tensor::empty(DType::F32, t->shape());
    std::span<float> to = out.as_mutable<float>();
    for (size_t i = 0; i < to.size(); ++i) {
        to[i] = 1 / t->as<float>()[i];
        if (!std::isnormal(to[i])) {
            return std::nullopt;
        }
    }
    return out;
}

std::optional<Values> multiply(Rewriter& r, const Node& n, std::span<const Value> in) {
    Graph& g = r.out();
    if (!n.is(map_def) || !is_eight_bits(n.as<Map>().dtype) ||
        std::none_of(in.begin(), in.end(), [&g](Value v) { return is_kernel_result(g, v); })) {
        return std::nullopt;
    }
    Map map = n.as<Map>();
    Values operands(in.begin(), in.end());
    bool any = false;
    for (size_t i = 0; i < map.body.code.size(); ++i) {
        const ExprInstr division = map.body.code[i];
        if (division.op != ExprOp::Div || division.type != DType::F32) {
            continue;
        }
        const ExprInstr& by = map.body.code[static_cast<size_t>(division.args[1])];
        bool reads = by.op == ExprOp::In && by.type == DType::F32;
        auto operand = static_cast<size_t>(reads ? by.args[0] : 0);
        std::optional<Tensor> inverse =
            reads ? reciprocals(g.constant(operands[operand])) : std::nullopt;
        auto reads_it = [&by](const ExprInstr& c) {
            return c.op == ExprOp::In && c.args[0] == by.args[0];
        };
        bool alone = uses_of(map.body)[static_cast<size_t>(division.args[1])] == 1 &&
                     std::count_if(map.body.code.begin(), map.body.code.end(), reads_it) == 1;
        if (inverse && alone) {
            operands[operand] = ops::constant(g, std::move(*inverse));
            map.body.code[i].op = ExprOp::Mul;
            any = true;
        }
    }
    return any ? std::optional(Values{g.add1(map_def, map, std::span<const Value>(operands))})
               : std::nullopt;
}

} // namespace

Pass reciprocal_scales(const KernelSet&) {
    return {
        .name = "reciprocal_scales",
        .summary = "kernels that store 8 bits multiply by reciprocals of constants",
        .run = [](const Graph& g, const PassOptions&) { return dead_code(rewrite(g, multiply)); },
    };
}

} // namespace ingot::plan
