// SPDX-License-Identifier: Apache-2.0
// Convolution as a product on tensor cores. Rows are result positions; the copy gathers the depth
// from the input and fills padding with zeros. A_ALIGNED: the bytes, 16, 8 or 4, that are aligned
// and hold channels of one kernel position; 0: elements are gathered one by one. B_ALIGNED: the
// same of the weights. SPATIAL: 2, or 3 where the first of the
// three axes matters.
struct Copies {
    static constexpr int rows_at_once = threads / chunks;
    static constexpr int na = BM / rows_at_once, nb = BN / rows_at_once;
    static_assert(rows_at_once % 8 == 0, "chunks of a thread are swizzled alike");
    const IN *x, *weights;
    u8* memory;
    u32 pipeline, place, n0; // of `memory`; of the first chunk in an operand; the first column
    const Geometry& g;
    const Window& w;
    i32 base[na], corner[na]; // offset of the window's origin; its last two coordinates
#if SPATIAL == 3
    i32 slice[na];
#endif
    int row, k;
    Tap tap; // of the chunk's first element, at depth k
    DEVICE Copies(const IN* x_, const IN* weights_, u8* memory_, const Tile& t, const Geometry& g_,
                  const Window& w_)
        : memory(memory_), pipeline(smem_addr(memory_)), n0((u32)t.n), g(g_), w(w_),
          row(threadIdx.x / chunks), k(t.begin * BK + threadIdx.x % chunks * per_chunk),
          tap(w_, (u32)(t.begin * BK + threadIdx.x % chunks * per_chunk), SPATIAL) {
        x = x_ + (i64)t.batch * g.ab[0];
        weights = weights_ + (i64)t.batch * g.bb[0];
        place = swizzled<row_bytes>(row, threadIdx.x % chunks);
#pragma unroll
        for (int i = 0; i < na; i++) {
            i64 m = t.m + row + i * rows_at_once;
            Origin o(w, (u32)(m < g.m ? m : 0), SPATIAL);
            base[i] =
                (i32)(o.image + o.at[0] * w.step[0] + o.at[1] * w.step[1] + o.at[2] * w.step[2]);
            if (m >= g.m)
                o.at[1] = -32768; // inside of nothing
            corner[i] = (i32)(((u32)o.at[1] << 16) | ((u32)o.at[2] & 0xffffu));
#if SPATIAL == 3
            slice[i] = o.at[0];
#endif
        }
    }
    /// `count` elements of chunk i, of an operand at `to`, from an aligned address.
    DEVICE void copy(u32 to, int i, const IN* from, int count) const {
        cp_async16(pipeline + to + place + i * rows_at_once * row_bytes, from, count * element);
    }
    DEVICE u32 weight_row(int i) const {
        u32 n = n0 + row + i * rows_at_once, last = (u32)g.n - 1;
        return (n < last ? n : last) * (u32)g.bn[0];
    }
    DEVICE bool inside(int i, const Tap& p) const {
        u32 h = (u32)((corner[i] >> 16) + p.at[1] * (i32)w.dilation[1]),
            v = (u32)((i32)(i16)(corner[i] & 0xffff) + p.at[2] * (i32)w.dilation[2]);
        bool in = h < (u32)w.in[1] && v < (u32)w.in[2];
#if SPATIAL == 3
        in = in && (u32)(slice[i] + p.at[0] * (i32)w.dilation[0]) < (u32)w.in[0];
#endif
        return in;
    }
    DEVICE i32 delta(const Tap& p) const {
        i32 d = p.c * (i32)w.step_c + p.at[1] * (i32)(w.dilation[1] * w.step[1]) +
                p.at[2] * (i32)(w.dilation[2] * w.step[2]);
#if SPATIAL == 3
        d += p.at[0] * (i32)(w.dilation[0] * w.step[0]);
#endif
        return d;
    }
    DEVICE void advance() {
        k += BK;
        tap.c += BK;
        while (tap.c >= (i32)w.channels) {
            tap.c -= (i32)w.channels;
            if (++tap.at[2] == (i32)w.kernel[2]) {
                tap.at[2] = 0;
                if (++tap.at[1] == (i32)w.kernel[1])
                    tap.at[1] = 0, tap.at[0]++;
            }
        }
    }
    /// Steps come in order.
    DEVICE void operator()(int stage, int) {
        u32 to = stage * stage_bytes;
        int left = (int)g.k - k;
        int count = left <= 0 ? 0 : left < per_chunk ? left : per_chunk;
#if A_ALIGNED == 16
        i32 d = delta(tap);
#pragma unroll
        for (int i = 0; i < na; i++) {
            bool in = count > 0 && inside(i, tap);
            copy(to, i, in ? x + (base[i] + d) : x, in ? per_chunk : 0);
        }
        advance();
#elif A_ALIGNED
        constexpr int piece = A_ALIGNED / element;
#pragma unroll
        for (int e = 0; e < per_chunk; e += piece) {
            Tap p(w, (u32)(k + e), SPATIAL);
            i32 d = delta(p);
#pragma unroll
            for (int i = 0; i < na; i++) {
                bool in = e < count && inside(i, p);
                cp_async<A_ALIGNED>(pipeline + to + place + i * rows_at_once * row_bytes +
                                        e * element,
                                    in ? x + (base[i] + d) : x, in ? piece : 0);
            }
        }
#else
#pragma unroll 1
        for (int e = 0; e < per_chunk; e++) {
            Tap p(w, (u32)(k + e), SPATIAL);
            i32 d = delta(p);
#pragma unroll
            for (int i = 0; i < na; i++) {
                bool in = e < count && inside(i, p);
                *(IN*)(memory + to + place + i * rows_at_once * row_bytes + e * element) =
                    in ? x[base[i] + d] : IN{};
            }
        }
#endif
        to += a_bytes;
#if B_ALIGNED == 16
        i64 kb = count > 0 ? k - (A_ALIGNED == 16 ? BK : 0) : 0;
#pragma unroll
        for (int i = 0; i < nb; i++)
            copy(to, i, weights + kb + weight_row(i), count);
#else
        i64 kb = count > 0 ? (k - (A_ALIGNED == 16 ? BK : 0)) * g.bk[0] : 0;
#pragma unroll 1
        for (int i = 0; i < nb; i++)
            copy_chunk<B_ALIGNED>(memory, to + place + i * rows_at_once * row_bytes,
                                  weights + kb + weight_row(i), g.bk[0], count);
#endif
#if A_ALIGNED != 16
        k += BK;
#endif
    }
};

KERNEL void __launch_bounds__(threads, 1)
    conv_mma(const IN* __restrict__ x, const IN* __restrict__ weights, OUT* __restrict__ out,
             ACC* __restrict__ partial, i32 splits, const __grid_constant__ Window w,
             const __grid_constant__ Geometry g EPI_PARAMS) {
    begin_kernel();
    SHARED(memory);
    Tile t(g, splits);
    grid_wait();
    Copies copies(x, weights, memory, t, g, w);
    Sums sums;
    multiply(sums, smem_addr(memory), t.begin, t.end, copies);
    store_by_epilogue(sums, memory, t, splits, partial, g, out EPI_PASS);
}
