// SPDX-License-Identifier: Apache-2.0
// OpDef: everything the compiler knows about one operation. A primitive has infer and eval, a
// composite has expand; there is no list of operations in code, and none is switched over.
#pragma once

#include "ir/expr.h"
#include "ir/op_facts.h"
#include "ir/tensor.h"
#include "ir/type.h"

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

namespace ingot {

class Graph;

/// A value of one graph: an index, valid for that graph only.
struct Value {
    uint32_t id = UINT32_MAX;
    bool valid() const { return id != UINT32_MAX; }
    bool operator==(const Value&) const = default;
    // The defaulted body compares with 0, which the check takes for a null pointer.
    auto operator<=>(const Value&) const = default; // NOLINT(modernize-use-nullptr)
};
using Values = std::vector<Value>;
using GraphRef = std::shared_ptr<const Graph>;

/// Sees each attribute of an op with its name. Printing, parsing, hashing, the binary form and
/// attribute rewriting are visitors; an op declares its fields once.
struct AttrVisitor {
    virtual ~AttrVisitor() = default;
    virtual void field(std::string_view name, bool& v) = 0;
    virtual void field(std::string_view name, int64_t& v) = 0;
    virtual void field(std::string_view name, double& v) = 0;
    virtual void field(std::string_view name, std::string& v) = 0;
    virtual void field(std::string_view name, DType& v) = 0;
    virtual void field(std::string_view name, Dim& v) = 0;
    virtual void field(std::string_view name, std::vector<int64_t>& v) = 0;
    virtual void field(std::string_view name, std::vector<double>& v) = 0;
    virtual void field(std::string_view name, std::vector<std::string>& v) = 0;
    virtual void field(std::string_view name, Dims& v) = 0;
    virtual void field(std::string_view name, Expr& v) = 0;
    virtual void field(std::string_view name, Tensor& v) = 0;
    virtual void field(std::string_view name, GraphRef& v) = 0;
};

/// An integer or rational size known while compiling: numerator / denominator.
struct HostElement {
    Dim numerator;
    int64_t denominator = 1;
    bool operator==(const HostElement&) const = default;
};
/// The symbolic elements of a small tensor (shapes and the arithmetic on them), as far as they are
/// known; row-major, at most 1024. Unknown elements are nullopt.
struct HostValue {
    Shape shape;
    std::vector<std::optional<HostElement>> elements;
    /// All elements as whole sizes, or nullopt.
    std::optional<Dims> dims() const;
};
using HostRef = std::shared_ptr<const HostValue>;

/// Arguments of a reference evaluation. `out[i]` is allocated where its type's sizes are known
/// before the op runs; else (data-dependent sizes) eval assigns it.
struct EvalArgs {
    std::span<const Tensor> in;
    std::span<Tensor> out;
    const Symbols& symbols;
    /// Runs a body graph (If, Loop, fused nodes) on the same evaluator.
    const std::function<std::vector<Tensor>(const Graph&, std::span<const Tensor>)>& run;
    int64_t dim(const Dim& d) const { return d.eval(symbols); }
    Shape dims(const Dims& d) const { return ingot::eval(d, symbols); }
};

struct OpDef {
    std::string_view name;
    OpFacts facts;
    std::shared_ptr<void> (*make)();
    std::shared_ptr<void> (*copy)(const void* attrs);
    void (*visit)(void* attrs, AttrVisitor& v);
    bool has_bodies = false;       // an attribute is a graph
    bool declares_symbols = false; // an attribute is `count` or `symbols` (ir/rewrite.h)

    /// Primitives. Errors: InvalidModel with got and expected.
    std::vector<Type> (*infer)(const void* attrs, std::span<const Type> in) = nullptr;
    void (*eval)(const void* attrs, EvalArgs& args) = nullptr;
    /// Optional; for the primitives of shape arithmetic. in[i] may be null.
    std::vector<HostRef> (*host)(const void* attrs, std::span<const HostRef> in,
                                 std::span<const Type> out) = nullptr;
    /// Composites: adds the primitives (or other composites) that define it.
    Values (*expand)(Graph& g, const void* attrs, std::span<const Value> in) = nullptr;

    bool is_composite() const { return expand != nullptr; }
};

namespace detail {

template <class A>
OpDef base_def(std::string_view name, OpFacts facts) {
    OpDef d = {
        name, facts, [] { return std::static_pointer_cast<void>(std::make_shared<A>()); },
        [](const void* a) {
            return std::static_pointer_cast<void>(std::make_shared<A>(*static_cast<const A*>(a)));
        },
        [](void* a, AttrVisitor& v) {
            A::fields(*static_cast<A*>(a), [&v](std::string_view n, auto& f) { v.field(n, f); });
        }};
    A attrs{};
    A::fields(attrs, [&d](std::string_view n, auto& f) {
        using Field = std::remove_cvref_t<decltype(f)>;
        d.has_bodies |= std::is_same_v<Field, GraphRef>;
        d.declares_symbols |= (n == "count" && std::is_same_v<Field, Dim>) ||
                              (n == "symbols" && std::is_same_v<Field, Dims>);
    });
    return d;
}

} // namespace detail

/// Defines a primitive from stateless lambdas:
///   infer: std::vector<Type>(const A&, std::span<const Type>);  eval: void(const A&, EvalArgs&)
template <class A, class Infer, class Eval>
OpDef primitive(std::string_view name, OpFacts facts, Infer, Eval) {
    OpDef d = detail::base_def<A>(name, facts);
    d.infer = [](const void* a, std::span<const Type> in) {
        return Infer{}(*static_cast<const A*>(a), in);
    };
    d.eval = [](const void* a, EvalArgs& e) { Eval{}(*static_cast<const A*>(a), e); };
    return d;
}

/// The same with symbolic evaluation:
///   host: std::vector<HostRef>(const A&, std::span<const HostRef>, std::span<const Type>)
template <class A, class Infer, class Eval, class Host>
OpDef primitive(std::string_view name, OpFacts facts, Infer infer, Eval eval, Host) {
    OpDef d = primitive<A>(name, facts, infer, eval);
    d.host = [](const void* a, std::span<const HostRef> in, std::span<const Type> out) {
        return Host{}(*static_cast<const A*>(a), in, out);
    };
    return d;
}

/// Defines a composite: expand is Values(Graph&, const A&, std::span<const Value>).
template <class A, class Expand>
OpDef composite(std::string_view name, OpFacts facts, Expand) {
    OpDef d = detail::base_def<A>(name, facts);
    d.expand = [](Graph& g, const void* a, std::span<const Value> in) {
        return Expand{}(g, *static_cast<const A*>(a), in);
    };
    return d;
}

} // namespace ingot
