// SPDX-License-Identifier: Apache-2.0
// Layer builders of operators that are slices: start, size and stride along some axes, with a rule
// for elements outside.
#include "api/tensorrt/parser/layer_builders/layer_builders.h"

#include <algorithm>
#include <numeric>

namespace ingot::api {

namespace {

/// Along some axes; the others stay whole.
struct Cut {
    std::vector<int64_t> axes;
    std::vector<int64_t> start;
    std::vector<int64_t> size;
    std::vector<int64_t> stride;

    void add(int64_t axis, int64_t from, int64_t count, int64_t step) {
        axes.push_back(axis);
        start.push_back(from);
        size.push_back(count);
        stride.push_back(step);
    }
};

nv::ILayer* cut(const NodeView& r, const Cut& c, nv::SampleMode mode, nv::ITensor* fill = nullptr) {
    nv::ITensor& x = r.tensor(0);
    if (c.axes.empty()) {
        return r.n.addIdentity(x);
    }
    nv::ISliceLayer* layer = r.n.addSlice(x, dims_of(c.start), dims_of(c.size), dims_of(c.stride));
    if (layer != nullptr) {
        layer->setAxes(dims_of(c.axes));
        layer->setMode(mode);
        if (fill != nullptr) {
            layer->setInput(4, *fill);
        }
    }
    return layer;
}

std::vector<int64_t> first_axes(size_t count) {
    std::vector<int64_t> out(count);
    std::iota(out.begin(), out.end(), 0);
    return out;
}

// Bounds of one axis of `size` elements, clamped as in ONNX.
void add_range(Cut& c, int64_t axis, int64_t size, int64_t start, int64_t end, int64_t step) {
    auto from_front = [&](int64_t v) { return v < 0 ? v + size : v; };
    // Exporters write the limits of int32 and int64 for "to the end".
    int64_t low = step > 0 ? 0 : -1;
    int64_t high = step > 0 ? size : size - 1;
    int64_t first = std::clamp<int64_t>(start, -size - 1, size);
    int64_t last = std::clamp<int64_t>(end, -size - 1, size);
    first = std::clamp<int64_t>(from_front(first), 0, high);
    last = std::clamp<int64_t>(from_front(last), low, high);
    int64_t distance = step > 0 ? last - first : first - last;
    int64_t stride = step == INT64_MIN ? INT64_MAX : std::abs(step);
    int64_t count = distance <= 0 ? 0 : (distance - 1) / stride + 1;
    c.add(axis, std::max<int64_t>(first, 0), count, step);
}

} // namespace

nv::ILayer* build_slice(const NodeView& r) {
    bool attributes = r.c.opset < 10;
    std::optional<std::vector<int64_t>> starts =
        attributes ? std::optional(r.c.ints("starts")) : r.constant_ints(1);
    std::optional<std::vector<int64_t>> ends =
        attributes ? std::optional(r.c.ints("ends")) : r.constant_ints(2);
    std::optional<NodeView::AxisList> list = r.axes(attributes ? "axes" : "", 3);
    if (!starts || !ends || !list || starts->size() != ends->size()) {
        return nullptr;
    }
    std::vector<int64_t> steps(starts->size(), 1);
    if (!attributes && r.c.has(4)) {
        std::optional<std::vector<int64_t>> known = r.constant_ints(4);
        if (!known) {
            return nullptr;
        }
        steps = *known;
    }
    std::vector<int64_t> axes =
        list->given ? normalize_axes(list->axes, r.c.rank(0)) : first_axes(starts->size());
    if (axes.size() != starts->size() || steps.size() != starts->size()) {
        return nullptr;
    }
    Cut c;
    for (size_t i = 0; i < axes.size(); ++i) {
        std::optional<int64_t> size = r.size(0, axes[i]);
        if (!size || steps[i] == 0) {
            return nullptr;
        }
        add_range(c, axes[i], *size, (*starts)[i], (*ends)[i], steps[i]);
    }
    return cut(r, c, nv::SampleMode::kSTRICT_BOUNDS);
}

// One slice per part.
nv::ILayer* build_split(const NodeView& r) {
    int32_t axis = r.axis(0);
    std::vector<int64_t> sizes = r.c.ints("split");
    auto count = static_cast<size_t>(r.c.output_count());
    if (r.c.has(1)) {
        std::optional<std::vector<int64_t>> known = r.constant_ints(1);
        if (!known) {
            return nullptr;
        }
        sizes = *known;
    } else if (sizes.empty()) {
        std::optional<int64_t> size = r.size(0, axis);
        if (!size) {
            return nullptr;
        }
        auto parts = static_cast<int64_t>(count);
        int64_t part = (*size + parts - 1) / parts;
        for (int64_t i = 0; i < parts; ++i) {
            sizes.push_back(std::clamp<int64_t>(*size - i * part, 0, part));
        }
    }
    if (sizes.size() != count) {
        return nullptr;
    }
    nv::ITensor& x = r.tensor(0);
    nv::ILayer* first = nullptr;
    int64_t start = 0;
    for (int64_t size : sizes) {
        nv::ISliceLayer* layer = r.n.addSlice(x, dims_of({start}), dims_of({size}), dims_of({1}));
        if (layer == nullptr) {
            return nullptr;
        }
        layer->setAxes(dims_of({axis}));
        first = first == nullptr ? layer : first;
        start += size;
    }
    return first;
}

// --- Pad -----------------------------------------------------------------------------------------

namespace {

struct Pads {
    std::vector<int64_t> axes;
    std::vector<int64_t> low;
    std::vector<int64_t> high;
};

std::optional<Pads> pads_of(const NodeView& r) {
    bool attributes = r.c.opset < 11;
    std::optional<std::vector<int64_t>> pads =
        attributes ? std::optional(r.c.ints("pads")) : r.constant_ints(1);
    std::optional<NodeView::AxisList> list = r.axes("", attributes ? -1 : 3);
    if (!pads || !list) {
        return std::nullopt;
    }
    std::vector<int64_t> axes = list->given ? normalize_axes(list->axes, r.c.rank(0))
                                            : first_axes(static_cast<size_t>(r.c.rank(0)));
    if (pads->size() != 2 * axes.size()) {
        return std::nullopt;
    }
    Pads p;
    for (size_t i = 0; i < axes.size(); ++i) {
        int64_t low = (*pads)[i];
        int64_t high = (*pads)[axes.size() + i];
        if (low != 0 || high != 0) {
            p.axes.push_back(axes[i]);
            p.low.push_back(low);
            p.high.push_back(high);
        }
    }
    return p;
}

// Zeros around the last two dimensions, whose sizes may be unknown.
nv::ILayer* padding(const NodeView& r, const Pads& p) {
    int64_t rank = r.c.rank(0);
    nv::Dims low = dims_of({0, 0});
    nv::Dims high = dims_of({0, 0});
    for (size_t i = 0; i < p.axes.size(); ++i) {
        int64_t at = p.axes[i] - (rank - 2);
        if (at < 0) {
            return nullptr;
        }
        low.d[at] = p.low[i];
        high.d[at] = p.high[i];
    }
    return r.n.addPaddingNd(r.tensor(0), low, high);
}

} // namespace

nv::ILayer* build_pad(const NodeView& r) {
    std::string mode = r.c.s("mode", "constant");
    std::optional<Pads> p = pads_of(r);
    if (!p) {
        return nullptr;
    }
    bool fills = mode == "constant";
    bool zero = true;
    if (fills && r.c.opset < 11) {
        zero = r.c.f("value", 0) == 0;
        if (!zero) {
            return nullptr;
        }
    } else if (fills && r.c.has(2)) {
        zero = r.constant_number(2) == 0.0;
    }
    Cut c;
    for (size_t i = 0; i < p->axes.size(); ++i) {
        std::optional<int64_t> size = r.size(0, p->axes[i]);
        if (!size) {
            return fills && zero && r.c.rank(0) >= 2 ? padding(r, *p) : nullptr;
        }
        if (!fills && (p->low[i] < 0 || p->high[i] < 0)) {
            return nullptr;
        }
        c.add(p->axes[i], -p->low[i], *size + p->low[i] + p->high[i], 1);
    }
    nv::SampleMode sample = fills            ? nv::SampleMode::kFILL
                            : mode == "edge" ? nv::SampleMode::kCLAMP
                            : mode == "wrap" ? nv::SampleMode::kWRAP
                                             : nv::SampleMode::kREFLECT;
    nv::ITensor* value = zero ? nullptr : &r.tensor(2);
    return cut(r, c, sample, value);
}

// --- repetition ----------------------------------------------------------------------------------

// A stride of 0 repeats dimensions of 1.
nv::ILayer* build_expand(const NodeView& r) {
    std::optional<std::vector<int64_t>> shape = r.constant_ints(1);
    auto rank = static_cast<size_t>(r.c.rank(0));
    if (!shape || shape->size() > rank) {
        return nullptr;
    }
    shape->insert(shape->begin(), rank - shape->size(), 1);
    Cut c;
    for (size_t i = 0; i < rank; ++i) {
        auto axis = static_cast<int64_t>(i);
        std::optional<int64_t> size = r.size(0, axis);
        if ((*shape)[i] == 1 || size == (*shape)[i]) {
            continue;
        }
        if (size != 1) {
            return nullptr;
        }
        c.add(axis, 0, (*shape)[i], 0);
    }
    return cut(r, c, nv::SampleMode::kSTRICT_BOUNDS);
}

nv::ILayer* build_tile(const NodeView& r) {
    std::optional<std::vector<int64_t>> repeats = r.constant_ints(1);
    if (!repeats || static_cast<int64_t>(repeats->size()) != r.c.rank(0)) {
        return nullptr;
    }
    Cut c;
    for (size_t i = 0; i < repeats->size(); ++i) {
        auto axis = static_cast<int64_t>(i);
        std::optional<int64_t> size = r.size(0, axis);
        if ((*repeats)[i] != 1 && !size) {
            return nullptr;
        }
        if ((*repeats)[i] != 1) {
            c.add(axis, 0, *size * (*repeats)[i], 1);
        }
    }
    return cut(r, c, nv::SampleMode::kWRAP);
}

} // namespace ingot::api
