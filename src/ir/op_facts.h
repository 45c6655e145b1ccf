// SPDX-License-Identifier: Apache-2.0
// OpFacts: how an op behaves in floats of few bits. Each op states them where it is defined; passes
// and backends ask here and keep no lists of ops.
#pragma once

#include <concepts>
#include <cstddef>

namespace ingot {

class Graph;
struct Node;

/// How float results answer to a small change of float operands.
enum class Rounding {
    Moves,   // results are elements of the operands
    Smooth,  // results change little
    Matters, // a result may become another one, or nothing is known: comparisons, quantization
};

/// The type in which an op computes, and which its results have, in a graph that is narrowed from
/// f32 to 16 bits.
enum class InHalf {
    Narrow,     // 16 bits
    AsOperands, // 16 bits where a variable operand has them; f32 for numbers made from integers
    Wide,       // f32: sums over many elements, counters, code that was written for f32
    Unchanged,  // what the graph says: constants, and bodies, which are narrowed on their own
};

/// The types that float operands have in a narrowed graph, in order of the operands: the first
/// `either` may have any, those from `kept` on keep theirs, those between have the result's.
struct OperandTypes {
    size_t either;
    size_t kept;

    bool takes_either(size_t operand) const { return operand < either; }
    bool keeps(size_t operand) const { return operand >= kept && operand >= either; }
};
inline constexpr size_t all_operands = static_cast<size_t>(-1);
/// All have the result's type.
inline constexpr OperandTypes like_result = {0, all_operands};
/// All may have any.
inline constexpr OperandTypes any_type = {all_operands, all_operands};
/// All keep theirs.
inline constexpr OperandTypes own_types = {0, 0};
/// Parameters from this operand on keep their types.
constexpr OperandTypes parameters_from(size_t operand) {
    return {0, operand};
}

/// The same for all nodes of an op, or found from a node's attributes and operands.
template <class T, class... Args>
class Fact {
public:
    constexpr Fact(T value) : value_(value) {} // NOLINT(google-explicit-constructor)
    template <std::convertible_to<T (*)(Args...)> F>
    constexpr Fact(F of) : of_(of) {} // NOLINT(google-explicit-constructor)

    T operator()(Args... args) const { return of_ != nullptr ? of_(args...) : value_; }

private:
    T value_{};
    T (*of_)(Args...) = nullptr;
};

/// There are no defaults: an op without facts does not compile.
struct OpFacts {
    constexpr OpFacts(Fact<Rounding, const Node&> r, Fact<InHalf, const Graph&, const Node&> h,
                      OperandTypes o)
        : rounding(r), in_half(h), operands(o) {}

    Fact<Rounding, const Node&> rounding;
    Fact<InHalf, const Graph&, const Node&> in_half;
    OperandTypes operands;
};

} // namespace ingot
