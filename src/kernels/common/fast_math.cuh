// SPDX-License-Identifier: Apache-2.0
// Functions for results stored as f16 or bf16: accurate to 1e-5 of the result; an eighth of half an
// ulp of f16 is 3e-5. The "1 +" forms avoid cancellation where the function is near -1.
DEVICE float fast_exp(float x) {
    return ex2(x * 1.44269504f);
}
DEVICE float fast_sigmoid(float x) {
    return rcp(1.0f + ex2(x * -1.44269504f));
}
/// 1 + tanh(x)
DEVICE float fast_tanh_plus_1(float x) {
    return 2.0f * fast_sigmoid(2.0f * x);
}
DEVICE float fast_tanh(float x) {
    float s = x * x;
    float small =
        fmaf(fmaf(fmaf(fmaf(s, 0.0218694885f, -0.0539682540f), s, 0.133333333f), s, -0.333333333f),
             s * x, x);
    return fabsf(x) < 0.3f ? small : fast_tanh_plus_1(x) - 1.0f;
}
/// 1 - erf(t) for t >= 0, as 2^-(t * polynomial).
DEVICE float fast_erfc_positive(float t) {
    float q = 2.03158216e-05f;
    q = fmaf(q, t, -0.00048607623f);
    q = fmaf(q, t, 0.00522360418f);
    q = fmaf(q, t, -0.0339103444f);
    q = fmaf(q, t, 0.15242998f);
    q = fmaf(q, t, 0.917081426f);
    q = fmaf(q, t, 1.62806326f);
    return ex2(-t * q);
}
/// 1 + erf(x)
DEVICE float fast_erf_plus_1(float x) {
    float e = fast_erfc_positive(fabsf(x));
    return x < 0.0f ? e : 2.0f - e;
}
DEVICE float fast_erf(float x) {
    float s = x * x;
    float small =
        fmaf(fmaf(fmaf(fmaf(s, 0.00522397762f, -0.0268661706f), s, 0.112837917f), s, -0.376126389f),
             s * x, x * 1.12837917f);
    float large = 1.0f - fast_erfc_positive(fabsf(x));
    return fabsf(x) < 0.4f ? small : x < 0.0f ? -large : large;
}
