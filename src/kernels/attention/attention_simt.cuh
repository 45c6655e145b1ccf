// SPDX-License-Identifier: Apache-2.0
// Attention without matrix instructions, for every float type T, head size, stride and mask,
// computed in C. A warp takes RQ rows. In each step a lane handles one of 32 keys, then the lanes
// handle EPL * 32 columns of the values (blockIdx.z counts batches times blocks of columns). Scores
// and weights of a step pass through shared memory. KEYS: so do its keys and values; FOURS: the
// head size is a multiple of 4, and PAD 4, else 1. Results are T, or with BYTES rounded to a byte.
DEVICE RESULT result_of(C x EPI_PARAMS) {
#if BYTES
    return (u8)rounded((float)widen(narrow<T>(x)), 0.0f EPI_PASS);
#else
    return narrow<T>(x);
#endif
}
DEVICE C warp_max(C v) {
#pragma unroll
    for (int m = 16; m > 0; m >>= 1) {
        C u = exchange(v, m);
        v = u > v ? u : v;
    }
    return v;
}
DEVICE C warp_sum(C v) {
#pragma unroll
    for (int m = 16; m > 0; m >>= 1)
        v += exchange(v, m);
    return v;
}
DEVICE float from_lane(float v, int lane) {
    return shfl(v, lane);
}
DEVICE double from_lane(double v, int lane) {
    Bits64 b;
    b.f = v;
    b.u = shfl(b.u, lane);
    return b.f;
}
#if FORM == 0
KERNEL void __launch_bounds__(256, 1)
    attention_simt(const T* __restrict__ Q, const T* __restrict__ K, const T* __restrict__ V,
                   const M* __restrict__ mask, RESULT* __restrict__ O, C* __restrict__ sums, Attn a,
                   i32 columns EPI_PARAMS) {
    begin_kernel();
    SHARED(sm);
    const int BM = 8 * RQ;
    int lane = threadIdx.x % 32, w = threadIdx.x / 32;
    int g = blockIdx.y % a.groups, split = blockIdx.y / a.groups, m0 = blockIdx.x * BM;
    i64 batch = blockIdx.z / columns;
    int column = (int)(blockIdx.z % columns) * (32 * EPL), rows = a.share * a.queries, first, last;
    key_range(a, split, m0, BM, first, last);
    const T* q = Q + batch * a.q[0] + (i64)g * a.share * a.q[1];
    const T* k = K + batch * a.k[0] + (i64)g * a.k[1];
    const T* v = V + batch * a.v[0] + (i64)g * a.v[1];
    C* ps = (C*)sm + w * (32 * RQ); // of this warp's rows, [key][row]
    C* qs = (C*)sm + 8 * 32 * RQ;
#if KEYS
    C* ks = qs + BM * a.depth;
    C* vs = ks + 32 * (a.depth + PAD);
#endif
    const C none = -(C)ingot_inf();
    grid_wait();
#pragma unroll 1
    for (int i = threadIdx.x; i < BM * a.depth; i += 256) {
        int r = i / a.depth, d = i - r * a.depth, row = m0 + r, head = row / a.queries,
            s = row - head * a.queries;
        qs[i] = row < rows ? (C)widen(q[head * a.q[1] + s * a.q[2] + d * a.q[3]]) : (C)0;
    }
    C acc[RQ][EPL], top = none, l = (C)0; // lane i: maximum and sum of row i
#pragma unroll
    for (int i = 0; i < RQ; i++)
#pragma unroll
        for (int e = 0; e < EPL; e++)
            acc[i][e] = (C)0;
    int mine = m0 + w * RQ + lane, head = (mine < rows ? mine : rows - 1) / a.queries;
    int pos = (mine < rows ? mine : rows - 1) - head * a.queries;
#if MASK
    i64 mask_at = batch * a.m[0] + ((i64)g * a.share + head) * a.m[1] + pos * a.m[2];
#endif
#pragma unroll 1
    for (int key = first; key < last; key += 32) {
        int count = last - key < 32 ? last - key : 32;
        sync();
#if KEYS
#pragma unroll 2
        for (int r = w; r < 32; r += 8) {
            const T* key_row = k + (i64)(key + r) * a.k[2];
            const T* value_row = v + (i64)(key + r) * a.v[2] + column * a.v[3];
#pragma unroll 1
            for (int d = lane; d < a.depth; d += 32)
                ks[r * (a.depth + PAD) + d] = r < count ? (C)widen(key_row[d * a.k[3]]) : (C)0;
#pragma unroll
            for (int e = lane; e < 32 * EPL; e += 32)
                vs[r * (32 * EPL) + e] =
                    r < count && column + e < a.values ? (C)widen(value_row[e * a.v[3]]) : (C)0;
        }
        sync();
#endif
        C p[RQ];
#pragma unroll
        for (int i = 0; i < RQ; i++)
            p[i] = (C)0;
#if FOURS
#pragma unroll 2
        for (int d = 0; d < a.depth; d += 4) {
            Pack<C, 4> y = *(const Pack<C, 4>*)(ks + lane * (a.depth + PAD) + d);
#pragma unroll
            for (int i = 0; i < RQ; i++) {
                Pack<C, 4> x = *(const Pack<C, 4>*)(qs + (w * RQ + i) * a.depth + d);
#pragma unroll
                for (int j = 0; j < 4; j++)
                    p[i] += x.v[j] * y.v[j];
            }
        }
#else
#pragma unroll 2
        for (int d = 0; d < a.depth; d++) {
#if KEYS
            C y = ks[lane * (a.depth + PAD) + d];
#else
            C y = lane < count ? (C)widen(k[(i64)(key + lane) * a.k[2] + d * a.k[3]]) : (C)0;
#endif
#pragma unroll
            for (int i = 0; i < RQ; i++)
                p[i] += qs[(w * RQ + i) * a.depth + d] * y;
        }
#endif
        Pack<C, RQ> scores;
#pragma unroll
        for (int i = 0; i < RQ; i++)
            scores.v[i] = p[i];
        *(Pack<C, RQ>*)(ps + lane * RQ) = scores;
        C f = (C)1;
#pragma unroll 1
        for (int i = 0; i < RQ; i++) {
            C x = ps[lane * RQ + i] * (C)a.scale, old = from_lane(top, i);
            if (a.softcap > 0)
                x = (C)a.softcap * ingot_tanh(x / (C)a.softcap);
            int c = key + lane, end = (int)shfl((u32)pos, i) + a.offset + 1;
#if MASK
            i64 at = (i64)shfl((u64)mask_at, i);
            if (c < last) {
                M y = mask[at + c * a.m[3]];
                if (MASK == 1)
                    x = widen(y) ? x : none;
                else
                    x += (C)widen(y);
            }
#endif
            if (c >= last || (a.causal && c >= end))
                x = none;
            C m = warp_max(x);
            m = m > old ? m : old;
            C base = m == none ? (C)0 : m, factor = ingot_exp(old - base);
            x = ingot_exp(x - base);
            C sum = warp_sum(x);
            if (lane == i) {
                top = m;
                l = l * factor + sum;
                f = factor;
            }
            ps[lane * RQ + i] = x;
        }
#pragma unroll
        for (int i = 0; i < RQ; i++) {
            C factor = from_lane(f, i);
#pragma unroll
            for (int e = 0; e < EPL; e++)
                acc[i][e] *= factor;
        }
        sync_warp();
#pragma unroll 2
        for (int t = 0; t < count; t++) {
            Pack<C, RQ> weight = *(const Pack<C, RQ>*)(ps + t * RQ);
            C y[EPL];
#pragma unroll
            for (int e = 0; e < EPL; e++) {
#if KEYS
                y[e] = vs[(t * EPL + e) * 32 + lane];
#else
                int at = column + e * 32 + lane;
                y[e] = at < a.values ? (C)widen(v[(i64)(key + t) * a.v[2] + at * a.v[3]]) : (C)0;
#endif
            }
#pragma unroll
            for (int i = 0; i < RQ; i++)
#pragma unroll
                for (int e = 0; e < EPL; e++)
                    acc[i][e] += weight.v[i] * y[e];
        }
        sync_warp();
    }
    end_main_loop();
#if SPLIT
    if (lane < RQ && mine < rows && column == 0) {
        C* to = sums +
                (((batch * a.groups + g) * a.splits + split) * rows + mine) * (a.values + 2) +
                a.values;
        to[0] = top;
        to[1] = l;
    }
#else
    i64 out_at = batch * a.o[0] + ((i64)g * a.share + head) * a.o[1] + pos * a.o[2];
    C inverse = l == (C)0 ? (C)0 : (C)1 / l;
#endif
#pragma unroll
    for (int i = 0; i < RQ; i++) {
        int row = m0 + w * RQ + i;
        if (row >= rows)
            break;
#if !SPLIT
        i64 to = (i64)shfl((u64)out_at, i);
        C r = from_lane(inverse, i);
#endif
#pragma unroll
        for (int e = 0; e < EPL; e++) {
            int at = column + e * 32 + lane;
            if (at >= a.values)
                break;
#if SPLIT
            sums[(((batch * a.groups + g) * a.splits + split) * rows + row) * (a.values + 2) + at] =
                acc[i][e];
#else
            O[to + at * a.o[3]] = result_of(acc[i][e] * r EPI_PASS);
#endif
        }
    }
}
#else
// A warp merges the splits of one row, in order.
KERNEL void __launch_bounds__(256)
    attention_merge(const C* __restrict__ sums, RESULT* __restrict__ O, Attn a,
                    i64 count EPI_PARAMS) {
    begin_kernel();
    grid_wait();
    i64 index = (i64)blockIdx.x * 8 + threadIdx.x / 32;
    if (index >= count)
        return;
    int lane = threadIdx.x % 32, rows = a.share * a.queries, width = a.values + 2;
    i64 pair = index / rows;
    int row = (int)(index - pair * rows), head = row / a.queries;
    i64 batch = pair / a.groups, g = pair - batch * a.groups;
    const C none = -(C)ingot_inf();
    const C* from = sums + (pair * a.splits * rows + row) * width;
    i64 step = (i64)rows * width;
    C top = none, l = (C)0;
#pragma unroll 1
    for (int s = 0; s < a.splits; s++) {
        C m = from[s * step + a.values];
        top = m > top ? m : top;
    }
    C base = top == none ? (C)0 : top;
#pragma unroll 1
    for (int s = 0; s < a.splits; s++)
        l += from[s * step + a.values + 1] * ingot_exp(from[s * step + a.values] - base);
    C r = l == (C)0 ? (C)0 : (C)1 / l;
    RESULT* to =
        O + batch * a.o[0] + (g * a.share + head) * a.o[1] + (row - head * a.queries) * a.o[2];
#pragma unroll 1
    for (int e = lane; e < a.values; e += 32) {
        C x = (C)0;
        for (int s = 0; s < a.splits; s++)
            x += from[s * step + e] * ingot_exp(from[s * step + a.values] - base);
        to[e * a.o[3]] = result_of(x * r EPI_PASS);
    }
}
#endif
