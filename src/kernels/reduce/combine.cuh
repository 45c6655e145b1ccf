// SPDX-License-Identifier: Apache-2.0
// The functions that reductions and scans combine values with. FN: 0 sum, 1 product, 2 minimum,
// 3 maximum (NaN wins). IDENTITY: the value over no elements, a literal of C.
template <class C> DEVICE C combine(C a, C b) {
#if FN == 0
    return a + b;
#elif FN == 1
    return a * b;
#elif FN == 2
    return (a < b || a != a) ? a : b;
#else
    return (a > b || a != a) ? a : b;
#endif
}
