// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "kernels/attention/heads.h"

#include <algorithm>

namespace ingot::kernels::attention {

namespace {

int64_t row_padding(const Heads& s) {
    return s.arg.depth % 4 == 0 ? 4 : 1;
}

int64_t element_bytes(const Heads& s) {
    return s.dtype == DType::F64 ? 8 : 4;
}

/// Shared memory: the weights of one step and the queries; keys and values of one step too where
/// they are staged.
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
    l.program = {{"types", "math", "loops", "attention_common"}, d.text(), "attention_simt", {}};
    l.entry = form == 0 ? "attention_simt" : "attention_merge";
    return l;
}

} // namespace

Tactic simt_tactic(const Problem& p, const Heads& s) {
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
    int64_t keys = base + staged_elements(s, epl) * wide <= limit ? 1 : 0;
    int64_t splits = splits_of(p, s, s.blocks(8 * rq), 256);
    Tactic t;
    t.name = "simt";
    t.p = {static_cast<int>(Way::Simt), static_cast<int>(splits), static_cast<int>(rq),
           static_cast<int>(epl), static_cast<int>(keys)};
    double flop = 4.0 * static_cast<double>(s.rows) * s.arg.groups * static_cast<double>(s.batch) *
                  s.arg.keys * s.arg.depth;
    t.cost_us = 3 + flop / (p.arch.sms * 64.0 * p.arch.clock_ghz * 1000);
    return t;
}

Launch simt_launch(const Heads& s, const Tactic& t) {
    int rq = t.p[2];
    int epl = t.p[3];
    Launch l = program(s, 0, rq, epl, t.p[4]);
    int64_t keys = t.p[4] != 0 ? staged_elements(s, epl) : 0;
    l.shared = (base_elements(s, rq) + keys) * element_bytes(s);
    int64_t columns = div_up(s.arg.values, int64_t{32} * epl);
    l.grid = {div_up(s.rows, int64_t{8} * rq), int64_t{s.arg.groups} * s.arg.splits,
              s.batch * columns};
    l.args.pointer(s.q).pointer(s.k).pointer(s.v);
    add_arguments(l, s);
    l.args.i32(columns);
    return l;
}

Launch merge_launch(const Heads& s, int64_t count) {
    Launch l = program(s, 1, 1, 1, 0);
    l.grid = {div_up(count, 8), 1, 1};
    l.args.scratch(0).pointer(s.out).value(s.arg).i64(count);
    return l;
}

int64_t step_keys(const Tactic& t) {
    return static_cast<Way>(t.p[0]) == Way::Simt ? 32 : t.p[2];
}

int cluster_of(const Tactic& t) {
    return static_cast<Way>(t.p[0]) == Way::Mma ? std::max(t.p[6], 1) : 1;
}

} // namespace ingot::kernels::attention
