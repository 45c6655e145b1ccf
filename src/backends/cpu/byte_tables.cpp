// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/byte_tables.h"

#include "backends/cpu/expr_part.h"
#include "base/error.h"
#include "plan/epilogue.h"

#include <set>

namespace ingot::cpu {

namespace {

constexpr int no_byte = -1; // constants alone
constexpr int many = -2;    // several bytes, or other elements

/// For each instruction the earliest byte that it is a function of.
std::vector<int> sources(const Expr& e, const std::vector<bool>& numbers) {
    std::vector<int> out(e.code.size(), many);
    for (size_t n = 0; n < e.code.size(); ++n) {
        const ExprInstr& x = e.code[n];
        if (x.op == ExprOp::In) {
            auto input = static_cast<size_t>(x.args[0]);
            out[n] = input < numbers.size() && numbers[input] ? no_byte : many;
            continue;
        }
        int from = no_byte;
        for (int a = 0; a < plan::argument_count(x); ++a) {
            int i = x.args[static_cast<size_t>(a)];
            int other = out[static_cast<size_t>(i)];
            if (other == many && is_byte(e.code[static_cast<size_t>(i)].type)) {
                other = i;
            }
            from = from == no_byte || from == other ? other : other == no_byte ? from : many;
        }
        out[n] = from;
    }
    return out;
}

/// Whether more than one instruction computes `to` from `from`, constants and inputs left out.
bool replaces_several(const Expr& e, int from, int to) {
    std::set<int> seen;
    std::vector<int> left = {to};
    while (!left.empty() && seen.size() < 2) {
        int i = left.back();
        left.pop_back();
        const ExprInstr& x = e.code[static_cast<size_t>(i)];
        if (i == from || x.op == ExprOp::In || x.op == ExprOp::Const || !seen.insert(i).second) {
            continue;
        }
        for (int a = 0; a < plan::argument_count(x); ++a) {
            left.push_back(x.args[static_cast<size_t>(a)]);
        }
    }
    return seen.size() >= 2;
}

} // namespace

std::vector<int> byte_tables(const Expr& e, const std::vector<bool>& numbers) {
    std::vector<int> out = sources(e, numbers);
    for (size_t n = 0; n < e.code.size(); ++n) {
        bool rounds = e.code[n].op == ExprOp::Cast && is_byte(e.code[n].to);
        bool is_end = out[n] >= 0 && rounds && replaces_several(e, out[n], static_cast<int>(n));
        out[n] = is_end ? out[n] : -1;
    }
    return out;
}

std::array<std::byte, 256> table_entries(const Expr& e, int from, int to) {
    DType type = e.code[static_cast<size_t>(from)].type;
    ExprPart part(e, from, type);
    part.take(to);
    CHECK(part.inputs.size() == 1, "a table of more than one byte");
    std::vector<Scalar> work(part.body.code.size());
    std::array<std::byte, 256> out{};
    for (size_t bits = 0; bits < out.size(); ++bits) {
        Scalar in{0, wrap_integer(static_cast<int64_t>(bits), type)};
        out[bits] = static_cast<std::byte>(eval(part.body, {&in, 1}, work).i & 255);
    }
    return out;
}

} // namespace ingot::cpu
