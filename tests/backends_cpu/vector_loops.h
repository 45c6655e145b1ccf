// SPDX-License-Identifier: Apache-2.0
// The instruction sets of this machine, and their loops over floats.
#pragma once

#include "backends/cpu/simd/simd.h"

#include <gtest/gtest.h>

#include <vector>

namespace ingot::test {

/// The sets that this processor has, up to the limit that the environment sets.
inline std::vector<cpu::InstructionSet> instruction_sets() {
    using cpu::InstructionSet;
    std::vector<InstructionSet> all;
    for (InstructionSet s : {InstructionSet::Baseline, InstructionSet::Avx2, InstructionSet::Avx512,
                             InstructionSet::Avx512Vnni}) {
        if (s <= cpu::instruction_set()) {
            all.push_back(s);
        }
    }
    return all;
}

/// Fails the current test where the set has no loop.
inline std::vector<float> mapped(cpu::InstructionSet set, ExprOp op, const std::vector<float>& x) {
    std::vector<float> y(x.size());
    cpu::MapLoop loop = cpu::vector_loops(set).map(op, DType::F32);
    EXPECT_NE(loop, nullptr) << name(op) << " has no loop for " << cpu::name(set);
    if (loop != nullptr) {
        loop(y.data(), x.data(), nullptr, nullptr, static_cast<int64_t>(x.size()));
    }
    return y;
}

} // namespace ingot::test
