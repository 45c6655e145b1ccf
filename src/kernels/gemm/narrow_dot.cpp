// SPDX-License-Identifier: Apache-2.0
// The host side of narrow_dot.cuh.
#include "kernels/common/expr_text.h"
#include "kernels/contraction/cost.h"
#include "kernels/gemm/algorithms.h"
#include "kernels/gemv/gemv_rows.h"

#include <algorithm>

namespace ingot::kernels {

namespace {

constexpr int64_t most_columns = 8;
constexpr int64_t fewest_rows = 1024;
constexpr int64_t threads = 256;
constexpr int64_t most_shared = int64_t{48} << 10;

/// Elements of a row that are loaded at once.
int64_t vector_of(const Contraction& c) {
    return 128 / bit_width(c.a.dtype);
}

/// Threads that share a row: as many as have equal shares of it, up to a line of memory.
int64_t lanes_of(const Contraction& c) {
    int64_t lanes = 1;
    while (lanes < 8 && c.k() / vector_of(c) % (2 * lanes) == 0) {
        lanes *= 2;
    }
    return lanes;
}

int64_t block_rows(const Contraction& c, int rows) {
    return threads / lanes_of(c) * rows;
}

int64_t blocks_of(const Contraction& c, int rows) {
    return c.batches() * div_up(c.m(), block_rows(c, rows));
}

int64_t shared_bytes(const Contraction& c, int rows) {
    return 4 * c.n() * (c.k() + block_rows(c, rows));
}

bool runs(const Contraction& c) {
    std::string_view sum = sum_c_type(c.a.dtype, c.b.dtype, c.epilogue.sum_type);
    bool types = !is_packed(c.a.dtype) && !is_packed(c.b.dtype) && bit_width(c.a.dtype) <= 32 &&
                 (sum == "float" || sum == "u32");
    return types && !c.paired() && !c.heads && !c.residual && c.n() <= most_columns &&
           c.m() >= fewest_rows && c.depth.rank() == 1 && c.k() > 0 && c.k() % vector_of(c) == 0 &&
           chunked(c.a, c.batch.a, c.rows.a, c.depth.a, vector_of(c));
}

double cost_us(const Contraction& c, int rows, const Arch& arch) {
    constexpr double resident = 4; // blocks
    double steps = static_cast<double>(div_up(c.k(), vector_of(c) * lanes_of(c)));
    double waves = std::max(1.0, static_cast<double>(blocks_of(c, rows)) / (arch.sms * resident));
    double block_us = 1.5 + 0.3 * steps; // a load of each step, from L2
    // A row and a column take an addition of products, part of a conversion and part of a load.
    double products = static_cast<double>(c.batches() * c.m() * c.k()) *
                      (1.0 + (1.0 + 0.5 / rows) * static_cast<double>(c.n()));
    double ends =
        static_cast<double>(c.batches() * c.m() * c.n()) * (40.0 + value_instructions(c.epilogue));
    double math_us = (products + ends) / (arch.sms * 128.0 * arch.clock_ghz * 1e3);
    double dram_us = (traffic_bytes(c) + operand_bytes(c.epilogue)) / (arch.dram_gbs * 0.8e3);
    return 1.0 + std::max({waves * block_us, dram_us + 0.5 * block_us, math_us + block_us});
}

} // namespace

void add_narrow_tactics(std::vector<Tactic>& out, const Contraction& c, const Arch& arch) {
    if (!runs(c)) {
        return;
    }
    for (int rows : {1, 4}) {
        if (shared_bytes(c, rows) <= most_shared) {
            out.push_back(make_tactic(NarrowDot{rows}, cost_us(c, rows, arch)));
        }
    }
}

Emitted emit_narrow(const Contraction& c, const NarrowDot& parameters) {
    StoreText t = store_text(c, least_width(c));
    Launch l;
    l.program.uses = {"types", "math"};
    bool adjoin = c.columns.stored[0].back() == 1;
    l.program.defines =
        str("#define TA ", c_type(c.a.dtype), "\n#define TB ", c_type(c.b.dtype),
            "\n#define COLUMNS ", c.n(), "\n#define LANES ", lanes_of(c), "\n#define ROWS ",
            parameters.rows, "\n#define COLUMNS_ADJOIN ", adjoin ? 1 : 0, "\n", t.defines);
    l.program.body = str(device_file("contract"), t.functions);
    l.program.family = "narrow_dot";
    l.entry = "narrow_dot";
    l.grid = {blocks_of(c, parameters.rows), 1, 1};
    l.shared = shared_bytes(c, parameters.rows);
    l.args.pointer(c.a).pointer(c.b).pointer(c.out).i32(c.b_constant ? 1 : 0);
    add_geometry(l.args, c);
    add_operands(l.args, c);
    Emitted e;
    e.launches.push_back(std::move(l));
    return e;
}

} // namespace ingot::kernels
