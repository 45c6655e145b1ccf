// SPDX-License-Identifier: Apache-2.0
// The driver: rounds of analysis and rules until nothing changes.
#include "slim/slim.h"

#include "base/error.h"
#include "base/interrupt.h"
#include "base/log.h"
#include "onnx/string_ends.h"
#include "slim/prepare.h"
#include "slim/rules.h"

#include <algorithm>
#include <array>
#include <unordered_map>

namespace ingot {

namespace slim {

namespace {

// Every rule makes the model smaller, so the rounds terminate; this limit catches bugs.
constexpr int round_limit = 200;
// Older opsets are not supported: only rules that ignore the meaning of operators run on them.
constexpr int64_t lowest_opset = 7;
constexpr std::array<std::string_view, 5> blind_rules = {
    "constant-to-initializer", "common-subexpression", "duplicate-initializer", "dead-node",
    "unused-initializer"};

class Run {
public:
    Run(onnx::Model& model, const SlimOptions& options, SlimReport& report)
        : model_(model), options_(options), report_(report) {
        auto at = model.opset_imports.find("");
        at = at == model.opset_imports.end() ? model.opset_imports.find("ai.onnx") : at;
        opset_ = at == model.opset_imports.end() ? lowest_opset : at->second;
        choose_rules();
    }

    void to_fixed_point() {
        for (;;) {
            const Analysis analysis(model_, options_.keep_initializer_inputs);
            Names names(model_);
            ++report_.rounds;
            if (!round(model_.graph, nullptr, analysis, names)) {
                if (opset_ >= lowest_opset) {
                    write_types(model_, analysis, !options_.input_shapes.empty());
                }
                return;
            }
            CHECK(report_.rounds < round_limit, "the rules of slim do not terminate");
        }
    }

private:
    void choose_rules() {
        std::vector<std::string> known;
        for (const Rule* r : all_rules()) {
            known.emplace_back(r->name);
            known.emplace_back(r->group);
        }
        for (const std::string& skip : options_.skip) {
            const std::string near = nearest(skip, known);
            require(std::find(known.begin(), known.end(), skip) != known.end(),
                    ErrorCode::InvalidArgument, "there is no optimisation '", skip, "'",
                    near.empty() ? "" : "; did you mean " + near + "?");
        }
        for (const Rule* r : all_rules()) {
            const bool skipped = std::any_of(
                options_.skip.begin(), options_.skip.end(),
                [&](const std::string& skip) { return skip == r->name || skip == r->group; });
            const bool blind =
                std::find(blind_rules.begin(), blind_rules.end(), r->name) != blind_rules.end();
            if (skipped || (opset_ < lowest_opset && !blind)) {
                continue;
            }
            if (r->ops.empty()) {
                graph_rules_.push_back(r);
            }
            for (std::string_view op : r->ops) {
                node_rules_[op].push_back(r);
            }
        }
    }

    bool round(onnx::Graph& g, const GraphEdit* outer, const Analysis& analysis, Names& names) {
        check_interrupt();
        bool changed = false;
        GraphEdit edit(g, outer, names);
        for (size_t i = 0; i < edit.size(); ++i) {
            if (has_body(edit.node(i))) {
                edit.edit_bodies(i, [&](onnx::Graph& body) {
                    changed = round(body, &edit, analysis, names) || changed;
                });
            }
        }
        Context c{edit, analysis, model_, options_, opset_};
        for (const Rule* r : graph_rules_) {
            changed = applied(*r, c, 0) || changed;
        }
        for (bool again = true; again;) {
            again = sweep(c);
            changed = changed || again;
        }
        edit.finish();
        return changed;
    }

    // Tries the rules on each node once.
    bool sweep(Context& c) {
        bool changed = false;
        for (size_t i = 0; i < c.edit.size(); ++i) {
            if (!c.edit.alive(i) || !c.edit.node(i).domain.empty() ||
                c.edit.node(i).outputs.empty()) {
                continue;
            }
            auto rules = node_rules_.find(c.edit.node(i).op_type);
            for (size_t k = 0; rules != node_rules_.end() && k < rules->second.size(); ++k) {
                if (applied(*rules->second[k], c, i)) {
                    changed = true;
                    break; // the node may have another operator now
                }
            }
        }
        return changed;
    }

    bool applied(const Rule& r, Context& c, size_t i) {
        if (!r.apply(c, i)) {
            return false;
        }
        ++report_.applied[std::string(r.name)];
        return true;
    }

    onnx::Model& model_;
    const SlimOptions& options_;
    SlimReport& report_;
    int64_t opset_ = 0;
    std::vector<const Rule*> graph_rules_;
    std::unordered_map<std::string_view, std::vector<const Rule*>> node_rules_;
};

void count(const onnx::Graph& g, OpCounts& counts) {
    for (const onnx::Node& n : g.nodes) {
        ++counts[n.domain.empty() ? n.op_type : str(n.domain, ".", n.op_type)];
        each_body(n, [&](const onnx::Graph& b) { count(b, counts); });
    }
}

} // namespace

} // namespace slim

onnx::Model slim_model(const onnx::Model& model, const SlimOptions& options, SlimReport* report) {
    SlimReport done;
    onnx::Model out =
        slim::prepared(options.cut_strings ? onnx::without_string_ends(model) : model, options);
    slim::Run(out, options, done).to_fixed_point();
    if (report != nullptr) {
        *report = done;
    }
    return out;
}

std::vector<SlimRuleInfo> slim_rules() {
    std::vector<SlimRuleInfo> out;
    for (const slim::Rule* r : slim::all_rules()) {
        out.push_back({r->name, r->group, r->what, r->exact});
    }
    return out;
}

OpCounts count_operators(const onnx::Model& model) {
    OpCounts out;
    slim::count(model.graph, out);
    return out;
}

} // namespace ingot
