// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/expr_text.h"
#include "kernels/gemv/gemv.h"

#include <algorithm>
#include <cmath>

namespace ingot::kernels {

namespace {

// As in gemv_pipelined.cuh.
constexpr int64_t ring_warps = 8;
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
    return ring_warps * stages * unit_columns * chunk_bytes +
           ring_warps * rows * kept_units * unit_columns * 4 + bars_bytes +
           rows * c.k() * bit_width(c.a.dtype) / 8;
}

/// Whatever keeps the text of a kernel short.
int64_t most_rows(const Contraction& c) {
    return bit_width(c.b.dtype) > 8 ? 4 : 2;
}

bool runs(const Contraction& c, const Arch& arch) {
    int64_t n = gemv_chunk(c);
    int64_t row_bytes = gemv_rows(c) * c.k() * bit_width(c.a.dtype) / 8;
    constexpr int64_t least_bytes = 1 << 19; // of b
    return arch.has_tma() && c.batches() == 1 && c.m() <= most_rows(c) && c.k() % n == 0 &&
           sum_c_type(c.a.dtype, c.b.dtype, c.finish.sum_type) == "float" &&
           bit_width(c.a.dtype) <= 32 && bit_width(c.b.dtype) <= 32 &&
           row_bytes <= most_row_bytes && c.k() * bit_width(c.b.dtype) / 8 >= 512 &&
           c.n() * c.k() * bit_width(c.b.dtype) / 8 >= least_bytes && c.n() < (1 << 30) &&
           chunked(c.a, c.batch.a, c.rows.a, c.depth.a, n) &&
           chunked(c.b, c.batch.b, c.columns.b, c.depth.b, n);
}

/// Blocks of a grid, a share of the units for each of their warps.
struct Shares {
    int64_t blocks, per_warp;
};
Shares shares_of(const Contraction& c, int64_t per_sm, const Arch& arch) {
    int64_t units = units_of(c);
    int64_t most = std::min(units, per_sm * arch.sms);
    int64_t per_warp = div_up(units, most * ring_warps);
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
    constexpr double block_us = 0.15; // that follows another on its SM
    auto resident = static_cast<double>(
        std::max<int64_t>(1, arch.shared_per_sm / (shared_bytes(c, stages) + 1024)));
    double rounds = std::max(0.0, static_cast<double>(per_sm) / resident - 1);
    return start_us + rounds * block_us + std::max(dram_us, math_us);
}

void add_forms(std::vector<Tactic>& out, const Contraction& c, Tactic t, const Arch& arch) {
    struct Form {
        int stages, per_sm;
    };
    std::string prefix = t.name;
    double before = t.cost_us;
    // Where it can be, two blocks of the first fit an SM, so that the next kernel's columns come
    // early.
    int few = shared_bytes(c, 3) <= arch.shared_per_block ? 3 : 2;
    for (Form f : {Form{few, 1}, {few, 2}, {6, 1}, {few, 8}}) {
        bool small = units_of(c) < int64_t{f.per_sm} * arch.sms * ring_warps;
        if (shared_bytes(c, f.stages) > arch.shared_per_block || (f.per_sm > 1 && small)) {
            continue;
        }
        t.name = str(prefix, f.stages, "_b", f.per_sm);
        t.p[1] = f.stages;
        t.p[3] = f.per_sm;
        t.cost_us = before + cost_us(c, f.stages, f.per_sm, arch);
        out.push_back(t);
    }
}

/// Whether vectors of the norm can be read 16 bytes of b at a time.
bool reads_vectors(const Contraction& c, const RowNorm& norm) {
    return std::all_of(norm.vectors.begin(), norm.vectors.end(), [&](const Operand& o) {
        Shape outer = o.view.strides;
        outer.pop_back();
        return o.view.strides.back() == 1 && o.view.offset % gemv_chunk(c) == 0 &&
               bit_width(o.dtype) <= 32 && is_float(o.dtype) &&
               std::all_of(outer.begin(), outer.end(), [](int64_t s) { return s == 0; });
    });
}

Emitted emit(const Contraction& c, const RowNorm* norm, const Tactic& t, const Arch& arch) {
    int stages = t.p[1];
    Shares shares = shares_of(c, t.p[3], arch);
    StoreText text = store_text(c, least_width(c));
    bool has_bias = norm != nullptr && norm->vectors.size() > 1;
    std::string_view scale = norm == nullptr ? "float" : c_type(norm->vectors[0].dtype);
    std::string_view bias = has_bias ? c_type(norm->vectors[1].dtype) : "float";
    Launch l;
    l.program.uses = {"types", "math"};
    l.program.defines = str("#define TA ", c_type(c.a.dtype), "\n#define TB ", c_type(c.b.dtype),
                            "\n#define MR ", gemv_rows(c), "\n#define NR ", unit_columns,
                            "\n#define CHUNK ", chunk_bytes, "\n#define NORM ",
                            norm == nullptr ? 0
                            : norm->rms     ? 3
                                            : 2,
                            "\n#define SCALE ", scale, "\n#define BIAS ", bias, "\n", text.defines);
    l.program.body = str(device_file("contract"), text.functions);
    l.program.family = "gemv_pipelined";
    l.entry = "gemv_pipelined";
    l.grid = {shares.blocks, 1, 1};
    l.shared = shared_bytes(c, stages);
    l.args.pointer(c.a).pointer(c.b).pointer(c.out).i32(stages).i32(shares.per_warp);
    l.args.i32(c.b_constant ? 1 : 0);
    for (size_t i = 0; i < 2; ++i) {
        if (norm != nullptr && i < norm->vectors.size()) {
            l.args.pointer(norm->vectors[i]);
        } else {
            l.args.null();
        }
    }
    l.args.f32(norm == nullptr ? 0 : norm->epsilon);
    add_geometry(l.args, c);
    add_operands(l.args, c);
    Emitted e;
    e.launches.push_back(std::move(l));
    return e;
}

} // namespace

void add_ring_tactics(std::vector<Tactic>& out, const Contraction& c, bool swap, const Arch& arch) {
    if (runs(c, arch) && c.k() > 0) {
        add_forms(out, c, make_tactic("gemv_pipelined_s", Way::Ring, 0, swap ? 1 : 0, 0), arch);
    }
}

Emitted emit_ring(const Contraction& c, const Tactic& t, const Arch& arch) {
    return emit(t.p[2] != 0 ? swapped(c) : c, nullptr, t, arch);
}

void add_normed_ring_tactics(std::vector<Tactic>& out, const Contraction& c, const RowNorm& norm,
                             const Arch& arch) {
    constexpr double norm_us = 0.4; // while the first columns are on their way
    if (runs(c, arch) && c.k() > 0 && reads_vectors(c, norm)) {
        add_forms(out, c, make_tactic("normed_ring_s", Way::NormedRing, 0, 0, norm_us), arch);
    }
}

Emitted emit_normed_ring(const Contraction& c, const RowNorm& norm, const Tactic& t,
                         const Arch& arch) {
    return emit(c, &norm, t, arch);
}

} // namespace ingot::kernels
