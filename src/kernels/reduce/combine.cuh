// SPDX-License-Identifier: Apache-2.0
// The combining functions of reductions and scans. FN: 0 sum, 1 product, 2 minimum, 3 maximum (NaN
// wins).
template <int FN, class C>
DEVICE C combine(C a, C b) {
    if (FN == 0)
        return a + b;
    if (FN == 1)
        return a * b;
    if (FN == 2)
        return (a < b || a != a) ? a : b;
    return (a > b || a != a) ? a : b;
}
