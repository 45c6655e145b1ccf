// SPDX-License-Identifier: Apache-2.0
// Graphs chosen by bytes: ops, attributes and operands. Every op takes part, through its list of
// attributes.
#pragma once

#include "base/error.h"
#include "ir/field_list.h"
#include "ir/rewrite.h"
#include "ops/op_table.h"
#include "ops/primitives.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ingot {

inline constexpr int64_t most_elements = 4096;

/// Choices drawn from the input; zeros once it is used up.
class Choices {
public:
    explicit Choices(std::span<const uint8_t> data) : data_(data) {}
    bool done() const { return data_.empty(); }
    uint8_t byte() {
        if (data_.empty()) {
            return 0;
        }
        uint8_t b = data_.front();
        data_ = data_.subspan(1);
        return b;
    }
    size_t below(size_t n) { return n == 0 ? 0 : byte() % n; }
    /// Mostly small, now and then a limit.
    int64_t integer() {
        static constexpr std::array<int64_t, 8> limits = {
            INT64_MIN, INT64_MAX, -1, int64_t{1} << 31, int64_t{1} << 62, INT32_MIN, 1000, 0};
        uint8_t b = byte();
        return b < 240 ? b % 8 - (b >= 200 ? 4 : 0) : limits[b % limits.size()];
    }

private:
    std::span<const uint8_t> data_;
};

inline const std::vector<const OpDef*>& ops_list() {
    static const std::vector<const OpDef*> list = [] {
        std::vector<const OpDef*> out;
        for (const OpTable* table : all_ops()) {
            out.insert(out.end(), table->begin(), table->end());
        }
        return out;
    }();
    return list;
}

inline DType choose_dtype(Choices& c) {
    return static_cast<DType>(c.below(dtype_count));
}

inline Dim choose_dim(Choices& c, const Graph& g) {
    switch (c.below(6)) {
    case 0:
        return Dim::symbol("N");
    case 1:
        return Dim::symbol("N") + Dim(1);
    case 2:
        return Dim::symbol(c.below(2) == 0 ? "?0" : "?1");
    case 3: { // a size that occurs in the graph
        auto v = static_cast<uint32_t>(c.below(g.value_count()));
        const Dims& dims = g.type(Value{v}).dims;
        return dims.empty() ? Dim(1) : dims[c.below(dims.size())];
    }
    default:
        return c.integer();
    }
}

inline std::string choose_word(Choices& c) {
    static constexpr std::array words = {
        "sum",    "prod",       "min",        "max",           "none",    "add",
        "mul",    "constant",   "edge",       "wrap",          "reflect", "uniform",
        "normal", "average",    "nearest",    "linear",        "cubic",   "floor",
        "ceil",   "half_pixel", "asymmetric", "align_corners", "",        "other"};
    return words[c.below(words.size())];
}

Graph make_graph(Choices& c, const Graph* outer, int depth);

struct Chooser {
    Choices& c;
    const Graph& g;
    int depth;

    void operator()(bool* v) const { *v = c.below(2) != 0; }
    void operator()(int64_t* v) const { *v = c.integer(); }
    void operator()(double* v) const { *v = static_cast<double>(c.integer()) / 4; }
    void operator()(std::string* v) const { *v = choose_word(c); }
    void operator()(DType* v) const { *v = choose_dtype(c); }
    void operator()(Dim* v) const { *v = choose_dim(c, g); }
    template <class T>
    void operator()(std::vector<T>* v) const {
        v->resize(c.below(5));
        for (T& item : *v) {
            (*this)(&item);
        }
    }
    void operator()(Expr* v) const {
        DType t = choose_dtype(c);
        int x = v->in(0, t);
        if (c.below(2) == 0) {
            v->cast(x, choose_dtype(c), c.below(2) != 0);
            return;
        }
        int y = v->in(static_cast<int>(c.below(3)), t);
        auto first = static_cast<size_t>(ExprOp::Select) + 1;
        auto op =
            static_cast<ExprOp>(first + c.below(static_cast<size_t>(ExprOp::IsInf) - first + 1));
        v->op(op, x, arity(op) > 1 ? y : -1);
    }
    void operator()(Tensor* v) const {
        *v = Tensor::zeros(choose_dtype(c), {static_cast<int64_t>(c.below(4))});
        for (int64_t i = 0; i < v->count(); ++i) {
            v->set_i64(i, c.integer());
        }
    }
    void operator()(GraphRef* v) const {
        if (depth < 2 && c.below(8) != 0) {
            *v = std::make_shared<const Graph>(make_graph(c, &g, depth + 1));
        }
    }
};

inline bool too_large(const Dims& dims) {
    int64_t count = 1;
    for (const Dim& d : dims) {
        int64_t size = d.try_eval({{"N", 3}, {"?0", 4}, {"?1", 4}}).value_or(8);
        count *= std::clamp<int64_t>(size, 0, most_elements + 1);
        if (count > most_elements) {
            return true;
        }
    }
    return false;
}

inline void add_node(Choices& c, Graph& g, int depth) {
    const OpDef& op = *ops_list()[c.below(ops_list().size())];
    std::shared_ptr<void> attrs = op.make();
    FieldList fields(op, attrs.get());
    Values operands(c.below(5));
    for (Value& v : operands) {
        v.id = static_cast<uint32_t>(c.below(g.value_count()));
    }
    try {
        for (auto& field : fields.fields) {
            if (c.below(3) != 0) {
                std::visit(Chooser{c, g, depth}, field.second);
            }
        }
        std::vector<Type> in;
        for (Value v : operands) {
            in.push_back(g.type(v));
        }
        if (op.infer != nullptr) { // not into the graph where it could not be run
            for (const Type& t : op.infer(attrs.get(), in)) {
                require(!too_large(t.dims), ErrorCode::Unsupported, "large");
            }
        }
        g.add(op, std::shared_ptr<const void>(attrs), operands);
    } catch (const Error&) {
    }
}

inline Graph make_graph(Choices& c, const Graph* outer, int depth) {
    Graph g = outer == nullptr ? Graph("main") : outer->sibling("body");
    size_t inputs = 1 + c.below(4);
    for (size_t i = 0; i < inputs; ++i) {
        Type t{choose_dtype(c), {}};
        for (size_t rank = c.below(5); rank > 0; --rank) {
            t.dims.push_back(c.below(3) == 0 ? Dim::symbol("N")
                                             : Dim(static_cast<int64_t>(c.below(5))));
        }
        g.add_input(str("x", i), t);
    }
    // Zeros alone choose no node worth its time.
    for (size_t steps = 1 + c.below(depth == 0 ? 24 : 4); steps > 0 && !c.done(); --steps) {
        add_node(c, g, depth);
    }
    size_t outputs = 1 + c.below(3);
    for (size_t i = 0; i < outputs; ++i) {
        auto last = static_cast<uint32_t>(g.value_count() - 1 -
                                          c.below(std::min<size_t>(g.value_count(), 4)));
        g.add_output(str("y", i), Value{last});
    }
    return g;
}

/// Sizes known only at run time could be of any magnitude.
inline bool may_run(const Graph& g) {
    bool fits = true;
    visit_nodes(g, [&](const Graph& owner, const Node& n) {
        fits = fits && !n.is(tensor_to_dims_def);
        for (Value v : n.outputs) {
            fits = fits && !too_large(owner.type(v).dims);
        }
    });
    return fits;
}

} // namespace ingot
