// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/tune/tuning_job.h"

#include "ir/text.h"

#include <algorithm>

namespace ingot::cuda {

using kernels::Operand;
using kernels::Problem;
using kernels::Tactic;

namespace {

/// Tactics with a larger cost ratio by the model are not worth compiling.
constexpr double farthest = 3;
constexpr int64_t alignment = 16;

int64_t byte_offset(const Operand& o) {
    return o.view.offset * bit_width(o.dtype) / 8;
}

std::string operand_text(const Operand& o) {
    Shape strides = o.view.strides;
    for (size_t i = 0; i < strides.size(); ++i) {
        strides[i] = o.view.shape[i] == 1 ? 0 : strides[i]; // the stride has no meaning
    }
    std::string text = str(o.dtype, o.view.shape, strides);
    int64_t skew = byte_offset(o) % alignment;
    return skew == 0 ? text : str(text, '+', skew);
}

/// From the buffer's start to the end of the view's last element.
int64_t reach(const Operand& o) {
    int64_t last = o.view.offset;
    for (size_t i = 0; i < o.view.shape.size(); ++i) {
        if (o.view.shape[i] == 0) {
            return 0;
        }
        last += std::max<int64_t>(o.view.strides[i], 0) * (o.view.shape[i] - 1);
    }
    return byte_size(o.dtype, last + 1);
}

} // namespace

std::vector<Tactic> candidates_of(const std::vector<Tactic>& tactics, size_t most) {
    std::vector<Tactic> out;
    for (const Tactic& t : tactics) {
        if (out.size() < most && (out.empty() || t.cost_us <= farthest * tactics[0].cost_us)) {
            out.push_back(t);
        }
    }
    return out;
}

std::string group_text(const kernels::Family& family, const kernels::Group& group) {
    std::string text(family.name);
    std::map<Value, std::string> names;
    for (size_t i = 0; i < group.inputs.size(); ++i) {
        names[group.inputs[i]] = str('i', i);
    }
    for (size_t n = 0; n < group.nodes.size(); ++n) {
        const Node& node = group.nodes[n];
        text += str(' ', node.def->name, '{', print_attrs(*node.def, node.attrs.get()), "}(");
        for (Value v : node.inputs) {
            auto it = names.find(v);
            text += str(it == names.end() ? "?" : it->second, ',');
        }
        text += ')';
        for (size_t k = 0; k < node.outputs.size(); ++k) {
            names[node.outputs[k]] = str('n', n, '.', k);
        }
    }
    std::replace_if(
        text.begin(), text.end(), [](char c) { return c == '\n' || c == '\t'; }, ' ');
    return text;
}

void add_operands(std::string& text, const Problem& p) {
    for (size_t i = 0; i < p.in.size(); ++i) {
        append(text, str(i == 0 ? " : " : ", ", p.constants[i] != nullptr ? "const " : "",
                         operand_text(p.in[i])));
    }
    for (size_t i = 0; i < p.out.size(); ++i) {
        append(text, str(i == 0 ? " -> " : ", ", operand_text(p.out[i])));
    }
    text += p.tf32 ? " tf32" : "";
    text += p.batch_invariant ? " batch_invariant" : "";
}

std::string problem_text(const kernels::Family& family, const Problem& p) {
    std::string text = group_text(family, p.group);
    add_operands(text, p);
    return text;
}

std::string layer_text(std::string_view layer, std::string_view family) {
    return str("node '", layer, "' (", family, ")");
}

TuningJob make_job(const kernels::Family& family, const Problem& p,
                   const std::vector<Tactic>& candidates, std::string problem, std::string layer) {
    TuningJob job;
    job.problem = std::move(problem);
    job.layer = std::move(layer);
    job.family = family.name;
    job.what = layer_text(job.layer, family.name);
    job.cost_us = candidates.front().cost_us;
    for (const Tactic& t : candidates) {
        job.candidates.push_back({t.name, t.cost_us, family.emit(p, t)});
    }
    for (size_t i = 0; i < p.in.size() + p.out.size(); ++i) {
        bool is_input = i < p.in.size();
        const Operand& o = is_input ? p.in[i] : p.out[i - p.in.size()];
        TuningBuffer& b = job.buffers[o.buffer];
        b.bytes = std::max(b.bytes, reach(o));
        if (is_input) {
            b.dtype = o.dtype;
            b.read = true;
            b.constant = p.constants[i] != nullptr;
        }
    }
    return job;
}

} // namespace ingot::cuda
