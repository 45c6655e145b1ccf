// SPDX-License-Identifier: Apache-2.0
#include "slim/opset.h"

#include "base/error.h"
#include "slim/names.h"
#include "slim/rules.h"

#include <algorithm>
#include <array>

namespace ingot {

namespace {

constexpr int64_t lowest = 13;
constexpr int64_t highest = 21;

// Reductions whose axes are an attribute up to 17 and an input from 18 on.
constexpr std::array<std::string_view, 9> reductions = {
    "ReduceMax", "ReduceMin",    "ReduceMean",      "ReduceProd",     "ReduceL1",
    "ReduceL2",  "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare"};

struct Change {
    std::string_view op;
    int64_t since; // the opset that changed the meaning
};
// Changes that cannot be undone node by node.
constexpr std::array<Change, 3> changes = {
    {{"GroupNormalization", 21}, {"DFT", 20}, {"GridSample", 20}}};

class Raising {
public:
    Raising(onnx::Model& model, int64_t from, int64_t to) : names_(model), from_(from), to_(to) {}

    void visit(onnx::Graph& g) {
        for (onnx::Node& n : g.nodes) {
            slim::each_body(n, [&](onnx::Graph& b) { visit(b); });
            if (n.domain.empty()) {
                change(g, n);
            }
        }
    }

private:
    void change(onnx::Graph& g, onnx::Node& n) {
        for (const Change& c : changes) {
            require(n.op_type != c.op || from_ >= c.since || to_ < c.since, ErrorCode::Unsupported,
                    "node '", n.name, "' (", n.op_type, ", opset ", from_,
                    "): the operator changed in opset ", c.since, "; raise the model to opset ",
                    to_, " with onnx.version_converter");
        }
        constexpr int64_t axes_as_input = 18;
        if (from_ >= axes_as_input || to_ < axes_as_input) {
            return;
        }
        bool reduces =
            std::find(reductions.begin(), reductions.end(), n.op_type) != reductions.end();
        if (reduces && slim::find_attribute(n, "axes") != nullptr) {
            onnx::Tensor axes = slim::to_onnx(Tensor::i64(slim::get_ints(n, "axes")));
            axes.name = names_.fresh(n.outputs[0] + "_axes");
            slim::remove_attribute(n, "axes");
            n.inputs.push_back(axes.name);
            g.initializers.push_back(std::move(axes));
        }
        if (n.op_type == "Split" && !slim::has_input(n, 1)) {
            slim::set_int(n, "num_outputs", static_cast<int64_t>(n.outputs.size()));
        }
    }

    slim::Names names_;
    int64_t from_;
    int64_t to_;
};

} // namespace

onnx::Model raised_opset(const onnx::Model& model, int64_t wanted) {
    CHECK(wanted >= lowest && wanted <= highest, "opset ", wanted);
    auto at = model.opset_imports.find("");
    int64_t from = at == model.opset_imports.end() ? 1 : at->second;
    if (from >= wanted) {
        return model;
    }
    require(from >= lowest && model.functions.empty(), ErrorCode::Unsupported,
            "the model has opset ", from, model.functions.empty() ? "" : " and local functions",
            ", this needs opset ", wanted, ": raise it with onnx.version_converter");
    onnx::Model out = slim::deep_copy(model);
    Raising(out, from, wanted).visit(out.graph);
    out.opset_imports[""] = wanted;
    int64_t ir = wanted >= 21 ? 10 : wanted >= 19 ? 9 : 8; // the versions released together
    out.ir_version = std::max(out.ir_version, ir);
    return out;
}

} // namespace ingot
