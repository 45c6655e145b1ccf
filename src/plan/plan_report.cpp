// SPDX-License-Identifier: Apache-2.0
#include "plan/plan_report.h"

#include "base/error.h"
#include "ops/primitives.h"
#include "plan/plan_text.h"

#include <algorithm>
#include <limits>
#include <map>

namespace ingot::plan {

std::string_view name(ChoiceReason r) {
    switch (r) {
    case ChoiceReason::Only:
        return "only";
    case ChoiceReason::Model:
        return "model";
    case ChoiceReason::Preferred:
        return "preferred";
    case ChoiceReason::Timed:
        return "timed";
    case ChoiceReason::Forced:
        return "forced";
    case ChoiceReason::Shared:
        return "shared";
    case ChoiceReason::Profile:
        return "profile";
    case ChoiceReason::Fallback:
        return "fallback";
    }
    return "";
}

double DeviceFigures::peak(DType type) const {
    switch (type) {
    case DType::F64:
        return scalar_flops / 2;
    case DType::F32:
        return tf32 ? product_flops / 2 : scalar_flops;
    case DType::F8E4M3:
    case DType::F8E5M2:
        return has_fp8 ? product_flops * 2 : product_flops;
    case DType::I8:
    case DType::U8:
        return product_flops * 2;
    default:
        return product_flops;
    }
}

namespace {

/// " 'x'": the name of an operand in the graph, or of the memory that holds it.
std::string named(const Graph& g, const StepEntry& e, size_t i, bool input) {
    std::string name;
    if (e.node != nullptr) {
        const auto& values = input ? e.node->inputs : e.node->outputs;
        if (values.size() == (input ? e.in : e.out).size()) {
            name = g.value_name(values[i]);
            name = name.empty() ? str('%', values[i].id) : name;
        }
    }
    return str(" '", name.empty() ? str("buffer ", (input ? e.in : e.out)[i].buffer) : name, '\'');
}

void add_operands(const Graph& g, const StepEntry& e, StepInfo& info) {
    for (const StepEntry& part : e.parts) {
        add_operands(g, part, info);
    }
    for (size_t i = 0; i < e.in.size() && e.parts.empty(); ++i) {
        info.inputs.push_back(str(describe(e.in[i]), named(g, e, i, true)));
    }
    for (size_t i = 0; i < e.out.size() && e.parts.empty(); ++i) {
        info.outputs.push_back(str(describe(e.out[i]), named(g, e, i, false)));
    }
}

/// First and last element of a view, in its buffer; {0, -1} for an empty one.
std::pair<int64_t, int64_t> extent(const View& v) {
    std::pair<int64_t, int64_t> e{v.offset, v.offset};
    for (size_t i = 0; i < v.shape.size() && i < v.strides.size(); ++i) {
        if (v.shape[i] == 0) {
            return {0, -1};
        }
        int64_t length = (v.shape[i] - 1) * v.strides[i];
        (length < 0 ? e.first : e.second) += length;
    }
    return e;
}

/// Elements of the memory under a view, each once.
int64_t footprint(const View& v) {
    auto [first, last] = extent(v);
    int64_t n = 1;
    for (size_t i = 0; i < v.shape.size(); ++i) {
        bool repeats = i < v.strides.size() && v.strides[i] == 0 && v.shape[i] != 0;
        n *= repeats ? 1 : v.shape[i];
    }
    return v.strides.size() == v.shape.size() ? std::min(n, last - first + 1) : n;
}

int64_t bytes_under(const Operand& o) {
    return (footprint(o.view) * bit_width(o.dtype) + 7) / 8;
}

bool is_same(const Operand& a, const Operand& b) {
    return a.buffer == b.buffer && a.view == b.view;
}

/// The rows of a table that gathers read; the size of the operand where anything else reads it.
int64_t rows_read(const Group& group, Value v, const Symbols& symbols, int64_t whole) {
    int64_t read = 0;
    for (const Node& n : group.nodes) {
        for (size_t i = 0; i < n.inputs.size(); ++i) {
            if (n.inputs[i] == v && !(n.is(gather_def) && i == 0)) {
                return whole;
            }
        }
        if (n.is(gather_def) && n.inputs[0] == v) {
            int64_t elements = 1;
            const Type& t = group.graph.type(n.outputs[0]);
            for (const Dim& d : t.dims) {
                elements *= d.try_eval(symbols).value_or(1);
            }
            read += (elements * bit_width(t.dtype) + 7) / 8;
        }
    }
    return std::min(whole, read);
}

void add_bytes(StepReport& to, const Group* group, const StepEntry& e, const Symbols& symbols) {
    // Rows that are replaced in place: only those move.
    bool in_place = e.node != nullptr && e.node->is(scatter_def) && e.in.size() == 3 &&
                    e.out.size() == 1 && is_same(e.in[0], e.out[0]);
    for (size_t i = in_place ? 1 : 0; i < e.in.size(); ++i) {
        auto same = [&](const Operand& o) { return is_same(o, e.in[i]); };
        if (std::any_of(e.in.begin(), e.in.begin() + static_cast<int64_t>(i), same)) {
            continue;
        }
        int64_t bytes = bytes_under(e.in[i]);
        bool known = group != nullptr && i < group->inputs.size();
        to.bytes_read += known ? rows_read(*group, group->inputs[i], symbols, bytes) : bytes;
    }
    for (const Operand& o : e.out) {
        to.bytes_written += in_place ? bytes_under(e.in[2]) : bytes_under(o);
    }
}

/// The type of the operands of a group's largest product; of its first input without one.
DType product_type(const Group& group) {
    for (const Node& n : group.nodes) {
        if (n.is(dot_def) || n.def->is_composite()) {
            return group.graph.type(n.inputs[0]).dtype;
        }
    }
    return group.inputs.empty() ? DType::F32 : group.graph.type(group.inputs[0]).dtype;
}

std::vector<std::string> split_nodes(const std::string& names) {
    constexpr std::string_view plus = " + ";
    std::vector<std::string> out;
    for (size_t at = 0; at < names.size();) {
        size_t end = std::min(names.find(plus, at), names.size());
        out.push_back(names.substr(at, end - at));
        at = end + plus.size();
    }
    return out;
}

void add_work(StepReport& to, const Graph& g, const StepEntry& e, const Symbols& symbols) {
    for (const StepEntry& part : e.parts) {
        add_work(to, g, part, symbols);
    }
    if (!e.parts.empty()) {
        return;
    }
    if (e.node == nullptr) {
        add_bytes(to, nullptr, e, symbols);
        return;
    }
    Group group = group_of(g, *e.node);
    add_bytes(to, &group, e, symbols);
    Operations o = count_operations(g, *e.node, symbols);
    if (o.products > 0 || to.operations.products == 0) {
        to.product_type = product_type(group);
    }
    to.operations.products += o.products;
    to.operations.scalars += o.scalars;
}

/// Finds the steps that wrote what a step reads.
class Writers {
public:
    std::vector<size_t> sources(const std::vector<Operand>& in) const {
        std::vector<size_t> out;
        for (const Operand& o : in) {
            auto it = writes_.find(o.buffer);
            for (size_t i = it == writes_.end() ? 0 : it->second.size(); i > 0; --i) {
                const Write& w = it->second[i - 1];
                if (w.first <= extent(o.view).second && extent(o.view).first <= w.last) {
                    out.push_back(w.step);
                }
                if (w.first <= extent(o.view).first && extent(o.view).second <= w.last) {
                    break; // earlier ones are overwritten
                }
            }
        }
        std::sort(out.begin(), out.end());
        out.erase(std::unique(out.begin(), out.end()), out.end());
        return out;
    }
    void add(const std::vector<Operand>& out, size_t step) {
        for (const Operand& o : out) {
            // A size that depends on data has no strides yet: the whole buffer is written.
            auto [first, last] = o.view.strides.size() == o.view.shape.size()
                                     ? extent(o.view)
                                     : std::pair(int64_t{0}, std::numeric_limits<int64_t>::max());
            writes_[o.buffer].push_back({step, first, last});
        }
    }

private:
    struct Write {
        size_t step = 0;
        int64_t first = 0;
        int64_t last = 0;
    };
    std::map<int, std::vector<Write>> writes_;
};

void append_bodies(std::vector<StepReport>& all, const StepEntry& e) {
    auto* bodies = dynamic_cast<BodyReporter*>(e.step.get());
    if (bodies == nullptr) {
        return;
    }
    size_t start = all.size();
    for (StepReport& r : bodies->bodies_report()) {
        r.depth += 1;
        for (size_t& from : r.reads_from) {
            from += start;
        }
        all.push_back(std::move(r));
    }
}

} // namespace

StepInfo step_info(const Program& program, const StepEntry& e) {
    StepInfo info{e.name(), e.kernel, e.step->implementation(), {}, {}};
    add_operands(*program.graph, e, info);
    return info;
}

std::vector<StepReport> report_of(const Program& program,
                                  std::span<const SegmentPlan* const> planned) {
    std::vector<StepReport> all;
    Writers writers;
    for (const SegmentPlan* plan : planned) {
        for (const StepEntry& e : plan->steps) {
            StepReport r;
            r.info = step_info(program, e);
            r.nodes = split_nodes(r.info.name);
            add_work(r, *program.graph, e, plan->symbols);
            if (auto* launches = dynamic_cast<LaunchReporter*>(e.step.get())) {
                launches->report(r);
            }
            r.reads_from = writers.sources(e.in);
            writers.add(e.out, all.size());
            all.push_back(std::move(r));
            append_bodies(all, e);
        }
    }
    for (size_t i = 0; i < program.nodes.size(); ++i) {
        const NodeInfo& info = program.nodes[i];
        if (info.segment >= static_cast<int>(planned.size()) && info.kernel != nullptr) {
            StepReport& open = all.emplace_back();
            open.info.name = program.graph->nodes()[i].name;
            open.info.kernel = info.kernel->name;
            open.info.implementation = "planned when the sizes before it are known";
            open.nodes = split_nodes(open.info.name);
        }
    }
    return all;
}

} // namespace ingot::plan
