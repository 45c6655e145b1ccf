// SPDX-License-Identifier: Apache-2.0
// Contraction on ordinary arithmetic units: a block of 256 threads makes 64 x 64 results, 4 x 4 per
// thread; each step moves 16 of the depth through one of two buffers in shared memory, and its
// elements are loaded while the step before is multiplied. A_ROWS and B_COLUMNS: neighbouring
// threads load neighbouring rows (columns) instead of neighbouring depths.
constexpr int simt_pitch = 68;        // four elements of a row are aligned
constexpr i64 outside = (i64)1 << 62; // no offset: strides may be negative

struct SimtTile {
    int tx, ty;
    u32 batch;
    i64 m0, n0;
    DEVICE SimtTile(const Geometry& g) {
        tx = threadIdx.x % 16, ty = threadIdx.x / 16;
        u32 tm = (u32)((g.m + 63) / 64), tn = (u32)((g.n + 63) / 64), t = blockIdx.x;
        batch = t / (tm * tn);
        t -= batch * tm * tn;
        m0 = (i64)(t % tm) * 64, n0 = (i64)(t / tm) * 64;
    }
    /// The row (or column) of the tile, and the depth of a step, of a thread's i-th element.
    static DEVICE int outer(bool outer_fast, int i) {
        return outer_fast ? threadIdx.x % 64 : threadIdx.x / 16 + 16 * i;
    }
    static DEVICE int depth(bool outer_fast, int i) {
        return outer_fast ? threadIdx.x / 64 + 4 * i : threadIdx.x % 16;
    }
};

/// Elements of a strided operand.
template <class T, int R>
struct Strided {
    const T* from;
    i64 at[4];
    /// `outer` axes with `strides`, from index `first` on.
    DEVICE void place_rows(bool outer_fast, i64 first, i64 count, const i64* sizes,
                           const i64* strides) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            i64 r = first + SimtTile::outer(outer_fast, i);
            at[i] = r < count ? offset_of<R>((u32)r, sizes, strides) : outside;
        }
    }
};

/// a(i, k) and b(i, k) give the thread's i-th element at depth k, which is inside.
template <class A, class B>
DEVICE void simt_multiply(ACC (&acc)[4][4], u8* memory, const SimtTile& t, i64 depth, A& a, B& b) {
    using Four = Pack<ACC, 4>;
    constexpr int operand = 16 * simt_pitch;
    ACC* now = (ACC*)memory;
    ACC* other = now + 2 * operand;
    ACC next_a[4], next_b[4];
    auto load = [&](i64 k0) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const i64 ka = k0 + SimtTile::depth(A_ROWS, i), kb = k0 + SimtTile::depth(B_COLUMNS, i);
            next_a[i] = ka < depth ? a(i, ka) : (ACC)0;
            next_b[i] = kb < depth ? b(i, kb) : (ACC)0;
        }
    };
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int j = 0; j < 4; j++)
            acc[i][j] = (ACC)0;
    load(0);
#pragma unroll 1
    for (i64 k0 = 0; k0 < depth; k0 += 16) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            now[SimtTile::depth(A_ROWS, i) * simt_pitch + SimtTile::outer(A_ROWS, i)] = next_a[i];
            now[operand + SimtTile::depth(B_COLUMNS, i) * simt_pitch +
                SimtTile::outer(B_COLUMNS, i)] = next_b[i];
        }
        sync(); // the step before has been read by all, too: the next one may overwrite it
        if (k0 + 16 < depth)
            load(k0 + 16);
#pragma unroll 4
        for (int k = 0; k < 16; k++) {
            const Four x = *(const Four*)(now + k * simt_pitch + t.ty * 4);
            const Four y = *(const Four*)(now + operand + k * simt_pitch + t.tx * 4);
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int j = 0; j < 4; j++)
                    acc[i][j] += x.v[i] * y.v[j];
        }
        ACC* written = now;
        now = other, other = written;
    }
    end_main_loop();
    sync();
}

DEVICE void simt_epilogue(const ACC (&acc)[4][4], u8* memory, const SimtTile& t, const Geometry& g,
                          OUT* out EPI_PARAMS) {
    ACC* tile = (ACC*)memory;
#pragma unroll
    for (int i = 0; i < 4; i++)
        *(Pack<ACC, 4>*)(tile + (t.ty * 4 + i) * tile_pitch + t.tx * 4) =
            Pack<ACC, 4>{{acc[i][0], acc[i][1], acc[i][2], acc[i][3]}};
    sync();
    FromTile fetch = {tile};
    RowsFrom rows = {t.m0, g.m};
    store_tile(fetch, rows, threadIdx.x, 256, 0, 64, t.batch, t.n0, g, out EPI_PASS);
}
