// SPDX-License-Identifier: Apache-2.0
// Bitonic sort of rows, or parts of rows, of at most P elements in shared memory, by (key, index),
// and therefore stable. ROWS rows per block of NT threads. KEY u32 or u64, MASK its bits, flipped
// by DESCENDING. CHOSEN: the elements are the `n` candidates of an earlier round; FINAL: writes
// values and indices, else the first k indices of each part. The first TOP elements come out in
// order, a power of two; TOP < P only with one row per block.
DEVICE void order(KEY* keys, u32* from, int low, int high, bool up) {
    KEY a = keys[low], b = keys[high];
    u32 i = from[low], j = from[high];
    if ((a > b || (a == b && i > j)) == up) {
        keys[low] = b;
        keys[high] = a;
        from[low] = j;
        from[high] = i;
    }
}
KERNEL void __launch_bounds__(NT)
    sort_short(const T* __restrict__ x, T* __restrict__ values, i64* __restrict__ indices,
               const u32* __restrict__ chosen, u32* __restrict__ next, Nest kept, i64 n, i64 step,
               i64 value_step, i64 index_step, i32 k) {
    begin_kernel();
    __shared__ KEY keys[ROWS * P];
    __shared__ u32 from[ROWS * P];
    grid_wait();
    i64 part = blockIdx.y;
    for (int i = threadIdx.x; i < ROWS * P; i += NT) {
        i64 row = (i64)blockIdx.x * ROWS + i / P, at = part * P + i % P;
        KEY key = MASK;
        u32 index = 0xffffffffu;
        if (row < kept.count && at < n) {
            i64 base[3];
            locate<KR, 3>(kept, row, base);
            index = CHOSEN ? chosen[row * n + at] : (u32)at;
            if (!CHOSEN || index != 0xffffffffu) {
                key = (KEY)key_of(x[base[0] + (i64)index * step]);
                if (DESCENDING)
                    key = ~key & MASK;
            }
        }
        keys[i] = key;
        from[i] = index;
    }
    for (int size = 2; size <= TOP; size <<= 1) {
        for (int stride = size >> 1; stride > 0; stride >>= 1) {
            sync();
            for (int t = threadIdx.x; t < ROWS * P / 2; t += NT) {
                int low = (t / stride) * (2 * stride) + t % stride;
                order(keys, from, low, low + stride, (low & size & (P - 1)) == 0);
            }
        }
    }
    // Sorted runs of TOP, ascending and descending in turn: the smaller of each pair of elements
    // are the TOP smallest of two runs, a bitonic run, which is sorted again. Run j begins at j *
    // span.
    for (int span = TOP; span < P; span <<= 1) {
        sync();
        for (int t = threadIdx.x; t < P / span / 2 * TOP; t += NT) {
            int low = (t / TOP) * (2 * span) + t % TOP;
            order(keys, from, low, low + span, true);
        }
        for (int stride = TOP >> 1; stride > 0; stride >>= 1) {
            sync();
            for (int t = threadIdx.x; t < P / span / 2 * (TOP / 2); t += NT) {
                int run = t / (TOP / 2), i = t % (TOP / 2);
                int low = run * (2 * span) + (i / stride) * (2 * stride) + i % stride;
                order(keys, from, low, low + stride, (run & 1) == 0);
            }
        }
    }
    sync();
    end_main_loop();
    for (int i = threadIdx.x; i < ROWS * k; i += NT) {
        i64 row = (i64)blockIdx.x * ROWS + i / k;
        int at = i % k;
        if (row >= kept.count)
            continue;
        u32 index = at < P ? from[i / k * P + at] : 0xffffffffu;
#if FINAL
        i64 base[3];
        locate<KR, 3>(kept, row, base);
        values[base[1] + at * value_step] = x[base[0] + (i64)index * step];
        indices[base[2] + at * index_step] = index;
#else
        next[(row * gridDim.y + part) * k + at] = index;
#endif
    }
}
