// SPDX-License-Identifier: Apache-2.0
// Matching of scalar expressions across maps: a chain of maps reads as one tree, so that patterns
// do not depend on how an exporter split it into nodes.
#pragma once

#include "ir/graph.h"

#include <optional>
#include <vector>

namespace ingot::passes {

/// One scalar of an expression: an instruction of the map that produces `value`, or (instr < 0) the
/// element of `value` itself.
struct Term {
    Value value;
    int instr = -1;
};

/// scale * num[0] * num[1] ... / (den[0] * den[1] ...)
struct Product {
    double scale = 1;
    std::vector<Term> num;
    std::vector<Term> den;
};

/// bias + sum of coefficient * term
struct Sum {
    struct Part {
        Term term;
        double coefficient;
    };
    double bias = 0;
    std::vector<Part> parts;
};

/// Reads patterns in a graph; cheap to make. Looks through conversions between f16, bf16 and f32
/// and through repetitions: a term is an element of a value that may be smaller than its use.
class View {
public:
    explicit View(const Graph& g) : g_(g) {}

    const Graph& graph() const { return g_; }
    Term term(Value v) const { return resolve({v, last(v)}); }
    /// The function that a term computes; In for a leaf.
    ExprOp op(Term t) const;
    bool is(Term t, ExprOp o) const { return op(t) == o; }
    /// Operand k of a term that is not a leaf.
    Term arg(Term t, int k) const;
    /// The value of a leaf, which no map computes.
    std::optional<Value> leaf(Term t) const;
    /// The value, where the term is a node's or input's whole result.
    std::optional<Value> value(Term t) const;
    /// The number, when all elements equal one known number.
    std::optional<double> number(Term t) const;
    bool is_number(Term t, double v, double relative = 1e-6) const;
    /// Equal expressions over equal leaves.
    bool same(Term a, Term b, int depth = 12) const;

    /// Keeps a factor whole when it equals one of `whole`.
    Product product(Term t, const std::vector<Term>& whole = {}) const;
    /// k and x where the term is k * x for a number k.
    struct Scaled {
        double scale = 1;
        Term term;
    };
    Scaled scaled(Term t) const;
    /// x where the term is x * x.
    std::optional<Term> square_of(Term t) const;
    Sum sum(Term t) const;
    /// sqrt(x) for x ** 0.5 and the like: the x whose root the term is.
    std::optional<Term> root_of(Term t) const;
    /// The node that produces a leaf, if it is of that op, else null.
    const Node* node(Term t, const OpDef& def) const;

private:
    int last(Value v) const;
    Term resolve(Term t) const;
    const ExprInstr& code(Term t) const;
    void multiply(Term t, Product& p, const std::vector<Term>& whole, bool under, int depth) const;
    void add(Term t, double coefficient, Sum& s, int depth) const;

    const Graph& g_;
};

/// Removes the first term equal to `t`; false if there is none.
bool take(const View& view, std::vector<Term>& terms, Term t);
bool nearly(double a, double b, double relative = 1e-6);
/// Whether the node is a map that converts a float of one type to another, and nothing else.
bool converts_floats(const Graph& g, const Node& n);
/// Whether the node is a map that adds two values in f32.
bool is_addition(const Node& n);

} // namespace ingot::passes
