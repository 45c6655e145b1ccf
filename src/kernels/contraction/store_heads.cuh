// SPDX-License-Identifier: Apache-2.0
// Follows contract.cuh, in place of an epilogue, for pairs of columns that are elements of heads:
// PARTS ranges of heads are results of their own, and cosines x0 and sines x1 turn the pairs of
// those in the mask TURNED. The views are the first result's, those of the angles, the other
// results', and one that counts heads.
struct Heads {
    i64 first[4], step[4], pair[4];
};

struct Extras {
    i64 to;
    int part;
    ANGLE cosine, sine;
};
DEVICE void read_extras(Extras& x, const i64* at, const Geometry& g EPI_PARAMS) {
    (void)g;
    const i64 head = at[NV - 1];
    x.part = 0;
    x.to = at[0];
#pragma unroll
    for (int p = 1; p < PARTS; p++)
        if (head >= heads.first[p]) {
            x.part = p;
            x.to = at[p + 2] - heads.first[p] * heads.step[p];
        }
    x.cosine = x0[at[1]];
    x.sine = x1[at[2]];
}
/// The sums are rounded first, as a product of its own rounds them.
DEVICE void deliver(const ACC* v, const Extras& x, i64, const Geometry& g, OUT* out EPI_PARAMS) {
    (void)g;
    OUT first = narrow<OUT>(v[0]), second = narrow<OUT>(v[1]);
    if (TURNED >> x.part & 1) {
        const ACC u = widen(first), w = widen(second);
        const ACC c = (ACC)widen(x.cosine), s = (ACC)widen(x.sine);
        first = narrow<OUT>((ACC)(u * c - w * s));
        second = narrow<OUT>((ACC)(u * s + w * c));
    }
    OUT* to = out;
    i64 pair = heads.pair[0];
    PICK_PART
    to[x.to] = first;
    to[x.to + pair] = second;
}
DEVICE void deliver(const ACC* v, const i64* at, const Geometry& g, OUT* out EPI_PARAMS) {
    Extras x;
    read_extras(x, at, g EPI_PASS);
    deliver(v, x, at[0], g, out EPI_PASS);
}
