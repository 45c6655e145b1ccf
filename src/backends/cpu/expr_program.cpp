// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/expr_program.h"

#include "base/error.h"
#include "plan/epilogue.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <optional>

namespace ingot::cpu {

namespace {

constexpr int64_t work_budget = 48
                                << 10; // bytes: the registers of one run stay in the L1/L2 caches
constexpr int64_t smallest_block = 16;

int64_t width_of(DType t) {
    return bit_width(t) / 8;
}

/// The last instruction that reads each instruction.
std::vector<size_t> last_uses(const Expr& e) {
    std::vector<size_t> last(e.code.size(), 0);
    for (size_t n = 0; n < e.code.size(); ++n) {
        for (int k = 0; k < arity(e.code[n].op); ++k) {
            last[static_cast<size_t>(e.code[n].args[static_cast<size_t>(k)])] = n;
        }
    }
    return last;
}

/// The instructions of a quantisation, which one loop computes.
struct Quantization {
    int x = 0;
    int scale = 0;
    int zero = -1;        // added to the rounded quotient, if any
    std::vector<int> own; // between these and the bytes; nothing else reads them
};

/// Follows a quantisation backwards from the bytes.
class Backwards {
public:
    Backwards(const Expr& e, int from) : e_(e), uses_(plan::uses_of(e)), at_(from) {}

    const ExprInstr& here() const { return e_.code[index(at_)]; }
    int at() const { return at_; }
    /// Goes on to operand k, if nothing else reads it.
    bool go(int k) {
        at_ = here().args[index(k)];
        own.push_back(at_);
        return uses_[index(at_)] == 1 && here().type == DType::F32;
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

    std::vector<int> own;

private:
    static size_t index(int i) { return static_cast<size_t>(i); }
    const Expr& e_;
    std::vector<int> uses_;
    int at_;
};

/// If instruction `n` is the cast that ends clip(round(x / scale) + zero) with a byte's limits.
std::optional<Quantization> quantization(const Expr& e, int n) {
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
    Quantization q;
    if (int r = b.rounded(); r >= 0) {
        q.zero = b.here().args[static_cast<size_t>(1 - r)];
        if (!b.go(r)) {
            return std::nullopt;
        }
    }
    if (b.here().op != ExprOp::Round || !b.go(0) || b.here().op != ExprOp::Div) {
        return std::nullopt;
    }
    q.x = b.here().args[0];
    q.scale = b.here().args[1];
    q.own = std::move(b.own);
    return q;
}

/// All of them by their last instruction. `last` gets their later reads, `within` the instructions
/// that no loop computes alone.
std::map<size_t, Quantization> quantizations_of(const Expr& e, std::vector<size_t>& last,
                                                std::vector<bool>& within) {
    std::map<size_t, Quantization> out;
    for (size_t n = 0; n < e.code.size(); ++n) {
        auto q = quantization(e, static_cast<int>(n));
        if (!q) {
            continue;
        }
        for (int i : q->own) {
            within[static_cast<size_t>(i)] = true;
        }
        for (int i : {q->x, q->scale, q->zero}) {
            if (i >= 0) {
                last[static_cast<size_t>(i)] = std::max(last[static_cast<size_t>(i)], n);
            }
        }
        out.emplace(n, std::move(*q));
    }
    return out;
}

MapLoop loop_of(const Expr& e, const ExprInstr& c) {
    if (c.op == ExprOp::Cast) {
        return cast_loop(e.code[static_cast<size_t>(c.args[0])].type, c.to, c.imm != 0);
    }
    if (c.op == ExprOp::Select) {
        return map_loop(c.op, c.type);
    }
    return map_loop(c.op, e.code[static_cast<size_t>(c.args[0])].type);
}

/// One element of a constant in its compute type.
void write_constant(const ExprInstr& c, std::byte* to) {
    if (c.type == DType::F32) {
        auto v = static_cast<float>(std::bit_cast<double>(c.imm));
        std::memcpy(to, &v, sizeof v);
    } else { // doubles and, little endian, integers of every width
        std::memcpy(to, &c.imm, static_cast<size_t>(width_of(c.type)));
    }
}

} // namespace

ExprProgram::ExprProgram(const Expr& e, int64_t block_limit) : result_(e.type()) {
    result_width_ = width_of(result_);
    std::vector<size_t> last = last_uses(e);
    std::vector<bool> within(e.code.size(), false);
    const std::map<size_t, Quantization> quantizations = quantizations_of(e, last, within);
    std::vector<Operand> at(e.code.size());
    std::vector<int> free_slots;
    std::vector<const ExprInstr*> constants;
    int64_t widest = result_width_;
    for (size_t n = 0; n < e.code.size(); ++n) {
        const ExprInstr& c = e.code[n];
        widest = std::max(widest, width_of(c.type));
        if (c.op == ExprOp::In) {
            at[n] = {Source::Input, c.args[0]};
            continue;
        }
        if (c.op == ExprOp::Const) {
            at[n] = {Source::Constant, static_cast<int>(constants.size())};
            constants.push_back(&c);
            continue;
        }
        if (within[n] || (n + 1 != e.code.size() && last[n] == 0)) {
            continue; // unused
        }
        Instruction i;
        std::span<const int32_t> reads(c.args.data(), static_cast<size_t>(arity(c.op)));
        std::array<int32_t, 3> of_quantization{};
        if (auto q = quantizations.find(n); q != quantizations.end()) {
            bool shifted = q->second.zero >= 0;
            of_quantization = {q->second.x, q->second.scale, q->second.zero};
            reads = std::span<const int32_t>(of_quantization.data(), shifted ? 3 : 2);
            i.loop = vector_loops().quantize(c.to, shifted);
        } else {
            i.loop = loop_of(e, c);
        }
        CHECK(i.loop != nullptr, "no loop for ", c.op, " of ", c.type);
        for (size_t k = 0; k < reads.size(); ++k) {
            i.args[k] = at[static_cast<size_t>(reads[k])];
        }
        // The target is chosen before the slots of dying operands are freed: in place, an operand
        // of another width could be overwritten before it is read.
        if (n + 1 != e.code.size()) {
            if (free_slots.empty()) {
                free_slots.push_back(static_cast<int>(slots_++));
            }
            i.target = free_slots.back();
            free_slots.pop_back();
            at[n] = {Source::Slot, i.target};
        }
        for (size_t k = 0; k < reads.size(); ++k) {
            auto a = static_cast<size_t>(reads[k]);
            bool repeated = std::find(reads.begin(), reads.begin() + static_cast<std::ptrdiff_t>(k),
                                      reads[k]) != reads.begin() + static_cast<std::ptrdiff_t>(k);
            if (last[a] == n && at[a].source == Source::Slot && !repeated) {
                free_slots.push_back(at[a].index);
            }
        }
        steps_.push_back(i);
    }
    if (at.back().source != Source::Slot) { // the result is an input or a constant itself
        Instruction copy;
        copy.args[0] = at.back();
        steps_.push_back(copy);
    }
    block_ = smallest_block;
    while (block_ * 2 <= block_limit && (slots_ + 1) * block_ * 2 * widest <= work_budget) {
        block_ *= 2;
    }
    slot_bytes_ = (block_ * widest + 63) / 64 * 64;
    constants_.resize(constants.size() * static_cast<size_t>(slot_bytes_));
    for (size_t k = 0; k < constants.size(); ++k) {
        auto width = static_cast<size_t>(width_of(constants[k]->type));
        std::byte* to = constants_.data() + k * static_cast<size_t>(slot_bytes_);
        for (int64_t i = 0; i < block_; ++i) {
            write_constant(*constants[k], to + static_cast<size_t>(i) * width);
        }
    }
}

const void* ExprProgram::address(const Operand& o, const void* const* in,
                                 const std::byte* work) const {
    switch (o.source) {
    case Source::Input:
        return in[o.index];
    case Source::Constant:
        return constants_.data() + o.index * slot_bytes_;
    default:
        return work + o.index * slot_bytes_;
    }
}

void ExprProgram::run(const void* const* in, void* out, int64_t n, std::byte* work) const {
    for (const Instruction& i : steps_) {
        void* to = i.target < 0 ? out : work + i.target * slot_bytes_;
        const void* a = address(i.args[0], in, work);
        if (i.loop == nullptr) {
            if (to != a) {
                std::memmove(to, a, static_cast<size_t>(n * result_width_));
            }
            continue;
        }
        i.loop(to, a, address(i.args[1], in, work), address(i.args[2], in, work), n);
    }
}

} // namespace ingot::cpu
