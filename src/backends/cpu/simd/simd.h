// SPDX-License-Identifier: Apache-2.0
// Vector loops, one variant per instruction set, chosen at run time. The variants are the same text
// (*.inl) compiled with different options; they use nothing from the standard library, so that no
// shared inline function contains instructions that an older processor lacks.
#pragma once

#include "ir/expr.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ingot::cpu {

enum class InstructionSet { Baseline, Avx2, Avx512, Avx512Vnni };
std::string_view name(InstructionSet s);
/// The best set that processor and system support and that the environment variable
/// ONEDNN_MAX_CPU_ISA (or DNNL_MAX_CPU_ISA) permits. Read once; an unknown value is ignored with a
/// warning.
InstructionSet instruction_set();
/// Our best set below a limit in oneDNN's spelling ("AVX2", in any case); nullopt for unknown
/// names.
std::optional<InstructionSet> limit_named(std::string_view text);
/// The processor's name.
std::string cpu_model();

/// out[i] = f(a[i], b[i], c[i]) for i < n; `out` may be one of the operands.
using MapLoop = void (*)(void* out, const void* a, const void* b, const void* c, int64_t n);

/// The largest block that one call of the matrix kernel computes.
struct TileShape {
    int64_t rows = 0;
    int64_t columns = 0;
};

/// c[rows x tile.columns] = a * b, for bytes: each element of the packed panels, of which there are
/// `depth` for each row and column, holds several depths, the first in its low bits.
using ByteTile = void (*)(int64_t rows, int64_t depth, const uint32_t* a, const uint32_t* b,
                          uint32_t* c, int64_t c_stride);

struct VectorLoops {
    // --- maps: null where there is no vector form
    MapLoop (*map)(ExprOp op, DType type);
    /// Between stored and compute types; float to integer as Expr's Cast does.
    MapLoop (*convert)(DType from, DType to);
    /// f32 to i8 or u8: round(a / b), with `shifted` + c, within the type's limits; NaN gives 0.
    MapLoop (*quantize)(DType to, bool shifted);
    MapLoop centred_sums; // i32 to f32: a - b * c, which wraps
    MapLoop lookup;       // bytes: b[a], where b are 256 bytes, whatever n is

    // --- rows of f32
    float (*sum)(const float* x, int64_t n);
    float (*sum_squares)(const float* x, float mean, int64_t n); // of x - mean
    float (*maximum)(const float* x, int64_t n);                 // NaN when one is NaN
    float (*minimum)(const float* x, int64_t n);                 // NaN when one is NaN
    float (*dot)(const float* a, const float* b, int64_t n);
    /// out = exp(x * scale - shift); returns the sum. out may be x.
    float (*exp_sum)(float* out, const float* x, float scale, float shift, int64_t n);
    void (*scale)(float* out, const float* x, float factor, int64_t n);
    /// out = (x - mean) * factor * weight + bias; weight and bias may be null.
    void (*normalize)(float* out, const float* x, float mean, float factor, const float* weight,
                      const float* bias, int64_t n);
    void (*multiply_add)(float* y, const float* a, const float* b, int64_t n); // y += a * b
    /// y[c] = sum over t of x[taps[t] + c] * w[t * n + c] for c < n, bytes of either sign
    /// (x_signed, i8) or none (u8); sums wrap like 32-bit integers.
    void (*byte_taps)(int32_t* y, const void* x, bool x_signed, const int64_t* taps, int64_t count,
                      const int16_t* w, int64_t n);
    void (*add_scaled)(float* y, const float* x, float factor, int64_t n); // y += x * factor

    // --- matrix products: c[rows x tile.columns] = a * b from packed panels, rows <= tile.rows.
    // a holds `rows` values for each k, b holds tile.columns values for each k.
    TileShape tile;
    void (*matmul_tile)(int64_t rows, int64_t k, const float* a, const float* b, float* c,
                        int64_t c_stride);
    /// The same, with an order of additions that does not depend on the number of rows.
    void (*matmul_tile_in_order)(int64_t rows, int64_t k, const float* a, const float* b, float* c,
                                 int64_t c_stride);
    // Tiles of bytes, which have the same shape:
    ByteTile byte_tile; // two depths, widened to 16 bits
    ByteTile quad_tile; // four, u8 in a and i8 in b; null where no instruction adds them exactly
};
const VectorLoops& vector_loops(InstructionSet s);
inline const VectorLoops& vector_loops() {
    return vector_loops(instruction_set());
}

} // namespace ingot::cpu
