// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/expr_text.h"
#include "kernels/contraction/cost.h"
#include "kernels/gemm/algorithms.h"

#include <algorithm>

namespace ingot::kernels {

namespace {

constexpr int64_t longest = 64;
constexpr int64_t most_products = 1 << 22;
constexpr int64_t most_results = int64_t{1} << 31;
constexpr int64_t few_results = 16; // of a batch: other algorithms would make a tile of each

int depth_class(const Contraction& c) {
    return c.k() <= 8 ? 8 : c.k() <= 16 ? 16 : 32;
}

/// Elements along the depth per load of an operand.
int64_t vector_of(const Contraction& c, const Operand& o, const Shape& batch, const Shape& outer,
                  const Shape& depth) {
    int64_t v = 1;
    auto fits = [&](int64_t n) {
        return depth[0] == 1 && c.k() % n == 0 && o.view.offset % n == 0 &&
               all_multiples(batch, n) && all_multiples(outer, n) && n * bit_width(o.dtype) <= 128;
    };
    while (v < 8 && fits(2 * v)) {
        v *= 2;
    }
    return v;
}
int64_t vector_of_a(const Contraction& c) {
    return vector_of(c, c.a, c.batch.a, c.rows.a, c.depth.a);
}
int64_t vector_of_b(const Contraction& c) {
    return vector_of(c, c.b, c.batch.b, c.columns.b, c.depth.b);
}

double cost_us(const Contraction& c, const Arch& arch) {
    auto results = static_cast<double>(c.batches() * c.m() * c.n());
    double rounds = static_cast<double>(div_up(c.k(), depth_class(c)));
    double waves = std::max(1.0, results / (arch.sms * 1024.0));
    auto k = static_cast<double>(c.k());
    double loads =
        k / static_cast<double>(vector_of_a(c)) + k / static_cast<double>(vector_of_b(c));
    constexpr double sectors_per_clock = 2; // of an SM, where threads read rows of their own
    double read_us = results * loads * 0.5 / (arch.sms * sectors_per_clock * arch.clock_ghz * 1e3);
    return 0.6 +
           std::max({0.5 * rounds * waves, read_us, traffic_bytes(c) / (arch.dram_gbs * 1e3)});
}

} // namespace

void add_short_tactic(std::vector<Tactic>& out, const Contraction& c, const Arch& arch) {
    bool packed = is_packed(c.a.dtype) || is_packed(c.b.dtype);
    bool pieces = c.k() % (128 / bit_width(c.b.dtype)) == 0; // as other algorithms need them
    if (c.k() == 0 || c.k() > longest || pieces || c.depth.rank() != 1 || c.paired() || packed) {
        return;
    }
    int64_t results = c.batches() * c.m() * c.n();
    bool tiny = c.m() * c.n() <= few_results && results < most_results;
    if (results > most_products / c.k() && !tiny) {
        return;
    }
    out.push_back(make_tactic(ShortDot{}, cost_us(c, arch)));
}

Emitted emit_short(const Contraction& c) {
    StoreText t = store_text(c, least_width(c));
    Launch l;
    l.program.uses = {"types", "math"};
    l.program.defines = str("#define TA ", c_type(c.a.dtype), "\n#define TB ", c_type(c.b.dtype),
                            "\n#define DEPTH ", depth_class(c), "\n#define VA ", vector_of_a(c),
                            "\n#define VB ", vector_of_b(c), "\n", t.defines);
    l.program.body = str(device_file("contract"), t.functions);
    l.program.family = "short_dot";
    l.entry = "short_dot";
    l.grid = {div_up(c.batches() * c.m() * c.n(), 256), 1, 1};
    l.args.pointer(c.a).pointer(c.b).pointer(c.out).i32(c.b_constant ? 1 : 0);
    add_geometry(l.args, c);
    add_operands(l.args, c);
    Emitted e;
    e.launches.push_back(std::move(l));
    return e;
}

} // namespace ingot::kernels
