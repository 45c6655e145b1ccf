// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/expr_program.h"

#include "backends/cpu/expr_fusions.h"
#include "base/error.h"
#include "plan/epilogue.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace ingot::cpu {

namespace {

constexpr int64_t work_budget = 48
                                << 10; // bytes: the registers of one run stay in the L1/L2 caches
constexpr int64_t smallest_block = 16;

int64_t width_of(DType t) {
    return bit_width(t) / 8;
}

/// The last instruction that reads each instruction.
std::vector<size_t> last_reads(const Expr& e, const FusedLoops& fused) {
    std::vector<size_t> last(e.code.size(), 0);
    for (size_t n = 0; n < e.code.size(); ++n) {
        for (int i : fused.within[n] ? std::vector<int>{} : fused.reads(e, n)) {
            last[static_cast<size_t>(i)] = n;
        }
    }
    return last;
}

/// Whether each instruction has one value while the uniform inputs have theirs.
std::vector<bool> uniform_values(const Expr& e, const FusedLoops& fused,
                                 const std::vector<bool>& uniform) {
    std::vector<bool> out(e.code.size(), false);
    if (std::find(uniform.begin(), uniform.end(), true) == uniform.end()) {
        return out;
    }
    for (size_t n = 0; n < e.code.size(); ++n) {
        const ExprInstr& c = e.code[n];
        if (c.op == ExprOp::In) {
            out[n] = uniform[static_cast<size_t>(c.args[0])];
            continue;
        }
        std::vector<int> reads = fused.reads(e, n);
        out[n] = std::all_of(reads.begin(), reads.end(),
                             [&](int i) { return out[static_cast<size_t>(i)]; });
    }
    out.back() = false; // the result goes to every element
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

ExprProgram::ExprProgram(const Expr& e, const std::vector<bool>& uniform, int64_t block_limit)
    : result_(e.type()) {
    result_width_ = width_of(result_);
    const FusedLoops fused = fused_loops(e);
    const std::vector<size_t> last = last_reads(e, fused);
    const std::vector<bool> once = uniform_values(e, fused, uniform);
    std::vector<Operand> at(e.code.size());
    std::vector<int> free_slots;
    std::vector<const ExprInstr*> constants;
    int64_t widest = result_width_;
    for (size_t n = 0; n < e.code.size(); ++n) {
        if (fused.within[n]) {
            continue;
        }
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
        Instruction i;
        auto f = fused.loops.find(n);
        i.loop = f != fused.loops.end() ? f->second.loop : loop_of(e, c);
        CHECK(i.loop != nullptr, "no loop for ", c.op, " of ", c.type);
        std::vector<int> reads = fused.reads(e, n);
        for (size_t k = 0; k < reads.size(); ++k) {
            i.args[k] = at[static_cast<size_t>(reads[k])];
        }
        if (f != fused.loops.end() && f->second.table) {
            i.args[reads.size()] = {Source::Table, static_cast<int>(tables_.size())};
            tables_.push_back(*f->second.table);
        }
        // The target is chosen before the slots of dying operands are freed: in place, an operand
        // of another width could be overwritten before it is read.
        if (n + 1 != e.code.size()) {
            if (once[n] || free_slots.empty()) {
                i.target = static_cast<int>(slots_++);
            } else {
                i.target = free_slots.back();
                free_slots.pop_back();
            }
            at[n] = {Source::Slot, i.target};
        }
        std::sort(reads.begin(), reads.end());
        reads.erase(std::unique(reads.begin(), reads.end()), reads.end());
        for (int r : reads) {
            auto a = static_cast<size_t>(r);
            if (last[a] == n && at[a].source == Source::Slot && !once[a]) {
                free_slots.push_back(at[a].index);
            }
        }
        (once[n] ? once_ : steps_).push_back(i);
    }
    if (at.back().source != Source::Slot) { // the result is an input or a constant itself
        Instruction copy;
        copy.args[0] = at.back();
        steps_.push_back(copy);
    }
    choose_block(block_limit, widest);
    constants_.resize(constants.size() * static_cast<size_t>(slot_bytes_));
    for (size_t k = 0; k < constants.size(); ++k) {
        auto width = static_cast<size_t>(width_of(constants[k]->type));
        std::byte* to = constants_.data() + k * static_cast<size_t>(slot_bytes_);
        for (int64_t i = 0; i < block_; ++i) {
            write_constant(*constants[k], to + static_cast<size_t>(i) * width);
        }
    }
}

void ExprProgram::choose_block(int64_t limit, int64_t widest) {
    block_ = smallest_block;
    while (block_ * 2 <= limit && (slots_ + 1) * block_ * 2 * widest <= work_budget) {
        block_ *= 2;
    }
    slot_bytes_ = (block_ * widest + 63) / 64 * 64;
}

const void* ExprProgram::address(const Operand& o, const void* const* in,
                                 const std::byte* work) const {
    switch (o.source) {
    case Source::Input:
        return in[o.index];
    case Source::Constant:
        return constants_.data() + o.index * slot_bytes_;
    case Source::Table:
        return tables_[static_cast<size_t>(o.index)].data();
    default:
        return work + o.index * slot_bytes_;
    }
}

void ExprProgram::run_uniform(const void* const* in, int64_t n, std::byte* work) const {
    run_list(once_, in, nullptr, n, work);
}

void ExprProgram::run(const void* const* in, void* out, int64_t n, std::byte* work) const {
    run_list(steps_, in, out, n, work);
}

void ExprProgram::run_list(const std::vector<Instruction>& list, const void* const* in, void* out,
                           int64_t n, std::byte* work) const {
    for (const Instruction& i : list) {
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
