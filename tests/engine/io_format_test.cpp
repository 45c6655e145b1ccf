// SPDX-License-Identifier: Apache-2.0
// Formats of inputs and outputs: each with each type and odd numbers of channels, against plain
// loops over element positions; engines with formats, saved, loaded and damaged.
#include "backends/backends.h"
#include "base/error.h"
#include "engine/container.h"
#include "engine/engine.h"
#include "engine/format_reference.h"
#include "ops/ops.h"

#include <gtest/gtest.h>

namespace ingot {
namespace {

using test::Layout;
using test::layouts;

const IoFormat& format(std::string_view name) {
    const IoFormat* f = find_io_format(name);
    EXPECT_NE(f, nullptr) << name;
    return *f;
}

/// y = 2x as it is stored, z = the sum over the channels, row major.
std::shared_ptr<const Engine> doubling(const Layout& layout, DType dtype, const std::string& dims) {
    Graph g("doubling");
    Value x = g.add_input("x", parse_type(str(dtype, dims)));
    Value wide = ops::cast(g, x, DType::F32);
    auto channels = g.type(x).rank() - layout.channel_axis;
    g.add_output("y", ops::cast(g, ops::mul(g, wide, 2.0), dtype));
    g.add_output("z", ops::reduce(g, "sum", wide, {channels}));
    const IoFormat& f = format(layout.name);
    return Engine::create(std::move(g), {}, {})->with_formats({{&f}, {&f}});
}

void check_run(const std::shared_ptr<const Engine>& engine, const Layout& layout,
               const Shape& shape) {
    CompileOptions options;
    options.poison = true;
    Context context(engine, cpu_backend(), options);
    DType dtype = engine->graph().type(engine->graph().inputs()[0]).dtype;
    Tensor x = test::counting(dtype, shape);
    std::vector<Tensor> arrays = context.stored(std::array{x});
    Tensor& array = arrays.back(); // behind the number of channels, where it is not known
    EXPECT_EQ(array.bytes().size(), test::array_bytes(layout, dtype, shape));
    test::store(layout, x, array.mutable_bytes(), 0x7F); // padding is never read
    std::vector<Tensor> results = context.run_stored(arrays);
    Tensor twice = Tensor::empty(dtype, shape);
    for (int64_t i = 0; i < x.count(); ++i) {
        twice.set_f64(i, 2 * x.get_f64(i));
    }
    std::vector<std::byte> expected(test::array_bytes(layout, dtype, shape));
    test::store(layout, twice, expected, 0); // and zero in results
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), results[0].bytes().begin(),
                           results[0].bytes().end()));
    EXPECT_EQ(results[1], test::channel_sums(layout, x));
    std::vector<Tensor> row_major = context.run(std::array{x});
    EXPECT_EQ(row_major[0], twice);
    EXPECT_EQ(row_major[1], results[1]);
}

Shape shape_of(const Layout& layout, int64_t channels) {
    return layout.channel_axis == 4 ? Shape{2, channels, 2, 3, 2} : Shape{2, channels, 3, 4};
}

TEST(IoFormats, EveryFormatTypeAndNumberOfChannels) {
    for (const Layout& layout : layouts()) {
        for (DType dtype : layout.types) {
            for (int64_t channels : {1, 3, 8, 17, 33}) {
                Shape shape = shape_of(layout, channels);
                SCOPED_TRACE(str(layout.name, ' ', dtype, shape));
                check_run(doubling(layout, dtype, str(shape)), layout, shape);
            }
        }
    }
}

TEST(IoFormats, SizesThatTheRunDecides) {
    for (const Layout& layout : layouts()) {
        for (DType dtype : layout.types) {
            std::string dims = layout.channel_axis == 4 ? "[N,C,D,H,2]" : "[N,C,H,W]";
            SCOPED_TRACE(str(layout.name, ' ', dtype, dims));
            auto engine = doubling(layout, dtype, dims);
            for (int64_t channels : {5, 32, 1}) {
                check_run(engine, layout, shape_of(layout, channels));
            }
        }
    }
}

// Three dimensions are enough where channels are the third from the end.
TEST(IoFormats, WithoutABatch) {
    for (const Layout& layout : layouts()) {
        Shape shape = layout.channel_axis == 4 ? Shape{5, 2, 3, 2} : Shape{5, 3, 2};
        SCOPED_TRACE(layout.name);
        check_run(doubling(layout, layout.types[0], str(shape)), layout, shape);
    }
}

TEST(IoFormats, OneContextForManyShapesAndGivenOutputs) {
    const Layout& layout = test::layout("chw4");
    auto engine = doubling(layout, DType::F16, "[N,C,H,W]");
    Context context(engine, cpu_backend());
    for (int64_t channels : {3, 6, 3, 12}) {
        Tensor x = test::counting(DType::F16, {1, channels, 2, 2});
        std::vector<Tensor> given = {Tensor::zeros(DType::F16, x.shape()),
                                     Tensor::zeros(DType::F32, {1, 2, 2})};
        std::vector<Tensor> out = context.run(std::array{x}, given);
        EXPECT_EQ(out[0].bytes().data(), given[0].bytes().data());
        EXPECT_EQ(out[1].bytes().data(), given[1].bytes().data());
        EXPECT_EQ(given[0].get_f64(channels), 2 * x.get_f64(channels));
    }
    std::vector<Tensor> wrong = {Tensor::zeros(DType::F16, {1, 4, 2, 2})};
    try {
        context.run(std::array{test::counting(DType::F16, {1, 3, 2, 2})}, wrong);
        FAIL();
    } catch (const Error& e) {
        EXPECT_STREQ(e.what(), "output 'y' has to hold f16[1,3,2,2], got f16[1,4,2,2]");
    }
}

// enqueue() takes and returns shapes of tensors; memory holds arrays.
TEST(IoFormats, BindingsHaveShapesOfTensors) {
    const Layout& layout = test::layout("hwc8");
    auto engine = doubling(layout, DType::F16, "[N,C,H,W]");
    Context context(engine, cpu_backend());
    Shape shape{2, 5, 3, 4};
    Tensor x = test::counting(DType::F16, shape);
    std::vector<std::byte> in(test::array_bytes(layout, DType::F16, shape));
    std::vector<std::byte> out(in.size(), std::byte{0xCB});
    std::vector<std::byte> sums(4 * 2 * 3 * 4);
    test::store(layout, x, in, 0x7F);
    std::vector<Binding> outputs = {{out.data(), {}}, {sums.data(), {}}};
    context.enqueue(std::array{Binding{in.data(), shape}}, outputs, nullptr);
    EXPECT_EQ(outputs[0].shape, shape);
    EXPECT_EQ(outputs[1].shape, (Shape{2, 3, 4}));
    Tensor twice = Tensor::empty(DType::F16, shape);
    for (int64_t i = 0; i < x.count(); ++i) {
        twice.set_f64(i, 2 * x.get_f64(i));
    }
    std::vector<std::byte> expected(in.size());
    test::store(layout, twice, expected, 0);
    EXPECT_EQ(out, expected);
    EXPECT_GT(context.activation_bytes(std::array{shape}), -1);
}

TEST(IoFormats, ProfilesAreThoseOfTensors) {
    Graph g("profiled");
    Value x = g.add_input("x", parse_type("f16[N,C,2,2]"));
    g.add_output("y", ops::mul(g, x, 2.0));
    const IoFormat& f = format("chw4");
    auto engine =
        Engine::create(std::move(g), {{{{"x", {1, 2, 2, 2}, {2, 3, 2, 2}, {4, 9, 2, 2}}}}}, {})
            ->with_formats({{&f}, {&f}});
    Context context(engine, cpu_backend());
    context.prepare(std::array{Shape{4, 9, 2, 2}});
    try {
        context.prepare(std::array{Shape{4, 10, 2, 2}}); // as many vectors as for 9
        FAIL();
    } catch (const Error& e) {
        EXPECT_STREQ(e.what(), "input 'x' with shape 4x10x2x2 is outside the engine's profile: "
                               "dimension 1 is 10, allowed 2 to 9");
    }
    Storage storage(engine->graph_ref(), engine->formats());
    std::vector<Profile> stored = storage.profiles(engine->profiles());
    ASSERT_EQ(stored[0].inputs.size(), 2U);
    EXPECT_EQ(stored[0].inputs[0].max, (Shape{4, 3, 2, 2, 4}));
    EXPECT_EQ(stored[0].inputs[1].input, "x.channels");
    EXPECT_EQ(stored[0].inputs[1].opt, (Shape{0, 3}));
    EXPECT_EQ(storage.tensor_shapes(storage.input_shapes(std::array{Shape{2, 7, 2, 2}}))[0],
              (Shape{2, 7, 2, 2}));
}

TEST(IoFormats, StridesCountVectors) {
    EXPECT_EQ(format_strides(row_major(), {2, 5, 3, 4}), (Shape{60, 12, 4, 1}));
    EXPECT_EQ(format_strides(format("hwc"), {2, 5, 3, 4}), (Shape{60, 1, 20, 5}));
    EXPECT_EQ(format_strides(format("hwc8"), {2, 5, 3, 4}), (Shape{12, 1, 4, 1}));
    EXPECT_EQ(format_strides(format("hwc8"), {2, 9, 3, 4}), (Shape{24, 1, 8, 2}));
    EXPECT_EQ(format_strides(format("chw4"), {2, 5, 3, 4}), (Shape{24, 12, 4, 1}));
    EXPECT_EQ(format_strides(format("cdhw32"), {2, 33, 2, 3, 4}), (Shape{48, 24, 12, 4, 1}));
    EXPECT_EQ(format_strides(format("hwc8"), {-1, 9, -1, 4}), (Shape{-1, 1, 8, 2}));
    EXPECT_EQ(format_strides(format("chw4"), {2, -1, 3, 4}), (Shape{-1, 12, 4, 1}));
}

std::string error_of(const std::string& type, std::string_view name) {
    Graph g("g");
    Value x = g.add_input("x", parse_type(type));
    g.add_output("y", ops::reshape(g, x, g.type(x).dims));
    try {
        Engine::create(std::move(g), {}, {})->with_formats({{&format(name)}, {}});
        return "";
    } catch (const Error& e) {
        return e.what();
    }
}

TEST(IoFormats, WhatDoesNotFitIsRefused) {
    EXPECT_EQ(error_of("f32[1,3,4,4]", "chw2"),
              "input 'x' f32[1,3,4,4] cannot be stored as kCHW2, which holds f16 or bf16, not f32");
    EXPECT_EQ(
        error_of("i64[1,3,4,4]", "chw32"),
        "input 'x' i64[1,3,4,4] cannot be stored as kCHW32, which holds f32, f16 or i8, not i64");
    EXPECT_EQ(
        error_of("f32[3,4]", "hwc"),
        "input 'x' f32[3,4] cannot be stored as kHWC, which needs 3 dimensions or more, not 2");
    EXPECT_EQ(
        error_of("f32[3,4,4]", "dhwc"),
        "input 'x' f32[3,4,4] cannot be stored as kDHWC, which needs 4 dimensions or more, not 3");
    EXPECT_EQ(error_of("f16[1,3,4,4]", "dla_linear"),
              "input 'x' f16[1,3,4,4] cannot be stored as kDLA_LINEAR, which needs DLA, and "
              "engines do not run on DLA");
    EXPECT_EQ(error_of("f16[1,3,4,4]", "hwc8"), "");
}

TEST(IoFormats, ChannelsThatDataDecideAreRefused) {
    Graph g("g");
    Value x = g.add_input("x", parse_type("f32[9]"));
    Dim n = g.fresh_symbol();
    Value where = g.add1(nonzero_def, NonZero{n}, {x});
    Value y = ops::cast(g, ops::reshape(g, where, {n, 1, 1}), DType::F16);
    g.add_output("y", y);
    auto engine = Engine::create(std::move(g), {}, {});
    try {
        engine->with_formats({{}, {&format("chw4")}});
        FAIL();
    } catch (const Error& e) {
        EXPECT_STREQ(e.what(),
                     "output 'y' f16[?0,1,1] cannot be stored as kCHW4: its number of channels "
                     "depends on data, so its memory cannot be allocated before the run; "
                     "allow kLINEAR");
    }
}

// --- files ---------------------------------------------------------------------------------------

std::shared_ptr<const Engine> load(std::span<const std::byte> bytes) {
    auto copy = std::make_shared<std::vector<std::byte>>(bytes.begin(), bytes.end());
    return Engine::load(*copy, copy);
}

TEST(IoFormats, EnginesKeepThemInARequiredSection) {
    auto engine = doubling(test::layout("chw32"), DType::F16, "[N,5,2,2]");
    AlignedBytes bytes = engine_bytes(*engine);
    auto loaded = load(bytes);
    EXPECT_EQ(loaded->formats().input(0).name, "chw32");
    EXPECT_EQ(loaded->formats().output(0).name, "chw32");
    EXPECT_EQ(loaded->formats().output(1).name, "chw");
    check_run(loaded, test::layout("chw32"), {3, 5, 2, 2});
    Container c(bytes, nullptr);
    ASSERT_NE(c.find(SectionKind::Formats), nullptr);
    EXPECT_TRUE(c.find(SectionKind::Formats)->required); // an older release refuses it
    AlignedBytes plain = engine_bytes(*engine->with_formats({}));
    EXPECT_EQ(Container(plain, nullptr).find(SectionKind::Formats), nullptr);
    EXPECT_TRUE(load(plain)->formats().are_plain());
}

std::string error_with(const AlignedBytes& bytes, std::string_view formats) {
    Container c(bytes, nullptr);
    AlignedBytes out;
    ContainerWriter w(out, static_cast<uint32_t>(c.sections().size()));
    for (const Section& s : c.sections()) {
        w.begin(s.kind, s.required, s.alignment);
        w.write(s.kind == SectionKind::Formats ? std::as_bytes(std::span(formats))
                                               : c.section(s.kind));
        w.end();
        if (s.kind == SectionKind::Weights) {
            w.set_xxh3(s.kind, s.xxh3);
        }
    }
    w.commit();
    try {
        load(out);
        return "";
    } catch (const Error& e) {
        EXPECT_EQ(e.code(), ErrorCode::InvalidEngine);
        return e.what();
    }
}

TEST(IoFormats, DamagedSectionsAreRefused) {
    AlignedBytes bytes = engine_bytes(*doubling(test::layout("hwc8"), DType::F16, "[N,5,2,2]"));
    std::string start = "section formats is invalid: ";
    EXPECT_EQ(error_with(bytes, R"({"inputs":{"x":"hwc8"},"outputs":{}})"), "");
    EXPECT_EQ(error_with(bytes, R"({"inputs":{"x":"hwc9"},"outputs":{}})"),
              start + "input 'x' has the unknown format 'hwc9'");
    EXPECT_EQ(error_with(bytes, R"({"inputs":{"q":"hwc8"},"outputs":{}})"),
              start + "a format is given for input 'q', which does not exist");
    EXPECT_EQ(
        error_with(bytes, R"({"inputs":{},"outputs":{"z":"hwc8"}})"),
        start +
            "output 'z' f32[N,2,2] cannot be stored as kHWC8, which holds f16 or bf16, not f32");
    EXPECT_NE(error_with(bytes, R"({"inputs":3})").find(start), std::string::npos);
    EXPECT_NE(error_with(bytes, "nothing").find(start), std::string::npos);
}

} // namespace
} // namespace ingot
