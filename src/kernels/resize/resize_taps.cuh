// SPDX-License-Identifier: Apache-2.0
// The source elements and weights of a result position along each resized axis, as defined by
// ops/resize.cpp, in f64. blockIdx.y counts the axes. COORDINATES: 0 half_pixel, 1 asymmetric, 2
// tf_half_pixel_for_nn, 3 pytorch_half_pixel, 4 align_corners, 5 half_pixel_symmetric, 6
// tf_crop_and_resize. MODE: 0 nearest, 1 linear, 2 cubic. NEAREST: 0 round_prefer_floor, 1
// round_prefer_ceil, 2 floor, 3 ceil. C: type of the weights. A tap of -1 is the extrapolation
// value.
struct Axis {
    double in, out, scale, full, from, extent;
    i32 size, positions, taps;
    i32 at; // of the first tap in the tables
};
struct Axes {
    Axis axis[3];
    double cubic;
};
DEVICE double coordinate(const Axis& a, double y) {
    const double half = (y + 0.5) / a.scale - 0.5;
    const double last = a.in - 1.0;
#if COORDINATES == 0
    return half;
#elif COORDINATES == 1
    return y / a.scale;
#elif COORDINATES == 2
    return (y + 0.5) / a.scale;
#elif COORDINATES == 3
    return a.full == 1.0 ? 0.0 : half;
#elif COORDINATES == 4
    return a.full == 1.0 ? 0.0 : __dmul_rn(y, last) / (a.full - 1.0);
#elif COORDINATES == 5
    return __dadd_rn(half, __dmul_rn(__dmul_rn(a.in, 0.5), 1.0 - a.out / a.full));
#else
    const double inside = a.full == 1.0 ? __dmul_rn(last, __dmul_rn(a.extent, 0.5))
                                        : __dmul_rn(__dmul_rn(y, a.extent), last) / (a.full - 1.0);
    return __dadd_rn(inside, __dmul_rn(last, a.from));
#endif
}
DEVICE i32 clamped(double v, i32 size) {
    const double last = (double)(size - 1);
    v = v > 0.0 ? v : 0.0;
    return (i32)(v < last ? v : last);
}
DEVICE double weight_at(double d, double c) {
    d = d < 0.0 ? -d : d;
    if (MODE == 1)
        return d < 1.0 ? 1.0 - d : 0.0;
    if (d > 1.0)
        return d < 2.0 ? ((c * d - 5.0 * c) * d + 8.0 * c) * d - 4.0 * c : 0.0;
    return ((c + 2.0) * d - (c + 3.0)) * d * d + 1.0;
}

KERNEL void __launch_bounds__(256)
    resize_taps(i32* __restrict__ places, C* __restrict__ weights, Axes axes) {
    begin_kernel();
    grid_wait();
    const Axis& a = axes.axis[blockIdx.y];
    const i32 position = blockIdx.x * 256 + threadIdx.x;
    if (position >= a.positions)
        return;
    const double at = coordinate(a, (double)position);
    const bool outside = COORDINATES == 6 && (at < 0.0 || a.in - 1.0 < at);
    i32* place = places + a.at + position * a.taps;
#if MODE == 0
    double whole;
    if (NEAREST == 0)
        whole = ingot_ceil(at - 0.5);
    else if (NEAREST == 1)
        whole = ingot_floor(at + 0.5);
    else
        whole = NEAREST == 2 ? ingot_floor(at) : ingot_ceil(at);
    place[0] = outside ? -1 : clamped(whole, a.size);
#else
    C* to = weights + a.at + position * a.taps;
    const double floor = ingot_floor(at), fraction = at - floor;
    const double first = (double)(1 - a.taps / 2), narrow_by = a.scale < 1.0 ? a.scale : 1.0;
    double total = 0.0;
    for (i32 pass = 0; pass < 2; pass++) {
        for (i32 j = 0; j < a.taps; j++) {
            const double offset = (double)j + first, where = floor + offset;
            double d = offset - fraction;
            if (ANTIALIAS)
                d = d * narrow_by;
            double w = weight_at(d, axes.cubic);
            if (EXCLUDE && (where < 0.0 || where >= a.in))
                w = 0.0;
            if (pass == 0) {
                total += w;
            } else {
                place[j] = outside ? -1 : clamped(where, a.size);
                to[j] = (C)(ANTIALIAS || EXCLUDE ? w / total : w);
            }
        }
    }
#endif
}
