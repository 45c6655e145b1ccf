// SPDX-License-Identifier: Apache-2.0
// Loops over sin, cos, tan and atan of f32, declared inside the namespace of an instruction set.
// Their text (trigonometry.inl) is compiled without contraction into fused operations: results are
// the same bits on every processor.
void sin_f32(void* out, const void* x, const void*, const void*, int64_t n);
void cos_f32(void* out, const void* x, const void*, const void*, int64_t n);
void tan_f32(void* out, const void* x, const void*, const void*, int64_t n);
void atan_f32(void* out, const void* x, const void*, const void*, int64_t n);
