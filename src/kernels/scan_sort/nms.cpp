// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "kernels/common/expr_text.h"
#include "kernels/copy/unpacked.h"
#include "kernels/reduce/reduce_rows.h"
#include "kernels/scan_sort/dynamic.h"
#include "kernels/scan_sort/prefix_sum.h"
#include "kernels/scan_sort/sort.h"
#include "ops/primitives.h"

#include <algorithm>

namespace ingot::kernels {

namespace {

constexpr int64_t panel = 2048;                     // PANEL of nms.cuh
constexpr int64_t batch_bytes = int64_t{256} << 20; // of scratch for pairs that run together

/// `struct Scores` of nms.cuh.
struct ScoresArg {
    int64_t boxes[3], scores[3];
    int32_t classes, count, first;
};

struct Suppression {
    Operand boxes, scores, most, iou, score;
    bool center = false;
    KeyType key;
    ScoresArg arg{};
    int64_t pairs = 0;
    int64_t count = 0; // boxes of a pair
    int64_t words = 0;
    int64_t batch = 1; // pairs that run together
    // Offsets into scratch memory. First the total and a count for each pair.
    int64_t list = 0;
    RadixBuffers sort;
    int64_t sorted = 0, counts = 0, removed = 0, bits = 0, end = 0;
};

void place_scratch(Suppression& s) {
    int64_t at = div_up((s.pairs + 1) * 8, 256) * 256;
    auto take = [&](int64_t bytes) {
        int64_t from = at;
        at += div_up(bytes, 256) * 256;
        return from;
    };
    s.list = take(s.pairs * s.count * 4);
    int64_t box = s.boxes.dtype == DType::F64 ? 40 : 20;
    int64_t rows = std::min(panel, s.words * 64);
    int64_t each = s.count * (box + 2 * (s.key.bytes() + 4)) + rows * s.words * 8 + 4096;
    s.batch = std::clamp<int64_t>(batch_bytes / each, 1,
                                  std::max<int64_t>(1, std::min(s.pairs, max_grid_y)));
    s.sort = radix_buffers(s.key, s.batch, s.count, at);
    at = s.sort.end;
    s.sorted = take(s.batch * s.count * box);
    s.counts = take(s.batch * 4);
    s.removed = take(s.batch * s.words * 8);
    s.bits = take(s.batch * panel * s.words * 8);
    s.end = at;
    for (Operand* o : {&s.boxes, &s.scores, &s.iou, &s.score}) {
        *o = unpacked_operand(*o, s.end);
    }
}

Suppression suppression_of(const Problem& p) {
    Suppression s;
    const Node& n = p.group.first();
    s.boxes = p.operand(n.inputs[0]);
    s.scores = p.operand(n.inputs[1]);
    s.most = p.operand(n.inputs[2]);
    s.iou = p.operand(n.inputs[3]);
    s.score = p.operand(n.inputs[4]);
    s.center = n.as<Nms>().center_point_box;
    const Shape& boxes = s.boxes.view.shape;
    const Shape& scores = s.scores.view.shape;
    require(boxes[2] == 4 && scores[0] == boxes[0] && scores[2] == boxes[1],
            ErrorCode::InvalidArgument, "nms: boxes ", boxes, " and scores ", scores,
            " do not fit, expected [batches,boxes,4] and [batches,classes,boxes]");
    require(scores[0] * scores[1] <= max_grid_y && scores[2] < (int64_t{1} << 24),
            ErrorCode::Unsupported, "nms of scores ", scores, ": at most ", max_grid_y,
            " pairs of batch and class and 2^24 boxes are supported");
    s.key = key_type(unpacked_dtype(s.scores.dtype));
    s.pairs = scores[0] * scores[1];
    s.count = scores[2];
    s.words = div_up(s.count, 64);
    s.arg.classes = static_cast<int32_t>(scores[1]);
    s.arg.count = static_cast<int32_t>(s.count);
    place_scratch(s);
    std::copy_n(s.boxes.view.strides.begin(), 3, s.arg.boxes);
    std::copy_n(s.scores.view.strides.begin(), 3, s.arg.scores);
    return s;
}

Launch launch_of(const Suppression& s, const char* entry, int step) {
    Launch l;
    Defines d;
    d.add("STEP", step).add("T", c_type(s.boxes.dtype)).add("TI", c_type(s.iou.dtype));
    d.add("TS", c_type(s.score.dtype)).add("C", s.boxes.dtype == DType::F64 ? "double" : "float");
    d.add("KEY", s.key.type).add("MASK", s.key.mask()).add("CENTER", s.center ? 1 : 0);
    d.add("PANEL", panel);
    l.program = {{"types", "math", "loops", "keys"}, d.text(), "nms", {}};
    l.entry = entry;
    return l;
}

void add_panels(const Suppression& s, const RadixBuffers& b, int sorted, int64_t first,
                int64_t pairs, Emitted& out) {
    for (int64_t begin = 0; begin < s.count; begin += panel) {
        int64_t rows = std::min(panel, s.count - begin);
        Launch bits = launch_of(s, "nms_bits", 1);
        bits.block = 64;
        bits.grid = {s.words, div_up(rows, 64), pairs};
        bits.args.scratch(s.sorted).scratch(s.counts).pointer(s.iou).scratch(s.bits);
        bits.args.i32(s.count).i32(begin);
        out.launches.push_back(std::move(bits));
        Launch walk = launch_of(s, "nms_walk", 2);
        walk.block = 512;
        walk.grid[0] = pairs;
        walk.args.scratch(s.bits).scratch(s.counts).scratch(b.from[sorted]).pointer(s.most);
        walk.args.scratch(s.removed).scratch(8).scratch(s.list);
        walk.args.i32(s.count).i32(begin).i32(first);
        out.launches.push_back(std::move(walk));
    }
}

} // namespace

Emitted emit_nms_count(const Problem& p) {
    Suppression s = suppression_of(p);
    Emitted out;
    out.scratch = s.end;
    const Node& n = p.group.first();
    widen_packed(p.operand(n.inputs[0]), s.boxes, out);
    widen_packed(p.operand(n.inputs[1]), s.scores, out);
    widen_packed(p.operand(n.inputs[3]), s.iou, out);
    widen_packed(p.operand(n.inputs[4]), s.score, out);
    if (s.count == 0) {
        s.pairs = 0;
    }
    for (int64_t first = 0; first < s.pairs; first += s.batch) {
        int64_t pairs = std::min(s.batch, s.pairs - first);
        s.arg.first = static_cast<int32_t>(first);
        Launch keys = launch_of(s, "nms_keys", 0);
        keys.grid = {div_up(s.count, 256), pairs, 1};
        keys.args.pointer(s.scores).pointer(s.score).scratch(s.sort.keys[0]);
        keys.args.scratch(s.sort.from[0]).value(s.arg);
        out.launches.push_back(std::move(keys));
        int at = add_radix_passes(out, s.key, s.sort, pairs, s.count);
        Launch boxes = launch_of(s, "nms_boxes", 0);
        boxes.grid = {div_up(s.count, 256), pairs, 1};
        boxes.args.pointer(s.boxes).scratch(s.sort.keys[at]).scratch(s.sort.from[at]);
        boxes.args.scratch(s.sorted).scratch(s.counts).scratch(s.removed).scratch(8).value(s.arg);
        out.launches.push_back(std::move(boxes));
        add_panels(s, s.sort, at, first, pairs, out);
    }
    out.launches.push_back(prefix_sum_launch(0, s.pairs));
    return out;
}

Emitted emit_nms_write(const Problem& p) {
    Suppression s = suppression_of(p);
    Emitted out;
    out.scratch = s.end;
    const View& to = p.out[0].view;
    if (to.count() == 0) {
        return out;
    }
    Launch l = launch_of(s, "nms_write", 3);
    l.grid = {div_up(std::min(s.count, to.shape[0]), 256), s.pairs, 1};
    l.args.scratch(0).scratch(s.list).pointer(p.out[0]).i32(s.pairs).i32(s.arg.classes);
    l.args.i32(s.count).i64(to.strides[0]).i64(to.strides[1]);
    out.launches.push_back(std::move(l));
    return out;
}

} // namespace ingot::kernels
