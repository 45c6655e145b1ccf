// SPDX-License-Identifier: Apache-2.0
#include "ir/expr.h"

#include <gtest/gtest.h>

#include <set>

namespace ingot {
namespace {

TEST(ExprHash, DiffersWhereExpressionsDo) {
    Expr e;
    int x = e.in(0, DType::F32);
    int y = e.in(1, DType::F32);
    e.op(ExprOp::Sub, e.op(ExprOp::Mul, x, e.constant(DType::F32, 2.0)), y);
    std::vector<Expr> others = {e};
    for (size_t i = 0; i < e.code.size(); ++i) {
        for (size_t k = 0; k < 3; ++k) {
            others.push_back(e);
            ++others.back().code[i].args[k];
        }
        others.push_back(e);
        others.back().code[i].op = ExprOp::Max;
        others.push_back(e);
        others.back().code[i].type = DType::F64;
        others.push_back(e);
        others.back().code[i].to = DType::I8;
        others.push_back(e);
        others.back().code[i].imm ^= 1;
    }
    others.push_back(e);
    others.back().code.pop_back();
    std::set<uint64_t> hashes;
    for (const Expr& other : others) {
        hashes.insert(hash_of(other));
    }
    EXPECT_EQ(hashes.size(), others.size());
    EXPECT_EQ(hash_of(Expr(e)), hash_of(e));
}

} // namespace
} // namespace ingot
