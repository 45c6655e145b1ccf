// SPDX-License-Identifier: Apache-2.0
#include "plan/gather.h"

#include "ir/lazy_bytes.h"
#include "plan/copy.h"

#include <algorithm>
#include <optional>

namespace ingot::plan {

namespace {

/// A view of joined tensors, each of whose offsets and strides is split into rows and what goes
/// beyond them.
class JoinedView {
public:
    JoinedView(const JoinedTensors& joined, int64_t width, const View& view)
        : joined_(joined), width_(width), view_(view) {
        for (size_t i = 0; i < joined.parts.size(); ++i) {
            row_ += size(i);
        }
        low_ = high_ = view.offset % row_;
        for (size_t axis = 0; axis < view.shape.size(); ++axis) {
            int64_t reach = (view.shape[axis] - 1) * (view.strides[axis] % row_);
            low_ += std::min<int64_t>(reach, 0);
            high_ += std::max<int64_t>(reach, 0);
        }
        for (; part_ < joined.parts.size() && low_ >= start_ + size(part_); ++part_) {
            start_ += size(part_);
        }
    }
    /// The part that has all elements, and the view of it; nullopt where no part has.
    std::optional<std::pair<const Tensor*, View>> in_one_part() const {
        if (low_ < 0 || part_ == joined_.parts.size() || high_ >= end()) {
            return std::nullopt;
        }
        View v = view_;
        v.offset = view_.offset / row_ * size(part_) + view_.offset % row_ - start_;
        for (int64_t& stride : v.strides) {
            stride = stride / row_ * size(part_) + stride % row_;
        }
        return std::pair(&joined_.parts[part_], std::move(v));
    }
    /// How much of an axis is to be taken at first: up to the end of a part where that is enough.
    int64_t first_of(size_t axis) const {
        int64_t count = view_.shape[axis];
        int64_t step = view_.strides[axis] % row_;
        int64_t rest = high_ - (count - 1) * step; // reached by the other axes
        bool ends = low_ >= 0 && step > 0 && part_ < joined_.parts.size() && rest < end();
        return ends ? std::min((end() - 1 - rest) / step + 1, count - 1) : count / 2;
    }

private:
    int64_t size(size_t part) const {
        return static_cast<int64_t>(joined_.row_bytes(part)) / width_;
    }
    int64_t end() const { return start_ + size(part_); }

    const JoinedTensors& joined_;
    int64_t width_;
    const View& view_;
    int64_t row_ = 0; // elements
    int64_t low_ = 0; // within a row, where nothing wraps
    int64_t high_ = 0;
    size_t part_ = 0; // that of low_
    int64_t start_ = 0;
};

} // namespace

void gather(const Tensor& source, DType unit, const View& view, std::byte* to, ThreadPool& pool) {
    const JoinedTensors* joined = source.unjoined();
    if (joined == nullptr || view.count() == 0) {
        copy_elements({unit, 0, view}, source.bytes(pool).data(), {unit, 1, dense(view.shape)}, to,
                      pool);
        return;
    }
    int64_t width = bit_width(unit) / 8;
    View rest = view;
    for (;;) {
        JoinedView v(*joined, width, rest);
        if (auto part = v.in_one_part()) {
            gather(*part->first, unit, part->second, to, pool);
            return;
        }
        // One element is in one part.
        auto several =
            std::find_if(rest.shape.begin(), rest.shape.end(), [](int64_t n) { return n > 1; });
        auto axis = static_cast<size_t>(several - rest.shape.begin());
        View first = rest;
        first.shape[axis] = v.first_of(axis);
        gather(source, unit, first, to, pool);
        to += first.count() * width;
        rest.shape[axis] -= first.shape[axis];
        rest.offset += first.shape[axis] * rest.strides[axis];
    }
}

} // namespace ingot::plan
