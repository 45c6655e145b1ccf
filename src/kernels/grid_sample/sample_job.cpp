// SPDX-License-Identifier: Apache-2.0
#include "kernels/grid_sample/sample_job.h"

#include "base/error.h"
#include "kernels/pointwise/index_text.h"
#include "kernels/reduce/reduce_rows.h"
#include "plan/epilogue.h"

#include <algorithm>

namespace ingot::kernels {

namespace {

constexpr size_t most_axes = 3;
constexpr size_t most_images = 8;

/// Whether the map multiplies its two operands.
bool multiplies(const Node& n) {
    const auto& code = n.as<Map>().body.code;
    return n.inputs.size() == 2 && n.inputs[0] != n.inputs[1] && code.size() == 3 &&
           code[0].op == ExprOp::In && code[1].op == ExprOp::In && code[2].op == ExprOp::Mul;
}

bool is_single_or_half(DType t) {
    return t == DType::F32 || t == DType::F16 || t == DType::BF16;
}

std::optional<std::string> refuse_sample(const Graph& g, const Node& n) {
    const Type& x = g.type(n.inputs[0]);
    const Type& grid = g.type(n.inputs[1]);
    if (!is_single_or_half(x.dtype) || !is_single_or_half(grid.dtype)) {
        return str("elements are ", x.dtype, " and ", grid.dtype);
    }
    size_t axes = x.dims.size() - 2;
    const std::string& mode = n.as<ops::GridSample>().mode;
    return axes > most_axes || (axes == most_axes && mode == "cubic")
               ? std::optional(str(mode, " over ", axes, " axes"))
               : std::nullopt;
}

/// The reason why the weighted sum is none over the last axis of like samples.
std::optional<std::string> refuse_sum(const Graph& g, const Parts& parts) {
    const Node& first = *parts.samples[0];
    const auto& a = first.as<ops::GridSample>();
    for (const Node* n : parts.samples) {
        const auto& b = n->as<ops::GridSample>();
        bool same = a.mode == b.mode && a.padding == b.padding &&
                    a.align_corners == b.align_corners &&
                    g.type(n->inputs[0]).dtype == g.type(first.inputs[0]).dtype &&
                    g.type(n->inputs[1]).dtype == g.type(first.inputs[1]).dtype;
        if (!same || g.type(n->inputs[1]).rank() < 4) {
            return "the samples differ in attributes or types, or have one axis";
        }
    }
    int64_t last = int64_t{g.type(parts.joined).rank()} - 1;
    const auto& r = parts.sum->as<Reduce>();
    bool sums = r.fn == "sum" && r.axes == std::vector<int64_t>{last} &&
                g.type(parts.product->outputs[0]).dims == g.type(parts.joined).dims;
    const Node* concat = g.producer(parts.joined);
    bool along = parts.samples.size() == 1 || concat->as<Concat>().axis == last;
    const Type& w = g.type(parts.weights());
    bool shared = int64_t{w.rank()} == last + 1 && w.dims[channel_axis].is_const(1) &&
                  is_single_or_half(w.dtype);
    return sums && along && shared && parts.samples.size() <= most_images
               ? std::nullopt
               : std::optional<std::string>("not a weighted sum over the last axis of the grids");
}

std::vector<int64_t> strides_but_channels(const View& v) {
    std::vector<int64_t> out = v.strides;
    out.erase(out.begin() + channel_axis);
    return out;
}

bool fits(const Operand& o, const View& v, int64_t vector) {
    std::vector<int64_t> multiples = strides_but_channels(v);
    return v.strides[channel_axis] == 1 &&
           vector_width({o.dtype, o.buffer, v}, multiples, static_cast<int>(vector)) == vector;
}

/// The images, their weights and the map's operands.
void add_operands(const Problem& p, SampleJob& job) {
    constexpr int64_t most = int64_t{1} << 30;
    const View& y = p.out[0].view;
    job.wide = std::max(y.count(), span_of(y)) >= most;
    int64_t first = 0;
    for (const Node* n : job.parts.samples) {
        Image image{&p.operand(n->inputs[0]), &p.operand(n->inputs[1]), first, 1};
        const Shape& grid = image.grid->view.shape;
        image.positions = job.parts.is_sum() ? grid[grid.size() - 2] : 1;
        first += image.positions;
        job.wide = job.wide || std::max(span_of(image.x->view), span_of(image.grid->view)) >= most;
        job.images.push_back(image);
    }
    if (job.parts.is_sum()) {
        Shape samples = y.shape;
        samples.push_back(first);
        job.weights = plan::broadcasted(p.operand(job.parts.weights()).view, samples);
        job.wide = job.wide || span_of(job.weights) >= most;
    }
    for (Value v : job.parts.map != nullptr ? job.parts.map->inputs : Values()) {
        Reading r;
        if (v != job.parts.made()) {
            r.operand = &p.operand(v);
            r.view = plan::broadcasted(r.operand->view, y.shape);
            r.stride = r.view.strides[channel_axis];
            job.wide = job.wide || span_of(r.view) >= most;
        }
        job.readings.push_back(std::move(r));
    }
}

} // namespace

std::optional<Parts> parts_of(const Group& group) {
    Parts out;
    size_t at = 0;
    auto next = [&](const OpDef& def) {
        return at < group.nodes.size() && group.nodes[at].is(def) ? &group.nodes[at++] : nullptr;
    };
    while (const Node* n = next(ops::grid_sample_def)) {
        out.samples.push_back(n);
    }
    if (out.samples.empty()) {
        return std::nullopt;
    }
    out.joined = out.samples[0]->outputs[0];
    if (out.samples.size() == 1 && at + 1 >= group.nodes.size()) {
        out.map = next(map_def);
        return at == group.nodes.size() ? std::optional(out) : std::nullopt;
    }
    if (const Node* n = out.samples.size() > 1 ? next(concat_def) : nullptr) {
        bool all = n->inputs.size() == out.samples.size();
        for (size_t i = 0; all && i < n->inputs.size(); ++i) {
            all = n->inputs[i] == out.samples[i]->outputs[0];
        }
        out.joined = all ? n->outputs[0] : Value{};
    } else if (out.samples.size() > 1) {
        return std::nullopt;
    }
    out.product = next(map_def);
    out.sum = out.product != nullptr ? next(reduce_def) : nullptr;
    out.map = out.sum != nullptr ? next(map_def) : nullptr;
    const Node* m = out.product;
    bool whole = out.sum != nullptr && at == group.nodes.size() && multiplies(*m) &&
                 out.sum->inputs[0] == m->outputs[0] &&
                 (m->inputs[0] == out.joined || m->inputs[1] == out.joined);
    return whole ? std::optional(out) : std::nullopt;
}

std::optional<std::string> refuse_samples(const Group& group) {
    std::optional<Parts> parts = parts_of(group);
    if (!parts || group.outputs.size() != 1) {
        return "nodes that are not samples, their weighted sum and a map";
    }
    const Graph& g = group.graph;
    if (auto why = plan::refuse_packed(group)) {
        return why;
    }
    if (const Node* map = parts->map; map != nullptr) {
        if (map->inputs.size() > 4 ||
            !(g.type(parts->made()).dims == g.type(map->outputs[0]).dims)) {
            return "the map reads more than 3 operands besides, or makes more elements";
        }
    }
    if (group.outputs[0] != (parts->map != nullptr ? parts->map->outputs[0] : parts->made())) {
        return "results besides the last one";
    }
    for (const Node* n : parts->samples) {
        if (auto why = refuse_sample(g, *n)) {
            return why;
        }
    }
    return parts->is_sum() ? refuse_sum(g, *parts) : std::nullopt;
}

SampleJob sample_job(const Problem& p) {
    SampleJob job;
    job.parts = *parts_of(p.group);
    job.attrs = p.group.first().as<ops::GridSample>();
    add_operands(p, job);
    job.from = job.images[0].x->dtype;
    job.to = p.out[0].dtype;
    const Operand& y = p.out[0];
    int64_t channels = y.view.shape[channel_axis];
    int64_t v = 16 / std::max(bytes_of(job.from), bytes_of(job.to));
    auto all_fit = [&] {
        return channels % v == 0 && fits(y, y.view, v) &&
               std::all_of(job.images.begin(), job.images.end(),
                           [v](const Image& i) { return fits(*i.x, i.x->view, v); });
    };
    while (v > 1 && !all_fit()) {
        v /= 2;
    }
    job.vector = static_cast<int>(v);
    job.vectors = channels / v;
    for (Reading& r : job.readings) {
        r.packed = v > 1 && r.operand != nullptr && bytes_of(r.operand->dtype) * v <= 16 &&
                   fits(*r.operand, r.view, v);
    }
    return job;
}

} // namespace ingot::kernels
