// SPDX-License-Identifier: Apache-2.0
// scatter: rows of y combined with rows of updates, in index order. Blocks split the rows (row %
// parts) and the elements of a row (lanes); each thread owns the elements that it writes, so no
// result depends on timing. Every block reads all indices, in tiles of 1024, and lists its own.
// From the generated text: types T (of updates), A (of y), Index; COMBINE, and whether it READS y;
// REST_PARAMS and rest_offsets, which locates element r of a row in y and in updates.
DEVICE u32 list_own(const Index* indices, i64 step, u32* error, i32 base, i32 m, u32 n, u32 parts,
                    u32 part, u32* rows, u32* at, u32* sums) {
    u32 own[4];
    u32 mask = 0, count = 0;
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        i32 i = base + (i32)threadIdx.x * 4 + k;
        if (i >= m)
            continue;
        i64 row = (i64)indices[i * step];
        if (row < 0 || row >= (i64)n) {
            *error = 1;
            continue;
        }
        own[k] = (u32)row;
        if ((u32)row % parts == part) {
            mask |= 1u << k;
            count += 1;
        }
    }
    u32 lane = threadIdx.x & 31u, warp = threadIdx.x >> 5, sum = count;
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
        u32 below = shfl_up(sum, d);
        if (lane >= (u32)d)
            sum += below;
    }
    if (lane == 31)
        sums[warp] = sum;
    sync();
    u32 start = sum - count, total = 0;
#pragma unroll
    for (u32 w = 0; w < 8; ++w) {
        if (w < warp)
            start += sums[w];
        total += sums[w];
    }
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        if (mask >> k & 1u) {
            rows[start] = own[k];
            at[start] = (u32)(base + (i32)threadIdx.x * 4 + k);
            start += 1;
        }
    }
    sync();
    return total;
}

KERNEL void __launch_bounds__(256)
    scatter(A* y, const T* updates, const Index* indices, u32* error, i32 m, i32 n, i32 rest,
            i64 y_row, i64 u_row, i64 step, u32 parts, u32 lanes_log2 REST_PARAMS) {
    begin_kernel();
    SHARED(mem);
    u32* rows = (u32*)mem;
    u32* at = rows + 1024;
    u32* sums = at + 1024;
    const u32 lanes = 1u << lanes_log2, groups = 256u >> lanes_log2;
    const u32 lane = threadIdx.x & (lanes - 1u), group = threadIdx.x >> lanes_log2;
    const u32 part = blockIdx.x % parts, r = blockIdx.x / parts * lanes + lane;
    i64 at_rest[2] = {0, 0};
    if (r < (u32)rest)
        rest_offsets(r, at_rest REST_ARGS);
    const i64 yo = at_rest[0], uo = at_rest[1];
    const u32 none = ~0u;
    u32 held = none; // the row whose element is in `value`, to be stored
    A value;
    grid_wait();
    for (i32 base = 0; base < m; base += 1024) {
        u32 total = list_own(indices, step, error, base, m, (u32)n, parts, part, rows, at, sums);
        for (u32 e = 0; e < total && r < (u32)rest; e += 4) {
            u32 row[4];
            bool mine[4];
            T u[4];
            A early[4];
            const u32 before = held;
#pragma unroll
            for (u32 k = 0; k < 4; ++k) {
                row[k] = rows[e + k < total ? e + k : e];
                mine[k] = e + k < total && (row[k] / parts & (groups - 1u)) == group;
                if (mine[k]) {
                    u[k] = updates[(i64)at[e + k] * u_row + uo];
                    if (READS)
                        early[k] = y[(i64)row[k] * y_row + yo];
                }
            }
#pragma unroll
            for (u32 k = 0; k < 4; ++k) {
                if (!mine[k])
                    continue;
                if (row[k] != held) {
                    if (held != none)
                        y[(i64)held * y_row + yo] = value;
                    held = row[k];
                    bool stale = row[k] == before; // written since it was read
#pragma unroll
                    for (u32 j = 0; j < k; ++j)
                        stale = stale || (mine[j] && row[j] == row[k]);
                    if (READS)
                        value = stale ? y[(i64)row[k] * y_row + yo] : early[k];
                }
                value = COMBINE(value, u[k]);
            }
        }
        sync();
    }
    if (held != none)
        y[(i64)held * y_row + yo] = value;
    end_main_loop();
}
