// SPDX-License-Identifier: Apache-2.0
// Online softmax in f32 over scores in the layout of matrix instructions: of the 16 rows of a warp
// a thread has lane / 4 and that + 8, and of SN keys 8 * j + 2 * (lane % 4) and the next: s[4 * j +
// 2 * row + key]. MASK 0 none, 1 bool, 2 of type M added; STAGED: the mask is equal for all rows of
// a tile, and comes from shared memory in f32; EDGES: some keys are hidden beside the mask; CAP 1
// softcap, 2 a scale that is not positive; FMA_EXP: computes 3 of 16 exponentials by
// multiplications; LAZY: searches maxima only when weights grow too large; TRUNCATED: weights have
// the bits of TF32. Steps of N keys, SN or fewer.
#define PLAIN (MASK == 0 && CAP == 0)
// Scores are exponents of e, else of 2: PLAIN before, else after scaling.
#define BASE_E (MASK == 2 && !STAGED)
constexpr float log2_e = 1.44269504f;
constexpr float score_unit = BASE_E ? 1.0f : log2_e;

#if FMA_EXP
/// ex2 on the FMA pipes, accurate to 1e-4 of the result: beside long products the ex2 unit is the
/// bottleneck. NaN does not become finite and small.
DEVICE float ex2_fma(float x) {
    x = x < -127.0f ? -127.0f : x;
    float t = x + 12582912.0f, r = x - (t - 12582912.0f); // t: the whole part in its low bits
    float y = fmaf(fmaf(fmaf(0.0550089f, r, 0.2422110f), r, 0.6932829f), r, 1.0f);
    return __uint_as_float(__float_as_uint(y) + (__float_as_uint(t) << 23));
}
#endif
DEVICE float hidden() {
    return __uint_as_float(0xff800000u);
}
#if STAGED
/// The mask at a key, as `step` adds it. Finite numbers stay finite.
DEVICE float staged_mask(M y) {
    if (MASK == 1)
        return widen(y) ? 0.0f : hidden();
    float x = (float)widen(y);
    return x == hidden() ? x : fmaxf(x * log2_e, -3.40282347e38f);
}
#endif

struct Softmax {
    float top[2], sum[2];
    int end[2]; // keys from there on are hidden
    float unit;
#if CAP == 1
    float inner;
#endif
#if MASK && !STAGED
    const M* mask[2];
#endif
    /// `row`: the thread's first row. `m`: the mask of this batch.
    DEVICE void start(const Attn& a, const M* m, int g, int row, int last) {
        unit = (float)a.scale * score_unit;
#if CAP == 1
        unit = (float)a.softcap * score_unit;
        inner = (float)(2 * a.scale / a.softcap) * log2_e;
#endif
#pragma unroll
        for (int t = 0; t < 2; t++) {
            top[t] = hidden();
            sum[t] = 0.0f;
            int r = row + t * 8, rows = a.share * a.queries;
            r = r < rows ? r : rows - 1;
            int head = (u32)r / (u32)a.queries, pos = r - head * a.queries;
            end[t] = a.causal && pos + a.offset + 1 < last ? pos + a.offset + 1 : last;
#if MASK && !STAGED
            mask[t] = m + ((i64)g * a.share + head) * a.m[1] + pos * a.m[2];
#endif
        }
    }
    /// The maximum in the form of attention_merge.
    DEVICE float natural_top(int t) const {
        return PLAIN ? top[t] * (unit / log2_e) : top[t] * (1 / score_unit);
    }
    /// Scores of keys from `key` on, masked. `edge`: some keys are hidden from some rows. `bias`:
    /// the staged mask.
    template <int N = SN>
    DEVICE void see(float* s, const Attn& a, int key, bool edge, const float* bias) {
        int lane = threadIdx.x & 31;
        key += (lane & 3) * 2;
#if CAP == 1
#pragma unroll
        for (int i = 0; i < N / 2; i++)
            s[i] = unit - 2 * unit / (1 + ex2(s[i] * inner));
#elif MASK != 2 && !PLAIN && !STAGED
#pragma unroll
        for (int i = 0; i < N / 2; i++)
            s[i] *= unit;
#endif
#if MASK
        const float by = CAP == 1 ? 1.0f : unit;
#pragma unroll
        for (int j = 0; j < N / 8; j++) {
#if STAGED
            Pack<float, 2> y = *(const Pack<float, 2>*)(bias + j * 8 + (lane & 3) * 2);
#endif
#pragma unroll
            for (int u = 0; u < 2; u++) {
#if STAGED
                s[4 * j + u] = fmaf(s[4 * j + u], by, y.v[u]);
                s[4 * j + 2 + u] = fmaf(s[4 * j + 2 + u], by, y.v[u]);
#else
                int c = key + j * 8 + u;
                i64 at = (c < a.keys ? c : a.keys - 1) * a.m[3];
#pragma unroll
                for (int t = 0; t < 2; t++) {
                    float& x = s[4 * j + 2 * t + u];
                    M y = mask[t][at];
                    if (MASK == 1)
                        x = widen(y) ? x : hidden();
                    else
                        x = fmaf(x, by, (float)widen(y));
                }
#endif
            }
        }
#endif
        if (EDGES && edge) {
#pragma unroll
            for (int i = 0; i < N / 2; i++)
                if (end[i >> 1 & 1] - key <= i / 4 * 8 + (i & 1))
                    s[i] = hidden();
        }
    }
    /// The maximum so far; earlier sums must be multiplied by f.
    template <int N = SN>
    DEVICE void raise(const float* s, float* f) {
#pragma unroll
        for (int t = 0; t < 2; t++) {
            float m = top[t];
#pragma unroll
            for (int j = 0; j < N / 8; j++)
                m = fmaxf(m, fmaxf(s[4 * j + 2 * t], s[4 * j + 2 * t + 1]));
            m = fmaxf(m, shfl_xor(m, 1));
            m = fmaxf(m, shfl_xor(m, 2));
            f[t] = ex2((top[t] - (m == hidden() ? 0.0f : m)) * by_e());
            top[t] = m;
        }
    }
    DEVICE float by_e() const {
        return PLAIN ? unit : BASE_E ? log2_e : 1.0f;
    }
    /// The weights of two neighbours, the pair `j` of a row, given the row's `base`.
    DEVICE void weigh(float* p, const float* s, float base, int j) const {
        float x = PLAIN ? fmaf(s[0], unit, -base * unit) : (s[0] - base) * by_e();
        float y = PLAIN ? fmaf(s[1], unit, -base * unit) : (s[1] - base) * by_e();
        p[0] = ex2(x);
#if FMA_EXP
        p[1] = j % 8 % 3 == 0 ? ex2_fma(y) : ex2(y);
#else
        p[1] = ex2(y);
#endif
#ifdef TRUNCATED
        // As tensor cores read them: so their sum is that of the products.
        p[0] = __uint_as_float(__float_as_uint(p[0]) & 0xffffe000u);
        p[1] = __uint_as_float(__float_as_uint(p[1]) & 0xffffe000u);
#endif
    }
    /// Turns scores of keys from `key` on into weights, with `see` and `raise`.
    template <int N = SN>
    DEVICE void step(float* s, float* f, const Attn& a, int key, bool edge, const float* bias) {
        see<N>(s, a, key, edge, bias);
        raise<N>(s, f);
#pragma unroll
        for (int t = 0; t < 2; t++) {
            float base = top[t] == hidden() ? 0.0f : top[t], x = 0.0f;
#pragma unroll
            for (int j = 0; j < N / 8; j++) {
                float* p = s + 4 * j + 2 * t;
                weigh(p, p, base, j);
                x += p[0] + p[1];
            }
            sum[t] = sum[t] * f[t] + x;
        }
    }
#if LAZY
    /// Whether some row has seen no key.
    DEVICE bool unseen() const {
        return ballot(top[0] == hidden() || top[1] == hidden()) != 0;
    }
    /// Packed weights of scores, by the last maximum of `raise`: as good as the true one as long as
    /// 16 bits hold the weights. False where some may be too large.
    template <int N = SN>
    DEVICE bool try_weights(u32 (*w)[4], float* x, const float* s) const {
        float base[2];
#pragma unroll
        for (int t = 0; t < 2; t++) {
            base[t] = top[t] == hidden() ? 0.0f : top[t];
            x[t] = 0.0f;
        }
#pragma unroll
        for (int j = 0; j < N / 8; j++)
#pragma unroll
            for (int t = 0; t < 2; t++) {
                float p[2];
                weigh(p, s + 4 * j + 2 * t, base[t], j);
                x[t] += p[0] + p[1];
                w[j / 2][j % 2 * 2 + t] = PACK(p[0], p[1]);
            }
        return ballot(!(x[0] <= 32768.0f && x[1] <= 32768.0f)) == 0;
    }
#endif
    /// The sum over all threads of a row.
    DEVICE float total(int t) const {
        float x = sum[t] + shfl_xor(sum[t], 1);
        return x + shfl_xor(x, 2);
    }
};
/// Sums of N columns times f; most steps find no new maximum.
template <int N>
DEVICE void rescale(float* o, const float* f) {
    if (ballot(f[0] != 1.0f || f[1] != 1.0f) == 0)
        return;
#pragma unroll
    for (int i = 0; i < N / 2; i++)
        o[i] *= f[i >> 1 & 1];
}
