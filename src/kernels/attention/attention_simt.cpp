// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "kernels/attention/byte_results.h"

#include <algorithm>

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

Launch simt_launch(const Heads& s, const Choice& c) {
    auto rq = static_cast<int>(c.rows);
    auto epl = static_cast<int>(c.elements);
    Launch l = program(s, 0, rq, epl, c.staged ? 1 : 0);
    int64_t keys = c.staged ? staged_elements(s, epl) : 0;
    l.shared = (base_elements(s, rq) + keys) * element_bytes(s);
    int64_t columns = div_up(s.arg.values, int64_t{32} * epl);
    l.grid = {div_up(s.rows, int64_t{8} * rq), int64_t{s.arg.groups} * s.arg.splits,
              s.batch * columns};
    l.args.pointer(s.q).pointer(s.k).pointer(s.v);
    add_arguments(l, s);
    l.args.i32(columns);
    add_scalars(l, s);
    return l;
}

} // namespace

Tactic simt_tactic(const Problem& p, const Heads& s) {
    choice_of(p, s); // refuses heads that are too large
    double flop = 4.0 * static_cast<double>(s.rows) * s.arg.groups * static_cast<double>(s.batch) *
                  s.arg.keys * s.arg.depth;
    return make_tactic(Simt{}, 3 + flop / (p.arch.sms * 64.0 * p.arch.clock_ghz * 1000));
}

std::optional<Schedule> simt_schedule(const Problem& p, const Heads& s, const Tactic& t) {
    if (!t.is<Simt>()) {
        return std::nullopt;
    }
    Choice c = choice_of(p, s);
    return Schedule{splits_of(p, s, s.blocks(8 * c.rows), 256), 32, 1,
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
