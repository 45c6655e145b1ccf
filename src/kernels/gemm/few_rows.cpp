// SPDX-License-Identifier: Apache-2.0
// The host side of few_rows.cuh.
#include "kernels/common/expr_text.h"
#include "kernels/contraction/cost.h"
#include "kernels/gemm/algorithms.h"

#include <algorithm>

namespace ingot::kernels {

namespace {

constexpr int64_t most_rows = 8;
constexpr int64_t most_depth = 64;
constexpr int64_t fewest_columns = 256;
constexpr int64_t vector = 8; // columns of a thread
constexpr int64_t threads = 128;

/// Positions of the depth whose columns are in registers together.
int64_t batch_of(const Contraction& c) {
    return std::min<int64_t>(c.k(), bit_width(c.b.dtype) == 32 ? 4 : 8);
}

int64_t blocks_of(const Contraction& c) {
    return c.batches() * div_up(c.n() / vector, threads);
}

bool has_vectors(const Contraction& c) {
    Shape outer = c.columns.b;
    int64_t step = outer.back();
    outer.pop_back();
    int64_t n = std::min<int64_t>(vector, 128 / bit_width(c.b.dtype));
    return step == 1 && vector_columns(c) && c.columns.sizes.back() % vector == 0 &&
           c.b.view.offset % n == 0 && all_multiples(outer, n) && all_multiples(c.batch.b, n) &&
           all_multiples(c.depth.b, n);
}

bool runs(const Contraction& c) {
    bool types = !is_packed(c.a.dtype) && !is_packed(c.b.dtype) && bit_width(c.b.dtype) >= 16 &&
                 bit_width(c.b.dtype) <= 32 &&
                 sum_c_type(c.a.dtype, c.b.dtype, c.epilogue.sum_type) == "float";
    return types && !c.paired() && !c.heads && !c.residual && c.epilogue.sums == 1 &&
           are_few_rows(c.m(), c.n(), c.k()) && c.depth.rank() == 1 && has_vectors(c);
}

double cost_us(const Contraction& c, const Arch& arch) {
    constexpr double resident = 4; // blocks
    double waves = std::max(1.0, static_cast<double>(blocks_of(c)) / (arch.sms * resident));
    // The rows, then a load of each batch, from L2.
    double block_us = 1.5 + 0.5 * static_cast<double>(div_up(c.k(), batch_of(c)));
    auto rows = static_cast<double>(c.m());
    auto columns = static_cast<double>(c.batches() * c.n());
    double products = columns * static_cast<double>(c.k()) * (1.5 + 1.2 * rows);
    double ends = columns * rows * (5.0 + value_instructions(c.epilogue));
    double math_us = (products + ends) / (arch.sms * 128.0 * arch.clock_ghz * 1e3);
    double dram_us = (traffic_bytes(c) + operand_bytes(c.epilogue)) / (arch.dram_gbs * 0.8e3);
    return 1.0 + std::max({waves * block_us, dram_us + 0.5 * block_us, math_us + block_us});
}

} // namespace

bool are_few_rows(int64_t rows, int64_t columns, int64_t depth) {
    return rows <= most_rows && columns >= fewest_columns && depth > 0 && depth <= most_depth;
}

void add_few_rows_tactic(std::vector<Tactic>& out, const Contraction& c, const Arch& arch) {
    if (runs(c)) {
        out.push_back(make_tactic(FewRows{}, cost_us(c, arch)));
    }
}

Emitted emit_few_rows(const Contraction& c) {
    StoreText t = store_text(c, static_cast<int>(vector));
    Launch l;
    l.program.uses = {"types", "math"};
    l.program.defines =
        str("#define TA ", c_type(c.a.dtype), "\n#define TB ", c_type(c.b.dtype), "\n#define ROWS ",
            c.m(), "\n#define BATCH ", batch_of(c), "\n", t.defines);
    l.program.body = str(device_file("contract"), t.functions);
    l.program.family = "few_rows";
    l.entry = "few_rows";
    l.block = static_cast<int>(threads);
    l.grid = {blocks_of(c), 1, 1};
    l.shared = 4 * c.m() * std::max(c.k(), threads * vector);
    l.args.pointer(c.a).pointer(c.b).pointer(c.out);
    add_geometry(l.args, c);
    add_operands(l.args, c);
    Emitted e;
    e.launches.push_back(std::move(l));
    return e;
}

} // namespace ingot::kernels
