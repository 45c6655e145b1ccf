// SPDX-License-Identifier: Apache-2.0
// Softmax and layer normalisation over rows, statistics in C (f32, f64 for f64), two passes. OP: 0
// softmax, 1 log-softmax, 2 layer norm, 3 RMS norm. FORM 0: G threads hold a row in registers, PER
// elements each: x is read once. With PARTS a block holds one part of a row: 1 writes the part's
// statistics, which FORM 3 merges, 2 applies the row's. FORM 1: G threads loop over a row of any
// length. FORM 2: 32 rows adjacent in memory (the normalised axis is not the contiguous one), all
// warps share their elements. T x, S scale, B bias, OUT result; KR and LR: axes outside and inside
// a row; V elements a load; NT threads a block; SV: scale and bias are read as vectors.
#define AFFINE (OP >= 2)
#define FIRST (AFFINE ? 4 : 2)
DEVICE void in_row(const Nest& row, i64 j, i64* at) {
    if (LR == 1) {
#pragma unroll
        for (int v = 0; v < NV; v++)
            at[v] = j * row.strides[v][0];
    } else {
        locate<LR, NV>(row, j, at);
    }
}

struct AddOf {
    static DEVICE C of(C a, C b) { return a + b; }
};
struct MaxOf {
    static DEVICE C of(C a, C b) { return a > b ? a : b; }
};
/// Reduces over all threads of a row, in a fixed order; all of them get the result.
template <class F>
DEVICE C total(C v) {
#if FORM == 2
    __shared__ C parts[NT / 32][32];
    sync();
    parts[threadIdx.x / 32][threadIdx.x % 32] = v;
    sync();
    v = parts[0][threadIdx.x % 32];
#pragma unroll
    for (int w = 1; w < NT / 32; w++)
        v = F::of(v, parts[w][threadIdx.x % 32]);
    return v;
#else
#pragma unroll
    for (int m = (G < 32 ? G : 32) / 2; m > 0; m >>= 1)
        v = F::of(v, exchange(v, m));
#if G > 32
    __shared__ C parts[G / 32];
    sync();
    if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32] = v;
    sync();
    v = parts[0];
#pragma unroll
    for (int w = 1; w < G / 32; w++)
        v = F::of(v, parts[w]);
#endif
    return v;
#endif
}

/// The result of one element. a: maximum or mean; b: sum of exponentials (its logarithm for OP 1)
/// or inverse deviation.
DEVICE C finished(C v, C a, C b, C scale, C bias) {
    if (OP == 0)
        return ingot_exp(v - a) * b;
    if (OP == 1)
        return v - a - b;
    if (OP == 3)
        return v * b * scale + bias;
    return (v - a) * b * scale + bias;
}
DEVICE C closing(C sum, i64 n, C epsilon) { // b of `finished`
    if (OP == 0)
        return (C)1 / sum;
    if (OP == 1)
        return ingot_log(sum);
    return (C)1 / ingot_sqrt(sum / (C)n + epsilon);
}

#if FORM == 0
/// Whether the row has elements in vectors `c` of the threads: equal for all threads of a block.
/// The first vectors always do.
DEVICE bool in_use(int c, int count) {
    return c == 0 || c * (G * V) < count;
}
/// Scale and bias are loaded together with x where they take few registers.
#define EARLY (SV && PARTS == 0 && PER * (sizeof(S) + sizeof(B)) <= 96)
/// Element k of vector c. Vectors without elements are zero, for softmax minus infinity.
DEVICE C value(const Pack<T, V>* held, int c, int k, int own) {
    return AFFINE || c * (G * V) < own ? (C)widen(held[c].v[k]) : -(C)ingot_inf();
}
KERNEL void __launch_bounds__(NT, 1)
    norm_rows(const T* __restrict__ x, OUT* __restrict__ out, const S* __restrict__ scale,
              const B* __restrict__ bias, Nest kept, Nest row, C epsilon, C* stats EPI_PARAMS) {
    begin_kernel();
    grid_wait();
    const int lane = threadIdx.x % G;
    const i64 r = (i64)blockIdx.x * (blockDim.x / G) + threadIdx.x / G;
    const i64 begin = PARTS ? (i64)blockIdx.y * (G * PER) : 0, left = row.count - begin;
    const int count = left < G * PER ? (int)left : G * PER; // of this part
    const bool inside = r < kept.count;
    const int own = inside ? count - lane * V : 0; // vector c has elements where c * G * V < own
    i64 base[NV], at[NV];
    locate<KR, NV>(kept, inside ? r : 0, base);
    Pack<T, V> held[PER / V];
#pragma unroll
    for (int c = 0; c < PER / V; c++) {
        held[c] = {};
        if (c * (G * V) < own) {
            in_row(row, begin + (c * G + lane) * V, at);
            held[c] = *(const Pack<T, V>*)(x + base[0] + at[0]);
        }
    }
#if SV
    Pack<S, V> ps[EARLY ? PER / V : 1];
    Pack<B, V> pb[EARLY ? PER / V : 1];
#pragma unroll
    for (int c = 0; c < (EARLY ? PER / V : 0); c++) {
        ps[c] = {};
        pb[c] = {};
        if (c * (G * V) < own) {
            in_row(row, begin + (c * G + lane) * V, at);
            ps[c] = *(const Pack<S, V>*)(scale + base[2] + at[2]);
            if (bias)
                pb[c] = *(const Pack<B, V>*)(bias + base[3] + at[3]);
        }
    }
#endif
    const C fill = AFFINE ? (C)0 : -(C)ingot_inf();
    C a = fill, sum = (C)0, b;
#if PARTS == 2
    a = stats[r * 2];
    b = stats[r * 2 + 1];
#else
    if (AFFINE) {
        if (OP == 2) {
#pragma unroll
            for (int c = 0; c < PER / V; c++) {
                if (!in_use(c, count))
                    continue;
#pragma unroll
                for (int k = 0; k < V; k++)
                    a += value(held, c, k, own);
            }
            a = total<AddOf>(a) / (C)count;
        }
#pragma unroll
        for (int c = 0; c < PER / V; c++) {
            if (!in_use(c, count))
                continue;
            const bool real = OP == 3 || c * (G * V) < own;
#pragma unroll
            for (int k = 0; k < V; k++) {
                C d = value(held, c, k, own) - a;
                sum += real ? d * d : (C)0;
            }
        }
    } else {
#pragma unroll
        for (int c = 0; c < PER / V; c++) {
            if (!in_use(c, count))
                continue;
#pragma unroll
            for (int k = 0; k < V; k++)
                a = MaxOf::of(a, value(held, c, k, own));
        }
        a = total<MaxOf>(a);
#pragma unroll
        for (int c = 0; c < PER / V; c++) {
            if (!in_use(c, count))
                continue;
#pragma unroll
            for (int k = 0; k < V; k++)
                sum += ingot_exp(value(held, c, k, own) - a);
        }
    }
    sum = total<AddOf>(sum);
#if PARTS == 1
    if (threadIdx.x == 0) {
        C* to = stats + (r * gridDim.y + blockIdx.y) * 2;
        to[0] = a;
        to[1] = sum;
    }
    return;
#endif
    b = closing(sum, row.count, epsilon);
#endif
    end_main_loop();
#pragma unroll
    for (int c = 0; c < PER / V; c++) {
        if (c * (G * V) >= own)
            break;
        in_row(row, begin + (c * G + lane) * V, at);
#pragma unroll
        for (int w = 0; w < NV; w++)
            at[w] += base[w];
        Pack<OUT, V> o;
        i64 to = at[1];
#if SV
        const int e = EARLY ? c : 0;
        if (!EARLY) {
            ps[0] = *(const Pack<S, V>*)(scale + at[2]);
            if (bias)
                pb[0] = *(const Pack<B, V>*)(bias + at[3]);
        }
#endif
#pragma unroll
        for (int k = 0; k < V; k++) {
            C s = (C)1, t = (C)0;
#if SV
            s = (C)widen(ps[e].v[k]);
            if (bias)
                t = (C)widen(pb[e].v[k]);
#elif AFFINE
            s = (C)widen(scale[at[2]]);
            if (bias)
                t = (C)widen(bias[at[3]]);
#endif
            o.v[k] = epilogue((R)finished(value(held, c, k, own), a, b, s, t), at EPI_PASS);
#pragma unroll
            for (int w = 0; w < NV; w++)
                at[w] += row.strides[w][LR - 1];
        }
        *(Pack<OUT, V>*)(out + to) = o;
    }
}
#elif FORM == 3
/// A warp merges the statistics of a row's parts (of `part` elements each, the last one of fewer).
KERNEL void __launch_bounds__(256) norm_parts(const C* __restrict__ parts, C* __restrict__ stats,
                                              i64 rows, i32 count, i64 part, i64 n, C epsilon) {
    begin_kernel();
    grid_wait();
    i64 r = (i64)blockIdx.x * 8 + threadIdx.x / 32;
    int lane = threadIdx.x % 32;
    C m = (C)0, q = (C)0, weight = (C)0;
    for (int p = lane; r < rows && p < count; p += 32) {
        i64 left = n - p * part;
        C w = (C)(left < part ? left : part), mean = parts[(r * count + p) * 2], d = mean - m,
          all = weight + w;
        m += d * (w / all);
        q += parts[(r * count + p) * 2 + 1] + d * d * (weight * w / all);
        weight = all;
    }
#pragma unroll
    for (int k = 16; k > 0; k >>= 1) {
        C m2 = exchange(m, k), q2 = exchange(q, k), w2 = exchange(weight, k), all = weight + w2,
          d = m2 - m;
        if (all > (C)0) {
            C mean = weight == w2 ? (C)0.5 * (m + m2) : (m * weight + m2 * w2) / all;
            q = q + q2 + d * d * (weight * w2 / all);
            m = mean;
        }
        weight = all;
    }
    end_main_loop();
    if (r < rows && lane == 0) {
        stats[r * 2] = m;
        stats[r * 2 + 1] = closing(q, n, epsilon);
    }
}
#else
KERNEL void __launch_bounds__(NT, 1)
    norm_rows(const T* __restrict__ x, OUT* __restrict__ out, const S* __restrict__ scale,
              const B* __restrict__ bias, Nest kept, Nest row, C epsilon, C* stats EPI_PARAMS) {
    begin_kernel();
    grid_wait();
#if FORM == 2
    i64 r = (i64)blockIdx.x * 32 + threadIdx.x % 32, n = row.count;
    int first = threadIdx.x / 32;
    const int step = NT / 32;
#else
    i64 r = blockIdx.x, n = row.count;
    int first = threadIdx.x;
    const int step = G;
#endif
    bool inside = r < kept.count;
    if (!inside)
        n = 0;
    i64 base[NV], at[NV];
    locate<KR, NV>(kept, inside ? r : 0, base);
    C a = AFFINE ? (C)0 : -(C)ingot_inf(), sum = (C)0;
    if (AFFINE) {
        if (OP == 2) {
#pragma unroll 4
            for (i64 j = first; j < n; j += step) {
                in_row(row, j, at);
                a += (C)widen(x[base[0] + at[0]]);
            }
            a = total<AddOf>(a) / (C)row.count;
        }
#pragma unroll 4
        for (i64 j = first; j < n; j += step) {
            in_row(row, j, at);
            C d = (C)widen(x[base[0] + at[0]]) - a;
            sum += d * d;
        }
    } else {
#if FORM == 2 // few threads have many elements each: several are on their way in each loop
#pragma unroll 4
        for (i64 j = first; j < n; j += step) {
            in_row(row, j, at);
            a = MaxOf::of(a, (C)widen(x[base[0] + at[0]]));
        }
        a = total<MaxOf>(a);
#pragma unroll 4
        for (i64 j = first; j < n; j += step) {
            in_row(row, j, at);
            sum += ingot_exp((C)widen(x[base[0] + at[0]]) - a);
        }
#else
#pragma unroll 4
        for (i64 j = first; j < n; j += step) {
            in_row(row, j, at);
            C v = (C)widen(x[base[0] + at[0]]);
            if (v > a) {
                sum = sum * ingot_exp(a - v) + (C)1;
                a = v;
            } else if (v != -(C)ingot_inf()) {
                sum += ingot_exp(v - a);
            }
        }
        C top = total<MaxOf>(a);
        if (a != top)
            sum *= ingot_exp(a - top);
        a = top;
#endif
    }
    C b = closing(total<AddOf>(sum), row.count, epsilon);
    end_main_loop();
#pragma unroll 4
    for (i64 j = first; j < n; j += step) {
        in_row(row, j, at);
#pragma unroll
        for (int w = 0; w < NV; w++)
            at[w] += base[w];
        C s = (C)1, t = (C)0;
#if AFFINE
        s = (C)widen(scale[at[2]]);
        if (bias)
            t = (C)widen(bias[at[3]]);
#endif
        out[at[1]] = epilogue((R)finished((C)widen(x[at[0]]), a, b, s, t), at EPI_PASS);
    }
}
#endif
