// SPDX-License-Identifier: Apache-2.0
// share: equal computations become one node, equal constants (tied weights) too. Nodes that define
// sizes are equal when they differ only in the names of those sizes.
#include "base/error.h"
#include "base/hash.h"
#include "passes/passes.h"

#include <algorithm>
#include <bit>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ingot::passes {

namespace {

// Large constants are compared by this many bytes at both ends first.
constexpr size_t probe_bytes = 4096;

std::string constant_key(const Tensor& t) {
    std::span<const std::byte> b = t.bytes();
    size_t n = std::min(b.size(), probe_bytes);
    return str("constant ", t.type(), " ", xxh3_128(b.first(n)), xxh3_128(b.last(n)));
}

// Symbols that a node defines, in order of first occurrence.
struct Declarations : NullVisitor {
    using NullVisitor::field;
    const SymbolSet all;
    std::vector<std::string> order;

    explicit Declarations(const Node& n) : all(declared_symbols(n)) {
        if (!all.empty()) {
            visit_attrs(*n.def, n.attrs.get(), *this);
        }
    }
    void field(std::string_view, Dim& d) override {
        std::string name(d.symbol_name());
        if (all.contains(name) && std::find(order.begin(), order.end(), name) == order.end()) {
            order.push_back(name);
        }
    }
    void field(std::string_view n, Dims& v) override {
        for (Dim& d : v) {
            field(n, d);
        }
    }
};

// Attributes with the defined symbols replaced by their position, and other symbols by their
// current names.
std::string anonymous_key(const Rewriter& r, const Node& n, const std::vector<std::string>& own) {
    SymbolMap names;
    for (const std::string& s : own) {
        names.emplace(s, Dim::symbol(str(s.starts_with('~') ? "~$" : "$", names.size())));
    }
    AttrMap map;
    map.dim = [&](const Dim& d) {
        return r.mapped(d.substitute([&names](std::string_view s) -> std::optional<Dim> {
            auto at = names.find(s);
            return at == names.end() ? std::nullopt : std::optional(at->second);
        }));
    };
    return attrs_key(*n.def, map_attrs(*n.def, n.attrs.get(), map).get());
}

/// One node for each hash, in one block of memory: few of a million nodes are looked at twice, and
/// a table that allocates for each costs more than the rest of the pass.
class NodesByHash {
public:
    explicit NodesByHash(size_t most) : slots_(std::bit_ceil(2 * most + 2)) {}

    /// The node of that hash, which is `n` where there was none, and whether it is.
    std::pair<const Node**, bool> try_emplace(uint64_t hash, const Node* n) {
        hash = std::max<uint64_t>(hash, 1);
        size_t at = (hash ^ hash >> 32) & (slots_.size() - 1);
        while (slots_[at].hash != 0 && slots_[at].hash != hash) {
            at = (at + 1) & (slots_.size() - 1);
        }
        bool is_new = slots_[at].hash == 0;
        if (is_new) {
            slots_[at] = {hash, n};
        }
        return {&slots_[at].node, is_new};
    }

private:
    struct Slot {
        uint64_t hash = 0; // 0: none
        const Node* node = nullptr;
    };
    std::vector<Slot> slots_; // at least twice as many as there are nodes
};

class Sharer {
public:
    explicit Sharer(const Graph& g) : first_(g.nodes().size()) {}

    std::optional<Values> operator()(Rewriter& r, const Node& n, std::span<const Value> in) {
        if (n.is(constant_def)) {
            return constant(r, n);
        }
        if (!bodies(n).empty()) {
            return std::nullopt;
        }
        // Most nodes differ from all others by op or operands: they need no text.
        auto [first, is_first] = first_.try_emplace(hash_of(n, in), &n);
        if (is_first) {
            return std::nullopt;
        }
        if (const Node* other = std::exchange(*first, nullptr)) {
            Values results = r.mapped(other->outputs);
            nodes_.emplace(key_of(r, *other, r.mapped(other->inputs)),
                           Known{results, Declarations(*other).order});
        }
        auto [at, fresh] = nodes_.emplace(key_of(r, n, in), Known{});
        std::vector<std::string> declared = Declarations(n).order;
        if (fresh) {
            at->second = {r.copy(n, in), declared};
            return at->second.results;
        }
        for (size_t i = 0; i < declared.size(); ++i) {
            r.replace_symbol(declared[i], Dim::symbol(at->second.declared[i]));
        }
        return at->second.results;
    }

private:
    struct Known {
        Values results;
        std::vector<std::string> declared;
    };

    static uint64_t hash_of(const Node& n, std::span<const Value> in) {
        uint64_t h = hash_bytes(n.def->name.data(), n.def->name.size());
        for (Value v : in) {
            h = mix(h, v.id);
        }
        return h;
    }

    static std::string key_of(const Rewriter& r, const Node& n, std::span<const Value> in) {
        std::string key = str(n.def->name, "(");
        for (Value v : in) {
            append(key, str(v.id, ","));
        }
        append(key, anonymous_key(r, n, Declarations(n).order));
        return key;
    }

    std::optional<Values> constant(Rewriter& r, const Node& n) {
        const Tensor& t = n.as<Constant>().value;
        std::vector<Value>& same = constants_[constant_key(t)];
        for (Value v : same) {
            const Tensor& other = *r.out().constant(v);
            bool one_place = other.bytes().data() == t.bytes().data();
            if (one_place ? other.type() == t.type() : other == t) {
                return Values{v};
            }
        }
        Values made = r.copy(n, {});
        same.push_back(made[0]);
        return made;
    }

    NodesByHash first_; // by op and operands; null: in nodes_
    std::unordered_map<std::string, Known> nodes_;
    std::unordered_map<std::string, std::vector<Value>> constants_;
};

} // namespace

const Pass share = {
    .name = "share",
    .summary = "merge equal nodes and equal constants",
    .run =
        [](const Graph& g, const PassOptions&) {
            Sharer sharer(g);
            return rewrite(g, [&](Rewriter& r, const Node& n, std::span<const Value> in) {
                return sharer(r, n, in);
            });
        },
    .structural = true,
};

} // namespace ingot::passes
