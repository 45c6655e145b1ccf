// SPDX-License-Identifier: Apache-2.0
// The shape facts of importer rows.
#include "onnx/importer.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace ingot::onnx::test {
namespace {

/// Adding a version of an operator keeps the facts of earlier versions.
TEST(ShapeUse, GrowsWithTheVersionsOfAnOperator) {
    std::map<std::string, std::vector<const ImporterRow*>> by_operator;
    for (const ImporterTable* table : all_importers()) {
        for (const ImporterRow& row : *table) {
            by_operator[str(row.domain, ":", row.type)].push_back(&row);
        }
    }
    size_t compared = 0;
    for (auto& [name, rows] : by_operator) {
        for (const ImporterRow* a : rows) {
            for (const ImporterRow* b : rows) {
                if (a->since < b->since) {
                    EXPECT_EQ(a->shapes.results, b->shapes.results) << name;
                    EXPECT_EQ(a->shapes.inputs & ~b->shapes.inputs, 0U)
                        << name << ", opset " << b->since;
                    ++compared;
                }
            }
        }
    }
    EXPECT_GE(compared, 10U);
}

static_assert(!std::is_default_constructible_v<ShapeUse>, "each row of an importer says it");

TEST(ShapeUse, ByInput) {
    const ImporterRow& slice = *find_importer("", "Slice", 21);
    for (size_t i = 0; i < 40; ++i) {
        EXPECT_EQ(slice.shapes.reads(i), i >= 1 && i <= 4) << i;
    }
    EXPECT_TRUE(slice.shapes.results);
    EXPECT_FALSE(find_importer("", "Conv", 21)->shapes.reads(0));
    EXPECT_FALSE(find_importer("", "Conv", 21)->shapes.results);
    EXPECT_FALSE(find_importer("", "Reshape", 21)->shapes.results);
    EXPECT_TRUE(find_importer("", "ReduceL2", 21)->shapes.results);
}

} // namespace
} // namespace ingot::onnx::test
