// SPDX-License-Identifier: Apache-2.0
// Non-maximum suppression for `pairs` of batch and class. Scores above the threshold are sorted
// (radix.cuh, descending); then panels of PANEL boxes in that order: one bit for each later box
// that a box of the panel overlaps, and one block per pair that walks the panel, 64 boxes at a
// time, and removes the boxes that a kept box overlaps. T stored, C compute (f32, f64 for f64).
struct Scores {
    i64 boxes[3], scores[3];
    i32 classes, count, first;
}; // strides; boxes a pair; first pair
struct Box {
    C y0, x0, y1, x1, area;
};

// Products that are not contracted with sums: equal overlaps compare equal.
DEVICE float product(float a, float b) {
    return __fmul_rn(a, b);
}
DEVICE double product(double a, double b) {
    return __dmul_rn(a, b);
}
DEVICE bool overlaps(const Box& a, const Box& b, C threshold) {
    C height = (a.y1 < b.y1 ? a.y1 : b.y1) - (a.y0 > b.y0 ? a.y0 : b.y0);
    C width = (a.x1 < b.x1 ? a.x1 : b.x1) - (a.x0 > b.x0 ? a.x0 : b.x0);
    if (height <= 0 || width <= 0 || a.area <= 0 || b.area <= 0)
        return false;
    C both = product(height, width);
    return both / (a.area + b.area - both) > threshold;
}
#if STEP == 0
/// Keys that sort scores in descending order; scores at or below the threshold get the largest key.
KERNEL void __launch_bounds__(256)
    nms_keys(const T* __restrict__ scores, const TS* __restrict__ threshold, KEY* __restrict__ keys,
             u32* __restrict__ from, Scores s) {
    begin_kernel();
    grid_wait();
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= s.count)
        return;
    i64 pair = s.first + blockIdx.y, b = pair / s.classes, c = pair - b * s.classes;
    T v = scores[b * s.scores[0] + c * s.scores[1] + i * s.scores[2]];
    i64 at = (i64)blockIdx.y * s.count + i;
    keys[at] = (C)widen(v) > (C)widen(*threshold) ? ~(KEY)key_of(v) & MASK : MASK;
    from[at] = (u32)i;
}
/// Boxes in sorted order, and their number; clears the state of the walk.
KERNEL void __launch_bounds__(256)
    nms_boxes(const T* __restrict__ boxes, const KEY* __restrict__ keys,
              const u32* __restrict__ from, Box* __restrict__ sorted, u32* __restrict__ counts,
              u64* __restrict__ removed, u64* __restrict__ kept, Scores s) {
    begin_kernel();
    grid_wait();
    int i = blockIdx.x * 256 + threadIdx.x, words = (s.count + 63) / 64;
    i64 pair = s.first + blockIdx.y, b = pair / s.classes;
    if (i < words)
        removed[(i64)blockIdx.y * words + i] = 0;
    if (i == 0)
        kept[pair] = 0;
    if (i >= s.count)
        return;
    i64 at = (i64)blockIdx.y * s.count + i;
    bool out = keys[at] == MASK;
    if (out && (i == 0 || keys[at - 1] != MASK))
        counts[blockIdx.y] = i;
    if (!out && i == s.count - 1)
        counts[blockIdx.y] = s.count;
    if (out)
        return;
    C v[4];
    for (int k = 0; k < 4; k++)
        v[k] = (C)widen(boxes[b * s.boxes[0] + (i64)from[at] * s.boxes[1] + k * s.boxes[2]]);
    Box r;
#if CENTER
    r.y0 = v[1] - v[3] / 2;
    r.x0 = v[0] - v[2] / 2;
    r.y1 = v[1] + v[3] / 2;
    r.x1 = v[0] + v[2] / 2;
#else
    r.y0 = v[0] < v[2] ? v[0] : v[2];
    r.x0 = v[1] < v[3] ? v[1] : v[3];
    r.y1 = v[0] < v[2] ? v[2] : v[0];
    r.x1 = v[1] < v[3] ? v[3] : v[1];
#endif
    r.area = product(r.y1 - r.y0, r.x1 - r.x0);
    sorted[at] = r;
}
#elif STEP == 1
/// bits[pair][row of the panel][word]: boxes 64 * word + bit, after the row's, that it overlaps.
KERNEL void __launch_bounds__(64)
    nms_bits(const Box* __restrict__ sorted, const u32* __restrict__ counts,
             const TI* __restrict__ iou, u64* __restrict__ bits, i32 count, i32 panel) {
    begin_kernel();
    __shared__ Box columns[64];
    grid_wait();
    int words = (count + 63) / 64, word = blockIdx.x, row = panel + blockIdx.y * 64 + threadIdx.x;
    int n = (int)counts[blockIdx.z];
    if (word * 64 >= n || panel + (int)blockIdx.y * 64 >= n ||
        word * 64 + 63 < panel + (int)blockIdx.y * 64)
        return;
    const Box* own = sorted + (i64)blockIdx.z * count;
    int last = n - word * 64 < 64 ? n - word * 64 : 64;
    if ((int)threadIdx.x < last)
        columns[threadIdx.x] = own[word * 64 + threadIdx.x];
    sync();
    if (row >= n)
        return;
    C threshold = (C)widen(*iou);
    Box mine = own[row];
    u64 found = 0;
    int first = row + 1 > word * 64 ? row + 1 - word * 64 : 0;
    for (int k = first; k < last; k++)
        found |= overlaps(columns[k], mine, threshold) ? (u64)1 << k : (u64)0;
    bits[((i64)blockIdx.z * PANEL + row - panel) * words + word] = found;
}
#elif STEP == 2
/// One block per pair; kept[pair] counts and list[pair] lists the kept boxes.
KERNEL void __launch_bounds__(512)
    nms_walk(const u64* __restrict__ bits, const u32* __restrict__ counts,
             const u32* __restrict__ from, const i64* __restrict__ most, u64* __restrict__ removed,
             u64* __restrict__ kept, u32* __restrict__ list, i32 count, i32 panel, i32 first) {
    begin_kernel();
    __shared__ u64 own[64];
    __shared__ u64 chosen;
    grid_wait();
    int words = (count + 63) / 64, n = (int)counts[blockIdx.x];
    i64 pair = first + blockIdx.x, limit = *most;
    bits += (i64)blockIdx.x * PANEL * words;
    removed += (i64)blockIdx.x * words;
    from += (i64)blockIdx.x * count;
    list += pair * count;
    i64 total = (i64)kept[pair];
    int end = panel + PANEL < n ? panel + PANEL : n;
    for (int begin = panel; begin < end && total < limit; begin += 64) {
        int word = begin / 64, size = n - begin < 64 ? n - begin : 64;
        if ((int)threadIdx.x < size)
            own[threadIdx.x] = bits[(i64)(begin - panel + threadIdx.x) * words + word];
        sync();
        if (threadIdx.x == 0) {
            u64 gone = removed[word], take = 0;
            i64 left = limit - total;
            for (int k = 0; k < size && left > 0; k++) {
                if (gone >> k & 1)
                    continue;
                take |= (u64)1 << k;
                gone |= own[k];
                left--;
            }
            chosen = take;
        }
        sync();
        u64 take = chosen;
        if (threadIdx.x < 64 && (take >> threadIdx.x & 1)) {
            u64 below = take & (((u64)1 << threadIdx.x) - 1);
            list[total + __popcll(below)] = from[begin + threadIdx.x];
        }
        for (int w = word + 1 + threadIdx.x; w * 64 < n; w += 512) {
            u64 gone = removed[w];
            for (u64 rest = take; rest; rest &= rest - 1) {
                int k = 63 - __clzll(rest & (~rest + 1));
                gone |= bits[(i64)(begin - panel + k) * words + w];
            }
            removed[w] = gone;
        }
        total += __popcll(take);
        sync();
    }
    if (threadIdx.x == 0)
        kept[pair] = (u64)total;
}
#else
/// places[1 + pair]: the first row of a pair; places[0]: the total number.
KERNEL void __launch_bounds__(256)
    nms_write(const u64* __restrict__ places, const u32* __restrict__ list, i64* __restrict__ out,
              i32 pairs, i32 classes, i32 count, i64 row_step, i64 step) {
    begin_kernel();
    grid_wait();
    i64 pair = blockIdx.y;
    u64 begin = places[1 + pair], end = pair + 1 < pairs ? places[2 + pair] : places[0];
    i64 i = (i64)blockIdx.x * 256 + threadIdx.x;
    if (begin + i >= end)
        return;
    i64* to = out + (i64)(begin + i) * row_step;
    to[0] = pair / classes;
    to[step] = pair % classes;
    to[2 * step] = list[pair * count + i];
}
#endif
