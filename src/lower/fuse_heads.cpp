// SPDX-License-Identifier: Apache-2.0
// fuse_heads: a product of possibly few rows whose columns are heads of queries, keys and values
// writes each head where it belongs, in a cache too, and turns those that a rope reads: a decode
// step has one launch less in every layer.
#include "ir/rewrite.h"
#include "lower/few_rows.h"
#include "lower/group_inputs.h"
#include "lower/lowering.h"
#include "ops/ops.h"
#include "plan/kernel.h"

#include <algorithm>
#include <map>

namespace ingot::plan {

namespace {

/// A range of the product's columns.
struct Part {
    const Node* slice = nullptr;
    std::vector<const Node*> moves;
    const Node* rope = nullptr; // null: the last move's result is the part's
    const Node* last() const { return rope != nullptr ? rope : moves.back(); }
};

struct Heads {
    const Node* product = nullptr; // or a group of one and the norm before it
    std::vector<Part> parts;
    const Node* first = nullptr; // of the last nodes of parts
};

class HeadsFuser {
public:
    HeadsFuser(const Graph& g, const KernelSet& kernels)
        : g_(g), kernels_(kernels), readers_(g.value_count()) {
        for (const Node& n : g.nodes()) {
            for (Value v : n.inputs) {
                readers_[v.id].push_back(&n);
            }
        }
        for (Value v : g.outputs()) {
            readers_[v.id].push_back(nullptr);
        }
        for (const Node& n : g.nodes()) {
            if (std::optional<Heads> h = heads_of(n)) {
                heads_.emplace(h->first, std::move(*h));
            }
        }
    }

    std::optional<Values> rule(Rewriter& r, const Node& n) {
        if (auto at = heads_.find(&n); at != heads_.end()) {
            fuse(r, at->second);
        }
        auto at = results_.find(&n);
        return at == results_.end() ? std::nullopt : std::optional(Values{at->second});
    }

private:
    const Node* only_reader(Value v) const {
        return readers_[v.id].size() == 1 ? readers_[v.id][0] : nullptr;
    }

    std::optional<Heads> heads_of(const Node& n) const {
        bool product = n.is(dot_def) || n.is(ops::quantized_dot_def) ||
                       (n.is(fused_def) &&
                        (n.as<Fused>().kernel == "dot" || n.as<Fused>().kernel == "quantized_dot"));
        if (!product || n.outputs.size() != 1 || !may_have_few_rows(g_.type(n.outputs[0]))) {
            return std::nullopt;
        }
        Heads h{&n, {}, nullptr};
        for (const Node* reader : readers_[n.outputs[0].id]) {
            std::optional<Part> part = reader != nullptr ? part_of(*reader) : std::nullopt;
            if (!part) {
                return std::nullopt;
            }
            if (h.first == nullptr || before(*part->last(), *h.first)) {
                h.first = part->last();
            }
            h.parts.push_back(std::move(*part));
        }
        // The angles may be made behind the product, but before the first part's end.
        bool ordered =
            h.first != nullptr && std::ranges::all_of(h.parts, [&h](const Part& p) {
                return p.rope == nullptr || std::ranges::all_of(p.rope->inputs, [&](Value v) {
                           return v == p.rope->inputs[0] || v.id < h.first->outputs[0].id;
                       });
            });
        return ordered ? std::optional(std::move(h)) : std::nullopt;
    }

    static bool before(const Node& a, const Node& b) { return a.outputs[0].id < b.outputs[0].id; }

    std::optional<Part> part_of(const Node& slice) const {
        Part part;
        part.slice = &slice;
        if (!slice.is(slice_def)) {
            return std::nullopt;
        }
        Value v = slice.outputs[0];
        for (const Node* n = only_reader(v); n != nullptr; n = only_reader(v)) {
            if (n->is(ops::rope_def) && n->inputs[0] == v) {
                part.rope = n;
                break;
            }
            if (part.moves.empty() ? !n->is(reshape_def) : !keeps_last(*n)) {
                break;
            }
            part.moves.push_back(n);
            v = n->outputs[0];
        }
        return part.moves.empty() ? std::nullopt : std::optional(std::move(part));
    }

    static bool keeps_last(const Node& n) {
        return n.is(permute_def) &&
               n.as<Permute>().perm.back() + 1 == std::ssize(n.as<Permute>().perm);
    }

    void fuse(Rewriter& r, const Heads& h) {
        Graph body = g_.sibling("group");
        GroupInputs inputs(body, r.out());
        Value columns = add_product(r, body, inputs, *h.product);
        for (const Part& part : h.parts) {
            body.add_output("", add_part(r, body, inputs, part, columns));
        }
        std::string kernel = (h.product->is(fused_def) ? h.product->as<Fused>().kernel
                                                       : std::string(h.product->def->name)) +
                             "_of_heads";
        Group group{body, body.nodes(), body.inputs(), body.outputs()};
        if (kernels_.find(kernel, group) == nullptr) {
            return;
        }
        r.out().set_origin(str(h.product->name, " + ", h.first->name));
        Values out =
            r.out().add(fused_def, Fused{kernel, std::make_shared<const Graph>(std::move(body))},
                        inputs.values());
        for (size_t i = 0; i < h.parts.size(); ++i) {
            results_[h.parts[i].last()] = out[i];
        }
    }

    static Value add_product(const Rewriter& r, Graph& body, GroupInputs& inputs, const Node& n) {
        const Node current = r.current(n);
        Values in;
        for (Value v : current.inputs) {
            in.push_back(inputs.of(v));
        }
        if (!n.is(fused_def)) {
            body.set_origin(n.name);
            return body.add(*n.def, current.attrs, in)[0];
        }
        const Graph& inner = *current.as<Fused>().body;
        std::map<uint32_t, Value> at;
        for (size_t i = 0; i < in.size(); ++i) {
            at[inner.inputs()[i].id] = in[i];
        }
        append_nodes(body, inner.nodes(), at);
        return at.at(inner.outputs()[0].id);
    }

    static Value add_part(const Rewriter& r, Graph& body, GroupInputs& inputs, const Part& part,
                          Value v) {
        // Not yet rewritten, perhaps: attributes alone are mapped.
        const auto& slice = part.slice->as<Slice>();
        body.set_origin(part.slice->name);
        v = body.add1(slice_def, Slice{r.mapped(slice.starts), r.mapped(slice.sizes), slice.steps},
                      {v});
        for (const Node* n : part.moves) {
            body.set_origin(n->name);
            v = n->is(permute_def)
                    ? body.add1(permute_def, n->as<Permute>(), {v})
                    : body.add1(reshape_def, Reshape{r.mapped(n->as<Reshape>().dims)}, {v});
        }
        if (part.rope != nullptr) {
            body.set_origin(part.rope->name);
            return body.add(ops::rope_def, part.rope->attrs,
                            Values{v, inputs.of(r.mapped(part.rope->inputs[1])),
                                   inputs.of(r.mapped(part.rope->inputs[2]))})[0];
        }
        DType type = body.type(v).dtype;
        Expr same;
        same.in(0, type);
        return body.add1(map_def, Map{same, type}, {v});
    }

    const Graph& g_;
    const KernelSet& kernels_;
    std::vector<std::vector<const Node*>> readers_; // null: a result of the graph
    std::map<const Node*, Heads> heads_;            // by `first`
    std::map<const Node*, Value> results_;          // of the last nodes of parts
};

Graph fused(const Graph& g, const KernelSet& kernels) {
    HeadsFuser fuser(g, kernels);
    return dead_code(rewrite(g, [&fuser](Rewriter& r, const Node& n, std::span<const Value>) {
        return fuser.rule(r, n);
    }));
}

} // namespace

Pass fuse_heads(const KernelSet& kernels) {
    return {
        .name = "fuse_heads",
        .summary = "products write heads where they belong, and turn them as ropes do",
        .run = [&kernels](const Graph& g, const PassOptions&) { return fused(g, kernels); },
        .structural = true,
    };
}

} // namespace ingot::plan
