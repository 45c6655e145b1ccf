// SPDX-License-Identifier: Apache-2.0
#include "plan/stored_constant.h"

#include "base/error.h"
#include "plan/gather.h"

#include <algorithm>
#include <tuple>

namespace ingot::plan {

namespace {

constexpr int64_t whole_lines = 512; // bytes of a row of the source that a transposition reads

} // namespace

/// The merged loops over the contents, outermost first; elements of packed types go by bytes.
struct StoredConstant::Gather {
    Operand view;
    Order order;
    Shape shape;
    int64_t bytes = 0;
    DType unit = DType::U8; // of what is copied
    int64_t width = 1;      // its bytes
    int64_t offset = 0;
    Shape sizes;
    Shape strides; // in the source

    int64_t count_below(size_t axis) const {
        int64_t n = 1;
        for (size_t i = axis + 1; i < sizes.size(); ++i) {
            n *= sizes[i];
        }
        return n;
    }
    auto key() const { return std::tie(width, bytes, offset, sizes, strides); }

    /// Copies `count` whole parts of an axis, from the part at this offset of the source on.
    void copy(const Tensor& source, int64_t from, size_t axis, int64_t count, std::byte*& to,
              ThreadPool& pool) const;
    /// Copies elements [begin, end) of the array at this offset that the axes from `axis` on make.
    void copy_range(const Tensor& source, int64_t from, size_t axis, int64_t begin, int64_t end,
                    std::byte*& to, ThreadPool& pool) const;
};

void StoredConstant::Gather::copy(const Tensor& source, int64_t from, size_t axis, int64_t count,
                                  std::byte*& to, ThreadPool& pool) const {
    auto first = static_cast<std::ptrdiff_t>(axis);
    View part{{sizes.begin() + first, sizes.end()}, {strides.begin() + first, strides.end()}, from};
    part.shape.front() = count;
    gather(source, unit, part, to, pool);
    to += part.count() * width;
}

void StoredConstant::Gather::copy_range(const Tensor& source, int64_t from, size_t axis,
                                        int64_t begin, int64_t end, std::byte*& to,
                                        ThreadPool& pool) const {
    int64_t below = count_below(axis);
    int64_t first = begin / below;
    int64_t last = end / below;
    int64_t step = strides[axis];
    if (first == last && begin < end) { // inside one part
        copy_range(source, from + first * step, axis + 1, begin - first * below,
                   end - first * below, to, pool);
        return;
    }
    if (begin > first * below) {
        copy_range(source, from + first * step, axis + 1, begin - first * below, below, to, pool);
        ++first;
    }
    if (first < last) {
        copy(source, from + first * step, axis, last - first, to, pool);
    }
    if (end > last * below) {
        copy_range(source, from + last * step, axis + 1, 0, end - last * below, to, pool);
    }
}

StoredConstant::StoredConstant(Tensor source, const Operand& view, const Order& order)
    : source_(std::move(source)) {
    auto g = std::make_shared<Gather>();
    g->view = view;
    g->order = order;
    for (int axis : order) {
        g->shape.push_back(view.view.shape[static_cast<size_t>(axis)]);
    }
    g->bytes = byte_size(view.dtype, count_of(g->shape));
    g->unit = is_packed(view.dtype) ? DType::U8 : view.dtype;
    g->width = bit_width(g->unit) / 8;
    if (is_packed(view.dtype)) {
        g->offset = view.view.offset * bit_width(view.dtype) / 8;
        g->sizes = {g->bytes};
        g->strides = {1};
    } else {
        View views[] = {view.view, dense(view.view.shape, order)};
        LoopNest nest = merged_loops(views, order);
        g->offset = view.view.offset;
        g->sizes = std::move(nest.sizes);
        g->strides = std::move(nest.strides[0]);
    }
    if (g->sizes.empty()) { // one element
        g->sizes = {1};
        g->strides = {1};
    }
    gather_ = std::move(g);
}

DType StoredConstant::dtype() const {
    return gather_ == nullptr ? source_.dtype() : gather_->view.dtype;
}

const Shape& StoredConstant::shape() const {
    return gather_ == nullptr ? source_.shape() : gather_->shape;
}

size_t StoredConstant::size() const {
    return gather_ == nullptr ? source_.byte_count() : static_cast<size_t>(gather_->bytes);
}

const Operand& StoredConstant::view() const {
    CHECK(is_gathered(), "the contents are the tensor's own");
    return gather_->view;
}

const Order& StoredConstant::order() const {
    CHECK(is_gathered(), "the contents are the tensor's own");
    return gather_->order;
}

void StoredConstant::read(size_t offset, std::span<std::byte> to, ThreadPool& pool) const {
    CHECK(offset <= size() && to.size() <= size() - offset, "bytes ", offset, " to ",
          offset + to.size(), " of ", size());
    if (to.empty()) {
        return;
    }
    if (gather_ == nullptr) {
        source_.read(offset, to, pool);
        return;
    }
    const Gather& g = *gather_;
    auto width = static_cast<size_t>(g.width);
    CHECK(offset % width == 0 && to.size() % width == 0, "part of an element of ", width, " bytes");
    auto begin = static_cast<int64_t>(offset / width);
    std::byte* next = to.data();
    g.copy_range(source_, g.offset, 0, begin, begin + static_cast<int64_t>(to.size() / width), next,
                 pool);
}

const std::byte* StoredConstant::in_place(ThreadPool& pool) const {
    bool is_read = gather_ != nullptr || source_.unjoined() != nullptr;
    return is_read ? nullptr : source_.bytes(pool).data();
}

size_t StoredConstant::part_bytes(size_t most) const {
    if (gather_ == nullptr || gather_->bytes == 0) {
        return most;
    }
    const Gather& g = *gather_;
    for (size_t axis = 0; axis < g.sizes.size(); ++axis) {
        auto one = static_cast<size_t>(g.count_below(axis) * g.width);
        if (one > most) {
            continue;
        }
        size_t parts = most / one;
        auto lines = static_cast<size_t>(whole_lines / g.width);
        if (g.strides[axis] == 1 && one > static_cast<size_t>(g.width) && parts > lines) {
            parts -= parts % lines;
        }
        return parts * one;
    }
    return most; // not reached: an element fits
}

int64_t StoredConstant::source_index(int64_t element) const {
    if (gather_ == nullptr) {
        return element;
    }
    int64_t at = gather_->offset;
    for (size_t axis = 0; axis < gather_->sizes.size(); ++axis) {
        int64_t below = gather_->count_below(axis);
        at += element / below * gather_->strides[axis];
        element %= below;
    }
    return at;
}

std::strong_ordering operator<=>(const StoredConstant& a, const StoredConstant& b) {
    const Tensor& x = a.source_;
    const Tensor& y = b.source_;
    auto place = std::compare_three_way()(x.identity(), y.identity());
    if (place != std::strong_ordering::equal) {
        return place;
    }
    if (x.byte_count() != y.byte_count()) {
        return x.byte_count() <=> y.byte_count();
    }
    if (a.gather_ == nullptr || b.gather_ == nullptr || a.gather_ == b.gather_) {
        return a.is_gathered() <=> b.is_gathered();
    }
    return a.gather_->key() <=> b.gather_->key();
}

} // namespace ingot::plan
