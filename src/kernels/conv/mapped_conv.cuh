// SPDX-License-Identifier: Apache-2.0
// A map of channels and the pointwise convolution that reads it, channels innermost: a block makes
// BM positions x BN columns. All channels of its positions come into shared memory at once, where
// each thread maps those that it has copied, and tensor cores read them there (mma.sync). Weights
// and the map's OPERANDS are loaded before the kernel waits for its input, where they are constant.
// Traffic: the input once a block of columns, the result once. Blocks share an SM where the depth
// is small: a channel takes 2 bytes of shared memory a row and a column.

/// Shared memory.
struct Kept {
    i64* places; // [BM]: offsets of the positions in x
    u8 *a, *b;   // rows of `pitch` elements
    DEVICE Kept(u8* memory, const Rows& d) {
        places = (i64*)memory;
        a = memory + BM * (int)sizeof(i64);
        b = a + BM * d.pitch * (int)sizeof(IN);
    }
};

/// Rows behind the last one repeat the first of all.
DEVICE void find_places(i64* places, i64 m0, const Geometry& g) {
    if (threadIdx.x < BM) {
        i64 row = m0 + threadIdx.x;
        places[threadIdx.x] = offset_of<RM>(row < g.m ? (u32)row : 0, g.rows, g.am);
    }
}

template <class T>
DEVICE void load_channels(float* to, const T* from, i32 step) {
#pragma unroll
    for (int i = 0; i < 8; i++)
        to[i] = widen(from[i * step]);
}
#define LOAD_OPERAND(n, from, step) load_channels(operands[n], from + c * step, step);
#define OPERAND(n) operands[n][i]

/// A thread's part: 8 channels of every `step`-th row from `row` on.
struct Part {
    int row, step, c;
    bool inside; // behind the last channel are zeros
    float operands[OPERANDS + 1][8];

    DEVICE explicit Part(const Rows& d) {
        row = (int)((u64)threadIdx.x * d.by_eights >> 32);
        step = threads / d.eights;
        c = ((int)threadIdx.x - row * d.eights) * 8;
        inside = c < d.channels;
        row = row < step ? row : BM;
    }
    DEVICE void load_operands(const Rows& d MIDDLE_PARAMS) {
        (void)d;
        if (inside) {
            LOAD_MIDDLE
        }
    }
    DEVICE u8* at(const Kept& kept, int r, const Rows& d) const {
        return kept.a + (r * d.pitch + c) * (int)sizeof(IN);
    }
    DEVICE void load(const Kept& kept, const IN* x, const Rows& d) const {
#pragma unroll 4
        for (int r = row; r < BM; r += step)
            cp_async16(smem_addr(at(kept, r, d)), x + (inside ? kept.places[r] + c : 0),
                       inside ? 16 : 0);
        cp_async_commit();
    }
    DEVICE void map(const Kept& kept, const Rows& d) const {
#pragma unroll 2
        for (int r = inside ? row : BM; r < BM; r += step) {
            uint4* p = (uint4*)at(kept, r, d);
            float v[8];
            unpack(v, *p);
#pragma unroll
            for (int i = 0; i < 8; i++)
                v[i] = MID_OF(v[i]);
            *p = packed(v);
        }
    }
};

KERNEL void __launch_bounds__(threads, 1)
    mapped_conv(const IN* __restrict__ x, const IN* __restrict__ weights, OUT* __restrict__ out,
                const __grid_constant__ Rows d MIDDLE_PARAMS,
                const __grid_constant__ Geometry g EPI_PARAMS) {
    begin_kernel();
    SHARED(memory);
    Kept kept(memory, d);
    Tile tile(d);
    if (!d.constant)
        grid_wait();
    load_columns(kept.b, weights, tile.n0, g, d);
    cp_async_commit();
    Part part(d);
    part.load_operands(d MIDDLE_PASS);
    find_places(kept.places, tile.m0, g);
    sync();
    if (d.constant)
        grid_wait();
    part.load(kept, x, d);
    End end; // read before it is used: a bias may lie in DRAM alone
    end.read((int)threadIdx.x, tile, g EPI_PASS);
    cp_async_wait<0>();
    part.map(kept, d);
    sync();
    multiply_rows(kept.a, kept.b, tile, end, d, g, out EPI_PASS);
}
