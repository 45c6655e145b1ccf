// SPDX-License-Identifier: Apache-2.0
// The algorithms for products of matrices: each lists its tactics with their costs, and emits
// launches. Those for few rows are in gemv/ and quantized_dot/.
#pragma once

#include "kernels/contraction/mma.h"
#include "kernels/contraction/wgmma.h"

namespace ingot::kernels {

/// Any element types, any strides, any GPU.
struct GemmSimt : NoParameters {
    static constexpr std::string_view pattern = "simt";
};
Tactic simt_tactic(const Contraction& c, const Arch& arch);
Emitted emit_simt(const Contraction& c);

/// f16, bf16, f32 as TF32, i8 on tensor cores by mma.sync.
struct GemmMma : MmaSplit {
    static constexpr std::string_view pattern = "mma_{bm}x{bn}_s{splits}";
};
void add_mma_tactics(std::vector<Tactic>& out, const Contraction& c, const Arch& arch, bool tf32);
/// Whether the kernel stores the moments of `c`.
bool mma_stores_moments(const Contraction& c, const Arch& arch, const GemmMma& parameters);
Emitted emit_mma(const Contraction& c, const Arch& arch, const GemmMma& parameters);

/// f16, bf16, f32 as TF32 by wgmma and TMA (9.0).
struct GemmWgmma : WgmmaSplit {
    static constexpr std::string_view pattern = "wgmma_{tile}_s{splits}";
};
void add_wgmma_tactics(std::vector<Tactic>& out, const Contraction& c, const Arch& arch, bool tf32);
/// Whether the kernel stores the moments of `c`.
bool wgmma_stores_moments(const Contraction& c, const WgmmaSplit& parameters);
Emitted emit_wgmma(const Contraction& c, const Arch& arch, const WgmmaSplit& parameters,
                   int variant);

/// By wgmma, where the rows of A are to be normalised and the columns of B sum to zero: the sums
/// are divided by the deviations of their rows, found while they are multiplied.
struct GemmCentred : WgmmaSplit {
    static constexpr std::string_view pattern = "centred_wgmma_{tile}_s{splits}";
};
void add_centred_tactics(std::vector<Tactic>& out, const Contraction& c, const Arch& arch);
Emitted emit_centred(const Contraction& c, const Arch& arch, const GemmCentred& parameters,
                     int variant, double epsilon);

/// The same by the moments of A's rows (ops/row_moments.h).
struct GemmMerged : WgmmaSplit {
    static constexpr std::string_view pattern = "merged_wgmma_{tile}_s{splits}";
};
void add_merged_tactics(std::vector<Tactic>& out, const Contraction& c, const Operand& moments,
                        const Arch& arch);
Emitted emit_merged(const Contraction& c, const Arch& arch, const GemmMerged& parameters,
                    int variant, double epsilon, const Operand& moments);

/// By wgmma, where the epilogue reads rows that are to be normalised by their moments:
/// Contraction::residual.
struct GemmResidual : WgmmaSplit {
    static constexpr std::string_view pattern = "residual_wgmma_{tile}_s{splits}";
};
void add_residual_tactics(std::vector<Tactic>& out, const Contraction& c, const Operand& moments,
                          const Arch& arch);
Emitted emit_residual(const Contraction& c, const Arch& arch, const GemmResidual& parameters,
                      int variant, double epsilon, const Operand& moments);

/// A thread for each result, where the depth is short. Sums in the order of the depth.
struct ShortDot : NoParameters {
    static constexpr std::string_view pattern = "short";
};
void add_short_tactic(std::vector<Tactic>& out, const Contraction& c, const Arch& arch);
Emitted emit_short(const Contraction& c);

/// Many rows by at most 8 columns: threads share a row, which they read in vectors.
struct NarrowDot {
    static constexpr std::string_view pattern = "narrow_r{rows}";
    int rows = 1; // of a thread
    template <class Self, class F>
    static void fields(Self& self, F&& field) {
        field("rows", self.rows);
    }
};
void add_narrow_tactics(std::vector<Tactic>& out, const Contraction& c, const Arch& arch);
Emitted emit_narrow(const Contraction& c, const NarrowDot& parameters);

/// At most 8 rows of a short depth by many adjoining columns, which are read once, in vectors. Sums
/// in the order of the depth.
struct FewRows : NoParameters {
    static constexpr std::string_view pattern = "few_rows";
};
/// Whether sizes are those of such a product.
bool are_few_rows(int64_t rows, int64_t columns, int64_t depth);
void add_few_rows_tactic(std::vector<Tactic>& out, const Contraction& c, const Arch& arch);
Emitted emit_few_rows(const Contraction& c);

} // namespace ingot::kernels
