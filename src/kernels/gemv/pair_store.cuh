// SPDX-License-Identifier: Apache-2.0
// Follows store_tile.cuh, for pairs of columns with one result each: VEC columns, 2 or 8, are VEC /
// 2 results. Later code reads tiles this way.
template <int PITCH>
struct PairsFromPitch {
    const ACC* tile;
    DEVICE void operator()(ACC* v, int r, int j) const {
        constexpr int together = VEC == 8 ? 4 : 2;
        const ACC* p = tile + r * PITCH + j;
#pragma unroll
        for (int i = 0; i < VEC; i += together) {
            Pack<ACC, together> x = *(const Pack<ACC, together>*)(p + i);
#pragma unroll
            for (int k = 0; k < together; k++)
                v[i + k] = x.v[k];
        }
    }
};

typedef PairsFromPitch<tile_pitch> PairsFromTile;
#define FromPitch PairsFromPitch
#define FromTile PairsFromTile
