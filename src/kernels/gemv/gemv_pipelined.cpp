// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/expr_text.h"
#include "kernels/contraction/cost.h"
#include "kernels/gemv/gemv_rows.h"

#include <algorithm>
#include <cmath>

namespace ingot::kernels {

namespace {

// As in gemv_pipelined.cuh.
constexpr int64_t unit_columns = 2;
constexpr int64_t chunk_bytes = 2048;
constexpr int64_t kept_units = 8;
constexpr int64_t bars_bytes = 512;
constexpr int64_t most_row_bytes = 32 << 10;

int64_t units_of(const Contraction& c) {
    return div_up(c.n(), unit_columns);
}

int64_t shared_bytes(const Contraction& c, int64_t stages) {
    int64_t rows = gemv_rows(c);
    return pipeline_warps * stages * unit_columns * chunk_bytes +
           pipeline_warps * rows * kept_units * unit_columns * 4 + bars_bytes +
           rows * c.k() * bit_width(c.a.dtype) / 8;
}

/// Few rows keep the text of a kernel short.
int64_t most_rows(const Contraction& c) {
    return bit_width(c.b.dtype) > 8 ? 4 : 2;
}

bool runs(const Contraction& c, const Arch& arch) {
    int64_t n = gemv_chunk(c);
    int64_t row_bytes = gemv_rows(c) * c.k() * bit_width(c.a.dtype) / 8;
    constexpr int64_t least_bytes = 1 << 19; // of b
    return arch.has_tma() && c.batches() == 1 && c.m() <= most_rows(c) && c.k() % n == 0 &&
           sum_c_type(c.a.dtype, c.b.dtype, c.epilogue.sum_type) == "float" &&
           bit_width(c.a.dtype) <= 32 && bit_width(c.b.dtype) <= 32 &&
           row_bytes <= most_row_bytes && c.k() * bit_width(c.b.dtype) / 8 >= 512 &&
           c.n() * c.k() * bit_width(c.b.dtype) / 8 >= least_bytes && c.n() < (1 << 30) &&
           chunked(c.a, c.batch.a, c.rows.a, c.depth.a, n) &&
           chunked(c.b, c.batch.b, c.columns.b, c.depth.b, n);
}

/// The blocks of a grid, and each warp's share of the units.
struct Shares {
    int64_t blocks, per_warp;
};
Shares shares_of(const Contraction& c, int64_t per_sm, const Arch& arch) {
    int64_t units = units_of(c);
    int64_t most = std::min(units, per_sm * arch.sms);
    int64_t per_warp = div_up(units, most * pipeline_warps);
    return {std::min(most, div_up(units, per_warp)), per_warp};
}

double cost_us(const Contraction& c, int64_t stages, int64_t per_sm, const Arch& arch) {
    Shares s = shares_of(c, per_sm, arch);
    auto units = static_cast<double>(units_of(c));
    double unit_bytes = static_cast<double>(unit_columns * c.k() * bit_width(c.b.dtype)) / 8;
    // Whole units on the busiest SM.
    double warps = static_cast<double>(div_up(units_of(c), s.per_warp));
    double busiest = std::ceil(warps / arch.sms) * static_cast<double>(s.per_warp);
    double uneven = std::max(1.0, std::min(busiest, units) * arch.sms / units);
    double dram_us = traffic_bytes(c) / (arch.dram_gbs * 1.06e3) * (1 + 0.5 * (uneven - 1));
    double pieces = units * unit_bytes / (16 * unit_columns * 32);
    double widened = 128.0 / bit_width(c.b.dtype);
    double instructions = 8 + 2 * widened + gemv_rows(c) * (2 + 3.5 * widened);
    double math_us = pieces * instructions * uneven / (arch.sms * 4 * arch.clock_ghz * 1e3 * 0.6);
    constexpr double start_us = 0.9;
    constexpr double block_us = 0.15; // after another on its SM
    auto resident = static_cast<double>(
        std::max<int64_t>(1, arch.shared_per_sm / (shared_bytes(c, stages) + 1024)));
    double rounds = std::max(0.0, static_cast<double>(per_sm) / resident - 1);
    return start_us + rounds * block_us + std::max(dram_us, math_us);
}

/// `before_us`: the time before the first columns.
template <class P>
void add_tactics(std::vector<Tactic>& out, const Contraction& c, double before_us,
                 const Arch& arch) {
    int few = shared_bytes(c, 3) <= arch.shared_per_block ? 3 : 2;
    for (PipelinedGemv g : {PipelinedGemv{few, 1}, {few, 2}, {6, 1}, {few, 8}}) {
        bool small = units_of(c) < int64_t{g.blocks_per_sm} * arch.sms * pipeline_warps;
        if (shared_bytes(c, g.stages) <= arch.shared_per_block &&
            (g.blocks_per_sm == 1 || !small)) {
            double us = before_us + cost_us(c, g.stages, g.blocks_per_sm, arch);
            P parameters;
            parameters.stages = g.stages;
            parameters.blocks_per_sm = g.blocks_per_sm;
            out.push_back(make_tactic(parameters, us));
        }
    }
}

Emitted emit(const Contraction& c, const RowNorm* norm, const PipelinedGemv& parameters,
             const Arch& arch) {
    int stages = parameters.stages;
    Shares shares = shares_of(c, parameters.blocks_per_sm, arch);
    StoreText text = store_text(c, least_width(c));
    bool has_bias = norm != nullptr && norm->vectors.size() > 1;
    std::string_view scale = norm == nullptr ? "float" : c_type(norm->vectors[0].dtype);
    std::string_view bias = has_bias ? c_type(norm->vectors[1].dtype) : "float";
    Launch l;
    l.program.uses = {"types", "math"};
    if (norm != nullptr) {
        l.program.uses.emplace_back("row_total");
    }
    l.program.defines = str("#define TA ", c_type(c.a.dtype), "\n#define TB ", c_type(c.b.dtype),
                            "\n#define MR ", gemv_rows(c), "\n#define NR ", unit_columns,
                            "\n#define CHUNK ", chunk_bytes, "\n#define NORM ", norm_define(norm),
                            "\n#define SCALE ", scale, "\n#define BIAS ", bias, "\n", text.defines);
    l.program.body = str(device_file("contract"), text.functions);
    l.program.family = "gemv_pipelined";
    l.entry = "gemv_pipelined";
    l.grid = {shares.blocks, 1, 1};
    l.shared = shared_bytes(c, stages);
    if (parameters.blocks_per_sm == 1) {
        l.shared = std::max(l.shared, arch.shared_of_a_lone_block());
        l.alone = true;
    }
    l.args.pointer(c.a).pointer(c.b).pointer(c.out).i32(stages).i32(shares.per_warp);
    l.args.i32((c.b_constant ? 1 : 0) + (norm != nullptr && norm->constant ? 2 : 0));
    add_norm_args(l.args, norm);
    add_geometry(l.args, c);
    add_operands(l.args, c);
    Emitted e;
    e.launches.push_back(std::move(l));
    return e;
}

} // namespace

void add_pipelined_tactics(std::vector<Tactic>& out, const Contraction& c, const Arch& arch) {
    if (runs(c, arch) && c.k() > 0) {
        add_tactics<PipelinedGemv>(out, c, 0, arch);
    }
}

Emitted emit_pipelined(const Contraction& c, const PipelinedGemv& parameters, const Arch& arch) {
    return emit(c, nullptr, parameters, arch);
}

void add_normed_gemv_tactics(std::vector<Tactic>& out, const Contraction& c, const RowNorm& norm,
                             const Arch& arch) {
    constexpr double norm_us = 0.4; // while the first columns load
    if (runs(c, arch) && c.k() > 0 && norm.reads_vectors(gemv_chunk(c))) {
        add_tactics<NormedGemv>(out, c, norm_us, arch);
    }
}

Emitted emit_normed_gemv(const Contraction& c, const RowNorm& norm, const NormedGemv& parameters,
                         const Arch& arch) {
    return emit(c, &norm, parameters, arch);
}

} // namespace ingot::kernels
