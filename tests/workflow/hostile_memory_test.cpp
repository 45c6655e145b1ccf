// SPDX-License-Identifier: Apache-2.0
// Files that claim more than they hold: what they cost to read, import and build is bounded by
// their own size.
#include "base/error.h"
#include "base/file.h"
#include "base/process.h"
#include "counts.h"
#include "onnx/proto_builder.h"
#include "peak_memory.h"
#include "workflow/build.h"
#include "workflow/inputs/npy.h"

#include <gtest/gtest.h>

namespace ingot {
namespace {

using namespace onnx::test;

constexpr int64_t huge = int64_t{1} << 40;
constexpr int64_t base_bytes = 64 << 20;

struct Hostile {
    std::string name;
    std::string bytes;
    bool refused = true; // when it is built
};

/// A node with a constant of i64 [n] as its last input.
Pb with_shape(std::string_view op, std::initializer_list<std::string_view> in,
              std::initializer_list<int64_t> shape) {
    std::string raw(reinterpret_cast<const char*>(std::data(shape)), shape.size() * 8);
    return model(Pb().s(2, "g")
                     .m(1, node(op, in, {"y"}))
                     .m(5, tensor("s", {static_cast<int64_t>(shape.size())}, 7, raw))
                     .m(5, tensor("one", {1}, 1, std::string(4, '\1')))
                     .m(11, value("x", {1}))
                     .m(12, Pb().s(1, "y")));
}

std::string padded(std::string model, size_t bytes) {
    Pb filler; // a metadata property, which is read and kept
    filler.m(14, pair("filler", std::string(bytes, 'x')));
    return std::move(model) + filler.bytes();
}

std::vector<Hostile> claims() {
    auto initializer = [](const Pb& t) { return model_with_initializer(t).bytes(); };
    Pb many_dims = tensor("w", {}, 1);
    for (int i = 0; i < 100'000; ++i) {
        many_dims.i(1, 1 << 20);
    }
    Pb sparse = Pb().m(1, tensor("v", {1}, 1, "1234")).m(2, tensor("", {1}, 7, "01234567"));
    return {
        {"dims of 2^40 elements", initializer(tensor("w", {huge}, 1, "1234"))},
        {"a product of dims that wraps",
         initializer(tensor("w", {1LL << 32, 1LL << 32}, 1, "1234"))},
        {"dims that are negative", initializer(tensor("w", {-1}, 1, "1234"))},
        {"100,000 dims", initializer(many_dims)},
        {"2^62 beside a zero", initializer(tensor("w", {0, 1LL << 62}, 1, ""))},
        {"2^40 halves in a list of one", initializer(tensor("w", {huge}, 10).packed(5, {1}))},
        {"2^40 elements in a file of none",
         initializer(external_tensor("w", {huge}, 1, {{"location", "w.bin"}}))},
        {"a field of 2^40 bytes",
         initializer(Pb().raw(std::string("\x4a\x80\x80\x80\x80\x80\x40")))},
        {"a sparse tensor of 2^40 elements", model(graph().m(15, Pb(sparse).i(3, huge))).bytes()},
        {"a fill of 2^40", with_shape("ConstantOfShape", {"s"}, {huge}).bytes(), false},
        {"an expansion to 2^40", with_shape("Expand", {"one", "s"}, {huge}).bytes(), false},
        {"2^40 tiles", with_shape("Tile", {"one", "s"}, {huge}).bytes(), false},
        {"a reshape to 2^40", with_shape("Reshape", {"one", "s"}, {huge}).bytes()},
        {"a padding of 2^40", with_shape("Pad", {"one", "s"}, {huge, huge}).bytes(), false},
    };
}

std::string told;

/// Reads, imports and builds; whether that was refused.
bool is_refused(const std::string& path) {
    try {
        BuildConfig config;
        build_engine(path, config);
        return false;
    } catch (const Error& e) {
        EXPECT_NE(e.code(), ErrorCode::Internal) << e.what();
        told = e.what();
        return true;
    }
}

TEST(HostileMemory, ModelsThatLieTakeNoMoreThanTheirFiles) {
    TemporaryFolder folder;
    int64_t injections = 0;
    int64_t refused = 0;
    for (const Hostile& h : claims()) {
        for (int64_t megabytes : {0, 8, 48}) {
            SCOPED_TRACE(h.name + ", " + std::to_string(megabytes) + " MB");
            std::string path = folder.path() + "/m.onnx";
            std::string bytes = padded(h.bytes, static_cast<size_t>(megabytes) << 20);
            write_file(path, bytes);
            bool is = false;
            std::optional<int64_t> grown = test::peak_growth([&] { is_refused(path); });
            ASSERT_TRUE(grown) << "it crashed";
            EXPECT_LE(*grown, base_bytes + 2 * std::ssize(bytes));
            is = is_refused(path);
            EXPECT_EQ(is, h.refused) << told;
            refused += is ? 1 : 0;
            ++injections;
        }
    }
    test::record_injections(injections, refused);
}

struct Dense {
    const char* kind;
    bool in_graph;
    uint32_t field;
    Pb element;
    bool is_over; // 16 MiB of them take more than the reader's budget
};

Pb nodes_attribute(const Pb& a) {
    return Pb().s(4, "R").m(5, a);
}

std::vector<Dense> dense_kinds() {
    std::string ints(1000, '\1');
    return {
        {"nodes", true, 1, Pb().s(4, "R"), true},
        {"nodes with attributes", true, 1, nodes_attribute(Pb().s(1, "a").i(20, 2)), true},
        {"lists of numbers", true, 1, nodes_attribute(Pb().s(1, "a").s(8, ints)), false},
        {"lists of texts", true, 1, nodes_attribute(Pb().s(1, "a").s(9, "").s(9, "").s(9, "")),
         true},
        {"inputs of nodes", true, 1, Pb().s(4, "R").s(1, "").s(1, "").s(1, "").s(1, ""), false},
        {"initializers without data", true, 5, tensor("w", {0}, 1), false},
        {"inputs", true, 11, Pb(), true},
        {"outputs", true, 12, Pb(), true},
        {"value_info", true, 13, Pb(), true},
        {"sizes", true, 13, value("v", {1, 1, 1, 1, 1, 1, 1, 1}), false},
        {"quantization annotations", true, 14, Pb(), true},
        {"parameters of annotations", true, 14, Pb().m(2, Pb()).m(2, Pb()).m(2, Pb()), true},
        {"metadata", false, 14, Pb(), true},
        {"opset imports", false, 8, opset("", 17), false},
    };
}

std::string dense_file(const Dense& d, size_t bytes) {
    std::string one = Pb().m(d.field, d.element).bytes();
    std::string many;
    while (many.size() < bytes) {
        many += one;
    }
    return d.in_graph ? model(graph().raw(many)).bytes() : model(graph()).raw(many).bytes();
}

/// Functions and domains, whose names must differ.
std::string named_file(uint32_t field, size_t bytes) {
    Pb many = model(graph());
    for (int i = 0; many.bytes().size() < bytes; ++i) {
        many.m(field, field == 8 ? opset(str(i), 1) : Pb().s(1, str(i)));
    }
    return many.bytes();
}

TEST(HostileMemory, DenseModelsTakeNoMoreThanTheirBudget) {
    constexpr size_t file_bytes = 16 << 20;
    TemporaryFolder folder;
    std::string path = folder.path() + "/m.onnx";
    int64_t refused = 0;
    int64_t injections = 0;
    auto check = [&](const char* kind, const std::string& bytes, std::optional<bool> is_over) {
        SCOPED_TRACE(kind);
        write_file(path, bytes);
        std::optional<int64_t> grown = test::peak_growth([&] { is_refused(path); });
        ASSERT_TRUE(grown) << "it crashed";
        EXPECT_LE(*grown, base_bytes + (int64_t{512} << 20) + 4 * std::ssize(bytes));
        const bool is = is_refused(path);
        refused += is ? 1 : 0;
        ++injections;
        const std::string limit = str("needs more than ", (size_t{512} << 20) + 2 * bytes.size(),
                                      " bytes of memory; the limit is 512 MiB and twice the "
                                      "file's ",
                                      bytes.size(),
                                      " bytes. Store numbers as initializers, drop "
                                      "unused value_info and metadata, or split the model");
        if (is_over) {
            EXPECT_EQ(told.find(limit) != std::string::npos, *is_over) << told;
        }
    };
    for (const Dense& d : dense_kinds()) {
        check(d.kind, dense_file(d, file_bytes), d.is_over);
        told.clear();
    }
    check("functions", named_file(25, file_bytes), true);
    check("domains", named_file(8, file_bytes), std::nullopt);
    test::record_injections(injections, refused);
}

TEST(HostileMemory, EnginesAndArraysThatLieTakeNoMoreThanTheirFiles) {
    TemporaryFolder folder;
    std::string model_path = folder.path() + "/m.onnx";
    write_file(model_path, model(graph()).bytes());
    AlignedBytes good = engine_bytes(*build_engine(model_path, BuildConfig{}));
    int64_t injections = 0;
    // Each field of eight bytes of header and table claims 2^60.
    for (size_t at = 8; at + 8 <= std::min<size_t>(good.size(), 64 + 5 * 88); at += 8) {
        std::optional<int64_t> grown = test::peak_growth([&] {
            AlignedBytes bytes = good;
            bytes[at + 7] = std::byte{0x10};
            EXPECT_THROW(Engine::load(bytes, nullptr, CheckWeights::First), Error);
        });
        ASSERT_TRUE(grown) << "byte " << at;
        EXPECT_LE(*grown, base_bytes) << "byte " << at;
        ++injections;
    }
    std::string path = folder.path() + "/x.npy";
    for (const char* shape :
         {"1099511627776,", "1073741824, 1073741824,", "0, 4611686018427387904,"}) {
        std::string header =
            str("{'descr': '<f4', 'fortran_order': False, 'shape': (", shape, "), }\n");
        write_file(path, std::string("\x93NUMPY\x01", 7) + '\0' + static_cast<char>(header.size()) +
                             '\0' + header + "1234");
        std::optional<int64_t> grown = test::peak_growth([&] {
            try {
                read_npy(path);
                _exit(2);
            } catch (const Error&) {
            }
        });
        ASSERT_TRUE(grown) << shape;
        EXPECT_LE(*grown, base_bytes) << shape;
        ++injections;
    }
    test::record_injections(injections, injections);
}

} // namespace
} // namespace ingot
