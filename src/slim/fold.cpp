// SPDX-License-Identifier: Apache-2.0
#include "slim/fold.h"

#include "base/error.h"
#include "base/interrupt.h"
#include "onnx/importer.h"
#include "ops/evaluator.h"
#include "ops/support/flops.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

namespace ingot::slim {

namespace {

constexpr double operation_limit = 2e9;
constexpr uint64_t blow_up_limit = 1024;

constexpr std::array<std::string_view, 12> left_alone = {"Bernoulli",
                                                         "Constant",
                                                         "DequantizeLinear",
                                                         "Dropout",
                                                         "DynamicQuantizeLinear",
                                                         "Identity",
                                                         "Multinomial",
                                                         "QuantizeLinear",
                                                         "RandomNormal",
                                                         "RandomNormalLike",
                                                         "RandomUniform",
                                                         "RandomUniformLike"};
constexpr std::array<std::string_view, 3> blow_ups = {"ConstantOfShape", "Expand", "Tile"};

template <class List>
bool contains(const List& list, std::string_view v) {
    return std::find(list.begin(), list.end(), v) != list.end();
}

bool too_large(const Graph& g, uint64_t byte_limit) {
    for (const Node& n : g.nodes()) {
        for (Value v : n.outputs) {
            const Type& t = g.type(v);
            double bytes = bit_width(t.dtype) / 8.0;
            for (const Dim& d : t.dims) {
                bytes *= d.is_const() ? static_cast<double>(d.value()) : 1.0;
            }
            if (bytes > static_cast<double>(byte_limit)) {
                return true;
            }
        }
    }
    return count_flops(g, {}) > operation_limit;
}

// A computed value that is not yet part of the model.
struct Pending {
    Tensor value;
    uint64_t replaced = 0; // bytes of constants that only this node uses
};

class Folder {
public:
    explicit Folder(Context& c) : c_(c) {}

    bool run() {
        for (size_t i = 0; i < c_.edit.size(); ++i) {
            if (c_.edit.alive(i) && can_fold(c_.edit.node(i))) {
                compute(i);
            }
        }
        bool changed = false;
        for (size_t k = folded_.size(); k-- > 0;) {
            changed = settle(folded_[k]) || changed;
        }
        return changed;
    }

private:
    bool is_known(const std::string& name) const {
        return name.empty() || pending_.contains(name) || c_.edit.constant(name) != nullptr;
    }

    bool can_fold(const onnx::Node& n) const {
        return n.domain.empty() && !contains(left_alone, n.op_type) && !has_body(n) &&
               !c_.model.functions.contains({n.domain, n.op_type, n.overload}) &&
               std::all_of(n.inputs.begin(), n.inputs.end(),
                           [&](const std::string& name) { return is_known(name); });
    }

    // Bytes of constants that become unused when node i is folded.
    uint64_t replaced_bytes(size_t i) const {
        uint64_t bytes = 0;
        for (const std::string& name : c_.edit.node(i).inputs) {
            if (name.empty() || !c_.edit.used_once(name)) {
                continue;
            }
            auto it = pending_.find(name);
            bytes +=
                it != pending_.end() ? it->second.replaced : c_.edit.constant(name)->bytes.size();
        }
        return bytes;
    }

    void compute(size_t i) {
        check_interrupt();
        const onnx::Node& n = c_.edit.node(i);
        std::vector<onnx::Tensor> operands;
        for (const std::string& name : n.inputs) {
            auto it = pending_.find(name);
            operands.push_back(name.empty()           ? onnx::Tensor()
                               : it != pending_.end() ? to_onnx(it->second.value)
                                                      : *c_.edit.constant(name));
            operands.back().name = name;
        }
        const uint64_t replaced = replaced_bytes(i);
        auto results = run_node(c_.model, n, operands, replaced + c_.options.size_threshold);
        if (!results) {
            return;
        }
        for (size_t k = 0; k < n.outputs.size(); ++k) {
            if (!n.outputs[k].empty()) {
                pending_[n.outputs[k]] = {(*results)[k], replaced};
            }
        }
        folded_.push_back(i);
        is_folded_.insert(i);
    }

    bool is_wanted(const std::string& name) const {
        if (name.empty()) {
            return false;
        }
        const std::vector<size_t>& readers = c_.edit.readers(name);
        return c_.edit.is_output(name) ||
               std::any_of(readers.begin(), readers.end(),
                           [&](size_t r) { return !is_folded_.contains(r); });
    }

    // Replaces the results of node i that remaining nodes read, or keeps node i when they are too
    // large.
    bool settle(size_t i) {
        const std::vector<std::string> outputs = c_.edit.node(i).outputs;
        uint64_t bytes = 0;
        uint64_t replaced = 0;
        for (const std::string& o : outputs) {
            if (is_wanted(o)) {
                bytes += pending_.at(o).value.bytes().size();
                replaced = pending_.at(o).replaced;
            }
        }
        const bool blows_up = contains(blow_ups, c_.edit.node(i).op_type);
        if (bytes > replaced + (blows_up ? blow_up_limit : c_.options.size_threshold)) {
            is_folded_.erase(i);
            return false;
        }
        bool changed = false;
        for (const std::string& o : outputs) {
            if (is_wanted(o)) {
                changed = c_.edit.make_constant(o, to_onnx(pending_.at(o).value)) || changed;
            }
        }
        return changed;
    }

    Context& c_;
    std::unordered_map<std::string, Pending> pending_;
    std::vector<size_t> folded_;
    std::unordered_set<size_t> is_folded_;
};

} // namespace

std::optional<std::vector<Tensor>> run_node(const onnx::Model& model, const onnx::Node& n,
                                            std::span<const onnx::Tensor> operands,
                                            uint64_t byte_limit) {
    onnx::Model part;
    part.ir_version = model.ir_version;
    part.opset_imports = model.opset_imports;
    part.functions = model.functions;
    part.graph.nodes = {n};
    std::unordered_set<std::string> seen;
    for (const onnx::Tensor& t : operands) {
        if (!t.name.empty() && seen.insert(t.name).second) {
            part.graph.initializers.push_back(t);
        }
    }
    for (const std::string& o : n.outputs) {
        if (!o.empty()) {
            part.graph.outputs.emplace_back();
            part.graph.outputs.back().name = o;
        }
    }
    try {
        const onnx::ImportResult imported = onnx::import_model(part);
        if (!imported.refusals.empty() || too_large(imported.graph, byte_limit)) {
            return std::nullopt;
        }
        const std::vector<Tensor> values = evaluate(imported.graph, {});
        std::vector<Tensor> out(n.outputs.size());
        for (size_t k = 0, at = 0; k < out.size(); ++k) {
            if (!n.outputs[k].empty()) {
                out[k] = values[at++];
            }
        }
        return out;
    } catch (const Error& e) {
        if (e.code() == ErrorCode::Interrupted || e.code() == ErrorCode::OutOfMemory) {
            throw;
        }
        return std::nullopt; // the error belongs to the run of the model
    }
}

std::optional<Tensor> compute(const Context& c, std::string_view op,
                              std::span<const Tensor> operands) {
    onnx::Node n = make_node(op, {}, "result", "");
    std::vector<onnx::Tensor> in;
    for (const Tensor& t : operands) {
        n.inputs.push_back(str("operand_", in.size()));
        in.push_back(to_onnx(t));
        in.back().name = n.inputs.back();
    }
    auto results = run_node(c.model, n, in, UINT64_MAX);
    if (!results) {
        return std::nullopt;
    }
    const Tensor& t = results->front();
    for (int64_t i = 0; is_float(t.dtype()) && i < t.count(); ++i) {
        if (!std::isfinite(t.get_f64(i))) {
            return std::nullopt;
        }
    }
    return t;
}

bool fold_constants(Context& c) {
    return Folder(c).run();
}

} // namespace ingot::slim
