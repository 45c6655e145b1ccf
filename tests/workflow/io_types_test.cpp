// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "ir/text.h"
#include "ops/ops.h"
#include "workflow/io_types.h"

#include <gtest/gtest.h>

namespace ingot {
namespace {

Graph sample() {
    Graph g("sample");
    Value x = g.add_input("x", parse_type("f32[N,4]"));
    Value ids = g.add_input("ids", parse_type("i64[N]"));
    g.add_output("y", ops::add(g, x, 1.0));
    g.add_output("z", ops::add(g, ids, ids));
    return g;
}

std::string types(const Graph& g) {
    std::string text;
    for (Value v : g.inputs()) {
        text += str(g.value_name(v), ':', to_text(g.type(v)), ' ');
    }
    for (size_t i = 0; i < g.outputs().size(); ++i) {
        text += str(g.output_names()[i], ':', to_text(g.type(g.outputs()[i])), ' ');
    }
    return text;
}

std::string error_of(std::string_view inputs, std::string_view outputs) {
    try {
        with_io_types(sample(), inputs, outputs);
        return "no error";
    } catch (const Error& e) {
        return e.what();
    }
}

TEST(IoTypes, OneEntryForAllFloats) {
    EXPECT_EQ(types(with_io_types(sample(), "fp16:chw", "bf16")),
              "x:f16[N,4] ids:i64[N] y:bf16[N,4] z:i64[N] ");
}

TEST(IoTypes, AnEntryForEach) {
    EXPECT_EQ(types(with_io_types(sample(), "fp32:chw,int32:chw", "fp16,int64")),
              "x:f32[N,4] ids:i32[N] y:f16[N,4] z:i64[N] ");
    EXPECT_EQ(print(with_io_types(sample(), "", "")), print(sample()));
    EXPECT_EQ(print(with_io_types(sample(), "chw", "chw,chw")), print(sample()));
    EXPECT_EQ(types(with_io_types(sample(), "chw,int32:chw", "fp16:chw,chw")),
              "x:f32[N,4] ids:i32[N] y:f16[N,4] z:i64[N] ");
}

TEST(IoTypes, Errors) {
    EXPECT_EQ(error_of("fp16:hwc8", ""),
              "--inputIOFormats: 'fp16:hwc8': the layout 'hwc8' is not supported, only chw is");
    EXPECT_EQ(error_of("", "half"), "--outputIOFormats: 'half': expected fp32, fp16, bf16, int32 "
                                    "or int64, and :chw if anything");
    EXPECT_EQ(error_of("fp16,fp16,fp16", ""),
              "--inputIOFormats fp16,fp16,fp16: got 3 entries, expected 1 or 2");
    EXPECT_EQ(error_of("fp16,fp16", ""),
              "--inputIOFormats fp16,fp16: entry 2 asks for f16, the model has i64");
}

} // namespace
} // namespace ingot
