// SPDX-License-Identifier: Apache-2.0
#include "plan/view.h"

#include "base/error.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace ingot::plan {

int64_t View::count() const {
    int64_t n = 1;
    for (int64_t d : shape) {
        n *= d;
    }
    return n;
}

Order row_major(int rank) {
    Order order(static_cast<size_t>(rank));
    std::iota(order.begin(), order.end(), 0);
    return order;
}

Order channels_last(int rank) {
    Order order = row_major(rank);
    if (rank >= 3) {
        order.erase(order.begin() + 1);
        order.push_back(1);
    }
    return order;
}

View dense(const Shape& shape, const Order& order) {
    View v{shape, Shape(shape.size()), 0};
    int64_t stride = 1;
    for (size_t i = order.size(); i-- > 0;) {
        auto axis = static_cast<size_t>(order[i]);
        v.strides[axis] = stride;
        stride *= std::max<int64_t>(shape[axis], 1);
    }
    return v;
}

View dense(const Shape& shape) {
    return dense(shape, row_major(static_cast<int>(shape.size())));
}

bool is_dense(const View& v, const Order& order) {
    if (v.count() == 0) {
        return true;
    }
    int64_t stride = 1;
    for (size_t i = order.size(); i-- > 0;) {
        auto axis = static_cast<size_t>(order[i]);
        if (v.shape[axis] == 1) {
            continue;
        }
        if (v.strides[axis] != stride) {
            return false;
        }
        stride *= v.shape[axis];
    }
    return true;
}

bool is_dense(const View& v) {
    return is_dense(v, row_major(v.rank()));
}

Order stride_order(const View& v) {
    Order order = row_major(v.rank());
    // Axes of size 1 and broadcast axes have no order of their own: they follow their right
    // neighbour, so that a stable sort by an effective stride keeps row-major neighbours together.
    Shape key(v.shape.size());
    int64_t inner = 1;
    for (size_t i = v.shape.size(); i-- > 0;) {
        bool plain = v.shape[i] != 1 && v.strides[i] != 0;
        key[i] = plain ? std::abs(v.strides[i]) : inner;
        inner = key[i];
    }
    std::stable_sort(order.begin(), order.end(), [&key](int a, int b) {
        return key[static_cast<size_t>(a)] > key[static_cast<size_t>(b)];
    });
    return order;
}

Order repeat_order(const View& v) {
    Order order = row_major(v.rank());
    Shape key(v.shape.size());
    int64_t left = std::numeric_limits<int64_t>::max();
    for (size_t i = 0; i < v.shape.size(); ++i) {
        bool plain = v.shape[i] != 1 && v.strides[i] != 0;
        key[i] = plain ? std::abs(v.strides[i]) : left;
        left = key[i];
    }
    std::stable_sort(order.begin(), order.end(), [&key](int a, int b) {
        return key[static_cast<size_t>(a)] > key[static_cast<size_t>(b)];
    });
    return order;
}

std::optional<Order> dense_order(const View& v) {
    if (is_dense(v)) {
        return row_major(v.rank());
    }
    if (is_dense(v, channels_last(v.rank()))) {
        return channels_last(v.rank());
    }
    Order order = stride_order(v);
    return is_dense(v, order) ? std::optional(order) : std::nullopt;
}

bool follows(const View& v, const Order& order) {
    int64_t reach = 1;
    bool innermost = true;
    for (size_t i = order.size(); i-- > 0;) {
        auto axis = static_cast<size_t>(order[i]);
        if (v.shape[axis] == 1) {
            continue;
        }
        if (innermost ? v.strides[axis] != 1 : v.strides[axis] < reach) {
            return false;
        }
        innermost = false;
        reach = v.strides[axis] * v.shape[axis];
    }
    return true;
}

std::optional<Order> memory_order(const View& v) {
    if (auto order = dense_order(v)) {
        return order;
    }
    Order order = stride_order(v);
    return follows(v, order) ? std::optional(order) : std::nullopt;
}

namespace {

/// The strides of `to` over a run of old axes that are contiguous in memory; false when they are
/// not.
bool split_run(std::span<const int64_t> old_shape, std::span<const int64_t> old_strides,
               std::span<const int64_t> to, std::span<int64_t> strides) {
    for (size_t i = 0; i + 1 < old_shape.size(); ++i) {
        if (old_strides[i] != old_shape[i + 1] * old_strides[i + 1]) {
            return false;
        }
    }
    int64_t stride = old_strides.empty() ? 1 : old_strides.back();
    for (size_t i = to.size(); i-- > 0;) {
        strides[i] = stride;
        stride *= to[i];
    }
    return true;
}

} // namespace

std::optional<View> reshaped(const View& v, const Shape& shape) {
    if (v.count() == 0) {
        View empty = dense(shape);
        empty.offset = v.offset;
        return empty;
    }
    Shape old_shape;
    Shape old_strides;
    for (size_t i = 0; i < v.shape.size(); ++i) {
        if (v.shape[i] != 1) {
            old_shape.push_back(v.shape[i]);
            old_strides.push_back(v.strides[i]);
        }
    }
    View out{shape, Shape(shape.size(), 0), v.offset};
    size_t o = 0;
    size_t n = 0;
    while (o < old_shape.size() || n < shape.size()) {
        size_t o_end = o;
        size_t n_end = n;
        int64_t old_product = 1;
        int64_t new_product = 1;
        do {
            if (o_end < old_shape.size() && (old_product <= new_product || n_end == shape.size())) {
                old_product *= old_shape[o_end++];
            } else if (n_end < shape.size()) {
                new_product *= shape[n_end++];
            } else {
                return std::nullopt;
            }
        } while (old_product != new_product);
        if (!split_run(std::span(old_shape).subspan(o, o_end - o),
                       std::span(old_strides).subspan(o, o_end - o),
                       std::span(shape).subspan(n, n_end - n),
                       std::span(out.strides).subspan(n, n_end - n))) {
            return std::nullopt;
        }
        o = o_end;
        n = n_end;
    }
    return out;
}

View permuted(const View& v, std::span<const int64_t> perm) {
    View out{Shape(perm.size()), Shape(perm.size()), v.offset};
    for (size_t i = 0; i < perm.size(); ++i) {
        auto from = static_cast<size_t>(perm[i]);
        out.shape[i] = v.shape[from];
        out.strides[i] = v.strides[from];
    }
    return out;
}

View broadcasted(const View& v, const Shape& shape) {
    View out{shape, Shape(shape.size(), 0), v.offset};
    size_t shift = shape.size() - v.shape.size();
    for (size_t i = 0; i < v.shape.size(); ++i) {
        out.strides[i + shift] = v.shape[i] == 1 ? 0 : v.strides[i];
    }
    return out;
}

View sliced(const View& v, const Shape& starts, const Shape& sizes,
            std::span<const int64_t> steps) {
    View out{sizes, v.strides, v.offset};
    for (size_t i = 0; i < sizes.size(); ++i) {
        if (sizes[i] != 0) {
            out.offset += starts[i] * v.strides[i];
        }
        if (sizes[i] > 1) { // an axis of size 1 may have any stride
            out.strides[i] = v.strides[i] * steps[i];
        }
    }
    return out;
}

View windowed(const View& v, std::span<const int64_t> axes, std::span<const int64_t> sizes,
              std::span<const int64_t> strides, std::span<const int64_t> dilations) {
    View out = v;
    for (size_t i = 0; i < axes.size(); ++i) {
        auto axis = static_cast<size_t>(axes[i]);
        int64_t stride = v.strides[axis];
        int64_t span = dilations[i] * (sizes[i] - 1) + 1;
        out.shape[axis] = v.shape[axis] < span ? 0 : (v.shape[axis] - span) / strides[i] + 1;
        if (out.shape[axis] > 1) { // an axis of size 1 may have any stride
            out.strides[axis] = stride * strides[i];
        }
        out.shape.push_back(sizes[i]);
        out.strides.push_back(sizes[i] > 1 ? stride * dilations[i] : stride);
    }
    return out;
}

LoopNest merged_loops(std::span<const View> views, const Order& order) {
    LoopNest nest;
    nest.strides.resize(views.size());
    for (int a : order) {
        auto axis = static_cast<size_t>(a);
        int64_t size = views[0].shape[axis];
        if (size == 1) {
            continue;
        }
        bool joins = !nest.sizes.empty();
        for (size_t k = 0; joins && k < views.size(); ++k) {
            joins = nest.strides[k].back() == views[k].strides[axis] * size;
        }
        if (joins) {
            nest.sizes.back() *= size;
        } else {
            nest.sizes.push_back(size);
        }
        for (size_t k = 0; k < views.size(); ++k) {
            if (joins) {
                nest.strides[k].back() = views[k].strides[axis];
            } else {
                nest.strides[k].push_back(views[k].strides[axis]);
            }
        }
    }
    return nest;
}

std::vector<int64_t> offsets_of(const Shape& sizes, const Shape& strides) {
    std::vector<int64_t> out{0};
    for (size_t i = 0; i < sizes.size(); ++i) {
        std::vector<int64_t> next;
        next.reserve(out.size() * static_cast<size_t>(sizes[i]));
        for (int64_t base : out) {
            for (int64_t k = 0; k < sizes[i]; ++k) {
                next.push_back(base + k * strides[i]);
            }
        }
        out = std::move(next);
    }
    return out;
}

namespace {

/// The order with the axes of `from` that a reshape to `to` merges beside each other, where the
/// first of them is.
Order in_groups(const Order& order, const Shape& from, const Shape& to) {
    std::vector<std::vector<int>> groups(1);
    int64_t merged = 1;
    int64_t made = 1;
    size_t next = 0; // of `to`
    for (size_t axis = 0; axis < from.size(); ++axis) {
        groups.back().push_back(static_cast<int>(axis));
        merged *= from[axis];
        while (made < merged && next < to.size()) {
            made *= to[next++];
        }
        if (made == merged) {
            groups.emplace_back();
        }
    }
    auto place = [&](const std::vector<int>& group) {
        return std::find_first_of(order.begin(), order.end(), group.begin(), group.end());
    };
    std::stable_sort(groups.begin(), groups.end(),
                     [&](const auto& a, const auto& b) { return place(a) < place(b); });
    Order out;
    for (const std::vector<int>& group : groups) {
        out.insert(out.end(), group.begin(), group.end());
    }
    return out;
}

} // namespace

Order order_to_reshape(const View& view, const Shape& to) {
    Order own = repeat_order(view);
    if (reshaped(dense(view.shape, own), to)) {
        return own;
    }
    Order grouped = in_groups(own, view.shape, to);
    constexpr int64_t near = 16; // elements, of which a sector of memory has two or more
    auto nearest = std::find(grouped.begin(), grouped.end(), own.empty() ? -1 : own.back());
    bool lie_near = std::all_of(nearest, grouped.end(), [&](int axis) {
        return view.strides[static_cast<size_t>(axis)] <= near;
    });
    return lie_near && reshaped(dense(view.shape, grouped), to) ? grouped : row_major(view.rank());
}

} // namespace ingot::plan
