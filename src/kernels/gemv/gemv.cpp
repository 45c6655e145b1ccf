// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemv/gemv.h"

#include "kernels/common/expr_text.h"
#include "kernels/contraction/cost.h"
#include "kernels/gemv/gemv_rows.h"

#include <algorithm>

namespace ingot::kernels {

int gemv_rows(const Contraction& c) {
    return c.m() <= 1 ? 1 : c.m() <= 2 ? 2 : c.m() <= 4 ? 4 : 8;
}

bool chunked(const Operand& o, const Shape& batch, const Shape& outer, const Shape& depth,
             int64_t n) {
    return depth.size() == 1 && depth[0] == 1 && o.view.offset % n == 0 &&
           all_multiples(batch, n) && all_multiples(outer, n);
}

namespace {

/// As many as keep the kernel's text and registers small.
int columns_of(const Contraction& c) {
    int width = bit_width(c.b.dtype);
    int wide = c.paired() ? 2 : 3; // whole pairs
    return gemv_rows(c) == 1 || width <= 8 ? 2 : gemv_rows(c) == 8 && width == 16 ? wide : 4;
}

bool bytes(const Contraction& c) {
    return is_integer(c.a.dtype) && is_integer(c.b.dtype) && bit_width(c.a.dtype) == 8 &&
           bit_width(c.b.dtype) == 8;
}

bool runs(const Contraction& c) {
    int64_t chunk = gemv_chunk(c);
    std::string_view sum = sum_c_type(c.a.dtype, c.b.dtype, c.epilogue.sum_type);
    bool wide = bit_width(c.a.dtype) > 8 || bytes(c);
    return c.m() <= (wide ? most_gemv_rows : most_gemv_rows / 2) && c.k() % chunk == 0 &&
           (sum == "float" || sum == "u32") && bit_width(c.a.dtype) <= 32 &&
           bit_width(c.b.dtype) <= 32 && chunked(c.a, c.batch.a, c.rows.a, c.depth.a, chunk) &&
           chunked(c.b, c.batch.b, c.columns.b, c.depth.b, chunk);
}

/// The effect of a share of the depth on weights from memory: a block has a fixed cost and a cost
/// per round, an SM holds a few blocks at a time, and at the end memory waits for the last ones.
/// Relative to a single block of one round.
double blocks_us(double blocks, double rounds, double dram_us, const Arch& arch) {
    constexpr double block_us = 1.6;
    constexpr double round_us = 0.5;
    constexpr double resident = 3.5;
    constexpr double tail = 0.3;
    double one = block_us + round_us * rounds;
    double all = std::max(1.0, blocks / (arch.sms * resident)) * one;
    return std::max(all, dram_us) + tail * one - (1 + tail) * (block_us + round_us);
}

double cost_us(const Contraction& c, int share, const Arch& arch) {
    double rounds = static_cast<double>(c.k()) * bit_width(c.b.dtype) / (128.0 * 32 * share);
    auto blocks = static_cast<double>(c.batches() * div_up(c.n(), columns_of(c))) * share / 8;
    double waves = std::max(1.0, blocks / (arch.sms * 4.0));
    double macs =
        static_cast<double>(c.batches() * c.n()) * gemv_rows(c) * static_cast<double>(c.k());
    double busy = std::min<double>(arch.sms, std::max(blocks, 1.0));
    double dram_us = traffic_bytes(c) / (arch.dram_gbs * 1.02e3);
    double math_us = 1.7 * macs / (busy * 128 * arch.clock_ghz * 1e3);
    // Warps start, add up their lanes' sums and store: instructions, whatever the depth.
    double sums = static_cast<double>(c.batches() * div_up(c.n(), columns_of(c)) * share);
    sums *= 150 + 12.0 * gemv_rows(c) * columns_of(c);
    double ends_us = sums / (arch.sms * 4 * arch.clock_ghz * 1e3);
    constexpr double streams = 4e6;   // bytes from which memory bandwidth decides
    constexpr double stream_us = 2.4; // until enough loads are in flight
    double memory_us = traffic_bytes(c) > streams
                           ? stream_us + blocks_us(blocks, std::max(rounds, 1.0), dram_us, arch)
                           : std::max(waves * std::max(rounds, 1.0) * 0.45, dram_us);
    return 0.3 + std::max({memory_us, math_us, ends_us});
}

/// Swaps a and b where only the columns are few.
Contraction with_few_rows(const Contraction& c) {
    bool swap = c.m() > most_gemv_rows && c.n() <= most_gemv_rows && !c.paired();
    return swap ? swapped(c) : c;
}

Emitted emit(const Contraction& s, int share) {
    int rows = gemv_rows(s);
    int columns = columns_of(s);
    StoreText t = store_text(s, least_width(s));
    Launch l;
    l.program.uses = {"types", "math"};
    l.program.defines =
        str("#define TA ", c_type(s.a.dtype), "\n#define TB ", c_type(s.b.dtype), "\n#define MR ",
            rows, "\n#define NR ", columns, "\n#define BYTES ", bytes(s) ? 1 : 0, "\n", t.defines);
    l.program.body = str(device_file("contract"), t.functions, device_file("gemv_core"),
                         t.paired ? device_file("pair_gemv") : "");
    l.program.family = "gemv";
    l.entry = "gemv";
    l.grid = {s.batches() * div_up(s.n(), int64_t{8} / share * columns), 1, 1};
    l.shared = int64_t{8} * rows * columns * 4;
    l.args.pointer(s.a).pointer(s.b).pointer(s.out).i32(share);
    add_geometry(l.args, s);
    add_operands(l.args, s);
    Emitted e;
    e.launches.push_back(std::move(l));
    return e;
}

} // namespace

void add_gemv_tactics(std::vector<Tactic>& out, const Contraction& c, const Arch& arch) {
    Contraction s = with_few_rows(c);
    if (!runs(s) || s.k() == 0) {
        return;
    }
    for (int share : {1, 2, 4, 8}) {
        out.push_back(make_tactic(Gemv{share}, cost_us(s, share, arch)));
    }
    add_pipelined_tactics(out, s, arch);
}

std::optional<Emitted> emit_gemv(const Contraction& c, const Arch& arch, const Tactic& t) {
    if (const auto* gemv = t.as<Gemv>()) {
        return emit(with_few_rows(c), gemv->share);
    }
    if (const auto* pipelined = t.as<PipelinedGemv>()) {
        return emit_pipelined(with_few_rows(c), *pipelined, arch);
    }
    return std::nullopt;
}

} // namespace ingot::kernels
