// SPDX-License-Identifier: Apache-2.0
#include "ir/graph.h"
#include "ops/op_table.h"

#include <gtest/gtest.h>

namespace ingot {
namespace {

/// The kinds of attributes of an op.
struct KindVisitor : NullVisitor {
    using NullVisitor::field;
    bool has_bodies = false;
    bool declares = false;
    void field(std::string_view, GraphRef&) override { has_bodies = true; }
    void field(std::string_view n, Dim&) override { declares = declares || n == "count"; }
    void field(std::string_view n, Dims&) override { declares = declares || n == "symbols"; }
};

TEST(Ops, FlagsSayWhatTheirAttributesAre) {
    size_t with_bodies = 0;
    size_t with_symbols = 0;
    for (const OpTable* table : all_ops()) {
        for (const OpDef* def : *table) {
            KindVisitor kinds;
            visit_attrs(*def, def->make().get(), kinds);
            EXPECT_EQ(def->has_bodies, kinds.has_bodies) << def->name;
            EXPECT_EQ(def->declares_symbols, kinds.declares) << def->name;
            with_bodies += def->has_bodies ? 1 : 0;
            with_symbols += def->declares_symbols ? 1 : 0;
        }
    }
    EXPECT_GE(with_bodies, 3U) << "if, loop and groups";
    EXPECT_GE(with_symbols, 3U) << "tensor_to_dims, nonzero, nms";
}

} // namespace
} // namespace ingot
