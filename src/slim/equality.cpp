// SPDX-License-Identifier: Apache-2.0
// Rules that merge equal tensors: equal by analysis, computed alike, or constants with equal
// contents.
#include "base/hash.h"
#include "base/text.h"
#include "slim/rules.h"

#include <algorithm>
#include <array>
#include <unordered_map>

namespace ingot::slim {

namespace {

// Operators with different results in each run.
constexpr std::array<std::string_view, 7> random_ops = {
    "Bernoulli",        "Dropout",       "Multinomial",      "RandomNormal",
    "RandomNormalLike", "RandomUniform", "RandomUniformLike"};

// Names by their value number, in the order in which they become available.
class SameValue {
public:
    explicit SameValue(Context& c) : c_(c) {}

    bool run() {
        for (const onnx::ValueInfo& v : c_.edit.graph().inputs) {
            learn(v.name);
        }
        for (const onnx::Tensor& t : c_.edit.constants()) {
            learn(t.name);
        }
        bool changed = false;
        for (size_t i = 0; i < c_.edit.size(); ++i) {
            if (!c_.edit.alive(i)) {
                continue;
            }
            for (const std::string& name : c_.edit.node(i).inputs) {
                if (!c_.edit.producer(name)) {
                    learn(name); // captured
                }
            }
            changed = visit(i) || changed;
        }
        return changed;
    }

private:
    void learn(const std::string& name) {
        const TensorInfo* f = name.empty() ? nullptr : c_.info(name);
        if (f != nullptr) {
            first_.emplace(f->number, name);
        }
    }

    bool visit(size_t i) {
        bool changed = false;
        const std::vector<std::string> outputs = c_.edit.node(i).outputs;
        for (const std::string& o : outputs) {
            const TensorInfo* f = o.empty() ? nullptr : c_.info(o);
            if (f == nullptr || !c_.edit.is_used(o)) {
                continue;
            }
            const auto [at, fresh] = first_.emplace(f->number, o);
            if (fresh || c_.edit.constant(o) != nullptr) {
                continue;
            }
            const std::string kept = at->second;
            if (c_.edit.bypass(i, o, kept)) {
                at->second = c_.edit.is_output(o) ? o : kept;
                return true;
            }
            if (!c_.edit.readers(o).empty()) {
                c_.edit.redirect(o, kept);
                changed = true;
            }
        }
        return changed;
    }

    Context& c_;
    std::unordered_map<uint32_t, std::string> first_;
};

bool same_value(Context& c, size_t) {
    return SameValue(c).run();
}

void append_tensor(std::string& out, const onnx::Tensor& t) {
    append(out, str(t.data_type, t.dims, xxh3_128(t.bytes), t.string_count));
}

// Equal texts mean equal attributes; nullopt for attributes that are not compared.
std::optional<std::string> attribute_text(const onnx::Node& n) {
    std::vector<std::string> parts;
    for (const onnx::Attribute& a : n.attributes) {
        std::string p = str(a.name, "=", a.type, ":", a.f, ",", a.i, ",", a.ints, a.floats,
                            a.s.size(), ":", a.s, a.ref_attr_name);
        for (const std::string& s : a.strings) {
            append(p, str(s.size(), ":", s));
        }
        const bool opaque = a.g != nullptr || !a.graphs.empty() || !a.tensors.empty() ||
                            a.sparse_tensor != nullptr || a.t.string_count != 0 ||
                            a.type >= onnx::AttributeType::SparseTensor;
        if (opaque) {
            return std::nullopt;
        }
        append_tensor(p, a.t);
        parts.push_back(std::move(p));
    }
    std::sort(parts.begin(), parts.end());
    return join(parts, ";");
}

std::optional<std::string> node_text(const onnx::Node& n) {
    const bool random =
        std::find(random_ops.begin(), random_ops.end(), n.op_type) != random_ops.end();
    const std::optional<std::string> attributes = attribute_text(n);
    if (!n.domain.empty() || random || !attributes) {
        return std::nullopt;
    }
    std::string text = str(n.op_type, "\n", *attributes);
    for (const std::string& name : n.inputs) {
        append(text, str("\n", name));
    }
    return str(text, "\n#", n.outputs.size());
}

// Redirects the readers of node i's results to those of an equal earlier node.
bool merge_into(Context& c, size_t i, size_t first) {
    const std::vector<std::string> gone = c.edit.node(i).outputs;
    std::vector<std::string> kept = c.edit.node(first).outputs;
    for (size_t k = 0; k < gone.size(); ++k) {
        const bool both =
            c.edit.is_output(gone[k]) && !kept[k].empty() && c.edit.is_output(kept[k]);
        if (both) {
            return false; // each needs its own name
        }
    }
    onnx::Node merged = c.edit.node(first);
    c.edit.erase(i);
    for (size_t k = 0; k < gone.size(); ++k) {
        const bool takes_name = kept[k].empty() || c.edit.is_output(gone[k]);
        merged.outputs[k] = takes_name ? gone[k] : kept[k];
    }
    c.edit.update(first, merged);
    for (size_t k = 0; k < gone.size(); ++k) {
        if (merged.outputs[k] != kept[k]) {
            c.edit.redirect(kept[k], merged.outputs[k]);
        } else {
            c.edit.redirect(gone[k], kept[k]);
        }
    }
    return true;
}

bool common_subexpression(Context& c, size_t) {
    bool changed = false;
    std::unordered_map<std::string, size_t> first;
    for (size_t i = 0; i < c.edit.size(); ++i) {
        const std::optional<std::string> text =
            c.edit.alive(i) ? node_text(c.edit.node(i)) : std::nullopt;
        if (!text) {
            continue;
        }
        const auto [at, fresh] = first.emplace(*text, i);
        changed = (!fresh && merge_into(c, i, at->second)) || changed;
    }
    return changed;
}

// Bytes at both ends of a large constant that are hashed before all contents are compared.
constexpr size_t probe_bytes = 4096;

bool duplicate_initializers(Context& c, size_t) {
    std::unordered_map<std::string, std::vector<std::string>> by_probe;
    std::vector<std::pair<std::string, std::string>> equal; // gone, kept
    for (const onnx::Tensor& t : c.edit.constants()) {
        if (t.name.empty() || t.string_count != 0 || c.edit.is_input(t.name)) {
            continue;
        }
        const size_t n = std::min(t.bytes.size(), probe_bytes);
        std::vector<std::string>& same = by_probe[str(
            t.data_type, t.dims, xxh3_128(t.bytes.first(n)), xxh3_128(t.bytes.last(n)))];
        auto it = std::find_if(same.begin(), same.end(), [&](const std::string& name) {
            const onnx::Tensor& other = *c.edit.constant(name);
            return std::equal(t.bytes.begin(), t.bytes.end(), other.bytes.begin());
        });
        if (it == same.end()) {
            same.push_back(t.name);
        } else if (!c.edit.is_output(t.name)) {
            equal.emplace_back(t.name, *it);
        }
    }
    for (const auto& [gone, kept] : equal) {
        c.edit.redirect(gone, kept);
        c.edit.drop_constant(gone);
    }
    return !equal.empty();
}

const Rule rules[] = {
    {"same-value",
     "subexpression_elimination",
     "tensors that the importer proves equal",
     {},
     same_value},
    {"common-subexpression",
     "subexpression_elimination",
     "nodes that compute the same",
     {},
     common_subexpression},
    {"duplicate-initializer",
     "weight_tying",
     "initializers with equal contents",
     {},
     duplicate_initializers},
};

} // namespace

const RuleTable equality_rules = rules;

} // namespace ingot::slim
