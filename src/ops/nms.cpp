// SPDX-License-Identifier: Apache-2.0
// nms: ONNX NonMaxSuppression. Per batch and class, visits boxes by falling score (ties: the first
// one first) and keeps those that overlap no kept box by more than the threshold.
#include "base/interrupt.h"
#include "ops/eval_util.h"
#include "ops/op_table.h"
#include "ops/primitives.h"

#include <algorithm>

namespace ingot {

using eval_util::deliver;
using eval_util::may_agree;
using eval_util::read_all;
using eval_util::require_inputs;
using eval_util::require_scalar;

namespace {

std::vector<Type> infer_nms(const Nms& a, std::span<const Type> in) {
    require_inputs("nms", in, 5);
    const Type& boxes = in[0];
    const Type& scores = in[1];
    require(is_float(boxes.dtype) && boxes.rank() == 3 && may_agree(boxes.dims[2], 4),
            ErrorCode::InvalidModel, "nms: the boxes are ", boxes,
            ", expected floats of shape [batches,boxes,4]");
    require(scores.dtype == boxes.dtype && scores.rank() == 3 &&
                may_agree(scores.dims[0], boxes.dims[0]) &&
                may_agree(scores.dims[2], boxes.dims[1]),
            ErrorCode::InvalidModel, "nms: the scores are ", scores, ", expected ", boxes.dtype,
            " of shape [", boxes.dims[0], ",classes,", boxes.dims[1], "]");
    require_scalar("nms", "the largest number of results", in[2], DType::I64);
    for (size_t i : {size_t{3}, size_t{4}}) {
        require(is_float(in[i].dtype) && in[i].dims.empty(), ErrorCode::InvalidModel, "nms: the ",
                i == 3 ? "iou" : "score", " threshold is ", in[i], ", expected f32[]");
    }
    return {{DType::I64, {a.count, 3}}};
}

template <class W>
struct Box {
    W y0, x0, y1, x1, area;
};

template <class W>
std::vector<Box<W>> read_boxes(const Tensor& t, bool center_point) {
    auto v = read_all<W>(t);
    std::vector<Box<W>> out(v.size() / 4);
    for (size_t i = 0; i < out.size(); ++i) {
        const W* p = v.data() + 4 * i;
        Box<W>& b = out[i];
        if (center_point) { // x, y, width, height
            b = {p[1] - p[3] / 2, p[0] - p[2] / 2, p[1] + p[3] / 2, p[0] + p[2] / 2, 0};
        } else { // two opposite corners, in any order
            b = {std::min(p[0], p[2]), std::min(p[1], p[3]), std::max(p[0], p[2]),
                 std::max(p[1], p[3]), 0};
        }
        b.area = (b.y1 - b.y0) * (b.x1 - b.x0);
    }
    return out;
}

template <class W>
bool overlaps(const Box<W>& a, const Box<W>& b, W threshold) {
    W height = std::min(a.y1, b.y1) - std::max(a.y0, b.y0);
    W width = std::min(a.x1, b.x1) - std::max(a.x0, b.x0);
    if (height <= 0 || width <= 0 || a.area <= 0 || b.area <= 0) {
        return false;
    }
    W both = height * width;
    return both / (a.area + b.area - both) > threshold;
}

template <class W>
std::vector<int64_t> select(std::span<const Box<W>> boxes, std::span<const W> scores, int64_t most,
                            W iou, W score) {
    std::vector<int64_t> order;
    for (size_t i = 0; i < scores.size(); ++i) {
        if (scores[i] > score) {
            order.push_back(static_cast<int64_t>(i));
        }
    }
    auto value = [&](int64_t i) { return scores[static_cast<size_t>(i)]; };
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t l, int64_t r) { return value(l) > value(r); });
    std::vector<int64_t> kept;
    std::vector<Box<W>> kept_boxes;
    for (size_t i = 0; i < order.size() && static_cast<int64_t>(kept.size()) < most; ++i) {
        if (i % 256 == 0) {
            check_interrupt();
        }
        const Box<W>& box = boxes[static_cast<size_t>(order[i])];
        if (std::none_of(kept_boxes.begin(), kept_boxes.end(),
                         [&](const Box<W>& k) { return overlaps(box, k, iou); })) {
            kept.push_back(order[i]);
            kept_boxes.push_back(box);
        }
    }
    return kept;
}

template <class W>
std::vector<int64_t> select_all(const Nms& a, const EvalArgs& e) {
    const Shape& shape = e.in[1].shape(); // batches, classes, boxes
    auto boxes = read_boxes<W>(e.in[0], a.center_point_box);
    auto scores = read_all<W>(e.in[1]);
    int64_t most = e.in[2].get_i64(0);
    auto iou = static_cast<W>(e.in[3].get_f64(0));
    auto score = static_cast<W>(e.in[4].get_f64(0));
    auto count = static_cast<size_t>(shape[2]);
    std::vector<int64_t> out;
    for (int64_t b = 0; b < shape[0]; ++b) {
        std::span<const Box<W>> own(boxes.data() + static_cast<size_t>(b) * count, count);
        for (int64_t c = 0; c < shape[1]; ++c) {
            auto row = static_cast<size_t>(b * shape[1] + c) * count;
            std::span<const W> part(scores.data() + row, count);
            for (int64_t i : select<W>(own, part, most, iou, score)) {
                out.insert(out.end(), {b, c, i});
            }
        }
    }
    return out;
}

void eval_nms(const Nms& a, EvalArgs& e) {
    const Shape& boxes = e.in[0].shape();
    const Shape& scores = e.in[1].shape();
    require(boxes[2] == 4 && scores[0] == boxes[0] && scores[2] == boxes[1],
            ErrorCode::InvalidArgument, "nms: boxes ", boxes, " and scores ", scores,
            " do not fit, expected [batches,boxes,4] and [batches,classes,boxes]");
    // Computes in f32 for f32 boxes: an overlap equal to the threshold must compare equal.
    auto out = e.in[0].dtype() == DType::F64 ? select_all<double>(a, e) : select_all<float>(a, e);
    Tensor rows = Tensor::of<int64_t>(DType::I64, {static_cast<int64_t>(out.size() / 3), 3}, out);
    deliver(e, 0, rows, "nms");
}

} // namespace

const OpDef nms_def = primitive<Nms>(
    "nms", {Rounding::Matters, InHalf::Wide, like_result},
    [](const Nms& a, std::span<const Type> in) { return infer_nms(a, in); },
    [](const Nms& a, EvalArgs& e) { eval_nms(a, e); });

extern const OpTable nms_ops;
static const OpDef* const list[] = {&nms_def};
const OpTable nms_ops = list;

} // namespace ingot
