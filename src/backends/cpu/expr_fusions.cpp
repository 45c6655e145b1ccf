// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/expr_fusions.h"

#include "backends/cpu/byte_tables.h"
#include "plan/epilogue.h"

#include <bit>
#include <optional>

namespace ingot::cpu {

namespace {

/// Follows an expression backwards.
class Backwards {
public:
    Backwards(const Expr& e, int from) : e_(e), uses_(plan::uses_of(e)), at_(from) {}

    const ExprInstr& here() const { return e_.code[index(at_)]; }
    int at() const { return at_; }
    /// Goes on to operand k, if nothing else reads it.
    bool go(int k) {
        at_ = here().args[index(k)];
        return uses_[index(at_)] == 1;
    }
    /// The operand of a commutative function that the constant `x` meets, or -1.
    int other_than(ExprOp op, double x) const {
        for (int k : {0, 1}) {
            const ExprInstr& c = e_.code[index(here().args[index(k)])];
            if (here().op == op && c.op == ExprOp::Const && std::bit_cast<double>(c.imm) == x) {
                return 1 - k;
            }
        }
        return -1;
    }
    /// The operand that rounds, or -1.
    int rounded() const {
        for (int k : {0, 1}) {
            if (here().op == ExprOp::Add &&
                e_.code[index(here().args[index(k)])].op == ExprOp::Round) {
                return k;
            }
        }
        return -1;
    }

private:
    static size_t index(int i) { return static_cast<size_t>(i); }
    const Expr& e_;
    std::vector<int> uses_;
    int at_;
};

/// If instruction `n` is the cast that ends clip(round(x / scale) + zero) with a byte's limits.
std::optional<FusedLoop> quantization(const Expr& e, int n) {
    Backwards b(e, n);
    DType to = b.here().to;
    if (b.here().op != ExprOp::Cast || b.here().imm == 0 || (to != DType::I8 && to != DType::U8) ||
        !b.go(0)) {
        return std::nullopt;
    }
    double low = to == DType::I8 ? -128 : 0;
    int k = b.other_than(ExprOp::Min, low + 255);
    if (k < 0 || !b.go(k) || (k = b.other_than(ExprOp::Max, low)) < 0 || !b.go(k)) {
        return std::nullopt;
    }
    int zero = -1;
    if (int r = b.rounded(); r >= 0) {
        zero = b.here().args[static_cast<size_t>(1 - r)];
        if (!b.go(r)) {
            return std::nullopt;
        }
    }
    if (b.here().op != ExprOp::Round || !b.go(0) || b.here().op != ExprOp::Div ||
        b.here().type != DType::F32) {
        return std::nullopt;
    }
    FusedLoop q{vector_loops().quantize(to, zero >= 0), {b.here().args[0], b.here().args[1]}};
    if (zero >= 0) {
        q.reads.push_back(zero);
    }
    return q;
}

/// If instruction `n` is the cast that ends f32(x - y * z) of i32, as sums less a zero point's
/// share become floats.
std::optional<FusedLoop> centred_sums(const Expr& e, int n) {
    Backwards b(e, n);
    if (b.here().op != ExprOp::Cast || b.here().to != DType::F32 || !b.go(0) ||
        b.here().op != ExprOp::Sub || b.here().type != DType::I32) {
        return std::nullopt;
    }
    FusedLoop f{vector_loops().centred_sums, {b.here().args[0]}};
    if (!b.go(1) || b.here().op != ExprOp::Mul) {
        return std::nullopt;
    }
    f.reads.insert(f.reads.end(), {b.here().args[0], b.here().args[1]});
    return f;
}

/// For each instruction, whether the result is computed without its value.
std::vector<bool> unread(const Expr& e, const FusedLoops& fused) {
    std::vector<bool> out(e.code.size(), true);
    out.back() = false;
    for (size_t n = e.code.size(); n-- > 0;) {
        for (int i : out[n] ? std::vector<int>{} : fused.reads(e, n)) {
            out[static_cast<size_t>(i)] = false;
        }
    }
    return out;
}

} // namespace

std::vector<int> FusedLoops::reads(const Expr& e, size_t n) const {
    if (auto f = loops.find(n); f != loops.end()) {
        return f->second.reads;
    }
    const ExprInstr& c = e.code[n];
    return {c.args.begin(), c.args.begin() + plan::argument_count(c)};
}

FusedLoops fused_loops(const Expr& e) {
    FusedLoops out;
    const std::vector<int> tables = byte_tables(e);
    for (size_t n = 0; n < e.code.size(); ++n) {
        if (tables[n] >= 0) {
            out.loops[n] = {vector_loops().lookup, {tables[n]}};
            continue;
        }
        std::optional<FusedLoop> f = quantization(e, static_cast<int>(n));
        if (!f) {
            f = centred_sums(e, static_cast<int>(n));
        }
        if (f) {
            out.loops.emplace(n, std::move(*f));
        }
    }
    out.within = unread(e, out);
    for (auto& [n, loop] : out.loops) {
        if (tables[n] >= 0 && !out.within[n]) {
            loop.table = table_entries(e, tables[n], static_cast<int>(n));
        }
    }
    return out;
}

} // namespace ingot::cpu
