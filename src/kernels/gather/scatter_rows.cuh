// SPDX-License-Identifier: Apache-2.0
// Shared by the kernels of a scatter with many indices. I: u32 or u64, the type of element counts.
struct Many {
    i64 updates; // elements of them
    i64 rows, rest, y_row, u_row, x_row, step;
    i32 bits; // of the largest exponent's multiple
};
/// Element t: its row, and its index in the row; ONE: rows have one element.
template <bool ONE, class I>
DEVICE I row_of(I t, const Many& m, u32& r) {
    const I i = ONE ? t : t / (I)m.rest;
    r = ONE ? 0u : (u32)(t - i * (I)m.rest);
    return i;
}
/// The row of y that update i changes; -1 for none.
template <class Index, class I>
DEVICE i64 target_of(const Index* indices, I i, const Many& m, u32* error) {
    const i64 row = (i64)indices[(i64)i * m.step];
    if (row >= 0 && row < m.rows)
        return row;
    *error = 1;
    return -1;
}
