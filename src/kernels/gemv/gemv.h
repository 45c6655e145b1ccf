// SPDX-License-Identifier: Apache-2.0
// Products of few rows or columns.
#pragma once

#include "kernels/contraction/normed.h"
#include "kernels/contraction/store_text.h"

namespace ingot::kernels {

/// A warp, or several, per few columns; up to 8 rows or columns.
struct Gemv {
    static constexpr std::string_view pattern = "gemv_s{share}";
    int share = 1; // warps that share the depth of a column
    template <class Self, class F>
    static void fields(Self& self, F&& field) {
        field("share", self.share);
    }
};
/// TMA loads the columns through pipeline stages in shared memory (9.0 and later).
struct PipelinedGemv {
    static constexpr std::string_view pattern = "gemv_pipelined_s{stages}_b{blocks_per_sm}";
    int stages = 0;
    int blocks_per_sm = 1;
    template <class Self, class F>
    static void fields(Self& self, F&& field) {
        field("stages", self.stages);
        field("blocks_per_sm", self.blocks_per_sm);
    }
};
/// The same, with rows that every block normalises.
struct NormedGemv : PipelinedGemv {
    static constexpr std::string_view pattern = "normed_pipelined_s{stages}_b{blocks_per_sm}";
};

/// Tactics of Gemv and PipelinedGemv.
void add_gemv_tactics(std::vector<Tactic>& out, const Contraction& c, const Arch& arch);
/// nullopt for a tactic of another algorithm.
std::optional<Emitted> emit_gemv(const Contraction& c, const Arch& arch, const Tactic& t);

void add_normed_gemv_tactics(std::vector<Tactic>& out, const Contraction& c, const RowNorm& norm,
                             const Arch& arch);
Emitted emit_normed_gemv(const Contraction& c, const RowNorm& norm, const NormedGemv& parameters,
                         const Arch& arch);

} // namespace ingot::kernels
