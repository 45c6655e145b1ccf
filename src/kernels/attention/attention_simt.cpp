// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "kernels/attention/byte_results.h"

#include <algorithm>
#include <cmath>

namespace ingot::kernels::attention {

namespace {

int64_t row_padding(const Heads& s) {
    return s.arg.depth % 4 == 0 ? 4 : 1;
}

int64_t element_bytes(const Heads& s) {
    return s.dtype == DType::F64 ? 8 : 4;
}

/// Shared memory: the weights of one step and the queries; keys and values of one step too if they
/// are staged.
int64_t base_elements(const Heads& s, int64_t rq) {
    return 8 * rq * (s.arg.depth + 32);
}
int64_t staged_elements(const Heads& s, int64_t epl) {
    return 32 * (s.arg.depth + row_padding(s)) + int64_t{32} * 32 * epl;
}

Launch program(const Heads& s, int form, int rq, int epl, int keys) {
    Launch l;
    Defines d;
    bool wide = s.dtype == DType::F64;
    d.add("FORM", form).add("T", c_type(s.dtype)).add("C", wide ? "double" : "float");
    add_mask(d, s);
    d.add("RQ", rq).add("EPL", epl).add("KEYS", keys);
    d.add("FOURS", keys != 0 && s.arg.depth % 4 == 0 ? 1 : 0);
    d.add("PAD", row_padding(s)).add("SPLIT", s.arg.splits > 1 ? 1 : 0);
    add_result(d, s, c_type(s.dtype));
    l.program = {
        {"types", "math", "loops", "attention_common"}, d.text(), "attention_simt", result_text(s)};
    l.entry = form == 0 ? "attention_simt" : "attention_merge";
    return l;
}

struct Simt : NoParameters {
    static constexpr std::string_view pattern = "simt";
};

/// Rows and elements of a thread, and whether keys and values are staged.
struct Choice {
    int64_t rows = 1, elements = 1;
    bool staged = false;
};
Choice choice_of(const Problem& p, const Heads& s) {
    int64_t wide = element_bytes(s);
    int64_t limit = std::min<int64_t>(p.arch.shared_per_block, 99 << 10);
    int64_t epl = 1;
    while (epl < (wide == 8 ? 4 : 8) && epl * 32 < s.arg.values) {
        epl *= 2;
    }
    int64_t rq = epl == 4 && s.blocks(64) >= p.arch.sms ? 8 : s.rows >= 16 ? 4 : 1;
    if (base_elements(s, rq) * wide > limit / 2) {
        rq = 1;
    }
    int64_t base = base_elements(s, rq) * wide;
    require(base <= limit, ErrorCode::Unsupported, "attention with heads of ", s.arg.depth,
            " elements, at most ", limit / (8 * wide) - 32, " are supported");
    return {rq, epl, base + staged_elements(s, epl) * wide <= limit};
}

int64_t column_blocks(const Heads& s, const Choice& c) {
    return div_up(s.arg.values, 32 * c.elements);
}

Launch simt_launch(const Heads& s, const Choice& c) {
    auto rq = static_cast<int>(c.rows);
    auto epl = static_cast<int>(c.elements);
    Launch l = program(s, 0, rq, epl, c.staged ? 1 : 0);
    int64_t keys = c.staged ? staged_elements(s, epl) : 0;
    l.shared = (base_elements(s, rq) + keys) * element_bytes(s);
    int64_t columns = column_blocks(s, c);
    l.grid = {div_up(s.rows, int64_t{8} * rq), int64_t{s.arg.groups} * s.arg.splits,
              s.batch * columns};
    l.args.pointer(s.q).pointer(s.k).pointer(s.v);
    add_arguments(l, s);
    l.args.i32(columns);
    add_scalars(l, s);
    return l;
}

int64_t simt_splits(const Problem& p, const Heads& s, const Choice& c) {
    return splits_of(p, s, s.blocks(8 * c.rows), 256);
}

/// The clocks that a block waits in a step of `keys` keys, where all that it does is a chain.
/// Fitted to two problems that were measured: 4 heads of 16 queries and keys with 1,024 elements,
/// not staged, 148 us; and 4 heads of 256 queries and keys with 16 elements and values of 128,
/// staged, 44 us.
double step_latency(const Heads& s, const Choice& c, double keys) {
    auto depth = static_cast<double>(s.arg.depth);
    auto rows = static_cast<double>(c.rows), elements = static_cast<double>(c.elements);
    double loads = c.staged ? std::ceil(keys / 16) * (std::ceil(depth / 32) + 1) * 700 : 0;
    double scores = c.staged ? depth / 4 * (30 + 8 * rows) : depth * 250;
    double weights = 400 * rows;
    double sums = keys * ((c.staged ? 40 : 300) + 6 * rows * elements);
    return loads + scores + weights + sums;
}

/// The instructions of a warp in such a step.
double step_instructions(const Heads& s, const Choice& c, double keys) {
    auto depth = static_cast<double>(s.arg.depth);
    auto rows = static_cast<double>(c.rows), elements = static_cast<double>(c.elements);
    double loads = c.staged ? 4 * 8 * (std::ceil(depth / 32) + elements) : 0;
    double scores = c.staged ? depth / 4 * (1 + 5 * rows) : depth * (4 + 2 * rows);
    double weights = 70 * rows;
    double sums = keys * (2 + elements + rows * elements);
    return loads + scores + weights + sums;
}

double simt_us(const Problem& p, const Heads& s, const Choice& c) {
    int64_t splits = simt_splits(p, s, c);
    int64_t blocks = s.blocks(8 * c.rows) * splits * column_blocks(s, c);
    double part = static_cast<double>(div_up(s.arg.keys, splits));
    double steps = std::ceil(part / 32), keys = std::min(part, 32.0);
    int64_t shared = (base_elements(s, c.rows) + (c.staged ? staged_elements(s, c.elements) : 0)) *
                     element_bytes(s);
    // Measured: 33 us for 2,352 heads of 8 queries and keys of 64 elements, as two blocks an SM
    // take.
    int64_t on_sm = std::clamp<int64_t>(p.arch.shared_per_sm / (shared + 1024), 1, 2);
    constexpr double begin = 1700; // rows of q
    auto rounds = static_cast<double>(div_up(blocks, p.arch.sms * on_sm));
    double latency = rounds * (begin + steps * step_latency(s, c, keys));
    double issued = static_cast<double>(div_up(blocks, p.arch.sms)) * steps * 2 *
                    step_instructions(s, c, keys); // 8 warps on 4 schedulers
    double clocks = std::max(latency, issued * (s.dtype == DType::F64 ? 2 : 1));
    return 4 + clocks / (p.arch.clock_ghz * 1e3) + (splits > 1 ? 2.5 : 0);
}

} // namespace

Tactic simt_tactic(const Problem& p, const Heads& s) {
    Choice c = choice_of(p, s); // refuses heads that are too large
    return make_tactic(Simt{}, simt_us(p, s, c));
}

std::optional<Schedule> simt_schedule(const Problem& p, const Heads& s, const Tactic& t) {
    if (!t.is<Simt>()) {
        return std::nullopt;
    }
    Choice c = choice_of(p, s);
    return Schedule{simt_splits(p, s, c), 32, 1,
                    [c](const Heads& heads) { return simt_launch(heads, c); }};
}

Launch merge_launch(const Heads& s, int64_t count) {
    Launch l = program(s, 1, 1, 1, 0);
    l.grid = {div_up(count, 8), 1, 1};
    l.args.scratch(0).pointer(s.out).value(s.arg).i64(count);
    add_scalars(l, s);
    return l;
}

} // namespace ingot::kernels::attention
