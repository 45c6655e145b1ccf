// SPDX-License-Identifier: Apache-2.0
// Functions for results stored as f16 or bf16, or of sums whose operands were rounded to TF32:
// accurate to 1e-5 of the result (an eighth of half an ulp of f16 is 3e-5, half an ulp of TF32
// 4.9e-4), gelu to 8.5e-5. The "1 +" forms avoid cancellation where the function is
// near -1.
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
#ifdef INGOT_EMULATED
DEVICE float mul_sat(float a, float b) {
    float r = a * b;
    return r > 1.0f ? 1.0f : r > 0.0f ? r : 0.0f;
}
DEVICE float max_nan(float a, float b) {
    return a > b || a != a ? a : b;
}
#else
DEVICE float mul_sat(float a, float b) { // within 0 and 1; NaN counts as 0
    float r;
    asm("mul.sat.f32 %0,%1,%2;" : "=f"(r) : "f"(a), "f"(b));
    return r;
}
DEVICE float max_nan(float a, float b) { // NaN wins
    float r;
    asm("max.NaN.f32 %0,%1,%2;" : "=f"(r) : "f"(a), "f"(b));
    return r;
}
#endif
/// gelu(x) = max(x, 0) - |x| Q(|x|), Q(t) = erfc(t / sqrt(2)) / 2. With w = |x| / 5.75, at most 1:
/// |x| Q = w * 2^r(w), to 8.5e-5 of it while it is a normal f16, of which half an ulp is 2.4e-4 to
/// 4.9e-4. Beyond w = 1 it rounds to 0.
DEVICE float fast_gelu(float x) {
    float w = mul_sat(fabsf(x), 1.0f / 5.75f);
    float r = -2.01455021f;
    r = fmaf(r, w, 6.36997175f);
    r = fmaf(r, w, -9.17037773f);
    r = fmaf(r, w, -15.3449802f);
    r = fmaf(r, w, -6.60776472f);
    r = fmaf(r, w, 1.52344131f);
    return fmaf(-w, ex2(r), max_nan(x, 0.0f));
}
