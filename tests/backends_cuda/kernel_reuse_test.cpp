// SPDX-License-Identifier: Apache-2.0
// Which problems of plans count as one.
#include "backends/cuda/tune/kernel_reuse.h"
#include "backends_cuda/timed_gpu.h"
#include "ops/ops.h"

#include <gtest/gtest.h>

namespace ingot::test {
namespace {

/// The product of two matrices that lie at the given places.
std::shared_ptr<cuda::KnownProblem>
known(cuda::KernelReuse& reuse, const std::vector<plan::Operand>& in, const plan::Operand& out) {
    Graph g;
    Value x = g.add_input("x", parse_type("f16[8,64]"));
    Value y = g.add_input("y", parse_type("f16[8,64]"));
    g.add_output("z", ops::matmul(g, x, ops::permute(g, y, {1, 0})));
    plan::Group group = plan::group_of(g, g.nodes().back());
    Symbols symbols;
    std::vector<const std::byte*> constants(in.size());
    TimedGpu gpu;
    kernels::Problem p{group, symbols, in, {&out, 1}, constants, gpu.arch(), true};
    return reuse.known(kernels::family_of("dot"), p,
                       [] { return std::vector<kernels::Tactic>(1); });
}

TEST(KernelReuse, ProblemsDifferInWhichOperandsShareMemory) {
    plan::View view = plan::dense({8, 64});
    auto at = [&view](int buffer, int64_t offset = 0) {
        plan::Operand o{DType::F16, buffer, view};
        o.view.offset = offset;
        return o;
    };
    cuda::KernelReuse reuse;
    auto apart = known(reuse, {at(0), at(1)}, at(2));
    EXPECT_EQ(known(reuse, {at(5), at(4)}, at(3)), apart) << "the places themselves do not count";
    EXPECT_EQ(known(reuse, {at(0, 512), at(1)}, at(2, 1024)), apart);
    auto one_buffer = known(reuse, {at(0), at(0, 512)}, at(2));
    EXPECT_NE(one_buffer, apart);
    EXPECT_EQ(known(reuse, {at(1, 1024), at(1)}, at(2)), one_buffer);
    EXPECT_NE(known(reuse, {at(0), at(1)}, at(1, 512)), apart);
    auto shared = known(reuse, {at(0), at(0)}, at(2));
    EXPECT_NE(shared, apart);
    auto in_place = known(reuse, {at(0), at(1)}, at(0));
    EXPECT_NE(in_place, apart);
    EXPECT_NE(in_place, shared);
    EXPECT_NE(known(reuse, {at(0), at(1)}, at(1)), in_place);
}

} // namespace
} // namespace ingot::test
