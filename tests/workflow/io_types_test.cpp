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

Graph pictures() {
    Graph g("pictures");
    Value x = g.add_input("x", parse_type("f32[N,3,4,4]"));
    Value bytes = g.add_input("bytes", parse_type("u8[N,3,4,4]"));
    Value scale = g.add_input("scale", parse_type("f32[N]"));
    g.add_output("y", ops::add(g, x, 1.0));
    g.add_output("b", ops::add(g, bytes, bytes));
    g.add_output("s", ops::mul(g, scale, 2.0));
    return g;
}

/// Names of the allowed and of the chosen formats; or the error.
std::string formats(std::string_view inputs, std::string_view outputs, bool direct = false) {
    try {
        Graph g = with_io_types(pictures(), inputs, outputs);
        AllowedFormats allowed;
        allowed.direct = direct;
        allow_formats(g, inputs, outputs, allowed);
        IoFormats chosen = choose_formats(g, allowed);
        std::string text;
        for (size_t i = 0; i < 3; ++i) {
            text += str(chosen.input(i).name, ' ', chosen.output(i).name, ' ');
        }
        return text;
    } catch (const Error& e) {
        return e.what();
    }
}

TEST(IoTypes, FormatsOfEach) {
    EXPECT_EQ(formats("", ""), "chw chw chw chw chw chw ");
    EXPECT_EQ(formats("fp16:chw4,uint8:hwc,chw", "hwc,uint8,fp16"), "chw4 hwc hwc chw chw chw ");
    EXPECT_EQ(formats("hwc8+chw32,hwc8+hwc,fp32", ""), "chw32 chw hwc chw chw chw ");
    EXPECT_EQ(formats("hwc+chw,hwc,chw", ""), "chw chw hwc chw chw chw ");
    EXPECT_EQ(
        formats("bf16:hwc8,chw,chw", "chw,chw,chw", true),
        "input 'x' would be stored as kHWC8, which engines reformat when they run, but kDIRECT_IO "
        "(--directIO) forbids that: clear it, or allow kLINEAR (chw)");
    EXPECT_EQ(
        formats("chw,chw,hwc", ""),
        "input 'scale' f32[N] has no allowed memory format: kHWC (hwc) needs 3 "
        "dimensions or more, not 1. Formats that fit: kLINEAR: allow one of these, or change the "
        "type of the tensor");
}

TEST(IoTypes, OneFormatForAllThatItFits) {
    EXPECT_EQ(formats("hwc", "hwc"), "hwc hwc hwc hwc chw chw ");
    EXPECT_EQ(formats("fp16:hwc8", ""), "hwc8 chw chw chw chw chw ");
    EXPECT_EQ(formats("hwc8", ""), "--inputIOFormats hwc8: none of them can have this format: give "
                                   "the format of each, in order");
    EXPECT_EQ(formats("hwc+dla_hwc4", ""), "hwc chw hwc chw chw chw ");
}

TEST(IoTypes, Errors) {
    std::string known = ", expected TYPE, FORMAT[+FORMAT] or TYPE:FORMAT[+FORMAT]. Types: fp32, "
                        "fp16, bf16, int32, int64, int8, uint8, fp8, bool. Formats: chw, hwc, "
                        "hwc8, hwc16, dhwc, dhwc8, chw2, chw4, chw16, chw32, cdhw32, dla_linear, "
                        "dla_hwc4";
    EXPECT_EQ(error_of("fp16:hwc9", ""),
              "--inputIOFormats: 'fp16:hwc9': there is no 'hwc9'" + known);
    EXPECT_EQ(error_of("fp16:hwc8+", ""), "--inputIOFormats: 'fp16:hwc8+': there is no ''" + known);
    EXPECT_EQ(error_of("half:chw", ""), "--inputIOFormats: 'half:chw': there is no 'half'" + known);
    EXPECT_EQ(error_of("", "half"), "--outputIOFormats: 'half': there is no 'half'" + known);
    EXPECT_EQ(error_of("int8,int64", ""),
              "--inputIOFormats int8,int64: entry 1 asks for i8, the model has f32");
    EXPECT_EQ(error_of("fp16,fp16,fp16", ""),
              "--inputIOFormats fp16,fp16,fp16: got 3 entries, expected 1 or 2");
    EXPECT_EQ(error_of("fp16,fp16", ""),
              "--inputIOFormats fp16,fp16: entry 2 asks for f16, the model has i64");
}

} // namespace
} // namespace ingot
