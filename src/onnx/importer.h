// SPDX-License-Identifier: Apache-2.0
// The importer: ONNX model -> Graph. Each ONNX operator is one function in src/onnx/ops, found by
// (domain, type, opset); a file lists its functions in one table `<stem>_importers`.
#pragma once

#include "base/error.h"
#include "onnx/model.h"
#include "ops/ops.h"

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

namespace ingot::onnx {

class Import; // one import run: graph being built, scopes, opsets

/// The importer function's view of its node. Attribute getters throw InvalidModel for a wrong type;
/// those without a default throw when the attribute is missing.
class NodeContext {
public:
    NodeContext(Import& run, ingot::Graph& g, const Node& node, Values inputs, int64_t opset);

    ingot::Graph& g;
    const Node& node;
    const int64_t opset; // version of the node's domain that the model imports

    /// Number of named inputs; trailing empty names are not counted.
    int input_count() const;
    /// Input i; throws "missing required input i" when absent.
    Value in(int i) const;
    /// Input i, or an invalid Value when absent or named "".
    Value optional(int i) const;
    bool has(int i) const { return optional(i).valid(); }
    /// Number of results in the model; the function must return at least as many values (unused
    /// ones may be invalid).
    int output_count() const;
    bool wants(int i) const; // output i has a name

    const Attribute* attribute(std::string_view name) const;
    int64_t i(std::string_view name) const;
    int64_t i(std::string_view name, int64_t fallback) const;
    double f(std::string_view name, double fallback) const;
    std::string s(std::string_view name, const std::string& fallback) const;
    std::vector<int64_t> ints(std::string_view name) const; // empty when absent
    std::vector<double> floats(std::string_view name) const;
    bool has_attribute(std::string_view name) const { return attribute(name) != nullptr; }

    // Types and constants of inputs
    const Type& type(int i) const { return g.type(in(i)); }
    DType dtype(int i) const { return type(i).dtype; }
    int64_t rank(int i) const { return type(i).rank(); }
    const Dim& dim(int i, int64_t axis) const;
    /// The constant behind input i; otherwise throws Unsupported "input i ('name') must be a
    /// constant".
    ingot::Tensor constant(int i) const;
    std::optional<ingot::Tensor> maybe_constant(int i) const;
    /// Integers of a constant input of rank 0 or 1.
    std::vector<int64_t> constant_ints(int i) const;

    // Control flow: builds a closed body from a graph attribute. `inputs` are the body's own inputs
    // (given types; names from the attribute's graph); values that it captures from outer scopes
    // become further body inputs, listed in `captures` as values of g. The body's outputs are those
    // of the ONNX graph.
    struct Body {
        GraphRef graph;
        Values captures;
    };
    Body body(std::string_view attribute, std::span<const Type> inputs) const;
    /// Two or more bodies that share one list of captures (for If).
    std::vector<Body> bodies(std::span<const std::string_view> attributes) const;

    /// Throws Unsupported with the joined text; the parser's error code follows from the kind.
    template <class... Args>
    [[noreturn]] void refuse(RefusalKind kind, const Args&... args) const {
        ingot::refuse(kind, args...);
    }
    /// Throws InvalidModel unless the condition holds.
    template <class... Args>
    void ensure(bool condition, const Args&... args) const {
        require(condition, ErrorCode::InvalidModel, args...);
    }

private:
    Import& run_;
    Values inputs_;
};

using ImportFunction = Values (*)(NodeContext& c);

/// The part of an operator in shapes: networks of the API compute them on the host. There is no
/// default: each row says it.
struct ShapeUse {
    uint32_t inputs; // bit i: the values of input i are sizes, axes, counts or the like
    bool results;    // the results may be such values too

    constexpr ShapeUse(uint32_t in, bool out) : inputs(in), results(out) {}
    bool reads(size_t input) const { return input < 32 && (inputs >> input & 1U) != 0; }
    constexpr ShapeUse and_results() const { return {inputs, true}; }
};
/// Neither inputs nor results are shapes.
inline constexpr ShapeUse no_shapes = {0, false};
/// These inputs are shapes.
constexpr ShapeUse shape_inputs(std::initializer_list<unsigned> inputs) {
    uint32_t bits = 0;
    for (unsigned i : inputs) {
        bits |= 1U << i;
    }
    return {bits, false};
}
/// The results may be shapes.
inline constexpr ShapeUse shape_results = {0, true};

inline constexpr int newest_opset = 1 << 30;

/// One row: operator, the opset versions it serves, function. `domain` "" is ai.onnx.
struct ImporterRow {
    std::string_view domain;
    std::string_view type;
    int since = 1; // lowest opset version of the domain
    ImportFunction import = nullptr;
    ShapeUse shapes;
    int until = newest_opset; // highest
    bool refuses = false;     // every node
};
using ImporterTable = std::span<const ImporterRow>;

std::span<const ImporterTable* const> all_importers();
/// The row for an operator at an opset version, or null.
const ImporterRow* find_importer(std::string_view domain, std::string_view type, int64_t opset);

/// One node that cannot be imported.
struct Refusal {
    std::string node; // name, or "#index" when unnamed
    std::string domain;
    std::string type;
    int64_t opset = 0;
    std::string reason;
    ErrorCode code = ErrorCode::Unsupported; // or InvalidModel, InvalidArgument
    RefusalKind kind = RefusalKind::None;
};

struct ImportOptions {
    /// Keep the ONNX name of every tensor on its value (for compare and debugging).
    bool keep_names = false;
    /// Called after each ONNX graph of the model has been imported, with the values of its names:
    /// the main graph, and bodies, some of them several times (the last call counts).
    std::function<void(const Graph& source, const ingot::Graph& g,
                       const std::unordered_map<std::string, Value>& names)>
        observe;
};
struct ImportResult {
    ingot::Graph graph;
    std::vector<Refusal> refusals; // empty on success; else the graph is not usable
};
/// Imports every node it can and lists the refused ones. Throws only when the model itself is
/// malformed (InvalidModel), or when it has more than 10,000 refusals (Unsupported).
ImportResult import_model(const Model& model, const ImportOptions& options = {});
/// Calls import_model; throws Unsupported with all refusals when there are any.
ingot::Graph import_or_throw(const Model& model, const ImportOptions& options = {});

} // namespace ingot::onnx
