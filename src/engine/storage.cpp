// SPDX-License-Identifier: Apache-2.0
#include "engine/storage.h"

#include "base/error.h"
#include "ops/evaluator.h"
#include "ops/ops.h"

#include <algorithm>
#include <numeric>

namespace ingot {

namespace {

/// A name that no input uses.
std::string free_name(const Graph& g, std::string name) {
    auto taken = [&](Value v) { return g.value_name(v) == name; };
    while (std::any_of(g.inputs().begin(), g.inputs().end(), taken)) {
        name += '_';
    }
    return name;
}

/// Moves one axis; the others keep their order.
Value moved(Graph& g, Value x, size_t from, size_t to) {
    std::vector<int64_t> order(g.type(x).dims.size());
    std::iota(order.begin(), order.end(), 0);
    order.erase(order.begin() + static_cast<std::ptrdiff_t>(from));
    order.insert(order.begin() + static_cast<std::ptrdiff_t>(to), static_cast<int64_t>(from));
    return ops::permute(g, x, order);
}

/// The tensor of these sizes stored in the array `x`.
Value unstored(Graph& g, Value x, const IoFormat& f, const Dims& dims) {
    size_t axis = f.axis(dims.size());
    x = moved(g, x, g.type(x).dims.size() - 1, f.last ? axis : axis + 1);
    Dims padded = dims;
    padded[axis] = ceil_div(dims[axis], f.vector) * f.vector;
    x = ops::reshape(g, x, padded);
    return ops::slice(g, x, static_cast<int64_t>(axis), 0, dims[axis]);
}

/// The array that stores a tensor.
Value stored(Graph& g, Value x, const IoFormat& f) {
    Dims dims = g.type(x).dims;
    size_t axis = f.axis(dims.size());
    Dim vectors = ceil_div(dims[axis], f.vector);
    Dims high(dims.size());
    high[axis] = vectors * f.vector - dims[axis];
    if (!high[axis].is_const(0)) {
        x = ops::pad(g, x, Dims(dims.size()), high);
    }
    if (f.last) {
        return moved(g, x, axis, dims.size() - 1);
    }
    dims[axis] = vectors;
    dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(axis) + 1, Dim(f.vector));
    return moved(g, ops::reshape(g, x, dims), axis + 1, dims.size() - 1);
}

} // namespace

Storage::Storage(std::shared_ptr<const Graph> graph, IoFormats formats)
    : graph_(std::move(graph)), formats_(std::move(formats)) {
    check_formats(*graph_, formats_);
    for (size_t i = 0; i < formats_.inputs.size(); ++i) {
        const IoFormat& f = formats_.input(i);
        const Dims& dims = graph_->type(graph_->inputs()[i]).dims;
        if (f.pads() && !dims[f.axis(dims.size())].is_const()) {
            open_.push_back(i);
        }
    }
    if (!formats_.are_plain()) {
        stored_ = std::make_shared<const Graph>(with_formats());
    }
}

Graph Storage::with_formats() const {
    const Graph& g = *graph_;
    Graph out = g.sibling(g.name());
    Values map(g.value_count());
    auto carry = [&](Value from, Value to) {
        map[from.id] = to;
        if (!out.is_input(to) && out.value_name(to).empty() && !g.value_name(from).empty()) {
            out.set_value_name(to, g.value_name(from));
        }
        if (out.host(to) == nullptr && g.host(from) != nullptr) {
            out.set_host(to, g.host(from));
        }
    };
    // Sizes first: the number of vectors does not determine the number of channels.
    for (size_t i : open_) {
        Value v = g.inputs()[i];
        const Dims& dims = g.type(v).dims;
        out.add_input(free_name(g, g.value_name(v) + ".channels"),
                      {DType::U8, {0, dims[formats_.input(i).axis(dims.size())]}});
    }
    std::vector<Value> arrays;
    for (size_t i = 0; i < g.inputs().size(); ++i) {
        Value v = g.inputs()[i];
        const Type& t = g.type(v);
        arrays.push_back(
            out.add_input(g.value_name(v), {t.dtype, storage_dims(formats_.input(i), t.dims)}));
    }
    for (size_t i = 0; i < arrays.size(); ++i) {
        Value v = g.inputs()[i];
        const IoFormat& f = formats_.input(i);
        out.set_origin(str("reformat ", g.value_name(v)));
        carry(v, f.is_row_major() ? arrays[i] : unstored(out, arrays[i], f, g.type(v).dims));
    }
    for (const Node& n : g.nodes()) {
        Values in;
        for (Value v : n.inputs) {
            in.push_back(map[v.id]);
        }
        out.set_origin(n.name);
        Values results = out.add(*n.def, n.attrs, in);
        for (size_t i = 0; i < results.size(); ++i) {
            carry(n.outputs[i], results[i]);
        }
    }
    for (size_t i = 0; i < g.outputs().size(); ++i) {
        const std::string& name = g.output_names()[i];
        const IoFormat& f = formats_.output(i);
        Value v = map[g.outputs()[i].id];
        out.set_origin(str("reformat ", name));
        out.add_output(name, f.is_row_major() ? v : stored(out, v, f));
    }
    return out;
}

std::vector<Profile> Storage::profiles(const std::vector<Profile>& profiles) const {
    if (is_plain()) {
        return profiles;
    }
    std::vector<Profile> out = profiles;
    for (Profile& p : out) {
        for (size_t i = 0; i < graph_->inputs().size(); ++i) {
            const std::string& name = graph_->value_name(graph_->inputs()[i]);
            const IoFormat& f = formats_.input(i);
            auto range = std::find_if(p.inputs.begin(), p.inputs.end(),
                                      [&](const ShapeRange& r) { return r.input == name; });
            if (range == p.inputs.end() || f.is_row_major()) {
                continue;
            }
            size_t axis = f.axis(range->min.size());
            ShapeRange channels{
                {}, {0, range->min[axis]}, {0, range->opt[axis]}, {0, range->max[axis]}};
            for (Shape* s : {&range->min, &range->opt, &range->max}) {
                *s = storage_shape(f, *s);
            }
            auto open = std::find(open_.begin(), open_.end(), i);
            if (open != open_.end()) {
                auto at = static_cast<size_t>(open - open_.begin());
                channels.input = stored_->value_name(stored_->inputs()[at]);
                p.inputs.push_back(std::move(channels));
            }
        }
    }
    return out;
}

std::vector<Shape> Storage::input_shapes(std::span<const Shape> shapes) const {
    std::vector<Shape> out;
    input_shapes(shapes, out);
    return out;
}

void Storage::input_shapes(std::span<const Shape> shapes, std::vector<Shape>& out) const {
    out.resize(open_.size() + shapes.size());
    for (size_t k = 0; k < open_.size(); ++k) {
        const Shape& shape = shapes[open_[k]];
        out[k] = {0, shape[formats_.input(open_[k]).axis(shape.size())]};
    }
    for (size_t i = 0; i < shapes.size(); ++i) {
        out[open_.size() + i] = storage_shape(formats_.input(i), shapes[i]);
    }
}

std::vector<Shape> Storage::tensor_shapes(std::span<const Shape> stored) const {
    size_t count = graph_->inputs().size();
    require(stored.size() == count + open_.size(), ErrorCode::InvalidArgument, "got ",
            stored.size(), " shapes, expected ", count + open_.size());
    std::vector<Shape> out;
    for (size_t i = 0; i < count; ++i) {
        const IoFormat& f = formats_.input(i);
        const Shape& array = stored[open_.size() + i];
        if (f.is_row_major()) {
            out.push_back(array);
            continue;
        }
        const Dims& dims = graph_->type(graph_->inputs()[i]).dims;
        auto open = std::find(open_.begin(), open_.end(), i);
        int64_t channels = array.back(); // when nothing is padded
        if (open != open_.end()) {
            channels = stored[static_cast<size_t>(open - open_.begin())].at(1);
        } else if (f.pads()) {
            channels = dims[f.axis(dims.size())].value();
        }
        out.push_back(tensor_shape(f, array, channels));
    }
    return out;
}

Shape Storage::output_shape(size_t output, const Shape& stored,
                            std::span<const Shape> inputs) const {
    const IoFormat& f = formats_.output(output);
    if (f.is_row_major() || !f.pads()) {
        return tensor_shape(f, stored, stored.empty() ? 0 : stored.back());
    }
    const Dims& dims = graph_->type(graph_->outputs()[output]).dims;
    const Dim& channels = dims[f.axis(dims.size())];
    Symbols symbols;
    for (size_t i = 0; i < inputs.size() && !channels.is_const(); ++i) {
        Value v = graph_->inputs()[i];
        bind_symbols(graph_->type(v).dims, inputs[i], symbols,
                     str("input '", graph_->value_name(v), "'"));
    }
    return tensor_shape(f, stored, channels.eval(symbols));
}

} // namespace ingot
