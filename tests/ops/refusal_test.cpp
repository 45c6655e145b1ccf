// SPDX-License-Identifier: Apache-2.0
#include "ir/text.h"
#include "op_test.h"
#include "ops/refusal.h"

namespace ingot::test {
namespace {

TEST(Refusal, HasItsTypeAndFailsWithItsText) {
    Graph g;
    Value y = ops::refusal(g, parse_type("f16[3,N]"), "node 'a' cannot run: no reason");
    EXPECT_EQ(g.type(y), parse_type("f16[3,N]"));
    try {
        run1(ops::refusal_def, ops::Refusal{DType::F32, {Dim(2)}, "node 'a' cannot run"}, {});
        ADD_FAILURE() << "it ran";
    } catch (const Error& e) {
        EXPECT_EQ(e.code(), ErrorCode::Unsupported);
        EXPECT_NE(std::string(e.what()).find("node 'a' cannot run"), std::string::npos) << e.what();
    }
}

} // namespace
} // namespace ingot::test
