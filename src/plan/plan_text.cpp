// SPDX-License-Identifier: Apache-2.0
#include "plan/plan_text.h"

#include "base/text.h"
#include "ir/text.h"
#include "ops/primitives.h"

#include <algorithm>

namespace ingot::plan {

std::string describe(const Operand& o) {
    std::string text = str(o.dtype, o.view.shape);
    if (!is_dense(o.view)) {
        text += str(" strides ", o.view.strides);
    }
    return text;
}

namespace {

std::string counted(int64_t n, std::string_view what) {
    return str(n, " ", what, n == 1 ? "" : "s");
}

std::string quoted(const std::string& name) {
    return name.empty() ? std::string() : str(" '", name, "'");
}

std::string operands(std::string_view verb, const std::vector<Operand>& list) {
    std::string text;
    for (const Operand& o : list) {
        text += str(text.empty() ? "" : ", ", "b", o.buffer);
        if (o.view.shape.size() != o.view.strides.size()) { // its size depends on data
            text += str(" ", o.dtype);
            continue;
        }
        text += " " + describe(o);
        text += o.view.offset == 0 ? "" : str(" + ", o.view.offset);
    }
    return text.empty() ? "" : str("    ", verb, " ", text, "\n");
}

std::string indented(const std::string& text, std::string_view by) {
    std::string out;
    for (size_t at = 0; at < text.size();) {
        size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
        append(out, by);
        append(out, std::string_view(text).substr(at, end - at));
        at = end;
    }
    return out;
}

/// The tactic or loops of a step, without the kernel's name before it.
std::string tactic(const StepEntry& e) {
    std::string how = e.step == nullptr ? std::string() : e.step->implementation();
    return how == e.kernel                   ? std::string()
           : how.starts_with(e.kernel + " ") ? how.substr(e.kernel.size() + 1)
                                             : how;
}

std::string step_text(const StepEntry& e, const std::string& title) {
    std::string how = tactic(e);
    std::string text = str("  ", title, ": ", e.kernel, quoted(e.name()),
                           how.empty() ? "" : str(" (", how, ")"), "\n");
    if (e.parts.empty()) {
        text += operands("reads", e.in) + operands("writes", e.out);
    }
    for (const StepEntry& part : e.parts) {
        text += indented(step_text(part, "part"), "  ");
    }
    if (e.step != nullptr && e.step->scratch >= 0) {
        text += str("    scratch b", e.step->scratch, "\n");
    }
    return text + (e.step == nullptr ? "" : indented(e.step->bodies_text(), "    "));
}

std::string buffer_text(const SegmentPlan& plan, size_t index, bool kept) {
    const Storage& s = plan.storages[index];
    std::string text = str("  b", static_cast<size_t>(plan.first_buffer) + index, ": ");
    auto end = static_cast<int64_t>(plan.steps.size());
    switch (s.kind) {
    case Storage::Kind::Dynamic:
        text += "allocated when its size is known";
        break;
    case Storage::Kind::Constant:
        text += str("constant ", s.constant.dtype(), s.constant.shape(), ", ", s.constant.size(),
                    " bytes", kept ? "" : ", streamed", s.read ? "" : ", unused");
        break;
    case Storage::Kind::Arena:
        text += str(s.bytes, " bytes at ", s.offset, ", ");
        text += s.first > s.last    ? std::string("unused")
                : s.last >= end     ? str("step ", s.first, " to the end")
                : s.first == s.last ? str("step ", s.first)
                                    : str("steps ", s.first, " to ", s.last);
        break;
    }
    return text + "\n";
}

std::string segment_text(const SegmentPlan& plan, const SegmentPlan* before) {
    std::string text = str("segment ", plan.segment, ": ",
                           counted(static_cast<int64_t>(plan.steps.size()), "step"), ", ",
                           plan.arena_bytes, " bytes of activations");
    if (plan.streamed_bytes > 0) {
        text += str(", ", plan.streamed_bytes, " of them for streamed weights");
    }
    std::string sizes;
    for (const auto& [name, size] : plan.symbols) {
        if (before == nullptr || !before->symbols.contains(name)) {
            sizes += str(sizes.empty() ? ", with " : ", ", name, " = ", size);
        }
    }
    text += sizes + "\n";
    for (size_t i = 0; i < plan.steps.size(); ++i) {
        text += step_text(plan.steps[i], str("step ", i));
    }
    for (size_t i = 0; i < plan.storages.size(); ++i) {
        bool kept = !plan.not_kept.contains(plan.first_buffer + static_cast<int>(i));
        text += buffer_text(plan, i, kept);
    }
    return text;
}

/// The nodes of a segment whose sizes are not known yet.
std::string open_segment_text(const Program& program, int segment) {
    std::string text = str("segment ", segment, ": planned when the sizes before it are known\n");
    for (size_t i = 0; i < program.nodes.size(); ++i) {
        const NodeInfo& info = program.nodes[i];
        const Node& n = program.graph->nodes()[i];
        if (info.segment == segment && info.kernel != nullptr) {
            text += str("  ", info.kernel->name, quoted(n.name), "\n");
        }
    }
    return text;
}

/// The shape of an output from a plan if known, else from its type.
std::string output_text(const Program& program, std::span<const SegmentPlan* const> planned,
                        size_t i) {
    const Graph& g = *program.graph;
    const Type& type = g.type(g.outputs()[i]);
    for (const SegmentPlan* plan : planned) {
        for (const OutputPlan& o : plan->outputs) {
            if (o.index == i) {
                return str(type.dtype, o.shape);
            }
        }
    }
    return to_text(type);
}

} // namespace

std::string plan_text(const Program& program, std::span<const SegmentPlan* const> planned) {
    const Graph& g = *program.graph;
    std::string text = counted(program.segments, "segment") + "\n";
    for (size_t i = 0; i < g.inputs().size(); ++i) {
        Value v = g.inputs()[i];
        std::string type =
            planned.empty() ? to_text(g.type(v)) : describe(planned[0]->placed[v.id].operand);
        text += str("input b", i, quoted(g.value_name(v)), " ", type, "\n");
    }
    for (size_t i = 0; i < g.outputs().size(); ++i) {
        text += str("output b", g.inputs().size() + i, quoted(g.output_names()[i]), " ",
                    output_text(program, planned, i), "\n");
    }
    for (size_t i = 0; i < planned.size(); ++i) {
        text += segment_text(*planned[i], i == 0 ? nullptr : planned[i - 1]);
    }
    for (int segment = static_cast<int>(planned.size()); segment < program.segments; ++segment) {
        text += open_segment_text(program, segment);
    }
    return text;
}

} // namespace ingot::plan
