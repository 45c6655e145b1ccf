// SPDX-License-Identifier: Apache-2.0
// The reader's results for valid models: every message, every element type in every field that may
// hold it, and the spellings of different writers.
#include "base/file.h"
#include "onnx/data_type.h"
#include "onnx/proto_builder.h"
#include "onnx/reader.h"
#include "onnx/test_util.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

namespace ingot::onnx::test {
namespace {

using namespace std::string_literals;

Model read(const std::string& bytes) {
    return read_model(as_bytes(bytes), "", nullptr);
}

std::string data(const Tensor& t) {
    return {reinterpret_cast<const char*>(t.bytes.data()), t.bytes.size()};
}

template <class T>
std::vector<T> values(const Tensor& t) {
    std::vector<T> v(t.bytes.size() / sizeof(T));
    std::memcpy(v.data(), t.bytes.data(), t.bytes.size());
    return v;
}

using Names = std::vector<std::string>;

TEST(Reader, Model) {
    const std::string bytes = rich_model();
    const Model m = read(bytes);
    EXPECT_EQ(m.ir_version, 10);
    EXPECT_EQ(m.producer_name, "builder");
    EXPECT_EQ(m.producer_version, "1.0");
    EXPECT_EQ(m.domain, "org.example");
    EXPECT_EQ(m.model_version, 3);
    EXPECT_EQ(m.opset_imports, (OpsetImports{{"", 17}, {"custom", 1}}));
    ASSERT_EQ(m.metadata_props.size(), 1U);
    EXPECT_EQ(m.metadata_props[0], std::pair("author"s, "someone"s));
    EXPECT_EQ(m.graph.name, "main");
    ASSERT_EQ(m.graph.quantization_annotation.size(), 1U);
    EXPECT_EQ(m.graph.quantization_annotation[0].tensor_name, "y");
    EXPECT_EQ(m.graph.quantization_annotation[0].parameters[0], std::pair("SCALE_TENSOR"s, "w"s));
}

TEST(Reader, Node) {
    const std::string bytes = rich_model();
    const Model m = read(bytes);
    ASSERT_EQ(m.graph.nodes.size(), 2U);
    const Node& n = m.graph.nodes[1];
    EXPECT_EQ(n.op_type, "Everything");
    EXPECT_EQ(n.domain, "custom");
    EXPECT_EQ(n.overload, "v2");
    EXPECT_EQ(n.name, "every");
    EXPECT_EQ(n.inputs, (Names{"x", "", "w"}));
    EXPECT_EQ(n.outputs, (Names{"e", ""}));
}

TEST(Reader, Attributes) {
    const std::string bytes = rich_model();
    const Model m = read(bytes);
    const std::vector<Attribute>& a = m.graph.nodes.at(1).attributes;
    ASSERT_EQ(a.size(), 12U);
    EXPECT_EQ(a[0].f, 0.5F);
    EXPECT_EQ(a[1].i, -7);
    EXPECT_EQ(a[2].s, "nchw");
    EXPECT_EQ(values<double>(a[3].t), (std::vector{1.5, -2.5}));
    ASSERT_NE(a[4].g, nullptr);
    EXPECT_EQ(a[4].g->name, "body");
    EXPECT_EQ(values<int64_t>(a[4].g->initializers.at(0)), (std::vector<int64_t>{1, -2}));
    EXPECT_EQ(a[5].floats, (std::vector{1.0F, 2.0F, 3.0F}));
    EXPECT_EQ(a[6].ints, (std::vector<int64_t>{1, -2, 3}));
    EXPECT_EQ(a[7].strings, (Names{"a", ""}));
    EXPECT_EQ(values<int32_t>(a[8].tensors.at(0)), (std::vector{-3}));
    EXPECT_EQ(a[9].graphs.size(), 2U);
    ASSERT_NE(a[10].sparse_tensor, nullptr);
    EXPECT_EQ(a[10].sparse_tensor->dims, (std::vector<int64_t>{2, 3}));
    EXPECT_EQ(a[11].type, AttributeType::Int) << "an attribute without a type has its value's";
    EXPECT_EQ(a[11].i, 4);
    EXPECT_EQ(name(a[10].type), "sparse_tensor");
}

TEST(Reader, Initializers) {
    const std::string bytes = rich_model();
    const Model m = read(bytes);
    const std::vector<Tensor>& t = m.graph.initializers;
    ASSERT_EQ(t.size(), 4U);
    EXPECT_EQ(t[0].name, "w");
    EXPECT_EQ(t[0].dims, (std::vector<int64_t>{2, 2}));
    EXPECT_EQ(values<float>(t[0]), (std::vector{1.0F, 2.0F, 3.0F, 4.0F}));
    EXPECT_EQ(data(t[1]), "\x01\x02\xff");
    EXPECT_EQ(data(t[2]), "\x21\x0f");
    EXPECT_TRUE(t[3].bytes.empty());
    const auto whole = as_bytes(bytes);
    EXPECT_TRUE(t[1].bytes.data() > whole.data() && t[1].bytes.data() < whole.data() + whole.size())
        << "raw data is not copied";
    ASSERT_EQ(m.graph.sparse_initializers.size(), 1U);
    EXPECT_EQ(m.graph.sparse_initializers[0].values.name, "sp");
    EXPECT_EQ(values<int64_t>(m.graph.sparse_initializers[0].indices),
              (std::vector<int64_t>{0, 5}));
}

TEST(Reader, Values) {
    const std::string bytes = rich_model();
    const Graph g = read(bytes).graph;
    ASSERT_EQ(g.inputs.size(), 2U);
    EXPECT_EQ(g.inputs[0].kind, ValueKind::Tensor);
    EXPECT_EQ(g.inputs[0].elem_type, 1);
    EXPECT_TRUE(g.inputs[0].has_shape);
    EXPECT_EQ(g.inputs[0].dims,
              (std::vector<ShapeDim>{{-1, "batch"}, {-1, ""}, {-1, ""}, {3, ""}}));
    EXPECT_EQ(g.inputs[1].kind, ValueKind::Sequence);
    ASSERT_EQ(g.outputs.size(), 2U);
    EXPECT_EQ(g.outputs[1].kind, ValueKind::None);
    ASSERT_EQ(g.value_info.size(), 1U);
    EXPECT_EQ(g.value_info[0].elem_type, 10);
    EXPECT_FALSE(g.value_info[0].has_shape);
}

TEST(Reader, Function) {
    const std::string bytes = rich_model();
    const Model m = read(bytes);
    const auto found = m.functions.find(FunctionKey{"custom", "twice", "o"});
    ASSERT_NE(found, m.functions.end());
    const FunctionProto& f = found->second;
    EXPECT_EQ(f.inputs, Names{"a"});
    EXPECT_EQ(f.outputs, Names{"b"});
    EXPECT_EQ(f.attributes, Names{"scale"});
    ASSERT_EQ(f.attribute_protos.size(), 1U);
    EXPECT_EQ(f.attribute_protos[0].f, 1.0F);
    EXPECT_EQ(f.nodes.at(0).attributes.at(0).ref_attr_name, "scale");
    EXPECT_EQ(f.opset_imports, (OpsetImports{{"", 17}})) << "ai.onnx is the default domain";
    EXPECT_EQ(f.value_info.size(), 1U);
}

struct TypedCase {
    int number;
    Pb tensor; // typed data
    std::string bytes;
};

TEST(Reader, TypedDataOfEveryType) {
    const std::vector<TypedCase> cases = {
        {1, tensor("", {1}, 1).f(4, 1), "\x00\x00\x80\x3f"s},
        {2, tensor("", {2}, 2).packed(5, {1, 255}), "\x01\xff"},
        {3, tensor("", {3}, 3).packed(5, {1, -1, 255}), "\x01\xff\xff"},
        {4, tensor("", {2}, 4).packed(5, {1, 65535}), "\x01\x00\xff\xff"s},
        {5, tensor("", {2}, 5).packed(5, {-2, 32767}), "\xfe\xff\xff\x7f"},
        {6, tensor("", {2}, 6).packed(5, {-2, 1}), "\xfe\xff\xff\xff\x01\x00\x00\x00"s},
        {7, tensor("", {1}, 7).packed(7, {-2}), "\xfe\xff\xff\xff\xff\xff\xff\xff"},
        {9, tensor("", {3}, 9).packed(5, {0, 1, 7}), "\x00\x01\x01"s},
        {10, tensor("", {2}, 10).packed(5, {0x3c00, 0xfc00}), "\x00\x3c\x00\xfc"s},
        {11, tensor("", {1}, 11).d(10, 1), "\x00\x00\x00\x00\x00\x00\xf0\x3f"s},
        {12, tensor("", {1}, 12).packed(11, {0xffffffff}), "\xff\xff\xff\xff"},
        {13, tensor("", {1}, 13).packed(11, {-1}), "\xff\xff\xff\xff\xff\xff\xff\xff"},
        {14, tensor("", {1}, 14).packed_f(4, {1, -2}), "\x00\x00\x80\x3f\x00\x00\x00\xc0"s},
        {15, tensor("", {1}, 15).packed_d(10, {0, 1}), std::string(14, '\0') + "\xf0\x3f"},
        {16, tensor("", {1}, 16).packed(5, {0xbf80}), "\x80\xbf"},
        {17, tensor("", {2}, 17).packed(5, {0x38, 0xb8}), "\x38\xb8"},
        {18, tensor("", {1}, 18).packed(5, {0x80}), "\x80"},
        {19, tensor("", {1}, 19).packed(5, {0x7c}), "\x7c"},
        {20, tensor("", {1}, 20).packed(5, {0x01}), "\x01"},
        {21, tensor("", {3}, 21).packed(5, {0xf1, 0x02}), "\xf1\x02"},
        {22, tensor("", {2}, 22).packed(5, {-1}), "\xff"},
        {23, tensor("", {4}, 23).packed(5, {0x21, 0x43}), "\x21\x43"},
        {24, tensor("", {1}, 24).packed(5, {127}), "\x7f"},
        {25, tensor("", {5}, 25).packed(5, {0xe4, 0x01}), "\xe4\x01"},
        {26, tensor("", {4}, 26).packed(5, {0x1b}), "\x1b"},
        {27, tensor("", {4}, 27).packed(5, {1, 2, 3, 63}), "\x81\x30\xfc"},
        {28, tensor("", {2}, 28).packed(5, {63, 1}), "\x7f\x00"s},
    };
    for (const TypedCase& c : cases) {
        SCOPED_TRACE(data_type_name(c.number));
        const Tensor typed = read_tensor(as_bytes(c.tensor.bytes()));
        EXPECT_EQ(typed.data_type, c.number);
        EXPECT_EQ(data(typed), c.bytes);
        EXPECT_NE(typed.owner, nullptr);
        const std::string raw = Pb().i(1, typed.dims.at(0)).i(2, c.number).s(9, c.bytes).bytes();
        EXPECT_EQ(data(read_tensor(as_bytes(raw))), c.bytes);
    }
}

TEST(Reader, StringsAreCounted) {
    const std::string bytes = tensor("s", {2, 1}, 8).s(6, "one").s(6, "").bytes();
    const Tensor t = read_tensor(as_bytes(bytes));
    EXPECT_EQ(t.string_count, 2);
    EXPECT_TRUE(t.bytes.empty());
}

TEST(Reader, DataTypesAndDtypesMatch) {
    for (int i = 0; i < dtype_count; ++i) {
        const auto t = static_cast<DType>(i);
        const int number = data_type_number(t);
        EXPECT_EQ(dtype_of(number), t);
        EXPECT_EQ(data_type_name(number), name(t));
        EXPECT_EQ(find_data_type(number)->bits, bit_width(t));
    }
    EXPECT_EQ(dtype_of(8), std::nullopt);
    EXPECT_EQ(data_type_name(8), "string");
    EXPECT_EQ(data_type_name(0), "undefined");
    EXPECT_EQ(data_type_name(29), "data type 29");
    EXPECT_EQ(find_data_type(29), nullptr);
}

TEST(Reader, FieldOrderAndPackingDoNotMatter) {
    const std::string packed = Pb().packed(1, {2, 2}).i(2, 6).packed(5, {1, -2, 3, 4}).bytes();
    const std::string mixed =
        Pb().i(5, 1).packed(5, {-2, 3}).i(5, 4).i(2, 6).i(1, 2).i(1, 2).s(8, "").bytes();
    EXPECT_EQ(data(read_tensor(as_bytes(packed))), data(read_tensor(as_bytes(mixed))));
    EXPECT_EQ(read_tensor(as_bytes(mixed)).dims, (std::vector<int64_t>{2, 2}));
}

TEST(Reader, BoolsBecomeZeroAndOne) {
    const std::string clean = tensor("b", {3}, 9, "\x00\x01\x01"s).bytes();
    const std::string odd = tensor("b", {3}, 9, "\x00\x02\xff"s).bytes();
    EXPECT_EQ(data(read_tensor(as_bytes(clean))), "\x00\x01\x01"s);
    EXPECT_EQ(read_tensor(as_bytes(clean)).owner, nullptr) << "nothing to copy";
    EXPECT_EQ(data(read_tensor(as_bytes(odd))), "\x00\x01\x01"s);
}

TEST(Reader, OwnersKeepDataAlive) {
    Model m;
    {
        const auto buffer = std::make_shared<const std::string>(rich_model());
        m = read_model(as_bytes(*buffer), "", buffer);
    }
    EXPECT_EQ(data(m.graph.initializers.at(1)), "\x01\x02\xff");
    const Tensor t = m.graph.initializers.at(1);
    m = Model();
    EXPECT_EQ(data(t), "\x01\x02\xff");
}

// Writers without field presence omit zeros; others write every member.
TEST(Reader, AttributesWithDefaultValues) {
    const std::string bytes =
        model_with_node(node("Op", {}, {"z"})
                            .m(5, attribute("zero", 2))
                            .m(5, attribute("none", 3))
                            .m(5, attribute("empty", 7))
                            .m(5, attribute("all", 2).f(2, 0).i(3, 5).s(4, "")))
            .bytes();
    const Model m = read(bytes);
    const std::vector<Attribute>& a = m.graph.nodes.at(1).attributes;
    EXPECT_EQ(a[0].i, 0);
    EXPECT_EQ(a[1].s, "");
    EXPECT_TRUE(a[2].ints.empty());
    EXPECT_EQ(a[3].i, 5);
}

TEST(Reader, OldModelsNeedNoOpset) {
    const std::string bytes = Pb().i(1, 2).m(7, graph()).bytes();
    EXPECT_EQ(read(bytes).opset_imports, (OpsetImports{{"", 1}}));
}

TEST(Reader, SixtyFourGraphsDeep) {
    Pb g = Pb().s(2, "innermost");
    for (int i = 1; i < 63; ++i) {
        g = Pb().s(2, "g").m(1, node("If", {"c"}, {"y"}).m(5, attribute("body", 5).m(6, g)));
    }
    const std::string bytes = model_with_attribute(attribute("body", 5).m(6, g)).bytes();
    const Model m = read(bytes);
    int depth = 1;
    const Graph* at = m.graph.nodes.at(1).attributes.at(0).g.get();
    for (++depth; !at->nodes.empty(); ++depth) {
        at = at->nodes[0].attributes.at(0).g.get();
    }
    EXPECT_EQ(depth, max_nesting);
    EXPECT_EQ(at->name, "innermost");
}

TEST(Reader, ManyNodes) {
    Pb g = graph();
    for (int i = 0; i < 100000; ++i) {
        g.m(1, Pb().s(4, "Neg"));
    }
    EXPECT_EQ(read(model(g).bytes()).graph.nodes.size(), 100001U);
}

TEST(Reader, FileErrorsNameTheFile) {
    const TempFolder folder;
    const std::string path = folder.file("m.onnx");
    EXPECT_NE(error_of([&] { read_model_file(path); }).find(path), std::string::npos);
    write_file(path, "");
    EXPECT_EQ(error_of([&] { read_model_file(path); }), path + ": the file is empty");
    write_file(path, model(graph().m(5, tensor("w", {2}, 1, "1234"))).bytes());
    EXPECT_EQ(error_of([&] { read_model_file(path); }),
              path + ": graph 'g': initializer 'w': raw data has 4 bytes, expected 8 (f32 [2])");
    write_file(path, tensor("w", {2}, 1, "1234").bytes());
    EXPECT_EQ(error_of([&] { read_tensor_file(path); }),
              path + ": raw data has 4 bytes, expected 8 (f32 [2])");
}

TEST(Reader, ModelFileStaysMapped) {
    const TempFolder folder;
    const std::string path = folder.file("m.onnx");
    write_file(path, rich_model());
    Model m = read_model_file(path);
    EXPECT_EQ(m.folder, folder.path());
    std::remove(path.c_str());
    const Tensor t = m.graph.initializers.at(1);
    m = Model();
    EXPECT_EQ(data(t), "\x01\x02\xff");
}

class SharedModels : public testing::Test {
protected:
    void SetUp() override {
        folder = shared_folder();
        if (folder.empty()) {
            GTEST_SKIP() << "no shared folder: set INGOT_SHARED, or put it beside the source root";
        }
        folder += "/models";
    }
    std::string folder;
};

TEST_F(SharedModels, PretrainedAreRead) {
    const Model m = read_model_file(folder + "/pretrained/ultraface_rfb_320.onnx");
    EXPECT_EQ(m.ir_version, 4);
    EXPECT_EQ(m.opset_imports.at(""), 9);
    EXPECT_EQ(m.graph.nodes.size(), 126U);
    EXPECT_EQ(m.graph.inputs.at(0).dims,
              (std::vector<ShapeDim>{{1, ""}, {3, ""}, {240, ""}, {320, ""}}));
    const Model half = read_model_file(folder + "/pretrained/starry_night_fp16.onnx");
    EXPECT_EQ(half.graph.initializers.at(0).data_type, data_type_number(DType::F16));
}

TEST_F(SharedModels, RecordedTensorsAreRead) {
    const Tensor input = read_tensor_file(folder + "/pretrained/mobilenetv2_qdq_input_0.pb");
    EXPECT_EQ(input.dims, (std::vector<int64_t>{1, 3, 244, 244}));
    EXPECT_EQ(values<float>(input).size(), 3U * 244 * 244);
    const Tensor output = read_tensor_file(folder + "/pretrained/mobilenetv2_qdq_output_0.pb");
    EXPECT_EQ(output.dims, (std::vector<int64_t>{1, 1000}));
}

// The committed graphs of the architectures have their large weights left out.
TEST_F(SharedModels, MissingWeightsAreNamed) {
    const std::string path = folder + "/architectures/resnet50.onnx";
    const std::string error = error_of([&] { read_model_file(path); });
    EXPECT_TRUE(error.starts_with(path + ": graph 'main_graph': initializer 'fc.weight': "
                                         "external data '"))
        << error;
}

} // namespace
} // namespace ingot::onnx::test
