// SPDX-License-Identifier: Apache-2.0
#include "slim/analysis.h"

#include "base/error.h"
#include "base/hash.h"
#include "ir/rewrite.h"
#include "onnx/importer.h"
#include "ops/primitives.h"

#include <optional>
#include <unordered_set>
#include <utility>

namespace ingot::slim {

namespace {

// Value numbering by the text of the computation.
class Numbering {
public:
    explicit Numbering(const Graph& g) : g_(g), numbers_(g.value_count(), 0) {}

    std::vector<uint32_t> run() {
        for (Value v : g_.inputs()) {
            set(v, known_text(v).value_or(""));
        }
        for (const Node& n : g_.nodes()) {
            if (n.is(reshape_def)) {
                const Value root = unshaped(n.outputs[0]);
                if (g_.type(root) == g_.type(n.outputs[0])) {
                    numbers_[n.outputs[0].id] = numbers_[root.id];
                    continue;
                }
            }
            const std::string key = node_text(n);
            for (size_t i = 0; i < n.outputs.size(); ++i) {
                const std::optional<std::string> known = known_text(n.outputs[i]);
                set(n.outputs[i], known ? *known : key.empty() ? key : str(key, "#", i));
            }
        }
        return std::move(numbers_);
    }

private:
    // An empty text gets a unique number.
    void set(Value v, const std::string& text) {
        if (text.empty()) {
            numbers_[v.id] = ++count_;
            return;
        }
        const auto [at, fresh] = by_text_.emplace(text, count_ + 1);
        count_ += fresh ? 1 : 0;
        numbers_[v.id] = at->second;
    }

    // Small integer tensors whose contents are known sizes.
    std::optional<std::string> known_text(Value v) const {
        const HostRef host = g_.host(v);
        const Type& t = g_.type(v);
        const std::optional<Dims> dims = host == nullptr ? std::nullopt : host->dims();
        if (!dims || is_float(t.dtype)) {
            return std::nullopt;
        }
        return str("host ", t, " ", *dims);
    }

    std::string node_text(const Node& n) const {
        if (n.is(constant_def)) {
            const Tensor& t = n.as<Constant>().value;
            const std::span<const std::byte> b = t.bytes();
            constexpr size_t small = 1024;
            return b.size() <= small ? str("constant ", t.type(), " ", xxh3_128(b))
                                     : str("at ", reinterpret_cast<uintptr_t>(b.data()), t.type());
        }
        if (n.is(random_def) || !bodies(n).empty() || !declared_symbols(n).empty()) {
            return "";
        }
        std::string text = str(n.def->name, attrs_key(*n.def, n.attrs.get()));
        for (Value v : n.inputs) {
            append(text, str(",", numbers_[(n.is(reshape_def) ? unshaped(v) : v).id]));
        }
        return text;
    }

    // The value behind the chain of reshapes that ends in v.
    Value unshaped(Value v) const {
        for (const Node* p = g_.producer(v); p != nullptr && p->is(reshape_def);) {
            v = p->inputs[0];
            p = g_.producer(v);
        }
        return v;
    }

    const Graph& g_;
    std::vector<uint32_t> numbers_;
    std::unordered_map<std::string, uint32_t> by_text_;
    uint32_t count_ = 0;
};

} // namespace

std::vector<uint32_t> number_values(const Graph& g) {
    return Numbering(g).run();
}

Analysis::Analysis(const onnx::Model& model, bool keep_inputs) {
    const onnx::Model* seen = &model;
    onnx::Model without;
    if (keep_inputs) {
        without = model; // shares its bodies, which are identified by address
        std::unordered_set<std::string> inputs;
        for (const onnx::ValueInfo& v : model.graph.inputs) {
            inputs.insert(v.name);
        }
        std::erase_if(without.graph.initializers,
                      [&](const onnx::Tensor& t) { return inputs.contains(t.name); });
        seen = &without;
    }
    onnx::ImportOptions options;
    options.observe = [&](const onnx::Graph& source, const Graph& g,
                          const std::unordered_map<std::string, Value>& names) {
        const std::vector<uint32_t> numbers = number_values(g);
        GraphInfo& tensors = graphs_[&source == &seen->graph ? &model.graph : &source];
        tensors.clear();
        for (const auto& [name, v] : names) {
            if (v.valid()) {
                tensors[name] = {g.type(v), g.host(v), numbers[v.id]};
            }
        }
    };
    onnx::import_model(*seen, options);
}

const TensorInfo* Analysis::find(const onnx::Graph& graph, const std::string& name) const {
    auto g = graphs_.find(&graph);
    if (g == graphs_.end()) {
        return nullptr;
    }
    auto it = g->second.find(name);
    return it == g->second.end() ? nullptr : &it->second;
}

} // namespace ingot::slim
